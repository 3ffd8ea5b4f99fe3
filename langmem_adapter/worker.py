"""A few background threads that do keyed jobs, each after a delay, and never keep a process alive.

Jobs of one key are done one at a time, in order. It knows nothing of memories: what is to be done lies in the store's
turn queue, and a job is only a reminder to look there. A process that dies loses the reminders and nothing else.
"""

import itertools
import os
import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

THREADS = 4
"""Keys worked on at once."""
PATIENCE = 10
"""A key that is asked for again and again is put off by so many delays at most."""

CLOSING = 10.0
"""Seconds that `close` waits for the jobs at hand."""


class Worker(Generic[K]):
    """`do(key)` for every key asked for; a key that is asked for again before its time is done once, later."""

    def __init__(self, do: Callable[[K], None], *, name: str, threads: int = THREADS) -> None:
        self._do = do
        self._name = name
        self._most = threads
        self._closed = False
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._due: dict[K, float] = {}
        self._first: dict[K, float] = {}
        self._later: dict[K, float] = {}
        self._busy: set[K] = set()
        self._threads: set[threading.Thread] = set()
        self._changed = threading.Condition()

    def _here(self) -> threading.Condition:
        # A forked process has none of the threads, and its parent does the parent's jobs.
        if self._pid != os.getpid():
            self._begin()
        return self._changed

    def ask(self, key: K, delay: float = 0.0, *, again: bool = True) -> None:
        """Do this key in `delay` seconds. Of several calls the last counts (debounced), or the first if not `again`."""
        with self._here():
            if self._closed or (not again and key in self._due):
                return
            now = time.monotonic()
            latest = self._first.setdefault(key, now) + PATIENCE * delay
            self._due[key] = min(now + delay, max(latest, now))
            self._man()

    def come_back(self, key: K, delay: float) -> None:
        """Called from a job: look at this key again in `delay` seconds at the latest. `drain` does not wait for it."""
        with self._here():
            self._later[key] = time.monotonic() + delay
            self._changed.notify_all()

    def drain(self, timeout: float | None = None) -> bool:
        """Do everything that is asked for now, delays cut short; False if it was not done within `timeout` seconds.

        False at once from a job, which would wait for itself.
        """
        with self._here():
            if threading.current_thread() in self._threads:
                return False
            self._due = dict.fromkeys(self._due, 0.0)
            self._changed.notify_all()
            return self._changed.wait_for(lambda: not self._due and not self._busy, timeout)

    def close(self) -> None:
        """Finish the jobs at hand, if that does not take too long, and stop."""
        with self._here():
            self._closed = True
            self._due.clear()
            self._later.clear()
            self._changed.notify_all()
            threads = list(self._threads)
        end = time.monotonic() + CLOSING
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, end - time.monotonic()))

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def _man(self) -> None:
        # One more thread, if there is more to do than there are threads.
        if len(self._threads) < min(self._most, len(self._due.keys() | self._busy)):
            thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._threads.add(thread)
            thread.start()
        self._changed.notify_all()

    def _run(self) -> None:
        try:
            while (key := self._next()) is not None:
                try:
                    self._do(key[0])
                finally:
                    with self._changed:
                        self._busy.discard(key[0])
                        self._changed.notify_all()
        finally:
            with self._changed:
                self._threads.discard(threading.current_thread())

    def _next(self) -> tuple[K] | None:
        with self._changed:
            while not self._closed:
                now = time.monotonic()
                jobs = itertools.chain(self._due.items(), self._later.items())
                first = min((j for j in jobs if j[0] not in self._busy), key=lambda job: job[1], default=None)
                if first is not None and first[1] <= now:
                    key = first[0]
                    for times in (self._due, self._first, self._later):
                        times.pop(key, None)
                    self._busy.add(key)
                    return (key,)
                self._changed.wait(None if first is None else min(first[1] - now, threading.TIMEOUT_MAX))
            return None
