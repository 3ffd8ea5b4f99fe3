"""What a text is when it enters, and when two texts say the same thing.

`clean` is the one boundary: every text that is stored passes it. The rest compares texts: slots, words,
numbers, negation. Pure functions, no model.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache

from langmem_adapter.errors import InvalidInput
from langmem_adapter.languages import (
    AND,
    CJK,
    COMPOUND,
    ENGLISH,
    HAN,
    HAN_RUN,
    HAN_UNITS,
    NEGATING,
    NEGATIONS,
    NUMBER,
    SHY,
)
from langmem_adapter.stemming import stemmed

MAX_CONTENT = 2_000
"""Longest content of one record, in characters: one atomic fact does not need more."""
MAX_RAW = 131_072
"""Longest text that is looked at for one: it may have white space, hidden marks and secrets that do not count."""

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
_SURROGATE = re.compile("[\ud800-\udfff]")
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
    return _SURROGATE.search(text) is not None


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


PIECE = 4_096
_OVERLAP = 200


def pieces(text: str) -> Iterator[str]:
    """The text in parts of at most `PIECE` characters, cut behind lines or sentences, or overlapping.

    A pattern is matched in one go, for which nothing else can interrupt: a long text is searched piece by piece.
    """
    at = 0
    while len(text) - at > PIECE:
        end = max(text.rfind(border, at, at + PIECE) for border in ("\n", ". ", "! ", "? ")) + 1
        yield text[at : end or at + PIECE]
        at = end or at + PIECE - _OVERLAP
    yield text[at:]


def content(text: str, *, what: str = "content", redact: Callable[[str], str] = str) -> str:
    """A record's content: clean, on one line, not empty, at most `MAX_CONTENT` characters (InvalidInput).

    `redact` cuts secrets out of it before it is put on one line.
    """
    short(text, what=what, most=MAX_RAW)
    text = one_line(clean(redact(clean(text, what=what))))
    if not text:
        raise InvalidInput(f"{what} is empty; say the fact in one sentence")
    return short(text, what=what)


def short(text: str, *, what: str, most: int = MAX_CONTENT) -> str:
    """The text; InvalidInput if it has more characters than fit."""
    if isinstance(text, str) and len(text) > most:
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
_NEGATIONS = frozenset(w for line in NEGATIONS.values() for w in line.split())


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """The English Snowball stem of a folded word."""
    return stemmed(word, "english")


def words(text: str) -> list[str]:
    """The words of a text, case-folded, in order; apostrophes inside a word are straight."""
    if text.isascii():
        return _WORD.findall(text.lower())
    return [w.replace("’", "'").casefold() for w in _WORD.findall(text)]


def singular(word: str) -> str:
    """An English noun in the singular, as far as its ending tells: "peanuts" → "peanut"."""
    if re.search(r"(?:ss|us|sis)$", word) or len(word) < 4:
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-2] if word.endswith(("oes", "shes", "ches")) else word.removesuffix("s")


def stems(text: str) -> frozenset[str]:
    """Stems of the words that carry meaning."""
    return frozenset(stem(w) for w in words(text) if w not in _STOP)


def numbers(text: str) -> frozenset[str]:
    """The numbers, in digits; words for them count in the languages of `languages`, except for one."""
    found = {unicodedata.normalize("NFKC", n) for n in _NUMBER.findall(text)}
    if CJK.search(text):
        found |= {str(n) for run in HAN_RUN.findall(text) if (n := _han(run)) != 1}
    said = _meant(text)
    for at, word in enumerate(said):
        value = NUMBER.get(word)
        if value is None:
            parts = COMPOUND.match(word) if "und" in word or "en" in word else None
            unit, tens = (NUMBER.get(parts[1], -1), NUMBER.get(parts[2], -1)) if parts else (-1, -1)
            if 0 < unit < 10 and 10 < tens < 100:
                found.add(str(tens + unit))
            continue
        found.add(str(value))
        after = said[at + 1 : at + 3]
        unit = NUMBER.get((after[1:] if after[:1] and after[0] in AND else after)[0], 0) if len(after) else 0
        if value % 10 == 0 and 0 < value < 100 and 0 < unit < 10:  # "twenty-five", "treinta y cinco"
            found.add(str(value + unit))
    return frozenset(found)


def _han(run: str) -> int:
    total = digit = 0
    for sign in run:
        if sign in HAN:
            digit = HAN[sign]
        else:
            total += max(digit, 1) * HAN_UNITS[sign] if total < HAN_UNITS[sign] or digit else 0
            digit = 0
    return total + digit


def _meant(text: str) -> list[str]:
    """The words, without those that mean something else in English, if it is English."""
    found = words(text)
    return [w for w in found if w not in SHY] if not ENGLISH.isdisjoint(found) else found


def negated(text: str) -> bool:
    """Whether the text denies, dislikes, avoids or ends something, by its words."""
    said = _meant(text)
    if not _NEGATIONS.isdisjoint(said) or any(w.endswith("n't") for w in said):
        return True
    return bool(NEGATING.search(text))


_SIGNED = re.compile(r"\w[+#]+|\.\w+\b")
_PAST = frozenset("was were had did used".split())


def says_the_same(a: str, b: str) -> bool:
    """Equal wording up to case, inflection and filler words; order, numbers, tense, signs and negation must be equal.

    "From Rome to Oslo" is not "from Oslo to Rome", "C++" is not "C", and what was is not what is.
    """
    return saying(a)(b)


def saying(text: str) -> Callable[[str], bool]:
    """Whether another text says the same as this one, which is read once."""
    order = _order(text)
    return lambda other: _order(other) == order and _beside(other) == _beside(text)


def _order(text: str) -> list[str]:
    return list(dict.fromkeys([stem(w) for w in words(text) if w not in _STOP]))


def _beside(text: str) -> tuple[object, ...]:
    signs = frozenset(_SIGNED.findall(text.casefold()))
    return numbers(text), negated(text), signs, _PAST.isdisjoint(words(text))
