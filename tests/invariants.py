"""What holds of an owner's records at every commit, whatever happened before it."""

from collections import Counter
from collections.abc import Collection, Sequence

from langmem_adapter.consolidation.apply import key, supports
from langmem_adapter.consolidation.decide import taken_back
from langmem_adapter.memory import Memory
from langmem_adapter.records import MemoryRecord
from langmem_adapter.topics import Topics
from langmem_adapter.trust import TrustPolicy

TOPICS, POLICY = Topics(), TrustPolicy()


def whole(memory: Memory, user_id: str = "u") -> list[MemoryRecord]:
    """All of the user's records, each rule checked on them."""
    records = memory.get_all(user_id=user_id, status="all")
    check(records, {r.memory_id for r in memory.get_all(user_id=user_id)})
    assert {r.user_id for r in records} <= {user_id}
    return records


def check(records: Sequence[MemoryRecord], believed: Collection[str]) -> None:
    """AssertionError, with the records concerned, for the first rule that is broken.

    `believed`: ids of those that are active and have not expired.
    """
    known = {r.memory_id: r for r in records}
    assert len({r.seq for r in records}) == len(records), "two records with one sequence number"
    places = Counter(_place(r) for r in records if r.memory_id in believed and TOPICS.get(r.topic).exclusive)
    assert [place for place, n in places.items() if n > 1] == []
    said = {key(s) for r in records for s in supports(r)}
    for r in records:
        links = [i for i in (*r.supersedes, *r.contested_by, r.superseded_by, r.contests) if i is not None]
        for linked in links:
            assert linked in known, f"a dangling pointer to {linked}: {r!r}"
            assert not taken_back(known[linked]), f"a pointer to what was edited away: {r!r}"
        assert not (links and taken_back(r)), f"edited away, and yet a part of a chain: {r!r}"
        quoted = {key(s) for s in r.sources if s.role == "lineage" and s.excerpt}
        assert quoted <= said, f"words of what no record rests on any more: {r!r}"
        assert r.history, f"no history: {r!r}"
        ends = [i for h in r.history for i in h.ids]
        if r.superseded_by is not None:
            assert r.status == "superseded", f"superseded, but {r.status}: {r!r}"
            assert r.memory_id in known[r.superseded_by].supersedes, f"its successor does not know it: {r!r}"
            assert ends, f"no history of its end: {r!r}"
        elif r.status == "superseded":
            assert ends, f"superseded by nothing: {r!r}"
            successor = known.get(ends[-1])
            assert successor is None or taken_back(successor), f"its successor is there, and not named: {r!r}"
        for i in r.contested_by:
            assert known[i].contests == r.memory_id, f"its challenger contests another: {r!r}"
        assert r.confidence <= POLICY.confidence(r.sources) + 1e-9, f"more confident than its sources allow: {r!r}"
    for r in records:
        _acyclic(r, known)


def _place(r: MemoryRecord) -> tuple[object, ...]:
    # Where a fact of the user's was learnt is told too, but its slot is one for all threads.
    whose = r.session_id if r.scope == "session" else r.agent_id if r.scope == "agent" else None
    return r.scope, whose, r.topic, r.slot, r.subject


def _acyclic(record: MemoryRecord, known: dict[str, MemoryRecord]) -> None:
    seen, at = {record.memory_id}, record
    while at.superseded_by is not None:
        assert at.superseded_by not in seen, f"superseded in a circle: {record!r}"
        seen.add(at.superseded_by)
        at = known[at.superseded_by]
