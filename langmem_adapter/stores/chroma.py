"""`ChromaMemoryStore`: a LangGraph store on Chroma, sync and async, with exact ranking."""

import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from langgraph.store.base import IndexConfig, PutOp, TTLConfig

from langmem_adapter.errors import InvalidInput
from langmem_adapter.namespaces import Namespace
from langmem_adapter.stores import chroma_keeping, writing
from langmem_adapter.stores.base import Erased, Guarantees, Kept, Mode
from langmem_adapter.stores.chroma_book import Book
from langmem_adapter.stores.chroma_client import Chroma
from langmem_adapter.stores.chroma_engine import Engine
from langmem_adapter.stores.chroma_erasure import Eraser
from langmem_adapter.stores.chroma_keeping import ChromaCheckup
from langmem_adapter.stores.chroma_places import OWN_COLLECTIONS
from langmem_adapter.stores.embedder import EMBEDDERS, Embedder
from langmem_adapter.stores.erasure import Erasure
from langmem_adapter.stores.plan import Plan, check_ttl, commit_plan, plan, read_index
from langmem_adapter.stores.twins import Calls, Twins, awaited
from langmem_adapter.stores.values import erasable
from langmem_adapter.stores.workers import Ticket, Workers, settled
from langmem_adapter.stores.writing import Prepared

CACHE_BYTES = 256 * 1024 * 1024
READERS = 4
"""Threads for async reads and embedding; writes have one of their own, so that they never keep a read waiting."""

WAIT_SECONDS = 10.0
"""How long an erasure tries to vacuum the database."""


class ChromaMemoryStore(Twins):
    """A LangGraph store on Chroma: give it a client (Ephemeral, Persistent, Http, Cloud) or the path of a folder.

    `index` is LangGraph's (`dims`, `embed`, `fields`); without one, search is by words. `ttl` is LangGraph's too,
    in minutes. `mode` is how a plain `search(query=…)` ranks: by words and vectors fused ("hybrid"), or by one of
    them. `prefix` begins the names of all its collections: stores with different ones share a database and see
    nothing of each other. `own_collections`: how many owners get a collection of their own before later ones share
    hash buckets. `cache_bytes` bounds what is kept in memory. `replace_embedder=True` accepts an embedder other than
    the database's; call `reindex()` then. `clock` gives seconds since the epoch.

    A batch is one upsert for each owner (user, team, app) it writes to, so it is atomic within an owner, up to
    Chroma's batch limit (`doctor().batch`, about 5,000 items). A folder is for one process; for several, run
    `chroma run` and pass a `chromadb.HttpClient`. Even then only one process should write to an owner at a time:
    Chroma has no conditional write, so a foreign writer is noticed afterwards (Conflict, `doctor().clashes`).
    """

    def __init__(
        self,
        client_or_path: Any,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        mode: Mode = "hybrid",
        prefix: str = "memories",
        own_collections: int = OWN_COLLECTIONS,
        cache_bytes: int = CACHE_BYTES,
        replace_embedder: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if mode not in ("hybrid", "vector", "text"):
            raise InvalidInput(f"mode must be 'hybrid', 'vector' or 'text', got {mode!r}")
        self.index_config = index
        self.ttl_config = ttl
        self.mode = mode
        check_ttl(ttl)
        self._embedder, self._fields = read_index(index)
        self._opened = False
        self._chroma = Chroma(client_or_path)
        self._calls = Calls(self.name)
        self._book = Book(self._chroma, prefix, own_collections)
        self._readers = Workers(READERS, f"memory-read {self.name}")
        self._embedders = Workers(EMBEDDERS, f"memory-embed {self.name}")
        self._writers = Workers(1, f"memory-write {self.name}")
        self._keepers = Workers(1, f"memory-keep {self.name}")
        try:
            self._store_id = self._book.places.store_id
            self._engine = Engine(
                self._book,
                self._embedder,
                self._fields,
                mode=mode,
                cache_bytes=cache_bytes,
                replace_embedder=replace_embedder,
                clock=clock,
            )
            self._eraser = Eraser(self._engine)
            self._opened = True
        except BaseException:
            self.close()
            raise
        self._finalizer = weakref.finalize(self, _shut, self._book, *self._workers)

    @property
    def _workers(self) -> tuple[Workers, ...]:
        return self._readers, self._embedders, self._writers, self._keepers

    # what it is

    @property
    def name(self) -> str:
        """The folder or server."""
        return self._chroma.name

    @property
    def store_id(self) -> str:
        """Random, created with the database's registry."""
        return self._store_id

    @property
    def guarantees(self) -> Guarantees:  # type: ignore[override]
        """What holds on this store."""
        return Guarantees(
            atomic=True,
            many_writers="threads",
            durable=self._chroma.kind != "memory",
            hybrid=True,
            erasure="verified" if self._chroma.kind == "files" else "deleted",
        )

    def kept(self, namespace: Namespace) -> tuple[int, dict[str, Kept]]:
        """See `MemoryStore.kept`."""
        return chroma_keeping.kept(self._book, namespace)

    def take_over(self, puts: Sequence[PutOp], kept: Sequence[Kept]) -> None:
        """See `MemoryStore.take_over`."""
        p = plan(puts)
        prepared = self._prepare(p)
        writing.give_times(prepared, kept)
        self._engine.transact(p, prepared, {}, None)

    # one batch

    def _run(self, plan: Plan) -> tuple[list[Any], dict[Namespace, int]]:
        return self._engine.transact(plan, self._prepare(plan), self._query_vectors(plan), None)

    async def _arun(self, plan: Plan) -> tuple[list[Any], dict[Namespace, int]]:
        embedder = self._embedder
        if embedder is None or not embedder.native:
            # Embedding may be slow: neither what needs none nor the one thread that writes may wait for it.
            workers = self._embedders if embedder is not None and plan.embeds(self.mode) else self._readers
            if not plan.writes:
                return await workers.run(lambda: self._run(plan))
            prepared, queries = await workers.run(lambda: (self._prepare(plan), self._query_vectors(plan)))
        else:
            queries = await embedder.aqueries(plan.queries(self.mode))
            prepared = await self._aprepare(plan, embedder)
        if not plan.writes:
            return await self._readers.run(lambda: self._engine.transact(plan, prepared, queries, None))
        ticket = Ticket()
        job = self._writers.submit(lambda: self._engine.transact(plan, prepared, queries, ticket))
        return await settled(job, ticket)

    def _prepare(self, plan: Plan) -> list[Prepared]:
        prepared = writing.prepare(plan.puts, self._fields)
        texts = [t for p in prepared for t in p.texts]
        if self._embedder is not None and texts:
            writing.give_vectors(prepared, self._embedder.documents(texts))
        return prepared

    async def _aprepare(self, plan: Plan, embedder: Embedder) -> list[Prepared]:
        if not plan.puts:
            return []
        prepared = await self._readers.run(lambda: writing.prepare(plan.puts, self._fields))
        texts = [t for p in prepared for t in p.texts]
        if texts:
            writing.give_vectors(prepared, await embedder.adocuments(texts))
        return prepared

    # time to live

    def sweep_ttl(self) -> int:
        """Delete the expired items; how many there were."""
        return self._engine.sweep()

    asweep_ttl = awaited(sweep_ttl, "_writers")

    # erasure

    def erase(
        self, namespace_prefix: Sequence[str], keys: Sequence[str] | None = None, *, wait: float = WAIT_SECONDS
    ) -> Erasure:
        """Delete all items under a prefix, or those of `keys` there, and make sure that their bytes are gone.

        In a folder the owners' collections are built anew, the old ones and their files removed, the database is
        vacuumed (tried for `wait` seconds) and every file searched for the items' texts and vectors. On a server
        that is out of our hands: the items are deleted and the state is `pending`.
        """
        prefix, keys = erasable(namespace_prefix, keys, "close the store and delete the folder")
        return self._eraser.erase(prefix, keys, wait)

    aerase = awaited(erase)

    def erase_with(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int]) -> Erased:
        """See `MemoryStore.erase_with`; as `erase`, for the collections of the owners that the puts belong to."""
        p = commit_plan(puts, expect)
        return self._erase_with(p, self._prepare(p))

    async def aerase_with(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int]) -> Erased:
        """See `MemoryStore.aerase_with`."""
        with self._calls.one():
            p, embedder = commit_plan(puts, expect), self._embedder
            if embedder is None or not embedder.native:
                return await self._keepers.run(lambda: self._erase_with(p, self._prepare(p)))
            prepared = await self._aprepare(p, embedder)
            return await self._keepers.run(lambda: self._erase_with(p, prepared))

    def _erase_with(self, p: Plan, prepared: Sequence[Prepared]) -> Erased:
        done = self._eraser.erase_with(p, prepared, WAIT_SECONDS) if p.puts else self.finish_erasure()
        return Erased(state=done.state, note=done.reason or f"{done.bytes_searched} bytes searched")

    def finish_erasure(self, *, wait: float = WAIT_SECONDS) -> Erasure:
        """Try again to finish erasures that are pending, also those of another process or through a server.

        If the process that began one is gone, nobody knows what to look for: its collections are rebuilt and the
        database is vacuumed without a search.
        """
        return self._eraser.finish(wait)

    afinish_erasure = awaited(finish_erasure)

    # keeping it

    def reindex(self, *, progress: Callable[[int, int], None] | None = None) -> int:
        """Embed every item that has no vector of this store's embedder; how many there were.

        In batches, each its own upsert: reads and writes go on meanwhile, and after an interruption it continues
        where it was. `progress(done, total)` is called after each.
        """
        work, done = chroma_keeping.stale_work(self._engine), 0
        for w in work:
            batch = chroma_keeping.read_batch(self._engine, w)
            assert self._embedder is not None
            chroma_keeping.restore(self._engine, batch, self._embedder.documents(batch.texts))
            done += len(w.ids)
            if progress is not None:
                progress(done, sum(len(w.ids) for w in work))
        return done

    async def areindex(self, *, progress: Callable[[int, int], None] | None = None) -> int:
        """`reindex` without blocking the event loop."""
        with self._calls.one():
            embedder, engine, run = self._embedder, self._engine, self._keepers.run
            if embedder is None or not embedder.native:
                return await run(lambda: self.reindex(progress=progress))
            work, done = await run(lambda: chroma_keeping.stale_work(engine)), 0
            for w in work:
                batch = await run(partial(chroma_keeping.read_batch, engine, w))
                vectors = await embedder.adocuments(batch.texts)
                await run(partial(chroma_keeping.restore, engine, batch, vectors))
                done += len(w.ids)
                if progress is not None:
                    progress(done, sum(len(w.ids) for w in work))
            return done

    def doctor(self) -> ChromaCheckup:
        """Examine every collection: sizes, embedder, foreign writers, and what should be done."""
        with self._book.shared.lock:
            return chroma_keeping.examine(self._engine)

    adoctor = awaited(doctor)

    # opening and closing

    def _close(self) -> None:
        try:
            if self._opened and not self._chroma.closed:
                self._eraser.close()
        finally:
            self._book.close()


def _shut(book: Book, *workers: Workers) -> None:
    """Close what a store that was dropped, or left open at exit, still holds."""
    for w in workers:
        w.stop()
    book.close()
