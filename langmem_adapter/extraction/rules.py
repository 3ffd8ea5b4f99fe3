"""RuleExtractor: facts from plain English statements, offline. Precise rather than eager.

A message is cut into clauses (`clauses`), sentences that may teach nothing are refused (`refusals`), and the
first pattern (`patterns`) that matches a clause makes its candidates.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from langmem_adapter.extraction import times
from langmem_adapter.extraction.clauses import Clause, clauses
from langmem_adapter.extraction.grounding import ground
from langmem_adapter.extraction.masking import FAKE_ROLE, straight
from langmem_adapter.extraction.patterns import RULES
from langmem_adapter.extraction.phrases import Rule
from langmem_adapter.extraction.refusals import refusal
from langmem_adapter.extraction.tool_text import settings
from langmem_adapter.records import Candidate, Extraction, Message, Turn
from langmem_adapter.text import MAX_CONTENT, one_line

WINDOW = 256 * 1024
"""Most characters looked at in one piece; longer messages are cut at a line or sentence end."""

MAX_CANDIDATES = 50
"""Most candidates of one turn; the rest are counted as `too_many`."""

_POINTS = frozenset({"issue", "decision", "project"})
"""Topics whose facts are of a moment anyway: "since yesterday" in them is no end."""

_WORTH_READING = re.compile(
    r"\b(?:i|i'm|im|i've|ive|me|my|we|our)\b|\bname's\b|\bis\s+(?:right|correct|it|accurate|what)\b"
    r"|\bare\s+my\b|^(?:please|always|never|"
    r"don't|do|dont|keep|be|stay|answer|reply|respond|use|write|no|avoid|stop|give|send|skip|leave"
    r"|without|it's|it|this|that's|that|make|"
    r"from|in|going|home|speak|talk|chat|explain|just|could|can|also|the\s+(?:whole|entire|team"
    r"|company|group|office|name))\b",
    re.IGNORECASE,
)
"""Most clauses of a long text speak of something else: one look spares them all patterns."""

_EXCLUSIVE = frozenset(
    {"diet", "travel/seat", "identity/name", "identity/language", "home/location", "work/employer", "work/role"}
)


class RuleExtractor:
    """Offline extraction of English first-person statements; the default when no chat model is given.

    `tool_sources` names the tools whose messages may teach (always as `tool_output`). Pure: the same turn gives
    the same answer, and nothing is read or written.
    """

    def __init__(self, tool_sources: frozenset[str] = frozenset()) -> None:
        self._tools = frozenset(tool_sources)

    def extract(self, turn: Turn) -> Extraction:
        """The facts of one turn, each with its exact words, and how many were refused for which reason."""
        dropped: Counter[str] = Counter()
        found = [c for message in turn.messages for c in self._from(message, turn, dropped)]
        kept = _distinct(found)
        if len(kept) > MAX_CANDIDATES:
            dropped["too_many"] += len(kept) - MAX_CANDIDATES
        return Extraction(candidates=tuple(kept[:MAX_CANDIDATES]), dropped=dict(dropped))

    def _from(self, message: Message, turn: Turn, dropped: Counter[str]) -> Iterator[Candidate]:
        if message.role == "human":
            yield from _spoken(message, turn, dropped)
        elif message.role == "tool" and message.name in self._tools:
            for candidate, start, end in settings(message.text[:WINDOW]):
                yield candidate.change(excerpt=message.text[start:end], message_id=message.id)


def _spoken(message: Message, turn: Turn, dropped: Counter[str]) -> Iterator[Candidate]:
    refused: dict[str, str | None] = {}
    if FAKE_ROLE.search(message.text):
        dropped["fake_role"] += 1
    for offset, piece in _windows(message.text):
        for clause in clauses(piece, offset=offset):
            reason, candidates = _read(clause, refused, dropped)
            if reason:
                continue
            for candidate in candidates:
                dated = _dated(candidate, clause, turn)
                if dated is None:
                    dropped["temporary"] += 1
                else:
                    words = _excerpt(message.text[clause.start : clause.end], candidate.excerpt)
                    yield from _grounded(dated.change(message_id=message.id), words, message, dropped)


def _grounded(candidate: Candidate, words: str, message: Message, dropped: Counter[str]) -> Iterator[Candidate]:
    """The candidate with its words, or with those before the first comma; counted as dropped if neither bears it."""
    reason = None
    for excerpt in (words, words.split(",")[0]):
        said = candidate.change(excerpt=excerpt, content=one_line(candidate.content))
        reason = ground(said, {message.id: message}) if len(said.content) <= MAX_CONTENT else "too_long"
        if reason is None:
            yield said
            return
    dropped[reason or "no_excerpt"] += 1


def _excerpt(clause: str, words: str) -> str:
    """The clause as it was written, or the fewer words of it that a rule named."""
    at = straight(clause).find(words)
    return clause[at : at + len(words)] if at >= 0 and words else clause


def _windows(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    while at < len(text):
        end = min(len(text), at + WINDOW)
        if end < len(text):
            cut = max(text.rfind("\n", at, end), text.rfind(". ", at, end) + 1)
            end = cut + 1 if cut > at else end
        yield at, text[at:end]
        at = end


def _read(clause: Clause, refused: dict[str, str | None], dropped: Counter[str]) -> tuple[str | None, list[Candidate]]:
    """The candidates of a clause, and the reason that forbids them, if any."""
    for rule in RULES if _WORTH_READING.search(clause.said) else ():
        if candidates := list(_matched(rule, clause)):
            blocking = clause.flags - rule.tolerates
            if blocking:
                dropped[min(blocking)] += len(candidates)
                return min(blocking), []
            if rule.closed and clause.after != ":":  # "write in French: …" is for once
                return None, candidates
            if rule.closed:
                dropped["one_off"] += len(candidates)
                return "one_off", []
            return _refusal(clause.sentence, refused, dropped), candidates
    _refusal(clause.sentence, refused, dropped)
    return None, []


def _refusal(sentence: str, refused: dict[str, str | None], dropped: Counter[str]) -> str | None:
    if sentence not in refused:
        refused[sentence] = refusal(sentence)
        if reason := refused[sentence]:
            dropped[reason] += 1
    return refused[sentence]


def _matched(rule: Rule, clause: Clause) -> Iterable[Candidate]:
    match = rule.pattern.search(clause.said) if rule.anywhere else rule.pattern.match(clause.said)
    return rule.build(match, clause) if match else ()


def _dated(candidate: Candidate, clause: Clause, turn: Turn) -> Candidate | None:
    """The candidate, with its end if its words say that it will end; None if it ends but nobody says when.

    What holds for a while is kept beside, not in place of, what holds in general.
    """
    if candidate.topic in _POINTS or candidate.kind == "event" or not times.is_temporary(clause.said):
        return candidate
    end = times.end_of(clause.said, turn.at)
    if end is None:
        return None
    return candidate.change(topic="general", slot=candidate.slot or candidate.value, valid_to=end, expires_at=end)


def _distinct(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Without repetition; of several values on one exclusive topic, the one said last."""
    last: dict[tuple[str, ...], Candidate] = {}
    for c in candidates:
        exclusive = c.topic in _EXCLUSIVE and c.intent == "assert"
        key = (c.subject, c.topic, "") if exclusive else (c.subject, c.topic, c.slot, c.value.casefold(), c.intent)
        if exclusive or key not in last:
            last.pop(key, None)
            last[key] = c
    return list(last.values())
