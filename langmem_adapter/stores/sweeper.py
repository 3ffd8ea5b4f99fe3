"""The thread that deletes expired items every few minutes."""

import logging
import queue
import threading
import weakref
from collections.abc import Generator, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any, Protocol

from langmem_adapter.errors import InvalidInput, StoreClosed, StoreError

logger = logging.getLogger(__name__)


SWEEP_MINUTES = 5.0


class Sweeping(Future[None]):
    """Pending while a sweeper runs. Awaited it gives itself at once, as LangGraph's async stores give a task."""

    def __await__(self) -> "Generator[Any, None, Sweeping]":
        return self
        yield


class Swept(Protocol):
    """A store with expired items."""

    def sweep_ttl(self) -> int: ...


class Sweeper:
    """Sweeps a store until stopped, cancelled, or the store is closed or dropped."""

    def __init__(self, store: Swept, ttl: Mapping[str, Any] | None, minutes: float | None) -> None:
        """Every so many `minutes`, or else those of the ttl config, or else 5."""
        seconds = 60 * _minutes(ttl, minutes)
        self._stopping = False
        # A queue, as it may be filled while the garbage collector drops the store.
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        wake = self._wake
        self.future = Sweeping()
        """Pending while it sweeps; cancelling it stops the sweeper."""
        self.future.add_done_callback(lambda _: self._halt())
        self._thread = threading.Thread(
            target=_sweep,
            args=(weakref.ref(store, lambda _: wake.put(None)), seconds, wake, self.future),
            name="memory-ttl",
            daemon=True,
        )
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether it will sweep again."""
        return self._thread.is_alive() and not self._stopping

    def stop(self, timeout: float | None = None) -> bool:
        """Stop sweeping; False if a sweep is still going on after `timeout` seconds (None: however long it takes)."""
        self._halt()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _halt(self) -> None:
        self._stopping = True
        self._wake.put(None)


def _minutes(ttl: Mapping[str, Any] | None, given: float | None) -> float:
    found = (ttl or {}).get("sweep_interval_minutes") if given is None else given
    if found is None:
        return SWEEP_MINUTES
    if not isinstance(found, int | float) or isinstance(found, bool) or not 0 < found < 1e9:
        raise InvalidInput(f"sweep_interval_minutes is a number of minutes above 0, got {found!r}")
    return found


def _sweep(
    store: "weakref.ref[Swept]", seconds: float, wake: "queue.SimpleQueue[None]", future: "Future[None]"
) -> None:
    while not _woken(wake, seconds):
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


def _woken(wake: "queue.SimpleQueue[None]", seconds: float) -> bool:
    try:
        wake.get(timeout=min(seconds, threading.TIMEOUT_MAX))
    except queue.Empty:
        return False
    return True
