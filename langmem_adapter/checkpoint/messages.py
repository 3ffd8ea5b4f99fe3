"""Messages as the checkpointer sees them: fingerprints, copies, and how one is stored."""

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import ormsgpack
from langchain_core.messages import BaseMessage

from langmem_adapter.checkpoint.allowlist import Name, name_of
from langmem_adapter.checkpoint.codec import PACK, V2, Codec

_ATOMS = frozenset((str, int, float, bool, bytes, type(None)))
_METHOD = ormsgpack.packb("model_validate_json")


Draft = tuple[Name, bytes]
"""A message on its way into a thread's elements: its class, and all its fields, packed. A message changed in place has
other fields."""


class Drafter:
    """Drafts the messages of one write."""

    def __init__(self, codec: Codec) -> None:
        self._pack = codec.quick()
        self._check = codec.check
        self._names: dict[type, tuple[Name, bool]] = {}
        self._drafts: dict[int, tuple[Draft, BaseMessage]] = {}  # the message is held, so that its id is its own

    def draft(self, message: BaseMessage) -> Draft:
        """The draft of this object, as it was when first asked for."""
        known = self._drafts.get(id(message))
        if known is None:
            draft = (self._name(message)[0], self._pack(self._fields(message)))
            known = self._drafts[id(message)] = (draft, message)
        return known[0]

    def batch(self, messages: Sequence[BaseMessage]) -> "Batch":
        """The drafts of a list in one go: a third of a microsecond a message."""
        packed = self._pack([self._fields(m) for m in messages])
        names = [self._names[type(m)][0] for m in messages]
        return Batch(tuple(messages), names, packed[1 if len(names) < 16 else 3 if len(names) < 65536 else 5 :], self)

    def _fields(self, message: BaseMessage) -> dict[str, Any]:
        """What `model_dump` gives, without its cost for LangChain's own classes, which do not customise it."""
        _, plain = self._names.get(type(message)) or self._name(message)
        return message.__dict__ if plain and not message.__pydantic_extra__ else message.model_dump()

    def _name(self, message: BaseMessage) -> tuple[Name, bool]:
        cls = type(message)
        if cls not in self._names:
            self._check(message)
            name = name_of(cls)
            self._names[cls] = (name, name[0].startswith("langchain_core.messages"))
        return self._names[cls]


class Batch(NamedTuple):
    """A list of messages, packed one behind the other."""

    messages: Sequence[BaseMessage]
    names: list[Name]
    fields: bytes
    drafter: Drafter

    def drafts(self, start: int = 0) -> list[Draft]:
        """The drafts from this one on."""
        return [self.drafter.draft(m) for m in self.messages[start:]]


def kind_of(name: Name) -> str:
    """The kind of hash that messages of this class have."""
    return f"{name[0]}.{name[1]}"


def stored(name: Name, fields: bytes) -> bytes:
    """The bytes of a message as LangGraph's serializer would write it."""
    inner = b"\x94" + ormsgpack.packb(name[0]) + ormsgpack.packb(name[1]) + fields + _METHOD
    return ormsgpack.packb(ormsgpack.Ext(V2, inner), option=PACK)


class Mould:
    """Makes copies of a message that share nothing that can be changed; a fifth of the cost of loading it again."""

    __slots__ = ("_changeable", "_message")

    def __init__(self, message: BaseMessage) -> None:
        self._message = message
        self._changeable = [(k, v) for k, v in message.__dict__.items() if type(v) not in _ATOMS]

    def cast(self) -> BaseMessage:
        """A copy."""
        message = self._message
        cls = type(message)
        new = cls.__new__(cls)
        fields = message.__dict__.copy()
        for key, value in self._changeable:
            fields[key] = value.copy() if not value and type(value) in _PLAIN else _copied(value)
        _put(new, "__dict__", fields)
        extra, private = message.__pydantic_extra__, message.__pydantic_private__
        _put(new, "__pydantic_extra__", extra if extra is None else _copied(extra))
        _put(new, "__pydantic_fields_set__", message.__pydantic_fields_set__.copy())
        _put(new, "__pydantic_private__", private and _copied(private))
        return new


_PLAIN = frozenset((dict, list))
_put = object.__setattr__


def _copied(value: Any) -> Any:
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is dict:
        return {k: _copied(v) for k, v in value.items()} if value else {}
    if kind is list:
        return [_copied(v) for v in value]
    return copy.deepcopy(value)
