"""Milestones: a business opened, a degree taken, a dog adopted. Events that happened stay true."""

import re
from collections.abc import Iterator

from langmem_adapter.extraction.clauses import Clause
from langmem_adapter.extraction.phrases import dated, fact, rule, thing, told, undated
from langmem_adapter.extraction.times import timed
from langmem_adapter.records import Candidate

_WHEN = r"(?:(?:just|recently|finally|also|even|actually|have|officially|already)\s+)*"
_I = rf"(?P<who>i|we|i've|we've)\s+{_WHEN}"
_UNDERTAKING = (
    r"(?:business|company|startup|start-up|shop|store|bakery|cafe|café|restaurant|studio|blog|podcast"
    r"|channel|newsletter|band|club|group|"
    r"choir|course|degree|master's|masters|phd|class|classes|lessons|programme|program|charity"
    r"|non-?profit|foundation|clinic|practice|"
    r"gym|team|league|campaign|bookclub|book\s+club|support\s+group|garden|farm|gallery|agency|app"
    r"|website|collection|society|union)"
)


def _milestone(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    what = thing(match["what"], 8)
    if what:
        when = _when(match["what"], clause)
        verb = " ".join(match["verb"].casefold().split())
        joint = ", together with others," if match["who"].casefold().startswith("we") else ""
        yield fact(
            f"The user{joint} {verb} {undated(what)}{when}.",
            "general",
            f"{verb} {undated(what)}",
            "happened",
            kind="event",
        )


def _when(what: str, clause: Clause) -> str:
    """When it was, if the same words or those before them say so."""
    found = timed(told(what) or "")
    return f" {found[0]}" if found else dated("", clause)


def _personal(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    verb = " ".join(match["verb"].casefold().split())
    when = _when(match.string[match.start("verb") :], clause)
    yield fact(f"The user {verb}{when}.", "general", verb, "happened", kind="event")


RULES = (
    rule(
        rf"{_I}(?P<verb>started|launched|opened|founded|set\s+up|joined|signed\s+up\s+for|enrolled\s+in)\s+"
        rf"(?P<what>(?:an?|my|our|the)\s+(?:[\w'-]+\s+){{0,4}}?{_UNDERTAKING}(?=$|[,.!]|\s+(?:for|of|about"
        r"|in|with|at|called|on|to|that|last|this|yesterday|today|online|and|together)\b)(?:\s+(?:for|of"
        r"|about|in|with|at|called)\s+[^,;:]+)?)",
        _milestone,
    ),
    rule(rf"{_I}(?P<verb>adopted|fostered)\s+(?P<what>(?:an?|two|three|our|my)\s+[^,;:]+)", _milestone),
    rule(
        rf"{_I}(?P<verb>graduated\s+from|graduated\s+in|won|published|self-published)\s+(?P<what>(?:an?|my"
        r"|the|our|(?-i:[A-Z]))[^,;:]+)",
        _milestone,
    ),
    rule(
        rf"{_I}(?P<verb>bought|sold)\s+(?P<what>(?:an?|our|my)\s+(?:[\w'-]+\s+){{0,3}}?(?:house|flat"
        r"|apartment|car|boat|van|motorbike|farm|cottage|home)(?=$|[,.!]|\s)[^,;:]*)",
        _milestone,
    ),
    rule(
        rf"{_I}(?P<verb>got\s+(?:married|engaged|divorced|promoted)|graduated|retired)(?=$|[,.!]|\s+(?:last"
        r"|this|in|on|yesterday|today|to)\b)",
        _personal,
    ),
)
