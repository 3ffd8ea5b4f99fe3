"""Keeping a database healthy: what `doctor` reports, and a backup taken while others write."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from langmem_adapter.errors import EmbedderMismatch, InvalidInput, StoreError
from langmem_adapter.records import Frozen
from langmem_adapter.stores import embedder as embedders
from langmem_adapter.stores import schema
from langmem_adapter.stores.connections import translated
from langmem_adapter.stores.embedder import Embedder
from langmem_adapter.stores.tokens import TOKENIZER


class Checkup(Frozen):
    """What `doctor` found. Sizes are bytes."""

    file: str
    sqlite_version: str
    schema_version: int
    store_id: str
    journal_mode: str
    secure_delete: bool
    fts5: bool
    """Whether SQLite has full-text search; it is not needed."""
    integrity: tuple[str, ...]
    """Damage that SQLite found; empty: none."""
    embedder: str | None
    """Name of the embedder that made the vectors."""
    dims: int | None
    not_embedded: int
    """Items that are to be searched by meaning but have no vector of this embedder: `reindex()`."""
    tokenizer: int
    namespaces: int
    items: int
    expired: int
    """Items whose time is over, still to be swept."""
    file_bytes: int
    wal_bytes: int
    free_bytes: int
    """Unused room inside the file."""
    cache_bytes: int
    """Vectors, words and ranked fields in this process's memory."""
    problems: tuple[str, ...]
    """What should be done, in words; empty: nothing."""


def examine(
    conn: sqlite3.Connection,
    file: str,
    path: Path | None,
    now: int,
    *,
    embedder: Embedder | None,
    fields: Sequence[str],
    cache_bytes: int,
    deep: bool,
) -> Checkup:
    """Look at the whole database; `deep` also compares every index with its table."""
    integrity = _integrity(conn, deep)
    made_by = embedders.stored(conn, file)
    number = made_by.id if made_by is not None else None if embedder is None else 1
    found = _counted(conn, now, number) if not integrity else _UNCOUNTED
    tokenizer = schema.number(conn, "tokenizer")
    free = _pragma(conn, "freelist_count") * _pragma(conn, "page_size")
    problems = [f"damaged: {line}" for line in integrity]
    if found["not_embedded"]:
        problems.append(f"{found['not_embedded']} items have no vector of the current embedder: call reindex()")
    if made_by is not None and embedder is not None:
        problems += _differences(made_by, embedder, fields, file)
    if tokenizer != TOKENIZER:
        problems.append(f"words were written by tokenizer {tokenizer}, this is {TOKENIZER}: call reindex()")
    if schema.marks(conn):
        problems.append("an erasure was not verified: call finish_erasure()")
    return Checkup(
        file=file,
        sqlite_version=sqlite3.sqlite_version,
        schema_version=schema.version(conn, file),
        store_id=str(schema.meta(conn, "store_id")),
        journal_mode=str(_pragma(conn, "journal_mode")),
        secure_delete=_pragma(conn, "secure_delete") == 1,
        fts5=bool(conn.execute("SELECT sqlite_compileoption_used('ENABLE_FTS5')").fetchone()[0]),
        integrity=integrity,
        embedder=None if made_by is None else made_by.name,
        dims=None if made_by is None else made_by.dims,
        tokenizer=tokenizer,
        file_bytes=_size(path),
        wal_bytes=_size(None if path is None else Path(f"{path}-wal")),
        free_bytes=free,
        cache_bytes=cache_bytes,
        problems=tuple(problems),
        **found,
    )


def _differences(made_by: embedders.Stored, embedder: Embedder, fields: Sequence[str], file: str) -> Iterator[str]:
    try:
        embedders.check(made_by, embedder, file)
    except EmbedderMismatch as e:
        yield f"the embedder was replaced since this store was opened: {e}"
        return
    if made_by.fields not in (None, tuple(fields)):
        yield f"vectors were made of {list(made_by.fields or ())}, index['fields'] is {list(fields)}: call reindex()"


def _integrity(conn: sqlite3.Connection, deep: bool) -> tuple[str, ...]:
    try:
        rows = conn.execute("PRAGMA integrity_check(20)" if deep else "PRAGMA quick_check(20)").fetchall()
    except sqlite3.DatabaseError as e:
        return (str(e),)
    return tuple(str(line) for (line,) in rows if line != "ok")


def _counted(conn: sqlite3.Connection, now: int, number: int | None) -> dict[str, int]:
    return {
        "namespaces": _number(conn, "SELECT count(DISTINCT namespace) FROM memory_items"),
        "items": _number(conn, "SELECT count(*) FROM memory_items"),
        "expired": _number(conn, "SELECT count(*) FROM memory_items WHERE expires_at <= ?", now),
        "not_embedded": 0 if number is None else _number(conn, f"SELECT count(*) {NOT_EMBEDDED}", number),
    }


def _number(conn: sqlite3.Connection, sql: str, *params: int) -> int:
    return int(conn.execute(sql, params).fetchone()[0])


_UNCOUNTED = dict.fromkeys(("namespaces", "items", "expired", "not_embedded"), 0)

TO_EMBED = "FROM memory_items i LEFT JOIN memory_index x ON x.id = i.id WHERE (i.fields IS NULL OR i.fields != '[]')"
NOT_EMBEDDED = f"{TO_EMBED} AND x.embedder IS NOT ?"


def _pragma(conn: sqlite3.Connection, name: str) -> Any:
    return conn.execute(f"PRAGMA {name}").fetchone()[0]


def _size(path: Path | None) -> int:
    return path.stat().st_size if path is not None and path.exists() else 0


def back_up(conn: sqlite3.Connection, source: str, target: Path) -> None:
    """Copy the database, as of one moment, into a new file that needs no WAL beside it."""
    if target.exists():
        raise InvalidInput(f"{target} exists; a backup never overwrites, name a new file")
    partial = target.with_name(f"{target.name}.partial")
    partial.unlink(missing_ok=True)
    try:
        copy = sqlite3.connect(partial, isolation_level=None)
    except sqlite3.OperationalError as e:
        raise StoreError(f"cannot write the backup {target} of {source} ({e}); does its folder exist?") from e
    try:
        with translated(str(target)):
            conn.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
    except BaseException:
        copy.close()
        partial.unlink(missing_ok=True)
        raise
    copy.close()
    os.replace(partial, target)
