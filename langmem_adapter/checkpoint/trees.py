"""Stored bytes as plain trees: walked and changed without loading a single type.

Used where stored values are searched for text, references or messages. An extension becomes a `Branch` if it holds
packed values itself, and a `Leaf` if not.
"""

from collections.abc import Iterator
from typing import Any

import ormsgpack

from langmem_adapter.checkpoint.codec import ARRAY, PACK, REFERENCE, SNAPSHOT, UNPACK


class Branch:
    """An extension and the tree inside it."""

    __slots__ = ("code", "tree")

    def __init__(self, code: int, tree: Any) -> None:
        self.code = code
        self.tree = tree


class Leaf:
    """An extension of plain bytes."""

    __slots__ = ("code", "data")

    def __init__(self, code: int, data: bytes) -> None:
        self.code = code
        self.data = data


def parse(data: bytes) -> Any:
    """The tree of some packed bytes."""
    return ormsgpack.unpackb(data, ext_hook=_extension, option=UNPACK)


def serialize(tree: Any) -> bytes:
    """The packed bytes of a tree."""
    return ormsgpack.packb(tree, default=_packed, option=PACK)


def references(data: bytes) -> set[int]:
    """The numbers of the messages that packed bytes refer to."""
    return {int.from_bytes(n.data, "big") for n in _leaves(parse(data)) if n.code == REFERENCE}


def strings(tree: Any) -> Iterator[str]:
    """All texts in a tree, keys of dicts excepted."""
    for node in _nodes(tree):
        if isinstance(node, str):
            yield node


def blobs(tree: Any) -> Iterator[bytes]:
    """All byte strings in a tree."""
    for node in _nodes(tree):
        if isinstance(node, bytes):
            yield node
        elif isinstance(node, Leaf) and node.code != REFERENCE:
            yield node.data


def _leaves(tree: Any) -> Iterator[Leaf]:
    for node in _nodes(tree):
        if isinstance(node, Leaf):
            yield node


def _nodes(tree: Any) -> Iterator[Any]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
        elif isinstance(node, Branch):
            waiting.append(node.tree)
        else:
            yield node


def _extension(code: int, data: bytes) -> Branch | Leaf:
    return Branch(code, parse(data)) if code <= SNAPSHOT and code != ARRAY else Leaf(code, data)


def _packed(node: Any) -> ormsgpack.Ext:
    if isinstance(node, Branch):
        return ormsgpack.Ext(node.code, serialize(node.tree))
    if isinstance(node, Leaf):
        return ormsgpack.Ext(node.code, node.data)
    raise TypeError(f"{type(node).__name__} is not part of a stored tree")
