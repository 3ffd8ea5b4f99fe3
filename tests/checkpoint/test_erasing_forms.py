"""Whatever a state holds, its messages can be erased; and what they said is gone in whatever form it stood."""

import json
from pathlib import Path
from typing import Any

import pytest
from checkpoint.making import config, put, talk, values
from checkpoint.scanning import where
from checkpoint.test_lives import chat
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt

from langmem_adapter import Memory
from langmem_adapter.checkpoint.sqlite import SqliteCheckpointer
from langmem_adapter.checkpoint.tombstones import ERASED

NEEDLE = "Zanzibar-Quoll lives at 7 Elm Row"

PAIRS = [
    [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:x"}}],
    [["a", "b"], ["c", "d"]],
    [None, "x"],
    [1, 2],
    [b"x", "y"],
]


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_pairs_of_anything_can_stand_beside_an_erased_message(saver: SqliteCheckpointer, pair: Any) -> None:
    blocks = [AIMessage(pair, id="blocks")] if isinstance(pair[0], dict) else []
    place = put(saver, messages=[HumanMessage(NEEDLE, id="v"), *blocks], rows=pair)
    saver.erase_messages("t1", ["v"])
    kept = {"messages": [HumanMessage(ERASED, id="v"), *blocks], "rows": pair}
    assert values(saver, place) == kept
    saver.put_writes(place, [("rows", pair)], "task")
    assert values(saver, put(saver, place, **kept)) == kept


CALL = {"id": "c1", "type": "function", "function": {"name": "mail", "arguments": json.dumps({"to": NEEDLE})}}
BLOCKS = [{"type": "text", "text": NEEDLE}, {"type": "image_url", "image_url": {"url": "data:x"}}]


@pytest.mark.parametrize("key", [None, b"0123456789abcdef"], ids=["plain", "encrypted"])
@pytest.mark.parametrize(
    "given",
    [
        ("user", BLOCKS[:1]),
        {"role": "user", "content": BLOCKS},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        HumanMessage(BLOCKS),
        HumanMessage(f'{NEEDLE}, "quoted"\nand more'),
    ],
    ids=["pair", "dict", "call", "call without content", "message", "quotes"],
)
def test_input_in_any_form_is_erased_with_its_message(path: Path, given: Any, key: bytes | None) -> None:
    with SqliteCheckpointer(path, encryption_key=key) as saver:
        out = chat(saver).invoke({"messages": [given]}, config())
        assert bool(where(path, NEEDLE)) is (key is None), "control"
        assert saver.erase_messages("t1", [out["messages"][0].id]).state == "done"
        assert where(path, NEEDLE) == []
        assert NEEDLE not in str(list(saver.list(None)))


class Held(MessagesState):
    q: str
    last: Any


def in_all_forms(message: Any) -> list[Any]:
    """What a node may make of a message it was given."""
    text = message.text
    return [
        text,
        f"Did you say: {text}?",
        message.model_copy(update={"id": None}),
        HumanMessage(text),
        {text: 1, f"{text}!": {"deep": [text]}},
        [["user", text], ("user", [{"type": "text", "text": text}])],
        message.content,
        text.encode(),
        json.dumps({"said": text}),
        {"role": "user", "content": message.content},
    ]


@pytest.mark.parametrize("content", [NEEDLE, f'{NEEDLE} "é"\n', BLOCKS], ids=["text", "quotes", "blocks"])
@pytest.mark.parametrize("during", [False, True], ids=["after the run", "during the run"])
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_words_are_erased_in_every_form_and_stay_away(path: Path, durability: Any, during: bool, content: Any) -> None:
    with SqliteCheckpointer(path) as saver:

        def work(state: Held) -> Any:
            message = state["messages"][0]
            if during:
                saver.erase_messages("t1", [message.id])
            return {"q": message.text, "last": in_all_forms(message)}

        def later(state: Held) -> Any:
            message = state["messages"][0]
            reply = AIMessage(f"You said: {message.text}")
            return Command(update={"q": "done", "messages": [reply]}, goto=Send("asks", {"given": state["last"]}))

        def asks(state: Any) -> Any:
            interrupt({"question": state["given"]})

        graph: StateGraph[Any, Any, Any, Any] = StateGraph(Held)
        for node in (work, later, asks):
            graph.add_node(node.__name__, node)
        graph.add_edge(START, "work")
        graph.add_edge("work", "later")
        app = graph.compile(checkpointer=saver)
        if durability == "exit":  # a thread that is not there yet has nothing to erase
            app.update_state(config(), {"messages": [HumanMessage(content, id="h1")], "q": "x"}, as_node="asks")
            app.invoke({"messages": []}, config(), durability=durability)
        else:
            app.invoke({"messages": [HumanMessage(content, id="h1")]}, config(), durability=durability)
        if not during:
            assert where(path, NEEDLE), "control"
            assert saver.erase_messages("t1", ["h1"]).state == "done"
        assert where(path, NEEDLE) == []
        assert NEEDLE not in str(list(saver.list(None)))
        assert app.get_state(config()).values["messages"][0].text == ERASED
        assert app.get_state(config()).next == ("asks",)


def test_an_error_that_tells_the_text_is_emptied(saver: SqliteCheckpointer, path: Path) -> None:
    def fails(state: MessagesState) -> Any:
        raise ValueError(f"cannot parse {state['messages'][0].text}")

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(MessagesState)
    graph.add_node("fails", fails)
    graph.add_edge(START, "fails")
    app = graph.compile(checkpointer=saver)
    with pytest.raises(ValueError, match="cannot parse"):
        app.invoke({"messages": [HumanMessage(f'{NEEDLE}\'s "é"\n', id="h1")]}, config())
    assert where(path, NEEDLE), "control"
    assert saver.erase_messages("t1", ["h1"]).state == "done"
    assert where(path, NEEDLE) == []


def test_new_input_may_say_it_again(saver: SqliteCheckpointer) -> None:
    class Said(MessagesState):
        q: str

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(Said)
    graph.add_node("echo", lambda state: {"q": state["messages"][-1].text})
    graph.add_edge(START, "echo")
    app = graph.compile(checkpointer=saver)
    app.invoke({"messages": [HumanMessage(NEEDLE, id="h1")]}, config())
    saver.erase_messages("t1", ["h1"])
    for durability in ("sync", "async"):
        app.invoke({"messages": [HumanMessage(NEEDLE)]}, config(), durability=durability)
        found = app.get_state(config()).values
        assert (found["messages"][0].text, found["messages"][-1].text, found["q"]) == (ERASED, NEEDLE, NEEDLE)


def test_an_erased_answer_is_still_a_valid_message(saver: SqliteCheckpointer) -> None:
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    put(saver, messages=[AIMessage(NEEDLE, id="v", usage_metadata=usage, name="bot")])
    saver.erase_messages("t1", ["v"])
    (found,) = values(saver, config())["messages"]
    assert found == AIMessage(ERASED, id="v")
    assert AIMessage.model_validate(found.model_dump()) == found


def test_lists_are_known_again_after_an_erasure(saver: SqliteCheckpointer) -> None:
    """So that a thread from which something was erased once is no slower for the rest of its life."""
    place = put(saver, messages=talk(5))
    saver.erase_messages("t1", ["m1"])
    place = put(saver, place, {"source": "input"}, messages=talk(6))
    put(saver, place, messages=talk(7))
    with saver._connections.reading() as conn:
        (thread,) = conn.execute("SELECT id FROM ckpt_threads").fetchone()
    assert [len(known.names) for known in saver._writer.cache._threads[thread].lists] == [7]
    assert [m.text for m in values(saver, config())["messages"]][:2] == [talk(1)[0].text, ERASED]


def test_forgetting_a_source_in_a_shared_file_is_done_when_it_is(tmp_path: Path) -> None:
    """The store's search comes before the thread is deleted: what stands in its live rows is not the store's."""
    path = tmp_path / "memory.db"
    with SqliteCheckpointer(path) as saver:
        memory = Memory(str(path), checkpointer=saver)
        said = "I work at the Zanzibar Quoll Company."
        memory.add(said, user_id="u1", session_id="t1")
        put(saver, messages=[HumanMessage(said)])
        receipt = memory.forget_source("t1", user_id="u1")
        assert {p.name: p.state for p in receipt.places}["files"] == "done"
        assert {p.name: p.state for p in receipt.places}["checkpoints"] == "done"
        assert where(path, "Zanzibar Quoll Company") == []
        memory.close()
