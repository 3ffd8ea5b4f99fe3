"""`SqliteMemoryStore`: a LangGraph store in one SQLite file, sync and async, exact and hybrid search."""

import asyncio
import os
import time
import weakref
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from langgraph.store.base import IndexConfig, Op, PutOp, Result, SearchOp, TTLConfig

from langmem_adapter.errors import EmbedderMismatch, InvalidInput
from langmem_adapter.namespaces import Namespace
from langmem_adapter.stores import embedder as embedders
from langmem_adapter.stores import schema, writing
from langmem_adapter.stores.base import Guarantees, MemoryStore, Mode, RankOp
from langmem_adapter.stores.connections import Connections
from langmem_adapter.stores.embedder import Embedder
from langmem_adapter.stores.filters import compile_filter
from langmem_adapter.stores.part import Cache
from langmem_adapter.stores.reading import Settings, Snapshot
from langmem_adapter.stores.terms import TOKENIZER
from langmem_adapter.stores.values import check, check_namespace, micros
from langmem_adapter.stores.vectors import Matrix
from langmem_adapter.stores.workers import Ticket, Workers, settled
from langmem_adapter.stores.writing import Prepared, Refreshed, Written

CACHE_BYTES = 256 * 1024 * 1024
READERS = 4
"""Threads for async reads and embedding; writes have one of their own, so that they never keep a read waiting."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Plan:
    """A checked batch: reads by position, puts, and the versions to return or to insist on."""

    size: int
    reads: tuple[tuple[int, Any], ...]
    puts: tuple[PutOp, ...]
    versions: tuple[Namespace, ...] = ()
    expect: Mapping[Namespace, int] | None = None

    @property
    def writes(self) -> bool:
        return bool(self.puts) or self.expect is not None

    @property
    def queries(self) -> list[str]:
        return [op.query for _, op in self.reads if isinstance(op, SearchOp | RankOp) and op.query]


class SqliteMemoryStore(MemoryStore):
    """A LangGraph store in one SQLite file that many threads, event loops and processes may share.

    `index` is LangGraph's (`dims`, `embed`, `fields`); without one, search is by words. `ttl` is LangGraph's too,
    in minutes. `mode` is how a plain `search(query=…)` ranks: by words and vectors fused ("hybrid"), or by one of
    them. `cache_bytes` bounds the vectors, words and ranked fields kept in memory. `replace_embedder=True` accepts an
    embedder other than the file's; call `reindex()` then. `clock` gives seconds since the epoch.

    Without a query, `search` returns the last updated items first, as LangGraph's SQL stores do. With one, the items
    it says something about come first, by score, then the others with `score=None`, as in `InMemoryStore`.
    """

    supports_ttl = True

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
        self.index_config = index
        self.ttl_config = ttl
        self.mode = mode
        self._embedder, self._fields = _read_index(index)
        self._clock = clock
        self._latest = 0.0
        self._cache = Cache(cache_bytes)
        self._embedder_id: int | None = None
        self._connections = Connections(path)
        self._start_workers()
        try:
            with self._connections.alone() as conn:
                schema.migrate(conn, self.name, TOKENIZER)
                self._store_id = str(schema.meta(conn, "store_id"))
                self._meet_embedder(conn, replace_embedder)
        except BaseException:
            self.close()
            raise
        self._finalizer = weakref.finalize(self, _shut, self._connections, self._readers, self._writers, os.getpid())

    def _start_workers(self) -> None:
        self._pid = os.getpid()
        self._readers = Workers(READERS, "memory-read")
        self._writers = Workers(1, "memory-write")

    @classmethod
    def from_conn_string(
        cls, conn_string: str, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None, **options: Any
    ) -> Self:
        """A store for `with` or `async with`, which close it; also usable as it is."""
        return cls(conn_string, index=index, ttl=ttl, **options)

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

    @property
    def embeddings(self) -> Any:
        """The LangChain `Embeddings` in use; None without an index."""
        return None if self._embedder is None else self._embedder.embeddings

    def _meet_embedder(self, conn: Any, replace: bool) -> None:
        found = embedders.stored(conn)
        if found is None or self._embedder is None:
            return
        try:
            embedders.check(found, self._embedder, self.name)
        except EmbedderMismatch:
            if not replace:
                raise
            self._embedder_id = found["id"] + 1
            embedders.enrol(conn, self._embedder, self._embedder_id)
            return
        self._embedder_id, self._embedder.dims = found["id"], found["dims"]

    # LangGraph's interface

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Results in the order of the ops. Reads see the state before the puts; of two puts to one key the last
        counts; all puts happen or, if anything raises, none."""
        return self._run(_plan(ops))[0]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """`batch` without blocking the event loop. If cancelled, all of its puts happened or none."""
        return (await self._arun(_plan(ops)))[0]

    # the memory store's interface

    def read(self, ops: Sequence[Any], *, versions: Sequence[Namespace] = ()) -> tuple[list[Any], dict[Namespace, int]]:
        """See `MemoryStore.read`."""
        return self._run(_read_plan(ops, versions))

    def commit(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int]) -> None:
        """See `MemoryStore.commit`. `expect` may name namespaces that no put touches."""
        self._run(_commit_plan(puts, expect))

    async def aread(
        self, ops: Sequence[Any], *, versions: Sequence[Namespace] = ()
    ) -> tuple[list[Any], dict[Namespace, int]]:
        """See `MemoryStore.aread`."""
        return await self._arun(_read_plan(ops, versions))

    async def acommit(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int]) -> None:
        """See `MemoryStore.acommit`."""
        await self._arun(_commit_plan(puts, expect))

    # one batch

    def _run(self, plan: _Plan) -> tuple[list[Any], dict[Namespace, int]]:
        return self._transact(plan, self._prepare(plan), self._query_vectors(plan), None)

    async def _arun(self, plan: _Plan) -> tuple[list[Any], dict[Namespace, int]]:
        self._check_process()
        embedder = self._embedder
        if embedder is None or not embedder.native:
            if not plan.writes:
                return await asyncio.wrap_future(self._readers.submit(lambda: self._run(plan)))
            # Embedding may be slow: it must not occupy the one thread that writes.
            phase = lambda: (self._prepare(plan), self._query_vectors(plan))  # noqa: E731
            prepared, queries = await asyncio.wrap_future(self._readers.submit(phase))
        else:
            queries = await embedder.aqueries(plan.queries)
            prepared = await self._aprepare(plan, embedder)
        if not plan.writes:
            return await asyncio.wrap_future(
                self._readers.submit(lambda: self._transact(plan, prepared, queries, None))
            )
        ticket = Ticket()
        job = self._writers.submit(lambda: self._transact(plan, prepared, queries, ticket))
        return await settled(job, ticket)

    def _prepare(self, plan: _Plan) -> list[Prepared]:
        prepared = writing.prepare(plan.puts, self._fields)
        texts = [t for p in prepared for t in p.texts]
        if self._embedder is None or not texts:
            return prepared
        return writing.embedded(prepared, self._embedder.documents(texts))

    async def _aprepare(self, plan: _Plan, embedder: Embedder) -> list[Prepared]:
        if not plan.puts:
            return []
        prepared = await asyncio.wrap_future(self._readers.submit(lambda: writing.prepare(plan.puts, self._fields)))
        texts = [t for p in prepared for t in p.texts]
        return writing.embedded(prepared, await embedder.adocuments(texts)) if texts else prepared

    def _query_vectors(self, plan: _Plan) -> dict[str, Matrix]:
        return {} if self._embedder is None else self._embedder.queries(plan.queries)

    def _transact(
        self, plan: _Plan, prepared: Sequence[Prepared], queries: Mapping[str, Matrix], ticket: Ticket | None
    ) -> tuple[list[Any], dict[Namespace, int]]:
        self._check_process()
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
            embedder_id = self._enrolled(conn, prepared)
            written = writing.write(conn, prepared, embedder_id, snapshot.now)
        self._embedder_id = embedder_id
        self._advance(moved, written)
        return found

    def _snapshot(self, conn: Any, queries: Mapping[str, Matrix]) -> Snapshot:
        if self._embedder_id is None and self._embedder is not None:
            found = embedders.stored(conn)  # another process may have written the first vectors
            if found is not None:
                embedders.check(found, self._embedder, self.name)
                self._embedder_id = found["id"]
        dims = (self._embedder.dims if self._embedder is not None else None) or 0
        settings = Settings(self.name, self._cache, self._embedder_id, dims, self.mode)
        return Snapshot(conn, settings, queries, micros(self._now()))

    def _enrolled(self, conn: Any, prepared: Sequence[Prepared]) -> int | None:
        """The number of our embedder, given out with the first vectors; EmbedderMismatch if it was replaced."""
        if self._embedder is None or not any(p.value is not None for p in prepared):
            return self._embedder_id
        found = embedders.stored(conn)
        if found is not None:
            embedders.check(found, self._embedder, self.name)
            return int(found["id"])
        if self._embedder.dims is None:
            return None
        embedders.enrol(conn, self._embedder, 1)
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
            self._cache.advance(r.namespace, r.before, r.after, r.step)
        for w in written:
            self._cache.advance(w.namespace, w.before, w.after, w.step)

    def _now(self) -> float:
        # A clock that steps back must not bring expired items back.
        self._latest = max(self._latest, self._clock())
        return self._latest

    def _check_process(self) -> None:
        if self._pid != os.getpid():  # threads do not survive a fork
            self._start_workers()

    # time to live

    def sweep_ttl(self) -> int:
        """Delete the expired items; how many there were."""
        self._check_process()
        with self._connections.writing() as conn:
            written = writing.write(conn, writing.expired(conn, micros(self._now())), None, micros(self._now()))
        self._advance([], written)
        return sum(len(w.changes) for w in written)

    async def asweep_ttl(self) -> int:
        """`sweep_ttl` without blocking the event loop."""
        return await asyncio.wrap_future(self._writers.submit(self.sweep_ttl))

    # opening and closing

    def setup(self) -> "_Done":
        """Nothing to do: the constructor did it. May be awaited."""
        return _Done()

    def close(self) -> None:
        """Finish what runs, then close the file. May be called again; any other call then raises StoreClosed."""
        self._connections.close()
        self._readers.stop()
        self._writers.stop()
        self._cache.clear()

    async def aclose(self) -> None:
        """`close` without blocking the event loop."""
        closing = Workers(1, "memory-close")
        await asyncio.wrap_future(closing.submit(self.close))
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


def _shut(connections: Connections, readers: Workers, writers: Workers, pid: int) -> None:
    """Close what a store that was dropped, or left open at exit, still holds."""
    if pid == os.getpid():
        connections.close()
        readers.stop()
        writers.stop()


def _plan(ops: Iterable[Any]) -> _Plan:
    ops = list(ops)
    for op in ops:
        check(op)
        if isinstance(op, SearchOp):
            compile_filter(op.filter)
    puts = tuple(op for op in ops if isinstance(op, PutOp))
    return _Plan(len(ops), tuple((i, op) for i, op in enumerate(ops) if not isinstance(op, PutOp)), puts)


def _read_plan(ops: Sequence[Any], versions: Sequence[Namespace]) -> _Plan:
    plan = _plan(ops)
    if plan.puts:
        raise InvalidInput("read() takes no PutOp; use commit() or batch()")
    for namespace in versions:
        check_namespace(namespace)
    return _Plan(plan.size, plan.reads, (), tuple(tuple(v) for v in versions))


def _commit_plan(puts: Sequence[PutOp], expect: Mapping[Namespace, int]) -> _Plan:
    plan = _plan(puts)
    if plan.reads:
        raise InvalidInput("commit() takes PutOps only; use read() or batch()")
    for namespace in expect:
        check_namespace(namespace)
    return _Plan(plan.size, (), plan.puts, (), dict(expect))


def _read(snapshot: Snapshot, plan: _Plan) -> tuple[list[Any], dict[Namespace, int]]:
    results: list[Any] = [None] * plan.size
    for i, op in plan.reads:
        results[i] = snapshot.run(op)
    return results, snapshot.versions(plan.versions)


def _read_index(index: IndexConfig | None) -> tuple[Embedder | None, tuple[str, ...]]:
    """The embedder, and the paths that are indexed by default."""
    if index is None:
        return None, writing.WHOLE
    fields = tuple(index.get("fields") or writing.WHOLE)
    if "embed" not in index and "dims" not in index:
        return None, fields
    distance = cast(Mapping[str, Any], index).get("distance_type", "cosine")
    if distance != "cosine":
        raise InvalidInput(f"index['distance_type'] must be 'cosine', got {distance!r}")
    return Embedder(index.get("embed"), index.get("dims")), fields
