"""Erasing by source, by memory, or all of a user: bytes go, the past is decided again, a receipt says what was done."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal

from langgraph.store.base import PutOp

from langmem_adapter.consent import Settings, not_on_hold, settings_in, settings_op
from langmem_adapter.consolidation.apply import Change
from langmem_adapter.consolidation.replay import (
    NEAR_IDENTICAL,
    Rebuilt,
    decided_again,
    only,
    remaining_turns,
    steps_of,
    without,
)
from langmem_adapter.consolidation.rules import Rules, change_of, deed, record_put, spaces, turn_put
from langmem_adapter.consolidation.undo import Names, unlink
from langmem_adapter.errors import InvalidInput, MemoryNotFound
from langmem_adapter.namespaces import Namespace, Reader
from langmem_adapter.paging import items_in, items_under, namespaces_under
from langmem_adapter.ports import IO, retried
from langmem_adapter.receipts import Checkpoints, carry_out, complete, new_receipt_id
from langmem_adapter.records import Candidate, Extraction, HistoryEntry, MemoryRecord, Operation, Place, Receipt, Turn
from langmem_adapter.text import negated
from langmem_adapter.text import slot as normal

AGREES_WITH_NONE = ("unchanged_resync", "retract_below_trust")
"""Reasons of operations that name a record whose words are others than the candidate's."""

_Words = tuple[Namespace, str, str, str]
"""The namespace, and the subject, topic and value of a record."""
_NO_WORDS: Mapping[_Words, str] = {}

Extract = Callable[[IO, Turn], Awaitable[Extraction]]
"""Asks for the candidates of a turn."""

Pick = Callable[[Mapping[str, MemoryRecord]], list[MemoryRecord]]
"""Chooses among the records of one namespace."""

Previous = Literal["stay", "restore", "refuse"]

GHOST = "erased"
"""The kind of a candidate whose words are gone."""

_Held = tuple[Namespace, str, str]
"""The namespace, the topic, and the slot or the value of a record that is left."""

# ---------------------------------------------------------------- by source


async def forget_source(
    io: IO,
    reader: Reader,
    source_id: str,
    rules: Rules,
    checkpoints: Checkpoints | None = None,
    *,
    dry_run: bool = False,
    extract: Extract | None = None,
) -> Receipt:
    """Erase what rests only on the source, and decide again what rests on others too, as if it had never spoken.

    Records that it had no part in keep every byte. Its turns keep their ids and times only. Unknown sources give an
    empty receipt; `dry_run` says what would be done. With `extract` the remaining turns are extracted anew, as far as
    their texts were kept.
    """
    if not dry_run:
        await complete(io, reader, checkpoints)
    anew = {} if extract is None else await _extracted(io, reader, source_id, rules, extract, dry_run)
    return await retried(io, lambda: _forget_once(io, reader, source_id, rules, checkpoints, dry_run, anew))


async def _extracted(
    io: IO, reader: Reader, source_id: str, rules: Rules, extract: Extract, dry_run: bool
) -> dict[str, tuple[Candidate, ...]]:
    """The candidates, extracted anew, of the turns that said something about what the source spoke of."""
    places, _ = await _allowed(io, reader, dry_run=dry_run)
    turns = await _turns(io, reader)
    names = _names(source_id, turns.values())
    asked: dict[str, Turn] = {}
    for ns in (p for p in places if p[-1] == "facts"):
        known = await _records(io, ns)
        steps = steps_of(t for t in turns.values() if spaces(t)[0] == ns)
        asked |= remaining_turns(known, steps, names, rules)
    left = [_without(t, names) for t in asked.values()]
    spoken = [t for t in left if t.corrects is None and t.messages and all(m.text for m in t.messages)]
    return {turn.turn_id: (await extract(io, turn)).candidates for turn in spoken}


async def _forget_once(
    io: IO,
    reader: Reader,
    source_id: str,
    rules: Rules,
    checkpoints: Checkpoints | None,
    dry_run: bool,
    extracted: Mapping[str, Sequence[Candidate]],
) -> Receipt:
    places, versions = await _allowed(io, reader, dry_run=dry_run)
    turns = await _turns(io, reader)
    names = _names(source_id, turns.values())
    parts: list[Rebuilt] = []
    puts: list[PutOp] = []
    erased: list[str] = []
    rebuilt: list[str] = []
    flagged: list[str] = []
    remaining: dict[str, list[_Held]] = {}
    told = {source_id}  # the sessions whose summaries may tell what was erased, or what is believed again as changed
    for ns in (p for p in places if p[-1] == "facts"):
        known = await _records(io, ns)
        change = change_of(reader, rules, versions, known.values(), rules.clock())
        spoken_here = [t for t in turns.values() if spaces(t)[0] == ns]
        here, undone = without(known, spoken_here, names, rules, change, extracted)
        parts += here
        for part in here:
            puts += [record_put(ns, r) for r in part.changed.values()]
            puts += [PutOp(ns, i, None) for i in sorted(part.gone & known.keys())]
            erased += sorted(part.gone & known.keys())
            rebuilt += part.changed
        blended = {r.memory_id for r in undone.blended}
        puts += [record_put(ns, _flagged(r, change) if r.memory_id in blended else r) for r in undone.changed]
        puts += [PutOp(ns, r.memory_id, None) for r in undone.gone]
        erased += [r.memory_id for r in undone.gone]
        flagged += sorted(blended)
        now = (
            known | {i: r for part in here for i, r in part.changed.items()} | {r.memory_id: r for r in undone.changed}
        )
        remaining |= {i: _held(ns, r) for i, r in now.items() if i not in erased}
        told |= {s.source_id for i, r in now.items() if r is not known.get(i) for s in r.sources}
    spoken = {i: _without(t, names) for i, t in decided_again(turns, parts).items()}
    changed_turns = [t for i, t in _ghosted(spoken, remaining, rules).items() if t != turns[i]]
    summaries = await _summaries(io, reader, told | _threads_of(changed_turns))
    puts += [turn_put(reader.space("turns"), t) for t in changed_turns] + summaries
    whole, single = await _in_threads(io, reader, list(turns.values()), {source_id} & _threads_of(turns.values()))
    single |= _spoken(changed_turns, turns, names, {*whole, *single})
    receipt = Receipt(
        receipt_id=new_receipt_id(),
        action="forget_source",
        source_id=source_id,
        user_id=reader.user_id,
        at=rules.clock(),
        dry_run=dry_run,
        erased=tuple(erased),
        rebuilt=tuple(rebuilt),
        flagged=tuple(flagged),
        threads=whole,
        messages=single,
        places=(
            *_of_records(len(erased)),
            Place(name="rebuilt records", state="done", count=len(rebuilt)),
            Place(name="blended records", state="done", count=len(flagged), note="kept, marked needs_regeneration"),
            Place(name="turns", state="done", count=len(changed_turns)),
            Place(name="summaries", state="done", count=len(summaries)),
        ),
    )
    return receipt if dry_run else await carry_out(io, reader, puts, versions, receipt, checkpoints)


def _names(source_id: str, turns: Iterable[Turn]) -> Names:
    """Whether a (source id, message id) is the source: a thread, a record's name, a message, or a tool by its name."""
    spoken = list(turns)
    by_tool = {m.id for t in spoken for m in t.messages if m.role == "tool" and m.name == source_id}
    # A person's corrections and deletions share a source id that a thread may happen to have as its name.
    ours = {t.turn_id for t in spoken if t.corrects is not None or any(o.action == "DELETE" for o in t.operations)}
    return lambda found, message_id: (
        source_id == message_id or message_id in by_tool or (source_id == found and message_id not in ours)
    )


def _ghosted(turns: Mapping[str, Turn], remaining: Mapping[str, list[_Held]], rules: Rules) -> dict[str, Turn]:
    """The turns without the words of records that are gone: those that only agreed with one that was deleted."""
    pairs = [pair for t in turns.values() for pair in zip(t.candidates, t.operations, strict=False)]
    names = {o.memory_id: c.content for c, o in pairs if c.kind == GHOST}
    gone = {
        o.memory_id: names.get(o.memory_id, o.memory_id)
        for c, o in pairs
        if c.kind != GHOST and o.memory_id is not None and o.memory_id not in remaining
    }
    held = {place for places in remaining.values() for place in places}
    touched = {
        i
        for i, t in turns.items()
        if any(c.kind == GHOST for c in t.candidates)
        or any(m in gone for m in (*t.taught, *(o.memory_id for o in t.operations)))
    }
    return {i: _scrubbed(t, gone, (), held, rules) if i in touched else t for i, t in turns.items()}


def unsaid_by(turn: Turn, source_id: str) -> Turn | None:
    """A turn that is in no store yet, without what the source said in it; None if nothing is left."""
    left = _without(turn, _names(source_id, [turn]))
    return left if left.digest else None


def _without(turn: Turn, names: Names) -> Turn:
    """The turn without what the source said in it; a tombstone if that is all."""
    if turn.digest == "" and not turn.candidates and not turn.messages:
        return turn
    answered = any(m.role == "tool" for m in turn.messages)  # a tool may have said something too
    if names(turn.source_id, _message_id(turn)) and not (answered and names(None, _message_id(turn))):
        return turn.emptied()
    messages = tuple(m for m in turn.messages if not names(None, m.id))
    kept = [
        at
        for at in range(len(turn.operations))
        if at >= len(turn.candidates) or not names(None, turn.candidates[at].message_id)
    ]
    answers = _answers_without(turn, names)
    if len(messages) == len(turn.messages) and len(kept) == len(turn.operations):
        return turn if answers == turn.answers else turn.change(answers=answers)
    if not messages and not kept:
        return turn.emptied()
    unsaid = any(m.role == "human" for m in turn.messages) and not any(m.role == "human" for m in messages)
    return only(turn, kept).change(messages=messages, digest="" if unsaid else turn.digest, answers=answers)


def _answers_without(turn: Turn, names: Names) -> tuple[tuple[str, str], ...]:
    """What is noted of the tools' answers; of the source's only the ids, so that delivering them teaches nothing."""
    waiting = {m.id: "" for m in turn.messages if m.role == "tool" and names(None, m.id)}
    return tuple((i, "" if names(None, i) else words) for i, words in (dict(turn.answers) | waiting).items())


def _message_id(turn: Turn) -> str:
    """The id of the human message, which is there also when its text was not kept."""
    return turn.turn_id.partition("/")[2] or turn.turn_id


def _flagged(record: MemoryRecord, change: Change) -> MemoryRecord:
    entry = HistoryEntry(at=change.now, action="FLAG", reason="source_forgotten")
    return record.change(needs_regeneration=True, updated_at=change.now, history=(*record.history, entry))


# ---------------------------------------------------------------- by memory


async def delete(
    io: IO, reader: Reader, ids: Sequence[str], previous: Previous, rules: Rules, checkpoints: Checkpoints | None = None
) -> Receipt:
    """Erase these records — all, or (MemoryNotFound) none.

    `previous`: what becomes of the record that an erased one had replaced. "stay": it stays history; "restore": it
    is active again if the slot is free; "refuse": InvalidInput if there is one.
    """
    await complete(io, reader, checkpoints)
    wanted = tuple(dict.fromkeys(ids))

    def named(known: Mapping[str, MemoryRecord]) -> list[MemoryRecord]:
        return [known[i] for i in wanted if i in known]

    return await retried(io, lambda: _delete_once(io, reader, named, wanted, previous, rules, "delete"))


async def sweep(io: IO, reader: Reader, pick: Pick, rules: Rules) -> Receipt:
    """Erase those of the owner's records that are picked now, leaving what they had replaced as history.

    Once: Conflict if another writer came first. OnHold if nothing may be erased.
    """
    return await _delete_once(io, reader, pick, (), "stay", rules, "maintain")


async def _delete_once(
    io: IO,
    reader: Reader,
    pick: Pick,
    ids: Sequence[str],
    previous: Previous,
    rules: Rules,
    action: Literal["delete", "maintain"],
) -> Receipt:
    places, versions = await _allowed(io, reader)
    left = set(ids)
    puts: list[PutOp] = []
    sessions: set[str] = set()
    erased: dict[Namespace, list[MemoryRecord]] = {}
    remaining: set[_Held] = set()
    for ns in (p for p in places if p[-1] == "facts"):
        known = await _records(io, ns)
        named = pick(known)
        _check_previous(named, previous)
        gone = _with_twins(named, known)
        changed = unlink(
            known,
            gone,
            change_of(reader, rules, versions, known.values(), rules.clock()),
            restore=previous == "restore",
        )
        puts += [record_put(ns, r) for r in changed.values()]
        puts += [PutOp(ns, r.memory_id, None) for r in gone]
        erased |= {ns: gone} if gone else {}
        left -= {r.memory_id for r in gone}
        sessions |= {s.source_id for r in gone for s in r.sources}
        going = {g.memory_id for g in gone}
        remaining |= {held for i, r in known.items() if i not in going for held in _held(ns, r)}
    if left:
        raise MemoryNotFound(f"no memory {sorted(left)[0]!r} for user {reader.user_id!r}; nothing was deleted")
    turns = await _deleted_from(io, reader, erased, remaining, previous, rules, versions)
    summaries = await _summaries(io, reader, sessions)  # they may tell what was deleted
    count = sum(len(gone) for gone in erased.values())
    receipt = Receipt(
        receipt_id=new_receipt_id(),
        action=action,
        user_id=reader.user_id,
        at=rules.clock(),
        erased=tuple(r.memory_id for gone in erased.values() for r in gone),
        places=(
            *_of_records(count),
            Place(name="turns", state="done", count=len(turns)),
            Place(name="summaries", state="done", count=len(summaries)),
        ),
    )
    return await carry_out(io, reader, [*puts, *turns, *summaries], versions, receipt, None)


def _with_twins(named: Sequence[MemoryRecord], known: Mapping[str, MemoryRecord]) -> list[MemoryRecord]:
    """The named records and those that they took in: challengers they were made of, and records that said the same."""
    found = {r.memory_id: r for r in named}
    left = list(named)
    while left:
        record = left.pop()
        for other in (known[i] for i in record.supersedes if i in known and i not in found):
            if _challenged(other) or _says(other, record) or _became_one(other):
                found[other.memory_id] = other
                left.append(other)
    return list(found.values())


def _challenged(record: MemoryRecord) -> bool:
    # Not by its times: what was replaced within one tick of the clock was believed.
    return bool(record.history) and record.history[0].action == "CONTEST"


def _says(one: MemoryRecord, other: MemoryRecord) -> bool:
    same = (one.subject, one.topic, normal(one.value)) == (other.subject, other.topic, normal(other.value))
    return same and negated(one.content) == negated(other.content)


def _became_one(record: MemoryRecord) -> bool:
    return bool(record.history) and record.history[-1].reason == NEAR_IDENTICAL


def _check_previous(gone: Sequence[MemoryRecord], previous: Previous) -> None:
    replaced = [r for r in gone if r.supersedes]
    if previous == "refuse" and replaced:
        raise InvalidInput(
            f"memory {replaced[0].memory_id!r} replaced {list(replaced[0].supersedes)}; "
            "delete with previous='stay' or previous='restore'"
        )


def _held(ns: Namespace, record: MemoryRecord) -> list[_Held]:
    return [(ns, record.topic, record.slot), (ns, record.topic, normal(record.value))]


async def _deleted_from(
    io: IO,
    reader: Reader,
    erased: Mapping[Namespace, Sequence[MemoryRecord]],
    remaining: Collection[_Held],
    previous: Previous,
    rules: Rules,
    versions: Mapping[Namespace, int],
) -> list[PutOp]:
    """The owner's turns without the words of the erased records, and the deletion itself, where a replay needs it."""
    ns = reader.space("turns")
    turns = await _turns(io, reader)
    gone = {i: name for records in erased.values() for i, name in _stand_ins(records).items()}
    words = {(place, *_said(r)): gone[r.memory_id] for place, records in erased.items() for r in records}
    topics = {(place, r.topic) for place, records in erased.items() for r in records}
    scrubbed = {i: _scrubbed(t, gone, topics, remaining, rules, words) for i, t in turns.items()}
    puts = [turn_put(ns, t) for i, t in scrubbed.items() if t is not turns[i]]
    place = versions.get(ns, 0) + 1
    for facts, records in erased.items():
        spoken = (t for t in scrubbed.values() if t.candidates and spaces(t)[0] == facts)
        ghosts = {o.memory_id for t in spoken for o in t.operations}
        told = [r for r in records if r.memory_id in ghosts]
        if told:
            puts.append(turn_put(ns, _deletion(told, previous, place, rules)))
    return puts


def _stand_ins(gone: Sequence[MemoryRecord]) -> dict[str, str]:
    """What stands for each record's words, by id: the id of the first that says the same."""
    first: dict[tuple[str, str, str, str], str] = {}
    return {r.memory_id: first.setdefault((r.subject, r.topic, r.slot, normal(r.value)), r.memory_id) for r in gone}


def _scrubbed(
    turn: Turn,
    gone: Mapping[str, str],
    topics: Collection[tuple[Namespace, str]],
    remaining: Collection[_Held],
    rules: Rules,
    words: Mapping[_Words, str] = _NO_WORDS,
) -> Turn:
    """The turn without the words of the records that are gone.

    Where other facts stand on the same slot, a ghost of the candidate is left, so that the past can be decided again:
    an id stands for its words (`gone`: by the id of its record; `words`: by what it said, for a candidate that agreed
    with no record, but said what one had said before).
    """
    learnt = turn.status == "done"  # else its words are new, and nothing of them is erased
    released = learnt and any(i in gone for i in turn.taught)
    touched = released or any(o.memory_id in gone or o.target_id in gone for o in turn.operations)
    if not turn.candidates:  # a deletion, or words were not kept, or all were released from quarantine
        return _blank(turn) if touched and turn.digest and learnt else turn
    facts, _ = spaces(turn)
    kept: list[int] = []
    left: dict[int, tuple[Candidate, Operation]] = {}
    for at, (candidate, operation) in enumerate(zip(turn.candidates, turn.operations, strict=False)):
        left[at] = candidate, operation
        name = None if operation.memory_id is None else gone.get(operation.memory_id)
        if name is None and operation.reason in AGREES_WITH_NONE:
            said = _said(candidate)
            name = None if (facts, *said[1:]) in remaining else words.get((facts, *said))
        if operation.memory_id is None:  # the end of something that was not believed: it may be of what goes
            keep = not touched and (facts, candidate.topic) not in topics
        elif name is not None or candidate.kind == GHOST:
            slot = _slot(candidate, rules)
            named = candidate.replaces is not None and (facts, candidate.topic, normal(candidate.replaces)) in remaining
            keep = named or (facts, candidate.topic, slot) in remaining
            ghost = candidate.change(
                kind=GHOST,
                content=candidate.content if name is None or candidate.kind == GHOST else name,
                slot=slot,
                replaces=candidate.replaces if named else None,
                excerpt="",
                entities=(),
            )
            # A value is kept as long as somebody else's record holds it: it is not this one's secret.
            if (facts, candidate.topic, normal(candidate.value)) not in remaining:
                ghost = ghost.change(value=ghost.content)
            left[at] = ghost, operation.change(content="")
        else:
            keep = True
        if keep:
            kept.append(at)
    if len(kept) == len(turn.operations) and not touched and all(left[at][0] == turn.candidates[at] for at in kept):
        return turn
    bare = _blank(only(turn, kept)) if learnt else only(turn, kept)
    pairs = [left[at] for at in kept]
    return bare.change(candidates=tuple(c for c, _ in pairs), operations=tuple(o for _, o in pairs))


def _blank(turn: Turn) -> Turn:
    return turn.change(messages=tuple(m.change(text="") for m in turn.messages), erased=True)


def _said(fact: MemoryRecord | Candidate) -> tuple[str, str, str]:
    return fact.subject, fact.topic, normal(fact.value)


def _slot(candidate: Candidate, rules: Rules) -> str:
    known = candidate.topic in rules.topics
    return rules.topics.slot_of(candidate.topic, candidate.slot, candidate.value) if known else candidate.slot


def _deletion(gone: Sequence[MemoryRecord], previous: Previous, place: int, rules: Rules) -> Turn:
    """The deletion as a turn, so that a replay deletes too."""
    operations = [Operation(action="DELETE", memory_id=r.memory_id, content="", reason=previous) for r in gone]
    turn_id = f"delete-{new_receipt_id()}"
    return deed(gone[0], operations, turn_id=turn_id, by="deletion", place=place, at=rules.clock())


# ---------------------------------------------------------------- everything


async def delete_all(io: IO, reader: Reader, rules: Rules, checkpoints: Checkpoints | None = None) -> Receipt:
    """Erase all of the owner's records, turns, summaries, receipts and threads; a pause and what is forbidden stay."""
    await complete(io, reader, checkpoints)
    return await retried(io, lambda: _delete_all_once(io, reader, rules, checkpoints))


async def _delete_all_once(io: IO, reader: Reader, rules: Rules, checkpoints: Checkpoints | None) -> Receipt:
    _, versions = await _allowed(io, reader)
    items = await items_under(io, reader.root)
    mine = [Turn.stored(i) for i in items if i.namespace == reader.space("turns")]
    whole, single = await _in_threads(io, reader, mine, _threads_of(mine))
    records = [i for i in items if i.namespace[-1] == "facts"]
    receipt = Receipt(
        receipt_id=new_receipt_id(),
        action="delete_all",
        user_id=reader.user_id,
        at=rules.clock(),
        erased=tuple(i.key for i in records),
        threads=whole,
        messages=single,
        places=(
            *_of_records(len(records)),
            Place(name="turns", state="done", count=sum(i.namespace[-1] == "turns" for i in items)),
            Place(name="summaries", state="done", count=sum(i.namespace[-1] == "summaries" for i in items)),
        ),
    )
    gone = [PutOp(i.namespace, i.key, None) for i in items if i.namespace[-1] != "settings"]
    return await carry_out(io, reader, gone, versions, receipt, checkpoints)


# ---------------------------------------------------------------- what all of them need


def _of_records(count: int) -> tuple[Place, ...]:
    return (
        Place(name="records", state="done", count=count, note="with their history"),
        Place(name="vectors and word index", state="done", count=count, note="they go with their records"),
    )


async def _allowed(io: IO, reader: Reader, *, dry_run: bool = False) -> tuple[list[Namespace], dict[Namespace, int]]:
    """What `guarded` finds; OnHold if nothing may be erased, unless nothing will be."""
    found, versions, settings = await guarded(io, reader)
    if not dry_run:
        not_on_hold(settings, reader)
    return found, versions


async def guarded(io: IO, reader: Reader) -> tuple[list[Namespace], dict[Namespace, int], Settings]:
    """All of the owner's namespaces, and the versions that an erasure depends on, read before the data they guard."""
    found = await namespaces_under(io, reader.root)
    # A hold or a learning that begins now is in a namespace that may not be there yet.
    watched = dict.fromkeys([*found, reader.space("settings"), reader.space("turns")])
    (said,), versions = await io.read([settings_op(reader)], versions=tuple(watched))
    receipts = reader.space("receipts")  # only we write there, and not on what we read here
    rest = {ns: v for ns, v in versions.items() if ns != receipts}
    return [ns for ns in found if ns != receipts], rest, settings_in(said)


async def _records(io: IO, ns: Namespace) -> dict[str, MemoryRecord]:
    return {i.key: MemoryRecord.stored(i) for i in await items_in(io, ns)}


async def _turns(io: IO, reader: Reader) -> dict[str, Turn]:
    return {i.key: Turn.stored(i) for i in await items_in(io, reader.space("turns"))}


def _threads_of(turns: Iterable[Turn]) -> set[str]:
    """The threads in which the owner spoke."""
    return {t.session_id for t in turns if t.session_id}


async def _in_threads(
    io: IO, reader: Reader, turns: Iterable[Turn], threads: Collection[str]
) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Which of these threads go as a whole; of the others, in which somebody else spoke too, the owner's messages."""
    shared = {name for name in threads if await _others_in(io, reader, name)}
    single = {name: [i for t in turns if t.session_id == name for i in _message_ids(t)] for name in shared}
    return tuple(sorted(set(threads) - shared)), {name: tuple(dict.fromkeys(ids)) for name, ids in single.items()}


def _spoken(
    changed: Iterable[Turn], before: Mapping[str, Turn], names: Names, but: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """The messages of the source in threads that stay, by thread."""
    found: dict[str, list[str]] = {}
    for turn in (before[t.turn_id] for t in changed):
        if turn.session_id is not None and turn.session_id not in but:
            its = _message_ids(turn)
            all_ = names(turn.source_id, _message_id(turn))
            found.setdefault(turn.session_id, []).extend(i for i in its if all_ or names(None, i))
    return {thread: tuple(dict.fromkeys(ids)) for thread, ids in found.items() if ids}


def _message_ids(turn: Turn) -> list[str]:
    return list(dict.fromkeys([_message_id(turn), *(m.id for m in turn.messages)]))


async def _others_in(io: IO, reader: Reader, thread: str) -> bool:
    """Whether another user spoke in a thread."""
    found = await items_under(io, reader.root[:3], {"session_id": thread})
    return any(i.namespace[-1] == "turns" and i.namespace[: len(reader.root)] != reader.root for i in found)


async def _summaries(io: IO, reader: Reader, sessions: Collection[str]) -> list[PutOp]:
    """The deletion of these sessions' summaries."""
    found = await items_under(io, reader.root, {"kind": "summary"})
    return [PutOp(i.namespace, i.key, None) for i in found if i.value.get("session_id") in sessions]
