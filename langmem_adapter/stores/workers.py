"""Daemon threads that run blocking calls for asyncio, and the ticket that decides a race with cancellation."""

import asyncio
import os
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from langmem_adapter.errors import StoreClosed

T = TypeVar("T")
_Job = tuple["Future[Any]", Callable[[], Any]]


CLOSE_SECONDS = 10.0
"""How long whoever closes something waits for what runs: a call that hangs must not keep a process from ending."""


class Workers:
    """Up to `count` threads, started when first needed. They are daemons: an idle or hanging one never keeps the
    interpreter from exiting, which the pools of `concurrent.futures` do."""

    def __init__(self, count: int, name: str) -> None:
        self._count = count
        self._name = name
        self._stopped = False
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._waiting = 0

    def submit(self, job: Callable[[], T]) -> "Future[T]":
        """The future of `job()`; jobs start in the order they were submitted. StoreClosed after `stop`."""
        if self._pid != os.getpid():
            self._start()  # threads do not survive a fork
        future: Future[T] = Future()
        with self._lock:
            if self._stopped:
                raise StoreClosed(f"the store was closed before this call ({self._name})")
            self._waiting += 1
            if self._waiting > len(self._threads) < self._count:
                name = f"{self._name}-{len(self._threads) + 1}"
                self._threads.append(
                    threading.Thread(target=_work, args=(self._jobs, self._done), name=name, daemon=True)
                )
                self._threads[-1].start()
            self._jobs.put((future, job))
        return future

    async def run(self, job: Callable[[], T]) -> T:
        """The result of `job()`, awaited."""
        return await asyncio.wrap_future(self.submit(job))

    def stop(self, wait: float = 0.0) -> None:
        """End the threads once the jobs submitted so far are done, and wait so many seconds for it."""
        if self._pid != os.getpid():
            return
        with self._lock:
            self._stopped = True
            for _ in self._threads:
                self._jobs.put(None)
        end = time.monotonic() + wait
        for thread in self._threads:
            if wait > 0 and thread is not threading.current_thread():
                thread.join(max(0.0, end - time.monotonic()))

    def _done(self) -> None:
        with self._lock:
            self._waiting -= 1


def _work(jobs: "queue.SimpleQueue[_Job | None]", done: Callable[[], None]) -> None:
    while (work := jobs.get()) is not None:
        future, job = work
        if future.set_running_or_notify_cancel():
            try:
                result = job()
            except BaseException as e:  # noqa: BLE001 - whoever awaits the future gets it
                done()
                future.set_exception(e)
            else:
                done()
                future.set_result(result)
                del result
        else:
            done()
        del work, future, job  # an idle thread must not keep a store or its data alive


async def close_apart(close: Callable[[], None]) -> None:
    """`close()` in a daemon thread of its own: those of asyncio may all be waiting, and it waits for its own."""
    thread = Workers(1, "memory-close")
    await thread.run(close)
    thread.stop()


class Cancelled(Exception):
    """Cancellation came before the commit: roll back."""


class Ticket:
    """Decides once whether a write was cancelled or committed, whichever is asked first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state = "open"

    def check(self) -> None:
        """Raise Cancelled if there is no use in starting."""
        with self._lock:
            if self._state == "cancelled":
                raise Cancelled

    def seal(self) -> None:
        """Call just before COMMIT; raises Cancelled if the caller has been cancelled."""
        with self._lock:
            if self._state == "cancelled":
                raise Cancelled
            self._state = "sealed"

    def cancel(self) -> bool:
        """True if nothing will be committed."""
        with self._lock:
            if self._state == "open":
                self._state = "cancelled"
            return self._state == "cancelled"


async def settled(future: "Future[T]", ticket: Ticket) -> T:
    """The result of a job that seals `ticket` before it commits.

    If the awaiting task is cancelled before that, CancelledError, and the job rolls back. If the commit came first
    the job cannot be undone: CancelledError as well, but not before it is done, so that whoever looks then sees it.
    """
    waiting = asyncio.wrap_future(future)
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        waiting.add_done_callback(_forget)
        if not ticket.cancel():
            while not waiting.done():
                with suppress(asyncio.CancelledError):  # cancelled again; once is enough
                    await asyncio.wait([waiting])
        raise


def _forget(waiting: "asyncio.Future[Any]") -> None:
    if not waiting.cancelled():
        waiting.exception()  # retrieved, so that asyncio does not report it
