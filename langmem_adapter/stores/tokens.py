"""Text → the fixed 32-bit hashes of its stemmed words.

NFC, case folded. Words of Latin script are stemmed in the language of the text they stand in, found by its function
words; other scripts by the script. Scripts without spaces give pairs of neighbouring characters. Marks are stripped
from Latin and Greek letters only (café → cafe): elsewhere they are letters.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from langmem_adapter.stemming import stemmed

TOKENIZER = 1
"""Raise it whenever the hashes of any text change: files remember which tokenizer wrote them."""

Hashes = npt.NDArray[np.uint32]

_FUNCTION_WORDS = {
    "english": "a about after all am an and any are as at be been but by can could did do does for from had has have "
    "he her his how i if in into is it it's its just me my no not of on one or our out she should so some than that "
    "the their them then there they this to too up us was we were what when where which who why will with would you "
    "your user user's",
    "german": "aber als am an auch auf aus bei bin bis das dass dem den der des die dir du ein eine einem einen einer "
    "er es für hat habe hatte ich ihr im in ist ja kein keine mein meine mich mir mit nach nicht noch nur oder sein "
    "seine sich sie sind so um und uns von war was wenn wer wie wir wird zu zum zur",
    "french": "à au aux avec ce ces cette dans de des du elle en est et il ils j'ai je l'a la le les leur ma mais me "
    "mes moi mon ne nous on ou où par pas plus pour qu'il que qui sa se ses son sont sur ta te tu un une vous y",
    "spanish": "a al como con cuando de del donde el ella ellos en era es esta este esto fue ha he la las le lo los "
    "me mi mis muy no nos o para pero por porque que quien se ser si sin sobre son su sus también te tu un una y ya yo",
    "italian": "a ad al alla anche che chi ci come con cosa da dal dei del della di dove e è gli ha ho i il in io la "
    "le lei lo lui ma mi mia mio ne nel nella noi non o per perché più quando questo se si sono su suo tu un una uno",
    "portuguese": "a ao aos as com como da das de do dos e é ela ele em eu foi isso já mais mas me meu minha na não "
    "nas no nos o os ou para pela pelo por porque quando que quem se sem ser seu sua são também te tem um uma você",
    "dutch": "aan als bij dat de den der des deze die dit een en er geen haar heb hebben heeft het hij hoe hun ik in "
    "is je kan maar me meer met mij mijn naar niet nog nu of om omdat onder ons ook op over te toen tot uit van veel "
    "voor was wat we wel wie wij worden wordt ze zich zij zijn",
}
"""Words that say which language a text is in and carry no meaning of their own: they are not indexed."""

LANGUAGES = tuple(_FUNCTION_WORDS)

_SPEAKS: dict[str, tuple[str, ...]] = {}
for _language, _listed in _FUNCTION_WORDS.items():
    for _word in _listed.split():
        _SPEAKS[_word] = (*_SPEAKS.get(_word, ()), _language)

_ENGLISH = frozenset(_FUNCTION_WORDS["english"].split())

_SLICE = 65_536  # characters: no single call holds the interpreter long, whatever the text's size
_SAMPLE = 300  # words that decide the language
_MAX_WORD = 64

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff"
)
# Marks that belong to the letter before them; Python's \w leaves them out.
_MARKS = "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0900-\u0963\u0971-\u0dff"
_LETTER = rf"(?:(?![{_UNSPACED}])[^\W_]|[{_MARKS}])"
_TOKEN = re.compile(rf"[{_UNSPACED}]+|{_LETTER}+(?:['’]{_LETTER}+)*")
_PLAIN = re.compile(r"[a-z0-9]{1,64}(?:'[a-z0-9]+)*")
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")
_STRIPPED_MARKS = re.compile("(?<=[a-z\u0370-\u03ff])[\u0300-\u036f]+")
_SCRIPTS = (
    (re.compile("[\u0400-\u052f]"), "russian"),
    (re.compile("[\u0370-\u03ff\u1f00-\u1fff]"), "greek"),
    (re.compile("[\u0600-\u06ff]"), "arabic"),
    (re.compile("[\u0530-\u058f]"), "armenian"),
    (re.compile("[\u0900-\u097f]"), "hindi"),
    (re.compile("[\u0b80-\u0bff]"), "tamil"),
)


class Indexed(NamedTuple):
    """The words of a text: sorted hashes, repeats included, and the number of its language in `LANGUAGES`."""

    hashes: Hashes
    language: int


NOTHING = Indexed(np.zeros(0, dtype=np.uint32), 0)


def index(texts: Iterable[str]) -> Indexed:
    """What to store of the texts of one item."""
    words = list(chain.from_iterable(_words(text, singles=True) for text in texts))
    if not words:
        return NOTHING
    language = language_of(words)
    # Neither a list nor `sorted`: making an array of many words, or sorting them, would hold the interpreter.
    hashes = np.fromiter((h for w in words if (h := _hash(w, language)) is not None), dtype=np.uint32)
    hashes.sort()
    return Indexed(hashes, LANGUAGES.index(language))


def query(text: str, languages: Iterable[int]) -> tuple[Hashes, npt.NDArray[np.intp]]:
    """The distinct hashes to look for, ascending, and for each which word of the query it stands for.

    A query is too short to trust its language, so each word is stemmed in every language the searched items have.
    """
    words = list(dict.fromkeys(_words(text, singles=False)))
    own = language_of(words)
    stems = {own, *(LANGUAGES[n] for n in languages)}
    meant = [w for w in words if own not in _SPEAKS.get(w, ())]
    found = {h: i for i, w in reversed(list(enumerate(meant))) for s in stems if (h := _hash(w, s)) is not None}
    hashes = sorted(found)
    return np.array(hashes, dtype=np.uint32), np.array([found[h] for h in hashes], dtype=np.intp)


def language_of(words: Sequence[str]) -> str:
    """The language with the most function words among the first words; English if there are none."""
    spoken = [w for w in words[:_SAMPLE] if w in _SPEAKS]
    if _ENGLISH.issuperset(spoken):
        return "english"
    votes = Counter([language for w in spoken for language in _SPEAKS[w]])
    return max(LANGUAGES, key=votes.__getitem__)  # of equals the first


def _words(text: str, *, singles: bool) -> Iterable[str]:
    if len(text) <= _SLICE and text.isascii():
        return _PLAIN.findall(text.lower())
    return _any_words(text, singles=singles)


def _any_words(text: str, *, singles: bool) -> Iterator[str]:
    for start in range(0, len(text), _SLICE):
        part = text[start : start + _SLICE].casefold()
        if part.isascii():
            yield from _PLAIN.findall(part)
            continue
        part = unicodedata.normalize("NFC", part)
        for match in _TOKEN.finditer(part):
            word = match[0]
            if _IS_UNSPACED.match(word):
                yield from (word[i : i + 2] for i in range(len(word) - 1))
                # An ideograph is often a word by itself: indexed too, but asked for only when it stands alone.
                yield from (c for c in word if len(word) == 1 or (singles and c > "\u3400"))
            else:
                yield word[:_MAX_WORD].replace("’", "'")


@lru_cache(maxsize=100_000)
def _hash(word: str, language: str) -> int | None:
    """The hash of a word's stem; None for a function word of the language."""
    if language in _SPEAKS.get(word, ()):
        return None
    word = word.removesuffix("'s")
    if language == "english" and "0" <= word[-1:] <= "9":
        return crc32(word.encode())  # the stemmer would leave it as it is, slowly: every number is a new word
    if not word.isascii():
        language = next((name for script, name in _SCRIPTS if script.search(word)), language)
        word = unicodedata.normalize("NFC", _STRIPPED_MARKS.sub("", unicodedata.normalize("NFD", word)))
    return crc32(stemmed(word, language).encode())
