"""Corrections: "I meant Leeds, not Leicester - that's where I live", "not X but Y"."""

import re
from collections.abc import Iterator

from langmem_adapter.extraction.clauses import Clause
from langmem_adapter.extraction.phrases import fact, name, place, rule
from langmem_adapter.records import Candidate

_HOME = re.compile(r"\b(?:where\s+(?:i|we)\s+live|i\s+live|we\s+live|my\s+(?:home|city|address|town))\b", re.IGNORECASE)
_WORK = re.compile(r"\b(?:where\s+i\s+work|i\s+work|my\s+(?:employer|company|job))\b", re.IGNORECASE)
_CALLED = re.compile(r"\b(?:my\s+name|what\s+i'm\s+called|call\s+me)\b", re.IGNORECASE)
_NOT = re.compile(r"\bnot\s+(?:in\s+|at\s+)?(?P<old>[^\W\d_][\w'&. -]{0,40}?)(?=\s*(?:$|[-–—,.;!()]))", re.IGNORECASE)


def _meant(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    """What was meant, on the topic that the same sentence names; without one, nothing."""
    old = _NOT.search(clause.sentence)
    replaces = old["old"].strip() if old else None
    if _HOME.search(clause.sentence):
        where = place(match["new"])
        if where:
            yield fact(f"The user lives in {where}.", "home/location", value=where, replaces=replaces)
    elif _WORK.search(clause.sentence):
        firm = match["new"].strip()
        if firm[:1].isupper():
            yield fact(f"The user works at {firm}.", "work/employer", value=firm, replaces=replaces)
    elif _CALLED.search(clause.sentence):
        called = name(match["new"])
        if called:
            yield fact(f"The user goes by {called}.", "identity/name", value=called, replaces=replaces)


RULES = (
    rule(
        r"i\s+(?:actually\s+)?(?:meant|mean|was\s+supposed\s+to\s+say)\s+(?:to\s+say\s+|to\s+type\s+"
        r")?(?P<new>[^,;:()]{2,50}?)(?:\s+not\s+.*)?$",
        _meant,
    ),
    rule(
        r"(?:it's|it\s+is|that's|that\s+should\s+be|make\s+that)\s+(?:actually\s+"
        r")?(?P<new>(?-i:[A-Z])[^,;:()]{1,50}?)(?:\s+not\s+.*)?$",
        _meant,
    ),
)
