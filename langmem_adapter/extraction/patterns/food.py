"""Diet, its end, what is not eaten, allergies and intolerances."""

import re
from collections.abc import Iterator

from langmem_adapter.extraction.clauses import Clause
from langmem_adapter.extraction.phrases import ADV, AM, HAVE, fact, rule, thing, things
from langmem_adapter.records import Candidate
from langmem_adapter.text import negated, singular

_KIND = (
    r"(?:raw\s+vegan|lacto-?ovo\s+vegetarian|vegan|vegetarian|veggie|pescatarian|pescetarian"
    r"|flexitarian|omnivore|fruitarian|carnivore|"
    r"kosher|halal|keto(?:genic)?|paleo|plant[- ]based|gluten[- ]free|dairy[- ]free|lactose[- ]free"
    r"|low[- ]carb|whole30|mediterranean)"
)
_SAME = {
    "veggie": "vegetarian",
    "pescetarian": "pescatarian",
    "ketogenic": "keto",
    "plant based": "plant-based",
    "gluten free": "gluten-free",
    "dairy free": "dairy-free",
    "lactose free": "lactose-free",
    "low carb": "low-carb",
    "omnivore": "omnivorous",
    "carnivore": "carnivorous",
    "mediterranean": "Mediterranean",
}
_STOP = (
    r"(?=$|[,.!]|\s+(?:now|too|again|though|and|these\s+days|since|for|person|myself|by|at|who|because"
    r"|only|last|this|about|around|years|months|actually|btw|as\s+well|if|but|eater|"
    r"nowadays|today|already|fyi|honestly|really|obviously|lol|haha|here|in\s+case|diet|food|everything|meals?|household|family|in|at|last"
    r"|with|as|when|so|currently|please|tho)\b)"
)
_FLESH = (
    r"(?:fish|meat|red\s+meat|seafood|chicken|beef|pork|dairy|cheese|eggs?|poultry|bacon|lamb"
    r"|animal\s+products?|shellfish|sushi|steak)"
)
_END = r"(?:any\s*more|any\s+longer|these\s+days|now)"


def _diet_name(words: str) -> str:
    low = " ".join(words.casefold().split())
    return _SAME.get(low, low)


def _follows(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    diet = _diet_name(match["diet"])
    grade = (match.groupdict().get("grade") or "").strip().casefold()
    value = f"{grade} {diet}".strip()
    article = "an" if value[0] in "aeiou" else "a"
    yield fact(f"The user follows {article} {value} diet.", "diet", value=value)


def _ended(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    diet = _diet_name(match["diet"])
    # The content denies only if the words do: grounding compares the two.
    if negated(match[0]):
        article = "an" if diet[0] in "aeiou" else "a"
        content = f"The user no longer follows {article} {diet} diet."
    else:
        content = f"The user has given up the {diet} diet."
    yield fact(content, "diet", value=diet, retract=True)


def _eats_again(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    food = " ".join(match["food"].casefold().split())
    again = " again" if re.search(r"\bagain\b|\bback\s+to\b", match[0], re.IGNORECASE) else ""
    yield fact(f"The user eats {food}{again}.", "diet", value=f"eats {food}")
    if food != "fish" or re.match(r"i\s+(?:do\s+|now\s+)*eat\b", match[0], re.IGNORECASE):
        yield _no_longer_avoided(f"The user eats {food}{again}.", food)


def _no_longer_avoided(content: str, food: str) -> Candidate:
    return fact(content, "preference/likes", food, "avoid", kind="preference", retract=True)


def _has_again(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    verb = match["verb"].casefold().removesuffix("ing")
    for food in things(match["food"], 3):
        content = f"The user {verb}s {food} again."
        yield fact(content, "preference/likes", food, f"{verb}s", kind="preference")


def _no_flesh(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    """Kept beside the diet, which it does not contradict: a vegan eats no meat either."""
    for food in things(match["food"], 2):
        yield from _shuns(f"The user does not eat {food.casefold()}.", food.casefold())


def _shuns(content: str, food: str) -> Iterator[Candidate]:
    yield fact(content, "preference/likes", food, "avoid", kind="preference")
    if re.fullmatch(_FLESH, food):
        yield fact(content, "diet", value=f"eats {food}", retract=True)


def _eats_no(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    verb = match["verb"].casefold()
    for food in things(match["food"], 3):
        content = f"The user {verb}s no {food}."
        yield fact(content, "preference/likes", food, "avoid", kind="preference")


def _all_but(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    verb, all_but = match["verb"].casefold(), " ".join(match["all"].casefold().split())
    for food in things(match["food"], 3):
        content = f"The user {verb}s {all_but} {food}."
        yield fact(content, "preference/likes", food, "avoid", kind="preference")


def _gave_up(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    food = match["food"].casefold()
    verb = " ".join(match["verb"].casefold().split()).replace("given up", "gave up")
    what = f"{(match['act'] or '').casefold()}{food}"
    yield from _shuns(f"The user {verb} {what}.", food)


def _cannot_have(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    food = match["food"].casefold()
    yield fact(f"The user cannot have {food}.", "preference/likes", food, "avoid", kind="preference")


def _as_a(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    diet = match["diet"].casefold()
    if diet.endswith("liac"):
        yield fact(f"The user has {diet} disease.", "diet/allergy", "gluten", "intolerant", source_type="user_implicit")
    else:
        yield fact(f"The user follows a {diet} diet.", "diet", value=diet, source_type="user_implicit")


def _avoids(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    verb = "drink" if "drink" in match["verb"].casefold() else "eat"
    for food in things(match["food"], 3):
        yield from _shuns(f"The user does not {verb} {food}.", food)


def _stays_off(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    for food in things(match["food"], 3):
        yield fact(f"The user avoids {food}.", "preference/likes", food, "avoid", kind="preference")


_NO_ALLERGEN = re.compile(
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:\w+\s+)?(?:work|jobs?|mornings?|people|men|women"
    r"|meetings?|deadlines?|rules|math\w*"
    r"|homework|housework|chores|cleaning|cooking|exercise|exercising|gyms?|sports?|running|cardio|effort|fun"
    r"|drama|stupid|stupidity|idiots?|fools?|morons?|liars?"
    r"|lies|lying|bull\s?shit|bs|nonsense|crap|authority|change|failure|losing|defeat|politics|politicians"
    r"|taxes|bills|bureaucracy"
    r"|paperwork|spreadsheets?|excel|jira|powerpoint|small\s+talk|love|romance|feelings|relationships?"
    r"|marriage|success|money|poverty"
    r"|adulting|getting\s+up.*|waking\s+up.*|being\s+.*|waiting|boredom|excuses|sarcasm|compliments|advice"
    r"|criticism|praise|children|kids|exes"
    r"|commitments?|responsibilit(?:y|ies)|silence|hype|clich[eé]s?|code|bugs|legacy\s+code|javascript|java"
    r"|php|school|math|bad\s+\w+"
    r"|my\s+.*|their\s+.*|your\s+.*|good\s+\w+|early\s+.*|saying\s+.*|doing\s+.*|fake\s+.*|negativity|toxicity"
    r"|winter|summer|monday\s+.*)"
    r"|[\w\s-]+(?:ness|ism|ship|hood|ity|itment)",
    re.IGNORECASE,
)
"""What nobody is allergic to, except in jest."""


def _allergens(words: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for item in things(words, 3):
        if re.search(r"\d", item) or _NO_ALLERGEN.fullmatch(item):
            break
        found.append((item, singular(item.casefold())))
    return found


def _allergic(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    for item, slot in _allergens(match["what"]):
        yield fact(f"The user is allergic to {item}.", "diet/allergy", slot, "allergic")


def _maybe_allergic(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    for item, slot in _allergens(match["what"]):
        yield fact(
            f"The user might be allergic to {item}.",
            "diet/allergy",
            slot,
            "allergic",
            source_type="user_implicit",
            confidence=0.3,
        )


def _intolerant(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    for item, slot in _allergens(match["what"]):
        yield fact(f"The user is {item} intolerant.", "diet/allergy", slot, "intolerant")


def _has_allergy(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    item = thing(match["what"], 3)
    if item:
        kind, item = match["kind"].casefold().replace("allergies", "allergy"), item.casefold()
        value = "allergic" if kind == "allergy" else "intolerant"
        what = f"{kind} to {item}" if match["to"] else f"{item} {kind}"
        article = "an" if what[0] in "aeiou" else "a"
        yield fact(f"The user has {article} {what}.", "diet/allergy", singular(item), value)


def _outgrew(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    for item, slot in _allergens(match["what"] or match["what2"]):
        yield fact(f"The user is no longer allergic to {item}.", "diet/allergy", slot, "none")


def _over(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    item, kind = match["what"].casefold(), match["kind"].casefold()
    how = " ".join((match.groupdict().get("how") or "").casefold().split())
    if re.fullmatch(r"(?:any|food|known|other|no|a|an|my|the)", item):
        return
    said = f"The user {how} their {item} {kind}." if how else f"The user's {item} {kind} is gone."
    yield fact(said, "diet/allergy", singular(item), "none")


def _not_allergic(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    for item, slot in _allergens(match["what"]):
        yield fact(f"The user is not allergic to {item}.", "diet/allergy", slot, "allergic", retract=True)


def _not_intolerant(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    item = match["what"].casefold()
    yield fact(f"The user is not {item} intolerant.", "diet/allergy", item, "intolerant", retract=True)


def _has_no_allergy(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    item, kind = match["what"].casefold(), match["kind"].casefold()
    if not re.fullmatch(r"(?:any|food|known|other|an?|my|the)(?:\s.*)?", item):
        value = "allergic" if kind.startswith("allerg") else "intolerant"
        yield fact(f"The user has no {item} {kind}.", "diet/allergy", singular(item), value, retract=True)


def _not_diet(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    diet = _diet_name(match["diet"])
    if instead := re.match(
        rf"but\s+(?:rather\s+|actually\s+)?(?:an?\s+)?(?P<diet>{_KIND})\b", clause.after, re.IGNORECASE
    ):
        new = _diet_name(instead["diet"])
        article = "an" if new[0] in "aeiou" else "a"
        yield fact(f"The user follows {article} {new} diet, not {diet}.", "diet", value=new, replaces=diet)
        return
    article = "an" if diet[0] in "aeiou" else "a"
    yield fact(f"The user does not follow {article} {diet} diet.", "diet", value=diet, retract=True)


def _eats_all(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    yield fact("The user eats everything.", "diet", value="eats everything")


def _no_allergies(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    yield fact("The user has no allergies.", "diet/allergy", "any", "none")


def _coeliac(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    yield fact(f"The user has {match['what'].casefold()} disease.", "diet/allergy", "gluten", "intolerant")


_EATER = r"i\s+(?:pretty\s+much\s+|basically\s+|will\s+)?(?P<verb>eat|drink)\s+"
_A0 = r"(?:a\s+|an\s+)?(?:(?:strict|committed|proud|full|mostly)\s+)?"
_GRADE = r"(?P<grade>(?:mostly|mainly|largely|partly)\s+)?"
_A = r"(?:a\s+|an\s+)?(?:(?:strict|lifelong|committed|proud|devoted|complete|full|happy|total|long-?time)\s+)?"
RULES = (
    rule(
        _EATER + r"(?P<all>(?:everything|anything|all\s+(?:foods?|meats?|kinds?\s+of\s+\w+))\s+"
        r"(?:except(?:\s+for)?|but|apart\s+from|besides|other\s+than|save))\s+(?P<food>.+)",
        _all_but,
    ),
    rule(
        r"i\s+(?P<verb>eat|drink)\s+(?:absolutely\s+)?no\s+(?P<food>(?!more\b|less\b|longer\b|matter\b)[a-z].+)",
        _eats_no,
    ),
    rule(r"i\s+(?:do\s+)?eat\s+everything(?=$|[,.!])", _eats_all),
    rule(rf"(?:i'm\s+|i\s+am\s+|im\s+)?still\s+{_A0}(?P<diet>{_KIND}){_STOP}", _follows),
    rule(
        r"i(?:'ve|\s+have)?\s*(?:finally\s+|apparently\s+)?(?P<how>outgrew|outgrown|grew\s+out\s+of"
        r"|grown\s+out\s+of|got\s+over|lost)\s+(?:my|the)\s+"
        r"(?P<what>[a-z]+(?:\s+[a-z]+)?)\s+(?P<kind>allergy|intolerance|sensitivity)\b",
        _over,
    ),
    rule(
        r"my\s+(?P<what>[a-z]+(?:\s+[a-z]+)?)\s+(?P<kind>allergy|intolerance|sensitivity)\s+(?:is|has|went"
        r"|disappeared|seems\s+to\s+(?:be|have))\s*"
        r"(?:now\s+|completely\s+)?(?:gone|away|over|cured|disappeared|gone\s+away|vanished)(?=$|[,.!]|\s)",
        _over,
    ),
    rule(
        r"i\s+(?:no\s+longer\s+have|(?:don't|do\s+not|dont)\s+have|have\s+no"
        r"|never\s+had)\s+(?:an?\s+)?(?P<what>[a-z]+(?:\s+[a-z]+)?)\s+"
        r"(?P<kind>allergy|intolerance)(?=$|[,.!]|\s+(?:any|after))",
        _has_no_allergy,
    ),
    rule(
        rf"(?:i'm|im|i\s+am)\s+not\s+(?:actually\s+|really\s+)?(?:an?\s+)?(?:strict\s+)?(?P<diet>{_KIND})(?=$"
        rf"|[,.!]|\s+(?:after\s+all|though|actually|btw|tho|at\s+all)\b)",
        _not_diet,
    ),
    rule(
        r"i(?:'ve|\s+have)?\s*(?:just\s+|recently\s+)?(?P<verb>stopped|quit|gave\s+up|given\s+up|cut\s+"
        r"out)\s+(?P<act>eating\s+|drinking\s+)?"
        r"(?P<food>meat|fish|alcohol|coffee|sugar|dairy|gluten|caffeine|smoking|cigarettes|red\s+meat|soda"
        r"|chocolate|wheat|eggs|cheese|pork|beef)"
        r"(?=$|[,.!]|\s+(?:last|this|in|for|and|two|three|\w+\s+(?:years?|months?|weeks?)|years|completely"
        r"|altogether|entirely|recently))",
        _gave_up,
    ),
    rule(
        r"i\s+(?:can't|cannot|cant|can\s+not|don't|dont|shouldn't)\s+have\s+(?:any\s+)?(?P<food>dairy"
        r"|gluten|nuts|peanuts|lactose|alcohol|sugar|"
        r"caffeine|shellfish|wheat|soy|eggs?|milk|cheese|salt|pork|meat|fish|seafood)(?=$|[,.!]|\s)",
        _cannot_have,
        tolerates=("modal",),
    ),
    rule(
        r"as\s+an?\s+(?:\w+\s+)?(?P<diet>vegan|vegetarian|pescatarian|coeliac|celiac)(?=,|$|\s+(?:i|i'm"
        r"|myself|my)\b)",
        _as_a,
    ),
    rule(
        rf"(?:{AM}|i\s+(?:went|became|turned|have\s+gone|have\s+become)|i've\s+(?:gone|become|turned)|we're"
        rf"|we\s+are)\s+{ADV}{_GRADE}{_A}(?P<diet>{_KIND}){_STOP}",
        _follows,
    ),
    rule(
        rf"(?:i|we)\s+{ADV}(?:eat|follow|keep|keep\s+to|stick\s+to|do|live)\s+{ADV}(?:only\s+|an?\s+|my\s+"
        rf")?(?:(?:strict|mostly)\s+)?(?P<diet>{_KIND}){_STOP}",
        _follows,
    ),
    rule(rf"(?:{AM}\s+{ADV}on|my\s+diet\s+is)\s+{ADV}(?:an?\s+|the\s+)?(?P<diet>{_KIND}){_STOP}", _follows),
    rule(rf"(?:so\s+)?(?P<diet>{_KIND})\s+is\s+(?:right|correct|it|what\s+i\s+am|accurate)", _follows),
    rule(
        rf"(?:i'm|im|i\s+am)\s+not\s+(?:really\s+|actually\s+)?(?:an?\s+)?(?P<diet>{_KIND})\s+any\s*(?:more|longer)",
        _ended,
    ),
    rule(rf"(?:i'm|im|i\s+am)\s+no\s+longer\s+(?:an?\s+|eating\s+|on\s+an?\s+)?(?P<diet>{_KIND}){_STOP}", _ended),
    rule(
        r"i(?:'ve|\s+have)?\s*(?:just\s+|recently\s+)?(?:stopped|quit|gave\s+up|given\s+up|done)\s+"
        rf"(?:being|eating|with\s+being|on\s+being)\s+(?:an?\s+)?(?P<diet>{_KIND}){_STOP}",
        _ended,
    ),
    rule(rf"{AM}\s+done\s+(?:with\s+)?being\s+(?:an?\s+)?(?P<diet>{_KIND}){_STOP}", _ended),
    rule(
        r"i(?:'ve|\s+have)?\s*(?:just\s+|recently\s+)?(?:started|begun|began|gone\s+back\s+to|went\s+"
        rf"back\s+to)\s+(?:eating\s+|to\s+eat\s+)?(?P<food>{_FLESH})(?:\s+(?:again|now)|$|\s+(?:last|this"
        r"|a)\b)",
        _eats_again,
    ),
    rule(
        rf"(?:i|i'm|im|i\s+am)\s+(?:now\s+|do\s+|back\s+to\s+)*(?:eat|eating)\s+(?P<food>{_FLESH})\s+"
        r"(?:again|now|these\s+days)",
        _eats_again,
    ),
    rule(
        rf"(?:i\s+do\s+(?:now\s+)?eat|i'm\s+back\s+to\s+eating|i\s+now\s+eat)\s+(?P<food>{_FLESH})(?=$"
        r"|[,.!]|\s+(?:though|but|now|again))",
        _eats_again,
    ),
    rule(
        r"i\s+(?:still\s+|actually\s+)?eat\s+(?P<food>meat(?:\s+and\s+fish)?|fish\s+and\s+meat|red\s+meat)$",
        _eats_again,
    ),
    rule(
        r"i(?:'m|\s+am|'ve|\s+have)?\s+(?:now\s+|started\s+|back\s+to\s+)*(?P<verb>eat(?:ing)?|drink(?:ing)?)\s+"
        r"(?P<food>[a-z][a-z -]{1,40}?)\s+again$",
        _has_again,
    ),
    rule(
        r"i\s+(?:do\s+not|don't|dont|never|no\s+longer)\s+eat\s+(?:any\s+)?(?P<food>meat\s+or\s+fish"
        r"|fish\s+or\s+meat|meat|red\s+meat"
        r"|animal\s+products?|fish\s+or\s+meat)(?=$|[,.!]|\s+(?:any|at\s+all|now|so|and"
        r"|but|or|though|either|these))",
        _no_flesh,
    ),
    rule(
        rf"(?:{AM}\s+{ADV}(?:not\s+sure\s+if\s+)?(?:i'm\s+)?possibly|i\s+(?:might|may|could)\s+(?:also\s+"
        r")?be|i\s+(?:think|suspect|believe)\s+(?:that\s+)?(?:i\s+(?:might|may|could)\s+be|i'm|i\s+am|im)"
        rf"|(?:maybe|perhaps)\s+i'm)\s+{ADV}allergic\s+to\s+(?P<what>.+)",
        _maybe_allergic,
        tolerates=("uncertain", "modal"),
    ),
    rule(
        r"(?:i'm|im|i\s+am)\s+(?:not\s+allergic\s+to\s+(?P<what>.+?)\s+any\s*(?:more|longer)|no\s+"
        r"longer\s+allergic\s+to\s+(?P<what2>.+))",
        _outgrew,
    ),
    rule(
        r"(?:i'm|im|i\s+am)\s+(?:actually\s+)?not\s+(?:actually\s+"
        r"|really\s+)?allergic\s+to\s+(?P<what>.+?)(?:\s+after\s+all)?$",
        _not_allergic,
    ),
    rule(
        r"(?:i'm|im|i\s+am)\s+(?:actually\s+)?not\s+(?P<what>lactose|gluten|fructose|histamine|dairy|wheat|soy"
        r"|egg)[- ]intolerant",
        _not_intolerant,
    ),
    rule(rf"{AM}\s+{ADV}allergic\s+to\s+(?P<what>.+)", _allergic),
    rule(
        rf"(?:{HAVE}|i\s+suffer\s+from)\s+(?:(?:an?|the|severe|bad|serious|mild|slight|terrible"
        r"|life-threatening|strong)\s+)*(?P<kind>allergy|allergies|intolerance|sensitivity)(?P<to>\s+to)\s+"
        r"(?P<what>.+)",
        _has_allergy,
    ),
    rule(
        rf"(?:{HAVE}|i\s+suffer\s+from)\s+(?:(?:an?|severe|bad|serious|mild|slight|terrible"
        r"|life-threatening|strong)\s+)*(?P<what>(?!no\b|any\b|some\b|food\b)[a-z]+(?:\s+[a-z]+)?)\s+"
        r"(?P<kind>allergy|allergies|intolerance|sensitivity)(?P<to>)\b",
        _has_allergy,
    ),
    rule(rf"{AM}\s+{ADV}(?P<what>lactose|gluten|fructose|histamine|dairy|wheat|soy|egg)[- ]intolerant", _intolerant),
    rule(rf"{AM}\s+{ADV}intolerant\s+(?:to|of)\s+(?P<what>.+)", _intolerant),
    rule(rf"(?:{AM}\s+{ADV}(?:a\s+)?|{HAVE}\s+)(?P<what>coeliac|celiac)\b", _coeliac),
    rule(
        r"(?:i\s+(?:do\s+not|don't|dont)\s+have\s+any|i\s+have\s+no|i've\s+got\s+no)\s+(?:known\s+"
        r"|food\s+)*allergies",
        _no_allergies,
    ),
    rule(
        r"i\s+(?:(?:do\s+not|don't|dont)\s+(?:ever\s+|really\s+)?|never\s+|can't\s+|cannot\s+|cant\s+"
        r"|no\s+longer\s+)(?P<verb>eat|drink)\s+(?:any\s+)?(?P<food>(?!here|there|out|at|in|on|before"
        r"|after|much|enough|well|breakfast|lunch|dinner|late|that|this|and|anymore|any\s*more)[a-z].+)",
        _avoids,
    ),
    rule(
        r"i\s+(?:always\s+|usually\s+|try\s+to\s+)?(?:avoid|stay\s+away\s+from|steer\s+clear\s+of)\s+(?P<food>.+)",
        _stays_off,
    ),
)
