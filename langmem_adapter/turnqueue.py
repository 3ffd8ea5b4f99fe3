"""The queue of an owner's turns: a turn is heard, claimed by whoever learns it, freed, or kept with its error.

Every write looks at the stored turn again in its own conditional commit: what was erased stays erased, a newer text
stays, and what was learnt stays learnt.
"""

import asyncio
import functools
import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from langgraph.store.base import GetOp, PutOp

from langmem_adapter.consent import settings_in, settings_op
from langmem_adapter.consolidation.rules import reader_of, spaces, turn_put, unsummarised
from langmem_adapter.errors import ModelFailed
from langmem_adapter.extraction.turns import news, said_again
from langmem_adapter.extraction.unsaid import unsaid
from langmem_adapter.namespaces import Namespace, Reader
from langmem_adapter.paging import items_in, items_under
from langmem_adapter.ports import IO, retried, worked
from langmem_adapter.records import Turn

ATTEMPTS = 5
"""Failures after which a turn waits for `Memory.retry`."""
LEASE = timedelta(minutes=10)
"""How long whoever claimed a turn may be silent about it before another takes it."""
PAUSE = timedelta(minutes=1)
"""The pause after a turn's first failure; it doubles each time."""
STATUSES = ("pending", "failed")


async def hear(
    io: IO,
    spoken: Iterable[Turn],
    *,
    known: bool = False,
    claimed: datetime | None = None,
    live: bool = False,
    until: datetime | None = None,
) -> list[Turn]:
    """The turns, written to their owners' queues; what is there already, or was learnt before, stays as it is.

    `known`: they were written before, so one that is gone was erased since, and stays so. `claimed`: those that are
    written, or can be claimed at once where they are, are claimed at this time (`leased_to` says so). `live`: they are
    being said; while their owner has paused, their ids are noted, so that they are never learnt. `until`: the agent
    still works on those that are written, so before then nobody claims them unasked, unless they are heard again
    without it.
    """
    heard = []
    for turn in spoken:
        named = await distinguished(io, turn, await stored_turn(io, turn)) if turn.anonymous else turn
        named = await worked(io, functools.partial(_without_unsaid, named), sum(len(m.text) for m in named.messages))
        heard.append(await retried(io, functools.partial(_hear, io, named, known, claimed, live, until)))
    return heard


async def distinguished(io: IO, turn: Turn, stored: Turn | None) -> Turn:
    """The turn under the id that is its own: only a message without an id can be said twice under one turn id."""
    if stored is None or not turn.anonymous:
        return turn
    earlier = [Turn.stored(i) for i in await items_under(io, spaces(turn)[1])]
    return said_again(turn, [t for t in earlier if t.session_id == turn.session_id])


async def stored_turn(io: IO, turn: Turn) -> Turn | None:
    """The turn as the store has it."""
    (item,), _ = await io.read([GetOp(spaces(turn)[1], turn.turn_id, refresh_ttl=False)])
    return None if item is None else Turn.stored(item)


async def seen(io: IO, turn: Turn) -> tuple[Turn | None, bool]:
    """The turn as the store has it, and whether its owner has paused."""
    ops = [GetOp(spaces(turn)[1], turn.turn_id, refresh_ttl=False), settings_op(reader_of(turn))]
    (item, said), _ = await io.read(ops)
    return None if item is None else Turn.stored(item), settings_in(said).paused


async def claim(io: IO, turn: Turn, now: datetime, *, at_once: bool = False) -> Turn | None:
    """The turn as it is queued, ours for a while; None if it is gone, done, another's, or its owner has paused.

    `at_once`: also one that waits after a failure, or was given up.
    """
    return await retried(io, functools.partial(_claim, io, turn, now, at_once))


async def free(io: IO, turn: Turn) -> None:
    """Let others have a turn that we claimed; nothing happens if it is not ours any more."""
    await retried(io, functools.partial(_free, io, turn))


async def unpause(io: IO, turn: Turn, now: datetime) -> None:
    """End the pause of a turn that failed or was given up; whoever has it now keeps it."""
    await retried(io, functools.partial(_unpause, io, turn, now))


async def went_on(io: IO, heard: Sequence[Turn], now: datetime) -> None:
    """Let anybody have the turns that the agent left for these, which were said in the same sessions."""
    names = {t.turn_id for t in heard}
    for owner, session_id in dict.fromkeys((reader_of(t), t.session_id) for t in heard if t.session_id is not None):
        waiting: dict[str, object] = {"status": "pending", "session_id": session_id}
        for item in await items_in(io, owner.space("turns"), waiting):
            if item.key not in names and goes_on(turn := Turn.stored(item)):
                await unpause(io, turn, now)


async def keep(io: IO, turn: Turn, error: BaseException, now: datetime) -> None:
    """Queue a turn that could not be learnt, with its error, for later."""
    await retried(io, functools.partial(_keep, io, turn, error, now))


async def queued(io: IO, reader: Reader, statuses: Sequence[str] = STATUSES) -> list[Turn]:
    """The owner's turns of these statuses, in order of arrival."""
    ns = reader.space("turns")
    found = [i for status in statuses for i in await items_in(io, ns, {"status": status})]
    return sorted((Turn.stored(i) for i in found), key=lambda t: (t.seq, t.turn_id))


async def owners(io: IO, statuses: Sequence[str] = ("pending",)) -> list[Reader]:
    """Everybody with turns of these statuses in the store."""
    found = [i for status in statuses for i in await items_under(io, ("memories",), {"status": status})]
    readers = [Reader.of(i.namespace) for i in found if i.namespace[-1] == "turns"]
    return list(dict.fromkeys(r for r in readers if r is not None))


def next_try(turns: Iterable[Turn], now: datetime) -> timedelta | None:
    """How long until one of these turns that is claimed, or has failed, may be taken again; None if there is none."""
    ends = [t.leased_until for t in turns if t.leased_until is not None and t.status == "pending"]
    return max(min(ends) - now, timedelta(0)) if ends else None


def goes_on(turn: Turn) -> bool:
    """Whether a queued turn waits for the agent to be done with it."""
    return turn.status == "pending" and not turn.attempts and turn.leased_until is not None and turn.leased_to is None


def _is_free(stored: Turn, now: datetime, *, at_once: bool) -> bool:
    """Whether a queued turn may be claimed (see `claim`)."""
    if _waits(stored, now) and not (at_once and stored.leased_to is None):
        return False
    return stored.status in (STATUSES if at_once else ("pending",))


def _waits(turn: Turn, now: datetime) -> bool:
    # Further off than any lease or pause reaches: the clock was set back.
    longest = max(LEASE, PAUSE * 2**ATTEMPTS)
    return turn.leased_until is not None and now < turn.leased_until <= now + longest


def _without_unsaid(turn: Turn) -> Turn:
    # What is not to be remembered is not even kept until it is found to be so.
    left = tuple(m.change(text="") if m.role == "human" and unsaid(m.text) else m for m in turn.messages)
    return turn if left == turn.messages else turn.change(messages=left)


def _claimed(turn: Turn, now: datetime) -> Turn:
    return turn.change(status="pending", leased_until=now + LEASE, leased_to=secrets.token_hex(8))


async def _stored(io: IO, turn: Turn) -> tuple[Namespace, Turn | None, dict[Namespace, int]]:
    """The namespace of a turn, the turn as the store has it, and the version that this was read at."""
    _, ns = spaces(turn)
    (item,), versions = await io.read([GetOp(ns, turn.turn_id, refresh_ttl=False)], versions=(ns,))
    return ns, None if item is None else Turn.stored(item), versions


async def _hear(io: IO, turn: Turn, known: bool, claimed: datetime | None, live: bool, until: datetime | None) -> Turn:
    _, ns = spaces(turn)
    asking = reader_of(turn)
    ops = [GetOp(ns, turn.turn_id, refresh_ttl=False), settings_op(asking)]
    (item, said), versions = await io.read(ops, versions=(ns, asking.space("settings")))
    stored = None if item is None else Turn.stored(item)
    fresh = news(turn, stored)
    paused = settings_in(said).paused
    if paused and live and stored is None and not turn.anonymous:
        await io.commit([turn_put(ns, turn.change(seq=versions[ns] + 1).emptied())], expect=versions)
    if fresh is None or (stored is None and known) or paused:
        return turn
    if stored is None and io.late:  # it waits in the backlog now, or was erased from there
        raise TimeoutError("the turn went on without being heard")
    if stored is not None and stored.digest == turn.digest and stored.knows(turn):
        if claimed is None and until is None and goes_on(stored):
            await io.commit([turn_put(ns, stored.change(leased_until=None))], expect=versions)
        if claimed is None or not _is_free(stored, claimed, at_once=True):
            return turn
        return await _taken(io, _claimed(stored, claimed), versions)
    fresh = fresh.change(seq=fresh.seq or versions[ns] + 1, leased_until=until)
    outdated = unsummarised(fresh, stored)
    if claimed is None:
        await io.commit([turn_put(ns, fresh), *outdated], expect=versions)
        return fresh
    return await _taken(io, _claimed(fresh, claimed), versions, outdated)


async def _claim(io: IO, turn: Turn, now: datetime, at_once: bool) -> Turn | None:
    _, ns = spaces(turn)
    asking = reader_of(turn)
    ops = [GetOp(ns, turn.turn_id, refresh_ttl=False), settings_op(asking)]
    (item, said), versions = await io.read(ops, versions=(ns,))
    stored = None if item is None else Turn.stored(item)
    if stored is None or settings_in(said).paused or not _is_free(stored, now, at_once=at_once):
        return None
    return await _taken(io, _claimed(stored, now), versions)


async def _taken(io: IO, claimed: Turn, versions: Mapping[Namespace, int], also: Sequence[PutOp] = ()) -> Turn:
    try:
        await io.commit([turn_put(spaces(claimed)[1], claimed), *also], expect=versions)
    except asyncio.CancelledError:  # it may have been done all the same, and nobody would know of it
        await free(io, claimed)
        raise
    return claimed


async def _free(io: IO, turn: Turn) -> None:
    ns, stored, versions = await _stored(io, turn)
    if stored is not None and stored.leased_to is not None and stored.leased_to == turn.leased_to:
        await io.commit([turn_put(ns, stored.change(leased_until=None, leased_to=None))], expect=versions)


async def _unpause(io: IO, turn: Turn, now: datetime) -> None:
    ns, stored, versions = await _stored(io, turn)
    if stored is None or stored.status == "done" or (stored.leased_to is not None and _waits(stored, now)):
        return
    if stored.status == "failed" or stored.leased_until is not None:
        freed = stored.change(status="pending", leased_until=None, leased_to=None)
        await io.commit([turn_put(ns, freed)], expect=versions)


async def _keep(io: IO, turn: Turn, error: BaseException, now: datetime) -> None:
    ns, stored, versions = await _stored(io, turn)
    if turn.outlived_by(stored) or (stored is None and io.late):
        return
    if stored is not None and stored.leased_to != turn.leased_to:
        return
    attempts = turn.attempts + 1
    kept = turn.change(
        seq=turn.seq or versions[ns] + 1,
        status="failed" if attempts >= ATTEMPTS else "pending",
        attempts=attempts,
        error=_told(error),
        leased_until=now + PAUSE * 2 ** (min(attempts, ATTEMPTS) - 1),
        leased_to=None,
    )
    await io.commit([turn_put(ns, kept)], expect=versions)


def _told(error: BaseException) -> str:
    # Exceptions quote what they were given; of their words only ours are kept.
    kind = type(error).__name__
    return f"{kind}: {error.why}"[:300] if isinstance(error, ModelFailed) and error.why else kind
