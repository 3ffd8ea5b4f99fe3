"""People and pets in the user's life, and facts about them. Their facts carry their name as `subject`."""

import re
from collections.abc import Iterator

from langmem_adapter.extraction.clauses import Clause
from langmem_adapter.extraction.life import MATTERS_OF_NOW, noun
from langmem_adapter.extraction.patterns.food import _KIND as DIETS
from langmem_adapter.extraction.patterns.food import _STOP as DIET_END
from langmem_adapter.extraction.patterns.work import occupation
from langmem_adapter.extraction.phrases import HAVE, fact, name, place, rule, thing, things, told
from langmem_adapter.records import Candidate

KIN = (
    r"(?:(?:eldest|oldest|youngest|elder|older|younger|little|big|baby|twin|middle|late|best|ex|step"
    r"|half|foster|new|good|close|old|grand)[- ]?\s*)*"
    r"(?:step|half-?|ex-?|grand|great-grand)?(?:wife|husband|partner|spouse|fianc[eé]e?|girlfriend"
    r"|boyfriend|daughter(?:-in-law)?|"
    r"son(?:-in-law)?|child|kid|baby|toddler|mother(?:-in-law)?|mum|mom|mam|father(?:-in-law)?|dad"
    r"|parent|brother(?:-in-law)?|sister(?:-in-law)?|"
    r"sibling|twin|aunt|auntie|uncle|cousin|niece|nephew|grandma|grandmother|granny|nan|grandpa"
    r"|grandfather|grandad|granddaughter|grandson|"
    r"friend|best\s+friend|flatmate|roommate|housemate|neighbou?r|colleague|coworker|co-worker|boss"
    r"|manager|assistant|teammate|client|"
    r"landlord|landlady|godson|goddaughter|godmother|godfather|mentor|therapist|doctor|dentist|teacher)"
)
PET = (
    r"(?:(?:rescue|old|young|little|elderly|black|white|tabby|ginger|golden)\s+)*(?:dog|cat|puppy"
    r"|kitten|rabbit|bunny|hamster|guinea\s+pig|parrot|budgie|horse|pony|goldfish|tortoise|turtle"
    r"|snake|lizard|gecko|ferret|labrador|lab|poodle|beagle|corgi|pug|terrier|collie|golden\s+"
    r"retriever|spaniel|greyhound|husky|dachshund|bulldog|chihuahua|rat|gerbil|canary|cockatiel|hen"
    r"|chicken|goat)"
)
_WHO = rf"(?P<who>{KIN}|{PET})"
_NAME = r"(?P<name>(?-i:[A-Z][\w'-]+(?:\s+[A-Z][\w'-]+)?))"
GIVEN_NAME = (
    r"(?!(?-i:I|I'm|I've|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday|God|Christmas|Easter|Day)\b)"
    r"(?P<name>(?-i:(?:[A-Z]')?[A-Z][a-z][\w-]+)(?:'s)?)"
)
_COUNT = r"(?:one|two|three|four|five|six|seven|eight|nine|ten|\d{1,2}|a\s+couple\s+of|several)"
_AND_ANOTHER = re.compile(rf"\s+and\s+an?\s+({PET})\s+(?:called|named)\s+", re.IGNORECASE)


def _person(match: re.Match[str]) -> tuple[str, str]:
    """("daughter", "Ines"); the name may be empty."""
    who = " ".join(match["who"].casefold().split())
    called = match.groupdict().get("name") or ""
    return who, called.removesuffix("'s")


def _about(match: re.Match[str], predicate: str, aspect: str, value: str) -> Iterator[Candidate]:
    who, called = _person(match)
    label = f"{who} {called}".strip()
    yield from _named(match)
    yield fact(f"The user's {label} {predicate}.", "relation", f"{label} {aspect}", value, subject=label)


def _exists(who: str, called: str) -> Iterator[Candidate]:
    if called:
        article = "an" if who[0] in "aeiou" else "a"
        yield fact(f"The user has {article} {who} called {called}.", "relation", f"{who} {called}", called)


def _named(match: re.Match[str], _: Clause | None = None) -> Iterator[Candidate]:
    """A name in passing ("my wife Ann and I"): enough to know that there is one."""
    who, called = _person(match)
    words = match.string[match.start("who") : match.end("name")] if called else ""
    yield from (c.change(excerpt=words.removesuffix("'s")) for c in _exists(who, called))


def _called(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    first, *more = _AND_ANOTHER.split(match["named"])
    called = name(first)
    if called:
        yield from _exists(" ".join(match["who"].casefold().split()), called)
    for who, called in zip(more[::2], more[1::2], strict=True):
        if named := name(called):
            yield from _exists(who.casefold(), named)


def _has(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    who = " ".join(match["who"].casefold().split())
    article = "an" if who[0] in "aeiou" else "a"
    yield fact(f"The user has {article} {who}.", "relation", who, "yes")


_NAMES = re.compile(
    r"(?:,|:|\s+(?:called|named))\s+(?P<names>(?-i:[A-Z])[\w'-]+(?:(?:,|,?\s+and)\s+(?-i:[A-Z])[\w'-]+)+)$",
    re.IGNORECASE,
)


def _has_many(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    if named := _NAMES.search(match["list"]):
        one = re.match(
            rf"(?P<n>{_COUNT})\s+(?P<what>(?:[a-z]+[- ])?[a-z]+)$", match["list"][: named.start()], re.IGNORECASE
        )
        if one and re.search(_MANY, one["what"], re.IGNORECASE):
            n, what = one["n"].casefold(), one["what"].casefold()
            yield fact(f"The user has {n} {what}, {named['names']}.", "relation", what, n)
        return
    for part in re.split(r"\s*,\s*|\s+and\s+", match["list"]):
        one = re.match(rf"(?P<n>{_COUNT}|an?)\s+(?P<what>(?:\w+[- ]){{0,2}}?\w+)$", part.strip(" ."), re.IGNORECASE)
        if one and re.search(_MANY, one["what"], re.IGNORECASE):
            what = one["what"].casefold()
            yield fact(f"The user has {one['n'].casefold()} {what}.", "relation", what, one["n"].casefold())


_MANY = (
    r"(?:kids|children|sons?|daughters?|brothers?|sisters?|siblings|dogs?|cats?|grandchildren"
    r"|grandkids|boys|girls|horses|rabbits|hens|chickens|puppies|kittens|pets|nieces|nephews|goats"
    r"|guinea\s+pigs|fish|parrots?|stepchildren|stepkids|cousins|hamsters|birds|ferrets|snakes"
    r"|turtles)$"
)


def _allergic(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    for item in things(match["what"], 3):
        yield from _about(match, f"is allergic to {item}", f"allergy {item}", "allergic")


def _intolerant(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    item = match["what"].casefold()
    yield from _about(match, f"is {item} intolerant", f"allergy {item}", "intolerant")


def _diet(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    diet = " ".join(match["diet"].casefold().split())
    yield from _about(match, f"follows {'an' if diet[0] in 'aeiou' else 'a'} {diet} diet", "diet", diet)


def _lives(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    where = place(match["where"])
    if where:
        yield from _about(match, f"lives in {where}", "home", where)


def _parent_of(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    who, count = match["who"].casefold(), match["n"].casefold()
    yield fact(f"The user is a {who} of {count}.", "relation", "kids", count)


def _coeliac(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    yield from _about(match, f"has {match['what'].casefold()} disease", "allergy gluten", "intolerant")


def _aged(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    age = match["age"].casefold()
    turned = match["verb"].casefold() == "turned"
    years = " years old" if re.search(r"\byears?\s+old\b", match[0], re.IGNORECASE) else ""
    on = f" {match['on']}" if match.groupdict().get("on") else ""
    yield from _about(match, f"turned {age}{on}" if turned else f"is {age}{years}", "age", age)


def _ages(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    who, ages = match["who"].casefold(), " ".join(match["ages"].casefold().split())
    yield fact(f"The user's {who} are {ages}.", "relation", f"{who} age", ages, subject=who)


def _works(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    role = occupation(match["role"])
    if role:
        article = match["article"].casefold().strip()
        yield from _about(match, f"is {article} {role}", "role", role)


def _works_at(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    firm = thing(match["firm"], 4)
    if firm and firm[0].isupper():
        yield from _about(match, f"works {match['prep'].casefold()} {firm}", "employer", firm)


def _taste(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    verb = match["verb"].casefold()
    value = "like" if verb in ("loves", "likes", "enjoys", "adores", "prefers") else "dislike"
    for item in things(re.sub(r"^to\s+", "", match["what"])):
        yield from _about(match, f"{verb} {item}", item, value)


def _does(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    what, verb = told(match["what"]), match["verb"].casefold()
    if (
        what
        and noun(what) not in MATTERS_OF_NOW
        and not re.search(r"\b(?:role|games|hooky|fool|card|word|words)\b", what)
    ):
        yield from _about(match, f"{verb} {what}", f"{verb} {what}", "yes")


def _attribute(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = thing(match["what"], 6)
    if what:
        who, called = _person(match)
        label = f"{who} {called}".strip()
        aspect = " ".join(match["aspect"].casefold().split())
        yield from _named(match)
        yield fact(f"The user's {label}'s {aspect} is {what}.", "relation", f"{label} {aspect}", what, subject=label)


_ISNT = r"(?:me|name|friends?|birthday)"
_AGE_WORD = (
    r"(?:\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen"
    r"|fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty"
    r"|ninety)"
)
_AGE = rf"(?P<age>{_AGE_WORD})"
_MY = rf"(?:my|our)\s+{_WHO}(?:,?\s+{_NAME},?)?"
_ADV = r"(?:(?:also|now|really|very|just|severely|highly|actually|absolutely|currently|still|always|strictly)\s+)*"
RULES = (
    rule(
        r"i'm\s+(?:an?\s+|the\s+)?(?:proud\s+|single\s+)?(?P<who>mother|mum|mom|father|dad|parent)\s+of\s+"
        r"(?P<n>two|three|four|five|six|\d)\b",
        _parent_of,
    ),
    rule(rf"{_MY}\s+(?:is|has)\s+(?P<what>coeliac|celiac)\b", _coeliac),
    rule(rf"(?:my|our)\s+{_WHO}(?:'s\s+name)?\s+is\s+(?:called\s+|named\s+)(?P<named>[^,;:]+)", _called),
    rule(rf"(?:my|our)\s+{_WHO}'s\s+(?:first\s+)?name\s+is\s+(?P<named>[^,;:]+)", _called),
    rule(
        rf"(?:{HAVE}|we\s+adopted|i\s+adopted|i\s+(?:just\s+)?got|we\s+(?:just\s+)?got|i'm\s+(?:the\s+"
        r")?(?:mum|mom|dad|mother|father|parent)\s+(?:of|to))\s+(?:an?\s+"
        rf")(?:\w+[- ]){{0,3}}?{_WHO}\s*,?\s+(?:called|named|whose\s+name\s+is)\s+(?P<named>[^,;:]+)",
        _called,
    ),
    rule(rf"{HAVE}\s+an?\s+{_WHO}\s*,\s*{_NAME}$", _named),
    rule(
        r"i(?:'m|\s+am)\s+(?:happily\s+)?(?:married|engaged)\s+to\s+(?P<named>(?-i:[A-Z])[^,;:]+)",
        lambda m, c: _spouse(m),
    ),
    rule(rf"{HAVE}\s+(?P<list>{_COUNT}\s+[^;:]+)", _has_many),
    rule(rf"{HAVE}\s+an?\s+{_WHO}(?=$|[,.!]|\s+(?:and|now|too|at\s+home|who|that|which)\b)", _has),
    rule(rf"{_MY}\s+(?:is|has\s+always\s+been)\s+{_ADV}allergic\s+to\s+(?P<what>.+)", _allergic),
    rule(rf"{_MY}\s+has\s+an?\s+(?:severe\s+|bad\s+)?(?P<what>[a-z]+)\s+allergy", _allergic),
    rule(rf"{_MY}\s+is\s+{_ADV}(?P<what>lactose|gluten|fructose|dairy|wheat)[- ]intolerant", _intolerant),
    rule(rf"{_MY}\s+is\s+{_ADV}(?:an?\s+)?(?:strict\s+)?(?P<diet>{DIETS}){DIET_END}", _diet),
    rule(rf"{_MY}\s+(?:eats|follows|keeps)\s+{_ADV}(?:an?\s+)?(?:strict\s+)?(?P<diet>{DIETS}){DIET_END}", _diet),
    rule(rf"{_MY}\s+{_ADV}(?:lives|is\s+living|is\s+based)\s+in\s+(?P<where>.+)", _lives),
    rule(
        rf"{_MY}\s+(?:just\s+|recently\s+|has\s+just\s+)?(?P<verb>turned|is)\s+{_ADV}{_AGE}(?:\s+years?\s+"
        r"old|\s+(?P<on>(?:on|last|this)\s+\w+|yesterday|today)|(?=$|[,.!]|\s+(?:now|already|and)\b))",
        _aged,
    ),
    rule(rf"{_MY}\s+is\s+(?P<article>an?|the)\s+(?P<role>.+)", _works),
    rule(
        rf"{HAVE}\s+(?P<what>twins|triplets)\b",
        lambda m, c: iter([fact(f"The user has {m['what'].casefold()}.", "relation", m["what"], "yes")]),
    ),
    rule(
        rf"(?:my|our)\s+(?P<who>kids|children|sons|daughters|twins|boys"
        rf"|girls)\s+are\s+(?P<ages>{_AGE_WORD}(?:,\s*{_AGE_WORD})*"
        rf"(?:,?\s+and\s+{_AGE_WORD})?)(?:\s+years\s+old)?(?=$|[,.!])",
        _ages,
    ),
    rule(rf"{_MY}\s+works\s+as\s+(?P<article>an?|the)\s+(?P<role>.+)", _works),
    rule(rf"{_MY}\s+works\s+(?P<prep>at|for)\s+(?P<firm>.+)", _works_at),
    rule(
        rf"{_MY}\s+(?:also\s+|now\s+)?(?P<verb>plays|studies|collects|speaks|teaches|attends|coaches"
        rf"|practi[cs]es)\s+(?P<what>[^;:]+)",
        _does,
    ),
    rule(rf"{_MY}\s+{_ADV}(?P<verb>loves|likes|enjoys|adores|hates|dislikes|detests|prefers)\s+(?P<what>.+)", _taste),
    rule(
        rf"(?:my|our)\s+{_WHO}(?:\s+(?P<name>(?-i:[A-Z]'?)[\w-]+))?'s\s+(?P<aspect>diet|birthday|job"
        r"|favou?rite\s+\w+|surname|nickname|age|hobby|allergy)\s+is\s+(?:strictly\s+|now\s+|called\s+"
        r"|on\s+)?(?P<what>.+)",
        _attribute,
    ),
    rule(
        rf"(?:my|our)\s+{_WHO}\s+{_NAME}(?=$|[,.!]|\s+(?:and|is|was|has|just|loves|said|who|will|turned"
        r"|started|got|came|went|wants|needs)\b)",
        _named,
        tolerates=("past",),
    ),
)


def _spouse(match: re.Match[str]) -> Iterator[Candidate]:
    called = name(match["named"])
    if called:
        yield fact(
            f"The user is married to {called}."
            if "married" in match[0].casefold()
            else f"The user is engaged to {called}.",
            "relation",
            f"spouse {called}",
            called,
        )
