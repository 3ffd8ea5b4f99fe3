"""Read ops run against one snapshot of the database: get, search, list namespaces, rank."""

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from langgraph.store.base import GetOp, Item, ListNamespacesOp, SearchItem, SearchOp

from langmem_adapter.errors import StoreCorrupt
from langmem_adapter.namespaces import Namespace
from langmem_adapter.scoring import Bools, Floats, as_parts, best, blend
from langmem_adapter.stores.base import Mode, Ranked, RankOp
from langmem_adapter.stores.facets import Deadlines, Facets
from langmem_adapter.stores.filters import compile_filter, keyed, listed
from langmem_adapter.stores.part import Cache, Ids, Part, positions
from langmem_adapter.stores.relevance import Scored, relevance
from langmem_adapter.stores.schema import NAMESPACE_SHIFT
from langmem_adapter.stores.terms import Words
from langmem_adapter.stores.values import decode, matches, namespace, path, under, when
from langmem_adapter.stores.vectors import Matrix, Vectors

_ALIVE = "(expires_at IS NULL OR expires_at > ?)"
_COLUMNS = "id, key, value, created_at, updated_at, expires_at, ttl"

_IDS = 200

FIRST_TRY = 16
"""Candidates per wanted hit that a filter is tried on before it is tried on every item."""

P = TypeVar("P", bound=Part)


@dataclass(frozen=True, slots=True)
class Settings:
    """What a snapshot must know of its store."""

    file: str
    cache: Cache
    embedder: int | None
    """Number of the embedder whose vectors count; None: there are none."""
    dims: int
    mode: Mode


class Name(NamedTuple):
    """One row of `memory_namespaces`."""

    id: int
    path: str
    version: int
    stamp: int

    @property
    def first(self) -> int:
        return self.id << NAMESPACE_SHIFT

    @property
    def last(self) -> int:
        return ((self.id + 1) << NAMESPACE_SHIFT) - 1


@dataclass(slots=True)
class Snapshot:
    """Runs ops on a connection that is inside a transaction. `queries` holds the vectors of the ops' queries."""

    conn: sqlite3.Connection
    settings: Settings
    queries: Mapping[str, Matrix]
    now: int
    refresh: dict[int, float] = field(default_factory=dict)
    """Items read by ops that want their ttl (minutes) to start again."""
    names: dict[str, "Name | None"] = field(default_factory=dict)
    """Namespaces looked up before: in one snapshot they cannot change."""

    def run(self, op: Any) -> Any:
        """The result of one op."""
        if isinstance(op, GetOp):
            return self._get(op)
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, RankOp):
            return self._rank(op)
        return self._list(cast(ListNamespacesOp, op))

    def versions(self, namespaces: Iterable[Namespace]) -> dict[Namespace, int]:
        """The version of each; 0 for one never written to."""
        return {n: name.version if (name := self._name(n)) else 0 for n in namespaces}

    # get and list

    def _get(self, op: GetOp) -> Item | None:
        name = self._name(op.namespace)
        if name is None:
            return None
        sql = f"SELECT {_COLUMNS} FROM memory_items WHERE namespace = ? AND key = ? AND {_ALIVE}"
        row = self.conn.execute(sql, (name.id, op.key, self.now)).fetchone()
        if row is None:
            return None
        key, value, created, updated = self._read(row, op.refresh_ttl)
        return Item(value=value, key=key, namespace=namespace(name.path), created_at=created, updated_at=updated)

    def _list(self, op: ListNamespacesOp) -> list[Namespace]:
        conditions = [c for c in op.match_conditions or () if c.path]
        plain = [c for c in conditions if c.match_type == "prefix" and "*" not in c.path]
        rest = [c for c in conditions if c not in plain]
        tests = [under(c.path) for c in plain]
        where = " AND ".join([sql for sql, _ in tests]) or "1"
        paged = not rest and op.max_depth is None
        sql = (
            f"SELECT path FROM memory_namespaces n WHERE {where} AND EXISTS "
            f"(SELECT 1 FROM memory_items WHERE namespace = n.id AND {_ALIVE}) ORDER BY path LIMIT ? OFFSET ?"
        )
        params = [p for _, ps in tests for p in ps]
        rows = self.conn.execute(sql, (*params, self.now, op.limit if paged else -1, op.offset if paged else 0))
        try:
            found = [namespace(p) for (p,) in rows]
        except (TypeError, AttributeError) as e:
            raise self._corrupt(e) from e
        if paged:
            return found
        found = [n for n in found if all(matches(c, n) for c in rest)]
        if op.max_depth is not None:
            found = list(dict.fromkeys(n[: op.max_depth] for n in found))
        return found[op.offset : op.offset + op.limit]

    # search

    def _search(self, op: SearchOp) -> list[SearchItem]:
        condition = compile_filter(op.filter)
        names = self._under(op.namespace_prefix)
        if not names or not op.limit:
            return []
        if not op.query:
            ids = self._newest(names, op, condition, op.limit, op.offset)
            return self._items([(i, None) for i in ids], names, op.refresh_ttl)
        return self._items(self._ranked(op, names, condition), names, op.refresh_ttl)

    def _ranked(
        self, op: SearchOp, names: Sequence[Name], condition: tuple[str, list[Any]]
    ) -> list[tuple[int, float | None]]:
        """One page of ids with their scores: by relevance, then the unscored ones, newest first."""
        scored = self._relevance(names, op.query or "", self.settings.mode)
        ids = np.concatenate([s.ids for s in scored])
        score = np.concatenate([s.score for s in scored])
        keep = np.concatenate(
            [s.has & self._deadlines(n).alive(s.ids, self.now) for n, s in zip(names, scored, strict=True)]
        )
        end = op.offset + op.limit
        if op.filter:
            keep = self._admitted(op, names, condition, ids, score, keep)
        top = best(score, keep, -np.inf, end)[op.offset :]
        page: list[tuple[int, float | None]] = [(int(ids[i]), min(1.0, max(0.0, float(score[i])))) for i in top]
        if len(page) < op.limit:
            known = set(ids[keep].tolist())
            rest = [i for i in self._newest(names, op, condition, -1, 0) if i not in known]
            skip = max(0, op.offset - len(known))
            page += [(i, None) for i in rest[skip : skip + op.limit - len(page)]]
        return page

    def _admitted(
        self,
        op: SearchOp,
        names: Sequence[Name],
        condition: tuple[str, list[Any]],
        ids: Ids,
        score: Floats,
        keep: Bools,
    ) -> Bools:
        """Which of the kept items meet the condition: all of them, or at least the best that fill the page.

        A filter that no index answers reads each item, so the best are tried first.
        """
        end, kept = op.offset + op.limit, np.count_nonzero(keep)
        tries = FIRST_TRY * end
        while 4 * tries < kept and not listed(op.filter):
            top = best(score, keep, -np.inf, tries)
            sql = f"SELECT id FROM memory_items WHERE id IN (SELECT value FROM json_each(?)) AND {condition[0]}"
            rows = self.conn.execute(sql, (str(ids[top].tolist()), *condition[1]))
            met = np.isin(ids, [i for (i,) in rows])
            if np.count_nonzero(met) >= end:
                return met
            tries *= 8
        return keep & np.isin(ids, self._newest(names, op, condition, -1, 0))

    def _newest(
        self, names: Sequence[Name], op: SearchOp, condition: tuple[str, list[Any]], limit: int, offset: int
    ) -> list[int]:
        """Ids of live items that meet the condition, last updated first."""
        sql, params = condition
        # No two items of a namespace have the same updated_at, so that the index gives their order.
        order = "updated_at DESC"
        if len(names) == 1:
            scope, of = "namespace = ?", [names[0].id]
        else:
            inner, of = under(op.namespace_prefix)  # type: ignore[assignment]
            scope = f"namespace IN (SELECT id FROM memory_namespaces WHERE {inner})"
            order += ", id DESC"
        index = "memory_items_slot" if keyed(op.filter) else "memory_items_list"
        rows = self.conn.execute(
            f"SELECT id FROM memory_items INDEXED BY {index} WHERE {scope} AND {_ALIVE} AND {sql} "
            f"ORDER BY {order} LIMIT ? OFFSET ?",
            (*of, self.now, *params, limit, offset),
        )
        return [i for (i,) in rows]

    def _items(
        self, page: Sequence[tuple[int, float | None]], names: Sequence[Name], refresh: bool
    ) -> list[SearchItem]:
        if not page:
            return []
        paths = {n.id: namespace(n.path) for n in names}
        rows = self._rows([i for i, _ in page])
        return [self._item(i, rows.get(i), paths.get(i >> NAMESPACE_SHIFT), score, refresh) for i, score in page]

    def _rows(self, ids: Sequence[int]) -> dict[int, Sequence[Any]]:
        """The rows there are, by id."""
        found: dict[int, Sequence[Any]] = {}
        for start in range(0, len(ids), _IDS):
            some = ids[start : start + _IDS]
            # Few different statements, so that SQLite compiles them once.
            size = next(n for n in (1, 5, 10, 20, _IDS) if n >= len(some))
            sql = f"SELECT {_COLUMNS} FROM memory_items WHERE id IN ({', '.join('?' * size)})"
            for row in self.conn.execute(sql, (*some, *[None] * (size - len(some)))):
                found[row[0]] = row
        return found

    def _item(
        self, id: int, row: Sequence[Any] | None, where: Namespace | None, score: float | None, refresh: bool
    ) -> SearchItem:
        if row is None or where is None:
            raise self._corrupt(f"item {id} is in an index but not in its table")
        return SearchItem(where, *self._read(row, refresh), score)

    def _read(self, row: Sequence[Any], refresh: bool) -> tuple[str, dict[str, Any], datetime, datetime]:
        """Key, value, created_at and updated_at of a row."""
        try:
            self._note(row, refresh)
            _, key, value, created, updated, _, _ = row
            return key, decode(value, self.settings.file), when(created), when(updated)
        except (TypeError, ValueError, OverflowError) as e:
            raise self._corrupt(f"item {row[0]}: {e}") from e

    # rank

    def _rank(self, op: RankOp) -> list[Ranked]:
        names = [n for ns in dict.fromkeys(map(tuple, op.namespaces)) if (n := self._name(ns)) is not None]
        if not names or not op.limit:
            return []
        facets = [self._facets(n) for n in names]
        relevances = self._aligned(names, facets, op)
        keep = np.concatenate(
            [
                f.columns.mask(op.where) & self._deadlines(n).alive(f.ids, self.now)
                for n, f in zip(names, facets, strict=True)
            ]
        )
        parts = np.concatenate([f.columns.parts(r, op.where.now) for f, r in zip(facets, relevances, strict=True)])
        scores = blend(parts, op.weights)
        ids = np.concatenate([f.ids for f in facets])
        top = best(scores, keep, op.floor, op.limit)
        items = self._items([(int(ids[i]), float(scores[i])) for i in top], names, False)
        return [Ranked(item, float(scores[i]), as_parts(parts[i])) for item, i in zip(items, top, strict=True)]

    def _aligned(self, names: Sequence[Name], facets: Sequence[Facets], op: RankOp) -> list[Floats]:
        if not op.query:
            return [np.zeros(len(f.ids)) for f in facets]
        found = []
        for f, s in zip(facets, self._relevance(names, op.query, op.mode), strict=True):
            aligned = np.zeros(len(f.ids))
            aligned[positions(f.ids, s.ids)] = np.where(s.has, np.clip(s.score, 0.0, 1.0), 0.0)
            found.append(aligned)
        return found

    def _relevance(self, names: Sequence[Name], query: str, mode: Mode) -> list[Scored]:
        vector = self.queries.get(query) if self.settings.embedder is not None else None
        return relevance(
            len(names),
            query,
            vector,
            mode,
            words=lambda: [self._words(n) for n in names],
            cosines=lambda vector: [self._vectors(n).cosines(vector) for n in names],
        )

    # rows and parts

    def _name(self, namespace: Sequence[str]) -> Name | None:
        wanted = path(namespace)
        if wanted not in self.names:
            sql = "SELECT id, path, version, stamp FROM memory_namespaces WHERE path = ?"
            row = self.conn.execute(sql, (wanted,)).fetchone()
            self.names[wanted] = None if row is None else self._named(row)
        return self.names[wanted]

    def _under(self, prefix: Sequence[str]) -> list[Name]:
        inner, params = under(prefix)
        sql = f"SELECT id, path, version, stamp FROM memory_namespaces WHERE {inner}"
        return [self._named(row) for row in self.conn.execute(sql, params)]

    def _named(self, row: Sequence[Any]) -> Name:
        if [type(v) for v in row] != [int, str, int, int]:
            raise self._corrupt(f"namespace {row!r:.80}")
        return Name(*row)

    def _note(self, row: Sequence[Any], refresh: bool) -> None:
        # A refresh that would move the deadline by less than 1% of the ttl is not worth a write.
        id, expires_at, ttl = row[0], row[5], row[6]
        if refresh and ttl and expires_at is not None and self.now + ttl * 60e6 - expires_at > ttl * 60e4:
            self.refresh[id] = ttl

    def _vectors(self, n: Name) -> Vectors:
        embedder, dims = self.settings.embedder or 0, self.settings.dims
        return self._part(n, "vectors", lambda: Vectors.load(self.conn, n.first, n.last, embedder, dims))

    def _words(self, n: Name) -> Words:
        return self._part(n, "words", lambda: Words.load(self.conn, n.first, n.last))

    def _facets(self, n: Name) -> Facets:
        return self._part(n, "facets", lambda: Facets.load(self.conn, n.first, n.last))

    def _deadlines(self, n: Name) -> Deadlines:
        return self._part(n, "deadlines", lambda: Deadlines.load(self.conn, n.id))

    def _part(self, n: Name, kind: str, load: Callable[[], P]) -> P:
        try:
            return cast(P, self.settings.cache.get(n.id, kind, n.stamp, load))
        except (ValueError, TypeError, IndexError, OverflowError) as e:
            raise self._corrupt(f"{kind} of {n.path}: {e}") from e

    def _corrupt(self, what: object) -> StoreCorrupt:
        return StoreCorrupt(f"{self.settings.file} is damaged ({what}); it was left as it is")
