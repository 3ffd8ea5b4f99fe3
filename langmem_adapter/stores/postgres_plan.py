"""What a checked batch means on PostgreSQL: whose items it touches, and what cannot be stored there."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langgraph.store.base import GetOp, ListNamespacesOp, PutOp, SearchOp

from langmem_adapter.errors import InvalidInput
from langmem_adapter.namespaces import Namespace
from langmem_adapter.stores import plan as plans
from langmem_adapter.stores.base import RankOp
from langmem_adapter.stores.plan import Plan
from langmem_adapter.stores.postgres_filters import compile_filter
from langmem_adapter.stores.postgres_owners import EVERYBODY, owner_of, owner_under
from langmem_adapter.stores.values import path

LONGEST_NAMESPACE = 1_000
"""Bytes; PostgreSQL cannot index much longer values."""


def owners_of(plan: Plan) -> set[str]:
    """Whose items a plan touches."""
    found = {owner_of(ns) for ns in (*plan.versions, *(plan.expect or ()), *(p.namespace for p in plan.puts))}
    for _, op in plan.reads:
        found |= _owners(op)
    return found


def _owners(op: Any) -> set[str]:
    if isinstance(op, GetOp):
        return {owner_of(op.namespace)} if op.namespace else set()
    if isinstance(op, RankOp):
        return {owner_of(ns) for ns in op.namespaces}
    return {owner_under(scope(op)) or EVERYBODY}


def scope(op: SearchOp | ListNamespacesOp) -> tuple[str, ...]:
    """A prefix that all namespaces an op asks for have."""
    if isinstance(op, SearchOp):
        return tuple(op.namespace_prefix)
    prefixes = [c.path for c in op.match_conditions or () if c.match_type == "prefix"]
    plain = [tuple(p[: p.index("*")] if "*" in p else p) for p in prefixes]
    return max(plain, key=len, default=())


def plan(ops: Iterable[Any]) -> Plan:
    """The plan of a batch; raises also for what PostgreSQL cannot store."""
    made = plans.plan(ops, compile_filter)
    for put in made.puts:
        _check_put(put)
    return made


def read_plan(ops: Sequence[Any], versions: Sequence[Namespace]) -> Plan:
    """The plan of `read`."""
    return plans.read_plan(ops, versions, compile_filter)


def commit_plan(puts: Sequence[PutOp], expect: Mapping[Namespace, int]) -> Plan:
    """The plan of `commit`; raises also for what PostgreSQL cannot store."""
    made = plans.commit_plan(puts, expect)
    for put in made.puts:
        _check_put(put)
    for namespace in expect:
        _check_length(namespace)
    return made


def _check_put(op: PutOp) -> None:
    _check_length(op.namespace)
    if "\0" in op.key:
        raise InvalidInput(f"key has a NUL character, which PostgreSQL cannot store: {op.key!r:.80}")


def _check_length(namespace: Sequence[str]) -> None:
    size = len(path(namespace).encode())
    if size > LONGEST_NAMESPACE:
        raise InvalidInput(
            f"the namespace is {size} bytes long, at most {LONGEST_NAMESPACE} can be stored: {namespace!r:.80}"
        )
