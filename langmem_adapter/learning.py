"""A turn's way from what was said to what is known: heard, queued, extracted, consolidated; or kept with its error.

A turn is written to its owner's queue (the `turns` namespace) before anything slow or fallible happens to it, and
leaves it in the very commit that stores what it taught. So a crash loses nothing, and nothing is learnt twice.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from langgraph.store.base import GetOp, SearchOp

from langmem_adapter.consent import settings_in, settings_of, settings_op
from langmem_adapter.consolidation.step import Rules, consolidate, reader_of, spaces, turn_put
from langmem_adapter.errors import ModelFailed
from langmem_adapter.extraction.accept import accept
from langmem_adapter.extraction.turns import news, said_again
from langmem_adapter.guard import Guard
from langmem_adapter.namespaces import Namespace, Reader
from langmem_adapter.ports import IO, Ask, retried
from langmem_adapter.records import Extraction, Operation, Turn, Usage
from langmem_adapter.retrieval import items_under

ATTEMPTS = 5
"""Failures after which a turn waits for `Memory.retry`."""
LEASE = timedelta(minutes=10)
"""How long a worker may be silent about a turn before another takes it."""
PAUSE = timedelta(minutes=1)
"""The pause after a turn's first failure; it doubles each time."""


@dataclass(frozen=True, slots=True)
class Learner:
    """What learning needs: who extracts, the rules of consolidation, and whom to tell."""

    extract: Ask[Turn, Extraction]
    rules: Rules
    tell: Callable[[str, dict[str, Any]], None]
    spend: Callable[[Turn, str, Usage], None]
    guard: Guard

    async def candidates(self, io: IO, turn: Turn) -> Extraction:
        """What the extractor finds in a turn, as far as it may go on."""
        proposed = await io.ask(self.extract, turn)
        self.spend(turn, "extraction", proposed.usage)
        return self.guard.screen(turn, accept(turn, proposed, self.rules.topics, self.rules.policy))


async def learn(io: IO, turn: Turn, learner: Learner) -> list[Operation]:
    """The operations that a turn led to; none while its owner has paused.

    If it fails it stays queued, with its error, and the error rises.
    """
    if (await settings_of(io, reader_of(turn))).paused:
        return []
    try:
        accepted = await learner.candidates(io, turn)
        ready = turn.change(candidates=accepted.candidates, dropped=accepted.dropped)
        operations = await consolidate(io, ready, learner.rules)
    except Exception as error:
        if isinstance(error, ModelFailed) and isinstance(error.usage, Usage):
            learner.spend(turn, "extraction_failed", error.usage)
        await retried(io, functools.partial(_kept, io, turn, error, learner.rules))
        raise
    learner.tell("learnt", {"user_id": turn.user_id, "turn_id": turn.turn_id, "operations": operations})
    tell_held(turn, operations, learner.tell)
    return operations


def tell_held(turn: Turn, operations: Iterable[Operation], tell: Callable[[str, dict[str, Any]], None]) -> None:
    """Tell ("quarantined", ids and reason codes) what of a turn waits for an auditor."""
    held = {o.memory_id: o.reason for o in operations if o.action == "QUARANTINE"}
    if held:
        tell("quarantined", {"user_id": turn.user_id, "turn_id": turn.turn_id, "reasons": held})


async def learn_all(io: IO, spoken: Iterable[Turn], learner: Learner, *, heard: bool = False) -> list[Operation]:
    """Learn from turns, in order; those learnt before are passed over.

    `heard`: they were queued before, so one that is gone was erased since, and stays so.
    """
    operations: list[Operation] = []
    for turn in spoken:
        stored = await _stored(io, turn)
        if stored is None and heard:
            continue
        turn = await _distinguished(io, turn, stored)
        fresh = news(turn, stored if stored is None or stored.turn_id == turn.turn_id else await _stored(io, turn))
        if fresh is not None:
            operations += await learn(io, fresh, learner)
    return operations


async def hear(io: IO, spoken: Iterable[Turn]) -> list[Turn]:
    """The turns, written to their owners' queues; what is there already, or was learnt before, stays as it is."""
    heard = []
    for turn in spoken:
        heard.append(await _distinguished(io, turn, await _stored(io, turn)) if turn.anonymous else turn)
        await retried(io, functools.partial(_hear, io, heard[-1]))
    return heard


async def _distinguished(io: IO, turn: Turn, stored: Turn | None) -> Turn:
    # Only a message without an id can be said twice under one turn id.
    if stored is None or not turn.anonymous:
        return turn
    earlier = [Turn.model_validate(i.value) for i in await items_under(io, spaces(turn)[1])]
    return said_again(turn, [t for t in earlier if t.session_id == turn.session_id])


async def catch_up(io: IO, reader: Reader, learner: Learner, *, but: Sequence[str] = ()) -> list[Operation]:
    """Learn from what is in the owner's queue, oldest first, except these turns and those another worker has.

    A turn that fails is told and left behind; the next ones proceed.
    """
    operations: list[Operation] = []
    for waiting in await queued(io, reader, ("pending",)):
        if waiting.turn_id in but:
            continue
        turn = await retried(io, functools.partial(_claimed, io, waiting, learner.rules))
        if turn is None:
            continue
        try:
            operations += await learn(io, turn, learner)
        except Exception as error:  # noqa: BLE001 - kept with its error; it must not hold up the turns behind it
            learner.tell("remember_failed", {"turn_id": turn.turn_id, "error": type(error).__name__})
    return operations


async def queued(io: IO, reader: Reader, statuses: Sequence[str] = ("pending", "failed")) -> list[Turn]:
    """The owner's turns of these statuses, in order of arrival."""
    ns = _queue(reader)
    results, _ = await io.read([SearchOp(ns, {"status": status}, 1_000, refresh_ttl=False) for status in statuses])
    found = [Turn.model_validate(i.value) for page in results for i in page if i.namespace == ns]
    return sorted(found, key=lambda t: (t.seq, t.turn_id))


async def next_try(io: IO, reader: Reader, rules: Rules) -> timedelta | None:
    """How long until a turn of the owner that is leased, or has failed, may be taken again; None if there is none."""
    ends = [t.leased_until for t in await queued(io, reader, ("pending",)) if t.leased_until is not None]
    return max(min(ends) - rules.clock(), timedelta(0)) if ends else None


async def retry(io: IO, reader: Reader, learner: Learner) -> list[Operation]:
    """Try all of the owner's queued turns again now, also those given up."""
    for turn in await queued(io, reader):
        await retried(io, functools.partial(_freed, io, turn))
    return await catch_up(io, reader, learner)


async def owners(io: IO) -> list[Reader]:
    """Everybody with a pending turn in the store."""
    waiting = await items_under(io, ("memories",), {"status": "pending"})
    turns = [Turn.model_validate(i.value) for i in waiting if i.namespace[-1] == "turns"]
    return list(dict.fromkeys(Reader(t.user_id, t.app_name) for t in turns if t.user_id is not None))


def _queue(reader: Reader) -> Namespace:
    return reader.space("turns")


async def _stored(io: IO, turn: Turn) -> Turn | None:
    (item,), _ = await io.read([GetOp(spaces(turn)[1], turn.turn_id, refresh_ttl=False)])
    return None if item is None else Turn.model_validate(item.value)


async def _hear(io: IO, turn: Turn) -> None:
    _, ns = spaces(turn)
    asking = reader_of(turn)
    ops = [GetOp(ns, turn.turn_id, refresh_ttl=False), settings_op(asking)]
    (item, said), versions = await io.read(ops, versions=(ns, asking.space("settings")))
    stored = None if item is None else Turn.model_validate(item.value)
    fresh = news(turn, stored)
    if fresh is None or settings_in(said).paused:
        return
    if stored is not None and stored.digest == turn.digest and len(stored.messages) >= len(turn.messages):
        return
    await io.commit([turn_put(ns, fresh.change(seq=fresh.seq or versions[ns] + 1))], expect=versions)


async def _claimed(io: IO, turn: Turn, rules: Rules) -> Turn | None:
    """The turn, leased to us; None if it is gone, done, or another worker's."""
    _, ns = spaces(turn)
    (item,), versions = await io.read([GetOp(ns, turn.turn_id, refresh_ttl=False)], versions=(ns,))
    now = rules.clock()
    stored = None if item is None else Turn.model_validate(item.value)
    if stored is None or stored.status != "pending" or (stored.leased_until is not None and stored.leased_until > now):
        return None
    leased = stored.change(leased_until=now + LEASE)
    await io.commit([turn_put(ns, leased)], expect=versions)
    return leased


async def _freed(io: IO, turn: Turn) -> None:
    _, ns = spaces(turn)
    (item,), versions = await io.read([GetOp(ns, turn.turn_id, refresh_ttl=False)], versions=(ns,))
    if item is not None and item.value["status"] != "done":
        stored = Turn.model_validate(item.value)
        await io.commit([turn_put(ns, stored.change(status="pending", leased_until=None))], expect=versions)


async def _kept(io: IO, turn: Turn, error: Exception, rules: Rules) -> None:
    """Queue the turn with its error, for later."""
    _, ns = spaces(turn)
    (item,), versions = await io.read([GetOp(ns, turn.turn_id, refresh_ttl=False)], versions=(ns,))
    if item is None and turn.seq:  # it was queued, and erased since
        return
    if item is not None and item.value["status"] == "done" and item.value["digest"] == turn.digest:
        return
    attempts = turn.attempts + 1
    kept = turn.change(
        seq=turn.seq or versions[ns] + 1,
        status="failed" if attempts >= ATTEMPTS else "pending",
        attempts=attempts,
        error=f"{type(error).__name__}: {error}"[:300],
        leased_until=rules.clock() + PAUSE * 2 ** (attempts - 1),
    )
    await io.commit([turn_put(ns, kept)], expect=versions)
