"""The embedder of a store: who it is, and texts → unit vectors, sync and async."""

import asyncio
import functools
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

EMBEDDERS = 4
"""Threads a store has for async calls that need an embedder which has no async methods of its own."""

PROBE = "The user goes by Ada and lives in Ghent."
_PROBED = 16


class Stored(NamedTuple):
    """An embedder as the file knows it: the number its vectors carry, its name and their length."""

    id: int
    name: str
    dims: int
    fields: tuple[str, ...] | None = None
    """The paths that are embedded by default; None: not noted."""
    probe: tuple[tuple[int, float], ...] = ()
    """Its largest numbers for the text PROBE, each with its place, if its name alone does not tell it from others."""


class Embedder:
    """An `Embeddings` with an identity. Vectors are stored at length 1, so that a dot product is the cosine."""

    def __init__(self, embed: Any, dims: int | None) -> None:
        self.embeddings = ensure_embeddings(embed)
        named = embed if isinstance(self.embeddings, EmbeddingsLambda) else self.embeddings
        self.name = name_of(named)
        self.probed = not _is_certain(named)
        """Whether it is known by its vector of PROBE too, which is embedded before the first texts."""
        self.probe: Matrix | None = None
        self.dims = dims if dims is not None else getattr(self.embeddings, "dims", None)
        if self.dims is not None and (type(self.dims) is not int or self.dims < 1):
            raise InvalidInput(f"index['dims'] must be a positive int, got {self.dims!r}")
        self.native = _is_native(self.embeddings)
        """Whether its async methods are its own; otherwise the sync ones run in the store's threads."""

    def documents(self, texts: Sequence[str]) -> Matrix:
        """A unit vector for each text; equal texts are embedded once."""
        if texts and self._unprobed:
            self._probe()
        once = list(dict.fromkeys(texts))
        return self._spread(texts, once, self.embeddings.embed_documents(once) if once else [])

    async def adocuments(self, texts: Sequence[str]) -> Matrix:
        """`documents`, awaited."""
        if texts and self._unprobed:
            await self._aprobe()
        once = list(dict.fromkeys(texts))
        return self._spread(texts, once, await self.embeddings.aembed_documents(once) if once else [])

    def queries(self, texts: Sequence[str]) -> dict[str, Matrix]:
        """The unit vector of each query."""
        if texts and self._unprobed:
            self._probe()
        return {t: self._checked([self.embeddings.embed_query(t)], 1)[0] for t in dict.fromkeys(texts)}

    async def aqueries(self, texts: Sequence[str]) -> dict[str, Matrix]:
        """`queries`, awaited at the same time."""
        if texts and self._unprobed:
            await self._aprobe()
        once = list(dict.fromkeys(texts))
        vectors = await asyncio.gather(*(self.embeddings.aembed_query(t) for t in once))
        return {t: self._checked([v], 1)[0] for t, v in zip(once, vectors, strict=True)}

    @property
    def _unprobed(self) -> bool:
        return self.probed and self.probe is None

    def _probe(self) -> None:
        try:
            self.probe = self._checked(self.embeddings.embed_documents([PROBE]), 1)[0]
        except LookupError:  # it has vectors of certain texts only
            self.probed = False

    async def _aprobe(self) -> None:
        try:
            self.probe = self._checked(await self.embeddings.aembed_documents([PROBE]), 1)[0]
        except LookupError:
            self.probed = False

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
    """A name that is the same in every process: `name`, or the class and its model, or the function.

    A wrapper without a model of its own is named with what it wraps.
    """
    name = getattr(embed, "name", None)
    if isinstance(name, str) and name:
        return name
    if callable(embed) and hasattr(embed, "__qualname__"):
        return f"{embed.__module__}.{embed.__qualname__}"
    if isinstance(embed, functools.partial):
        return f"partial({name_of(embed.func)})"
    kind = f"{type(embed).__module__}.{type(embed).__qualname__}"
    models = (getattr(embed, a, None) for a in ("model", "model_name", "model_id", "deployment"))
    model = next((m for m in models if isinstance(m, str) and m), None)
    if model:
        return f"{kind}:{model}"
    inner = next((v for v in vars(embed).values() if isinstance(v, Embeddings)), None) if _has_vars(embed) else None
    return f"{kind}({name_of(inner)})" if inner is not None else kind


def _has_vars(embed: Any) -> bool:
    return hasattr(embed, "__dict__")


def _is_certain(embed: Any) -> bool:
    """Whether no other embedder has the same name by accident: not of lambdas, closures and partials."""
    if isinstance(getattr(embed, "name", None), str):
        return True
    return not (isinstance(embed, functools.partial) or "<" in getattr(embed, "__qualname__", ""))


def _is_native(embeddings: Embeddings) -> bool:
    if isinstance(embeddings, EmbeddingsLambda):
        return hasattr(embeddings, "afunc")
    return type(embeddings).aembed_documents is not Embeddings.aembed_documents


def stored(conn: sqlite3.Connection, file: str) -> Stored | None:
    """What the file says of its embedder; None if it has no vectors yet."""
    text = meta(conn, "embedder")
    return None if text is None else read(text, file)


def read(text: str, file: str) -> Stored:
    """What `enrol` wrote."""
    try:
        found = json.loads(text)
        fields = None if found.get("fields") is None else tuple(map(str, found["fields"]))
        probe = tuple((int(i), float(x)) for i, x in found.get("probe", ()))
        return Stored(int(found["id"]), str(found["name"]), int(found["dims"]), fields, probe)
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise StoreCorrupt(f"{file} does not say who made its vectors ({text!r:.80}); it was left as it is") from e


def check(found: Stored, embedder: Embedder, file: str) -> None:
    """EmbedderMismatch, naming both, unless this embedder made the file's vectors."""
    if found.name != embedder.name or embedder.dims not in (None, found.dims):
        raise EmbedderMismatch(
            f"{file} holds vectors of {found.name} ({found.dims} numbers); it was opened with {embedder.name} "
            f"({embedder.dims} numbers). Open it with the former, or with replace_embedder=True and then reindex()"
        )
    probe = embedder.probe
    if probe is not None and any(i >= len(probe) or abs(probe[i] - x) > 0.02 for i, x in found.probe):
        raise EmbedderMismatch(
            f"{file} holds vectors of another {found.name}: it gives other numbers for the same text. Open it with the "
            "former, or with replace_embedder=True and then reindex(); an attribute `name` tells embedders apart"
        )


def enrol(conn: sqlite3.Connection, embedder: Embedder, number: int, fields: Sequence[str]) -> None:
    """Write down that vectors numbered so are this embedder's, of these fields."""
    found: dict[str, Any] = {"id": number, "name": embedder.name, "dims": embedder.dims, "fields": list(fields)}
    if embedder.probe is not None:
        largest = np.argsort(-np.abs(embedder.probe), kind="stable")[:_PROBED]
        found["probe"] = [[int(i), round(float(embedder.probe[i]), 4)] for i in largest]
    set_meta(conn, "embedder", json.dumps(found, ensure_ascii=False))
