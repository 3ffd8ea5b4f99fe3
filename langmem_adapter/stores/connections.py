"""SQLite connections: one that writes, a pool that reads, and SQLite's errors as typed ones."""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from langmem_adapter.errors import StoreClosed, StoreCorrupt, StoreError, StoreFull, StoreReadOnly
from langmem_adapter.stores import filters
from langmem_adapter.stores.workers import Ticket

BUSY_SECONDS = 30.0
PAGE_SIZE = 8192
_IDLE_READERS = 8

# Connections of a parent process. SQLite forbids using *or closing* them after a fork, so they are kept for ever.
_inherited: list[object] = []
_forked = threading.Lock()


def typed(error: sqlite3.Error, name: str) -> StoreError:
    """The error of this package for one of SQLite's; the message names the file."""
    code = getattr(error, "sqlite_errorcode", 0)
    match code & 0xFF:
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return StoreReadOnly(f"{name} cannot be written ({error}); reads still work")
        case sqlite3.SQLITE_FULL:
            return StoreFull(f"no room to write to {name} ({error}); nothing of this write was kept")
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return StoreCorrupt(f"{name} is damaged or not a memory database ({error}); it was left as it is")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreError(f"{name} was locked by another writer for over {BUSY_SECONDS:.0f} s ({error})")
        case sqlite3.SQLITE_CANTOPEN:
            return StoreError(f"cannot open {name} ({error}); is it a file, and does its folder exist?")
    text = str(error)
    if "closed database" in text:
        return StoreClosed(f"the store on {name} is closed")
    if code == sqlite3.SQLITE_IOERR_SHORT_READ or "malformed JSON" in text or "decode to UTF-8" in text:
        return StoreCorrupt(f"{name} is damaged ({error}); it was left as it is")
    return StoreError(f"{name}: {error}")


@contextmanager
def translated(name: str) -> Iterator[None]:
    """Raise SQLite's errors inside the block as ours."""
    try:
        yield
    except sqlite3.Error as e:
        raise typed(e, name) from e
    except UnicodeDecodeError as e:  # a damaged schema, in a message of SQLite's
        raise StoreCorrupt(f"{name} is damaged ({e}); it was left as it is") from e


class Connections:
    """The connections of one store in this process. `:memory:` has a single one, shared under the lock."""

    def __init__(self, path: str | Path) -> None:
        self.name = os.fspath(path)
        if not self.name.strip():
            raise StoreError(f"the path of a store is empty ({self.name!r}); name a file, or ':memory:'")
        self.in_memory = self.name == ":memory:" or "mode=memory" in self.name
        self._target = self.name
        self._closed = False
        self._start()

    @property
    def file(self) -> Path | None:
        """The database file; None for `:memory:`."""
        if self.in_memory:
            return None
        return Path(self.name.removeprefix("file:").split("?")[0] if self.name.startswith("file:") else self.name)

    def _start(self) -> None:
        self._write_lock = threading.RLock()
        self._pool_lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        with translated(self.name):
            self._writer = self._open_first()
        self._pid = os.getpid()

    def _open_first(self) -> sqlite3.Connection:
        try:
            return self._opened()
        except sqlite3.Error as e:
            if e.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                raise
            file = self.file
            wal = Path(f"{file}-wal")
            if file is None or not file.is_file() or (wal.exists() and wal.stat().st_size):
                raise
            # A file or folder we cannot write: SQLite misses its shared memory. But as there is no write-ahead log
            # nobody has the file open, so it can be read as it stands.
            self._target = f"{file.absolute().as_uri()}?immutable=1"
            return self._opened()

    def _opened(self) -> sqlite3.Connection:
        conn = self._connect()
        try:
            self._use_wal(conn)
        except BaseException:
            conn.close()
            raise
        return conn

    def _connect(self) -> sqlite3.Connection:
        conn = sqlite3.connect(
            self._target,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            uri=self._target.startswith("file:"),
        )
        try:
            conn.execute("PRAGMA synchronous = FULL")
            conn.execute("PRAGMA secure_delete = ON")
            conn.execute("PRAGMA temp_store = MEMORY")
            conn.execute("PRAGMA cache_size = -8000")
            filters.register(conn)
        except BaseException:
            conn.close()
            raise
        return conn

    def _use_wal(self, conn: sqlite3.Connection) -> None:
        if self.in_memory or conn.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
            conn.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
            return
        conn.execute(f"PRAGMA page_size = {PAGE_SIZE}")  # counts only while the file is empty
        give_up = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                conn.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as e:
                # Several processes may create the file at once; this switch does not wait by itself.
                if e.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                    raise
                time.sleep(0.01)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection inside a read transaction: everything read in the block is of one moment."""
        self._check()
        if self.in_memory:
            with self._write_lock, translated(self.name):
                self._check()
                yield self._writer
            return
        with translated(self.name):
            conn = self._borrow()
            try:
                conn.execute("BEGIN")
                yield conn
            finally:
                self._return(conn)

    @contextmanager
    def writing(self, ticket: Ticket | None = None) -> Iterator[sqlite3.Connection]:
        """A connection inside a write transaction: committed at the end of the block, rolled back if it raises.

        The ticket, if any, is sealed just before the commit.
        """
        with self.alone() as conn:
            if ticket is not None:
                ticket.check()
            conn.execute("BEGIN IMMEDIATE")
            try:
                yield conn
                if ticket is not None:
                    ticket.seal()
                conn.execute("COMMIT")
            except BaseException:
                if conn.in_transaction:
                    conn.execute("ROLLBACK")
                raise

    @contextmanager
    def alone(self) -> Iterator[sqlite3.Connection]:
        """The writing connection outside a transaction, for VACUUM and checkpoints."""
        self._check()
        with self._write_lock, translated(self.name):
            self._check()
            yield self._writer

    def close(self, *, wait: float = -1) -> None:
        """Close all connections; one that is reading is closed when it has finished. May be called again.

        `wait` is how many seconds to wait for a write that is going on; −1: for its end.
        """
        if self._closed:
            return
        self._closed = True
        if self._pid != os.getpid():
            _inherited.append((self._writer, self._idle))
            return
        with self._pool_lock:
            idle, self._idle = self._idle, []
        for conn in idle:
            conn.close()
        if self._write_lock.acquire(timeout=wait):
            try:
                self._writer.close()
            finally:
                self._write_lock.release()

    def _check(self) -> None:
        if self._closed:
            raise StoreClosed(f"the store on {self.name} is closed")
        if self._pid != os.getpid():
            with _forked:
                if self._pid != os.getpid():
                    self._after_fork()

    def _after_fork(self) -> None:
        if self.in_memory:  # memory was copied: the child's own database now
            self._write_lock = threading.RLock()
            self._pid = os.getpid()
            return
        _inherited.append((self._writer, self._idle))
        self._start()

    def _borrow(self) -> sqlite3.Connection:
        with self._pool_lock:
            if self._idle:
                return self._idle.pop()
        conn = self._connect()
        conn.execute("PRAGMA query_only = ON")
        return conn

    def _return(self, conn: sqlite3.Connection) -> None:
        if conn.in_transaction:
            conn.execute("ROLLBACK")
        with self._pool_lock:
            if not self._closed and len(self._idle) < _IDLE_READERS:
                self._idle.append(conn)
                return
        conn.close()
