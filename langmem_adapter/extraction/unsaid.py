"""Whether a person asks that what he says be not remembered: "don't store this", "off the record".

Then the message teaches nothing, whatever an extractor finds in it.
"""

import itertools
import re

_START = r"(?:^|[.!?;:,\n—–-]\s*|\b(?:please|but|and|so|bitte|aber|und|por favor|per favore|alsjeblieft)\s+)"
"""Where an order may begin: "I don't remember that film" is none."""

_WHAT = r"\s+(?:this|that|it|these|those|any|anything|what|the\s+following|my|about)\b"

_KEEP = r"(?:remember|store|save|record|memori[sz]e|learn|note\s+down|write\s+down)"

_PATTERNS = [
    # English
    _START + rf"(?:do\s+not|don['’]?t|never)\s+(?:ever\s+)?{_KEEP}{_WHAT}",
    _START + r"forget\s+(?:this|that\s+(?:i|my|we)\b|what\s+(?:i|we)\b)",
    r"\boff\s+the\s+record\b",
    r"\bnot\s+for\s+the\s+record\b",
    # German
    r"\b(?:merk\w*|speicher\w*|notier\w*|behalt\w*)\s+(?:(?:dir|das|dies|es|bitte)\s+)+nicht\b",
    _START + r"vergiss\s*,?\s*(?:das\b|was\s+ich\b|dass\s+(?:ich|meine?)\b)",
    # French
    r"\bne\s+(?:retiens|retenez|m[ée]morise[sz]?|enregistre[sz]?|note[sz]?|garde[sz]?)\s+pas\b",
    _START + r"oublie[sz]?\s+(?:que\s+(?:je|j['’]|mon|ma)|ce\s+que|[çc]a\b)",
    # Spanish
    _START + r"no\s+(?:(?:lo|la|esto|eso)\s+)?(?:recuerdes|guardes|memorices|anotes)\b",
    _START + r"olvida\s+(?:que\s+\w+|lo\s+que|esto|eso)\b",
    # Italian
    _START + r"non\s+(?:ricordare|ricordarti|memorizzare|salvare|annotare)\b",
    _START + r"dimentica\s+(?:che|quello|questo)\b",
    # Portuguese
    _START + r"n[ãa]o\s+(?:(?:o|a|isto|isso)\s+)?(?:lembre|guarde|salve|memorize|anote)s?\b",
    _START + r"esque[cç]a\s+(?:que|o\s+que|isto|isso)\b",
    # Dutch
    r"\b(?:onthoud|bewaar|noteer)\s+(?:dit|dat|het)\s+(?:alsjeblieft\s+)?niet\b",
    r"\bsla\s+(?:dit|dat|het)\s+(?:alsjeblieft\s+)?niet\s+op\b",
]
_UNSAID = re.compile("|".join(f"(?:{p})" for p in _PATTERNS), re.IGNORECASE)

# Every pattern has one of these words, and says the rest near it: a long text is not searched for all of them.
_WORDS = (
    "remember store save record memor mémor learn down forget merk speicher notier behalt vergiss retien reten "
    "enregistr note garde oublie recuerd guard anot olvida ricord salv dimentica lembr esque onthoud bewaar sla"
).split()
_WORD = re.compile("|".join(_WORDS), re.IGNORECASE)
_NEAR = 60
_MOST = 500
_EDGE = 1 << 15


def unsaid(text: str) -> bool:
    """Whether the text asks that it be not remembered; of a very long one only its beginning and end are looked at."""
    if len(text) > 2 * _EDGE:
        text = f"{text[:_EDGE]}\n{text[-_EDGE:]}"
    lowered = text.lower()
    if not any(word in lowered for word in _WORDS):
        return False
    words = itertools.islice(_WORD.finditer(text), _MOST)
    return any(_UNSAID.search(text, max(0, m.start() - _NEAR), m.end() + _NEAR) for m in words)
