"""Values to bytes and back: msgpack in LangGraph's own wire format, strict about types.

A type that is not in the allowlist raises when it is written, and a payload naming one raises when it is read,
before anything is imported. Messages are handed out to the caller, who stores each once; in their place stands a
reference. Without a caller for them they are written in place.
"""

import dataclasses
import importlib
import logging
import re
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

import ormsgpack
from langchain_core.messages import BaseMessage
from langchain_core.runnables import AddableDict
from langgraph.checkpoint.serde import jsonplus
from langgraph.checkpoint.serde.types import SendProtocol, _DeltaSnapshot
from pydantic import BaseModel

from langmem_adapter.checkpoint.allowlist import SAFE, Name, name_of
from langmem_adapter.checkpoint.errors import UnlistedType
from langmem_adapter.errors import InvalidInput, StoreCorrupt

ONE, POSITIONAL, KEYWORD, METHOD, V1, V2, ARRAY, SNAPSHOT = range(8)
"""Extension codes of LangGraph's serializer."""
REFERENCE = 100
"""A message stored apart: its sequence number in the thread, four bytes."""
BYTEARRAY = 101

# The options LangGraph packs with, so that both read each other; and subclasses of built-in types are ours to judge.
PACK = jsonplus._option | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
UNPACK = ormsgpack.OPT_NON_STR_KEYS

logger = logging.getLogger("langmem_adapter")

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
        if not isinstance(module, str) or not isinstance(name, str):
            raise StoreCorrupt("a stored value names a type by something that is no text; it was not loaded")
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
        f"SqliteCheckpointer(path, allow=[{name!r}, …]); state_types(graph) lists those that a graph's state declares"
    )


def _find(name: Name, *, load: bool = False) -> Any:
    """What has this name now; None if it is gone."""
    try:
        module = importlib.import_module(name[0]) if load else sys.modules.get(name[0])
    except ImportError:
        return None
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
            return self._array(value)
        base = _builtin_base(value)
        still_equal = isinstance(value, str | int | float) or type(value) in _STILL_DICTS
        if base is not None and still_equal and name_of(type(value)) not in self._codec.allowed:
            return base
        self._codec.check(value)
        if base is not None:
            return self._ext(ONE, value, base)
        if callable(getattr(value, "model_dump", None)):
            return self._ext(V2, value, _model_fields(value), "model_validate_json")
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

    def _array(self, value: Any) -> Any:
        if value.dtype.hasobject or value.dtype.names:
            raise InvalidInput(f"an array of dtype {value.dtype} cannot be stored; make it a list, or one of numbers")
        if value.dtype.kind not in "mM":
            return jsonplus._msgpack_default(value)
        return ormsgpack.Ext(ARRAY, self((value.dtype.str, value.shape, "C", value.tobytes())))  # times have no buffer

    def _ext(self, code: int, value: Any, *parts: Any) -> Any:
        return ormsgpack.Ext(code, self((*name_of(type(value)), *parts)))


_STILL_DICTS = frozenset((OrderedDict, defaultdict, Counter, AddableDict))
"""Dicts that are equal to the plain dict they come back as."""


def _builtin_base(value: Any) -> Any:
    """The plain value inside an instance of a subclass of a built-in type; None for anything else."""
    if isinstance(value, Enum):
        return None
    plain: Sequence[type[Any]] = (str, int, float, dict, list)
    return next((cls(value) for cls in plain if isinstance(value, cls)), None)


def _model_fields(value: Any) -> Any:
    """The fields of a pydantic model with the objects they hold, so that those keep their own types. A model that
    says itself how it is written is asked."""
    cls = type(value)
    if not isinstance(value, BaseModel) or _writes_itself(cls):
        return value.model_dump()
    hidden = {name for name, field in cls.model_fields.items() if field.exclude}
    return {k: v for k, v in {**value.__dict__, **(value.__pydantic_extra__ or {})}.items() if k not in hidden}


def _writes_itself(cls: type[BaseModel]) -> bool:
    own = cls.__pydantic_decorators__
    return cls.model_dump is not BaseModel.model_dump or bool(own.field_serializers or own.model_serializers)


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
        cls = self._codec.load(module, name)
        try:
            return _build(code, cls, payload)
        except Exception as e:  # noqa: BLE001 - whatever a class of the user's may raise; as LangGraph does
            return _left_as_data(module, name, payload, e)

    def _referred(self, number: int) -> Any:
        if self._fetch is None:
            raise StoreCorrupt("a stored value refers to a message outside its thread")
        return self._fetch(number)


def _by_method(module: str, name: str, method: str, payload: Any) -> Any:
    if (module, name, method) != ("datetime", "datetime", "fromisoformat"):
        raise _unlisted((f"{module}.{name}", method), "is named by a stored value and was not loaded")
    return getattr(getattr(importlib.import_module(module), name), method)(payload)


def _left_as_data(module: str, name: str, payload: Any, error: Exception) -> Any:
    """A value whose class is gone or has changed: its data, so that all else in the checkpoint can still be read."""
    if (module, name) not in _reported:
        _reported.add((module, name))
        # The error's own words may quote the value, and no text goes to the log.
        what = type(error).__name__
        logger.warning("a stored %s.%s could not be rebuilt (%s); its data is given instead", module, name, what)
    return payload


_reported: set[Name] = set()


def _build(code: int, cls: Any, payload: Any) -> Any:
    if cls is None:
        raise LookupError("there is no such class any more")
    if code == V2:
        return _model(cls, payload)
    if code == V1:
        return cls(**payload)
    if code == KEYWORD and dataclasses.is_dataclass(cls):
        return _dataclass(cls, payload)
    if code == KEYWORD and issubclass(cls, tuple) and set(cls._fields) == set(payload):
        return cls._make(payload[f] for f in cls._fields)
    if code == KEYWORD:
        return cls(**payload)
    if code == ONE:
        return cls(payload)
    if len(payload) == 3 and cls.__name__ == "Send":
        return cls(*payload[:2], timeout=payload[2])
    return cls(*payload)


def _dataclass(cls: Any, payload: Mapping[str, Any]) -> Any:
    """An instance with these fields. One that its own `__init__` does not make of them is filled in beside it."""
    fields = {f.name: f for f in dataclasses.fields(cls)}
    if all(f.init for f in fields.values()):
        try:
            return cls(**payload)
        except TypeError:
            pass
    made = cls.__new__(cls)
    for name, field in fields.items():
        if name in payload:
            object.__setattr__(made, name, payload[name])
        elif field.default is not dataclasses.MISSING:
            object.__setattr__(made, name, field.default)
        elif field.default_factory is not dataclasses.MISSING:
            object.__setattr__(made, name, field.default_factory())
        else:
            raise TypeError(f"it now has the field {name!r}, which was not stored and has no default")
    return made


def _model(cls: Any, payload: Mapping[str, Any]) -> Any:
    try:
        return cls(**payload)
    except (ValueError, TypeError):  # written by a version of the model with other fields
        return cls.model_construct(**payload)
