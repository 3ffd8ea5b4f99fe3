"""Erased bytes are searched for, and gone."""

import base64
import json
import random
import sqlite3
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langgraph.store.base import PutOp

from langmem_adapter.embeddings import HashEmbeddings
from langmem_adapter.errors import Conflict, InvalidInput
from langmem_adapter.stores.erasure import Scanner
from langmem_adapter.stores.sqlite import SqliteMemoryStore
from langmem_adapter.stores.vectors import unit

OWNER, OTHER = ("m", "user", "u1", "facts"), ("m", "user", "u2", "facts")
INDEX: Any = {"dims": 256, "embed": HashEmbeddings(), "fields": ["text"]}
SENTINEL = "Zx9Sentinel-Geheimnis-é"


def files(folder: Path) -> bytes:
    return b"".join(p.read_bytes() for p in sorted(folder.iterdir()) if not p.name.endswith("-shm"))


def traces(folder: Path, text: str) -> list[str]:
    """In which forms the text, or its vector, can be found in the files."""
    data = files(folder)
    forms = {
        "utf-8": text.encode(),
        "utf-16": text.encode("utf-16-le"),
        "json": json.dumps(text)[1:-1].encode(),
        "base64": base64.b64encode(text.encode())[:-4],
        "vector": unit(np.array([HashEmbeddings().embed_query(text)], dtype=np.float32)).tobytes(),
        "raw vector": np.array(HashEmbeddings().embed_query(text), dtype=np.float32).tobytes(),
    }
    return [name for name, form in forms.items() if form in data]


@pytest.mark.parametrize("keys", [None, ["k7"]])
def test_nothing_of_an_erased_item_is_left_in_any_file(tmp_path: Path, keys: list[str] | None) -> None:
    with SqliteMemoryStore(tmp_path / "memory.db", index=INDEX) as store:
        store.put(OTHER, "live", {"text": "another person's fact"})
        store.batch([PutOp(OWNER, f"k{i}", {"text": f"{SENTINEL} {i} of many"}) for i in range(20)])
        store.search(OWNER, query=SENTINEL)
        assert traces(tmp_path, f"{SENTINEL} 7 of many") == ["utf-8", "vector", "raw vector"]
        found = store.erase(OWNER, keys)
        assert (found.state, found.items, found.reason) == ("done", 20 if keys is None else 1, "")
        assert found.bytes_searched > 0
        assert traces(tmp_path, f"{SENTINEL} 7 of many") == []
        assert store.get(OWNER, "k7") is None
        assert [i.key for i in store.search(OWNER, query=SENTINEL) if i.key == "k7"] == []
        assert store.search(OTHER, query="another person")[0].key == "live"
        assert len(store.search(OWNER, limit=50)) == (0 if keys is None else 19)


def test_copies_left_in_page_gaps_are_found_and_removed(tmp_path: Path) -> None:
    rng = random.Random(3)
    ghosts = 0
    for round in range(3):
        folder = tmp_path / str(round)
        folder.mkdir()
        with SqliteMemoryStore(folder / "memory.db") as store:
            # Interleaved growth moves cells between pages, which is what leaves copies.
            for i in range(300):
                store.put(OWNER, f"k{i}", {"text": f"{SENTINEL} {i} {'padding ' * rng.randrange(1, 60)}{rng.random()}"})
                store.put(OTHER, f"k{i}", {"text": f"other {i} {'padding ' * rng.randrange(1, 60)}"})
            found = store.erase(OWNER)
            assert found.state == "done", found
            assert SENTINEL.encode() not in files(folder)
            ghosts += found.found
            assert found.vacuumed == (found.found > 0)
            assert len(store.search(OTHER, limit=500)) == 300
            assert store.doctor(deep=True).problems == ()
    assert ghosts > 0, "this test no longer makes what it is about"


def test_earlier_versions_and_plain_deletes_are_erased_with_their_owner(tmp_path: Path) -> None:
    rng = random.Random(3)
    with SqliteMemoryStore(tmp_path / "memory.db") as store:
        for i in range(600):
            text = f"{SENTINEL} {i} {'padding ' * rng.randrange(1, 60)}{rng.random()}"
            store.put(OWNER, f"k{i % 150}", {"text": text})
            store.put(OTHER, f"k{i % 150}", {"text": f"other {'padding ' * rng.randrange(1, 60)}{rng.random()}"})
        for i in range(0, 150, 2):
            store.delete(OWNER, f"k{i}")
        found = store.erase(OWNER)
        assert (found.state, found.items, found.vacuumed) == ("done", 75, True)
        assert SENTINEL.encode() not in files(tmp_path)


def test_only_what_was_overwritten_or_deleted_makes_a_rebuild_necessary(tmp_path: Path) -> None:
    with SqliteMemoryStore(tmp_path / "memory.db") as store:
        store.put(OWNER, "k", {"text": "The user eats fish."})
        store.put(OTHER, "k", {"text": "The user eats meat."})
        store.put(OTHER, "k", {"text": "The user eats nothing."})
        assert store.erase(OWNER).vacuumed is False
        assert store.erase(OTHER).vacuumed is True
        store.put(OTHER, "k", {"text": "The user eats again."})
        assert store.erase(OTHER).vacuumed is False, "the rebuild has cleaned what was lost before it"


@pytest.mark.parametrize("first", [{"pin": 4917700001659}, {"w": "Ghent"}, {"a rather long key of a dict": None}, [7]])
def test_an_earlier_value_too_short_to_be_looked_for_makes_a_rebuild_necessary(tmp_path: Path, first: Any) -> None:
    with SqliteMemoryStore(tmp_path / "memory.db") as store:
        text = {"text": "The user has a telephone."}
        store.put(OWNER, "k", {"v": first, **text})
        store.put(OWNER, "k", text)
        assert store.erase(OWNER).vacuumed is True


def test_an_erased_value_too_short_to_be_looked_for_makes_a_rebuild_necessary(tmp_path: Path) -> None:
    with SqliteMemoryStore(tmp_path / "memory.db") as store:
        store.put(OWNER, "long", {"text": "The user has a telephone."})
        store.put(OWNER, "short", {"p": 1234})
        assert store.erase(OWNER).vacuumed is True


@pytest.mark.parametrize("how", ["delete", "sweep"])
@pytest.mark.parametrize("keys", [None, ["never there"]])
def test_erasing_an_owner_whose_items_went_before_looks_for_no_text_but_rebuilds(
    tmp_path: Path, how: str, keys: list[str] | None
) -> None:
    now = [1_000_000.0]
    with SqliteMemoryStore(tmp_path / "memory.db", clock=lambda: now[0]) as store:
        store.put(OWNER, "k", {"text": SENTINEL}, ttl=1)
        if how == "delete":
            store.delete(OWNER, "k")
        else:
            now[0] += 61
            assert store.sweep_ttl() == 1
        found = store.erase(OWNER, keys)
        assert (found.state, found.items, found.vacuumed) == ("done", 0, True)
        assert store.erase(OWNER, keys).vacuumed is False
        assert store.doctor().problems == ()


def test_vectors_that_a_reindexing_replaced_make_a_rebuild_necessary(tmp_path: Path) -> None:
    with SqliteMemoryStore(tmp_path / "memory.db", index=INDEX) as store:
        store.put(OWNER, "k", {"text": SENTINEL})
    other: Any = {"dims": 64, "embed": HashEmbeddings(64), "fields": ["text"]}
    with SqliteMemoryStore(tmp_path / "memory.db", index=other, replace_embedder=True) as store:
        store.reindex()
        assert store.erase(OWNER).vacuumed is True


def test_what_live_items_say_too_does_not_count_as_left_over(tmp_path: Path) -> None:
    with SqliteMemoryStore(tmp_path / "memory.db", index=INDEX) as store:
        for owner in (OWNER, OTHER):
            store.put(owner, "k", {"text": "The user is vegetarian and lives in Paris."})
        found = store.erase(OWNER)
        assert (found.state, found.found, found.vacuumed) == ("done", 0, False)
        assert found.shared > 0
        assert store.get(OTHER, "k") is not None


def reading(tmp_path: Path) -> sqlite3.Connection:
    """A connection that reads the state of now, and holds it until it is closed."""
    reader = sqlite3.connect(tmp_path / "memory.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM memory_items").fetchone()
    return reader


def test_an_erasure_is_pending_while_a_reader_holds_an_older_state_and_can_be_finished(tmp_path: Path) -> None:
    with SqliteMemoryStore(tmp_path / "memory.db") as store:
        store.put(OWNER, "k", {"text": SENTINEL * 3})
        reader = reading(tmp_path)
        started = time.monotonic()
        found = store.erase(OWNER, wait=0.3)
        assert time.monotonic() - started < 5
        assert found.state == "pending"
        assert "reading an older state" in found.reason
        assert "finish_erasure" in store.doctor().problems[0]
        store.put(OTHER, "meanwhile", {"text": "writers are not kept waiting"})
        reader.close()
        found = store.finish_erasure()
        assert found.state == "done"
        assert SENTINEL.encode() not in files(tmp_path)
        assert store.doctor().problems == ()


def test_a_reader_is_waited_for_once_also_where_the_file_is_rebuilt(tmp_path: Path) -> None:
    with SqliteMemoryStore(tmp_path / "memory.db") as store:
        store.put(OWNER, "k", {"text": SENTINEL * 3})
        reader = reading(tmp_path)
        started = time.monotonic()
        found = store.erase(OWNER, wait=3.0)
        assert (found.state, found.vacuumed) == ("pending", True)
        assert time.monotonic() - started < 5.5
        reader.close()


def test_an_erasure_whose_process_died_is_finished_by_rebuilding(tmp_path: Path) -> None:
    with SqliteMemoryStore(tmp_path / "memory.db") as store:
        store.put(OWNER, "k", {"text": SENTINEL})
        reader = reading(tmp_path)
        assert store.erase(OWNER, wait=0).state == "pending"
        reader.close()
    with SqliteMemoryStore(tmp_path / "memory.db") as again:
        assert again.doctor().problems != ()
        found = again.finish_erasure()
        assert (found.state, found.vacuumed) == ("done", True)
        assert again.doctor().problems == ()
    assert SENTINEL.encode() not in files(tmp_path)


def test_another_erasure_does_not_call_a_dead_ones_done(tmp_path: Path) -> None:
    with SqliteMemoryStore(tmp_path / "memory.db") as store:
        store.put(OWNER, "k", {"text": SENTINEL})
        reader = reading(tmp_path)
        assert store.erase(OWNER, wait=0).state == "pending"
        reader.close()
    with SqliteMemoryStore(tmp_path / "memory.db") as again:
        again.put(OTHER, "k", {"text": "a sentence about somebody else"})
        found = again.erase(OTHER)
        assert (found.state, found.vacuumed) == ("done", True)
        assert again.doctor().problems == ()


def test_two_stores_on_one_file_leave_each_others_erasures_alone(tmp_path: Path) -> None:
    with SqliteMemoryStore(tmp_path / "memory.db") as one, SqliteMemoryStore(tmp_path / "memory.db") as two:
        one.put(OWNER, "k", {"text": SENTINEL})
        two.put(OTHER, "k", {"text": "a sentence about somebody else"})
        reader = reading(tmp_path)
        assert [one.erase(OWNER, wait=0).state, two.erase(OTHER, wait=0).state] == ["pending", "pending"]
        reader.close()
        assert "finish_erasure" in one.doctor().problems[0]
        assert two.finish_erasure().vacuumed is True, "it does not know what the other looks for"
        assert one.doctor().problems == two.doctor().problems == ()
        assert one.finish_erasure().state == "done"


def test_an_erasure_that_lost_against_another_writer_leaves_no_mark(sqlite: SqliteMemoryStore) -> None:
    sqlite.put(OWNER, "k", {"text": SENTINEL})
    with pytest.raises(Conflict):
        sqlite.erase_with([PutOp(OWNER, "k", None)], expect={OWNER: 0})
    assert sqlite.doctor().problems == ()
    assert sqlite.get(OWNER, "k") is not None


@pytest.mark.parametrize(("prefix", "keys"), [("bob", None), (("bob",), "k12"), (("bob",), [12]), (["b", 1], None)])
def test_an_erasure_of_what_cannot_be_meant_is_refused(sqlite: SqliteMemoryStore, prefix: Any, keys: Any) -> None:
    sqlite.put(("bob",), "k12", {"text": SENTINEL})
    with pytest.raises(ValueError):
        sqlite.erase(prefix, keys)


def test_other_connections_keep_their_locks_through_a_search(tmp_path: Path) -> None:
    # On POSIX, closing any descriptor of the file would drop every lock this process holds on it.
    with SqliteMemoryStore(tmp_path / "memory.db") as store, SqliteMemoryStore(tmp_path / "memory.db") as second:
        store.put(OWNER, "k", {"text": SENTINEL})
        store.erase(OWNER)
        other = sqlite3.connect(tmp_path / "memory.db")
        other.close()  # if the locks were gone it would now believe to be the last, and delete the WAL
        store.put(OTHER, "k", {"x": 1})
        assert second.get(OTHER, "k") is not None
        third = sqlite3.connect(tmp_path / "memory.db")
        assert third.execute("SELECT count(*) FROM memory_items").fetchone() == (1,)
        third.close()


def test_versions_go_on_and_nothing_is_listed_after_an_erasure(sqlite: SqliteMemoryStore) -> None:
    sqlite.batch([PutOp(OWNER, k, {}) for k in "ab"])
    sqlite.erase(("m", "user", "u1"))
    assert sqlite.read([], versions=[OWNER])[1] == {OWNER: 4}
    assert sqlite.list_namespaces() == []


async def test_erasing_has_an_async_twin_and_works_in_memory() -> None:
    with SqliteMemoryStore(":memory:", index=INDEX) as store:
        store.put(OWNER, "k", {"text": SENTINEL})
        store.put(OTHER, "k", {"text": "other"})
        found = await store.aerase(OWNER)
        assert (found.state, found.items) == ("done", 1)
        assert (await store.afinish_erasure()).state == "done"
        assert store.get(OTHER, "k") is not None


def test_erasing_nothing_is_done_and_everything_is_refused(sqlite: SqliteMemoryStore) -> None:
    found = sqlite.erase(("nobody",))
    assert (found.state, found.items, found.pieces) == ("done", 0, 0)
    with pytest.raises(InvalidInput):
        sqlite.erase(())


def test_the_scanner_finds_every_piece_at_every_place() -> None:
    rng = random.Random(0)
    noise = rng.randbytes(100_000)
    pieces = {rng.randbytes(rng.randrange(12, 49)) for _ in range(200)}
    data = bytearray(noise)
    planted = set(rng.sample(sorted(pieces), 60))
    for n, piece in enumerate(sorted(planted)):
        at = n * 1_600 + rng.randrange(1_500)
        data[at : at + len(piece)] = piece
    data[-len(min(planted)) :] = min(planted)
    scanner = Scanner(pieces)
    expected = {p for p in pieces if p in data}
    assert planted <= expected
    assert scanner.search(bytes(data)) == expected
    cut = [bytes(data[i : i + 777]) for i in range(0, len(data), 777)]
    assert scanner.search_all(cut) == (expected, len(data))
    assert Scanner({b"twelve bytes"}).search(b"short") == set()
