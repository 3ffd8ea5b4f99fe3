"""`Memory`: the only place where the steps meet. extract → consolidate → store → retrieve → inject.

Every method has an async twin with an `a` prefix and the same arguments; both run one step (see `ports`).
"""

import asyncio
import contextlib
import functools
import inspect
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, Self, TypeVar

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, SystemMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore, ensure_embeddings
from pydantic import ValidationError

from langmem_adapter import (
    arguments,
    auditing,
    consent,
    forgetting,
    injection,
    learning,
    maintenance,
    quarantine,
    receipts,
    retrieval,
    sessions,
    turnqueue,
)
from langmem_adapter import text as texts
from langmem_adapter.answers import chat_model
from langmem_adapter.consent import Settings
from langmem_adapter.consolidation.correct import correct
from langmem_adapter.consolidation.judge import ModelJudge
from langmem_adapter.consolidation.step import KeepTurns, Rules, consolidate, reader_of
from langmem_adapter.embeddings import HashEmbeddings
from langmem_adapter.errors import Conflict, InvalidInput, MemoryAdapterError, MemoryNotFound, StoreError
from langmem_adapter.exchange import moving
from langmem_adapter.exchange.archive import Export, unpack
from langmem_adapter.exchange.files import lines_of
from langmem_adapter.exchange.items import import_items
from langmem_adapter.exchange.lines import import_lines
from langmem_adapter.exchange.mem0 import import_mem0
from langmem_adapter.exchange.moving import Progress
from langmem_adapter.exchange.report import Imported
from langmem_adapter.extraction.model import ModelExtractor
from langmem_adapter.extraction.origin import coerce
from langmem_adapter.extraction.rules import RuleExtractor
from langmem_adapter.extraction.turns import digest, last_said, turns_of
from langmem_adapter.forgetting import Previous
from langmem_adapter.guard import Guard
from langmem_adapter.learning import Learner
from langmem_adapter.namespaces import Reader, namespace
from langmem_adapter.ports import IO, Ask, AsyncPort, SyncPort, run
from langmem_adapter.records import (
    Block,
    Explanation,
    Extraction,
    HistoryEntry,
    Maintenance,
    MemoryRecord,
    Operation,
    Quarantined,
    Recalled,
    Receipt,
    Recollection,
    Ref,
    Review,
    Scope,
    SourceType,
    Status,
    Turn,
    Usage,
)
from langmem_adapter.scoring import STATUSES, Columns, Weights, Where, as_parts, band
from langmem_adapter.stores.base import Guarantees, MemoryStore, Mode, RankOp
from langmem_adapter.stores.foreign import ForeignStore
from langmem_adapter.stores.sqlite import SqliteMemoryStore
from langmem_adapter.topics import DEFAULT_TOPICS, Topic, Topics
from langmem_adapter.trust import TrustPolicy
from langmem_adapter.worker import Worker

logger = logging.getLogger("langmem_adapter")

LOOK_AGAIN = 0.5
"""Seconds after the end of a lease or pause, or after a failure, at which the worker looks at the queue again."""
INTERRUPTED = 60.0
"""Seconds after which the worker takes a turn that was recalled for and never remembered."""

LOCAL_DEADLINE = 0.3
REMOTE_DEADLINE = 2.0
"""Seconds that a turn waits for a recall: with `HashEmbeddings`, and with an embedder that may be far away."""
WARMING_UP = 2.0
"""Seconds that it waits until a first recall has succeeded: files are opened, caches filled."""
LEARNING_DEADLINE = 5.0
"""Seconds that a turn waits for what needs no model to be learnt from it; it is then learnt all the same."""

P = ParamSpec("P")
T = TypeVar("T")


class Extractor(Protocol):
    """Proposes facts. An `aextract` with the same arguments is used by the async methods, if there is one."""

    def extract(self, turn: Turn) -> Extraction:
        """The candidates of one turn; none is a normal answer."""


def _twins(
    step: Callable[Concatenate[Any, IO, P], Coroutine[Any, Any, T]],
) -> tuple[Callable[Concatenate[Any, P], T], Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]]:
    """A sync and an async method from one step."""

    @functools.wraps(step)
    def sync(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return run(step(self, self.io, *args, **kwargs))

    @functools.wraps(step)
    async def native(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await step(self, self.aio, *args, **kwargs)

    name = step.__name__.removeprefix("_")
    parameters = [p for p in inspect.signature(step).parameters.values() if p.name != "io"]
    twins: tuple[tuple[Any, str], ...] = ((sync, ""), (native, "a"))
    for method, prefix in twins:
        method.__name__ = prefix + name
        method.__qualname__ = f"Memory.{prefix}{name}"
        method.__signature__ = inspect.signature(step).replace(parameters=parameters)
    return sync, native


@dataclass(frozen=True, slots=True)
class _Ended:
    """A session that is to be summarised, as far as these messages."""

    speaker: Reader
    messages: tuple[BaseMessage, ...] = field(compare=False)


class Memory:
    """Long-term memory of many users in one store.

    `store`: a file name (opens a `SqliteMemoryStore`), or any LangGraph store. `embeddings`: a LangChain `Embeddings`
    or a `"provider:model"` string; the default needs no model. `model`: a LangChain chat model or such a string, which
    extracts the facts and judges how they relate (`extractor` and `judge` set either alone); by default offline rules
    do both. `when`: "inline" learns before `add` and `remember` return; "background" in a thread, once the owner has
    been quiet for `debounce_seconds`. `topics`: all topics, e.g. `[*DEFAULT_TOPICS, Topic(name="hobby")]`. `policy`:
    who may overwrite whom. `tool_sources`: names of tools whose results may teach something. `people`: message `name` →
    user id, where several people share a thread. `checkpointer`: whose threads `forget_source` and `delete_all` delete
    too. `keep_turns`: what is kept of a turn that taught something, so that a later `forget_source` can decide anew:
    its "text", only the "excerpts" that its facts rest on, or "nothing" (then what rests on other sources too is
    flagged instead of rebuilt). `recall_deadline`: seconds after which a graph's turn goes on without memories, and is
    only queued to be learnt (default: 0.3 with the embedder that needs no model, else 2). `maintain_every`: an owner's
    memory is maintained (see `maintain`) each time so many of its records were written (less often when it has
    thousands); None: only when you call it. `retention_days`: how long an expired memory, which nobody sees any more,
    is still stored. `guard`: what goes into quarantine, and what is cut out as a secret. `inject_as`: whether nodes and
    middleware put the block into the "system" message or before the text of the last "user" message. `on_event(name,
    data)` is told what was learnt ("learnt", with the operations), what was held back ("quarantined", with ids and
    reasons), what went wrong ("recall_failed", "remember_failed") and what models cost ("model_call"). `clock` returns
    the current time, UTC-aware.
    """

    def __init__(
        self,
        store: str | os.PathLike[str] | BaseStore,
        *,
        embeddings: Embeddings | str | None = None,
        model: BaseChatModel | str | None = None,
        extractor: Extractor | None = None,
        judge: ModelJudge | None = None,
        when: Literal["inline", "background"] = "inline",
        debounce_seconds: float = 0.0,
        topics: Iterable[Topic] = DEFAULT_TOPICS,
        policy: TrustPolicy | None = None,
        tool_sources: str | Iterable[str] = (),
        people: Mapping[str, str] | None = None,
        checkpointer: BaseCheckpointSaver[Any] | None = None,
        keep_turns: KeepTurns = "text",
        recall_deadline: float | None = None,
        maintain_every: int | None = 50,
        retention_days: float = 30,
        guard: Guard | None = None,
        inject_as: injection.Place = "system",
        weights: Weights | None = None,
        on_event: Callable[[str, dict[str, Any]], None] | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        if not isinstance(store, str | os.PathLike | BaseStore):
            raise InvalidInput(f"store must be a file name or a LangGraph store, got {store!r:.80}")
        self._owns_store = not isinstance(store, BaseStore)
        embed = _embeddings(embeddings)
        self.store: BaseStore = store if isinstance(store, BaseStore) else _open(store, embed)
        base = self.store if isinstance(self.store, MemoryStore) else ForeignStore(self.store, embed)
        self._base = base
        self.io: IO = SyncPort(base, time.sleep)
        self.aio: IO = AsyncPort(base)
        self._tools = frozenset(arguments.strings(tool_sources, "tool_sources"))
        self._usage: dict[str, Usage] = {}
        self._lock = threading.Lock()
        self._unfinished: set[Reader] = set()  # whose queues are not known to be empty
        self._on_event = on_event
        registered = Topics(topics)
        self._author = None if model is None else sessions.writer(chat_model(model))
        if model is not None:
            extractor = extractor or ModelExtractor(model, topics=registered)
            judge = judge or ModelJudge(model)
        chosen = extractor or RuleExtractor(self._tools)
        if keep_turns not in ("text", "excerpts", "nothing"):
            raise InvalidInput(f"keep_turns must be 'text', 'excerpts' or 'nothing', got {keep_turns!r}")
        if recall_deadline is not None and not arguments.number(recall_deadline, "recall_deadline") > 0:
            raise InvalidInput(f"recall_deadline must be seconds above 0, got {recall_deadline!r}")
        local = isinstance(getattr(self.store, "embeddings", None) or embed, HashEmbeddings)
        self._deadline = recall_deadline or (LOCAL_DEADLINE if local else REMOTE_DEADLINE)
        self._warm = False
        self._every = None if maintain_every is None else arguments.count(maintain_every, "maintain_every")
        self._due: set[Reader] = set()
        self._retention = arguments.days(retention_days, "retention_days")
        self._guard = guard or Guard()
        self._rules = Rules(
            registered,
            policy or TrustPolicy(),
            clock,
            judge,
            self._spend,
            keep_turns,
            self._count_written,
            self._guard.redact,
            self._guard.vet,
        )
        self._learner = Learner(
            Ask(chosen.extract, getattr(chosen, "aextract", None)),
            self._rules,
            self._tell,
            self._spend,
            self._guard,
            quick=isinstance(chosen, RuleExtractor) and judge is None,
        )
        self._asks_a_model = not self._learner.quick and when == "inline"
        if inject_as not in ("system", "user"):
            raise InvalidInput(f"inject_as must be 'system' or 'user', got {inject_as!r}")
        self.inject_as = inject_as
        if when not in ("inline", "background"):
            raise InvalidInput(f"when must be 'inline' or 'background', got {when!r}")
        if (
            isinstance(debounce_seconds, bool)
            or not isinstance(debounce_seconds, int | float)
            or not (0 <= debounce_seconds < float("inf"))
        ):
            raise InvalidInput(f"debounce_seconds must be a number of seconds, 0 or more, got {debounce_seconds!r}")
        self._debounce = debounce_seconds
        self._worker: Worker[Reader | _Ended | None] | None = None
        if when == "background":
            self._worker = Worker(self._work, name="langmem_adapter")
            self._worker.ask(None)  # what an earlier process left
        self._people = dict(people or {})
        self._threads = None if checkpointer is None else receipts.deletes_threads(checkpointer)
        self._checkpoints: Ask[None, Any] | None = None
        keeper: Any = checkpointer
        if hasattr(keeper, "maintain"):  # a SqliteCheckpointer
            self._checkpoints = Ask(lambda _: keeper.maintain(), lambda _: keeper.amaintain())
        self._weights = weights or Weights()
        if self._owns_store:
            self._go_on()

    def _go_on(self) -> None:
        """Complete the erasures that a crash interrupted."""
        try:
            for reader in run(receipts.open_owners(self.io)):
                run(receipts.complete(self.io, reader, self._threads))
        except StoreError as error:  # the file may be readable only; whoever asks for the receipt is told
            self.report("erasure_pending", error=type(error).__name__)

    # ---------------------------------------------------------------- learning

    async def _add(
        self,
        io: IO,
        messages: Any,
        *,
        user_id: str,
        session_id: str | None = None,
        app_name: str = "default",
        agent_id: str | None = None,
        source_type: SourceType | None = None,
        source_id: str | None = None,
        at: datetime | str | None = None,
    ) -> list[Operation]:
        """Learn from messages; what was decided about each fact found, in order.

        `messages`: a string, a LangChain message, an OpenAI-style dict, or a list of those. Only what the user typed
        teaches (and tools named in `tool_sources`). `source_type` overrides what the words amount to; `source_id`
        names the source for `forget_source` (default: the session, else the turn). `at`: when it was said (default:
        now). A message that was learnt from before changes nothing; the same id with new text replaces what it
        taught. InvalidInput for what cannot be used; Conflict if other writers won fifty times.
        """
        spoken = turns_of(
            coerce(messages),
            Reader(user_id, app_name, session_id, agent_id),
            at=arguments.moment(at, "at") or self._rules.clock(),
            people=self._people,
            tools=self._tools,
            source_type=arguments.source_kind(source_type),
            source_id=arguments.source_id(source_id),
            redact=self._guard.redact,
        )
        return await self._learn(io, spoken)

    async def _add_fact(
        self,
        io: IO,
        content: str,
        *,
        user_id: str | None = None,
        scope: Scope = "user",
        session_id: str | None = None,
        agent_id: str | None = None,
        app_name: str = "default",
        topic: str = "general",
        slot: str | None = None,
        value: str | None = None,
        kind: str = "fact",
        subject: str = "user",
        source_type: SourceType = "bootstrapped",
        source_id: str | None = None,
        confidence: float = 1.0,
        importance: float | None = None,
        at: datetime | str | None = None,
        valid_from: datetime | str | None = None,
        valid_to: datetime | str | None = None,
        expires_at: datetime | str | None = None,
        entities: Sequence[str] = (),
        purpose: str | None = None,
        legal_basis: str | None = None,
    ) -> Operation:
        """Put in one fact from a system of record, or by an administrator; it passes the trust gate like any other.

        `source_id` says where it comes from, and is what `forget_source` is given; it must be named.

        While the user has paused, or if the fact is one never to be remembered or on a topic without consent, the
        operation is a NOOP that says so. `purpose` and `legal_basis` are kept with it (default: the topic's).

        The only way to write `scope="app"` (no `user_id`), read by all users. `value` is what the (topic, slot)
        holds, by which equal facts are recognised (default: the content). UnknownTopic for a topic not registered.
        """
        redact = self._guard.redact
        text = texts.content(redact(texts.clean(content)))
        self._rules.topics.get(topic)
        namespace(  # complains of a bad scope or id
            "facts", app_name=app_name, user_id=user_id, scope=scope, session_id=session_id, agent_id=agent_id
        )
        if scope == "app" and user_id is not None:
            raise InvalidInput(f"scope='app' belongs to no user, but user_id={user_id!r} was given")
        if scope == "team":
            raise InvalidInput("scope='team' cannot be written yet; use 'user', 'session', 'agent' or 'app'")
        arguments.source_id(source_id, required=True)
        turn_id = f"fact-{secrets.token_hex(8)}"
        kind_of_source = arguments.source_kind(source_type)
        if kind_of_source is None:
            raise InvalidInput("source_type must say what kind of source the fact comes from, got None")
        candidate = arguments.candidate(
            content=text,
            topic=topic,
            slot=redact(slot or ""),
            value=redact(value) if value is not None else texts.slot(text),
            kind=kind,
            subject=subject,
            source_type=kind_of_source,
            excerpt=text,
            message_id=turn_id,
            confidence=confidence,
            importance=importance,
            valid_from=arguments.moment(valid_from, "valid_from"),
            valid_to=arguments.moment(valid_to, "valid_to"),
            expires_at=arguments.moment(expires_at, "expires_at"),
            entities=tuple(entities),
            purpose=purpose,
            legal_basis=legal_basis,
        )
        if not self._rules.topics.consents(topic):
            return Operation(action="NOOP", memory_id=None, content=text, reason="no_consent")
        turn = Turn(
            turn_id=turn_id,
            user_id=user_id,
            app_name=app_name,
            scope=scope,
            session_id=session_id,
            agent_id=agent_id,
            at=arguments.moment(at, "at") or self._rules.clock(),
            digest=digest(text),
            source_type=kind_of_source,
            source_id=str(source_id),
            candidates=(candidate,),
        )
        turn = self._rules.vet(turn)
        operations = await consolidate(io, turn, self._rules)
        await self._keep_up(io)
        learning.tell_held(turn, operations, self._tell)
        if operations:
            return operations[0]
        paused = (await consent.settings_of(io, reader_of(turn))).paused
        return Operation(action="NOOP", memory_id=None, content=text, reason="paused" if paused else "forbidden")

    async def _update(
        self,
        io: IO,
        memory_id: str,
        *,
        user_id: str | None = None,
        content: str,
        app_name: str = "default",
        scope: Literal["user", "app"] = "user",
    ) -> Operation:
        """Correct a memory in the user's name: a new version, `user_explicit`, that the trust gate does not judge.

        `scope="app"` (without `user_id`): an administrator corrects an application fact. MemoryNotFound for an id that
        is not the user's; InvalidInput if the memory is no longer believed, or if the guard would hold the new words.
        """
        text = texts.content(self._guard.redact(texts.clean(content)))
        if scope == "user" and (reasons := self._guard.reasons(text)):
            raise InvalidInput(
                f"content reads as {', '.join(reasons)}; that is no memory of a user's, in no one's words"
            )
        _, record = await self._require(io, memory_id, arguments.owner(user_id, app_name, scope))
        turn = Turn(
            turn_id=f"update-{secrets.token_hex(8)}",
            user_id=record.user_id,
            app_name=app_name,
            scope=record.scope,
            session_id=record.session_id,
            agent_id=record.agent_id,
            at=self._rules.clock(),
            digest=digest(text),
            source_type="user_explicit",
            source_id="correction",
        )
        if record.scope == "app" and scope != "app":
            raise MemoryNotFound(f"no memory {memory_id!r} of user {user_id!r}; application facts are read-only")
        return await correct(io, memory_id, text, turn, self._rules)

    # ---------------------------------------------------------------- reading

    async def _search(
        self,
        io: IO,
        query: str,
        *,
        user_id: str,
        k: int = 5,
        session_id: str | None = None,
        agent_id: str | None = None,
        app_name: str = "default",
        scopes: Sequence[Scope] | None = None,
        topics: str | Sequence[str] | None = None,
        kinds: str | Sequence[str] | None = None,
        floor: float = 0.0,
        weights: Weights | None = None,
        mode: Mode = "hybrid",
        as_of: datetime | str | None = None,
        valid_at: datetime | str | None = None,
        include_superseded: bool = False,
    ) -> list[Recalled]:
        """The user's k best memories for a query, best first, ranked exactly over all that are active.

        Scopes: by default the user's and the application's, and those whose id is given. `topics` include what lies
        below them ("diet" finds "diet/allergy"). `floor`: the least score. `mode`: "hybrid" words and vectors,
        "vector", or "text". `as_of`: what was believed then; `valid_at`: what was true then. "" ranks by recency and
        importance alone.
        """
        if not isinstance(query, str):
            raise InvalidInput(f"query must be a str, got {type(query).__name__}: {query!r:.80}")
        if not isinstance(k, int) or k < 0:
            raise InvalidInput(f"k must be a whole number ≥ 0, got {k!r}")
        if mode not in ("hybrid", "vector", "text"):
            raise InvalidInput(f"mode must be 'hybrid', 'vector' or 'text', got {mode!r}")
        now = self._rules.clock()
        spoken = self._guard.redact(texts.clean(query[: retrieval.MAX_QUERY], what="query")).strip()
        reader = Reader(user_id, app_name, session_id, agent_id)
        op = RankOp(
            reader.facts(scopes),
            spoken or None,
            Where(
                now=now.timestamp(),
                statuses=("active", "superseded") if include_superseded else ("active",),
                topics=None if topics is None else tuple(arguments.strings(topics, "topics")),
                kinds=None if kinds is None else tuple(arguments.strings(kinds, "kinds")),
                as_of=arguments.timestamp(as_of, "as_of"),
                valid_at=arguments.timestamp(valid_at, "valid_at"),
            ),
            arguments.weights(weights) or self._weights,
            k,
            arguments.number(floor, "floor"),
            mode,
        )
        return await retrieval.search(io, reader, op)

    async def _get(self, io: IO, memory_id: str, *, user_id: str, app_name: str = "default") -> MemoryRecord | None:
        """The user's (or the application's) memory of this id, whatever its status; None if there is none."""
        found = await retrieval.find(io, Reader(user_id, app_name), memory_id)
        return found[1] if found else None

    async def _get_all(
        self,
        io: IO,
        *,
        user_id: str,
        status: Status | Literal["all"] = "active",
        topic: str | None = None,
        app_name: str = "default",
    ) -> list[MemoryRecord]:
        """All of the user's memories of this status in the order they were learnt; expired ones only with "all"."""
        now = self._rules.clock()
        if status not in (*STATUSES, "all"):
            raise InvalidInput(f"status must be one of {', '.join(STATUSES)} or 'all', got {status!r}")
        wanted: dict[str, object] = {} if status == "all" else {"status": status}
        items = await retrieval.items_under(io, Reader(user_id, app_name).root, wanted or None)
        records = [MemoryRecord.model_validate(i.value) for i in items if i.namespace[-1] == "facts"]
        if topic is not None:
            self._rules.topics.get(topic)
            records = [r for r in records if r.topic == topic or r.topic.startswith(f"{topic}/")]
        if status != "all":
            records = [r for r in records if r.expires_at is None or r.expires_at > now]
        return sorted(records, key=lambda r: (r.seq, r.memory_id))

    async def _history(self, io: IO, memory_id: str, *, user_id: str, app_name: str = "default") -> list[HistoryEntry]:
        """What happened to a memory and to all that it replaced, oldest first: of the newest version, the whole story.

        Each entry is a `TimelineEntry`: its `memory_id` says to which record. MemoryNotFound for an id that is not this
        user's.
        """
        ns, record = await self._require(io, memory_id, Reader(user_id, app_name))
        return await retrieval.timeline(io, ns, record)

    async def _why(self, io: IO, memory_id: str, *, user_id: str, app_name: str = "default") -> Explanation:
        """Why a memory is believed: sources, decisions, what it replaced, who contests it, its score parts now.

        `print(memory.why(…))` reads as prose. MemoryNotFound for an id that is not this user's.
        """
        ns, record = await self._require(io, memory_id, Reader(user_id, app_name))
        ids = [*record.supersedes, record.superseded_by, *record.contested_by, record.contests]
        linked = {m.memory_id: m for m in await retrieval.fetch(io, [(ns, i) for i in ids if i])}
        columns = Columns.of([record.model_dump(mode="json")])
        parts = columns.parts(np.zeros(1), self._rules.clock().timestamp())
        return Explanation(
            record=record,
            sources=record.sources,
            decisions=record.history,
            replaced=tuple(linked[i] for i in record.supersedes if i in linked and linked[i].contests is None),
            replaced_by=linked.get(record.superseded_by or ""),
            contested_by=tuple(linked[i] for i in record.contested_by if i in linked),
            contests=linked.get(record.contests or ""),
            parts=as_parts(parts[0]),
        )

    async def _review(
        self, io: IO, *, user_id: str, min_confidence: float = 0.75, app_name: str = "default"
    ) -> list[Review]:
        """What an auditor should look at, the most pressing first: active memories, each with its reasons.

        `important`: confidence at least `min_confidence` and importance at least 0.7; `single_source`: such a one that
        rests on one source only; `contested`, `recently_contested` (within 30 days), `needs_regeneration`.
        """
        least = arguments.number(min_confidence, "min_confidence")
        records = await self._get_all(io, user_id=user_id, app_name=app_name)
        return auditing.reviewed(records, self._rules.clock(), least)

    # ---------------------------------------------------------------- injecting

    def block(
        self,
        hits: Sequence[Recalled],
        *,
        max_records: int = injection.MAX_RECORDS,
        max_tokens: int = injection.MAX_TOKENS,
    ) -> Block:
        """The `<MEMORIES>` block of these hits: text, tokens (approximate), and the ids that found room."""
        return injection.block(hits, max_records=max_records, max_tokens=max_tokens)

    def inject(self, system: str, hits: Sequence[Recalled]) -> str:
        """The system prompt with the block of these hits behind it; unchanged without hits."""
        if not isinstance(system, str):
            raise InvalidInput(f"system must be a str, got {type(system).__name__}; see inject_message")
        return injection.into_text(system, self.block(hits))

    def inject_message(self, system: SystemMessage | None, hits: Sequence[Recalled]) -> SystemMessage | None:
        """The system message with the block behind its text, or as one more content block; cache marks stay."""
        return injection.into_message(system, self.block(hits))

    # ---------------------------------------------------------------- erasing

    async def _delete(
        self,
        io: IO,
        memory_ids: str | Sequence[str] | None = None,
        *,
        user_id: str | None = None,
        filter: Mapping[str, Any] | None = None,
        previous: Previous = "stay",
        app_name: str = "default",
        scope: Literal["user", "app"] = "user",
    ) -> int:
        """Erase one memory or several; how many. All, or (MemoryNotFound) none.

        `memory_ids`: an id or a list of them; or `filter`: all whose fields match, as in a LangGraph store's search
        (`{"topic": "diet"}`, `{"confidence": {"$lt": 0.5}}`). `scope="app"` (without `user_id`): an administrator
        erases application facts. OnHold if nothing may be erased.
        `previous`: what becomes of the memory that an erased one had replaced: "stay" history, "restore" it if its
        slot is free, or "refuse" (InvalidInput) to erase one that replaced another.
        """
        owner = arguments.owner(user_id, app_name, scope)
        if (memory_ids is None) == (not filter):
            raise InvalidInput(
                f"name either memory_ids or a filter, got {memory_ids!r:.80} and {filter!r:.80}; see delete_all"
            )
        if filter:
            found = await retrieval.items_under(io, owner.root, dict(filter))
            ids = [i.key for i in found if i.namespace[-1] == "facts"]
            if not ids:
                return 0
        else:
            ids = arguments.strings(memory_ids or "", "memory_ids")
        if not all(ids):
            raise InvalidInput(f"memory ids must be non-empty strings, got {memory_ids!r:.120}")
        if previous not in ("stay", "restore", "refuse"):
            raise InvalidInput(f"previous must be 'stay', 'restore' or 'refuse', got {previous!r}")
        self._erased(await forgetting.delete(io, owner, ids, previous, self._rules, self._threads))
        return len(set(ids))

    async def _delete_all(self, io: IO, *, user_id: str, app_name: str = "default") -> int:
        """Erase everything of one user: memories of every scope and status, turns; how many memories.

        An empty or blank id raises MissingUser; `%` and `*` are ids like any other.
        """
        receipt = await forgetting.delete_all(io, Reader(user_id, app_name), self._rules, self._threads)
        return len(self._erased(receipt).erased)

    async def _forget_source(
        self,
        io: IO,
        source_id: str,
        *,
        user_id: str | None = None,
        app_name: str = "default",
        scope: Literal["user", "app"] = "user",
        reextract: bool = False,
        dry_run: bool = False,
    ) -> Receipt:
        """Erase what rests only on a source (a thread, record, tool or message id); decide again what it had a part in.

        Afterwards all is as if the source had never spoken: what it had replaced is believed again, its support is
        taken back, its contests are over. What a person corrected or deleted stays so. Memories that it had no part in
        keep every byte. No model is asked: facts and verdicts were recorded; with `reextract` the extractor reads the
        remaining turns again. `scope="app"` (without `user_id`): of application facts. `dry_run`: only say what would
        be done. The receipt says what was erased, rebuilt, and what is out of reach. OnHold if nothing may be erased.
        """
        arguments.source_id(source_id, required=True)
        owner = arguments.owner(user_id, app_name, scope)
        receipt = await forgetting.forget_source(
            io,
            owner,
            source_id,
            self._rules,
            self._threads,
            dry_run=dry_run,
            extract=self._learner.candidates if reextract else None,
        )
        return receipt if dry_run else self._erased(receipt)

    async def _receipts(self, io: IO, *, user_id: str, app_name: str = "default") -> list[Receipt]:
        """The receipts of the user's erasures, oldest first: ids, counts and times."""
        return await receipts.kept(io, Reader(user_id, app_name))

    # ---------------------------------------------------------------- quarantine

    async def _quarantined(
        self,
        io: IO,
        *,
        user_id: str | None = None,
        app_name: str = "default",
        scope: Literal["user", "app"] = "user",
    ) -> list[Quarantined]:
        """What the guard held back of a user's memories, with the reasons, in order of arrival.

        Nothing of it is recalled, injected, compared or shown to a model. `scope="app"`: of application facts.
        """
        owner = arguments.owner(user_id, app_name, scope)
        items = await retrieval.items_under(io, owner.root, {"status": "quarantined"})
        records = [MemoryRecord.model_validate(i.value) for i in items if i.namespace[-1] == "facts"]
        return [quarantine.quarantined(r) for r in sorted(records, key=lambda r: (r.seq, r.memory_id))]

    async def _release(
        self,
        io: IO,
        memory_id: str,
        *,
        user_id: str | None = None,
        app_name: str = "default",
        scope: Literal["user", "app"] = "user",
    ) -> Operation:
        """Let a memory out of quarantine: it is consolidated like the original statement, with its source and trust.

        The operation says what became of it; the quarantined record is gone then. NOOP, and it stays, while the user
        has paused or if it is never to be remembered. MemoryNotFound for an id that is not the user's; InvalidInput if
        it is not in quarantine.
        """
        _, record = await self._require(io, memory_id, arguments.owner(user_id, app_name, scope))
        operation = await quarantine.release(io, record, self._rules)
        await self._keep_up(io)
        return operation

    async def _reject(
        self,
        io: IO,
        memory_id: str,
        *,
        user_id: str | None = None,
        app_name: str = "default",
        scope: Literal["user", "app"] = "user",
    ) -> None:
        """Erase a memory that is in quarantine, with its words in the turn that it came from.

        MemoryNotFound for an id that is not the user's; InvalidInput if it is not in quarantine; OnHold if nothing may
        be erased.
        """
        _, record = await self._require(io, memory_id, arguments.owner(user_id, app_name, scope))
        quarantine.quarantined(record)
        await self._delete(io, memory_id, user_id=user_id, app_name=app_name, scope=scope)

    # ---------------------------------------------------------------- what the user, or the law, wants

    async def _hold(self, io: IO, user_id: str, reason: str, *, app_name: str = "default") -> Settings:
        """Put the user's data under a legal hold: until `lift_hold`, erasing raises OnHold with the reason."""
        why = texts.content(reason, what="reason")
        return await consent.change_settings(io, Reader(user_id, app_name), lambda s: s.change(hold=why))

    async def _lift_hold(self, io: IO, user_id: str, *, app_name: str = "default") -> Settings:
        """End a legal hold; harmless without one."""
        return await consent.change_settings(io, Reader(user_id, app_name), lambda s: s.change(hold=None))

    async def _pause(self, io: IO, user_id: str, *, app_name: str = "default") -> Settings:
        """From now on nothing is learnt from the user or recalled, also in runs that have begun; see `resume`.

        What is queued stays queued. Memories can still be looked at, corrected and deleted.
        """
        return await consent.change_settings(io, Reader(user_id, app_name), lambda s: s.change(paused=True))

    async def _resume(self, io: IO, user_id: str, *, app_name: str = "default") -> Settings:
        """Learn and recall again."""
        return await consent.change_settings(io, Reader(user_id, app_name), lambda s: s.change(paused=False))

    async def _forbid(
        self,
        io: IO,
        *,
        user_id: str,
        memory_id: str | None = None,
        topic: str | None = None,
        app_name: str = "default",
    ) -> Settings:
        """ "Don't remember this": erase a memory, or all on a topic, and never learn it again.

        A fact is recognised by a salted hash of what it is about and says, and of its words; its text is not kept.
        `allow` takes it back. MemoryNotFound for an id that is not the user's; OnHold if nothing may be erased.
        """
        reader = Reader(user_id, app_name)
        if (memory_id is None) == (topic is None):
            raise InvalidInput(f"name either memory_id or topic, got memory_id={memory_id!r}, topic={topic!r}")
        if memory_id is not None:
            _, record = await self._require(io, memory_id, reader)
            settings = await consent.change_settings(io, reader, lambda s: s.forbidding(record), erasing=True)
            ids = [memory_id]
        else:
            name = self._rules.topics.get(str(topic)).name
            settings = await consent.change_settings(
                io, reader, lambda s: s.change(topics=tuple(dict.fromkeys((*s.topics, name)))), erasing=True
            )
            ids = [
                r.memory_id
                for r in await self._get_all(io, user_id=user_id, status="all", topic=name, app_name=app_name)
            ]
        if ids:
            await self._delete(io, ids, user_id=user_id, app_name=app_name)
        return settings

    async def _allow(self, io: IO, *, user_id: str, topic: str | None = None, app_name: str = "default") -> Settings:
        """Let a topic be learnt again; without one, everything that was forbidden."""

        def allowed(settings: Settings) -> Settings:
            if topic is None:
                return settings.change(topics=(), facts=(), salt="")
            return settings.change(topics=tuple(t for t in settings.topics if t != topic))

        return await consent.change_settings(io, Reader(user_id, app_name), allowed)

    async def _settings(self, io: IO, *, user_id: str, app_name: str = "default") -> Settings:
        """Whether the user has paused, is under a legal hold, and what is not to be remembered."""
        return await consent.settings_of(io, Reader(user_id, app_name))

    # ---------------------------------------------------------------- taking it along

    async def _export(self, io: IO, *, user_id: str, app_name: str = "default") -> Export:
        """Everything that is stored under the user's name: `save(path)` writes it as JSON Lines, a manifest first.

        Facts of every scope and status with their history, turns (queued ones too), summaries, receipts and settings,
        as of one moment. Not in it: what belongs to the application, and the checkpointer's threads.
        """
        return await moving.export(io, Reader(user_id, app_name), self._rules.clock())

    async def _import_(
        self,
        io: IO,
        source: Export | str | os.PathLike[str] | Iterable[str],
        *,
        user_id: str | None = None,
        app_name: str | None = None,
        progress: Progress | None = None,
        dry_run: bool = False,
    ) -> Imported:
        """Restore an export (its file, its lines, or itself) as it was: ids, order, times, links, history.

        `user_id`, `app_name`: whose it becomes (default: whose it was). All in one commit; doing it twice changes
        nothing. InvalidInput, and nothing written, if it is damaged, from a newer version, on a topic without consent,
        or if the user has other data here. `progress(done, total)`.
        """
        manifest, items = unpack(source.lines if isinstance(source, Export) else await lines_of(io, source))
        target = Reader(manifest.user_id if user_id is None else user_id, app_name or manifest.app_name)
        rules = self._rules
        return await moving.restore(io, manifest, items, target, rules.topics, rules.clock(), progress, dry_run)

    async def _import_mem0(
        self,
        io: IO,
        memories: Any,
        *,
        history: str | os.PathLike[str] | None = None,
        user_id: str | None = None,
        app_name: str = "default",
        progress: Progress | None = None,
        dry_run: bool = False,
    ) -> Imported:
        """Take over what mem0's `get_all` returned, or the JSON file it is in; each memory goes to its own user.

        `history`: mem0's history database, for earlier texts. `user_id`: the owner of memories that name none; those
        of others are then left out. All are read and checked first (InvalidInput); then each is consolidated as
        `user_implicit`, so one that is interrupted can be done again. The report says what was left out, and why.
        """
        return await import_mem0(
            io,
            memories,
            history,
            user_id=user_id,
            app_name=app_name,
            rules=self._rules,
            progress=progress,
            dry_run=dry_run,
        )

    async def _import_items(
        self,
        io: IO,
        store: BaseStore,
        namespace: tuple[str, ...],
        *,
        user_id: str,
        source_id: str | None = None,
        source_type: SourceType = "user_implicit",
        app_name: str = "default",
        progress: Progress | None = None,
        dry_run: bool = False,
    ) -> Imported:
        """Take over the items below a namespace of a LangGraph store as facts about the user; see `import_mem0`.

        An item's text is langmem's `{"kind": …, "content": {"content": …}}`, or its field `content`, `memory`, `data`
        or `text`. `source_id`: what `forget_source` is given (default: the namespace, joined by "/").
        """
        return await import_items(
            io,
            store,
            namespace,
            user_id=user_id,
            source_id=source_id,
            source_type=source_type,
            app_name=app_name,
            rules=self._rules,
            progress=progress,
            dry_run=dry_run,
        )

    async def _import_lines(
        self,
        io: IO,
        source: str | os.PathLike[str] | Iterable[str],
        *,
        user_id: str,
        source_id: str,
        source_type: SourceType = "user_implicit",
        app_name: str = "default",
        progress: Progress | None = None,
        dry_run: bool = False,
    ) -> Imported:
        """Take over plain text, one fact a line (a file's name, or the lines), as facts about the user.

        `source_id`: what `forget_source` is given. See `import_mem0`.
        """
        return await import_lines(
            io,
            source,
            user_id=user_id,
            source_id=source_id,
            source_type=source_type,
            app_name=app_name,
            rules=self._rules,
            progress=progress,
            dry_run=dry_run,
        )

    # ---------------------------------------------------------------- upkeep

    async def _maintain(
        self,
        io: IO,
        user_id: str | None = None,
        *,
        app_name: str = "default",
        retention_days: float | None = None,
        floor: float = maintenance.FLOOR,
        alert_at: int = maintenance.ALERT_AT,
        progress: Callable[[int, int], None] | None = None,
    ) -> Maintenance:
        """Keep memories up: what was done, by record, and why. Of one user, or (None) of all of an application.

        Memories that expired `retention_days` ago (default: the Memory's) or whose decayed confidence is below `floor`
        are erased, but never what a person or a system of record said on a sensitive topic; near-identical ones become
        one; inferred ones give way to newer explicit ones; what a crash left half done is completed, erasures too;
        the texts of turns go that no memory needs. Event "size" when an owner passes `alert_at` records, once until
        there were fewer again. With all users a `SqliteCheckpointer` is maintained too. Safe beside live traffic, and
        again after an interruption. `progress(done, total)` counts owners. Under a legal hold nothing is deleted.
        Conflict if other writers won fifty times; with all users that one is named in `failed`, and the others go on.
        """
        retention = self._retention if retention_days is None else arguments.days(retention_days, "retention_days")
        limits = maintenance.Limits(retention, arguments.number(floor, "floor"), arguments.count(alert_at, "alert_at"))
        alone = user_id is not None
        readers = [Reader(user_id, app_name)] if user_id is not None else await maintenance.owners(io, app_name)
        report = Maintenance(at=self._rules.clock(), owners=len(readers))
        for done, reader in enumerate(readers):
            if progress is not None:
                progress(done, len(readers))
            try:
                report = maintenance.with_owner(report, reader, await self._kept_up(io, reader, limits))
            except (MemoryAdapterError, ValidationError) as error:
                if alone:
                    raise
                self.report("maintenance_failed", user_id=reader.user_id, error=type(error).__name__)
                report = report.change(failed={**report.failed, reader.user_id: type(error).__name__})
        if progress is not None:
            progress(len(readers), len(readers))
        if self._checkpoints is not None and not alone:
            removed = await io.ask(self._checkpoints, None)
            report = report.change(checkpoints=removed.threads + removed.checkpoints)
        return report

    async def _kept_up(self, io: IO, reader: Reader, limits: maintenance.Limits) -> maintenance.Kept:
        # In a thread, if there is an event loop: all of an owner's records are compared.
        keep_up: Ask[Reader, maintenance.Kept] = Ask(
            lambda r: run(maintenance.keep_up(self.io, r, self._rules, limits, self._threads))
        )
        kept = await io.ask(keep_up, reader)
        if kept.pending:
            self.report("erasure_pending", user_id=reader.user_id)
        if any(u.action == "alert" for u in kept.done):
            self.report("size", user_id=reader.user_id, records=kept.size, alert_at=limits.alert_at)
        return kept

    def _count_written(self, owner: Reader, version: int, count: int) -> None:
        """Note that an owner's upkeep is due: its records' version, which counts what is written, passed a multiple."""
        if self._every is not None:
            # All of an owner's records are read: of thousands the less often, so that a turn's share stays the same.
            every = self._every << (version // (20 * self._every)).bit_length()
            if (version + count) // every > version // every:
                self._due.add(owner)

    async def _keep_up(self, io: IO) -> None:
        """The upkeep that is due; a failure is told, and does not concern the turn that it came after."""
        while self._due:
            reader = self._due.pop()
            limits = maintenance.Limits(self._retention, maintenance.FLOOR, maintenance.ALERT_AT)
            try:
                kept = await self._kept_up(io, reader, limits)
            except Exception as error:  # noqa: BLE001 - see above
                self.report("maintenance_failed", user_id=reader.user_id, error=type(error).__name__)
            else:
                self._tell("maintained", {"user_id": reader.user_id, "done": kept.done})

    # ---------------------------------------------------------------- around a turn (nodes, middleware, your own loop)

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
        speaker = Reader(user_id, app_name, session_id, agent_id)
        spoken = self._latest(coerce(messages), speaker, arguments.source_kind(source_type))
        if not spoken:
            return None
        if hear:
            await self._hear(io, spoken)
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
        only_queue: bool = False,
    ) -> list[Operation]:
        """Learn from the last human message of a thread, and what followed it; call it after the model answered.

        `backfill`: from all human messages, for a thread that is older than its memory. `heard`: `recall` queued the
        message, so that one which is in the queue no more was erased since, and is not learnt. `only_queue`: learn at
        the user's next turn.
        """
        speaker = Reader(user_id, app_name, session_id, agent_id)
        spoken = self._latest(coerce(messages), speaker, arguments.source_kind(source_type), backfill=backfill)
        if only_queue:
            await self._heard(io, spoken)
            return []
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
        Written by the model, if there is one (ModelFailed if it gives none), else from what the session taught and what
        was said last. What was erased is not in it; if all was, nothing is stored. `get_summary` gives it; no other
        session sees it.
        """
        return await self._summarised(io, Reader(user_id, app_name, session_id), coerce(messages))

    async def _get_summary(
        self, io: IO, *, user_id: str, session_id: str, app_name: str = "default"
    ) -> MemoryRecord | None:
        """The summary of a session (kind "summary"); None before `end_session`."""
        return await sessions.summary_of(io, Reader(user_id, app_name, session_id))

    # ---------------------------------------------------------------- the queue

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
        whose owner has paused, or that were queued after `close`.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            rest = None if end is None else max(0.0, end - time.monotonic())
            if self._worker is not None and not self._worker.drain(rest):
                return False
            left = [t for owner in list(self._unfinished) for t in self._left(owner)]
            if not left:
                return True
            elsewhere = all(t.leased_to is not None and t.leased_until > self._rules.clock() for t in left)  # type: ignore[operator]
            if not elsewhere or rest == 0:
                return False
            time.sleep(0.02 if rest is None else min(0.02, rest))

    async def adrain(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - `drain` with an a
        """`drain`, without blocking the event loop."""
        return await asyncio.to_thread(self.drain, timeout)

    def usage(self) -> dict[str, Usage]:
        """What chat models cost in this process, by user id."""
        with self._lock:
            return dict(self._usage)

    add, aadd = _twins(_add)
    add_fact, aadd_fact = _twins(_add_fact)
    update, aupdate = _twins(_update)
    search, asearch = _twins(_search)
    get, aget = _twins(_get)
    get_all, aget_all = _twins(_get_all)
    history, ahistory = _twins(_history)
    why, awhy = _twins(_why)
    review, areview = _twins(_review)
    delete, adelete = _twins(_delete)
    delete_all, adelete_all = _twins(_delete_all)
    forget_source, aforget_source = _twins(_forget_source)
    receipts, areceipts = _twins(_receipts)
    quarantined, aquarantined = _twins(_quarantined)
    release, arelease = _twins(_release)
    reject, areject = _twins(_reject)
    hold, ahold = _twins(_hold)
    lift_hold, alift_hold = _twins(_lift_hold)
    pause, apause = _twins(_pause)
    resume, aresume = _twins(_resume)
    forbid, aforbid = _twins(_forbid)
    allow, aallow = _twins(_allow)
    settings, asettings = _twins(_settings)
    export, aexport = _twins(_export)
    import_, aimport_ = _twins(_import_)
    import_mem0, aimport_mem0 = _twins(_import_mem0)
    import_items, aimport_items = _twins(_import_items)
    import_lines, aimport_lines = _twins(_import_lines)

    maintain, amaintain = _twins(_maintain)
    recall, arecall = _twins(_recall)
    recall_block, arecall_block = _twins(_recall_block)
    remember, aremember = _twins(_remember)
    end_session, aend_session = _twins(_end_session)
    get_summary, aget_summary = _twins(_get_summary)
    pending, apending = _twins(_pending)
    retry, aretry = _twins(_retry)

    # ---------------------------------------------------------------- the store

    def guarantees(self) -> Guarantees:
        """Which promises hold on the store in use."""
        return self._base.guarantees

    def close(self) -> None:
        """Stop the background thread and close the store, if this Memory opened it; harmless twice.

        What is queued stays queued, and is learnt by the next Memory on this store.
        """
        if self._worker is not None:
            self._worker.close()
            with contextlib.suppress(StoreError):  # then the leases end by themselves
                run(learning.release(self.io, self._learner))
        if self._owns_store:
            self.store.close()  # type: ignore[attr-defined]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    @property
    def key(self) -> str:
        """A name of this memory's data that is the same in every process that opens it."""
        return self._base.store_id

    def last_said(self, messages: Sequence[BaseMessage], **ids: Any) -> str | None:
        """The id of the last message that the user typed; None if there is none. For the ids see `recall`."""
        reader = Reader(ids["user_id"], ids["app_name"], ids["session_id"], ids["agent_id"])
        spoken = self._latest(coerce(messages), reader)
        return spoken[-1].messages[0].id if spoken else None

    def report(self, event: str, **data: Any) -> None:
        """Log what went wrong (names and ids, never a memory's text) and tell `on_event`."""
        logger.warning("%s %s", event, data)
        self._tell(event, data)

    def _erased(self, receipt: Receipt) -> Receipt:
        for place in receipt.places:
            if place.state == "pending":  # an erasure that is not finished must be loud
                self.report("erasure_pending", place=place.name, note=place.note, receipt_id=receipt.receipt_id)
        self._tell("erased", {"receipt": receipt})
        return receipt

    def _tell(self, event: str, data: dict[str, Any]) -> None:
        if self._on_event is None:
            return
        try:
            self._on_event(event, data)
        except Exception:  # what a listener does wrong must not undo what was done
            logger.exception("on_event failed for %s", event)

    # ---------------------------------------------------------------- inside

    async def _in_time(self, io: IO, step: Callable[[IO], Coroutine[Any, Any, T]]) -> T:
        """The result of a recall, or TimeoutError when a turn cannot wait for it any longer."""
        found = await io.bounded(step, self._deadline if self._warm else max(self._deadline, WARMING_UP))
        self._warm = True
        return found

    async def _learn_in_time(self, io: IO, step: Callable[[IO], Coroutine[Any, Any, T]], *, late: bool) -> T:
        """The result of learning; what takes too long goes on without the turn, which gets a TimeoutError.

        A model may take its time where the caller wants to wait for it. `late`: the store was too slow before.
        """
        if late:
            return await io.bounded(step, self._deadline)
        return await (step(io) if self._asks_a_model else io.bounded(step, LEARNING_DEADLINE))

    def _latest(
        self,
        messages: Sequence[BaseMessage],
        speaker: Reader,
        source_type: SourceType | None = None,
        *,
        backfill: bool = False,
    ) -> list[Turn]:
        """The turns of the human messages since the last answer (all, with `backfill`)."""
        return turns_of(
            messages,
            speaker,
            at=self._rules.clock(),
            people=self._people,
            tools=self._tools,
            source_type=source_type,
            start=0 if backfill else last_said(messages),
            redact=self._guard.redact,
        )

    async def _heard(self, io: IO, spoken: Sequence[Turn]) -> list[Reader]:
        """Queue turns that are to be learnt later; whose they are."""
        owners = self._owners(spoken)
        await turnqueue.hear(io, spoken)
        if self._worker is not None:
            for owner in owners:
                self._worker.ask(owner, max(self._debounce, INTERRUPTED), again=False)
        return owners

    async def _hear(self, io: IO, spoken: Sequence[Turn]) -> None:
        """Queue turns before the user's model runs, and learn what interrupted ones left."""
        owners = await self._heard(io, spoken)
        if self._worker is None and self._learner.quick:  # a model is not asked while the user's own waits
            now = {t.turn_id for t in spoken}
            for owner in owners:
                await learning.catch_up(io, owner, self._learner, wanted=lambda t: t.turn_id not in now)

    async def _learn(self, io: IO, spoken: Sequence[Turn], *, heard: bool = False) -> list[Operation]:
        """Learn from turns now, or leave them to the worker."""
        owners = self._owners(spoken)
        if self._worker is None:
            operations = await learning.learn_all(io, spoken, self._learner, heard=heard)
            self._unfinished.difference_update(owners)
            await self._keep_up(io)
            return operations
        for owner in owners:  # before the turn can be found: the worker's first look round must not be earlier
            self._worker.ask(owner, self._debounce)
        await turnqueue.hear(io, spoken, known=heard)
        for owner in self._owners(spoken):
            self._worker.ask(owner, self._debounce)
        return []

    def _owners(self, spoken: Sequence[Turn]) -> list[Reader]:
        found = list(dict.fromkeys(Reader(t.user_id or "", t.app_name) for t in spoken))
        self._unfinished.update(found)
        return found

    def _left(self, owner: Reader) -> list[Turn]:
        """What is in an owner's queue."""
        left = run(turnqueue.queued(self.io, owner))
        if not left:
            self._unfinished.discard(owner)
        return left

    async def _silent_for(self, io: IO, user_id: str, app_name: str, session_id: str) -> timedelta:
        """How long ago the user last spoke in a session; zero if never, and while nothing is to be kept."""
        speaker = Reader(user_id, app_name)
        if (await consent.settings_of(io, speaker)).paused:
            return timedelta(0)
        items = await retrieval.items_under(
            io, namespace("turns", app_name=app_name, user_id=speaker.user_id), {"session_id": session_id}
        )
        spoken = [Turn.model_validate(i.value).at for i in items]
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
            redact=self._guard.redact,
        )

    async def _fell_silent(self, io: IO, messages: Sequence[BaseMessage], speaker: Reader) -> None:
        """Summarise a session that its user has come back to; by the worker, where a model would hold up the turn."""
        if self._worker is None or self._author is None:
            await self._summarised(io, speaker, messages)
        else:
            self._worker.ask(_Ended(speaker, tuple(messages)))

    def _work(self, job: "Reader | _Ended | None") -> None:
        """One job of the worker: an owner's queue, a session to be summarised, or (None) everybody's queue."""
        if not isinstance(job, _Ended):
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
            pause = turnqueue.next_try(self._left(owner), self._rules.clock())
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

    async def _require(self, io: IO, memory_id: str, reader: Reader) -> tuple[tuple[str, ...], MemoryRecord]:
        found = await retrieval.find(io, reader, memory_id)
        if found is None:
            raise MemoryNotFound(f"no memory {memory_id!r} for user {reader.user_id!r}")
        return found


def _embeddings(embeddings: Embeddings | str | None) -> Embeddings:
    return HashEmbeddings() if embeddings is None else ensure_embeddings(embeddings)


def _open(path: str | os.PathLike[str], embed: Embeddings) -> SqliteMemoryStore:
    dims = getattr(embed, "dims", None) or len(embed.embed_query("dimensions"))
    return SqliteMemoryStore(os.fspath(path), index={"dims": int(dims), "embed": embed, "fields": ["content"]})
