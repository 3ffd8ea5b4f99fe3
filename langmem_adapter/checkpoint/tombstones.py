"""Erased messages: how one is recognised in whatever form it was stored, and what is left in its place.

A message is recognised by its id. The same text without an id is recognised by its body: type, content and tool
calls. That covers messages stored before LangGraph gave them an id, and inputs as people write them: dicts with a
role, (role, text) pairs, plain strings.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

from langmem_adapter.checkpoint import trees
from langmem_adapter.checkpoint.sealing import Hashes
from langmem_adapter.checkpoint.trees import Branch

ERASED = "[erased]"
SHORTEST_BARE = 12
"""Bytes of a plain string that is taken for a copy of an erased message wherever it stands; shorter ones ("yes")
only where messages are given."""

_TYPES = {"user": "human", "assistant": "ai", "developer": "system"}
_ROLES = frozenset((*_TYPES, "human", "ai", "system", "tool"))
_KEPT = frozenset(("type", "id", "role", "tool_call_id", "status"))
_SAYS_NOTHING = frozenset((*_KEPT, "name"))

Recognise = Callable[[bytes], bool]
"""Whether a hash is one of an erased message."""


def id_hash(hashes: Hashes, message_id: str) -> bytes:
    """The hash of a message's id."""
    return hashes.of("id", message_id.encode("utf-8", "surrogatepass"))


def body_hash(hashes: Hashes, message: dict[Any, Any]) -> bytes:
    """The hash of a message without its id."""
    kind = message.get("type") or message.get("role")
    calls = [[c.get("name"), c.get("args")] for c in message.get("tool_calls") or () if isinstance(c, dict)]
    body = [_TYPES.get(str(kind), kind), message.get("content"), calls]
    return hashes.of("body", trees.serialize(body))


def text_hash(hashes: Hashes, text: str) -> bytes:
    """The hash of a message's text alone."""
    return hashes.of("text", text.encode("utf-8", "surrogatepass"))


def traces(hashes: Hashes, message: dict[Any, Any]) -> set[bytes]:
    """The hashes by which copies of a message without its id are recognised."""
    content = message.get("content")
    found = {body_hash(hashes, message)}
    return found | {text_hash(hashes, content)} if isinstance(content, str) and content else found


def is_message(node: dict[Any, Any]) -> bool:
    """Whether a dict has the form of a message that says something; a `RemoveMessage` says nothing."""
    kind = node.get("type") or node.get("role")
    return "content" in node and isinstance(kind, str) and kind != "remove"


class Redactor:
    """Replaces erased messages in trees and remembers what it took out."""

    def __init__(self, hashes: Hashes, recognise: Recognise) -> None:
        self._hashes = hashes
        self._recognise = recognise
        self.changed = 0
        self.removed: list[dict[Any, Any]] = []

    def redact(self, data: bytes) -> bytes:
        """The packed bytes without erased messages; the same object if there are none."""
        before = self.changed
        tree = self._node(trees.parse(data), None)
        return data if self.changed == before else trees.serialize(tree)

    def _node(self, node: Any, key: Any) -> Any:
        if isinstance(node, dict):
            return self._dict(node)
        if isinstance(node, list):
            if len(node) == 2 and isinstance(node[0], str) and node[0] in _ROLES and isinstance(node[1], str):
                return self._pair(node)
            return [self._node(item, key) for item in node]
        if isinstance(node, Branch):
            return Branch(node.code, self._inside(node.tree, key))
        if isinstance(node, str) and self._is_copy(node, key):
            return self._taken({"content": node}, ERASED)
        return node

    def _inside(self, tree: Any, key: Any) -> Any:
        """Of an extension: [module, name, payload, …], or the value of a snapshot."""
        if isinstance(tree, list) and len(tree) >= 3 and isinstance(tree[0], str) and isinstance(tree[1], str):
            return [*tree[:2], self._node(tree[2], key), *tree[3:]]
        return self._node(tree, key)

    def _dict(self, node: dict[Any, Any]) -> dict[Any, Any]:
        if is_message(node) and self._is_erased(node):
            tombstone = entomb(node)
            return node if tombstone == node else self._taken(node, tombstone)
        return {k: self._node(v, k) for k, v in node.items()}

    def _pair(self, node: list[Any]) -> list[Any]:
        if self._recognise(text_hash(self._hashes, node[1])):
            self._taken({"content": node[1]}, None)
            return [node[0], ERASED]
        return node

    def _is_erased(self, message: dict[Any, Any]) -> bool:
        message_id = message.get("id")
        if isinstance(message_id, str) and message_id:
            return self._recognise(id_hash(self._hashes, message_id))
        return self._recognise(body_hash(self._hashes, message))

    def _is_copy(self, text: str, key: Any) -> bool:
        if key != "messages" and len(text.encode("utf-8", "replace")) < SHORTEST_BARE:
            return False
        return self._recognise(text_hash(self._hashes, text))

    def _taken(self, message: dict[Any, Any], left: Any) -> Any:
        self.changed += 1
        self.removed.append(message)
        return left


def entomb(message: dict[Any, Any]) -> dict[Any, Any]:
    """The message with nothing in it that was said; type, id and the ends of tool calls stay, so that the thread
    remains one a model accepts."""
    left = {k: v if k in _KEPT else _emptied(v) for k, v in message.items()}
    left["content"] = ERASED
    if message.get("type") == "tool":
        left["name"] = message.get("name")
    if calls := message.get("tool_calls"):
        left["tool_calls"] = [{**c, "args": {}} for c in calls if isinstance(c, dict)]
    return left


def _emptied(value: Any) -> Any:
    if isinstance(value, dict):
        return {}
    if isinstance(value, list):
        return []
    return value if isinstance(value, bool | int | float) else None


def texts(message: dict[Any, Any]) -> Iterator[str]:
    """What a message said, in all its fields."""
    for key, value in message.items():
        if key not in _SAYS_NOTHING:
            yield from trees.strings(value)


def variants(text: str) -> list[bytes]:
    """The forms in which a text may lie in a file of ours."""
    plain = text.encode("utf-8", "replace")
    quoted = json.dumps(text)[1:-1].encode()
    return [plain] if plain == quoted else [plain, quoted]
