"""`ChromaMemoryStore`: a LangGraph store on Chroma, sync and async, with exact ranking."""

import time
import weakref
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self

from langgraph.store.base import IndexConfig, Op, PutOp, Result, SearchOp, TTLConfig

from langmem_adapter.errors import Conflict, InvalidInput, StoreClosed
from langmem_adapter.namespaces import Namespace
from langmem_adapter.stores import chroma_erasure, chroma_keeping, chroma_writing, writing
from langmem_adapter.stores import embedder as embedders
from langmem_adapter.stores.base import Guarantees, MemoryStore, Mode
from langmem_adapter.stores.chroma_book import Book
from langmem_adapter.stores.chroma_client import Chroma, Gone
from langmem_adapter.stores.chroma_keeping import ChromaCheckup, Work
from langmem_adapter.stores.chroma_places import OWN_COLLECTIONS, Place
from langmem_adapter.stores.chroma_plan import Plan, commit_plan, enrol, meet, plan, read_index, read_plan, stored
from langmem_adapter.stores.chroma_reading import Settings, Snapshot, Torn
from langmem_adapter.stores.chroma_rebuild import rebuilt
from langmem_adapter.stores.chroma_shelf import Changed, Shelves
from langmem_adapter.stores.chroma_writing import By, Written
from langmem_adapter.stores.embedder import Embedder
from langmem_adapter.stores.erasure import Erasure
from langmem_adapter.stores.sweeper import Sweeper
from langmem_adapter.stores.values import check, micros
from langmem_adapter.stores.vectors import Matrix
from langmem_adapter.stores.workers import Ticket, Workers, settled
from langmem_adapter.stores.writing import Prepared

CACHE_BYTES = 256 * 1024 * 1024
READERS = 4
"""Threads for async reads and embedding; writes have one of their own, so that they never keep a read waiting."""

SWEEP_MINUTES = 5.0
TRIES = 20
"""How often a read is made again because a write came in between, before writers are kept out (embedded)."""


class ChromaMemoryStore(MemoryStore):
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

    supports_ttl = True

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
        self._embedder, self._fields = read_index(index)
        self._clock = clock
        self._latest = 0.0
        self._shelves = Shelves(cache_bytes)
        self._sweeper: Sweeper | None = None
        self._unverified: set[bytes] = set()
        self._chroma = Chroma(client_or_path)
        self._book = Book(self._chroma, prefix, own_collections)
        self._readers = Workers(READERS, f"memory-read {self.name}")
        self._writers = Workers(1, f"memory-write {self.name}")
        self._keepers = Workers(1, f"memory-keep {self.name}")
        try:
            self._store_id = self._book.places.store_id
            self._embedder_id = meet(self._book.places, self._embedder, self.name, replace=replace_embedder)
        except BaseException:
            self.close()
            raise
        self._finalizer = weakref.finalize(self, _shut, self._book, *self._workers)

    @property
    def _workers(self) -> tuple[Workers, Workers, Workers]:
        return self._readers, self._writers, self._keepers

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

    @property
    def embeddings(self) -> Any:
        """The LangChain `Embeddings` in use; None without an index."""
        return None if self._embedder is None else self._embedder.embeddings

    # LangGraph's interface

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Results in the order of the ops. Reads see the state before the puts; of two puts to one key the last
        counts; the puts of one owner all happen or, if anything raises, none."""
        return self._run(plan(ops))[0]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """`batch` without blocking the event loop. If cancelled, all of its puts happened or none."""
        return (await self._arun(plan(ops)))[0]

    # the memory store's interface

    def read(self, ops: Sequence[Any], *, versions: Sequence[Namespace] = ()) -> tuple[list[Any], dict[Namespace, int]]:
        """See `MemoryStore.read`."""
        return self._run(read_plan(ops, versions))

    def commit(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int]) -> None:
        """See `MemoryStore.commit`. `expect` may name namespaces that no put touches."""
        self._run(commit_plan(puts, expect))

    async def aread(
        self, ops: Sequence[Any], *, versions: Sequence[Namespace] = ()
    ) -> tuple[list[Any], dict[Namespace, int]]:
        """See `MemoryStore.aread`."""
        return await self._arun(read_plan(ops, versions))

    async def acommit(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int]) -> None:
        """See `MemoryStore.acommit`."""
        await self._arun(commit_plan(puts, expect))

    # one batch

    def _run(self, plan: Plan) -> tuple[list[Any], dict[Namespace, int]]:
        return self._transact(plan, self._prepare(plan), self._query_vectors(plan), None)

    async def _arun(self, plan: Plan) -> tuple[list[Any], dict[Namespace, int]]:
        embedder = self._embedder
        if embedder is None or not embedder.native:
            if not plan.writes:
                return await self._readers.run(lambda: self._run(plan))
            # Embedding may be slow: it must not occupy the one thread that writes.
            prepared, queries = await self._readers.run(lambda: (self._prepare(plan), self._query_vectors(plan)))
        else:
            queries = await embedder.aqueries(plan.queries)
            prepared = await self._aprepare(plan, embedder)
        if not plan.writes:
            return await self._readers.run(lambda: self._transact(plan, prepared, queries, None))
        ticket = Ticket()
        job = self._writers.submit(lambda: self._transact(plan, prepared, queries, ticket))
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

    def _query_vectors(self, plan: Plan) -> dict[str, Matrix]:
        return {} if self._embedder is None else self._embedder.queries(plan.queries)

    def _transact(
        self, plan: Plan, prepared: Sequence[Prepared], queries: Mapping[str, Matrix], ticket: Ticket | None
    ) -> tuple[list[Any], dict[Namespace, int]]:
        if self._chroma.closed:
            raise StoreClosed("the store was closed before this call")
        if plan.writes:
            return self._write(plan, prepared, queries, ticket)
        for _ in range(TRIES):
            try:
                return self._read(plan, self._snapshot(queries))
            except Torn:
                time.sleep(0.001)
            except Gone:
                self._book.places.forget()
        if not self._book.alone:
            raise Conflict(f"{self.name} changed each of the {TRIES} times it was read")
        with self._book.shared.lock:
            return self._read(plan, self._snapshot(queries, locked=True))

    def _snapshot(self, queries: Mapping[str, Matrix], *, locked: bool = False) -> Snapshot:
        if self._embedder_id is None and self._embedder is not None:
            self._embedder_id = meet(self._book.places, self._embedder, self.name, replace=False)
        dims = (self._embedder.dims if self._embedder is not None else None) or 0
        settings = Settings(self._shelves, self._embedder_id, dims, self._fields, self.mode)
        return Snapshot(self._book, settings, queries, micros(self._now()), locked)

    def _read(self, plan: Plan, snapshot: Snapshot) -> tuple[list[Any], dict[Namespace, int]]:
        found = _results(plan, snapshot)
        snapshot.verify()
        for owner, rows in snapshot.refresh.items():
            with self._book.shared.writing([owner]):
                moved = chroma_writing.refresh(self._book, owner, rows, self._by(snapshot.now))
            self._advance(moved)
        return found

    def _write(
        self, plan: Plan, prepared: Sequence[Prepared], queries: Mapping[str, Matrix], ticket: Ticket | None
    ) -> tuple[list[Any], dict[Namespace, int]]:
        groups = chroma_writing.by_owner(prepared)
        with self._book.shared.writing(groups):
            if ticket is not None:
                ticket.check()
            chroma_writing.check_versions(self._book, plan.expect or {})
            snapshot = self._snapshot(queries, locked=True)
            found = _results(plan, snapshot)
            if any(p.value is not None for p in prepared):
                self._enrol()
            ready = [w for o, g in groups.items() if (w := self._written(o, g, snapshot.now)) is not None]
            if ticket is not None:
                ticket.seal()
            for done in ready:
                chroma_writing.apply(self._book, done)
                self._advance(done.changed)
        for owner, rows in snapshot.refresh.items():
            with self._book.shared.writing([owner]):
                self._advance(chroma_writing.refresh(self._book, owner, rows, self._by(snapshot.now)))
        return found

    def _written(self, owner: str, group: Sequence[Prepared], now: int) -> Written | None:
        """What the group comes to; None if it is only deletes of what was never there."""
        vectors = next((p.vectors for p in group if p.vectors is not None), None)
        dims = None if vectors is None else vectors.shape[1]
        place = self._book.places.find(owner)
        if place is None:
            if all(p.value is None for p in group):
                return None
            place = self._book.assign(owner, dims or (self._embedder.dims if self._embedder else None) or 1)
        if dims is not None and dims != place.dims:
            place = rebuilt(self._book, place, dims)
            self._shelves.clear()
        heads = self._book.heads(owner)
        chroma_writing.finish_deletes(
            self._book, place, [h for p, h in heads.items() if any(p == g.path for g in group)]
        )
        old = chroma_writing.stored_rows(self._book, place, heads, group)
        return chroma_writing.written(owner, place, group, old, heads, self._by(now))

    def _by(self, now: int) -> By:
        return By(self._book.shared.writer, self._embedder_id, now)

    def _enrol(self) -> None:
        """Our embedder's number is given out with the first vectors; EmbedderMismatch if it was replaced."""
        if self._embedder is None or self._embedder.dims is None:
            return
        found = stored(self._book.places)
        if found is not None:
            embedders.check(found, self._embedder, self.name)
            self._embedder_id = found.id
        else:
            self._embedder_id = enrol(self._book.places, self._embedder, 1)

    def _advance(self, changed: Iterable[Changed]) -> None:
        for done in changed:
            self._shelves.advance(done)

    def _now(self) -> float:
        # A clock that steps back must not bring expired items back.
        self._latest = max(self._latest, self._clock())
        return self._latest

    # time to live

    def sweep_ttl(self) -> int:
        """Delete the expired items; how many there were."""
        now = micros(self._now())
        return sum(self._sweep(place, now) for place in self._book.places.all())

    def _sweep(self, place: Place, now: int) -> int:
        count = 0
        for owner in chroma_keeping.expired(self._book, place, now):
            with self._book.shared.writing([owner]):
                # Looked up again: what was refreshed meanwhile stays.
                deletes = chroma_keeping.expired(self._book, place, now).get(owner, [])
                done = self._written(owner, deletes, now)
                if done is not None:
                    chroma_writing.apply(self._book, done)
                    self._advance(done.changed)
                    count += len(deletes)
        return count

    async def asweep_ttl(self) -> int:
        """`sweep_ttl` without blocking the event loop."""
        return await self._writers.run(self.sweep_ttl)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> "Future[None]":
        """Sweep in the background until the returned future is cancelled, `stop_ttl_sweeper` or `close`.

        The interval defaults to `ttl["sweep_interval_minutes"]`, else 5 minutes. A running sweeper is kept.
        """
        if self._sweeper is None or not self._sweeper.running:
            given = sweep_interval_minutes or (self.ttl_config or {}).get("sweep_interval_minutes")
            self._sweeper = Sweeper(self, 60 * float(given or SWEEP_MINUTES))
        return self._sweeper.future

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop sweeping; True unless a sweep is still going on after `timeout` seconds (None: wait for its end)."""
        return self._sweeper is None or self._sweeper.stop(timeout)

    # erasure

    def erase(
        self, namespace_prefix: Sequence[str], keys: Sequence[str] | None = None, *, wait: float = 10.0
    ) -> Erasure:
        """Delete all items under a prefix, or those of `keys` there, and make sure that their bytes are gone.

        In a folder the owners' collections are built anew, the old ones and their files removed, the database is
        vacuumed (tried for `wait` seconds) and every file searched for the items' texts and vectors. On a server
        that is out of our hands: the items are deleted and the state is `pending`.
        """
        if not namespace_prefix:
            raise InvalidInput("erase(()) would erase everything; close the store and delete the folder instead")
        prefix = tuple(namespace_prefix)
        check(SearchOp(prefix))
        places = self._book.places
        with self._book.shared.writing(places.under(prefix)):
            found = chroma_erasure.wanted(self._book, prefix, keys)
            homes = sorted({p for owner in found.owners if (p := places.find(owner)) is not None})
            self._mark(homes)  # until verified, also if this process dies
            groups = chroma_writing.by_owner(found.deletes)
            now = micros(self._now())
            for done in [w for o, g in groups.items() if (w := self._written(o, g, now)) is not None]:
                chroma_writing.apply(self._book, done)
                self._advance(done.changed)
            self._rebuild(homes)
        self._unverified |= found.pieces
        return self._verify(len(found.deletes), wait)

    async def aerase(
        self, namespace_prefix: Sequence[str], keys: Sequence[str] | None = None, *, wait: float = 10.0
    ) -> Erasure:
        """`erase` without blocking the event loop."""
        return await self._keepers.run(lambda: self.erase(namespace_prefix, keys, wait=wait))

    def finish_erasure(self, *, wait: float = 10.0) -> Erasure:
        """Try again to finish erasures that are pending, also those of another process or through a server.

        If the process that began one is gone, nobody knows what to look for: its collections are rebuilt and the
        database is vacuumed without a search.
        """
        with self._book.shared.lock:
            marked = set(self._book.places.meta().get("erasing") or ())
            self._rebuild([p for p in self._book.places.all() if p.id in marked])
            for name in self._stray():
                self._chroma.drop(name)
        return self._verify(0, wait)

    async def afinish_erasure(self, *, wait: float = 10.0) -> Erasure:
        """`finish_erasure` without blocking the event loop."""
        return await self._keepers.run(lambda: self.finish_erasure(wait=wait))

    def _mark(self, places: Sequence[Place]) -> None:
        marked = set(self._book.places.meta().get("erasing") or ())
        self._book.places.set_meta(erasing=sorted(marked | {p.id for p in places}) or None)

    def _rebuild(self, places: Sequence[Place]) -> None:
        if not self._book.alone:
            return  # another process may be writing to the old collection
        for place in places:
            owners = self._book.owners_in(place)
            with self._book.shared.writing(owners):
                rebuilt(self._book, place, place.dims)

    def _verify(self, items: int, wait: float) -> Erasure:
        if self._chroma.path is None:
            done = chroma_erasure.unreachable(self._chroma, items)
        else:
            pieces = set(self._unverified)
            done = chroma_erasure.clean(self._book, self._chroma.path, pieces, items, wait)
            if done.state == "done":
                self._unverified -= pieces
        if done.state == "done" and not self._unverified:
            self._book.places.set_meta(erasing=None)
        return done

    def _stray(self) -> list[str]:
        """Collections that a rebuild left behind when its process died."""
        known = {p.collection for p in self._book.places.all()}
        return [n for n in self._chroma.names() if self._book.places.is_place(n) and n not in known]

    # keeping it

    def reindex(self, *, progress: Callable[[int, int], None] | None = None) -> int:
        """Embed every item that has no vector of this store's embedder; how many there were.

        In batches, each its own upsert: reads and writes go on meanwhile, and after an interruption it continues
        where it was. `progress(done, total)` is called after each.
        """
        work, done = self._stale(), 0
        total = sum(len(w.ids) for w in work)
        for w in work:
            batch = chroma_keeping.read_batch(self._book, w, self._fields)
            texts = [t for item in batch.items for t in item.texts]
            assert self._embedder is not None
            self._restore(w.place, batch, self._embedder.documents(texts))
            done += len(w.ids)
            if progress is not None:
                progress(done, total)
        return done

    async def areindex(self, *, progress: Callable[[int, int], None] | None = None) -> int:
        """`reindex` without blocking the event loop."""
        embedder = self._embedder
        if embedder is None or not embedder.native:
            return await self._keepers.run(lambda: self.reindex(progress=progress))
        work, done = await self._keepers.run(self._stale), 0
        total = sum(len(w.ids) for w in work)
        for w in work:
            batch = await self._keepers.run(lambda w=w: chroma_keeping.read_batch(self._book, w, self._fields))  # type: ignore[misc]
            vectors = await embedder.adocuments([t for item in batch.items for t in item.texts])
            await self._keepers.run(lambda w=w, b=batch, v=vectors: self._restore(w.place, b, v))  # type: ignore[misc]
            done += len(w.ids)
            if progress is not None:
                progress(done, total)
        return done

    def _stale(self) -> list[Work]:
        """What is to be embedded again; first collections for vectors of another length are built anew."""
        if self._embedder is None:
            return []
        if self._embedder.dims is None:
            self._embedder.documents(["a text, to learn how long the vectors are"])
        self._enrol()
        assert self._embedder_id is not None
        assert self._embedder.dims is not None
        work: list[Work] = []
        for place in self._book.places.all():
            here = place
            if place.dims != self._embedder.dims:
                with self._book.shared.writing(self._book.owners_in(place)):
                    here = rebuilt(self._book, place, self._embedder.dims)
                self._shelves.clear()
            work += chroma_keeping.stale(self._book, here, self._embedder_id)
        return work

    def _restore(self, place: Place, batch: chroma_keeping.Batch, vectors: Matrix) -> None:
        with self._book.shared.writing([batch.owner]):
            now = self._book.places.find(batch.owner) or place
            chroma_keeping.restore(self._book, now, batch, vectors, self._by(micros(self._now())))

    def doctor(self) -> ChromaCheckup:
        """Examine every collection: sizes, embedder, foreign writers, and what should be done."""
        with self._book.shared.lock:
            now = micros(self._now())
            return chroma_keeping.examine(self._book, now, cache_bytes=self._shelves.nbytes, stray=self._stray())

    async def adoctor(self) -> ChromaCheckup:
        """`doctor` without blocking the event loop."""
        return await self._keepers.run(self.doctor)

    # opening and closing

    def setup(self) -> "_Done":
        """Nothing to do: the constructor did it. May be awaited."""
        return _Done()

    def close(self) -> None:
        """Finish what runs, then close the client if it was opened here, and let other processes in.

        May be called again; any other call then raises StoreClosed.
        """
        self.stop_ttl_sweeper(0)
        for workers in self._workers:
            workers.stop()
        self._book.close()
        self._shelves.clear()

    async def aclose(self) -> None:
        """`close` without blocking the event loop."""
        closing = Workers(1, "memory-close")
        await closing.run(self.close)
        closing.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.aclose()


class _Done:
    """`None` that may be awaited: LangGraph's async stores have `await store.setup()`."""

    def __await__(self) -> Generator[Any, None, None]:
        return None
        yield


def _shut(book: Book, *workers: Workers) -> None:
    """Close what a store that was dropped, or left open at exit, still holds."""
    for w in workers:
        w.stop()
    book.close()


def _results(plan: Plan, snapshot: Snapshot) -> tuple[list[Any], dict[Namespace, int]]:
    results: list[Any] = [None] * plan.size
    for (i, _), found in zip(plan.reads, snapshot.run_all([op for _, op in plan.reads]), strict=True):
        results[i] = found
    return results, snapshot.versions(plan.versions)
