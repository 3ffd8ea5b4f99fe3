"""A store that hangs costs a turn its memories, and nothing else: no more time than the deadline, no fact."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, StateGraph
from langgraph.store.memory import InMemoryStore
from support import Model, config

from langmem_adapter.backlog import Backlog
from langmem_adapter.errors import InvalidInput, OnHold
from langmem_adapter.extraction.turns import turns_of
from langmem_adapter.langgraph import MemoryState, prompt_with_memories, recall_node, remember_node
from langmem_adapter.memory import Memory
from langmem_adapter.middleware import MemoryMiddleware
from langmem_adapter.namespaces import Reader, namespace
from langmem_adapter.records import Turn

PATIENCE = 10
"""Far less than the store hangs, far more than a turn takes on a busy machine."""


class Hanging(InMemoryStore):
    """Answers at once, or, while it hangs, not before it is let go; or, while it is down, not at all."""

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()
        self.free.set()
        self.down = False

    def batch(self, ops: Any) -> Any:
        if self.down:
            raise OSError("down")
        assert self.free.wait(60)
        return super().batch(ops)

    async def abatch(self, ops: Any) -> Any:
        assert await asyncio.to_thread(self.free.wait, 60)
        return await super().abatch(ops)


@pytest.fixture
def store() -> Iterator[Hanging]:
    store = Hanging()
    yield store
    store.free.set()


def graph(memory: Memory, model: Model) -> Any:
    builder = StateGraph(MemoryState)
    builder.add_node("recall", recall_node(memory))
    builder.add_node("model", lambda s: {"messages": [model.invoke(prompt_with_memories(s, system="Be nice."))]})
    builder.add_node("remember", remember_node(memory))
    builder.add_edge(START, "recall")
    builder.add_edge("recall", "model")
    builder.add_edge("model", "remember")
    builder.add_edge("remember", END)
    return builder.compile()


def said(text: str, i: int) -> dict[str, Any]:
    return {"messages": [HumanMessage(text, id=f"h{i}")]}


def test_the_turn_goes_on_and_what_was_said_is_learnt_later(store):
    events: list[str] = []
    memory = Memory(store, on_event=lambda name, data: events.append(name), recall_deadline=0.2)
    model = Model()
    app = graph(memory, model)
    app.invoke(said("I'm vegan.", 1), config())  # warm
    app.invoke(said("What do I eat?", 2), config())
    assert "vegan" in model.system
    store.free.clear()
    events.clear()
    start = time.monotonic()
    out = app.invoke(said("I live in Rome.", 3), config())
    assert time.monotonic() - start < PATIENCE
    assert out["messages"][-1].text == "Understood."
    assert model.system == "Be nice."
    assert events == ["recall_failed", "remember_queued"]
    store.free.set()
    assert memory._backlog.drain(PATIENCE)
    app.invoke(said("Where do I live?", 4), config())
    app.invoke(said("Where do I live, please?", 5), config())
    assert "Rome" in model.system
    assert memory.pending(user_id="u") == []


def test_however_many_turns_a_store_hangs_for_none_is_lost(store):
    memory = Memory(store, recall_deadline=0.01)
    app = graph(memory, Model())
    app.invoke(said("I'm vegan.", 0), config())
    store.free.clear()
    for i in range(60):  # far more than are left waiting
        app.invoke(said(f"I like dish{i}.", i + 1), config(f"u{i % 3}"))
    store.free.set()
    assert memory._backlog.drain(PATIENCE)
    end = time.monotonic() + PATIENCE
    while memory.retry() or (memory.pending() and time.monotonic() < end):
        time.sleep(0.01)  # those that were left waiting learn too
    assert sum(len(memory.get_all(user_id=f"u{i}")) for i in range(3)) == 60


def test_tasks_of_a_loop_that_is_closed_are_not_waited_for(store):
    memory = Memory(store, recall_deadline=0.05)
    app = graph(memory, Model())
    app.invoke(said("I'm vegan.", 0), config())
    store.free.clear()
    for i in range(20):
        loop = asyncio.new_event_loop()
        loop.run_until_complete(recall_node(memory).ainvoke(said("What do I eat?", i), config()))
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.close()
    store.free.set()
    memory._deadline = PATIENCE
    found = asyncio.run(recall_node(memory).ainvoke(said("What do I eat?", 99), config()))
    assert not found["memories"]["late"]


def test_turns_that_the_store_never_takes_are_told_at_the_end(store):
    events: list[tuple[str, Any]] = []
    memory = Memory(store, on_event=lambda name, data: events.append((name, data)), recall_deadline=0.01)
    app = graph(memory, Model())
    app.invoke(said("I'm vegan.", 0), config())
    store.free.clear()
    app.invoke(said("I live in Rome.", 1), config())
    memory.close()
    assert events[-1] == ("turns_lost", {"count": 1})


def test_a_store_that_is_slow_once_has_the_turn_queued(store):
    events: list[str] = []
    memory = Memory(store, on_event=lambda name, data: events.append(name), recall_deadline=0.2)
    app = graph(memory, Model(replies=[AIMessage("ok")]))
    app.invoke(said("I'm vegan.", 1), config())
    store.free.clear()
    state = recall_node(memory).invoke(said("I live in Rome.", 2), config())
    assert state["memories"]["late"]
    store.free.set()
    events.clear()
    remember_node(memory).invoke({**said("I live in Rome.", 2), **state}, config())
    assert memory.drain(PATIENCE)
    assert [name for name in events if name != "learnt"] == ["remember_queued"]
    assert "The user lives in Rome." in [r.content for r in memory.get_all(user_id="u")]
    assert memory.pending(user_id="u") == []


@pytest.mark.parametrize("way", ["hangs", "fails"])
@pytest.mark.parametrize("erase", ["delete_all", "forget_source", "delete"])
def test_what_waits_for_the_store_is_erased_too(store, way, erase):
    memory = Memory(store, recall_deadline=0.2)
    app = graph(memory, Model())
    app.invoke(said("I'm vegan.", 1), config())
    broken = store.free.clear if way == "hangs" else lambda: setattr(store, "down", True)
    broken()
    app.invoke(said("I live in Ghent.", 2), config())
    if way == "fails":
        time.sleep(0.7)  # the pause before the next try is longer than the erasure takes
    store.down = False
    calls: dict[str, Any] = {
        "delete_all": lambda: memory.delete_all(user_id="u"),
        "forget_source": lambda: memory.forget_source("t1", user_id="u"),
        "delete": lambda: memory.delete(user_id="u", filter={"topic": "home/location"}),
    }
    erasing = threading.Thread(target=calls[erase])  # while the store hangs, the turn is being written
    erasing.start()
    time.sleep(0.1)
    store.free.set()
    erasing.join(PATIENCE)
    assert memory.drain(PATIENCE)
    app.invoke(said("Hello.", 3), config("u", "other"))
    assert not [r.content for r in memory.get_all(user_id="u", status="all") if "Ghent" in r.content]
    assert memory.pending(user_id="u") == []


async def test_a_store_that_begins_to_hang_after_the_recall_costs_no_more_than_a_recall(store):
    memory = Memory(store, recall_deadline=0.2)
    graph(memory, Model()).invoke(said("I'm vegan.", 1), config())  # warm
    state = said("I live in Rome.", 2)
    state |= recall_node(memory).invoke(state, config())
    store.free.clear()
    began = time.monotonic()
    remember_node(memory).invoke(state, config())
    await remember_node(memory).ainvoke({**state, **said("I like tea.", 3)}, config("v"))
    assert time.monotonic() - began < 2.5
    store.free.set()
    assert memory.drain(PATIENCE)
    assert "The user lives in Rome." in [r.content for r in memory.get_all(user_id="u")]


def test_a_hold_keeps_what_waits_for_the_store(store):
    memory = Memory(store, recall_deadline=0.2)
    app = graph(memory, Model())
    memory.hold("u", "case 1")
    store.down = True
    app.invoke(said("I live in Ghent.", 2), config())
    store.down = False
    with pytest.raises(OnHold):
        memory.delete_all(user_id="u")
    assert memory.drain(PATIENCE)
    assert [r.content for r in memory.get_all(user_id="u")] == ["The user lives in Ghent."]


@pytest.mark.parametrize("when", ["inline", "background"])
def test_what_is_said_while_the_file_is_locked_is_learnt_in_that_order_without_another_turn(tmp_path, when):
    homes = ["Rome", "Oslo", "Bern", "Kyiv"]
    with Memory(tmp_path / "m.db", when=when, debounce_seconds=0.0, recall_deadline=0.3) as memory:
        app = graph(memory, Model())
        app.invoke(said("Hello.", 0), config())
        with closing(sqlite3.connect(tmp_path / "m.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            for i, home in enumerate(homes):
                app.invoke(said(f"I live in {home}.", i + 1), config())
            other.execute("ROLLBACK")
        assert memory.drain(PATIENCE)
        ns = namespace("turns", app_name="default", user_id="u")
        turns = [Turn.model_validate(i.value) for i in memory.store.search(ns, limit=99)]
        heard = [t.turn_id for t in sorted(turns, key=lambda t: t.seq)]
        assert heard == [f"t1/h{i}" for i in range(5)]
        assert [r.content for r in memory.get_all(user_id="u")] == ["The user lives in Kyiv."]


def test_a_turn_that_waits_keeps_its_place():
    done = threading.Event()
    taken: list[str] = []

    def take(waiting: Any) -> list[Turn]:
        if not done.is_set():
            raise OSError("away")
        taken.extend(f"{w.turn.messages[0].text} {len(w.turn.messages)}" for w in waiting)
        return []

    def spoken(text: str, *more: str, named: bool = True) -> list[Turn]:
        messages: list[Any] = [HumanMessage(text, id=text if named else None)]
        messages += [ToolMessage(m, tool_call_id=m, name="tool") for m in more]
        at = datetime(2026, 1, 1, tzinfo=UTC)
        return turns_of(messages, Reader("u", session_id="s"), at=at, people={}, tools={"tool"})

    backlog = Backlog(take, lambda turns: None, lambda count: None)
    for said in [("a",), ("b",), ("a", "answer")]:
        backlog.add(spoken(*said))
    for text in ["yes", "yes", "no", "yes"]:  # without ids: twice in a row is one message delivered twice
        backlog.add(spoken(text, named=False))
    done.set()
    assert backlog.drain(PATIENCE)
    assert taken == ["a 2", "b 1", "yes 1", "no 1", "yes 1"]


async def test_the_async_turn_goes_on_too(store):
    from langchain.agents import create_agent

    events: list[str] = []
    memory = Memory(store, on_event=lambda name, data: events.append(name), recall_deadline=0.2)
    agent = create_agent(Model(), [], middleware=[MemoryMiddleware(memory)])
    await agent.ainvoke(said("I'm vegan.", 1), config())
    store.free.clear()
    events.clear()
    start = time.monotonic()
    out = await agent.ainvoke(said("I live in Rome.", 2), config())
    assert time.monotonic() - start < PATIENCE
    assert out["messages"][-1].text == "Understood."
    assert events[0] == "recall_failed"
    store.free.set()
    assert await asyncio.to_thread(memory._backlog.drain, PATIENCE)
    await agent.ainvoke(said("Hello", 3), config())
    assert "The user lives in Rome." in [r.content for r in await memory.aget_all(user_id="u")]


def test_calls_left_behind_do_not_pile_up(store):
    memory = Memory(store, recall_deadline=0.01)
    app = graph(memory, Model())
    app.invoke(said("I'm vegan.", 1), config())
    store.free.clear()
    before = threading.active_count()
    for i in range(40):
        recall_node(memory).invoke(said("What do I eat?", i), config())
    assert threading.active_count() - before <= 20


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), "soon"])
def test_a_deadline_is_a_time(store, seconds):
    with pytest.raises(InvalidInput, match="recall_deadline"):
        Memory(store, recall_deadline=seconds)
