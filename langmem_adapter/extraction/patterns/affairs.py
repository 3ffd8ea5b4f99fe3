"""Open problems, projects, decisions, habits, health, and what the user asked to have remembered."""

import re
from collections.abc import Iterator

from langmem_adapter.extraction import times
from langmem_adapter.extraction.clauses import Clause
from langmem_adapter.extraction.masking import MASK
from langmem_adapter.extraction.phrases import ADV, HAVE, fact, place, rule, tail_cut, thing, third, third_person
from langmem_adapter.records import Candidate

_DEVICE = (
    r"(?:(?:work|new|old|home|main|company|gaming|personal|office)\s+)*(?:laptop|computer|pc|phone"
    r"|mac(?:book)?|printer|router|wi-?fi|internet|"
    r"tablet|ipad|screen|monitor|keyboard|mouse|car|bike|heating|boiler|washing\s+machine|dishwasher"
    r"|fridge|oven|tv|app|website|server|build|"
    r"tests?|pipeline|database|account|login|password\s+reset|vpn|email|order|delivery|parcel|package"
    r"|subscription|payment|card\s+payment|"
    r"camera|headphones|headset|speaker|battery|charger|watch|browser|editor|script|code|program"
    r"|deployment|connection|garage\s+door|"
    r"alarm|thermostat|vacuum|coffee\s+machine|microphone|webcam|back|knee|shoulder|neck|wrist|tooth)"
)
_FAILS = (
    r"(?:keeps?\s+(?:on\s+)?\w+ing(?:\s+[\w ]{1,40})?|won't\s+[\w ]{2,40}|doesn't\s+(?:work|start"
    r"|connect|load|turn|boot|charge|open|sync|print|respond|compile|build|run)[\w ]{0,30}|"
    r"isn't\s+(?:working|loading|connecting|charging|syncing|starting|responding|turning)[\w ]{0,30}"
    r"|is\s+(?:broken|not\s+working|down|stuck|frozen|leaking|dead|failing|"
    r"crashing|overheating|very\s+slow|really\s+slow|slow|locked)|(?:has\s+)?stopped\s+working"
    r"|crashes[\w ]{0,40}|fails[\w ]{0,40}|freezes[\w ]{0,40}|hurts|never\s+arrived|hasn't\s+arrived)"
)


def _fault(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = " ".join(match["what"].casefold().split()) if not match["what"].isupper() else match["what"]
    fails = tail_cut(match["fails"])
    yield fact(f"The user's {what} {fails}.", "issue", what, fails, kind="issue")


def _trouble(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = thing(match["what"], 8)
    if what:
        kind = match["kind"].casefold()
        yield fact(f"The user has {kind} {match['prep'].casefold()} {what}.", "issue", what, kind, kind="issue")


def _cannot(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = tail_cut(match["what"])
    if what and MASK not in what and not re.search(r"\b(?:i|you|he|she|they|it|this|that)\b", what, re.IGNORECASE):
        what = re.sub(r"\bmy\b", "their", what, flags=re.IGNORECASE)
        yield fact(f"The user cannot {match['verb'].casefold()} {what}.", "issue", what, "cannot", kind="issue")


def _project(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = thing(match["what"].split(",")[0], 9)
    if what and not _SMALL.search(what):
        verb = " ".join(match["verb"].casefold().split())
        yield fact(f"The user is {verb} {what}.", "project", what, "active", kind="project")


_SMALL = re.compile(
    r"\b(?:e-?mails?|letter|reply|message|text|list|sandwich|dinner|lunch|breakfast|cake|tea|coffee"
    r"|call|noise|progress|mistakes?|decision|money|difference|point|friends|memories|fun|plans?"
    r"|choices?|way)\b",
    re.I,
)


def _learning(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = thing(match["what"], 6)
    if what:
        verb = match["verb"].casefold()
        yield fact(f"The user is {verb} {what}.", "project", what, "active", kind="project")


def _decided(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = tail_cut(match["what"])
    if (
        not what
        or MASK in what
        or len(what.split()) > 20
        or re.search(r"\b(?:i|you|he|she|they|it|this|that|myself|ourselves)\b", what, re.IGNORECASE)
    ):
        return
    what = re.sub(r"\b(?:my|our)\b", "their", what, flags=re.IGNORECASE)
    joint = ", together with others," if match["who"].casefold().startswith("we") else ""
    yield fact(
        f"The user decided{joint} {match['how'].casefold()} {what}.", "decision", what, "decided", kind="decision"
    )


def _chose(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = thing(match["what"], 8)
    if what:
        joint = ", together with others," if match["who"].casefold().startswith("we") else ""
        yield fact(f"The user chose{joint} {what}.", "decision", what, "decided", kind="decision")


_HABITS = (
    r"(?:mentor|tutor|have\s+(?:breakfast|lunch|dinner|supper)|cook|bake|play|cycle|bike|swim|drive|drink|smoke"
    r"|vape|collect|teach|read|watch|listen\s+to"
    r"|follow|commute|volunteer|garden|paint|draw|"
    r"sing|knit|sew|crochet|hike|camp|fish|ski|snowboard|surf|train|practi[sc]e|meditate|attend"
    r"|wake\s+up|get\s+up|go\s+to\s+bed|go\s+running|"
    r"go\s+to\s+the\s+gym|run|jog|work\s+out|do\s+yoga|fly|travel|take\s+the\s+(?:train|bus|tube"
    r"|metro)|work\s+from\s+home|work\s+nights|walk|"
    r"write|own|rent|wear|brew|roast|grow|keep\s+bees|ride|row|climb|box|dance|coach|referee"
    r"|subscribe\s+to|vote|pray|eat|fast|shop|pay|order|book|tip|"
    r"sleep|commute)"
)
_NO_OBJECT = re.compile(
    r"^(?:it|that|this|them|him|her|you|those|these|out|along|attention|errands|safe"
    r"|my\s+words"
    r"|their\s+words|my\s+heart|into|by|away|so|because|and|but|if|when|what"
    r"|like|as|too|off|on\s+(?:it|that))\b",
    re.I,
)
_OFTEN = (
    r"(?:always|never|usually|often|rarely|hardly\s+ever|mostly|typically|generally|normally|regularly"
    r"|sometimes|only)"
)
_REGULAR = re.compile(
    r"\b(?:every|each|daily|weekly|on\s+\w+days|at\s+weekends|on\s+weekends|twice|once\s+a|without"
    r"|times\s+a|in\s+a\s+(?:band|choir|team|league|club|orchestra)|the\s+\w+)\b|^\s*(?!a\b|an\b)",
    re.I,
)


def _habit(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    rest = tail_cut(match["rest"] or "")
    often = " ".join((match["often"] or "").casefold().split())
    if (
        MASK in rest
        or _NO_OBJECT.match(rest)
        or len(rest.split()) > 9
        or re.search(r"\b(?:i|you|your|he|she|they|it|this|that|them)\b", rest, re.I)
    ):
        return
    if not often and (not rest or re.match(r"(?:eat|order|book|pay|tip|vote|fast)$", match["verb"], re.IGNORECASE)):
        return
    rest = re.sub(r"\bmy\b", "their", rest, flags=re.IGNORECASE)
    verb, _sep, particle = " ".join(match["verb"].casefold().split()).partition(" ")
    said = " ".join(part for part in (often, third(verb), particle, rest) if part)
    yield fact(f"The user {said}.", "general", f"{verb} {particle} {rest}", often or "yes")


def _abstains(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    verb = match["verb"].casefold()
    yield fact(f"The user does not {verb}.", "general", verb, "never")


def _health(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = " ".join(match["what"].split())
    yield fact(f"The user has {what}.", "general", what, "yes")


def _asked(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    said = match[0]
    if (
        clause.asked
        and len(said.split()) >= 3
        and not re.match(r"(?:i|we)\s+(?:was|were|had|did|told|said|asked|want|will)\b", said, re.IGNORECASE)
        and MASK not in said
        and not re.search(r"\b(?:you|your)\b", said, re.IGNORECASE)
    ):
        yield fact(third_person(said), "general", re.sub(r"^i\s+", "", said, flags=re.IGNORECASE), "yes")


def _whereabouts(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    where = place(match["where"])
    if where and times.is_temporary(clause.said):
        yield fact(f"The user is {match['prep'].casefold()} {where}.", "general", "whereabouts", where)


def _goes_without(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = thing(match["what"], 3)
    if what:
        yield fact(f"The user avoids {what} for now.", "general", what, "avoid")


def _entitled(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what, called = match["what"].casefold(), match["named"].strip()
    if MASK not in called:
        yield fact(f"The user's {what} is called {called}.", "general", what, called)


_ILLS = (
    r"(?:type\s+[12]\s+diabetes|diabetes|asthma|adhd|autism|epilepsy|migraines|arthritis|hay\s?fever"
    r"|high\s+blood\s+pressure|low\s+blood\s+pressure|"
    r"anxiety|depression|insomnia|ibs|crohn's(?:\s+disease)?|dyslexia|celiac\s+disease|coeliac\s+"
    r"disease|a\s+heart\s+condition|a\s+pacemaker|"
    r"tinnitus|eczema|psoriasis|endometriosis|a\s+bad\s+(?:back|knee)|gout|vertigo|a\s+thyroid\s+"
    r"condition|sciatica|glaucoma|anaemia|anemia|hypertension)"
)
_WHO = r"(?P<who>i|we|i've|we've|i\s+have|we\s+have)"
RULES = (
    rule(
        r"(?:i'm|im|i\s+am|i've\s+been)\s+(?:currently\s+|still\s+|now\s+)*(?P<verb>training|studying"
        r"|learning)\s+(?P<what>to\s+(?:be|become)\s+an?\s+"
        r"[\w-]+(?:\s+[\w-]+){0,2})$",
        lambda m, c: iter(
            [fact(f"The user is {m['verb'].casefold()} {m['what']}.", "general", m["what"], "in training")]
        ),
    ),
    rule(
        r"i\s+(?:don't|do\s+not|dont)\s+(?P<verb>smoke|drive|vape|cook|fly|swim|drink|gamble)(?=$|[,.!]"
        r"|\s+(?:at\s+all|any\s*more|and|or|so))",
        _abstains,
    ),
    rule(
        r"(?:i'm|im|i\s+am|i've\s+been)\s+(?:currently\s+|now\s+)?(?P<verb>preparing|studying)\s+"
        r"(?P<what>for\s+(?:an?|the|my)\s+[^;:,]+)",
        _learning,
    ),
    rule(
        rf"(?:my|our)\s+(?P<what>{_DEVICE})\s+(?:still\s+|just\s+|suddenly\s+|always\s+|constantly\s+"
        rf")?(?P<fails>{_FAILS})",
        _fault,
    ),
    rule(
        r"(?:i'm|im|i\s+am|i've\s+been|i\s+keep|we're|we've\s+been|i\s+am\s+still|i'm\s+still)\s+"
        r"(?:still\s+)?having\s+(?:(?:some|a\s+lot\s+of|serious|constant|no\s+end\s+of)\s+"
        r")?(?P<kind>trouble|problems|issues|difficulty|difficulties)\s+(?P<prep>with|on"
        r"|in)?\s*(?P<what>.+)",
        lambda m, c: _trouble(m, c) if m["prep"] else iter(()),
    ),
    rule(
        r"(?:i\s+have|i've\s+got|i've\s+had)\s+(?:a\s+|some\s+)?(?P<kind>trouble|problems?|issues?)\s+"
        r"(?P<prep>with)\s+(?P<what>.+)",
        _trouble,
    ),
    rule(
        r"(?:i|we)\s+(?:still\s+)?(?:can't|cannot|cant)\s+(?P<verb>log\s+in(?:to)?|log\s+on|sign\s+"
        r"in(?:to)?|access|connect|open|install|print|upload|download|reach|get\s+into)\s+"
        r"(?P<what>(?:to\s+|my\s+|the\s+|our\s+)?[^,;:?]+)",
        _cannot,
    ),
    rule(
        rf"(?:i'm|im|i\s+am|we're|we\s+are|i've\s+been|we've\s+been)\s+{ADV}(?P<verb>working\s+on|building"
        r"|writing|developing|designing|creating|making|renovating|restoring|organi[sz]ing|setting\s+up"
        r"|planning|preparing)\s+(?P<what>(?:an?|my|our|the|two|three)\s+[^;:]+)",
        _project,
    ),
    rule(
        rf"(?:i'm|im|i\s+am|i've\s+been)\s+{ADV}(?P<verb>learning)\s+(?P<what>(?!to\b|about\b|a\s+lot|how"
        r"|so|that|more|from|new|it\b)[^;:,]+)",
        _learning,
    ),
    rule(
        rf"(?:i'm|im|i\s+am|i've\s+been)\s+{ADV}(?P<verb>training)\s+(?P<what>for\s+(?:an?|the|my)\s+[^;:,]+)",
        _learning,
    ),
    rule(
        rf"{_WHO}\s+(?:just\s+|finally\s+|have\s+)*decided\s+(?P<how>to|on|against|that|not\s+to)\s+(?P<what>.+)",
        _decided,
    ),
    rule(
        rf"{_WHO}\s+(?:just\s+|finally\s+|have\s+)*(?:chose|chosen|settled\s+on|went\s+with|picked(?!\s+up))\s+"
        r"(?P<what>[^;:,]+)",
        _chose,
    ),
    rule(
        r"(?:i'm|im|i\s+am|i'll\s+be|we're|we\s+are)\s+(?:staying\s+|travelling\s+|away\s+|on\s+holiday\s+"
        r"|currently\s+)*(?P<prep>in|at)\s+(?P<where>.+)",
        _whereabouts,
        tolerates=("modal",),
    ),
    rule(
        r"no\s+(?P<what>[a-z][a-z ]{1,30}?)\s+(?:for\s+me\s+)?(?:this|until|till|for\s+the\s+next|today|tonight)\b",
        _goes_without,
    ),
    rule(
        r"(?:my|our)\s+(?P<what>(?:[a-z]+\s+)?(?:team|band|company|startup|club|shop|cafe|boat|podcast"
        r"|blog|channel|group|choir|studio|bakery|car|house|league|business))\s+is\s+(?:called|named)\s+"
        r"(?P<named>[^\s,;][^,;]{0,60})",
        _entitled,
    ),
    rule(rf"(?:{HAVE}|i\s+suffer\s+from|i\s+live\s+with)\s+(?P<what>{_ILLS})\b", _health),
    rule(rf"i\s+(?:(?P<often>{_OFTEN})\s+)?(?P<verb>{_HABITS})(?=\s|$)(?:\s+(?P<rest>[^;:]+))?$", _habit),
    rule(r"(?:i|i'm|my|our|im)\b.+", _asked),
)
