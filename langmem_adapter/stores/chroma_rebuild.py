"""Building a place's collection anew: without what was deleted, or for vectors of another length."""

from dataclasses import replace
from typing import Any

import numpy as np

from langmem_adapter.stores.chroma_book import Book
from langmem_adapter.stores.chroma_places import Place
from langmem_adapter.stores.chroma_rows import Head, Record, dummy, head_of, head_record

_EVERYTHING = ("metadatas", "documents", "embeddings")


def rebuilt(book: Book, place: Place, dims: int) -> Place:
    """The place with a new collection; call it while nobody else writes there.

    If `dims` is another, all vectors are left out, as if no embedder had seen the items: `reindex` makes new ones.
    """

    def fill(new: Place) -> None:
        dead = {id for _, m, d, _ in book.chroma.find(place.collection, {"is_head": True}) for id in head_of(m, d).dead}
        for page in book.chroma.pages(place.collection, None, _EVERYTHING):
            records = [_copied(row, place, new) for row in page if row[0] not in dead]
            kept = [r for r in records if r is not None]
            if kept:
                book.chroma.upsert(new.collection, kept)

    new = book.places.move(place, dims, fill=fill)
    with book.shared.lock:
        book.shared.heads.clear()
    book.chroma.drop(place.collection)
    return new


def stray(book: Book) -> list[str]:
    """Collections that a rebuild left behind when its process died."""
    known = {p.collection for p in book.places.all()}
    return [n for n in book.chroma.names() if book.places.is_place(n) and n not in known]


def _copied(row: tuple[str, dict[str, Any], str | None, Any], old: Place, new: Place) -> Record | None:
    id, metadata, document, vector = row
    same = old.dims == new.dims
    if metadata.get("is_head"):
        head: Head = head_of(metadata, document)
        # Whoever cached vectors of the old length must read again.
        return head_record(replace(head, dead=(), stamp=head.stamp + (not same)), metadata["owner"], new.dims)
    if same:
        return Record(id, np.asarray(vector, dtype=np.float32), document or "", metadata)
    if "of" in metadata:
        return None
    bare = {k: v for k, v in metadata.items() if k != "embedder"} | {"vectors": 0, "has_vector": False}
    return Record(id, dummy(new.dims), document or "", bare)
