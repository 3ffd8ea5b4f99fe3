"""The same turn delivered five times: by retries, by resuming, by going back in time, by several callers at once."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from faults.concierge import Concierge
from invariants import whole
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, RetryPolicy, interrupt
from support import config

from langmem_adapter.memory import Memory

SAID = "I live in Oslo. I'm allergic to peanuts."
TIMES = 5


def rows(memory: Memory) -> list[tuple[Any, ...]]:
    """Every item in the store, whole."""
    found = memory.store.search((), limit=10_000)
    return sorted((i.namespace, i.key, str(i.value), i.updated_at) for i in found)


def unchanged(path: Path, deliver: Callable[[Concierge], object]) -> None:
    """Nothing is other after the first delivery than after the fifth."""
    with Concierge(path) as concierge:
        memory = concierge.memory
        memory.add(HumanMessage("I live in Rome.", id="h0"), user_id="u", session_id="t0")
        deliver(concierge)
        once = rows(memory)
        assert [r.status for r in whole(memory)] == ["superseded", "active", "active"]
        for _ in range(TIMES - 1):
            deliver(concierge)
            assert rows(memory) == once
        assert {name for name, _ in concierge.events} <= {"learnt"}


def test_by_a_caller_that_tries_again(tmp_path: Path) -> None:
    said = HumanMessage(SAID, id="h1")
    unchanged(tmp_path / "m.db", lambda c: c.memory.add(said, user_id="u", session_id="t"))


def test_by_another_process_that_tries_again(tmp_path: Path) -> None:
    def deliver(concierge: Concierge) -> None:
        with Memory(tmp_path / "m.db") as other:
            other.add([HumanMessage(SAID, id="h1"), AIMessage("Noted.")], user_id="u", session_id="t")

    unchanged(tmp_path / "m.db", deliver)


def test_by_a_graph(tmp_path: Path) -> None:
    unchanged(tmp_path / "m.db", lambda c: c.say(SAID, id="h1"))


def test_by_an_async_graph(tmp_path: Path) -> None:
    unchanged(tmp_path / "m.db", lambda c: asyncio.run(c.asay(SAID, id="h1")))


def test_by_going_back_in_time(tmp_path: Path) -> None:
    def deliver(concierge: Concierge) -> None:
        if not concierge.systems:
            concierge.app = concierge.builder.compile(checkpointer=InMemorySaver())
            concierge.say(SAID, id="h1")
        for state in list(concierge.app.get_state_history(config())):
            concierge.app.invoke(None, {"configurable": {**state.config["configurable"], "user_id": "u"}})

    unchanged(tmp_path / "m.db", deliver)


def test_by_resuming(tmp_path: Path) -> None:
    def deliver(concierge: Concierge) -> None:
        def ask(state: Any) -> dict[str, Any]:
            return {"messages": [AIMessage(interrupt("May I?"))]}

        if "ask" not in concierge.builder.nodes:
            concierge.builder.add_node("ask", ask)
            concierge.builder.edges.discard(("recall", "model"))
            concierge.builder.add_edge("recall", "ask")
            concierge.builder.add_edge("ask", "model")
        app: Any = concierge.builder.compile(checkpointer=InMemorySaver())
        app.invoke({"messages": [HumanMessage(SAID, id="h1")]}, config())
        app.invoke(Command(resume="Yes."), config())

    unchanged(tmp_path / "m.db", deliver)


def test_by_a_node_that_is_retried(tmp_path: Path) -> None:
    def deliver(concierge: Concierge) -> None:
        tries = []

        def flaky(state: Any) -> dict[str, Any]:
            concierge.memory.remember(state["messages"], user_id="u", session_id="t")
            tries.append(1)
            if len(tries) < 3:
                raise ConnectionError("the provider is away")
            return {}

        policy = RetryPolicy(max_attempts=3, initial_interval=0.001, jitter=False)
        concierge.builder.nodes.pop("flaky", None)
        concierge.builder.add_node("flaky", flaky, retry_policy=policy)
        concierge.builder.edges.discard(("model", "remember"))
        concierge.builder.edges |= {("model", "flaky"), ("flaky", "remember")}
        concierge.app = concierge.builder.compile()
        concierge.say(SAID, id="h1")
        assert len(tries) == 3

    unchanged(tmp_path / "m.db", deliver)


def test_by_five_callers_at_once(tmp_path: Path) -> None:
    async def all_at_once(memory: Memory) -> None:
        said = HumanMessage(SAID, id="h1")
        await asyncio.gather(*(memory.aadd(said, user_id="u", session_id="t") for _ in range(TIMES)))

    unchanged(tmp_path / "m.db", lambda c: asyncio.run(all_at_once(c.memory)))


def test_with_a_tools_result_that_came_later(tmp_path: Path) -> None:
    """It is learnt when it comes, once, and what the user said is not learnt again."""
    said = [HumanMessage("Look me up.", id="h1"), AIMessage("", tool_calls=[{"name": "crm", "args": {}, "id": "c"}])]
    result = [ToolMessage("I live in Oslo.", tool_call_id="c", name="crm", id="t1")]
    with Memory(tmp_path / "m.db", tool_sources=["crm"]) as memory:
        memory.add(said, user_id="u", session_id="t")
        memory.add([*said, *result], user_id="u", session_id="t")
        once = rows(memory)
        for _ in range(TIMES):
            memory.add([*said, *result], user_id="u", session_id="t")
        assert rows(memory) == once
