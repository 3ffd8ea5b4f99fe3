"""Connections to PostgreSQL: a small pool, transactions on it, and the server's errors as typed ones.

A pool of our own, because it must fail at once when the server is down (a turn has a deadline), work again at once
when it is back, survive a fork, and start no thread.
"""

import os
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Protocol, TypeVar

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from langmem_adapter.errors import InvalidInput, StoreClosed, StoreCorrupt, StoreError, StoreFull, StoreReadOnly
from langmem_adapter.stores.postgres_owners import setting
from langmem_adapter.stores.postgres_schema import Connection, run
from langmem_adapter.stores.workers import Ticket

T = TypeVar("T")

SIZE = 10
WAIT_SECONDS = 30.0
SETTLE_SECONDS = 5.0
"""How long a write whose COMMIT was not answered waits for the server to come back and tell."""

_AGAIN = ("40001", "40P01")  # serialization failure, deadlock: nothing happened, and it may go well next time
_ATTEMPTS = 5
_PAUSE = 0.1
_HOUR = 3_600 * 1_000_000

# Unless the connection string says otherwise: no call hangs for minutes on a host that does not answer.
_OPTIONS = {"application_name": "langmem_adapter", "connect_timeout": 5, "tcp_user_timeout": 30_000}

# Connections of a parent process: closing one here would end the parent's session, so they are kept for ever.
inherited: list[object] = []


class NotCommitted(StoreError):
    """The connection was lost with the COMMIT under way, and it certainly did not happen and will not."""


class Pool(Protocol):
    """What is needed of a `psycopg_pool.ConnectionPool`."""

    def getconn(self, timeout: float | None = None) -> Connection: ...

    def putconn(self, conn: Connection) -> None: ...


def typed(error: psycopg.Error, name: str) -> StoreError:
    """The error of this package for one of PostgreSQL's; the message names the database, never a value."""
    said = (error.diag.message_primary or str(error)).strip()
    match error.sqlstate or "":
        case "25006":
            return StoreReadOnly(f"{name} cannot be written now ({said}); reads still work")
        case "42501":
            return StoreReadOnly(f"{name} does not let this role do that ({said})")
        case "53100":
            return StoreFull(f"no room to write to {name} ({said}); nothing of this write was kept")
        case "XX001" | "XX002":
            return StoreCorrupt(f"{name} is damaged ({said}); it was left as it is")
        case "":
            return StoreError(f"{name} cannot be reached ({said}); is the server running?")
    return StoreError(f"{name}: {said}")


def is_lost(conn: Connection, error: psycopg.Error) -> bool:
    """Whether the error means that the connection is gone, not that the server refused something."""
    return conn.broken or conn.closed or (error.sqlstate or "").startswith(("08", "57P0"))


class Connections:
    """The connections of one store in this process."""

    def __init__(self, source: str | Pool, size: int = SIZE) -> None:
        if not isinstance(source, str) and not callable(getattr(source, "getconn", None)):
            raise InvalidInput(f"source must be a connection string or a ConnectionPool, got {type(source).__name__}")
        if size < 1:
            raise InvalidInput(f"pool_size must be at least 1, got {size!r}")
        self._source = source
        self._size = size
        self._closed = False
        self.divided = False
        """Whether the tables are partitioned."""
        self.reclaim: Callable[[], bool] = lambda: False
        """Gives back the connections that are kept beyond their time; whether any is kept still."""
        self.name = name_of(source)
        self._start()

    @property
    def _options(self) -> dict[str, Any]:
        given = conninfo_to_dict(self._source) if isinstance(self._source, str) else {}
        return {k: v for k, v in _OPTIONS.items() if k not in given}

    def _start(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._room = threading.Semaphore(self._size)
        self._idle: list[Connection] = []
        self._changed: set[Connection] = set()

    # one connection

    def take(self) -> tuple[Connection, bool]:
        """A connection, and whether it was idle, so that it may turn out to be dead. Give it back."""
        self._check()
        if not isinstance(self._source, str):
            return self._configured(self._from_pool(self._source)), True
        give_up = time.monotonic() + WAIT_SECONDS
        while not self._room.acquire(timeout=_PAUSE):
            self.reclaim()
            if time.monotonic() >= give_up:
                raise StoreError(f"all {self._size} connections to {self.name} were busy for {WAIT_SECONDS:.0f} s")
        try:
            with self._lock:
                if self._idle:
                    return self._idle.pop(), True
            return psycopg.connect(self._source, autocommit=True, **self._options), False
        except BaseException as e:
            self._room.release()
            if isinstance(e, psycopg.Error):
                raise typed(e, self.name) from e
            raise

    def _from_pool(self, pool: Pool) -> Connection:
        give_up = time.monotonic() + WAIT_SECONDS
        try:
            while self.reclaim() and time.monotonic() < give_up:
                with suppress(psycopg.OperationalError):  # none was free yet
                    return pool.getconn(_PAUSE)
            return pool.getconn()
        except psycopg.Error as e:
            raise typed(e, self.name) from e

    def _configured(self, conn: Connection) -> Connection:
        if not conn.autocommit and not conn.closed:
            conn.autocommit = True
            with self._lock:
                self._changed.add(conn)
        return conn

    def give(self, conn: Connection) -> None:
        """Take a connection back; one that is broken is dropped, an open transaction rolled back."""
        if not conn.closed and conn.info.transaction_status != TransactionStatus.IDLE:
            try:
                conn.execute("ROLLBACK")
            except psycopg.Error:
                conn.close()
        if not isinstance(self._source, str):
            with self._lock:
                changed = conn in self._changed
                self._changed.discard(conn)
            if changed and not conn.closed:
                conn.autocommit = False
            self._source.putconn(conn)
            return
        with self._lock:
            keep = not conn.closed and not self._closed
            if keep:
                self._idle.append(conn)
        if not keep:
            conn.close()
        self._room.release()

    def drop_idle(self) -> None:
        """Close the connections that nobody uses: the server they were made to is gone."""
        with self._lock:
            idle, self._idle = self._idle, []
        for conn in idle:
            conn.close()

    # transactions

    @property
    def settings(self) -> tuple[str, ...]:
        """What every transaction begins with."""
        # A plan kept for any owner would open and lock all partitions.
        return ("SET LOCAL plan_cache_mode = force_custom_plan",) if self.divided else ()

    def alone(self, job: Callable[[Connection], T]) -> T:
        """The result of `job` on a connection that is in no transaction."""
        return self._attempt(job)

    def reading(self, owners: Iterable[str], job: Callable[[Connection], T]) -> T:
        """The result of `job` on one snapshot. It may be called again, if an idle connection was dead."""

        def once(conn: Connection) -> T:
            begin(conn, "ISOLATION LEVEL REPEATABLE READ READ ONLY", owners, *self.settings)
            result = job(conn)
            conn.execute("COMMIT")
            return result

        return self._attempt(once)

    def writing(
        self, owners: Iterable[str], job: Callable[[Connection], T], commits: str, ticket: Ticket | None = None
    ) -> T:
        """The result of `job` in a transaction that is then committed; see `finish`. It may be called again."""

        def once(conn: Connection) -> T:
            if ticket is not None:
                ticket.check()
            begin(conn, "ISOLATION LEVEL READ COMMITTED READ WRITE", owners, *self.settings)
            result = job(conn)
            self.finish(conn, commits, ticket)
            return result

        return self._attempt(once)

    def finish(self, conn: Connection, commits: str, ticket: Ticket | None) -> None:
        """Seal the ticket and commit. If the reply is lost, the transaction's own id in the table `commits` tells
        whether it happened; NotCommitted if it did not, StoreError if that cannot be found out."""
        id = uuid.uuid4()
        if ticket is not None:
            ticket.seal()
        try:
            # One round trip; both values are made here.
            run(conn, f"INSERT INTO {commits} VALUES ('{id}', {_now()}); COMMIT")
        except psycopg.Error as e:
            if not is_lost(conn, e):
                raise
            self._settle(id, commits, e)

    def _settle(self, id: uuid.UUID, commits: str, lost: psycopg.Error) -> None:
        self.drop_idle()
        give_up, wait = time.monotonic() + SETTLE_SECONDS, 0.02
        while True:
            try:
                happened = self._attempt(lambda conn: _happened(conn, commits, id))
                break
            except StoreError as e:
                if time.monotonic() > give_up or isinstance(e, StoreClosed):
                    raise StoreError(
                        f"{self.name} was lost while it committed, and is still away ({e}); whether this write "
                        "happened is unknown: read before you write it again"
                    ) from lost
                time.sleep(wait)
                wait = min(0.5, wait * 2)
        if not happened:
            raise NotCommitted(f"{self.name} was lost before it committed; nothing of this write was kept") from lost

    def _attempt(self, job: Callable[[Connection], T]) -> T:
        tries = 0
        while True:
            tries += 1
            conn, idle = self.take()
            try:
                return job(conn)
            except psycopg.Error as e:
                lost = is_lost(conn, e)
                if lost:
                    conn.close()
                if lost and idle and tries < self._size + 2:
                    self.drop_idle()
                    continue
                if e.sqlstate in _AGAIN and tries < _ATTEMPTS:
                    continue
                raise typed(e, self.name) from e
            except NotCommitted:
                if tries > 1:
                    raise
            finally:
                self.give(conn)

    # closing

    def close(self) -> None:
        """Close what is idle; what is in use is closed when it is given back. A pool that was passed in stays open."""
        self._closed = True
        if self._pid == os.getpid():
            self.drop_idle()
        else:
            inherited.append(self._idle)

    def _check(self) -> None:
        if self._closed:
            raise StoreClosed(f"the store on {self.name} is closed")
        if self._pid != os.getpid():
            inherited.append(self._idle)
            self._start()


def begin(conn: Connection, mode: str, owners: Iterable[str], *settings: str) -> None:
    """Begin a transaction that may see these owners, in one round trip."""
    named = sql.Literal(setting(owners)).as_string(conn)
    run(conn, "; ".join([f"BEGIN {mode}", f"SELECT set_config('lm.owner', {named}, true)", *settings]))


def _happened(conn: Connection, commits: str, id: uuid.UUID) -> bool:
    # The insert waits for a transaction that is still at it, and from then on that id can no longer be committed,
    # should the lost COMMIT reach the server only now. A claim has a negative time: it is not taken for the commit.
    run(conn, f"INSERT INTO {commits} VALUES (%s, %s) ON CONFLICT DO NOTHING", (id, -_now()))
    return bool(run(conn, f"SELECT at > 0 FROM {commits} WHERE id = %s", (id,))[0][0])


def forget_commits(conn: Connection, commits: str) -> None:
    """Delete the ids that nobody asks for any more."""
    old = f"SELECT id FROM {commits} WHERE abs(at) < %s FOR UPDATE SKIP LOCKED"
    run(conn, f"DELETE FROM {commits} WHERE id IN ({old})", (_now() - _HOUR,))


def _now() -> int:
    return time.time_ns() // 1_000


def name_of(source: str | Pool) -> str:
    """The database and its host: never the password."""
    if not isinstance(source, str):
        source = str(getattr(source, "conninfo", ""))
    try:
        parts = conninfo_to_dict(source)
    except psycopg.Error:
        raise StoreError("the connection string is not one that PostgreSQL understands; see its manual") from None
    return f"PostgreSQL {parts.get('dbname') or parts.get('user') or 'database'} at {parts.get('host') or 'localhost'}"
