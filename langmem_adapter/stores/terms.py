"""Word search: text → hashed stems, and BM25 over one owner's items in numpy.

Nothing is shared between owners: document frequencies are those of the items searched, so no statistic tells one
owner about another, and an item's words are gone when its row is.
"""

import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt
import snowballstemmer

from langmem_adapter.stores.part import Change, Ids, blobs

TOKENIZER = 1
"""Raise it whenever the words of any text change: files remember which tokenizer wrote them."""

K1, B = 1.2, 0.75
"""BM25: how soon repeating a word stops counting, and how much a long text is discounted."""

WEAK = frozenset(
    "a about after all also am an and any are as at be been but by can could did do does for from had has have he her "
    "his how i if in into is it its just me my no not of on one or our out s she should so some t than that the their "
    "them then there they this to too up us user was we were what when where which who why will with would you your"
    .split()
)  # fmt: skip
"""English words that are no hit on their own. They are not indexed."""

_SLICE = 65_536  # characters: no single call holds the interpreter long, whatever the text's size
_MAX_WORD = 64

# Scripts written without spaces: every pair of neighbouring characters is a word.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff"
)
# Marks that belong to the letter before them; Python's \\w leaves them out.
_MARKS = "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0900-\u0963\u0971-\u0dff"
_LETTER = f"(?:(?![{_UNSPACED}])[^\\W_]|[{_MARKS}])"
_TOKEN = re.compile(f"[{_UNSPACED}]+|{_LETTER}+(?:['’]{_LETTER}+)*")
_UNSPACED_CHAR = re.compile(f"[{_UNSPACED}]")
_LATIN_GREEK_MARKS = re.compile("(?<=[a-z\u0370-\u03ff])[\u0300-\u036f]+")

Words32 = npt.NDArray[np.uint32]
Floats = npt.NDArray[np.float64]

_NONE: Words32 = np.zeros(0, dtype=np.uint32)


def hashed(texts: Iterable[str]) -> Words32:
    """The sorted hashes of all words of the texts, repeats included."""
    found = [h for text in texts for word in _words(text) if (h := _hash(word)) is not None]
    return np.sort(np.array(found, dtype=np.uint32)) if found else _NONE


def _words(text: str) -> Iterator[str]:
    for start in range(0, len(text), _SLICE):
        part = unicodedata.normalize("NFC", text[start : start + _SLICE]).casefold()
        for match in _TOKEN.finditer(part):
            word = match[0]
            if _UNSPACED_CHAR.match(word):
                yield from (word[i : i + 2] for i in range(max(1, len(word) - 1)))
            else:
                yield word[:_MAX_WORD]


_english = snowballstemmer.stemmer("english")


@lru_cache(maxsize=100_000)
def _hash(word: str) -> int | None:
    """The fixed hash of a word's stem; None for a weak word."""
    word = word.replace("’", "'").removesuffix("'s")
    if not word.isascii():
        word = unicodedata.normalize("NFC", _LATIN_GREEK_MARKS.sub("", unicodedata.normalize("NFD", word)))
    if word in WEAK:
        return None
    return crc32(str(_english.stemWord(word)).encode())


class Words(NamedTuple):
    """The words of one namespace's items. Entry i: the item at position `item[i]` of `ids` has `word[i]` `tf[i]` times."""

    ids: Ids
    lengths: npt.NDArray[np.float64]
    word: Words32
    item: npt.NDArray[np.int32]
    tf: npt.NDArray[np.float32]

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in self)

    @classmethod
    def load(cls, conn: sqlite3.Connection, first: int, last: int) -> "Words":
        """From the file, for the items with `first` ≤ id ≤ `last`."""
        ids, data = blobs(
            conn, "SELECT id, words FROM memory_ranks WHERE id BETWEEN ? AND ? ORDER BY id", (first, last)
        )
        return cls.of(ids, [np.frombuffer(d, dtype=np.uint32) for d in data])

    @classmethod
    def of(cls, ids: Ids, words: Sequence[Words32]) -> "Words":
        """From each item's sorted hashes."""
        lengths = np.array([len(w) for w in words], dtype=np.int64)
        every = np.concatenate([_NONE, *words])
        item = np.repeat(np.arange(len(ids), dtype=np.int32), lengths)
        first = np.ones(len(every), dtype=bool)
        first[1:] = (every[1:] != every[:-1]) | (item[1:] != item[:-1])
        at = np.flatnonzero(first)
        count = np.diff(at, append=len(every)).astype(np.float32)
        return cls(ids, lengths.astype(np.float64), every[at], item[at], count)

    def changed(self, changes: Sequence[Change]) -> "Words":
        """The same with these items replaced, added or removed."""
        gone = np.isin(self.ids, [c.id for c in changes])
        kept = np.cumsum(~gone) - 1
        entries = ~gone[self.item]
        left = Words(
            self.ids[~gone],
            self.lengths[~gone],
            self.word[entries],
            kept[self.item[entries]].astype(np.int32),
            self.tf[entries],
        )
        added = [(c.id, c.words) for c in sorted(changes) if c.words is not None]
        more = Words.of(np.array([i for i, _ in added], dtype=np.int64), [w for _, w in added])
        return left._merged(more)

    def _merged(self, more: "Words") -> "Words":
        ids = np.concatenate([self.ids, more.ids])
        order = np.argsort(ids, kind="stable")
        place = np.empty(len(ids), dtype=np.int32)
        place[order] = np.arange(len(ids), dtype=np.int32)
        return Words(
            ids[order],
            np.concatenate([self.lengths, more.lengths])[order],
            np.concatenate([self.word, more.word]),
            place[np.concatenate([self.item, more.item + len(self.ids)])],
            np.concatenate([self.tf, more.tf]),
        )


def bm25(parts: Sequence[Words], query: Words32) -> list[Floats]:
    """The word relevance in [0, 1] of every item of every part, as if the parts were one collection.

    It is BM25 divided by the most the query could score, Σ idf · (k1 + 1): 1 is out of reach, about 0.45 means that
    a text of average length has every word of the query once. 0 is: no word in common.
    """
    query = np.unique(query)
    hits = [_hits(p, query) for p in parts]
    n = sum(len(p.ids) for p in parts)
    if not len(query) or not n:
        return [np.zeros(len(p.ids)) for p in parts]
    df = sum((np.bincount(term, minlength=len(query)) for _, term in hits), np.zeros(len(query), dtype=np.int64))
    idf = np.log1p((n - df + 0.5) / (df + 0.5))
    average = sum(float(p.lengths.sum()) for p in parts) / n or 1.0
    best = float(idf.sum()) * (K1 + 1)
    return [_scores(p, at, term, idf, average) / best for p, (at, term) in zip(parts, hits, strict=True)]


def _hits(part: Words, query: Words32) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The entries whose word is in the (sorted) query, and which of its words it is."""
    if len(query) <= 8:
        found = [np.flatnonzero(part.word == q) for q in query]
        term = np.repeat(np.arange(len(query)), [len(f) for f in found])
        return np.concatenate([np.zeros(0, dtype=np.intp), *found]), term
    near = np.minimum(np.searchsorted(query, part.word), len(query) - 1)
    at = np.flatnonzero(query[near] == part.word)
    return at, near[at]


def _scores(part: Words, at: npt.NDArray[np.intp], term: npt.NDArray[np.intp], idf: Floats, average: float) -> Floats:
    count, item = part.tf[at], part.item[at]
    room = K1 * (1 - B + B * part.lengths[item] / average)
    gain = idf[term] * count * (K1 + 1) / (count + room)
    return np.bincount(item, gain, minlength=len(part.ids)).astype(np.float64)
