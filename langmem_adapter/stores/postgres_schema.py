"""The tables in PostgreSQL, how an older schema becomes a newer one, and row-level security.

    meta        key, value: schema, store_id, embedder, partitions, rls
    namespaces  one row per namespace ever written. `version` grows with every item changed and is what a conditional
                commit compares. The row outlives its items, so that it never goes back.
    items       one row per item. `value` is `json`, not `jsonb`, which changes numbers (1e300 becomes an integer).
                `digest` is a hash of the key, so that keys may be longer than an index entry.
    vectors     unit vectors, one a row: a pgvector `vector`, or `real[]` where there is no pgvector
    commits     ids of transactions, by which one whose reply was lost is found
    uncleared   tables (partitions) with the bytes of erased items in free room, and the transaction that deleted them

All but `meta`, `commits` and `uncleared` have the owner (see `postgres_owners`) in every key, so that they can be
partitioned by its hash and guarded by policies. Times are microseconds since the epoch: no session's time zone matters.
"""

import re
import secrets
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import tuple_row

from langmem_adapter.errors import InvalidInput, StoreError, StoreTooNew
from langmem_adapter.stores.postgres_owners import EVERYBODY

Connection = psycopg.Connection[Any]

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_OWNED = ("namespaces", "items", "vectors")

# Append only: number n turns schema n into n + 1. All that are missing run in one transaction.
# {s}: the schema, {by}: how a table is partitioned, {vector}: the type of a vector, {cosine}: its product with a query.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE SEQUENCE {s}.ids",
        """CREATE TABLE {s}.namespaces (
            owner text COLLATE "C" NOT NULL,
            path text COLLATE "C" NOT NULL,
            id bigint NOT NULL DEFAULT nextval('{s}.ids'),
            version bigint NOT NULL DEFAULT 0,
            latest bigint NOT NULL DEFAULT 0,
            PRIMARY KEY (owner, path)
        ) {by}""",
        "CREATE INDEX namespaces_path ON {s}.namespaces (path)",
        """CREATE TABLE {s}.items (
            owner text COLLATE "C" NOT NULL,
            namespace bigint NOT NULL,
            id bigint NOT NULL DEFAULT nextval('{s}.ids'),
            digest bytea NOT NULL,
            key text COLLATE "C" NOT NULL,
            value json NOT NULL,
            created_at bigint NOT NULL,
            updated_at bigint NOT NULL,
            expires_at bigint,
            ttl double precision,
            fields text,
            topic text COLLATE "C",
            status text COLLATE "C",
            state smallint NOT NULL,
            kind text COLLATE "C" NOT NULL,
            numbers bytea NOT NULL,
            language text COLLATE "C" NOT NULL,
            words tsvector NOT NULL,
            PRIMARY KEY (owner, namespace, id),
            UNIQUE (owner, namespace, digest)
        ) {by}""",
        "CREATE INDEX items_topic ON {s}.items (owner, namespace, topic, status)",
        "CREATE INDEX items_expiry ON {s}.items (expires_at) WHERE expires_at IS NOT NULL",
        """CREATE TABLE {s}.vectors (
            owner text COLLATE "C" NOT NULL,
            namespace bigint NOT NULL,
            item bigint NOT NULL,
            n integer NOT NULL,
            embedder integer NOT NULL,
            vector {vector} NOT NULL,
            PRIMARY KEY (owner, namespace, item, n)
        ) {by}""",
        # Samples of a column are kept apart from its rows: they would outlive an erasure and belong to nobody.
        "ALTER TABLE {s}.items ALTER COLUMN value SET STATISTICS 0, ALTER COLUMN words SET STATISTICS 0, "
        "ALTER COLUMN key SET STATISTICS 0, ALTER COLUMN numbers SET STATISTICS 0, "
        "ALTER COLUMN fields SET STATISTICS 0",
        "ALTER TABLE {s}.vectors ALTER COLUMN vector SET STATISTICS 0",
        "CREATE FUNCTION {s}.cosine(stored {vector}, asked real[]) RETURNS double precision "
        "LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ {cosine} $$",
        "CREATE TABLE {s}.commits (id uuid PRIMARY KEY, at bigint NOT NULL)",
    ),
    (
        "CREATE TABLE {s}.uncleared (id bigint PRIMARY KEY DEFAULT nextval('{s}.ids'), part text NOT NULL, "
        "deleted_by bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint)",
    ),
    (
        # An index entry has 2,700 bytes at most, and another agent's topic may be any text.
        "DROP INDEX {s}.items_topic",
        "CREATE INDEX items_topic ON {s}.items (owner, namespace, left(topic, 100), left(status, 100))",
    ),
)


class Schema(NamedTuple):
    """What a store must know of its tables."""

    name: str
    """The PostgreSQL schema they are in."""
    version: int
    store_id: str
    rls: bool
    partitions: int
    pgvector: bool
    configurations: frozenset[str]
    """The full-text configurations that the server has."""


def run(conn: Connection, sql: str, params: Any = None) -> list[tuple[Any, ...]]:
    """Rows of a statement, fetched in binary form; [] if it gives none."""
    # A pool that was passed in may make its rows dicts, and prepare all it runs; several statements cannot be.
    cursor = psycopg.Cursor(conn, row_factory=tuple_row)
    cursor.execute(sql.encode(), params, prepare=None if params is not None else False, binary=params is not None)
    return cursor.fetchall() if cursor.description is not None else []


def check_name(name: str) -> str:
    """The name of a schema, if it can be one without quotes."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(f"schema must be up to 63 lower-case letters, digits and '_', got {name!r}")
    return name


def check_partitions(partitions: object) -> None:
    """InvalidInput for what cannot be their number."""
    if partitions is not None and not (isinstance(partitions, int) and 1 <= partitions <= 4_096):
        raise InvalidInput(f"partitions must be from 1 to 4096, got {partitions!r}")


def open_schema(conn: Connection, name: str, *, partitions: int | None, rls: bool, where: str) -> Schema:
    """Bring the tables to the newest schema, once, however many processes try; StoreTooNew if they are newer still."""
    found = _version(conn, name)
    if found != len(MIGRATIONS) or (rls and meta(conn, name, "rls") != "on"):
        with conn.transaction():
            # Also CREATE … IF NOT EXISTS collides when several processes try at once.
            run(conn, "SELECT pg_advisory_xact_lock(hashtextextended('langmem_adapter.setup', 0))", ())
            _migrate(conn, name, partitions, where)
            if rls and meta(conn, name, "rls") != "on":
                _guard(conn, name)
    schema = _described(conn, name)
    if partitions is not None and partitions != (schema.partitions or 1):
        raise InvalidInput(
            f"{where} was created with partitions={schema.partitions or None}, not {partitions}; "
            "leave it out, or copy the data into a schema created with the other number"
        )
    return schema


def _version(conn: Connection, name: str) -> int:
    # Not to_regclass: within a transaction it may still not see what another has committed meanwhile.
    sql = "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND relname = %s"
    if not run(conn, sql, (name, "meta")):
        return 0
    return int(meta(conn, name, "schema") or 0)


def _migrate(conn: Connection, name: str, partitions: int | None, where: str) -> None:
    found = _version(conn, name)
    if found > len(MIGRATIONS):
        raise StoreTooNew(
            f"{where} has schema {found}, this version of the package knows up to {len(MIGRATIONS)}; "
            "upgrade the package"
        )
    if found == len(MIGRATIONS):
        return
    if not found:
        _begin(conn, name, partitions, where)
    parts = int(meta(conn, name, "partitions") or 0)
    vector = meta(conn, name, "vector") or "real[]"
    words = {"s": name, "vector": vector, "cosine": _cosine(vector), "by": "PARTITION BY HASH (owner)" if parts else ""}
    for statements in MIGRATIONS[found:]:
        for statement in statements:
            run(conn, statement.format_map(words))
            created = re.match(r"CREATE TABLE \w+\.(\w+)", statement.format_map(words))
            if created and "{by}" in statement:
                _partition(conn, name, created[1], parts)
    set_meta(conn, name, "schema", str(len(MIGRATIONS)))


def _begin(conn: Connection, name: str, partitions: int | None, where: str) -> None:
    encoding = run(conn, "SELECT current_setting('server_encoding')", ())[0][0]
    if encoding != "UTF8":
        raise StoreError(f"{where} has the encoding {encoding}; memories need a database in UTF8")
    if not run(conn, "SELECT 1 FROM pg_namespace WHERE nspname = %s", (name,)):  # else it was made for this role
        run(conn, f"CREATE SCHEMA {name}")
    run(conn, f"CREATE TABLE {name}.meta (key text PRIMARY KEY, value text NOT NULL)")
    set_meta(conn, name, "store_id", secrets.token_hex(16))
    set_meta(conn, name, "partitions", str(partitions if partitions and partitions > 1 else 0))
    set_meta(conn, name, "vector", _vector_type(conn))


def _vector_type(conn: Connection) -> str:
    try:
        with conn.transaction():
            run(conn, "CREATE EXTENSION IF NOT EXISTS vector")
    except psycopg.Error:
        return "real[]"  # not on this server, or not allowed: slower, but the same results
    # It may live in a schema of its own that is on nobody's search path.
    sql = "SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace "
    return f"{run(conn, sql + 'WHERE e.extname = %s', ('vector',))[0][0]}.vector"


def _cosine(vector: str) -> str:
    # Of unit vectors the product is the cosine, and of a zero vector it is 0.
    if vector == "real[]":
        return "SELECT sum(a::double precision * b) FROM unnest(stored, asked) AS t(a, b)"
    schema = vector.removesuffix(".vector")
    return f"SELECT -(stored OPERATOR({schema}.<#>) asked::{vector})"


def _partition(conn: Connection, name: str, table: str, parts: int) -> None:
    for i in range(parts):
        run(
            conn,
            f"CREATE TABLE {name}.{table}_{i} PARTITION OF {name}.{table} "
            f"FOR VALUES WITH (MODULUS {parts}, REMAINDER {i})",
        )


def _guard(conn: Connection, name: str) -> None:
    """Policies that show a transaction only the owners it names in `lm.owner`, also to the tables' own role."""
    named = "current_setting('lm.owner', true)"
    # A partition that is named directly has only its own policies.
    for table in [*_OWNED, *_partitions(conn, name)]:
        run(conn, f"ALTER TABLE {name}.{table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")
        run(
            conn,
            f"CREATE POLICY owner_only ON {name}.{table} USING "
            f"(owner = ANY (string_to_array({named}, '..')) OR {named} = '{EVERYBODY}')",
        )
    set_meta(conn, name, "rls", "on")


def _partitions(conn: Connection, name: str) -> list[str]:
    rows = run(
        conn,
        "SELECT c.relname::text FROM pg_inherits h JOIN pg_class p ON p.oid = h.inhparent "
        "JOIN pg_class c ON c.oid = h.inhrelid JOIN pg_namespace n ON n.oid = p.relnamespace "
        "WHERE n.nspname = %s AND p.relkind = 'p' ORDER BY 1",
        (name,),
    )
    return [table for (table,) in rows]


def _described(conn: Connection, name: str) -> Schema:
    found = dict(run(conn, f"SELECT key, value FROM {name}.meta", ()))
    configurations = run(conn, "SELECT cfgname::text FROM pg_ts_config", ())
    return Schema(
        name=name,
        version=int(found["schema"]),
        store_id=found["store_id"],
        rls=found.get("rls") == "on",
        partitions=int(found["partitions"]),
        pgvector=found["vector"] != "real[]",
        configurations=frozenset(c for (c,) in configurations),
    )


def meta(conn: Connection, name: str, key: str) -> str | None:
    """One value of `meta`."""
    rows = run(conn, f"SELECT value FROM {name}.meta WHERE key = %s", (key,))
    return str(rows[0][0]) if rows else None


def set_meta(conn: Connection, name: str, key: str, value: str) -> None:
    """Set one value of `meta`."""
    run(
        conn,
        f"INSERT INTO {name}.meta VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )
