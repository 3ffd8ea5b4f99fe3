"""Read ops run inside one transaction: get, search, list namespaces, rank.

Nothing is cached: the database computes the cosine and finds the words of the query, and sends a few numbers for
each of the owner's items; the formula is `scoring`'s. So several servers can share one database, and a search never
sees anything but its snapshot.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from langgraph.store.base import GetOp, Item, ListNamespacesOp, SearchItem, SearchOp

from langmem_adapter.namespaces import Namespace
from langmem_adapter.scoring import Bools, Floats, as_parts, best, blend
from langmem_adapter.stores.base import Mode, Ranked, RankOp
from langmem_adapter.stores.facets import Facets
from langmem_adapter.stores.plan import Plan
from langmem_adapter.stores.postgres_filters import Condition, compile_filter
from langmem_adapter.stores.postgres_owners import distinct, owner_of, owner_under
from langmem_adapter.stores.postgres_plan import scope
from langmem_adapter.stores.postgres_schema import Connection, Schema, run
from langmem_adapter.stores.postgres_words import TF, bm25, query_of
from langmem_adapter.stores.postgres_writing import digest
from langmem_adapter.stores.relevance import TEXT_WEIGHT
from langmem_adapter.stores.values import decode, matches, namespace, path, when
from langmem_adapter.stores.vectors import Matrix

_ALIVE = "(i.expires_at IS NULL OR i.expires_at > %s)"
_COLUMNS = "n.path, i.owner, i.namespace, i.id, i.key, i.value::text, i.created_at, i.updated_at, i.expires_at, i.ttl"
_WANTED = "JOIN unnest(%s::text[], %s::text[]) AS w(owner, path) ON n.owner = w.owner AND n.path = w.path"
# A join does not tell the planner which partitions it can leave out, so each table's owners are also named by value.
_OWNED = "{}.owner = ANY(%s::text[])"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a snapshot must know of its store."""

    name: str
    schema: Schema
    embedder: int | None
    """Number of the embedder whose vectors count; None: there are none."""
    mode: Mode
    language: str


class Hits(NamedTuple):
    """Items in the order of their ids, with the query's relevance. `has` False: the query says nothing about it."""

    places: list[tuple[str, int, int]]
    """Path, namespace and id of each."""
    facets: Facets
    score: Floats
    has: Bools


@dataclass(slots=True)
class Snapshot:
    """Runs ops on a connection that is inside a transaction. `queries` holds the vectors of the ops' queries."""

    conn: Connection
    settings: Settings
    queries: Mapping[str, Matrix]
    now: int
    refresh: dict[tuple[str, int, int], int] = field(default_factory=dict)
    """New deadlines of items read by ops that want their ttl to start again."""

    @property
    def _s(self) -> str:
        return self.settings.schema.name

    def run(self, plan: Plan) -> tuple[list[Any], dict[Namespace, int]]:
        """The results of a plan's reads, in order, and its versions."""
        results: list[Any] = [None] * plan.size
        gets = [(i, op) for i, op in plan.reads if isinstance(op, GetOp)]
        for (i, _), item in zip(gets, self._get([op for _, op in gets]), strict=True):
            results[i] = item
        for i, op in plan.reads:
            if isinstance(op, SearchOp):
                results[i] = self._search(op)
            elif isinstance(op, RankOp):
                results[i] = self._rank(op)
            elif not isinstance(op, GetOp):
                results[i] = self._list(cast(ListNamespacesOp, op))
        return results, self.versions(plan.versions)

    def versions(self, namespaces: Iterable[Namespace]) -> dict[Namespace, int]:
        """The version of each; 0 for one never written to."""
        wanted = {path(ns): ns for ns in namespaces}
        if not wanted:
            return {}
        names = _exactly(wanted.values())
        sql = f"SELECT n.path, n.version FROM {self._s}.namespaces n {_WANTED} WHERE {_OWNED.format('n')}"
        found = dict(run(self.conn, sql, (*names, distinct(names[0]))))
        return {ns: found.get(p, 0) for p, ns in wanted.items()}

    # get and list

    def _get(self, ops: Sequence[GetOp]) -> list[Item | None]:
        """One round trip for all of them."""
        if not ops:
            return []
        names = _exactly(op.namespace for op in ops)
        owners = distinct(names[0])
        rows = run(
            self.conn,
            f"SELECT w.at, {_COLUMNS} FROM unnest(%s::text[], %s::text[], %s::bytea[]) WITH ORDINALITY "
            f"AS w(owner, path, digest, at) JOIN {self._s}.namespaces n ON n.owner = w.owner AND n.path = w.path "
            f"JOIN {self._s}.items i ON i.owner = n.owner AND i.namespace = n.id AND i.digest = w.digest "
            f"WHERE {_OWNED.format('n')} AND {_OWNED.format('i')} AND {_ALIVE}",
            (*names, [digest(op.key) for op in ops], owners, owners, self.now),
        )
        found: list[Item | None] = [None] * len(ops)
        for at, *row in rows:
            self._note(row, ops[at - 1].refresh_ttl)
            where, _, _, _, key, value, created, updated, _, _ = row
            found[at - 1] = Item(
                value=decode(value, self.settings.name),
                key=key,
                namespace=namespace(where),
                created_at=when(created),
                updated_at=when(updated),
            )
        return found

    def _list(self, op: ListNamespacesOp) -> list[Namespace]:
        conditions = [c for c in op.match_conditions or () if c.path]
        tests = [under(scope(op))]
        tests += [under(c.path) for c in conditions if c.match_type == "prefix" and "*" not in c.path]
        rest = [c for c in conditions if c.match_type != "prefix" or "*" in c.path]
        paged = not rest and op.max_depth is None
        rows = run(
            self.conn,
            f"SELECT n.path FROM {self._s}.namespaces n WHERE {' AND '.join(sql for sql, _ in tests)} AND EXISTS "
            f"(SELECT 1 FROM {self._s}.items i WHERE i.owner = n.owner AND i.namespace = n.id AND {_ALIVE}) "
            "ORDER BY n.path LIMIT %s OFFSET %s",
            (*(p for _, ps in tests for p in ps), self.now, *((op.limit, op.offset) if paged else (None, 0))),
        )
        found = [namespace(p) for (p,) in rows]
        if paged:
            return found
        found = [ns for ns in found if all(matches(c, ns) for c in rest)]
        if op.max_depth is not None:
            found = list(dict.fromkeys(ns[: op.max_depth] for ns in found))
        return found[op.offset : op.offset + op.limit]

    # search

    def _search(self, op: SearchOp) -> list[SearchItem]:
        if not op.limit:
            return []
        condition = _both(under(op.namespace_prefix), compile_filter(op.filter))
        if not op.query:
            rows = self._newest(condition, op.limit, op.offset)
            return [self._item(row, None, op.refresh_ttl) for row in rows]
        owner = owner_under(op.namespace_prefix)
        hits = self._hits("", condition, op.query, self.settings.mode, () if owner is None else [owner])
        top = best(hits.score, hits.has, -np.inf, op.offset + op.limit)[op.offset :]
        page = self._items([hits.places[i] for i in top], op.refresh_ttl, hits.score[top].clip(0.0, 1.0))
        if len(page) < op.limit:
            # Those the query says nothing about come after all others.
            known = [id for (_, _, id), has in zip(hits.places, hits.has.tolist(), strict=True) if has]
            rest = _both(condition, ("NOT (i.id = ANY(%s::bigint[]))", [known]))
            rows = self._newest(rest, op.limit - len(page), max(0, op.offset - len(known)))
            page += [self._item(row, None, op.refresh_ttl) for row in rows]
        return page

    def _newest(self, condition: Condition, limit: int, offset: int) -> list[tuple[Any, ...]]:
        """Live items that meet the condition, last updated first."""
        sql, params = condition
        return run(
            self.conn,
            f"SELECT {_COLUMNS} {self._alive('')} AND {sql} ORDER BY i.updated_at DESC, i.id DESC LIMIT %s OFFSET %s",
            (self.now, *params, limit, offset),
        )

    def _alive(self, wanted: str) -> str:
        return (
            f"FROM {self._s}.namespaces n {wanted} JOIN {self._s}.items i ON i.owner = n.owner AND i.namespace = n.id "
            f"WHERE {_ALIVE}"
        )

    def _items(
        self, places: Sequence[tuple[str, int, int]], refresh: bool, scores: Sequence[float] | Floats
    ) -> list[SearchItem]:
        if not places:
            return []
        paths, namespaces, ids = zip(*places, strict=True)
        owners = [owner_of(namespace(p)) for p in paths]
        rows = run(
            self.conn,
            f"SELECT {_COLUMNS.replace('n.path', 'w.path')} FROM unnest(%s::text[], %s::text[], %s::bigint[], "
            f"%s::bigint[]) WITH ORDINALITY AS w(owner, path, namespace, id, at) JOIN {self._s}.items i ON "
            "i.owner = w.owner AND i.namespace = w.namespace AND i.id = w.id "
            f"WHERE {_OWNED.format('i')} ORDER BY w.at",
            (owners, list(paths), list(namespaces), list(ids), distinct(owners)),
        )
        return [self._item(row, float(score), refresh) for row, score in zip(rows, scores, strict=True)]

    def _item(self, row: Sequence[Any], score: float | None, refresh: bool) -> SearchItem:
        self._note(row, refresh)
        where, _, _, _, key, value, created, updated, _, _ = row
        return SearchItem(namespace(where), key, decode(value, self.settings.name), when(created), when(updated), score)

    def _note(self, row: Sequence[Any], refresh: bool) -> None:
        # A refresh that would move the deadline by less than 1% of the ttl is not worth a write.
        _, owner, of, id, _, _, _, _, expires_at, ttl = row
        if refresh and ttl and expires_at is not None and self.now + ttl * 60e6 - expires_at > ttl * 60e4:
            self.refresh[owner, of, id] = self.now + round(ttl * 60e6)

    # rank

    def _rank(self, op: RankOp) -> list[Ranked]:
        if not op.namespaces or not op.limit:
            return []
        names = _exactly(dict.fromkeys(op.namespaces))
        owners = distinct(names[0])
        condition = f"{_OWNED.format('n')} AND {_OWNED.format('i')}", [owners, owners]
        hits = self._hits(_WANTED, condition, op.query or "", op.mode, owners, names)
        relevance = np.where(hits.has, hits.score.clip(0.0, 1.0), 0.0)
        parts = hits.facets.columns.parts(relevance, op.where.now)
        scores = blend(parts, op.weights)
        top = best(scores, hits.facets.columns.mask(op.where), op.floor, op.limit)
        items = self._items([hits.places[i] for i in top], False, scores[top])
        return [Ranked(item, float(scores[i]), as_parts(parts[i])) for item, i in zip(items, top, strict=True)]

    # relevance

    def _hits(
        self,
        wanted: str,
        condition: Condition,
        query: str,
        mode: Mode,
        owners: Sequence[str],
        names: Sequence[Any] = (),
    ) -> Hits:
        """All live items of the scope, with what the query says about them. `owners`: whose they are; (): anyone's."""
        vector = self.queries.get(query) if query and mode != "text" and self.settings.embedder is not None else None
        words: list[str] = []
        language = "simple"
        if query and mode != "vector":
            language, words = query_of(query, self.settings.language, self.settings.schema.configurations)
        sql, params = condition
        found, cosine = _words_sql(words, language), self._cosine_sql(vector, owners)
        rows = run(
            self.conn,
            "WITH c AS MATERIALIZED (SELECT n.path, i.owner, i.namespace, i.id, i.state, i.topic, i.kind, i.numbers, "
            f"i.words, i.language {self._alive(wanted)} AND {sql}){found.tables} "
            "SELECT c.path, c.namespace, c.id, c.state, coalesce(c.topic, 'general'), c.kind, c.numbers, "
            f"{found.columns}, {cosine.columns} FROM c {found.joins} {cosine.joins} ORDER BY c.id",
            (*names, self.now, *params, *found.params, *cosine.params),
        )
        return _scored(rows, text=bool(words), vector=vector is not None)

    def _cosine_sql(self, vector: Matrix | None, owners: Sequence[str]) -> "_Sql":
        if vector is None:
            return _Sql("", "NULL::float8", "", [])
        # An item with several vectors counts by its best.
        join = (
            f"LEFT JOIN LATERAL (SELECT max({self._s}.cosine(v.vector, %s::real[])) AS cosine "
            f"FROM {self._s}.vectors v WHERE v.owner = c.owner AND v.namespace = c.namespace AND v.item = c.id "
            f"AND v.embedder = %s AND {_OWNED.format('v') if owners else 'true'}) v ON true"
        )
        params = [vector.tolist(), self.settings.embedder, *([list(owners)] if owners else ())]
        return _Sql("", "v.cosine", join, params)


class _Sql(NamedTuple):
    """What a query for candidates `c` gets from one side of the relevance."""

    tables: str
    """Further common table expressions."""
    columns: str
    joins: str
    params: list[Any]


def under(prefix: Sequence[str]) -> Condition:
    """A condition on `namespaces n`: it is the prefix or below it, by whole labels."""
    if not prefix:
        return "true", []
    start, owner = path(prefix), owner_under(prefix)
    sql = "(n.path = %s OR (n.path > %s AND n.path < %s))"  # '/' follows '.'
    params = [start, f"{start}.", f"{start}/"]
    return (sql, params) if owner is None else (f"(n.owner = %s AND {sql})", [owner, *params])


def _both(a: Condition, b: Condition) -> Condition:
    return f"{a[0]} AND {b[0]}", [*a[1], *b[1]]


def _exactly(namespaces: Iterable[Sequence[str]]) -> list[list[str]]:
    names = list(namespaces)
    return [[owner_of(ns) if ns else "" for ns in names], [path(ns) for ns in names]]


def _words_sql(words: Sequence[str], language: str) -> _Sql:
    """The number of the query's words, and for each candidate its length and its hits (see `postgres_words.TF`)."""
    if not words:
        return _Sql("", "0, 0, NULL::int[]", "", [])
    # A query is too short to trust its language: each word is stemmed in every language that the items have.
    tables = (
        ", asked AS MATERIALIZED (SELECT t.lexeme, min(w.n) AS n FROM (SELECT DISTINCT language FROM c) l "
        "CROSS JOIN unnest(%s::text[]) WITH ORDINALITY AS w(word, n) "
        "CROSS JOIN LATERAL unnest(to_tsvector(l.language::regconfig, w.word)) t "
        "WHERE to_tsvector(%s::regconfig, w.word) <> '' GROUP BY t.lexeme), "
        "query AS MATERIALIZED (SELECT string_agg(quote_literal(lexeme), '|')::tsquery AS q, "
        "count(DISTINCT n) AS terms FROM asked), "
        "hits AS MATERIALIZED (SELECT t.id, array_agg((a.n * "
        f"{TF} + least(coalesce(cardinality(t.positions), 1), {TF - 1}))::int) AS hits "
        # OFFSET 0: join once, not once for every item.
        "FROM (SELECT c.id, t.lexeme, t.positions FROM c CROSS JOIN LATERAL unnest(c.words) AS t "
        "WHERE c.words @@ (SELECT q FROM query) OFFSET 0) t JOIN asked a ON a.lexeme = t.lexeme GROUP BY t.id)"
    )
    columns = "(SELECT terms FROM query), length(c.words), h.hits"
    return _Sql(tables, columns, "LEFT JOIN hits h ON h.id = c.id", [list(words), language])


def _scored(rows: Sequence[tuple[Any, ...]], *, text: bool, vector: bool) -> Hits:
    """The rows of one query with words and vectors in one score; vectors alone if no item has a word of it."""
    n = len(rows)
    paths, namespaces, ids, states, topics, kinds, numbers, terms, lengths, found, cosines = (
        zip(*rows, strict=True) if rows else [()] * 11
    )
    facets = Facets.of(list(zip(ids, states, topics, kinds, numbers, strict=True)))
    places = list(zip(paths, namespaces, ids, strict=True))
    cosine: npt.NDArray[np.float64] = np.array(cosines, dtype=np.float64)  # None becomes NaN
    seen = ~np.isnan(cosine)
    cosine = np.where(seen, cosine, 0.0)
    words = bm25(found, np.array(lengths, dtype=np.int64), terms[0]) if text and n else np.zeros(n)
    if not vector:
        return Hits(places, facets, words, words > 0)
    if not words.any():
        return Hits(places, facets, cosine, seen)
    return Hits(places, facets, TEXT_WEIGHT * words + (1 - TEXT_WEIGHT) * np.maximum(0.0, cosine), seen | (words > 0))
