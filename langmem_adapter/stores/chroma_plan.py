"""A batch, checked before anything is done, and where a store stands with its embedder."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langgraph.store.base import IndexConfig, PutOp, SearchOp

from langmem_adapter.errors import EmbedderMismatch, InvalidInput
from langmem_adapter.namespaces import Namespace
from langmem_adapter.stores import embedder as embedders
from langmem_adapter.stores import writing
from langmem_adapter.stores.base import RankOp
from langmem_adapter.stores.chroma_places import Places
from langmem_adapter.stores.embedder import Embedder, Stored
from langmem_adapter.stores.filters import compile_filter
from langmem_adapter.stores.values import check, check_namespace


@dataclass(frozen=True, slots=True)
class Plan:
    """Reads, puts, and the versions to return or to insist on."""

    size: int
    reads: tuple[tuple[int, Any], ...]
    """By position in the batch."""
    puts: tuple[PutOp, ...]
    versions: tuple[Namespace, ...] = ()
    expect: Mapping[Namespace, int] | None = None

    @property
    def writes(self) -> bool:
        return bool(self.puts) or self.expect is not None

    @property
    def queries(self) -> list[str]:
        return [op.query for _, op in self.reads if isinstance(op, SearchOp | RankOp) and op.query]


def plan(ops: Iterable[Any]) -> Plan:
    """Any ops."""
    ops = list(ops)
    for op in ops:
        check(op)
        if isinstance(op, SearchOp):
            compile_filter(op.filter)
    puts = tuple(op for op in ops if isinstance(op, PutOp))
    return Plan(len(ops), tuple((i, op) for i, op in enumerate(ops) if not isinstance(op, PutOp)), puts)


def read_plan(ops: Sequence[Any], versions: Sequence[Namespace]) -> Plan:
    """Reads with versions."""
    checked = plan(ops)
    if checked.puts:
        raise InvalidInput("read() takes no PutOp; use commit() or batch()")
    for namespace in versions:
        check_namespace(namespace)
    return Plan(checked.size, checked.reads, (), tuple(tuple(v) for v in versions))


def commit_plan(puts: Sequence[PutOp], expect: Mapping[Namespace, int]) -> Plan:
    """Puts on condition."""
    checked = plan(puts)
    if checked.reads:
        raise InvalidInput("commit() takes PutOps only; use read() or batch()")
    for namespace in expect:
        check_namespace(namespace)
    return Plan(checked.size, (), checked.puts, (), {tuple(n): v for n, v in expect.items()})


def read_index(index: IndexConfig | None) -> tuple[Embedder | None, tuple[str, ...]]:
    """The embedder, and the paths that are indexed by default."""
    if index is None:
        return None, writing.WHOLE
    fields = tuple(index.get("fields") or writing.WHOLE)
    if "embed" not in index and "dims" not in index:
        return None, fields
    distance = cast(Mapping[str, Any], index).get("distance_type", "cosine")
    if distance != "cosine":
        raise InvalidInput(f"index['distance_type'] must be 'cosine', got {distance!r}")
    return Embedder(index.get("embed"), index.get("dims")), fields


def meet(places: Places, embedder: Embedder | None, name: str, *, replace: bool) -> int | None:
    """The number of our embedder in the database; None if there is none of it yet.

    EmbedderMismatch if the vectors there are another's, unless `replace`: then ours is the next number.
    """
    found = stored(places)
    if found is None or embedder is None:
        return None
    try:
        embedders.check(found, embedder, name)
    except EmbedderMismatch:
        if not replace:
            raise
        return enrol(places, embedder, found.id + 1)
    embedder.dims = found.dims
    return found.id


def stored(places: Places) -> Stored | None:
    """What the database says of its embedder; None if it has no vectors yet."""
    found = places.meta().get("embedder")
    return None if found is None else Stored(int(found["id"]), str(found["name"]), int(found["dims"]))


def enrol(places: Places, embedder: Embedder, number: int) -> int:
    """Write down that vectors numbered so are this embedder's; the number."""
    places.set_meta(embedder={"id": number, "name": embedder.name, "dims": embedder.dims})
    return number
