"""Erased messages: how one is recognised in whatever form it was stored, and what is left in its place.

A message is recognised by its id. The same text without an id is recognised by its body: type, content and tool
calls. That covers messages stored before LangGraph gave them an id, and inputs as people write them: dicts with a
role, (role, text) pairs, plain strings. Its words are recognised as well where they stand inside other texts: by their
shape (length and sum of bytes), which is quickly computed for every place of a text, and then by their hash.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from langmem_adapter.checkpoint import trees
from langmem_adapter.checkpoint.sealing import Hashes
from langmem_adapter.checkpoint.trees import Branch

ERASED = "[erased]"
SHORTEST_BARE = 12
"""Bytes of a text that is taken for a copy of an erased message's words wherever it stands; shorter ones ("yes")
only where messages are given."""
SHORTEST_QUOTE = 24
"""Bytes of a text that is taken out of other messages too; shorter ones people say again by themselves."""

_PART = 1 << 18

_TYPES = {"user": "human", "assistant": "ai", "developer": "system"}
_ROLES = frozenset((*_TYPES, "human", "ai", "system", "tool"))
_KEPT = frozenset(("type", "id", "role", "tool_call_id", "status"))
_SAYS_NOTHING = frozenset((*_KEPT, "name"))
_NO_WORDS = frozenset((*_SAYS_NOTHING, "response_metadata", "usage_metadata", "mime_type", "media_type", "source_type"))


class Refused:
    """Hashes of what was erased, and the shapes of those that are texts."""

    def __init__(self, erased: Iterable[tuple[bytes, int]]) -> None:
        self.hashes: set[bytes] = set()
        self.shapes: dict[int, list[int]] = {}
        """By length in bytes, the sums of them."""
        for hashed, shape in erased:
            self.hashes.add(hashed)
            if shape:
                self.shapes.setdefault(shape >> 32, []).append(shape & 0xFFFFFFFF)


def id_hash(hashes: Hashes, message_id: str) -> bytes:
    """The hash of a message's id."""
    return hashes.of("id", message_id.encode("utf-8", "surrogatepass"))


def body_hash(hashes: Hashes, message: dict[Any, Any]) -> bytes:
    """The hash of a message without its id."""
    kind = message.get("type") or message.get("role")
    calls = [_call(c) for c in message.get("tool_calls") or () if isinstance(c, dict)]
    body = [_TYPES.get(str(kind), kind), message.get("content") or "", calls]
    return hashes.of("body", trees.serialize(body))


def _call(call: dict[Any, Any]) -> list[Any]:
    """Name and arguments of a tool call, LangChain's or OpenAI's."""
    function = call.get("function")
    if not isinstance(function, dict):
        return [call.get("name"), call.get("args")]
    return [function.get("name"), _parsed(function.get("arguments"))]


def _parsed(arguments: Any) -> Any:
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return arguments


def text_hash(hashes: Hashes, text: str) -> bytes:
    """The hash of a message's text alone."""
    return _bytes_hash(hashes, text.encode("utf-8", "surrogatepass"))


def _bytes_hash(hashes: Hashes, text: bytes) -> bytes:
    return hashes.of("text", text)


def traces(hashes: Hashes, message: dict[Any, Any]) -> dict[bytes, int]:
    """The hashes by which copies of a message without its id are recognised, with the shapes of those of texts."""
    found = {body_hash(hashes, message): 0}
    content = message.get("content")
    if isinstance(content, str) and content:
        found[text_hash(hashes, content)] = 0
    for text in words(message):
        for form in variants(text):
            total = int(np.frombuffer(form, dtype=np.uint8).sum(dtype=np.int64))
            found[_bytes_hash(hashes, form)] = len(form) << 32 | total & 0xFFFFFFFF
    return found


def is_message(node: dict[Any, Any]) -> bool:
    """Whether a dict has the form of a message that says something; a `RemoveMessage` says nothing."""
    kind = node.get("type") or node.get("role")
    return "content" in node and isinstance(kind, str) and kind != "remove"


class Redactor:
    """Replaces erased messages in trees and remembers what it took out."""

    def __init__(self, hashes: Hashes, refused: Refused) -> None:
        self._hashes = hashes
        self._refused = refused
        self.changed = 0
        self.left = 0
        """Texts that stay, because other messages say them and they are short."""
        self.removed: list[dict[Any, Any]] = []

    def redact(self, data: bytes) -> bytes:
        """The packed bytes without erased messages; the same object if there are none."""
        before = self.changed
        tree = self._node(trees.parse(data), None, SHORTEST_BARE)
        return data if self.changed == before else trees.serialize(tree)

    def _node(self, node: Any, key: Any, shortest: int) -> Any:
        if isinstance(node, dict):
            return self._dict(node, shortest)
        if isinstance(node, list):
            if len(node) == 2 and isinstance(node[0], str) and node[0] in _ROLES:
                return self._pair(node, shortest)
            return [self._node(item, key, shortest) for item in node]
        if isinstance(node, Branch):
            return Branch(node.code, self._inside(node.tree, key, shortest))
        if isinstance(node, str):
            return self._text(node, key, shortest)
        return self._without_words(node, shortest) if isinstance(node, bytes) else node

    def _inside(self, tree: Any, key: Any, shortest: int) -> Any:
        """Of an extension: [module, name, payload, …], or the value of a snapshot."""
        if isinstance(tree, list) and len(tree) >= 3 and isinstance(tree[0], str) and isinstance(tree[1], str):
            return [*tree[:2], self._node(tree[2], key, shortest), *tree[3:]]
        return self._node(tree, key, shortest)

    def _dict(self, node: dict[Any, Any], shortest: int) -> dict[Any, Any]:
        if is_message(node):
            if self._is_erased(node):
                tombstone = entomb(node)
                return node if tombstone == node else self._taken(node, tombstone)
            if isinstance(node.get("id"), str):
                shortest = SHORTEST_QUOTE
        made: dict[Any, Any] = {}
        for key, value in node.items():
            name = self._text(key, None, shortest) if isinstance(key, str) else key
            while name in made:
                name = f"{name}'"
            made[name] = self._node(value, key, shortest)
        return made

    def _pair(self, node: list[Any], shortest: int) -> list[Any]:
        role, content = node
        known = self._refused.hashes
        said = isinstance(content, str) and text_hash(self._hashes, content) in known
        if said or body_hash(self._hashes, {"role": role, "content": content}) in known:
            self._taken({"content": content}, None)
            return [role, ERASED]
        return [role, self._node(content, None, shortest)]

    def _is_erased(self, message: dict[Any, Any]) -> bool:
        message_id = message.get("id")
        if isinstance(message_id, str) and message_id:
            return id_hash(self._hashes, message_id) in self._refused.hashes
        return body_hash(self._hashes, message) in self._refused.hashes

    def _text(self, text: str, key: Any, shortest: int) -> str:
        if key == "messages" and text_hash(self._hashes, text) in self._refused.hashes:
            return str(self._taken({"content": text}, ERASED))
        if 4 * len(text) < SHORTEST_BARE or not self._refused.shapes:
            return text
        encoded = text.encode("utf-8", "surrogatepass")
        without = self._without_words(encoded, shortest)
        return text if without is encoded else without.decode("utf-8", "surrogatepass")

    def _without_words(self, data: bytes, shortest: int) -> bytes:
        """The bytes without erased words; the same object if there are none."""
        for length in sorted(self._refused.shapes, reverse=True):
            if length <= len(data):
                data = self._without(data, length, shortest)
        return data

    def _without(self, data: bytes, length: int, shortest: int) -> bytes:
        kept: list[bytes] = []
        end = 0
        for at in _places(data, length, self._refused.shapes[length]):
            if at < end or _bytes_hash(self._hashes, data[at : at + length]) not in self._refused.hashes:
                continue
            if length < shortest:
                self.left += 1
                continue
            self._taken({"content": data[at : at + length].decode("utf-8", "replace")}, None)
            kept += (data[end:at], ERASED.encode())
            end = at + length
        return b"".join((*kept, data[end:])) if kept else data

    def _taken(self, message: dict[Any, Any], left: Any) -> Any:
        self.changed += 1
        self.removed.append(message)
        return left


def _places(data: bytes, length: int, wanted: list[int]) -> Iterator[int]:
    """Where `length` bytes begin whose sum is wanted. In parts, so that no step holds the interpreter for long."""
    for start in range(0, len(data) - length + 1, _PART):
        part = np.frombuffer(data, dtype=np.uint8, offset=start)[: _PART + length - 1]
        sums = np.zeros(len(part) + 1, dtype=np.int64)
        np.cumsum(part, out=sums[1:])
        found = sums[length:] - sums[:-length]
        hits = np.zeros(len(found), dtype=bool)
        for total in wanted:
            hits |= found == total
        yield from (start + int(i) for i in np.flatnonzero(hits))


def entomb(message: dict[Any, Any]) -> dict[Any, Any]:
    """The message with nothing in it that was said; type, id and the ends of tool calls stay, so that the thread
    remains one a model accepts."""
    left = {k: v if k in _KEPT else _emptied(v) for k, v in message.items()}
    left["content"] = ERASED
    for field in ("name", "usage_metadata"):
        if field in message:
            left[field] = message[field] if field == "name" and message.get("type") == "tool" else None
    if calls := message.get("tool_calls"):
        left["tool_calls"] = [_emptied_call(c) for c in calls if isinstance(c, dict)]
    return left


def _emptied_call(call: dict[Any, Any]) -> dict[Any, Any]:
    function = call.get("function")
    if not isinstance(function, dict):
        return {**call, "args": {}}
    return {**call, "function": {"name": function.get("name"), "arguments": "{}"}}


def _emptied(value: Any) -> Any:
    if isinstance(value, dict):
        return {}
    if isinstance(value, list):
        return []
    if isinstance(value, str):
        return ""
    return value if isinstance(value, bool | int | float) else None


def words(message: dict[Any, Any]) -> set[str]:
    """The texts of a message that are taken for its words wherever they stand: content, arguments, extras."""
    found = set(_words(message))
    content = message.get("content")
    if isinstance(content, list):
        blocks = [b.get("text") if isinstance(b, dict) else b for b in content]
        found.add("".join(b for b in blocks if isinstance(b, str)))  # what `message.text` gives
    return {t for t in found if len(t.encode("utf-8", "surrogatepass")) >= SHORTEST_BARE}


def _words(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "arguments":
                yield from _words(_parsed(value))
            if key not in _NO_WORDS:
                yield from _words(value)
    elif isinstance(node, list):
        for item in node:
            yield from _words(item)
    elif isinstance(node, Branch):
        yield from _words(node.tree[2] if isinstance(node.tree, list) and len(node.tree) >= 3 else node.tree)
    elif isinstance(node, str):
        yield node


def texts(message: dict[Any, Any]) -> Iterator[str]:
    """What a message said, in all its fields."""
    for key, value in message.items():
        if key not in _SAYS_NOTHING:
            yield from trees.strings(value)


def variants(text: str) -> list[bytes]:
    """The forms in which a text may lie in a file of ours: itself, in JSON, in the `repr` of an error."""
    forms = (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], repr(text)[1:-1])
    return list({f.encode("utf-8", "surrogatepass") for f in forms})
