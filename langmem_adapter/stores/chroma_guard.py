"""Keeping a second process out of a Chroma folder.

Two processes on one folder do not see each other's index: one reads ghosts and fails on vectors. SQLite's lock on a
small file beside the folder lets one process in, is released by the system when that process dies, and tells who
holds it.
"""

import json
import os
import socket
import sqlite3
import threading
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from langmem_adapter.errors import StoreError

_held: dict[str, tuple[sqlite3.Connection, int, int]] = {}
"""By folder: the connection that holds the lock, the process that opened it, and how many stores rely on it."""

_lock = threading.Lock()


def enter(folder: Path) -> str:
    """Hold the folder for this process; StoreError, naming the holder, if another has it. Give the result to
    `leave`. Stores of one process share the lock."""
    name = str(folder.resolve())
    with _lock:
        conn, pid, users = _held.get(name, (None, 0, 0))
        if conn is None or pid != os.getpid():  # a fork inherits the entry, not the lock
            conn, users = _take(folder, file_beside(folder)), 0
        _held[name] = (conn, os.getpid(), users + 1)
    return name


def leave(name: str) -> None:
    """Let others in, once every store of this process has left."""
    with _lock:
        conn, pid, users = _held.pop(name, (None, 0, 0))
        if conn is None or pid != os.getpid():
            return
        if users > 1:
            _held[name] = (conn, pid, users - 1)
            return
        with suppress(sqlite3.Error):
            conn.execute("ROLLBACK")
        conn.close()


def file_beside(folder: Path) -> Path:
    """The file whose lock stands for the folder."""
    folder = folder.resolve()
    return folder.with_name(f"{folder.name}.writer")


def _take(folder: Path, file: Path) -> sqlite3.Connection:
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        conn = sqlite3.connect(file, timeout=0.2, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as e:
        raise StoreError(f"cannot write {file}, which keeps a second process out of {folder}: {e}") from e
    try:
        # WAL, so that whoever is kept out can still read who holds it.
        conn.execute("PRAGMA journal_mode = WAL")
        conn.execute("BEGIN EXCLUSIVE")
        conn.execute("CREATE TABLE IF NOT EXISTS holder (id INTEGER PRIMARY KEY CHECK (id = 1), who TEXT NOT NULL)")
        conn.execute("INSERT OR REPLACE INTO holder VALUES (1, ?)", (json.dumps(_me()),))
        conn.execute("COMMIT")
        conn.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as e:
        who = _holder(conn)
        conn.close()
        if "locked" not in str(e) and "busy" not in str(e):
            raise StoreError(f"cannot lock {file}, which keeps a second process out of {folder}: {e}") from e
        raise StoreError(
            f"{folder} is in use by {who}: an embedded Chroma has one process. Close the store there, or run "
            f"`chroma run --path {folder}` and give every process a chromadb.HttpClient"
        ) from e
    return conn


def _me() -> dict[str, object]:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"pid": os.getpid(), "host": socket.gethostname(), "since": now}


def _holder(conn: sqlite3.Connection) -> str:
    try:
        row = conn.execute("SELECT who FROM holder").fetchone()
        who = json.loads(row[0])
    except (sqlite3.Error, ValueError, TypeError):
        return "another process"
    return f"process {who['pid']} on {who['host']} (since {who['since']})"
