"""A deleted thread stays deleted for the runs that used it, and its id is free at once for everybody else."""

import asyncio
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from checkpoint.making import config, ids, put, rows, talk, values
from checkpoint.scanning import where
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from langmem_adapter.checkpoint.errors import ThreadDeleted
from langmem_adapter.checkpoint.sqlite import SqliteCheckpointer

NEEDLE = "Zanzibar-Quoll lives at 7 Elm Row"
MODES = ("sync", "async", "exit")


def chat(saver: SqliteCheckpointer, reply: Any = "ok") -> Any:
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [AIMessage(reply() if callable(reply) else reply)]})
    graph.add_node("after", lambda state: {"messages": [AIMessage("after")]})
    graph.add_edge(START, "model")
    graph.add_edge("model", "after")
    return graph.compile(checkpointer=saver)


@pytest.mark.parametrize("durability", MODES)
async def test_many_async_runs_start_anew_on_deleted_ids(saver: SqliteCheckpointer, durability: Any) -> None:
    graph = chat(saver)

    async def one(name: str) -> None:
        for _ in range(2):
            await graph.ainvoke({"messages": [("user", "hi")]}, config(name), durability=durability)
            await saver.adelete_thread(name)
        await graph.ainvoke({"messages": [("user", "hi")]}, config(name), durability=durability)
        assert len((await graph.aget_state(config(name))).values["messages"]) == 3

    await asyncio.gather(*(one(f"t{i}") for i in range(8)))


def test_a_busy_file_makes_a_run_on_a_deleted_id_slow_only(saver: SqliteCheckpointer, path: Path) -> None:
    graph = chat(saver)
    graph.invoke({"messages": [("user", "hi")]}, config())
    saver.delete_thread("t1")
    stop = threading.Event()

    def hog() -> None:
        with SqliteCheckpointer(path) as other:
            while not stop.is_set():
                with other._connections.writing():
                    time.sleep(0.55)
                time.sleep(0.02)

    hogging = threading.Thread(target=hog)
    hogging.start()
    try:
        graph.invoke({"messages": [("user", "hi")]}, config())
    finally:
        stop.set()
        hogging.join()


async def test_late_writers_keep_nobody_waiting(saver: SqliteCheckpointer) -> None:
    """A write that is refused, or whose checkpoint is not there yet, is dealt with at once."""
    old = put(saver, x=1)
    saver.delete_thread("t1")
    put(saver, x=2)
    late = [asyncio.create_task(saver.aput_writes(old, [("x", NEEDLE)], f"task{i}")) for i in range(4)]
    early = [
        asyncio.create_task(saver.aput_writes(config(checkpoint_id=empty_checkpoint()["id"]), [("x", NEEDLE)], "t"))
        for _ in range(4)
    ]
    began = saver._writers.submit(lambda: None)
    other = asyncio.create_task(saver.aput(config("other"), empty_checkpoint(), {}, {}))
    await other
    assert began.done()
    assert [type(e) for e in await asyncio.gather(*late, return_exceptions=True)] == [ThreadDeleted] * 4
    assert await asyncio.gather(*early) == [None] * 4


def test_writes_that_come_before_their_checkpoint_join_it(saver: SqliteCheckpointer) -> None:
    saver.delete_thread("t1")
    checkpoint = empty_checkpoint()
    place = config(checkpoint_id=checkpoint["id"])
    saver.put_writes(place, [("x", 1), ("y", talk(1))], "task")
    saver.put_writes(place, [("x", 2)], "task")  # repeating it changes nothing
    assert list(saver.list(None)) == []
    saver.put(config(), checkpoint, {"source": "input"}, {})
    found = saver.get_tuple(config())
    assert found is not None
    assert found.pending_writes == [("task", "x", 1), ("task", "y", talk(1))]


def test_writes_of_a_refused_checkpoint_are_refused(saver: SqliteCheckpointer, path: Path) -> None:
    old = put(saver, x=1)
    saver.delete_thread("t1")
    for early in (True, False):
        checkpoint = empty_checkpoint()
        place = config(checkpoint_id=checkpoint["id"])
        if early:
            saver.put_writes(place, [("x", NEEDLE)], "task")
        with pytest.raises(ThreadDeleted):
            saver.put(old, checkpoint, {}, {})
        with pytest.raises(ThreadDeleted):
            saver.put_writes(place, [("x", NEEDLE)], "task")
    assert where(path, NEEDLE) == []
    assert rows(saver, "ckpt_threads") == 0


@pytest.mark.parametrize("durability", MODES)
@pytest.mark.parametrize("other", [False, True], ids=["here", "elsewhere"])
@pytest.mark.parametrize("before", [0, 1], ids=["first run", "later run"])
def test_no_run_brings_its_thread_back(path: Path, durability: Any, other: bool, before: int) -> None:
    """Neither if it was deleted by this object, nor by another process."""
    with SqliteCheckpointer(path) as saver, SqliteCheckpointer(path) as elsewhere:
        armed = False

        def reply() -> str:
            if armed:
                (elsewhere if other else saver).delete_thread("t1")
            return "reply"

        graph = chat(saver, reply)
        for _ in range(before):
            graph.invoke({"messages": [HumanMessage("hello")]}, config(), durability=durability)
        armed = True
        with pytest.raises(ThreadDeleted):
            graph.invoke({"messages": [HumanMessage(NEEDLE)]}, config(), durability=durability)
        assert list(saver.list(None)) == []
        assert where(path, NEEDLE) == []
        armed = False
        graph.invoke({"messages": [HumanMessage("again")]}, config(), durability=durability)
        assert len(graph.get_state(config()).values["messages"]) == 3


@pytest.mark.parametrize("durability", MODES)
def test_no_subgraph_brings_the_thread_back(saver: SqliteCheckpointer, path: Path, durability: Any) -> None:
    def deletes(state: MessagesState) -> dict[str, Any]:
        if armed:
            saver.delete_thread("t1")
        return {"messages": [AIMessage("deleted")]}

    def asks(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"answer: {interrupt(NEEDLE)}")]}

    inner: StateGraph[Any, Any, Any, Any] = StateGraph(MessagesState)
    inner.add_node("asks", asks)
    inner.add_edge(START, "asks")
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(MessagesState)
    graph.add_node("deletes", deletes)
    graph.add_node("inner", inner.compile())
    graph.add_edge(START, "deletes")
    graph.add_edge("deletes", "inner")
    compiled = graph.compile(checkpointer=saver)
    armed = True
    with pytest.raises(ThreadDeleted):
        compiled.invoke({"messages": [HumanMessage("hello")]}, config(), durability=durability)
    assert list(saver.list(None)) == []
    assert where(path, NEEDLE) == []
    armed = False
    compiled.invoke({"messages": [HumanMessage("hello")]}, config(), durability=durability)
    assert compiled.get_state(config()).next == ("inner",)


def test_a_copy_onto_a_deleted_id_goes_on(saver: SqliteCheckpointer) -> None:
    graph = chat(saver)
    for name in ("t1", "t2"):
        graph.invoke({"messages": [("user", "hi")]}, config(name))
    saver.delete_thread("t2")
    saver.copy_thread("t1", "t2")
    for durability in MODES:
        graph.invoke({"messages": [("user", "more")]}, config("t2"), durability=durability)
    assert len(graph.get_state(config("t2")).values["messages"]) == 12


def test_pruning_under_a_run_on_a_once_deleted_id_harms_nobody(saver: SqliteCheckpointer) -> None:
    saver.delete_thread("t1")
    graph = chat(saver, lambda: saver.prune(["t1"]) or "pruned")
    graph.invoke({"messages": [("user", "hi")]}, config())
    base = next(s.config for s in graph.get_state_history(config()) if s.values)
    graph.invoke({"messages": [("user", "hi")]}, config())
    graph.invoke({"messages": [("user", "fork")]}, base)
    assert graph.get_state(config()).values["messages"][-1].text == "after"


CLOCK_BACK = """
import sys, time
real = time.time_ns
time.time_ns = lambda: real() - 3600 * 10**9
sys.path.insert(0, sys.argv[2])
from checkpoint.test_lives import chat, config
from langmem_adapter.checkpoint.sqlite import SqliteCheckpointer
with SqliteCheckpointer(sys.argv[1]) as saver:
    for durability in ("sync", "async", "exit"):
        chat(saver).invoke({"messages": [("user", "hi")]}, config(), durability=durability)
    print(len(chat(saver).get_state(config()).values["messages"]))
"""


def test_a_clock_set_back_locks_nobody_out(path: Path) -> None:
    with SqliteCheckpointer(path) as saver:
        put(saver, x=1)
        saver.delete_thread("t1")
    tests = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", CLOCK_BACK, str(path), tests], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout.strip(), done.returncode) == ("9", 0), done.stderr


def test_a_file_of_the_first_schema_is_brought_forward(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from langmem_adapter.checkpoint import schema

    with monkeypatch.context() as earlier:
        earlier.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:1])
        with SqliteCheckpointer(path) as saver, saver._connections.writing() as conn:
            conn.execute("INSERT INTO ckpt_dead VALUES (x'00', 'then', 1)")
            conn.execute("INSERT INTO ckpt_threads (thread, family, died) VALUES ('t1', 1, NULL)")
    with SqliteCheckpointer(path) as saver:
        first = put(saver, messages=talk(2))
        saver.delete_thread("t1")
        with pytest.raises(ThreadDeleted):
            put(saver, first, messages=talk(3))
        second = put(saver, messages=talk(1))
        assert ids(list(saver.list(None))) == [second["configurable"]["checkpoint_id"]]
        assert values(saver, second) == {"messages": talk(1)}
