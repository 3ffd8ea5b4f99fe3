"""Which types may stand in a checkpoint, and how to find out which ones a graph needs."""

import dataclasses
import sys
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, get_args, get_type_hints

from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_TYPES  # the list langgraph itself holds safe
from pydantic import BaseModel
from typing_extensions import is_typeddict

from langmem_adapter.errors import InvalidInput

Name = tuple[str, str]
"""Module and name of a type."""

SAFE = frozenset((t[0], t[1]) for t in SAFE_MSGPACK_TYPES)
"""Always allowed: messages, documents, LangGraph's own types, dates, numbers, paths, sets."""


def name_of(cls: type) -> Name:
    """How a stored value names its type."""
    return cls.__module__, cls.__name__


def names(allow: Iterable[type | tuple[str, ...]]) -> frozenset[Name]:
    """The allowlist as names; it may be given as types, as (module, name) pairs, or both."""
    if isinstance(allow, str | type) or not isinstance(allow, Iterable):
        raise InvalidInput(f"allow= takes a list of types, or state_types(graph), not {allow!r}")
    found = set()
    for entry in allow:
        if isinstance(entry, type):
            found.add(name_of(entry))
        elif isinstance(entry, tuple) and len(entry) == 2 and all(isinstance(part, str) for part in entry):
            found.add((entry[0], entry[1]))
        else:
            raise InvalidInput(f"allow= takes types and (module, name) pairs, not {entry!r}")
    return frozenset(found)


def state_types(graph: Any) -> frozenset[Name]:
    """The types a graph's state, inputs, outputs and nodes are declared with, for `SqliteCheckpointer(allow=…)`.

    Takes a `StateGraph` (before it is compiled), a compiled graph, or an `@entrypoint`. Types that appear only at run
    time, under `Any` or an untyped `dict`, given to `interrupt`, or as an agent's `response_format`, are not seen: add
    those by hand (`allow={*state_types(graph), Answer}`). Subgraphs called inside a node need
    their own call.
    """
    found: set[Name] = set()
    seen: set[int] = set()
    for hint in _declared(graph):
        _collect(hint, found, seen)
    return frozenset(found - SAFE)


def _declared(graph: Any) -> Iterator[Any]:
    """Every type annotation a graph holds."""
    builder = getattr(graph, "builder", graph)
    channels = getattr(graph, "channels", None) or getattr(builder, "channels", None)
    if channels is None:
        raise InvalidInput(f"state_types takes a StateGraph, a compiled graph or an @entrypoint, not {graph!r}")
    for name in ("state_schema", "input_schema", "output_schema"):
        yield getattr(builder, name, None)
    for channel in channels.values():
        yield getattr(channel, "ValueType", None)
        yield getattr(channel, "UpdateType", None)
    for node in getattr(builder, "nodes", {}).values():
        yield getattr(node, "input_schema", None)
        inner = getattr(node, "runnable", None) or getattr(node, "bound", None)
        if inner is not None and hasattr(inner, "channels"):  # a compiled graph as a node
            yield from _declared(inner)


def _collect(hint: Any, found: set[Name], seen: set[int]) -> None:
    if hint is None or id(hint) in seen:
        return
    seen.add(id(hint))
    for part in get_args(hint):
        _collect(type(part) if isinstance(part, Enum) else part, found, seen)  # a member in a Literal
    hint = getattr(hint, "__supertype__", hint)  # NewType
    if not isinstance(hint, type):
        return
    if is_typeddict(hint):
        _collect_fields(hint, found, seen)
    elif issubclass(hint, BaseModel) or dataclasses.is_dataclass(hint) or hasattr(hint, "_fields"):
        found.add(name_of(hint))
        _collect_fields(hint, found, seen)
    elif issubclass(hint, Enum):
        found.add(name_of(hint))


def _collect_fields(cls: type, found: set[Name], seen: set[int]) -> None:
    if name_of(cls) in SAFE:
        return
    module = sys.modules.get(cls.__module__)
    try:
        hints = get_type_hints(cls, globalns=vars(module) if module else None, include_extras=True)
    except (NameError, TypeError):  # an annotation that exists only for type checkers
        hints = getattr(cls, "__annotations__", {})
    for hint in hints.values():
        if not isinstance(hint, str):
            _collect(hint, found, seen)
