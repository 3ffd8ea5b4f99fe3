"""Values to bytes and back: msgpack in LangGraph's own wire format, strict about types.

A type that is not in the allowlist raises when it is written, and a payload naming one raises when it is read,
before anything is imported. Messages are handed out to the caller, who stores each once; in their place stands a
reference. Without a caller for them they are written in place.
"""

import dataclasses
import importlib
import re
import sys
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import ormsgpack
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde import jsonplus
from langgraph.checkpoint.serde.types import SendProtocol, _DeltaSnapshot

from langmem_adapter.checkpoint.allowlist import SAFE, Name, name_of
from langmem_adapter.checkpoint.errors import UnlistedType
from langmem_adapter.errors import InvalidInput, StoreCorrupt

ONE, POSITIONAL, KEYWORD, METHOD, V1, V2, ARRAY, SNAPSHOT = range(8)
"""Extension codes of LangGraph's serializer."""
REFERENCE = 100
"""A message stored apart: its sequence number in the thread, four bytes."""
BYTEARRAY = 101

PACK = jsonplus._option  # the very options LangGraph packs with, so that both read each other
UNPACK = ormsgpack.OPT_NON_STR_KEYS

Intern = Callable[[BaseMessage], int]
Fetch = Callable[[int], Any]


class Codec:
    """Packs and unpacks values whose types are allowed."""

    def __init__(self, allowed: frozenset[Name]) -> None:
        self.allowed = allowed
        self._writable: set[type] = set()
        self._classes: dict[Name, Any] = {}

    def extended(self, more: frozenset[Name]) -> "Codec":
        """A codec that allows these types too; itself, if it does so already."""
        return self if more <= self.allowed | SAFE else Codec(self.allowed | more)

    def pack(self, value: Any, intern: Intern | None = None) -> bytes:
        """The bytes of a value. UnlistedType if it holds a type that is not allowed."""
        return _Packing(self, intern)(value)

    def unpack(self, data: bytes, fetch: Fetch | None = None) -> Any:
        """The value of some bytes; `fetch` finds messages by their number."""
        return _Unpacking(self, fetch)(data)

    def quick(self) -> Callable[[Any], bytes]:
        """`pack` for many small values in a row."""
        return _Packing(self, None).quick()

    def check(self, value: Any) -> None:
        """UnlistedType unless this value's type may be written."""
        cls = type(value)
        if cls in self._writable:
            return
        name = ("re", "compile") if isinstance(value, re.Pattern) else name_of(cls)
        if name not in SAFE and name not in self.allowed:
            raise _unlisted(name, "cannot be stored")
        if name != ("re", "compile") and _find(name) is not cls:
            raise UnlistedType(
                f"{name[0]}.{name[1]} cannot be stored: it is not found under this name when a checkpoint is loaded; "
                "define it at the top level of its module"
            )
        self._writable.add(cls)

    def load(self, module: Any, name: Any) -> Any:
        """The class or function of this name. UnlistedType, without importing anything, if it is not allowed."""
        key = (module, name)
        if key in self._classes:
            return self._classes[key]
        if key not in SAFE and key not in self.allowed:
            raise _unlisted(key, "is named by a stored value and was not loaded")
        found = self._classes[key] = _find(key, load=True)
        return found


def _unlisted(name: tuple[Any, Any], what: str) -> UnlistedType:
    return UnlistedType(
        f"{name[0]}.{name[1]} {what}: it is not in the allowlist; add it by "
        f"SqliteCheckpointer(path, allow=[{name!r}]), or allow=state_types(graph) for all types of a graph's state"
    )


def _find(name: Name, *, load: bool = False) -> Any:
    module = importlib.import_module(name[0]) if load else sys.modules.get(name[0])
    return getattr(module, name[1], None)


class _Packing:
    """One packing. Errors are kept, because msgpack swallows what its callback raises."""

    def __init__(self, codec: Codec, intern: Intern | None) -> None:
        self._codec = codec
        self._intern = intern
        self._error: Exception | None = None

    def __call__(self, value: Any) -> bytes:
        if type(value) is bytearray:
            value = ormsgpack.Ext(BYTEARRAY, bytes(value))
        try:
            return ormsgpack.packb(value, default=self._default, option=PACK)
        except Exception as e:
            if self._error is not None:
                raise self._error from None
            raise InvalidInput(f"a {type(value).__name__} cannot be stored: {e}") from e

    def quick(self) -> Callable[[Any], bytes]:
        """Itself, with less ado."""
        packb, default = ormsgpack.packb, self._default

        def pack(value: Any) -> bytes:
            try:
                return packb(value, default, PACK)
            except Exception:  # noqa: BLE001 - packed again to raise what is behind it
                return self(value)

        return pack

    def _default(self, value: Any) -> Any:
        try:
            return self._extension(value)
        except Exception as e:
            self._error = self._error or e
            raise

    def _extension(self, value: Any) -> Any:
        if isinstance(value, BaseMessage) and self._intern is not None:
            return ormsgpack.Ext(REFERENCE, self._intern(value).to_bytes(4, "big"))
        if isinstance(value, _DeltaSnapshot):
            return ormsgpack.Ext(SNAPSHOT, self(value.value))
        if isinstance(value, BaseException):
            return repr(value)
        if _is_array(value):
            return jsonplus._msgpack_default(value)
        self._codec.check(value)
        if callable(getattr(value, "model_dump", None)):
            return self._ext(V2, value, value.model_dump(), "model_validate_json")
        if callable(getattr(value, "_asdict", None)):
            return self._ext(KEYWORD, value, value._asdict())
        if isinstance(value, set | frozenset | deque):
            return self._ext(ONE, value, tuple(value))
        if isinstance(value, SendProtocol):
            timeout = getattr(value, "timeout", None)
            return self._ext(POSITIONAL, value, (value.node, value.arg) + (() if timeout is None else (timeout,)))
        if dataclasses.is_dataclass(value):
            return self._ext(KEYWORD, value, {f.name: getattr(value, f.name) for f in dataclasses.fields(value)})
        return jsonplus._msgpack_default(value)  # leaves: dates, numbers, paths, enums …

    def _ext(self, code: int, value: Any, *parts: Any) -> Any:
        return ormsgpack.Ext(code, self((*name_of(type(value)), *parts)))


def _is_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


class _Unpacking:
    def __init__(self, codec: Codec, fetch: Fetch | None) -> None:
        self._codec = codec
        self._fetch = fetch
        self._error: Exception | None = None

    def __call__(self, data: bytes) -> Any:
        try:
            return ormsgpack.unpackb(data, ext_hook=self._hook, option=UNPACK)
        except Exception as e:
            if self._error is not None:
                raise self._error from None
            raise StoreCorrupt(f"a stored value cannot be read: {e}") from e

    def _hook(self, code: int, data: bytes) -> Any:
        try:
            return self._value(code, data)
        except Exception as e:
            self._error = self._error or e
            raise

    def _value(self, code: int, data: bytes) -> Any:
        if code == REFERENCE:
            return self._referred(int.from_bytes(data, "big"))
        if code == BYTEARRAY:
            return bytearray(data)
        if code == ARRAY:
            return jsonplus._msgpack_ext_hook(code, data)  # numbers only; names nothing
        if code == SNAPSHOT:
            return _DeltaSnapshot(self(data))
        if code > SNAPSHOT:
            raise StoreCorrupt(f"a stored value has the unknown extension {code}")
        module, name, payload, *rest = self(data)
        if code == METHOD:
            return _by_method(module, name, rest[0], payload)
        return _build(code, self._codec.load(module, name), payload)

    def _referred(self, number: int) -> Any:
        if self._fetch is None:
            raise StoreCorrupt("a stored value refers to a message outside its thread")
        return self._fetch(number)


def _by_method(module: str, name: str, method: str, payload: Any) -> Any:
    if (module, name, method) != ("datetime", "datetime", "fromisoformat"):
        raise _unlisted((f"{module}.{name}", method), "is named by a stored value and was not loaded")
    return getattr(getattr(importlib.import_module(module), name), method)(payload)


def _build(code: int, cls: Any, payload: Any) -> Any:
    if code == V2:
        return _model(cls, payload)
    if code == V1:
        return cls(**payload)
    if cls is None:
        return payload
    if code == KEYWORD:
        return cls(**payload)
    if code == ONE:
        return cls(payload)
    if len(payload) == 3 and cls.__name__ == "Send":
        return cls(*payload[:2], timeout=payload[2])
    return cls(*payload)


def _model(cls: Any, payload: Mapping[str, Any]) -> Any:
    try:
        return cls(**payload)
    except (ValueError, TypeError):  # written by a version of the model with other fields
        return cls.model_construct(**payload)
