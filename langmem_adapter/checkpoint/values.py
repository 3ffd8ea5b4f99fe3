"""A channel's or a write's value as a row: in place, as runs of messages, or as one large element.

INLINE   packed, in the row
RUNS     a list of nothing but messages: [first, count, first, count, …] of their numbers; three
         bytes for one that was only appended to
ELEMENT  the number of a large value stored apart
SNAPSHOT added to one of these: the value of a DeltaChannel's snapshot
"""

from collections.abc import Callable, Iterator
from typing import Any

import ormsgpack
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from langmem_adapter.checkpoint import trees
from langmem_adapter.checkpoint.codec import Codec
from langmem_adapter.checkpoint.elements import Placing
from langmem_adapter.checkpoint.messages import Batch, Draft, Drafter

INLINE, RUNS, ELEMENT = 0, 1, 2
SNAPSHOT = 4

UNVERSIONED = "unversioned"
"""Key of a checkpoint's body: channels that have a value but no version. Theirs is `@` and the checkpoint's id."""

LARGEST_INLINE = 256
"""Bytes; larger values are stored apart, where equal ones are stored once."""

Prepared = Callable[[Placing], tuple[int, bytes]]
"""A value packed as far as it can be without knowing the numbers of its messages."""


def prepare(value: Any, codec: Codec, drafter: Drafter) -> Prepared:
    """Pack a value outside of the transaction. UnlistedType for a type that is not allowed."""
    if isinstance(value, _DeltaSnapshot):
        inner = prepare(value.value, codec, drafter)
        return lambda placing: _flagged(inner(placing))
    if type(value) is list and value and all(isinstance(m, BaseMessage) for m in value):
        return _prepare_messages(drafter.batch(value))
    used: list[Draft] = []

    def intern(message: BaseMessage) -> int:
        used.append(drafter.draft(message))
        return 0

    packed = codec.pack(value, intern)
    if not used:
        return lambda placing: _placed(packed, placing)
    return lambda placing: _placed(codec.pack(value, lambda message: placing.message(drafter.draft(message))), placing)


def _prepare_messages(batch: Batch) -> Prepared:
    return lambda placing: (RUNS, ormsgpack.packb(placing.runs(batch)))


def _flagged(placed: tuple[int, bytes]) -> tuple[int, bytes]:
    return placed[0] | SNAPSHOT, placed[1]


def _placed(packed: bytes, placing: Placing) -> tuple[int, bytes]:
    packed = placing.redacted(packed)
    if len(packed) <= LARGEST_INLINE:
        return INLINE, packed
    return ELEMENT, ormsgpack.packb(placing.value(packed))


def unpack_runs(data: bytes) -> Iterator[tuple[int, int]]:
    """(first, count) of each run."""
    flat = ormsgpack.unpackb(data)
    return zip(flat[::2], flat[1::2], strict=True)


def references(kind: int, data: bytes) -> set[int]:
    """The numbers of the elements that a row's (unsealed) value names itself."""
    base = kind & ~SNAPSHOT
    if base == RUNS:
        return {n for first, count in unpack_runs(data) for n in range(first, first + count)}
    if base == ELEMENT:
        return {ormsgpack.unpackb(data)}
    return trees.references(data)
