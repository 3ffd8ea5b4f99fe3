"""What a text is when it enters, and when two texts say the same thing.

`clean` is the one boundary: every text that is stored passes it. The rest compares texts: slots, words,
numbers, negation. Pure functions, no model.
"""

import re
import unicodedata
from functools import lru_cache

import snowballstemmer

from langmem_adapter.errors import InvalidInput

MAX_CONTENT = 2_000
"""Longest content of one record, in characters: one atomic fact does not need more."""

# Marks that reorder or hide text. Joiners, variation selectors and tag characters are handled apart: emoji,
# Persian, Indic scripts and flags need them.
_HIDDEN = dict.fromkeys(
    [
        *range(0x202A, 0x202F),
        *range(0x2060, 0x2065),
        *range(0x2066, 0x206A),
        0x200B,
        0x200E,
        0x200F,
        0xFEFF,
        0x00AD,
    ]
    + [0x180E, 0x061C, *range(0xFFF9, 0xFFFC)]
    + [c for c in range(0x20) if c not in (0x09, 0x0A, 0x0D)]
    + [*range(0x7F, 0xA0)]
)
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f")
_TAGS = re.compile("[\U000e0000-\U000e007f]+")
_JOINER = re.compile("[\u200c\u200d]")
# A joiner is kept where the letters beside it join (Arabic, Indic scripts) or inside an emoji sequence.
_JOINS = re.compile(
    "[\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17ff\u200d\u2190-\u2bff\ufe0f\U0001f000-\U0001faff]"
)
_VARIATION = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")


def clean(text: str, *, what: str = "content") -> str:
    """NFC text without NUL, hidden or reordering characters; line breaks and tabs stay.

    Raises InvalidInput for anything that is not a `str`. A lone surrogate becomes U+FFFD.
    """
    if not isinstance(text, str):
        raise InvalidInput(f"{what} must be a str, got {type(text).__name__}: {text!r:.80}")
    if text.isascii() and text.isprintable():
        return text
    text = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace") if _has_surrogate(text) else text
    text = unicodedata.normalize("NFC", text).translate(_HIDDEN)
    flags = {m.span() for m in _FLAG.finditer(text)}
    text = _TAGS.sub(lambda m: m[0] if (m.start() - 1, m.end()) in flags else "", text)
    text = _JOINER.sub(lambda m: m[0] if _joins(text, m.start()) else "", text)
    return _VARIATION.sub(lambda m: m[0] if _varies(text, m.start()) else "", text)


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= c <= "\udfff" for c in text)


def _joins(text: str, at: int) -> bool:
    return 0 < at < len(text) - 1 and bool(_JOINS.match(text[at - 1])) and bool(_JOINS.match(text[at + 1]))


def _varies(text: str, at: int) -> bool:
    # One selector, behind a symbol, a digit of a keycap or an ideograph; a run of them hides data.
    return (
        at > 0
        and not text[at - 1].isspace()
        and not _VARIATION.match(text[at - 1])
        and (unicodedata.category(text[at - 1])[0] in "SN" or text[at - 1] in "#*" or ord(text[at - 1]) > 0x2E7F)
    )


def one_line(text: str) -> str:
    """The text with every run of white space, line separators included, as one space."""
    return " ".join(text.split())


def content(text: str, *, what: str = "content") -> str:
    """A record's content: clean, on one line, not empty, at most `MAX_CONTENT` characters (InvalidInput)."""
    text = one_line(clean(text, what=what))
    if not text:
        raise InvalidInput(f"{what} is empty; say the fact in one sentence")
    if len(text) > MAX_CONTENT:
        raise InvalidInput(f"{what} has {len(text)} characters, at most {MAX_CONTENT} fit; split it into facts")
    return text


_EDGE = " \t\n.,;:!?\"'`“”‘’()[]{}"
_ARTICLES = re.compile(r"^(?:the|a|an|my|some|any)\s+")


def slot(text: str) -> str:
    """The normal form by which slots and values are compared: case, articles, edge marks, spaces folded."""
    folded = unicodedata.normalize("NFKC", one_line(text)).casefold().strip(_EDGE)
    return _ARTICLES.sub("", folded)


_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*", re.UNICODE)
_NUMBER = re.compile(r"\d+(?:[.,:/]\d+)*")
_STOP = frozenset(
    "a an the and or of in on at to for by is are was be am i user user's their they he she it its this that with "
    "s very really".split()
)
NEGATIONS = frozenset(
    "not no never none nothing without cannot neither nor dislike dislikes disliked hate hates avoid avoids "
    "quit quits stopped anymore except unless refuses allergic intolerant "
    "dont doesnt didnt cant wont isnt arent wasnt havent hasnt couldnt wouldnt shouldnt aint".split()
)


_stemmer = snowballstemmer.stemmer("english")


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """The English Snowball stem of a folded word."""
    return str(_stemmer.stemWord(word))


def words(text: str) -> list[str]:
    """The words of a text, case-folded, in order; apostrophes inside a word are straight."""
    return [w.replace("’", "'").casefold() for w in _WORD.findall(text)]


def stems(text: str) -> frozenset[str]:
    """Stems of the words that carry meaning."""
    return frozenset(stem(w) for w in words(text) if w not in _STOP)


def numbers(text: str) -> frozenset[str]:
    """The numbers written with digits."""
    return frozenset(_NUMBER.findall(text))


def negated(text: str) -> bool:
    """Whether the text denies, dislikes, avoids or ends something, by its words."""
    return any(w in NEGATIONS or w.endswith("n't") for w in words(text))


def says_the_same(a: str, b: str) -> bool:
    """Equal wording up to case, order, inflection and filler words; numbers and negation must be equal."""
    return stems(a) == stems(b) and numbers(a) == numbers(b) and negated(a) == negated(b)
