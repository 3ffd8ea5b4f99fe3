"""Many writers: threads, processes, forks, event loops, cancellation, exit."""

import asyncio
import gc
import random
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import PutOp

from langmem_adapter.embeddings import HashEmbeddings
from langmem_adapter.errors import Conflict, StoreClosed
from langmem_adapter.stores.sqlite import SqliteMemoryStore

N = ("n",)
INDEX: Any = {"dims": 256, "embed": HashEmbeddings(), "fields": ["text"]}


def run(code: str, *args: object) -> subprocess.Popen[str]:
    """A Python process that runs the code."""
    program = [sys.executable, "-W", "error", "-c", textwrap.dedent(code), *map(str, args)]
    return subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


WRITER = """
    import sys
    from langgraph.store.base import GetOp, PutOp
    from langmem_adapter.errors import Conflict
    from langmem_adapter.stores.sqlite import SqliteMemoryStore
    path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    conflicts = 0
    with SqliteMemoryStore(path) as store:
        for i in range(count):
            store.put(("n", name), str(i), {"i": i})
            while True:
                (found,), seen = store.read([GetOp(("counter",), "c")], versions=[("counter",)])
                try:
                    value = {"n": (found.value["n"] if found else 0) + 1}
                    store.commit([PutOp(("counter",), "c", value)], expect=seen)
                    break
                except Conflict:
                    conflicts += 1
    print(conflicts)
"""


def test_five_processes_write_at_once_and_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"  # none of them finds it there: they also race to create it
    writers = [run(WRITER, path, f"p{i}", 40) for i in range(5)]
    errors = [w.communicate(timeout=60)[1] for w in writers]
    assert errors == [""] * 5
    with SqliteMemoryStore(path) as store:
        assert len(store.search(N, limit=1_000)) == 200
        counter = store.get(("counter",), "c")
        assert counter is not None
        assert counter.value == {"n": 200}
        assert store.doctor(deep=True).problems == ()


def test_what_was_acknowledged_survives_a_kill_and_no_batch_is_torn(tmp_path: Path) -> None:
    code = """
        import sys
        from langgraph.store.base import PutOp
        from langmem_adapter.stores.sqlite import SqliteMemoryStore
        store = SqliteMemoryStore(sys.argv[1])
        for i in range(1_000_000):
            store.batch([PutOp(("n", sys.argv[2]), f"{i}-{half}", {"text": "x" * 500}) for half in "ab"])
            print(i, flush=True)
    """
    rng = random.Random(1)
    for round in range(6):
        child = run(code, tmp_path / "memory.db", round)
        assert child.stdout is not None
        acknowledged = [child.stdout.readline()]
        time.sleep(rng.random() * 0.2)
        child.kill()
        acknowledged += child.communicate(timeout=30)[0].splitlines(keepends=True)
        whole = [line for line in acknowledged if line.endswith("\n")]
        with SqliteMemoryStore(tmp_path / "memory.db") as store:
            found = {i.key for i in store.search(("n", str(round)), limit=1_000_000)}
            assert {f"{int(n)}-{half}" for n in whole for half in "ab"} <= found
            assert all(f"{key[:-1]}{'ab'[key.endswith('a')]}" in found for key in found)
            assert store.doctor(deep=True).problems == ()


def test_a_change_by_another_process_is_seen_by_every_kind_of_read(tmp_path: Path) -> None:
    with SqliteMemoryStore(tmp_path / "memory.db", index=INDEX) as store:
        store.put(N, "a", {"text": "cat eats fish"})
        assert store.search(N, query="fish")[0].key == "a"
        with SqliteMemoryStore(tmp_path / "memory.db", index=INDEX) as other:
            other.put(N, "b", {"text": "fish"})
            other.delete(N, "a")
        assert [i.key for i in store.search(N, query="fish")] == ["b"]
        assert store.get(N, "a") is None


def test_threads_increment_one_counter_without_a_lost_update(sqlite: SqliteMemoryStore) -> None:
    def work() -> None:
        for _ in range(20):
            while True:
                _, seen = sqlite.read([], versions=[N])
                item = sqlite.get(N, "c")
                try:
                    sqlite.commit([PutOp(N, "c", {"n": (item.value["n"] if item else 0) + 1})], expect=seen)
                    break
                except Conflict:
                    pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    item = sqlite.get(N, "c")
    assert item is not None
    assert item.value == {"n": 80}


def test_readers_see_whole_batches_only(sqlite: SqliteMemoryStore) -> None:
    torn: list[set[int]] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen = {i.value["n"] for i in sqlite.search(N, limit=20)}
            if len(seen) > 1:
                torn.append(seen)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for r in readers:
        r.start()
    for n in range(60):
        sqlite.batch([PutOp(N, f"k{i}", {"n": n}) for i in range(10)])
    done.set()
    for r in readers:
        r.join()
    assert torn == []


async def test_a_cancelled_batch_happened_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    rng = random.Random(0)
    outcomes = {"done": 0, "undone": 0}
    with SqliteMemoryStore(tmp_path / "memory.db", index=INDEX) as store:
        for n in range(400):
            ops = [PutOp(N, f"k{i}", {"n": n, "text": f"cat {n}"}) for i in range(4)]
            task = asyncio.create_task(store.abatch(ops))
            await asyncio.sleep(rng.random() * 0.004)
            task.cancel()
            await asyncio.wait([task])
            seen = {i.value["n"] for i in await store.asearch(N, limit=10)}
            assert len(seen) <= 1, f"round {n}: torn batch {seen}"
            assert n in seen or task.cancelled(), f"round {n}: not cancelled, and not there"
            outcomes["done" if n in seen else "undone"] += 1
            if seen:
                found = await store.asearch(N, query=f"cat {seen.copy().pop()}", limit=10)
                assert {i.value["n"] for i in found} == seen
        assert outcomes["done"] > 20
        assert outcomes["undone"] > 20
        assert store.doctor().problems == ()
        store.put(N, "after", {})  # no transaction was left open


async def test_a_cancellation_is_told_once_it_is_known_what_happened(sqlite: SqliteMemoryStore) -> None:
    """Nothing is committed after the task has ended, however often it was cancelled."""
    for n in range(30):
        task = asyncio.create_task(sqlite.aput(N, "k", {"n": n}))
        for _ in range(5):
            await asyncio.sleep(0.0003)
            task.cancel()
        await asyncio.wait([task])
        assert task.cancelled() or task.result() is None
        first = await sqlite.aget(N, "k")
        await sqlite.aput(N, "after", {})
        assert await sqlite.aget(N, "k") == first


async def longest_gap(work: Any) -> float:
    """The longest time the event loop stood still while `work` ran, in seconds."""
    gaps: list[float] = []

    async def beat() -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.005)
            now = time.perf_counter()
            gaps.append(now - last - 0.005)
            last = now

    heart = asyncio.create_task(beat())
    await work
    heart.cancel()
    return max(gaps)


async def test_the_event_loop_is_never_blocked(tmp_path: Path) -> None:
    with SqliteMemoryStore(tmp_path / "memory.db", index=INDEX) as store:
        texts = [f"cat number {i} eats fish at the station of town {i % 97}" for i in range(10_000)]
        for start in range(0, 10_000, 2_000):
            ops = [PutOp(N, f"k{i}", {"text": texts[i], "topic": "x"}) for i in range(start, start + 2_000)]
            await asyncio.to_thread(store.batch, ops)
    with SqliteMemoryStore(tmp_path / "memory.db", index=INDEX) as store:

        async def work() -> None:
            for query in ("fish", "station of town 5"):  # the first one reads 10,000 rows
                await store.asearch(N, query=query)
            await store.abatch([PutOp(("m",), f"k{i}", {"text": texts[i]}) for i in range(1_000)])
            await asyncio.gather(*(store.asearch(N, query="cat") for _ in range(10)))

        gaps = sorted([await longest_gap(work()) for _ in range(3)])
    # The best of three: another process may take the processor away, the store may not.
    assert gaps[0] < 0.05, gaps


@pytest.mark.parametrize("op", ["put", "search"])
async def test_what_needs_no_embedder_does_not_wait_for_one_that_hangs(tmp_path: Path, op: str) -> None:
    hanging, go = threading.Semaphore(0), threading.Event()

    def embed(texts: list[str]) -> list[list[float]]:
        if not go.is_set() and any("slow" in t for t in texts):
            hanging.release()
            assert go.wait(30)
        return [[1.0, 0.0] for _ in texts]

    with SqliteMemoryStore(tmp_path / "memory.db", index={"dims": 2, "embed": embed, "fields": ["text"]}) as store:
        store.put(N, "there", {"text": "quick"})
        call = (
            (lambda: store.aput(N, "k", {"text": "slow"})) if op == "put" else (lambda: store.asearch(N, query="slow"))
        )
        slow = [asyncio.create_task(call()) for _ in range(12)]
        await asyncio.to_thread(hanging.acquire)
        assert await store.aget(N, "there") is not None
        assert len(await store.asearch(N)) == 1
        await store.aput(N, "plain", {"text": "x"}, index=False)
        await store.adelete(N, "there")
        assert not any(t.done() for t in slow)
        go.set()
        await asyncio.gather(*slow)


def test_an_idle_or_forgotten_store_does_not_keep_the_process_alive(tmp_path: Path) -> None:
    code = """
        import asyncio, sys
        from langmem_adapter.stores.sqlite import SqliteMemoryStore
        store = SqliteMemoryStore(sys.argv[1])
        asyncio.run(store.aput(("n",), "k", {}))
        store.start_ttl_sweeper(1)
        print("ready")
    """
    child = run(code, tmp_path / "memory.db")
    out, err = child.communicate(timeout=20)
    assert (out, err, child.returncode) == ("ready\n", "", 0)
    assert not (tmp_path / "memory.db-wal").exists(), "it was closed cleanly"


def test_a_hanging_embedder_does_not_keep_the_process_alive(tmp_path: Path) -> None:
    code = """
        import asyncio, sys, time
        from langmem_adapter.stores.sqlite import SqliteMemoryStore
        def hang(texts):
            time.sleep(600)
        store = SqliteMemoryStore(sys.argv[1], index={"dims": 2, "embed": hang})
        async def main():
            try:
                await asyncio.wait_for(store.aput(("n",), "k", {"x": "y"}), 0.2)
            except TimeoutError:
                print("gave up")
        asyncio.run(main())
    """
    out, err = run(code, tmp_path / "memory.db").communicate(timeout=20)
    assert (out, err) == ("gave up\n", "")


def test_a_dropped_store_ends_its_threads(tmp_path: Path) -> None:
    store = SqliteMemoryStore(tmp_path / "memory.db")
    asyncio.run(store.aput(N, "k", {}))
    store.start_ttl_sweeper(0.0002)
    named = [t for t in threading.enumerate() if t.name.startswith("memory-")]
    assert named
    del store
    gc.collect()
    for t in named:
        t.join(5)
    assert not any(t.is_alive() for t in named)


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = SqliteMemoryStore(tmp_path / "memory.db")
    await store.aput(N, "k", {})
    await store.aclose()
    store.close()
    with pytest.raises(StoreClosed, match=r"memory\.db"):
        store.get(N, "k")
    with pytest.raises(StoreClosed):
        store.put(N, "k", {})
    with pytest.raises(StoreClosed):
        await store.aget(N, "k")
    with pytest.raises(StoreClosed):
        await store.aput(N, "k", {})
    with pytest.raises(StoreClosed):
        store.doctor()


async def test_it_opens_in_all_the_shapes_people_know(tmp_path: Path) -> None:
    path = str(tmp_path / "memory.db")
    with SqliteMemoryStore.from_conn_string(path, index=INDEX, ttl={"default_ttl": 5}) as store:
        store.setup()
        store.put(N, "k", {"text": "cat"})
    async with SqliteMemoryStore.from_conn_string(path, index=INDEX) as store:
        await store.setup()
        assert await store.aget(N, "k") is not None
    with SqliteMemoryStore(f"file:{path}?mode=rw") as store:
        assert store.get(N, "k") is not None


def test_the_sweeper_sweeps_until_stopped(tmp_path: Path) -> None:
    with SqliteMemoryStore(tmp_path / "memory.db", ttl={"default_ttl": 0.001, "sweep_interval_minutes": 5}) as store:
        future = store.start_ttl_sweeper(0.0005)
        assert store.start_ttl_sweeper() is future
        store.put(N, "k", {})
        give_up = time.monotonic() + 5
        while store.doctor().items and time.monotonic() < give_up:
            time.sleep(0.02)
        assert store.doctor().items == 0
        assert store.stop_ttl_sweeper(5)
        assert future.result(5) is None
        cancelled = store.start_ttl_sweeper(1)
        assert cancelled.cancel()
        assert store.stop_ttl_sweeper(5)


def test_closing_does_not_wait_for_a_file_that_another_process_keeps_locked(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("langmem_adapter.stores.sqlite.CLOSE_SECONDS", 0.2)
    store = SqliteMemoryStore(tmp_path / "m.db")
    store.put(N, "before", {})
    other = sqlite3.connect(tmp_path / "m.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    done: list[str] = []

    def put() -> None:
        store.put(N, "meanwhile", {})
        done.append("put")

    writing = threading.Thread(target=put)
    writing.start()
    time.sleep(0.2)
    store.close()
    done.append("closed")
    other.execute("ROLLBACK")
    writing.join(20)
    assert done == ["closed", "put"]
    assert store._connections._writer is None  # nothing is left open
    assert other.execute("SELECT count(*) FROM memory_items").fetchone() == (2,)
    other.close()
