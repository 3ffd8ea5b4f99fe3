"""A graph whose database server dies: it goes on answering, and what was acknowledged is there afterwards."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, StateGraph
from stores.postgres_server import URL, Server, server
from support import config

from langmem_adapter.embeddings import HashEmbeddings
from langmem_adapter.langgraph import MemoryState, prompt_with_memories, recall_node, remember_node, with_memories
from langmem_adapter.memory import Memory
from langmem_adapter.middleware import MemoryMiddleware
from langmem_adapter.namespaces import namespace
from langmem_adapter.records import Turn
from langmem_adapter.stores.postgres import PostgresMemoryStore

PATIENCE = 4.0
"""Seconds; a turn that takes longer while the server is away counts as hanging."""

pytestmark = pytest.mark.skipif(URL is not None, reason="kills a server, so it must be its own")


@pytest.fixture
def mortal() -> Iterator[Server]:
    with server() as running:
        yield running


class Concierge:
    """A graph on PostgreSQL that notes what it was told and what each model call was given."""

    def __init__(self, url: str) -> None:
        index: Any = {"dims": 256, "embed": HashEmbeddings(), "fields": ["content"]}
        self.store = PostgresMemoryStore(url, index=index)
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.memory = Memory(self.store, on_event=lambda name, data: self.events.append((name, data)))
        self.systems: list[str] = []
        self.while_answering = lambda: None
        builder = StateGraph(MemoryState)
        builder.add_node("recall", recall_node(self.memory))
        builder.add_node("model", self._answer)
        builder.add_node("remember", remember_node(self.memory))
        for a, b in ((START, "recall"), ("recall", "model"), ("model", "remember"), ("remember", END)):
            builder.add_edge(a, b)
        self.app: Any = builder.compile()

    def _answer(self, state: Any) -> dict[str, Any]:
        self.systems.append(prompt_with_memories(state, system="Concierge.")[0].text)
        self.while_answering()
        return {"messages": [AIMessage("Noted.")]}

    def say(self, text: str, user: str = "u", thread: str = "t") -> float:
        """How many seconds the answer took."""
        began = time.monotonic()
        done = self.app.invoke({"messages": [HumanMessage(text)]}, config(user, thread))
        assert done["messages"][-1].text == "Noted."
        return time.monotonic() - began

    async def asay(self, text: str, user: str) -> float:
        began = time.monotonic()
        done = await self.app.ainvoke({"messages": [HumanMessage(text)]}, config(user, f"thread-{user}"))
        assert done["messages"][-1].text == "Noted."
        return time.monotonic() - began

    def acknowledged(self) -> set[tuple[str, str]]:
        """User and id of each record that was told to be learnt."""
        learnt = [data for name, data in self.events if name == "learnt"]
        return {(data["user_id"], o.memory_id) for data in learnt for o in data["operations"] if o.action == "CREATE"}

    def told(self) -> list[str]:
        return [name for name, _ in self.events]


@pytest.fixture
def concierge(mortal: Server) -> Iterator[Concierge]:
    made = Concierge(mortal.url())
    yield made
    made.store.close()


def test_a_server_that_dies_while_the_model_answers_costs_neither_answer_nor_fact(
    mortal: Server, concierge: Concierge
) -> None:
    concierge.say("I'm a vegetarian.")
    concierge.while_answering = mortal.kill
    assert concierge.say("Please call me Ada.") < PATIENCE  # heard before, not learnt after
    concierge.while_answering = lambda: None
    assert concierge.told() == ["learnt", "remember_failed", "remember_queued"]
    assert concierge.say("What shall I eat?") < PATIENCE
    assert concierge.systems[-1] == "Concierge."  # nothing recalled, so no block
    lost = ["remember_failed", "remember_queued"]
    assert concierge.told() == ["learnt", *lost, "recall_failed", "remember_queued"]  # it waits behind what was said
    mortal.start()
    assert concierge.memory.drain(20)  # without another turn
    assert concierge.memory.pending(user_id="u") == []
    concierge.say("What do you know about me?")
    for content in ("The user follows a vegetarian diet.", "The user goes by Ada."):
        assert content in concierge.systems[-1]
    assert concierge.memory.pending(user_id="u") == []


async def test_a_process_that_starts_while_the_server_is_away_answers_and_remembers_later(mortal: Server) -> None:
    mortal.kill()
    concierge = Concierge(mortal.url())
    agent = create_agent(FakeListChatModel(responses=["Noted."]), [], middleware=[MemoryMiddleware(concierge.memory)])
    wrapped = with_memories(FakeListChatModel(responses=["Noted."]), concierge.memory)
    said: Any = {"messages": [HumanMessage("I work at Acme.", id="h1")]}
    assert agent.invoke(said, config("u", "a"))["messages"][-1].text == "Noted."
    assert (await agent.ainvoke(said, config("u", "b")))["messages"][-1].text == "Noted."
    assert wrapped.invoke(said["messages"], config("u", "c")).text == "Noted."
    assert concierge.say("I'm a vegetarian.") < PATIENCE
    assert await concierge.asay("I'm a vegetarian.", "u") < PATIENCE
    assert concierge.systems == ["Concierge."] * 2
    assert set(concierge.told()) == {"recall_failed", "remember_failed", "remember_queued"}
    mortal.start()
    concierge.say("Please call me Ada.")
    concierge.say("What do you know about me?")
    assert "The user goes by Ada." in concierge.systems[-1]
    concierge.store.close()


async def test_all_that_was_acknowledged_is_there_after_the_server_died_twice_under_load(
    mortal: Server, concierge: Concierge
) -> None:
    slowest: list[float] = []
    over = asyncio.Event()

    async def talk(user: str) -> None:
        n = 0
        while not over.is_set():
            slowest.append(await concierge.asay(f"I like pea soup number {n}.", user))
            n += 1

    users = [f"u{i}" for i in range(6)]
    talking = [asyncio.create_task(talk(user)) for user in users]
    for _ in range(2):
        await asyncio.sleep(1.0)
        await asyncio.to_thread(mortal.kill)
        await asyncio.sleep(0.3)
        await asyncio.to_thread(mortal.start)
    await asyncio.sleep(0.7)
    over.set()
    await asyncio.gather(*talking)  # no exception

    every = {"learnt", "maintained", "recall_failed", "remember_failed", "remember_queued"}
    assert every >= set(concierge.told()) >= {"learnt", "recall_failed"}
    assert max(slowest) < PATIENCE
    await concierge.memory.adrain(30)  # what was said in the outage is learnt behind the conversation
    stored = {user: concierge.memory.get_all(user_id=user) for user in users}
    assert concierge.acknowledged() <= {(user, r.memory_id) for user, records in stored.items() for r in records}
    for user, records in stored.items():
        assert len({r.content for r in records}) == len(records)  # nothing was learnt twice either
        assert len({r.seq for r in records}) == len(records)
        queue = concierge.store.search(namespace("turns", app_name="default", user_id=user), limit=9_999)
        turns = [Turn.model_validate(item.value) for item in queue]
        # Everything learnt belongs to a turn that is done, and what was only heard still waits.
        done = {o.memory_id for t in turns if t.status == "done" for o in t.operations}
        assert {r.memory_id for r in records} == done
