"""Where a Chroma store stands with its embedder."""

from langmem_adapter.errors import EmbedderMismatch
from langmem_adapter.stores import embedder as embedders
from langmem_adapter.stores.chroma_places import Places
from langmem_adapter.stores.embedder import Embedder, Stored


def meet(places: Places, embedder: Embedder | None, name: str, *, replace: bool) -> int | None:
    """The number of our embedder in the database; None if there is none of it yet.

    EmbedderMismatch if the vectors there are another's, unless `replace`: then ours is the next number.
    """
    found = stored(places)
    if found is None or embedder is None:
        return None
    try:
        embedders.check(found, embedder, name)
    except EmbedderMismatch:
        if not replace:
            raise
        return enrol(places, embedder, found.id + 1)
    embedder.dims = found.dims
    return found.id


def stored(places: Places) -> Stored | None:
    """What the database says of its embedder; None if it has no vectors yet."""
    found = places.meta().get("embedder")
    return None if found is None else Stored(int(found["id"]), str(found["name"]), int(found["dims"]))


def enrol(places: Places, embedder: Embedder, number: int) -> int:
    """Write down that vectors numbered so are this embedder's; the number."""
    places.set_meta(embedder={"id": number, "name": embedder.name, "dims": embedder.dims})
    return number
