"""`MemoryStore`: a LangGraph `BaseStore` that can also read with versions, commit on condition, and rank.

Everything above the stores speaks to this interface. `stores.foreign` lends it to any LangGraph store.
"""

import abc
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from langgraph.store.base import BaseStore, PutOp, SearchItem

from langmem_adapter.namespaces import Namespace
from langmem_adapter.records import Frozen, Parts
from langmem_adapter.scoring import Weights, Where

Mode = Literal["hybrid", "vector", "text"]


class RankOp(NamedTuple):
    """Rank all records of these namespaces exactly by the blended score; results are `list[Ranked]`, best first.

    The namespaces are exact, not prefixes. `query=None` ranks without relevance.
    """

    namespaces: tuple[Namespace, ...]
    query: str | None
    where: Where
    weights: Weights = Weights()
    limit: int = 10
    floor: float = 0.0
    mode: Mode = "hybrid"


class Ranked(NamedTuple):
    """One ranked item."""

    item: SearchItem
    score: float
    parts: Parts


class Guarantees(Frozen):
    """Which promises hold on a store (`Memory.guarantees()`)."""

    atomic: bool
    """All records of one turn change together or not at all, also when the process dies."""
    many_writers: Literal["processes", "threads", "none"]
    """Whose concurrent writes are serialised: other processes too, or only threads and tasks of this one."""
    durable: bool
    """An acknowledged write survives the process."""
    hybrid: bool
    """Word search beside vectors."""
    erasure: Literal["verified", "deleted"]
    """`verified`: bytes are searched for and gone. `deleted`: the store was asked to delete."""


class Erased(Frozen):
    """Whether the bytes of what a commit deleted or overwrote are gone from the store's files."""

    state: Literal["done", "pending", "out_of_reach"]
    note: str = ""


class Kept(NamedTuple):
    """What a store keeps of an item beside its value. Times are microseconds since the epoch."""

    paths: tuple[str, ...] | None
    """Those that are indexed; (): none; None: those of the store."""
    created_at: int
    updated_at: int
    expires_at: int | None
    ttl: float | None
    """Minutes."""


class MemoryStore(BaseStore, abc.ABC):
    """A LangGraph store with what consolidation needs on top."""

    guarantees: Guarantees

    @property
    @abc.abstractmethod
    def store_id(self) -> str:
        """A name of the stored data that is the same in every process that opens it."""

    @property
    def known_id(self) -> str | None:
        """`store_id`, if it is known without asking a server."""
        return self.store_id

    @abc.abstractmethod
    def read(self, ops: Sequence[Any], *, versions: Sequence[Namespace] = ()) -> tuple[list[Any], dict[Namespace, int]]:
        """Results of LangGraph read ops and `RankOp`s, in order, and the versions of the named namespaces.

        All from one snapshot. A version grows with every change of that namespace by the number of items changed;
        it is 0 for a namespace never written to.
        """

    @abc.abstractmethod
    def commit(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int]) -> None:
        """Apply all puts in one transaction; Conflict, and nothing applied, unless every namespace in `expect` still
        has that version."""

    def erase_with(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int]) -> Erased:
        """`commit`, and then make sure that no byte of what it deleted or overwrote is left in the store's files."""
        self.commit(puts, expect=expect)
        return Erased(state="pending", note="deleted; call the store's erase() to clear its files")

    async def aerase_with(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int]) -> Erased:
        """`erase_with` without blocking the event loop."""
        await self.acommit(puts, expect=expect)
        return Erased(state="pending", note="deleted; call the store's erase() to clear its files")

    @abc.abstractmethod
    def kept(self, namespace: Namespace) -> tuple[int, dict[str, Kept]]:
        """When a namespace was last written to (0: never), and what is kept of its items, by key. For `migrate`."""

    @abc.abstractmethod
    def take_over(self, puts: Sequence[PutOp], kept: Sequence[Kept]) -> None:
        """`batch` of puts with the times that another store kept of them."""

    @abc.abstractmethod
    async def aread(
        self, ops: Sequence[Any], *, versions: Sequence[Namespace] = ()
    ) -> tuple[list[Any], dict[Namespace, int]]:
        """`read` without blocking the event loop."""

    @abc.abstractmethod
    async def acommit(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int]) -> None:
        """`commit` without blocking the event loop; if cancelled it happened as a whole or not at all."""
