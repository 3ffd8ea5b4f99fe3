"""The pieces that patterns are made of: drafts of facts, things, lists, places, names, third person."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from langmem_adapter.extraction.clauses import Clause
from langmem_adapter.extraction.masking import MASK
from langmem_adapter.extraction.times import timed
from langmem_adapter.extraction.vocabulary import NOT_PLACES, PLACES
from langmem_adapter.records import Candidate, SourceType
from langmem_adapter.text import slot as normal

Build = Callable[[re.Match[str], Clause], Iterable[Candidate]]

AM = r"(?:i'm|im|i\s+am|i've\s+(?:always\s+)?been|i\s+have\s+been|ive\s+been)"
HAVE = r"(?:i\s+have|i've\s+got|ive\s+got|i\s+have\s+got|i\s+do\s+have|i\s+got|we\s+have|we've\s+got)"
ADV = (
    r"(?:(?:now|also|still|actually|really|very|quite|always|just|both|currently|absolutely|definitely|truly|totally|"
    r"completely|strictly|fully|mainly|seriously|severely|highly|deathly|badly|a\s+bit|super|so|pretty|honestly|"
    r"generally|usually|normally|do|simply|genuinely)\s+)*"
)


I_AM = (
    r"(?P<who>i'm|im|i\s+am|we're|we\s+are)\s+(?:(?:currently|also|now|still|actually|really|seriously|definitely|just"
    r"|finally|always)\s+)*"
)
SPAN = (
    r"(?:for\s+(?:about\s+|almost\s+|nearly\s+|over\s+|around\s+|more\s+than\s+|the\s+(?:last|past)\s+)*"
    r"(?:an?\s+(?:few|couple\s+of)|an?|several|many|some|[a-z]+(?:-[a-z]+)?|\d{1,2}|few)?\s*"
    r"(?:weeks?|months?|years?|decades?)"
    r"|since\s+(?:i\s+was\s+(?:a\s+)?(?:\w+)(?:\s+years\s+old)?|childhood|college|university|(?:high|primary)\s+school"
    r"|(?:19|20)\d\d|last\s+\w+|(?:january|february|march|april|may|june|july|august|september|october|november"
    r"|december)(?:\s+\d{4})?))"
)
"""How long something has lasted: "for five years", "since 2019"."""
OPENINGS = "imow*"
"""First letters of "I", "my", "our", "we", and * for any other."""
_GROUP = re.compile(r"\(\?(?:P<\w+>|:)")


@dataclass(frozen=True)
class Rule:
    """One pattern, matched from the start of a clause, and what it makes of a match."""

    pattern: re.Pattern[str]
    build: Build
    tolerates: frozenset[str] = frozenset()
    """Flags that do not forbid this rule (`uncertain` for "I might be allergic")."""
    anywhere: bool = False
    """Whether the pattern may begin inside the clause."""
    closed: bool = False
    """Whether its wording is closed, so that no refusal has to be asked (style: "always answer in French")."""
    opens: str = OPENINGS
    """The `opening`s of clauses that it can match: rules about "my …" need not be tried on "I …"."""


def rule(
    pattern: str, build: Build, *, tolerates: Iterable[str] = (), anywhere: bool = False, closed: bool = False
) -> Rule:
    """A Rule whose pattern ignores case."""
    opens = OPENINGS if anywhere else "".join(sorted(_openings(pattern)))
    return Rule(re.compile(pattern, re.IGNORECASE), build, frozenset(tolerates), anywhere, closed, opens)


def opening(said: str) -> str:
    """What of a clause tells which rules may match it: its first letter if that is one of `OPENINGS`, else "*"."""
    first = said[0].lower()
    return first if first in OPENINGS else "*"


def _openings(pattern: str) -> frozenset[str]:
    """The openings a pattern can match: of its first word, or those of the words it begins with ("(?:my|our)\\s")."""
    words = _alternatives(pattern)
    if len(words) > 1:
        return frozenset().union(*map(_openings, words))
    if group := _GROUP.match(pattern):
        inner, rest = _group(pattern, group.end())
        return frozenset(OPENINGS) if rest[:1] in ("?", "*", "{") else _openings(inner)
    return frozenset(opening(pattern) if re.match(r"[a-z](?![?*{])", pattern) else OPENINGS)


def _alternatives(pattern: str) -> list[str]:
    """The parts of a pattern between its outermost bars."""
    depth, begin, found = 0, 0, []
    for at, sign in _signs(pattern, 0):
        depth += (sign == "(") - (sign == ")")
        if sign == "|" and not depth:
            found.append(pattern[begin:at])
            begin = at + 1
    return [*found, pattern[begin:]]


def _group(pattern: str, begin: int) -> tuple[str, str]:
    """What stands in the group that begins there, and what behind it."""
    depth = 1
    for at, sign in _signs(pattern, begin):
        depth += (sign == "(") - (sign == ")")
        if not depth:
            return pattern[begin:at], pattern[at + 1 :]
    return pattern[begin:], ""


def _signs(pattern: str, begin: int) -> Iterator[tuple[int, str]]:
    """The brackets and bars of a pattern that are meant as such, and where they stand."""
    for match in re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()|]", re.DOTALL).finditer(pattern, begin):
        if match[0] in "()|":
            yield match.start(), match[0]


def fact(
    content: str,
    topic: str = "general",
    slot: str = "",
    value: str = "",
    *,
    kind: str = "fact",
    subject: str = "user",
    retract: bool = False,
    replaces: str | None = None,
    source_type: SourceType = "user_explicit",
    confidence: float = 1.0,
) -> Candidate:
    """A candidate without its excerpt: the extractor adds the clause, unless the rule named fewer of its words."""
    return Candidate(
        content=content,
        intent="retract" if retract else "assert",
        topic=topic,
        slot=normal(slot)[:80],
        value=value[:120],
        kind=kind,
        subject=subject,
        replaces=replaces,
        source_type=source_type,
        confidence=confidence,
    )


_TAIL = re.compile(
    r"\s+(?:now|these\s+days|nowadays|currently|lately|recently|at\s+the\s+moment|at\s+present"
    r"|right\s+now|as\s+well|too|also|anyway"
    r"|anyways|though|tho|a\s+lot|very\s+much|so\s+much|the\s+most|the\s+best|lol|haha|please|thanks"
    r"|again|tbh|btw|honestly|actually"
    r"|to\s+be\s+honest|already|by\s+the\s+way|because|cause|cos|since|any\s*more|any\s+longer|when"
    r"|whenever|while|whilst|so"
    r"|but|although|until|till|more\s+than"
    r"|even|especially|including|such\s+as|for\s+(?:me|now|the\s+next|years|ages|a\s+while|\w+\s+(?:years?"
    r"|months?|weeks?|days?))|or\s+so"
    r"|or\s+something|and\s+stuff|and\s+all\s+that|always|mostly|just|then|with\s+(?:my|the)\s+(?:kids"
    r"|family|friends|wife|husband)"
    r"|today|tonight|yesterday|this\s+(?:week|weekend|month|year|morning)|last\s+(?:week|month|year"
    r"|night|\w+day))(?=\s|$).*",
    re.IGNORECASE | re.DOTALL,
)
_BREAK = re.compile(
    r"\b(?:i|i'm|i've|we|he|she|they|you|it|it's|who|whom|that|which|where|what|how|if|unless|as"
    r"|myself|is|are|was|were|has|have|will|would|can)\b",
    re.IGNORECASE,
)
_DANGLING = re.compile(
    r"(?:^|\s)(?:for|of|to|with|in|on|at|from|by|about|the|a|an|and|or|my|their|our|as|into|than|very"
    r"|so|being|some|any|more)$",
    re.IGNORECASE,
)
_HOLLOW = re.compile(
    r"(?:(?:an?|the|some|my|their|our|this|new|big|two|three|few|several|small|little|whole|good|great"
    r"|exciting|cool|fun|other)\s+)*"
    r"(?:ton|tons|lot|lots|bit|bunch|few|couple|while|thing|things|stuff|way|idea|feeling|moment|fact"
    r"|part|look|sound|vibe|vibes|result|"
    r"project|projects|something|everything|one|ones|point|news|plan|question|message|time|day|theme"
    r"|scenery|view|colou?rs?|design|photo|picture|shot)(?:\s+"
    r"(?:of\s+.*|here|there))?",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"(?:sadly|unfortunately|luckily|obviously|alas|two|three|put|it|this|that|these|those|them|him"
    r"|her|you|me|us|everything|anything|nothing|something|one"
    r"|ones|both|either|all|how|what|"
    r"when|where|who|why|if|so|more|most|here|there|then|not|very|too|your|yours|his|their|theirs"
    r"|hers|our|ours|each|every|another|"
    r"other|others|same|stuff|things?|some|any|many|much|just|only|being|having|people|someone|everyone|such|like)\b",
    re.IGNORECASE,
)
_GENERIC = re.compile(
    r"the\s+(?:\w+\s+)?(?:beach|sea|seaside|ocean|mountains?|hills|outdoors|countryside|city|rain|snow"
    r"|cold|heat|sun|gym|forest|woods|desert|"
    r"water|summer|winter|spring|autumn|fall|dark|piano|guitar|violin|cello|drums|flute|opera|theatre"
    r"|theater|cinema|movies|library|circus|"
    r"aisle|window|silence|weekends?|mornings?|evenings?|news|radio|tropics|arts|ballet)\b|the\s+(?-i:[A-Z])",
    re.IGNORECASE,
)


def generic(item: str) -> bool:
    """Whether a liking of it says something lasting: "the beach", not "the new design" of this conversation."""
    return not re.match(r"(?:the|these|those)\s", item, re.IGNORECASE) or bool(_GENERIC.match(item))


_PRONOUN = re.compile(
    r"\b(?:i|i'm|you|your|yours|he|him|his|she|her|hers|they|them|their|theirs|it|its|it's|we|us|our"
    r"|this|that|these|those|"
    r"is|are|was|were|am|will|would|can't|don't|isn't|aren't)\b",
    re.IGNORECASE,
)
_COMPOUND = re.compile(
    r"\b(mac|fish|rock|salt|gin|peanut butter|bread|bed|rhythm|drum|arts|black|pros|bubble|ham|steak"
    r"|rum|beans|dungeons|"
    r"surf|sweet|hide|bacon|R|biscuits|rice|command|science|law) (?:and|&|n) "
    r"(?=(?:cheese|chips|roll|vinegar|tonic|jelly|butter|breakfast|blues|bass|crafts|white|cons|squeak"
    r"|kidney|coke|rice|dragons|turf|"
    r"sour|seek|eggs|dogs|B|gravy|beans|peas|conquer|technology|order)\b)",
    re.IGNORECASE,
)
# "action and sci-fi movies": one noun for both.
_SHARED = re.compile(
    r"^[\w-]+\s+(?:movies|"
    r"films|books|novels|music|games|flavou?rs|food|dishes|cuisine|songs|shows"
    r"|wines?|cheese|clothes|cars|dogs|restaurants)$",
    re.IGNORECASE,
)
_GERUND = re.compile(r"\w{2,}ing\b", re.IGNORECASE)
_COMMA = re.compile(
    r"\s*,\s*(?:and\s+|or\s+|but\s+also\s+|also\s+)?|\s+(?:and|&|plus|as\s+well\s+as|nor|or)\s+(?:also\s+|my\s+)?",
    re.IGNORECASE,
)


def tail_cut(words: str) -> str:
    """The words up to the first that begins something else ("now", "because", "when", "I")."""
    return _TAIL.sub("", " " + words).strip(" .!?,:;\"'*~")


def thing(words: str, most: int = 6) -> str | None:
    """A noun phrase or gerund phrase that stands for itself, else None (pronouns, vague words, whole sentences)."""
    cut = tail_cut(words)
    if not cut or _BREAK.search(cut) or _DANGLING.search(cut) or _HOLLOW.fullmatch(cut):
        return None
    if re.search(r"\bones?$|^(?:option|plan|choice|version|answer|item|number|step)\s+\w+$", cut, re.IGNORECASE):
        return None
    if MASK in cut or len(cut) > 80 or len(cut.split()) > most:
        return None
    if (
        _VAGUE.match(cut)
        or _PRONOUN.search(cut)
        or not re.search(r"\w|[^\x00-\x7f]", cut)
        or re.search(r"[{}\[\]<>=|\\]", cut)
    ):
        return None
    return re.sub(r"\bmy\b", "their", cut, flags=re.IGNORECASE)


def things(words: str, most: int = 5) -> list[str]:
    """The items of a list, up to the first that is no thing; one compound ("fish and chips") is one item."""
    held = _COMPOUND.sub(lambda m: m[1] + "\x01", words)
    parts = _COMMA.split(held)
    # "a safe, inviting place" has a comma and is no list.
    if "," in held and not re.search(r"\b(?:and|or|&|plus|nor)\b", held) and any(len(p.split()) > 2 for p in parts):
        parts = [] if re.search(r"(?:^|\s)(?:an?|the)\s+[\w-]+$", parts[0], re.IGNORECASE) else parts[:1]
    # "painting walls and doors" is one pastime, "painting and doors" two.
    elif (len(parts) > 1 and _GERUND.match(parts[0]) and " " in parts[0].strip() and not _GERUND.match(parts[1])) or (
        len(parts) == 2
        and " " not in parts[0].strip()
        and not parts[0].strip().endswith("s")
        and _SHARED.search(parts[1].strip())
    ):
        parts = [words]
    found: list[str] = []
    for part in parts:
        item = thing(part.replace("\x01", " and "), most)
        if item is None:
            break
        if item.casefold() in ("spending time", "making", "having", "getting"):
            continue
        found.append(item)
        if tail_cut(part) != part.strip(" .!?,:;\"'*~"):
            break
    return found


_TOLD_STOP = re.compile(
    r"(?:\s*[,;:()]|\s+[-–—]+\s|\s+(?:which|who|whom|that|where|because|cause|'cause|cos|(?-i:so)|but|while|when|whenever|if"
    r"|though|although|since|until|till|after|before|than|instead|thanks|hoping|wow|even|just|especially|lol|haha|btw"
    r"|as\s+(?:i|we|it|he|she|they|you|the|if|well|soon|long|my|our|usual|always)"
    r"|(?<!learn\s)(?<!learn\show\s)to(?!\s+(?:(?:the|an?|my|our|school|work|church|college|university|\d+)\b|(?-i:[A-Z])|\w+ing\b))"
    r"|(?:and|or)\s+(?:am|is|was|were|are|had|have|has|got|felt|it|it's|that|they|there|now|then|even|really|took|went"
    r"|made|met|won|lost|saw|found|did|came|said|told|love|can't|could|will|would|hope|so|something|everything|nothing|wow|i|we|he|she|\w+ed))\b).*",
    re.IGNORECASE | re.DOTALL,
)
_TOLD_NO = re.compile(
    r"\b(?:i|i'm|i've|you|your|yours|he|him|his|she|her|hers|they|them|it|its|it's|we|us|me|this(?!\s+(?:past\s+)?(?:week"
    r"|month|year|morning|afternoon|evening|spring|summer|autumn|fall|winter|\w+day|may|june|july|january|february|march"
    r"|april|august|september|october|november|december)\b)|that|here|there|these|those|is|are|was|were|am)\b|[{}\[\]<>=|\\]",
    re.IGNORECASE,
)
_TOLD_TAIL = re.compile(
    r"\s+(?:too|lately|recently|again|already|here|there|as\s+well|actually|honestly|now|so\s+far|finally|a\s+bit|a\s+lot"
    r"|together|either|though|anyway|myself|and|or|with|to|of|in|at|for|the|an?|on|about|from|by)$",
    re.IGNORECASE,
)


def told(words: str, most: int = 14) -> str | None:
    """What a verb is followed by, up to where something else begins, "my" as "their"; None if it speaks of what only
    the conversation knows ("it", "you"), or is longer than `most` words."""
    cut = _TOLD_STOP.sub("", " " + words).strip(" .!?,:;\"'*~")
    while (shorter := _TOLD_TAIL.sub("", cut)) != cut:
        cut = shorter
    if not cut or MASK in cut or _TOLD_NO.search(cut) or len(cut) > 120 or len(cut.split()) > most:
        return None
    return re.sub(r"\b(?:my|our)\b", "their", cut, flags=re.IGNORECASE).replace(" together ", " ")


def undated(words: str) -> str:
    """The words without the first of them that tell a time."""
    found = timed(words)
    return words if found is None else f"{words[: found.start()]}{words[found.end() :]}".strip()


def dated(words: str | None, clause: Clause) -> str:
    """The time that opens the clause, with a space before it, unless the words tell one themselves."""
    return f" {clause.when[:1].lower()}{clause.when[1:]}" if clause.when and not timed(words or "") else ""


_PLACE_STOP = re.compile(
    r"\s+(?:with|near|next|close|and|or|because|since|for|after|before|where|which|now|when|while|but"
    r"|so|at\s+the\s+moment|last|this|"
    r"about|around|years?|months?|weeks?|ago|from|until|till|to|by|currently|these|right|temporarily"
    r"|permanently|again|too|just|actually|"
    r"full[- ]time|part[- ]time|alone|together|myself|btw|lol|haha|as|if|on|in\s+(?:january|february"
    r"|march|april|may|june|july|august|"
    r"september|october|november|december|spring|summer|autumn|fall|winter|\d{4}|a|the|my))(?=\s|$|,).*",
    re.IGNORECASE | re.DOTALL,
)
_NO_PLACE = re.compile(
    r"(?:peace|fear|denial|hope|hopes|love|harmony|sin|luxury|comfort|poverty|here|there|a|an|my|our"
    r"|this|that|these|his|her|their|it|"
    r"your|town|person|general|particular|trouble|silence|pain|exile|isolation|different|same|constant"
    r"|one|two|three|between|not|"
    r"another|bed|school|college|university|work|home|such)\b",
    re.IGNORECASE,
)


_NO_PLACES_HEAD = frozenset(
    "plan phase step section chapter level team tier version option monday tuesday wednesday thursday friday".split()
)


def place(words: str) -> str | None:
    """A place as named ("Ghent", "the Netherlands", "Portland, Oregon", "berlin"), else None."""
    cut = _PLACE_STOP.sub("", " " + words).strip(" .!?,:;\"'")
    head, _, rest = cut.partition(",")
    if rest and not re.fullmatch(r"\s*[^\W\d_][\w.' -]{1,25}", rest):
        cut = head.strip()
    if not cut or MASK in cut or len(cut.split()) > 5 or _NO_PLACE.match(cut) or _PRONOUN.search(cut):
        return None
    if not re.fullmatch(r"[\w.',&/ -]+", cut) or (re.match(r"the(?: |$)", cut, re.I) and not cut[4:5].isupper()):
        return None
    if cut.casefold() in NOT_PLACES or cut.split()[0].casefold() in _NO_PLACES_HEAD:
        return None
    if cut == cut.lower():
        known, _, rest = cut.partition(",")
        return ", ".join(p.strip().title() for p in (known, rest) if p) if known in PLACES else None
    return cut if any(w[0].isupper() for w in cut.split()) else None


_NO_NAME = frozenset(
    (
        "later back a an the when if tomorrow at on up anytime any now asap out old-fashioned old crazy mad lazy "
        "picky weird silly stupid dumb naive cynical paranoid biased boring maybe whatever what that this it again "
        "tonight today soon first before after in by to for when whenever only not as over here there and or but "
        "so nuts insane selfish superstitious sentimental skeptical sceptical curious ignorant impatient strange "
        "odd spoiled spoilt dramatic nerd geek fool anything everything something names name him her them they me "
        "you your my sir madam vegan vegetarian tired hungry sorry sure fine good great happy sad sick busy new "
        "ready late early an on collect direct every once twice via through about with from ahead using daily "
        "weekly monday tuesday wednesday thursday friday saturday sunday please just also really being is are was "
        "were will would can could should your unique secret private don't "
    ).split()
)
_NAME_WORD = r"[^\W\d_][\w'’.-]*"
_NAME = re.compile(rf"{_NAME_WORD}(?:\s+{_NAME_WORD}){{0,3}}")


def name(words: str) -> str | None:
    """A person's name as typed, capitalised when written in lower case; None for "later", "crazy" and the like."""
    cut = re.split(
        r"[,;:!?()]|\s+(?:please|instead|from\s+now|now|not|for|by|and|or|when|in|at|because|with|since"
        r"|like)\b",
        words,
    )[0]
    cut = cut.strip(" .\"'")
    match = _NAME.fullmatch(cut)
    if not match:
        return None
    parts = cut.split()
    if any(p.casefold().strip(".") in _NO_NAME for p in parts):
        return None
    if parts[0][0].islower():
        alone = len(parts) == 1 and len(cut) > 1 and not re.search(r"(?:ed|ing|ly|ful|less|ous|able)$", cut)
        return parts[0].capitalize() if alone else None
    while len(parts) > 1 and parts[-1][0].islower() and parts[-1].casefold() not in {"de", "van", "von", "der"}:
        parts.pop()
    return " ".join(parts)


_IRREGULAR = {
    "have": "has",
    "do": "does",
    "go": "goes",
    "be": "is",
    "don't": "does not",
    "haven't": "has not",
    "am": "is",
}
_SAME = frozenset("can could will would should must may might was had did can't cannot won't never".split())


def third(verb: str) -> str:
    """The third person singular of a present-tense verb; past and modal forms are returned as they are."""
    low = verb.casefold()
    if low in _IRREGULAR:
        return _IRREGULAR[low]
    if low in _SAME or (low.endswith("ed") and not low.endswith("eed")):
        return low
    if low.endswith(("s", "x", "ch", "sh", "z")):
        return low + "es"
    return low[:-1] + "ies" if re.search(r"[^aeiou]y$", low) else low + "s"


_OF_SPEAKER = (
    (re.compile(r"\bi(?:'m| am)\b|\bim\b", re.IGNORECASE), "the user is"),
    (re.compile(r"\bi(?:'ve| have)\b|\bive\b", re.IGNORECASE), "the user has"),
    (re.compile(r"\bi don't\b|\bi do not\b|\bi dont\b", re.IGNORECASE), "the user does not"),
    (re.compile(r"\bi (was|had|did|will|can|could|should|must|never|always|usually)\b", re.IGNORECASE), r"the user \1"),
)
_SPEAKER_VERB = re.compile(r"\bi ([a-z']+)", re.IGNORECASE)
_MINE = re.compile(r"\b(?:my|mine|our|ours)\b", re.IGNORECASE)
_ME = re.compile(r"\b(?:me|us)\b", re.IGNORECASE)


def third_person(statement: str) -> str:
    """A statement about the speaker as one about "the user", with a capital and a full stop."""
    for pattern, replacement in _OF_SPEAKER:
        statement = pattern.sub(replacement, statement)
    statement = re.sub(
        r"\bthe user (never|always|usually) ([a-z]+)", lambda m: f"the user {m[1]} {third(m[2])}", statement
    )
    statement = _SPEAKER_VERB.sub(lambda m: f"the user {third(m[1])}", statement)
    statement = _ME.sub("the user", _MINE.sub("the user's", statement)).replace("myself", "themselves")
    statement = statement.strip(" .!,;:")
    return statement[:1].upper() + statement[1:] + "."
