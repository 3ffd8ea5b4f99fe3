"""Employer and role: what the user does for a living. A title is a job, never a permission."""

import re
from collections.abc import Iterator

from langmem_adapter.extraction.clauses import Clause
from langmem_adapter.extraction.masking import MASK
from langmem_adapter.extraction.patterns.identity import SOFTWARE
from langmem_adapter.extraction.phrases import ADV, AM, fact, rule, tail_cut, thing
from langmem_adapter.extraction.vocabulary import FIRMS, PLACES, WORKPLACE
from langmem_adapter.records import Candidate

_FIRM_STOP = re.compile(
    r"\s+(?:as|in|on|since|for|because|and\s+(?:i|we|my|it)|where|which|who|now|but|so|these|at\s+"
    r"the\s+moment|until|with|when|while|from|"
    r"part[- ]time|full[- ]time|remotely|again|too|currently|doing|last|this|about|over|to|during"
    r"|every|most|or\s+so|by|near|down|up|if|"
    r"anymore|any\s*more|any\s+longer|(?-i:and\s+[a-z])|i\b)(?=\s|$).*",
    re.IGNORECASE | re.DOTALL,
)
_NO_FIRM = re.compile(
    r"(?:home|night|nights|work|weekends?|the\s+moment|least|it|that|this|them|him|her|me|myself|you"
    r"|us|free|days?|once|peace|all|"
    r"present|full|height|heights|the\s+weekend|the\s+time|a\s+living|fun|money|hours|two|three|my\s+"
    r"desk|a\s+loss|the\s+office|"
    r"the\s+same|the\s+best|a\s+while|years?|months?|good|now|change|long|something|someone|others?|what|how)\b",
    re.IGNORECASE,
)


def _firm(words: str) -> str | None:
    cut = _FIRM_STOP.sub("", " " + words.split(",")[0]).strip(" .!?,;:\"'")
    if (
        not cut
        or MASK in cut
        or len(cut.split()) > 6
        or _NO_FIRM.match(cut)
        or re.search(r"\b(?:or|depends)\b", cut, re.I)
    ):
        return None
    if re.search(r"\b(?:i|i'm|you|he|she|they|it|is|are|was)\b", cut, re.IGNORECASE) or re.search(r"[{}<>=|\\@]", cut):
        return None
    cut = re.sub(r"^(?:my|our)\s+", "their ", cut, flags=re.IGNORECASE)
    if cut.casefold() in FIRMS and cut.islower():
        return cut.upper() if len(cut) <= 3 else " ".join(w.capitalize() for w in cut.split())
    if cut.islower():
        return cut if re.match(r"(?:an?|the|their)\s", cut) and WORKPLACE.search(cut) else None
    if re.match(r"(?:an?|their)\s", cut) and not WORKPLACE.search(cut) and not re.search(r"\s[A-Z]", cut):
        return None
    return cut


def _works_for(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    firm = _firm(match["firm"])
    if firm:
        word = (match.groupdict().get("prep") or "at").casefold()
        yield fact(f"The user works {'for' if word == 'for' else 'at'} {firm}.", "work/employer", value=_bare(firm))


def _bare(firm: str) -> str:
    return re.sub(r"^(?:an?|the|their)\s+(?=[a-z])", "", firm)


_OVER = re.compile(
    r"\b(?:lost|left|quit|leaving|leave|former|previous|was|were|had|interview|application|apply)\b", re.IGNORECASE
)


def _works_there(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    firm = None if _OVER.search(clause.said) else _firm(match["firm"])
    if firm and firm[0].isupper() and match["firm"][0].isupper():
        yield fact(
            f"The user works at {firm}.", "work/employer", value=firm, source_type="user_implicit", confidence=0.65
        )


def _left(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    firm = _firm(match["firm"])
    if firm:
        plain = re.match(r"i\s+(?:don't|do\s+not|dont)\b", match[0], re.IGNORECASE) and not _ANY_MORE.search(match[0])
        said = "does not work" if plain else "no longer works"
        yield fact(f"The user {said} at {firm}.", "work/employer", value=_bare(firm), retract=True)


_ANY_MORE = re.compile(r"\bany\s*(?:more|longer)\b", re.IGNORECASE)


def _changed_firm(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    """ "I left Acme for Globex": of employers, unless the names are those of tools or places."""
    old, new = _firm(match["old"]), _firm(match["new"])
    if not old or not new:
        return
    how = f"left {old}" if "left" in match[0].casefold() else f"quit {old}"
    joint = " ".join(match["joint"].casefold().split())
    content = f"The user {how} {joint} {new}."
    if old.casefold() in SOFTWARE or new.casefold() in SOFTWARE:
        yield fact(content, "preference/tool", new, new, replaces=old)
    elif old.casefold() in PLACES or new.casefold() in PLACES:
        if joint == "for" or "move" in joint:
            yield fact(content, "home/location", value=new, replaces=old)
    else:
        yield fact(content, "work/employer", value=new, replaces=old)


def _left_firm(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    firm = _firm(match["firm"])
    if firm and firm.casefold() not in PLACES and firm.casefold() not in SOFTWARE:
        verb = " ".join(match["verb"].casefold().split())
        yield fact(f"The user {verb} {firm}.", "work/employer", value=firm, retract=True)


def _not_role(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    role = occupation(match["role"])
    if role:
        article = match["article"].casefold()
        yield fact(f"The user is not {article} {role}.", "work/role", value=role, retract=True)


def _left_job(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    firm = _firm(match["firm"])
    if firm:
        verb = " ".join(match["verb"].casefold().split()).replace("was laid", "got laid")
        yield fact(f"The user {verb} their job at {firm}.", "work/employer", value=_bare(firm), retract=True)


_LEARNER = re.compile(r"\b(?:student|pupil|undergrad(?:uate)?|phd\s+candidate)$", re.IGNORECASE)


def _role_and_firm(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    role = occupation(match["role"], trusted=match.groupdict().get("sure"))
    if not role:
        return
    article = (match.groupdict().get("article") or "").strip().casefold()
    shown = f"{article} {role}".strip() if article else role
    told = match.groupdict().get("sure")
    said = {None: "The user is", "": "The user's job is"}.get(told, "The user works as")
    where = match.groupdict().get("firm")
    school = _firm(where) if where and _LEARNER.search(role) else None
    at = f" at {school}" if school and (match["prep"] or "").casefold() == "at" else ""
    yield fact(f"{said} {shown}{at}.", "work/role", value=role)
    firm = _firm(match["firm"]) if match.groupdict().get("firm") else None
    if (
        firm
        and not _LEARNER.search(role)
        and (firm[0].isupper() or re.match(r"(?:an?|the)\s", firm))
        and match["firm"][:1] != match["firm"][:1].casefold()
    ):
        yield fact(f"The user works {(match['prep'] or 'at').casefold()} {firm}.", "work/employer", value=_bare(firm))


def _role_ended(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    role = occupation(match["role"])
    if role:
        yield fact(f"The user is no longer working as {role}.", "work/role", value=role, retract=True)


def _as_a(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    role = occupation(match["role"])
    if role and re.search(r"\bi\b", match.string, re.IGNORECASE):
        yield fact(
            f"The user is {match['article'].casefold()} {role}.", "work/role", value=role, source_type="user_implicit"
        )


def _field(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = thing(match["what"], 4)
    if what and not re.match(
        r"(?:an?|the|my|their|\d)\b|.*\b(?:hours?|days?|morning|evening|week|office|home|shifts?|progress"
        r"|team|teams|way|time)\b",
        what,
        re.I,
    ):
        yield fact(
            f"The user works in {what}.",
            *(("work/role", "", what) if what[0].islower() or what.isupper() else ("general", "workplace", what)),
        )


def _does(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = thing(match["what"], 6)
    if what:
        verb = {
            "teach": "teaches",
            "run": "runs",
            "own": "owns",
            "manage": "manages",
            "research": "researches",
            "lead": "leads",
        }[match["verb"].casefold()]
        yield fact(f"The user {verb} {what}.", "work/role", value=f"{verb} {what}")


def _study(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = thing(match["what"], 8)
    if what:
        yield fact(f"The user studies {what}.", "work/role", value=f"studies {what}")


def _jobless(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    value = " ".join(match["what"].casefold().split())
    yield fact(f"The user is {value}.", "work/role", value=value)


_HEADS = (
    r"team\s+lead(?:er)?|tech\s+lead|lead|supervisor|nurse|doctor|lawyer|solicitor|barrister|teacher"
    r"|professor|lecturer|engineer|developer|programmer"
    r"|designer|architect|chef|cook|baker|"
    r"waiter|waitress|bartender|barista|pilot|plumber|electrician|carpenter|mechanic|farmer|gardener"
    r"|florist|butcher|tailor|hairdresser|barber|"
    r"photographer|journalist|reporter|writer|author|editor|translator|interpreter|librarian"
    r"|accountant|auditor|banker|broker|analyst|"
    r"consultant|manager|director|founder|co-founder|cofounder|ceo|cto|cfo|coo|president|chairman"
    r"|chair|secretary|receptionist|assistant|"
    r"technician|scientist|researcher|physicist|chemist|biologist|mathematician|statistician|economist"
    r"|historian|philosopher|psychologist|"
    r"psychiatrist|therapist|counsellor|counselor|physiotherapist|dentist|vet|veterinarian|pharmacist"
    r"|surgeon|paramedic|midwife|carer|"
    r"caregiver|nanny|babysitter|social\s+worker|police\s+officer|firefighter|soldier|officer|guard"
    r"|driver|courier|trucker|sailor|captain|"
    r"musician|singer|drummer|guitarist|pianist|composer|conductor|dj|actor|actress|dancer|painter"
    r"|sculptor|potter|illustrator|artist|"
    r"animator|filmmaker|producer|coach|trainer|instructor|tutor|student|phd\s+student|intern"
    r"|apprentice|trainee|freelancer|contractor|"
    r"entrepreneur|shopkeeper|salesperson|salesman|saleswoman|sales\s+rep|cashier|clerk|realtor"
    r"|estate\s+agent|recruiter|marketer|"
    r"copywriter|blogger|streamer|influencer|politician|diplomat|judge|priest|pastor|rabbi|imam|monk"
    r"|nun|minister|data\s+scientist|sysadmin|"
    r"system\s+administrator|systems\s+administrator|database\s+administrator|network\s+administrator"
    r"|office\s+administrator|"
    r"school\s+administrator|devops|product\s+owner|scrum\s+master|tester|welder|builder|bricklayer"
    r"|roofer|locksmith|jeweller|jeweler|"
    r"optician|optometrist|radiographer|radiologist|cardiologist|paediatrician|pediatrician"
    r"|anaesthetist|dermatologist|neurologist|gp|"
    r"geologist|astronomer|botanist|zoologist|archaeologist|anthropologist|sociologist|linguist"
    r"|curator|archivist|surveyor|planner|"
    r"programme\s+manager|postdoc|fellow|flight\s+attendant|steward|stewardess|housekeeper|cleaner"
    r"|janitor|caretaker|beekeeper|"
    r"fisherman|forester|ranger|winemaker|brewer|sommelier|stylist|beautician|masseuse|yoga\s+teacher"
    r"|personal\s+trainer|homemaker|"
    r"stay-at-home\s+(?:mum|mom|dad|parent)|housewife|retiree|pensioner|civil\s+servant|bookkeeper"
    r"|actuary|underwriter|paralegal|"
    r"notary|undertaker|principal|headteacher|headmaster|dean|partner\s+at\s+a\s+law\s+firm|tradesman"
    r"|trader|strategist|specialist|"
    r"sculptress|weaver|ceramicist|zookeeper|lifeguard|referee|jockey|athlete|footballer|golfer|boxer|swimmer|runner"
)
_NO_MODIFIER = (
    r"(?!(?:to|be|been|become|becoming|an?|the|almost|nearly|hardly|barely|not|no|only|basically|practically"
    r"|virtually|technically|half|kind"
    r"|sort|about|than|my|your|his|her|their|our|this|that|who|for|and|or|if|as|like|with|from|of|by|at|in|on"
    r"|more|less|such|what|every"
    r"|some|any|now|next|maybe|wannabe|aspiring|future|former|ex|would-be|soon-to-be|failed|pretend|fake"
    r"|armchair|so-called|self-proclaimed"
    r"|is|are|was|were|has|have|had|will|you|i|he|she|they|it|secretly|supposedly|potential|hopeful"
    r"|prospective|proud|glad|happy|sorry|married|engaged|related"
    r"|dating|seeing|calling|training|studying|trying|hoping|working|talking|looking|watching|helping|hiring"
    r"|visiting|meeting|texting|emailing"
    r"|waiting|thinking|getting|going|learning|preparing|applying|dreaming|reading|writing|playing|using"
    r"|making|doing|having|paying|suing)\b)"
)
_ROLE = re.compile(
    rf"(?:(?:training|writing|learning|working|reading|playing|making)\s+(?=(?:manager|coordinator|director"
    rf"|specialist|assistant|coach|officer|lead)\b)"
    rf"|{_NO_MODIFIER}[\w&/'+#.-]+\s+){{0,4}}?(?:{_HEADS})(?=$|\s|[,.])",
    re.IGNORECASE,
)
_NO_ROLE = re.compile(
    r"\b(?:bad|terrible|good|great|awful|horrible|decent|not|fan|natural|slow|fast|big|better|worse|no"
    r"|lousy|keen|avid|amateur|my|your|own|morning|night)\b",
    re.I,
)
_OF = re.compile(r"\s+(?:of|for)\s+(?P<what>(?:an?|the|my|our)?\s*[^,;:]{2,50})", re.IGNORECASE)


def occupation(words: str, *, trusted: str | None = None) -> str | None:
    """The job in these words ("freelance illustrator", "CEO of a pottery studio"), else None.

    Unless it is told as one (`trusted`: "as" for "I work as …", "" for "my job is …") the head noun must be a known
    occupation: "I'm a mess" is no job.
    """
    cut = tail_cut(re.split(r"\s+(?:at|in|with|by|from|on)\s+", words)[0])
    match = _ROLE.match(cut)
    if (
        trusted == ""
        and not re.search(r"\b(?:me|you)\b", cut)
        and re.fullmatch(r"[a-z]+ing(?:\s+[\w-]+){1,3}", cut, re.IGNORECASE)
    ):
        return cut
    if match and not _NO_ROLE.search(match[0]):
        rest = cut[match.end() :]
        of = _OF.match(rest)
        if rest and not of:
            return match[0] if re.match(r"\s*(?:and|,|/|&)", rest) else None
        return match[0] + (" of " + what if of and (what := thing(of["what"], 6)) else "")
    return (
        thing(cut, 5)
        if trusted
        and not match
        and not re.match(
            r"(?:an?\s+)?(?:team|group|one|usual|normal|charm|hard|fast|quick\w*|slow\w*|much|little|long|best"
            r"|well|good|if|though"
            r"|often|soon|many|few|efficient\w*|expected|planned|intended|it|unit|pair|couple|robot|dog|slave"
            r"|horse|mule|maniac|machine)\b",
            cut,
            re.IGNORECASE,
        )
        else None
    )


_R = r"(?P<article>an?\s+|the\s+)?(?P<role>.+?)"
_F = r"(?:\s+(?P<prep>at|for)\s+(?P<firm>[^,;:]+))?"
RULES = (
    rule(r"(?:i'm|im|i\s+am)\s+no\s+longer\s+(?:working\s+as\s+)?(?:an?|the)\s+(?P<role>.+)", _role_ended),
    rule(r"(?:i'm|im|i\s+am)\s+not\s+(?:an?|the)\s+(?P<role>.+?)\s+any\s*(?:more|longer)", _role_ended),
    rule(r"(?:i'm|im|i\s+am)\s+not\s+(?P<article>an?|the)\s+(?P<role>.+)", _not_role),
    rule(
        r"i(?:'ve|\s+have)?\s*(?:just\s+|recently\s+|finally\s+)*(?:left"
        r"|quit)\s+(?P<old>(?-i:[A-Z])[\w&.' -]{1,40}?)\s+"
        r"(?P<joint>for|to\s+join|to\s+work\s+(?:for|at)|to\s+move\s+to|and\s+(?:have\s+)?(?:now\s+)?(?:joined"
        r"|started\s+(?:working\s+)?at|went\s+to|moved\s+to))\s+"
        r"(?P<new>(?-i:[A-Z]).+)",
        _changed_firm,
    ),
    rule(
        r"i(?:'ve|\s+have)?\s*(?:just\s+|recently\s+|finally\s+)*(?P<verb>left|quit|resigned\s+from"
        r"|got\s+fired\s+from|was\s+fired\s+from"
        r"|got\s+laid\s+off\s+from"
        r"|was\s+laid\s+off\s+from)\s+(?P<firm>(?-i:[A-Z])[\w&.'-]+(?:\s+(?-i:[A-Z&])[\w&.'-]*){0,3})"
        r"(?=$|[,.!]|\s+(?:last|this|in|after|yesterday|today|recently|for\s+good|because|\w+\s+(?:days?"
        r"|weeks?|months?|years?)\s+ago)\b)",
        _left_firm,
    ),
    rule(r"as\s+(?P<article>an?|the)\s+(?P<role>[^,;:]+?)(?:,\s*i\b|,?$|\s+i\b|\s+myself\b)", _as_a),
    rule(
        r"(?:i|we)\s+(?:no\s+longer\s+work|(?:don't|do\s+not|dont)\s+work)\s+(?:at|for)\s+"
        r"(?P<firm>.+?)(?:\s+any\s*(?:more|longer))?$",
        _left,
    ),
    rule(
        r"i(?:'ve|\s+have)?\s*(?:just\s+|recently\s+)?(?:stopped|quit|finished)\s+working\s+(?:at"
        r"|for)\s+(?P<firm>.+)",
        _left,
    ),
    rule(
        r"i(?:'ve|\s+have)?\s*(?:just\s+|recently\s+)?(?P<verb>left|quit|lost|resigned\s+from|was\s+laid\s+"
        r"off\s+from|got\s+laid\s+off\s+from)\s+my\s+(?:old\s+)?(?:job|position|role|post)\s+(?:at"
        r"|with)\s+(?P<firm>.+)",
        _left_job,
    ),
    rule(r"i\s+(?:am\s+)?no\s+longer\s+(?:employed\s+(?:at|by)|with)\s+(?P<firm>(?-i:[A-Z]).+)", _left),
    rule(
        rf"(?:i\s+{ADV}work|i'm\s+{ADV}working|i\s+am\s+{ADV}working|im\s+working|i've\s+been\s+working"
        rf"|i\s+{ADV}freelance)\s+(?:now\s+)?(?P<sure>as)\s+{_R}{_F}$",
        _role_and_firm,
    ),
    rule(
        rf"(?:i\s+{ADV}work|i'm\s+{ADV}working|i\s+am\s+{ADV}working|im\s+working|i've\s+been\s+working)\s+"
        r"(?:now\s+|full[- ]time\s+|part[- ]time\s+|remotely\s+)*(?P<prep>at|for)\s+(?P<firm>.+)",
        _works_for,
    ),
    rule(r"still\s+(?:working\s+)?(?P<prep>at|for)\s+(?P<firm>(?-i:[A-Z]).+)", _works_for),
    rule(rf"{AM}\s+{ADV}(?:employed|hired)\s+(?:at|by|with)\s+(?P<firm>.+)", _works_for),
    rule(
        r"i(?:'ve|\s+have)?\s*(?:just\s+|recently\s+|now\s+)*(?:joined|started\s+(?:working\s+)?(?:at|for)"
        r"|got\s+(?:a|the|my)\s+(?:new\s+)?job\s+(?:at|with)|started\s+(?:a|my)\s+new\s+job\s+(?:at"
        r"|with))\s+(?P<firm>(?-i:[A-Z]).+)",
        _works_for,
    ),
    rule(
        r"my\s+(?:new\s+|current\s+)?(?:employer|company|workplace)\s+is\s+(?:called\s+|now\s+"
        r")?(?P<firm>(?-i:[A-Z]).+)",
        _works_for,
    ),
    rule(
        r"my\s+(?:(?:new|current|day)\s+)*(?:job(?:\s+title)?|occupation|profession|role|position)\s+is\s+"
        r"(?P<sure>)(?P<article>an?\s+|the\s+)?(?P<role>.+)",
        _role_and_firm,
    ),
    rule(
        rf"{AM}\s+{ADV}(?P<what>retired|unemployed|self-employed|between\s+jobs|on\s+maternity\s+leave"
        r"|on\s+parental\s+leave|on\s+sabbatical)(?=$|[,.!]|\s+(?:now|and|since|from|as|but)\b)",
        _jobless,
    ),
    rule(rf"{AM}\s+{ADV}{_R}{_F}$", _role_and_firm),
    rule(
        r"i(?:'ve|\s+have)?\s*(?:just\s+|recently\s+)?(?:became|become|got\s+promoted\s+to|been\s+promoted\s+to)\s+"
        + _R
        + _F
        + "$",
        _role_and_firm,
    ),
    rule(rf"i\s+{ADV}work\s+(?:full[- ]time\s+|part[- ]time\s+)?in\s+(?P<what>.+)", _field),
    rule(
        rf"i\s+{ADV}(?P<verb>teach|run|own|manage|research|lead)\s+(?P<what>(?!out\b|into\b|away\b|late\b"
        r"|it\b|to\b|every\b|on\b|in\b|at\b|up\b|a\s+lot|\d|when|for|with|around|after|before|errands"
        r"|through|the\s+risk|marathons?|half|most|mornings?|daily|regularly|outside|twice|three|most|by\b"
        r"|along|several|many|few|a\s+few|my\s+own)[^,;:]+)",
        _does,
    ),
    rule(
        rf"(?:i\s+{ADV}study|i'm\s+{ADV}studying|i\s+am\s+studying|im\s+studying|i\s+major\s+in|i'm\s+"
        r"majoring\s+in)\s+(?P<what>(?!for\b|to\b|hard|a\s+lot|it|every|in\b|at\b|on\b|with\b|late)[^,;:]+)",
        _study,
    ),
    rule(
        r"\bmy\s+(?:desk|job|boss|manager|team|office|colleagues?|work|position)\s+(?:here\s+)?at\s+"
        r"(?P<firm>(?-i:[A-Z])[^,;:]+)",
        _works_there,
        anywhere=True,
    ),
)
