"""Real graphs on the checkpointer, each with memory wired in. What a memory says is never in a checkpoint's bytes."""

import asyncio
import operator
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from checkpoint.scanning import where
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send, interrupt
from support import Model

from langmem_adapter import Memory
from langmem_adapter.checkpoint.sqlite import SqliteCheckpointer
from langmem_adapter.langgraph import MemoryState, prompt_with_memories, recall_node, remember_node, with_memories

SECRET = "zanzibar-quoll-7731"
"""Part of a memory: it may stand in prompts, never in a checkpoint."""


@dataclass
class World:
    """A memory that knows the secret, a model, and a checkpointer in a file of its own."""

    memory: Memory
    saver: SqliteCheckpointer
    path: Path
    model: Model = field(default_factory=Model)

    @property
    def config(self) -> Any:
        return {"configurable": {"user_id": "u1", "thread_id": "t1"}}

    def at(self, config: Any) -> Any:
        """A config that history or `update_state` gave out, with the user in it."""
        return {"configurable": {"user_id": "u1", **config["configurable"]}}

    def call_model(self, state: MemoryState) -> dict[str, Any]:
        return {"messages": [self.model.invoke(prompt_with_memories(state, system="You help."))]}

    def remembering(self, schema: Any = MemoryState) -> StateGraph[Any, Any, Any, Any]:
        """recall → model → remember, with the edges at both ends left open."""
        graph: StateGraph[Any, Any, Any, Any] = StateGraph(schema)
        graph.add_node("recall", recall_node(self.memory))
        graph.add_node("model", self.call_model, input_schema=schema)
        graph.add_node("remember", remember_node(self.memory))
        graph.add_edge("recall", "model")
        graph.add_edge("model", "remember")
        return graph


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    memory = Memory(tmp_path / "memory.db")
    memory.add_fact(f"The user's passphrase animal is {SECRET}.", user_id="u1", source_id="crm-1")
    path = tmp_path / "threads" / "checkpoints.db"
    path.parent.mkdir()
    with memory, SqliteCheckpointer(path) as saver:
        built = World(memory, saver, path)
        yield built
        assert any(SECRET in str(prompt) for prompt in built.model.prompts), "control: the memory reached the model"
        assert where(path, SECRET) == []
        assert "quoll" not in str(list(saver.list(None)))


def said(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


def texts(graph: Any, config: Any) -> list[str]:
    return [m.text for m in graph.get_state(config).values["messages"]]


def plain(world: World) -> Any:
    graph = world.remembering()
    graph.add_edge(START, "recall")
    graph.add_edge("remember", END)
    return graph.compile(checkpointer=world.saver)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_conversation_goes_on_where_it_stopped(world: World, durability: Any) -> None:
    graph = plain(world)
    for i in range(3):
        graph.invoke(said(f"What is my passphrase animal? ({i})"), world.config, durability=durability)
    again = plain(World(world.memory, world.saver, world.path, world.model))
    assert len(texts(again, world.config)) == 6
    history = list(graph.get_state_history(world.config))
    assert len(history) == (3 if durability == "exit" else 15)
    assert next(len(s.values.get("messages", ())) for s in history) == 6


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_a_conversation_goes_on_asynchronously(world: World, durability: Any) -> None:
    graph = plain(world)
    for i in range(3):
        await graph.ainvoke(said(f"What is my passphrase animal? ({i})"), world.config, durability=durability)
    state = await graph.aget_state(world.config)
    assert len(state.values["messages"]) == 6
    assert [s async for s in graph.aget_state_history(world.config)] == list(graph.get_state_history(world.config))


def asking(world: World) -> Any:
    def confirm(state: MemoryState) -> dict[str, Any]:
        answer = interrupt({"question": "Go on?"})
        return {"messages": [HumanMessage(f"person said {answer}", name="u1")]}

    graph = world.remembering()
    graph.add_node("confirm", confirm)
    graph.add_edge(START, "confirm")
    graph.add_edge("confirm", "recall")
    graph.add_edge("remember", END)
    return graph.compile(checkpointer=world.saver)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_an_interrupt_waits_and_a_command_resumes_it_on_another_checkpointer(world: World, durability: Any) -> None:
    paused = asking(world).invoke(said("My passphrase animal?"), world.config, durability=durability)
    assert paused["__interrupt__"][0].value == {"question": "Go on?"}
    with SqliteCheckpointer(world.path) as other:
        graph = asking(World(world.memory, other, world.path, world.model))
        assert graph.get_state(world.config).interrupts[0].value == {"question": "Go on?"}
        graph.invoke(Command(resume="yes"), world.config, durability=durability)
        assert texts(graph, world.config)[:2] == ["My passphrase animal?", "person said yes"]
        assert graph.get_state(world.config).next == ()


async def test_an_interrupt_resumes_asynchronously(world: World) -> None:
    graph = asking(world)
    await graph.ainvoke(said("My passphrase animal?"), world.config)
    assert (await graph.aget_state(world.config)).next == ("confirm",)
    await graph.ainvoke(Command(resume="yes"), world.config)
    assert (await graph.aget_state(world.config)).next == ()


def test_static_breakpoints_stop_before_a_node(world: World) -> None:
    graph = world.remembering()
    graph.add_edge(START, "recall")
    graph.add_edge("remember", END)
    stopping = graph.compile(checkpointer=world.saver, interrupt_before=["model"])
    stopping.invoke(said("My passphrase animal?"), world.config)
    assert stopping.get_state(world.config).next == ("model",)
    stopping.invoke(None, world.config)
    assert stopping.get_state(world.config).next == ()


def outer_of(world: World, inner: Any) -> Any:
    outer: StateGraph[Any, Any, Any, Any] = StateGraph(MemoryState)
    outer.add_node("inner", inner)
    outer.add_node("after", lambda state: {"messages": [AIMessage("after")]})
    outer.add_edge(START, "inner")
    outer.add_edge("inner", "after")
    outer.add_edge("after", END)
    return outer.compile(checkpointer=world.saver)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_subgraph_pauses_and_resumes(world: World, durability: Any) -> None:
    def confirm(state: MemoryState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"confirmed: {interrupt('sure?')}")]}

    inner = world.remembering()
    inner.add_node("confirm", confirm)
    inner.add_edge(START, "recall")
    inner.add_edge("remember", "confirm")
    inner.add_edge("confirm", END)
    graph = outer_of(world, inner.compile())
    graph.invoke(said("My passphrase animal?"), world.config, durability=durability)
    assert graph.get_state(world.config, subgraphs=True).tasks[0].state.next == ("confirm",)
    graph.invoke(Command(resume="yes"), world.config, durability=durability)
    assert texts(graph, world.config)[-2:] == ["confirmed: yes", "after"]
    assert len(world.model.prompts) == 1, "the model is not asked again after the pause"


def test_a_subgraph_with_its_own_thread_remembers_between_calls(world: World) -> None:
    inner = world.remembering()
    inner.add_edge(START, "recall")
    inner.add_edge("remember", END)
    graph = outer_of(world, inner.compile(checkpointer=True))
    for i in range(2):
        graph.invoke(said(f"My passphrase animal? {i}"), world.config)
    spaces = {c.config["configurable"]["checkpoint_ns"] for c in world.saver.list(world.config)}
    assert spaces == {"", "inner"}
    assert len(texts(graph, world.config)) == 6


class Gathered(MemoryState):
    found: Annotated[list[str], operator.add]


def test_parallel_nodes_and_sends_write_in_order(world: World) -> None:
    def fan_out(state: Gathered) -> list[Send]:
        return [Send("look", {"messages": state["messages"], "at": i}) for i in range(5)]

    def look(given: dict[str, Any]) -> dict[str, Any]:
        return {"found": [f"{given['at']}"], "messages": [AIMessage(f"looked at {given['at']}")]}

    graph = world.remembering(Gathered)
    graph.add_node("look", look)
    graph.add_node("side", lambda state: {"found": ["side"]})
    graph.add_edge(START, "recall")
    graph.add_edge(START, "side")
    graph.add_conditional_edges("remember", fan_out, ["look"])
    graph.add_edge("look", END)
    compiled = graph.compile(checkpointer=world.saver)
    compiled.invoke(said("My passphrase animal?"), world.config)
    assert compiled.get_state(world.config).values["found"] == ["side", "0", "1", "2", "3", "4"]
    assert texts(compiled, world.config)[2:] == [f"looked at {i}" for i in range(5)]


def test_a_failed_parallel_task_is_retried_without_repeating_the_others(world: World) -> None:
    calls: list[str] = []

    def steady(state: Gathered) -> dict[str, Any]:
        calls.append("steady")
        return {"found": ["steady"]}

    def failing(state: Gathered) -> dict[str, Any]:
        calls.append("failing")
        if calls.count("failing") == 1:
            raise RuntimeError("first time")
        return {"found": ["failing"]}

    graph = world.remembering(Gathered)
    graph.add_node("steady", steady)
    graph.add_node("failing", failing)
    graph.add_edge(START, "recall")
    graph.add_edge("remember", "steady")
    graph.add_edge("remember", "failing")
    compiled = graph.compile(checkpointer=world.saver)
    with pytest.raises(RuntimeError, match="first time"):
        compiled.invoke(said("My passphrase animal?"), world.config)
    compiled.invoke(None, world.config)
    assert sorted(calls) == ["failing", "failing", "steady"]
    assert sorted(compiled.get_state(world.config).values["found"]) == ["failing", "steady"]


def test_time_travel_forks_and_updates_leave_the_past_as_it_was(world: World) -> None:
    graph = plain(world)
    for text in ("one: my passphrase animal?", "two"):
        graph.invoke(said(text), world.config)
    before = list(graph.get_state_history(world.config))
    past = next(s for s in before if s.next == ("recall",) and s.values["messages"][-1].text.startswith("one"))

    first = past.values["messages"][0]
    forked = graph.update_state(past.config, {"messages": [HumanMessage("one, but edited", id=first.id)]})
    graph.invoke(None, world.at(forked))
    assert texts(graph, world.config)[0] == "one, but edited"
    assert len(texts(graph, world.config)) == 2

    replayed = graph.invoke(None, world.at(past.config))
    assert [m.text for m in replayed["messages"]] == ["one: my passphrase animal?", "Understood."]
    after = list(graph.get_state_history(world.config))
    assert [s for s in after if s.config in [b.config for b in before]] == before
    assert graph.get_state(before[0].config).values == before[0].values


def test_edits_in_the_middle_and_removals_are_seen(world: World) -> None:
    graph = plain(world)
    for i in range(4):
        graph.invoke(said(f"{i}: my passphrase animal?"), world.config)
    messages = graph.get_state(world.config).values["messages"]
    graph.update_state(world.config, {"messages": [HumanMessage("edited", id=messages[2].id)]})
    graph.update_state(world.config, {"messages": [RemoveMessage(id=messages[4].id)]})
    expected = [m.text for m in messages]
    expected[2] = "edited"
    del expected[4]
    assert texts(graph, world.config) == expected
    assert [s.values["messages"] for s in graph.get_state_history(world.config)][2] == messages


def test_a_message_changed_in_place_is_stored_as_it_is_now(world: World) -> None:
    def change(state: MemoryState) -> dict[str, Any]:
        state["messages"][0].content = "changed in place"
        return {"messages": [AIMessage("done")]}

    graph = world.remembering()
    graph.add_node("change", change)
    graph.add_edge(START, "recall")
    graph.add_edge("remember", "change")
    compiled = graph.compile(checkpointer=world.saver)
    compiled.invoke(said("my passphrase animal?"), world.config)
    assert texts(compiled, world.config) == ["changed in place", "Understood.", "done"]
    first = [s.values["messages"][0].text for s in compiled.get_state_history(world.config) if s.next == ("model",)]
    assert first == ["my passphrase animal?"]


class DeltaState(TypedDict):
    messages: Annotated[list[Any], DeltaChannel(lambda old, new: add_all(old, new), snapshot_frequency=3)]
    memories: Any


def add_all(old: list[Any], new: list[Any]) -> list[Any]:
    """Reducer of the delta channel: each write is a list of messages."""
    result = list(old)
    for write in new:
        result = add_messages(result, write)  # type: ignore[assignment]
    return result


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("pruned", [False, True])
def test_a_delta_channel_is_rebuilt_also_after_pruning(world: World, durability: Any, pruned: bool) -> None:
    graph = world.remembering(DeltaState)
    graph.add_edge(START, "recall")
    graph.add_edge("remember", END)
    compiled = graph.compile(checkpointer=world.saver)
    expected: list[str] = []
    for i in range(8):
        question = HumanMessage(f"{i}: my passphrase animal?", id=str(uuid.uuid4()))
        compiled.invoke({"messages": [question]}, world.config, durability=durability)
        expected += [question.text, "Understood."]
        if pruned:
            world.saver.prune(["t1"])
        assert texts(compiled, world.config) == expected
    if pruned:
        stored = len(list(world.saver.list(world.config)))
        assert stored < 20, "what is older than the last snapshot is gone"


def test_the_functional_api_keeps_what_it_saved(world: World) -> None:
    model = with_memories(world.model, world.memory)

    @task
    def answer(text: str) -> str:
        return model.invoke([HumanMessage(text)]).text

    @entrypoint(checkpointer=world.saver)
    def work(text: str, *, previous: Any = None) -> Any:
        reply = answer(text).result()
        approved = interrupt("approve?") if text.endswith("!") else "not asked"
        count = (previous or 0) + 1
        return entrypoint.final(value=f"{reply} {approved} {count}", save=count)

    assert work.invoke("my passphrase animal?", world.config) == "Understood. not asked 1"
    work.invoke("my passphrase animal!", world.config)
    assert work.invoke(Command(resume="yes"), world.config) == "Understood. yes 2"
    assert len(world.model.prompts) == 2, "a finished task is not run again"


async def test_many_threads_at_once(world: World) -> None:
    graph = plain(world)

    async def talk(i: int) -> int:
        config = {"configurable": {"user_id": "u1", "thread_id": f"t{i}"}}
        for _ in range(3):
            await graph.ainvoke(said("my passphrase animal?"), config)
        return len((await graph.aget_state(config)).values["messages"])

    assert await asyncio.gather(*(talk(i) for i in range(12))) == [6] * 12


def test_memory_and_checkpoints_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "all.db"
    with Memory(path) as memory, SqliteCheckpointer(path) as saver:
        memory.add_fact("The user likes quolls.", user_id="u1", source_id="crm-1")
        world = World(memory, saver, path)
        graph = plain(world)
        graph.invoke(said("What do I like?"), world.config)
        assert "quolls" in world.model.system
        assert len(texts(graph, world.config)) == 2
        saver.delete_thread("t1")
        assert [r.content for r in memory.get_all(user_id="u1")] == ["The user likes quolls."]
    with Memory(path) as memory, SqliteCheckpointer(path) as saver:
        assert list(saver.list(None)) == []
        assert len(memory.get_all(user_id="u1")) == 1
