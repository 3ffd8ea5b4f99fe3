"""Turns that the store could not take, kept in this process until it can.

A store that hangs or is away must not hold up a conversation, nor cost it what was said. So the turns wait here, in
order, and one background thread writes them to their owners' queues as soon as the store answers. What is still here
when the process ends is lost, and said to be.
"""

import threading
from collections.abc import Callable, Sequence

from langmem_adapter.records import Turn

MOST = 10_000
"""Turns kept at most; then the oldest go."""
PAUSE = 0.5
"""Seconds between tries, doubled up to sixteen times that."""


class Backlog:
    """`take(turns)` is called, in a thread, until it raises nothing; `lost(count)` tells of turns given up."""

    def __init__(self, take: Callable[[Sequence[Turn]], None], lost: Callable[[int], None]) -> None:
        self._take = take
        self._lost = lost
        self._turns: list[Turn] = []
        self._thread: threading.Thread | None = None
        self._changed = threading.Condition()
        self._closed = False

    def add(self, turns: Sequence[Turn]) -> None:
        """Keep turns until the store takes them."""
        with self._changed:
            self._turns += turns
            excess = len(self._turns) - MOST
            if excess > 0:
                del self._turns[:excess]
            # A forked process has no threads of its parent's.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._work, daemon=True, name="langmem_adapter-backlog")
                self._thread.start()
        if excess > 0:
            self._lost(excess)

    def __len__(self) -> int:
        return len(self._turns)

    def drain(self, timeout: float | None) -> bool:
        """Wait until the store has taken all; whether it has."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._turns, timeout)

    def close(self, timeout: float) -> None:
        """Wait a little for the store, then give up what it has not taken."""
        self.drain(timeout)
        with self._changed:
            self._closed = True
            left = len(self._turns)
            self._turns.clear()
            self._changed.notify_all()
        if left:
            self._lost(left)

    def _work(self) -> None:
        pause = PAUSE
        while True:
            with self._changed:
                batch = list(self._turns)
                if not batch or self._closed:
                    self._thread = None
                    return
            try:
                self._take(batch)
            except Exception:  # noqa: BLE001 - whatever somebody's store raises: it is tried again
                with self._changed:
                    self._changed.wait_for(lambda: self._closed, pause)
                pause = min(2 * pause, 16 * PAUSE)
                continue
            pause = PAUSE
            with self._changed:
                taken = {id(turn) for turn in batch}
                self._turns = [turn for turn in self._turns if id(turn) not in taken]
                self._changed.notify_all()
