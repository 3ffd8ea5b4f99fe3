"""`SqliteMemoryStore`: a LangGraph store in one SQLite file, sync and async, exact and hybrid search."""

import re
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from langgraph.store.base import IndexConfig, PutOp, TTLConfig

from langmem_adapter.errors import EmbedderMismatch, InvalidInput
from langmem_adapter.namespaces import Namespace
from langmem_adapter.stores import embedder as embedders
from langmem_adapter.stores import erasure, keeping, reindexing, schema, writing
from langmem_adapter.stores.base import Erased, Guarantees, Kept, Mode
from langmem_adapter.stores.connections import Connections
from langmem_adapter.stores.embedder import EMBEDDERS, Embedder
from langmem_adapter.stores.erasure import Erasure, Wanted
from langmem_adapter.stores.keeping import Checkup
from langmem_adapter.stores.part import Cache
from langmem_adapter.stores.plan import Plan, check_ttl, plan, read_index
from langmem_adapter.stores.reading import Settings, Snapshot
from langmem_adapter.stores.reindexing import Stale
from langmem_adapter.stores.tokens import TOKENIZER
from langmem_adapter.stores.twins import Calls, Twins, awaited
from langmem_adapter.stores.values import erasable, micros, path
from langmem_adapter.stores.vectors import Matrix
from langmem_adapter.stores.workers import CLOSE_SECONDS, Ticket, Workers, settled
from langmem_adapter.stores.writing import Prepared, Refreshed, Written

CACHE_BYTES = 256 * 1024 * 1024
READERS = 4
"""Threads for async reads; writes have one of their own, so that they never keep a read waiting."""

_YEAR_9999 = 253_370_764_800


_CONNINFO = re.compile(r"postgres(ql)?://|(.* )?(host|hostaddr|dbname|service)\s*=")


class SqliteMemoryStore(Twins):
    """A LangGraph store in one SQLite file that many threads, event loops and processes may share.

    `index` is LangGraph's (`dims`, `embed`, `fields`); without one, search is by words. `ttl` is LangGraph's too,
    in minutes. `mode` is how a plain `search(query=…)` ranks: by words and vectors fused ("hybrid"), or by one of
    them. `cache_bytes` bounds the vectors, words and ranked fields kept in memory. `replace_embedder=True` accepts an
    embedder other than the file's; call `reindex()` then. `clock` gives seconds since the epoch.

    Without a query, `search` returns the last updated items first, as LangGraph's SQL stores do. With one, the items
    it says something about come first, by score, then the others with `score=None`, as in `InMemoryStore`.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        mode: Mode = "hybrid",
        cache_bytes: int = CACHE_BYTES,
        replace_embedder: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if mode not in ("hybrid", "vector", "text"):
            raise InvalidInput(f"mode must be 'hybrid', 'vector' or 'text', got {mode!r}")
        if not isinstance(cache_bytes, int) or cache_bytes < 0:
            raise InvalidInput(f"cache_bytes is a number of bytes from 0, got {cache_bytes!r}")
        self.index_config = index
        self.ttl_config = ttl
        self.mode = mode
        check_ttl(ttl)
        self._embedder, self._fields = read_index(index)
        self._clock = clock
        self._latest = 0.0
        self._cache = Cache(cache_bytes)
        self._embedder_id: int | None = None
        self._met: tuple[str, bool] | None = None
        """What the file said of its embedder when it was last compared to ours, and whether ours was probed then."""
        if isinstance(path, str) and _CONNINFO.match(path):
            raise InvalidInput("a connection string, not a path: pass Memory(PostgresMemoryStore(…))")
        self._connections = Connections(path, self._cache.renew)
        self._calls = Calls(self.name)
        self._readers = Workers(READERS, f"memory-read {self.name}")
        self._embedders = Workers(EMBEDDERS, f"memory-embed {self.name}")
        self._writers = Workers(1, f"memory-write {self.name}")
        self._keepers = Workers(1, f"memory-keep {self.name}")
        self._unverified: dict[str, Wanted] = {}
        """Erasures of this store that are not verified yet, by their token in the file."""
        try:
            with self._connections.alone() as conn:
                schema.migrate(conn, self.name, TOKENIZER)
                schema.check_names(conn, self.name)
                self._store_id = str(schema.meta(conn, "store_id"))
                self._meet_embedder(conn, replace_embedder)
        except BaseException:
            self.close()
            raise
        self._finalizer = weakref.finalize(self, _shut, self._connections, *self._workers)

    @classmethod
    def from_conn_string(
        cls, conn_string: str, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None, **options: Any
    ) -> Self:
        """A store for `with` or `async with`, which close it; also usable as it is."""
        return cls(conn_string, index=index, ttl=ttl, **options)

    @property
    def _workers(self) -> tuple[Workers, ...]:
        return self._readers, self._embedders, self._writers, self._keepers

    # what it is

    @property
    def name(self) -> str:
        """The path it was opened with."""
        return self._connections.name

    @property
    def store_id(self) -> str:
        """Random, created with the file."""
        return self._store_id

    @property
    def guarantees(self) -> Guarantees:  # type: ignore[override]
        """What holds on this store."""
        memory = self._connections.in_memory
        return Guarantees(
            atomic=True,
            many_writers="threads" if memory else "processes",
            durable=not memory,
            hybrid=True,
            erasure="verified",
        )

    def _meet_embedder(self, conn: Any, replace: bool) -> None:
        if self._embedder is None:
            return
        try:
            self._recognise(conn)
        except EmbedderMismatch:
            if not replace:
                raise
            found = embedders.stored(conn, self.name)
            assert found is not None
            embedders.enrol(conn, self._embedder, found.id + 1, self._fields)
            self._recognise(conn)

    def _recognise(self, conn: Any) -> bool:
        """Whether the file has an embedder yet; EmbedderMismatch if that is not this store's, or no longer."""
        text = schema.meta(conn, "embedder")
        if self._embedder is None or text is None:
            return False
        met = text, self._embedder.probe is not None
        if met != self._met:
            found = embedders.read(text, self.name)
            embedders.check(found, self._embedder, self.name)
            self._embedder_id, self._embedder.dims, self._met = found.id, found.dims, met
        return True

    def kept(self, namespace: Namespace) -> tuple[int, dict[str, Kept]]:
        """See `MemoryStore.kept`."""
        with self._connections.reading() as conn:
            return writing.kept(conn, path(namespace))

    def take_over(self, puts: Sequence[PutOp], kept: Sequence[Kept]) -> None:
        """See `MemoryStore.take_over`."""
        p = plan(puts)
        prepared = self._prepare(p)
        writing.give_times(prepared, kept)
        self._transact(p, prepared, {}, None)

    # one batch

    def _run(self, plan: Plan) -> tuple[list[Any], dict[Namespace, int]]:
        return self._transact(plan, self._prepare(plan), self._query_vectors(plan), None)

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

    def _transact(
        self, plan: Plan, prepared: Sequence[Prepared], queries: Mapping[str, Matrix], ticket: Ticket | None
    ) -> tuple[list[Any], dict[Namespace, int]]:
        if not plan.writes:
            with self._connections.reading() as conn:
                snapshot = self._snapshot(conn, queries)
                found = _read(snapshot, plan)
            self._refresh(snapshot)
            return found
        with self._connections.writing(ticket) as conn:
            writing.check_versions(conn, plan.expect or {})
            snapshot = self._snapshot(conn, queries)
            found = _read(snapshot, plan)
            moved = writing.refresh(conn, snapshot.refresh, snapshot.now)
            embedded = any(p.value is not None and p.fields != "[]" for p in prepared)
            embedder_id = self._enrolled(conn) if embedded else self._embedder_id
            written = writing.write(conn, prepared, embedder_id, snapshot.now)
        self._embedder_id = embedder_id
        self._advance(moved, written)
        return found

    def _snapshot(self, conn: Any, queries: Mapping[str, Matrix]) -> Snapshot:
        if queries:
            self._recognise(conn)  # another process may have written the first vectors, or replaced the embedder
        dims = (self._embedder.dims if self._embedder is not None else None) or 0
        settings = Settings(self.name, self._cache, self._embedder_id, dims, self.mode)
        return Snapshot(conn, settings, queries, micros(self._now()))

    def _enrolled(self, conn: Any) -> int | None:
        """The number of our embedder, given out with the first vectors; EmbedderMismatch if it was replaced."""
        if self._embedder is None:
            return None
        if self._recognise(conn):
            return self._embedder_id
        if self._embedder.dims is None:
            return None  # nothing was embedded yet
        embedders.enrol(conn, self._embedder, 1, self._fields)
        return 1

    def _refresh(self, snapshot: Snapshot) -> None:
        if not snapshot.refresh:
            return
        try:
            with self._connections.writing() as conn:
                moved = writing.refresh(conn, snapshot.refresh, snapshot.now)
        except PermissionError:
            return  # a file that cannot be written can still be read
        self._advance(moved, [])

    def _advance(self, moved: Sequence[Refreshed], written: Sequence[Written]) -> None:
        for r in moved:
            self._cache.move(r.namespace, r.before, r.after, r.step)
        for w in written:
            self._cache.advance(w.namespace, w.before, w.after, w.changes)

    def _now(self) -> float:
        # A clock that steps back must not bring expired items back, as long as this store is open.
        self._latest = max(self._latest, self._clock())
        if not 0 <= self._latest < _YEAR_9999:
            raise InvalidInput(f"clock gave {self._latest!r}; it must give seconds since 1970, before the year 9999")
        return self._latest

    # time to live

    def sweep_ttl(self) -> int:
        """Delete the expired items; how many there were."""
        with self._connections.writing() as conn:
            now = micros(self._now())
            written = writing.write(conn, writing.expired(conn, now), None, now)
        self._advance([], written)
        return sum(len(w.changes) for w in written)

    asweep_ttl = awaited(sweep_ttl, "_writers")

    # erasure

    def erase(
        self, namespace_prefix: Sequence[str], keys: Sequence[str] | None = None, *, wait: float = 5.0
    ) -> Erasure:
        """Delete all items under a prefix, or those of `keys` there, and make sure that their bytes are gone.

        The files are searched for the items' texts, vectors and words, and rebuilt if any are found. `wait` is how
        many seconds readers of an older state may take to finish; if they take longer the state is `pending`.
        """
        prefix, keys = erasable(namespace_prefix, keys, "close the store and delete the file")
        token = uuid4().hex
        with self._connections.writing() as conn:
            wanted = erasure.erase(conn, prefix, keys)
            written = writing.write(conn, wanted.deletes, None, micros(self._now()), erasing=True)
            if wanted.deletes or wanted.blind:
                schema.mark(conn, token)
        self._advance([], written)
        self._unverified[token] = wanted
        return self._verify(len(wanted.deletes), wait)

    aerase = awaited(erase)

    def erase_with(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int], wait: float = 5.0) -> Erased:
        """See `MemoryStore.erase_with`: the files are searched for the old values of what the puts touch."""
        token = uuid4().hex
        with self._connections.writing() as conn:
            schema.mark(conn, token)
            wanted = [erasure.erase(conn, *each) for each in _keys_by_namespace(puts).items()]
        try:
            self.commit(puts, expect=expect)
        except BaseException:
            with self._connections.writing() as conn:
                schema.unmark(conn, [token])
            raise
        pieces = {p for w in wanted for p in w.pieces}
        self._unverified[token] = Wanted([], pieces, any(w.blind for w in wanted))
        done = self._verify(len(puts), wait)
        return Erased(state=done.state, note=done.reason or f"{done.bytes_searched} bytes searched")

    async def aerase_with(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int]) -> Erased:
        """See `MemoryStore.aerase_with`."""
        return await self._keepers.run(lambda: self.erase_with(puts, expect=expect))

    def finish_erasure(self, *, wait: float = 5.0) -> Erasure:
        """Try again to verify erasures that are pending.

        If the process that began one is gone, nobody knows what to look for: the file is rebuilt without a search.
        """
        return self._verify(0, wait)

    afinish_erasure = awaited(finish_erasure)

    def _verify(self, items: int, wait: float) -> Erasure:
        with self._connections.reading() as conn:
            marks = schema.marks(conn)
        own = dict(self._unverified)
        pieces = {p for w in own.values() for p in w.pieces}
        # What another store or a dead process was looking for nobody here knows: a rebuild makes up for its search.
        rebuild = any(w.blind for w in own.values()) or not marks <= own.keys()
        done = erasure.verify(self._connections, pieces, items, wait, rebuild=rebuild)
        if done.state == "done":
            for token in own:
                self._unverified.pop(token, None)
            if marks:
                with self._connections.writing() as conn:
                    schema.unmark(conn, marks)
        return done

    # keeping it

    def reindex(self, *, progress: Callable[[int, int], None] | None = None) -> int:
        """Embed every item that has no vector of this store's embedder; how many there were.

        In batches, each its own transaction: reads and writes go on meanwhile, and after an interruption it
        continues where it was. `progress(done, total)` is called after each. Words of an older tokenizer are
        renewed too.
        """
        total = self._stale_total()
        done, after = 0, 0
        while batch := self._stale_batch(after):
            texts = [t for stale in batch for t in stale.texts]
            self._restore(batch, None if self._embedder is None else self._embedder.documents(texts))
            done, after = done + len(batch), batch[-1].id
            if progress is not None:
                progress(done, total)
        self._reindexed()
        return done

    async def areindex(self, *, progress: Callable[[int, int], None] | None = None) -> int:
        """`reindex` without blocking the event loop."""
        with self._calls.one():
            total = await self._keepers.run(self._stale_total)
            done, after = 0, 0
            while batch := await self._keepers.run(lambda after=after: self._stale_batch(after)):  # type: ignore[misc]
                texts = [t for stale in batch for t in stale.texts]
                vectors = await self._adocuments(texts)
                await self._keepers.run(lambda batch=batch, vectors=vectors: self._restore(batch, vectors))  # type: ignore[misc]
                done, after = done + len(batch), batch[-1].id
                if progress is not None:
                    progress(done, total)
            await self._keepers.run(self._reindexed)
            return done

    async def _adocuments(self, texts: Sequence[str]) -> Matrix | None:
        embedder = self._embedder
        if embedder is None:
            return None
        if embedder.native:
            return await embedder.adocuments(texts)
        return await self._keepers.run(lambda: embedder.documents(texts))

    def _stale_total(self) -> int:
        with self._connections.reading() as conn:
            return reindexing.remaining(conn, self._number(conn), self._refielded(conn))

    def _stale_batch(self, after: int) -> list[Stale]:
        with self._connections.reading() as conn:
            return reindexing.next_batch(conn, self._number(conn), self._refielded(conn), self._fields, after)

    def _restore(self, batch: Sequence[Stale], vectors: Matrix | None) -> None:
        with self._connections.writing() as conn:
            number = self._enrolled(conn)
            reindexing.restore(conn, batch, vectors, number)
        self._embedder_id = number

    def _reindexed(self) -> None:
        with self._connections.reading() as conn:
            if schema.meta(conn, "tokenizer") == str(TOKENIZER) and not self._refielded(conn):
                return
        with self._connections.writing() as conn:
            reindexing.finish(conn)
            if self._embedder is not None and self._recognise(conn) and self._refielded(conn):
                embedders.enrol(conn, self._embedder, self._embedder_id or 1, self._fields)

    def _number(self, conn: Any) -> int | None:
        """The number our embedder has or, with nothing embedded yet, will have."""
        if self._embedder is None:
            return None
        return self._embedder_id if self._recognise(conn) else 1

    def _refielded(self, conn: Any) -> bool:
        """Whether the file's vectors are of other fields than this store's index has."""
        found = None if self._embedder is None else embedders.stored(conn, self.name)
        return found is not None and found.fields not in (None, self._fields)

    def backup(self, path: str | Path) -> None:
        """Copy the store, as of this moment, to a new file while others go on reading and writing."""
        with self._connections.reading() as conn:
            keeping.back_up(conn, self.name, Path(path))

    abackup = awaited(backup)

    def doctor(self, *, deep: bool = False) -> Checkup:
        """Examine the file: versions, settings, damage, embedder, sizes, and what should be done.

        `deep` also compares every index with its table.
        """
        with self._connections.reading() as conn:
            now = micros(self._now())
            return keeping.examine(
                conn,
                self.name,
                self._connections.file,
                now,
                embedder=self._embedder,
                fields=self._fields,
                cache_bytes=self._cache.nbytes,
                deep=deep,
            )

    adoctor = awaited(doctor)

    # opening and closing

    def _check(self) -> None:
        self._connections.check()

    def _close(self) -> None:
        self._connections.close(wait=CLOSE_SECONDS)
        self._cache.clear()


def _shut(connections: Connections, *workers: Workers) -> None:
    """Close what a store that was dropped, or left open at exit, still holds."""
    for w in workers:
        w.stop()
    connections.close(wait=1.0)


def _read(snapshot: Snapshot, plan: Plan) -> tuple[list[Any], dict[Namespace, int]]:
    results: list[Any] = [None] * plan.size
    for i, op in plan.reads:
        results[i] = snapshot.run(op)
    return results, snapshot.versions(plan.versions)


def _keys_by_namespace(puts: Sequence[PutOp]) -> dict[Namespace, list[str]]:
    found: dict[Namespace, list[str]] = {}
    for put in puts:
        found.setdefault(tuple(put.namespace), []).append(put.key)
    return found
