"""Messages as the checkpointer sees them: fingerprints, copies, and how one is stored."""

import copy
from collections.abc import Sequence
from typing import Any, TypeVar

import ormsgpack
from langchain_core.messages import BaseMessage

from langmem_adapter.checkpoint.allowlist import Name, name_of
from langmem_adapter.checkpoint.codec import PACK, V2, Codec

M = TypeVar("M", bound=BaseMessage)

_ATOMS = frozenset((str, int, float, bool, bytes, type(None)))
_METHOD = ormsgpack.packb("model_validate_json")


Draft = tuple[Name, bytes]
"""A message on its way into a thread's elements: its class, and all its fields, packed. A message changed in place has
other fields."""


class Drafter:
    """Drafts the messages of one write: 1 µs a message."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._names: dict[type, tuple[Name, bool]] = {}
        self._drafts: dict[int, tuple[Draft, BaseMessage]] = {}  # the message is held, so that its id is its own

    def draft(self, message: BaseMessage) -> Draft:
        """The draft of this object, as it was when first asked for."""
        known = self._drafts.get(id(message))
        if known is None:
            known = self._drafts[id(message)] = (self.drafts((message,))[0], message)
        return known[0]

    def drafts(self, messages: Sequence[BaseMessage]) -> list[Draft]:
        """The drafts of a list, as it is now."""
        names, pack = self._names, self._codec.quick()
        found = []
        for message in messages:
            name, plain = names.get(type(message)) or self._name(type(message), message)
            # What `model_dump` gives, without its cost for LangChain's own classes, which do not customise it.
            fields = message.__dict__ if plain and not message.__pydantic_extra__ else message.model_dump()
            found.append((name, pack(fields)))
        return found

    def _name(self, cls: type, message: BaseMessage) -> tuple[Name, bool]:
        self._codec.check(message)
        name = name_of(cls)
        found = self._names[cls] = (name, name[0].startswith("langchain_core.messages"))
        return found


def kind_of(name: Name) -> str:
    """The kind of hash that messages of this class have."""
    return f"{name[0]}.{name[1]}"


def stored(name: Name, fields: bytes) -> bytes:
    """The bytes of a message as LangGraph's serializer would write it."""
    inner = b"\x94" + ormsgpack.packb(name[0]) + ormsgpack.packb(name[1]) + fields + _METHOD
    return ormsgpack.packb(ormsgpack.Ext(V2, inner), option=PACK)


def twin(message: M) -> M:
    """A copy that shares nothing that can be changed; a quarter of the cost of loading it again."""
    cls = type(message)
    new = cls.__new__(cls)
    put = object.__setattr__
    put(new, "__dict__", {k: v if type(v) in _ATOMS else _copied(v) for k, v in message.__dict__.items()})
    put(new, "__pydantic_extra__", _copied(message.__pydantic_extra__))
    put(new, "__pydantic_fields_set__", set(message.__pydantic_fields_set__))
    put(new, "__pydantic_private__", _copied(message.__pydantic_private__))
    return new


def _copied(value: Any) -> Any:
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is dict:
        return {k: _copied(v) for k, v in value.items()}
    if kind is list:
        return [_copied(v) for v in value]
    return copy.deepcopy(value)
