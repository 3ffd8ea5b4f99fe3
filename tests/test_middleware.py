"""`MemoryMiddleware` on real `create_agent` agents, sync and async."""

import sqlite3
from dataclasses import dataclass
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.memory import InMemoryStore
from support import Model, config

from langmem_adapter.errors import MissingUser
from langmem_adapter.guard import Guard
from langmem_adapter.memory import Memory
from langmem_adapter.middleware import MemoryMiddleware

PROMPT = "You are a concierge."


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"messages": [HumanMessage(text, **more)]}


def agent(memory: Memory | None, model: Model, tools: Any = (), **more: Any) -> Any:
    return create_agent(model, list(tools), middleware=[MemoryMiddleware(memory)], **({"system_prompt": PROMPT} | more))


def test_an_agent_remembers_across_threads(memory):
    model = Model()
    app = agent(memory, model, checkpointer=InMemorySaver())
    app.invoke(said("I'm a vegetarian."), config(thread_id="t1"))
    app.invoke(said("What diet do I follow?"), config(thread_id="t2"))
    assert model.system.startswith(PROMPT)
    assert "- [confidence: high, source: user_explicit] The user follows a vegetarian diet." in model.system


async def test_an_async_agent_too(make):
    memory, model = make(), Model()
    app = agent(memory, model, checkpointer=InMemorySaver())
    await app.ainvoke(said("I'm a vegetarian."), config(thread_id="t1"))
    await app.ainvoke(said("What diet do I follow?"), config(thread_id="t2"))
    assert "vegetarian diet" in model.system


def test_without_memories_the_prompt_is_untouched(memory):
    model = Model()
    agent(memory, model).invoke(said("Hello."), config())
    assert [m.text for m in model.prompts[0]] == [PROMPT, "Hello."]
    agent(memory, model, system_prompt=None).invoke(said("Hello."), config())
    assert [m.text for m in model.prompts[1]] == ["Hello."]


def test_earlier_blocks_and_cache_marks_survive(memory):
    memory.add("I'm a vegetarian.", user_id="u")
    cached = {"type": "text", "text": PROMPT, "cache_control": {"type": "ephemeral"}}
    model = Model()
    agent(memory, model, system_prompt=SystemMessage(content=[cached])).invoke(said("What do I eat?"), config())
    system = model.prompts[-1][0]
    assert system.content[0] == cached
    assert "vegetarian" in system.content[1]["text"]


def test_the_block_is_the_same_through_a_tool_loop_and_in_no_checkpoint_byte(tmp_path, memory):
    memory.add_fact("The user likes xylofondue.", user_id="u", topic="preference/likes", value="like", source_id="f")

    @tool
    def look() -> str:
        """Looks."""
        return "zanzibar"

    model = Model(replies=[AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "c1"}]), "Done."])
    path = tmp_path / "checkpoints.db"
    with sqlite3.connect(path, check_same_thread=False) as connection:
        agent(memory, model, [look], checkpointer=SqliteSaver(connection)).invoke(said("What do I like?"), config())
    connection.close()
    first, second = (p[0].text for p in model.prompts)
    assert first == second
    assert "xylofondue" in first
    stored = b"".join(p.read_bytes() for p in tmp_path.glob("checkpoints.db*"))
    assert b"zanzibar" in stored
    assert b"xylofondue" not in stored
    assert b"MEMORIES" not in stored


def test_the_agents_own_store_is_used_without_an_argument():
    store, model = InMemoryStore(), Model()
    app = agent(None, model, store=store)
    app.invoke(said("I'm a vegetarian."), config(thread_id="t1"))
    app.invoke(said("What diet do I follow?"), config(thread_id="t2"))
    assert "vegetarian" in model.system


def test_ids_come_from_the_runtime_context(memory):
    @dataclass
    class Context:
        user_id: str

    app = agent(memory, Model(), context_schema=Context)
    app.invoke(said("I'm a vegetarian."), context=Context("ctx"))
    assert len(memory.get_all(user_id="ctx")) == 1


def test_a_missing_user_id_is_an_error(memory):
    with pytest.raises(MissingUser):
        agent(memory, Model()).invoke(said("Hi."), {"configurable": {"thread_id": "t"}})


def test_a_summary_teaches_nothing(memory):
    model = Model()
    summarizer = SummarizationMiddleware(
        model=Model(replies=["I'm a vegetarian and I live in Rome."]), trigger=("messages", 4), keep=("messages", 1)
    )
    app = create_agent(
        model, [], middleware=[summarizer, MemoryMiddleware(memory)], checkpointer=InMemorySaver(), system_prompt=PROMPT
    )
    for text in ("Hi.", "How are you?", "I like tea.", "And now?"):
        app.invoke(said(text), config())
    summaries = [m for p in model.prompts for m in p if m.additional_kwargs.get("lc_source") == "summarization"]
    assert any("vegetarian" in m.text for m in summaries)
    assert [r.topic for r in memory.get_all(user_id="u", status="all")] == ["preference/likes"]


@pytest.mark.parametrize("ids", [None, config("u", "other")])
def test_an_agent_inside_a_tool_neither_queues_nor_learns(memory, ids):
    inner = agent(memory, Model())

    @tool
    def ask() -> str:
        """Asks a colleague."""
        inner.invoke(said("I'm a vegetarian."), ids)
        return "asked"

    model = Model(replies=[AIMessage("", tool_calls=[{"name": "ask", "args": {}, "id": "c1"}]), "Done."])
    agent(memory, model, [ask]).invoke(said("I live in Rome."), config())
    assert [r.content for r in memory.get_all(user_id="u", status="all")] == ["The user lives in Rome."]
    assert "vegetarian" not in str([i.value for i in memory.store.search(("memories",))])


async def test_nor_an_async_one(make):
    memory = make()
    inner = agent(memory, Model())

    @tool
    async def ask() -> str:
        """Asks a colleague."""
        await inner.ainvoke(said("I'm a vegetarian."))
        return "asked"

    model = Model(replies=[AIMessage("", tool_calls=[{"name": "ask", "args": {}, "id": "c1"}]), "Done."])
    await agent(memory, model, [ask]).ainvoke(said("I live in Rome."), config())
    assert [r.content for r in await memory.aget_all(user_id="u")] == ["The user lives in Rome."]


def test_a_turn_that_fails_is_learnt_at_the_next(memory):
    class Broken(Model):
        def _generate(self, *args: Any, **kwargs: Any) -> Any:
            raise ConnectionError("no model")

    with pytest.raises(ConnectionError):
        agent(memory, Broken()).invoke(said("I'm a vegetarian."), config(thread_id="t1"))
    model = Model()
    agent(memory, model).invoke(said("What diet do I follow?"), config(thread_id="t2"))
    assert "vegetarian" in model.system


@pytest.mark.parametrize("session_summary", [False, True])
def test_what_the_applications_own_functions_raise_does_not_fail_the_turn(session_summary):
    class Raising(Guard):
        def redact(self, text: str) -> str:
            raise ValueError("cannot read it")

    def clock() -> Any:
        raise OSError("no time server")

    for broken in ({"guard": Raising()}, {"clock": clock}):
        events: list[str] = []
        with Memory(InMemoryStore(), on_event=lambda name, data, told=events: told.append(name), **broken) as memory:
            layer = MemoryMiddleware(memory, session_summary=session_summary)
            app = create_agent(Model(), [], middleware=[layer], checkpointer=InMemorySaver())
            assert app.invoke(said("I'm a vegetarian."), config())["messages"][-1].text == "Understood."
            assert app.invoke(said("I like tea."), config())["messages"][-1].text == "Understood."
        assert events[-2:] == ["remember_failed", "turns_lost"]
