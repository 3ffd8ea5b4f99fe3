"""The thread that deletes expired items every few minutes."""

import logging
import threading
import weakref
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Protocol

from langmem_adapter.errors import StoreClosed, StoreError

logger = logging.getLogger(__name__)


class Swept(Protocol):
    """A store with expired items."""

    def sweep_ttl(self) -> int: ...


class Sweeper:
    """Sweeps a store until stopped, cancelled, or the store is closed or dropped."""

    def __init__(self, store: Swept, seconds: float) -> None:
        self._stop = threading.Event()
        self.future: Future[None] = Future()
        """Pending while it sweeps; cancelling it stops the sweeper."""
        self.future.add_done_callback(lambda _: self._stop.set())
        self._thread = threading.Thread(
            target=_sweep, args=(weakref.ref(store), seconds, self._stop, self.future), name="memory-ttl", daemon=True
        )
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether it will sweep again."""
        return self._thread.is_alive() and not self._stop.is_set()

    def stop(self, timeout: float | None = None) -> bool:
        """Stop sweeping; False if a sweep is still going on after `timeout` seconds (None: however long it takes)."""
        self._stop.set()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)
        return not self._thread.is_alive()


def _sweep(store: "weakref.ref[Swept]", seconds: float, stop: threading.Event, future: "Future[None]") -> None:
    while not stop.wait(seconds):
        target = store()
        if target is None:
            break
        try:
            target.sweep_ttl()
        except StoreClosed:
            break
        except StoreError:
            logger.exception("sweeping expired items failed; it will be tried again")
        del target
    with suppress(InvalidStateError):  # it was cancelled
        future.set_result(None)
