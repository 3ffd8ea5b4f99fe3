"""What the user did or does, and for how long: "last week I joined a choir", "I've been painting for years"."""

import re
from collections.abc import Iterator

from langmem_adapter.extraction.clauses import Clause
from langmem_adapter.extraction.life import (
    ALL_OF_LIFE,
    ANYTHING,
    CAREER,
    CHORES,
    GOODS,
    HAPPENINGS,
    HONOURS,
    MATTERS_OF_NOW,
    OCCASIONS,
    PLACES,
    PURSUITS,
    WORKS,
    is_a_place,
    is_of_life,
    noun,
    words_of,
)
from langmem_adapter.extraction.patterns.people import GIVEN_NAME, KIN, PET
from langmem_adapter.extraction.phrases import I_AM, SPAN, dated, fact, rule, third, told, undated
from langmem_adapter.extraction.times import timed
from langmem_adapter.records import Candidate

_BODY = (
    r"(?:(?:left|right|upper|lower)\s+)?(?:leg|arm|ankle|wrist|foot|toe|finger|thumb|hand|knee|hip|shoulder|elbow|back"
    r"|neck|rib|ribs|collarbone|nose|jaw|skull|pelvis|achilles(?:\s+tendon)?|acl|meniscus|hamstring|groin|tendon|eye)"
)


_PASTIME = (
    r"(?:camping|hiking|biking|cycling|fishing|surfing|swimming|skiing|snowboarding|kayaking|rafting|sailing|climbing"
    r"|bouldering|backpacking|diving|snorkell?ing|horseback\s+riding|dancing|bowling|skating|ice[- ]skating"
    r"|snowshoeing|skydiving|paragliding|birdwatching|sightseeing|road[- ]?tripping|stargazing|rock\s+climbing"
    r"|scuba\s+diving)"
)


_IF_DATED = words_of("-")
"""No word: such a verb teaches nothing without a day."""
_LIFE: dict[str, frozenset[str]] = {
    # verb: what it must be about; nothing: whatever is not of the moment
    **dict.fromkeys(
        (
            "attended adopted fostered hosted organized organised toured hiked climbed knitted crocheted planted "
            "renovated restored graduated-from retired-from participated-in competed-in performed-at performed-in "
            "volunteered-at volunteered-for volunteered-with interned-at enrolled-in flew-to drove-to "
            "travelled-to traveled-to travelled-around traveled-around travelled-through traveled-through "
            "moved-in-with broke-up-with got-back-from came-back-from returned-from signed-up-for took-part-in"
        ).split(),
        ANYTHING,
    ),
    **dict.fromkeys(("visited", "explored"), PLACES),
    "moved-into": GOODS | PLACES,
    **dict.fromkeys(("went-to", "took"), OCCASIONS | PLACES),
    "went-on": OCCASIONS,
    "joined": CAREER
    | OCCASIONS
    | words_of("army navy military scouts council staff crew orchestra network guild union comp"),
    **dict.fromkeys(("started", "began", "took-up", "tried", "got-into", "quit"), PURSUITS | CAREER),
    **dict.fromkeys(("finished", "completed"), WORKS | CAREER | OCCASIONS),
    **dict.fromkeys(("wrote", "published", "painted", "built", "recorded", "drew", "made", "sewed"), WORKS),
    **dict.fromkeys(("bought", "got", "sold", "rented", "inherited"), GOODS | HONOURS),
    **dict.fromkeys(("opened", "launched", "founded"), CAREER | OCCASIONS),
    **dict.fromkeys(("won", "earned", "received"), HONOURS | OCCASIONS),
    "lost": words_of("job passport house home baby"),
    "had": HAPPENINGS,
    **dict.fromkeys(("ran", "led", "gave"), OCCASIONS | words_of("talk speech recital")),
    **dict.fromkeys(("passed", "failed"), words_of("exam exams test bar boards finals licence license certification")),
    "celebrated": OCCASIONS | words_of("christmas easter diwali hanukkah eid thanksgiving graduation"),
    "signed-with": CAREER,
    **dict.fromkeys(("met", "saw", "watched", "read", "cooked", "baked", "played", "performed", "entered"), _IF_DATED),
    **dict.fromkeys(("streamed", "scored", "introduced", "moved", "caught", "fixed-up", "held", "threw"), _IF_DATED),
    "learned": PURSUITS,
    "learnt": PURSUITS,
}


_PARTICIPLES = {
    "taken": "took",
    "taken up": "took up",
    "gone to": "went to",
    "gone on": "went on",
    "written": "wrote",
    "gotten": "got",
    "begun": "began",
    "drawn": "drew",
    "run": "ran",
    "given": "gave",
    "gotten into": "got into",
}


_DONE = "|".join(
    sorted((v.replace("-", r"\s+").replace(" ", r"\s+") for v in (*_LIFE, *_PARTICIPLES)), key=len, reverse=True)
)


_OWNED = re.compile(r"(?:an?|the|my|our|their|some|one|two|three|four|five|six|\d{1,2})\s|(?-i:[A-Z])", re.IGNORECASE)


def _did(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    """Something that the user did, or that happened to them."""
    verb = " ".join(match["verb"].casefold().split())
    verb = _PARTICIPLES.get(verb, verb)
    allowed, what = _LIFE[verb.replace(" ", "-")], told(match["what"])
    if not what or not (_OWNED.match(what) or allowed) or (verb == "got" and match["who"][-2:].casefold() == "ve"):
        return
    named = verb in ("visited", "explored", "went to") and is_a_place(what)
    if not named and not is_of_life(what, allowed, farther=verb == "took") and not _on_a_day(what, clause):
        return
    if verb in ("passed", "failed") and not re.match(r"their\s|the\s+bar\b", what):
        return
    yield event(f"The user {verb} {what}{dated(what, clause)}.", f"{verb} {undated(what)}")


def _on_a_day(what: str, clause: Clause) -> bool:
    """Whether it is told with its time, as a story is, and is none of the things that every day is full of."""
    parts = _PARTS.split(undated(what))
    return (
        bool(clause.when or timed(what))
        and bool(_OWNED.match(what))
        and bool(noun(parts[0]))
        and not any(noun(p) in CHORES | MATTERS_OF_NOW for p in parts[:2])
        and not re.search(r"\d\s*(?:am|pm|o'clock)\b|\bat\s+(?:\d|noon|ten|eight|nine)", what, re.IGNORECASE)
    )


_PARTS = re.compile(r"\s+(?:about|for|with|from|of|in|at|on|to|into|against|during|after)\s+")


def event(content: str, slot: str) -> Candidate:
    return fact(content, "general", slot, "happened", kind="event")


def _did_my(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    """The same with "I" left out, as people write, at the start of a sentence about something of the speaker's."""
    if _opens_sentence(clause):
        yield from _did(match, clause)


def _opens_sentence(clause: Clause) -> bool:
    return clause.sentence.startswith(clause.said[:20]) and clause.said[0].isupper()


def _went(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    pastime = " ".join(match["pastime"].casefold().split())
    rest = told(match["rest"]) if (match["rest"] or "").strip() else ""
    if rest is not None:
        said = f"went {pastime} {rest}".strip()
        yield event(f"The user {said}{dated(rest, clause)}.", undated(said))


def _hurt(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    if not match["who"] and not _opens_sentence(clause):
        return
    verb, part = match["verb"].casefold(), " ".join(match["part"].casefold().split())
    when = dated("", clause) or (f" {found[0]}" if (found := timed(match["rest"] or "")) else "")
    yield event(f"The user {verb} their {part}{when}.", f"{verb} {part}")


def _has_been(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    """What the user has done for a time that they name: "I've been playing the violin for five years"."""
    verb, what = match["verb"].casefold(), told(match["what"]) if match["what"].strip() else ""
    if what is None or _IDLE.match(verb) or not (is_of_life(what, ANYTHING) if what else verb in PURSUITS):
        return
    if verb in ("doing", "going") and not is_of_life(what, ALL_OF_LIFE, farther=True):
        return
    span = re.sub(r"\bi\s+was\b", "the user was", " ".join(match["span"].split()), flags=re.IGNORECASE)
    said = f"{verb} {what}".strip()
    yield fact(f"The user has been {said} {span}.", "general", said, span)


def _has_done(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    verb, what, span = match["verb"].casefold(), told(match["what"]), " ".join(match["span"].split())
    if (
        what
        and is_of_life(re.sub(r"^(?:as|at|in|for|with|on)\s+", "", what), ANYTHING)
        and "i was" not in span.casefold()
    ):
        yield fact(f"The user has {verb} {what} {span}.", "general", f"{verb} {what}", span)


_IDLE = re.compile(
    r"(?:wait|look|try|think|feel|hav|gett|say|tell|ask|want|mean|star|search|be|dy|miss|hop|wonder|struggl|talk|keep"
    r"|send|call|us|pay|fight|deal|debugg|fix|stuck|com|mak|tak|put|see|runn|chas|stay)ing\b"
)


_NOW = {
    "taking": OCCASIONS | CAREER,
    "attending": OCCASIONS | CAREER,
    "starting": CAREER | PURSUITS,
    "opening": CAREER,
    "launching": CAREER,
    **dict.fromkeys(("practicing for", "practising for"), OCCASIONS),
    "practicing": PURSUITS,
    "practising": PURSUITS,
    "playing": PURSUITS | words_of("tournament"),
    "doing": PURSUITS | words_of("phd master's masters internship residency degree mba"),
    "teaching": PURSUITS | OCCASIONS,
    "trying": PURSUITS,
    "trying out": PURSUITS,
    "getting into": PURSUITS,
    "renovating": GOODS,
    "hosting": OCCASIONS,
    "organizing": OCCASIONS,
    "organising": OCCASIONS,
    "saving for": GOODS | OCCASIONS | CAREER,
    "saving up for": GOODS | OCCASIONS | CAREER,
    "recovering from": HAPPENINGS | words_of("injury flu covid burnout addiction illness cancer depression pneumonia"),
    "writing": WORKS | words_of("blog posts"),
    "painting": WORKS,
    "recording": WORKS,
    "volunteering": ANYTHING,
    "interning": ANYTHING,
    "participating in": OCCASIONS,
    **dict.fromkeys(
        ("getting ready for", "preparing for", "rehearsing for", "training for"), OCCASIONS | words_of("comp")
    ),
    "competing in": OCCASIONS,
    "reading": words_of("novel trilogy memoir biography"),
}


_DOING = "|".join(sorted((v.replace(" ", r"\s+") for v in _NOW), key=len, reverse=True))


def _is_doing(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    """What the user is busy with these weeks: "I'm taking a pottery class", "I've been reading Dune"."""
    verb, what = " ".join(match["verb"].casefold().split()), told(match["what"])
    if not what or (match["been"] is None and timed(what)):  # of a day that is to come: a plan
        return
    title = verb in ("reading", "playing") and re.match(
        r"[A-Z0-9][\w':-]*(?:\s+(?:of|the|and|[A-Z0-9][\w':-]*))*$", what
    )
    if verb in ("volunteering", "interning") and not re.match(r"(?:at|for|with|in|as)\s", what):
        return
    if not title and not is_of_life(re.sub(r"^(?:at|for|with|in|as)\s+", "", what), _NOW[verb]):
        return
    how = "has been" if match["been"] else "is"
    yield fact(f"The user {how} {verb} {what}.", "project", f"{verb} {what}", "active", kind="project")


def _studied(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    what = told(match["what"])
    if what and (
        re.search(r"\bat\s+(?:the\s+)?[A-Z]|\b(?:university|college|school|uni)\b", what)
        or match["verb"] == "majored in"
    ):
        yield event(
            f"The user {' '.join(match['verb'].casefold().split())} {what}{dated(what, clause)}.", f"studied {what}"
        )


def _been_to(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = told(match["what"])
    if what and is_a_place(what):
        never = "never " if match["never"] else ""
        yield fact(
            f"The user has {never}been to {what}.", "general", f"been to {undated(what)}", never.strip() or "yes"
        )


def _regularly(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    verb, what, often = (
        match["verb"].casefold(),
        told(match["what"] or "") or "",
        " ".join(match["often"].split()),
    )
    if (
        _NO_HABIT.match(f"{verb} {what}".strip())
        or _NO_HABIT.match(verb)
        or bool((match["what"] or "").strip()) != bool(what)
        or (what and (what.startswith("and ") or not is_of_life(what, ANYTHING)))
    ):
        return
    said = f"{third(verb)} {what}".strip()
    yield fact(f"The user {said} {often}.", "general", f"{verb} {what}".strip(), often)


_NO_HABIT = re.compile(
    r"(?:\w+(?:ed|ght)|was|were|had|did|went|got|took|made|said|saw|came|gave|found|won|lost|met|ran|ate|kept"
    r"|felt|left|wrote"
    r"|told|heard|am|is|have|can|could|will|would|should|must|may|might|want|wish|hope|think|guess|need|forget"
    r"|get|see|hear"
    r"|just|only|never|almost|nearly|hardly|don't|didn't|won't|can't|cannot|say|die|learn|feel|know|tell|ask|call"
    r"|love|like|play\s+(?:dead|along|dumb))$"
)


def _diagnosed(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    what = told(match["what"])
    if what and noun(what) not in MATTERS_OF_NOW and " case of " not in f" {what} ":
        yield event(f"The user was diagnosed with {what}{dated(what, clause)}.", f"diagnosed with {undated(what)}")


def _kin_did(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    who, verb = " ".join(match["who"].casefold().split()), " ".join(match["verb"].casefold().split())
    label = f"{who} {(match['name'] or '').removesuffix(chr(39) + 's')}".strip()
    found = timed(match["rest"] or "")
    when = f" {found[0]}" if found and found.start() < 2 else dated("", clause)
    if verb == "was born" and not when:
        where = re.match(r"\s+in\s+(?-i:[A-Z])[\w'-]+(?:\s+(?-i:[A-Z])[\w'-]+)?", match["rest"], re.IGNORECASE)
        if where is None:
            return
        when = where[0]
    yield fact(
        f"The user's {label} {verb}{when}.", "relation", f"{label} {verb}", "happened", kind="event", subject=label
    )


_I = (
    r"(?P<who>i|we|i've|we've|i\s+have|we\s+have)\s+"
    r"(?:(?:just|recently|finally|also|actually|even|already|officially|both|then)\s+)*"
)


_BEEN = (
    r"(?:i've|ive|i\s+have|we've|we\s+have)\s+(?:also\s+|actually\s+|just\s+|really\s+|recently\s+)*been\s+"
    r"(?:really\s+|slowly\s+|also\s+)?"
)


RULES = (
    rule(rf"{_BEEN}(?P<verb>[a-z]+ing)\s*(?P<what>[^;:]*?)\s+(?P<span>{SPAN})\b", _has_been),
    rule(
        r"(?:i've|i\s+have)\s+(?P<verb>worked(?=\s+(?:as|at|for|in|with)\b)|studied|taught|played|painted|sung"
        r"|danced|run|practi[cs]ed|coached|volunteered"
        rf"|owned|driven|lived)\s+(?P<what>[^,;:]{{2,60}}?)\s+(?P<span>{SPAN})\b",
        _has_done,
    ),
    rule(rf"{_I}(?P<verb>{_DONE})\s+(?P<what>.+)", _did, tolerates=("past",)),
    rule(
        rf"(?:just\s+|finally\s+|recently\s+)?(?P<who>)(?P<verb>{_DONE})\s+(?P<what>(?:my|our)\s+.+)",
        _did_my,
    ),
    rule(rf"{_I}(?:went|gone)\s+(?P<pastime>{_PASTIME})\b(?P<rest>.*)", _went),
    rule(
        rf"(?:{_I})?(?P<verb>broke|sprained|twisted|tore|fractured|dislocated|injured|hurt"
        rf"|strained)\s+my\s+(?P<part>{_BODY})"
        r"(?!\s+(?:to|trying|for|over|working)\b)(?P<rest>.*)",
        _hurt,
    ),
    rule(
        rf"(?:{I_AM}|(?P<been>{_BEEN}))(?P<verb>{_DOING})\s+(?P<what>.+)",
        _is_doing,
    ),
    rule(
        r"i\s+(?:also\s+|usually\s+|still\s+|always\s+)?(?P<verb>[a-z]+)(?:\s+(?P<what>[^,;:]{2,60}?))?\s+"
        r"(?P<often>every\s+(?:single\s+|other\s+)?(?:day|morning|evening|night|week|weekend|month|year|summer"
        r"|winter|spring"
        r"|autumn|(?:mon|tues|wednes|thurs|fri|satur|sun)day)|(?:once|twice|three\s+times|four\s+times"
        r"|five\s+times)\s+a\s+"
        r"(?:day|week|month|year)|on\s+(?:mon|tues|wednes|thurs|fri|satur|sun)days)(?=$|[,.!]|\s+(?:and|with|to"
        r"|for|before"
        r"|after|because|since|at|in)\b)",
        _regularly,
    ),
    rule(
        r"i(?:'ve|\s+have)?\s+(?:was|got|been)\s+(?:just\s+|recently\s+)?diagnosed\s+with\s+(?P<what>.+)",
        _diagnosed,
    ),
    rule(
        rf"(?:my|our)\s+(?P<who>{KIN}|{PET})(?:,?\s+{GIVEN_NAME},?)?\s+(?:just\s+|recently\s+|sadly\s+)?"
        r"(?P<verb>died|passed\s+away|was\s+born|got\s+(?:into\s+an\s+accident|married|engaged|divorced|pregnant)"
        r"|graduated|retired|had\s+(?:a\s+baby"
        r"|twins|a\s+stroke|a\s+heart\s+attack|surgery|an\s+accident)|broke\s+(?:his|her)\s+(?:leg|arm|wrist"
        r"|ankle|hip))"
        r"(?=$|[,.!]|\s)(?P<rest>[^;:]*)",
        _kin_did,
    ),
    rule(r"i\s+(?P<verb>studied|majored\s+in)\s+(?P<what>.+)", _studied),
    rule(r"(?:i|we)(?:'ve|\s+have)\s+(?P<never>never\s+)?been\s+to\s+(?P<what>.+)", _been_to),
)
