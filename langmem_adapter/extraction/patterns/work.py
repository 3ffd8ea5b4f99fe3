"""Employer and role: what the user does for a living. A title is a job, never a permission."""

import re
from collections.abc import Iterator

from langmem_adapter.extraction.clauses import Clause
from langmem_adapter.extraction.masking import MASK
from langmem_adapter.extraction.phrases import ADV, AM, fact, rule, tail_cut, thing
from langmem_adapter.records import Candidate

_FIRM_STOP = re.compile(
    r"\s+(?:as|in|on|since|for|because|and\s+(?:i|we|my|it)|where|which|who|now|but|so|these|at\s+"
    r"the\s+moment|until|with|when|while|from|"
    r"part[- ]time|full[- ]time|remotely|again|too|currently|doing|last|this|about|over|to|during"
    r"|every|most|or\s+so|by|near|down|up|if|"
    r"anymore|any\s*more|any\s+longer|and\s+[a-z]|i\b)(?=\s|$).*",
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
    if cut[0].islower() and not re.match(r"(?:an?|the|their)\s", cut):
        return cut.title() if len(cut.split()) <= 2 and cut.isascii() and cut.replace(" ", "").isalpha() else None
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
        yield fact(f"The user no longer works at {firm}.", "work/employer", value=_bare(firm), retract=True)


def _left_job(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    firm = _firm(match["firm"])
    if firm:
        verb = " ".join(match["verb"].casefold().split()).replace("was laid", "got laid")
        yield fact(f"The user {verb} their job at {firm}.", "work/employer", value=_bare(firm), retract=True)


def _role_and_firm(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    role = occupation(match["role"], trusted=match.groupdict().get("sure"))
    if not role:
        return
    article = (match.groupdict().get("article") or "").strip().casefold()
    shown = f"{article} {role}".strip() if article else role
    told = match.groupdict().get("sure")
    said = {None: "The user is", "": "The user's job is"}.get(told, "The user works as")
    yield fact(f"{said} {shown}.", "work/role", value=role)
    firm = _firm(match["firm"]) if match.groupdict().get("firm") else None
    if (
        firm
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
_ROLE = re.compile(rf"(?:[\w&/'+#.-]+\s+){{0,4}}?(?:{_HEADS})(?=$|\s|[,.])", re.IGNORECASE)
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
        if trusted and not match and not re.match(r"(?:an?\s+)?(?:team|group|one|usual|normal|charm)\b", cut)
        else None
    )


_R = r"(?P<article>an?\s+|the\s+)?(?P<role>.+?)"
_F = r"(?:\s+(?P<prep>at|for)\s+(?P<firm>[^,;:]+))?"
RULES = (
    rule(r"(?:i'm|im|i\s+am)\s+no\s+longer\s+(?:working\s+as\s+)?(?:an?|the)\s+(?P<role>.+)", _role_ended),
    rule(r"(?:i'm|im|i\s+am)\s+not\s+(?:an?|the)\s+(?P<role>.+?)\s+any\s*(?:more|longer)", _role_ended),
    rule(r"as\s+(?P<article>an?|the)\s+(?P<role>[^,;:]+?)(?:,\s*i\b|,?$|\s+i\b|\s+myself\b)", _as_a),
    rule(
        r"(?:i|we)\s+(?:no\s+longer\s+work|(?:don't|do\s+not|dont)\s+work)\s+(?:at|for)\s+"
        r"(?P<firm>.+?)(?:\s+any\s*(?:more|longer))?$",
        _left,
    ),
    rule(
        r"i(?:'ve|\s+have)?\s*(?:just\s+|recently\s+)?(?:stopped|quit|finished)\s+working\s+(?:at|for)\s+(?P<firm>.+)",
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
        r"majoring\s+in)\s+(?P<what>(?!for\b|hard|a\s+lot|it|every|in\b|at\b|on\b|with\b|late)[^,;:]+)",
        _study,
    ),
    rule(
        r"\bmy\s+(?:desk|job|boss|manager|team|office|colleagues?|work|position)\s+(?:here\s+)?at\s+"
        r"(?P<firm>(?-i:[A-Z])[^,;:]+)",
        _works_there,
        anywhere=True,
    ),
)
