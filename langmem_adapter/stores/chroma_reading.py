"""Read ops run on a Chroma database: get, search, list namespaces, rank."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

import numpy as np
from langgraph.store.base import GetOp, Item, ListNamespacesOp, SearchItem, SearchOp

from langmem_adapter.namespaces import Namespace
from langmem_adapter.scoring import Floats, as_parts, best, blend
from langmem_adapter.stores.base import Mode, Ranked, RankOp
from langmem_adapter.stores.chroma_book import Book, Heads
from langmem_adapter.stores.chroma_client import Gone
from langmem_adapter.stores.chroma_filters import MOST_PATHS, test_of, where_of
from langmem_adapter.stores.chroma_places import Place
from langmem_adapter.stores.chroma_rows import Head, Row, owner_of, record_id, row_of
from langmem_adapter.stores.chroma_shelf import Shelf, Shelves, load
from langmem_adapter.stores.part import positions
from langmem_adapter.stores.relevance import Scored, relevance
from langmem_adapter.stores.values import decode, matches, namespace, path, when
from langmem_adapter.stores.vectors import Matrix


@dataclass(frozen=True, slots=True)
class Settings:
    """What a snapshot must know of its store."""

    shelves: Shelves
    embedder: int | None
    """Number of the embedder whose vectors count; None: there are none."""
    dims: int
    fields: tuple[str, ...]
    mode: Mode


class Space(NamedTuple):
    """A namespace that has been written to."""

    owner: str
    head: Head

    @property
    def path(self) -> str:
        return self.head.path


class Torn(Exception):
    """What was read does not belong together: somebody wrote in between. Read again."""


@dataclass(slots=True)
class Snapshot:
    """Runs ops and, in `verify`, makes sure that no write came in between."""

    book: Book
    settings: Settings
    queries: Mapping[str, Matrix]
    now: int
    locked: bool = False
    """Whether the caller keeps writers out."""
    refresh: dict[str, list[Row]] = field(default_factory=dict)
    """By owner: items read by ops that want their ttl to start again."""
    _heads: dict[str, Heads] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)
    _rows: dict[str, Row] = field(default_factory=dict)

    def run_all(self, ops: Sequence[Any]) -> list[Any]:
        """The results of the ops, in order."""
        self._fetch_gets([op for op in ops if isinstance(op, GetOp)])
        return [self._run(op) for op in ops]

    def _run(self, op: Any) -> Any:
        if isinstance(op, GetOp):
            return self._get(op)
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, RankOp):
            return self._rank(op)
        return self._list(cast(ListNamespacesOp, op))

    def versions(self, namespaces: Iterable[Namespace]) -> dict[Namespace, int]:
        """The version of each; 0 for one never written to."""
        return {n: space.head.version if (space := self._space(path(n))) else 0 for n in namespaces}

    def verify(self) -> None:
        """Torn unless all that was read is of one moment."""
        for owner in self._heads:
            self._verify(owner)

    def _verify(self, owner: str) -> None:
        if self.locked:
            return
        count = self._counts[owner]
        if count % 2 or self.book.shared.counts[owner] != count:
            raise Torn
        if not self.book.alone:
            now, then = self.book.heads(owner), self._heads[owner]
            if {p: h.mark for p, h in now.items()} != {p: h.mark for p, h in then.items()}:
                raise Torn

    # get and list

    def _fetch_gets(self, ops: Sequence[GetOp]) -> None:
        """Read the items of all gets, with one call for each collection."""
        wanted: dict[str, list[str]] = {}
        for op in ops:
            where = path(op.namespace)
            space = self._space(where)
            if space is not None and space.head.count:
                id = record_id(where, op.key)
                if id not in space.head.dead:
                    wanted.setdefault(self._place(space.owner).collection, []).append(id)
        for collection, ids in wanted.items():
            for id, metadata, document, _ in self.book.chroma.get(collection, list(dict.fromkeys(ids))):
                self._rows[id] = row_of(id, metadata, document)

    def _get(self, op: GetOp) -> Item | None:
        where = path(op.namespace)
        row = self._rows.get(record_id(where, op.key))
        if row is None or not self._alive(row) or (row.path, row.key) != (where, op.key):
            return None
        self._note(row, op.refresh_ttl)
        return Item(
            value=decode(row.value, self.book.chroma.name),
            key=row.key,
            namespace=namespace(row.path),
            created_at=when(row.created),
            updated_at=when(row.updated),
        )

    def _list(self, op: ListNamespacesOp) -> list[Namespace]:
        conditions = [c for c in op.match_conditions or () if c.path]
        plain = [tuple(c.path) for c in conditions if c.match_type == "prefix" and "*" not in c.path]
        # Of several prefixes all must match, so the longest says the most.
        spaces = self._under(max(plain, key=len, default=()))
        fit = sorted(
            (s for s in spaces if all(matches(c, namespace(s.path)) for c in conditions)), key=lambda s: s.path
        )
        if op.max_depth is None:
            return self._living(fit, op.offset, op.limit)
        found = self._living(fit, 0, len(fit))
        cut = list(dict.fromkeys(n[: op.max_depth] for n in found))
        return cut[op.offset : op.offset + op.limit]

    def _living(self, spaces: Sequence[Space], offset: int, limit: int) -> list[Namespace]:
        """A page of the namespaces that have an item which has not expired."""
        found: list[Namespace] = []
        for space in spaces:
            if len(found) >= offset + limit:
                break
            if space.head.lasting or any(self._alive(row) for row in self._rows_of([space], None)):
                found.append(namespace(space.path))
        return found[offset : offset + limit]

    # search

    def _search(self, op: SearchOp) -> list[SearchItem]:
        spaces = self._under(op.namespace_prefix)
        if not spaces or not op.limit:
            return []
        if not op.query:
            rows = self._newest(spaces, op.filter)[op.offset : op.offset + op.limit]
            return self._items([(row, None) for row in rows], op.refresh_ttl)
        return self._items(self._ranked(op, spaces), op.refresh_ttl)

    def _ranked(self, op: SearchOp, spaces: Sequence[Space]) -> list[tuple[Row, float | None]]:
        """One page of items with their scores: by relevance, then the unscored ones, newest first."""
        rows = self._newest(spaces, op.filter)
        admitted = {row.id: row for row in rows}
        shelves = [self._shelf(s) for s in spaces]
        scored = self._relevance(shelves, op.query or "", self.settings.mode)
        names = [shelf.names[int(i)] for shelf, s in zip(shelves, scored, strict=True) for i in s.ids]
        score = np.concatenate([s.score for s in scored])
        keep = np.concatenate([s.has for s in scored])
        keep &= np.array([n in admitted for n in names], dtype=bool)
        top = best(score, keep, -np.inf, op.offset + op.limit)[op.offset :]
        page: list[tuple[Row, float | None]] = [(admitted[names[i]], min(1.0, max(0.0, float(score[i])))) for i in top]
        if len(page) < op.limit:
            known = {names[i] for i in np.flatnonzero(keep)}
            rest = [row for row in rows if row.id not in known]
            skip = max(0, op.offset - len(known))
            page += [(row, None) for row in rest[skip : skip + op.limit - len(page)]]
        return page

    def _newest(self, spaces: Sequence[Space], filter: Mapping[str, Any] | None) -> list[Row]:
        """Live items that meet the filter, last updated first; their values only if the filter needed them."""
        test = test_of(filter)
        rows = [row for row in self._rows_of(spaces, filter) if self._alive(row)]
        if test is not None:
            rows = [row for row in rows if test(decode(row.value, self.book.chroma.name))]
        return sorted(rows, key=lambda row: (row.updated, row.seq, row.path), reverse=True)

    def _rows_of(self, spaces: Sequence[Space], filter: Mapping[str, Any] | None) -> list[Row]:
        """The items that meet what the database can check of the filter."""
        include = ["metadatas", "documents"] if filter else ["metadatas"]
        by_collection: dict[str, list[Space]] = {}
        for space in spaces:
            if space.head.count:
                by_collection.setdefault(self._place(space.owner).collection, []).append(space)
        found: list[Row] = []
        for collection, here in by_collection.items():
            dead = {id for space in here for id in space.head.dead}
            for at in range(0, len(here), MOST_PATHS):
                where = where_of([s.path for s in here[at : at + MOST_PATHS]], filter)
                rows = self.book.chroma.find(collection, where, include)
                found += [row_of(i, m, d) for i, m, d, _ in rows if i not in dead]
        return found

    def _items(self, page: Sequence[tuple[Row, float | None]], refresh: bool) -> list[SearchItem]:
        full = self._with_values([row for row, _ in page])
        for row in full:
            self._note(row, refresh)
        return [
            SearchItem(
                namespace(row.path),
                row.key,
                decode(row.value, self.book.chroma.name),
                when(row.created),
                when(row.updated),
                score,
            )
            for row, (_, score) in zip(full, page, strict=True)
        ]

    def _with_values(self, rows: Sequence[Row]) -> list[Row]:
        missing: dict[str, list[str]] = {}
        for row in rows:
            if not row.value:
                missing.setdefault(self._place(path(owner_of(namespace(row.path)))).collection, []).append(row.id)
        values: dict[str, str] = {}
        for collection, ids in missing.items():
            values |= {i: d or "" for i, _, d, _ in self.book.chroma.get(collection, ids, ["documents"])}
        if any(not row.value and row.id not in values for row in rows):
            raise Torn  # deleted since it was found
        return [row if row.value else replace(row, value=values[row.id]) for row in rows]

    # rank

    def _rank(self, op: RankOp) -> list[Ranked]:
        paths = dict.fromkeys(path(n) for n in op.namespaces)
        spaces = [s for p in paths if (s := self._space(p)) is not None and s.head.count]
        if not spaces or not op.limit:
            return []
        shelves = [self._shelf(s) for s in spaces]
        relevances = self._aligned(shelves, op)
        keep = np.concatenate(
            [s.facets.columns.mask(op.where) & s.deadlines.alive(s.facets.ids, self.now) for s in shelves]
        )
        parts = np.concatenate(
            [s.facets.columns.parts(r, op.where.now) for s, r in zip(shelves, relevances, strict=True)]
        )
        scores = blend(parts, op.weights)
        names = [(k, int(i)) for k, s in enumerate(shelves) for i in s.facets.ids]
        top = best(scores, keep, op.floor, op.limit)
        rows = [self._stub(spaces[names[i][0]], shelves[names[i][0]].names[names[i][1]]) for i in top]
        items = self._items([(row, float(scores[i])) for row, i in zip(self._read(rows), top, strict=True)], False)
        return [Ranked(item, float(scores[i]), as_parts(parts[i])) for item, i in zip(items, top, strict=True)]

    def _stub(self, space: Space, id: str) -> tuple[str, str]:
        return self._place(space.owner).collection, id

    def _read(self, wanted: Sequence[tuple[str, str]]) -> list[Row]:
        found: dict[str, Row] = {}
        for collection in dict.fromkeys(c for c, _ in wanted):
            ids = [id for c, id in wanted if c == collection]
            found |= {i: row_of(i, m, d) for i, m, d, _ in self.book.chroma.get(collection, ids)}
        if any(id not in found for _, id in wanted):
            raise Torn
        return [found[id] for _, id in wanted]

    def _aligned(self, shelves: Sequence[Shelf], op: RankOp) -> list[Floats]:
        if not op.query:
            return [np.zeros(len(s.facets.ids)) for s in shelves]
        found = []
        for shelf, s in zip(shelves, self._relevance(shelves, op.query, op.mode), strict=True):
            aligned = np.zeros(len(shelf.facets.ids))
            aligned[positions(shelf.facets.ids, s.ids)] = np.where(s.has, np.clip(s.score, 0.0, 1.0), 0.0)
            found.append(aligned)
        return found

    def _relevance(self, shelves: Sequence[Shelf], query: str, mode: Mode) -> list[Scored]:
        vector = self.queries.get(query) if self.settings.embedder is not None else None
        return relevance(
            len(shelves),
            query,
            vector,
            mode,
            words=lambda: [s.words for s in shelves],
            cosines=lambda vector: [s.vectors.cosines(vector) for s in shelves],
        )

    # heads, rows and shelves

    def heads(self, owner: str) -> Heads:
        """The heads of an owner, the same throughout this snapshot."""
        if owner not in self._heads:
            self._counts[owner] = self.book.shared.counts[owner]
            self._heads[owner] = self.book.heads(owner)
        return self._heads[owner]

    def _space(self, where: str) -> Space | None:
        owner = path(owner_of(namespace(where)))
        head = self.heads(owner).get(where)
        return None if head is None else Space(owner, head)

    def _under(self, prefix: Sequence[str]) -> list[Space]:
        start = path(prefix)
        return [
            Space(owner, head)
            for owner in self.book.places.under(prefix)
            for p, head in self.heads(owner).items()
            if head.count and (not prefix or p == start or p.startswith(f"{start}."))
        ]

    def _place(self, owner: str) -> Place:
        place = self.book.places.find(owner)
        if place is None:
            raise Gone(f"{self.book.chroma.name}: the registry does not know {owner} any more")
        return place

    def _shelf(self, space: Space) -> Shelf:
        return self.settings.shelves.get(space.path, space.head.mark, lambda: self._load(space))

    def _load(self, space: Space) -> Shelf:
        collection, settings = self._place(space.owner).collection, self.settings
        shelf = load(
            self.book.chroma,
            collection,
            space.path,
            space.head.dead,
            embedder=settings.embedder,
            dims=settings.dims,
            fields=settings.fields,
        )
        self._verify(space.owner)  # before it is kept
        return shelf

    def _alive(self, row: Row) -> bool:
        return row.expires is None or row.expires > self.now

    def _note(self, row: Row, refresh: bool) -> None:
        # A refresh that would move the deadline by less than 1% of the ttl is not worth a write.
        if refresh and row.ttl and row.expires is not None and self.now + row.ttl * 60e6 - row.expires > row.ttl * 60e4:
            self.refresh.setdefault(path(owner_of(namespace(row.path))), []).append(row)
