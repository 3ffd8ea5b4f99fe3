"""Many threads and processes on one file, event loops that go on, writers that are killed."""

import asyncio
import gc
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from checkpoint.making import config, put, talk, values
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint

from langmem_adapter.checkpoint.sqlite import SqliteCheckpointer
from langmem_adapter.errors import StoreClosed, StoreCorrupt, StoreFull

TESTS = Path(__file__).parents[1]
ROUNDS = 200 if os.environ.get("SOAK") else 6

WRITER = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
from checkpoint.making import config, put, talk
from langmem_adapter.checkpoint.sqlite import SqliteCheckpointer

path, name, turns = sys.argv[1], sys.argv[2], int(sys.argv[3])
with SqliteCheckpointer(path) as saver:
    place = None
    for i in range(turns):
        place = put(saver, place or config(name), {{"n": i}}, messages=talk(i + 1, name), number=i)
        saver.put_writes(place, [("messages", talk(i + 1, name)), ("number", i)], "task")
        print(i, place["configurable"]["checkpoint_id"], flush=True)
"""


def start(path: Path, name: str, turns: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", WRITER, str(path), name, str(turns)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_eight_processes_write_one_file_without_an_error(path: Path) -> None:
    writers = [start(path, f"t{i % 6}", 15) for i in range(8)]  # two threads have two writers each
    done = [w.communicate(timeout=120) for w in writers]
    assert [err for _, err in done if err] == []
    with SqliteCheckpointer(path) as saver:
        for i in range(6):
            found = list(saver.list(config(f"t{i}")))
            assert len(found) == (30 if i < 2 else 15)
            for item in found:
                assert item.checkpoint["channel_values"]["messages"] == talk(item.metadata["n"] + 1, f"t{i}")
                assert item.pending_writes is not None
                assert item.pending_writes[0][2] == talk(item.metadata["n"] + 1, f"t{i}")


def test_threads_share_one_checkpointer(saver: SqliteCheckpointer) -> None:
    def work(i: int) -> int:
        place = None
        for n in range(10):
            place = put(saver, place or config(f"t{i % 4}"), messages=talk(n + 1))
            assert values(saver, place)["messages"] == talk(n + 1)
            if n == 5:
                saver.prune([f"x{i}"])
        return i

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == list(range(8))
    assert len(list(saver.list(None))) == 80


def test_collecting_and_writing_at_once_lose_nothing(path: Path) -> None:
    stop = threading.Event()

    def prune() -> None:
        with SqliteCheckpointer(path) as other:
            while not stop.is_set():
                other.prune(["t1"])
                other.erase_messages("t1", ["m3"])

    with SqliteCheckpointer(path) as saver:
        pruning = threading.Thread(target=prune)
        pruning.start()
        try:
            place = None
            for n in range(40):
                said = [*talk(n % 7), *talk(30)[n % 11 :]]
                place = put(saver, place or config(), messages=said)
                assert [m.id for m in values(saver, place)["messages"]] == [m.id for m in said]
        finally:
            stop.set()
            pruning.join()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_killed_writers_lose_no_acknowledged_checkpoint(path: Path, tried: Callable[[str], None]) -> None:
    acknowledged: dict[str, int] = {}
    for i in range(ROUNDS):
        writer = start(path, f"t{i % 3}", 10_000)
        assert writer.stdout is not None
        lines = [writer.stdout.readline()]
        timer = threading.Timer(0.02 + (i * 37 % 100) / 1000, writer.send_signal, (signal.SIGKILL,))
        timer.start()
        lines += writer.stdout.read().splitlines(keepends=True)
        timer.join()
        writer.wait()
        writer.stdout.close()
        assert writer.stderr is not None
        writer.stderr.close()
        for line in lines:
            if line.endswith("\n"):
                number, checkpoint = line.split()
                acknowledged[f"t{i % 3} {checkpoint}"] = int(number)
    assert len(acknowledged) >= ROUNDS
    with SqliteCheckpointer(path) as saver:
        with saver._connections.reading() as conn:
            assert conn.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        stored = {}
        for item in saver.list(None):
            ids = item.config["configurable"]
            n = item.metadata["n"]
            assert item.checkpoint["channel_values"] == {"messages": talk(n + 1, ids["thread_id"]), "number": n}
            assert item.pending_writes in (
                [],
                [("task", "messages", talk(n + 1, ids["thread_id"])), ("task", "number", n)],
            )
            stored[f"{ids['thread_id']} {ids['checkpoint_id']}"] = n
        assert acknowledged.items() <= stored.items()
    tried(f"{ROUNDS} kills, {len(acknowledged)} checkpoints acknowledged, {len(stored)} stored")


async def heartbeat(gaps: list[float]) -> None:
    """Gaps between beats, counting only time in which this process was running."""
    wall, own = time.perf_counter(), time.process_time()
    while True:
        await asyncio.sleep(0.005)
        gaps.append(min(time.perf_counter() - wall, time.process_time() - own))
        wall, own = time.perf_counter(), time.process_time()


async def test_the_event_loop_is_not_blocked(saver: SqliteCheckpointer) -> None:
    said = talk(1_000, "some words " * 20)
    gaps: list[float] = []
    # Python's collector stops everything for as long as the heap is large; here, that of all imported packages.
    gc.collect()
    gc.freeze()
    beating = asyncio.create_task(heartbeat(gaps))
    place = None
    for n in range(5):
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"messages": said[: 990 + n], "blob": os.urandom(5 << 20)}
        checkpoint["channel_versions"] = {"messages": f"{n}", "blob": f"{n}"}
        place = await saver.aput(place or config(), checkpoint, {}, checkpoint["channel_versions"])
        await saver.aput_writes(place, [("messages", said)], "task")
        await saver.aget_tuple(place)
    assert len([item async for item in saver.alist(config())]) == 5
    await saver.aerase_messages("t1", ["m7"])
    await saver.aprune(["t1"])
    await saver.adelete_thread("t1")
    beating.cancel()
    await asyncio.wait([beating])
    gc.unfreeze()
    assert len(gaps) > 20
    assert max(gaps) < 0.05, sorted(gaps)[-5:]


async def test_a_cancelled_put_is_stored_or_not_but_never_half(saver: SqliteCheckpointer) -> None:
    place = put(saver, messages=talk(1))
    outcomes = set()
    for n in range(40):
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"messages": talk(200 + n)}
        checkpoint["channel_versions"] = {"messages": f"v{n}"}
        task = asyncio.create_task(saver.aput(place, checkpoint, {}, checkpoint["channel_versions"]))
        await asyncio.sleep(n / 10_000)
        task.cancel()
        (done,), _ = await asyncio.wait([task])
        stored = await saver.aget_tuple(config(checkpoint_id=checkpoint["id"]))
        assert stored is not None or done.cancelled()
        outcomes.add(done.cancelled())
        if stored is not None:
            assert stored.checkpoint["channel_values"]["messages"] == talk(200 + n)
    assert True in outcomes


async def test_one_checkpointer_serves_several_loops_and_sync_callers(saver: SqliteCheckpointer) -> None:
    async def work(n: int) -> None:
        checkpoint = empty_checkpoint()
        await saver.aput(config(f"t{n}"), checkpoint, {}, {})
        assert await saver.aget_tuple(config(f"t{n}")) is not None

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda n: asyncio.run(work(n)), range(6)))
    assert len(list(saver.list(None))) == 6


def test_a_full_disk_keeps_what_was_stored_and_recovers(saver: SqliteCheckpointer) -> None:
    place = put(saver, messages=talk(3))
    with saver._connections.alone() as conn:
        pages = conn.execute("PRAGMA page_count").fetchone()[0]
        conn.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreFull):
        put(saver, place, messages=[HumanMessage("x" * 200_000)])
    assert values(saver, config())["messages"] == talk(3)
    with saver._connections.alone() as conn:
        conn.execute("PRAGMA max_page_count = 1073741823")
    assert values(saver, put(saver, place, messages=talk(9)))["messages"] == talk(9)


def test_a_damaged_value_is_named_and_not_guessed(saver: SqliteCheckpointer) -> None:
    place = put(saver, messages=talk(3))
    with saver._connections.writing() as conn:
        conn.execute("DELETE FROM ckpt_elements WHERE id & 4294967295 = 1")
    with pytest.raises(StoreCorrupt, match="1 of 3 messages"):
        saver.get_tuple(place)


def test_closed_is_closed(path: Path) -> None:
    saver = SqliteCheckpointer(path)
    saver.close()
    saver.close()
    with pytest.raises(StoreClosed):
        saver.get_tuple(config())
    with pytest.raises(StoreClosed):
        asyncio.run(saver.aget_tuple(config()))


@pytest.mark.parametrize("way", ["close", "aclose"])
async def test_closing_waits_for_writes_sync_and_async(path: Path, way: str) -> None:
    saver = SqliteCheckpointer(path)
    checkpoints = [empty_checkpoint() for _ in range(20)]
    writing = [asyncio.create_task(saver.aput(config(), c, {}, {})) for c in checkpoints]
    await asyncio.sleep(0)
    for _ in range(2):
        await (saver.aclose() if way == "aclose" else asyncio.to_thread(saver.close))
    assert [(await w)["configurable"]["checkpoint_id"] for w in writing] == [c["id"] for c in checkpoints]
    conn = sqlite3.connect(path)
    assert conn.execute("SELECT count(*) FROM ckpt_checkpoints").fetchone() == (20,)
    conn.close()


def test_a_fork_of_the_process_goes_on(path: Path) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    code = f"""
import os, sys
sys.path.insert(0, {str(TESTS)!r})
from checkpoint.making import config, put, talk, values
from langmem_adapter.checkpoint.sqlite import SqliteCheckpointer
with SqliteCheckpointer({str(path)!r}) as saver:
    place = put(saver, messages=talk(3))
    child = os.fork()
    place = put(saver, config("child" if child == 0 else "parent"), messages=talk(5))
    assert values(saver, place)["messages"] == talk(5)
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert len(list(saver.list(None))) == 3
"""
    done: Any = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
