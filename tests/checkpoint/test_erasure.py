"""Erased is erased: no byte left, in no copy, and no run brings it back."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from checkpoint.making import config, ids, put, rows, talk, values
from checkpoint.scanning import where
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Send, interrupt

from langmem_adapter.checkpoint.errors import ThreadDeleted
from langmem_adapter.checkpoint.sqlite import SqliteCheckpointer
from langmem_adapter.checkpoint.tombstones import ERASED
from langmem_adapter.errors import InvalidInput, StoreError

NEEDLE = "Zanzibar-Ünïque-Quoll lives at 7 Elm Row"
KEY = b"0123456789abcdef"


def fill(saver: SqliteCheckpointer, thread: str = "t1") -> Any:
    """A thread with the needle in messages, values, writes, metadata and a subgraph, among many others."""
    place = None
    for i in range(40):
        said = [*talk(i), HumanMessage(f"{NEEDLE} {i}", id=f"needle{i}")]
        place = put(
            saver, place or config(thread), {"note": f"{NEEDLE} in metadata"}, messages=said, text=f"{NEEDLE} {i}"
        )
        saver.put_writes(place, [("large", [NEEDLE, "x" * 500 + NEEDLE]), ("small", NEEDLE)], f"task{i}")
    put(saver, config(thread, ns="sub:1"), state={"nested": {"deep": NEEDLE}})
    return place


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
def test_a_deleted_thread_leaves_no_byte(path: Path, key: bytes | None) -> None:
    with SqliteCheckpointer(path, encryption_key=key) as saver:
        put(saver, config("other"), messages=talk(100, "other thread"))
        fill(saver)
        assert bool(where(path, NEEDLE)) is (key is None), "control"
        receipt = saver.erase_thread("t1")
        assert (receipt.state, receipt.items) == ("done", 41)
        assert receipt.bytes_searched > 0
        assert where(path, NEEDLE) == []
        assert saver.get_tuple(config()) is None
        assert values(saver, config("other"))["messages"] == talk(100, "other thread")
    assert where(path, NEEDLE) == []


def test_the_thread_id_goes_too(saver: SqliteCheckpointer, path: Path) -> None:
    put(saver, config("someone@example.org"), x=1)
    assert where(path, "someone@example.org")
    saver.delete_thread("someone@example.org")
    assert where(path, "someone@example.org") == []


async def test_the_async_twin_erases_as_well(saver: SqliteCheckpointer, path: Path) -> None:
    fill(saver)
    await saver.adelete_thread("t1")
    assert where(path, NEEDLE) == []


def test_a_reader_in_the_way_is_reported_and_maintain_completes(saver: SqliteCheckpointer, path: Path) -> None:
    fill(saver)
    with SqliteCheckpointer(path) as other:
        with other._connections.reading() as conn:
            conn.execute("SELECT count(*) FROM ckpt_elements").fetchone()
            receipt = saver.erase_thread("t1", wait=0.1)
            assert (receipt.state, "reading an older state" in receipt.reason) == ("pending", True)
        assert saver.maintain().erasure == "done"
    assert where(path, NEEDLE) == []


def test_deleting_says_so_if_bytes_may_be_left(saver: SqliteCheckpointer, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(saver)
    with saver._connections.reading() as conn:
        conn.execute("SELECT count(*) FROM ckpt_elements").fetchone()
        original = saver.erase_thread
        monkeypatch.setattr(saver, "erase_thread", lambda t: original(t, wait=0.1))
        with pytest.raises(StoreError, match=r"maintain\(\)"):
            saver.delete_thread("t1")
    saver.maintain()


# ------------------------------------------------------------------ late writes


def test_late_writes_to_a_deleted_thread_are_refused(saver: SqliteCheckpointer, path: Path) -> None:
    from langgraph.checkpoint.base import empty_checkpoint

    place = put(saver, messages=talk(3))
    made_before = empty_checkpoint()
    saver.delete_thread("t1")
    with pytest.raises(ThreadDeleted, match="'t1' was deleted"):
        put(saver, place, messages=[HumanMessage(NEEDLE)])
    with pytest.raises(ThreadDeleted):
        saver.put_writes(place, [("x", NEEDLE)], "task")
    with pytest.raises(ThreadDeleted):
        saver.put(config(), made_before, {}, {})
    assert list(saver.list(None)) == []
    assert where(path, NEEDLE) == []
    assert rows(saver, "ckpt_threads") == 0


def test_a_new_run_may_use_the_id_again_but_the_old_one_may_not(saver: SqliteCheckpointer) -> None:
    old = put(saver, messages=talk(3))
    saver.delete_thread("t1")
    new = put(saver, config(), messages=talk(1))
    put(saver, new, messages=talk(2))
    with pytest.raises(ThreadDeleted):
        put(saver, old, messages=talk(4))
    with pytest.raises(ThreadDeleted):
        saver.put_writes(old, [("x", 1)], "task")
    assert len(list(saver.list(config()))) == 2


def test_a_running_graph_cannot_resurrect_its_thread(saver: SqliteCheckpointer, path: Path) -> None:
    def deletes(state: MessagesState) -> dict[str, Any]:
        saver.delete_thread("t1")
        return {"messages": [AIMessage(f"reply with {NEEDLE}")]}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(MessagesState)
    graph.add_node("first", deletes)
    graph.add_node("second", lambda state: {"messages": [AIMessage("more")]})
    graph.add_edge(START, "first")
    graph.add_edge("first", "second")
    graph.add_edge("second", END)
    compiled = graph.compile(checkpointer=saver)
    for durability in ("sync", "async"):
        with pytest.raises(ThreadDeleted):
            compiled.invoke({"messages": [HumanMessage("hello")]}, config(), durability=durability)
        assert list(saver.list(None)) == []
        assert where(path, NEEDLE) == []


def test_a_graph_starts_anew_after_deletion_in_every_mode(saver: SqliteCheckpointer) -> None:
    inner: StateGraph[Any, Any, Any, Any] = StateGraph(MessagesState)
    inner.add_node("reply", lambda state: {"messages": [AIMessage("reply")]})
    inner.add_edge(START, "reply")
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(MessagesState)
    graph.add_node("inner", inner.compile())
    graph.add_edge(START, "inner")
    compiled = graph.compile(checkpointer=saver)
    for durability in ("sync", "async", "exit") * 3:
        for i in range(2):
            compiled.invoke({"messages": [HumanMessage("hello")]}, config(), durability=durability)
            assert len(compiled.get_state(config()).values["messages"]) == 2 * (i + 1)
        saver.delete_thread("t1")


# ------------------------------------------------------------------ single messages

VICTIM = HumanMessage(NEEDLE, id="v", name="someone", additional_kwargs={"extra": f"{NEEDLE} again"})


def everywhere(saver: SqliteCheckpointer, thread: str = "t1") -> Any:
    """The victim with its id and without, in every place a message can be."""
    bare = VICTIM.model_copy(update={"id": None})
    said = [*talk(3), VICTIM, AIMessage("I see.", id="reply")]
    place = put(saver, config(thread), messages=said[:3], __start__={"messages": [bare]})
    saver.put_writes(place, [("messages", [bare]), ("messages", bare)], "start")
    place = put(saver, place, {"said": NEEDLE}, messages=said[:4], last=VICTIM, text=NEEDLE)
    saver.put_writes(place, [("messages", VICTIM)], "task")
    place = put(saver, place, messages=said, __pregel_tasks=[Send("n", {"messages": [VICTIM, bare], "x": 1})])
    for given in ({"role": "user", "content": NEEDLE}, ("user", NEEDLE), NEEDLE):
        saver.put_writes(place, [("__start__", {"messages": [given]})], f"as {type(given).__name__}")
    saver.put_writes(place, [("padded", {"messages": [VICTIM], "pad": "p" * 600, "copy": NEEDLE})], "big")
    return place


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
def test_an_erased_message_is_a_tombstone_everywhere(path: Path, key: bytes | None) -> None:
    with SqliteCheckpointer(path, encryption_key=key) as saver:
        place = everywhere(saver)
        saver.copy_thread("t1", "copy")
        fork = put(saver, list(saver.list(config()))[1].config, messages=[VICTIM, AIMessage("fork", id="f")])
        assert NEEDLE in str(list(saver.list(None))), "control"
        receipt = saver.erase_messages("t1", ["v"])
        assert (receipt.state, receipt.shared) == ("done", 0)
        assert receipt.items > 10
        assert where(path, NEEDLE) == []
        everything = str(list(saver.list(None)))
        assert NEEDLE not in everything
        assert "someone" not in everything
        tombstone = HumanMessage(ERASED, id="v")
        assert values(saver, place)["messages"] == [*talk(3), tombstone, AIMessage("I see.", id="reply")]
        assert values(saver, fork)["messages"][0] == tombstone
        copied = values(saver, config("copy"))
        assert copied["messages"][3] == tombstone
        assert copied["__pregel_tasks"][0].arg["messages"] == [tombstone, HumanMessage(ERASED)]
    with SqliteCheckpointer(path, encryption_key=key) as saver:
        assert NEEDLE not in str(list(saver.list(None)))


def test_erasing_in_a_copy_reaches_the_original(saver: SqliteCheckpointer, path: Path) -> None:
    everywhere(saver)
    saver.copy_thread("t1", "copy")
    saver.erase_messages("copy", ["v"])
    assert where(path, NEEDLE) == []


def test_tool_calls_keep_their_partners(saver: SqliteCheckpointer, path: Path) -> None:
    call = {"name": "look", "args": {"query": NEEDLE}, "id": "c1", "type": "tool_call"}
    said = [AIMessage("", id="a", tool_calls=[call]), ToolMessage(NEEDLE, tool_call_id="c1", name="look", id="t")]
    put(saver, messages=said)
    saver.erase_messages("t1", ["a", "t"])
    assert where(path, NEEDLE) == []
    assert values(saver, config())["messages"] == [
        AIMessage(ERASED, id="a", tool_calls=[{**call, "args": {}}]),
        ToolMessage(ERASED, tool_call_id="c1", name="look", id="t"),
    ]


def test_a_live_run_cannot_bring_it_back(saver: SqliteCheckpointer, path: Path) -> None:
    place = everywhere(saver)
    saver.erase_messages("t1", ["v"])
    place = put(saver, place, messages=[*talk(3), VICTIM], last=[VICTIM], task=[Send("n", {"m": VICTIM})])
    saver.put_writes(place, [("messages", [VICTIM])], "late")
    edited = VICTIM.model_copy(update={"content": f"edited {NEEDLE}"})
    put(saver, place, messages=[edited])
    assert where(path, NEEDLE) == []
    assert values(saver, config())["messages"] == [HumanMessage(ERASED, id="v")]


def test_late_copies_without_an_id_are_refused_but_later_words_are_not(saver: SqliteCheckpointer, path: Path) -> None:
    place = everywhere(saver)
    saver.erase_messages("t1", ["v"])
    bare = VICTIM.model_copy(update={"id": None})
    saver.put_writes(place, [("messages", [bare]), ("__start__", {"messages": [("user", NEEDLE)]})], "late")
    assert where(path, NEEDLE) == []
    late = put(saver, place, messages=[HumanMessage(NEEDLE, id="new")], __start__={"messages": [bare]})
    assert where(path, NEEDLE) == []
    new = {"messages": [HumanMessage(NEEDLE, id="new")], "__start__": {"messages": [bare]}}
    said_again = put(saver, late, {"source": "input"}, **new)
    assert values(saver, said_again)["messages"] == [HumanMessage(NEEDLE, id="new")]
    assert values(saver, said_again)["__start__"] == {"messages": [bare]}


def test_an_erased_message_can_still_be_removed_from_the_state(saver: SqliteCheckpointer) -> None:
    place = put(saver, messages=[VICTIM, *talk(2)])
    saver.put_writes(place, [("messages", [RemoveMessage(id="v")])], "before")
    saver.erase_messages("t1", ["v"])
    saver.put_writes(place, [("messages", [RemoveMessage(id="v")])], "later")
    found = saver.get_tuple(config())
    assert found is not None
    assert found.pending_writes == [(t, "messages", [RemoveMessage(id="v")]) for t in ("before", "later")]


def test_short_words_of_others_stay(saver: SqliteCheckpointer) -> None:
    said = [HumanMessage("yes", id="a"), HumanMessage("yes", id="b")]
    place = put(saver, messages=said, answer="yes", flags=["yes"])
    saver.erase_messages("t1", ["a"])
    assert values(saver, place) == {
        "messages": [HumanMessage(ERASED, id="a"), said[1]],
        "answer": "yes",
        "flags": ["yes"],
    }


def test_quotes_go_and_what_other_threads_say_is_reported(saver: SqliteCheckpointer) -> None:
    put(saver, messages=[VICTIM, AIMessage(f"You said: {NEEDLE}!", id="quote")])
    put(saver, config("other"), messages=[HumanMessage(NEEDLE, id="o")])
    receipt = saver.erase_messages("t1", ["v"])
    assert (receipt.state, receipt.shared > 0) == ("done", True)
    assert values(saver, config())["messages"][1].text == f"You said: {ERASED}!"
    assert values(saver, config("other"))["messages"][0].text == NEEDLE


def test_short_texts_that_other_messages_say_are_pending(saver: SqliteCheckpointer, path: Path) -> None:
    said = [HumanMessage("Thanks a lot!", id="a"), AIMessage("You said: Thanks a lot!", id="b")]
    place = put(saver, messages=said, note="Thanks a lot!")
    receipt = saver.erase_messages("t1", ["a"])
    assert (receipt.state, "1 other places" in receipt.reason) == ("pending", True)
    assert values(saver, place) == {"messages": [HumanMessage(ERASED, id="a"), said[1]], "note": ERASED}
    assert saver.erase_messages("t1", ["b"]).state == "done"
    assert where(path, "Thanks a lot!") == []


def test_unknown_threads_and_messages_are_no_error(saver: SqliteCheckpointer) -> None:
    put(saver, messages=talk(2))
    assert saver.erase_messages("t1", ["nobody"]).items == 0
    assert saver.erase_messages("nowhere", ["m1"]).items == 0
    assert values(saver, config())["messages"] == talk(2)
    with pytest.raises(InvalidInput, match="list of ids"):
        saver.erase_messages("t1", "m1")


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_a_paused_thread_resumes_after_erasure(saver: SqliteCheckpointer, path: Path, durability: Any) -> None:
    from langgraph.types import Command

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"{len(state['messages'])} heard, {interrupt('ok?')}")]}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(MessagesState)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", END)
    compiled = graph.compile(checkpointer=saver)
    await compiled.ainvoke({"messages": [("user", NEEDLE)]}, config(), durability=durability)
    (message,) = (await compiled.aget_state(config())).values["messages"]
    assert where(path, NEEDLE), "control"
    await saver.aerase_messages("t1", [message.id])
    assert where(path, NEEDLE) == []
    await compiled.ainvoke(Command(resume="yes"), config(), durability=durability)
    assert [m.text for m in (await compiled.aget_state(config())).values["messages"]] == [ERASED, "1 heard, yes"]
    assert NEEDLE not in str([s async for s in saver.alist(None)])
    assert where(path, NEEDLE) == []


async def test_erasing_during_a_run_holds(saver: SqliteCheckpointer, path: Path) -> None:
    erased = asyncio.Event()

    async def waits(state: MessagesState) -> dict[str, Any]:
        await saver.aerase_messages("t1", [state["messages"][0].id])
        erased.set()
        return {"messages": [AIMessage("reply")]}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(MessagesState)
    graph.add_node("waits", waits)
    graph.add_node("after", lambda state: {"messages": [AIMessage("after")]})
    graph.add_edge(START, "waits")
    graph.add_edge("waits", "after")
    compiled = graph.compile(checkpointer=saver)
    await compiled.ainvoke({"messages": [HumanMessage(NEEDLE)]}, config())
    assert erased.is_set()
    assert [m.text for m in (await compiled.aget_state(config())).values["messages"]] == [ERASED, "reply", "after"]
    assert where(path, NEEDLE) == []


def test_pruning_by_strategy_delete_is_an_erasure(saver: SqliteCheckpointer, path: Path) -> None:
    fill(saver)
    saver.prune(["t1"], strategy="delete")
    assert where(path, NEEDLE) == []
    with pytest.raises(InvalidInput, match="strategy"):
        saver.prune(["t1"], strategy="some")


# ------------------------------------------------------------------ retention


def aged(saver: SqliteCheckpointer, place: Any, seconds: int) -> None:
    with saver._connections.writing() as conn:
        conn.execute(
            "UPDATE ckpt_checkpoints SET saved = saved - ? WHERE id = ?",
            (seconds, place["configurable"]["checkpoint_id"]),
        )


def test_keep_last_is_applied_by_maintain(path: Path) -> None:
    with SqliteCheckpointer(path, keep_last=3) as saver:
        places = [put(saver, messages=talk(i + 1)) for i in range(10)]
        put(saver, config(ns="sub:1"), x=1)
        done = saver.maintain()
        assert (done.checkpoints, done.threads, done.erasure) == (7, 0, "done")
        assert ids(list(saver.list(config()))) == [p["configurable"]["checkpoint_id"] for p in places[:6:-1]]
        assert len(list(saver.list(config(ns="sub:1")))) == 1
        assert values(saver, config())["messages"] == talk(10)


async def test_max_age_thins_threads_and_erases_idle_ones(path: Path) -> None:
    with SqliteCheckpointer(path, max_age=3600) as saver:
        idle = put(saver, config("idle"), messages=[HumanMessage(NEEDLE)])
        old, new = put(saver, messages=talk(1)), put(saver, messages=talk(2))
        for place in (idle, old):
            aged(saver, place, 7200)
        done = await saver.amaintain()
        assert (done.threads, done.checkpoints) == (1, 1)
        assert ids(list(saver.list(None))) == [new["configurable"]["checkpoint_id"]]
        assert where(path, NEEDLE) == []


@pytest.mark.parametrize("policy", [{"keep_last": 0}, {"max_age": 0}, {"max_age": -1}])
def test_policies_that_would_keep_nothing_are_refused(path: Path, policy: Any) -> None:
    with pytest.raises(InvalidInput, match=next(iter(policy))):
        SqliteCheckpointer(path, **policy)
