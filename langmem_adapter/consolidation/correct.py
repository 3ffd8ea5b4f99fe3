"""A person's correction: it bypasses the trust gate, and is recorded like a turn."""

from collections.abc import Mapping

from langgraph.store.base import GetOp

from langmem_adapter.consolidation import neighbours
from langmem_adapter.consolidation.apply import Applied, Change, apply, stands_on
from langmem_adapter.consolidation.decide import Decision, same_fact
from langmem_adapter.consolidation.rules import Rules, counter, outdated, owner_of, record_put, spaces, turn_put
from langmem_adapter.errors import InvalidInput, MemoryNotFound
from langmem_adapter.ports import IO, retried
from langmem_adapter.records import Candidate, MemoryRecord, Operation, Source, Turn
from langmem_adapter.text import singular, stem, stems
from langmem_adapter.text import slot as normal


async def correct(io: IO, memory_id: str, content: str, turn: Turn, rules: Rules) -> Operation:
    """The UPDATE by which a person gives a record new words; NOOP if they are the same.

    MemoryNotFound if there is no such record; InvalidInput if it is no longer believed. Correcting a challenger
    settles its contest in its favour.
    """
    return await retried(io, lambda: _once(io, memory_id, content, turn, rules))


async def _once(io: IO, memory_id: str, content: str, turn: Turn, rules: Rules) -> Operation:
    facts, turns = spaces(turn)
    (item,), versions = await io.read([GetOp(facts, memory_id)], versions=(facts, turns))
    if item is None:
        raise MemoryNotFound(f"no memory {memory_id!r} for user {turn.user_id!r}")
    record = MemoryRecord.stored(item)
    linked = await neighbours.linked(io, facts, [record])
    if (incumbent := linked.get(record.contests or "")) is not None:  # others contest it too
        linked |= await neighbours.linked(io, facts, [incumbent])
    candidate = corrected_to(record, content).change(message_id=turn.turn_id)
    if candidate.slot != record.slot and candidate.topic in rules.topics:
        linked |= await neighbours.on_slot(io, facts, candidate, rules.topics)
    decision = decided(record, candidate, linked)
    now = rules.clock()
    change = Change(owner_of(turn), now, rules.policy, counter(versions[turns], [record, *linked.values()]))
    place = versions[turns] + 1
    turn = turn.change(seq=place)
    applied = corrected(decision, candidate, turn, rules, change)
    done = turn.change(
        status="done",
        candidates=(candidate,),
        operations=(applied.operation,),
        applied=place,
        applied_at=now,
        corrects=memory_id,
    )
    puts = [record_put(facts, r) for r in applied.records]
    await io.commit([*puts, turn_put(turns, rules.keeps(done)), *outdated(applied.records)], expect=versions)
    return applied.operation


def corrected(decision: Decision, candidate: Candidate, turn: Turn, rules: Rules, change: Change) -> Applied:
    """What a decision about a correction leads to."""
    topic = rules.topics.get(candidate.topic) if candidate.topic in rules.topics else rules.topics.get("general")
    source = Source(
        source_type="user_explicit",
        source_id=turn.source_id,
        at=turn.at,
        confidence=1.0,
        excerpt=candidate.excerpt,
        message_id=turn.turn_id,
        seq=turn.seq,
    )
    return apply(decision, candidate, [], topic=topic, slot=candidate.slot, source=source, change=change)


def corrected_to(record: MemoryRecord, content: str) -> Candidate:
    """The fact that a record becomes with a person's new words."""
    slot, value = _slot_and_value(record, content)
    return Candidate(
        content=content,
        topic=record.topic,
        slot=slot,
        value=value,
        kind=record.kind,
        subject=record.subject,
        excerpt=content,
        importance=record.importance,
        purpose=record.purpose,
        legal_basis=record.legal_basis,
    )


def decided(record: MemoryRecord, candidate: Candidate, linked: Mapping[str, MemoryRecord]) -> Decision:
    """The decision about a person's correction of a record.

    `linked`: the records it is linked to, by id, and those on the slot to which its new words move it.
    """
    if record.status not in ("active", "contested"):
        raise InvalidInput(f"memory {record.memory_id!r} is {record.status}; only what is believed can be corrected")
    if record.content == candidate.content:
        return Decision("NOOP", "corroborated", record)
    incumbent = linked.get(record.contests or "", record)
    against = [r for r in linked.values() if r.status == "contested" and r.memory_id != record.memory_id]
    same = [c for c in against if same_fact(c, candidate)]
    won = [record] if incumbent is not record else []
    there = [
        r
        for r in linked.values()
        if r.status == "active" and stands_on(r) == stands_on(candidate) and r.memory_id != incumbent.memory_id
    ]
    return Decision(
        "UPDATE",
        "corrected_by_person",
        incumbent,
        absorbed=tuple(r for r in [*won, *same, *there] if same_fact(r, candidate)),
        displaced=tuple(r for r in there if not same_fact(r, candidate)),
        closed=tuple(r for r in [*won, *against] if not same_fact(r, candidate)),
    )


def _slot_and_value(record: MemoryRecord, content: str) -> tuple[str, str]:
    """The slot and the value of a record in new words.

    Words of its slot that are not said any more give way to those in their place, so that it is not taken for what it
    was: "allergic to peanuts" (slot "peanut"), reworded "allergic to cats", stands on "cat", and its value stays.
    """
    old, new = record.content.rstrip(" .!"), content.rstrip(" .!")
    value = _aligned(old, record.value, new)
    if record.slot and record.slot == normal(record.value):
        value = value or normal(content)
        return normal(value), value
    was, now = _differing(old, new)
    unsaid = stems(was) - stems(new)
    gone = [word for word in record.slot.split() if stem(word) in unsaid]
    if value is None:
        same = bool(gone and now) and stems(was) == {stem(word) for word in gone} and not stems(record.value) & unsaid
        value = record.value if same else normal(content)
    if not gone:
        return record.slot, value
    instead = normal(now)
    if " ".join(gone) == singular(normal(was)) != normal(was):
        instead = singular(instead)
    first, *others = gone
    words = [instead if word == first else word for word in record.slot.split() if word not in others]
    return " ".join(word for word in words if word), value


def _differing(old: str, new: str) -> tuple[str, str]:
    """What each of two wordings says that the other does not, between what they begin and end with alike."""
    a, b = old.split(), new.split()
    start = 0
    while start < min(len(a), len(b)) and a[start].casefold() == b[start].casefold():
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end].casefold() == b[-1 - end].casefold():
        end += 1
    return " ".join(a[start : len(a) - end]), " ".join(b[start : len(b) - end])


def _aligned(old: str, value: str, new: str) -> str | None:
    """What stands in new words where the value stood in the old ones; None if they differ elsewhere too.

    "The user lives in Rome" with value "Rome", reworded "The user lives in Bonn" → "Bonn".
    """
    at = old.casefold().find(value.casefold()) if value else -1
    before, after = old[:at], old[at + len(value) :]
    if at < 0 or not new.startswith(before) or not new.endswith(after):
        return None
    return new[len(before) : len(new) - len(after)].strip() or None
