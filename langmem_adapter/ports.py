"""The IO a step may do, its sync and its async port, and `run`.

A step is written once, as `async def step(io: IO, …)`, and awaits nothing but `io`. With `SyncPort` its awaits
never suspend, so `run` finishes it in one `send`; with `AsyncPort` the same step is an ordinary coroutine.
"""

import asyncio
import contextvars
import copy
import random
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from langgraph.store.base import PutOp

from langmem_adapter.errors import Conflict
from langmem_adapter.namespaces import Namespace

T = TypeVar("T")
Q = TypeVar("Q")
A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Ask(Generic[Q, A]):
    """Something outside that answers questions (an extractor, a chat model): its sync and its async form.

    Without an async form the async port asks the sync one in a thread.
    """

    sync: Callable[[Q], A]
    native: Callable[[Q], Awaitable[A]] | None = None


class ConditionalStore(Protocol):
    """What a port needs of a store: reads with versions and commits that check them (see `stores.base`)."""

    def read(self, ops: Sequence[Any], *, versions: Sequence[Namespace] = ()) -> tuple[list[Any], dict[Namespace, int]]:
        """Results of the ops, and the version of each named namespace as of the same moment."""

    def commit(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int]) -> None:
        """All puts, or Conflict and none, if a namespace is no longer at the version expected."""

    def erase_with(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int]) -> Any:
        """`commit`, and then see to it that the old bytes are gone; what became of them (`stores.base.Erased`)."""

    async def aerase_with(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int]) -> Any:
        """`erase_with`, without blocking the event loop."""

    async def aread(
        self, ops: Sequence[Any], *, versions: Sequence[Namespace] = ()
    ) -> tuple[list[Any], dict[Namespace, int]]:
        """`read`, without blocking the event loop."""

    async def acommit(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int]) -> None:
        """`commit`, without blocking the event loop; a cancelled one either happened or did not."""


class IO(Protocol):
    """All that a step may do to the world."""

    late: bool
    """Whether whoever waited for this step has given it up: what it was to write is kept for later."""

    async def read(
        self, ops: Sequence[Any], *, versions: Sequence[Namespace] = ()
    ) -> tuple[list[Any], dict[Namespace, int]]:
        """Run store ops (and `RankOp`); results in order, with the versions of the named namespaces."""

    async def commit(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int]) -> None:
        """Apply all puts, or raise Conflict having applied none."""

    async def erase_with(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int]) -> Any:
        """`commit`, and then see to it that the old bytes are gone; what became of them (`stores.base.Erased`)."""

    async def ask(self, ask: Ask[Q, A], question: Q) -> A:
        """One answer."""

    async def ask_all(self, ask: Ask[Q, A], questions: Sequence[Q]) -> list[A]:
        """One answer each, in order; asked concurrently where the port can."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""

    async def bounded(
        self, step: Callable[["IO"], Coroutine[Any, Any, T]], seconds: float, call: float | None = None
    ) -> T:
        """The result of another step, or TimeoutError after so long; that step then goes on without us, `late`.

        `call`: TimeoutError also when the store is that long about one read or commit.
        """


class _NoStore:
    """The store of a port that only asks."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"this step has no store, but called {name}")


class _Calling:
    """Since when a step waits for its store's answer to a call."""

    def __init__(self) -> None:
        self._since: float | None = None

    def __enter__(self) -> None:
        self._since = time.monotonic()

    def __exit__(self, *exc: object) -> None:
        self._since = None

    def rest(self, seconds: float, call: float | None) -> Callable[[], float]:
        """How long one may wait for the step, from now, before one looks again; 0 or less if no longer."""
        end = time.monotonic() + seconds

        def left() -> float:
            now, since = time.monotonic(), self._since
            if call is None:
                return end - now
            return min(end - now, LOOK if since is None else since + call - now)

        return left


class SyncPort:
    """IO by blocking calls; its coroutines never suspend. Without a store it can only ask and sleep."""

    late = False

    def __init__(self, store: ConditionalStore | None, sleep: Callable[[float], None]) -> None:
        self._store: ConditionalStore = store or _NoStore()
        self._calling = _Calling()
        self._sleep = sleep
        self._lock = threading.Lock()
        self._late: set[Future[Any]] = set()

    async def read(
        self, ops: Sequence[Any], *, versions: Sequence[Namespace] = ()
    ) -> tuple[list[Any], dict[Namespace, int]]:
        with self._calling:
            return self._store.read(ops, versions=versions)

    async def commit(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int]) -> None:
        with self._calling:
            self._store.commit(puts, expect=expect)

    async def erase_with(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int]) -> Any:
        return self._store.erase_with(puts, expect=expect)

    async def ask(self, ask: Ask[Q, A], question: Q) -> A:
        try:
            return ask.sync(question)
        except asyncio.CancelledError as error:  # nobody can cancel this call: it is how a model failed
            raise RuntimeError("the call was cancelled from within") from error

    async def ask_all(self, ask: Ask[Q, A], questions: Sequence[Q]) -> list[A]:
        return [await self.ask(ask, q) for q in questions]

    async def sleep(self, seconds: float) -> None:
        self._sleep(seconds)

    async def bounded(
        self, step: Callable[[IO], Coroutine[Any, Any, T]], seconds: float, call: float | None = None
    ) -> T:
        _fewer_than(STRAGGLERS, self._late)
        done: Future[T] = Future()
        its = copy.copy(self)
        its._calling = _Calling()
        context = contextvars.copy_context()
        threading.Thread(target=lambda: context.run(self._finish, step(its), done), daemon=True, name="memory").start()
        rest = its._calling.rest(seconds, call)
        while (left := rest()) > 0 and not done.done():
            wait({done}, left)
        with self._lock:
            if not done.done():
                self._late.add(done)
                its.late = True
                raise TimeoutError(f"the store took longer than {seconds if call is None else call} s")
        return done.result()

    def _finish(self, step: Coroutine[Any, Any, T], done: "Future[T]") -> None:
        try:
            done.set_result(run(step))
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is asked for
            done.set_exception(error)
        with self._lock:
            self._late.discard(done)


class AsyncPort:
    """IO that never blocks the event loop. Without a store it can only ask and sleep."""

    late = False

    def __init__(self, store: ConditionalStore | None) -> None:
        self._store: ConditionalStore = store or _NoStore()
        self._calling = _Calling()
        self._late: set[asyncio.Task[Any]] = set()

    async def read(
        self, ops: Sequence[Any], *, versions: Sequence[Namespace] = ()
    ) -> tuple[list[Any], dict[Namespace, int]]:
        with self._calling:
            return await self._store.aread(ops, versions=versions)

    async def commit(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int]) -> None:
        with self._calling:
            await self._store.acommit(puts, expect=expect)

    async def erase_with(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int]) -> Any:
        return await self._store.aerase_with(puts, expect=expect)

    async def ask(self, ask: Ask[Q, A], question: Q) -> A:
        if ask.native is not None:
            return await ask.native(question)
        return await asyncio.to_thread(ask.sync, question)

    async def ask_all(self, ask: Ask[Q, A], questions: Sequence[Q]) -> list[A]:
        return list(await asyncio.gather(*(self.ask(ask, q) for q in questions)))

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def bounded(
        self, step: Callable[[IO], Coroutine[Any, Any, T]], seconds: float, call: float | None = None
    ) -> T:
        # A loop that was closed runs no callbacks.
        self._late = {task for task in self._late if not task.get_loop().is_closed()}
        _fewer_than(STRAGGLERS, self._late)
        its = copy.copy(self)
        its._calling = _Calling()
        rest = its._calling.rest(seconds, call)
        task = asyncio.get_running_loop().create_task(step(its))
        try:
            while (left := rest()) > 0 and not task.done():
                await asyncio.wait({task}, timeout=left)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task}, timeout=TIDYING)  # it gives back what it holds
            raise
        if not task.done():
            its.late = True
            self._late.add(task)  # the loop itself holds a task but weakly
            task.add_done_callback(self._ended)
            raise TimeoutError(f"the store took longer than {seconds if call is None else call} s")
        return task.result()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._late.discard(task)
        if not task.cancelled():
            task.exception()  # nobody waits for it any more


LOOK = 0.05
"""Seconds between looks at whether a step waits for its store."""
TIDYING = 1.0
"""Seconds that a cancelled step may take to end."""
STRAGGLERS = 16
"""Calls that may be left waiting for a store that does not answer, before further ones do not even begin."""


def _fewer_than(most: int, late: Collection[object]) -> None:
    if len(late) >= most:
        raise TimeoutError(f"{len(late)} earlier calls still wait for the store")


AT_ONCE = 8_192
"""Characters of text that are worked on where one stands; an event loop would notice more."""


async def worked(io: IO, work: Callable[[], T], size: int) -> T:
    """The result of work on so many characters of text: of more than a few asked for, so that no loop waits for it."""
    return work() if size <= AT_ONCE else await io.ask(Ask(lambda _: work()), None)


ATTEMPTS = 50
"""How often a conditional commit is tried before its Conflict is raised."""


async def retried(io: IO, attempt: Callable[[], Awaitable[T]]) -> T:
    """The result of a read-decide-commit, made again with jitter while other writers win; then Conflict."""
    for n in range(ATTEMPTS):
        try:
            return await attempt()
        except Conflict:
            if n == ATTEMPTS - 1:
                raise
            # Full jitter: writers that collided must not meet again.
            await io.sleep(random.uniform(0, min(0.5, 0.005 * 2**n)))
    raise AssertionError("unreachable")


def run(step: Coroutine[Any, Any, T]) -> T:
    """The result of a step on a `SyncPort`; RuntimeError if it awaited anything that suspends."""
    try:
        step.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    step.close()
    raise RuntimeError(f"{step!r} suspended: a step may await only its io")
