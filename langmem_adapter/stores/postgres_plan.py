"""What a checked batch means on PostgreSQL: whose items it touches, and what cannot be stored there."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langgraph.store.base import GetOp, ListNamespacesOp, PutOp, SearchOp

from langmem_adapter.namespaces import Namespace
from langmem_adapter.stores import plan as plans
from langmem_adapter.stores.base import RankOp
from langmem_adapter.stores.plan import Plan
from langmem_adapter.stores.postgres_filters import compile_filter
from langmem_adapter.stores.postgres_owners import EVERYBODY, owner_of, owner_under
from langmem_adapter.stores.values import check_length


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
    """The plan of a batch."""
    return plans.plan(ops, compile_filter)


def read_plan(ops: Sequence[Any], versions: Sequence[Namespace]) -> Plan:
    """The plan of `read`."""
    return plans.read_plan(ops, versions, compile_filter)


def commit_plan(puts: Sequence[PutOp], expect: Mapping[Namespace, int]) -> Plan:
    """The plan of `commit`; a namespace gets a row when it is expected to have none, too."""
    made = plans.commit_plan(puts, expect)
    for namespace in expect:
        check_length(namespace)
    return made
