"""What of an extractor's proposals may go on: the same checks for rules and for models.

Who said it is decided here, from the message a candidate names; an extractor's own word can only lower trust.
"""

import functools
from collections import Counter
from collections.abc import Callable, Iterable

from langmem_adapter.extraction.ends import LEFT_OUT
from langmem_adapter.extraction.grounding import ground, mentions
from langmem_adapter.extraction.unsaid import unsaid
from langmem_adapter.records import Candidate, Extraction, Message, SourceType, Turn
from langmem_adapter.text import MAX_CONTENT, clean, one_line
from langmem_adapter.topics import Topics
from langmem_adapter.trust import TrustPolicy

MAX_FIELD = 200
"""Longest value, slot, subject or entity, in characters."""
MAX_ENTITIES = 20


def accept(turn: Turn, proposed: Extraction, topics: Topics, policy: TrustPolicy) -> Extraction:
    """The candidates that may be consolidated, and how many were dropped for which reason."""
    messages = {m.id: m for m in turn.messages}
    mentioned = functools.cache(mentions)  # of a long message once, however many names are proposed
    dropped = Counter(proposed.dropped)
    if cut := sum(1 for m in turn.messages if LEFT_OUT.search(m.text)):
        dropped["left_out"] += cut
    accepted = []
    for candidate in proposed.candidates:
        message = messages.get(candidate.message_id or "")
        if message is None or message.role not in ("human", "tool"):
            dropped["not_said_by_user"] += 1
            continue
        if message.role == "human" and unsaid(message.text):
            dropped["not_to_be_remembered"] += 1
            continue
        settled = _settled(candidate, message, turn, topics, policy, mentioned)
        reason = _refusal(settled, messages)
        if reason is None:
            accepted.append(settled)
        else:
            dropped[reason] += 1
    return Extraction(candidates=tuple(_distinct(accepted)), dropped=dict(dropped), usage=proposed.usage)


def _refusal(candidate: Candidate, messages: dict[str, Message]) -> str | None:
    if not candidate.content.strip("\ufffd ") or max(len(candidate.content), len(candidate.excerpt)) > MAX_CONTENT:
        return "bad_length"
    if any(len(part) > MAX_FIELD for part in (candidate.value, candidate.slot, candidate.subject)):
        return "bad_length"
    return ground(candidate, messages)


def _settled(
    candidate: Candidate,
    message: Message,
    turn: Turn,
    topics: Topics,
    policy: TrustPolicy,
    mentioned: Callable[[str], Callable[[str], bool]],
) -> Candidate:

    def said(name: str) -> str:
        """The name, if the message mentions it; else ""."""
        tidy = _tidy(name)
        return tidy if 0 < len(tidy) <= MAX_FIELD and mentioned(message.text)(tidy) else ""

    kind: SourceType
    if message.role == "tool":
        kind = "tool_output"
    elif turn.source_type is not None:
        kind = turn.source_type
    else:
        kind = policy.lower(candidate.source_type, "user_explicit")
    return candidate.change(
        content=one_line(clean(candidate.content)),
        value=_tidy(candidate.value),
        slot=_tidy(candidate.slot),
        subject=_tidy(candidate.subject) or "user",
        kind=_tidy(candidate.kind)[:MAX_FIELD],
        # Of these a wrong one is no reason to lose the fact.
        replaces=said(candidate.replaces or "") or None,
        valid_from=None if _reversed(candidate) else candidate.valid_from,
        entities=tuple(e for e in map(said, candidate.entities[:MAX_ENTITIES]) if e),
        source_type=kind,
        topic=candidate.topic if candidate.topic in topics else "general",
    )


def _reversed(candidate: Candidate) -> bool:
    begins, ends = candidate.valid_from, candidate.valid_to
    return begins is not None and ends is not None and ends < begins


def _tidy(text: str) -> str:
    return one_line(clean(text))


def _distinct(candidates: Iterable[Candidate]) -> list[Candidate]:
    return list({(c.intent, c.subject, c.topic, c.content.casefold()): c for c in candidates}.values())
