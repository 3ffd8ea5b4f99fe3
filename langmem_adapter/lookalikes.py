"""Letters that look like Latin ones, and how a text reads to who takes them for these.

For reading only, by rules and by the search for secrets: what is stored keeps the letters it was written with.
"""

import re
import unicodedata

_LATIN = {
    "a": "аαɑᴀ", "b": "ЬвЪʙƅ", "c": "сϲᴄⅽ", "d": "ԁɗđᴅ", "e": "еєҽɛεᴇ", "f": "ꜰƒϝ", "g": "ɡցɢ", "h": "һհнћħʜ",
    "i": "іıɩιɪӏ", "j": "јϳᴊȷ", "k": "кκᴋ", "l": "ⅼʟł", "m": "мᴍ", "n": "пոηɴŋ", "o": "оοσօᴏөøסο", "p": "рρᴘ",
    "q": "ԛզ", "r": "гʀᴦ", "s": "ѕʂꜱ", "t": "тτᴛŧ", "u": "υսᴜ", "v": "νѵᴠ", "w": "ԝωᴡա", "x": "хχ", "y": "уγүʏ",
    "z": "ᴢʐ",
    "A": "АΑᎪ", "B": "ВΒᏴ", "C": "СϹᏟ", "D": "ĐᎠ", "E": "ЕΕᎬЄ", "F": "Ϝ", "G": "ԌᏀ", "H": "НΗᎻ", "I": "ІΙӀ", "J": "ЈᎫ",
    "K": "КΚᏦ", "L": "ŁᏞ", "M": "МΜᎷ", "N": "Ν", "O": "ОΟՕØ", "P": "РΡᏢ", "Q": "Ԛ", "R": "ᎡᏒ", "S": "ЅՏᏚ", "T": "ТΤᎢ",
    "U": "Ս", "V": "ѴᏙ", "W": "ԜᎳ", "X": "ХΧ", "Y": "УΥҮ", "Z": "ΖᏃ",
}  # fmt: skip
_TABLE = {ord(sign): latin for latin, signs in _LATIN.items() for sign in signs}
_TABLE |= {first + n: chr(65 + n) for first in (0x1F150, 0x1F170, 0x1F1E6) for n in range(26)}
"""Cyrillic, Greek, Armenian and Cherokee letters, small capitals, letters with strokes, in a circle or a square."""
_PICTURES = re.compile("[\U0001f150-\U0001f189\U0001f1e6-\U0001f1ff]")
_FOREIGN = re.compile(r"[^\W_]*[^\W\x00-\x7f_][^\W_]*")


def folded(text: str, *, mixed: bool = False) -> str:
    """The text with those words in Latin letters that may be read so from end to end; same length.

    Accents go too ("ìgnore"). A word with any letter that only another script has is left as it is. `mixed`: only
    words that have Latin letters and such of another script, which nobody writes honestly; accents stay.
    """
    if text.isascii():
        return text
    text = _PICTURES.sub(lambda m: _TABLE[ord(m[0])], text)
    return _FOREIGN.sub(lambda m: m[0] if mixed and not _mixed(m[0]) else _latin(m[0]), text)


_LATIN_LETTER = re.compile("[A-Za-z]")
_OTHER_LETTER = re.compile("[\u0250-\u02af\u0370-\u058f\u13a0-\u13ff\u1d00-\u1d7f]")


def _mixed(word: str) -> bool:
    return _LATIN_LETTER.search(word) is not None and _OTHER_LETTER.search(word) is not None


def _latin(word: str) -> str:
    read = "".join(sign if sign.isascii() else _TABLE.get(ord(sign)) or _bare(sign) for sign in word)
    return read if read.isascii() else word


def _bare(sign: str) -> str:
    return unicodedata.normalize("NFD", sign)[0]
