"""LangGraph filters as SQL on JSON text.

A filter is ANDed. `{"a.b": 1}` and `{"a": {"b": 1}}` differ: the first follows a path, the second wants the whole
dict to be equal. An operator map has only keys that start with `$`. Types are strict: 1 equals 1.0 but neither
"1" nor true; a missing field is unequal to everything but None, and neither greater nor less than anything.
"""

import json
import math
import operator
import re
import sqlite3
from collections.abc import Mapping
from typing import Any

from langmem_adapter.errors import InvalidInput

_KEY = re.compile(r"[\w-]+(?:\.[\w-]+)*")
_ORDER = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_SIGNS = {"=": operator.eq, ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
_VERBATIM = re.compile(r"[\w .:@-]{3,}", re.ASCII)
"""Strings that stand in JSON as they are, whoever wrote it."""

_PROMOTED = ("topic", "status", "slot")

Condition = tuple[str, list[Any]]


def compile_filter(filter: Mapping[str, Any] | None) -> Condition:
    """An SQL condition on `memory_items` and its parameters; ValueError for what is not a filter."""
    parts = [_test(key, op, operand) for key, given in (filter or {}).items() for op, operand in _tests(key, given)]
    return " AND ".join(sql for sql, _ in parts) or "1", [p for _, params in parts for p in params]


def listed(filter: Mapping[str, Any] | None) -> bool:
    """Whether the list index alone answers the filter, or the slot index by its key."""
    strings = {k for k, v in (filter or {}).items() if isinstance(v, str)}
    return strings == set(filter or {}) and (strings <= {"topic", "status"} or keyed(filter))


def keyed(filter: Mapping[str, Any] | None) -> bool:
    """Whether the filter names a topic and a slot: few items have both."""
    return all(isinstance((filter or {}).get(k), str) for k in ("topic", "slot"))


def register(conn: sqlite3.Connection) -> None:
    """Give the connection the functions that conditions need beside SQLite's own."""
    conn.create_function("memory_equal", 2, _equal, deterministic=True)
    conn.create_function("memory_compare", 3, _compare, deterministic=True)


def _tests(key: str, given: Any) -> list[tuple[str, Any]]:
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise InvalidInput(f"Invalid filter key: {key!r}. Use names of letters, digits, '_' and '-', joined by '.'")
    if not isinstance(given, Mapping) or not _has_operator(given):
        _refuse_operators(key, given)
        return [("$eq", given)]
    if not all(isinstance(k, str) and k.startswith("$") for k in given):
        raise InvalidInput(f"the filter on {key!r} mixes operators and fields: {dict(given)!r:.80}")
    return list(given.items())


def _has_operator(given: Mapping[Any, Any]) -> bool:
    return any(isinstance(k, str) and k.startswith("$") for k in given)


def _refuse_operators(key: str, given: Any) -> None:
    # Compared as plain data they would silently match nothing.
    if isinstance(given, Mapping):
        for k, v in given.items():
            if isinstance(v, Mapping) and _has_operator(v):
                raise InvalidInput(f"operators inside a nested dict: write the path, {f'{key}.{k}'!r}: {dict(v)!r:.80}")
            _refuse_operators(f"{key}.{k}", v)


def _test(key: str, op: str, operand: Any) -> Condition:
    if op == "$eq":
        return _equals(key, operand)
    if op == "$ne":
        sql, params = _equals(key, operand)
        return f"NOT coalesce({sql}, 0)", params
    if op not in _ORDER:
        known = ", ".join(["$eq", "$ne", *_ORDER])
        raise InvalidInput(f"Unsupported operator: {op!r} on {key!r}; known are {known}")
    if isinstance(operand, bool) or not isinstance(operand, str | int | float) or operand != operand:
        raise InvalidInput(f"{op} on {key!r} needs a number or a str, got {operand!r:.80}")
    return _typed(key, _ORDER[op], operand)


def _equals(key: str, operand: Any) -> Condition:
    if isinstance(operand, str) and key in _PROMOTED:
        return f"{key} = ?", [operand]
    at = _json_path(key)
    if operand is None:
        return "json_extract(value, ?) IS NULL", [at]
    if isinstance(operand, bool):
        return "json_type(value, ?) = ?", [at, "true" if operand else "false"]
    if isinstance(operand, str | int | float):
        sql, params = _typed(key, "=", operand)
        if isinstance(operand, str) and _VERBATIM.fullmatch(operand):
            return f"(instr(value, ?) AND {sql})", [operand, *params]  # spares most rows the parsing
        return sql, params
    # `->` keeps the JSON form; comparing it as text would depend on the order of keys.
    return "memory_equal(value -> ?, ?)", [at, json.dumps(operand)]


def _typed(key: str, sign: str, operand: str | int | float) -> Condition:
    at = _json_path(key)
    if isinstance(operand, str):
        plain = f"json_extract(value, ?) {sign} ? AND json_type(value, ?) = 'text'"
        # SQLite takes a text to end at a NUL.
        sql = f"(CASE WHEN instr(value, '\\u0000') THEN memory_compare(value -> ?, ?, ?) ELSE {plain} END)"
        return sql, [at, sign, operand, at, operand, at]
    number = float(operand) if isinstance(operand, int) and not -(2**63) <= operand < 2**63 else operand
    if isinstance(number, float) and math.isnan(number):
        return "0", []
    return f"(json_extract(value, ?) {sign} ? AND json_type(value, ?) IN ('integer', 'real'))", [at, number, at]


def _json_path(key: str) -> str:
    return "$." + ".".join(f'"{part}"' for part in key.split("."))


def _equal(stored: str | None, wanted: str) -> bool:
    return stored is not None and _same(json.loads(stored), json.loads(wanted))


def _compare(stored: str | None, sign: str, operand: str) -> bool:
    text = None if stored is None else json.loads(stored)
    return isinstance(text, str) and bool(_SIGNS[sign](text, operand))


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)
