"""What is told in passing: fears, favourites, belongings, and what "our new kitten" takes for granted."""

import re
from collections.abc import Iterator

from langmem_adapter.extraction.clauses import Clause
from langmem_adapter.extraction.life import (
    CAREER,
    GOODS,
    MATTERS_OF_NOW,
    PLACES,
    POSSESSIONS,
    PURSUITS,
    is_a_place,
    is_of_life,
    noun,
    words_of,
)
from langmem_adapter.extraction.patterns.doings import event
from langmem_adapter.extraction.patterns.people import GIVEN_NAME, KIN, PET
from langmem_adapter.extraction.phrases import (
    ADV,
    AM,
    HAVE,
    I_AM,
    SPAN,
    Rule,
    dated,
    fact,
    generic,
    rule,
    thing,
    things,
    told,
    undated,
)
from langmem_adapter.extraction.times import timed
from langmem_adapter.records import Candidate


def _fears(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    for item in things(match["what"], 4):
        if not generic(item):
            break
        yield fact(f"The user is {match['how'].casefold()} of {item}.", "general", f"fear {item}", "afraid")


def _holds(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = told(match["what"])
    if what and is_of_life(what, POSSESSIONS) and not timed(what):
        yield fact(f"The user has {what}.", "general", what, "yes")


_AIDS = (
    r"(?:wheelchair|accessible|accessibility|step[- ]free|ground[- ]floor|hypoallergenic|non-?smoking"
    r"|hearing\s+(?:aid|loop)|subtitles|captions|large\s+print|screen\s+reader|guide\s+dog|service\s+dog"
    r"|walking\s+(?:stick|frame)|crutches|cane|child\s+seat|car\s+seat|high\s*chair|cot|crib|insulin|interpreter"
    r"|glasses|epi-?pen|lift|elevator)"
)


def _needs(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = told(match["what"], 8)
    if what and not timed(what):
        yield fact(f"The user needs {what}.", "general", what, "needed")


def _a_lot(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what, verb = thing(match["what"], 4), match["verb"].casefold()
    if what and generic(what) and noun(what) not in MATTERS_OF_NOW:
        yield fact(
            f"The user {verb}{'es' if verb == 'watch' else 's'} a lot of {what}.", "general", f"{verb} {what}", "a lot"
        )


def _favourite(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    kind = " ".join((match["kind"] or "").casefold().split())
    for what in things(re.sub(r"'s$", "", match["what"]), 5):
        if generic(what) and noun(what) not in MATTERS_OF_NOW:
            among = f"{what} is one of the user's favourite {kind}" if kind else f"{what} is a favourite of the user"
            yield fact(f"{among[0].upper()}{among[1:]}.", "preference/likes", what, "like", kind="preference")


def _passion(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = thing(re.sub(r"'s$", "", match["what"]), 5)
    if what and generic(what) and noun(what) not in MATTERS_OF_NOW:
        yield fact(f"The user's passion is {what}.", "preference/likes", what, "like", kind="preference")


_BEING = (
    r"(?:fan|dad|mom|mum|mother|father|parent|grandmother|grandfather|grandparent|widow|widower|veteran|immigrant|expat"
    r"|refugee|introvert|extrovert|night\s+owl|dog\s+owner|cat\s+owner|homeowner|survivor|single\s+(?:mom|mum|dad"
    r"|parent))"
)


def _as_a(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    """ "As a single mum, I …": but "as a customer, I want to …" is how wishes for software are written."""
    after = clause.said[match.end() :] + clause.after
    if re.match(
        r",?\s*(?:i|i'm|i've|my)\b(?!\s+(?:want|need|would|should|could|can|expect|wish)\b)", after, re.IGNORECASE
    ):
        what = thing(match["what"], 5)
        if what:
            yield fact(
                f"The user is {match['article'].casefold()} {what}.",
                "general",
                what,
                "yes",
                source_type="user_implicit",
            )


def _new(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    """ "Our new kitten": one need not be told that there is one."""
    if _TO_COME.search(clause.said):
        return
    what = " ".join(match["what"].casefold().split())
    named = (match["name"] or "").removesuffix("'s")
    words = match[0].removesuffix("'s") if named else ""
    called = f" called {named}" if named else ""
    yield fact(f"The user has a new {what}{called}.", "relation", f"{what} {named}".strip(), named or "yes").change(
        excerpt=words
    )


_TO_COME = re.compile(
    r"\b(?:want|wish|soon|until|wait|looking|search\w*|name|names|deserve|dream|need|order\w*|going\s+to|yet|not"
    r"|don't|didn't|haven't|never)\b",
    re.IGNORECASE,
)


def _someone(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    who, called = " ".join(match["who"].casefold().split()), match["name"].removesuffix("'s")
    article = "an" if who[0] in "aeiou" else "a"
    said = fact(f"The user has {article} {who} called {called}.", "relation", f"{who} {called}", called)
    yield said.change(excerpt=match[0].removesuffix("'s"))


def _trip(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    what, where = " ".join(match["what"].casefold().split()), told(f"{match['to']} {match['where']}")
    if where and _WAS.search(clause.said) and not _TO_COME.search(clause.said):
        article = "an" if what[0] in "aeiou" else "a"
        found = timed(clause.said[match.end() :])
        when = f" {found[0]}" if found and found.start() < 2 else dated(where, clause)
        yield event(f"The user went on {article} {what} {where}{when}.", f"{what} {undated(where)}")


_MANY = (
    r"(?:dogs|cats|kids|children|sons|daughters|brothers|sisters|siblings|grandchildren|turtles|rabbits|horses"
    r"|chickens)"
)


def _several(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    count, what = match["n"].casefold(), match["what"].casefold()
    yield fact(f"The user has {count} {what}.", "relation", what, count).change(excerpt=match[0])


def _part_of(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = told(match["what"])
    if what and is_of_life(what, CAREER | words_of("family council committee board crew troupe guild")):
        yield fact(f"The user is {match['how'].casefold()} of {what}.", "general", f"of {what}", "yes")


def _grew_up(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = told(match["what"])
    if what and (is_a_place(what) or is_of_life(what, PLACES)):
        yield fact(f"The user grew up {match['prep'].casefold()} {what}.", "general", "grew up", what)


def _long_been(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    state, span = " ".join(match["state"].casefold().split()), " ".join(match["span"].split())
    if "i was" not in span.casefold():
        yield fact(f"The user has been {state} {span}.", "general", state, span)


def _long_had(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what, span = told(match["what"]), " ".join(match["span"].split())
    if what and is_of_life(what, GOODS | POSSESSIONS) and "i was" not in span.casefold():
        yield fact(f"The user has had {what} {span}.", "general", f"had {what}", span)


def _interest(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    for what in things(match["what"], 3):
        if re.match(r"(?:an?|the|some|any|more|your|their|both)\b", what, re.IGNORECASE) or (
            re.match(r"\w+ing\b", what) and what.split()[0] not in PURSUITS
        ):
            break
        yield fact(f"The user is interested in {what}.", "preference/likes", what, "like", kind="preference")


def _seeks(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = told(match["what"])
    if what:
        how = " ".join(match["how"].casefold().split())
        yield fact(f"The user is {how} for {what}.", "project", f"new {what}", "active", kind="project")


_DRUGS = (
    r"(?:antibiotics|insulin|statins|blood\s+thinners|antidepressants|painkillers|beta[- ]blockers"
    r"|metformin|ibuprofen|aspirin|medication|steroids|antihistamines|the\s+pill|chemo(?:therapy)?"
    r"|iron\s+supplements|vitamin\s+\w+|birth\s+control)"
)


def _takes(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = " ".join(match["what"].split())
    yield fact(f"The user is {match['how'].casefold()} {what}.", "general", what, "yes")


def _goes_through(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    how, what = " ".join(match["how"].casefold().split()), " ".join(match["what"].casefold().split())
    what = re.sub(r"^my\b", "their", what)
    yield fact(f"The user is {how} {what}.", "project", what, "active", kind="project")


def _cannot(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = " ".join(match["what"].casefold().split())
    said = "never learned to" if "never" in match[0].casefold() else "cannot"
    yield fact(f"The user {said} {what}.", "general", what, "cannot")


def _soothes(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what, how = thing(match["what"], 5), " ".join(match["how"].casefold().split())
    if what and (re.match(r"\w+ing\b", what, re.IGNORECASE) or noun(what) in PURSUITS):
        yield fact(f"{what[0].upper()}{what[1:]} {match['does'].casefold()} the user {how}.", "general", what, how)


def _finds(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what, how = thing(match["what"], 5), match["how"].casefold()
    if what and (re.match(r"\w+ing\b", what, re.IGNORECASE) or noun(what) in PURSUITS):
        yield fact(f"The user finds {what} {how}.", "general", what, how)


_WAS = re.compile(r"\b(?:was|were|went|had|did|loved|enjoyed|took|back\s+from|last|after|during)\b", re.IGNORECASE)


RULES = (
    rule(
        rf"{AM}\s+{ADV}(?P<how>afraid|scared|terrified|frightened|petrified)\s+of\s+(?P<what>.+)",
        _fears,
    ),
    rule(rf"{HAVE}\s+(?P<what>(?:an?|my|our|my\s+own|our\s+own|two|three)\s+[^;:]+)", _holds),
    rule(rf"{I_AM}(?P<how>part|a\s+member)\s+of\s+(?P<what>.+)", _part_of),
    rule(r"i\s+(?:actually\s+)?grew\s+up\s+(?P<prep>in|on|near)\s+(?P<what>.+)", _grew_up, tolerates=("past",)),
    rule(
        r"(?:i've|i\s+have|we've|we\s+have)\s+been\s+(?P<state>(?:happily\s+)?married|together|engaged|sober"
        r"|clean|single"
        rf"|divorced|widowed|retired|self-employed|friends)\s+(?P<span>{SPAN})\b",
        _long_been,
    ),
    rule(
        rf"(?:i've|i\s+have|we've|we\s+have)\s+had\s+(?P<what>(?:my|our|an?|this"
        rf"|these)\s+[^,;:]{{2,50}}?)\s+(?P<span>{SPAN})\b",
        _long_had,
    ),
    rule(
        rf"{I_AM}(?P<how>looking|searching|on\s+the\s+(?:hunt|lookout))\s+for\s+(?P<what>(?:an?"
        rf"|my)\s+(?:[\w-]+\s+){{0,3}}?(?:job"
        r"|internship|apartment|flat|house|flatmate|roommate|housemate|place\s+to\s+live))\b",
        _seeks,
    ),
    rule(rf"{I_AM}(?P<how>on|taking)\s+(?P<what>{_DRUGS})\b", _takes),
    rule(
        rf"{I_AM}(?P<how>going\s+through|in\s+the\s+middle\s+of)\s+(?P<what>(?:a|my)\s+(?:divorce|break-?up|separation)"
        r"|(?:the\s+)?menopause|chemo(?:therapy)?|ivf|fertility\s+treatment)\b",
        _goes_through,
    ),
    rule(
        r"i(?:\s+can't|\s+cannot|\s+cant|(?:'ve|\s+have)?\s+never\s+learn(?:ed"
        r"|t)(?:\s+how)?\s+to)\s+(?P<what>swim|drive|cook"
        r"|dance|sing|ski|skate|whistle|ride\s+a\s+bike|read\s+music|type)(?=$|[,.!])",
        _cannot,
    ),
    rule(rf"{I_AM}interested\s+in\s+(?P<what>.+)", _interest),
    rule(
        r"(?P<what>[a-z][^,;:]{2,40}?)\s+(?:really\s+|always\s+)?(?P<does>helps)\s+me\s+(?:to\s+)?(?P<how>relax"
        r"|unwind|de-?stress"
        r"|calm\s+down|stay\s+calm|sleep|focus|cope|stay\s+(?:fit|sane|healthy|grounded))\b",
        _soothes,
    ),
    rule(
        r"i\s+find\s+(?P<what>[^,;:]{3,40}?)\s+(?:really\s+|very\s+|so\s+|quite\s+)?(?P<how>relaxing|calming"
        r"|therapeutic|soothing"
        r"|boring|exhausting|stressful|rewarding|fascinating)\b",
        _finds,
    ),
    rule(
        rf"i\s+(?:always\s+|usually\s+|will\s+|do\s+)?need\s+(?P<what>(?:an?\s+"
        rf"|my\s+)?(?:[\w-]+\s+){{0,3}}?{_AIDS}\b.*)",
        _needs,
    ),
    rule(
        r"i\s+(?P<verb>watch|read|listen\s+to|eat|drink|play)\s+(?:a\s+lot|lots|loads|tons)\s+of\s+(?P<what>.+)", _a_lot
    ),
    rule(
        r"(?P<what>[^,;:]{2,50}?)(?:\s+(?:is|are)|(?<=\w)'s)\s+(?:definitely\s+|still\s+"
        r"|probably\s+)?(?:one\s+of\s+)?my\s+"
        r"(?:all[- ]time\s+|absolute\s+)?fav(?:e|ou?rite)s?(?:\s+(?P<kind>(?!part|memory|memories|thing)[a-z]{3,20}s))?"
        r"(?=$|[,.!]|\s+too$)",
        _favourite,
    ),
    rule(r"(?P<what>[^,;:]{2,40}?)\s+is\s+my\s+(?:true\s+|biggest\s+|real\s+)?passion$", _passion),
    rule(r"my\s+(?:true\s+|biggest\s+|real\s+)?passion\s+is\s+(?P<what>.+)", _passion),
    rule(
        rf"as\s+(?P<article>an?)\s+(?P<what>(?:[\w-]+\s+){{0,3}}?{_BEING}(?:\s+of\s+(?:two|three|four"
        rf"|five))?)(?=$|,|\s+i\b)",
        _as_a,
    ),
)

ASIDES: tuple[Rule, ...] = (
    rule(rf"\b(?:my|our)\s+(?P<n>two|three|four|five|six|seven|\d)\s+(?P<what>{_MANY})\b", _several, anywhere=True),
    rule(
        rf"\b(?:my|our)\s+(?:brand[- ])?new\s+(?P<what>{PET}|house|flat|apartment|car|boyfriend|girlfriend|baby|bike"
        r"|guitar|piano)\b"
        rf"(?:,?\s+(?:named\s+|called\s+)?{GIVEN_NAME})?",
        _new,
        anywhere=True,
    ),
    rule(
        rf"\b(?:my|our)\s+(?P<who>{KIN}|{PET}),?\s+(?:named\s+|called\s+)?{GIVEN_NAME}",
        _someone,
        anywhere=True,
    ),
    rule(
        r"\b(?:my|our)\s+(?P<what>(?:[a-z]+\s+)?(?:trip|vacation|holiday|honeymoon|cruise|road\s+trip"
        r"|pilgrimage))\s+(?P<to>to"
        r"|in|through|around)\s+(?P<where>(?:the\s+)?(?-i:[A-Z])[\w'-]+(?:\s+(?:(?:the|and"
        r"|of)\s+)?(?-i:[A-Z])[\w'-]+){0,3})",
        _trip,
        anywhere=True,
    ),
)
"""Told beside what a clause is about: each is tried on every clause."""
