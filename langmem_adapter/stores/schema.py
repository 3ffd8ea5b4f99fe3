"""The tables, and how an older file becomes a newer one.

    memory_meta        key, value: schema, store_id, tokenizer, embedder, epoch, rebuilt, erasing
    memory_namespaces  one row per namespace ever written. `version` grows with every item changed and is what a
                       conditional commit compares; `stamp` also grows when only a deadline or a vector changed and is
                       what validates caches. The row outlives its items, so that neither ever goes back.
    memory_items       id = namespace << 32 | sequence, so that the rows of one namespace lie together
    memory_index       what searching and ranking need of an item: its hashed words (uint32, see `tokens`), its row of
                       `scoring.Columns`, and its unit vectors (float32), one behind the other, with the number of
                       their embedder. No embedder: not embedded; empty vectors: there was nothing to embed

Times are integers, microseconds since the epoch. The names carry a prefix because other tables may live in the file.
"""

import secrets
import sqlite3
from collections.abc import Iterable

from langmem_adapter.errors import StoreCorrupt, StoreTooNew

NAMESPACE_SHIFT = 32
CHECKED = 1_000
"""Namespaces that are looked up when a file is opened: a millisecond."""

# Append only: number n turns schema n into n + 1. All that are missing run in one transaction.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE memory_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
        """CREATE TABLE memory_namespaces (
            id INTEGER PRIMARY KEY,
            path TEXT NOT NULL UNIQUE,  -- labels joined by '.', which no label contains
            version INTEGER NOT NULL,
            stamp INTEGER NOT NULL,
            next_seq INTEGER NOT NULL,
            latest INTEGER NOT NULL,    -- highest updated_at given out
            removed INTEGER NOT NULL    -- epoch in which anything was last overwritten or deleted here; 0: never
        )""",
        """CREATE TABLE memory_items (
            id INTEGER PRIMARY KEY,
            namespace INTEGER NOT NULL,
            key TEXT NOT NULL,
            value TEXT NOT NULL,
            created_at INTEGER NOT NULL,
            updated_at INTEGER NOT NULL,
            expires_at INTEGER,
            ttl REAL,                   -- minutes
            fields TEXT,                -- JSON list of paths to index; NULL: the store's; []: none
            topic TEXT,                 -- value["topic"] and value["status"], if they are strings
            status TEXT
        )""",
        "CREATE UNIQUE INDEX memory_items_key ON memory_items (namespace, key)",
        # One index answers "newest first", by status, by topic and by both without touching the rows.
        "CREATE INDEX memory_items_list ON memory_items (namespace, status, topic, updated_at, expires_at)",
        "CREATE INDEX memory_items_expiry ON memory_items (expires_at) WHERE expires_at IS NOT NULL",
        "CREATE INDEX memory_items_deadline ON memory_items (namespace, expires_at) WHERE expires_at IS NOT NULL",
        "CREATE TABLE memory_vectors (id INTEGER PRIMARY KEY, embedder INTEGER NOT NULL, vectors BLOB NOT NULL)",
        """CREATE TABLE memory_ranks (
            id INTEGER PRIMARY KEY,
            words BLOB NOT NULL,
            language INTEGER NOT NULL,
            status INTEGER NOT NULL,
            topic TEXT NOT NULL,
            kind TEXT NOT NULL,
            numbers BLOB NOT NULL       -- nine float64
        )""",
    ),
    (
        # A slot is found by its key, and an item's words, ranks and vectors are one row: one page less to write.
        "ALTER TABLE memory_items ADD COLUMN slot TEXT",  # value["slot"], if it is a string
        "UPDATE memory_items SET slot = value ->> '$.slot' "
        "WHERE CASE WHEN json_valid(value) THEN json_type(value, '$.slot') = 'text' END",
        "CREATE INDEX memory_items_slot ON memory_items (namespace, topic, slot) WHERE slot IS NOT NULL",
        """CREATE TABLE memory_index (
            id INTEGER PRIMARY KEY,
            words BLOB NOT NULL,
            language INTEGER NOT NULL,
            status INTEGER NOT NULL,
            topic TEXT NOT NULL,
            kind TEXT NOT NULL,
            numbers BLOB NOT NULL,      -- nine float64
            embedder INTEGER,
            vectors BLOB                -- last: what does not need it need not read all of a long row
        )""",
        "INSERT INTO memory_index SELECT r.*, v.embedder, v.vectors "
        "FROM memory_ranks r LEFT JOIN memory_vectors v ON v.id = r.id ORDER BY r.id",
        "DROP TABLE memory_ranks",
        "DROP TABLE memory_vectors",
    ),
)


def version(conn: sqlite3.Connection, name: str) -> int:
    """The schema number of the file; 0 if it has no tables of ours."""
    if conn.execute("SELECT 1 FROM sqlite_master WHERE name = 'memory_meta'").fetchone() is None:
        return 0
    found = meta(conn, "schema") or ""
    if not found.isdecimal():
        raise StoreCorrupt(f"{name} has no readable schema number ({found!r:.40}); it was left as it is")
    return int(found)


def migrate(conn: sqlite3.Connection, name: str, tokenizer: int) -> None:
    """Bring the file to the newest schema; StoreTooNew, untouched, if it is newer still."""
    if _settled(conn, name):
        return
    conn.execute("BEGIN IMMEDIATE")
    try:
        if not _settled(conn, name):  # another process may have done it while we waited
            found = version(conn, name)
            for statements in MIGRATIONS[found:]:
                for statement in statements:
                    conn.execute(statement)
            set_meta(conn, "schema", str(len(MIGRATIONS)))
            if not found:
                set_meta(conn, "store_id", secrets.token_hex(16))
                set_meta(conn, "tokenizer", str(tokenizer))
                set_meta(conn, "epoch", "1")
        conn.execute("COMMIT")
    except BaseException:
        if conn.in_transaction:
            conn.execute("ROLLBACK")
        raise


def _settled(conn: sqlite3.Connection, name: str) -> bool:
    found = version(conn, name)
    if found > len(MIGRATIONS):
        raise StoreTooNew(
            f"{name} has schema {found}, this version of the package knows up to {len(MIGRATIONS)}; upgrade the package"
        )
    return found == len(MIGRATIONS)


def check_names(conn: sqlite3.Connection, name: str) -> None:
    """StoreCorrupt unless the first namespaces are found by their paths.

    SQLite keeps no checksums: on a damaged index it finds nothing and says so without an error, and an owner of whom
    much is known would begin anew.
    """
    sql = (
        f"SELECT path FROM (SELECT id, path FROM memory_namespaces NOT INDEXED ORDER BY id LIMIT {CHECKED}) found "
        "WHERE (SELECT id FROM memory_namespaces WHERE path = found.path) IS NOT found.id LIMIT 1"
    )
    lost = conn.execute(sql).fetchone()
    if lost is not None:
        raise StoreCorrupt(f"{name} is damaged (namespaces are not found by their names); it was left as it is")


def meta(conn: sqlite3.Connection, key: str) -> str | None:
    """One value of `memory_meta`."""
    row = conn.execute("SELECT value FROM memory_meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])


def number(conn: sqlite3.Connection, key: str) -> int:
    """One number of `memory_meta`; 0 if it is not there."""
    found = meta(conn, key) or ""
    return int(found) if found.isdecimal() else 0


def set_meta(conn: sqlite3.Connection, key: str, value: str) -> None:
    """Set one value of `memory_meta`."""
    conn.execute("INSERT OR REPLACE INTO memory_meta VALUES (?, ?)", (key, value))


def marks(conn: sqlite3.Connection) -> set[str]:
    """The erasures that nobody has verified yet, each by the token of who began it."""
    return set((meta(conn, "erasing") or "").split())


def mark(conn: sqlite3.Connection, token: str) -> None:
    """Note that an erasure has begun, also for the case that this process dies."""
    set_meta(conn, "erasing", " ".join(sorted(marks(conn) | {token})))


def unmark(conn: sqlite3.Connection, tokens: Iterable[str]) -> None:
    """Note that these erasures are verified."""
    left = marks(conn) - set(tokens)
    if left:
        set_meta(conn, "erasing", " ".join(sorted(left)))
    else:
        conn.execute("DELETE FROM memory_meta WHERE key = 'erasing'")
