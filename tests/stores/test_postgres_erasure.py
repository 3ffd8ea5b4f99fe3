"""Erasing in PostgreSQL: the bytes go from the table files, and a receipt says `done` only when they have."""

import threading
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langgraph.store.base import PutOp
from stores.postgres_fixtures import *  # noqa: F403
from stores.postgres_fixtures import execute
from stores.postgres_server import URL

from langmem_adapter import Memory
from langmem_adapter.embeddings import HashEmbeddings
from langmem_adapter.errors import Conflict, InvalidInput
from langmem_adapter.stores.postgres import PostgresMemoryStore

N = ("users", "u")
INDEX: Any = {"dims": 256, "embed": HashEmbeddings(), "fields": ["text", "content"]}

needs_files = pytest.mark.skipif(URL is not None, reason="reads the server's files")


def legible(database: str, schema: str, word: str = "walruszebra") -> list[str]:
    """The tables and indexes of a schema in whose files the word can be read."""
    sql = (
        "SELECT c.relname, pg_relation_filepath(c.oid) FROM pg_class c WHERE pg_relation_filepath(c.oid) IS NOT NULL "
        f"AND (c.relnamespace = '{schema}'::regnamespace OR c.relname IN (SELECT 'pg_toast_' || t.oid FROM pg_class t "
        f"WHERE t.relnamespace = '{schema}'::regnamespace) OR c.relname = 'pg_statistic')"
    )
    *_, files = execute(database, "CHECKPOINT", sql), execute(database, sql)
    folder = Path(execute(database, "SHOW data_directory")[0][0])
    return [name for name, path in files if word.encode() in (folder / path).read_bytes().lower()]


@pytest.mark.skipif(URL is not None, reason="reads the server's files")
def test_erased_items_are_gone_from_the_table_files(open_store, database: str, schema: str) -> None:
    store = open_store(index=INDEX)
    store.batch([PutOp(("users", "ada"), f"k{i}", {"text": f"walruszebra {i}"}) for i in range(50)])
    store.put(("users", "bob"), "k", {"text": "a cat"})
    execute(database, "ANALYZE")
    assert legible(database, schema)
    left = store.erase(("users", "ada"), ["k1"], rebuild=False)
    assert (left.items, left.state, left.vacuumed) == (1, "pending", False)
    assert "rebuild=True" in left.reason
    done = store.erase(("users", "ada"))
    assert (done.items, done.state, done.vacuumed) == (49, "done", True)
    assert "write-ahead log" in done.reason
    assert not legible(database, schema)
    assert [i.namespace for i in store.search(())] == [("users", "bob")]
    assert store.read([], versions=[("users", "ada")])[1] == {("users", "ada"): 100}


def test_only_the_partitions_of_an_erased_owner_are_rewritten(open_store, database: str, schema: str) -> None:
    store = open_store(partitions=4, index=INDEX)
    for i in range(20):
        store.put(("users", f"u{i}"), "k", {"text": "cat"})
    files = f"SELECT relname, relfilenode FROM pg_class WHERE relnamespace = '{schema}'::regnamespace AND relkind = 'r'"
    before = dict(execute(database, files))
    assert store.erase(("users", "u3")).state == "done"
    after = dict(execute(database, files))
    assert sorted(t.rsplit("_", 1)[0] for t in before if before[t] != after[t]) == ["items", "vectors"]


def test_an_erasure_waits_for_whoever_still_sees_the_rows(open_store, database: str) -> None:
    store = open_store()
    store.put(N, "a", {})
    store.put(N, "b", {})
    with psycopg.connect(database) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT 1 FROM pg_class LIMIT 1")
        done = store.erase(N, ["a"], wait=0.1)
        assert (done.items, done.state) == (1, "pending")
        assert "another transaction" in done.reason
    assert store.finish_erasure().state == "done"
    assert [i.key for i in store.search(N)] == ["b"]
    with pytest.raises(InvalidInput):
        store.erase(())


@needs_files
@pytest.mark.parametrize("partitions", [None, 4])
def test_a_table_that_an_erasure_has_emptied_is_cleared_too(open_store, database, schema, partitions) -> None:
    store = open_store(index=INDEX, partitions=partitions)
    memory = Memory(store)
    memory.add("I like walruszebra soup.", user_id="u", session_id="s")
    store.put(("a", "b"), "k", {"text": "a walruszebra"})
    assert legible(database, schema)
    store.delete(("a", "b"), "k")  # only deleted
    memory.delete_all(user_id="u")
    done = store.erase(("a", "b"))
    assert (done.items, done.state, done.vacuumed) == (0, "done", True)
    assert store.finish_erasure(rebuild=True).state == "done"
    assert not legible(database, schema)
    assert store.finish_erasure().state == "done"


@needs_files
@pytest.mark.parametrize("partitions", [None, 4])
def test_what_one_process_left_pending_another_finishes(open_store, database, schema, partitions) -> None:
    store, other = open_store(index=INDEX, partitions=partitions), open_store(index=INDEX)
    for owner in ("ada", "bob", "eve"):
        store.put(("users", owner), "k", {"text": "a walruszebra"})
        left = store.erase(("users", owner), rebuild=False)
        assert left.state == "pending"
    assert other.finish_erasure(rebuild=False).state == "pending"
    assert other.finish_erasure().state == "done"
    assert not legible(database, schema)
    with psycopg.connect(database) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        store.put(("users", "ada"), "k", {"text": "a walruszebra"})
        reader.execute("SELECT 1 FROM pg_class LIMIT 1")
        assert store.erase(("users", "ada"), wait=0.1).state == "pending"
        assert other.finish_erasure(wait=0.1).state == "pending"
        assert legible(database, schema)
    assert other.finish_erasure().state == "done"
    assert not legible(database, schema)


@pytest.mark.parametrize("holding", ["a table", "a transaction number"])
def test_an_erasure_neither_waits_longer_than_told_nor_keeps_others_waiting(open_store, database, schema, holding):
    store, slow = open_store(index=INDEX), []
    store.batch([PutOp(N, "k", {"text": "one"}), PutOp(("users", "v"), "k", {"text": "other"})])
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            began = time.monotonic()
            store.get(("users", "v"), "k")
            slow.append(time.monotonic() - began)

    with psycopg.connect(database) as reader:
        reader.execute(f"SELECT count(*) FROM {schema}.items" if holding == "a table" else "CREATE TEMP TABLE x ()")
        reading = threading.Thread(target=read)
        reading.start()
        assert store.erase(N, wait=0.7).state == "pending"
        over.set()
        reading.join()
        assert len(slow) > 3  # not one that waited all the time
        assert store.finish_erasure(wait=0.0).state == "pending"
    assert store.finish_erasure().state == "done"


@needs_files
def test_a_reader_whom_this_role_does_not_see_makes_it_pending(open_store, database, schema, role, restricted) -> None:
    store = PostgresMemoryStore(restricted, schema=schema, index=INDEX)
    store.put(N, "k", {"text": "a walruszebra"})
    with psycopg.connect(database) as reader:  # a superuser
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT 1 FROM pg_class LIMIT 1")
        done = store.erase(N, wait=0.1)
        assert (done.state, "another transaction" in done.reason) == ("pending", True)
    assert store.finish_erasure().state == "done"
    assert not legible(database, schema)
    store.close()


@needs_files
async def test_erase_with_commits_on_condition_and_clears(open_store, database, schema) -> None:
    store = open_store(index=INDEX)
    store.batch([PutOp(N, k, {"text": f"a walruszebra {k}"}) for k in ("a", "b", "c")])
    _, seen = store.read([], versions=[N])
    with pytest.raises(Conflict):
        store.erase_with([PutOp(N, "a", None)], expect={N: 1})
    done = store.erase_with([PutOp(N, "a", None), PutOp(N, "b", {"text": "a cat"})], expect=seen)
    assert (done.state, "write-ahead log" in done.note) == ("done", True)
    assert [legible(database, schema, f"walruszebra {k}") for k in "ab"] == [[], []]
    assert legible(database, schema, "walruszebra c")
    _, seen = await store.aread([], versions=[N])
    assert (await store.aerase_with([PutOp(N, "c", None)], expect=seen)).state == "done"
    assert not legible(database, schema)


@needs_files
def test_erase_with_nothing_finishes_what_is_pending(open_store, database, schema) -> None:
    store, other = open_store(index=INDEX), open_store(index=INDEX)
    store.put(N, "k", {"text": "a walruszebra"})
    store.erase(N, rebuild=False)
    assert other.erase_with([], expect={}).state == "done"
    assert not legible(database, schema)


@needs_files
def test_what_a_receipt_marks_done_is_gone_from_the_files(open_store, database, schema) -> None:
    store = open_store(index=INDEX)
    memory = Memory(store)
    memory.add("I like walruszebra soup.", user_id="u", session_id="s")
    receipt = memory.forget_source("s", user_id="u")
    assert (receipt.state, legible(database, schema)) == ("done", [])
    memory.add("I like walruszebra soup.", user_id="u", session_id="t")
    memory.delete([r.memory_id for r in memory.get_all(user_id="u")], user_id="u")
    assert not legible(database, schema)


def test_a_table_too_large_to_rewrite_at_once_is_left_pending(open_store, monkeypatch) -> None:
    monkeypatch.setattr("langmem_adapter.stores.postgres_keeping.SMALL", 1)
    store = open_store(index=INDEX)
    store.put(N, "k", {"text": "a cat"})
    done = store.erase_with([PutOp(N, "k", None)], expect={})
    assert (done.state, "rebuild=True" in done.note) == ("pending", True)
