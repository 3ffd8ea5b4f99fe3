"""LangGraph filters on Chroma: what the database can check, and a test in Python for the rest.

`filters.compile_filter` says what is a filter and what it means; here is the same meaning for parsed values.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langmem_adapter.stores.chroma_rows import PROMOTED, is_short

Test = Callable[[Mapping[str, Any]], bool]

MOST_PATHS = 1_000
"""Namespaces named in one condition; Chroma takes 32,762, but slows down long before."""

_MISSING = object()


def where_of(paths: Sequence[str], filter: Mapping[str, Any] | None) -> dict[str, Any]:
    """Chroma's condition for the items of these namespaces that may meet the filter; never excludes one that does."""
    clauses: list[dict[str, Any]] = [{"ns": paths[0]} if len(paths) == 1 else {"ns": {"$in": list(paths)}}]
    clauses += [{key: wanted} for key, given in (filter or {}).items() if (wanted := _pushed(key, given)) is not None]
    return clauses[0] if len(clauses) == 1 else {"$and": clauses}


def test_of(filter: Mapping[str, Any] | None) -> Test | None:
    """What is left to be checked of the values; None if the database checks it all."""
    left = [(key.split("."), given) for key, given in (filter or {}).items() if _pushed(key, given) is None]
    if not left:
        return None
    return lambda value: all(_meets(_at(value, at), given) for at, given in left)


def _pushed(key: str, given: Any) -> str | None:
    """The string that the promoted field must equal, if that is all the filter says."""
    if isinstance(given, Mapping) and list(given) == ["$eq"]:
        given = given["$eq"]
    return given if key in PROMOTED and is_short(given) else None


def _at(value: Any, steps: Sequence[str]) -> Any:
    for step in steps:
        if not isinstance(value, dict) or step not in value:
            return _MISSING
        value = value[step]
    return value


def _meets(found: Any, given: Any) -> bool:
    if isinstance(given, Mapping) and any(isinstance(k, str) and k.startswith("$") for k in given):
        return all(_compare(found, op, operand) for op, operand in given.items())
    return _equals(found, given)


def _compare(found: Any, op: str, operand: Any) -> bool:
    if op in ("$eq", "$ne"):
        return _equals(found, operand) == (op == "$eq")
    if not _comparable(found, operand):
        return False
    if op == "$gt":
        return bool(found > operand)
    if op == "$gte":
        return bool(found >= operand)
    return bool(found < operand) if op == "$lt" else bool(found <= operand)


def _comparable(a: Any, b: Any) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return isinstance(a, str) and isinstance(b, str)
    return all(isinstance(x, int | float) and not isinstance(x, bool) for x in (a, b))


def _equals(found: Any, wanted: Any) -> bool:
    if wanted is None:
        return found is None or found is _MISSING  # as in SQL: what is not there is null
    return found is not _MISSING and _same(found, wanted)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)
