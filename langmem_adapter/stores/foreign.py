"""`ForeignStore`: what consolidation needs, on any LangGraph store.

A plain `BaseStore` has no versions and no conditional commit, so they are kept here, in this process: threads and
event loops that share the store are serialised, other processes are not. Ranking reads all of an owner's records,
and embeds them itself if the store has no index.
"""

import itertools
import threading
import weakref
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from langgraph.store.base import BaseStore, PutOp, SearchItem, SearchOp

from langmem_adapter.errors import Conflict
from langmem_adapter.namespaces import Namespace
from langmem_adapter.ports import run
from langmem_adapter.scoring import Columns, Floats, as_parts, best, blend
from langmem_adapter.stores.base import Erased, Guarantees, Ranked, RankOp

PAGE = 1_000
MAX_QUERY_HITS = 100_000
"""Stores with an index page a query unreliably, so all hits are asked for at once."""

_Batch = Callable[[Sequence[Any]], Awaitable[list[Any]]]
_Embed = Callable[[list[str]], Awaitable[list[list[float]]]]

_numbers = itertools.count(1)


def _apart(puts: Sequence[PutOp]) -> list[list[PutOp]]:
    """The puts in order, cut so that no batch holds one text twice: InMemoryStore fails to embed such a batch."""
    parts: list[list[PutOp]] = [[]]
    texts: set[str] = set()
    for put in puts:
        text = str((put.value or {}).get("content", ""))
        if text and put.index is not False and text in texts:
            parts.append([])
            texts.clear()
        parts[-1].append(put)
        texts.add(text)
    return parts


_ASKED = Erased(state="out_of_reach", note="the store was asked to delete; its files and backups are its own")


class _Versions:
    """Versions of a store's namespaces; one per store, shared by all who wrap it."""

    def __init__(self, store_id: str) -> None:
        self.store_id = store_id
        self.lock = threading.Lock()
        self.known: dict[Namespace, int] = {}
        self.busy: set[Namespace] = set()


_versions: dict[int, _Versions] = {}
_learning = threading.Lock()


def _versions_of(store: BaseStore) -> _Versions:
    with _learning:  # by id: a store that compares by value cannot be a key
        if id(store) not in _versions:
            _versions[id(store)] = _Versions(f"{type(store).__name__}-{next(_numbers)}")
            weakref.finalize(store, _versions.pop, id(store), None)
        return _versions[id(store)]


class ForeignStore:
    """A `ConditionalStore` over somebody else's `BaseStore`."""

    guarantees = Guarantees(atomic=False, many_writers="threads", durable=False, hybrid=False, erasure="deleted")

    def __init__(self, store: BaseStore, embeddings: Embeddings) -> None:
        self.store = store
        self._embeddings = embeddings
        self._indexed = bool(getattr(store, "index_config", None))
        self._vectors: OrderedDict[str, list[float]] = OrderedDict()
        self._shared = _versions_of(store)

    @property
    def store_id(self) -> str:
        """The class of the store and its number in order of first use: equal in every process built alike."""
        return self._shared.store_id

    @property
    def known_id(self) -> str | None:
        """See `MemoryStore.known_id`."""
        return self.store_id

    def read(self, ops: Sequence[Any], *, versions: Sequence[Namespace] = ()) -> tuple[list[Any], dict[Namespace, int]]:
        """See `MemoryStore.read`."""
        return run(self._read(self._batch, self._embed, ops, versions))

    async def aread(
        self, ops: Sequence[Any], *, versions: Sequence[Namespace] = ()
    ) -> tuple[list[Any], dict[Namespace, int]]:
        """See `MemoryStore.aread`."""
        return await self._read(self.store.abatch, self._embeddings.aembed_documents, ops, versions)

    def commit(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int]) -> None:
        """See `MemoryStore.commit`; the puts are applied in order, so the first is the commit point."""
        run(self._commit(self._batch, puts, expect))

    async def acommit(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int]) -> None:
        """See `MemoryStore.acommit`."""
        await self._commit(self.store.abatch, puts, expect)

    def erase_with(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int]) -> Erased:
        """See `MemoryStore.erase_with`; what becomes of the bytes is the store's own affair."""
        self.commit(puts, expect=expect)
        return _ASKED

    async def aerase_with(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int]) -> Erased:
        """See `MemoryStore.aerase_with`."""
        await self.acommit(puts, expect=expect)
        return _ASKED

    async def _batch(self, ops: Sequence[Any]) -> list[Any]:
        return self.store.batch(ops)

    async def _embed(self, texts: list[str]) -> list[list[float]]:
        return self._embeddings.embed_documents(texts)

    async def _commit(self, batch: _Batch, puts: Sequence[PutOp], expect: Mapping[Namespace, int]) -> None:
        written = {put.namespace for put in puts}
        shared = self._shared
        with shared.lock:
            stale = [ns for ns, version in expect.items() if shared.known.get(ns, 0) != version]
            if stale or shared.busy & (written | expect.keys()):
                raise Conflict(f"{stale or sorted(shared.busy)} changed since it was read")
            shared.busy |= written
        try:
            for part in _apart(puts):
                await batch(part)
        finally:
            # Also after a failure, which may have applied a part: whoever read before must read again.
            with shared.lock:
                for put in puts:
                    shared.known[put.namespace] = shared.known.get(put.namespace, 0) + 1
                shared.busy -= written

    async def _read(
        self, batch: _Batch, embed: _Embed, ops: Sequence[Any], versions: Sequence[Namespace]
    ) -> tuple[list[Any], dict[Namespace, int]]:
        await self._learn_versions(batch, versions)
        with self._shared.lock:  # before the data: a commit in between makes ours fail, never the reverse
            seen = {ns: self._shared.known[ns] for ns in versions}
        plain = iter(await batch([op for op in ops if not isinstance(op, RankOp)]))
        results = [await self._rank(batch, embed, op) if isinstance(op, RankOp) else next(plain) for op in ops]
        return results, seen

    async def _learn_versions(self, batch: _Batch, namespaces: Sequence[Namespace]) -> None:
        for ns in namespaces:
            if ns not in self._shared.known:
                # Versions number the records (`seq`), so they go on from the highest that is stored.
                stored = await self._all(batch, ns)
                top = max((int(item.value.get("seq", 0)) for item in stored), default=0)
                with self._shared.lock:
                    self._shared.known.setdefault(ns, top)

    async def _all(self, batch: _Batch, namespace: Namespace, query: str | None = None) -> list[SearchItem]:
        limit = PAGE if query is None else MAX_QUERY_HITS
        found: list[SearchItem] = []
        for offset in itertools.count(0, limit):
            [page] = await batch([SearchOp(namespace, None, limit, offset, query)])
            found += [item for item in page if item.namespace == namespace]
            if query is not None or len(page) < limit:
                return found
        raise AssertionError("unreachable")

    async def _rank(self, batch: _Batch, embed: _Embed, op: RankOp) -> list[Ranked]:
        query = op.query if op.query and op.query.strip() else None
        items: list[SearchItem] = []
        for namespace in op.namespaces:
            items += await self._all(batch, namespace, query if self._indexed else None)
        items.sort(key=lambda item: (int(item.value.get("seq", 0)), item.key))
        if not items:
            return []
        relevance = await self._relevance(embed, query, items)
        columns = Columns.of(item.value for item in items)
        parts = columns.parts(relevance, op.where.now)
        scores = blend(parts, op.weights)
        keep = columns.mask(op.where)
        if op.where.statuses == ("active",) and op.where.as_of is None:
            # Without transactions a replaced record can still be marked active: its active successor decides.
            gone = {i for item, k in zip(items, keep, strict=True) if k for i in item.value.get("supersedes", ())}
            keep &= np.array([item.key not in gone for item in items])
        return [Ranked(items[i], float(scores[i]), as_parts(parts[i])) for i in best(scores, keep, op.floor, op.limit)]

    async def _relevance(self, embed: _Embed, query: str | None, items: Sequence[SearchItem]) -> Floats:
        if query is None:
            return np.zeros(len(items))
        if self._indexed:
            scores: Floats = np.array([item.score or 0.0 for item in items], dtype=np.float64)
            return scores.clip(0.0, 1.0)
        texts = [str(item.value.get("content", "")) for item in items]
        missing = list(dict.fromkeys(t for t in [query, *texts] if t not in self._vectors))
        vectors = dict(zip(missing, await embed(missing) if missing else [], strict=True))
        vectors |= {t: self._vectors[t] for t in [query, *texts] if t in self._vectors}
        self._remember(vectors)
        matrix, q = np.array([vectors[t] for t in texts]), np.array(vectors[query])
        norms = np.linalg.norm(matrix, axis=1) * np.linalg.norm(q)
        cosine: Floats = np.divide(matrix @ q, norms, out=np.zeros(len(items)), where=norms > 0)
        return cosine.clip(0.0, 1.0)

    def _remember(self, vectors: Mapping[str, list[float]]) -> None:
        self._vectors.update(vectors)
        while len(self._vectors) > 20_000:
            self._vectors.popitem(last=False)
