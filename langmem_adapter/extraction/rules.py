"""RuleExtractor: facts from plain English statements, offline. Precise rather than eager.

A message is cut into clauses (`clauses`), sentences that may teach nothing are refused (`refusals`), and the
first pattern (`patterns`) that matches a clause makes its candidates.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from langmem_adapter.extraction import flags, times
from langmem_adapter.extraction.clauses import WINDOW, Clause, Sentence, clauses, sentences, windows
from langmem_adapter.extraction.ends import beginning
from langmem_adapter.extraction.grounding import unsupported
from langmem_adapter.extraction.masking import FAKE_ROLE, straight
from langmem_adapter.extraction.patterns import ASIDES, RULES
from langmem_adapter.extraction.phrases import OPENINGS, Rule, opening
from langmem_adapter.extraction.refusals import SAFETY, beside, refusal
from langmem_adapter.extraction.tool_text import settings
from langmem_adapter.records import Candidate, Extraction, Message, Turn
from langmem_adapter.text import MAX_CONTENT, one_line

MAX_CANDIDATES = 50
"""Most candidates of one turn; the rest are counted as `too_many`."""

MAX_SENTENCES = 20_000
"""Most different sentences about the speaker that are read in one message."""

_POINTS = frozenset({"issue", "decision", "project"})
"""Topics whose facts are of a moment anyway: "since yesterday" in them is no end."""

_WORTH_READING = re.compile(
    r"\b(?:i|i'm|im|i've|ive|me|my|we|our)\b|\bname's\b|\bis\s+(?:right|correct|it|accurate|what)\b"
    r"|\bare\s+my\b|^(?:still|please|always|never|"
    r"don't|do|dont|keep|be|stay|answer|reply|respond|use|write|no|avoid|stop|give|send|skip|leave"
    r"|without|it's|it|this|that's|that|make|"
    r"from|in|going|home|speak|talk|chat|explain|just|could|can|also|as\s+an?|the\s+(?:whole|entire|team"
    r"|company|group|office|name))\b",
    re.IGNORECASE,
)
"""Most clauses of a long text speak of something else: one look spares them all patterns."""

_SELF = r"(?:i|i'm|im|i've|ive|i'd|me|my|mine|we|our|us|myself)\b"
_WORTH_SPLITTING = re.compile(
    rf"\b{_SELF}|\bname's\b|^\W*(?:\w+\W+){{0,4}}?(?:please|always|never|don't|dont|do|keep|be|stay|answer"
    rf"|reply|respond|use|write|no|avoid"
    r"|stop|give|send|skip|leave|without|make|from|in|going|home|speak|talk|chat|explain|just|could|can|also"
    r"|still|yes|it's|that's"
    r"|that\s+should|make\s+that|aisle|window)\b|\bis\s+(?:right|correct|it|accurate|what)\b|\bincluded\b",
    re.IGNORECASE,
)
"""Sentences without such a word speak of something else and are not cut into clauses."""
_SPEAKS_OF_SELF = re.compile(rf"(?:^|(?<=[.!?])\s|\n)\s?{_SELF}", re.IGNORECASE)
_OWN = re.compile(r"\b(?:my|our)\s", re.IGNORECASE)
_RULES_OF = {letter: tuple(r for r in RULES if letter in r.opens) for letter in OPENINGS}
_NO_BAR = frozenset({flags.SOMETIMES, flags.DISOWNED})
_EXCLUSIVE = frozenset(
    {"diet", "travel/seat", "identity/name", "identity/language", "home/location", "work/employer", "work/role"}
)
_STATES = _EXCLUSIVE - {"travel/seat"}
"""Topics of what holds in general: "vegan when I'm with her" is none."""


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
        kept: dict[tuple[str, ...], Candidate] = {}
        for message in turn.messages:
            if message.role == "human":
                _spoken(message, turn, kept, dropped)
            elif message.role == "tool" and message.name in self._tools:
                for candidate, start, end in settings(message.text[:WINDOW]):
                    _keep(candidate.change(excerpt=message.text[start:end], message_id=message.id), kept)
        if len(kept) > MAX_CANDIDATES:
            dropped["too_many"] += len(kept) - MAX_CANDIDATES
        return Extraction(candidates=tuple(kept.values())[:MAX_CANDIDATES], dropped=dict(dropped))


def _spoken(message: Message, turn: Turn, kept: dict[tuple[str, ...], Candidate], dropped: Counter[str]) -> None:
    # What stands behind a gap may be anybody's words: whose, the gap may have said.
    text = beginning(message.text)
    if any(FAKE_ROLE.search(piece) for _, piece in windows(text)):
        dropped["fake_role"] += 1
    refused: dict[str, str | None] = {}
    read: dict[tuple[str, frozenset[str]], list[Candidate]] = {}
    for sentence in sentences(text):
        if len(kept) >= MAX_CANDIDATES or len(read) >= MAX_SENTENCES:
            # Nobody tells this much at once: the rest is counted by how its sentences begin.
            rest = windows(text[sentence.start :])
            dropped["too_many"] += sum(1 for _, piece in rest for _ in _SPEAKS_OF_SELF.finditer(piece))
            return
        if not _WORTH_SPLITTING.search(sentence.words):
            _refusal(one_line(sentence.words), refused, dropped)
            continue
        key = sentence.words, sentence.flags
        if key not in read:
            read[key] = list(_taught(sentence, message, turn, refused, dropped))
        for candidate in read[key]:
            _keep(candidate, kept)


def _taught(
    sentence: Sentence, message: Message, turn: Turn, refused: dict[str, str | None], dropped: Counter[str]
) -> Iterator[Candidate]:
    for clause in clauses(sentence):
        reason, candidates = _read(clause, refused, dropped)
        if reason:
            continue
        for candidate in candidates:
            dated = _dated(candidate, clause, turn)
            if dated is None:
                dropped["temporary"] += 1
            elif flags.SOMETIMES in clause.flags and candidate.topic in _STATES:
                dropped[flags.SOMETIMES] += 1
            else:
                words = _excerpt(message.text[clause.start : clause.end], candidate.excerpt)
                yield from _grounded(dated.change(message_id=message.id), words, dropped)


def _grounded(candidate: Candidate, words: str, dropped: Counter[str]) -> Iterator[Candidate]:
    """The candidate with its words, or with those before the first comma; counted as dropped if neither bears it."""
    reason = None
    for excerpt in (words, words.split(",")[0]):
        said = candidate.change(excerpt=excerpt, content=one_line(candidate.content))
        reason = unsupported(said) if len(said.content) <= MAX_CONTENT else "too_long"
        if reason is None and excerpt.strip():
            yield said
            return
    dropped[reason or "no_excerpt"] += 1


def _excerpt(clause: str, words: str) -> str:
    """The clause as it was written, or the fewer words of it that a rule named."""
    at = straight(clause).find(words)
    return clause[at : at + len(words)] if at >= 0 and words else clause


def _read(clause: Clause, refused: dict[str, str | None], dropped: Counter[str]) -> tuple[str | None, list[Candidate]]:
    """The candidates of a clause, and the reason that forbids them, if any."""
    if not clause.said or not _WORTH_READING.search(clause.said):
        _refusal(clause.sentence, refused, dropped)
        return None, []
    for rule in _RULES_OF[opening(clause.said)]:
        if candidates := list(_matched(rule, clause)):
            blocking = (clause.flags | flags.of_sentence(clause.sentence)) - rule.tolerates - _NO_BAR
            if blocking:
                dropped[min(blocking)] += len(candidates)
                return min(blocking), []
            if rule.closed and not clause.after.startswith(":"):  # "write in French: …" is for once
                return None, candidates
            if rule.closed:
                dropped["one_off"] += len(candidates)
                return "one_off", []
            reason = _refusal(clause.sentence, refused, dropped)
            if reason and _stands_alone(clause, candidates, reason):
                return None, candidates
            return reason, [*candidates, *_beside(clause)]
    return _refusal(clause.sentence, refused, dropped), list(_beside(clause))


def _stands_alone(clause: Clause, candidates: list[Candidate], reason: str) -> bool:
    """Whether it is what the rest of the sentence says that is refused, and the clause must be known all the same."""
    rest = beside(clause.sentence, clause.said) if all(c.topic in SAFETY for c in candidates) else None
    return rest is not None and refusal(clause.said) is None and refusal(rest) == reason


def _beside(clause: Clause) -> Iterator[Candidate]:
    """What the clause tells besides what it is about: "our new kitten" is enough to know that there is one."""
    if clause.flags <= _NO_BAR and _OWN.search(clause.said):
        found = [c for rule in ASIDES for c in _matched(rule, clause)]
        if found and flags.of_sentence(clause.sentence) <= _NO_BAR:
            yield from found


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
    if candidate.kind in ("event", "plan"):
        return _happening(candidate, turn)
    if candidate.topic == "relation" and candidate.excerpt:  # named in passing: that there is one does not end
        return candidate
    said = f"{clause.when} {clause.said}"
    if candidate.topic in _POINTS or not times.is_temporary(said):
        return candidate
    end = times.end_of(said, turn.at)
    if end is None:
        return None
    return candidate.change(topic="general", slot=candidate.slot or candidate.value, valid_to=end, expires_at=end)


def _happening(candidate: Candidate, turn: Turn) -> Candidate:
    """An event with the day, month or year it happened instead of "last week"; a plan ends with the time it names."""
    ahead = candidate.kind == "plan"
    told = times.timed(candidate.content)
    moment = times.moment(told[0], turn.at, ahead=ahead) if told else None
    if told is None or moment is None:
        return candidate
    if not ahead and moment.start > turn.at:  # "I signed up for a course next month": the time is not that of the deed
        return candidate.change(content=candidate.content[: told.start()].rstrip() + candidate.content[told.end() :])
    content = candidate.content[: told.start()] + moment.said + candidate.content[told.end() :]
    end = moment.end if ahead else None
    return candidate.change(content=content, valid_from=moment.start, valid_to=end, expires_at=end)


def _keep(candidate: Candidate, kept: dict[tuple[str, ...], Candidate]) -> None:
    """Adds the candidate without repetition; of several values on one exclusive topic, the one said last."""
    c = candidate
    exclusive = c.topic in _EXCLUSIVE and c.intent == "assert"
    value = c.content if c.kind == "event" else c.value  # it may have happened on two days
    key = (c.subject, c.topic, "") if exclusive else (c.subject, c.topic, c.slot, value.casefold(), c.intent)
    if not exclusive and key in kept:
        return
    if exclusive:
        # What ends the old value and what gives the new one, said in one breath, are one change.
        for ended in [k for k, o in kept.items() if o.intent == "retract" and (o.subject, o.topic) == key[:2]]:
            del kept[ended]
    elif c.intent == "retract" and c.topic in _EXCLUSIVE:
        before = kept.get((c.subject, c.topic, ""))
        if before is not None and before.value.casefold() == c.value.casefold():
            del kept[(c.subject, c.topic, "")]
    kept.pop(key, None)
    kept[key] = c
