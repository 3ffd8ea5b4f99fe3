"""Words for PostgreSQL's full text: which configuration a text needs, and BM25 from what the database finds.

The words are cut here, as for SQLite, because PostgreSQL's parser takes a Chinese sentence for one word; stemming and
stop words are the configuration's. Statistics are those of the rows searched: no index, nothing shared by owners.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from langmem_adapter.scoring import Floats
from langmem_adapter.stores import tokens
from langmem_adapter.stores.terms import K1, B

AUTO = "auto"
_MOST_WORDS = 30_000
_MOST_BYTES = 400_000
"""A tsvector holds at most 1 MB; what comes after this much of one item's text is not searched for."""

_MARKS = re.compile("(?<=[a-z\u0370-\u03ff])[\u0300-\u036f]+")

TF = 1_000
"""The database reports a hit as `number of the query's word * TF + times it occurs`."""


class Text(NamedTuple):
    """What `to_tsvector(configuration, words)` is called with."""

    configuration: str
    words: str


def text_of(texts: Iterable[str], language: str, known: Collection[str]) -> Text:
    """The words of an item's texts, for one of the `known` configurations."""
    words = list(islice((w for text in texts for w in tokens._words(text, singles=True)), _MOST_WORDS))
    return Text(configuration(words, language, known), _cut(" ".join(map(_plain, words))))


def query_of(text: str, language: str, known: Collection[str]) -> tuple[str, list[str]]:
    """The configuration of a query, and its distinct words."""
    words = list(dict.fromkeys(tokens._words(text, singles=False)))
    return configuration(words, language, known), [_plain(w) for w in words]


def configuration(words: Sequence[str], language: str, known: Collection[str]) -> str:
    """`language`; with "auto" the one the words are in, or `simple` if the database has none for it."""
    if language == AUTO:
        sample = words[:300]
        scripts = [
            name for script, name in tokens._SCRIPTS if sum(map(bool, map(script.search, sample))) * 2 > len(sample)
        ]
        language = scripts[0] if scripts else tokens.language_of(sample)
    return language if language in known else "simple"


def _plain(word: str) -> str:
    if word.isascii():
        return word
    return unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFD", word)))


def _cut(text: str) -> str:
    data = text.encode()
    return text if len(data) <= _MOST_BYTES else data[:_MOST_BYTES].decode(errors="ignore")


def bm25(hits: Sequence[Sequence[int] | None], lengths: npt.NDArray[np.int64], terms: int) -> Floats:
    """The word relevance in [0, 1] of each row, as `stores.terms.bm25` has it: BM25 divided by the most it could be.

    `hits` are as the database reports them; `terms` is how many words the query has.
    """
    n = len(hits)
    row = np.repeat(np.arange(n), [len(h) if h else 0 for h in hits])
    if not len(row):
        return np.zeros(n)
    packed = np.array([x for h in hits if h for x in h], dtype=np.int64)
    # Two stems of one word in one row count once.
    word, tf = packed // TF, (packed % TF).astype(np.float64)
    pairs = np.unique(np.stack([row, word]), axis=1)
    numbers, df = np.unique(pairs[1], return_counts=True)
    absent = np.log1p((n + 0.5) / 0.5)
    idf = np.log1p((n - df + 0.5) / (df + 0.5))
    most = (float(idf.sum()) + absent * (terms - len(numbers))) * (K1 + 1)
    room = K1 * (1 - B + B * lengths[row] / max(1.0, float(lengths.mean())))
    gain = idf[np.searchsorted(numbers, word)] * tf * (K1 + 1) / (tf + room)
    relevance: Floats = np.minimum(1.0, np.bincount(row, gain, minlength=n) / most)
    return relevance
