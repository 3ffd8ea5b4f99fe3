"""What a query says about the items of some shelves: words and vectors, in one score."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from langmem_adapter.scoring import Bools, Floats
from langmem_adapter.stores.base import Mode
from langmem_adapter.stores.chroma_shelf import Shelf
from langmem_adapter.stores.part import Ids, positions
from langmem_adapter.stores.reading import TEXT_WEIGHT
from langmem_adapter.stores.terms import bm25
from langmem_adapter.stores.vectors import Matrix


class Scored(NamedTuple):
    """Relevance of the items of one shelf, ids ascending. `has` False: the query says nothing about it."""

    ids: Ids
    score: Floats
    has: Bools


def relevance(shelves: Sequence[Shelf], query: str, vector: Matrix | None, mode: Mode) -> list[Scored]:
    """The relevance of each shelf's items. Cosines may be negative here."""
    if vector is None and mode == "vector":
        return [Scored(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, bool)) for _ in shelves]
    cosines = [s.vectors.cosines(vector) for s in shelves] if vector is not None and mode != "text" else []
    if mode == "vector":
        return [Scored(ids, cosine, np.ones(len(ids), dtype=bool)) for ids, cosine in cosines]
    words = [s.words for s in shelves]
    texts = bm25(words, query)
    if not cosines:
        return [Scored(w.ids, t, t > 0) for w, t in zip(words, texts, strict=True)]
    hit = any(t.any() for t in texts)
    return [_fused(w.ids, t, *c, hit) for w, t, c in zip(words, texts, cosines, strict=True)]


def _fused(ids: Ids, text: Floats, vector_ids: Ids, cosine: Floats, hit: bool) -> Scored:
    """Words and vectors in one score; the vectors alone if no item has a word of the query."""
    at = positions(ids, vector_ids)
    has = np.zeros(len(ids), dtype=bool)
    has[at] = True
    aligned = np.zeros(len(ids))
    aligned[at] = cosine
    if not hit:
        return Scored(ids, aligned, has)
    return Scored(ids, TEXT_WEIGHT * text + (1 - TEXT_WEIGHT) * np.maximum(0.0, aligned), has | (text > 0))
