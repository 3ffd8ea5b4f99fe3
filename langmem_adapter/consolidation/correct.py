"""A person's correction: it bypasses the trust gate, and is recorded like a turn."""

from collections.abc import Mapping

from langgraph.store.base import GetOp

from langmem_adapter.consolidation import neighbours
from langmem_adapter.consolidation.apply import Applied, Change, apply
from langmem_adapter.consolidation.decide import Decision, same_fact
from langmem_adapter.consolidation.rules import Rules, counter, outdated, owner_of, record_put, spaces, turn_put
from langmem_adapter.errors import InvalidInput, MemoryNotFound
from langmem_adapter.ports import IO, retried
from langmem_adapter.records import Candidate, MemoryRecord, Operation, Source, Turn
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
    return Candidate(
        content=content,
        topic=record.topic,
        slot=record.slot,
        value=revalued(record.content, record.value, content),
        kind=record.kind,
        subject=record.subject,
        excerpt=content,
        importance=record.importance,
        purpose=record.purpose,
        legal_basis=record.legal_basis,
    )


def decided(record: MemoryRecord, candidate: Candidate, linked: Mapping[str, MemoryRecord]) -> Decision:
    """The decision about a person's correction of a record; `linked`: the records it is linked to, by id."""
    if record.status not in ("active", "contested"):
        raise InvalidInput(f"memory {record.memory_id!r} is {record.status}; only what is believed can be corrected")
    if record.content == candidate.content:
        return Decision("NOOP", "corroborated", record)
    incumbent = linked.get(record.contests or "", record)
    against = [r for r in linked.values() if r.status == "contested" and r.memory_id != record.memory_id]
    same = [c for c in against if same_fact(c, candidate)]
    won = [record] if incumbent is not record else []
    return Decision(
        "UPDATE",
        "corrected_by_person",
        incumbent,
        absorbed=tuple(r for r in [*won, *same] if same_fact(r, candidate)),
        closed=tuple(r for r in [*won, *against] if not same_fact(r, candidate)),
    )


def revalued(old_content: str, old_value: str, new_content: str) -> str:
    """The value of the new wording: what stands where the old value stood, else the whole wording, normalised.

    "The user lives in Rome." with value "Rome", reworded "The user lives in Bonn." → "Bonn".
    """
    at = old_content.casefold().find(old_value.casefold()) if old_value else -1
    if at >= 0:
        before, after = old_content[:at], old_content[at + len(old_value) :]
        if new_content.startswith(before) and new_content.endswith(after):
            middle = new_content[len(before) : len(new_content) - len(after)]
            if middle.strip():
                return middle.strip()
    return normal(new_content)
