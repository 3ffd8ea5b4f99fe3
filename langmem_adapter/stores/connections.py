"""SQLite connections: one that writes, a pool that reads, and SQLite's errors as typed ones.

SQLite keeps tables of its locks in memory. A fork copies them, so that a child would take locks for its own that
its parent holds, and lose what it writes when the parent closes. Therefore nothing is open while the process forks:
all connections are closed before, once they are idle, and opened again when they are next used.
"""

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

from langmem_adapter.errors import InvalidInput, StoreClosed, StoreCorrupt, StoreError, StoreFull, StoreReadOnly
from langmem_adapter.stores import filters
from langmem_adapter.stores.workers import Ticket

BUSY_SECONDS = 30.0
PAGE_SIZE = 8192
_IDLE_READERS = 8

_all: "weakref.WeakSet[Connections]" = weakref.WeakSet()
_opening = threading.RLock()
"""Held while a store is added, and throughout a fork."""
_paused: "list[tuple[Connections, bool]]" = []
_lost: list[object] = []
"""Connections that were open across a fork. SQLite forbids using *or closing* them, so they are kept for ever."""
_spoilt: set[tuple[int, int]] = set()
"""Files they belong to, which this process cannot open any more: device and inode."""


def _before_fork() -> None:
    _opening.acquire()
    _paused[:] = [(each, each.pause()) for each in list(_all)]


def _after_fork(child: bool) -> None:
    for each, quiet in _paused:
        if child:
            each.forked(quiet)
        if quiet:
            each.resume()
    _paused.clear()
    _opening.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _after_fork(child=False),
        after_in_child=lambda: _after_fork(child=True),
    )


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
    """The connections of one store in this process. `:memory:` has a single one, shared under the lock.

    `renew` is called in a child after a fork, before anything else happens there.
    """

    def __init__(self, path: str | Path, renew: Callable[[], None] = lambda: None) -> None:
        if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
            raise InvalidInput(f"path must be a str or a Path, got {path!r:.80}")
        self.name = os.fspath(path)
        if not self.name.strip():
            raise StoreError(f"the path of a store is empty ({self.name!r}); name a file, or ':memory:'")
        self.in_memory = False
        self.file: Path | None = None
        """The database file, links followed, as SQLite calls it; None for `:memory:`."""
        self._renew = renew
        self._closed = False
        self._pid = os.getpid()
        self._write_lock = threading.RLock()
        self._alone = 0
        """How deep the thread that has the write lock is inside `alone`."""
        self._pool = threading.Condition()
        self._idle: list[sqlite3.Connection] = []
        self._lent: list[int] = []
        """The thread of each connection that is reading."""
        self._pausing = False
        self._writer: sqlite3.Connection | None = None
        with self._write_lock, translated(self.name):
            with _opening:
                _all.add(self)
            self._target = _uri(self.name)
            self._writer = self._open_first()
            self._identity = self._settle(self._writer)

    def _open_first(self) -> sqlite3.Connection:
        try:
            return self._opened()
        except sqlite3.Error as e:
            if e.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                raise
            file = _named(self.name)
            wal = Path(f"{file}-wal")
            if not file.is_file() or (wal.exists() and wal.stat().st_size):
                raise
            # A file or folder we cannot write: SQLite misses its shared memory. But as there is no write-ahead log
            # nobody has the file open, so it can be read as it stands.
            self._target = f"{file.as_uri()}?immutable=1"
            return self._opened()

    def _settle(self, conn: sqlite3.Connection) -> tuple[int, int] | None:
        """Learn which file that is, and let all later connections open this one, or none."""
        conn.text_factory = os.fsdecode
        file = conn.execute("PRAGMA database_list").fetchone()[2]
        conn.text_factory = str
        if not file:
            self.in_memory = True
            return None
        self.file = Path(file)
        options = self._target.partition("#")[0].partition("?")[2].split("&")
        kept = [o for o in options if o and o not in ("mode=rwc", "mode=rw")]
        mode = [] if "mode=ro" in kept else ["mode=rw"]  # never makes a file
        self._target = f"{self.file.as_uri()}?{'&'.join([*kept, *mode])}"
        return self._on_disk()

    def _on_disk(self) -> tuple[int, int] | None:
        assert self.file is not None
        try:
            found = self.file.stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def _check_file(self) -> None:
        if self.file is not None and self._on_disk() != self._identity:
            raise StoreError(f"{self.name} was removed, moved or replaced while it was open; close the store")

    def _opened(self) -> sqlite3.Connection:
        conn = self._connect()
        try:
            self._use_wal(conn)
        except BaseException:
            conn.close()
            raise
        return conn

    def _connect(self) -> sqlite3.Connection:
        if _spoilt:
            self._refuse_spoilt()
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
        if conn.execute("PRAGMA journal_mode").fetchone()[0] in ("wal", "memory"):
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
        if self.in_memory:
            with self.alone() as conn:
                yield conn
            return
        self._check()
        me = threading.get_ident()
        with translated(self.name):
            conn = self._borrow(me)
            try:
                conn.execute("BEGIN")
                yield conn
            finally:
                self._return(conn, me)

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
            self._check_file()
            if self._writer is None:
                self._writer = self._opened()
            self._alone += 1
            try:
                yield self._writer
            finally:
                self._alone -= 1
                if self._closed and not self._alone:  # `close` did not wait for so long
                    self._close_writer()

    def close(self, *, wait: float = -1) -> None:
        """Close all connections; one that is reading is closed when it has finished. May be called again.

        `wait` is how many seconds to wait for a write that is going on, which is then closed when it has finished; −1:
        for its end.
        """
        if self._closed:
            return
        self._closed = True
        if self._pid != os.getpid():
            self._lose()
            return
        with self._pool:
            self._close_idle()
        if self._write_lock.acquire(timeout=wait):
            try:
                self._close_writer()
            finally:
                self._write_lock.release()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _close_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def check(self) -> None:
        """StoreClosed after `close`; StoreError in a child that cannot use this store."""
        self._check()

    def _check(self) -> None:
        if self._closed:
            raise StoreClosed(f"the store on {self.name} is closed")
        if self._pid != os.getpid():
            self._lose()
            raise StoreError(_FORKED.format(self.name))

    # forks

    def pause(self) -> bool:
        """Close everything and keep all others out until `resume`; False if that is not possible."""
        if not self._write_lock.acquire(timeout=BUSY_SECONDS):
            return False
        if self.in_memory:
            return True  # the child gets a copy
        with self._pool:
            self._pausing = True
            mine = self._alone or threading.get_ident() in self._lent
            if not mine and self._pool.wait_for(lambda: not self._lent, BUSY_SECONDS):
                self._close_idle()
                self._close_writer()
                return True
        self.resume()
        return False

    def resume(self) -> None:
        """Let others in again."""
        with self._pool:
            self._pausing = False
            self._pool.notify_all()
        self._write_lock.release()

    def forked(self, quiet: bool) -> None:
        """In a child: this store belongs to this process now; unless it was not `quiet`, then it cannot be used."""
        self._renew()
        self._pool, self._lent = threading.Condition(), []  # a thread that is not here may hold the former
        if quiet:
            self._pid = os.getpid()
        else:
            self._lose()

    def _lose(self) -> None:
        if self._writer is not None and self._identity is not None:
            _spoilt.add(self._identity)
        _lost.append((self._writer, self._idle))
        self._writer, self._idle = None, []

    def _refuse_spoilt(self) -> None:
        try:
            found = _named(self.name).stat()
        except OSError:
            return
        if (found.st_dev, found.st_ino) in _spoilt:
            raise StoreError(_FORKED.format(self.name))

    # readers

    def _borrow(self, me: int) -> sqlite3.Connection:
        with self._pool:
            while self._pausing and me not in self._lent:
                self._pool.wait()
            self._lent.append(me)
            if self._idle:
                return self._idle.pop()
        try:
            self._check_file()
            conn = self._connect()
            conn.execute("PRAGMA query_only = ON")
        except BaseException:
            with self._pool:
                self._given_back(me)
            raise
        return conn

    def _return(self, conn: sqlite3.Connection, me: int) -> None:
        if conn.in_transaction:
            conn.execute("ROLLBACK")
        with self._pool:
            if self._closed or len(self._idle) >= _IDLE_READERS:
                conn.close()
            else:
                self._idle.append(conn)
            self._given_back(me)

    def _given_back(self, me: int) -> None:
        self._lent.remove(me)
        if self._pausing:
            self._pool.notify_all()


_FORKED = (
    "this process was forked while {} was in use, so it cannot use it: fork at a quiet moment, or start processes by "
    "multiprocessing's 'spawn'"
)


def _uri(name: str) -> str:
    """What to give to SQLite to open it for the first time."""
    return name if name == ":memory:" or name.startswith("file:") else Path(os.path.abspath(name)).as_uri()


def _named(name: str) -> Path:
    """The file that a path or URI names."""
    if name.startswith("file:"):
        name = unquote(name[5:].partition("#")[0].partition("?")[0], errors="surrogateescape")
        if name.startswith("//"):
            name = "/" + name[2:].partition("/")[2]
    return Path(os.path.abspath(name))
