"""A checked batch of store ops."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.store.base import GetOp, ListNamespacesOp, PutOp, SearchOp

from langmem_adapter.errors import InvalidInput
from langmem_adapter.namespaces import Namespace
from langmem_adapter.stores.base import RankOp
from langmem_adapter.stores.postgres_filters import compile_filter
from langmem_adapter.stores.postgres_owners import EVERYBODY, owner_of, owner_under
from langmem_adapter.stores.values import check, check_namespace, path

LONGEST_NAMESPACE = 1_000
"""Bytes; PostgreSQL cannot index much longer values."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Reads by position, puts, and the versions to return or to insist on."""

    size: int
    reads: tuple[tuple[int, Any], ...]
    puts: tuple[PutOp, ...]
    versions: tuple[Namespace, ...] = ()
    expect: Mapping[Namespace, int] | None = None

    @property
    def writes(self) -> bool:
        """Whether it needs a write transaction."""
        return bool(self.puts) or self.expect is not None

    @property
    def queries(self) -> list[str]:
        """The texts to embed for its reads."""
        return [op.query for _, op in self.reads if isinstance(op, SearchOp | RankOp) and op.query]

    @property
    def owners(self) -> set[str]:
        """Whose items it touches."""
        found = {owner_of(ns) for ns in (*self.versions, *(self.expect or ()), *(p.namespace for p in self.puts))}
        for _, op in self.reads:
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
    """The plan of a batch; raises for what cannot be run."""
    ops = list(ops)
    for op in ops:
        check(op)
        if isinstance(op, SearchOp):
            compile_filter(op.filter)
        if isinstance(op, PutOp):
            _check_put(op)
    puts = tuple(op for op in ops if isinstance(op, PutOp))
    return Plan(len(ops), tuple((i, op) for i, op in enumerate(ops) if not isinstance(op, PutOp)), puts)


def read_plan(ops: Sequence[Any], versions: Sequence[Namespace]) -> Plan:
    """The plan of `read`."""
    made = plan(ops)
    if made.puts:
        raise InvalidInput("read() takes no PutOp; use commit() or batch()")
    for namespace in versions:
        check_namespace(namespace)
    return Plan(made.size, made.reads, (), tuple(tuple(v) for v in versions))


def commit_plan(puts: Sequence[PutOp], expect: Mapping[Namespace, int]) -> Plan:
    """The plan of `commit`."""
    made = plan(puts)
    if made.reads:
        raise InvalidInput("commit() takes PutOps only; use read() or batch()")
    for namespace in expect:
        check_namespace(namespace)
        _check_length(namespace)
    return Plan(made.size, (), made.puts, (), {tuple(ns): version for ns, version in expect.items()})


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
