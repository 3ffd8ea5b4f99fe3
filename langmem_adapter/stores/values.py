"""What may be stored, and its form in the database: JSON text, joined labels, microseconds."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
    validate_op_namespace,
)

from langmem_adapter.errors import InvalidInput, StoreCorrupt
from langmem_adapter.namespaces import Namespace
from langmem_adapter.stores.base import RankOp

try:
    import orjson  # comes with LangChain; several times faster
except ImportError:  # pragma: no cover
    orjson = None  # type: ignore[assignment]

# Before a text that orjson could not have written (it has no integers beyond 64 bits) and would misread.
_PLAIN_JSON = " "
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LONGEST_NAMESPACE = 1_000
"""Bytes of its labels with the dots between them. PostgreSQL cannot index much longer values, nor keep a NUL: what one
store takes another must be able to take over."""
_MAX_TTL = 1e9  # minutes: 1,900 years


def check(op: Any) -> None:
    """Raise for an op that cannot be run: unknown type, bad namespace, key, ttl, limit or offset."""
    if isinstance(op, RankOp):
        for namespace in op.namespaces:
            check_namespace(namespace)
        _check_page(op.limit, 0)
        _check_query(op.query)
        return
    if not isinstance(op, GetOp | SearchOp | PutOp | ListNamespacesOp):
        raise ValueError(f"Unknown operation type: {type(op).__name__}")
    if isinstance(op, PutOp):
        check_namespace(op.namespace)
        _check_put(op)
    else:
        validate_op_namespace(op)
    if isinstance(op, PutOp | GetOp):
        _check_text(op.key, "key")
    if isinstance(op, GetOp):
        _check_unicode(op.namespace)
    if isinstance(op, SearchOp):
        _check_unicode(op.namespace_prefix)
        _check_query(op.query)
        _check_filter(op.filter)
    if isinstance(op, SearchOp | ListNamespacesOp):
        _check_page(op.limit, op.offset)
    if isinstance(op, ListNamespacesOp):
        for condition in op.match_conditions or ():
            _check_unicode(condition.path)
            if condition.match_type not in ("prefix", "suffix"):
                raise InvalidInput(f"match_type is 'prefix' or 'suffix', got {condition.match_type!r}")


def _check_put(op: PutOp) -> None:
    if op.value is not None:  # what an older version took can be deleted
        check_length(op.namespace)
        if isinstance(op.key, str) and "\0" in op.key:
            raise InvalidInput(f"key has a NUL character, which no store of ours keeps: {op.key!r:.80}")
    ttl, paths = op.ttl, op.index
    if ttl is not None and (not _is_number(ttl) or not (0 <= ttl <= _MAX_TTL)):
        raise InvalidInput(f"ttl is in minutes, from 0 to {_MAX_TTL:.0e}, or None for never; got {ttl!r}")
    if paths is not None and paths is not False and not _are_paths(paths):
        raise InvalidInput(f"index is a list of paths, False, or None for the store's own; got {paths!r:.80}")


def check_length(namespace: Sequence[str]) -> None:
    """InvalidInput for a namespace that is too long to be written to."""
    size = len(path(namespace).encode())
    if size > LONGEST_NAMESPACE:
        raise InvalidInput(
            f"the namespace is {size} bytes long, at most {LONGEST_NAMESPACE} can be stored: {namespace!r:.80}"
        )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_paths(paths: object) -> bool:
    return isinstance(paths, list | tuple) and all(isinstance(p, str) for p in paths)


def erasable(prefix: Sequence[str], keys: Sequence[str] | None, instead: str) -> tuple[Namespace, list[str] | None]:
    """Prefix and keys of an erasure; InvalidInput for none, and for a str, which would be taken letter by letter."""
    for name, given in (("namespace_prefix", prefix), ("keys", keys)):
        if isinstance(given, str):
            raise InvalidInput(f"{name} is a list of str, got the str {given!r:.80}; write [{given!r:.80}]")
    if not prefix:
        raise InvalidInput(f"erase(()) would erase everything; {instead} instead")
    where = tuple(prefix)
    check(SearchOp(where))
    if keys is None:
        return where, None
    for key in keys:
        _check_text(key, "a key to erase")
    return where, list(keys)


def check_namespace(namespace: Sequence[str]) -> None:
    """Raise InvalidNamespaceError for a namespace that nothing may be written to."""
    try:
        _check_namespace(tuple(namespace))
    except TypeError:  # a label that cannot be hashed
        _check_namespace.__wrapped__(tuple(namespace))


@lru_cache(maxsize=1_000)
def _check_namespace(namespace: Namespace) -> None:
    validate_op_namespace(GetOp(namespace, ""))
    if not namespace:
        raise InvalidNamespaceError("Namespace cannot be empty.")
    if namespace[0] == "langgraph":
        raise InvalidNamespaceError(f'Root label for namespace cannot be "langgraph". Got: {namespace}')
    _check_unicode(namespace)


def _check_unicode(namespace: Sequence[str]) -> None:
    try:
        ".".join(namespace).encode()
    except UnicodeEncodeError as e:
        raise InvalidNamespaceError(f"Namespace is not valid Unicode: {namespace!r:.80}") from e


def _check_text(text: str, what: str) -> None:
    if not isinstance(text, str):
        raise InvalidInput(f"{what} must be a str, got {type(text).__name__}: {text!r:.80}")
    try:
        text.encode()
    except UnicodeEncodeError as e:
        raise InvalidInput(f"{what} is not valid Unicode (a lone surrogate): {text!r:.80}") from e


def _check_page(limit: int, offset: int) -> None:
    for name, given in (("limit", limit), ("offset", offset)):
        if not isinstance(given, int) or isinstance(given, bool) or not 0 <= given < 2**62:
            raise InvalidInput(f"{name} is an int below 2**62 and cannot be negative, got {given!r:.80}")


def _check_query(query: object) -> None:
    if query is not None and not isinstance(query, str):
        raise InvalidInput(f"query is a str or None, got {type(query).__name__}: {query!r:.80}")


def _check_filter(filter: object) -> None:
    if filter is None:
        return
    if not isinstance(filter, Mapping):
        raise InvalidInput(f"filter is a dict, field to value; got {type(filter).__name__}: {filter!r:.80}")
    try:
        _check_operand(filter, "filter")
    except RecursionError as e:
        raise InvalidInput("the filter is nested too deeply, or contains itself") from e


def _check_operand(value: object, at: str) -> None:
    if isinstance(value, Mapping):
        for k, v in value.items():
            _check_text(k, f"a key of {at}")
            _check_operand(v, f"{at}[{k!r}]")
    elif isinstance(value, list | tuple):
        for i, v in enumerate(value):
            _check_operand(v, f"{at}[{i}]")
    elif isinstance(value, str):
        _check_text(value, at)
    elif isinstance(value, int) and value.bit_length() > 1023:
        raise InvalidInput(f"{at} is an int of {value.bit_length()} bits; filters compare numbers up to 2**1023")
    elif value is not None and not isinstance(value, int | float):
        raise InvalidInput(f"{at} is a {type(value).__name__}, which no stored value equals: {value!r:.80}")


def path(namespace: Sequence[str]) -> str:
    """The stored form of a namespace."""
    return ".".join(namespace)


def namespace(path: str) -> Namespace:
    """The namespace of a stored path."""
    return tuple(path.split("."))


def matches(condition: MatchCondition, namespace: Namespace) -> bool:
    """Whether a namespace begins (or ends) as asked; "*" stands for any label."""
    wanted = condition.path
    if len(namespace) < len(wanted):
        return False
    part = namespace[: len(wanted)] if condition.match_type == "prefix" else namespace[len(namespace) - len(wanted) :]
    return all(w in ("*", label) for w, label in zip(wanted, part, strict=True))


def under(prefix: Sequence[str], column: str = "path") -> tuple[str, tuple[str, ...]]:
    """A condition true for the namespace itself and all below it, by whole labels; an index range, no pattern."""
    if not prefix:
        return "1", ()
    start = path(prefix)
    return f"({column} = ? OR ({column} > ? AND {column} < ?))", (start, f"{start}.", f"{start}/")  # '/' follows '.'


def encode(value: Mapping[str, Any]) -> str:
    """The JSON text of a value. Raises InvalidInput, or TypeError, naming the path, for what JSON cannot hold."""
    if not isinstance(value, Mapping):
        raise TypeError(f"a value must be a dict with str keys, got {type(value).__name__}: {value!r:.80}")
    value = dict(value)
    return _fast(value) or _careful(value)


def _fast(value: dict[str, Any]) -> str | None:
    """The JSON text, if orjson is there and gives back what it was given; it takes dates for text and NaN for null."""
    if orjson is None:
        return None
    try:
        raw = orjson.dumps(value)
        return raw.decode() if orjson.loads(raw) == value else None
    except (TypeError, ValueError, RecursionError):
        return None


def _careful(value: dict[str, Any]) -> str:
    try:
        text = _to_json(value)
        text.encode()
        keys = _has_str_keys(value)
    except RecursionError as e:
        raise InvalidInput("the value is nested too deeply to be stored") from e
    except (TypeError, ValueError) as e:
        try:
            _raise_for(value)
        except RecursionError:
            raise InvalidInput("the value contains itself") from e
        raise
    if not keys:
        _raise_for(value)
    return _PLAIN_JSON + text


_to_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def _has_str_keys(value: Any) -> bool:
    left = [value]
    while left:
        v = left.pop()
        if isinstance(v, dict):
            if not all(isinstance(k, str) for k in v):
                return False
            left += v.values()
        elif isinstance(v, list | tuple):
            left += v
    return True


def _raise_for(value: Any, at: str = "value") -> None:
    """Find what made `value` unfit and raise an error that says where it is."""
    if isinstance(value, dict):
        for k, v in value.items():
            if not isinstance(k, str):
                raise TypeError(f"{at} has the key {k!r}, a {type(k).__name__}; keys must be str")
            _check_text(k, f"a key of {at}")
            _raise_for(v, f"{at}[{k!r}]")
    elif isinstance(value, list | tuple):
        for i, v in enumerate(value):
            _raise_for(v, f"{at}[{i}]")
    elif isinstance(value, str):
        _check_text(value, at)
    elif isinstance(value, float) and not math.isfinite(value):
        raise InvalidInput(f"{at} is {value}, which JSON cannot hold; use None")
    elif value is not None and not isinstance(value, str | int | float | bool):
        raise TypeError(f"{at} is a {type(value).__name__}, which is not JSON: {value!r:.80}")


def decode(text: str, name: str) -> dict[str, Any]:
    """The value of stored JSON text; StoreCorrupt, naming the file, if it is damaged."""
    try:
        value = json.loads(text) if orjson is None or text.startswith(_PLAIN_JSON) else orjson.loads(text)
    except ValueError as e:
        raise StoreCorrupt(f"{name} holds a damaged value ({e}); it was left as it is") from e
    if not isinstance(value, dict):
        raise StoreCorrupt(f"{name} holds a value that is no object; it was left as it is")
    return value


def strings(value: Any) -> Iterator[str]:
    """Every string inside a value, keys of dicts excepted."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for v in value.values():
            yield from strings(v)
    elif isinstance(value, list | tuple):
        for v in value:
            yield from strings(v)


# An id has a hexadecimal letter somewhere: a long number may be somebody's telephone.
_IDS_AND_TIMES = re.compile(r"(?:[0-9a-zA-Z]{0,8}[-_:]?(?=[0-9-]*[a-f])[0-9a-f-]{12,}|\d{4}-\d\d-\d\dT[\d:.+Z-]+)\Z")


def telling(value: Any) -> set[str]:
    """The strings of a value that say something and are long enough to be recognised: no ids, no times."""
    return {s for s in strings(value) if len(s) >= 8 and not _IDS_AND_TIMES.match(s)}


def inside_json(text: str) -> str:
    """The text as it stands between the quotes of stored JSON."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def micros(seconds: float) -> int:
    """Microseconds since the epoch."""
    return round(seconds * 1e6)


def when(micros: int) -> datetime:
    """The UTC time of microseconds since the epoch."""
    return _EPOCH + timedelta(microseconds=micros)
