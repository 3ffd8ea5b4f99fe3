"""The records that flow through the package: extract → consolidate → store → retrieve → inject.

All are frozen pydantic models: a step takes records and returns new ones. Times are UTC-aware `datetime`s;
confidences and importances are in [0, 1]; durations are in days.
"""

from collections import Counter
from collections.abc import Collection
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Annotated, Any, Literal, Self

from langgraph.store.base import Item
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from langmem_adapter.errors import StoreCorrupt

SourceType = Literal["bootstrapped", "user_explicit", "user_implicit", "tool_output"]
Scope = Literal["user", "session", "agent", "team", "app"]
Status = Literal["active", "contested", "quarantined", "superseded", "retracted"]
Action = Literal["CREATE", "UPDATE", "MERGE", "NOOP", "CONTEST", "RETRACT", "QUARANTINE", "DELETE"]
Verdict = Literal["duplicate", "merge", "contradict", "new", "retract"]
Band = Literal["high", "medium", "low"]


def _utc(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError(f"a time needs a time zone, got {value!r}; use datetime.now(timezone.utc)")
    return value.astimezone(UTC)


Utc = Annotated[datetime, AfterValidator(_utc)]
Unit = Annotated[float, Field(ge=0.0, le=1.0)]


class Frozen(BaseModel):
    """Base of all records: immutable, and strict about unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def change(self, **fields: Any) -> Self:
        """A copy with these fields replaced (not validated again: the values come from our own steps)."""
        return self.model_copy(update=fields)

    @classmethod
    def stored(cls, item: Item, part: str | None = None) -> Self:
        """What a store's item (or this part of it) holds.

        StoreCorrupt, with no word of what it says, if that cannot be read or belongs to another key.
        """
        fields: set[str] = set()
        try:
            found = cls.model_validate(item.value if part is None else item.value.get(part))
        except ValidationError as error:
            fields = {str(e["loc"][0]) for e in error.errors() if e["loc"]} & set(cls.model_fields)
        else:
            named = _KEYS.get(item.namespace[-1])
            if named is None or getattr(found, named) == item.key:
                return found
            fields = {named}
        raise cls.damaged(item, fields)

    @classmethod
    def damaged(cls, item: Item, fields: Collection[str] = ()) -> StoreCorrupt:
        """The error for an item that is wrong in these fields."""
        return StoreCorrupt(
            f"the {cls.__name__} {item.key!r} in {item.namespace!r} is damaged "
            f"({', '.join(sorted(fields)) or 'unknown fields'}); it was left as it is: put it right there or delete it"
        )


_KEYS = {"facts": "memory_id", "turns": "turn_id", "receipts": "receipt_id"}
"""The field that is an item's key, by the last label of its namespace."""


class Source(Frozen):
    """One thing a record was derived from."""

    source_type: SourceType
    source_id: str
    """Thread, form, CRM record, tool name …: what `forget_source` is given."""
    at: Utc
    confidence: Unit
    """What this source asserted, before the cap of its type."""
    excerpt: str = ""
    """The words it rests on, as they stood in the message."""
    message_id: str | None = None
    seq: int = 0
    """The `seq` of the turn that said it; 0 if that is not known."""
    role: Literal["support", "lineage"] = "support"
    """`support`: asserts this very content. `lineage`: inherited from what the record replaced (the latest ten)."""


class HistoryEntry(Frozen):
    """One thing that happened to a record: ids and codes only, never another record's text."""

    at: Utc
    action: str
    """An `Action`, or EXPIRE, FLAG …"""
    reason: str
    """A reason code such as `corrected_by_person`."""
    ids: tuple[str, ...] = ()
    """The other records concerned."""
    source_id: str | None = None
    message_id: str | None = None
    """The message that caused it."""
    note: str | None = None
    """`judge_failed` where the offline rules had to stand in for a judge; of a release, why it had been held."""


class TimelineEntry(HistoryEntry):
    """One thing that happened to a fact: `Memory.history`."""

    memory_id: str
    """The record it happened to: a version of the fact, or one that became one with it."""


class MemoryRecord(Frozen):
    """One atomic fact, third person, self-contained: what was *said or reported*, not what is true."""

    memory_id: str
    seq: int
    """Monotonic per owner; order never depends on a clock."""
    content: str
    kind: str = "fact"
    user_id: str | None = None
    app_name: str = "default"
    scope: Scope = "user"
    session_id: str | None = None
    agent_id: str | None = None
    subject: str = "user"
    """Whom it is about: `user`, or a person or pet the user named."""
    topic: str = "general"
    slot: str = ""
    value: str = ""
    category: str | None = None
    importance: Unit = 0.5
    half_life_days: float = Field(default=180.0, gt=0)
    confidence: Unit
    sources: tuple[Source, ...]
    created_at: Utc
    updated_at: Utc
    confirmed_at: Utc
    valid_from: Utc | None = None
    valid_to: Utc | None = None
    expires_at: Utc | None = None
    invalidated_at: Utc | None = None
    superseded_by: str | None = None
    supersedes: tuple[str, ...] = ()
    contests: str | None = None
    contested_by: tuple[str, ...] = ()
    status: Status = "active"
    needs_regeneration: bool = False
    entities: tuple[str, ...] = ()
    purpose: str | None = None
    """What it may be used for, as its topic said, or its source, when it was learnt."""
    legal_basis: str | None = None
    history: tuple[HistoryEntry, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)

    def decayed_confidence(self, now: datetime) -> float:
        """Confidence at `now`: halved every `half_life_days` since somebody last confirmed the fact."""
        age_days = max(0.0, (now - self.confirmed_at).total_seconds() / 86_400)
        return float(self.confidence * 0.5 ** (age_days / self.half_life_days))

    def is_active(self, now: datetime) -> bool:
        """Whether it is believed at `now`: status `active` and not expired."""
        return self.status == "active" and (self.expires_at is None or self.expires_at > now)


class Candidate(Frozen):
    """What an extractor proposes: not yet a record, and not yet believed."""

    content: str
    """Third person, self-contained: "The user follows a vegetarian diet."."""
    intent: Literal["assert", "retract"] = "assert"
    """`retract`: the speaker says that it no longer holds; `value` then names what ended ("" = whatever held)."""
    topic: str = "general"
    slot: str = ""
    """What exactly it is about ("chinese food"); left empty for exclusive topics."""
    value: str = ""
    """What the slot holds ("vegetarian", "like"); equal values are the same fact."""
    replaces: str | None = None
    """The value it displaces on the topic, if the speaker named it ("switched from X to Y")."""
    kind: str = "fact"
    subject: str = "user"
    source_type: SourceType = "user_explicit"
    """What the words amount to; code may lower it, never raise it."""
    excerpt: str = ""
    message_id: str | None = None
    confidence: Unit = 1.0
    importance: Unit | None = None
    """None: the topic's."""
    valid_from: Utc | None = None
    valid_to: Utc | None = None
    expires_at: Utc | None = None
    entities: tuple[str, ...] = ()
    purpose: str | None = None
    """None: the topic's; `legal_basis` likewise."""
    legal_basis: str | None = None
    held: tuple[str, ...] = ()
    """Reasons of the guard why it must not be believed: it goes into quarantine."""


class Judgement(Frozen):
    """What a judge proposes for one candidate."""

    verdict: Verdict
    target_id: str | None = None


class Operation(Frozen):
    """What consolidation decided about one candidate.

    UPDATE: `memory_id` is the new record, `target_id` the one it replaced. CONTEST: `memory_id` is the
    challenger, `target_id` the incumbent. NOOP, MERGE and RETRACT: `memory_id` is the existing record (None if
    there was nothing to do it to). QUARANTINE: `memory_id` is the record that waits for an auditor. Kept only in an
    owner's turns: DELETE, `memory_id` was erased; MERGE with the reason `near_identical`, `target_id` became one with
    `memory_id`.
    """

    action: Action
    memory_id: str | None
    target_id: str | None = None
    content: str
    reason: str


class Message(Frozen):
    """One message of a conversation, its author already decided by code (see `extraction.origin`)."""

    id: str
    role: Literal["human", "tool", "assistant", "other"]
    """`human`: typed by the user whose turn it is. `other`: system text, summaries, other people."""
    text: str
    name: str | None = None
    """The tool's name for tool messages."""


class Turn(Frozen):
    """One human message and what came with it: what an extractor is given, and what the store keeps.

    `status`: `pending` (written, not yet extracted), `failed` (given up until `Memory.retry`) or `done`. Once learnt,
    `candidates` and `operations` hold what it led to, also while it waits to be learnt again, because its message was
    edited or a tool answered; the texts stay only if it taught something.
    """

    turn_id: str
    seq: int = 0
    """Order of arrival within the owner's turns."""
    user_id: str | None
    """None only for application-wide facts."""
    app_name: str = "default"
    scope: Scope = "user"
    session_id: str | None = None
    agent_id: str | None = None
    at: Utc
    dated: bool = False
    """Whether `at` was given by the caller: then it, not `seq`, tells what was said before what."""
    messages: tuple[Message, ...] = ()
    digest: str
    """Hash of the human text: the same id with another digest is an edit; "" once it is not to be known any more."""
    erased: bool = False
    """Whether a memory that it led to was deleted: its words are not told again."""
    anonymous: bool = False
    """Whether the message had no id of its own, so that `turn_id` is made from its text."""
    heard: int = 0
    """How many of its messages were there when it was learnt; tool messages may come later."""
    answers: tuple[tuple[str, str], ...] = ()
    """Id and hash of the tool messages that it was learnt with; the hash is "" once what was said there was erased."""
    source_type: SourceType | None = None
    """The caller's word for human messages; None: the extractor's."""
    source_id: str
    status: Literal["pending", "failed", "done"] = "pending"
    attempts: int = 0
    """How often it was tried in vain."""
    error: str | None = None
    """What went wrong the last time: the kind of error, never a message's text."""
    leased_until: Utc | None = None
    """Until when it is being learnt, or waits after a failure or for its agent; it may be taken afterwards."""
    leased_to: str | None = None
    """The claim of whoever is learning it."""
    candidates: tuple[Candidate, ...] = ()
    operations: tuple[Operation, ...] = ()
    dropped: dict[str, int] = Field(default_factory=dict)
    """Reason code → how many proposals were refused before consolidation."""
    taught: tuple[str, ...] = ()
    """Ids of the records that earlier words of this turn taught, which an edit or another answer replaces; of a done
    turn, of those of them that were released from quarantine."""
    unsaid: tuple[str, ...] = ()
    """Ids of the messages with those words."""
    applied: int = 0
    """Order of consolidation within the owner's turns; 0 until then."""
    applied_at: Utc | None = None
    note: str | None = None
    """What the history of all that it led to notes, a code."""
    judged: dict[int, Judgement] = Field(default_factory=dict)
    """What a judge proposed, by position of the candidate."""
    corrects: str | None = None
    """The record that a person corrected by this."""

    def emptied(self) -> "Turn":
        """What is left of a turn that is not to be known: its ids and time, so that delivering it teaches nothing."""
        return Turn(
            turn_id=self.turn_id,
            seq=self.seq,
            user_id=self.user_id,
            app_name=self.app_name,
            scope=self.scope,
            session_id=self.session_id,
            agent_id=self.agent_id,
            at=self.at,
            digest="",
            anonymous=self.anonymous,
            source_id=self.source_id,
            status="done",
        )

    def outlived_by(self, stored: "Turn | None") -> bool:
        """Whether the stored turn went on while this one was being learnt: erased, edited, or learnt already."""
        if stored is None:
            return self.seq != 0  # it was queued, and is gone
        if stored.digest == "" and self.digest != "":
            return True
        if stored.status == "done" and stored.digest == self.digest:
            ours = {words for _, words in (*self.answers, *self.answered())}
            return stored.knows(self) or any(words not in ours for _, words in stored.answers)
        if self.leased_to is None:
            return False
        said_since = stored.digest != self.digest or stored.answered() != self.answered()
        return stored.status == "done" or said_since

    def answered(self) -> tuple[tuple[str, str], ...]:
        """Id and hash of its tool messages, in order."""
        return tuple((m.id, _short(f"{m.name}\n{m.text}")) for m in self.messages if m.role == "tool")

    def knows(self, other: "Turn") -> bool:
        """Whether what tools say in the other turn was learnt in this one, or waits in it, or was erased."""
        if self.status == "done" and not self.answers and self.heard > 1:  # learnt before answers were kept
            return self.heard >= len(other.messages)
        said = {words for _, words in (self.answers if self.status == "done" else self.answered())}
        erased = {i for i, words in self.answers if not words}
        return all(words in said or i in erased for i, words in other.answered())


def _short(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()


class Usage(Frozen):
    """What chat models cost: calls made and tokens they reported."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def plus(self, answer: Any) -> "Usage":
        """With one more call, whose answer is this `AIMessage`."""
        told = getattr(answer, "usage_metadata", None) or {}
        return self.and_(
            Usage(
                calls=1,
                input_tokens=int(told.get("input_tokens", 0)),
                output_tokens=int(told.get("output_tokens", 0)),
            )
        )

    def and_(self, other: "Usage") -> "Usage":
        """The sum."""
        return Usage(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
        )


class Extraction(Frozen):
    """What an extractor made of one turn; no candidates is a normal answer."""

    candidates: tuple[Candidate, ...] = ()
    dropped: dict[str, int] = Field(default_factory=dict)
    usage: Usage = Usage()


class Parts(Frozen):
    """The unweighted parts of a score, each in [0, 1]; relevance is 0.0 where no query was asked."""

    relevance: float
    recency: float
    importance: float
    confidence: float
    """Decayed confidence."""


class Recalled(Frozen):
    """One search hit."""

    record: MemoryRecord
    score: float
    parts: Parts
    contested_by: tuple[MemoryRecord, ...] = ()
    """Open challengers of the record."""


class Quarantined(Frozen):
    """A record that the guard held back, until `Memory.release` or `Memory.reject`."""

    record: MemoryRecord
    reasons: tuple[str, ...]
    """Reason codes of the rules that held it (`guard.Rule.reason`)."""


class Ref(Frozen):
    """A recalled memory as graph state may hold it: where it is, never what it says."""

    memory_id: str
    scope: Scope
    band: Band


class Recollection(Frozen):
    """What was recalled for one human message, without a word of it."""

    message_id: str
    user_id: str
    """Whose memories they are: the message's author's."""
    key: str
    """`Memory.key` of the memory that recalled it."""
    heard: bool = False
    """Whether the message was queued to be learnt."""
    late: bool = False
    """Whether the store was too slow to wait for: this turn does without memories, and is only queued afterwards."""
    refs: tuple[Ref, ...] = ()


class Block(Frozen):
    """The `<MEMORIES>` block as it goes to the model; `text` is "" when there is nothing to say."""

    text: str
    tokens: int
    """By `count_tokens_approximately`."""
    memory_ids: tuple[str, ...] = ()


class Explanation(Frozen):
    """Why a memory is believed: `Memory.why`. `str()` of it reads as prose."""

    record: MemoryRecord
    sources: tuple[Source, ...]
    decisions: tuple[HistoryEntry, ...]
    replaced: tuple[MemoryRecord, ...] = ()
    replaced_by: MemoryRecord | None = None
    contested_by: tuple[MemoryRecord, ...] = ()
    contests: MemoryRecord | None = None
    parts: Parts

    def __str__(self) -> str:
        r = self.record
        lines = [f"{r.content}  [{r.status}, confidence {r.confidence:.2f}, now {self.parts.confidence:.2f}]"]
        for s in self.sources:
            role = "" if s.role == "support" else " (lineage: what it replaced rested on this)"
            said = f' "{s.excerpt}"' if s.excerpt else ""
            lines.append(f"  from {s.source_type} {s.source_id} on {s.at:%Y-%m-%d %H:%M}{said}{role}")
        lines += [f"  replaced: {p.content}" for p in self.replaced]
        if self.replaced_by is not None:
            lines.append(f"  replaced by: {self.replaced_by.content}")
        lines += [f"  contested by: {c.content}" for c in self.contested_by]
        if self.contests is not None:
            lines.append(f"  contests: {self.contests.content}")
        lines += [
            f"  {h.at:%Y-%m-%d %H:%M} {h.action}: {h.reason}{f' ({h.note})' if h.note else ''}" for h in self.decisions
        ]
        return "\n".join(lines)


class Review(Frozen):
    """A memory that somebody should look at, and why (`Memory.review`)."""

    record: MemoryRecord
    reasons: tuple[str, ...]
    """Of `important`, `single_source`, `contested`, `recently_contested`, `needs_regeneration`."""


class Place(Frozen):
    """One place that an erasure must reach."""

    name: str
    state: Literal["done", "pending", "out_of_reach"]
    count: int = 0
    note: str = ""


class Receipt(Frozen):
    """What an erasure found and did: ids, counts and times, never a text."""

    receipt_id: str
    action: Literal["forget_source", "delete", "delete_all", "maintain"]
    source_id: str = ""
    """What `forget_source` was given."""
    user_id: str
    """"" for the application's own facts."""
    at: Utc
    dry_run: bool = False
    """Whether nothing was done: this is what would be."""
    erased: tuple[str, ...] = ()
    """Ids of records whose text is gone."""
    rebuilt: tuple[str, ...] = ()
    """Ids of records that read otherwise without the source, or came to be: decided again from the other sources."""
    flagged: tuple[str, ...] = ()
    """Ids of records that rest on other sources too but could not be rebuilt: without the source, marked
    `needs_regeneration`."""
    threads: tuple[str, ...] = ()
    """Threads whose checkpoints are to go."""
    messages: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Ids of single messages that are to go from threads that stay, by thread."""
    places: tuple[Place, ...] = ()

    @property
    def state(self) -> Literal["done", "pending"]:
        """`pending` while a place is: see its note."""
        return "pending" if any(p.state == "pending" for p in self.places) else "done"


class Upkeep(Frozen):
    """One thing that maintenance did, and why: ids and codes, never a text."""

    user_id: str
    """"" for the application's own facts."""
    action: Literal["repair", "rescore", "deduplicate", "expire", "prune", "collect", "alert"]
    reason: str
    """A reason code such as `near_identical`."""
    id: str = ""
    """Of the record (`collect`: of the turn) it was done to."""
    other: str | None = None
    """The record in whose favour."""


class Maintenance(Frozen):
    """What `Memory.maintain` did."""

    at: Utc
    owners: int
    """How many owners' memories were looked at."""
    done: tuple[Upkeep, ...] = ()
    held: tuple[str, ...] = ()
    """Users under a legal hold: nothing of theirs was deleted."""
    erasures: tuple[str, ...] = ()
    """Receipt ids of interrupted erasures that were completed."""
    pending: tuple[str, ...] = ()
    """Users of whom deleted bytes are still in the store's files: see their receipts' notes."""
    failed: dict[str, str] = Field(default_factory=dict)
    """User id → the kind of error that stopped their upkeep; it goes on the next time."""
    checkpoints: int | None = None
    """Threads and checkpoints that the checkpointer removed; None if it was not asked."""

    @property
    def counts(self) -> dict[str, int]:
        """How often each action was done."""
        return dict(Counter(u.action for u in self.done))
