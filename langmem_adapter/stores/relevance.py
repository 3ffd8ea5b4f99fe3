"""What a query says about the items of some namespaces: words and vectors, in one score."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from langmem_adapter.scoring import Bools, Floats
from langmem_adapter.stores.base import Mode
from langmem_adapter.stores.part import Ids, positions
from langmem_adapter.stores.terms import Words, bm25
from langmem_adapter.stores.vectors import Matrix

TEXT_WEIGHT = 0.75
"""What the words count in a hybrid relevance; the vectors count the rest.

Recall@10 on LoCoMo's 1,535 answerable questions with hash embeddings: vectors 0.31, words 0.605, fused at 0.5 0.56,
at 0.75 0.607, at 0.8 to 0.9 0.610. A better embedder than a hash deserves its quarter.
"""


class Scored(NamedTuple):
    """Relevance of the items of one namespace, ids ascending. `has` False: the query says nothing about it."""

    ids: Ids
    score: Floats
    has: Bools


def relevance(
    count: int,
    query: str,
    vector: Matrix | None,
    mode: Mode,
    words: Callable[[], Sequence[Words]],
    cosines: Callable[[Matrix], Sequence[tuple[Ids, Floats]]],
) -> list[Scored]:
    """The relevance of the items of `count` namespaces, whose words and cosines are loaded only if they count.

    Cosines may be negative here.
    """
    if vector is None and mode == "vector":
        return [Scored(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, bool)) for _ in range(count)]
    angles = cosines(vector) if vector is not None and mode != "text" else []
    if mode == "vector":
        return [Scored(ids, cosine, np.ones(len(ids), dtype=bool)) for ids, cosine in angles]
    said = words()
    texts = bm25(said, query)
    if not angles:
        return [Scored(w.ids, t, t > 0) for w, t in zip(said, texts, strict=True)]
    hit = any(t.any() for t in texts)
    return [_fused(w.ids, t, *a, hit) for w, t, a in zip(said, texts, angles, strict=True)]


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
