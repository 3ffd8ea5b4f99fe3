"""Versions, conditional commits, snapshots, ranking and places of the Chroma store."""

import asyncio
import itertools
import random
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import chromadb
import pytest
from langgraph.store.base import GetOp, PutOp, SearchOp
from stores.chroma_clients import quiet

from langmem_adapter.embeddings import HashEmbeddings
from langmem_adapter.errors import Conflict, InvalidInput
from langmem_adapter.memory import Memory
from langmem_adapter.records import MemoryRecord, Source
from langmem_adapter.scoring import Where
from langmem_adapter.stores.base import MemoryStore, RankOp
from langmem_adapter.stores.chroma import ChromaMemoryStore
from langmem_adapter.stores.sqlite import SqliteMemoryStore

A, B, C = ("a",), ("a", "b"), ("c",)
FACTS = ("memories", "default", "user", "u", "facts")
TURNS = ("memories", "default", "user", "u", "turns")
INDEX: Any = {"dims": 256, "embed": HashEmbeddings(), "fields": ["content"]}
NOW = datetime(2026, 1, 1, tzinfo=UTC)

Open = Callable[..., ChromaMemoryStore]

_numbers = itertools.count()


@pytest.fixture
def open_store() -> Iterator[Open]:
    """Opens stores in memory on the same data, unless they are given another `prefix`."""
    made: list[ChromaMemoryStore] = []
    prefix = f"commit{next(_numbers)}"
    with chromadb.EphemeralClient(quiet()) as client:

        def open_one(**config: Any) -> ChromaMemoryStore:
            made.append(ChromaMemoryStore(client, **({"prefix": prefix} | config)))
            return made[-1]

        yield open_one
        for store in made:
            store.close()


@pytest.fixture
def store(open_store: Open) -> ChromaMemoryStore:
    return open_store(index=INDEX)


def versions(store: ChromaMemoryStore) -> dict[tuple[str, ...], int]:
    return store.read([], versions=[A, B, C])[1]


def test_a_version_grows_by_the_number_of_items_changed_in_that_namespace(store: ChromaMemoryStore) -> None:
    assert versions(store) == {A: 0, B: 0, C: 0}
    store.batch([PutOp(A, "x", {}), PutOp(A, "y", {}), PutOp(B, "x", {}), PutOp(C, "never", None)])
    assert versions(store) == {A: 2, B: 1, C: 0}
    store.batch([PutOp(A, "x", None), PutOp(A, "z", None), PutOp(A, "y", {"n": 1})])
    assert versions(store) == {A: 4, B: 1, C: 0}


def test_a_version_never_goes_back_when_the_last_item_goes(store: ChromaMemoryStore, open_store: Open) -> None:
    store.put(A, "x", {})
    store.delete(A, "x")
    store.close()
    again = open_store(index=INDEX)
    assert versions(again)[A] == 2
    assert again.list_namespaces() == []
    again.put(A, "x", {})
    assert versions(again)[A] == 3


def test_a_commit_applies_only_if_every_expected_version_holds(store: ChromaMemoryStore) -> None:
    store.put(A, "x", {"n": 0})
    seen = versions(store)
    store.commit([PutOp(A, "x", {"n": 1}), PutOp(B, "y", {})], expect=seen)
    with pytest.raises(Conflict, match=r"\('a',\) is at version 2, not 1"):
        store.commit([PutOp(C, "z", {})], expect=seen)
    with pytest.raises(Conflict):
        store.commit([], expect={A: 0})
    assert store.get(C, "z") is None
    assert versions(store) == {A: 2, B: 1, C: 0}


def test_a_read_that_refreshes_a_ttl_changes_no_version(open_store: Open) -> None:
    now = [1000.0]
    store = open_store(clock=lambda: now[0])
    store.put(A, "x", {"content": "eats fish"}, ttl=1)
    assert store.search(A, query="fish", refresh_ttl=False) != []
    now[0] += 40
    _, seen = store.read([GetOp(A, "x", refresh_ttl=True)], versions=[A])
    store.commit([PutOp(A, "y", {})], expect=seen)
    now[0] += 40
    assert store.get(A, "x", refresh_ttl=False) is not None
    assert [i.key for i in store.search(A, query="fish", limit=1, refresh_ttl=False)] == ["x"]


def test_a_clock_that_steps_back_revives_nothing_and_keeps_the_order(open_store: Open) -> None:
    now = [1_000_000.0]
    store = open_store(clock=lambda: now[0])
    store.put(A, "gone", {}, ttl=1)
    now[0] += 61
    assert store.get(A, "gone") is None
    now[0] -= 86_400
    store.put(A, "first", {})
    store.put(A, "second", {})
    assert store.get(A, "gone") is None
    assert [i.key for i in store.search(A)] == ["second", "first"]


def test_read_takes_no_puts_and_commit_nothing_else(store: ChromaMemoryStore) -> None:
    with pytest.raises(InvalidInput):
        store.read([PutOp(A, "x", {})])
    with pytest.raises(InvalidInput):
        store.commit([GetOp(A, "x")], expect={})  # type: ignore[list-item]


def test_deleted_items_that_chroma_still_holds_are_in_no_read(store: ChromaMemoryStore) -> None:
    store.batch([PutOp(FACTS, k, {"content": f"eats fish {k}", "topic": "diet"}) for k in "ab"])
    place = store._book.places.find("memories.default.user.u")
    assert place is not None
    [before] = store._chroma.find(place.collection, {"key": "a"}, ["metadatas", "documents", "embeddings"])
    store.delete(FACTS, "a")
    # What a process leaves that died between its upsert and its delete.
    head = store._book.heads("memories.default.user.u")["memories.default.user.u.facts"]
    id, metadata, document, vector = before
    store._chroma._handle(place.collection).add(
        ids=[id], metadatas=[metadata], documents=[document], embeddings=[vector]
    )
    store._book.shared.heads.clear()
    store._engine.shelves.clear()
    assert store.get(FACTS, "a") is None
    for found in (
        store.search(FACTS),
        store.search(FACTS, query="fish"),
        store.search(FACTS, filter={"topic": "diet"}),
    ):
        assert [i.key for i in found] == ["b"]
    assert store.list_namespaces() == [FACTS]
    store.put(FACTS, "a", {"content": "eats meat"})
    assert store.search(FACTS, query="meat", limit=1)[0].value == {"content": "eats meat"}
    assert head.count == 1


def test_topic_and_status_are_metadata_for_the_database_to_filter(store: ChromaMemoryStore) -> None:
    sources = [{"source_id": "s1"}, {"source_id": "s2"}]
    store.put(FACTS, "a", {"content": "x", "topic": "diet", "slot": "", "status": "active", "sources": sources})
    store.put(FACTS, "b", {"content": "x", "topic": "diet", "slot": "", "status": "superseded"})
    store.put(FACTS, "a", {"content": "x", "topic": "diet", "status": "active", "sources": sources})
    place = store._book.places.find("memories.default.user.u")
    assert place is not None
    where = {"$and": [{"ns": "memories.default.user.u.facts"}, {"topic": "diet"}, {"status": "active"}]}
    [(_, metadata, _, _)] = store._chroma.find(place.collection, where)
    assert (metadata["key"], metadata["sources"], "slot" in metadata) == ("a", ["s1", "s2"], False)
    assert [i.key for i in store.search(FACTS, filter={"topic": "diet", "slot": ""})] == ["b"]


def test_one_upsert_may_hold_more_than_chromas_batch(open_store: Open) -> None:
    store = open_store()
    room = store.doctor().batch
    store.batch([PutOp(A, f"k{i}", {"i": i}) for i in range(room + 5)])
    assert len(store.search(A, limit=10_000)) == room + 5
    assert versions(store)[A] == room + 5
    store.batch([PutOp(A, f"k{i}", None) for i in range(room + 4)])
    assert [i.key for i in store.search(A, limit=10)] == [f"k{room + 4}"]
    assert store.doctor().problems == ()


def test_many_owners_share_buckets_and_see_nothing_of_each_other(open_store: Open) -> None:
    store = open_store(index=INDEX, own_collections=3)
    spaces = [("memories", "default", "user", f"u{i}", "facts") for i in range(12)]
    for i, ns in enumerate(spaces):
        store.put(ns, "k", {"content": f"eats fish number {i}"})
    checkup = store.doctor()
    assert (checkup.owners, checkup.items, checkup.namespaces, checkup.problems) == (12, 12, 12, ())
    assert checkup.collections - checkup.buckets == 3
    for i, ns in enumerate(spaces):
        assert [h.value["content"] for h in store.search(ns[:4], query="fish")] == [f"eats fish number {i}"]
    assert store.list_namespaces(prefix=("memories", "default", "user"), limit=100) == sorted(spaces)
    done = store.erase(spaces[5][:4])
    assert done.items == 1
    assert len(store.search((), limit=100)) == 11


def test_stores_with_different_prefixes_share_nothing(store: ChromaMemoryStore, open_store: Open) -> None:
    other = open_store(prefix=f"other{next(_numbers)}")
    store.put(A, "k", {})
    assert other.search(()) == []
    assert other.store_id != store.store_id


# concurrency


def test_threads_that_contradict_each_other_leave_one_active_record(open_store: Open) -> None:
    memories = [Memory(open_store(index=INDEX)) for _ in range(2)]
    errors: list[BaseException] = []

    def learn(n: int) -> None:
        try:
            for i in range(3):
                city = f"City{'abcdefgh'[n]}{'xyz'[i]}"
                memories[n % 2].add_fact(
                    f"The user lives in {city}.",
                    user_id="u",
                    topic="home/location",
                    value=city,
                    source_type="user_explicit",
                    source_id=f"s{n}-{i}",
                )
        except BaseException as e:  # noqa: BLE001 - reported below
            errors.append(e)

    threads = [threading.Thread(target=learn, args=(n,)) for n in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert errors == []
    records = memories[0].get_all(user_id="u", status="all")
    assert len(records) == 18
    assert sum(r.status == "active" for r in records) == 1
    assert len({r.seq for r in records}) == 18


def test_readers_never_see_half_a_commit(open_store: Open) -> None:
    store, reader = open_store(index=INDEX), open_store(index=INDEX)
    stop = threading.Event()
    seen: list[tuple[int, ...]] = []

    def read() -> None:
        where = Where(now=NOW.timestamp())
        while not stop.is_set():
            ops = [
                SearchOp(FACTS, {"status": "active"}),
                RankOp((FACTS,), "fish", where),
                GetOp(TURNS, "turn"),
                SearchOp(TURNS),
            ]
            (active, ranked, turn, turns), _ = reader.read(ops)
            if turn is not None:
                seen.append((len(active), len(ranked), turn.value["n"], active[0].value["n"], turns[0].value["n"]))

    threads = [threading.Thread(target=read) for _ in range(2)]
    for t in threads:
        t.start()
    for n in range(60):
        puts = [PutOp(FACTS, str(n), {"n": n, "content": f"eats fish {n}", "status": "active"})]
        puts += (
            [PutOp(FACTS, str(n - 1), {"n": n - 1, "content": f"ate fish {n}", "status": "superseded"})] if n else []
        )
        puts += [PutOp(FACTS, str(n - 3), None)] if n > 2 else []
        store.batch([*puts, PutOp(TURNS, "turn", {"n": n})])
    stop.set()
    for t in threads:
        t.join()
    assert seen != []
    assert [s for s in seen if s[:2] != (1, 1) or len(set(s[2:])) != 1] == []


async def test_a_cancelled_commit_happened_as_a_whole_or_not_at_all(store: ChromaMemoryStore) -> None:
    for n in range(20):
        puts = [PutOp(FACTS, f"{n}-{i}", {"i": i}) for i in range(5)]
        task = asyncio.create_task(store.acommit(puts, expect={}))
        await asyncio.sleep(0.001 * (n % 7))
        task.cancel()
        await asyncio.wait([task])
        found = [i for i in await store.asearch(FACTS, limit=500) if i.key.startswith(f"{n}-")]
        assert len(found) in ((0, 5) if task.cancelled() else (5,))


async def test_the_event_loop_is_never_held(store: ChromaMemoryStore) -> None:
    gaps: list[float] = []

    async def beat() -> None:
        loop = asyncio.get_running_loop()
        while True:
            at = loop.time()
            await asyncio.sleep(0.005)
            gaps.append(loop.time() - at)

    pulse = asyncio.create_task(beat())
    await store.abatch([PutOp(FACTS, f"k{i}", {"content": f"fact {i} about fish"}) for i in range(400)])
    for _ in range(5):
        await store.asearch(FACTS, query="fish", limit=10)
    pulse.cancel()
    assert sorted(gaps)[len(gaps) // 2] < 0.05


# ranking


def facts(n: int) -> list[tuple[str, dict[str, Any]]]:
    rng = random.Random(7)
    words = "fish meat aisle window seat flight lunch vegan train hotel red blue music".split()
    made = []
    for i in range(n):
        at = NOW - timedelta(days=rng.random() * 400)
        record = MemoryRecord(
            memory_id=f"m{i}",
            seq=i + 1,
            content=f"The user said {' '.join(rng.sample(words, 4))}.",
            topic=rng.choice(["diet", "travel/seat", "general"]),
            status=rng.choice(["active", "active", "superseded"]),  # type: ignore[arg-type]
            importance=rng.random(),
            confidence=0.9,
            sources=(Source(source_type="user_explicit", source_id="s1", at=at, confidence=0.9),),
            created_at=at,
            updated_at=at,
            confirmed_at=at,
        )
        made.append((f"m{i}", record.model_dump(mode="json")))
    return made


@pytest.mark.parametrize("mode", ["hybrid", "vector", "text"])
def test_ranking_is_that_of_the_sqlite_store_also_after_changes(open_store: Open, mode: Any) -> None:
    chroma = open_store(index=INDEX)
    with SqliteMemoryStore(":memory:", index=INDEX) as sqlite:
        both: list[MemoryStore] = [chroma, sqlite]
        made = facts(120)
        for store in both:
            store.batch([PutOp(FACTS, k, v, index=["content"]) for k, v in made[:100]])
        assert ranked(chroma, mode) == ranked(sqlite, mode)
        changes = [PutOp(FACTS, k, None) for k, _ in made[10:20]]
        changes += [PutOp(FACTS, k, v, index=["content"]) for k, v in made[100:]]
        changes += [PutOp(FACTS, made[30][0], made[110][1], index=["content"])]
        for store in both:
            store.batch(changes)
        assert ranked(chroma, mode) == ranked(sqlite, mode)
        chroma._engine.shelves.clear()
        assert ranked(chroma, mode) == ranked(sqlite, mode)
        searched = [[(i.key, i.score and round(i.score, 5)) for i in s.search(FACTS, query="fish")] for s in both]
        assert searched[0] == searched[1]


def ranked(store: MemoryStore, mode: Any) -> list[Any]:
    wheres = [Where(now=NOW.timestamp()), Where(now=NOW.timestamp(), topics=("diet",), statuses=("superseded",))]
    ops = [RankOp((FACTS,), q, w, limit=8, mode=mode) for q in ("fish for lunch", None) for w in wheres]
    return [[(r.item.key, round(r.score, 5)) for r in result] for result in store.read(ops)[0]]
