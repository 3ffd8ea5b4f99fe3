"""Around a turn: for nodes, middleware, and your own loop."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, ParamSpec, TypeVar

from langchain_core.messages import BaseMessage

from langmem_adapter import arguments, injection, learning, retrieval, sessions
from langmem_adapter.errors import InvalidInput, StoreFull, StoreReadOnly
from langmem_adapter.extraction.origin import coerce
from langmem_adapter.extraction.turns import last_id
from langmem_adapter.methods.base import twins
from langmem_adapter.methods.queue import Queue
from langmem_adapter.methods.reading import Reading
from langmem_adapter.namespaces import Reader
from langmem_adapter.ports import IO
from langmem_adapter.records import Block, MemoryRecord, Operation, Recollection, Ref, SourceType
from langmem_adapter.scoring import band

P = ParamSpec("P")
T = TypeVar("T")

LOCAL_DEADLINE = 0.3
REMOTE_DEADLINE = 2.0
"""Seconds that a turn waits for a recall: with `HashEmbeddings`, and with an embedder that may be far away."""
WARMING_UP = 2.0
"""Seconds that it waits until a first recall has succeeded: files are opened, caches filled."""
LEARNING_DEADLINE = 5.0
"""Seconds that a turn waits for what needs no model to be learnt from it; it is then learnt all the same."""


class Turns(Reading, Queue):
    """`recall`, `recall_block`, `remember`, `end_session`, `get_summary`."""

    _warm: bool
    _asks_a_model: bool

    async def _recall(
        self,
        io: IO,
        messages: Sequence[BaseMessage],
        *,
        user_id: str,
        session_id: str | None = None,
        app_name: str = "default",
        agent_id: str | None = None,
        source_type: SourceType | None = None,
        hear: bool = True,
    ) -> Recollection | None:
        """What is worth knowing for the last thing the user typed; None if there is no such message.

        Call it before the model runs. With `hear` (for a conversation, not for a prompt made by a program) the
        message is first written to the user's queue, so that an interrupted turn is not lost. What interrupted turns
        left there is learnt, if that needs no model (else by `remember`, which does not hold up the user's own).
        """
        arguments.flag(hear, "hear")
        speaker = Reader(user_id, app_name, session_id, agent_id)
        spoken = await self._latest(io, coerce(messages), speaker, arguments.source_kind(source_type))
        if not spoken:
            return None
        if hear:
            try:
                await self._hear(io, spoken)
            except (StoreReadOnly, StoreFull) as error:  # what is known can be recalled all the same
                self.report("remember_failed", error=type(error).__name__, thread_id=session_id)
                hear = False
        last = spoken[-1]
        hits = await self._search(
            io,
            last.messages[0].text,
            user_id=last.user_id or user_id,  # in a thread of several people: the one who speaks
            k=injection.CONSIDERED,
            session_id=session_id,
            agent_id=agent_id,
            app_name=app_name,
        )
        refs = [
            Ref(memory_id=h.record.memory_id, scope=h.record.scope, band=band(h.parts.confidence))
            for h in injection.picked(hits)
        ]
        return Recollection(
            message_id=last.messages[0].id,
            user_id=last.user_id or user_id,
            key=self.key,
            heard=hear,
            refs=tuple(refs),
        )

    async def _recall_block(
        self,
        io: IO,
        recollection: Recollection,
        *,
        session_id: str | None = None,
        app_name: str = "default",
        agent_id: str | None = None,
    ) -> Block:
        """The block of a recollection, its texts read now: what was erased since is not in it.

        The confidence bands are those of the moment of recall, so the block is the same through a tool loop.
        """
        if not isinstance(recollection, Recollection):
            raise InvalidInput(f"recollection must be what recall() returned, got {recollection!r:.80}")
        reader = Reader(recollection.user_id, app_name, session_id, agent_id)
        hits = await retrieval.resolve(io, reader, recollection.refs)
        return injection.render(hits)

    async def _remember(
        self,
        io: IO,
        messages: Sequence[BaseMessage],
        *,
        user_id: str,
        session_id: str | None = None,
        app_name: str = "default",
        agent_id: str | None = None,
        source_type: SourceType | None = None,
        backfill: bool = False,
        heard: bool = False,
    ) -> list[Operation]:
        """Learn from the last human message of a thread, and what followed it; call it after the model answered.

        `backfill`: from all human messages, for a thread that is older than its memory. `heard`: `recall` queued the
        message, so that one which is in the queue no more was erased since, and is not learnt.
        """
        speaker = Reader(user_id, app_name, session_id, agent_id)
        spoken = await self._latest(
            io, coerce(messages), speaker, arguments.source_kind(source_type), backfill=backfill
        )
        operations = await self._learn(io, spoken, heard=heard and not backfill)
        if self._worker is None and not self._learner.quick:
            # What else is in the queue; if the model cannot be asked, once is enough to know.
            await learning.catch_up(io, Reader(user_id, app_name), self._learner, stop=True)
        return operations

    async def _end_session(
        self,
        io: IO,
        messages: Any = (),
        *,
        user_id: str,
        session_id: str,
        app_name: str = "default",
    ) -> MemoryRecord:
        """Summarise a session, so that the summary can stand in for its transcript; the new summary.

        `messages`: the thread so far, as far as you have it, as `add` takes them; to stand in for them they need ids.
        Written by the model, if there is one (ModelFailed if it gives none, or the guard withholds all of it), else
        from what the session taught and what was said last. What was erased is not in it; if all was, or while the
        user has paused, nothing is stored. `get_summary` gives it; no other session sees it.
        """
        return await self._summarised(io, Reader(user_id, app_name, session_id), coerce(messages))

    async def _get_summary(
        self, io: IO, *, user_id: str, session_id: str, app_name: str = "default"
    ) -> MemoryRecord | None:
        """The summary of a session (kind "summary"); None before `end_session`."""
        return await sessions.summary_of(io, Reader(user_id, app_name, session_id))

    def last_said(self, messages: Sequence[BaseMessage], **ids: Any) -> str | None:
        """The id of the last message that the user typed; None if there is none. For the ids see `recall`."""
        reader = Reader(ids["user_id"], ids["app_name"], ids["session_id"], ids["agent_id"])
        return last_id(coerce(messages), reader, people=self._people, redact=self._guard.redact)

    async def _in_time(self, io: IO, step: Callable[[IO], Coroutine[Any, Any, T]]) -> T:
        """The result of a recall, or TimeoutError when a turn cannot wait for it any longer."""
        found = await io.bounded(step, self._patience())
        self._warm = True
        return found

    def _patience(self) -> float:
        return self._deadline if self._warm else max(self._deadline, WARMING_UP)

    async def _learn_in_time(self, io: IO, step: Callable[[IO], Coroutine[Any, Any, T]]) -> T:
        """The result of learning; what takes too long goes on without the turn, which gets a TimeoutError.

        A store may be no longer about a single call than about a recall. A model may take its time where the caller
        wants to wait for it.
        """
        if self._asks_a_model:
            return await step(io)
        return await io.bounded(step, LEARNING_DEADLINE, self._patience())

    async def _keep(
        self,
        io: IO,
        messages: Sequence[BaseMessage],
        speaker: Reader,
        source_type: SourceType | None,
        *,
        backfill: bool = False,
        heard: bool = False,
    ) -> None:
        """Queue the turns of these messages as soon as the store can take them (see `backlog`)."""
        kind = arguments.source_kind(source_type)
        spoken = await self._latest(io, coerce(messages), speaker, kind, backfill=backfill)
        self._backlog.add(spoken, known=heard and not backfill)

    def _outstanding(self, user_id: str, app_name: str) -> bool:
        """Whether something that the user said still waits for the store."""
        return self._backlog.holds({Reader(user_id, app_name)})

    recall, arecall = twins(_recall)
    recall_block, arecall_block = twins(_recall_block)
    remember, aremember = twins(_remember)
    end_session, aend_session = twins(_end_session)
    get_summary, aget_summary = twins(_get_summary)

    @property
    def key(self) -> str:
        """A name of this memory's data that is the same in every process that opens it."""
        return self._base.store_id
