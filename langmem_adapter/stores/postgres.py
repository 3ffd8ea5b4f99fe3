"""`PostgresMemoryStore`: a LangGraph store in PostgreSQL, for many servers; sync and async, exact and hybrid search."""

import itertools
import json
import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self, TypeVar, cast

try:
    import psycopg
except ImportError as e:
    raise ImportError(
        "PostgresMemoryStore needs the PostgreSQL driver: pip install 'langgraph-memory-adapter[postgres]'"
    ) from e

from langgraph.store.base import GetOp, IndexConfig, PutOp, TTLConfig

from langmem_adapter.errors import Conflict, EmbedderMismatch, InvalidInput, StoreReadOnly
from langmem_adapter.namespaces import Namespace
from langmem_adapter.stores import embedder as embedders
from langmem_adapter.stores import postgres_keeping as keeping
from langmem_adapter.stores import postgres_schema as schemas
from langmem_adapter.stores import postgres_writing as writing
from langmem_adapter.stores.base import Erased, Guarantees, Kept, Mode
from langmem_adapter.stores.embedder import EMBEDDERS, Embedder
from langmem_adapter.stores.erasure import Erasure
from langmem_adapter.stores.plan import Plan, check_ttl, read_index
from langmem_adapter.stores.postgres_keeping import Checkup
from langmem_adapter.stores.postgres_owners import EVERYBODY, distinct, owner_of, owner_under
from langmem_adapter.stores.postgres_plan import commit_plan, owners_of, plan, read_plan
from langmem_adapter.stores.postgres_pool import SIZE, Connections, NotCommitted, Pool, forget_commits
from langmem_adapter.stores.postgres_reading import Settings, Snapshot, under
from langmem_adapter.stores.postgres_schema import Connection, Schema, run
from langmem_adapter.stores.postgres_turns import Turns, Who, who
from langmem_adapter.stores.postgres_words import AUTO
from langmem_adapter.stores.postgres_writing import Prepared
from langmem_adapter.stores.twins import Calls, Twins, awaited
from langmem_adapter.stores.values import erasable, micros, path
from langmem_adapter.stores.vectors import Matrix
from langmem_adapter.stores.workers import Ticket, Workers, settled
from langmem_adapter.stores.writing import give_times

logger = logging.getLogger("langmem_adapter")

T = TypeVar("T")

READERS = WRITERS = 4
"""Threads for async reads and for async writes; a write that waits for another never keeps a read waiting."""

WAIT_SECONDS = 5.0
"""How long an erasure waits for transactions that still see, or use, what it deleted."""

_SWEEP = 1_000
_COMMITS = 1_000
"""After so many commits of this process the ids of old ones are deleted."""


class PostgresMemoryStore(Twins):
    """A LangGraph store in PostgreSQL that any number of threads, event loops, processes and servers may share.

    `source` is a connection string or a `psycopg_pool.ConnectionPool`, which stays yours to close. Tables are made
    in `schema` at the first use, also when many processes start at once; vectors are pgvector's where the server has
    it, and plain arrays, about 15 times slower to search, where it has not.

    `index`, `ttl`, `mode`, `replace_embedder` and `clock` are as in `SqliteMemoryStore`. `language` is the full-text
    configuration of all texts ("german"), or "auto": that of the language each text is in. `rls=True` switches on
    row-level security, for good: a transaction sees the owners it names and no others, so that a query which forgets
    its condition returns nothing; it holds for roles that are no superuser. `partitions`: into how many tables, by a
    hash of the owner, the rows are divided; fixed when the schema is created. `pool_size`: at most so many
    connections, opened when needed.
    """

    _plan = staticmethod(plan)
    _read_plan = staticmethod(read_plan)
    _commit_plan = staticmethod(commit_plan)
    guarantees = Guarantees(atomic=True, many_writers="processes", durable=True, hybrid=True, erasure="deleted")

    def __init__(
        self,
        source: str | Pool,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        schema: str = "langmem_adapter",
        rls: bool = False,
        partitions: int | None = None,
        language: str = AUTO,
        mode: Mode = "hybrid",
        pool_size: int = SIZE,
        replace_embedder: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if mode not in ("hybrid", "vector", "text"):
            raise InvalidInput(f"mode must be 'hybrid', 'vector' or 'text', got {mode!r}")
        self.index_config = index
        self.ttl_config = ttl
        self.mode = mode
        self.language = language
        check_ttl(ttl)
        self._embedder, self._fields = read_index(index)
        self._replace_embedder = replace_embedder
        schemas.check_partitions(partitions)
        self._asked = {"partitions": partitions, "rls": rls}
        self._name = schemas.check_name(schema)
        self._clock = clock
        self._latest = 0.0
        self._opening = threading.Lock()
        self._schema: Schema | None = None
        self._embedder_id: int | None = None
        self._connections = Connections(source, pool_size)
        self._calls = Calls(self.name)
        self._turns = Turns(self._connections)
        self._readers = Workers(READERS, "memory-pg-read")
        self._embedders = Workers(EMBEDDERS, "memory-pg-embed")
        self._writers = Workers(WRITERS, "memory-pg-write")
        self._waiters = Workers(WRITERS, "memory-pg-turn")
        self._keepers = Workers(1, "memory-pg-keep")
        self._erasers = Workers(2, "memory-pg-erase")
        self._commits = itertools.count(1)
        self._finalizer = weakref.finalize(self, _shut, self._connections, self._turns, *self._workers)

    @classmethod
    def from_conn_string(
        cls, conn_string: str, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None, **options: Any
    ) -> Self:
        """A store for `with` or `async with`, which close it; also usable as it is."""
        return cls(conn_string, index=index, ttl=ttl, **options)

    @property
    def _workers(self) -> tuple[Workers, ...]:
        return self._readers, self._embedders, self._writers, self._waiters, self._keepers, self._erasers

    # what it is

    @property
    def name(self) -> str:
        """The database and its host."""
        return self._connections.name

    @property
    def store_id(self) -> str:
        """Random, created with the tables."""
        return self._opened().store_id

    @property
    def known_id(self) -> str | None:
        """`store_id`; None before the first call that reached the server."""
        return None if self._schema is None else self._schema.store_id

    def _opened(self) -> Schema:
        """What the tables are; at the first call they are made. A server that is away is asked again next time."""
        if self._schema is None:
            with self._opening:
                if self._schema is None:
                    schema = self._connections.alone(self._open)
                    self._connections.divided = bool(schema.partitions)
                    self._schema = schema
        return self._schema

    def _open(self, conn: Connection) -> Schema:
        schema = schemas.open_schema(conn, self._name, where=self._where, **cast(Any, self._asked))
        if self.language not in (AUTO, *schema.configurations):
            raise InvalidInput(
                f"language must be 'auto' or one of {sorted(schema.configurations)}, got {self.language!r}"
            )
        found = _stored_embedder(conn, schema)
        if found is not None and self._embedder is not None:
            try:
                embedders.check(found, self._embedder, self._where)
            except EmbedderMismatch:
                if not self._replace_embedder:
                    raise
                number = found.id + 1
                schemas.set_meta(conn, schema.name, "embedder", _identity(self._embedder, number))
                self._embedder_id = number
            else:
                self._embedder_id, self._embedder.dims = found.id, found.dims
        return schema

    @property
    def _where(self) -> str:
        return f"{self.name}, schema {self._name}"

    def kept(self, namespace: Namespace) -> tuple[int, dict[str, Kept]]:
        """See `MemoryStore.kept`."""
        schema = self._opened()
        return self._connections.reading([owner_of(namespace)], lambda conn: keeping.kept(conn, schema.name, namespace))

    def take_over(self, puts: Sequence[PutOp], kept: Sequence[Kept]) -> None:
        """See `MemoryStore.take_over`."""
        p = plan(puts)
        prepared = self._prepare(p.puts)
        give_times(prepared, kept)
        self._transact(p, prepared, {}, None, who())

    # one batch

    def _run(self, p: Plan, *, erasing: bool = False) -> tuple[list[Any], dict[Namespace, int]]:
        return self._transact(p, self._prepare(p.puts), self._query_vectors(p), None, who(), erasing=erasing)

    async def _arun(self, p: Plan, *, erasing: bool = False) -> tuple[list[Any], dict[Namespace, int]]:
        caller, embedder = who(), self._embedder
        due = self._turns.due(caller, owners_of(p)) and bool(p.versions)
        readers = self._waiters if due else self._readers  # whoever waits for a turn keeps nobody else waiting
        embeds = embedder is not None and p.embeds(self.mode)
        if embedder is not None and embedder.native:
            queries = await embedder.aqueries(p.queries(self.mode))
            prepared = await self._aprepare(p.puts, embedder)
        elif not embeds and not p.writes:
            return await readers.run(lambda: self._transact(p, [], {}, None, caller))
        else:  # embedding may be slow: what needs none must not wait for it
            workers = self._embedders if embeds else self._readers
            prepared, queries = await workers.run(lambda: (self._prepare(p.puts), self._query_vectors(p)))
        if not p.writes:
            return await readers.run(lambda: self._transact(p, prepared, queries, None, caller))
        ticket = Ticket()
        # A commit that has its turn waits for nobody, so it must not queue behind those that may.
        workers = self._readers if self._turns.has(caller) else self._writers
        job = workers.submit(lambda: self._transact(p, prepared, queries, ticket, caller, erasing=erasing))
        return await settled(job, ticket)

    def _prepare(self, puts: Sequence[PutOp]) -> list[Prepared]:
        prepared = self._prepared(puts)
        texts = [t for p in prepared for t in p.texts]
        if self._embedder is not None and texts:
            _give_vectors(prepared, self._embedder.documents(texts))
        return prepared

    async def _aprepare(self, puts: Sequence[PutOp], embedder: Embedder) -> list[Prepared]:
        if not puts:
            return []
        prepared = await self._readers.run(lambda: self._prepared(puts))
        texts = [t for p in prepared for t in p.texts]
        if texts:
            _give_vectors(prepared, await embedder.adocuments(texts))
        return prepared

    def _prepared(self, puts: Sequence[PutOp]) -> list[Prepared]:
        if not puts:
            return []
        return writing.prepare(puts, self._fields, self.language, self._opened().configurations)

    def _transact(
        self,
        p: Plan,
        prepared: Sequence[Prepared],
        queries: Mapping[str, Matrix],
        ticket: Ticket | None,
        caller: Who,
        *,
        erasing: bool = False,
    ) -> tuple[list[Any], dict[Namespace, int]]:
        schema = self._opened()
        if p.writes:
            return self._write(schema, p, prepared, queries, ticket, caller, erasing=erasing)
        if p.versions:
            self._turns.take(caller)  # whoever reads them again gave up what it had read before
        noted: list[Snapshot] = []

        def job(conn: Connection) -> tuple[list[Any], dict[Namespace, int]]:
            snapshot = self._snapshot(conn, schema, queries)
            noted[:] = [snapshot]
            return snapshot.run(p)

        owners = owners_of(p)
        found = None
        if p.versions and self._turns.due(caller, owners):
            found = self._turns.begin(caller, schema.name, owners, [path(ns) for ns in p.versions], job)
        if found is None:
            found = self._connections.reading(owners, job)
        self._refresh(schema, owners, noted[0])
        return found

    def _write(
        self,
        schema: Schema,
        p: Plan,
        prepared: Sequence[Prepared],
        queries: Mapping[str, Matrix],
        ticket: Ticket | None,
        caller: Who,
        *,
        erasing: bool,
    ) -> tuple[list[Any], dict[Namespace, int]]:
        expect = p.expect or {}
        paths = {path(ns) for ns in expect} | {q.path for q in prepared}
        needed = {path(ns) for ns, version in expect.items() if not version}
        needed |= {q.path for q in prepared if q.value is not None}

        def job(conn: Connection) -> tuple[list[Any], dict[Namespace, int]]:
            locked = writing.lock(conn, schema.name, paths)
            if needed - locked.keys():
                raise _Unknown
            writing.check_versions(locked, expect)
            snapshot = self._snapshot(conn, schema, queries)
            found = snapshot.run(p)
            if snapshot.refresh:
                writing.refresh(conn, schema.name, snapshot.refresh, snapshot.now)
            embedder = self._enrolled(conn, schema) if any(q.value is not None for q in prepared) else None
            writing.write(conn, schema.name, prepared, locked, embedder, snapshot.now)
            if erasing:
                keeping.mark(conn, schema, distinct(q.owner for q in prepared))
            return found

        owners = owners_of(p)
        try:
            found = self._committed(schema, owners, paths, job, ticket, caller)
        except _Unknown:
            # In a transaction of its own: it takes locks in another order than `lock` does.
            self._in_write(schema, owners, lambda conn: writing.create(conn, schema.name, paths))
            found = self._committed(schema, owners, paths, job, ticket, caller)
        except Conflict:
            self._turns.lost(caller, owners)
            raise
        self._turns.won(caller, owners)
        if next(self._commits) % _COMMITS == 0:
            self._connections.alone(lambda conn: forget_commits(conn, f"{schema.name}.commits"))
        return found

    def _committed(
        self,
        schema: Schema,
        owners: set[str],
        paths: set[str],
        job: Callable[[Connection], T],
        ticket: Ticket | None,
        caller: Who,
    ) -> T:
        turn = self._turns.take(caller, paths)
        if turn is not None:
            try:
                found = job(turn.conn)
                self._connections.finish(turn.conn, f"{schema.name}.commits", ticket)
                return found
            except (psycopg.Error, NotCommitted):
                # It took too long and the server ended it, or something else is wrong: nothing was committed.
                logger.debug("a turn ended early", exc_info=True)
            finally:
                self._turns.end(turn)
        return self._in_write(schema, owners, job, ticket)

    def _in_write(
        self, schema: Schema, owners: Iterable[str], job: Callable[[Connection], T], ticket: Ticket | None = None
    ) -> T:
        return self._connections.writing(owners, job, f"{schema.name}.commits", ticket)

    def _snapshot(self, conn: Connection, schema: Schema, queries: Mapping[str, Matrix]) -> Snapshot:
        if self._embedder_id is None and self._embedder is not None and queries:
            found = _stored_embedder(conn, schema)  # another process may have written the first vectors
            if found is not None:
                embedders.check(found, self._embedder, self._where)
                self._embedder_id = found.id
        settings = Settings(self.name, schema, self._embedder_id, self.mode, self.language)
        return Snapshot(conn, settings, queries, micros(self._now()))

    def _enrolled(self, conn: Connection, schema: Schema) -> int | None:
        """The number of our embedder, given out with the first vectors; EmbedderMismatch if it was replaced."""
        if self._embedder is None:
            return None
        if self._embedder.dims is None:
            return None  # nothing was embedded yet
        found = _stored_embedder(conn, schema)
        if found is None:  # the insert waits for another that is giving it out just now
            own = _identity(self._embedder, 1)
            run(conn, f"INSERT INTO {schema.name}.meta VALUES ('embedder', %s) ON CONFLICT DO NOTHING", (own,))
            found = _stored_embedder(conn, schema)
        assert found is not None
        embedders.check(found, self._embedder, self._where)
        return found.id

    def _refresh(self, schema: Schema, owners: Iterable[str], snapshot: Snapshot) -> None:
        if not snapshot.refresh:
            return
        try:
            self._in_write(
                schema, owners, lambda conn: writing.refresh(conn, schema.name, snapshot.refresh, snapshot.now)
            )
        except StoreReadOnly:
            return  # a database that cannot be written can still be read

    def _now(self) -> float:
        # A clock that steps back must not bring expired items back.
        self._latest = max(self._latest, self._clock())
        return self._latest

    # time to live

    def sweep_ttl(self) -> int:
        """Delete the expired items; how many there were."""
        schema, total = self._opened(), 0
        while True:
            now = micros(self._now())
            count = self._in_write(schema, [EVERYBODY], lambda conn, now=now: self._sweep(conn, schema.name, now))  # type: ignore[misc]
            total += count
            if count < _SWEEP:
                return total

    def _sweep(self, conn: Connection, s: str, now: int) -> int:
        rows = run(
            conn,
            f"SELECT n.path, i.owner, i.key, i.digest FROM {s}.items i JOIN {s}.namespaces n ON n.owner = i.owner "
            f"AND n.id = i.namespace WHERE i.expires_at <= %s ORDER BY i.expires_at LIMIT {_SWEEP}",
            (now,),
        )
        locked = writing.lock(conn, s, {where for where, *_ in rows})
        # Only now nobody can write them any more: leave out what was put again meanwhile.
        digests, owners = [digest for *_, digest in rows], distinct(owner for _, owner, *_ in rows)
        sql = f"SELECT digest FROM {s}.items WHERE expires_at <= %s AND digest = ANY(%s) AND owner = ANY(%s::text[])"
        still = {d for (d,) in run(conn, sql, (now, digests, owners))}
        gone = [Prepared(where, owner, key, digest) for where, owner, key, digest in rows if digest in still]
        writing.write(conn, s, gone, locked, None, now)
        return len(rows)

    asweep_ttl = awaited(sweep_ttl)

    # erasure

    def erase(
        self,
        namespace_prefix: Sequence[str],
        keys: Sequence[str] | None = None,
        *,
        wait: float = WAIT_SECONDS,
        rebuild: bool | None = None,
    ) -> Erasure:
        """Delete all items under a prefix, or those of `keys` there, and get their bytes out of the table files.

        That takes rewriting the tables they were in, or only their partitions, while nobody else can use those:
        done up to 16 MB, with `rebuild=True` always, with False never. Otherwise the state is `pending`, as it is
        while transactions that see an older state, or use a table, do not end within `wait` seconds, or if this role
        may not vacuum. Pending tables are noted in the database: any process's `finish_erasure` goes on with them.
        `reason` also says what no store can reach: write-ahead log, archives, replicas, backups.
        """
        prefix, keys = erasable(namespace_prefix, keys, "drop the schema")
        schema = self._opened()
        items, owners = self._in_write(
            schema,
            [owner_under(prefix) or EVERYBODY],
            lambda conn: self._erase(conn, schema, prefix, keys),
        )
        return self._clear(owners, items, wait, rebuild)

    def _erase(
        self, conn: Connection, schema: Schema, prefix: Namespace, keys: Sequence[str] | None
    ) -> tuple[int, list[str]]:
        s = schema.name
        scope, params = under(prefix)
        names = run(conn, f"SELECT n.path, n.owner FROM {s}.namespaces n WHERE {scope}", params)
        locked = writing.lock(conn, s, {where for where, _ in names})
        digests = None if keys is None else [writing.digest(key) for key in keys]
        rows = run(
            conn,
            f"SELECT n.path, i.owner, i.key, i.digest FROM {s}.namespaces n JOIN {s}.items i ON i.owner = n.owner AND "
            f"i.namespace = n.id WHERE {scope} AND (%s::bytea[] IS NULL OR i.digest = ANY(%s::bytea[]))",
            (*params, digests, digests),
        )
        owners = distinct(owner for _, owner in names)
        keeping.mark(conn, schema, owners)
        writing.write(conn, s, [Prepared(*row) for row in rows], locked, None, micros(self._now()))
        return len(rows), owners

    def _clear(self, owners: Sequence[str], items: int, wait: float, rebuild: bool | None) -> Erasure:
        schema = self._opened()

        def job(conn: Connection) -> Erasure:
            tables = keeping.tables_of(conn, schema, owners)
            return keeping.clear(conn, schema.name, tables, items, wait, rebuild)

        return self._connections.alone(job)

    def erase_with(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int]) -> Erased:
        """See `MemoryStore.erase_with`; as `erase`, for the owners that the puts belong to."""
        p = commit_plan(puts, expect)
        if puts:
            self._run(p, erasing=True)
        return self._erased(p)

    async def aerase_with(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int]) -> Erased:
        """See `MemoryStore.aerase_with`."""
        with self._calls.one():
            p = commit_plan(puts, expect)
            if puts:
                await self._arun(p, erasing=True)
            return await self._erasers.run(lambda: self._erased(p))

    def _erased(self, p: Plan) -> Erased:
        owners = distinct(owner_of(put.namespace) for put in p.puts)
        done = self._clear(owners, len(owners), WAIT_SECONDS, None) if owners else self.finish_erasure()
        return Erased(state=done.state, note=done.reason)

    aerase = awaited(erase, "_erasers")

    def finish_erasure(self, *, wait: float = WAIT_SECONDS, rebuild: bool | None = None) -> Erasure:
        """Try again to finish erasures that are pending, also those of other processes; with `rebuild=True` every
        table is written anew, whatever is known to be pending."""
        schema = self._opened()

        def job(conn: Connection) -> Erasure:
            tables = keeping.tables_of(conn, schema, None) if rebuild else keeping.marked(conn, schema.name)
            return keeping.clear(conn, schema.name, tables, 0, wait, rebuild)

        return self._connections.alone(job)

    afinish_erasure = awaited(finish_erasure, "_erasers")

    # keeping it

    def reindex(self, *, progress: Callable[[int], None] | None = None) -> int:
        """Embed every item that has no vector of this store's embedder; how many were looked at.

        In batches, each its own transaction: reads and writes go on meanwhile, and after an interruption it
        continues where it was. `progress(done)` is called after each.
        """
        embedder = self._embedder
        if embedder is None:
            return 0
        schema, done, after = self._opened(), 0, 0
        while batch := self._stale(schema, after):
            vectors = embedder.documents([t for stale in batch for t in stale.texts])
            self._in_write(schema, [EVERYBODY], lambda conn, b=batch, v=vectors: self._restore(conn, schema, b, v))  # type: ignore[misc]
            done, after = done + len(batch), batch[-1].id
            if progress is not None:
                progress(done)
        return done

    areindex = awaited(reindex)

    def _stale(self, schema: Schema, after: int) -> list[keeping.Stale]:
        number = self._embedder_id or 1
        return self._connections.reading(
            [EVERYBODY], lambda conn: keeping.stale(conn, schema.name, number, self._fields, after)
        )

    def _restore(self, conn: Connection, schema: Schema, batch: Sequence[keeping.Stale], vectors: Matrix) -> None:
        number = self._enrolled(conn, schema)
        if number is not None:
            keeping.restore(conn, schema.name, batch, vectors, number)

    def import_langgraph(
        self, source: str, *, table: str = "store", progress: Callable[[int], None] | None = None
    ) -> int:
        """Copy the items of a LangGraph `PostgresStore`, with their times; how many were new here.

        `source`: the connection string of its database. Expired items stay behind, vectors are made anew, and what
        this store already has is kept, so that it can be called again. `progress(done)` is called after each batch.
        """
        done = 0
        for batch in keeping.items_of(source, table):
            keeping.check_storable(batch, table)
            ops = [GetOp(f.put.namespace, f.put.key, refresh_ttl=False) for f in batch]
            here, _ = self.read(ops)
            new = [f for f, item in zip(batch, here, strict=True) if item is None]
            made = plan([f.put for f in new])
            prepared = self._prepare(made.puts)
            for p, f in zip(prepared, new, strict=True):
                p.times = f.times
            if new:
                self._transact(made, prepared, {}, None, who())
            done += len(new)
            if progress is not None:
                progress(done)
        return done

    aimport_langgraph = awaited(import_langgraph)

    def doctor(self) -> Checkup:
        """Examine the tables: versions, settings, embedder, sizes, and what should be done. Counts every row."""
        schema = self._opened()
        return self._connections.reading(
            [EVERYBODY], lambda conn: keeping.examine(conn, schema, self._where, micros(self._now()))
        )

    adoctor = awaited(doctor)

    # opening and closing

    def _check(self) -> None:
        self._opened()  # makes the tables, if need be

    def _close(self) -> None:
        self._finalizer()


class _Unknown(Exception):
    """A namespace has no row yet."""


def _shut(connections: Connections, turns: Turns, *workers: Workers) -> None:
    """Close what a store that was dropped, or left open at exit, still holds."""
    for w in workers:
        w.stop()
    turns.close()
    connections.close()


def _give_vectors(prepared: Sequence[Prepared], vectors: Matrix) -> None:
    start = 0
    for p in prepared:
        p.vectors = vectors[start : start + len(p.texts)]
        start += len(p.texts)


def _stored_embedder(conn: Connection, schema: Schema) -> embedders.Stored | None:
    text = schemas.meta(conn, schema.name, "embedder")
    if text is None:
        return None
    found = json.loads(text)
    return embedders.Stored(found["id"], found["name"], found["dims"])


def _identity(embedder: Embedder, number: int) -> str:
    return json.dumps({"id": number, "name": embedder.name, "dims": embedder.dims}, ensure_ascii=False)
