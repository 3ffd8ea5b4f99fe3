"""An auditor lets a record out of quarantine: its candidate is decided about like any other, and the record goes.

The candidate moves, with its verdict, from the turn that taught it to a turn of the release, which names the same
source: what forgets the source forgets this too, and a replay decides it at the moment of the release.
"""

from langgraph.store.base import GetOp, PutOp

from langmem_adapter.consent import Settings, settings_in, settings_op
from langmem_adapter.consolidation import neighbours
from langmem_adapter.consolidation.apply import Change
from langmem_adapter.consolidation.replay import only
from langmem_adapter.consolidation.rules import (
    Rules,
    consolidated,
    counter,
    owner_of,
    reader_of,
    record_put,
    spaces,
    turn_put,
)
from langmem_adapter.errors import InvalidInput, MemoryNotFound
from langmem_adapter.namespaces import Namespace
from langmem_adapter.paging import items_under
from langmem_adapter.ports import IO, retried
from langmem_adapter.records import Candidate, MemoryRecord, Operation, Quarantined, Turn

STAYS = ("paused", "no_consent", "forbidden")
"""Reasons for which nothing is let out."""


def quarantined(record: MemoryRecord) -> Quarantined:
    """A record in quarantine with the reasons why; InvalidInput for any other."""
    if record.status != "quarantined":
        raise InvalidInput(f"memory {record.memory_id!r} is {record.status}, not quarantined")
    return Quarantined(record=record, reasons=tuple(record.history[0].reason.split(", ")))


async def release(io: IO, record: MemoryRecord, rules: Rules) -> Operation:
    """What became of a quarantined record's candidate: CREATE, UPDATE, CONTEST … with its original source and trust.

    The offline rules decide, no model. NOOP, and it stays in quarantine, while its owner has paused, if its topic is
    one without consent or if it is never to be remembered. MemoryNotFound if it is gone, InvalidInput if it is not in
    quarantine.
    """
    quarantined(record)
    return await retried(io, lambda: _once(io, record, rules))


async def _once(io: IO, asked: MemoryRecord, rules: Rules) -> Operation:
    turn = _turn(asked)
    facts, turns = spaces(turn)
    reader = reader_of(turn)
    candidate = turn.candidates[0]
    now = rules.clock()
    ops = [
        settings_op(reader),
        GetOp(facts, asked.memory_id, refresh_ttl=False),
        *neighbours.reads(facts, [candidate], rules.topics, now),
    ]
    (said, item, *results), versions = await io.read(ops, versions=(facts, turns, reader.space("settings")))
    if item is None:
        raise MemoryNotFound(f"no memory {asked.memory_id!r} for user {reader.user_id!r}")
    held = quarantined(MemoryRecord.stored(item)).record
    if reason := _stays(candidate, settings_in(said), rules):
        return Operation(action="NOOP", memory_id=None, content=held.content, reason=reason)
    known = neighbours.records(results)
    known.pop(held.memory_id, None)
    place = versions[turns] + 1
    turn = turn.change(seq=place, note=f"released, held as {held.history[0].reason}")
    numbers = counter(versions[turns], [held, *known.values()])
    change = Change(owner_of(turn), now, rules.policy, numbers, turn.note, rules.exclusive)
    applied = consolidated(candidate, turn, known, rules, change, None)
    done = turn.change(operations=(applied.operation,), applied=place, applied_at=now)
    await io.commit(
        [
            *(record_put(facts, r) for r in applied.records),
            *await _emptied(io, turns, held.memory_id, applied.operation.memory_id),
            turn_put(turns, rules.keeps(done)),
            PutOp(facts, held.memory_id, None),
        ],
        expect=versions,
    )
    rules.on_written(reader, versions[facts], len(applied.records))
    return applied.operation


def _stays(candidate: Candidate, settings: Settings, rules: Rules) -> str | None:
    """Why the candidate may not be let out: one of `STAYS`."""
    if settings.paused:
        return "paused"
    if not rules.topics.consents(candidate.topic):
        return "no_consent"
    return "forbidden" if settings.forbids(candidate) else None


def _turn(record: MemoryRecord) -> Turn:
    """The release of a record, as a turn with one candidate."""
    source = record.sources[0]
    candidate = Candidate(
        content=record.content,
        intent=record.metadata.get("intent", "assert"),
        topic=record.topic,
        slot=record.slot,
        value=record.value,
        replaces=record.metadata.get("replaces"),
        kind=record.kind,
        subject=record.subject,
        source_type=source.source_type,
        excerpt=source.excerpt,
        message_id=source.message_id,
        confidence=source.confidence,
        importance=record.importance,
        valid_from=record.valid_from,
        valid_to=record.valid_to,
        expires_at=record.expires_at,
        entities=record.entities,
        purpose=record.purpose,
        legal_basis=record.legal_basis,
    )
    return Turn(
        turn_id=f"release-{record.memory_id}",
        user_id=record.user_id,
        app_name=record.app_name,
        scope=record.scope,
        session_id=record.session_id,
        agent_id=record.agent_id,
        at=source.at,
        dated=True,  # when it was said, not when it was released
        digest=f"release-{record.memory_id}",
        source_type=source.source_type,
        source_id=source.source_id,
        status="done",
        candidates=(candidate,),
    )


async def _emptied(io: IO, turns: Namespace, memory_id: str, released: str | None) -> list[PutOp]:
    """The write of the turn that taught a quarantined record, without it; an edit of its message takes back both."""
    found = [Turn.stored(i) for i in await items_under(io, turns)]
    puts = []
    for turn in found:
        kept = [at for at, o in enumerate(turn.operations) if o.memory_id != memory_id]
        if len(kept) < len(turn.operations):
            taught = turn.taught if released is None else (*turn.taught, released)
            puts.append(turn_put(turns, only(turn, kept).change(taught=taught)))
    return puts
