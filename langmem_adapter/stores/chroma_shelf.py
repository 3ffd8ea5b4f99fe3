"""One namespace's items as arrays: vectors, words, ranked fields and deadlines, loaded together and kept in memory.

Valid as long as the namespace's head has the same `mark`; our own commits are carried over instead of read again.
"""

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from langmem_adapter.stores.chroma_client import Chroma
from langmem_adapter.stores.chroma_rows import Row, row_of
from langmem_adapter.stores.facets import Deadlines, Facets, stored
from langmem_adapter.stores.facets import row_of as ranked
from langmem_adapter.stores.part import Change
from langmem_adapter.stores.terms import Words
from langmem_adapter.stores.tokens import index
from langmem_adapter.stores.values import decode
from langmem_adapter.stores.vectors import Matrix, Vectors
from langmem_adapter.stores.writing import words_at

Mark = tuple[int, int, str]


class Changed(NamedTuple):
    """What a commit changed in one namespace."""

    path: str
    before: Mark
    after: Mark
    changes: Sequence[Change]
    names: Mapping[int, str]
    """The record ids of the changed items, by their `seq`."""
    deadlines: Mapping[int, int] = {}
    """New deadlines of items that are otherwise the same."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """The items of one namespace, by their `seq`, ascending."""

    names: Mapping[int, str]
    """The record id of each item."""
    vectors: Vectors
    words: Words
    facets: Facets
    deadlines: Deadlines

    @property
    def nbytes(self) -> int:
        parts = (self.vectors, self.words, self.facets, self.deadlines)
        return sum(p.nbytes for p in parts) + 150 * len(self.names)

    def changed(self, done: Changed) -> "Shelf | None":
        """The same after a commit; None if loading it again is the better way."""
        changes = done.changes
        if done.deadlines:
            return replace(self, deadlines=self.deadlines.moved(done.deadlines))
        new = next((c.vectors for c in changes if c.vectors is not None), None)
        if new is not None and new.shape[1] != self.vectors.buffer.shape[1]:
            return None
        vectors = self.vectors.changed(changes)
        if vectors is None:
            return None
        gone = {c.id for c in changes if c.row is None}
        names = {i: n for i, n in {**self.names, **done.names}.items() if i not in gone}
        return Shelf(
            names,
            vectors,
            self.words.changed(changes),
            self.facets.changed(changes),
            self.deadlines.changed(changes),
        )


def load(
    chroma: Chroma,
    collection: str,
    path: str,
    dead: Sequence[str],
    *,
    embedder: int | None,
    dims: int,
    fields: Sequence[str],
) -> Shelf:
    """The shelf of a namespace. Vectors of other embedders are left out."""
    found = chroma.find(collection, {"ns": path}, ["metadatas", "documents", "embeddings"])
    ghosts = set(dead)
    rows = sorted(((row_of(i, m, d), v) for i, m, d, v in found if i not in ghosts), key=lambda pair: pair[0].seq)
    items = [row for row, _ in rows]
    values = [decode(row.value, chroma.name) for row in items]
    return Shelf(
        {row.seq: row.id for row in items},
        _vectors(rows, _more(chroma, collection, path, items), embedder, dims),
        Words.of([(r.seq, index(words_at(v, _paths(r, fields)))) for r, v in zip(items, values, strict=True)]),
        Facets.of([(r.seq, *stored(ranked(v))) for r, v in zip(items, values, strict=True)]),
        deadlines({r.seq: r.expires for r in items if r.expires is not None}),
    )


def deadlines(at: Mapping[int, int]) -> Deadlines:
    """When items expire, from `seq` to microseconds."""
    table = np.array(sorted(at.items()), dtype=np.int64).reshape(-1, 2)
    return Deadlines(table[:, 0].copy(), table[:, 1].copy())


def _paths(row: Row, fields: Sequence[str]) -> Sequence[str]:
    return fields if row.fields is None else list(json.loads(row.fields))


def _more(chroma: Chroma, collection: str, path: str, items: Sequence[Row]) -> dict[int, list[Matrix]]:
    """The further vectors of items that have several."""
    revs = {r.seq: r.rev for r in items if r.vectors > 1}
    if not revs:
        return {}
    more: dict[int, list[Matrix]] = {}
    for _, metadata, _, vector in chroma.find(collection, {"of": path}, ["metadatas", "embeddings"]):
        if revs.get(metadata["seq"]) == metadata["rev"]:
            more.setdefault(metadata["seq"], []).append(vector)
    return more


def _vectors(
    rows: Sequence[tuple[Row, Any]], more: Mapping[int, list[Matrix]], embedder: int | None, dims: int
) -> Vectors:
    ids: list[int] = []
    found: list[Any] = []
    for row, vector in rows:
        if embedder is not None and row.embedder == embedder and row.vectors:
            own = [vector, *more.get(row.seq, ())]
            ids += [row.seq] * len(own)
            found += own
    return Vectors.of(np.array(ids, dtype=np.int64), np.array(found, dtype=np.float32).reshape(len(found), dims))


class Shelves:
    """Shelves by namespace, least recently used first out, never above `limit` bytes in sum."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.nbytes = 0
        self._shelves: OrderedDict[str, tuple[Mark, Shelf]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, path: str, mark: Mark, load: Callable[[], Shelf]) -> Shelf:
        """The shelf as of the mark, loaded if it is not there."""
        with self._lock:
            found = self._shelves.get(path)
            if found is not None and found[0] == mark:
                self._shelves.move_to_end(path)
                return found[1]
        shelf = load()
        with self._lock:
            newest = self._shelves.get(path)
            if newest is None or newest[0][:2] <= mark[:2]:
                self._set(path, mark, shelf)
        return shelf

    def advance(self, done: Changed) -> None:
        """Carry a shelf over a commit of our own."""
        with self._lock:
            found = self._shelves.get(done.path)
            if found is not None and found[0] == done.before:
                shelf = found[1].changed(done)
                if shelf is None:
                    self._drop(done.path)
                else:
                    self._set(done.path, done.after, shelf)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._shelves.clear()
            self.nbytes = 0

    def _set(self, path: str, mark: Mark, shelf: Shelf) -> None:
        self._drop(path)
        if shelf.nbytes > self.limit:
            return
        self._shelves[path] = (mark, shelf)
        self.nbytes += shelf.nbytes
        while self.nbytes > self.limit:
            self._drop(next(iter(self._shelves)))

    def _drop(self, path: str) -> None:
        found = self._shelves.pop(path, None)
        if found is not None:
            self.nbytes -= found[1].nbytes
