"""The checkpointer's tables. Their names carry a prefix, so that they can live in the file of a memory store.

ckpt_meta         key, value: schema, salt, proof of the encryption key, whether an erasure is unfinished, how many
                  threads were deleted
ckpt_threads      one row per thread. `family` is shared by a thread and its copies; `epoch` grows whenever
                  elements were removed or replaced and, with the two counters, validates caches of the rest
ckpt_spaces       one row per checkpoint namespace of a thread; the next three tables name it by number
ckpt_checkpoints  what a checkpoint holds besides its channels' values
ckpt_channels     each version of a channel once: the value, or where it lies (see `values`)
ckpt_writes       pending writes
ckpt_elements     id = thread << 32 | sequence: messages, and values too large to stand in a row; each once per
                  thread, found by its hash
ckpt_erased       hashes of messages that must not come back
ckpt_dead         hashes of deleted threads' ids, so that late writes are recognised
"""

import secrets
import sqlite3

from langmem_adapter.errors import StoreTooNew

SHIFT = 32
LOOSE = 1 << 31
"""Sequence numbers from here on are not messages of a list: large values, and messages without an id, which would
tear the runs of those with one."""

# Append only: number n turns schema n into n + 1. All that are missing run in one transaction.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE ckpt_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
        # AUTOINCREMENT: a number once given to a thread is never given to another, so caches cannot mistake them.
        """CREATE TABLE ckpt_threads (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            thread TEXT NOT NULL UNIQUE,
            family INTEGER NOT NULL,
            epoch INTEGER NOT NULL DEFAULT 0,
            next_seq INTEGER NOT NULL DEFAULT 0,
            next_loose INTEGER NOT NULL DEFAULT 2147483648,
            died TEXT               -- when a thread of this id was deleted, as a checkpoint id; NULL: never
        )""",
        "CREATE INDEX ckpt_threads_family ON ckpt_threads (family)",
        """CREATE TABLE ckpt_spaces (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            thread INTEGER NOT NULL,
            ns TEXT NOT NULL,
            UNIQUE (thread, ns)
        )""",
        """CREATE TABLE ckpt_checkpoints (
            space INTEGER NOT NULL,
            id TEXT NOT NULL,
            parent TEXT,
            saved INTEGER NOT NULL, -- seconds since the epoch
            run BLOB,               -- hash of metadata["run_id"]
            metadata BLOB NOT NULL,
            body BLOB NOT NULL,
            PRIMARY KEY (space, id)
        ) WITHOUT ROWID""",
        "CREATE INDEX ckpt_checkpoints_run ON ckpt_checkpoints (run) WHERE run IS NOT NULL",
        """CREATE TABLE ckpt_channels (
            space INTEGER NOT NULL,
            channel TEXT NOT NULL,
            version NOT NULL,       -- text or number, as it was given
            kind INTEGER NOT NULL,
            data BLOB NOT NULL,
            PRIMARY KEY (space, channel, version)
        ) WITHOUT ROWID""",
        """CREATE TABLE ckpt_writes (
            space INTEGER NOT NULL,
            checkpoint TEXT NOT NULL,
            task TEXT NOT NULL,
            idx INTEGER NOT NULL,
            path TEXT NOT NULL,
            channel TEXT NOT NULL,
            kind INTEGER NOT NULL,
            data BLOB NOT NULL,
            PRIMARY KEY (space, checkpoint, task, idx)
        ) WITHOUT ROWID""",
        """CREATE TABLE ckpt_elements (
            id INTEGER PRIMARY KEY,
            hash BLOB NOT NULL,
            message BLOB,           -- hash of the message's id
            body BLOB,              -- hash of the message without its id
            data BLOB NOT NULL
        )""",
        """CREATE TABLE ckpt_erased (
            thread INTEGER NOT NULL,
            hash BLOB NOT NULL,
            until TEXT,             -- NULL: always; else only in checkpoints up to this id
            PRIMARY KEY (thread, hash)
        ) WITHOUT ROWID""",
        "CREATE TABLE ckpt_dead (thread BLOB PRIMARY KEY, died TEXT NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID",
    ),
    (
        # Deletions of threads are numbered (ckpt_meta: deaths). The number of the last one of this id; 0: not known.
        "ALTER TABLE ckpt_dead ADD COLUMN death INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE ckpt_threads ADD COLUMN death INTEGER NOT NULL DEFAULT 0",
        # Erasures of messages are numbered in each thread. A checkpoint knows after which one its run began, and so
        # which words it may still carry. `shape` of a text: bytes << 32 | their sum, to find it inside others.
        "ALTER TABLE ckpt_threads ADD COLUMN erasures INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE ckpt_checkpoints ADD COLUMN began INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE ckpt_erased ADD COLUMN erasure INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE ckpt_erased ADD COLUMN shape INTEGER NOT NULL DEFAULT 0",
    ),
)


def migrate(conn: sqlite3.Connection, name: str) -> None:
    """Bring the file to the newest schema; StoreTooNew, untouched, if it is newer still."""
    if _settled(conn, name):
        return
    conn.execute("BEGIN IMMEDIATE")
    try:
        if not _settled(conn, name):  # another process may have done it while we waited
            found = _version(conn)
            for statements in MIGRATIONS[found:]:
                for statement in statements:
                    conn.execute(statement)
            set_meta(conn, "schema", str(len(MIGRATIONS)))
            if not found:
                set_meta(conn, "salt", secrets.token_hex(16))
        conn.execute("COMMIT")
    except BaseException:
        if conn.in_transaction:
            conn.execute("ROLLBACK")
        raise


def _version(conn: sqlite3.Connection) -> int:
    if conn.execute("SELECT 1 FROM sqlite_master WHERE name = 'ckpt_meta'").fetchone() is None:
        return 0
    return int(meta(conn, "schema") or 0)


def _settled(conn: sqlite3.Connection, name: str) -> bool:
    found = _version(conn)
    if found > len(MIGRATIONS):
        raise StoreTooNew(
            f"{name} has checkpoint schema {found}, this version of the package knows up to {len(MIGRATIONS)}; "
            "upgrade the package"
        )
    return found == len(MIGRATIONS)


def meta(conn: sqlite3.Connection, key: str) -> str | None:
    """One value of `ckpt_meta`."""
    row = conn.execute("SELECT value FROM ckpt_meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])


def set_meta(conn: sqlite3.Connection, key: str, value: str | None) -> None:
    """Set one value of `ckpt_meta`; None removes it."""
    if value is None:
        conn.execute("DELETE FROM ckpt_meta WHERE key = ?", (key,))
    else:
        conn.execute("INSERT OR REPLACE INTO ckpt_meta VALUES (?, ?)", (key, value))
