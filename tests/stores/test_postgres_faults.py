"""A server that dies, is away, refuses, or loses a reply."""

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from langgraph.store.base import PutOp
from psycopg.conninfo import make_conninfo
from stores.postgres_fixtures import *  # noqa: F403
from stores.postgres_fixtures import execute
from stores.postgres_server import URL, Server, server

from langmem_adapter.errors import StoreClosed, StoreError, StoreFull, StoreReadOnly
from langmem_adapter.memory import Memory
from langmem_adapter.stores.postgres import PostgresMemoryStore
from langmem_adapter.stores.postgres_pool import Connections, typed

N = ("n",)


@pytest.fixture(scope="module")
def mortal() -> Iterator[Server]:
    """A server of these tests' own, which they may kill."""
    with server() as running:
        yield running


def test_a_killed_server_loses_no_acknowledged_write_and_is_used_again_when_it_is_back(mortal: Server) -> None:
    acknowledged: list[str] = []
    refused: list[str] = []
    with PostgresMemoryStore(mortal.url(), schema="killed") as store:

        def write(name: int) -> None:
            for i in range(120):
                try:
                    store.batch([PutOp(N, f"{name}-{i}", {}), PutOp(("m",), f"{name}-{i}", {})])
                    acknowledged.append(f"{name}-{i}")
                except StoreError:
                    refused.append(f"{name}-{i}")
                    time.sleep(0.02)

        with ThreadPoolExecutor(4) as pool:
            writers = [pool.submit(write, n) for n in range(4)]
            for _ in range(2):
                time.sleep(0.15)
                mortal.kill()
                time.sleep(0.1)
                mortal.start()
            for w in writers:
                w.result(60)
        stored = {i.key for i in store.search(N, limit=10_000)}
        assert refused
        assert set(acknowledged) <= stored
        assert {i.key for i in store.search(("m",), limit=10_000)} == stored
        # What was said not to have happened did not; only where nothing could be said it may have.
        assert store.read([], versions=[N])[1] == {N: len(stored)}


def test_while_the_server_is_away_calls_fail_at_once_and_memory_works_again_afterwards(mortal: Server) -> None:
    with PostgresMemoryStore(mortal.url(), schema="away") as store:
        memory = Memory(store)
        memory.add("Please call me Ada.", user_id="u")
        mortal.kill()
        for call in (lambda: store.get(N, "k"), lambda: store.put(N, "k", {}), lambda: memory.search("x", user_id="u")):
            start = time.monotonic()
            with pytest.raises(StoreError, match="cannot be reached"):
                call()
            assert time.monotonic() - start < 0.3
        with pytest.raises(StoreError):
            asyncio.run(store.aget(N, "k"))
        mortal.start()
        assert [h.record.content for h in memory.search("name", user_id="u")] == ["The user goes by Ada."]


def test_a_store_may_be_made_while_the_server_is_away(mortal: Server) -> None:
    mortal.kill()
    store = PostgresMemoryStore(mortal.url(), schema="early")
    with pytest.raises(StoreError, match="cannot be reached"):
        store.get(N, "k")
    mortal.start()
    store.put(N, "k", {})
    store.close()


def test_connections_that_died_while_idle_are_replaced_unnoticed(postgres: PostgresMemoryStore, database: str) -> None:
    postgres.put(N, "k", {"n": 1})
    threads = [threading.Thread(target=postgres.get, args=(N, "k")) for _ in range(5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    execute(
        database,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name = 'langmem_adapter' AND datname = current_database()",
    )
    postgres.put(N, "k", {"n": 2})
    item = postgres.get(N, "k")
    assert item is not None
    assert item.value == {"n": 2}


class Relay(Connections):
    """Connections whose next COMMIT is answered by a broken line, before or after it took place."""

    lose: str | None = None

    def finish(self, conn: Any, commits: str, ticket: Any) -> None:
        how, self.lose = self.lose, None
        if how is None:
            super().finish(conn, commits, ticket)
            return
        real = conn.execute

        def execute(statement: bytes, *args: Any, **kwargs: Any) -> Any:
            if how == "after":
                real(statement, *args, **kwargs)
            conn.close()
            raise psycopg.OperationalError("the connection is lost")

        conn.execute = execute
        super().finish(conn, commits, ticket)


def test_a_commit_whose_reply_is_lost_is_found_by_its_own_id(postgres: PostgresMemoryStore, database: str) -> None:
    postgres.put(N, "first", {})
    relay = Relay(database)
    postgres._connections = relay
    relay.lose = "after"
    postgres.commit([PutOp(N, "k", {})], expect={N: 1})  # it happened, and says so
    assert postgres.read([], versions=[N])[1] == {N: 2}
    relay.lose = "before"
    postgres.commit([PutOp(N, "l", {})], expect={N: 2})  # it did not, so it is done again
    assert postgres.read([], versions=[N])[1] == {N: 3}
    assert {i.key for i in postgres.search(N)} == {"first", "k", "l"}
    relay.close()


def test_a_read_only_database_can_be_read_and_refuses_writes(
    postgres: PostgresMemoryStore, database: str, schema: str
) -> None:
    postgres.put(N, "k", {"n": 1}, ttl=10)
    read_only = make_conninfo(database, options="-c default_transaction_read_only=on")
    with PostgresMemoryStore(read_only, schema=schema, clock=lambda: time.time() + 60) as store:
        item = store.get(N, "k", refresh_ttl=True)
        assert item is not None
        # A write transaction asks for READ WRITE, which a server in recovery refuses; here privileges do.
    role = f"reader_{schema}"
    execute(
        database,
        f"CREATE ROLE {role} LOGIN",
        f"GRANT USAGE ON SCHEMA {schema} TO {role}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}",
    )
    with PostgresMemoryStore(make_conninfo(database, user=role), schema=schema) as store:
        assert store.get(N, "k") is not None
        with pytest.raises(PermissionError):
            store.put(N, "k", {"n": 2})
    execute(database, f"DROP OWNED BY {role}", f"DROP ROLE {role}")


@pytest.mark.parametrize(
    ("state", "kind"),
    [("53100", StoreFull), ("25006", StoreReadOnly), ("42501", PermissionError), ("58030", StoreError)],
)
def test_errors_of_the_server_are_typed(state: str, kind: type[Exception]) -> None:
    error = psycopg.errors.lookup(state)("no")
    assert isinstance(typed(error, "db"), kind)


def test_a_password_is_in_no_message() -> None:
    store = PostgresMemoryStore("postgresql://me:secret-word@127.0.0.1:1/db?connect_timeout=2")
    with pytest.raises(StoreError) as e:
        store.get(N, "k")
    assert "secret-word" not in str(e.value) + store.name
    with pytest.raises(StoreError, match="connection string"):
        PostgresMemoryStore("postgresql://%zz secret-word")


def test_a_closed_store_says_so(open_store) -> None:
    store = open_store()
    store.close()
    store.close()
    with pytest.raises(StoreClosed):
        store.get(N, "k")
    with pytest.raises(StoreClosed):
        asyncio.run(store.aget(N, "k"))


@pytest.mark.skipif(URL is not None, reason="counts all connections of the server")
def test_a_store_that_is_dropped_closes_its_connections(database: str, schema: str) -> None:
    store = PostgresMemoryStore(database, schema=schema)
    store.put(N, "k", {})
    count = (
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE application_name = 'langmem_adapter' AND datname = current_database()"
    )
    before = execute(database, count)[0][0]
    del store
    give_up = time.monotonic() + 5
    while execute(database, count)[0][0] >= before and time.monotonic() < give_up:
        time.sleep(0.02)
    assert execute(database, count)[0][0] < before
