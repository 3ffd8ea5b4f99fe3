"""The same turn delivered five times: by retries, by resuming, by going back in time, by several callers at once."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from faults.concierge import Concierge
from invariants import whole
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, RetryPolicy, interrupt
from support import config

from langmem_adapter.extraction.rules import RuleExtractor
from langmem_adapter.memory import Memory
from langmem_adapter.records import Extraction, Turn

Unchanged = Callable[[Callable[[Concierge], object]], None]

SAID = "I live in Oslo. I'm allergic to peanuts."
TIMES = 5


def rows(memory: Memory) -> list[tuple[Any, ...]]:
    """Every item in the store, whole."""
    found = memory.store.search((), limit=10_000)
    return sorted((i.namespace, i.key, str(i.value), i.updated_at) for i in found)


@pytest.fixture
def unchanged(tmp_path: Path, tried: Callable[[str], None]) -> Unchanged:
    """Nothing is other after the first delivery than after the fifth."""

    def check(deliver: Callable[[Concierge], object]) -> None:
        with Concierge(tmp_path / "m.db") as concierge:
            memory = concierge.memory
            memory.add(HumanMessage("I live in Rome.", id="h0"), user_id="u", session_id="t0")
            deliver(concierge)
            once = rows(memory)
            assert [r.status for r in whole(memory)] == ["superseded", "active", "active"]
            for _ in range(TIMES - 1):
                deliver(concierge)
                assert rows(memory) == once
            assert {name for name, _ in concierge.events} <= {"learnt"}
            tried(f"{TIMES} deliveries, {len(once)} rows as after the first")

    return check


def test_by_a_caller_that_tries_again(unchanged: Unchanged) -> None:
    said = HumanMessage(SAID, id="h1")
    unchanged(lambda c: c.memory.add(said, user_id="u", session_id="t"))


def test_by_another_process_that_tries_again(tmp_path: Path, unchanged: Unchanged) -> None:
    def deliver(concierge: Concierge) -> None:
        with Memory(tmp_path / "m.db") as other:
            other.add([HumanMessage(SAID, id="h1"), AIMessage("Noted.")], user_id="u", session_id="t")

    unchanged(deliver)


def test_by_a_graph(unchanged: Unchanged) -> None:
    unchanged(lambda c: c.say(SAID, id="h1"))


def test_by_an_async_graph(unchanged: Unchanged) -> None:
    unchanged(lambda c: asyncio.run(c.asay(SAID, id="h1")))


def test_by_going_back_in_time(unchanged: Unchanged) -> None:
    def deliver(concierge: Concierge) -> None:
        if not concierge.systems:
            concierge.app = concierge.builder.compile(checkpointer=InMemorySaver())
            concierge.say(SAID, id="h1")
        for state in list(concierge.app.get_state_history(config())):
            concierge.app.invoke(None, {"configurable": {**state.config["configurable"], "user_id": "u"}})

    unchanged(deliver)


def test_by_resuming(unchanged: Unchanged) -> None:
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

    unchanged(deliver)


def test_by_a_node_that_is_retried(unchanged: Unchanged) -> None:
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

    unchanged(deliver)


def test_by_five_callers_at_once(unchanged: Unchanged) -> None:
    async def all_at_once(memory: Memory) -> None:
        said = HumanMessage(SAID, id="h1")
        await asyncio.gather(*(memory.aadd(said, user_id="u", session_id="t") for _ in range(TIMES)))

    unchanged(lambda c: asyncio.run(all_at_once(c.memory)))


def test_by_two_callers_of_whom_neither_was_done_when_both_had_extracted(
    tmp_path: Path, tried: Callable[[str], None]
) -> None:
    """The second finds out in its commit, and leaves the turn and its verdicts as the first wrote them."""

    class Meeting(RuleExtractor):
        both = threading.Barrier(2)

        def extract(self, turn: Turn) -> Extraction:
            self.both.wait(30)
            return super().extract(turn)

    with Memory(tmp_path / "m.db", extractor=Meeting()) as memory, ThreadPoolExecutor(2) as pool:
        said = HumanMessage(SAID, id="h1")
        calls = [pool.submit(memory.add, said, user_id="u", session_id="t") for _ in range(2)]
        told = sorted([o.action for o in call.result()] for call in calls)
        assert told == [[], ["CREATE", "CREATE"]]
        assert [[h.action for h in r.history] for r in whole(memory)] == [["CREATE"], ["CREATE"]]
        [turn] = memory.store.search(("memories", "default", "user", "u", "turns"))
        assert [o["action"] for o in turn.value["operations"]] == ["CREATE", "CREATE"]
        tried(f"{len(calls)} deliveries at once, {len(whole(memory))} facts, each learnt once")


def test_with_a_tools_result_that_came_later(tmp_path: Path, tried: Callable[[str], None]) -> None:
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
        tried(f"{TIMES + 1} deliveries with the result, {len(once)} rows as after the first")
