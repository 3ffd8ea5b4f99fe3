"""The ranked fields of one namespace's records, and the deadlines of its items, as arrays."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from langmem_adapter.scoring import Columns, row
from langmem_adapter.stores.part import Change, Ids, blobs, positions

_NEUTRAL = row({})
_CHUNK = 5_000
FAR = np.iinfo(np.int64).max


def row_of(value: Mapping[str, Any]) -> tuple[Any, ...]:
    """The value's row of `scoring.Columns`; the neutral one if its fields do not mean what a record's do."""
    try:
        found = row(value)
    except (TypeError, ValueError, OverflowError, AttributeError):
        return _NEUTRAL
    return found if found[4] > 0 else _NEUTRAL  # a half-life divides


def dump_row(row: tuple[Any, ...]) -> str:
    """The stored form of a row; open times (±inf) as null."""
    return json.dumps([None if x in (np.inf, -np.inf) else x for x in row], separators=(",", ":"))


def _open(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Nulls were read as NaN: the row's end times are then +inf, its `valid_from` −inf."""
    numbers[5:] = np.where(np.isnan(numbers[5:]), np.inf, numbers[5:])
    numbers[7] = np.where(numbers[7] == np.inf, -np.inf, numbers[7])
    return numbers


class Facets(NamedTuple):
    """`columns` of the items `ids`, ascending; every item of the namespace is there."""

    ids: Ids
    columns: Columns
    numbers: npt.NDArray[np.float64]
    """The float columns again, one a row, in the order of `Columns`."""

    @property
    def nbytes(self) -> int:
        return self.ids.nbytes + self.numbers.nbytes + 25 * len(self.ids)

    @classmethod
    def load(cls, conn: sqlite3.Connection, first: int, last: int) -> "Facets":
        """From the file, for the items with `first` ≤ id ≤ `last`."""
        sql = "SELECT id, columns FROM memory_ranks WHERE id BETWEEN ? AND ? ORDER BY id"
        ids, texts = blobs(conn, sql, (first, last))
        rows: list[list[Any]] = []
        for start in range(0, len(texts), _CHUNK):
            rows += json.loads(f"[{','.join(texts[start : start + _CHUNK])}]")
        return cls.of(ids, rows)

    @classmethod
    def of(cls, ids: Ids, rows: Sequence[Sequence[Any]]) -> "Facets":
        """From stored rows."""
        status, topic, kind, *rest = zip(*rows, strict=True) if rows else [()] * 12
        numbers = _open(np.array(rest, dtype=np.float64).reshape(9, len(ids)))
        return cls._build(ids, np.array(status, dtype=np.int8), topic, kind, numbers)

    @classmethod
    def _build(
        cls,
        ids: Ids,
        status: npt.NDArray[np.int8],
        topic: Sequence[str],
        kind: Sequence[str],
        numbers: npt.NDArray[np.float64],
    ) -> "Facets":
        return cls(ids, Columns(status, tuple(topic), tuple(kind), *numbers), numbers)

    def changed(self, changes: Sequence[Change]) -> "Facets":
        """The same with these items replaced, added or removed."""
        last = int(self.ids[-1]) if len(self.ids) else -1
        rows = {c.id: c.row for c in changes}
        kept = np.flatnonzero(~np.isin(self.ids, list(rows)))
        more = Facets.of(
            np.array(sorted(i for i, r in rows.items() if r is not None), dtype=np.int64),
            [_nulls(r) for _, r in sorted(rows.items()) if r is not None],
        )
        ids = np.concatenate([self.ids[kept], more.ids])
        whole = len(kept) == len(self.ids)
        topic, kind = self.columns.topic, self.columns.kind
        if not whole:
            topic, kind = tuple(topic[i] for i in kept), tuple(kind[i] for i in kept)
        status = np.concatenate([self.columns.status[kept], more.columns.status])
        numbers = np.concatenate([self.numbers if whole else self.numbers[:, kept], more.numbers], axis=1)
        topic, kind = topic + more.columns.topic, kind + more.columns.kind
        if whole and (not len(more.ids) or more.ids[0] > last):
            return self._build(ids, status, topic, kind, numbers)
        order = np.argsort(ids)
        return self._build(
            ids[order], status[order], [topic[i] for i in order], [kind[i] for i in order], numbers[:, order]
        )


def _nulls(row: tuple[Any, ...]) -> list[Any]:
    return [None if x in (np.inf, -np.inf) else x for x in row]


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
        sql = "SELECT id, expires_at FROM memory_items WHERE namespace = ? AND expires_at IS NOT NULL ORDER BY id"
        ids, at = blobs(conn, sql, (namespace,))
        return cls(ids, np.array(at, dtype=np.int64))

    def changed(self, changes: Sequence[Change]) -> "Deadlines":
        """The same with these items replaced, added or removed."""
        kept = ~np.isin(self.ids, [c.id for c in changes])
        added = [(c.id, c.expires_at) for c in changes if c.expires_at is not None]
        ids = np.concatenate([self.ids[kept], np.array([i for i, _ in added], dtype=np.int64)])
        at = np.concatenate([self.at[kept], np.array([a for _, a in added], dtype=np.int64)])
        order = np.argsort(ids)
        return Deadlines(ids[order], at[order])

    def moved(self, at: Mapping[int, int]) -> "Deadlines":
        """The same with other deadlines for some of its items."""
        return Deadlines(self.ids, np.array([at.get(int(i), int(a)) for i, a in zip(self.ids, self.at, strict=True)]))

    def alive(self, ids: Ids, now: int) -> npt.NDArray[np.bool_]:
        """Which of the ids have not expired."""
        alive = np.ones(len(ids), dtype=bool)
        if len(self.ids):
            at = positions(ids, self.ids[self.at <= now])
            alive[at[at >= 0]] = False
        return alive
