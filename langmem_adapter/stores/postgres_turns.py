"""Writers that lost a race go one at a time.

A conditional commit fails if another writer came first, and the caller reads and decides again. With many writers of
one owner some would lose for ever. So whoever lost once reads again in a transaction that takes the owner's advisory
lock, locks the version rows, and stays open until the commit: nobody can come first. The server itself ends that
transaction if the commit does not follow within a second; the commit then takes the usual way, and is checked.
"""

import asyncio
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TypeVar

import psycopg

from langmem_adapter.stores.postgres_pool import Connections, begin, inherited, is_lost, typed
from langmem_adapter.stores.postgres_schema import Connection, run
from langmem_adapter.stores.postgres_writing import lock

T = TypeVar("T")

SECONDS = 1.0
"""How long a turn may last from read to commit."""
WAIT_SECONDS = 5.0
_REMEMBERED = 1_000

Who = tuple[int, int]


def who() -> Who:
    """Names the caller: its asyncio task, else its thread. A read and the commit that follows have the same."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return (1, id(task)) if task is not None else (0, threading.get_ident())


@dataclass(slots=True)
class Turn:
    """An open transaction in which nobody else can change these namespaces."""

    conn: Connection
    paths: frozenset[str]
    ends: float


class Turns:
    """The losers and the open turns of one store in this process."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._lock = threading.Lock()
        self._losers: OrderedDict[tuple[Who, str], None] = OrderedDict()
        self._open: dict[Who, Turn] = {}
        self._pid = os.getpid()
        connections.reclaim = self.end_overdue

    def lost(self, caller: Who, owners: Iterable[str]) -> None:
        """Note a conflict."""
        with self._lock:
            for owner in owners:
                self._losers[caller, owner] = None
            while len(self._losers) > _REMEMBERED:
                self._losers.popitem(last=False)

    def won(self, caller: Who, owners: Iterable[str]) -> None:
        """Note a commit."""
        with self._lock:
            for owner in owners:
                self._losers.pop((caller, owner), None)

    def due(self, caller: Who, owners: Iterable[str]) -> bool:
        """Whether the caller has lost a race for one of these owners since it last won."""
        return bool(self._losers) and any((caller, owner) in self._losers for owner in owners)

    def begin(
        self, caller: Who, s: str, owners: Collection[str], paths: Collection[str], job: Callable[[Connection], T]
    ) -> T | None:
        """The result of `job` in a turn that is then kept open; None if the owner's lock cannot be had in time."""
        conn, _ = self._connections.take()
        try:
            begin(
                conn,
                "ISOLATION LEVEL READ COMMITTED READ WRITE",
                owners,
                *self._connections.settings,
                f"SET LOCAL lock_timeout = '{WAIT_SECONDS:.0f}s'",
                f"SET LOCAL idle_in_transaction_session_timeout = '{SECONDS * 1000:.0f}ms'",
            )
            for owner in sorted(owners):
                run(conn, "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (owner,))
            # No snapshot is older than these locks: all that is read from here on is of one moment.
            lock(conn, s, paths)
            found = job(conn)
        except BaseException as e:
            if isinstance(e, psycopg.Error) and is_lost(conn, e):
                conn.close()
            self._connections.give(conn)
            if isinstance(e, psycopg.errors.LockNotAvailable) or (isinstance(e, psycopg.Error) and conn.closed):
                return None
            if isinstance(e, psycopg.Error):
                raise typed(e, self._connections.name) from e
            raise
        with self._lock:
            self._open[caller] = Turn(conn, frozenset(paths), time.monotonic() + SECONDS)
        return found

    def has(self, caller: Who) -> bool:
        """Whether the caller has a turn."""
        return caller in self._open

    def take(self, caller: Who, paths: Collection[str] | None = None) -> Turn | None:
        """The caller's open turn, if it covers these namespaces; its own otherwise, and all that are over, end here."""
        if not self._open:
            return None
        if self._pid != os.getpid():
            self._forget_parents()
            return None
        with self._lock:
            mine = self._open.pop(caller, None)
        self.end_overdue()
        if mine is not None and (paths is None or not mine.paths.issuperset(paths) or mine.ends < time.monotonic()):
            self.end(mine)
            mine = None
        return mine

    def end_overdue(self) -> bool:
        """End all turns that are over; whether any is open still."""
        if not self._open or self._pid != os.getpid():
            return False
        now = time.monotonic()
        with self._lock:
            over = [self._open.pop(w) for w, turn in list(self._open.items()) if turn.ends < now]
        for turn in over:
            self.end(turn)
        return bool(self._open)

    def _forget_parents(self) -> None:
        # Ending a parent's turn here would end it there.
        inherited.append(self._open)
        self._pid, self._open, self._lock = os.getpid(), {}, threading.Lock()

    def end(self, turn: Turn) -> None:
        """Give the turn's connection back; what was not committed is rolled back."""
        self._connections.give(turn.conn)

    def close(self) -> None:
        """End all turns."""
        if self._pid != os.getpid():
            self._forget_parents()
        with self._lock:
            ended, self._open = list(self._open.values()), {}
        for turn in ended:
            self.end(turn)
