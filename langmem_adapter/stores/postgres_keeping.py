"""Keeping the tables healthy: what `doctor` reports, vacuuming, embedding again, taking over a LangGraph store."""

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import psycopg
from langgraph.store.base import PutOp

from langmem_adapter.errors import InvalidInput
from langmem_adapter.namespaces import Namespace
from langmem_adapter.records import Frozen
from langmem_adapter.stores.base import Kept
from langmem_adapter.stores.erasure import Erasure
from langmem_adapter.stores.postgres_owners import distinct, owner_of
from langmem_adapter.stores.postgres_plan import plan
from langmem_adapter.stores.postgres_pool import name_of, typed
from langmem_adapter.stores.postgres_schema import Connection, Schema, meta, run
from langmem_adapter.stores.values import micros, namespace, path
from langmem_adapter.stores.vectors import Matrix
from langmem_adapter.stores.writing import kept_of, texts_at

OUT_OF_REACH = (
    "out of reach: the write-ahead log until it is recycled (after the next checkpoints), its archives, replicas and "
    "backups for as long as they are kept"
)
SMALL = 16 * 1024 * 1024
"""Bytes of the tables that an erasure rewrites without being asked: a fraction of a second."""
_REWRITES = 3
_LOCK_MILLISECONDS = 100
_PAUSE = 0.2
BATCH = 100


class Checkup(Frozen):
    """What `doctor` found. Sizes are bytes."""

    database: str
    server_version: str
    schema_version: int
    store_id: str
    pgvector: bool
    row_level_security: bool
    partitions: int
    """0: none."""
    embedder: str | None
    dims: int | None
    not_embedded: int
    """Items that are to be searched by meaning but have no vector of this embedder: `reindex()`."""
    namespaces: int
    items: int
    expired: int
    dead_rows: int
    """Deleted or replaced, not yet vacuumed, as the server estimates."""
    table_bytes: int
    durable: bool
    """Whether the server waits for the disk before it acknowledges a commit."""
    problems: tuple[str, ...]
    """What should be done, in words; empty: nothing."""


def examine(conn: Connection, schema: Schema, database: str, now: int) -> Checkup:
    """Look at the tables and the server's settings."""
    s = schema.name
    made_by = json.loads(meta(conn, s, "embedder") or "{}")
    missing = _number(conn, f"SELECT count(*) {_not_embedded(s)}", made_by["id"]) if made_by else 0
    durable = not {"off"} & {_setting(conn, "fsync"), _setting(conn, "synchronous_commit")}
    problems = []
    if missing:
        problems.append(f"{missing} items have no vector of the current embedder: call reindex()")
    if not schema.pgvector:
        problems.append(
            "pgvector was not there when the schema was created: vectors are compared about 15 times slower; "
            "install it and copy the data into a new schema"
        )
    if not durable:
        problems.append("fsync or synchronous_commit is off: an acknowledged write can be lost in a crash")
    if schema.rls and _bypasses(conn):
        problems.append(
            "row-level security does not hold for this role: connect as one without SUPERUSER and BYPASSRLS"
        )
    return Checkup(
        database=database,
        server_version=str(_setting(conn, "server_version")),
        schema_version=schema.version,
        store_id=schema.store_id,
        pgvector=schema.pgvector,
        row_level_security=schema.rls,
        partitions=schema.partitions,
        embedder=made_by.get("name"),
        dims=made_by.get("dims"),
        not_embedded=missing,
        namespaces=_number(
            conn,
            f"SELECT count(*) FROM {s}.namespaces n WHERE EXISTS "
            f"(SELECT 1 FROM {s}.items i WHERE i.owner = n.owner AND i.namespace = n.id)",
        ),
        items=_number(conn, f"SELECT count(*) FROM {s}.items"),
        expired=_number(conn, f"SELECT count(*) FROM {s}.items WHERE expires_at <= %s", now),
        dead_rows=_number(
            conn, "SELECT coalesce(sum(n_dead_tup), 0)::bigint FROM pg_stat_all_tables WHERE schemaname = %s", s
        ),
        table_bytes=_number(
            conn,
            "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relkind = 'r'",
            s,
        ),
        durable=durable,
        problems=tuple(problems),
    )


def _bypasses(conn: Connection) -> bool:
    return bool(run(conn, "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user", ())[0][0])


def _number(conn: Connection, sql: str, *params: Any) -> int:
    return int(run(conn, sql, params)[0][0])


def _setting(conn: Connection, name: str) -> Any:
    return run(conn, "SELECT current_setting(%s)", (name,))[0][0]


# erasing


def tables_of(conn: Connection, schema: Schema, owners: Sequence[str] | None) -> list[str]:
    """The tables, or partitions, in which rows of these owners (None: all) lie or ever lay."""
    parts = [""]
    if schema.partitions:
        sql = (
            "SELECT DISTINCT i FROM generate_series(0, %s::integer - 1) AS i, unnest(%s::text[]) AS owner "
            "WHERE satisfies_hash_partition(%s::regclass, %s::integer, i, owner) ORDER BY i"
        )
        n, all_ = schema.partitions, range(schema.partitions)
        found = all_ if owners is None else [i for (i,) in run(conn, sql, (n, owners, f"{schema.name}.items", n))]
        parts = [f"_{i}" for i in found]
    return [f"{table}{part}" for table in ("items", "vectors") for part in parts]


def mark(conn: Connection, schema: Schema, owners: Sequence[str]) -> None:
    """Note, in the transaction that deletes them, where the bytes of these owners are still to be cleared."""
    tables = tables_of(conn, schema, owners)
    run(conn, f"INSERT INTO {schema.name}.uncleared (part) SELECT unnest(%s::text[])", (tables,))


def marked(conn: Connection, s: str) -> list[str]:
    """The tables that erasures have left to be cleared."""
    return [part for (part,) in run(conn, f"SELECT DISTINCT part FROM {s}.uncleared ORDER BY part", ())]


def clear(conn: Connection, s: str, tables: Sequence[str], items: int, wait: float, rebuild: bool | None) -> Erasure:
    """Clear the deleted rows out of the files of these tables, once nobody can see them any more.

    VACUUM alone frees the room they had, but leaves their bytes there until a new row needs it: a table has to be
    written anew. It is clean when the server has counted no dead row in the new file.
    """
    give_up = time.monotonic() + wait
    marks = run(conn, f"SELECT id, deleted_by FROM {s}.uncleared WHERE part = ANY(%s::text[])", (list(tables),))
    names = [f"{s}.{table}" for table in tables]
    sizes = [_number(conn, "SELECT pg_total_relation_size(%s::regclass)", name) for name in names]
    full = sum(sizes) <= SMALL if rebuild is None else rebuild
    reason = _await_readers(conn, max(xid for _, xid in marks), give_up) if marks else ""
    if full and not reason:
        certain = bool(marks) and bool(run(conn, "SELECT pg_has_role('pg_read_all_stats', 'USAGE')", ())[0][0])
        reason = _each(names, lambda name: _rewrite(conn, name, give_up, certain))
    elif names:
        free = "their bytes stay in free room of the tables until it is used again; finish_erasure(rebuild=True)"
        reason, full = reason or _each(names, lambda name: _vacuum(conn, name, "VACUUM", give_up)[1]) or free, False
    if not reason:
        run(conn, f"DELETE FROM {s}.uncleared WHERE id = ANY(%s::bigint[])", ([id for id, _ in marks],))
    return Erasure(
        items=items,
        pieces=0,
        shared=0,
        searched=(),
        bytes_searched=0,
        found=0,
        vacuumed=full and not reason and bool(names),
        state="pending" if reason else "done",
        reason=f"{reason}; {OUT_OF_REACH}" if reason else OUT_OF_REACH,
    )


def _each(names: Sequence[str], clear_one: Callable[[str], str]) -> str:
    """The first reason why a table could not be cleared; the others are not tried."""
    return next(filter(None, map(clear_one, names)), "")


_OTHERS = "another transaction or replica can still see an older state; call finish_erasure() later"


def _rewrite(conn: Connection, name: str, give_up: float, certain: bool) -> str:
    """Why the table's new file may hold deleted rows; "" if it does not.

    `certain`: nobody sees the rows that are to go, so whatever dead row was kept is another's, deleted just now.
    """
    for _ in range(_REWRITES):
        dead, reason = _vacuum(conn, name, "VACUUM (FULL, VERBOSE)", give_up)
        if reason or not dead or certain:
            return reason
        if time.monotonic() >= give_up:
            break
        time.sleep(_PAUSE)
    return _OTHERS


def _vacuum(conn: Connection, name: str, command: str, give_up: float) -> tuple[int, str]:
    """How many dead rows it says that it had to keep, and why it could not be done ("": it was).

    Whoever comes after a VACUUM that waits for its lock waits too, so it waits for a moment only, and tries again.
    """
    kept, warnings = 0, ""

    def note(said: psycopg.errors.Diagnostic) -> None:
        nonlocal kept, warnings
        if said.severity_nonlocalized == "WARNING":  # not our table: VACUUM says so and skips it
            warnings = said.message_primary or "refused"
        number = re.match(r"\D*(\d+)", said.message_detail or "")  # "3 dead row versions cannot be removed yet."
        kept += int(number[1]) if number else 0

    before = _setting(conn, "lock_timeout")
    run(conn, "SELECT set_config('lock_timeout', %s, false)", (f"{_LOCK_MILLISECONDS}ms",))
    conn.add_notice_handler(note)
    try:
        while True:
            try:
                run(conn, f"{command} {name}")
            except psycopg.errors.LockNotAvailable:
                if time.monotonic() >= give_up:
                    return 0, f"another transaction is using {name}; call finish_erasure() later"
                time.sleep(_PAUSE)
            else:
                return kept, f"{name} could not be vacuumed: {warnings}" if warnings else ""
    finally:
        conn.remove_notice_handler(note)
        if not conn.closed:
            run(conn, "SELECT set_config('lock_timeout', %s, false)", (before,))


def _await_readers(conn: Connection, deleted_by: int, give_up: float) -> str:
    """Why VACUUM would have to leave rows: a transaction or replica that may still see them; "" if there is none.

    A role without `pg_read_all_stats` does not see others' transactions here.
    """
    sql = (
        "SELECT (SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
        "AND (datname IS NULL OR datname = current_database()) "
        "AND (age(backend_xmin) >= age(%s::xid) OR age(backend_xid) >= age(%s::xid))) "
        "+ (SELECT count(*) FROM pg_replication_slots WHERE age(xmin) >= age(%s::xid)) "
        "+ (SELECT count(*) FROM pg_prepared_xacts WHERE age(transaction) >= age(%s::xid))"
    )
    short = str(deleted_by % 2**32)
    while _number(conn, sql, short, short, short, short):
        if time.monotonic() >= give_up:
            return _OTHERS
        time.sleep(0.05)
    return ""


# embedding again


class Stale(NamedTuple):
    """An item without a vector of the current embedder."""

    owner: str
    namespace: int
    id: int
    updated_at: int
    """By which a change in between is noticed."""
    texts: tuple[str, ...]


def _not_embedded(s: str) -> str:
    return (
        f"FROM {s}.items i WHERE i.fields IS DISTINCT FROM '[]' AND NOT EXISTS (SELECT 1 FROM {s}.vectors v WHERE "
        "v.owner = i.owner AND v.namespace = i.namespace AND v.item = i.id AND v.embedder = %s)"
    )


def stale(conn: Connection, s: str, embedder: int, fields: Sequence[str], after: int) -> list[Stale]:
    """The next items to embed, ids above `after`."""
    rows = run(
        conn,
        f"SELECT i.owner, i.namespace, i.id, i.updated_at, i.value::text, i.fields {_not_embedded(s)} AND i.id > %s "
        f"ORDER BY i.id LIMIT {BATCH}",
        (embedder, after),
    )
    return [
        Stale(owner, of, id, at, texts_at(json.loads(value), fields if own is None else json.loads(own)))
        for owner, of, id, at, value, own in rows
    ]


def restore(conn: Connection, s: str, batch: Sequence[Stale], vectors: Matrix, embedder: int) -> None:
    """Write the vectors, in the order of all texts, of items that did not change meanwhile."""
    rows: list[tuple[Any, ...]] = []
    start = 0
    for item in batch:
        for n, vector in enumerate(vectors[start : start + len(item.texts)].tolist()):
            rows.append((*item[:4], n, embedder, json.dumps(vector).replace("[", "{").replace("]", "}")))
        start += len(item.texts)
    owners = distinct(item.owner for item in batch)
    places = [[item.owner for item in batch], [item.namespace for item in batch], [item.id for item in batch]]
    run(
        conn,
        f"DELETE FROM {s}.vectors v USING unnest(%s::text[], %s::bigint[], %s::bigint[]) AS w(owner, namespace, id) "
        "WHERE v.owner = w.owner AND v.namespace = w.namespace AND v.item = w.id AND v.embedder <> %s "
        "AND v.owner = ANY(%s::text[])",
        (*places, embedder, owners),
    )
    if rows:
        run(
            conn,
            f"INSERT INTO {s}.vectors (owner, namespace, item, n, embedder, vector) "
            "SELECT i.owner, i.namespace, i.id, t.n, t.embedder, t.vector::real[] FROM unnest(%s::text[], "
            "%s::bigint[], %s::bigint[], %s::bigint[], %s::integer[], %s::integer[], %s::text[]) "
            f"AS t(owner, namespace, id, updated_at, n, embedder, vector) JOIN {s}.items i ON i.owner = t.owner AND "
            "i.namespace = t.namespace AND i.id = t.id AND i.updated_at = t.updated_at "
            "WHERE i.owner = ANY(%s::text[]) ON CONFLICT DO NOTHING",
            [*(list(column) for column in zip(*rows, strict=True)), owners],
        )


# another store


def kept(conn: Connection, s: str, space: Namespace) -> tuple[int, dict[str, Kept]]:
    """See `MemoryStore.kept`."""
    at = (owner_of(space), path(space))
    rows = run(conn, f"SELECT latest, id FROM {s}.namespaces WHERE owner = %s AND path = %s", at)
    if not rows:
        return 0, {}
    [(latest, id)] = rows
    columns = "key, fields, created_at, updated_at, expires_at, ttl"
    found = run(conn, f"SELECT {columns} FROM {s}.items WHERE owner = %s AND namespace = %s", (at[0], id))
    return latest, {key: kept_of(*rest) for key, *rest in found}


class Foreign(NamedTuple):
    """An item of a LangGraph `PostgresStore`."""

    put: PutOp
    times: tuple[int, int, int | None]
    """When it was created, updated and expires."""


def items_of(source: str, table: str) -> Iterator[list[Foreign]]:
    """The items in a LangGraph store's table that have not expired, oldest first, a batch at a time."""
    if not all(part.isidentifier() for part in table.split(".")):
        raise InvalidInput(f"table must be a name, or schema.name, got {table!r}")
    name = name_of(source)
    try:
        with psycopg.connect(source) as conn, conn.cursor(name="langmem_import") as rows:
            now = datetime.now(UTC)
            rows.execute(f"SELECT {_columns(conn, table)} FROM {table} s ORDER BY updated_at, prefix, key".encode())
            while batch := rows.fetchmany(BATCH):
                yield [_foreign(row) for row in batch if row[5] is None or row[5] > now]
    except psycopg.Error as e:
        raise typed(e, name) from e


def _columns(conn: Connection, table: str) -> str:
    there = {c.name for c in conn.execute(f"SELECT * FROM {table} LIMIT 0".encode()).description or ()}
    ends = "expires_at, ttl_minutes" if "expires_at" in there else "NULL, NULL"  # older tables have none
    vectors = f"{table}_vectors"
    sql = "SELECT to_regclass(%s) IS NOT NULL"
    # Where some are indexed, an item without a vector was put with index=False, or has nothing to embed.
    indexed = f"EXISTS (SELECT 1 FROM {vectors} v WHERE v.prefix = s.prefix AND v.key = s.key)"
    if not run(conn, sql, (vectors,))[0][0]:
        indexed = "true"
    return f"prefix, key, value::text, created_at, updated_at, {ends}, {indexed}"


def check_storable(batch: Sequence[Foreign], table: str) -> None:
    """InvalidInput, naming the row, if one cannot be stored here."""
    for f in batch:
        try:
            plan([f.put])
        except ValueError as e:
            at = (".".join(f.put.namespace), f.put.key)
            raise InvalidInput(f"the row {at!r:.200} of {table} cannot be stored here; mend or delete it: {e}") from e


def _foreign(row: tuple[Any, ...]) -> Foreign:
    prefix, key, value, created, updated, expires, ttl, indexed = row
    put = PutOp(namespace(prefix), key, json.loads(value), index=None if indexed else False, ttl=ttl)
    ends = None if expires is None else micros(expires.timestamp())
    return Foreign(put, (micros(created.timestamp()), micros(updated.timestamp()), ends))
