"""The queue of turns, the worker that learns from it, and what models cost."""

import asyncio
import functools
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from langchain_core.messages import BaseMessage

from langmem_adapter import arguments, consent, learning, sessions, turnqueue
from langmem_adapter.backlog import Backlog, Waiting
from langmem_adapter.consent import Settings
from langmem_adapter.consolidation.rules import reader_of
from langmem_adapter.errors import Conflict
from langmem_adapter.extraction.origin import length
from langmem_adapter.extraction.rules import RuleExtractor
from langmem_adapter.extraction.turns import last_said, turns_of
from langmem_adapter.extraction.unsaid import unsaid
from langmem_adapter.learning import Learner
from langmem_adapter.methods.base import twins
from langmem_adapter.methods.upkeep import Upkeep
from langmem_adapter.namespaces import Reader, namespace
from langmem_adapter.paging import items_under
from langmem_adapter.ports import IO, Ask, run, worked
from langmem_adapter.records import MemoryRecord, Message, Operation, SourceType, Turn, Usage
from langmem_adapter.text import pieces
from langmem_adapter.worker import Worker

LOOK_AGAIN = 0.5
"""Seconds after the end of a lease or pause, or after a failure, at which the worker looks at the queue again."""
INTERRUPTED = 60.0
"""Seconds after which a turn that was recalled for and never remembered is learnt, with a debounce after that."""
ABANDONED = 600.0
"""Seconds after which it is learnt in any case."""
SETTLING = 0.5
"""Seconds that a turn waits at most for what its user said during an outage to be queued before it."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A session that is to be summarised, as far as these messages."""

    speaker: Reader
    messages: tuple[BaseMessage, ...] = field(compare=False)


class Queue(Upkeep):
    """`pending`, `retry`, `drain`, `usage`."""

    _learner: Learner
    _worker: Worker[Reader | Ended | None] | None
    _debounce: float
    _people: dict[str, str]
    _tools: frozenset[str]
    _author: Ask[Any, Any] | None
    _usage: dict[str, Usage]
    _lock: threading.Lock
    _unfinished: dict[Reader, dict[str, object]]
    _backlog: Backlog
    _deadline: float

    async def _pending(self, io: IO, *, user_id: str | None = None, app_name: str = "default") -> list[Turn]:
        """The user's turns that are not learnt yet, in order, with their `attempts` and last `error`.

        Without `user_id`: everybody's, for whoever runs the application.
        """
        return [t for reader in await self._waiting(io, user_id, app_name) for t in await turnqueue.queued(io, reader)]

    async def _retry(self, io: IO, *, user_id: str | None = None, app_name: str = "default") -> list[Operation]:
        """Try the user's (without `user_id`: everybody's) queued turns again now, also those that were given up.

        Returns what they led to. What is being learnt at the moment is left alone.
        """
        operations: list[Operation] = []
        for reader in await self._waiting(io, user_id, app_name):
            operations += await learning.retry(io, reader, self._learner)
        await self._keep_up(io)
        return operations

    async def _waiting(self, io: IO, user_id: str | None, app_name: str) -> list[Reader]:
        if user_id is not None:
            return [Reader(user_id, app_name)]
        return [r for r in await turnqueue.owners(io, turnqueue.STATUSES) if r.app_name == app_name]

    def drain(self, timeout: float | None = None) -> bool:
        """Wait until the queues of all users this process heard are empty; whether they are.

        False after `timeout` seconds, and as soon as what is left waits for a later try: turns whose model failed,
        whose owner has paused, or that were queued after `close`. False at once where it would wait for itself: when
        `on_event` is told by a background thread.
        """
        most = None if timeout is None else min(arguments.number(timeout, "timeout"), threading.TIMEOUT_MAX)
        end = None if most is None else time.monotonic() + most
        overdue: set[Reader] = set()
        while True:
            rest = None if end is None else max(0.0, end - time.monotonic())
            if not self._backlog.drain(rest):
                return False
            if self._worker is not None and not self._worker.drain(rest):
                return False
            left = [(owner, turn) for owner in list(self._unfinished) for turn in run(self._left(self.io, owner))]
            if not left:
                return True
            now = self._rules.clock()
            heard = [] if self._worker is None else [(o, t) for o, t in left if turnqueue.goes_on(t)]
            for owner, turn in heard:  # whoever drains does not wait for an agent
                run(turnqueue.unpause(self.io, turn, now))
                self._worker.ask(owner)  # type: ignore[union-attr]
            if heard and rest != 0:
                continue
            late = {owner for owner, turn in left if turn.leased_until is not None and turn.leased_until <= now}
            elsewhere = all(turn.leased_to is not None for _, turn in left)
            if not elsewhere or late & overdue or (late and self._worker is None) or rest == 0:
                return False
            overdue |= late
            for owner in late:  # whoever had its turn is dead: it is ours now
                self._worker.ask(owner)  # type: ignore[union-attr]
            time.sleep(0.02 if rest is None else min(0.02, rest))

    async def adrain(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - `drain` with an a
        """`drain`, without blocking the event loop."""
        return await asyncio.to_thread(self.drain, timeout)

    def usage(self) -> dict[str, Usage]:
        """What chat models cost in this process, by user id."""
        with self._lock:
            return dict(self._usage)

    async def _latest(
        self,
        io: IO,
        messages: Sequence[BaseMessage],
        speaker: Reader,
        source_type: SourceType | None = None,
        *,
        backfill: bool = False,
    ) -> list[Turn]:
        """The turns of the human messages since the last answer (all, with `backfill`)."""
        start = 0 if backfill else last_said(messages)
        return await self._spoken(io, messages, speaker, at=self._rules.clock(), source_type=source_type, start=start)

    async def _spoken(
        self,
        io: IO,
        messages: Sequence[BaseMessage],
        speaker: Reader,
        *,
        at: datetime,
        source_type: SourceType | None,
        source_id: str | None = None,
        start: int = 0,
    ) -> list[Turn]:
        """The turns among `messages[start:]`."""
        work = functools.partial(
            turns_of,
            messages,
            speaker,
            at=at,
            people=self._people,
            tools=self._tools,
            source_type=source_type,
            source_id=source_id,
            start=start,
            redact=self._guard.redact,
        )
        return await worked(io, work, sum(length(m) for m in messages[start:]))

    async def _heard(self, io: IO, spoken: Sequence[Turn]) -> Collection[Reader]:
        """Queue turns that are to be learnt when the agent is done with them; whose they are."""
        owners = self._owners(spoken)
        if self._worker is None and self._learner.quick:
            await turnqueue.hear(io, spoken, live=True)
            return owners
        wait, now = min(max(self._debounce, INTERRUPTED), ABANDONED), self._rules.clock()
        heard = await turnqueue.hear(io, spoken, live=True, until=now + timedelta(seconds=wait))
        await turnqueue.went_on(io, heard, now)
        if self._worker is not None:
            for owner in owners:
                self._worker.ask(owner, wait, again=False)
        return owners

    def _take(self, waiting: Sequence[Waiting]) -> list[Turn]:
        """Queue turns that the store could not take before; as they are queued."""
        self._owners([each.turn for each in waiting])
        return [turn for each in waiting for turn in run(turnqueue.hear(self.io, [each.turn], known=each.known))]

    def _learn_taken(self, queued: Sequence[Turn]) -> None:
        """Learn from turns that were queued so, or leave them to the worker."""
        ours = {t.turn_id for t in queued}
        for owner in self._owners(queued):
            if self._worker is not None:
                self._worker.ask(owner, self._debounce)
                continue
            try:
                run(learning.catch_up(self.io, owner, self._learner, wanted=lambda t: t.turn_id in ours, stop=True))
                run(self._left(self.io, owner))
                run(self._keep_up(self.io))
            except Exception as error:  # noqa: BLE001 - they are queued, and are learnt at their user's next turn
                self.report("remember_failed", error=type(error).__name__)

    async def _hear(self, io: IO, spoken: Sequence[Turn]) -> None:
        """Queue turns before the user's model runs, and learn what interrupted ones left."""
        owners: Collection[Reader] = self._owners(spoken)
        if self._backlog.holds(owners):  # what was said before is to be queued before
            self._backlog.add(spoken)
            if not await io.ask(Ask(lambda _: self._backlog.settled(owners, min(self._deadline / 4, SETTLING))), None):
                return
        else:
            owners = await self._heard(io, spoken)
        if self._backlog.learns(owners):  # that is done already, and two would only get in each other's way
            return
        if self._worker is None and self._learner.quick:  # a model is not asked while the user's own waits
            now = {t.turn_id for t in spoken}
            for owner in owners:
                await learning.catch_up(io, owner, self._learner, wanted=lambda t: t.turn_id not in now)

    async def _learn(self, io: IO, spoken: Sequence[Turn], *, heard: bool = False) -> list[Operation]:
        """Learn from turns now, or leave them to the worker."""
        owners = self._owners(spoken)
        if self._worker is None:
            operations = await learning.learn_all(io, spoken, self._learner, heard=heard)
            for owner, noted in owners.items():
                self._settled(owner, noted)
                if owner in self._unfinished:  # an interrupted turn, which may have been learnt since
                    await self._left(io, owner)
            await self._keep_up(io)
            return operations
        for owner in owners:  # before the turn can be found: the worker's first look round must not be earlier
            self._worker.ask(owner, self._debounce)
        await turnqueue.hear(io, spoken, known=heard)
        for owner in self._owners(spoken):
            self._worker.ask(owner, self._debounce)
        return []

    async def _woken(self, io: IO, owner: Reader) -> None:
        """See to what is in an owner's queue that nobody said here, or that nobody could learn before."""
        if self._owners(await turnqueue.queued(io, owner)) and self._worker is not None:
            self._worker.ask(owner)

    def _owners(self, spoken: Sequence[Turn]) -> dict[Reader, dict[str, object]]:
        """Whose turns these are, each turn noted as unfinished, and with what mark."""
        mark = object()
        found: dict[Reader, dict[str, object]] = {}
        for turn in spoken:
            found.setdefault(reader_of(turn), {})[turn.turn_id] = mark
        with self._lock:
            for owner, noted in found.items():
                self._unfinished.setdefault(owner, {}).update(noted)
        return found

    def _settled(self, owner: Reader, noted: Mapping[str, object]) -> None:
        # What was queued meanwhile has been noted anew.
        with self._lock:
            left = self._unfinished.get(owner, {})
            for turn_id, mark in noted.items():
                if left.get(turn_id) is mark:
                    del left[turn_id]
            if not left:
                self._unfinished.pop(owner, None)

    async def _left(self, io: IO, owner: Reader) -> list[Turn]:
        """What is in an owner's queue."""
        with self._lock:
            noted = dict(self._unfinished.get(owner, {}))
        left = await turnqueue.queued(io, owner)
        if not left:
            self._settled(owner, noted)
        return left

    async def _silent_for(self, io: IO, user_id: str, app_name: str, session_id: str) -> timedelta:
        """How long ago the user last spoke in a session; zero if never, and while nothing is to be kept."""
        speaker = Reader(user_id, app_name)
        if (await consent.settings_of(io, speaker)).paused:
            return timedelta(0)
        items = await items_under(
            io, namespace("turns", app_name=app_name, user_id=speaker.user_id), {"session_id": session_id}
        )
        spoken = [Turn.stored(i).at for i in items]
        return self._rules.clock() - max(spoken) if spoken else timedelta(0)

    async def _summarised(self, io: IO, speaker: Reader, messages: Sequence[BaseMessage]) -> MemoryRecord:
        spend = functools.partial(self._count, speaker.user_id)
        return await sessions.summarise(
            io,
            speaker,
            messages,
            self._rules,
            self._author,
            people=self._people,
            spend=spend,
            withheld=self._withheld,
            redact=self._guard.redact,
        )

    def _withheld(self, text: str, settings: Settings) -> bool:
        """Whether a text is not to be quoted: the guard would hold it, or its speaker does not want it to be kept."""
        if unsaid(text) or any(map(self._guard.reasons, pieces(text))):
            return True
        topics = self._rules.topics
        if not settings.topics and not settings.facts and all(topics.consents(t.name) for t in topics):
            return False
        said = Message(id="m", role="human", text=text)
        turn = Turn(turn_id="m", user_id="", at=self._rules.clock(), messages=(said,), digest="", source_id="m")
        found = RuleExtractor().extract(turn).candidates
        return any(settings.forbids(c) or not topics.consents(c.topic) for c in found)

    async def _fell_silent(self, io: IO, messages: Sequence[BaseMessage], speaker: Reader) -> None:
        """Summarise a session that its user has come back to; by the worker, where a model would hold up the turn."""
        if self._worker is None or self._author is None:
            await self._summarised(io, speaker, messages)
        else:
            self._worker.ask(Ended(speaker, tuple(messages)))

    def _work(self, job: Reader | Ended | None) -> None:
        """One job of the worker: an owner's queue, a session to be summarised, or (None) everybody's queue."""
        if not isinstance(job, Ended):
            return self._work_off(job)
        try:
            run(self._summarised(self.io, job.speaker, job.messages))
        except BaseException as error:  # noqa: BLE001 - nobody waits for it; the transcript is still there
            self.report("summary_failed", error=type(error).__name__, thread_id=job.speaker.session_id)

    def _work_off(self, owner: Reader | None) -> None:
        worker = self._worker
        assert worker is not None  # it is the worker that calls
        try:
            if owner is None:
                for reader in run(turnqueue.owners(self.io)):
                    worker.ask(reader, again=False)
                return
            run(learning.catch_up(self.io, owner, self._learner, wanted=lambda turn: not worker.closed))
            run(self._keep_up(self.io))
            pause = turnqueue.next_try(run(self._left(self.io, owner)), self._rules.clock())
            if pause is not None:  # failed, or leased to a worker that may be dead
                worker.come_back(owner, pause.total_seconds() + LOOK_AGAIN)
        except BaseException as error:  # noqa: BLE001 - nobody waits for it, and a thread that dies would take the queue along
            if worker.closed:  # the store is gone, as it was said it would be
                return
            self.report("remember_failed", error=type(error).__name__)
            worker.come_back(owner, LOOK_AGAIN if isinstance(error, Conflict) else turnqueue.PAUSE.total_seconds())

    def _spend(self, turn: Turn, what: str, usage: Usage) -> None:
        self._count(turn.user_id, what, usage)

    def _count(self, user_id: str | None, what: str, usage: Usage) -> None:
        if usage.calls:
            with self._lock:
                self._usage[user_id or ""] = self._usage.get(user_id or "", Usage()).and_(usage)
            self._tell("model_call", {"user_id": user_id, "what": what, "usage": usage})

    pending, apending = twins(_pending)
    retry, aretry = twins(_retry)
