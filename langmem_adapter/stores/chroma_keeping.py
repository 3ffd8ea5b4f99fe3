"""Keeping a Chroma database healthy: what is to be embedded again, and what `doctor` reports."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from langmem_adapter.namespaces import Namespace
from langmem_adapter.records import Frozen
from langmem_adapter.stores.base import Kept
from langmem_adapter.stores.chroma_book import Book
from langmem_adapter.stores.chroma_embedder import stored
from langmem_adapter.stores.chroma_engine import Engine
from langmem_adapter.stores.chroma_places import OWN_COLLECTIONS, Place
from langmem_adapter.stores.chroma_rebuild import rebuilt, stray
from langmem_adapter.stores.chroma_rows import Row, head_of, head_record, item_records, owner_of, row_of
from langmem_adapter.stores.chroma_writing import By
from langmem_adapter.stores.values import decode, path
from langmem_adapter.stores.vectors import Matrix
from langmem_adapter.stores.writing import kept_of, texts_at

BATCH = 100
"""Items embedded again at a time."""


class Stale(NamedTuple):
    """An item to embed again."""

    row: Row
    texts: tuple[str, ...]


class Work(NamedTuple):
    """Items of one owner to embed again, by id."""

    place: Place
    owner: str
    ids: list[str]


class Batch(NamedTuple):
    """The same, read."""

    work: Work
    items: tuple[Stale, ...]

    @property
    def texts(self) -> list[str]:
        """All of their texts, in order."""
        return [t for item in self.items for t in item.texts]


def stale(book: Book, place: Place, embedder: int) -> list[Work]:
    """The items of a place without a vector of this embedder."""
    found: dict[str, list[str]] = {}
    for id, m, _, _ in book.chroma.find(place.collection, {"rev": {"$gte": 0}}, ["metadatas"]):
        if "ns" in m and m.get("fields") != "[]" and m.get("embedder") != embedder:
            found.setdefault(m["owner"], []).append(id)
    return [
        Work(place, owner, ids[at : at + BATCH]) for owner, ids in found.items() for at in range(0, len(ids), BATCH)
    ]


def stale_work(engine: Engine) -> list[Work]:
    """All that is to be embedded again; first, collections for vectors of another length are built anew."""
    embedder, book = engine.embedder, engine.book
    if embedder is None:
        return []
    if embedder.dims is None:
        embedder.documents(["a text, to learn how long the vectors are"])
    engine.enrol()
    assert engine.embedder_id is not None
    assert embedder.dims is not None
    work: list[Work] = []
    for place in book.places.all():
        here = place
        if place.dims != embedder.dims:
            with book.shared.writing(book.owners_in(place)):
                here = rebuilt(book, place, embedder.dims)
            engine.shelves.clear()
        work += stale(book, here, engine.embedder_id)
    return work


def read_batch(engine: Engine, work: Work) -> Batch:
    """The items with their texts."""
    book = engine.book
    rows = [row_of(i, m, d) for i, m, d, _ in book.chroma.get(work.place.collection, work.ids)]
    return Batch(work, tuple(Stale(r, _texts(book, r, engine.fields)) for r in rows))


def restore(engine: Engine, batch: Batch, vectors: Matrix) -> None:
    """Write vectors (in the order of all texts) of items that did not change meanwhile."""
    book, owner = engine.book, batch.work.owner
    with book.shared.writing([owner]):
        place = book.places.find(owner) or batch.work.place
        _restore(book, place, batch, vectors, engine.by(engine.now()))


def _texts(book: Book, row: Row, fields: Sequence[str]) -> tuple[str, ...]:
    return texts_at(decode(row.value, book.chroma.name), fields if row.fields is None else json.loads(row.fields))


def _restore(book: Book, place: Place, batch: Batch, vectors: Matrix, by: By) -> None:
    # No version grows, so no commit in flight is in conflict; the stamp does, so that caches are loaded again.
    owner = batch.work.owner
    now = {i: m["rev"] for i, m, _, _ in book.chroma.get(place.collection, [s.row.id for s in batch.items])}
    heads, start, records, touched = book.heads(owner), 0, [], set()
    for row, texts in batch.items:
        own, start = vectors[start : start + len(texts)], start + len(texts)
        if now.get(row.id) == row.rev and row.path in heads:
            new = replace(row, embedder=by.embedder, vectors=len(own))
            value = decode(row.value, book.chroma.name)
            records += item_records(new, owner, value, own if len(own) else None, place.dims)
            touched.add(row.path)
    stamped = {p: replace(heads[p], stamp=heads[p].stamp + 1, writer=by.writer) for p in touched}
    records += [head_record(head, owner, place.dims) for head in stamped.values()]
    if records:
        book.chroma.upsert(place.collection, records)
        book.wrote(owner, stamped)


def kept(book: Book, space: Namespace) -> tuple[int, dict[str, Kept]]:
    """See `MemoryStore.kept`."""
    owner, where = path(owner_of(space)), path(space)
    place, head = book.places.find(owner), book.heads(owner).get(where)
    if place is None or head is None:
        return 0, {}
    found = book.chroma.find(place.collection, {"ns": where}, ["metadatas"])
    rows = [row_of(id, m, None) for id, m, _, _ in found if id not in head.dead]
    return head.latest, {r.key: kept_of(r.fields, r.created, r.updated, r.expires, r.ttl) for r in rows}


class ChromaCheckup(Frozen):
    """What `doctor` found. Sizes are bytes."""

    name: str
    kind: str
    """`memory`, `files` or `server`."""
    chroma_version: str
    store_id: str
    batch: int
    """Items that one upsert, and so one atomic commit, can hold."""
    embedder: str | None
    """Name of the embedder that made the vectors."""
    dims: int | None
    not_embedded: int
    """Items that are to be searched by meaning but have no vector of this embedder: `reindex()`."""
    owners: int
    collections: int
    buckets: int
    """How many of the collections are shared by several owners."""
    namespaces: int
    items: int
    expired: int
    """Items whose time is over, still to be swept."""
    file_bytes: int
    """0 on a server."""
    cache_bytes: int
    """Vectors, words and ranked fields in this process's memory."""
    clashes: tuple[str, ...]
    """Writes of other processes that came between our reading and writing, as far as they were seen."""
    problems: tuple[str, ...]
    """What should be done, in words; empty: nothing."""


def examine(engine: Engine) -> ChromaCheckup:
    """Look at every collection."""
    import chromadb

    book, now, left = engine.book, engine.now(), stray(engine.book)
    meta, made_by, places = book.places.meta(), stored(book.places), book.places.all()
    total: Counter[str] = Counter()
    owners: set[str] = set()
    problems: list[str] = []
    for place in places:
        counted, seen, wrong = _count(book, place, now, made_by.id if made_by else None)
        total += counted
        owners |= seen
        problems += wrong
    if total["not_embedded"]:
        problems.append(f"{total['not_embedded']} items have no vector of the current embedder: call reindex()")
    if meta.get("erasing"):
        problems.append("an erasure was not verified: call finish_erasure()")
    if left:
        problems.append(f"{len(left)} collections of an interrupted rebuild are left: call finish_erasure()")
    if book.shared.clashes:
        problems.append("another process writes to this database: let one process write to an owner")
    if len(owners) > OWN_COLLECTIONS and all(p.id.startswith("o-") for p in places):
        problems.append(f"{len(owners)} owners have a collection each: above {OWN_COLLECTIONS}, let them share")
    return ChromaCheckup(
        name=book.chroma.name,
        kind=book.chroma.kind,
        chroma_version=chromadb.__version__,
        store_id=book.places.store_id,
        batch=book.chroma.room,
        embedder=made_by.name if made_by else None,
        dims=made_by.dims if made_by else None,
        owners=len(owners),
        collections=len(places),
        buckets=sum(not p.id.startswith("o-") for p in places),
        file_bytes=_size(book),
        cache_bytes=engine.shelves.nbytes,
        clashes=tuple(book.shared.clashes),
        problems=tuple(problems),
        **{k: total[k] for k in ("not_embedded", "namespaces", "items", "expired")},
    )


def _count(book: Book, place: Place, now: int, embedder: int | None) -> tuple[Counter[str], set[str], list[str]]:
    """Numbers of one place, its owners, and namespaces whose head does not fit their items."""
    total: Counter[str] = Counter()
    items: Counter[str] = Counter()
    heads: dict[str, Mapping[str, Any]] = {}
    owners: set[str] = set()
    dead: set[str] = set()
    rows = book.chroma.find(place.collection, None)
    for _, m, d, _ in rows:
        owners.add(m["owner"])
        if m.get("is_head"):
            heads[m["head"]] = m
            dead |= set(head_of(m, d).dead)
    for id, m, _, _ in rows:
        if "ns" in m and id not in dead:
            items[m["ns"]] += 1
            total["expired"] += m.get("expires") is not None and m["expires"] <= now
            total["not_embedded"] += embedder is not None and m.get("fields") != "[]" and m.get("embedder") != embedder
    total["items"], total["namespaces"] = sum(items.values()), len(items)
    wrong = [p for p in {*items, *heads} if items[p] != (heads[p]["count"] if p in heads else 0)]
    return total, owners, [f"damaged: {p} does not have the number of items its head says" for p in sorted(wrong)]


def _size(book: Book) -> int:
    folder = book.chroma.path
    return 0 if folder is None else sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
