"""Word search: BM25 over one owner's items in numpy.

Nothing is shared between owners: document frequencies are those of the items searched, so no statistic tells one
owner about another, and an item's words are gone when its row is.
"""

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from langmem_adapter.stores import tokens
from langmem_adapter.stores.part import Change, Ids, positions
from langmem_adapter.stores.tokens import Hashes, Indexed

K1, B = 1.2, 0.75
"""BM25: how soon repeating a word stops counting, and how much a long text is discounted."""

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]

_NONE: Hashes = np.zeros(0, dtype=np.uint32)


class Words(NamedTuple):
    """The words of one namespace's items: entry i says that item `item[i]` has `word[i]` `tf[i]` times.

    `item` holds positions in `ids`, which has every item of the namespace, ascending.
    """

    ids: Ids
    lengths: Floats
    languages: npt.NDArray[np.int8]
    word: Hashes
    item: npt.NDArray[np.int32]
    tf: npt.NDArray[np.float32]

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in self)

    @classmethod
    def load(cls, conn: sqlite3.Connection, first: int, last: int) -> "Words":
        """From the file, for the items with `first` ≤ id ≤ `last`."""
        sql = "SELECT id, words, language FROM memory_index WHERE id BETWEEN ? AND ? ORDER BY id"
        rows = conn.execute(sql, (first, last)).fetchall()
        lengths = np.array([len(w) for _, w, _ in rows], dtype=np.int64) // 4
        every = np.frombuffer(b"".join([w for _, w, _ in rows]), dtype=np.uint32)
        ids, languages = [r[0] for r in rows], [r[2] for r in rows]
        return cls._of(np.array(ids, dtype=np.int64), lengths, np.array(languages, dtype=np.int8), every)

    @classmethod
    def of(cls, items: Sequence[tuple[int, Indexed]]) -> "Words":
        """From ids, ascending, and their words."""
        ids = np.array([i for i, _ in items], dtype=np.int64)
        lengths = np.array([len(w.hashes) for _, w in items], dtype=np.int64)
        languages = np.array([w.language for _, w in items], dtype=np.int8)
        return cls._of(ids, lengths, languages, np.concatenate([_NONE, *(w.hashes for _, w in items)]))

    @classmethod
    def _of(cls, ids: Ids, lengths: Ids, languages: npt.NDArray[np.int8], every: Hashes) -> "Words":
        # An item's hashes are sorted, so its repeats stand together.
        item = np.repeat(np.arange(len(ids), dtype=np.int32), lengths)
        first = np.ones(len(every), dtype=bool)
        first[1:] = (every[1:] != every[:-1]) | (item[1:] != item[:-1])
        at = np.flatnonzero(first)
        tf = np.diff(at, append=len(every)).astype(np.float32)
        return cls(ids, lengths.astype(np.float64), languages, every[at], item[at], tf)

    def changed(self, changes: Sequence[Change]) -> "Words":
        """The same with these items replaced, added or removed."""
        ordered = sorted(changes, key=lambda c: c.id)
        added = Words.of([(c.id, c.words) for c in ordered if c.words is not None])
        at = positions(self.ids, np.array([c.id for c in ordered], dtype=np.int64))
        left = self._without(at[at >= 0]) if (at >= 0).any() else self
        if not len(left.ids) or not len(added.ids) or added.ids[0] > left.ids[-1]:
            return left._followed_by(added)
        return left._followed_by(added)._sorted()

    def _without(self, at: Places) -> "Words":
        gone = np.zeros(len(self.ids), dtype=bool)
        gone[at] = True
        place = (np.cumsum(~gone) - 1).astype(np.int32)
        entries = ~gone[self.item]
        return Words(
            self.ids[~gone],
            self.lengths[~gone],
            self.languages[~gone],
            self.word[entries],
            place[self.item[entries]],
            self.tf[entries],
        )

    def _followed_by(self, more: "Words") -> "Words":
        shifted = more._replace(item=more.item + np.int32(len(self.ids)))
        return Words(*(np.concatenate([a, b]) for a, b in zip(self, shifted, strict=True)))

    def _sorted(self) -> "Words":
        order = np.argsort(self.ids)
        place = np.empty(len(order), dtype=np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        return Words(self.ids[order], self.lengths[order], self.languages[order], self.word, place[self.item], self.tf)


def bm25(parts: Sequence[Words], query: str) -> list[Floats]:
    """The word relevance in [0, 1] of every item of every part, as if the parts were one collection.

    It is BM25 divided by the most the query could score, Σ idf · (k1 + 1): 1 is out of reach, about 0.45 means that
    a text of average length has every word of the query once. 0 is: no word in common.
    """
    languages = {int(n) for p in parts for n in np.flatnonzero(np.bincount(p.languages))}
    hashes, meaning = tokens.query(query, languages)
    n = sum(len(p.ids) for p in parts)
    if not len(hashes) or not n:
        return [np.zeros(len(p.ids)) for p in parts]
    hits = [_hits(p, hashes, meaning) for p in parts]
    df = sum((np.bincount(term, minlength=meaning.max() + 1) for _, term in hits), np.zeros(1, dtype=np.int64))
    df = np.minimum(df, n)  # two stems of one word in one item count twice
    idf = np.log1p((n - df + 0.5) / (df + 0.5))
    average = sum(float(p.lengths.sum()) for p in parts) / n or 1.0
    best = float(idf.sum()) * (K1 + 1)
    return [
        np.minimum(1.0, _scores(p, at, term, idf, average) / best) for p, (at, term) in zip(parts, hits, strict=True)
    ]


def _hits(part: Words, hashes: Hashes, meaning: Places) -> tuple[Places, Places]:
    """The entries that hold a word of the query, and which word of the query that is."""
    if len(hashes) <= 8:
        found = [np.flatnonzero(part.word == h) for h in hashes]
        return np.concatenate(found), np.repeat(meaning, [len(f) for f in found])
    near = np.minimum(np.searchsorted(hashes, part.word), len(hashes) - 1)
    at = np.flatnonzero(hashes[near] == part.word)
    return at, meaning[near[at]]


def _scores(part: Words, at: Places, term: Places, idf: Floats, average: float) -> Floats:
    tf, item = part.tf[at], part.item[at]
    room = K1 * (1 - B + B * part.lengths[item] / average)
    gain = idf[term] * tf * (K1 + 1) / (tf + room)
    return np.bincount(item, gain, minlength=len(part.ids)).astype(np.float64)
