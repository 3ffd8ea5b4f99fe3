"""Read conversations of several formats into one shape, with errors that name the line.

`read(path)` takes OpenAI-style message lists (a JSON array, `{"messages": [...]}`, or JSONL) and LoCoMo samples.
Times without a zone are taken as UTC. System, tool and empty messages are left out: nobody said them.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

ROLES = ("user", "assistant", "system", "developer", "tool", "function")
LOCOMO_TIME = "%I:%M %p on %d %B, %Y"


@dataclass(frozen=True)
class Said:
    """One message. `speaker` is its name, or "user" or "assistant" if it has none."""

    id: str
    speaker: str
    text: str
    at: datetime | None = None


@dataclass(frozen=True)
class Session:
    """What was said in one sitting: a thread."""

    id: str
    said: tuple[Said, ...]


@dataclass(frozen=True)
class Conversation:
    """Sessions in order, and the speakers who may be replayed as the user."""

    id: str
    sessions: tuple[Session, ...]
    speakers: tuple[str, ...]

    def voice_of(self, name: str) -> str | None:
        """The speaker that `name` means; None if there is no such one. Unnamed users go by any name."""
        if name in self.speakers:
            return name
        return "user" if self.speakers == ("user",) else None


class Malformed(ValueError):
    """The file cannot be replayed; the message says why, and on which line."""


@dataclass(frozen=True)
class Node:
    """A JSON value and where it stands, so that an error can name its line."""

    value: Any
    text: str
    """The JSON text it was read from: the whole file, or one line of JSONL."""
    first_line: int = 1
    path: tuple[str | int, ...] = ()

    def __getitem__(self, step: str | int) -> "Node":
        return Node(self.value[step], self.text, self.first_line, (*self.path, step))

    def __iter__(self) -> Iterator["Node"]:
        return (self[i] for i in range(len(self.value)))

    def wrong(self, problem: str) -> Malformed:
        """The error to raise about this value."""
        return Malformed(f"line {self.first_line + line_of(self.text, self.path)}: {problem}")

    def has(self, key: str) -> bool:
        """Whether it is an object with this key."""
        return isinstance(self.value, dict) and key in self.value


def read(path: str | Path) -> list[Conversation]:
    """All conversations of a file: one of a message list, one for each LoCoMo sample. Malformed if it is neither."""
    path = Path(path)
    text = _text(path)
    if not text.strip():
        raise Malformed("the file is empty")
    parts = _json_lines(text) if _is_json_lines(path, text) else [_json(text)]
    if any(_has_samples(part) for part in parts):
        samples = [s for part in parts for s in (part if isinstance(part.value, list) else [part])]
        return [_locomo(sample) for sample in samples]
    return [_messages(path.stem, parts)]


# ---------------------------------------------------------------- text to JSON


def _text(path: Path) -> str:
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Malformed(f"line {line}: not UTF-8 text (byte 0x{data[error.start]:02x})") from error


def _is_json_lines(path: Path, text: str) -> bool:
    start = text.lstrip()
    if start.startswith("["):
        return False
    if path.suffix in (".jsonl", ".ndjson"):
        return True
    try:
        json.loads(start.partition("\n")[0])
    except (ValueError, RecursionError):
        return False  # the first line is not a whole value: one JSON document
    return True


def _json_lines(text: str) -> list[Node]:
    # Only "\n" ends a line: splitlines() would also split at characters that JSON strings may hold.
    return [_json(line, number) for number, line in enumerate(text.split("\n"), 1) if line.strip()]


def _json(text: str, first_line: int = 1) -> Node:
    try:
        return Node(json.loads(text), text, first_line)
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        raise Malformed(f"line {line}: not valid JSON: {error.msg} (column {error.colno})") from error
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, 100,000 brackets
        raise Malformed(f"line {first_line}: not usable JSON: {error}") from error


def line_of(text: str, path: tuple[str | int, ...]) -> int:
    """How many lines stand before the value at `path` in a valid JSON text."""
    at = _after_space(text, 0)
    for step in path:
        at = _child(text, at, step)
    return text.count("\n", 0, at)


def _child(text: str, at: int, step: str | int) -> int:
    """Where the member `step` of the array or object that starts at `at` begins."""
    decode = json.JSONDecoder().raw_decode
    key: str | int = -1
    at = _after_space(text, at + 1)
    while True:
        if isinstance(step, str):
            key, at = decode(text, at)
            at = _after_space(text, _after_space(text, at) + 1)  # behind the colon
        else:
            key = int(key) + 1
        if key == step:
            return at
        at = _after_space(text, decode(text, at)[1])
        at = _after_space(text, at + 1)  # behind the comma


def _after_space(text: str, at: int) -> int:
    while text[at : at + 1].isspace():
        at += 1
    return at


# ---------------------------------------------------------------- message lists


def _messages(name: str, parts: list[Node]) -> Conversation:
    """One conversation of messages; each `{"messages": [...]}` in it is a session of its own."""
    lists = [_listed(part) for part in parts]
    sessions: list[list[Node]] = [messages for messages in lists if messages is not None]
    loose = [part for part, messages in zip(parts, lists, strict=True) if messages is None]
    if loose:
        sessions.append(loose)
    said = [[s for i, m in enumerate(messages) if (s := _message(m, i))] for messages in sessions]
    if not any(said):
        raise Malformed("line 1: there are no messages in it")
    ids = [name] if len(said) == 1 else [f"{name}-{n}" for n in range(1, len(said) + 1)]
    speakers = dict.fromkeys(s.speaker for messages in said for s in messages if s.speaker != "assistant")
    return Conversation(
        name, tuple(Session(i, tuple(s)) for i, s in zip(ids, said, strict=True)), tuple(speakers) or ("user",)
    )


def _listed(part: Node) -> list[Node] | None:
    """The messages of a list, or of an object that holds one; None for a single message."""
    if part.has("messages"):
        part = part["messages"]
        if not isinstance(part.value, list):
            raise part.wrong(f'"messages" must be a list, not {_kind(part.value)}')
    return list(part) if isinstance(part.value, list) else None


def _message(node: Node, index: int) -> Said | None:
    role = _field(node, "role", 'a message needs a "role"')
    if role.value not in ROLES:
        raise role.wrong(f"unknown role {role.value!r:.60}; one of {', '.join(ROLES)}")
    text = _content(node)
    if role.value not in ("user", "assistant") or not text.strip():
        return None
    speaker = role.value
    if node.has("name"):
        speaker = node["name"].value
        if not isinstance(speaker, str) or not speaker.strip():
            raise node["name"].wrong(f'"name" must be a non-empty text, not {speaker!r:.60}')
    # The same id whenever the same file is replayed, so that nothing is learnt twice.
    message_id = f"{index}-{blake2b(text.encode(), digest_size=6).hexdigest()}"
    return Said(message_id, _whole(speaker), text, _time(node))


def _content(node: Node) -> str:
    if node.has("tool_calls") and node.value.get("content") is None:
        return ""
    content = _field(node, "content", 'a message needs a "content"')
    if isinstance(content.value, str):
        return _whole(content.value)
    if not isinstance(content.value, list):
        raise content.wrong(f'"content" must be text or a list of parts, not {_kind(content.value)}')
    return _whole("\n".join(part for item in content if (part := _part(item))))


def _part(item: Node) -> str:
    if not isinstance(item.value, (str, dict)):
        raise item.wrong(f"a part of a content must be an object, not {_kind(item.value)}")
    text = item.value if isinstance(item.value, str) else item.value.get("text") or ""
    if not isinstance(text, str):
        raise item["text"].wrong(f'"text" must be text, not {_kind(text)}')
    return text


def _time(node: Node) -> datetime | None:
    """When it was said, if "timestamp" or "created_at" says so: ISO 8601, or seconds since 1970."""
    key = next((k for k in ("timestamp", "created_at") if node.value.get(k) is not None), None)
    if key is None:
        return None
    value = node.value[key]
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else datetime.fromtimestamp(value, UTC)
    except (ValueError, TypeError, OverflowError, OSError) as error:
        raise node[key].wrong(f'"{key}" must be an ISO 8601 time or seconds since 1970, not {value!r:.60}') from error
    return at if at.tzinfo else at.replace(tzinfo=UTC)


# ---------------------------------------------------------------- LoCoMo


def _has_samples(part: Node) -> bool:
    members = list(part) if isinstance(part.value, list) else [part]
    return any(m.has("conversation") for m in members)


def _locomo(sample: Node) -> Conversation:
    talk = _field(sample, "conversation", 'a LoCoMo sample needs a "conversation"')
    if not isinstance(talk.value, dict):
        raise talk.wrong(f'"conversation" must be an object, not {_kind(talk.value)}')
    name = str(sample.value.get("sample_id", "sample"))
    numbers = sorted(int(m[1]) for key in talk.value if (m := re.fullmatch(r"session_(\d+)", key)))
    sessions = tuple(_locomo_session(name, talk, number) for number in numbers)
    speakers = dict.fromkeys(said.speaker for session in sessions for said in session.said)
    if not speakers:
        raise talk.wrong('there is no "session_1" with a turn in it')
    return Conversation(name, sessions, tuple(speakers))


def _locomo_session(name: str, talk: Node, number: int) -> Session:
    turns = talk[f"session_{number}"]
    if not isinstance(turns.value, list):
        raise turns.wrong(f"a session must be a list of turns, not {_kind(turns.value)}")
    at = _locomo_time(talk, f"session_{number}_date_time")
    said = (Said(_word(t, "dia_id"), _word(t, "speaker"), _word(t, "text"), at) for t in turns)
    return Session(f"{name}-session-{number}", tuple(s for s in said if s.text.strip()))


def _locomo_time(talk: Node, key: str) -> datetime | None:
    if not talk.has(key):
        return None
    try:
        return datetime.strptime(talk[key].value, LOCOMO_TIME).replace(tzinfo=UTC)
    except (ValueError, TypeError) as error:
        raise talk[key].wrong(f'a time must read like "1:56 pm on 8 May, 2023", not {talk[key].value!r:.60}') from error


def _word(turn: Node, key: str) -> str:
    word = _field(turn, key, f'a turn needs a "{key}"')
    if not isinstance(word.value, str):
        raise word.wrong(f'"{key}" must be text, not {_kind(word.value)}')
    return _whole(word.value)


# ---------------------------------------------------------------- shared


def _field(node: Node, key: str, need: str) -> Node:
    if not isinstance(node.value, dict):
        raise node.wrong(f"{need}, but this is {_kind(node.value)}")
    if key not in node.value:
        raise node.wrong(f"{need}; this one has {', '.join(map(repr, node.value)) or 'nothing'}")
    return node[key]


def _whole(text: str) -> str:
    """The text with "?" for half characters (a lone surrogate, left where something cut an emoji in two)."""
    return text.encode("utf-8", "replace").decode()


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")
