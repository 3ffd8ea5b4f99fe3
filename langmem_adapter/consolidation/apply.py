"""Carries out a decision on records: new records, changed ones, lineage and history. Pure.

The new record comes first in what is written: on a store without transactions it is the commit point, because it
names what it supersedes.
"""

import secrets
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from langmem_adapter.consolidation.decide import TAKEN_BACK, Decision, taken_back
from langmem_adapter.records import Candidate, HistoryEntry, MemoryRecord, Operation, Scope, Source
from langmem_adapter.topics import Topic
from langmem_adapter.trust import TrustPolicy

LINEAGE = 10
"""Sources that a record inherits at most, the latest: what it supersedes names all, and would be copied for ever."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose record it becomes."""

    user_id: str | None
    app_name: str
    scope: Scope = "user"
    session_id: str | None = None
    agent_id: str | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    """The operation, and the records to write, in order."""

    operation: Operation
    records: tuple[MemoryRecord, ...]


def fresh_id(challenger: MemoryRecord | None = None) -> str:
    """An id that no record had or will have."""
    return f"m_{secrets.token_hex(10)}"


@dataclass(frozen=True, slots=True)
class Change:
    """What every change of one turn shares."""

    owner: Owner
    now: datetime
    policy: TrustPolicy
    next_seq: Callable[[], int]
    note: str | None = None
    """Goes into every history entry of this change."""
    exclusive: Callable[[MemoryRecord], bool] = lambda record: True
    """Whether the record's slot has room for one."""
    new_id: Callable[[MemoryRecord | None], str] = fresh_id
    """The id of a new record; it is given the challenger that the record is made of, if it is."""

    def created(
        self, candidate: Candidate, topic: Topic, slot: str, source: Source, decision: Decision, **fields: Any
    ) -> MemoryRecord:
        """The new record of a candidate, with its place in the lineage."""
        replaced = decision.displaced
        if decision.target is not None and decision.action != "CONTEST":
            replaced = (decision.target, *replaced)
        lineage = [s for r in replaced for s in _inherited(r)]
        sources = _united([*lineage, *(s for r in decision.absorbed for s in supports(r)), source])
        entry = HistoryEntry(
            at=self.now,
            action=decision.action,
            reason=decision.reason,
            ids=tuple(r.memory_id for r in [*replaced, *decision.absorbed]),
            source_id=source.source_id,
            message_id=source.message_id,
            note=self.note,
        )
        return MemoryRecord(
            memory_id=self.new_id(None),
            seq=self.next_seq(),
            content=candidate.content,
            kind=candidate.kind,
            user_id=self.owner.user_id,
            app_name=self.owner.app_name,
            scope=self.owner.scope,
            session_id=self.owner.session_id,
            agent_id=self.owner.agent_id,
            subject=candidate.subject,
            topic=topic.name,
            slot=slot,
            value=candidate.value,
            category="sensitive" if topic.sensitive else None,
            importance=topic.importance if candidate.importance is None else candidate.importance,
            half_life_days=topic.half_life_days,
            confidence=self.policy.confidence(sources),
            sources=tuple(sources),
            created_at=self.now,
            updated_at=self.now,
            confirmed_at=min(source.at, self.now),
            valid_from=_begins(candidate, source),
            valid_to=candidate.valid_to,
            expires_at=self.expiry(candidate, topic),
            supersedes=tuple(r.memory_id for r in [*replaced, *decision.absorbed]),
            entities=candidate.entities,
            purpose=candidate.purpose or topic.purpose,
            legal_basis=candidate.legal_basis or topic.legal_basis,
            history=(entry,),
            **fields,
        )

    def expiry(self, candidate: Candidate, topic: Topic) -> datetime | None:
        """When the fact expires: as its speaker said, else by the topic's TTL counted from now."""
        if candidate.expires_at is not None or topic.ttl_days is None:
            return candidate.expires_at
        return self.now + timedelta(days=topic.ttl_days)

    def superseded(self, record: MemoryRecord, by: MemoryRecord, reason: str) -> MemoryRecord:
        """The record, closed in favour of another."""
        # A challenger was never believed: `as_of` must not find it, so its life has no length.
        believed = record.status != "contested"
        return self._noted(record, "UPDATE", reason, by.memory_id).change(
            status="superseded",
            superseded_by=by.memory_id,
            invalidated_at=self.now if believed else record.created_at,
            valid_to=record.valid_to or (_ended(record, by) if believed else None),
            contested_by=(),
        )

    def rejected(self, challenger: MemoryRecord, reason: str, by: MemoryRecord) -> MemoryRecord:
        """A challenger that lost its contest: kept as history, never believed."""
        return self._noted(challenger, "RETRACT", reason, by.memory_id).change(
            status="retracted", invalidated_at=challenger.created_at
        )

    def retracted(self, record: MemoryRecord, reason: str, source: Source | None = None) -> MemoryRecord:
        """The record, which no longer holds; its text stays as history."""
        ended = record.created_at if record.status == "quarantined" else self.now  # it was never believed
        return self._noted(record, "RETRACT", reason, source=source).change(
            status="retracted", invalidated_at=ended, valid_to=self.now, contested_by=()
        )

    def unsaid(self, record: MemoryRecord) -> MemoryRecord:
        """The record of words that were edited away: history, which leads to no other record and from none.

        Nor does it quote one: it is not found by its links when that one is erased.
        """
        if taken_back(record):
            return record
        believed = record.status not in ("contested", "quarantined")
        start = record.valid_from or record.created_at  # it was believed, but it never held
        return self._noted(record, "RETRACT", TAKEN_BACK).change(
            sources=tuple(supports(record)),
            superseded_by=None,
            supersedes=(),
            contests=None,
            contested_by=(),
            status="retracted",
            invalidated_at=(record.invalidated_at or self.now) if believed else record.created_at,
            valid_from=start,
            valid_to=start,
        )

    def corroborated(
        self, record: MemoryRecord, candidate: Candidate, topic: Topic, source: Source, reason: str
    ) -> MemoryRecord:
        """The record with one more source; unchanged if this very source already supports it."""
        if any(key(s) == key(source) for s in supports(record)):
            return record
        sources = _united([*record.sources, source])
        fields: dict[str, Any] = {"sources": tuple(sources), "confidence": self.policy.confidence(sources)}
        if self._renews(record, source):
            fields["confirmed_at"] = max(record.confirmed_at, min(source.at, self.now))
            if record.expires_at is not None:
                fields["expires_at"] = self.expiry(candidate, topic)
        return self._noted(record, "NOOP", reason, source=source).change(**fields)

    def merged(
        self, record: MemoryRecord, candidate: Candidate, topic: Topic, source: Source, reason: str
    ) -> MemoryRecord:
        """The record in the candidate's richer wording, with the sources of both."""
        record = self.corroborated(record, candidate, topic, source, reason)
        last = record.history[-1].change(action="MERGE")
        return record.change(
            content=candidate.content, value=candidate.value or record.value, history=(*record.history[:-1], last)
        )

    def united(self, a: MemoryRecord, b: MemoryRecord, reason: str) -> tuple[MemoryRecord, MemoryRecord]:
        """Two records that say the same as one: the more trusted, with the sources of both, and the other, closed.

        Of equally trusted ones the newer stays. It holds from the earlier beginning to the later end.
        """
        keep, gone = sorted((a, b), key=lambda r: (r.confidence, r.seq, r.memory_id), reverse=True)
        sources = _united([*keep.sources, *gone.sources])
        starts, ends, expiries = ((x, y) for x, y in zip(_times(keep), _times(gone), strict=True))
        kept = self._noted(keep, "MERGE", reason, gone.memory_id).change(
            sources=tuple(sources),
            confidence=self.policy.confidence(sources),
            importance=max(keep.importance, gone.importance),
            category=keep.category or gone.category,
            confirmed_at=max(keep.confirmed_at, gone.confirmed_at),
            valid_from=None if None in starts else min(t for t in starts if t),
            valid_to=None if None in ends else max(t for t in ends if t),
            expires_at=None if None in expiries else max(t for t in expiries if t),
            supersedes=(*keep.supersedes, gone.memory_id),
            entities=tuple(dict.fromkeys((*keep.entities, *gone.entities))),
            needs_regeneration=keep.needs_regeneration or gone.needs_regeneration,
        )
        # What held when is told by the survivor from now on: `valid_at` must not find the fact twice.
        closed = self.superseded(gone, kept, reason).change(valid_to=gone.valid_from or gone.created_at)
        return kept, closed

    def displaced(self, record: MemoryRecord, by: MemoryRecord, reason: str) -> tuple[MemoryRecord, MemoryRecord]:
        """A record that another replaces which did not know of it: that one, with its lineage, and the record, closed.

        As it would have been decided when the other came.
        """
        new = self._noted(by, "UPDATE", reason, record.memory_id).change(
            sources=tuple(_united([*_inherited(record), *by.sources])), supersedes=(*by.supersedes, record.memory_id)
        )
        return new, self.superseded(record, by, reason)

    def ended(self, record: MemoryRecord, by: MemoryRecord) -> MemoryRecord:
        """A record that was replaced before, and held only until what was said between."""
        return self._noted(record, "UPDATE", "ended_earlier").change(valid_to=by.valid_from)

    def contesting(
        self, record: MemoryRecord, incumbent: MemoryRecord, reason: str
    ) -> tuple[MemoryRecord, MemoryRecord]:
        """A record that may not replace another which it contradicts: that one, and the record as its challenger."""
        challenger = self._noted(record, "CONTEST", reason, incumbent.memory_id).change(
            status="contested", contests=incumbent.memory_id, contested_by=()
        )
        return self.link(incumbent, challenger, reason), challenger

    def promoted(self, challenger: MemoryRecord, reason: str) -> tuple[MemoryRecord, MemoryRecord]:
        """A challenger whose incumbent went: the active record made of it, and the challenger, closed."""
        entry = HistoryEntry(at=self.now, action="CREATE", reason=reason, ids=(challenger.memory_id,))
        new = challenger.change(
            memory_id=self.new_id(challenger),
            seq=self.next_seq(),
            status="active",
            created_at=self.now,
            updated_at=self.now,
            contests=None,
            supersedes=(challenger.memory_id,),
            history=(entry,),
        )
        return new, self.superseded(challenger, new, reason).change(contests=None)

    def _renews(self, record: MemoryRecord, source: Source) -> bool:
        # A tool that repeats what a person said does not make it fresher.
        return source.source_type != "tool_output" or all(s.source_type == "tool_output" for s in supports(record))

    def _noted(
        self, record: MemoryRecord, action: str, reason: str, *ids: str, source: Source | None = None
    ) -> MemoryRecord:
        entry = HistoryEntry(
            at=self.now,
            action=action,
            reason=reason,
            ids=ids,
            source_id=None if source is None else source.source_id,
            message_id=None if source is None else source.message_id,
            note=self.note,
        )
        return record.change(history=(*record.history, entry), updated_at=self.now)

    def link(self, record: MemoryRecord, challenger: MemoryRecord, reason: str) -> MemoryRecord:
        """The incumbent, marked as contested."""
        return self._noted(record, "CONTEST", reason, challenger.memory_id).change(
            contested_by=(*record.contested_by, challenger.memory_id)
        )


def supports(record: MemoryRecord) -> list[Source]:
    """The sources that assert this very content."""
    return [s for s in record.sources if s.role == "support"]


def apply(
    decision: Decision,
    candidate: Candidate,
    known: Collection[MemoryRecord],
    *,
    topic: Topic,
    slot: str,
    source: Source,
    change: Change,
) -> Applied:
    """The operation, and all records it creates or changes.

    `known`: what the decision was made among. Challengers are decided again if their incumbent goes.
    """
    if decision.action in ("CREATE", "UPDATE"):
        return _in_time(_create(decision, candidate, topic, slot, source, change), candidate, known, change)
    if decision.action == "QUARANTINE":
        return _quarantine(decision, candidate, topic, slot, source, change)
    if decision.action == "CONTEST":
        return _contest(decision, candidate, topic, slot, source, change)
    if decision.action == "RETRACT":
        challengers = [r for r in known if r.status == "contested"]
        return _retract(decision, candidate, challengers, source, change)
    target = decision.target
    if target is None:
        return Applied(_operation(decision, candidate, None), ())
    if decision.reason in ("unchanged_resync", "retract_below_trust", "said_earlier"):  # none agrees with the record
        return Applied(_operation(decision, candidate, target), ())
    step = change.merged if decision.action == "MERGE" else change.corroborated
    after = step(target, candidate, topic, source, decision.reason)
    if decision.closed:
        after = after.change(contested_by=())
    lost = tuple(change.rejected(c, decision.reason, target) for c in decision.closed)
    written = () if after is target else (after,)
    return Applied(_operation(decision, candidate, after), (*written, *lost))


def _create(
    decision: Decision, candidate: Candidate, topic: Topic, slot: str, source: Source, change: Change
) -> Applied:
    if decision.behind is not None:
        return _filed(decision, decision.behind, candidate, topic, source, change)
    new = change.created(candidate, topic, slot, source, decision)
    gone = [r for r in (decision.target, *decision.displaced, *decision.absorbed) if r is not None]
    closed = [change.superseded(r, new, decision.reason) for r in gone]
    closed += [change.rejected(c, decision.reason, new) for c in decision.closed]
    return Applied(_operation(decision, candidate, new, decision.target), (new, *closed))


def _in_time(applied: Applied, candidate: Candidate, known: Iterable[MemoryRecord], change: Change) -> Applied:
    """With what held the slot when the new record began, which ended there; what was said late ends at the next."""
    new, *others = applied.records
    if new.valid_from is None or not change.exclusive(new):
        return applied
    written = {r.memory_id for r in applied.records}
    mates = [r for r in known if stands_on(r) == stands_on(new) and _held(r)]
    begun = {r.valid_from for r in mates}
    # Whose end is no other's beginning ended by itself: somebody said until when.
    replaced = [r for r in mates if r.memory_id not in written and r.status == "superseded" and r.valid_to in begun]
    before = [r for r in replaced if _covers(r, new.valid_from)]
    after = [t for t in begun if t is not None and t > new.valid_from and (new.valid_to is None or t < new.valid_to)]
    if new.status == "superseded" and candidate.valid_to is None and after:
        new = new.change(valid_to=min(after))
    return Applied(applied.operation, (new, *others, *(change.ended(r, new) for r in before)))


def _held(record: MemoryRecord) -> bool:
    # What was replaced says until when it held, also if something newer was known; not so a challenger that lost.
    return record.status == "active" or (record.status == "superseded" and record.valid_to is not None)


def _covers(record: MemoryRecord, at: datetime) -> bool:
    return (record.valid_from is None or record.valid_from <= at) and (record.valid_to is None or at < record.valid_to)


def stands_on(fact: MemoryRecord | Candidate) -> tuple[str, str, str]:
    """What two facts share that are about the same: on an exclusive topic one of them is believed."""
    return fact.topic, fact.slot, fact.subject


def _filed(
    decision: Decision, later: MemoryRecord, candidate: Candidate, topic: Topic, source: Source, change: Change
) -> Applied:
    new = change.created(candidate, topic, later.slot, source, decision)
    kept, filed = change.displaced(new, later, decision.reason)
    return Applied(_operation(decision, candidate, filed, later), (filed, kept))


def _quarantine(
    decision: Decision, candidate: Candidate, topic: Topic, slot: str, source: Source, change: Change
) -> Applied:
    # What a record has no field for, and a release needs.
    more = {"intent": candidate.intent, "replaces": candidate.replaces}
    kept = change.created(
        candidate, topic, slot, source, decision, status="quarantined", metadata={k: v for k, v in more.items() if v}
    )
    return Applied(_operation(decision, candidate, kept), (kept,))


def _contest(
    decision: Decision, candidate: Candidate, topic: Topic, slot: str, source: Source, change: Change
) -> Applied:
    incumbent = decision.target
    assert incumbent is not None
    # On the incumbent's slot, also when it was named by `replaces`: that is what is contested.
    challenger = change.created(
        candidate, topic, incumbent.slot, source, decision, status="contested", contests=incumbent.memory_id
    )
    operation = _operation(decision, candidate, challenger, incumbent)
    return Applied(operation, (challenger, change.link(incumbent, challenger, decision.reason)))


def _retract(
    decision: Decision, candidate: Candidate, challengers: list[MemoryRecord], source: Source, change: Change
) -> Applied:
    target = decision.target
    assert target is not None
    gone = change.retracted(target, decision.reason, source)
    operation = _operation(decision, candidate, gone)
    mine = [c for c in challengers if c.contests == target.memory_id]
    return Applied(operation, (*succession(mine, change), gone))


def succession(challengers: list[MemoryRecord], change: Change) -> tuple[MemoryRecord, ...]:
    """What becomes of the challengers of a record that went: the most trusted is believed, the others contest it."""
    if not challengers:
        return ()
    heir = max(challengers, key=lambda c: (c.confidence, c.seq))
    new, closed = change.promoted(heir, "incumbent_gone")
    others = tuple(c.change(contests=new.memory_id, updated_at=change.now) for c in challengers if c is not heir)
    new = new.change(contested_by=tuple(c.memory_id for c in others))
    return (new, closed, *others)


def _operation(
    decision: Decision, candidate: Candidate, record: MemoryRecord | None, target: MemoryRecord | None = None
) -> Operation:
    return Operation(
        action=decision.action,
        memory_id=None if record is None else record.memory_id,
        target_id=None if target is None else target.memory_id,
        content=candidate.content if record is None else record.content,
        reason=decision.reason,
    )


def _begins(candidate: Candidate, source: Source) -> datetime | None:
    # What was over before it was told began before, nobody knows when.
    over = candidate.valid_to is not None and candidate.valid_to <= source.at
    return candidate.valid_from or (None if over else source.at)


def _ended(record: MemoryRecord, by: MemoryRecord) -> datetime | None:
    # Nothing ends before it begins.
    return max((t for t in (record.valid_from, by.valid_from) if t), default=None) if by.valid_from else None


def _times(record: MemoryRecord) -> tuple[datetime | None, datetime | None, datetime | None]:
    return record.valid_from, record.valid_to, record.expires_at


Key = tuple[str, str, str | None]


def key(source: Source) -> Key:
    """What tells a source from others: of what kind it is, which, and which of its messages."""
    return source.source_type, source.source_id, source.message_id


def _inherited(record: MemoryRecord) -> list[Source]:
    """The lineage of what replaces the record."""
    return [s.change(role="lineage") for s in record.sources[-LINEAGE:]]


def _united(sources: Iterable[Source]) -> list[Source]:
    # In order of appearance; a source that is both support and lineage is support.
    seen: dict[Key, Source] = {}
    for source in sources:
        if source.role == "support" or key(source) not in seen:
            seen[key(source)] = source
    return list(seen.values())
