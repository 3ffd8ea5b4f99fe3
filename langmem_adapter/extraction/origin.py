"""Who said a message: decided here, from the message itself, before anything is learnt from it.

`coerce` turns what callers pass into LangChain messages; `message_of` decides the author of one.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    FunctionMessage,
    HumanMessage,
    ToolMessage,
    convert_to_messages,
)

from langmem_adapter.errors import InvalidInput
from langmem_adapter.extraction.ends import redacted_ends
from langmem_adapter.records import Message
from langmem_adapter.redaction import redacted

Role = Literal["human", "tool", "assistant", "other"]

_OPEN = re.compile(r"[<＜﹤]\s*(memories|session_summary)(?:\s[^<>＜＞﹤﹥]*)?[>＞﹥]", re.IGNORECASE)
_CLOSE = re.compile(r"[<＜﹤]\s*[/／]\s*(memories|session_summary)\s*[>＞﹥]", re.IGNORECASE)


class Said(NamedTuple):
    """A message and the user whose words it holds (None: nobody's, or not a human message)."""

    message: Message
    owner: str | None


def coerce(messages: Any) -> list[BaseMessage]:
    """LangChain messages from a string, a message, or a sequence of strings, dicts, tuples and messages.

    A string is a human message. InvalidInput names the position and value of what cannot be used.
    """
    if isinstance(messages, (str, BaseMessage, Mapping)):
        messages = [messages]
    if not isinstance(messages, Sequence):
        raise InvalidInput(f"messages must be a string, a message or a list of them, got {messages!r:.120}")
    return [_coerce_one(item, index) for index, item in enumerate(messages)]


def _coerce_one(item: Any, index: int) -> BaseMessage:
    wanted = "pass a str, a LangChain message, or {'role': 'user', 'content': 'text'}"
    if isinstance(item, Mapping):
        content = item.get("content", "")
        if content is not None and not isinstance(content, (str, list)):
            raise InvalidInput(f"messages[{index}] has content {content!r:.80}, which is not text; {wanted}")
        item = dict(item)
    try:
        return convert_to_messages([item])[0]
    # LangChain signals a bad shape by any of these, depending on how it is bad.
    except (ValueError, TypeError, NotImplementedError, KeyError, AttributeError, IndexError) as error:
        raise InvalidInput(f"messages[{index}] is {item!r:.120}, which is not a message; {wanted}") from error


def message_of(
    message: BaseMessage,
    *,
    index: int,
    session_id: str | None,
    people: Mapping[str, str] | None = None,
    user_id: str,
    redact: Callable[[str], str] = redacted,
) -> Said:
    """The message as the extractor sees it, and the user id of the person who typed it.

    `index` is its position in the thread and is hashed into the id of a message that has none. `people` maps the
    `name` of a human message to a user id; a message with an unmapped name is nobody's (`other`). A quoted
    block of ours is cut out of human text, and `redact` cuts secrets out of any: nobody behind this door sees
    them. Of a very long text only the ends go on (see `ends`).
    """
    role, owner = _author(message, people or {}, user_id)
    text = redacted_ends(_text(message, index), redact, what=f"messages[{index}].content")
    if role == "human":
        text = without_blocks(text)
    return Said(
        Message(id=message.id or _hashed(session_id, role, text, index), role=role, text=text, name=message.name),
        owner,
    )


def typed_by(message: BaseMessage, people: Mapping[str, str], user_id: str) -> str | None:
    """The user id of the person who typed the message; None if none did, or nobody knows who."""
    return _author(message, people, user_id)[1]


def length(message: BaseMessage) -> int:
    """Characters of the message's text."""
    content: Any = message.content
    return len(content) if isinstance(content, str) else sum(len(_block_text(block)) for block in content)


def _author(message: BaseMessage, people: Mapping[str, str], user_id: str) -> tuple[Role, str | None]:
    if isinstance(message, HumanMessage):
        # Summaries and other machinery write human-typed messages and mark them.
        if message.additional_kwargs.get("lc_source"):
            return "other", None
        if message.name is None:
            return "human", user_id
        owner = people.get(message.name)
        return ("human", owner) if owner else ("other", None)
    if isinstance(message, (ToolMessage, FunctionMessage)):
        return "tool", None
    return ("assistant" if isinstance(message, AIMessage) else "other"), None


def _text(message: BaseMessage, index: int) -> str:
    content: Any = message.content
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise InvalidInput(f"messages[{index}] has content {content!r:.80}, which is not text")
    return "\n".join(part for block in content if (part := _block_text(block)))


def _block_text(block: Any) -> str:
    if isinstance(block, str):
        return block
    is_text = isinstance(block, Mapping) and block.get("type", "text") in ("text", "input_text")
    found = block.get("text") if is_text else ""
    return found if isinstance(found, str) else ""


def without_blocks(text: str) -> str:
    """The text without blocks of ours, closed or not: what is in a prompt is not said again by the user.

    A closing tag without an opening one is left: what stands before it may be the user's own words.
    """
    kept, at = [], 0
    while opening := _OPEN.search(text, at):
        kept.append(text[at : opening.start()])
        tag = opening[1].casefold()
        closing = next((c for c in _CLOSE.finditer(text, opening.end()) if c[1].casefold() == tag), None)
        at = closing.end() if closing else len(text)
    return "".join([*kept, text[at:]])


def _hashed(session_id: str | None, role: str, text: str, index: int) -> str:
    said = "\x1f".join((session_id or "", role, str(index), text))
    return blake2b(said.encode("utf-8"), digest_size=16).hexdigest()
