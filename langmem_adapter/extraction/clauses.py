"""A message cut into clauses, each with the reasons, if any, why its words are not a statement of fact.

Splitting is linear in the text and clauses are short, so patterns that run on one clause stay cheap.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from langmem_adapter.extraction import flags
from langmem_adapter.extraction.masking import FAKE_ROLE, mask, open_fence
from langmem_adapter.extraction.times import WHEN, is_ahead
from langmem_adapter.text import one_line

WINDOW = 32 * 1024
"""Most characters looked at in one piece; longer messages are cut at a line or sentence end."""

MAX_CLAUSE = 400
"""Longer runs without any boundary are not read: no atomic fact needs them."""

MAX_SENTENCE = 2_000
"""Text without a full stop is cut here, so that no pattern sees more."""


@dataclass(frozen=True)
class Clause:
    """One statement, and where it stands in the message."""

    said: str
    """What patterns match: plain quotes, lead-in words removed, the elided subject put back."""
    start: int
    end: int
    flags: frozenset[str]
    """Why it is no statement of fact (`question`, `hypothetical` …), as far as `flags.of_sentence` does not say it."""
    sentence: str
    """The sentence it stands in, masked."""
    before: str = ""
    """The clause before it in the same sentence."""
    after: str = ""
    """What stands behind it in the sentence, with the mark that ends it (": hello")."""
    asked: bool = False
    """Whether the speaker asked for it to be remembered."""
    when: str = ""
    """The words before it that tell its time ("Last Friday, I …"); `said` is without them."""


_ABBREVIATION = re.compile(
    r"(?:\b(?:dr|mr|mrs|ms|prof|st|mt|jr|sr|vs|etc|e\.g|i\.e|no|approx|dept|inc|ltd|co)|\b[A-Z])$", re.I
)
_END = re.compile(r"(?<=[a-z]{2})[.!?](?=[A-Z])|[.!?…]+[\"')\]]*(?=\s|\x00|$)|\n[ ]*", re.MULTILINE)

_SUBJECT = (
    r"i\b|i'm\b|im\b|i've\b|ive\b|i'd\b|we\b|we're\b|we've\b|he\b|she\b|they\b|you\b|it\b|it's\b"
    r"|that's\b|there\b|there's\b|"
    r"my\s+\w+|our\s+\w+|please\b|don't\b|these\s+days\b|nowadays\b"
)
_QUESTION = (
    r"what\b|who\b|whose\b|how\b|where\b|when\b|why\b|which\b|is\b|are\b|do\b|does\b|did\b|can\b"
    r"|could\b|would\b|should\b|any\b|right\b"
)
_VERB = (
    r"love|like|hate|enjoy|prefer|dislike|live|work|use|can't\s+stand|don't|never|always|am|speak"
    r"|drive|play|study|have|drink|eat"
)
# Every alternative begins with a mark or a word, never with a run of spaces: that would be quadratic.
_BOUNDARY = re.compile(
    r"[;()]|--|—|(?<=\s)[-–](?=\s)|:\s"
    r"|(?<=\s)(?<!\beverything\s)(?<!\banything\s)(?<!\bfoods\s)(?:but|yet|because|although|though|whereas|however|while|except\s+that)\b,?\s"
    rf"|(?<=\s)(?:so|since|as|given\s+that|given|seeing\s+as)\s+(?=(?:{_SUBJECT}|call\s+me|what|can|do"
    r"|is|let|\w+\s+is\s+right)\b)"
    rf"|(?<=\s)(?:and|then|or|plus)\s+(?=(?:also\s+|now\s+|then\s+)?(?:{_SUBJECT}|call\s+me\b|keep\b|answer\b"
    rf"|reply\b))"
    rf"|(?<=\s)(?<!\blive\s)and\s+(?=(?:{_VERB})\s)"
    rf"|,\s+(?=(?:{_SUBJECT}|{_QUESTION}|now\b|not\b|no\b|never\b|if\b|unless\b|says?\b|said\b"
    r"|thanks?\b|especially\b|including\b|(?:just\s+)?call\s+me\b))"
    r"|,\s+(?:then|and|so|or)\s+(?=(?:then|obey|ignore|forward|send|delete|call|run|always|never)\b)",
    re.IGNORECASE,
)

# "Coca-Cola - Bottlers": a dash inside a name.
_NAME_BEFORE = re.compile(r"[\w.]\s+[A-Z][\w&.']*\s+$")
_DOUBLE_NAME = re.compile(
    r"\s+(?!(?:I|I'm|I've|My|We|Our|The|It|It's|So|But|And|Please|Call|That's|This|You|He|She|They|No|Yes|Not"
    r"|Just|Thanks)\b)"
    r"[A-Z][\w&.']*(?:\s+[A-Z&][\w&.']*){0,3}\s*(?:$|[,.;!?()])"
)
_BULLET = re.compile(r"\s*(?:[-–—*•·▪◦‣+]|\d{1,2}[.)]|\[[ xX]?\])\s+(?=\S)")
# A picture or smiley behind the words; "I love 🍕" keeps what it is about.
_PICTURE = re.compile(
    r"(?<!\blove)(?<!\blike)(?<!\bhate)(?<!\benjoy)(?<!\bsupport)(?<!\ba)(?<!\bthe)(?<!\bmy)(?<!\bof)(?<!\bto)"
    r"\s+(?:[^\w\s\x00-\x7f]+\s*|:-?[)DP]|;-?\)|<3|:)+$"
)
_EDGES = " .!?…,:;~*"

_LEAD = re.compile(
    r"(?:(?:hi|hey|hello|howdy|hiya|good\s+(?:morning|evening|afternoon))(?:\s+(?:there|all|again"
    r"|everyone)|\s+(?-i:[A-Z][a-z]+)(?=[,!]))?[,!.]?\s+"
    r"|(?:and|but|so|also|well|ok|okay|yes|yeah|yep|yup|oh|ah|um|uh|hmm|anyway|anyways|sorry|plus|then|"
    r"because|since|as(?=\s+(?:i|i'm|my|we)\b)|given\s+that|actually|honestly|personally|frankly"
    r"|basically|btw|fyi|tbh|ps"
    r"|p\.s\.|thanks|thank\s+you|"
    r"nope|indeed|luckily|fortunately|unfortunately|sadly|now|currently|nowadays|these\s+days|at\s+the\s+moment|"
    r"recently|lately|incidentally|finally|please|scratch\s+that|correction|update|wait|haha|lol)[,:]?\s+"
    r"|(?:no|right|sure|look|listen|true|today)[,:]\s+"
    r"|by\s+the\s+way,?\s+|just\s+so\s+you\s+know,?\s+|just\s+to\s+let\s+you\s+know,?\s+|for\s+(?:the"
    r"|your)\s+(?:record|notes?|information|reference)[,:]?\s+"
    r"|as\s+i\s+(?:said|mentioned|told\s+you|say)(?:\s+(?:before|earlier|already|last\s+time))?,?\s+"
    r"|like\s+i\s+said,?\s+"
    r"|to\s+be\s+(?:honest|clear|fair|precise|exact),?\s+|in\s+fact,?\s+|of\s+course,?\s+|one\s+more\s+thing[,:]?\s+"
    r"|(?:quick|small|another)?\s*(?:heads\s*up|fun\s+fact|reminder|side\s+note)\s*[:,-]\s*"
    r"|i\s+(?:just\s+)?(?:should|must|want\s+to|wanted\s+to|have\s+to|can)\s+(?:also\s+)?(?:mention"
    r"|add|say|tell\s+you|note)\s+(?:that\s+)?"
    r"|i\s+(?:already\s+)?(?:told|said\s+to)\s+you\s+(?:that\s+)?|i\s+mentioned\s+(?:that\s+)?"
    r"|i\s+said\s+(?:that\s+)?"
    r"|you\s+(?:should|must|might\s+want\s+to|may\s+want\s+to)\s+know\s+(?:that\s+)?|(?:did\s+i\s+mention\s+that)\s+"
    r"|for\s+every(?:one|body)\s+(?:at|in)\s+(?:my\s+|our\s+|the\s+)?\w+,?\s+|the\s+thing\s+is,?\s+"
    r"|(?:as\s+)?(?:it\s+)?turns\s+out,?\s+(?:that\s+)?|it\s+turned\s+out\s+(?:that\s+)?"
    r"|after\s+all,?\s+|good\s+news[,:!]?\s+|no\s+wait,?\s+)",
    re.IGNORECASE,
)
_OPENS_WHEN = re.compile(rf"({WHEN})(?:,\s*|\s+)(?=(?:i|i'm|im|i've|we|we're|we've|my|our)\b)", re.IGNORECASE)
_ALL_WHEN = re.compile(WHEN, re.IGNORECASE)
_ASKED = re.compile(
    r"(?:please\s+|can\s+you\s+|could\s+you\s+|just\s+|also\s+)*"
    r"(?:(?:remember|note(?:\s+down)?|don't\s+forget|do\s+not\s+forget|dont\s+forget|keep\s+in\s+mind"
    r"|bear\s+in\s+mind|make\s+a\s+note|"
    r"take\s+note|save|store|be\s+aware|for\s+future\s+reference|for\s+next\s+time|for\s+later|memorise|memorize)"
    r"(?:\s+for\s+(?:me|later|next\s+time|the\s+future))?)"
    r"(?:\s*[:,-]\s*|\s+that\s+|\s+(?=my\b|i\b|i'm\b|our\b))",
    re.IGNORECASE,
)
_SELF = re.compile(r"(?:i|i'm|im|i've|ive|i'd)\b", re.IGNORECASE)
_OTHER = re.compile(
    r"(?:he|she|they|it|you|there|that|this|everyone|people|my|our|the|his|her|their|your)\b", re.IGNORECASE
)
_ELIDED = re.compile(rf"(?:also\s+|then\s+|now\s+|really\s+|absolutely\s+)*(?:{_VERB})\s", re.IGNORECASE)


@dataclass(frozen=True)
class Sentence:
    """A run of text up to a full stop or line end, and where it begins in the message."""

    words: str
    """As written, with everything that is not the speaker's own masked."""
    start: int
    flags: frozenset[str]
    """What holds for all of it, set by itself or by what stands around it."""


def sentences(text: str) -> Iterator[Sentence]:
    """The sentences of a message in order, up to where another author pretends to begin; in one linear pass."""
    carried: frozenset[str] = frozenset()
    for offset, masked, spans in _own(text):
        for number, (a, b) in enumerate(spans):
            line = one_line(masked[a:b])
            carried |= flags.opens(line)
            around = carried | flags.of_answer([masked[c:d] for c, d in spans[number + 1 : number + 3]])
            if masked[a:b].strip():
                yield Sentence(masked[a:b], offset + a, around)


def split(text: str) -> list[str]:
    """The sentences of a text as they stand, nothing masked, none cut."""
    return [said for a, b in _whole(text) if (said := text[a:b].strip())]


def own(text: str) -> Iterator[tuple[int, str]]:
    """(position, words) of each of the `sentences` of a message, whatever flags it has."""
    for offset, masked, spans in _own(text):
        yield from ((offset + a, masked[a:b]) for a, b in spans if masked[a:b].strip())


def _own(text: str) -> Iterator[tuple[int, str, list[tuple[int, int]]]]:
    """(position, masked text, where its sentences are) of each piece of a message, up to another author."""
    fence = ""
    for offset, piece in windows(text):
        masked = mask(fence + piece)[len(fence) :]
        fence = open_fence(fence + piece)
        fake = FAKE_ROLE.search(masked)
        end = fake.start() if fake else len(masked)
        yield offset, masked, [(a, min(b, end)) for a, b in _sentences(masked) if a < end]
        if fake:
            return


def windows(text: str) -> Iterator[tuple[int, str]]:
    """(position, piece) of the text, cut at line or sentence ends: no pattern runs over more at once."""
    at = 0
    while at < len(text):
        end = min(len(text), at + WINDOW)
        if end < len(text):
            cut = max(text.rfind("\n", at, end), text.rfind(". ", at, end) + 1)
            end = cut + 1 if cut > at else end
        yield at, text[at:end]
        at = end


def clauses(sentence: Sentence) -> Iterator[Clause]:
    """The clauses of a sentence in order."""
    words = sentence.words
    whole = one_line(words)
    subject, before, asked_before = "", "", False
    opened = -1  # where the words stand that tell the time of the next clause
    tainted: frozenset[str] = frozenset()
    for a, b, joined in _pieces(words):
        piece = words[a:b]
        said, asked = _led(piece)
        if not said or len(said) > MAX_CLAUSE:
            continue
        if _ASKED.fullmatch(piece + ", "):  # "For future reference, I …"
            asked_before = True
            continue
        if _ALL_WHEN.fullmatch(said) and words[b : b + 1] == ",":
            opened = a + piece.rindex(said)
            tainted = flags.carried(tainted, piece, joined)
            continue
        start = a + piece.rindex(said)
        stop = sentence.start + start + len(said)
        shown, when = said, ""
        if match := _OPENS_WHEN.match(said):
            shown, when = said[match.end() :], match[1]
        elif opened >= 0 and (match := _ALL_WHEN.match(words, opened)):
            when, start = match[0], opened
        opened = -1
        shown, subject, foreign = _with_subject(one_line(shown), subject)
        found = flags.of_clause(piece, one_line(said), joined, words[b : b + 40])
        tainted = flags.carried(tainted, piece, joined) | (found & flags.STICKY)
        everything = sentence.flags | found | tainted | foreign
        after = one_line(words[b : b + 200])
        if when and is_ahead(when):
            everything |= {flags.AHEAD}
        yield Clause(
            shown, sentence.start + start, stop, everything, whole, before, after, asked or asked_before, one_line(when)
        )
        before = shown


def _sentences(masked: str) -> Iterator[tuple[int, int]]:
    for start, end in _whole(masked):
        yield from _short(masked, start, end)


def _whole(masked: str) -> Iterator[tuple[int, int]]:
    at = 0
    for match in _END.finditer(masked):
        if match[0][0] == "." and _ABBREVIATION.search(masked[max(at, match.start() - 8) : match.start()]):
            continue
        yield at, match.end()
        at = match.end()
    yield at, len(masked)


def _short(masked: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while end - start > MAX_SENTENCE:
        cut = masked.rfind(" ", start + MAX_SENTENCE // 2, start + MAX_SENTENCE)
        cut = cut if cut > 0 else start + MAX_SENTENCE
        if masked[start:cut].strip():
            yield start, cut
        start = cut
    if masked[start:end].strip():
        yield start, end


def _pieces(sentence: str) -> Iterator[tuple[int, int, str]]:
    """(start, end, the words or mark before it) of each clause."""
    at, joined = 0, ""
    for match in _BOUNDARY.finditer(sentence):
        if (
            match[0] in "-–"
            and _DOUBLE_NAME.match(sentence, match.end())
            and _NAME_BEFORE.search(sentence[max(0, match.start() - 30) : match.start()])
        ):
            continue
        if sentence[at : match.start()].strip():
            yield *_trim(sentence, at, match.start()), joined
        at, joined = match.end(), match[0].strip(" ,").casefold()
    if sentence[at:].strip():
        yield *_trim(sentence, at, len(sentence)), joined


def _trim(sentence: str, a: int, b: int) -> tuple[int, int]:
    piece = sentence[a:b].rstrip(" \t\n,")
    return a + len(piece) - len(piece.lstrip()), a + len(piece)


def _led(piece: str) -> tuple[str, bool]:
    """The piece without the words that only lead in to it, and whether they asked to remember it."""
    bullet = _BULLET.match(piece)
    said, asked, before = _PICTURE.sub("", piece[bullet.end() if bullet else 0 :]), False, None
    while said != before:
        before = said
        if match := _ASKED.match(said):
            said, asked = said[match.end() :], True
        elif (match := _LEAD.match(said)) and match.end() < len(said):
            said = said[match.end() :]
    return said.strip(_EDGES), asked


def _with_subject(said: str, subject: str) -> tuple[str, str, frozenset[str]]:
    """`hate Z` behind `I love X` is `I hate Z`; behind `my parents love X` it is not the speaker's."""
    if _SELF.match(said):
        return said, "i", frozenset()
    if _ELIDED.match(said + " "):
        if subject == "i":
            return "I " + said, subject, frozenset()
        return said, subject, frozenset({"third_party"}) if subject == "other" else frozenset()
    return said, "other" if _OTHER.match(said) else subject, frozenset()
