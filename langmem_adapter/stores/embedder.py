"""The embedder of a store: who it is, and texts → unit vectors, sync and async."""

import asyncio
import json
import sqlite3
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from langchain_core.embeddings import Embeddings
from langgraph.store.base import ensure_embeddings
from langgraph.store.base.embed import EmbeddingsLambda

from langmem_adapter.errors import EmbedderMismatch, InvalidInput, StoreCorrupt
from langmem_adapter.stores.schema import meta, set_meta
from langmem_adapter.stores.vectors import Matrix, unit


class Stored(NamedTuple):
    """An embedder as the file knows it: the number its vectors carry, its name and their length."""

    id: int
    name: str
    dims: int


class Embedder:
    """An `Embeddings` with an identity. Vectors are stored at length 1, so that a dot product is the cosine."""

    def __init__(self, embed: Any, dims: int | None) -> None:
        self.embeddings = ensure_embeddings(embed)
        self.name = name_of(embed if isinstance(self.embeddings, EmbeddingsLambda) else self.embeddings)
        self.dims = dims if dims is not None else getattr(self.embeddings, "dims", None)
        if self.dims is not None and (type(self.dims) is not int or self.dims < 1):
            raise InvalidInput(f"index['dims'] must be a positive int, got {self.dims!r}")
        self.native = _is_native(self.embeddings)
        """Whether its async methods are its own; otherwise the sync ones run in the store's threads."""

    def documents(self, texts: Sequence[str]) -> Matrix:
        """A unit vector for each text; equal texts are embedded once."""
        once = list(dict.fromkeys(texts))
        return self._spread(texts, once, self.embeddings.embed_documents(once) if once else [])

    async def adocuments(self, texts: Sequence[str]) -> Matrix:
        """`documents`, awaited."""
        once = list(dict.fromkeys(texts))
        return self._spread(texts, once, await self.embeddings.aembed_documents(once) if once else [])

    def queries(self, texts: Sequence[str]) -> dict[str, Matrix]:
        """The unit vector of each query."""
        return {t: self._checked([self.embeddings.embed_query(t)], 1)[0] for t in dict.fromkeys(texts)}

    async def aqueries(self, texts: Sequence[str]) -> dict[str, Matrix]:
        """`queries`, awaited at the same time."""
        once = list(dict.fromkeys(texts))
        vectors = await asyncio.gather(*(self.embeddings.aembed_query(t) for t in once))
        return {t: self._checked([v], 1)[0] for t, v in zip(once, vectors, strict=True)}

    def _spread(self, texts: Sequence[str], once: Sequence[str], vectors: Sequence[Any]) -> Matrix:
        matrix = self._checked(vectors, len(once))
        if len(once) == len(texts):
            return matrix
        place = {t: i for i, t in enumerate(once)}
        return matrix[[place[t] for t in texts]]

    def _checked(self, vectors: Sequence[Any], count: int) -> Matrix:
        if len(vectors) != count:
            raise InvalidInput(f"embedder {self.name} returned {len(vectors)} vectors for {count} texts")
        lengths = {len(v) for v in vectors}
        if self.dims is None and lengths:
            self.dims = lengths.pop()
        if wrong := lengths - {self.dims}:
            raise EmbedderMismatch(
                f"embedder {self.name} returned vectors of {wrong.pop()} numbers, index['dims'] says {self.dims}"
            )
        matrix = np.array(vectors, dtype=np.float32).reshape(count, self.dims or 0)
        if not np.isfinite(matrix).all():
            raise InvalidInput(f"embedder {self.name} returned a vector with NaN or infinity")
        return unit(matrix)


def name_of(embed: Any) -> str:
    """A name that is the same in every process: `name`, or the class and its model, or the function."""
    name = getattr(embed, "name", None)
    if isinstance(name, str) and name:
        return name
    if callable(embed) and hasattr(embed, "__qualname__"):
        return f"{embed.__module__}.{embed.__qualname__}"
    kind = f"{type(embed).__module__}.{type(embed).__qualname__}"
    models = (getattr(embed, a, None) for a in ("model", "model_name", "model_id", "deployment"))
    model = next((m for m in models if isinstance(m, str) and m), None)
    return f"{kind}:{model}" if model else kind


def _is_native(embeddings: Embeddings) -> bool:
    if isinstance(embeddings, EmbeddingsLambda):
        return hasattr(embeddings, "afunc")
    return type(embeddings).aembed_documents is not Embeddings.aembed_documents


def stored(conn: sqlite3.Connection, file: str) -> Stored | None:
    """What the file says of its embedder; None if it has no vectors yet."""
    text = meta(conn, "embedder")
    if text is None:
        return None
    try:
        found = json.loads(text)
        return Stored(int(found["id"]), str(found["name"]), int(found["dims"]))
    except (ValueError, KeyError, TypeError) as e:
        raise StoreCorrupt(f"{file} does not say who made its vectors ({text!r:.80}); it was left as it is") from e


def check(found: Stored, embedder: Embedder, file: str) -> None:
    """EmbedderMismatch, naming both, unless this embedder made the file's vectors."""
    if found.name != embedder.name or embedder.dims not in (None, found.dims):
        raise EmbedderMismatch(
            f"{file} holds vectors of {found.name} ({found.dims} numbers); it was opened with {embedder.name} "
            f"({embedder.dims} numbers). Open it with the former, or with replace_embedder=True and then reindex()"
        )


def enrol(conn: sqlite3.Connection, embedder: Embedder, number: int) -> None:
    """Write down that vectors numbered so are this embedder's."""
    found = {"id": number, "name": embedder.name, "dims": embedder.dims}
    set_meta(conn, "embedder", json.dumps(found, ensure_ascii=False))
