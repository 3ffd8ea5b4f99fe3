"""What our stores are asked for, checked before anything is done: a batch of ops, and a LangGraph index config."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langgraph.store.base import IndexConfig, PutOp, SearchOp, TTLConfig

from langmem_adapter.errors import InvalidInput
from langmem_adapter.namespaces import Namespace
from langmem_adapter.stores import writing
from langmem_adapter.stores.base import Mode, RankOp
from langmem_adapter.stores.embedder import Embedder
from langmem_adapter.stores.filters import compile_filter
from langmem_adapter.stores.values import check, check_namespace


@dataclass(frozen=True, slots=True)
class Plan:
    """A checked batch: reads by position, puts, and the versions to return or to insist on."""

    size: int
    reads: tuple[tuple[int, Any], ...]
    puts: tuple[PutOp, ...]
    versions: tuple[Namespace, ...] = ()
    expect: Mapping[Namespace, int] | None = None

    @property
    def writes(self) -> bool:
        """Whether it needs a write transaction."""
        return bool(self.puts) or self.expect is not None

    def queries(self, mode: Mode = "hybrid") -> list[str]:
        """The texts to embed for its reads, in a store of this mode."""
        asked = [op for _, op in self.reads if isinstance(op, SearchOp | RankOp)]
        return [op.query for op in asked if op.query and (op.mode if isinstance(op, RankOp) else mode) != "text"]

    def embeds(self, mode: Mode) -> bool:
        """Whether it may need an embedder."""
        return any(p.value is not None and p.index is not False for p in self.puts) or bool(self.queries(mode))


def plan(ops: Iterable[Any], check_filter: Callable[[Any], object] = compile_filter) -> Plan:
    """The plan of a batch; raises for what cannot be run. `check_filter` raises for a bad filter."""
    ops = list(ops)
    for op in ops:
        check(op)
        if isinstance(op, SearchOp):
            check_filter(op.filter)
    puts = tuple(op for op in ops if isinstance(op, PutOp))
    return Plan(len(ops), tuple((i, op) for i, op in enumerate(ops) if not isinstance(op, PutOp)), puts)


def read_plan(
    ops: Sequence[Any], versions: Sequence[Namespace], check_filter: Callable[[Any], object] = compile_filter
) -> Plan:
    """The plan of `read`."""
    made = plan(ops, check_filter)
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
    return Plan(made.size, (), made.puts, (), {tuple(ns): version for ns, version in expect.items()})


_INDEX = ("dims", "embed", "fields", "distance_type", "ann_index_config")
_TTL = ("default_ttl", "refresh_on_read", "sweep_interval_minutes")


def check_ttl(ttl: TTLConfig | None) -> None:
    """InvalidInput unless it is a ttl config as LangGraph has them, or None."""
    if ttl is not None:
        _check_config("ttl", ttl, _TTL)


def _check_config(name: str, config: object, known: Sequence[str]) -> None:
    if not isinstance(config, Mapping):
        raise InvalidInput(f"{name} is a dict with {', '.join(known)}; got {type(config).__name__}: {config!r:.80}")
    unknown = [k for k in config if k not in known and not str(k).startswith("__")]  # upstream keeps notes in it
    if unknown:
        raise InvalidInput(f"{name} has the unknown keys {unknown}; known are {', '.join(known)}")


def read_index(index: IndexConfig | None) -> tuple[Embedder | None, tuple[str, ...]]:
    """The embedder of an index config, and the paths that are indexed by default."""
    if index is None:
        return None, writing.WHOLE
    _check_config("index", index, _INDEX)
    given = index.get("fields") or writing.WHOLE
    if not isinstance(given, list | tuple) or not all(isinstance(f, str) for f in given):
        raise InvalidInput(f"index['fields'] is a list of paths, got {given!r:.80}")
    fields = tuple(given)
    if "embed" not in index and "dims" not in index:
        return None, fields
    distance = cast(Mapping[str, Any], index).get("distance_type", "cosine")
    if distance != "cosine":
        raise InvalidInput(f"index['distance_type'] must be 'cosine', got {distance!r}")
    return Embedder(index.get("embed"), index.get("dims")), fields
