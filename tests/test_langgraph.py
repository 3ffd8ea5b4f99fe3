"""Memory nodes in real graphs: what the model sees, what state and checkpoints hold, what is learnt."""

import sqlite3
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt
from support import Model, Scripted, config, fact

from langmem_adapter.errors import InvalidInput, MissingUser
from langmem_adapter.guard import Guard
from langmem_adapter.langgraph import (
    MemoryState,
    add_memory,
    aprompt_with_memories,
    prompt_with_memories,
    recall_node,
    remember_node,
    with_memories,
)
from langmem_adapter.memory import Memory

SYSTEM = "You are a concierge."


def graph(memory: Memory | None, node: Callable[..., Any], schema: Any = MemoryState) -> StateGraph:
    builder = StateGraph(schema)
    builder.add_node("recall", recall_node(memory))
    builder.add_node("model", node)
    builder.add_node("remember", remember_node(memory))
    builder.add_edge(START, "recall")
    builder.add_edge("recall", "model")
    builder.add_edge("model", "remember")
    builder.add_edge("remember", END)
    return builder


def call(model: Model) -> Callable[[MemoryState], dict[str, Any]]:
    return lambda state: {"messages": [model.invoke(prompt_with_memories(state, system=SYSTEM))]}


def acall(model: Model) -> Callable[[MemoryState], Any]:
    async def node(state: MemoryState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(await aprompt_with_memories(state, system=SYSTEM))]}

    return node


def said(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


def test_what_one_thread_taught_reaches_the_system_message_of_the_next(memory):
    model = Model()
    app = graph(memory, call(model)).compile(checkpointer=InMemorySaver())
    app.invoke(said("I'm a vegetarian."), config(thread_id="t1"))
    assert model.system == SYSTEM
    out = app.invoke(said("Which diet do I follow?"), config(thread_id="t2"))
    assert model.system.startswith(SYSTEM)
    assert "- [confidence: high, source: user_explicit] The user follows a vegetarian diet." in model.system
    assert "<MEMORIES>" not in str(out)
    assert "vegetarian" not in str(out["memories"])


async def test_the_same_holds_async(make):
    memory, model = make(), Model()
    app = graph(memory, acall(model)).compile(checkpointer=InMemorySaver())
    await app.ainvoke(said("I'm a vegetarian."), config(thread_id="t1"))
    await app.ainvoke(said("Which diet do I follow?"), config(thread_id="t2"))
    assert "vegetarian diet" in model.system


@pytest.mark.parametrize("mode", ["values", "updates", "messages", "debug"])
def test_the_block_is_in_no_stream(memory, mode):
    memory.add("I'm a vegetarian.", user_id="u")
    model = Model()
    app = graph(memory, call(model)).compile(checkpointer=InMemorySaver())
    streamed = list(app.stream(said("What do I eat?"), config(), stream_mode=mode))
    assert "vegetarian diet" in model.system
    assert streamed
    assert "vegetarian diet" not in str(streamed)


def test_other_users_are_not_recalled(memory):
    model = Model()
    app = graph(memory, call(model)).compile(checkpointer=InMemorySaver())
    app.invoke(said("I'm a vegetarian."), config("u1"))
    app.invoke(said("Which diet do I follow?"), config("u2", "t2"))
    assert model.system == SYSTEM


def test_without_memories_the_messages_are_untouched(memory):
    seen: list[list[BaseMessage]] = []

    def node(state: MemoryState) -> dict[str, Any]:
        seen.append(prompt_with_memories(state))
        assert seen[-1] == state["messages"]
        return {"messages": [AIMessage("ok")]}

    graph(memory, node).compile().invoke(said("Hello."), config())
    assert len(seen) == 1


class TestUserId:
    def test_a_missing_one_is_an_error_at_the_first_turn(self, memory):
        app = graph(memory, call(Model())).compile()
        with pytest.raises(MissingUser, match="user_id"):
            app.invoke(said("I'm a vegetarian."), {"configurable": {"thread_id": "t"}})

    @pytest.mark.parametrize("user_id", ["", "  "])
    def test_a_blank_one_too(self, memory, user_id):
        app = graph(memory, call(Model())).compile()
        with pytest.raises(MissingUser):
            app.invoke(said("I'm a vegetarian."), config(user_id))

    def test_it_may_come_from_the_runtime_context(self, memory):
        class Context(TypedDict):
            user_id: str

        builder = StateGraph(MemoryState, context_schema=Context)
        builder.add_node("recall", recall_node(memory))
        builder.add_node("remember", remember_node(memory))
        builder.add_edge(START, "recall")
        builder.add_edge("recall", "remember")
        app = builder.compile()
        app.invoke(said("I'm a vegetarian."), context={"user_id": "ctx"})
        assert len(memory.get_all(user_id="ctx")) == 1
        with pytest.raises(InvalidInput, match="must agree"):
            app.invoke(said("I'm a vegetarian."), config("other"), context={"user_id": "ctx"})


class TestNoTrace:
    """The block is in no checkpoint byte, for every way of injecting."""

    SENTINEL = "The user likes xylofondue."

    def checkpointed(self, tmp_path: Path, build: Callable[[Model], StateGraph], memory: Memory) -> Model:
        memory.add_fact(self.SENTINEL, user_id="u", topic="preference/likes", value="like", slot="x", source_id="f")
        model = Model()
        path = tmp_path / "checkpoints.db"
        with sqlite3.connect(path, check_same_thread=False) as connection:
            app = build(model).compile(checkpointer=SqliteSaver(connection))
            app.invoke(said("What do I like?"), config())
            app.invoke(said("Anything else? zanzibar"), config())
        connection.close()
        assert self.SENTINEL in model.system
        stored = b"".join(p.read_bytes() for p in tmp_path.glob("checkpoints.db*"))
        assert b"zanzibar" in stored  # the scan finds what is there
        assert b"xylofondue" not in stored
        assert b"MEMORIES" not in stored
        return model

    def test_with_nodes(self, tmp_path, memory):
        self.checkpointed(tmp_path, lambda model: graph(memory, call(model)), memory)

    def test_with_a_wrapped_model(self, tmp_path, memory):
        def build(model: Model) -> StateGraph:
            wrapped = with_memories(model, memory)
            return graph(memory, lambda state: {"messages": [wrapped.invoke(state["messages"])]})

        self.checkpointed(tmp_path, build, memory)

    def test_with_a_wrapped_model_and_no_memory_nodes(self, tmp_path, memory):
        def build(model: Model) -> StateGraph:
            wrapped = with_memories(model, memory)
            builder = StateGraph(MessagesState)
            builder.add_node("model", lambda state: {"messages": [wrapped.invoke(state["messages"])]})
            builder.add_edge(START, "model")
            return builder

        self.checkpointed(tmp_path, build, memory)

    def test_in_a_subgraph(self, tmp_path, memory):
        def build(model: Model) -> StateGraph:
            builder = StateGraph(MemoryState)
            builder.add_node("inner", graph(memory, call(model)).compile())
            builder.add_edge(START, "inner")
            return builder

        self.checkpointed(tmp_path, build, memory)


class TestInterrupt:
    def build(self, memory: Memory, model: Model, saver: Any) -> Any:
        def node(state: MemoryState) -> dict[str, Any]:
            answer = interrupt("Sure?")
            return {"messages": [model.invoke(prompt_with_memories(state, system=f"{SYSTEM} {answer}"))]}

        return graph(memory, node).compile(checkpointer=saver)

    def test_after_resume_the_block_is_there(self, memory):
        memory.add("I'm a vegetarian.", user_id="u")
        model, saver = Model(), InMemorySaver()
        self.build(memory, model, saver).invoke(said("What do I eat?"), config())
        self.build(memory, model, saver).invoke(Command(resume="yes"), config())
        assert "vegetarian diet" in model.system
        assert "yes" in model.system

    def test_what_was_erased_in_between_is_not(self, memory):
        [op] = memory.add("I'm a vegetarian.", user_id="u")
        model = Model()
        app = self.build(memory, model, InMemorySaver())
        app.invoke(said("What do I eat?"), config())
        memory.delete(op.memory_id, user_id="u")
        app.invoke(Command(resume="yes"), config())
        assert "vegetarian diet" not in model.system

    def test_an_interrupted_turn_that_is_never_resumed_is_remembered_at_the_next(self, memory):
        model = Model()
        app = self.build(memory, model, InMemorySaver())
        app.invoke(said("I'm a vegetarian."), config(thread_id="t1"))
        assert memory.get_all(user_id="u") == []
        graph(memory, call(model)).compile().invoke(said("What diet do I follow?"), config(thread_id="t2"))
        assert [r.content for r in memory.get_all(user_id="u")] == ["The user follows a vegetarian diet."]
        assert "vegetarian diet" in model.system

    def test_a_turn_that_is_resumed_is_learnt_once(self, memory):
        app = self.build(memory, Model(), InMemorySaver())
        app.invoke(said("I'm a vegetarian."), config())
        app.invoke(Command(resume="yes"), config())
        app.invoke(said("Thanks."), config())
        app.invoke(Command(resume="yes"), config())
        [record] = memory.get_all(user_id="u", status="all")
        assert len(record.sources) == 1


class TestLearning:
    def test_a_turn_can_be_kept_from_memory(self, memory):
        app = graph(memory, call(Model())).compile()
        app.invoke(said("I'm a vegetarian."), config(remember=False))
        assert memory.store.search(("memories",)) == []

    def test_the_caller_may_say_what_the_words_amount_to(self, memory):
        app = graph(memory, call(Model())).compile()
        app.invoke(said("I'm a vegetarian."), config(source_type="user_implicit"))
        assert [r.confidence for r in memory.get_all(user_id="u")] == [0.65]

    def test_what_was_learnt_is_told(self, make):
        told = []
        memory = make(on_event=lambda name, data: told.append((name, [o.action for o in data["operations"]])))
        graph(memory, call(Model())).compile().invoke(said("I'm a vegetarian."), config())
        assert told == [("learnt", ["CREATE"])]

    def test_only_the_last_human_message_of_an_old_thread_is_learnt(self, memory):
        old = [HumanMessage("I'm a vegetarian."), AIMessage("Good."), HumanMessage("I live in Rome.")]
        graph(memory, call(Model())).compile().invoke({"messages": old}, config())
        assert [r.content for r in memory.get_all(user_id="u")] == ["The user lives in Rome."]

    def test_backfill_learns_them_all(self, memory):
        old = [HumanMessage("I'm a vegetarian."), AIMessage("Good."), HumanMessage("I live in Rome.")]
        builder = StateGraph(MemoryState)
        builder.add_node("remember", remember_node(memory, backfill=True))
        builder.add_edge(START, "remember")
        builder.compile().invoke({"messages": old}, config())
        assert len(memory.get_all(user_id="u")) == 2

    def test_what_the_assistant_says_teaches_nothing(self, memory):
        app = graph(memory, call(Model(replies=["I'm a vegetarian and I live in Rome."]))).compile()
        app.invoke(said("Who are you?"), config())
        assert memory.get_all(user_id="u", status="all") == []

    def test_two_messages_in_a_row_are_both_learnt(self, memory):
        app = graph(memory, call(Model())).compile()
        app.invoke({"messages": [HumanMessage("I'm a vegetarian."), HumanMessage("I live in Rome.")]}, config())
        assert len(memory.get_all(user_id="u")) == 2

    def test_time_travel_and_retries_do_not_learn_again(self, memory):
        app = graph(memory, call(Model())).compile(checkpointer=InMemorySaver())
        # With an id: replaying the input of a message without one is, to LangGraph, another message.
        app.invoke({"messages": [HumanMessage("I'm a vegetarian.", id="h1")]}, config())
        before = sorted(str(i.value) for i in memory.store.search(("memories",)))
        for state in list(app.get_state_history(config())):
            app.invoke(None, {"configurable": {**state.config["configurable"], "user_id": "u"}})
        assert sorted(str(i.value) for i in memory.store.search(("memories",))) == before

    def test_an_edited_message_replaces_what_it_taught(self, memory):
        app = graph(memory, call(Model())).compile(checkpointer=InMemorySaver())
        app.invoke({"messages": [HumanMessage("I live in Rome.", id="h")]}, config())
        app.invoke({"messages": [HumanMessage("I live in Oslo.", id="h")]}, config())
        assert [r.content for r in memory.get_all(user_id="u")] == ["The user lives in Oslo."]

    def test_a_named_tool_teaches_with_a_tools_trust(self, make):
        timezone = fact("The user's timezone is Europe/Riga.", value="Europe/Riga", excerpt="Europe/Riga")
        memory = make(extractor=Scripted({"timezone: Europe/Riga": [timezone]}), tool_sources=["calendar"])

        @tool
        def calendar() -> str:
            """The calendar."""
            return "timezone: Europe/Riga"

        model = Model(replies=[AIMessage("", tool_calls=[{"name": "calendar", "args": {}, "id": "c1"}]), "Done."])
        toolbox(memory, model, calendar).invoke(said("When am I free?"), config())
        [record] = memory.get_all(user_id="u")
        assert [s.source_type for s in record.sources] == ["tool_output"]
        assert record.confidence == 0.30

    def test_its_other_answer_in_a_fork_replaces_what_it_taught(self, make):
        answers = ["lives in Rome", "lives in Oslo"]
        script = {a: [fact(f"The user {a}.", "home/location", a.split()[-1])] for a in answers}
        memory = make(extractor=Scripted(script), tool_sources=["crm"])

        @tool
        def crm() -> str:
            """The customer's record."""
            return answers.pop(0)

        asks = AIMessage("", tool_calls=[{"name": "crm", "args": {}, "id": "c1"}])
        model = Model(replies=[asks, "In Rome.", asks, "In Oslo."])
        app = toolbox(memory, model, crm, checkpointer=InMemorySaver())
        app.invoke({"messages": [HumanMessage("Where do I live?", id="h")]}, config())
        assert [r.content for r in memory.get_all(user_id="u")] == ["The user lives in Rome."]
        [before] = [
            s for s in app.get_state_history(config()) if s.next == ("model",) and len(s.values["messages"]) == 1
        ]
        app.invoke(None, {"configurable": {**before.config["configurable"], "user_id": "u"}})
        assert [r.content for r in memory.get_all(user_id="u")] == ["The user lives in Oslo."]

    def test_other_tools_teach_nothing(self, memory):
        @tool
        def profile() -> str:
            """A profile."""
            return "I'm a vegetarian."

        model = Model(replies=[AIMessage("", tool_calls=[{"name": "profile", "args": {}, "id": "c1"}]), "Done."])
        toolbox(memory, model, profile).invoke(said("Who am I?"), config())
        assert memory.get_all(user_id="u", status="all") == []

    @pytest.mark.parametrize("own_ids", [False, True])
    @pytest.mark.parametrize("name", ["tools", "actions"])
    def test_an_agent_inside_a_tool_neither_queues_nor_learns(self, memory, name, own_ids):
        inner = graph(memory, call(Model())).compile()

        @tool
        def ask(question: str) -> str:
            """Ask a colleague."""
            ids = config("u", "another") if own_ids else None
            inner.invoke(said("I'm a vegetarian."), ids)
            return "asked"

        asks = AIMessage("", tool_calls=[{"name": "ask", "args": {"question": "?"}, "id": "c1"}])
        toolbox(memory, Model(replies=[asks, "Done."]), ask, name=name).invoke(said("Please ask."), config())
        assert memory.get_all(user_id="u", status="all") == []
        assert "vegetarian" not in str([i.value for i in memory.store.search(("memories",))])

    async def test_nor_does_it_async(self, make):
        memory = make()
        inner = graph(memory, acall(Model())).compile()

        @tool
        async def ask(question: str) -> str:
            """Ask a colleague."""
            await inner.ainvoke(said("I'm a vegetarian."))
            return "asked"

        asks = AIMessage("", tool_calls=[{"name": "ask", "args": {"question": "?"}, "id": "c1"}])
        await toolbox(memory, Model(replies=[asks, "Done."]), ask).ainvoke(said("Please ask."), config())
        assert await memory.aget_all(user_id="u", status="all") == []

    def test_a_subgraph_that_is_a_node_learns(self, memory):
        builder = StateGraph(MemoryState)
        builder.add_node("inner", graph(memory, call(Model())).compile())
        builder.add_edge(START, "inner")
        builder.compile().invoke(said("I'm a vegetarian."), config())
        assert len(memory.get_all(user_id="u")) == 1

    def test_after_a_tool_call_the_user_is_heard_again(self, memory):
        @tool
        def noop() -> str:
            """Nothing."""
            return "ok"

        calls = AIMessage("", tool_calls=[{"name": "noop", "args": {}, "id": "c1"}])
        toolbox(memory, Model(replies=[calls, "Done."]), noop).invoke(said("I'm a vegetarian."), config())
        assert len(memory.get_all(user_id="u")) == 1


def toolbox(memory: Memory, model: Model, *tools: Any, name: str = "tools", checkpointer: Any = None) -> Any:
    builder = StateGraph(MemoryState)
    builder.add_node("recall", recall_node(memory))
    builder.add_node("model", call(model))
    builder.add_node(name, ToolNode(list(tools)))
    builder.add_node("remember", remember_node(memory))
    builder.add_edge(START, "recall")
    builder.add_edge("recall", "model")
    builder.add_conditional_edges("model", tools_condition, {"tools": name, END: "remember"})
    builder.add_edge(name, "model")
    return builder.compile(checkpointer=checkpointer)


def test_the_block_is_the_same_through_a_tool_loop(memory):
    memory.add("I'm a vegetarian.", user_id="u")

    @tool
    def change() -> str:
        """Learns something while the loop runs."""
        memory.add_fact("The user eats noodles.", user_id="u", source_id="x")
        return "ok"

    calls = AIMessage("", tool_calls=[{"name": "change", "args": {}, "id": "c1"}])
    model = Model(replies=[calls, "Done."])
    toolbox(memory, model, change).invoke(said("What do I eat?"), config())
    first, second = (p[0].text for p in model.prompts)
    assert first == second
    assert "vegetarian" in first


class TestWithMemories:
    def test_it_recalls_once_per_message_and_keeps_the_first_system_message(self, memory):
        memory.add("I'm a vegetarian.", user_id="u")
        model = Model()
        wrapped = with_memories(model, memory)
        messages = [("system", SYSTEM), HumanMessage("What do I eat?", id="h1")]
        wrapped.invoke(messages, config())
        first = model.system
        memory.add_fact("The user eats noodles.", user_id="u", source_id="x")
        wrapped.invoke(messages, config())
        assert model.system == first
        assert first.startswith(SYSTEM)
        assert "vegetarian" in first

    def test_it_learns_nothing(self, memory):
        with_memories(Model(), memory).invoke("I'm a vegetarian.", config())
        assert memory.store.search(("memories",)) == []

    async def test_it_streams_and_awaits(self, make):
        memory, model = make(), Model()
        await memory.aadd("I'm a vegetarian.", user_id="u")
        wrapped = with_memories(model, memory)
        await wrapped.ainvoke("What do I eat?", config())
        assert "vegetarian" in model.system
        assert [c async for c in wrapped.astream("What do I eat?", config())]
        assert list(wrapped.stream("What do I eat?", config()))


class TestAddMemory:
    def agent(self, model: Model, schema: Any = MessagesState, *, literal: bool = True) -> StateGraph:
        @tool
        def noop() -> str:
            """Nothing."""
            return "ok"

        def route(state: Any) -> Literal["tools", "__end__"]:
            return "tools" if state["messages"][-1].tool_calls else "__end__"

        builder = StateGraph(schema)
        builder.add_node("model", lambda s: {"messages": [model.invoke(prompt_with_memories(s, system=SYSTEM))]})
        builder.add_node("tools", ToolNode([noop]))
        builder.add_edge(START, "model")
        if literal:
            builder.add_conditional_edges("model", route)
        else:
            builder.add_conditional_edges("model", lambda s: route(s))
        builder.add_edge("tools", "model")
        return builder

    @pytest.mark.parametrize("schema", [MessagesState, MemoryState])
    def test_an_existing_graph_gets_a_memory(self, memory, schema):
        calls = AIMessage("", tool_calls=[{"name": "noop", "args": {}, "id": "c1"}])
        model = Model(replies=[calls, "Done.", calls, "Done."])
        app = add_memory(self.agent(model, schema), memory, model_node="model").compile(checkpointer=InMemorySaver())
        app.invoke(said("I'm a vegetarian."), config(thread_id="t1"))
        app.invoke(said("What diet do I follow?"), config(thread_id="t2"))
        assert "vegetarian" in model.system
        assert len(memory.get_all(user_id="u")) == 1

    def test_what_cannot_be_wired_is_said(self, memory):
        with pytest.raises(InvalidInput, match="no node 'llm'"):
            add_memory(self.agent(Model()), memory, model_node="llm")
        with pytest.raises(InvalidInput, match="END"):
            add_memory(self.agent(Model(), literal=False), memory, model_node="model")


class TestOwnStore:
    def test_nodes_use_the_graphs_store(self):
        store, model = InMemoryStore(), Model()
        app = graph(None, call(model)).compile(store=store)
        app.invoke(said("I'm a vegetarian."), config(thread_id="t1"))
        app.invoke(said("What diet do I follow?"), config(thread_id="t2"))
        assert "vegetarian" in model.system
        assert len(Memory(store).get_all(user_id="u")) == 1

    def test_without_any_store_it_is_an_error(self):
        with pytest.raises(InvalidInput, match="no store"):
            graph(None, call(Model())).compile().invoke(said("Hi."), config())


class Failing(InMemoryStore):
    """A store that is down."""

    def batch(self, ops: Any) -> Any:
        raise ConnectionError("the store is down")

    async def abatch(self, ops: Any) -> Any:
        raise ConnectionError("the store is down")


def test_a_memory_that_is_down_does_not_fail_the_turn(caplog):
    events: list[str] = []
    memory = Memory(Failing(), on_event=lambda name, data: events.append(name))
    model = Model()
    out = graph(memory, call(model)).compile().invoke(said("I'm a vegetarian."), config())
    assert out["messages"][-1].text == "Understood."
    assert model.system == SYSTEM
    assert events == ["recall_failed", "remember_failed", "remember_queued"]
    assert "vegetarian" not in caplog.text


class Raising(Guard):
    """A guard of somebody's own that cannot read what is said."""

    def redact(self, text: str) -> str:
        raise ValueError(f"cannot read {text}")


def unset() -> datetime:
    raise OSError("no time server")


@pytest.mark.parametrize("broken", [{"guard": Raising()}, {"clock": unset}])
async def test_what_the_applications_own_functions_raise_does_not_fail_the_turn(broken, caplog):
    """Nor does it get anything into the store or the log that could not be redacted."""
    events: list[str] = []
    store, model = InMemoryStore(), Model()
    memory = Memory(store, on_event=lambda name, data: events.append(name), **broken)
    assert graph(memory, call(model)).compile().invoke(said("I'm a vegetarian."), config())["messages"][-1].text
    assert (await graph(memory, acall(model)).compile().ainvoke(said("I'm a vegetarian."), config()))["messages"]
    assert [p[0].text for p in model.prompts] == [SYSTEM, SYSTEM]
    assert events == 2 * ["recall_failed", "remember_failed", "turns_lost"]
    assert store.search(("memories",)) == []
    assert "vegetarian" not in caplog.text


def test_state_may_be_another_class(memory):
    class Wide(TypedDict):
        messages: Annotated[list[Any], add_messages]
        memories: dict[str, Any]
        other: int

    memory.add("I'm a vegetarian.", user_id="u")
    model = Model()
    graph(memory, call(model), Wide).compile().invoke({**said("What do I eat?"), "other": 1}, config())
    assert "vegetarian" in model.system


class TestOddRuns:
    def test_an_empty_thread_id_is_no_session(self, memory):
        app = graph(memory, call(Model())).compile()
        app.invoke(said("I'm a vegetarian."), {"configurable": {"user_id": "u", "thread_id": "", "agent_id": ""}})
        assert len(memory.get_all(user_id="u")) == 1

    def test_an_unusable_thread_id_does_not_fail_the_turn(self, memory):
        model = Model()
        graph(memory, call(model)).compile().invoke(said("I'm a vegetarian."), config(thread_id="x" * 600))
        assert model.system == SYSTEM

    def test_a_thread_without_a_users_message_is_left_alone(self, memory, tmp_path):
        other = recall_node(Memory(InMemoryStore()))
        model = Model()
        graph(memory, call(model)).compile().invoke({"messages": [HumanMessage("hi", name="bob")]}, config())
        assert model.system == SYSTEM
        assert other is not None

    def test_a_channel_of_another_meaning_is_a_clear_error(self, memory):
        class Taken(TypedDict):
            messages: Annotated[list[Any], add_messages]
            memories: list[str]

        app = graph(memory, call(Model()), Taken).compile()
        with pytest.raises(InvalidInput, match="memories"):
            app.invoke({**said("I'm a vegetarian."), "memories": ["mine"]}, config())

    def test_two_memories_in_one_graph_both_recall_and_learn(self, memory):
        second = Memory(InMemoryStore())
        builder = StateGraph(MemoryState)
        for name, node in (
            ("r1", recall_node(memory)), ("r2", recall_node(second)),
            ("m1", remember_node(memory)), ("m2", remember_node(second)),
        ):  # fmt: skip
            builder.add_node(name, node)
        for start, end in ((START, "r1"), ("r1", "r2"), ("r2", "m1"), ("m1", "m2")):
            builder.add_edge(start, end)
        builder.compile().invoke(said("I'm a vegetarian."), config())
        assert [len(m.get_all(user_id="u")) for m in (memory, second)] == [1, 1]

    def test_plain_message_dicts_in_state_are_understood(self, memory):
        class Plain(TypedDict):
            messages: list[Any]
            memories: dict[str, Any]

        model = Model()
        app = graph(memory, lambda s: {"messages": [*s["messages"], model.invoke(prompt_with_memories(s))]}, Plain)
        app.compile().invoke({"messages": [{"role": "user", "content": "I'm a vegetarian."}]}, config())
        assert len(memory.get_all(user_id="u")) == 1

    @pytest.mark.parametrize("mode", ["messages", "updates", "values", "debug"])
    def test_a_node_of_any_name_does_not_stream_the_block(self, memory, mode):
        memory.add("I'm a vegetarian.", user_id="u")
        model = Model()
        wrapped = with_memories(model, memory)
        for name in ("memories", "with_memories", "recall"):
            builder = StateGraph(MessagesState)
            builder.add_node(name, lambda s: {"messages": [wrapped.invoke(s["messages"])]})
            builder.add_edge(START, name)
            streamed = list(builder.compile().stream(said("What do I eat?"), config(), stream_mode=mode))
            assert "vegetarian diet" in model.system
            assert "vegetarian diet" not in str(streamed)

    def test_messages_without_ids_are_recalled_for_each_time(self, memory):
        model = Model()
        wrapped = with_memories(model, memory)
        wrapped.invoke([("user", "What should I order?")], config())
        memory.add("I'm a vegetarian.", user_id="u")
        wrapped.invoke([("user", "What should I order?")], config())
        assert "vegetarian" in model.system

    def test_a_turn_erased_between_recall_and_remember_stays_erased(self, memory):
        def node(state: MemoryState) -> dict[str, Any]:
            memory.delete_all(user_id="u")
            return {"messages": [AIMessage("Gone.")]}

        graph(memory, node).compile().invoke(said("I'm a vegetarian."), config())
        assert memory.get_all(user_id="u", status="all") == []
