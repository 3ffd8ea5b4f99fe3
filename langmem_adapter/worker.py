"""A background thread that does keyed jobs, each after a delay, one at a time, and never keeps a process alive.

It knows nothing of memories: what is to be done lies in the store's turn queue, and a job is only a reminder to look
there. A process that dies loses the reminders and nothing else.
"""

import itertools
import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Worker(Generic[K]):
    """`do(key)` for every key asked for; a key that is asked for again before its time is done once, later."""

    def __init__(self, do: Callable[[K], None], *, name: str) -> None:
        self._do = do
        self._name = name
        self._due: dict[K, float] = {}
        self._later: dict[K, float] = {}
        self._busy: tuple[K] | None = None
        self._closed = False
        self._thread: threading.Thread | None = None
        self._changed = threading.Condition()

    def ask(self, key: K, delay: float = 0.0, *, again: bool = True) -> None:
        """Do this key in `delay` seconds. Of several calls the last counts (debounced), or the first if not `again`."""
        with self._changed:
            if self._closed or (not again and key in self._due):
                return
            self._due[key] = time.monotonic() + delay
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def come_back(self, key: K, delay: float) -> None:
        """Called from a job: look at this key again in `delay` seconds at the latest. `drain` does not wait for it."""
        with self._changed:
            self._later[key] = time.monotonic() + delay

    def drain(self, timeout: float | None = None) -> bool:
        """Do everything that is asked for now, delays cut short; False if it was not done within `timeout` seconds."""
        with self._changed:
            self._due = dict.fromkeys(self._due, 0.0)
            self._changed.notify_all()
            return self._changed.wait_for(lambda: not self._due and self._busy is None, timeout)

    def close(self, timeout: float = 10.0) -> None:
        """Finish the job at hand and stop; what is left stays in the store's queue."""
        with self._changed:
            self._closed = True
            self._due.clear()
            self._later.clear()
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def _run(self) -> None:
        while (key := self._next()) is not None:
            try:
                self._do(key[0])
            finally:
                with self._changed:
                    self._busy = None
                    self._changed.notify_all()

    def _next(self) -> tuple[K] | None:
        with self._changed:
            while not self._closed:
                now = time.monotonic()
                jobs = itertools.chain(self._due.items(), self._later.items())
                first = min(jobs, key=lambda job: job[1], default=None)
                if first is not None and first[1] <= now:
                    self._due.pop(first[0], None)
                    self._later.pop(first[0], None)
                    self._busy = (first[0],)
                    return self._busy
                self._changed.wait(None if first is None else first[1] - now)
            return None
