"""LangGraph filters as SQL on the `json` column `i.value`; what they mean is said in `filters`."""

import json
import math
from collections.abc import Mapping
from typing import Any

from langmem_adapter.errors import InvalidInput
from langmem_adapter.stores import filters

_ORDER = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_PROMOTED = ("topic", "status")

Condition = tuple[str, list[Any]]


def compile_filter(filter: Mapping[str, Any] | None) -> Condition:
    """An SQL condition on `items i` and its parameters; ValueError for what is not a filter."""
    filters.compile_filter(filter)  # refuses bad keys, operators and operands
    parts = [_test(key, op, operand) for key, given in (filter or {}).items() for op, operand in _tests(given)]
    # The promoted columns first: the database tests them before it parses any JSON.
    parts.sort(key=lambda part: "value" in part[0])
    return " AND ".join(sql for sql, _ in parts) or "true", [p for _, params in parts for p in params]


def _tests(given: Any) -> list[tuple[str, Any]]:
    operators = isinstance(given, Mapping) and any(str(k).startswith("$") for k in given)
    return list(given.items()) if operators else [("$eq", given)]


def _test(key: str, op: str, operand: Any) -> Condition:
    if op == "$eq":
        return _equals(key, operand)
    if op == "$ne":
        sql, params = _equals(key, operand)
        return f"NOT coalesce({sql}, false)", params
    if not _storable(operand):
        raise InvalidInput(f"{op} on {key!r} has an operand that cannot be stored: {operand!r:.80}")
    return _typed(key, _ORDER[op], operand)


def _equals(key: str, operand: Any) -> Condition:
    if not _storable(operand):
        return "false", []  # no stored value can be equal
    if isinstance(operand, str) and key in _PROMOTED:
        # Indexed are their beginnings.
        return f"(left(i.{key}, 100) = left(%s, 100) AND i.{key} = %s)", [operand, operand]
    at, path = _at(key)
    if operand is None:
        return f"({at} IS NULL OR json_typeof({at}) = 'null')", [*path, *path]
    if isinstance(operand, bool):
        return f"({at})::text = %s", [*path, "true" if operand else "false"]
    if isinstance(operand, str | int | float):
        return _typed(key, "=", operand)
    return f"({at})::jsonb = %s::jsonb", [*path, json.dumps(operand)]


def _typed(key: str, sign: str, operand: str | int | float) -> Condition:
    at, path = _at(key)
    if isinstance(operand, str):
        # By code points, whatever the database's collation.
        text = f"({at} #>> '{{}}') COLLATE \"C\""
        return f"(json_typeof({at}) = 'string' AND {text} {sign} %s)", [*path, *path, operand]
    number = f"({at})::text::numeric {sign} %s::numeric"
    return f"CASE WHEN json_typeof({at}) = 'number' THEN {number} ELSE false END", [*path, *path, repr(operand)]


def _at(key: str) -> Condition:
    # `-> text` steps into objects only; a path operator would also count into lists.
    steps = key.split(".")
    return "(i.value" + " -> %s::text" * len(steps) + ")", list(steps)


def _storable(operand: Any) -> bool:
    if isinstance(operand, float):
        return not math.isnan(operand)
    if operand is None or isinstance(operand, bool | int):
        return True
    try:
        text = json.dumps(operand, ensure_ascii=False, allow_nan=False)
        text.encode()
    except ValueError:
        return False
    return "\\u0000" not in text
