"""Who said a message, and what of it is theirs."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage

from langmem_adapter.errors import InvalidInput
from langmem_adapter.extraction.origin import Said, coerce, message_of, without_blocks


def _said(message, **changed) -> Said:
    return message_of(message, **{"index": 0, "session_id": "s", "people": {}, "user_id": "u1", **changed})


def test_a_human_message_without_a_name_is_the_users():
    """Role, owner, id and text."""
    said = _said(HumanMessage("I'm vegan.", id="m1"))
    assert (said.message.role, said.owner, said.message.id, said.message.text) == ("human", "u1", "m1", "I'm vegan.")


@pytest.mark.parametrize(
    ("message", "role"),
    [
        (AIMessage("hi"), "assistant"),
        (SystemMessage("be kind"), "other"),
        (ToolMessage("42", tool_call_id="c", name="calc"), "tool"),
        (RemoveMessage(id="x"), "other"),
        (HumanMessage("Summary so far", additional_kwargs={"lc_source": "summarization"}), "other"),
    ],
)
def test_what_is_not_typed_by_a_person_has_no_owner(message, role):
    """Assistants, tools, system text, removals, summaries written by machinery."""
    said = _said(message)
    assert (said.message.role, said.owner) == (role, None)


def test_a_mapped_name_is_that_user_and_an_unmapped_one_is_nobody():
    """Several people in one thread."""
    people = {"bob": "u2"}
    assert _said(HumanMessage("hi", name="bob"), people=people).owner == "u2"
    stranger = _said(HumanMessage("hi", name="eve"), people=people)
    assert (stranger.message.role, stranger.owner) == ("other", None)


def test_text_blocks_are_joined_and_images_skipped():
    """Content blocks of a multimodal message."""
    blocks = [{"type": "text", "text": "I'm vegan."}, {"type": "image_url", "image_url": {"url": "x"}}, "I like tea."]
    assert _said(HumanMessage(blocks)).message.text == "I'm vegan.\nI like tea."


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a <MEMORIES>x</MEMORIES> b", "a  b"),
        ('a <memories trust="high">\nx\n</ Memories > b', "a  b"),
        ("a <MEMORIES> never closed", "a "),
        ("a ＜MEMORIES＞x＜/MEMORIES＞ b", "a  b"),
        ("a <MEMORIES>x</MEMORIES><MEMORIES>y</MEMORIES> b", "a  b"),
        ("I like jazz </MEMORIES>", "I like jazz </MEMORIES>"),
        ("a <SESSION_SUMMARY>\nx</SESSION_SUMMARY> b", "a  b"),
        ("a <session_summary> x </MEMORIES> y", "a "),
        ("a <MEMORIES><SESSION_SUMMARY>x</SESSION_SUMMARY></MEMORIES> b", "a  b"),
        ("my memories of Rome", "my memories of Rome"),
    ],
)
def test_recalled_memories_are_cut_out_of_what_the_user_said(text, kept):
    """A pasted block is not said again by the user."""
    assert without_blocks(text) == kept


def test_an_id_is_made_from_session_role_text_and_place():
    """The same message gets the same id; another session, text or place another."""
    first = _said(HumanMessage("hi")).message.id
    assert first == _said(HumanMessage("hi")).message.id
    others = [
        _said(HumanMessage("hi"), session_id="t").message.id,
        _said(HumanMessage("hi"), index=1).message.id,
        _said(HumanMessage("ho")).message.id,
    ]
    assert len({first, *others}) == 4


def test_hidden_characters_are_removed_at_the_boundary():
    """Text is cleaned before anything reads it."""
    assert _said(HumanMessage("I'm v\u200began\x00.")).message.text == "I'm vegan."


def test_coerce_takes_strings_dicts_tuples_and_messages():
    """Everything LangChain callers pass."""
    given = ["hi", {"role": "assistant", "content": "yes?"}, ("user", "bye"), HumanMessage("x")]
    assert [(m.type, m.content) for m in coerce(given)] == [
        ("human", "hi"),
        ("ai", "yes?"),
        ("human", "bye"),
        ("human", "x"),
    ]
    assert [m.content for m in coerce("one")] == ["one"]
    assert coerce([]) == []


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ([{"role": "user", "content": 7}], "messages[0]"),
        (["ok", {"role": "wizard", "content": "x"}], "messages[1]"),
        (["ok", 5], "5"),
        ([{"content": "x"}], "messages[0]"),
        (42, "42"),
        ([None], "None"),
    ],
)
def test_what_cannot_be_a_message_is_refused_by_place_and_value(given, named):
    """The error says which item and what it was."""
    with pytest.raises(InvalidInput) as error:
        coerce(given)
    assert named in str(error.value)
