"""What a new fact must be compared with: its semantic neighbours ∪ every record on its (topic, slot).

The topic sweep is what similarity cannot find: "follows a vegetarian diet" and "eats fish again" share no words.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from langgraph.store.base import GetOp, SearchOp

from langmem_adapter.namespaces import Namespace
from langmem_adapter.ports import IO
from langmem_adapter.records import Candidate, MemoryRecord
from langmem_adapter.scoring import Weights, Where
from langmem_adapter.stores.base import RankOp
from langmem_adapter.topics import Topics

NEAR = 0.25
"""Relevance from which a record is a neighbour: low, because neighbours are only compared, not believed."""
NEIGHBOURS = 8
OCCUPYING = 4
"""Records of a candidate's slot that a judge is shown beside its neighbours."""
SWEEP = 1_000
"""Records read per (topic, slot), the last changed first; an exclusive slot has one active and few contested ones."""

_RELEVANCE = Weights(relevance=1.0, recency=0.0, importance=0.0)


def reads(namespace: Namespace, candidates: Iterable[Candidate], topics: Topics, now: datetime) -> list[object]:
    """The store ops that fetch all records the candidates must be compared with; each yields a list."""
    where = Where(now=now.timestamp(), statuses=("active", "contested"))
    candidates = list(candidates)
    sweeps = dict.fromkeys(key for candidate in candidates for key in _sweeps(candidate, topics))
    return [
        *(SearchOp(namespace, dict(filters), SWEEP) for filters in sweeps),
        *(RankOp((namespace,), c.content, where, _RELEVANCE, NEIGHBOURS, NEAR) for c in candidates),
    ]


def near(results: Sequence[object], candidates: Sequence[Candidate], topics: Topics) -> list[list[MemoryRecord]]:
    """What each candidate is near to, among the results of `reads`: active and contested records of its subject."""
    sweeps = list(dict.fromkeys(key for candidate in candidates for key in _sweeps(candidate, topics)))
    found = []
    for n, candidate in enumerate(candidates):
        mine = [results[sweeps.index(key)] for key in _sweeps(candidate, topics)]
        known = records([results[len(sweeps) + n], *mine]).values()
        open_ = [r for r in known if r.status in ("active", "contested") and r.subject == candidate.subject]
        found.append(open_[: NEIGHBOURS + OCCUPYING])
    return found


def _sweeps(candidate: Candidate, topics: Topics) -> list[tuple[tuple[str, str], ...]]:
    # Of every status: what a slot held before is little, and one read is cheaper than one for each status.
    exclusive = topics.get(candidate.topic).exclusive
    if candidate.replaces is not None or (candidate.intent == "retract" and not exclusive):  # named by its value
        return [(("topic", candidate.topic),)]
    if not exclusive:
        return []
    return [(("topic", candidate.topic), ("slot", topics.slot_of(candidate.topic, candidate.slot, candidate.value)))]


async def linked(io: IO, namespace: Namespace, of: Sequence[MemoryRecord]) -> dict[str, MemoryRecord]:
    """The records these replaced, were replaced by, contest or are contested by, by id."""
    ids = {i for r in of for i in (*r.supersedes, r.superseded_by, r.contests, *r.contested_by) if i}
    if not ids:
        return {}
    items, _ = await io.read([GetOp(namespace, i) for i in sorted(ids)])
    return records([[item for item in items if item is not None]])


async def on_slot(io: IO, namespace: Namespace, candidate: Candidate, topics: Topics) -> dict[str, MemoryRecord]:
    """The records on the candidate's slot, by id, if there is room for one there."""
    sweeps = _sweeps(candidate, topics)
    results, _ = await io.read([SearchOp(namespace, dict(filters), SWEEP) for filters in sweeps])
    return records(results)


def records(results: Sequence[object]) -> dict[str, MemoryRecord]:
    """The distinct records among the results of `reads`, by id."""
    found: dict[str, MemoryRecord] = {}
    for result in results:
        for hit in result:  # type: ignore[attr-defined]
            item = getattr(hit, "item", hit)
            if item.key not in found:
                found[item.key] = MemoryRecord.stored(item)
    return found
