"""Seats, likes and dislikes, tools."""

import re
from collections.abc import Iterator
from itertools import takewhile

from langmem_adapter.extraction.clauses import Clause
from langmem_adapter.extraction.patterns.food import _KIND as DIETS
from langmem_adapter.extraction.patterns.identity import SOFTWARE
from langmem_adapter.extraction.phrases import ADV, AM, fact, generic, rule, tail_cut, thing, things, third
from langmem_adapter.records import Candidate
from langmem_adapter.text import slot as normal

_SEATS = r"(?:aisle|window|middle|exit[- ]row|bulkhead|front[- ]row|front|back|rear|emergency[- ]exit)"
_GROUND = re.compile(r"\b(?:train|bus|coach|cinema|theatre|theater|car|restaurant|boat|ferry|tram)s?\b", re.IGNORECASE)


def _seat(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    seat = re.sub(r"\s+", "-", match["seat"].casefold())
    if not _GROUND.search(clause.said):
        yield fact(f"The user prefers {seat} seating on flights.", "travel/seat", value=seat, kind="preference")


def _likes(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    verb, value = _VERBS[" ".join(match["verb"].casefold().split())]
    to = "to " if match["what"].casefold().startswith("to ") else ""
    for item in takewhile(generic, things(match["what"][len(to) :])):
        yield fact(f"The user {verb} {to}{item}.", "preference/likes", item, value, kind="preference")


_VERBS = {
    "love": ("loves", "like"),
    "like": ("likes", "like"),
    "enjoy": ("enjoys", "like"),
    "adore": ("adores", "like"),
    "hate": ("hates", "dislike"),
    "dislike": ("dislikes", "dislike"),
    "detest": ("detests", "dislike"),
    "loathe": ("loathes", "dislike"),
    "despise": ("despises", "dislike"),
    "prefer": ("prefers", "like"),
    "loved": ("loves", "like"),
    "liked": ("likes", "like"),
    "enjoyed": ("enjoys", "like"),
    "hated": ("hates", "dislike"),
    "disliked": ("dislikes", "dislike"),
}


def pair(one: str, other: str) -> str:
    """The slot of a choice between two, the same whichever is preferred."""
    return " or ".join(sorted((normal(one), normal(other))))


def _prefers(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what, other = thing(match["what"]), thing(match["other"])
    if what and other:
        # Not the same words for either preference: wordings are compared as sets of words.
        joint = "over" if normal(what) < normal(other) else "rather than"
        content = f"The user prefers {what} {joint} {other}."
        yield fact(content, "preference/likes", pair(what, other), what, kind="preference")


def _dislikes(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    verb = " ".join(match["verb"].casefold().split())
    for item in takewhile(generic, things(re.sub(r"^to\s+", "", match["what"]))):
        yield fact(f"The user does not {verb} {item}.", "preference/likes", item, "dislike", kind="preference")


def _cannot_stand(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    for item in takewhile(generic, things(match["what"])):
        yield fact(f"The user cannot stand {item}.", "preference/likes", item, "dislike", kind="preference")


def _fan(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    how = " ".join(match["how"].casefold().split())
    no = "not " if match.groupdict().get("no") else ""
    for item in takewhile(generic, things(match["what"])):
        value = "dislike" if no else "like"
        yield fact(f"The user is {no}{how} {item}.", "preference/likes", item, value, kind="preference")


def _favourite(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    kind, what = " ".join(match["kind"].casefold().split()), thing(match["what"], 6)
    if what:
        yield fact(
            f"The user's favourite {kind} is {what}.", "preference/likes", f"favourite {kind}", what, kind="preference"
        )


def _moved_tool(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    if tail_cut(match["new"]).casefold() in SOFTWARE or match["old"].casefold() in SOFTWARE:
        yield from _switched(match, clause)


def _unused(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = thing(match["what"], 4)
    if what:
        over = re.search(r"no\s+longer|any\s*(?:more|longer)", match[0], re.IGNORECASE)
        said = "no longer uses" if over else "does not use"
        yield fact(f"The user {said} {what}.", "preference/tool", what, what, retract=True)


def _gave_up(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = thing(match["what"], 4)
    if what:
        verb = " ".join(match["verb"].casefold().split())
        yield fact(f"The user {verb} {what}.", "preference/tool", what, what, retract=True)


def _kinda(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    for candidate in _likes(match, clause):
        yield candidate.change(source_type="user_implicit", confidence=0.65)


def _went(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    if re.fullmatch(rf"(?:being\s+)?{DIETS}", tail_cut(match["new"]), re.IGNORECASE):
        new, old = tail_cut(match["new"]).casefold(), tail_cut(match["old"]).casefold()
        yield fact(f"The user went from {old} to {new}.", "diet", value=new, replaces=old)


def _no_longer_likes(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    for item in takewhile(generic, things(match["what"])):
        content = f"The user no longer {third(match['verb'])} {item}."
        yield fact(content, "preference/likes", item, "dislike", kind="preference")


def _never_liked(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    for item in takewhile(generic, things(match["what"])):
        content = f"The user never {match['verb'].casefold()} {item}."
        yield fact(content, "preference/likes", item, "dislike", kind="preference")


def _rather(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what, other = thing(match["what"]), thing(match["other"])
    if (
        what
        and other
        and re.match(
            r"(?:take|have|eat|drink|go|stay|travel|fly|walk|drive|cycle|read|watch|live|work|use|sit|pay)\b",
            what,
            re.I,
        )
    ):
        would = "would rather" if normal(what) < normal(other) else "would sooner"
        content = f"The user {would} {what} than {other}."
        yield fact(content, "preference/likes", pair(what, other), what, kind="preference")


def _hobby(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    for item in things(match["what"]):
        yield fact(f"The user's hobby is {item}.", "preference/likes", item, "like", kind="preference")


def _supports(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = thing(match["what"], 6)
    if what:
        yield fact(f"The user supports {what}.", "preference/likes", what, "like", kind="preference")


_PASSING = re.compile(
    r"(?:the|an?|my|their|our|this|that|these|those|your|his|her)\s+(?!(?-i:[A-Z]))|(?:first|second|third|last"
    r"|next|previous|other|left|right"
    r"|top|bottom|red|blue|green|black|white|yellow|dark|light|day|night|plan|option|tab|page|step|mode"
    r"|version\s+\w+|part|phase"
    r"|morning|afternoon|evening|early|late|mon|tues|wednes|thurs|fri|satur|sun|day|full|size|small|medium"
    r"|large|english|french|german|spanish"
    r"|economy|business|present|past|english)(?:day)?\b|\d",
    re.IGNORECASE,
)
"""A switch of the moment, not of a tool: "from the first tab to the second"."""


def _switched(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    new, old = thing(match["new"], 4), thing(match["old"], 4)
    if not new or not old or (_PASSING.match(new) and not re.search(_SEATS, new, re.IGNORECASE)):
        return
    if re.fullmatch(DIETS, new, re.IGNORECASE):
        yield fact(f"The user switched from {old} to {new}.", "diet", value=new.casefold(), replaces=old.casefold())
    elif re.fullmatch(rf"(?:the\s+)?{_SEATS}(?:\s+seats?)?", new, re.IGNORECASE):
        seat = re.search(_SEATS, new, re.IGNORECASE)
        was = re.search(_SEATS, old, re.IGNORECASE)
        yield fact(
            f"The user switched from {old} to {new}.",
            "travel/seat",
            value=seat[0].casefold() if seat else new,
            replaces=was[0].casefold() if was else None,
        )
    else:
        yield fact(f"The user switched from {old} to {new}.", "preference/tool", new, new, replaces=old)


def _uses(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    for number, item in enumerate(things(match["what"], 4)):
        if number and item[0].islower() and not (match["what"].islower() and " " not in item):
            break
        if re.match(r"(?:my|their|an?\s|the\s|both|all|lots|plenty|public)\b", item, re.IGNORECASE) and not re.search(
            r"[A-Z0-9]", item
        ):
            continue
        item = re.split(r"\s+(?:for|on|at|to|with|in|every|as|daily|from)\s", item + " ")[0].strip()
        if item and len(item.split()) <= 4:
            yield fact(f"The user uses {item}.", "preference/tool", item, item)


def _tool_is(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = thing(match["what"], 5)
    if what:
        kind = " ".join(match["kind"].casefold().split())
        yield fact(f"The user's {kind} is {what}.", "preference/tool", kind, what)


def _works_on(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = thing(match["what"], 3)
    if what:
        yield fact(f"The user works on {what}.", "preference/tool", what, what)


def _codes(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    for item in things(match["what"], 3):
        yield fact(f"The user writes code in {item}.", "preference/tool", item, item)


_FAN_OF = (
    r"(?P<how>(?:a\s+(?:(?:big|huge|massive|great|real|real\s+big|lifelong|total)\s+)?(?:fan|lover)\s+"
    r"of)|into|fond\s+of|keen\s+on|crazy\s+about|obsessed\s+with|passionate\s+about|mad\s+about"
    r"|addicted\s+to)"
)
_SYSTEMS = (
    r"(?P<what>linux|windows|mac(?:os)?|a\s+mac|ubuntu|debian|fedora|arch(?:\s+linux)?|android|ios"
    r"|chromeos|freebsd|an?\s+(?:thinkpad|macbook\w*|chromebook)(?:\s+\w+)?)"
)
RULES = (
    rule(
        r"(?:i|we)(?:'ve|\s+have)?\s*(?:just\s+|recently\s+|finally\s+)*(?:ditched|dropped|swapped|traded"
        r"|abandoned|gave\s+up)\s+"
        r"(?P<old>(?-i:[A-Z])[\w .+#-]{1,25}?)\s+(?:for|in\s+favou?r\s+of)\s+(?P<new>(?-i:[A-Z]).+)",
        _switched,
    ),
    rule(
        r"(?:i|we)(?:'ve|\s+have)?\s*(?:just\s+|recently\s+|finally\s+)*moved\s+(?:over\s+)?from\s+"
        r"(?P<old>[\w .+#-]{2,25}?)\s+to\s+(?P<new>[\w .+#-]+)",
        _moved_tool,
    ),
    rule(
        r"(?:i|we)(?:'ve|\s+have)?\s*(?:just\s+|recently\s+|finally\s+)*(?P<verb>(?:stopped|quit"
        r"|gave\s+up)\s+using|uninstalled"
        r"|gave\s+up\s+on(?=\s+(?-i:[A-Z])))\s+(?P<what>.+)",
        _gave_up,
    ),
    rule(
        r"(?:i|we)(?:'ve|\s+have)?\s*(?:just\s+|recently\s+)*(?:went"
        r"|gone)\s+from\s+(?:being\s+)?(?P<old>.+?)\s+to\s+(?P<new>.+)",
        _went,
    ),
    rule(
        r"i\s+(?:kinda|sorta|kind\s+of|sort\s+of)\s+(?P<verb>hate|love|dislike|detest|adore|loathe)\s+(?P<what>.+)",
        _kinda,
        tolerates=("uncertain",),
    ),
    rule(
        r"(?:i|we)\s+(?:no\s+longer\s+use|(?:don't|do\s+not|dont)\s+use)\s+(?P<what>.+?)(?:\s+"
        r"any\s*(?:more|longer))?$",
        _unused,
    ),
    rule(r"i\s+no\s+longer\s+(?P<verb>like|enjoy|love)\s+(?P<what>.+)", _no_longer_likes),
    rule(r"i've\s+never\s+(?:really\s+)?(?P<verb>liked|enjoyed|loved)\s+(?P<what>.+)", _never_liked),
    rule(
        r"i(?:'d|\s+would)\s+(?:much\s+|always\s+)?rather\s+(?P<what>.+?)\s+than\s+(?P<other>.+)",
        _rather,
        tolerates=("modal",),
    ),
    rule(
        r"(?P<what>[^,;:]{2,40}?)\s+(?:is|are)\s+my\s+(?:all[- ]time\s+|absolute\s+)?favou?rite\s+"
        r"(?P<kind>[a-z][a-z ]{1,25})$",
        _favourite,
    ),
    rule(
        rf"i(?:'d|\s+would)?\s+{ADV}(?:prefer|like|want|choose|take|book|pick|go\s+for|rather\s+have"
        r"|rather\s+sit\s+in|need|love)\s+(?:to\s+(?:sit|be|have|take|book|get)\s+)?(?:(?:in|on|at|by)\s+"
        rf")?(?:an?\s+|the\s+|my\s+)?(?P<seat>{_SEATS})(?:\s+(?:seats?|seating|side))?(?=$|[,.!]|\s+(?:on"
        r"|when|for|if|please|over|rather|to|in|because|so|and|these|now|whenever|every|instead|at)\b)",
        _seat,
        tolerates=("modal",),
    ),
    rule(
        rf"(?P<seat>{_SEATS})\s+seats?\s+(?:for\s+me|is\s+my\s+(?:preference|favou?rite)|are\s+my\s+"
        r"(?:preference|favou?rite)|work\s+best\s+for\s+me)",
        _seat,
    ),
    rule(
        r"(?:my\s+(?:preferred|favou?rite|usual)\s+seat\s+is|my\s+seat\s+preference\s+is|i(?:'m|\s+am)\s+"
        rf"an?)\s+(?:an?\s+|the\s+|on\s+the\s+)?(?P<seat>{_SEATS})(?:\s+(?:seat(?:\s+person)?|person"
        r"|one))?(?=$|[,.!]|\s+on\b)",
        _seat,
    ),
    rule(
        r"(?:i|we)(?:'ve|\s+have)?\s*(?:just\s+|recently\s+|finally\s+)*(?:switched|migrated|changed"
        r"|converted)\s+(?:over\s+)?from\s+(?P<old>.+?)\s+to\s+(?P<new>.+)",
        _switched,
    ),
    rule(r"(?:i|we)(?:'ve|\s+have)?\s*(?:just\s+|recently\s+)*replaced\s+(?P<old>.+?)\s+with\s+(?P<new>.+)", _switched),
    rule(
        r"(?:i|we)(?:'ve|\s+have)?\s*(?:just\s+|recently\s+|finally\s+)*(?:switched|migrated)\s+(?:over\s+"
        r")?to\s+(?P<what>(?!the\s+(?:other|new)|a\s+different)[^,;:]+)",
        _uses,
    ),
    rule(rf"i\s+{ADV}prefer\s+(?P<what>.+?)\s+(?:to|over|rather\s+than|instead\s+of)\s+(?P<other>.+)", _prefers),
    rule(r"i(?:'ve|\s+have)\s+(?:always|long)\s+(?P<verb>loved|liked|enjoyed|hated|disliked)\s+(?P<what>.+)", _likes),
    rule(
        rf"i\s+{ADV}(?P<verb>love|like|enjoy|adore|hate|dislike|detest|loathe|despise|prefer)\s+"
        r"(?P<what>(?!to\s+(?:see|hear|know|think|say|be|have|get|do|make|thank|ask)\b).+)",
        _likes,
    ),
    rule(
        r"i\s+(?:(?:don't|do\s+not|dont)\s+(?:really\s+|actually\s+|particularly\s+|much\s+|even\s+)?"
        r"|never\s+)(?P<verb>like|enjoy|care\s+for|love)\s+(?P<what>.+)",
        _dislikes,
    ),
    rule(
        r"i\s+(?:really\s+|just\s+|absolutely\s+)?(?:can't|cannot|cant|can\s+not)\s+(?:stand|bear"
        r"|abide)\s+(?P<what>.+)",
        _cannot_stand,
    ),
    rule(
        r"(?:i'm|im|i\s+am)\s+(?P<no>not\s+)(?:really\s+|much\s+of\s+|that\s+|particularly\s+"
        rf")?{_FAN_OF}\s+(?P<what>.+)",
        _fan,
    ),
    rule(rf"{AM}\s+{ADV}{_FAN_OF}\s+(?P<what>.+)", _fan),
    rule(
        r"my\s+(?:all[- ]time\s+)?favou?rite\s+(?P<kind>[a-z][a-z -]{1,30}?)\s+(?:is|are|has\s+always\s+"
        r"been)\s+(?P<what>.+)",
        _favourite,
    ),
    rule(r"my\s+(?:(?:main|favou?rite|biggest)\s+)?hobb(?:y|ies)\s+(?:is|are|include)\s+(?P<what>.+)", _hobby),
    rule(
        r"i\s+(?:support|root\s+for)\s+(?P<what>(?!you|him|her|them|my|the\s+idea|this|that|people"
        r"|families|a\s+family)[^,;:]+?)(?:\s+(?:in|at)\s+(?:the\s+)?\w+)?$",
        _supports,
    ),
    rule(rf"i\s+{ADV}(?:use|am\s+using)\s+(?P<what>(?!to\b).+)", _uses),
    rule(r"we\s+(?:all\s+)?use\s+(?P<what>(?-i:[A-Z]).+)", _uses),
    rule(r"(?:i'm|im)\s+(?:now\s+|currently\s+|still\s+)?using\s+(?P<what>.+)", _uses),
    rule(
        r"(?:our|my|the)\s+(?:whole\s+|entire\s+)?(?:team|company|group|family|office)\s+uses?\s+(?P<what>[^,;:]+)",
        lambda m, c: (
            _uses(m, c)
            if re.search(r"\b(?:me|myself)\s+included\b|\bincluding\s+m(?:e|yself)\b", c.sentence, re.I)
            else iter(())
        ),
    ),
    rule(rf"i\s+{ADV}(?:work|am)\s+on\s+{_SYSTEMS}(?=$|[,.!]|\s+(?:at|for|and|now|too)\b)", _works_on),
    rule(rf"i\s+{ADV}(?:run|code\s+on)\s+{_SYSTEMS}(?=$|[,.!]|\s+(?:at|for|on|and|now|too)\b)", _uses),
    rule(rf"i\s+{ADV}(?:code|program|write\s+code)\s+(?:mostly\s+|mainly\s+)?in\s+(?P<what>.+)", _codes),
    rule(
        r"my\s+(?:main\s+|current\s+|go-to\s+|daily\s+|default\s+)?(?P<kind>editor|code\s+editor|ide|os"
        r"|operating\s+system|browser|phone|laptop|shell|terminal|email\s+client|note[- ]taking\s+app"
        r"|distro|camera|car|bike)\s+is\s+(?:now\s+)?(?P<what>(?:an?\s+(?:[a-z][a-z-]{1,14}\s+){0,2}"
        r"|the\s+)?(?-i:[A-Z])[^,;:]*)",
        _tool_is,
    ),
)
