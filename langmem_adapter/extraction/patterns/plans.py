"""What the user means to do, and what is due on a day that they name: it ends with that day."""

import re
from collections.abc import Iterator

from langmem_adapter.extraction.clauses import Clause
from langmem_adapter.extraction.life import (
    ALL_OF_LIFE,
    ANYTHING,
    CAREER,
    GOODS,
    HAPPENINGS,
    OCCASIONS,
    PLACES,
    PURSUITS,
    is_a_place,
    is_of_life,
    words_of,
)
from langmem_adapter.extraction.patterns.people import KIN
from langmem_adapter.extraction.phrases import HAVE, I_AM, dated, fact, rule, told, undated
from langmem_adapter.extraction.times import timed
from langmem_adapter.records import Candidate

_DO = (
    r"(?:visit|travel|learn|run|write|start|open|launch|buy|adopt|study|volunteer|retire|get|have|lose|build|take|do|go"
    r"|join|finish|publish|attend|compete|participate|climb|hike|cook|eat|cut\s+(?:down|back|out)|quit|save|exercise"
    r"|sell|host|organi[sz]e|train|teach|record|perform|expand|explore|read|renovate|plant|grow|improve|drink|sleep)"
)


_ENOUGH = re.compile(
    r"(?:retire|volunteer|travel|exercise|lose\s+(?:some\s+)?(?:weight|\d)|quit\s+(?:smoking|drinking|sugar|vaping)"
    r"|cut\s+(?:down|back|out)\s+on|eat\s+(?:less|more|healthier|better)|drink\s+(?:less|more\s+water)"
    r"|read\s+more\s+books|get\s+(?:married|fit|in\s+shape|in\s+better\s+shape|stronger|healthier|pregnant)"
    r"|have\s+(?:a\s+baby|children|kids)|save\s+(?:up|money)|improve\s+my\s+(?:health|fitness|diet)"
    r"|learn\s+(?:how\s+)?to\s+\w+|learn\s+(?-i:[A-Z])\w+|visit\s+(?:(?:the\s+)?(?-i:[A-Z])\w+|(?:my|our)\s+\w+)"
    r"|adopt\s+(?:an?|another|two)|travel\s+to\s+(?-i:[A-Z])\w+)\b",
    re.IGNORECASE,
)


def _aim(words: str) -> str | None:
    """What the user means to do ("to run a marathon"), if it is of their life."""
    what = told(words)
    if not what:
        return None
    rest = re.sub(rf"^{_DO}(?:\s+(?:to|in|at|on|for|into|back\s+to))?\s+", "", what, flags=re.IGNORECASE)
    return what if _ENOUGH.match(words) or (rest != what and is_of_life(rest, ALL_OF_LIFE)) else None


def _plans(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    what = _aim(match["what"])
    if what:
        how = " ".join(match["how"].casefold().split())
        yield fact(f"The user is {how} {what}{dated(what, clause)}.", "project", undated(what), "active", kind="plan")


_GERUND = {"getting": "get", "running": "run", "having": "have", "quitting": "quit", "cutting": "cut", "losing": "lose"}


def _considers(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    first, _sep, rest = match["what"].partition(" ")
    stem = _GERUND.get(first.casefold(), first.casefold().removesuffix("ing"))
    base = next((b for b in (stem, f"{stem}e") if re.fullmatch(_DO, b)), None)
    what = told(match["what"])
    if what and base and _aim(f"{base} {rest}"):
        how = " ".join(match["how"].casefold().split())
        yield fact(f"The user is {how} {what}{dated(what, clause)}.", "project", undated(what), "active", kind="plan")


def _goal(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    what, kind = told(match["what"]), " ".join(match["kind"].casefold().split())
    if what and (_aim(match["what"]) or is_of_life(what.partition(" ")[2], ANYTHING)) and len(what.split()) > 1:
        yield fact(f"The user's {kind} is to {what}.", "project", f"{kind} {what}", "active", kind="goal")


def _wishes(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    verb, what = " ".join(match["verb"].casefold().split()), told(re.sub(_SOME_DAY, "", match["what"]))
    some_day = bool(_SOME_DAY.search(match["what"])) or "always" in match["how"].casefold()
    if not what or not (
        (verb in ("visit", "travel to", "explore") or some_day)
        and (is_a_place(what) or (some_day and (verb.startswith("learn to") or is_of_life(what, ALL_OF_LIFE))))
    ):
        return
    how = "has always wanted" if "always" in match["how"].casefold() else "would like"
    said = f"{verb} {what}{' some day' if some_day and how == 'would like' else ''}"
    yield fact(f"The user {how} to {said}.", "project", f"{verb} {undated(what)}", "wish", kind="plan")


_SOME_DAY = re.compile(r"\s+(?:some\s*day|one\s+day|eventually|at\s+some\s+point)\b", re.IGNORECASE)


def _will(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    """What the user does at a time to come that they name: "next week I'm flying to Rome"."""
    what = told(match["what"]) if match["what"].strip() else ""
    if what is None:
        return
    when = timed(what)
    told_time = f" {when[0]}" if when else dated("", clause)
    verb = " ".join(match["verb"].casefold().split())
    goal = undated(what)
    if not told_time or not _comes(told_time, clause):
        return
    if verb in ("getting married", "graduating", "retiring", "giving birth") and not goal:
        yield _plan(f"The user is {verb}{told_time}.", verb)
    elif (
        (
            (m := re.match(r"(?:to|for|back\s+to|in)\s+(?P<to>.+)", goal))
            and (is_a_place(m["to"]) or is_of_life(m["to"], OCCASIONS | PLACES))
        )
        or is_of_life(goal, GOODS if verb == "getting" else OCCASIONS | CAREER | HAPPENINGS)
        or (verb == "visiting" and is_a_place(goal))
    ):
        yield _plan(f"The user is {verb} {what}{dated(what, clause)}.", f"{verb} {goal}")


def _comes(when: str, clause: Clause) -> bool:
    """Whether a time is one to come; "on Friday" is, in the present tense."""
    return not re.search(
        r"\b(?:last|ago|back|yesterday|past|earlier|other\s+day|in\s+(?:19|20)\d\d)\b", when, re.IGNORECASE
    )


def _plan(content: str, slot: str, topic: str = "general") -> Candidate:
    return fact(content, topic, slot, "planned", kind="plan")


def _appointment(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    """One with a day: an hour alone ("a meeting at 3") is of some day that nobody can tell later."""
    what = told(match["what"])
    if not what or not (timed(what) or clause.when) or not _comes((timed(what) or [clause.when])[0], clause):
        return
    yield _plan(f"The user has {what}{dated(what, clause)}.", undated(what))


def _is_due(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    what, verb = " ".join(match["what"].casefold().split()), match["verb"].casefold()
    rest = told(match["rest"])
    if rest and timed(rest) and _comes(rest, clause):
        yield _plan(f"The user's {what} {verb} {rest}.", what)


def _expects(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    what = " ".join(match["what"].casefold().split())
    rest = told(match["rest"]) if (match["rest"] or "").strip() else ""
    when = f" {found[0]}" if rest and (found := timed(rest)) else ""
    yield fact(f"The user is expecting {what}{when}.", "project", f"expecting {what}", "expected", kind="plan")


def _kin_does(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    who, verb = " ".join(match["who"].casefold().split()), " ".join(match["verb"].casefold().split())
    rest = told(match["rest"]) if (match["rest"] or "").strip() else ""
    if rest is None or (not rest and verb not in ("pregnant", "getting married", "graduating", "retiring")):
        return
    if rest and verb == "starting" and not is_of_life(rest, CAREER | PURSUITS | words_of("kindergarten nursery uni")):
        return
    said = f"{verb} {rest}".strip()
    yield fact(
        f"The user's {who} is {said}{dated(rest, clause)}.",
        "relation",
        f"{who} {undated(said)}",
        "yes",
        kind="plan",
        subject=who,
    )


RULES = (
    rule(
        rf"{I_AM}(?P<how>(?:planning|hoping|aiming|trying|saving\s+up|looking\s+forward)\s+to"
        rf"|planning\s+on)\s+(?P<what>{_DO}\b.+)",
        _plans,
        tolerates=("modal", "ahead"),
    ),
    rule(
        rf"{I_AM}(?P<how>thinking\s+(?:of|about)|considering|planning\s+on|looking\s+forward\s+to)\s+"
        r"(?P<what>(?!mov|switch|chang|becom|leav|go)[a-z]+ing\b.*)",
        _considers,
        tolerates=("modal", "ahead"),
    ),
    rule(
        r"my\s+(?:(?:main|biggest|long-term|current|personal|next|big)\s+)*(?P<kind>goal|dream|ambition"
        r"|new\s+year'?s\s+resolution"
        r"|resolution)(?:\s+(?:for|this)\s+[\w\s]{2,20}?)?\s+is\s+to\s+(?P<what>.+)",
        _goal,
    ),
    rule(
        r"(?P<how>i(?:'d|\s+would)\s+(?:really\s+)?(?:like|love)|i(?:'ve|\s+have)\s+always\s+wanted"
        r"|i\s+(?:really\s+)?want"
        r"|i\s+hope)\s+to\s+(?P<verb>visit|travel\s+to|explore|go\s+to|learn\s+to|learn|run|write|climb|see|try"
        r"|own|hike)\s+(?P<what>.+)",
        _wishes,
        tolerates=("modal",),
    ),
    rule(
        rf"{I_AM}(?P<verb>off|getting(?!\s+married)|flying|going|travelling|traveling|driving|heading|visiting"
        rf"|starting|hosting|running|performing|competing"
        r"|having|attending|taking|moving|getting\s+married|graduating|retiring"
        r"|giving\s+birth)(?P<what>(?!\s+to\s+(?:[a-z]+\s+)"
        r"(?:it|this|that|you)\b).*)",
        _will,
        tolerates=("modal", "ahead"),
    ),
    rule(
        rf"{HAVE}\s+(?P<what>an?\s+(?:[\w'-]+\s+){{0,3}}?(?:appointment|meeting|interview|exam|check-?up|flight"
        rf"|surgery|operation"
        r"|recital|wedding|concert|deadline|presentation|conference|tournament|game|race|competition|show"
        r"|audition|party|event"
        r"|date)\b.*|(?:two\s+|three\s+|four\s+|\d\s+)?tickets\s+(?:for|to)\s+.*)",
        _appointment,
        tolerates=("ahead",),
    ),
    rule(
        r"my\s+(?P<what>(?:[a-z]+\s+)?(?:flight|train|appointment|exam|interview|surgery|operation|wedding"
        r"|check-?up|deadline"
        r"|graduation|audition))\s+(?P<verb>is|leaves|departs|starts|begins)\s+(?P<rest>.+)",
        _is_due,
        tolerates=("ahead",),
    ),
    rule(
        rf"{I_AM}expecting\s+(?P<what>a\s+baby(?:\s+(?:boy|girl))?|twins|our\s+first\s+(?:child|baby))(?P<rest>.*)",
        _expects,
    ),
    rule(
        rf"(?:my|our)\s+(?P<who>{KIN})\s+is\s+(?:also\s+|now\s+|currently\s+)?(?P<verb>starting|getting\s+married"
        rf"|graduating"
        r"|expecting|studying|learning|training|pregnant|retiring|recovering)\b(?P<rest>[^;:]*)",
        _kin_does,
        tolerates=("ahead",),
    ),
)
