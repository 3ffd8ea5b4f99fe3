"""Reading: search, single memories, why they are believed, and the block for the prompt."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import numpy as np
from langchain_core.messages import SystemMessage

from langmem_adapter import arguments, auditing, injection, retrieval
from langmem_adapter import text as texts
from langmem_adapter.errors import InvalidInput
from langmem_adapter.methods.base import Base, twins
from langmem_adapter.namespaces import Reader
from langmem_adapter.paging import items_under
from langmem_adapter.ports import IO
from langmem_adapter.records import Block, Explanation, HistoryEntry, MemoryRecord, Recalled, Review, Scope, Status
from langmem_adapter.scoring import STATUSES, Columns, Weights, Where, as_parts
from langmem_adapter.stores.base import Mode, RankOp


class Reading(Base):
    """`search`, `get`, `get_all`, `history`, `why`, `review`, `block`, `inject`."""

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
        "vector", or "text". `as_of`: what was believed then; `valid_at`: what was true then. Without `valid_at` nobody
        asks when a fact holds: also one whose `valid_to` has passed, or whose `valid_from` is to come, is found until
        it expires or is replaced. "" ranks by recency and importance alone.
        """
        if not isinstance(query, str):
            raise InvalidInput(f"query must be a str, got {type(query).__name__}: {query!r:.80}")
        if mode not in ("hybrid", "vector", "text"):
            raise InvalidInput(f"mode must be 'hybrid', 'vector' or 'text', got {mode!r}")
        now = self._rules.clock()
        spoken = self._guard.redact(texts.clean(query[: retrieval.MAX_QUERY], what="query")).strip()
        reader = Reader(user_id, app_name, session_id, agent_id)
        named = None if scopes is None else arguments.strings(scopes, "scopes")
        op = RankOp(
            reader.facts(named),  # type: ignore[arg-type]  # it complains of others
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
            arguments.count(k, "k", least=0),
            arguments.number(floor, "floor"),
            mode,
        )
        return await retrieval.search(io, reader, op)

    async def _get(self, io: IO, memory_id: str, *, user_id: str, app_name: str = "default") -> MemoryRecord | None:
        """The user's (or the application's) memory of this id, whatever its status; None if there is none."""
        found = await self._found(io, memory_id, Reader(user_id, app_name))
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
        """All of the user's memories of this status in the order they were learnt.

        "all": everything that is stored, of any status, with what has expired and is not erased yet.
        """
        now = self._rules.clock()
        if status not in (*STATUSES, "all"):
            raise InvalidInput(f"status must be one of {', '.join(STATUSES)} or 'all', got {status!r}")
        wanted: dict[str, object] = {} if status == "all" else {"status": status}
        items = await items_under(io, Reader(user_id, app_name).root, wanted or None)
        records = [MemoryRecord.stored(i) for i in items if i.namespace[-1] == "facts"]
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
        least = arguments.share(min_confidence, "min_confidence")
        records = await self._get_all(io, user_id=user_id, app_name=app_name)
        return auditing.reviewed(records, self._rules.clock(), least)

    def block(
        self,
        hits: Sequence[Recalled],
        *,
        max_records: int = injection.MAX_RECORDS,
        max_tokens: int = injection.MAX_TOKENS,
    ) -> Block:
        """The `<MEMORIES>` block of these hits: text, tokens (approximate), and the ids that found room."""
        arguments.count(max_records, "max_records", least=0)
        arguments.count(max_tokens, "max_tokens", least=0)
        return injection.block(arguments.hits(hits), max_records=max_records, max_tokens=max_tokens)

    def inject(self, system: str, hits: Sequence[Recalled]) -> str:
        """The system prompt with the block of these hits behind it; unchanged without hits."""
        if not isinstance(system, str):
            raise InvalidInput(f"system must be a str, got {type(system).__name__}; see inject_message")
        return injection.into_text(system, self.block(hits))

    def inject_message(self, system: SystemMessage | None, hits: Sequence[Recalled]) -> SystemMessage | None:
        """The system message with the block behind its text, or as one more content block; cache marks stay."""
        arguments.instance(system, SystemMessage, "system", "a SystemMessage or None")
        return injection.into_message(system, self.block(hits))

    search, asearch = twins(_search)
    get, aget = twins(_get)
    get_all, aget_all = twins(_get_all)
    history, ahistory = twins(_history)
    why, awhy = twins(_why)
    review, areview = twins(_review)
