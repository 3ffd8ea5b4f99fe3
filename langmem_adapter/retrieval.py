"""Which namespaces, which filters; then the store ranks, exactly, over all of the owner's records.

Owner filtering is in what the store is asked for, and every hit's namespace is checked again on the way out.
"""

from collections.abc import Sequence

from langgraph.store.base import GetOp

from langmem_adapter.consent import settings_in, settings_op
from langmem_adapter.errors import InvalidInput
from langmem_adapter.namespaces import Namespace, Reader
from langmem_adapter.paging import items_under
from langmem_adapter.ports import IO
from langmem_adapter.records import Band, HistoryEntry, MemoryRecord, Parts, Recalled, Ref, TimelineEntry
from langmem_adapter.stores.base import Ranked, RankOp

MAX_QUERY = 2_000
"""Characters of a query that are searched for: a whole conversation is never embedded as one query."""


async def search(io: IO, reader: Reader, op: RankOp) -> list[Recalled]:
    """The ranked records of an op, best first, each with those that contest it; none while the reader has paused."""
    (found, said), _ = await io.read([op, settings_op(reader)])
    if settings_in(said).paused:
        return []
    ranked: list[Ranked] = [r for r in found if r.item.namespace in op.namespaces]
    records = [MemoryRecord.stored(r.item) for r in ranked]
    wanted = [(r.item.namespace, i) for r, m in zip(ranked, records, strict=True) for i in m.contested_by]
    challengers = {m.memory_id: m for m in await fetch(io, wanted) if m.status == "contested"}
    return [
        Recalled(
            record=m,
            score=r.score,
            parts=r.parts,
            contested_by=tuple(challengers[i] for i in m.contested_by if i in challengers),
        )
        for r, m in zip(ranked, records, strict=True)
    ]


async def fetch(io: IO, keys: Sequence[tuple[Namespace, str]]) -> list[MemoryRecord]:
    """The records at these places, in order; what is not there is left out."""
    if not keys:
        return []
    items, _ = await io.read(_gets(keys))
    return [MemoryRecord.stored(item) for item in items if item is not None]


def _gets(keys: Sequence[tuple[Namespace, str]]) -> list[GetOp]:
    return [GetOp(ns, key, refresh_ttl=False) for ns, key in keys]


async def resolve(io: IO, reader: Reader, refs: Sequence[Ref]) -> list[tuple[Recalled, Band]]:
    """The recalled memories as they read now, with their bands at recall; what is gone or quarantined is left out."""
    if not refs:
        return []
    keys = [(reader.facts([ref.scope])[0], ref.memory_id) for ref in refs]
    (said, *items), _ = await io.read([settings_op(reader), *_gets(keys)])
    if settings_in(said).paused:
        return []
    there = [(ns, item) for (ns, _), item in zip(keys, items, strict=True) if item is not None]
    found = {item.key: (ns, MemoryRecord.stored(item)) for ns, item in there}
    wanted = [(ns, i) for ns, r in found.values() for i in r.contested_by]
    challengers = {r.memory_id: r for r in await fetch(io, wanted) if r.status == "contested"}
    return [
        (
            Recalled(
                record=record,
                score=0.0,
                parts=_NO_PARTS,
                contested_by=tuple(challengers[i] for i in record.contested_by if i in challengers),
            ),
            ref.band,
        )
        for ref in refs
        if ref.memory_id in found and (record := found[ref.memory_id][1]).status != "quarantined"
    ]


_NO_PARTS = Parts(relevance=0.0, recency=0.0, importance=0.0, confidence=0.0)


async def timeline(io: IO, ns: Namespace, record: MemoryRecord) -> list[HistoryEntry]:
    """What happened to a record and to those it replaced, and they in turn, oldest first.

    That one replaced another is told once, by the later one.
    """
    chain = {record.memory_id: record}
    wanted = list(record.supersedes)
    while wanted:
        found = [r for r in await fetch(io, [(ns, i) for i in dict.fromkeys(wanted)]) if r.memory_id not in chain]
        chain |= {r.memory_id: r for r in found}
        wanted = [i for r in found for i in r.supersedes if i not in chain]
    return sorted(
        (
            TimelineEntry(memory_id=r.memory_id, **dict(entry))
            for r in sorted(chain.values(), key=lambda r: (r.seq, r.memory_id))
            for entry in r.history
            if r.superseded_by not in chain or r.superseded_by not in entry.ids
        ),
        key=lambda entry: entry.at,
    )


async def find(io: IO, reader: Reader, memory_id: str) -> tuple[Namespace, MemoryRecord] | None:
    """The reader's record of this id and where it lies; None for an unknown id and for somebody else's."""
    if not isinstance(memory_id, str) or not memory_id:
        raise InvalidInput(f"memory_id must be a non-empty str, got {memory_id!r}")
    usual = reader.facts()
    items, _ = await io.read([GetOp(ns, memory_id, refresh_ttl=False) for ns in usual])
    found = [(ns, item) for ns, item in zip(usual, items, strict=True) if item is not None]
    if not found:  # a fact of another session or agent of the same user
        elsewhere = await items_under(io, reader.root, {"memory_id": memory_id})
        found = [(i.namespace, i) for i in elsewhere if i.namespace[-1] == "facts"]
    return (found[0][0], MemoryRecord.stored(found[0][1])) if found else None
