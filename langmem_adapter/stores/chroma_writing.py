"""What a commit changes in one owner's collection: decided here, purely; carried out by `apply`.

One upsert holds the items, their further vectors and the heads: it is the commit point. Deleting is a separate call
of Chroma's, so the head names the deleted records in that upsert, and readers leave them out from then on.
"""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from langmem_adapter.errors import Conflict, StoreError
from langmem_adapter.namespaces import Namespace
from langmem_adapter.stores.chroma_book import Book, Heads
from langmem_adapter.stores.chroma_places import Place
from langmem_adapter.stores.chroma_rows import Head, Record, Row, head_record, item_records, owner_of, record_id, row_of
from langmem_adapter.stores.chroma_shelf import Changed
from langmem_adapter.stores.part import Change
from langmem_adapter.stores.values import namespace, path
from langmem_adapter.stores.writing import Prepared

logger = logging.getLogger("langmem_adapter")


@dataclass(slots=True)
class Written:
    """The changes of one owner, to be applied together."""

    owner: str
    place: Place
    records: list[Record] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    """Records to delete afterwards."""
    heads: Heads = field(default_factory=dict)
    changed: list[Changed] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class By:
    """Who writes, and when."""

    writer: str
    embedder: int | None
    now: int


def by_owner(prepared: Iterable[Prepared]) -> dict[str, list[Prepared]]:
    """The puts and deletes of each owner."""
    groups: dict[str, list[Prepared]] = {}
    for p in prepared:
        groups.setdefault(path(owner_of(namespace(p.path))), []).append(p)
    return groups


def check_versions(book: Book, expect: Mapping[Namespace, int]) -> None:
    """Conflict unless every namespace is still at the version expected."""
    for wanted, version in expect.items():
        head = book.heads(path(owner_of(wanted))).get(path(wanted), Head(path(wanted)))
        if head.version != version:
            raise Conflict(
                f"{wanted} is at version {head.version}, not {version}: another writer changed it; read it again"
            )


def stored_rows(book: Book, place: Place, heads: Heads, group: Sequence[Prepared]) -> dict[str, Row]:
    """The items that these puts and deletes will replace, without their values."""
    dead = {id for head in heads.values() for id in head.dead}
    ids = [record_id(p.path, p.key) for p in group if p.path in heads and heads[p.path].count]
    found = book.chroma.get(place.collection, ids, ["metadatas"])
    return {i: row_of(i, m, None) for i, m, _, _ in found if i not in dead}


def written(
    owner: str, place: Place, group: Sequence[Prepared], old: Mapping[str, Row], heads: Heads, by: By
) -> Written:
    """What the puts and deletes of one owner come to."""
    done = Written(owner, place)
    spaces: dict[str, list[Prepared]] = {}
    for p in group:
        spaces.setdefault(p.path, []).append(p)
    for where, ps in spaces.items():
        _Space(done, heads.get(where, Head(where)), old, by).write(ps)
    done.records += [head_record(head, owner, place.dims) for head in done.heads.values()]
    return done


class _Space:
    """The changes of one namespace."""

    def __init__(self, done: Written, head: Head, old: Mapping[str, Row], by: By) -> None:
        self._done = done
        self._before = head
        self._head = replace(head, dead=(), writer=by.writer)
        self._old = old
        self._by = by
        self._dead: list[str] = []
        self._changes: list[Change] = []
        self._names: dict[int, str] = {}

    def write(self, group: Sequence[Prepared]) -> None:
        """Note the records, the new head and what caches need to know."""
        for p in group:
            id = record_id(p.path, p.key)
            if p.value is None:
                self._delete(self._old.get(id))
            else:
                self._put(id, p, self._old.get(id))
        if not self._changes:
            return
        head = replace(self._head, stamp=self._before.stamp + len(self._changes), dead=tuple(self._dead))
        self._done.heads[head.path] = head
        self._done.gone += self._dead
        self._done.changed.append(Changed(head.path, self._before.mark, head.mark, self._changes, self._names))

    def _delete(self, row: Row | None) -> None:
        if row is None:
            return
        h = self._head
        self._head = replace(h, version=h.version + 1, count=h.count - 1, lasting=h.lasting - row.lasting)
        self._dead += [row.id, *row.more]
        self._changes.append(Change(row.seq, None, None, None, None))

    def _put(self, id: str, p: Prepared, old: Row | None) -> None:
        assert p.value is not None
        h, by = self._head, self._by
        # Strictly growing in a namespace, so that "newest first" survives a clock that steps back.
        latest = max(by.now, h.latest + 1)
        if p.times is not None:
            latest = max(h.latest, p.times[1])
        expired = old is not None and old.expires is not None and old.expires <= by.now
        created = latest if old is None or expired else old.created
        expires = None if p.ttl is None else by.now + round(p.ttl * 60e6)
        created, updated, expires = p.times or (created, latest, expires)
        row = Row(
            id=id,
            path=p.path,
            key=p.key,
            value=p.value,
            seq=h.version + 1 if old is None else old.seq,
            rev=h.version + 1,
            created=created,
            updated=updated,
            expires=expires,
            ttl=p.ttl,
            fields=p.fields,
            embedder=by.embedder if p.fields != "[]" else None,
            vectors=0 if p.vectors is None else len(p.vectors),
        )
        self._head = replace(
            h,
            version=h.version + 1,
            latest=latest,
            count=h.count + (old is None),
            lasting=h.lasting + row.lasting - (old is not None and old.lasting),
        )
        if old is not None:
            self._done.gone += sorted(set(old.more) - set(row.more))  # invalid anyway: their `rev` is another
        owner, dims = self._done.owner, self._done.place.dims
        self._done.records += item_records(row, owner, json.loads(p.value), p.vectors, dims)
        self._changes.append(Change(row.seq, p.row, p.words, p.vectors, row.expires))
        self._names[row.seq] = id


def apply(book: Book, done: Written) -> None:
    """Write the changes of one owner; Conflict if another process wrote at the same time."""
    if not done.heads:
        return
    book.chroma.upsert(done.place.collection, done.records)
    if done.gone:
        try:
            book.chroma.delete(done.place.collection, done.gone)
        except StoreError:
            # They are deleted for every reader; the next commit there deletes the bytes.
            logger.warning("deleted items of %s are still in Chroma", done.owner, exc_info=True)
        else:
            done.heads = {p: replace(h, dead=()) for p, h in done.heads.items()}
    lost = book.wrote(done.owner, done.heads)
    if lost:
        raise Conflict(f"another process wrote {lost} at the same time; read it again, and see doctor()")


def finish_deletes(book: Book, place: Place, heads: Iterable[Head]) -> None:
    """Delete what an earlier commit named dead: its keys may now be put again."""
    dead = [id for head in heads for id in head.dead]
    if dead:
        book.chroma.delete(place.collection, dead)


def refresh(book: Book, owner: str, rows: Sequence[Row], by: By) -> list[Changed]:
    """Start the ttl of these items again, unless they expired or changed meanwhile. No version grows."""
    place, heads = book.places.find(owner), book.heads(owner)
    if place is None:
        return []
    dead = {id for head in heads.values() for id in head.dead}
    wanted = {row.id: row for row in rows if row.id not in dead}
    now = {i: row_of(i, m, None) for i, m, _, _ in book.chroma.get(place.collection, list(wanted), ["metadatas"])}
    moved = [r for i, r in now.items() if r.ttl == wanted[i].ttl and r.expires is not None and r.expires > by.now]
    if not moved:
        return []
    changes: dict[str, dict[str, object]] = {r.id: {"expires": by.now + round((r.ttl or 0) * 60e6)} for r in moved}
    stamped = {p: replace(heads[p], stamp=heads[p].stamp + 1, writer=by.writer) for p in {r.path for r in moved}}
    for head in stamped.values():
        changes[head_record(head, owner, 1).id] = {"stamp": head.stamp, "writer": head.writer}
    book.chroma.update(place.collection, changes)
    book.wrote(owner, stamped)
    at = {p: {r.seq: int(str(changes[r.id]["expires"])) for r in moved if r.path == p} for p in stamped}
    return [Changed(p, heads[p].mark, h.mark, (), {}, at[p]) for p, h in stamped.items()]


def expired(book: Book, place: Place, now: int) -> dict[str, list[Prepared]]:
    """Deletes of all items whose time is over, by owner."""
    found: dict[str, list[Prepared]] = {}
    for _, m, _, _ in book.chroma.find(place.collection, {"expires": {"$lte": now}}, ["metadatas"]):
        found.setdefault(m["owner"], []).append(Prepared(m["ns"], m["key"]))
    return found
