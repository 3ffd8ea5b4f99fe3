"""The ranked fields of one namespace's records, and the deadlines of its items, as arrays."""

import sqlite3
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from langmem_adapter.scoring import Columns, Floats, row
from langmem_adapter.stores.part import Change, Ids, positions

NUMBERS = 9
"""How many float columns `scoring.Columns` has, after status, topic and kind."""

_PACK = struct.Struct(f"<{NUMBERS}d")
_NEUTRAL = row({})


def row_of(value: Mapping[str, Any]) -> tuple[Any, ...]:
    """The value's row of `scoring.Columns`; the neutral one if its fields do not mean what a record's do."""
    try:
        found = row(value)
        _PACK.pack(*found[3:])
    except (TypeError, ValueError, OverflowError, AttributeError, struct.error):
        return _NEUTRAL
    half_life = found[4]
    return found if half_life > 0 else _NEUTRAL  # it divides


def stored(row: tuple[Any, ...]) -> tuple[int, str, str, bytes]:
    """The row as the columns status, topic, kind and numbers of `memory_index`."""
    status, topic, kind, *numbers = row
    return status, topic, kind, _PACK.pack(*numbers)


class Facets(NamedTuple):
    """`columns` of the items `ids`, ascending; every item of the namespace is there."""

    ids: Ids
    columns: Columns
    numbers: Floats
    """The float columns again, one a row, in the order of `Columns`."""

    @property
    def nbytes(self) -> int:
        return self.ids.nbytes + self.numbers.nbytes + 25 * len(self.ids)

    @classmethod
    def load(cls, conn: sqlite3.Connection, first: int, last: int) -> "Facets":
        """From the file, for the items with `first` ≤ id ≤ `last`."""
        sql = "SELECT id, status, topic, kind, numbers FROM memory_index WHERE id BETWEEN ? AND ? ORDER BY id"
        return cls.of(conn.execute(sql, (first, last)).fetchall())

    @classmethod
    def of(cls, rows: Sequence[tuple[int, int, str, str, bytes]]) -> "Facets":
        """From ids, ascending, with their stored rows."""
        ids, status, topic, kind, packed = zip(*rows, strict=True) if rows else ((), (), (), (), ())
        numbers = np.frombuffer(b"".join(packed), dtype="<f8").reshape(len(ids), NUMBERS).T.copy()
        return cls._of(np.array(ids, dtype=np.int64), np.array(status, dtype=np.int8), topic, kind, numbers)

    @classmethod
    def _of(
        cls, ids: Ids, status: npt.NDArray[np.int8], topic: tuple[str, ...], kind: tuple[str, ...], numbers: Floats
    ) -> "Facets":
        return cls(ids, Columns(status, topic, kind, *numbers), numbers)

    def changed(self, changes: Sequence[Change]) -> "Facets":
        """The same with these items replaced, added or removed."""
        ordered = sorted(changes, key=lambda c: c.id)
        added = Facets.of([(c.id, *stored(c.row)) for c in ordered if c.row is not None])
        at = positions(self.ids, np.array([c.id for c in ordered], dtype=np.int64))
        left = self._picked(np.delete(np.arange(len(self.ids)), at[at >= 0])) if (at >= 0).any() else self
        both = left._followed_by(added)
        in_order = not len(left.ids) or not len(added.ids) or bool(added.ids[0] > left.ids[-1])
        return both if in_order else both._picked(np.argsort(both.ids))

    def _picked(self, at: npt.NDArray[np.intp]) -> "Facets":
        c = self.columns
        topic, kind = tuple(c.topic[i] for i in at), tuple(c.kind[i] for i in at)
        return Facets._of(self.ids[at], c.status[at], topic, kind, self.numbers[:, at])

    def _followed_by(self, more: "Facets") -> "Facets":
        a, b = self.columns, more.columns
        return Facets._of(
            np.concatenate([self.ids, more.ids]),
            np.concatenate([a.status, b.status]),
            a.topic + b.topic,
            a.kind + b.kind,
            np.concatenate([self.numbers, more.numbers], axis=1),
        )


class Deadlines(NamedTuple):
    """When items expire, for those that do."""

    ids: Ids
    at: npt.NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        return self.ids.nbytes + self.at.nbytes

    @classmethod
    def load(cls, conn: sqlite3.Connection, namespace: int) -> "Deadlines":
        """From the file."""
        sql = "SELECT id, expires_at FROM memory_items WHERE namespace = ? AND expires_at IS NOT NULL"
        return cls._of(conn.execute(sql, (namespace,)).fetchall())

    @classmethod
    def _of(cls, rows: Sequence[tuple[int, int]]) -> "Deadlines":
        table = np.array(sorted(rows), dtype=np.int64).reshape(-1, 2)
        return cls(table[:, 0].copy(), table[:, 1].copy())

    def changed(self, changes: Sequence[Change]) -> "Deadlines":
        """The same with these items replaced, added or removed."""
        if not len(self.ids) and all(c.expires_at is None for c in changes):
            return self
        rows = dict(zip(self.ids.tolist(), self.at.tolist(), strict=True))
        for c in changes:
            rows.pop(c.id, None)
            if c.expires_at is not None:
                rows[c.id] = c.expires_at
        return Deadlines._of(list(rows.items()))

    def moved(self, at: Mapping[int, int]) -> "Deadlines":
        """The same with other deadlines for some of its items."""
        return Deadlines._of([(i, at.get(i, a)) for i, a in zip(self.ids.tolist(), self.at.tolist(), strict=True)])

    def alive(self, ids: Ids, now: int) -> npt.NDArray[np.bool_]:
        """Which of the ids have not expired."""
        alive = np.ones(len(ids), dtype=bool)
        if len(self.ids):
            at = positions(ids, self.ids[self.at <= now])
            alive[at[at >= 0]] = False
        return alive
