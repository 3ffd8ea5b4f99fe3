"""`Memory`: the only place where the steps meet. extract → consolidate → store → retrieve → inject.

Its methods are in `methods/`, one file an idea. Each has an async twin with an `a` prefix and the same arguments; both
run one step (see `ports`).
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Literal, Protocol, Self

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore, ensure_embeddings

from langmem_adapter import arguments, injection, learning, receipts, sessions
from langmem_adapter.answers import chat_model
from langmem_adapter.backlog import Backlog
from langmem_adapter.consolidation.judge import ModelJudge
from langmem_adapter.consolidation.rules import KeepTurns, Rules
from langmem_adapter.embeddings import HashEmbeddings
from langmem_adapter.errors import InvalidInput, StoreError
from langmem_adapter.extraction.model import ModelExtractor
from langmem_adapter.extraction.rules import RuleExtractor
from langmem_adapter.guard import Guard
from langmem_adapter.learning import Learner
from langmem_adapter.methods.moving import Moving
from langmem_adapter.methods.queue import Ended
from langmem_adapter.methods.teaching import Teaching
from langmem_adapter.methods.turns import LOCAL_DEADLINE, REMOTE_DEADLINE, Turns
from langmem_adapter.methods.wishes import Wishes
from langmem_adapter.namespaces import Reader
from langmem_adapter.ports import IO, Ask, AsyncPort, SyncPort, run
from langmem_adapter.records import Extraction, Turn, Usage
from langmem_adapter.scoring import Weights
from langmem_adapter.stores.base import Guarantees, MemoryStore
from langmem_adapter.stores.foreign import ForeignStore
from langmem_adapter.stores.sqlite import SqliteMemoryStore
from langmem_adapter.stores.workers import close_apart
from langmem_adapter.topics import DEFAULT_TOPICS, Topic, Topics
from langmem_adapter.trust import TrustPolicy
from langmem_adapter.worker import Worker

CLOSING = 2.0
"""Seconds that `close` waits for a store to take the turns that it could not take before."""


class Extractor(Protocol):
    """Proposes facts. An `aextract` with the same arguments is used by the async methods, if there is one."""

    def extract(self, turn: Turn) -> Extraction:
        """The candidates of one turn; none is a normal answer."""


class Memory(Teaching, Turns, Wishes, Moving):
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
    reasons) and let out ("released"), what went wrong ("recall_failed", "remember_failed") and what models cost
    ("model_call"). `clock` returns the current time, UTC-aware.
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
        # All that can be wrong is found before the store is opened.
        if embeddings is not None and not isinstance(embeddings, str | Embeddings) and not callable(embeddings):
            raise InvalidInput(
                f"embeddings must be LangChain Embeddings or a 'provider:model' string, got {embeddings!r:.80}"
            )
        if isinstance(embeddings, str) and not embeddings.strip():
            raise InvalidInput(f"embeddings are empty ({embeddings!r:.80}); name a 'provider:model', or leave them out")
        arguments.able(extractor, "extract", "extractor", "an object with extract(turn)")
        arguments.able(judge, "judge", "judge", "a ModelJudge, or an object with its judge(io, cases)")
        arguments.able(
            checkpointer, "delete_thread", "checkpointer", "a LangGraph checkpointer (BaseCheckpointSaver), opened"
        )
        arguments.instance(policy, TrustPolicy, "policy", "a TrustPolicy()")
        arguments.instance(guard, Guard, "guard", "a Guard(rules=…, secrets=…)")
        arguments.function(on_event, "on_event", "a function of (name, data)")
        if not callable(clock):
            raise InvalidInput(f"clock must be a function that returns the time, UTC-aware, got {clock!r:.80}")
        self._weights = arguments.weights(weights) or Weights()
        self._people = arguments.people(people)
        self._tools = frozenset(arguments.strings(tool_sources, "tool_sources"))
        registered = Topics(topics)
        self._author = None if model is None else sessions.writer(chat_model(model))
        if keep_turns not in ("text", "excerpts", "nothing"):
            raise InvalidInput(f"keep_turns must be 'text', 'excerpts' or 'nothing', got {keep_turns!r}")
        if recall_deadline is not None and not arguments.number(recall_deadline, "recall_deadline") > 0:
            raise InvalidInput(f"recall_deadline must be seconds above 0, got {recall_deadline!r}")
        self._every = None if maintain_every is None else arguments.count(maintain_every, "maintain_every")
        self._retention = arguments.days(retention_days, "retention_days")
        if inject_as not in ("system", "user"):
            raise InvalidInput(f"inject_as must be 'system' or 'user', got {inject_as!r}")
        if when not in ("inline", "background"):
            raise InvalidInput(f"when must be 'inline' or 'background', got {when!r}")
        if arguments.number(debounce_seconds, "debounce_seconds") < 0:
            raise InvalidInput(f"debounce_seconds must be a number of seconds, 0 or more, got {debounce_seconds!r}")
        self._owns_store = not isinstance(store, BaseStore)
        embed = _embeddings(embeddings)
        self.store: BaseStore = store if isinstance(store, BaseStore) else _open(store, embed)
        base = self.store if isinstance(self.store, MemoryStore) else ForeignStore(self.store, embed)
        self._base = base
        self.io: IO = SyncPort(base, time.sleep)
        self.aio: IO = AsyncPort(base)
        self._usage: dict[str, Usage] = {}
        self._lock = threading.Lock()
        self._unfinished: dict[Reader, dict[str, object]] = {}  # turns that may be queued, each with a mark
        self._on_event = on_event
        if model is not None:
            extractor = extractor or ModelExtractor(model, topics=registered)
            judge = judge or ModelJudge(model)
        chosen = extractor or RuleExtractor(self._tools)
        local = isinstance(getattr(self.store, "embeddings", None) or embed, HashEmbeddings)
        self._deadline = recall_deadline or (LOCAL_DEADLINE if local else REMOTE_DEADLINE)
        self._warm = False
        self._due: set[Reader] = set()
        self._guard = guard or Guard()
        self._rules = Rules(
            registered,
            policy or TrustPolicy(),
            _forward(clock),
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
            self.report,
            self._spend,
            self._guard,
            quick=isinstance(chosen, RuleExtractor) and judge is None,
        )
        self._asks_a_model = not self._learner.quick and when == "inline"
        self.inject_as = inject_as
        self._debounce = debounce_seconds
        self._worker: Worker[Reader | Ended | None] | None = None
        if when == "background":
            self._worker = Worker(self._work, name="langmem_adapter")
        self._backlog = Backlog(self._take, self._learn_taken, lambda count: self.report("turns_lost", count=count))
        self._threads = None if checkpointer is None else receipts.checkpoints_of(checkpointer)
        self._checkpoints: Ask[None, Any] | None = None
        keeper: Any = checkpointer
        if hasattr(keeper, "maintain"):  # a SqliteCheckpointer
            self._checkpoints = Ask(lambda _: keeper.maintain(), lambda _: keeper.amaintain())
        if self._owns_store:
            self._go_on()
        if self._worker is not None:  # last: its thread uses all of the above
            self._worker.ask(None)  # what an earlier process left

    def _go_on(self) -> None:
        """Complete the erasures that a crash interrupted."""
        try:
            for reader in run(receipts.open_owners(self.io)):
                run(receipts.complete(self.io, reader, self._threads))
        except StoreError as error:  # the file may be readable only; whoever asks for the receipt is told
            self.report("erasure_pending", error=type(error).__name__)

    def guarantees(self) -> Guarantees:
        """Which promises hold on the store in use."""
        return self._base.guarantees

    def close(self) -> None:
        """Finish the jobs at hand, stop the background threads and close the store, if this Memory opened it.

        What is queued stays queued, and is learnt by the next Memory on this store. Harmless twice; afterwards a store
        that was closed raises StoreClosed. On an event loop `await aclose()` instead.
        """
        self._backlog.close(CLOSING)
        if self._worker is not None:
            self._worker.close()
        with contextlib.suppress(StoreError):  # then the leases end by themselves
            run(learning.release(self.io, self._learner))
        if self._owns_store:
            self.store.close()  # type: ignore[attr-defined]

    async def aclose(self) -> None:
        """`close` without blocking the event loop. What is awaited of the store meanwhile is finished first."""
        await close_apart(self.close)

    def __enter__(self) -> Self:
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.aclose()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def _forward(clock: Callable[[], datetime]) -> Callable[[], datetime]:
    """The clock, going on from where it was when it steps back: what has expired does not come to life again."""
    lock = threading.Lock()
    latest = datetime.min.replace(tzinfo=UTC)
    ahead = timedelta(0)

    def now() -> datetime:
        nonlocal latest, ahead
        with lock:
            read = clock()
            if not isinstance(read, datetime) or read.tzinfo is None:
                raise InvalidInput(f"clock must return a time with its zone, got {read!r:.80}; e.g. datetime.now(UTC)")
            at = read + ahead
            if at < latest:
                ahead += latest - at
            latest = max(latest, at)
            return latest

    return now


def _embeddings(embeddings: Embeddings | str | None) -> Embeddings:
    return HashEmbeddings() if embeddings is None else ensure_embeddings(embeddings)


def _open(path: str | os.PathLike[str], embed: Embeddings) -> SqliteMemoryStore:
    dims = getattr(embed, "dims", None) or len(embed.embed_query("dimensions"))
    return SqliteMemoryStore(os.fspath(path), index={"dims": int(dims), "embed": embed, "fields": ["content"]})
