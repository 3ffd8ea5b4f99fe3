"""The vectors of one namespace as a float32 matrix, scanned exactly."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from langmem_adapter.stores.part import Change, Ids

Matrix = npt.NDArray[np.float32]

_DEAD = -1


def unit(vectors: Matrix) -> Matrix:
    """The vectors scaled to length 1; zero vectors stay zero."""
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    return (vectors / np.where(norms > 0, norms, 1.0)[:, None]).astype(np.float32)


def _dot(matrix: Matrix, query: Matrix) -> Matrix:
    # Row by row on one thread: one matrix-vector product is bound by memory anyway, and BLAS's own threads would
    # spin and queue behind each other when several requests search at once.
    if hasattr(np, "vecdot"):  # numpy 2
        scores: Matrix = np.vecdot(matrix, query)
        return scores
    return matrix @ query


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """Row i of `matrix` belongs to item `ids[i]` (−1: to none any more). An item may have several rows.

    `matrix` is the filled part of a larger `buffer`. A change only ever appends rows, so whoever still reads an
    older `Vectors` on the same buffer is not disturbed.
    """

    ids: Ids
    buffer: Matrix
    plain: bool
    """Ids ascend without gaps or repeats: row i is item i."""

    @property
    def nbytes(self) -> int:
        return self.buffer.nbytes + self.ids.nbytes

    @classmethod
    def load(cls, conn: sqlite3.Connection, first: int, last: int, embedder: int, dims: int) -> "Vectors":
        """From the file, for the items with `first` ≤ id ≤ `last`, those of this embedder."""
        rows = conn.execute(
            "SELECT id, vectors FROM memory_index WHERE id BETWEEN ? AND ? AND embedder = ? ORDER BY id",
            (first, last, embedder),
        )
        ids: list[int] = []
        sizes: list[int] = []
        data = bytearray()  # grown in place: no second copy, and no list of all blobs
        for id, blob in rows:
            ids.append(id)
            sizes.append(len(blob))
            data += blob
        counts = np.array(sizes, dtype=np.int64) // (4 * dims)
        matrix = np.frombuffer(data, dtype=np.float32).reshape(-1, dims)
        return cls.of(np.repeat(np.array(ids, dtype=np.int64), counts), matrix)

    @classmethod
    def of(cls, ids: Ids, matrix: Matrix) -> "Vectors":
        """From rows in the order of their items."""
        return cls(ids, matrix, bool((ids[1:] > ids[:-1]).all()))

    def cosines(self, query: Matrix) -> tuple[Ids, npt.NDArray[np.float64]]:
        """Each item once, ids ascending, with the best cosine of its vectors to a unit query."""
        scores = _dot(self.buffer[: len(self.ids)], query).astype(np.float64)
        if self.plain:
            return self.ids, scores
        alive = self.ids != _DEAD
        ids, place = np.unique(self.ids[alive], return_inverse=True)
        top = np.full(len(ids), -np.inf)
        np.maximum.at(top, place, scores[alive])
        return ids, top

    def changed(self, changes: Sequence[Change]) -> "Vectors | None":
        """With these items' rows replaced, added or removed; None when a quarter of the rows would be dead."""
        gone = np.isin(self.ids, [c.id for c in changes])
        ids = np.where(gone, _DEAD, self.ids) if gone.any() else self.ids
        if np.count_nonzero(ids == _DEAD) * 4 > len(ids) + 16:
            return None
        added = [(c.id, c.vectors) for c in sorted(changes, key=lambda c: c.id) if c.vectors is not None]
        if not added:
            return Vectors(ids, self.buffer, self.plain and not gone.any())
        new_ids = np.repeat(np.array([i for i, _ in added], dtype=np.int64), [len(v) for _, v in added])
        return self._appended(ids, new_ids, np.concatenate([v for _, v in added]))

    def _appended(self, ids: Ids, new_ids: Ids, rows: Matrix) -> "Vectors":
        used, needed = len(ids), len(ids) + len(rows)
        buffer = self.buffer
        if needed > len(buffer):
            buffer = np.empty((needed + needed // 8 + 8, rows.shape[1]), dtype=np.float32)
            buffer[:used] = self.buffer[:used]
        buffer[used:needed] = rows
        both = np.concatenate([ids, new_ids])
        return Vectors(both, buffer, bool((both[1:] > both[:-1]).all()) and (not used or both[0] != _DEAD))
