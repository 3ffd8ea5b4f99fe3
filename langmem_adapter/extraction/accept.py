"""What of an extractor's proposals may go on: the same checks for rules and for models.

Who said it is decided here, from the message a candidate names; an extractor's own word can only lower trust.
"""

from collections import Counter
from collections.abc import Iterable

from langmem_adapter.extraction.grounding import ground
from langmem_adapter.extraction.unsaid import unsaid
from langmem_adapter.records import Candidate, Extraction, Message, SourceType, Turn
from langmem_adapter.text import MAX_CONTENT, clean, one_line
from langmem_adapter.topics import Topics
from langmem_adapter.trust import TrustPolicy


def accept(turn: Turn, proposed: Extraction, topics: Topics, policy: TrustPolicy) -> Extraction:
    """The candidates that may be consolidated, and how many were dropped for which reason."""
    messages = {m.id: m for m in turn.messages}
    dropped = Counter(proposed.dropped)
    accepted = []
    for candidate in proposed.candidates:
        message = messages.get(candidate.message_id or "")
        reason = _refusal(candidate, message, messages)
        if reason is None and message is not None:
            accepted.append(_settled(candidate, message, turn, topics, policy))
        else:
            dropped[reason or "no_message"] += 1
    return Extraction(candidates=tuple(_distinct(accepted)), dropped=dict(dropped), usage=proposed.usage)


def _refusal(candidate: Candidate, message: Message | None, messages: dict[str, Message]) -> str | None:
    if message is None or message.role not in ("human", "tool"):
        return "not_said_by_user"
    if message.role == "human" and unsaid(message.text):
        return "not_to_be_remembered"
    said = (candidate.content, candidate.value, candidate.slot, candidate.excerpt, candidate.replaces or "")
    if not one_line(clean(candidate.content)).strip("\ufffd ") or max(map(len, said)) > MAX_CONTENT:
        return "bad_length"
    return ground(candidate, messages)


def _settled(candidate: Candidate, message: Message, turn: Turn, topics: Topics, policy: TrustPolicy) -> Candidate:
    kind: SourceType
    if message.role == "tool":
        kind = "tool_output"
    elif turn.source_type is not None:
        kind = turn.source_type
    else:
        kind = policy.lower(candidate.source_type, "user_explicit")
    return candidate.change(
        content=one_line(clean(candidate.content)),
        value=one_line(clean(candidate.value)),
        source_type=kind,
        topic=candidate.topic if candidate.topic in topics else "general",
    )


def _distinct(candidates: Iterable[Candidate]) -> list[Candidate]:
    return list({(c.intent, c.subject, c.topic, c.content.casefold()): c for c in candidates}.values())
