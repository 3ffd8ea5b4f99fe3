"""Reads with versions, commits that check them, many writers, cancellation."""

import asyncio
import os
import random
import threading
from collections import Counter

import pytest
from langgraph.store.base import GetOp, PutOp, SearchOp
from stores.postgres_fixtures import *  # noqa: F403
from stores.postgres_writers import LIVES, count_up, live, processes

from langmem_adapter.embeddings import HashEmbeddings
from langmem_adapter.errors import Conflict, InvalidInput
from langmem_adapter.memory import Memory
from langmem_adapter.namespaces import namespace
from langmem_adapter.stores.postgres import PostgresMemoryStore

A, B, C = ("a",), ("a", "b"), ("c",)


def versions(store: PostgresMemoryStore) -> dict[tuple[str, ...], int]:
    return store.read([], versions=[A, B, C])[1]


def test_a_version_grows_by_the_number_of_items_changed_in_that_namespace(postgres: PostgresMemoryStore) -> None:
    assert versions(postgres) == {A: 0, B: 0, C: 0}
    postgres.batch([PutOp(A, "x", {}), PutOp(A, "y", {}), PutOp(B, "x", {}), PutOp(C, "never", None)])
    assert versions(postgres) == {A: 2, B: 1, C: 0}
    postgres.batch([PutOp(A, "x", None), PutOp(A, "z", None), PutOp(A, "y", {"n": 1})])
    assert versions(postgres) == {A: 4, B: 1, C: 0}


def test_a_version_never_goes_back_when_the_last_item_goes(postgres: PostgresMemoryStore) -> None:
    postgres.put(A, "x", {})
    postgres.delete(A, "x")
    assert versions(postgres)[A] == 2
    assert postgres.list_namespaces() == []
    postgres.put(A, "x", {})
    assert versions(postgres)[A] == 3


def test_a_commit_applies_only_if_every_expected_version_holds(postgres: PostgresMemoryStore) -> None:
    postgres.put(A, "x", {"n": 0})
    seen = versions(postgres)
    postgres.commit([PutOp(A, "x", {"n": 1}), PutOp(B, "y", {})], expect=seen)
    with pytest.raises(Conflict, match=r"\('a',\) is at version 2, not 1"):
        postgres.commit([PutOp(C, "z", {})], expect=seen)
    assert postgres.get(C, "z") is None
    assert versions(postgres) == {A: 2, B: 1, C: 0}


def test_a_commit_may_expect_a_namespace_it_does_not_write(postgres: PostgresMemoryStore) -> None:
    postgres.put(B, "x", {})
    with pytest.raises(Conflict):
        postgres.commit([PutOp(A, "x", {})], expect={B: 0})
    postgres.commit([PutOp(A, "x", {})], expect={B: 1, C: 0})
    with pytest.raises(Conflict):
        postgres.commit([], expect={A: 0})
    assert postgres.list_namespaces() == [A, B]


async def test_the_async_twins_do_the_same(postgres: PostgresMemoryStore) -> None:
    await postgres.acommit([PutOp(A, "x", {"n": 1})], expect={A: 0})
    results, found = await postgres.aread([GetOp(A, "x"), SearchOp(())], versions=[A])
    assert results[0].value == {"n": 1}
    assert [i.key for i in results[1]] == ["x"]
    assert found == {A: 1}
    with pytest.raises(Conflict):
        await postgres.acommit([PutOp(A, "x", {"n": 2})], expect={A: 0})


def test_read_takes_no_puts_and_commit_nothing_else(postgres: PostgresMemoryStore) -> None:
    with pytest.raises(InvalidInput):
        postgres.read([PutOp(A, "x", {})])
    with pytest.raises(InvalidInput):
        postgres.commit([GetOp(A, "x")], expect={})  # type: ignore[list-item]


# who lost reads again in a turn of its own


def test_after_a_conflict_nobody_comes_between_the_read_and_the_commit(postgres: PostgresMemoryStore) -> None:
    postgres.put(A, "x", {"n": 0})
    with pytest.raises(Conflict):
        postgres.commit([PutOp(A, "x", {"n": 1})], expect={A: 0})
    _, seen = postgres.read([GetOp(A, "x")], versions=[A])
    postgres.get(A, "x")  # a further read does not end the turn
    other = threading.Thread(target=postgres.put, args=(A, "y", {"from": "other"}))
    other.start()
    other.join(0.2)
    assert other.is_alive(), "the other writer waits for its turn"
    postgres.commit([PutOp(A, "x", {"n": 2})], expect=seen)
    other.join(5)
    assert {i.key: i.value for i in postgres.search(A)} == {"x": {"n": 2}, "y": {"from": "other"}}


def test_a_turn_that_is_not_used_ends_by_itself(postgres: PostgresMemoryStore) -> None:
    postgres.put(A, "x", {"n": 0})
    with pytest.raises(Conflict):
        postgres.commit([], expect={A: 0})
    _, seen = postgres.read([], versions=[A])
    other = threading.Thread(target=postgres.put, args=(A, "y", {}))
    other.start()
    other.join(5)
    assert not other.is_alive()
    with pytest.raises(Conflict):  # the other one has written meanwhile, and the check still holds
        postgres.commit([PutOp(A, "x", {"n": 1})], expect=seen)
    _, seen = postgres.read([], versions=[A])
    postgres.commit([PutOp(A, "x", {"n": 1})], expect=seen)


def test_threads_that_count_up_one_number_lose_no_step(postgres: PostgresMemoryStore) -> None:
    threads = [threading.Thread(target=count_up, args=(postgres, 10)) for _ in range(12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    item = postgres.get(("counter", "one"), "c")
    assert item is not None
    assert item.value == {"n": 120}


async def test_tasks_that_count_up_one_number_lose_no_step(postgres: PostgresMemoryStore) -> None:
    async def work() -> None:
        for _ in range(5):
            while True:
                (item,), seen = await postgres.aread([GetOp(("counter", "one"), "c")], versions=[("counter", "one")])
                n = 1 + (item.value["n"] if item else 0)
                try:
                    await postgres.acommit([PutOp(("counter", "one"), "c", {"n": n})], expect=seen)
                    break
                except Conflict:
                    continue

    await asyncio.wait_for(asyncio.gather(*(work() for _ in range(24))), 60)
    item = await postgres.aget(("counter", "one"), "c")
    assert item is not None
    assert item.value == {"n": 120}


def test_writers_of_several_namespaces_in_opposite_orders_do_not_block_each_other(
    postgres: PostgresMemoryStore,
) -> None:
    def work(spaces: list[tuple[str, ...]]) -> None:
        for i in range(40):
            postgres.batch([PutOp(ns, "k", {"i": i}) for ns in spaces])

    threads = [threading.Thread(target=work, args=(s,)) for s in ([A, B, C], [C, B, A], [B, A], [C, A])]
    for t in threads:
        t.start()
    for t in threads:
        t.join(30)
    assert [versions(postgres)[ns] for ns in (A, B, C)] == [160, 120, 120]


# sixteen processes


def test_sixteen_processes_on_one_user_leave_one_active_record_and_lose_no_write(database: str, schema: str) -> None:
    acknowledged = processes(16, live, database, schema)  # none finds the tables there: they also race to make them
    assert [len(ids) for ids in acknowledged] == [LIVES] * 16
    with PostgresMemoryStore(database, schema=schema) as store:
        items = {i.key: i.value for i in store.search(namespace("facts", app_name="default", user_id="u"), limit=1_000)}
    assert set(items) == {memory_id for ids in acknowledged for memory_id in ids}
    records = items.values()
    assert Counter(r["topic"] for r in records if r["status"] == "active") == {"home/location": 1, "diet": 1}
    assert sorted(r["seq"] for r in records) == sorted({r["seq"] for r in records})
    for topic in ("home/location", "diet"):  # and the superseded ones form one line
        of = [r for r in records if r["topic"] == topic]
        assert sorted(r["superseded_by"] or "" for r in of) == sorted(
            ["", *(r["memory_id"] for r in of if r["supersedes"])]
        )


# cancellation


async def test_a_cancelled_commit_happened_or_did_not(open_store) -> None:
    store = open_store(index={"dims": 64, "embed": HashEmbeddings(64), "fields": ["t"]})
    chance = random.Random(7)
    written = Counter()
    for i in range(300):
        ns = ("n", str(i % 5))
        before = store.read([], versions=[ns])[1] if i < 5 else {ns: written[ns]}
        task = asyncio.create_task(
            store.acommit([PutOp(ns, f"{i}a", {"t": "cat"}), PutOp(ns, f"{i}b", {"t": "dog"})], expect=before)
        )
        await asyncio.sleep(chance.choice([0, 0, 0.001, 0.002, 0.004, 0.008]))
        task.cancel()
        await asyncio.wait([task])
        there = store.get(ns, f"{i}a") is not None
        assert there or task.cancelled()
        written[ns] += 2 * there
    for ns, count in written.items():
        assert store.read([], versions=[ns])[1] == {ns: count}
        keys = {i.key for i in store.search(ns, limit=1_000)}
        assert len(keys) == count
        assert {k[:-1] + "ab".replace(k[-1], "") for k in keys} == keys, "always both of a pair"
    assert 0 < sum(written.values()) < 600
    assert len(store._connections._idle) <= 10


async def test_reads_and_other_owners_go_on_while_writers_wait(postgres: PostgresMemoryStore) -> None:
    await postgres.aput(A, "x", {})
    with pytest.raises(Conflict):
        await postgres.acommit([], expect={A: 0})
    await postgres.aread([], versions=[A])  # a turn: whoever writes A now waits
    waiting = [asyncio.create_task(postgres.aput(A, f"y{i}", {})) for i in range(3)]
    await asyncio.sleep(0.05)
    assert await asyncio.wait_for(postgres.aget(A, "x"), 0.5) is not None
    await asyncio.wait_for(postgres.aput(B, "x", {}), 0.5)
    await asyncio.gather(*waiting)
    assert len(await postgres.asearch(A, limit=10)) == 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_has_connections_of_its_own(postgres: PostgresMemoryStore) -> None:
    postgres.put(A, "x", {})
    with pytest.raises(Conflict):
        postgres.commit([], expect={A: 0})
    _, seen = postgres.read([], versions=[A])  # a turn is open
    pid = os.fork()
    if not pid:
        try:
            postgres.get(A, "x")
            postgres.put(B, "child", {})
            postgres.close()
        finally:
            os._exit(0 if postgres._connections._closed else 1)
    assert os.waitpid(pid, 0)[1] == 0
    postgres.commit([PutOp(A, "y", {})], expect=seen)
    assert {i.key for i in postgres.search(A)} == {"x", "y", "child"}


async def test_many_users_at_once_through_memory(open_store) -> None:
    memory = Memory(open_store(index={"dims": 256, "embed": HashEmbeddings(), "fields": ["content"]}))
    await asyncio.gather(*(memory.aadd("Please call me Ada.", user_id=f"u{i}") for i in range(40)))
    found = await asyncio.gather(*(memory.asearch("name", user_id=f"u{i}") for i in range(40)))
    assert [[h.record.content for h in hits] for hits in found] == [["The user goes by Ada."]] * 40
