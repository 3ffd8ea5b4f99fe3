"""What the owner's records would be if a source had never spoken: recorded candidates, decided again in order. Pure.

The history of the records that the source touched is played twice, as it was and without the source. What differs is
what the source changed; all else keeps every byte. No model is asked: verdicts were recorded with the candidates.
"""

import itertools
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from langmem_adapter.consolidation.apply import Applied, Change, fresh_id, stands_on, supports
from langmem_adapter.consolidation.correct import corrected, corrected_to, decided
from langmem_adapter.consolidation.rules import SEQS_A_TURN, Rules, consolidated, owner_of
from langmem_adapter.consolidation.undo import Names, Undone, undo, unlink
from langmem_adapter.records import Candidate, MemoryRecord, Operation, Turn
from langmem_adapter.text import slot as normal
from langmem_adapter.text import stems

NEAR_IDENTICAL = "near_identical"
"""The reason of a MERGE that made one record of two (see `maintenance`); kept, like a deletion, without a candidate."""
CREATES = ("CREATE", "UPDATE", "CONTEST", "QUARANTINE")
ANEW = 1_000_000
"""Where the positions of candidates begin that were extracted anew."""
NOTHING = Operation(action="NOOP", memory_id=None, content="", reason="new")

Place = tuple[str, int]
"""Where a candidate stands: its turn's id, and its position there."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happened: a candidate and what it led to, a deletion, or two records that became one."""

    turn: Turn
    at: int
    operation: Operation
    candidate: Candidate | None = None

    @property
    def place(self) -> Place:
        """Where it is recorded."""
        return self.turn.turn_id, self.at

    @property
    def playable(self) -> bool:
        """Whether it is recorded well enough to be played."""
        by_id = self.operation.action == "DELETE" or self.operation.reason == NEAR_IDENTICAL
        return self.turn.applied > 0 and (self.candidate is not None or by_id)


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What changes without the source."""

    known: frozenset[str]
    """Ids of all records that this decided about, changed or not."""
    changed: dict[str, MemoryRecord]
    """By id: records that read otherwise, or that came to be."""
    gone: frozenset[str]
    operations: dict[Place, Operation]
    """Verdicts of the remaining turns that are others now."""
    replaced: frozenset[Place] = frozenset()
    """Candidates that were extracted anew …"""
    anew: dict[str, tuple[tuple[Candidate, Operation], ...]] = field(default_factory=dict)
    """… and what stands in their place, by turn."""


def steps_of(turns: Iterable[Turn]) -> list[Step]:
    """All that is recorded in these turns, in the order in which it happened."""
    found = [
        Step(turn, at, operation, turn.candidates[at] if at < len(turn.candidates) else None)
        for turn in turns
        for at, operation in enumerate(turn.operations)
    ]
    return sorted(found, key=_order)


def rebuild(
    records: Mapping[str, MemoryRecord],
    steps: Sequence[Step],
    names: Names,
    rules: Rules,
    extracted: Mapping[str, Sequence[Candidate]] | None = None,
) -> Iterator[Rebuilt]:
    """What becomes of the records that the source (see `Names`) had a part in, as far as it can be replayed.

    Records that a recorded history does not explain (turns were not kept, or are older than their recording) are in no
    result. `extracted`: the candidates of turns that were extracted anew, by turn id.
    """
    ids = _Ids(records.values())
    taken = {r.seq for r in records.values()}  # also by what stood in a step's place and is history now
    for group in touched(records, steps, names, rules, by_topic=bool(extracted)):
        if not all(s.playable for s in group.steps):
            continue
        if any(s.candidate is not None and s.candidate.topic not in rules.topics for s in group.steps):
            continue
        remaining = [s for s in group.steps if not _spoken_by(s, names)]
        again = {s.turn.turn_id: s.turn for s in remaining if s.turn.turn_id in (extracted or {})}
        fresh = [s for turn in again.values() for s in _anew(turn, group, (extracted or {})[turn.turn_id])]
        remaining = [s for s in remaining if s.turn.turn_id not in again] + fresh
        before = _play(group.steps, rules, ids)
        after = _play(sorted(remaining, key=_order), rules, ids, before.united)
        differ = {i for i in {*before.known, *after.known} if before.known.get(i) != after.known.get(i)}
        stale = any(i in before.known and not _alike(before.known[i], records.get(i)) for i in differ)
        if stale or not group.members <= before.known.keys():
            continue
        pairs: dict[str, list[tuple[Candidate, Operation]]] = {turn_id: [] for turn_id in again}
        for step in fresh:
            if step.candidate is not None:
                pairs[step.turn.turn_id].append((step.candidate, after.operations.pop(step.place)))
        yield Rebuilt(
            known=frozenset(before.known),
            changed={i: _kept(after.known[i], records.get(i), taken) for i in sorted(differ & after.known.keys())},
            gone=frozenset(before.known.keys() - after.known.keys()),
            operations={p: o for p, o in after.operations.items() if before.operations.get(p) != o},
            replaced=frozenset(s.place for s in group.steps if s.turn.turn_id in again),
            anew={turn_id: tuple(found) for turn_id, found in pairs.items()},
        )


def without(
    known: Mapping[str, MemoryRecord],
    turns: Iterable[Turn],
    names: Names,
    rules: Rules,
    change: Change,
    extracted: Mapping[str, Sequence[Candidate]] | None = None,
) -> tuple[list[Rebuilt], Undone]:
    """What is left without the source: what could be decided again (see `rebuild`), and the rest (see `undo`)."""
    parts = list(rebuild(known, steps_of(turns), names, rules, extracted))
    decided_about = {i for part in parts for i in part.known}
    return parts, undo([r for i, r in known.items() if i not in decided_about], names, change)


def decided_again(turns: Mapping[str, Turn], parts: Sequence[Rebuilt]) -> dict[str, Turn]:
    """The turns with the verdicts, and the candidates, that they have now."""
    found: dict[str, Turn] = dict(turns)
    for (turn_id, at), verdict in (pair for part in parts for pair in part.operations.items()):
        before = found[turn_id].operations
        found[turn_id] = found[turn_id].change(operations=(*before[:at], verdict, *before[at + 1 :]))
    replaced = {place for part in parts for place in part.replaced}
    for turn_id in {i for part in parts for i in part.anew}:
        turn = found[turn_id]
        kept = only(turn, [at for at in range(len(turn.operations)) if (turn_id, at) not in replaced])
        pairs = [pair for part in parts for pair in part.anew.get(turn_id, ())]
        found[turn_id] = kept.change(
            candidates=(*kept.candidates, *(c for c, _ in pairs)), operations=(*kept.operations, *(o for _, o in pairs))
        )
    return found


def only(turn: Turn, kept: Sequence[int]) -> Turn:
    """The turn with these of its candidates; they pair up with operations by position."""
    return turn.change(
        candidates=tuple(turn.candidates[at] for at in kept if at < len(turn.candidates)),
        operations=tuple(turn.operations[at] for at in kept),
        judged={new: turn.judged[at] for new, at in enumerate(kept) if at in turn.judged},
    )


def unspoken(turn: Turn, names: Names) -> Turn:
    """The turn without the candidates of the source."""
    spoken = [names(turn.source_id, c.message_id) for c in turn.candidates]
    if not any(spoken):
        return turn
    return only(turn, [at for at in range(len(turn.operations)) if at >= len(spoken) or not spoken[at]])


def remaining_turns(
    records: Mapping[str, MemoryRecord], steps: Sequence[Step], names: Names, rules: Rules
) -> dict[str, Turn]:
    """The turns of others that said something about what the source spoke of, by id."""
    groups = touched(records, steps, names, rules)
    return {s.turn.turn_id: s.turn for g in groups for s in g.steps if s.candidate and not _spoken_by(s, names)}


def _anew(turn: Turn, group: "Group", candidates: Sequence[Candidate]) -> list[Step]:
    """A turn's candidates, extracted anew, as far as they are about what is rebuilt."""
    was = {
        (s.candidate.topic, normal(s.candidate.value)): s.operation
        for s in group.steps
        if s.turn is turn and s.candidate
    }
    return [
        Step(turn, ANEW + at, was.get((c.topic, normal(c.value)), NOTHING), c)
        for at, c in enumerate(candidates)
        if c.topic in group.topics
    ]


def _order(step: Step) -> tuple[int, int, str, int]:
    return step.turn.applied, step.turn.seq, step.turn.turn_id, step.at


def _spoken_by(step: Step, names: Names) -> bool:
    return step.candidate is not None and names(step.turn.source_id, step.candidate.message_id)


def _kept(record: MemoryRecord, stored: MemoryRecord | None, taken: set[int]) -> MemoryRecord:
    if stored is not None:
        record = record.change(metadata=stored.metadata)
        # The numbers of one commit depend on all its candidates, of which only some were replayed.
        if stored.seq // SEQS_A_TURN == record.seq // SEQS_A_TURN:
            return record.change(seq=stored.seq)
    seq = next(n for n in itertools.count(record.seq) if n not in taken)
    taken.add(seq)
    return record.change(seq=seq)


def _alike(record: MemoryRecord, stored: MemoryRecord | None) -> bool:
    """Whether the replay came to what is stored: if not, something happened that was not recorded."""

    def told(r: MemoryRecord) -> tuple[object, ...]:
        support = {(s.source_id, s.message_id) for s in supports(r)}
        links = (r.superseded_by, r.contests, frozenset(r.supersedes), frozenset(r.contested_by))
        return r.content, r.value, r.topic, r.slot, r.status, r.confidence, links, frozenset(support)

    return stored is not None and told(record) == told(stored)


# ---------------------------------------------------------------- which records belong together


@dataclass(frozen=True, slots=True)
class Group:
    """Steps that may have influenced each other."""

    steps: list[Step]
    members: frozenset[str]
    """The source's records among those that they are about."""

    @property
    def topics(self) -> set[str]:
        """What they are about."""
        return {s.candidate.topic for s in self.steps if s.candidate is not None}


def touched(
    records: Mapping[str, MemoryRecord], steps: Sequence[Step], names: Names, rules: Rules, *, by_topic: bool = False
) -> list[Group]:
    """The groups of steps in which the source had a part.

    `by_topic`: one for each topic, as nobody knows yet with which of its facts something extracted anew will meet.
    """
    union = _connected(records, steps, rules, by_topic=by_topic)
    groups: dict[object, list[Step]] = defaultdict(list)
    for step in steps:
        groups[union.root(("step", *step.place))].append(step)
    members: dict[object, set[str]] = {union.root(("step", *s.place)): set() for s in steps if _spoken_by(s, names)}
    for r in records.values():
        if any(names(s.source_id, s.message_id) for s in r.sources):
            members.setdefault(union.root(("record", r.memory_id)), set()).add(r.memory_id)
    return [Group(groups[root], frozenset(found)) for root, found in members.items()]


def untied(
    records: Mapping[str, MemoryRecord], steps: Sequence[Step], rules: Rules, statuses: Sequence[str]
) -> set[str]:
    """Ids of the turns without which no record of these statuses would be decided otherwise."""
    union = _connected(records, steps, rules)
    tied = {union.root(("record", r.memory_id)) for r in records.values() if r.status in statuses}
    needed = {s.turn.turn_id for s in steps if union.root(("step", *s.place)) in tied}
    return {s.turn.turn_id for s in steps} - needed


def _connected(
    records: Mapping[str, MemoryRecord], steps: Sequence[Step], rules: Rules, *, by_topic: bool = False
) -> "_Union":
    """Facts influence each other that went into one record, or were compared: on one slot, or in the same words, or
    with what was said to hold no longer; of a topic on which something was replaced by its name, all."""
    spoken = [(s, s.candidate) for s in steps if s.candidate is not None]
    whole = {c.topic for s, c in spoken if by_topic or _reaches_all(s, c, rules)}
    ended = {(c.topic, normal(c.value)) for _, c in spoken if c.intent == "retract"}
    union = _Union()
    for step in steps:
        for reached in _reached(step, rules, whole, ended):
            union.join(reached, ("step", *step.place))
    for r in records.values():
        for i in (*r.supersedes, r.superseded_by, r.contests, *r.contested_by):
            if i is not None:
                union.join(("record", i), ("record", r.memory_id))
    return union


def _reaches_all(step: Step, candidate: Candidate, rules: Rules) -> bool:
    anything = (candidate.intent == "retract" and not normal(candidate.value)) or step.turn.corrects is not None
    return candidate.replaces is not None or (anything and not _exclusive(candidate, rules))


def _exclusive(candidate: Candidate, rules: Rules) -> bool:
    return candidate.topic in rules.topics and bool(rules.topics.get(candidate.topic).exclusive)


def _reached(step: Step, rules: Rules, whole: Collection[str], ended: Collection[tuple[str, str]]) -> Iterator[object]:
    candidate, judged = step.candidate, step.turn.judged.get(step.at)
    if candidate is not None and candidate.topic in whole:
        yield "topic", candidate.topic
    elif candidate is not None and _exclusive(candidate, rules):
        yield "slot", candidate.topic, rules.topics.slot_of(candidate.topic, candidate.slot, candidate.value)
        if said := stems(candidate.content):
            yield "words", candidate.topic, said
    elif candidate is not None:  # of a value that extends an ended one that is the beginning (see `decide.extends`)
        value = normal(candidate.value)
        begins = [value, *(value[:at] for at, sign in enumerate(value) if sign in " ,")]
        yield from (("ended", candidate.topic, begin) for begin in begins if (candidate.topic, begin) in ended)
    ids = (step.operation.memory_id, step.operation.target_id, step.turn.corrects, judged and judged.target_id)
    yield from (("record", i) for i in ids if i is not None)


class _Union:
    """Which things are connected (union-find)."""

    def __init__(self) -> None:
        self._parent: dict[object, object] = {}

    def root(self, thing: object) -> object:
        """The thing that stands for all that are connected with this one."""
        parent = self._parent.setdefault(thing, thing)
        while parent != thing:
            self._parent[thing] = self._parent[parent]
            thing, parent = parent, self._parent[parent]
        return thing

    def join(self, a: object, b: object) -> None:
        """Connect two things."""
        self._parent[self.root(a)] = self.root(b)


# ---------------------------------------------------------------- playing


class _Ids:
    """The same id for the same record, however often it is played, and the stored one where there is one."""

    def __init__(self, records: Iterable[MemoryRecord]) -> None:
        self._made: dict[object, str] = {
            r.history[0].ids[0]: r.memory_id for r in records if r.history and r.history[0].reason == "incumbent_gone"
        }

    def of(self, step: Step, played: "_Played") -> Callable[[MemoryRecord | None], str]:
        was = step.operation.memory_id

        def new_id(challenger: MemoryRecord | None) -> str:
            if challenger is not None:
                return self._made.setdefault(challenger.memory_id, fresh_id())
            if was is not None and was not in played.known:
                if step.operation.action in CREATES:
                    return was
                # It agreed with a record that another made, who is silent now: that record is its own.
                if was not in played.made_by_others and was not in self._made.values():
                    return was
            return self._made.setdefault(step.place, fresh_id())

        return new_id


@dataclass(slots=True)
class _Played:
    made_by_others: frozenset[str]
    """Ids of the records that the played steps made when they were first decided."""
    known: dict[str, MemoryRecord] = field(default_factory=dict)
    operations: dict[Place, Operation] = field(default_factory=dict)
    stands_for: dict[str, str] = field(default_factory=dict)
    """Id of a record that does not come to be here → the one that its remaining candidates made instead."""
    united: dict[Place, frozenset[str]] = field(default_factory=dict)
    """What the two records said that became one."""

    def now_called(self, memory_id: str | None) -> str | None:
        return memory_id if memory_id is None or memory_id in self.known else self.stands_for.get(memory_id, memory_id)


def _play(
    steps: Sequence[Step], rules: Rules, ids: _Ids, united: Mapping[Place, frozenset[str]] | None = None
) -> _Played:
    """What the steps lead to; records become one only if they say what they said then (`united`)."""
    played = _Played(frozenset(s.operation.memory_id or "" for s in steps if s.operation.action in CREATES))
    for _, group in itertools.groupby(steps, key=lambda s: s.turn.turn_id):
        turn_steps = list(group)
        deleted = [s for s in turn_steps if s.operation.action == "DELETE"]
        if deleted:
            _delete(deleted, played, rules, ids)
        for step in turn_steps:
            if step.candidate is not None:
                _decide(step, step.candidate, played, rules, ids)
            elif step.operation.reason == NEAR_IDENTICAL:
                _unite(step, played, rules, ids, united)
    return played


def _decide(step: Step, candidate: Candidate, played: _Played, rules: Rules, ids: _Ids) -> None:
    change = _change(step, played, rules, ids)
    if step.turn.corrects is not None:
        applied = _correct(step.turn, candidate, played, rules, change)
    else:
        judgement = step.turn.judged.get(step.at)
        if judgement is not None:
            judgement = judgement.change(target_id=played.now_called(judgement.target_id))
        applied = consolidated(candidate, step.turn, played.known, rules, change, judgement)
    was, made = step.operation.memory_id, applied.operation.memory_id
    if was is not None and made is not None and was not in played.known and was != made:
        played.stands_for[was] = made
    played.known |= {r.memory_id: r for r in applied.records}
    played.operations[step.place] = applied.operation


def _correct(turn: Turn, candidate: Candidate, played: _Played, rules: Rules, change: Change) -> Applied:
    record = played.known.get(played.now_called(turn.corrects) or "")
    if record is not None and record.status in ("active", "contested"):
        links = (*record.supersedes, record.superseded_by, record.contests, *record.contested_by)
        linked = {i: played.known[i] for i in links if i in played.known}
        if (incumbent := linked.get(record.contests or "")) is not None:  # others contest it too
            linked |= {i: played.known[i] for i in incumbent.contested_by if i in played.known}
        if candidate.content == candidate.excerpt:  # its words were not erased
            moved = corrected_to(record, candidate.content)
            candidate = candidate.change(slot=moved.slot, value=moved.value)
        if candidate.slot != record.slot and _exclusive(candidate, rules):
            linked |= {i: r for i, r in played.known.items() if (r.topic, r.slot) == (candidate.topic, candidate.slot)}
        return corrected(decided(record, candidate, linked), candidate, turn, rules, change)
    # What was corrected never was; the person's word stands all the same, on whatever is there.
    if rules.topics.get(candidate.topic).exclusive is False:
        return consolidated(candidate.change(slot=""), turn, played.known, rules, change, None)
    there = [r for r in played.known.values() if stands_on(r) == stands_on(candidate) and r.is_active(change.now)]
    incumbent = max(there, key=lambda r: r.seq, default=None)
    if incumbent is None:
        return consolidated(candidate, turn, played.known, rules, change, None)
    linked = {i: played.known[i] for i in incumbent.contested_by if i in played.known}
    return corrected(decided(incumbent, candidate, linked), candidate, turn, rules, change)


def _delete(steps: Sequence[Step], played: _Played, rules: Rules, ids: _Ids) -> None:
    named = {s.operation.memory_id for s in steps} | {played.now_called(s.operation.memory_id) for s in steps}
    # What is left of a deleted record's candidates bears its id instead of its words (see `forgetting`).
    gone = [r for r in played.known.values() if r.memory_id in named or r.content in named]
    restore = any(s.operation.reason == "restore" for s in steps)
    changed = unlink(played.known, gone, _change(steps[0], played, rules, ids), restore=restore)
    for record in gone:
        del played.known[record.memory_id]
    played.known |= changed


def _unite(step: Step, played: _Played, rules: Rules, ids: _Ids, united: Mapping[Place, frozenset[str]] | None) -> None:
    change = _change(step, played, rules, ids)
    named = {played.now_called(i) for i in (step.operation.memory_id, step.operation.target_id)}
    found = [r for i in named if (r := played.known.get(i or "")) is not None and r.is_active(change.now)]
    said = frozenset(r.content for r in found)
    if len(found) < 2 or (united is not None and united.get(step.place) != said):
        played.operations[step.place] = NOTHING.change(reason=NEAR_IDENTICAL)
        return
    played.united[step.place] = said
    kept, closed = change.united(found[0], found[1], NEAR_IDENTICAL)
    played.known |= {kept.memory_id: kept, closed.memory_id: closed}
    played.operations[step.place] = step.operation.change(memory_id=kept.memory_id, target_id=closed.memory_id)


def _change(step: Step, played: _Played, rules: Rules, ids: _Ids) -> Change:
    turn = step.turn
    assert turn.applied_at is not None
    # Behind the numbers that the commit itself gave, which go to the records that it made.
    numbers = itertools.count(turn.applied * SEQS_A_TURN + SEQS_A_TURN // 2 + 2 * (step.at % ANEW))
    return Change(
        owner_of(turn),
        turn.applied_at,
        rules.policy,
        lambda: next(numbers),
        turn.note,
        rules.exclusive,
        new_id=ids.of(step, played),
    )
