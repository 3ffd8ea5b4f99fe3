"""A turn's way from what was said to what is known: heard, queued, extracted, consolidated; or kept with its error.

Where a model is asked, a turn is in its owner's queue (`turnqueue`) before anything slow or fallible happens to it, and
leaves it in the very commit that stores what it taught. So a crash loses nothing, nothing is learnt twice, and what is
erased meanwhile stays erased.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from langmem_adapter.consolidation.rules import Rules
from langmem_adapter.consolidation.step import consolidate
from langmem_adapter.errors import Conflict, ModelFailed, StoreError
from langmem_adapter.extraction.accept import accept
from langmem_adapter.extraction.turns import news
from langmem_adapter.guard import Guard
from langmem_adapter.namespaces import Reader
from langmem_adapter.ports import IO, Ask
from langmem_adapter.records import Extraction, Operation, Turn, Usage
from langmem_adapter.turnqueue import claim, distinguished, free, hear, keep, queued, seen, stored_turn, unpause


@dataclass(frozen=True, slots=True)
class Learner:
    """What learning needs: who extracts, the rules of consolidation, and whom to tell."""

    extract: Ask[Turn, Extraction]
    rules: Rules
    tell: Callable[[str, dict[str, Any]], None]
    report: Callable[..., None]
    """`tell` with the data by keyword, and a line in the log: for what went wrong."""
    spend: Callable[[Turn, str, Usage], None]
    guard: Guard
    quick: bool = False
    """Extraction and judgement take no time, so that a turn need not be queued before them."""
    claims: dict[str, Turn] = field(default_factory=dict)
    """The turns that are being learnt here, by `leased_to`."""

    async def candidates(self, io: IO, turn: Turn) -> Extraction:
        """What the extractor finds in a turn, as far as it may go on."""
        proposed = await io.ask(self.extract, turn)
        self.spend(turn, "extraction", proposed.usage)
        # Asked, not called: many rules read a long message for a while, and an event loop must not wait for them.
        return await io.ask(Ask(partial(self._accepted, turn)), proposed)

    def _accepted(self, turn: Turn, proposed: Extraction) -> Extraction:
        return self.guard.screen(turn, accept(turn, proposed, self.rules.topics, self.rules.policy))


async def learn(io: IO, turn: Turn, learner: Learner) -> list[Operation]:
    """The operations that a turn led to.

    If it fails it stays queued, with its error, and the error rises; if it is cancelled it is free for others.
    """
    try:
        accepted = await learner.candidates(io, turn)
        ready = turn.change(candidates=accepted.candidates, dropped=accepted.dropped)
        operations = await consolidate(io, ready, learner.rules)
    except GeneratorExit:
        raise
    except (asyncio.CancelledError, KeyboardInterrupt):
        await free(io, turn)
        raise
    except BaseException as error:
        if isinstance(error, ModelFailed) and isinstance(error.usage, Usage):
            learner.spend(turn, "extraction_failed", error.usage)
        await keep(io, turn, error, learner.rules.clock())
        raise
    told = {"user_id": turn.user_id, "turn_id": turn.turn_id, "operations": operations, "dropped": accepted.dropped}
    learner.tell("learnt", told)
    tell_held(turn, operations, learner.tell)
    return operations


def tell_held(turn: Turn, operations: Iterable[Operation], tell: Callable[[str, dict[str, Any]], None]) -> None:
    """Tell ("quarantined", ids and reason codes) what of a turn waits for an auditor."""
    held = {o.memory_id: o.reason for o in operations if o.action == "QUARANTINE"}
    if held:
        tell("quarantined", {"user_id": turn.user_id, "turn_id": turn.turn_id, "reasons": held})


async def learn_all(io: IO, spoken: Iterable[Turn], learner: Learner, *, heard: bool = False) -> list[Operation]:
    """Learn from turns, in order; those learnt before, and those that another is learning, are passed over.

    `heard`: they were queued before, so one that is gone was erased since, and stays so. The first error rises when
    all have been tried.
    """
    if learner.quick:
        return await _learn_now(io, spoken, learner, heard)
    operations: list[Operation] = []
    failures: list[Exception] = []
    spoken = list(spoken)
    now = learner.rules.clock() if len(spoken) == 1 else None  # of several, the last may have to wait for long
    for turn in await hear(io, spoken, known=heard, claimed=now):
        try:
            operations += await _learn_queued(io, turn, learner, at_once=True) or []
        except Exception as error:  # noqa: BLE001 - it rises below; the turns behind it are not held up
            failures.append(error)
    if failures:
        raise failures[0]
    return operations


async def _learn_now(io: IO, spoken: Iterable[Turn], learner: Learner, heard: bool) -> list[Operation]:
    operations: list[Operation] = []
    for turn in spoken:
        stored, paused = await seen(io, turn)
        if paused or (stored is None and heard):
            continue
        turn = await distinguished(io, turn, stored)
        fresh = news(turn, stored if stored is None or stored.turn_id == turn.turn_id else await stored_turn(io, turn))
        if fresh is not None:
            operations += await learn(io, fresh, learner)
    return operations


async def _learn_queued(io: IO, turn: Turn, learner: Learner, *, at_once: bool = False) -> list[Operation] | None:
    """What a queued turn led to; None if it is not ours to learn."""
    ours = turn.leased_to is not None and at_once
    claimed = turn if ours else await claim(io, turn, learner.rules.clock(), at_once=at_once)
    if claimed is None:
        return None
    token = claimed.leased_to or ""
    learner.claims[token] = claimed
    try:
        operations = await learn(io, claimed, learner)
        if not operations:  # its owner may have paused meanwhile
            await free(io, claimed)
        return operations
    finally:
        learner.claims.pop(token, None)


async def catch_up(
    io: IO,
    reader: Reader,
    learner: Learner,
    *,
    wanted: Callable[[Turn], bool] = lambda turn: True,
    stop: bool = False,
) -> list[Operation]:
    """Learn from what is in the owner's queue, oldest first, except what others have.

    A turn that fails is told and left behind; the next ones proceed, unless `stop`.
    """
    operations: list[Operation] = []
    tried: set[object] = set()
    while fresh := [t for t in await queued(io, reader, ("pending",)) if _words(t) not in tried and wanted(t)]:
        for turn in fresh:
            if not wanted(turn):
                return operations
            tried.add(_words(turn))
            try:
                operations += await _learn_queued(io, turn, learner) or []
            except (StoreError, Conflict):  # not the turn's failure: the next one would fare no better
                raise
            except Exception as error:  # noqa: BLE001 - kept with its error; it must not hold up the turns behind it
                learner.report("remember_failed", turn_id=turn.turn_id, error=type(error).__name__)
                if stop:
                    return operations
    return operations


def _words(turn: Turn) -> object:
    return turn.turn_id, turn.digest, turn.answered()


async def retry(io: IO, reader: Reader, learner: Learner) -> list[Operation]:
    """Try all of the owner's queued turns again now, also those given up; not those that are being learnt."""
    for turn in await queued(io, reader):
        await unpause(io, turn, learner.rules.clock())
    return await catch_up(io, reader, learner)


async def release(io: IO, learner: Learner) -> None:
    """Let others have the turns that are being learnt here."""
    for turn in list(learner.claims.values()):
        await free(io, turn)
