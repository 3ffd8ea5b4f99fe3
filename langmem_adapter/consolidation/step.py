"""The consolidation step: read, decide, commit; and again if another writer came first.

Everything one turn leads to, the turn itself included, is one conditional commit: it happened as a whole or not at
all, and a turn that is delivered twice is applied once.
"""

import functools
import logging
from collections.abc import Iterable, Mapping, Sequence

from langgraph.store.base import GetOp, SearchItem

from langmem_adapter.consent import settings_in, settings_op
from langmem_adapter.consolidation import neighbours
from langmem_adapter.consolidation.apply import Change
from langmem_adapter.consolidation.replay import decided_again, unspoken, without
from langmem_adapter.consolidation.rules import (
    Rules,
    consolidated,
    counter,
    outdated,
    owner_of,
    reader_of,
    record_put,
    spaces,
    turn_put,
    unsummarised,
)
from langmem_adapter.errors import ModelFailed
from langmem_adapter.namespaces import Namespace
from langmem_adapter.paging import items_in
from langmem_adapter.ports import IO, retried, worked
from langmem_adapter.records import Judgement, MemoryRecord, Operation, Turn, Usage

logger = logging.getLogger("langmem_adapter")

A_RECORD = 500
"""Characters that a stored record or turn has at the least."""


async def consolidate(io: IO, turn: Turn, rules: Rules) -> list[Operation]:
    """The operations that this turn's candidates led to, all committed together with the turn.

    A turn already consolidated with the same text changes nothing and returns [], and so does one of an owner who
    has paused; what the owner does not want to be remembered is left out. Raises Conflict when other
    writers won fifty times.
    """
    asked: _Asked = {}
    return await retried(io, lambda: _once(io, turn, rules, asked))


# What a judge answered for the facts and records it was shown: not asked again because another writer came first.
_Asked = dict[frozenset[str], tuple[Mapping[int, Judgement], bool]]


async def _once(io: IO, turn: Turn, rules: Rules, asked: _Asked) -> list[Operation]:
    facts, turns = spaces(turn)
    now = rules.clock()
    asking = reader_of(turn)
    ops = [
        settings_op(asking),
        GetOp(turns, turn.turn_id),
        *neighbours.reads(facts, [c for c in turn.candidates if not c.held], rules.topics, now),
    ]
    (said, stored, *results), versions = await io.read(ops, versions=(facts, turns, asking.space("settings")))
    settings = settings_in(said)
    if settings.paused:  # a queued turn stays queued
        return []
    allowed = tuple(c for c in turn.candidates if rules.topics.consents(c.topic) and not settings.forbids(c))
    turn = turn.change(candidates=allowed)
    before = None if stored is None else Turn.stored(stored)
    if turn.outlived_by(before) or (before is None and io.late):  # given up: it is queued, or was erased since
        return []
    place = versions[turns] + 1
    turn = turn.change(seq=turn.seq or place)
    known = neighbours.records(results)
    spoken: dict[str, Turn] = {}
    length = 0
    replaces = bool(turn.taught and turn.unsaid)
    if replaces:  # what it taught may be anywhere by now: in what replaced it, and in what replaced that
        items = [*await items_in(io, facts), *await items_in(io, turns)]
        length = A_RECORD * len(items)
        records, spoken = await worked(io, functools.partial(_read, items, facts), length)
        known |= records
    near: list[list[MemoryRecord]] = [[] for _ in turn.candidates]
    if rules.judge is not None:
        believable = [c for c in turn.candidates if not c.held]  # what is held back is shown to no model
        found = iter(neighbours.near(results, believable, rules.topics))
        near = [[] if c.held else next(found) for c in turn.candidates]
    shown = frozenset(
        f"{n}{r.memory_id}{r.content}{c.content}"
        for n, (c, records) in enumerate(zip(turn.candidates, near, strict=True))
        for r in records
    )
    if shown not in asked:
        asked[shown] = await _judgements(io, turn, near, rules)
    judged, failed = asked[shown]
    note = "judge_failed" if failed else None
    numbers = counter(versions[turns], known.values())
    change = Change(owner_of(turn), now, rules.policy, numbers, note, rules.exclusive)
    written: dict[str, MemoryRecord] = {}
    others: list[Turn] = []
    if replaces:
        take_back = functools.partial(_take_back, turn, known, spoken, rules, change)
        written, others = await worked(io, take_back, length)
    operations = []
    for n, candidate in enumerate(turn.candidates):
        applied = consolidated(candidate, turn, known, rules, change, judged.get(n))
        operations.append(applied.operation)
        for record in applied.records:
            known[record.memory_id] = written[record.memory_id] = record
    puts = [record_put(facts, r) for r in written.values()]
    done = _done(turn, operations, judged, rules).change(applied=place, applied_at=now, note=note)
    summaries = [*unsummarised(turn, before), *outdated(written.values())]
    await io.commit([*puts, *(turn_put(turns, t) for t in (*others, done)), *summaries], expect=versions)
    rules.on_written(asking, versions[facts], len(written))
    return [o for o in operations if o.memory_id is not None]


async def _judgements(
    io: IO, turn: Turn, near: Sequence[Sequence[MemoryRecord]], rules: Rules
) -> tuple[Mapping[int, Judgement], bool]:
    """What the judge proposes by number of the candidate, and whether it failed (then the offline rules decide)."""
    if rules.judge is None or not any(near):
        return {}, False
    try:
        answer, usage = await rules.judge.judge(io, list(zip(turn.candidates, near, strict=True)))
        judged = {n: Judgement.model_validate(judgement) for n, judgement in answer.items()}
    except Exception as error:  # noqa: BLE001 - a judge may be anybody's, and the rules can do without
        if isinstance(error, ModelFailed) and isinstance(error.usage, Usage):
            rules.on_usage(turn, "judge_failed", error.usage)
        logger.warning("the judge failed, the offline rules decide: %s", type(error).__name__)
        return {}, True
    rules.on_usage(turn, "judge", usage)
    return judged, False


def _read(items: Iterable[SearchItem], facts: Namespace) -> tuple[dict[str, MemoryRecord], dict[str, Turn]]:
    """The records of a namespace, and the turns that taught them."""
    records = {i.key: MemoryRecord.stored(i) for i in items if i.namespace == facts}
    turns = {i.key: Turn.stored(i) for i in items if i.namespace != facts}
    return records, {i: t for i, t in turns.items() if spaces(t)[0] == facts}


def _take_back(
    turn: Turn, known: dict[str, MemoryRecord], spoken: Mapping[str, Turn], rules: Rules, change: Change
) -> tuple[dict[str, MemoryRecord], list[Turn]]:
    """The records and the other turns that read otherwise without what the turn does not say any more.

    What only those taught no longer holds; it stays as history, by itself.
    """

    def names(source_id: str | None, message_id: str | None) -> bool:
        return source_id == turn.source_id and message_id in turn.unsaid

    parts, undone = without(known, spoken.values(), names, rules, change)
    written = {i: r for part in parts for i, r in part.changed.items()} | {r.memory_id: r for r in undone.changed}
    gone = [known[i] for part in parts for i in part.gone if i in known] + list(undone.gone)
    written |= {r.memory_id: change.unsaid(r) for r in gone}
    others = {i: unspoken(t, names) for i, t in decided_again(spoken, parts).items() if i != turn.turn_id}
    written = {i: r for i, r in written.items() if r is not known.get(i)}
    known |= written
    return written, [t for i, t in others.items() if t is not spoken[i]]


def _answers(turn: Turn) -> tuple[tuple[str, str], ...]:
    """All that the turn's tools said and that stands, also what was cut out of the thread; and what was erased."""
    now = turn.answered()
    replaced = {*turn.unsaid, *(i for i, _ in now)}
    return (*((i, words) for i, words in turn.answers if not words or i not in replaced), *now)


def _done(turn: Turn, operations: list[Operation], judged: Mapping[int, Judgement], rules: Rules) -> Turn:
    """The turn as it is kept: what replaying it needs, and words only where something rests on them."""
    kept = turn.change(
        status="done",
        candidates=tuple(
            # The end of something that nobody believed: it would count if the past were another.
            c.change(content="", excerpt="", entities=()) if o.memory_id is None else c
            for c, o in zip(turn.candidates, operations, strict=True)
        ),
        operations=tuple(o.change(content="") if o.memory_id is None else o for o in operations),
        judged=dict(judged),
        messages=turn.messages if any(o.memory_id is not None for o in operations) else (),
        heard=len(turn.messages),
        answers=_answers(turn),
        taught=() if turn.unsaid else turn.taught,
        unsaid=(),
        error=None,
        leased_until=None,
        leased_to=None,
    )
    return rules.keeps(kept)
