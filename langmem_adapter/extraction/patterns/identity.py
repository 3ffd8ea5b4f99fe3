"""Name, language, age, origin, home."""

import re
from collections.abc import Iterator

from langmem_adapter.extraction import flags
from langmem_adapter.extraction.clauses import Clause
from langmem_adapter.extraction.masking import MASK
from langmem_adapter.extraction.phrases import ADV, AM, fact, name, place, rule, tail_cut, thing, things
from langmem_adapter.extraction.vocabulary import DWELLING, FIRST_NAMES, PLACES
from langmem_adapter.records import Candidate
from langmem_adapter.text import negated

LANGUAGES = (
    r"(?:(?:british|american|australian|canadian|us|uk|plain|simple|brazilian|european|latin\s+"
    r"american|swiss|mexican)\s+)?"
    r"(?:english|french|german|spanish|portuguese|italian|dutch|flemish|polish|czech|slovak|russian"
    r"|ukrainian|swedish|norwegian|danish|finnish|"
    r"icelandic|greek|turkish|arabic|hebrew|persian|farsi|hindi|urdu|bengali|tamil|telugu|punjabi"
    r"|mandarin|cantonese|chinese|japanese|korean|"
    r"vietnamese|thai|indonesian|malay|swahili|romanian|hungarian|bulgarian|serbian|croatian|catalan"
    r"|basque|galician|welsh|irish|gaelic|latvian|"
    r"lithuanian|estonian|albanian|georgian|armenian|afrikaans|zulu|esperanto|latin|tagalog|filipino)"
)
SOFTWARE = frozenset(
    (
        "notion obsidian evernote onenote slack zulip discord teams signal whatsapp telegram vim neovim emacs "
        "helix vscode pycharm intellij sublime zed cursor linux ubuntu debian fedora arch nixos macos windows "
        "android ios chrome firefox safari edge brave vivaldi gmail outlook thunderbird protonmail postgres "
        "mysql sqlite mongodb redis python rust go java kotlin typescript javascript ruby php swift react vue "
        "angular svelte django flask fastapi rails kubernetes docker terraform ansible jenkins github gitlab "
        "bitbucket jira linear trello asana todoist spotify tidal netflix zoom excel word docs sheets figma "
        "sketch photoshop aws azure gcp heroku vercel netlify bash zsh fish tmux iterm kitty alacritty git "
        "svn mercurial npm yarn pnpm poetry uv conda "
    ).split()
)
"""Names of tools, so that "I moved to Linux" is no change of address."""

_MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december|jan|feb"
    r"|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
)


def language_name(words: str) -> str:
    """A language as English writes it: "British English"."""
    kept = {"us": "US", "uk": "UK", "plain": "plain", "simple": "simple"}
    return " ".join(kept.get(w, w.capitalize()) for w in words.casefold().split())


_NOT_CALLED = frozenset(
    (
        "train car bike bus plane boat foot ferry tram taxi cab metro tube subway air sea rail road bicycle "
        "motorbike scooter coach feel gut instinct intuition ear memory experience weight taste smell sight "
        "numbers reviews ratings price appearance looks vibes rules book bye so too unnoticed quickly fast many "
        "different several various both either any weird things stuff honey babe darling boss chief cheap lazy "
        "idiot stupid liar"
    ).split()
)
"""What one goes by without being called so: "I go by train"."""


def _goes_by(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    called = name(match["name"])
    if called and flags.SOMETIMES not in clause.flags and called.split()[0].casefold() not in _NOT_CALLED:
        yield fact(f"The user goes by {called}.", "identity/name", value=called)


def _typed_name(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    """As `_goes_by`, where an ordinary word might stand: in lower case only if all is."""
    if match["name"][0].isupper() or clause.sentence.islower():
        yield from _goes_by(match, clause)


_BUT_NOT = re.compile(
    r"[\s,(–-]*(?:and|but|which|though|although)?\s*(?:(?:i|nobody|no\s+one)\s+(?:\w+\s+)?(?:hate|can't|don't"
    r"|dislike|detest|loathe|prefer|wish|else)|please\s+don't"
    r"|that's\s+not|it's\s+not|don't\b|never\b|wrongly|by\s+mistake)",
    re.IGNORECASE,
)


def _called_by_others(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    if flags.DISOWNED not in clause.flags and not _BUT_NOT.match(clause.after):
        yield from _typed_name(match, clause)


def _would_rather_be(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    if re.search(r"\bcalls?\s+me\b|\bmy\s+name\b|\bknown\s+as\b", clause.before, re.IGNORECASE):
        yield from _goes_by(match, clause)


_TITLES = re.compile(r"(?:dr|mr|mrs|ms|miss|prof|professor|sir|lady|lord|rev|captain)\b", re.IGNORECASE)


def _full_name(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    """What to call the user, and the full name beside it, so that "call me Ada" contradicts neither."""
    for said in _goes_by(match, clause):
        called = said.value
        if " " in called and not _TITLES.match(called) and not called.casefold().endswith(" doe"):
            first = called.split()[0]
            yield said.change(content=f"The user goes by {first}.", value=first)
            yield fact(f"The user's full name is {called}.", "general", "full name", called)
        else:
            yield said


def _no_longer_goes_by(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    called = name(match["name"])
    if not called or flags.SOMETIMES in clause.flags:
        return
    if re.match(r"(?:please\s+)?(?:stop|quit)\b", match[0], re.IGNORECASE):
        content = f"The user asked to have {called} as a name dropped."
        if negated(match[0]):
            content = f"The user no longer goes by {called}."
        yield fact(content, "identity/name", value=called, retract=True)
    else:
        yield fact(f"The user no longer goes by {called}.", "identity/name", value=called, retract=True)


def _not_named(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    called = name(match["name"])
    if called and match["name"][0].isupper() and not re.match(_NATION, called, re.IGNORECASE):
        yield fact(f"The user is not called {called}.", "identity/name", value=called, retract=True)


def _introduces(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    called = name(match["name"])
    if called and match["name"][0].isupper():
        yield fact(f"The user goes by {called}.", "identity/name", value=called)


def _part_of_name(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    called = name(match["name"])
    if called:
        part = " ".join(match["part"].casefold().split())
        yield fact(f"The user's {part} is {called}.", "general", part, called)


def _speaks(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    for item in things(match["what"], 3):
        if re.fullmatch(LANGUAGES, item, re.IGNORECASE):
            language = language_name(item)
            yield fact(f"The user speaks {language}.", "general", f"speaks {language}", language)


def _native(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    language = language_name(match["what"])
    kind = " ".join(match["kind"].casefold().split())
    if kind in ("preferred language", "language"):
        yield fact(f"The user's preferred language is {language}.", "identity/language", value=language)
    else:
        yield fact(f"The user's {kind} is {language}.", "general", kind, language)


def _age(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    if 3 <= int(match["age"]) <= 120:
        yield fact(f"The user is {match['age']} years old.", "general", "age", match["age"])


def _birthday(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    day = tail_cut(match["day"])
    yield fact(f"The user's birthday is {day}.", "general", "birthday", day)


def _born_in(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    where = place(match["where"])
    if where:
        yield fact(f"The user was born in {where}.", "general", "birthplace", where)


def _from(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    where = place(match["where"])
    if where and not re.match(rf"{_MONTH}\b|\d", where, re.IGNORECASE):
        yield fact(f"The user is from {where}.", "general", "origin", where)


def _lives(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    where = place(match["where"])
    if where and (where.casefold() in SOFTWARE or not _stays(where, match)):
        return
    if where:
        preposition = (match.groupdict().get("prep") or "in").casefold()
        preposition = preposition if preposition in ("in", "at", "on", "near", "outside") else "in"
        replaces = place(match.groupdict().get("old") or "")
        yield fact(f"The user lives {preposition} {where}.", "home/location", value=where, replaces=replaces)
        if household := _HOUSEHOLD.search(match["where"]):
            who = thing(household["who"], 6)
            if who:
                yield fact(f"The user lives with {who}.", "general", "household", who)


_HOUSEHOLD = re.compile(r"\bwith\s+(?P<who>(?:my|our)\s+[^,;:]+)$", re.IGNORECASE)
_ROAD = re.compile(
    r"\b(?:street|st|road|rd|avenue|ave|lane|drive|way|hill|island|islands|isle|coast|square|row|boulevard"
    r"|close|terrace|crescent|court"
    r"|parade|quay|place|side|river|lake|peninsula|farm|strasse|straße|rue|via)\b|\d",
    re.IGNORECASE,
)


def _stays(where: str, match: re.Match[str]) -> bool:
    """Whether one can live "on" it: a street or an island, not Red Bull."""
    on = (match.groupdict().get("prep") or "").casefold() == "on"
    return not on or bool(_ROAD.search(where)) or where.casefold() in PLACES


def _address(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    where = match["where"].strip()
    if len(where) <= 80:
        yield fact(f"The user lives at {where}.", "home/location", value=where)


def _left_home(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    where = place(match["where"])
    if where and match.groupdict().get("out"):
        yield fact(f"The user moved {match['out'].casefold()} {where}.", "home/location", value=where, retract=True)
    elif where:
        over = re.search(r"no\s+longer|any\s*(?:more|longer)", match[0], re.IGNORECASE)
        said = "no longer lives" if over else "does not live"
        yield fact(f"The user {said} in {where}.", "home/location", value=where, retract=True)


def _attribute(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what, value = " ".join(match["what"].casefold().split()), tail_cut(match["is"])
    if value and MASK not in value and not re.match(r"(?:not|too|very|so|a|the|really)\b", value, re.IGNORECASE):
        yield fact(f"The user's {what} is {value}.", "general", what, value)


def _dwelling(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = thing(match["what"], 8)
    if what and (DWELLING.search(what) or match["prep"].casefold() == "near"):
        yield fact(f"The user lives {match['prep'].casefold()} {what}.", "general", "dwelling", what)


def _state(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    value = " ".join(match["what"].casefold().split())
    kind = next((k for k, found in match.groupdict().items() if found and k != "what"), "state")
    yield fact(f"The user is {value}.", "general", kind.replace("_", " "), value)


_NATION = (
    r"(?:american|british|english|scottish|welsh|irish|french|german|spanish|portuguese|italian|dutch"
    r"|belgian|swiss|austrian|polish|czech|"
    r"slovak|hungarian|romanian|bulgarian|greek|turkish|russian|ukrainian|swedish|norwegian|danish"
    r"|finnish|icelandic|canadian|mexican|"
    r"brazilian|argentinian|chilean|colombian|peruvian|cuban|indian|pakistani|bangladeshi|nepali"
    r"|chinese|japanese|korean|vietnamese|thai|"
    r"filipino|indonesian|malaysian|australian|kiwi|egyptian|moroccan|nigerian|kenyan|ghanaian"
    r"|ethiopian|south\s+african|israeli|"
    r"lebanese|iranian|iraqi|syrian|saudi|latvian|lithuanian|estonian|croatian|serbian|slovenian"
    r"|albanian|georgian|armenian)"
)


def _nationality(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    value = " ".join(w.capitalize() for w in match["what"].split())
    yield fact(f"The user is {value}.", "general", "nationality", value)


_NM = r"(?P<name>[^,;:!?]{1,60})"
_NEXT = r"(?=$|[,.!]|\s+(?:and|now|too|btw|but|by\s+the\s+way|with|of|so|from|living|at|in)\b)"
RULES = (
    rule(
        r"(?:(?:please\s+)?(?:address|refer\s+to)\s+me\s+as|(?:people|everyone|friends|they|most\s+"
        r"people)(?:\s+\w+\s+\w+)?\s+knows?\s+me\s+as"
        rf"|i(?:'d|\s+would)\s+(?:like|love)\s+to\s+be\s+called|my\s+names)\s+{_NM}",
        _goes_by,
        tolerates=("modal", "third_party"),
    ),
    rule(
        r"(?:i|we)(?:'ve|\s+have)\s+(?:always\s+)?lived\s+in\s+(?P<where>(?-i:[A-Z])[\w' -]{1,30}?)\s+"
        r"(?:since|for|all\s+my\s+life|my\s+whole\s+life)\b",
        _lives,
    ),
    rule(r"my\s+(?:home\s+|new\s+|current\s+)?address\s+is\s+(?:now\s+)?(?P<where>\d.+)", _address),
    rule(
        r"i(?:\s+am)?\s+(?:no\s+longer\s+(?:live|living)|(?:don't|do\s+not|dont)\s+live)\s+in\s+"
        r"(?P<where>.+?)(?:\s+any\s*(?:more|longer))?$",
        _left_home,
    ),
    rule(
        r"(?:i|we)(?:'ve|\s+have)?\s+(?:just\s+|recently\s+)?moved\s+(?P<out>out\s+of|away\s+from)\s+"
        r"(?P<where>.+)",
        _left_home,
    ),
    rule(
        r"my\s+(?P<what>shoe\s+size|clothes\s+size|shirt\s+size|dress\s+size|ring\s+size|blood\s+type"
        r"|height|star\s+sign|zodiac\s+sign|time\s*zone|"
        r"postcode|zip\s+code|religion|faith|nationality|alma\s+mater|home\s*town|email(?:\s+address)?|(?:phone"
        r"|mobile|cell)\s+number|phone"
        r"|website|star\s+sign|home\s+airport|bank)\s+is\s+"
        r"(?P<is>[^\s].{0,60})",
        _attribute,
    ),
    rule(
        r"(?:please\s+)?(?:(?:don't|do\s+not|dont|never)\s+call|(?:stop"
        r"|quit)\s+calling)\s+me\s+(?P<name>[A-Z][\w'-]{0,30})"
        r"(?:\s+any\s*(?:more|longer)|\s+again)?$",
        _no_longer_goes_by,
    ),
    rule(
        r"(?:(?:please|just|pls|simply|and|you\s+can|you\s+may|feel\s+free\s+to|do)\s+)*(?:always\s+"
        rf")?call\s+me\s+{_NM}",
        _goes_by,
        tolerates=("question",),
    ),
    rule(
        rf"i\s+(?:just\s+|also\s+|usually\s+|mostly\s+|now\s+)*go\s+by\s+(?:the\s+name\s+(?:of\s+)?)?{_NM}",
        _typed_name,
    ),
    rule(r"i\s+(?:much\s+|strongly\s+)?prefer\s+(?P<name>(?-i:[A-Z])[\w']+)(?:\s+though)?$", _would_rather_be),
    rule(
        r"(?:my\s+name\s+(?:isn't|is\s+not|ain't)|(?:i'm|i\s+am)\s+not\s+(?:called\s+"
        r"|named\s+)?(?=(?-i:[A-Z])))\s*(?P<name>(?-i:[A-Z])[\w'-]+)(?:\s+any\s*(?:more|longer))?$",
        _not_named,
    ),
    rule(
        r"(?:i'm\s+called|i\s+am\s+called|im\s+called|i'm\s+known\s+as|i\s+prefer\s+to\s+be\s+"
        r"called|i(?:'d|\s+would)\s+(?:prefer|rather)\s+(?:to\s+)?be\s+called|i\s+like\s+to\s+be\s+"
        rf"called)\s+(?:the\s+name\s+)?{_NM}",
        _goes_by,
        tolerates=("modal",),
    ),
    rule(
        r"(?:(?:everyone|everybody|people|friends|my\s+friends|most\s+people|my\s+family|my\s+colleagues"
        rf"|they|all\s+my\s+friends|folks)\s+)(?:just\s+|all\s+|usually\s+|always\s+)?calls?\s+me\s+{_NM}",
        _called_by_others,
        tolerates=("third_party",),
    ),
    rule(
        r"(?:my\s+(?:first\s+|full\s+|given\s+|preferred\s+|real\s+)?name\s+is|my\s+(?:first\s+|full\s+"
        rf")?name's|(?:the\s+)?name's|my\s+nickname\s+is)\s+{_NM}",
        _full_name,
    ),
    rule(
        rf"my\s+(?P<part>surname|last\s+name|family\s+name|middle\s+name|maiden\s+name|pronouns)\s+(?:is"
        rf"|are)\s+{_NM}",
        _part_of_name,
    ),
    rule(r"(?P<hi>(?:this\s+is)\s+)(?P<name>(?-i:[A-Z])\w+)\s+(?:here|speaking)$", _introduces),
    rule(
        rf"(?:i|we)\s+(?:can\s+)?{ADV}(?:speak|am\s+fluent\s+in)\s+(?:fluent\s+|some\s+|a\s+little\s+|a\s+"
        r"bit\s+of\s+|both\s+)?(?P<what>.+)",
        _speaks,
    ),
    rule(r"i'm\s+(?:also\s+)?fluent\s+in\s+(?P<what>.+)", _speaks),
    rule(
        r"my\s+(?P<kind>native\s+language|mother\s+tongue|first\s+language|second\s+language|preferred\s+"
        rf"language|language)\s+is\s+(?P<what>{LANGUAGES})\b",
        _native,
    ),
    rule(
        r"(?:i'm|im|i\s+am|i\s+(?:(?:just|recently)\s+)?turned)\s+(?:now\s+|only\s+|already\s+"
        r")?(?P<age>\d{1,3})(?:\s*(?:years?\s+old|yrs?\s+old|yo|y\.?o\.?)|$|\s+(?:last|this|on|yesterday|today"
        r"|in)\b)",
        _age,
    ),
    rule(
        rf"my\s+birthday(?:'s|\s+is)\s+(?:on\s+)?(?P<day>(?:the\s+)?\d{{1,2}}(?:st|nd|rd|th)?(?:\s+of)?\s+"
        rf"{_MONTH}\b.{{0,8}}|{_MONTH}\s+(?:the\s+)?\d{{1,2}}(?:st|nd|rd|th)?.{{0,8}})",
        _birthday,
    ),
    rule(
        rf"(?:my|our)\s+(?P<what>(?:wedding\s+)?anniversary|name\s+day)\s+is\s+(?:on\s+)?(?P<is>(?:the\s+)?\d{{1,2}}"
        rf"(?:st|nd|rd|th)?(?:\s+of)?\s+{_MONTH}|{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?)",
        _attribute,
    ),
    rule(
        rf"i\s+was\s+born\s+on\s+(?P<day>(?:the\s+)?\d{{1,2}}(?:st|nd|rd|th)?(?:\s+of)?\s+"
        rf"{_MONTH}\b.{{0,8}}|{_MONTH}\s+(?:the\s+)?\d{{1,2}}(?:st|nd|rd|th)?.{{0,8}})",
        _birthday,
    ),
    rule(
        rf"i\s+was\s+born\s+in\s+(?P<year>(?:{_MONTH}\s+(?:of\s+)?)?(?:19|20)\d\d)(?=$|[,.!]|\s+(?:in|and)\b)",
        lambda m, c: iter([fact(f"The user was born in {m['year']}.", "general", "born in", m["year"])]),
    ),
    rule(r"i\s+was\s+born\s+(?:and\s+raised\s+)?in\s+(?P<where>.+)", _born_in),
    rule(
        r"(?:my|our)\s+(?P<what>(?:(?:total|travel|monthly|weekly|food|rent|max(?:imum)?"
        r"|overall)\s+)?budget(?:\s+for\s+[^,;:]{2,40}?)?)"
        r"\s+is\s+(?:about\s+|around\s+|roughly\s+|up\s+to\s+)?(?P<is>\D{0,5}\d[\w.,]*(?:\s+[\w%€$£/]+){0,4})$",
        _attribute,
    ),
    rule(rf"{AM}\s+{ADV}(?:originally\s+)?from\s+(?P<where>.+)", _from),
    rule(r"i\s+(?:originally\s+)?come\s+from\s+(?P<where>.+)", _from),
    rule(
        rf"(?:i|we)\s+{ADV}(?:live\s+and\s+work|live|reside)\s+(?P<prep>in|at|on|near"
        rf"|outside)\s+(?P<where>.+)",
        _lives,
    ),
    rule(
        rf"(?:{AM}|we're|we\s+are)\s+{ADV}(?:living|based|located|settled)\s+(?P<prep>in|at|near|outside"
        r"|out\s+of)\s+(?P<where>.+)",
        _lives,
    ),
    rule(
        r"(?:i|we)(?:'ve|\s+have)?\s+(?:just\s+|recently\s+|finally\s+|now\s+)*(?:moved|relocated)\s+"
        r"(?:house\s+|back\s+|over\s+|down\s+|up\s+|out\s+)?from\s+(?P<old>.+?)\s+to\s+(?P<where>.+)",
        _lives,
    ),
    rule(
        r"(?:i|we)(?:'ve|\s+have)?\s+(?:just\s+|recently\s+|finally\s+|now\s+)*(?:moved|relocated"
        r"|emigrated)\s+(?:house\s+|back\s+|over\s+|down\s+|up\s+|out\s+|here\s+)?to\s+(?P<where>.+)",
        _lives,
    ),
    rule(
        r"(?:my\s+home\s+is|my\s+home's|home\s+is|my\s+home\s+town\s+is\s+now|my\s+city\s+is)\s+(?:in\s+"
        r"|now\s+)*(?P<where>.+)",
        _lives,
    ),
    rule(r"i\s+call\s+(?P<where>.+?)\s+(?:my\s+)?home\b", _lives),
    rule(
        rf"(?:i|we)\s+{ADV}live\s+(?P<prep>in|on|at|near|with)\s+(?P<what>(?:an?|the|my|two|three|four)\s+.+)",
        _dwelling,
    ),
    rule(
        r"i\s+live\s+(?P<what>alone|by\s+myself|on\s+my\s+own)\b",
        lambda m, c: iter([fact("The user lives alone.", "general", "household", "alone")]),
    ),
    rule(
        rf"(?:i'm|im|i\s+am)\s+{ADV}(?P<what>(?P<marital_status>married|single|divorced|engaged|widowed"
        r"|separated))(?=$|[,.!]|\s+(?:now|and|with)\b)",
        _state,
    ),
    rule(
        rf"(?:i'm|im|i\s+am)\s+{ADV}(?P<what>(?P<handedness>left-handed|right-handed|left\s+handed|right\s+"
        r"handed|ambidextrous)|(?P<sight>colou?r-?\s?blind|short-sighted|near-sighted)|(?P<hearing>deaf"
        r"|hard\s+of\s+hearing)|(?P<habit>teetotal|a\s+non-?smoker|a\s+smoker|a\s+morning\s+person|a\s+"
        r"night\s+owl|an\s+early\s+bird|an\s+introvert|an\s+extrovert)|(?P<pregnancy>pregnant)"
        rf"|(?P<condition>diabetic|asthmatic|epileptic|dyslexic|autistic|anaemic|anemic)){_NEXT}",
        _state,
    ),
    rule(rf"(?:i'm|im|i\s+am)\s+{ADV}(?P<what>{_NATION}){_NEXT}", _nationality),
    rule(r"(?:i'm|i\s+am|im|it's|this\s+is)\s+(?P<name>[^\s,]+(?:\s+[^\s,]+)?)(?:,.*)?$", lambda m, c: _greeted(m, c)),
)


_PREFIX = re.compile(r"\b[A-Z]'(?=[A-Z])")
_GREETING = re.compile(
    r"\W*(?:hi|hey|hello|hiya|howdy|good\s+(?:morning|evening|afternoon)|greetings|nice\s+to\s+meet\s+you)\b",
    re.IGNORECASE,
)


def _greeted(match: re.Match[str], clause: Clause) -> Iterator[Candidate]:
    """ "Hi, I'm Ada": a name behind a greeting, or if it is a known first name, since "I'm German" looks the same."""
    words = match["name"].split()
    known = words[0].casefold() in FIRST_NAMES and re.match(r"i", match[0], re.IGNORECASE) and len(words) <= 2
    if (_GREETING.match(clause.sentence) or known) and all(
        w[0].isupper() and w[1:].islower() for w in _PREFIX.sub("", match["name"]).split()
    ):
        yield from _full_name(match, clause)
