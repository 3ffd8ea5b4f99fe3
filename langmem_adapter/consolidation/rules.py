"""What decisions follow and commits share: the rules, whose a turn is, where it lies and how it is written. Pure."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from langgraph.store.base import PutOp

from langmem_adapter.consolidation.apply import Applied, Change, Owner, apply, supports
from langmem_adapter.consolidation.decide import decide
from langmem_adapter.consolidation.judge import ModelJudge
from langmem_adapter.namespaces import MAX_ID_BYTES, Namespace, Reader, namespace
from langmem_adapter.records import Candidate, Judgement, MemoryRecord, Operation, Scope, Source, Turn, Usage
from langmem_adapter.redaction import redacted
from langmem_adapter.topics import Topics
from langmem_adapter.trust import TrustPolicy

KeepTurns = Literal["text", "excerpts", "nothing"]

SUMMARY = "summary"
"""The key of a session's summary."""

ENDED = ("superseded", "retracted")
"""The statuses of what held once and holds no more."""

SEQS_A_TURN = 1_000
"""Room for the records of one commit in the sequence numbers."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What decisions follow: the topics, the trust policy, the clock, and a judge who proposes."""

    topics: Topics
    policy: TrustPolicy
    clock: Callable[[], datetime]
    judge: ModelJudge | None = None
    on_usage: Callable[[Turn, str, Usage], None] = lambda turn, what, usage: None
    """Told what a judge's answer cost."""

    keep_turns: KeepTurns = "text"
    """What is kept of a turn that taught something."""

    on_written: Callable[[Reader, int, int], None] = lambda owner, version, count: None
    """Told how many records a turn wrote, and the version of their namespace before."""

    redact: Callable[[str], str] = redacted
    """Cuts secrets out of a text that did not come in as a message."""

    vet: Callable[[Turn], Turn] = lambda turn: turn
    """Holds back what must not be believed of a turn whose candidates nobody extracted from messages."""

    def keeps(self, turn: Turn) -> Turn:
        """The turn, without what is not to be kept."""
        if self.keep_turns == "text":
            return turn
        bare = turn.change(messages=tuple(m.change(text="") for m in turn.messages))
        if self.keep_turns == "excerpts":
            return bare
        return bare.change(candidates=(), judged={}, operations=tuple(o.change(content="") for o in turn.operations))

    def exclusive(self, record: MemoryRecord) -> bool:
        """Whether the record's slot has room for one."""
        return record.topic in self.topics and self.topics.get(record.topic).exclusive is not False


def consolidated(
    candidate: Candidate,
    turn: Turn,
    known: dict[str, MemoryRecord],
    rules: Rules,
    change: Change,
    judgement: Judgement | None,
) -> Applied:
    """What one candidate of a turn leads to, given all records it must be compared with."""
    topic = rules.topics.get(candidate.topic)
    slot = rules.topics.slot_of(candidate.topic, candidate.slot, candidate.value)
    decision = decide(
        candidate,
        known.values(),
        source_id=turn.source_id,
        topics=rules.topics,
        policy=rules.policy,
        now=change.now,
        judgement=judgement,
        later=_said_after(turn, candidate, rules.policy),
    )
    source = Source(
        source_type=candidate.source_type,
        source_id=turn.source_id,
        at=turn.at,
        confidence=candidate.confidence,
        excerpt=candidate.excerpt,
        message_id=candidate.message_id,
        seq=turn.seq,
    )
    return apply(decision, candidate, known.values(), topic=topic, slot=slot, source=source, change=change)


def _said_after(turn: Turn, candidate: Candidate, policy: TrustPolicy) -> Callable[[MemoryRecord], bool]:
    """Whether a record rests on what was said after this turn, by a source at least as trustworthy.

    Turns are not always learnt in the order in which they were said: a model fails, a store is away, an auditor
    releases, a caller gives the time. Of two turns the clock alone does not tell, as it may have been set back.
    """
    trust = policy.trust[candidate.source_type]

    def later(record: MemoryRecord) -> bool:
        return any(
            s.at > turn.at and (turn.dated or s.seq > turn.seq) and policy.trust[s.source_type] >= trust
            for s in supports(record)
        )

    return later


def counter(turns_version: int, known: Iterable[MemoryRecord]) -> Callable[[], int]:
    """Sequence numbers for the records of one commit, from the version of the owner's turns that it was read at.

    Every commit that makes records writes a turn too, so a version serves one commit, and the numbers grow with time
    over all of the owner's records, whatever their scope. None is below a known record's, which may come from another
    store.
    """
    numbers = itertools.count(max([(turns_version + 1) * SEQS_A_TURN, *(r.seq + 1 for r in known)]))
    return lambda: next(numbers)


def change_of(
    reader: Reader, rules: Rules, versions: Mapping[Namespace, int], known: Iterable[MemoryRecord], now: datetime
) -> Change:
    """What every change of an owner's records shares that no turn of theirs leads to."""
    numbers = counter(versions.get(reader.space("turns"), 0), known)
    owner = Owner(reader.user_id, reader.app_name)
    return Change(owner, now, rules.policy, numbers, exclusive=rules.exclusive)


def deed(
    about: MemoryRecord, operations: Sequence[Operation], *, turn_id: str, by: str, place: int, at: datetime
) -> Turn:
    """What was done to records like this one without a word being said, as a turn, so that a replay does it too."""
    return Turn(
        turn_id=turn_id,
        seq=place,
        user_id=about.user_id,
        app_name=about.app_name,
        scope=about.scope,
        session_id=about.session_id,
        agent_id=about.agent_id,
        at=at,
        digest="",
        source_id=by,
        status="done",
        operations=tuple(operations),
        applied=place,
        applied_at=at,
    )


def owner_of(turn: Turn) -> Owner:
    """Whose records a turn's facts become."""
    return Owner(turn.user_id, turn.app_name, turn.scope, turn.session_id, turn.agent_id)


def reader_of(turn: Turn) -> Reader:
    """Whose turn it is."""
    return Reader(turn.user_id or "", turn.app_name, application=turn.scope == "app")


def spaces(turn: Turn) -> tuple[Namespace, Namespace]:
    """The namespace of the facts a turn teaches, and that of the turn."""
    facts = namespace(
        "facts",
        app_name=turn.app_name,
        user_id=turn.user_id,
        scope=turn.scope,
        session_id=turn.session_id,
        agent_id=turn.agent_id,
    )
    scope: Scope = "app" if turn.scope == "app" else "user"
    return facts, namespace("turns", app_name=turn.app_name, user_id=turn.user_id, scope=scope)


def summary_space(reader: Reader) -> Namespace:
    """Where the summary of the reader's session lies."""
    return namespace(
        "summaries", app_name=reader.app_name, user_id=reader.user_id, scope="session", session_id=reader.session_id
    )


def unsummarised(turn: Turn, before: Turn | None) -> list[PutOp]:
    """The deletion of the session's summary if a message was edited since: it may tell its old words."""
    if before is None or before.digest in ("", turn.digest) or turn.session_id is None:
        return []
    return [PutOp(summary_space(Reader(turn.user_id or "", turn.app_name, turn.session_id)), SUMMARY, None)]


def outdated(written: Iterable[MemoryRecord]) -> list[PutOp]:
    """The deletion of the summaries of sessions that taught what holds no more: they may tell it."""
    ended = [r for r in written if r.status in ENDED and r.user_id is not None]
    sources = {(r.user_id or "", r.app_name, s.source_id) for r in ended for s in supports(r)}
    # What is too long for the id of a session names another source.
    sessions = [Reader(*found) for found in sorted(sources) if len(found[2].encode()) <= MAX_ID_BYTES]
    return [PutOp(summary_space(reader), SUMMARY, None) for reader in sessions]


def record_put(facts: Namespace, record: MemoryRecord) -> PutOp:
    """The write of one record, its content indexed for search unless it is in quarantine."""
    index: list[str] | Literal[False] = False if record.status == "quarantined" else ["content"]
    return PutOp(facts, record.memory_id, record.model_dump(mode="json"), index=index)


def turn_put(turns: Namespace, turn: Turn) -> PutOp:
    """The write of one turn; turns are never search results."""
    return PutOp(turns, turn.turn_id, turn.model_dump(mode="json"), index=False)
