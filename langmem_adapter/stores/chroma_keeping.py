"""Keeping a Chroma database healthy: what has expired."""

from langmem_adapter.stores.chroma_book import Book
from langmem_adapter.stores.chroma_places import Place
from langmem_adapter.stores.writing import Prepared


def expired(book: Book, place: Place, now: int) -> dict[str, list[Prepared]]:
    """Deletes of all items whose time is over, by owner."""
    found: dict[str, list[Prepared]] = {}
    for _, m, _, _ in book.chroma.find(place.collection, {"expires": {"$lte": now}}, ["metadatas"]):
        found.setdefault(m["owner"], []).append(Prepared(m["ns"], m["key"]))
    return found
