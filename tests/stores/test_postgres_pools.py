"""Connections: a pool that was passed in stays as its owner made it, and turns that are over keep none from others."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg_pool
import pytest
from langgraph.store.base import PutOp
from psycopg.rows import dict_row, scalar_row
from stores.postgres_fixtures import *  # noqa: F403

from langmem_adapter.embeddings import HashEmbeddings
from langmem_adapter.errors import Conflict
from langmem_adapter.stores.postgres import PostgresMemoryStore

INDEX: Any = {"dims": 256, "embed": HashEmbeddings(), "fields": ["text"]}
N = ("users", "u")


@contextmanager
def pool_on(database: str, **config: Any) -> Iterator[psycopg_pool.ConnectionPool]:
    with psycopg_pool.ConnectionPool(database, open=False, **{"min_size": 1, "max_size": 2, **config}) as pool:
        yield pool


def test_the_users_own_transactions_on_a_pool_stay_atomic(database: str, schema: str) -> None:
    with pool_on(database, max_size=1) as pool:
        store = PostgresMemoryStore(pool, schema=schema, index=INDEX)
        store.put(N, "k", {"text": "a cat"})
        store.erase(N)
        with pool.connection() as conn:
            assert (conn.autocommit, conn.execute("SHOW lock_timeout").fetchone()) == (False, ("0",))
            conn.execute("CREATE TEMP TABLE mine (x int)")
        with suppress(RuntimeError), pool.connection() as conn:
            conn.execute("INSERT INTO mine VALUES (1)")
            raise RuntimeError
        with pool.connection() as conn:
            assert conn.execute("SELECT count(*) FROM mine").fetchone() == (0,)


@pytest.mark.parametrize("factory", [dict_row, scalar_row])
def test_a_pool_may_make_its_rows_as_it_likes(database: str, schema: str, factory: Any) -> None:
    with pool_on(database, kwargs={"autocommit": True, "prepare_threshold": 0, "row_factory": factory}) as pool:
        store = PostgresMemoryStore(pool, schema=schema, index=INDEX)
        store.put(N, "k", {"text": "a cat"})
        assert [i.key for i in store.search(N, query="cat")] == ["k"]
        assert store.doctor().items == 1
        assert store.erase(N).state == "done"


def turn(store: PostgresMemoryStore, namespace: tuple[str, ...]) -> None:
    """Lose a race, and read again: this thread has a turn, and a connection, from then on."""
    store.put(namespace, "k", {"text": "a cat"})
    _, seen = store.read([], versions=[namespace])
    store.put(namespace, "other", {})
    with pytest.raises(Conflict):
        store.commit([PutOp(namespace, "k", {})], expect=seen)
    store.read([], versions=[namespace])
    assert store._turns._open


@pytest.mark.parametrize("owner", ["the store", "the user"])
def test_turns_that_nobody_ends_starve_nobody(database: str, schema: str, owner: str) -> None:
    with pool_on(database, max_size=3) as pool:
        store = PostgresMemoryStore(database if owner == "the store" else pool, schema=schema, pool_size=3)
        store.setup()
        over = threading.Event()

        def think_for_long(owner: str) -> None:
            turn(store, ("users", owner))
            over.wait()

        threads = [threading.Thread(target=think_for_long, args=(f"u{i}",)) for i in range(3)]
        for thread in threads:
            thread.start()
        while len(store._turns._open) < 3:
            time.sleep(0.01)
        assert store.get(N, "k") is None  # a read that needs no version
        over.set()
        for thread in threads:
            thread.join()
        store.close()


@pytest.mark.parametrize("owner", ["the store", "the user"])
def test_with_one_connection_a_caller_does_not_starve_itself(database: str, schema: str, owner: str) -> None:
    with pool_on(database, max_size=1) as pool:
        store = PostgresMemoryStore(database if owner == "the store" else pool, schema=schema, pool_size=1)
        turn(store, N)
        assert store.get(N, "k") is not None
        store.close()
