"""Upkeep of what is stored: what expired or faded goes, what says the same becomes one, what a crash left is repaired.

An owner's memory is read, one kind of work is decided on (pure), and committed on condition that nothing changed
since; and again, until nothing is left to do. So it can run beside live traffic, and what interrupts it costs nothing:
the next run finds done what was done.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from langgraph.store.base import SearchItem

from langmem_adapter.consent import Settings, change_settings
from langmem_adapter.consolidation.apply import Change, succession, supports
from langmem_adapter.consolidation.decide import same_fact, taken_back
from langmem_adapter.consolidation.replay import NEAR_IDENTICAL, steps_of, untied
from langmem_adapter.consolidation.rules import Rules, change_of, deed, record_put, spaces, turn_put
from langmem_adapter.errors import OnHold
from langmem_adapter.forgetting import guarded, sweep
from langmem_adapter.namespaces import Namespace, Reader, escape
from langmem_adapter.paging import items_under, namespaces_under
from langmem_adapter.ports import IO, retried
from langmem_adapter.receipts import Checkpoints, complete, new_receipt_id
from langmem_adapter.records import Maintenance, MemoryRecord, Operation, SourceType, Turn, Upkeep
from langmem_adapter.scoring import Weights, Where
from langmem_adapter.stores.base import RankOp
from langmem_adapter.text import negated, numbers, says_the_same, stems, words
from langmem_adapter.text import slot as normal

BATCH = 500
"""Records of one namespace, or turns, that are changed in one commit."""
NEAR = 0.95
"""Cosine from which two wordings may be one fact; "3 bullets" and "5 bullets" have 0.97, so it is not enough."""
FLOOR = 0.05
"""Decayed confidence below which a record is pruned: what a person said falls there a little after four half-lives."""
ALERT_AT = 10_000
"""Records of an owner at which it is told."""

_RELEVANCE = Weights(relevance=1.0, recency=0.0, importance=0.0)
_NUMERALS = frozenset("one two three four five six seven eight nine ten eleven twelve hundred thousand".split())


@dataclass(frozen=True, slots=True)
class Limits:
    """What is kept, and for how long."""

    retention: timedelta
    """How long an expired record, hidden already, is still stored."""
    floor: float
    """Records whose decayed confidence fell below it go."""
    alert_at: int
    """The number of an owner's records whose passing is told."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What was done for one owner."""

    done: tuple[Upkeep, ...]
    held: bool
    erasures: tuple[str, ...]
    pending: bool
    size: int
    """How many records there are now, whatever their status."""


async def owners(io: IO, app_name: str) -> list[Reader]:
    """Everybody with anything in the store, and the application itself."""
    found = await namespaces_under(io, ("memories", escape(app_name, what="app_name")), max_depth=5)
    readers = [reader for ns in found if (reader := Reader.of(ns)) is not None]
    return [r for r in dict.fromkeys(readers) if r.app_name == app_name]


async def keep_up(io: IO, reader: Reader, rules: Rules, limits: Limits, checkpoints: Checkpoints | None = None) -> Kept:
    """Do all that is to be done for one owner; an interrupted erasure of his is completed first.

    Conflict if other writers won fifty times; what was done before stays done.
    """
    completed = await complete(io, reader, checkpoints)
    done: dict[Upkeep, None] = {}
    pending = False
    while True:
        seen = await retried(io, lambda: _round(io, reader, rules, limits))
        pending |= seen.pending
        if not seen.done or all(u in done for u in seen.done):
            break
        done |= dict.fromkeys(seen.done)
    if await _alerted(io, reader, seen.size, limits, seen.settings):
        done[Upkeep(user_id=reader.user_id, action="alert", reason="size")] = None
    ids = tuple(r.receipt_id for r in completed)
    return Kept(tuple(done), bool(seen.settings.holds), ids, pending, seen.size)


def with_owner(report: Maintenance, reader: Reader, kept: Kept) -> Maintenance:
    """The report, with what was done for one more owner."""
    mine = (reader.user_id,)
    return report.change(
        done=report.done + kept.done,
        held=report.held + (mine if kept.held else ()),
        erasures=report.erasures + kept.erasures,
        pending=report.pending + (mine if kept.pending else ()),
    )


# ---------------------------------------------------------------- one round: read, decide, commit


@dataclass(frozen=True, slots=True)
class _Round:
    done: Sequence[Upkeep]
    settings: Settings
    size: int
    pending: bool = False


@dataclass(frozen=True, slots=True)
class _View:
    """All of an owner's memory at one moment."""

    reader: Reader
    rules: Rules
    now: datetime
    settings: Settings
    versions: Mapping[Namespace, int]
    records: Mapping[Namespace, Mapping[str, MemoryRecord]]
    turns: Mapping[str, Turn]

    @property
    def queue(self) -> Namespace:
        return self.reader.space("turns")

    def change(self, ns: Namespace) -> Change:
        return change_of(self.reader, self.rules, self.versions, self.records[ns].values(), self.now)

    def said(self, action: str, reason: str, id: str, other: str | None = None) -> Upkeep:
        return Upkeep.model_validate(
            {"user_id": self.reader.user_id, "action": action, "reason": reason, "id": id, "other": other}
        )


async def _round(io: IO, reader: Reader, rules: Rules, limits: Limits) -> _Round:
    """The first kind of work that there is."""
    view = await _read(io, reader, rules)
    size = sum(map(len, view.records.values()))
    done = await _repair(io, view) or await _deduplicate(io, view)
    if not done and not view.settings.holds:
        try:
            done, pending = await _sweep(io, view, limits)
            if not done:
                done, pending = await _collect(io, view)
            return _Round(done, view.settings, size, pending)
        except OnHold:  # it began just now
            return _Round((), view.settings.change(holds=("now",)), size)
    return _Round(done, view.settings, size)


async def _read(io: IO, reader: Reader, rules: Rules) -> _View:
    places, versions, settings = await guarded(io, reader)
    items = await items_under(io, reader.root)
    queue = reader.space("turns")
    facts: dict[Namespace, list[SearchItem]] = {ns: [] for ns in places if ns[-1] == "facts"}
    for item in items:
        if item.namespace in facts:
            facts[item.namespace].append(item)
    records = {ns: {i.key: MemoryRecord.stored(i) for i in found} for ns, found in facts.items()}
    turns = {i.key: Turn.stored(i) for i in items if i.namespace == queue}
    return _View(reader, rules, rules.clock(), settings, versions, records, turns)


# ---------------------------------------------------------------- repair


async def _repair(io: IO, view: _View) -> list[Upkeep]:
    """What an interrupted commit or another tool left, as consolidation would have left it."""
    for ns, known in view.records.items():
        repaired = _Repaired(dict(known), view.change(ns), view)
        repaired.mend()
        changed = [r for i, r in repaired.known.items() if known.get(i) is not r]
        if changed:
            # The newest first: on a store without transactions it is the commit point, as it names what it replaced.
            puts = [record_put(ns, r) for r in sorted(changed, key=lambda r: (-r.seq, r.memory_id))]
            await io.commit(puts, expect=view.versions)
            return repaired.done
    return []


@dataclass(slots=True)
class _Repaired:
    """The records of one namespace while they are mended. Pure."""

    known: dict[str, MemoryRecord]
    change: Change
    view: _View
    done: list[Upkeep] = field(default_factory=list)

    def mend(self) -> None:
        for record in sorted(self.known.values(), key=_order):
            self._close_replaced(record.memory_id)
        there = {i for i, r in self.known.items() if not taken_back(r)}
        for memory_id in list(self.known):
            self._drop_dangling(self.known[memory_id], there)
        for rivals in _rivals(self.known.values(), self.change):
            self._settle(rivals)

    def _put(self, *records: MemoryRecord) -> None:
        self.known |= {r.memory_id: r for r in records}

    def _say(self, action: str, reason: str, record: MemoryRecord, other: MemoryRecord | None = None) -> None:
        self.done.append(self.view.said(action, reason, record.memory_id, other.memory_id if other else None))

    def _close_replaced(self, memory_id: str) -> None:
        record = self.known[memory_id]
        if record.status not in ("active", "superseded"):
            return
        for other in (self.known[i] for i in record.supersedes if i in self.known):
            if other.status in ("active", "contested") and _order(other) < _order(record):
                self._put(self.change.superseded(other, record, "interrupted_supersession"))
                self._say("repair", "interrupted_supersession", other, record)

    def _drop_dangling(self, record: MemoryRecord, there: Collection[str]) -> None:
        if taken_back(record):  # it leads nowhere
            there = ()
        mended = record.change(
            supersedes=tuple(i for i in record.supersedes if i in there),
            contested_by=tuple(i for i in record.contested_by if i in there),
            superseded_by=record.superseded_by if record.superseded_by in there else None,
            contests=record.contests if record.contests in there else None,
        )
        if mended == record:
            return
        self._say("repair", "dangling_pointer", record)
        if mended.status != "contested" or mended.contests is not None:
            self._put(mended)
            return
        holder = max(self._on_slot(mended), key=_order, default=None)
        if holder is not None:
            self._put(*self.change.contesting(mended, holder, "dangling_pointer"))
        else:
            self._put(*succession([mended], self.change))

    def _on_slot(self, record: MemoryRecord) -> Iterator[MemoryRecord]:
        key = _slot_of(record)
        return (r for r in self.known.values() if r.is_active(self.change.now) and _slot_of(r) == key)

    def _settle(self, rivals: Sequence[MemoryRecord]) -> None:
        """Of several on an exclusive slot the last stays that may replace those before it, or agrees with them."""
        holder = rivals[0]
        for newer in rivals[1:]:
            if same_fact(holder, newer):
                kept, closed = self.change.united(holder, newer, "same_fact")
                self._put(kept, closed)
                self._say("deduplicate", "same_fact", closed, kept)
                holder = kept
            elif self.change.policy.may_overwrite(_best_source(newer, self.change), holder):
                inferred = _inferred(holder) and not _inferred(newer)
                action, reason = ("rescore", "inferred_outdated") if inferred else ("repair", "rivals_on_one_slot")
                kept, closed = self.change.displaced(holder, newer, reason)
                self._put(kept, closed)
                self._say(action, reason, closed, kept)
                holder = kept
            else:
                holder, challenger = self.change.contesting(newer, holder, "below_trust")
                self._put(holder, challenger)
                self._say("repair", "below_trust", challenger, holder)


def _order(record: MemoryRecord) -> tuple[int, str]:
    return record.seq, record.memory_id


def _slot_of(record: MemoryRecord) -> tuple[str, str, str]:
    return record.subject, record.topic, record.slot


def _rivals(records: Iterable[MemoryRecord], change: Change) -> list[list[MemoryRecord]]:
    """The active records of each exclusive slot that holds several, oldest first."""
    held: dict[object, list[MemoryRecord]] = defaultdict(list)
    for record in sorted(records, key=_order):
        if record.is_active(change.now) and change.exclusive(record):
            held[_slot_of(record)].append(record)
    return [group for group in held.values() if len(group) > 1]


def _best_source(record: MemoryRecord, change: Change) -> SourceType:
    return max((s.source_type for s in supports(record)), key=lambda t: change.policy.trust[t], default="tool_output")


def _inferred(record: MemoryRecord) -> bool:
    return {s.source_type for s in supports(record)} - {"tool_output"} == {"user_implicit"}


# ---------------------------------------------------------------- deduplicate


async def _deduplicate(io: IO, view: _View) -> list[Upkeep]:
    """Make one of those that say the same in nearly the same words, and record it as a turn, for a later replay."""
    for ns, known in view.records.items():
        groups = _candidates(known.values(), view)
        asked = [r for group in groups for r in group]
        if not asked:
            continue
        results, _ = await io.read([_near(ns, r, view.now) for r in asked])
        near = {
            r.memory_id: {hit.item.key for hit in found if hit.parts.relevance >= NEAR}
            for r, found in zip(asked, results, strict=True)
        }
        change = view.change(ns)
        pairs: list[tuple[MemoryRecord, MemoryRecord]] = []
        for group in groups:
            pairs += _united(group, near, change)
        pairs = pairs[:BATCH]
        if pairs:
            last = {r.memory_id: r for pair in pairs for r in pair}
            puts = [record_put(ns, r) for r in sorted(last.values(), key=lambda r: r.status == "superseded")]
            turn = _merging(pairs, view)
            await io.commit([*puts, turn_put(view.queue, turn)], expect=view.versions)
            return [view.said("deduplicate", NEAR_IDENTICAL, gone.memory_id, kept.memory_id) for kept, gone in pairs]
    return []


def _near(ns: Namespace, record: MemoryRecord, now: datetime) -> RankOp:
    where = Where(now=now.timestamp(), topics=(record.topic,))
    return RankOp((ns,), record.content, where, _RELEVANCE, BATCH, NEAR, "vector")


def _candidates(records: Iterable[MemoryRecord], view: _View) -> list[list[MemoryRecord]]:
    """Records that would be one if their wordings are near: all but the wording is equal. The best supported first."""
    by_slot: dict[object, list[MemoryRecord]] = defaultdict(list)
    for record in records:
        if record.is_active(view.now) and not record.contested_by and record.kind != "summary":
            by_slot[_slot_of(record)].append(record)
    groups: dict[object, list[MemoryRecord]] = defaultdict(list)
    for slot, found in by_slot.items():
        if len(found) > 1:
            for record in found:
                groups[slot, _particulars(record)].append(record)
    return [
        sorted(group, key=lambda r: (-r.confidence, -r.seq, r.memory_id)) for group in groups.values() if len(group) > 1
    ]


def _particulars(record: MemoryRecord) -> tuple[object, ...]:
    """What no nearness of wordings can make equal: numbers, negation, names, the kind, and a value of its own."""
    said = words(record.content)
    later = record.content.split()[1:]
    names = frozenset(w.strip(".,;:!?\"'()").casefold() for w in later if w[:1].isupper())
    value = normal(record.value)
    own = "" if value == normal(record.content) else value
    return numbers(record.content), negated(record.content), names, _NUMERALS & set(said), record.kind, own


def _overlap(a: MemoryRecord, b: MemoryRecord) -> bool:
    def ends_before(x: MemoryRecord, y: MemoryRecord) -> bool:
        return x.valid_to is not None and y.valid_from is not None and x.valid_to <= y.valid_from

    return not ends_before(a, b) and not ends_before(b, a)


def _united(
    group: Sequence[MemoryRecord], near: Mapping[str, set[str]], change: Change
) -> Iterator[tuple[MemoryRecord, MemoryRecord]]:
    """Pairs of survivor and absorbed, in order."""
    gone: set[str] = set()
    for first in group:
        if first.memory_id in gone:
            continue
        kept = first
        for other in group:
            # The same words in another order are as near as can be, and may say the contrary.
            turned = stems(other.content) == stems(first.content) and not says_the_same(other.content, first.content)
            same = (other.memory_id in near[first.memory_id] and not turned) or other.content == first.content
            if other is first or other.memory_id in gone or not same or not _overlap(kept, other):
                continue
            kept, closed = change.united(kept, other, NEAR_IDENTICAL)
            gone.add(closed.memory_id)
            yield kept, closed
        gone.add(first.memory_id)


def _merging(pairs: Sequence[tuple[MemoryRecord, MemoryRecord]], view: _View) -> Turn:
    operations = [
        Operation(action="MERGE", memory_id=kept.memory_id, target_id=gone.memory_id, content="", reason=NEAR_IDENTICAL)
        for kept, gone in pairs
    ]
    place = view.versions.get(view.queue, 0) + 1
    return deed(
        pairs[0][0], operations, turn_id=f"merge-{new_receipt_id()}", by="maintenance", place=place, at=view.now
    )


# ---------------------------------------------------------------- expire, prune


async def _sweep(io: IO, view: _View, limits: Limits) -> tuple[list[Upkeep], bool]:
    """Erase what expired long ago and what faded, as `delete` does: with a receipt, and bytes searched for."""
    why: dict[str, tuple[str, str]] = {}

    def pick(known: Mapping[str, MemoryRecord]) -> list[MemoryRecord]:
        over = {i: reason for i, r in known.items() if (reason := _over(r, limits, view.now)) is not None}
        chosen = sorted(over)[:BATCH]
        why.update({i: over[i] for i in chosen})
        return [known[i] for i in chosen]

    if not any(pick(known) for known in view.records.values()):
        return [], False
    receipt = await sweep(io, view.reader, pick, view.rules)
    for known in view.records.values():  # what goes with one because it says the same
        for i in [i for i in receipt.erased if i in known and i in why]:
            why |= {twin: (why[i][0], "said_the_same") for twin in known[i].supersedes if twin not in why}
    other = ("expire", "said_the_same")
    return [view.said(*why.get(i, other), i) for i in receipt.erased], receipt.state == "pending"


def _over(record: MemoryRecord, limits: Limits, now: datetime) -> tuple[str, str] | None:
    """Why the record is to be erased; None if it is not."""
    if record.expires_at is not None:
        if record.expires_at + limits.retention <= now:
            return "expire", "retention_over"
        if record.expires_at <= now:
            return None
    if record.status != "active" or _lasting(record) or record.decayed_confidence(now) >= limits.floor:
        return None
    return "prune", "confidence_below_floor"


def _lasting(record: MemoryRecord) -> bool:
    # An allergy does not end because nobody spoke of it: what a person or a system of record said about something
    # sensitive is never pruned, however old. Its band, low by then, tells the agent to ask.
    return record.category == "sensitive" and any(
        s.source_type in ("user_explicit", "bootstrapped") for s in supports(record)
    )


# ---------------------------------------------------------------- collect


async def _collect(io: IO, view: _View) -> tuple[list[Upkeep], bool]:
    """Take the texts out of turns that no stored record needs; ids, times and hashes stay, so they teach nothing again.

    Where only records are left that no longer hold, the candidates stay too: with them the past can be decided again.
    """
    bare = {t.turn_id: t for t in _bared(view)}
    if not bare:
        return [], False
    chosen = sorted(bare)[:BATCH]
    done = await io.erase_with([turn_put(view.queue, bare[i]) for i in chosen], expect=view.versions)
    return [view.said("collect", "no_record_needs_it", i) for i in chosen], done.state == "pending"


def _bared(view: _View) -> Iterator[Turn]:
    living = {i for known in view.records.values() for i, r in known.items() if r.status in _BELIEVED}
    suspects = {
        t.turn_id
        for t in view.turns.values()
        if t.status == "done"
        and (t.candidates or t.operations or any(m.text for m in t.messages))
        and not any(o.memory_id in living or o.target_id in living for o in t.operations)
    }
    if not suspects:
        return
    ended: set[str] = set()
    without: set[str] = {i for i in suspects if not view.turns[i].operations}
    places = {spaces(t)[0] for t in view.turns.values()}
    for ns in places:
        steps = steps_of(t for t in view.turns.values() if spaces(t)[0] == ns)
        known = view.records.get(ns, {})
        ended |= untied(known, steps, view.rules, _BELIEVED) & suspects
        without |= untied(known, steps, view.rules, (*_BELIEVED, "retracted")) & suspects
    for turn_id in sorted(ended | without):
        turn = view.turns[turn_id]
        if turn_id in without:
            yield turn.change(messages=(), candidates=(), operations=(), judged={}, dropped={})
        elif any(m.text for m in turn.messages):
            yield turn.change(messages=tuple(m.change(text="") for m in turn.messages))


_BELIEVED = ("active", "contested", "quarantined", "superseded")


# ---------------------------------------------------------------- alert


async def _alerted(io: IO, reader: Reader, size: int, limits: Limits, settings: Settings) -> bool:
    """Whether the owner passed the limit since it was last told; then it is noted as told."""
    if size >= limits.alert_at > settings.alerted:
        await change_settings(io, reader, lambda s: s.change(alerted=limits.alert_at))
        return True
    if size < settings.alerted:
        await change_settings(io, reader, lambda s: s.change(alerted=0))
    return False
