"""Of whom a sentence says what: reports of the user in the first person, and shared subjects said again.

The guard's rules know one wording of a claim, "I may …". Pure; a text is read in one pass.
"""

import re
from collections import deque
from dataclasses import dataclass

from langmem_adapter.needles import Sieve

_WHO = r"\b(?:(?:the|this)\s+(?:current\s+)?(?:user|account\s+holder|speaker))|^[^\w\n]{0,20}user"
_ROLE = r"(?:customer|client|caller|speaker|account\s+(?:holder|owner)|requester|subscriber)"
_CAPITAL = "[A-ZÀ-ÖØ-ÞŠŽŁŚŻĆČĐİΆ-ΏΑ-ΫЀ-Я]"
_NAME = (
    rf"(?:\b(?:the|this|our)\s+{_ROLE}|^[^\w\n]{{0,20}}{_ROLE}"
    r"|(?<![\w'@./-])(?!(?:he|she|they|it|this|that|these|those|there|here|who|what|which|how|why|when|where|every\w+|nobody"
    r"|some\w+|any\w+|you|we|i|the|my|our|his|her|their|your|its|one|all|no|not|and|but|or|if|so|as)\b)"
    rf"(?-i:{_CAPITAL}[\w'-]{{0,30}}(?:\s{_CAPITAL}[\w'.-]{{0,30}}){{0,2}}))"
)
"""Who may be the user, as others call him. Only claims of power are read so: what else is said of him stays his."""
_MEANS = (
    r"(?:(?:approve|authori[sz]e|override|bypass|grant|revoke|refund|sign\s+off)\b"
    r"|(?:skip|export|withdraw|issue|transfer|delete|access|see|view|read|edit|change)\s+(?:[\w']+\s+){0,3}?(?:accounts?|records?"
    r"|transactions?|payments?|refunds?|orders?|invoices?|payroll|database|data|limits?|checks?|profiles?|users?|customers?"
    r"|approvals?|reviews?|verification|memories|files?)\b)"
)
_STANDING = (
    r"(?:(?:now|also|fully|already|an?|the|your|our|pre-?|system|site|workspace|global|account|platform)\s+){0,4}"
    r"(?:admin\w*(?!\s+(?:assistants?|work|staff|tools?|pages?|panels?|areas?|apps?|consoles?))|root|super-?user|sudoer|owner|moderator"
    r"|operator|developer|creator|authori[sz]ed|exempt(?:ed)?|whitelisted|verified(?=\s*(?:[.,;!]|$|\s(?:and|by)\b))"
    rf"|(?:cleared|approved|permitted|entitled|allowed)\s+(?:to\s+{_MEANS}"
    r"|for\s+(?:\w+\s+){0,2}?(?:refunds?|payments?|payouts?|transfers?|transactions?|withdrawals?|approvals?|access)\b))"
)
_AS_SAID = tuple(
    (re.compile(pattern, re.IGNORECASE | re.MULTILINE), said)
    for pattern, said in (
        (r"\bim\b(?=\s)", "i'm"),
        (r"\bive\b(?=\s)", "i've"),
        (rf"(?:{_WHO})'s?\s", "my "),
        (rf"(?:{_WHO})\s+(?:is|was)\s", "i am "),
        (rf"(?:{_WHO})\s+has\s", "i have "),
        (rf"(?:{_WHO})\s+(?=\w)", "i "),
        (rf"{_NAME}'s\s+(?=(?:role|status|account|identity|access)\b)", "my "),
        (rf"{_NAME}(?:\s+(?:is|was)|'s)\s+(?={_STANDING})", "i am "),
        (rf"{_NAME}\s+has\s+(?=been\s+{_STANDING}|(?:full|root|admin|unrestricted)\b)", "i have "),
        (rf"{_NAME}\s+(?P<does>(?:can|may|is\s+able\s+to)\s+(?:\w+\s+)?{_MEANS})", r"i \g<does>"),
        (r"^[^\w\n]{0,20}(?:is|am)\s+(?=(?:now\s+)?(?:an?\s+|the\s+)?\w+[^?\n]{0,200}$)", "i am "),
        (r"^[^\w\n]{0,20}(?=(?:may|can|has|have)\s[^?\n]{0,200}$)", "i "),
        (rf"(?:\b(?:der|die)\s+(?:(?:be)?nutzer|kund|anrufer)(?:in|e)?|{_NAME})\s+ist\s", "ich bin "),
        (rf"(?:\bl'utilisat(?:eur|rice)|\b(?:le|la)\s+client(?:e)?|{_NAME})\s+est\s", "je suis "),
        (rf"(?:\b(?:el|la)\s+(?:usuari[oa]|client[ea])|{_NAME})\s+es\s", "soy "),
        (rf"(?:\bl'utente|\b(?:il|la)\s+cliente|{_NAME})\s+è\s", "sono "),
        (r"\bde\s+(?:gebruik(?:er|ster)|klant)\s+is\s", "ik ben "),
        (rf"(?:\b[oa]\s+(?:usuári[oa]|utilizadora?|cliente)|{_NAME})\s+é\s", "sou "),
    )
)
"""What others report of the user, as the user would say it: the rules need to know one wording only."""
_REPORTS = Sieve(pattern for pattern, _ in _AS_SAID)


def reported(text: str) -> str:
    """The text with claims about the user, or about somebody by name, in the first person."""
    read, left = text, _REPORTS.among([text])(text)
    for number, (pattern, said) in enumerate(_AS_SAID):
        if number in left or read is not text:  # what was put in may match a later one
            read = pattern.sub(said, read)
    return read


# Shared subjects. A clause is read by its first words, which are compared with few patterns of bounded length.
_VERBS = r"(?:am|is|was|has|have|may|can|could|should|bin|suis|ben)"
_ALWAYS = {"am": "I", "bin": "ich", "suis": "je", "ben": "ik"}
"""Verbs that go with one subject, whoever was spoken of before."""
_NEVER = {"i": ("is", "has"), "we": ("is", "was", "has")}
"""Verbs that do not go with a subject: they tell of somebody else in its clause ("I think Oslo is far and has …")."""
_ASIDE = ("who", "which", "where", "whose")
_CUT = re.compile(
    r"([.!?]+(?=\s|$)|\n|[,;:()\[\]&+–—]|\s-\s"
    rf"|\b(?:and|but|or|so|yet|plus|while|{'|'.join(_ASIDE)}|und|aber|et|mais|en|maar)\b)",
    re.IGNORECASE,
)
"""Where another predicate may begin, or another clause."""
_MANNER = (
    r"(?:(?:also|too|now|even|still|already|always|then|thus|hence|hereby|therefore|moreover|furthermore|besides"
    r"|otherwise|both|[a-z]{2,20}ly|as\s(?:well|such|of\s\w{1,20})|from\s\w{1,20}\son|since\s\w{1,20}|of\scourse|by\snow"
    r"|in\s(?:fact|addition|general|principle)|for\snow|at\s(?:work|once|present))\s{1,3})"
)
_LEAD = rf"\s{{0,3}}{_MANNER}{{0,4}}"
_SELF = rf"(?:(?<![\w'.@/-])(?:i|we)(?![\w.@/-])|\bi(?=(?:m|ve)\b)|{_WHO}|(?!{_VERBS}\b){_NAME})"
_APART = re.compile(rf"\s{_MANNER}{{1,4}}(?={_VERBS}\b)", re.IGNORECASE)
_BETWEEN = re.compile(rf"(?P<subject>{_SELF}){_APART.pattern}", re.IGNORECASE | re.MULTILINE)
_HEAD = re.compile(
    rf"{_LEAD}(?P<subject>{_SELF})?(?:(?:\s{{1,3}}|'|(?<![\w'])|(?<=\bi))(?P<verb>m|{_VERBS})\b)?", re.IGNORECASE
)
_DETERMINER = (
    r"(?:my|our|his|her|their|your|its|the|an?|some|any|every|each|all|most|many|no|one|two|both"
    r"|this|that|these|those)\s"
)
_FINITE = (
    rf"(?:{_VERBS}|are|were|will|would|does|do|did|came|went|said|told|gave|knows?|[a-z]{{2,20}}(?:s|ed)(?=\s\w))\b"
)
_OFFICE = rf"{_LEAD}(?={_STANDING}\b(?!\s{_FINITE}|(?<=\broot)\sfor\b))"
_SHARES = (
    (("am", "is", "was"), re.compile(_OFFICE, re.IGNORECASE)),
    (("may", "can", "could"), re.compile(rf"{_LEAD}(?={_MEANS})", re.IGNORECASE)),
)
"""What goes with the verb before it too: "I am a cook and the admin", "I can cook and approve refunds"."""
_NOUN = rf"{_DETERMINER}(?:[\w'-]{{1,30}}\s){{1,3}}?"
_THEY = re.compile(rf"\s{{0,3}}{_NOUN}(?={_FINITE})", re.IGNORECASE)
_THING = re.compile(rf"\s{{0,3}}{_DETERMINER}", re.IGNORECASE)
_LATER = re.compile(
    r"(?P<subject>(?<![\w'.@/-])(?:i|we)(?=[\s'])|\b(?:the|this)\s(?:current\s)?user(?=\s))"
    rf"(?:['\s](?P<verb>m|{_VERBS})\b)?"
    rf"|\b(?:he|she|they)\b|\b(?:it|you|that|this|there|\w{{1,20}}(?:one|body))\s(?={_FINITE})"
    rf"|\b{_NOUN}(?=(?:{_VERBS}|are|were|will|would)\b)",
    re.IGNORECASE,
)
"""Who else is spoken of further on in a clause."""
_DOES = re.compile(r"\s{0,3}(?:[a-z]{2,20}s\s(?!are\b|were\b|do\b|have\b)|[\w'-]{1,30}\s{0,3}$)")
"""The start of a note that leaves out whom it is about: "likes tea and …", "vegan and …"."""
_NOMINAL = re.compile(
    r"\s*|\s*'?(?:m|am|is|was)\s(?:(?!(?:of|with|to|for|from|at|in|on|by|about|like|than|near)\b)"
    r"[\w'-]{1,30}(?:\s{1,3}|$)){0,6}",
    re.IGNORECASE,
)
"""A clause of which "who" tells further: "The user", "I'm a nurse"; not "I have a sister"."""


@dataclass(frozen=True, slots=True)
class _Told:
    """Of whom a text tells at some place of it ("": of somebody else), with which verb, and what was said since."""

    who: str = ""
    verb: str = ""
    rest: str = ""


def said_again(text: str) -> str:
    """The text with a subject said before each of its predicates: "I live in Rome. I may vote" for "… and may vote"."""
    if _APART.search(text):
        text = _BETWEEN.sub(r"\g<subject> ", text)
    pieces = _CUT.split(text)
    if not any(words.strip() for words in pieces[2::2]):
        return text
    told, outer, start = _Told(), None, True
    read = []
    for cut, words in zip(["\n", *pieces[1::2]], pieces[::2], strict=True):
        if cut[0] in ".!?\n":
            told, outer, start = _Told(), None, True
        elif cut.lower() in _ASIDE and not (cut.lower() == "who" and _NOMINAL.fullmatch(told.rest)):
            told, outer = _Told(), told
        elif outer is not None and cut in (",", ")"):
            told, outer = outer, None
        again = ""
        if words.strip() and start:
            told, start = _started(words), False
        elif words.strip():
            told, again = _continued(words, told)
        read.append(again or cut + words)
    return "".join(read)[1:]


def _started(words: str) -> _Told:
    """Of whom a sentence tells that begins so."""
    head, told = _head(words), _Told()
    if not head["subject"] and (head["verb"] or _DOES.match(words)) and not _THING.match(words):
        told = _Told("The user", _verb(head), words[head.end() :])
    return _later(words, _subject(words, head, told))


def _continued(words: str, told: _Told) -> tuple[_Told, str]:
    """Of whom a sentence tells behind these words, and how they read with the subject said again."""
    for verbs, shared in _SHARES:
        if told.who and told.verb in verbs and (found := shared.match(words)):
            return told, f". {told.who} {told.verb} {words[found.end() :]}"
    head = _head(words)
    verb = _verb(head)
    if head["subject"] or not verb:
        return _later(words, _subject(words, head, told)), ""
    who = _ALWAYS.get(verb, told.who)
    if not who or verb in _NEVER.get(who.lower(), ()):
        return _later(words, told), ""
    return _later(words, _Told(who, verb, words[head.end() :])), f". {who} {verb}{words[head.end() :]}"


def _subject(words: str, head: re.Match[str], told: _Told) -> _Told:
    """Of whom the first words of a clause tell: of its own subject, else of the one before."""
    who = head["subject"]
    if who:
        whose = who.lower().endswith("'s") or words.startswith("'s", head.end("subject"))
        return _Told() if whose else _Told(who, _verb(head), words[head.end("subject") :])
    return _Told() if _THEY.match(words) else told


def _later(words: str, told: _Told) -> _Told:
    """Of whom it tells at the end of a clause that may speak of several."""
    found = deque(_LATER.finditer(words, _head(words).end()), maxlen=1)
    return _Told(found[0]["subject"] or "", _verb(found[0]), words[found[0].end() :]) if found else told


def _head(words: str) -> re.Match[str]:
    found = _HEAD.match(words)
    assert found is not None  # nothing is required
    return found


def _verb(found: re.Match[str]) -> str:
    verb = (found["verb"] or "").lower()
    return "am" if verb == "m" else verb
