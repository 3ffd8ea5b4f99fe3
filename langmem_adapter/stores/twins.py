"""`Twins`: what our stores have in common: their methods sync and async, over one batch, and how they close."""

import abc
import asyncio
import os
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from langgraph.store.base import IndexConfig, Op, PutOp, Result

from langmem_adapter.errors import StoreClosed
from langmem_adapter.namespaces import Namespace
from langmem_adapter.stores import plan as plans
from langmem_adapter.stores.base import MemoryStore, Mode
from langmem_adapter.stores.embedder import Embedder
from langmem_adapter.stores.plan import Plan
from langmem_adapter.stores.sweeper import Sweeper, Sweeping
from langmem_adapter.stores.vectors import Matrix
from langmem_adapter.stores.workers import CLOSE_SECONDS, Workers, close_apart

P = ParamSpec("P")
S = TypeVar("S", bound="Twins")
T = TypeVar("T")


def awaited(
    method: Callable[Concatenate[S, P], T], workers: str = "_keepers"
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """The async twin of a method: run by these threads of the store, so that the event loop is free."""

    async def twin(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        threads: Workers = getattr(self, workers)
        return await threads.run(lambda: method(self, *args, **kwargs))

    twin.__name__ = f"a{method.__name__}"
    twin.__qualname__ = f"{method.__qualname__.rpartition('.')[0]}.{twin.__name__}"
    twin.__doc__ = f"`{method.__name__}` without blocking the event loop."
    twin.__wrapped__ = method  # type: ignore[attr-defined]  # its signature
    return twin


class Calls:
    """The async calls that are under way: closing waits for them, as they go back and forth between threads."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._closed = False
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._count = 0
        self._changed = threading.Condition()

    def _here(self) -> threading.Condition:
        if self._pid != os.getpid():
            self._begin()  # a forked process has none of its parent's calls
        return self._changed

    def check(self) -> None:
        """StoreClosed after `close`."""
        if self._closed:
            raise StoreClosed(f"the store on {self._name} is closed")

    @contextmanager
    def one(self) -> Iterator[None]:
        """While the block runs a call is under way; StoreClosed after `close`."""
        with self._here():
            self.check()
            self._count += 1
        try:
            yield
        finally:
            with self._here():
                self._count -= 1
                self._changed.notify_all()

    def close(self, timeout: float) -> None:
        """Let no further call begin, and wait for those under way; not on an event loop: it is theirs."""
        with self._here():
            self._closed = True
            if not _on_a_loop():
                self._changed.wait_for(lambda: not self._count, timeout)


def _on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class Twins(MemoryStore):
    """A `MemoryStore` that runs a plan, sync (`_run`) or async (`_arun`), in threads of its own."""

    supports_ttl = True
    index_config: IndexConfig | None
    mode: Mode
    _embedder: Embedder | None
    _sweeper: Sweeper | None = None
    _keepers: Workers
    _calls: Calls

    _plan: Callable[[Iterable[Any]], Plan] = staticmethod(plans.plan)
    _read_plan: Callable[[Sequence[Any], Sequence[Namespace]], Plan] = staticmethod(plans.read_plan)
    _commit_plan: Callable[[Sequence[PutOp], Mapping[Namespace, int]], Plan] = staticmethod(plans.commit_plan)

    @property
    @abc.abstractmethod
    def _workers(self) -> tuple[Workers, ...]:
        """All of its threads."""

    @abc.abstractmethod
    def _run(self, plan: Plan) -> tuple[list[Any], dict[Namespace, int]]:
        """Results and versions of a plan."""

    @abc.abstractmethod
    async def _arun(self, plan: Plan) -> tuple[list[Any], dict[Namespace, int]]:
        """`_run` without blocking the event loop."""

    @abc.abstractmethod
    def _close(self) -> None:
        """Close what the store holds beside its threads; may be called again."""

    def _check(self) -> None:
        """Make it ready for use; StoreClosed after `close`."""

    @property
    def embeddings(self) -> Any:
        """The LangChain `Embeddings` in use; None without an index."""
        return None if self._embedder is None else self._embedder.embeddings

    # LangGraph's interface

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Results in the order of the ops. Reads see the state before the puts; of two puts to one key the last
        counts; all puts happen (on Chroma: those of one owner) or, if anything raises, none."""
        return self._run(self._plan(ops))[0]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """`batch` without blocking the event loop. If cancelled, all of its puts happened or none."""
        with self._calls.one():
            return (await self._arun(self._plan(ops)))[0]

    # the memory store's interface

    def read(self, ops: Sequence[Any], *, versions: Sequence[Namespace] = ()) -> tuple[list[Any], dict[Namespace, int]]:
        """See `MemoryStore.read`."""
        return self._run(self._read_plan(ops, versions))

    def commit(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int]) -> None:
        """See `MemoryStore.commit`. `expect` may name namespaces that no put touches."""
        self._run(self._commit_plan(puts, expect))

    async def aread(
        self, ops: Sequence[Any], *, versions: Sequence[Namespace] = ()
    ) -> tuple[list[Any], dict[Namespace, int]]:
        """See `MemoryStore.aread`."""
        with self._calls.one():
            return await self._arun(self._read_plan(ops, versions))

    async def acommit(self, puts: Sequence[PutOp], *, expect: Mapping[Namespace, int]) -> None:
        """See `MemoryStore.acommit`."""
        with self._calls.one():
            await self._arun(self._commit_plan(puts, expect))

    def _query_vectors(self, plan: Plan) -> dict[str, Matrix]:
        return {} if self._embedder is None else self._embedder.queries(plan.queries(self.mode))

    # time to live

    @abc.abstractmethod
    def sweep_ttl(self) -> int:
        """Delete the expired items; how many there were."""

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Sweeping:
        """Sweep in the background until the returned future is cancelled, `stop_ttl_sweeper` or `close`.

        The interval defaults to `ttl["sweep_interval_minutes"]`, else 5 minutes. A running sweeper is kept.
        May be awaited, as in LangGraph's async stores: that gives the same future.
        """
        self._calls.check()
        if self._sweeper is None or not self._sweeper.running:
            self._sweeper = Sweeper(self, self.ttl_config, sweep_interval_minutes)
        return self._sweeper.future

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop sweeping; True unless a sweep is still going on after `timeout` seconds (None: wait for its end)."""
        return self._sweeper is None or self._sweeper.stop(timeout)

    # opening and closing

    def setup(self) -> "Done":
        """Make ready what is not yet (tables); harmless twice. May be awaited."""
        self._check()
        return Done()

    def close(self) -> None:
        """Finish what was asked for, async calls too, then close; what takes longer than ten seconds is given up.

        May be called again; any other call then raises StoreClosed. Called on an event loop it cannot wait for that
        loop's calls, which get StoreClosed as far as they were not done: there `await aclose()`.
        """
        self.stop_ttl_sweeper(0)
        end = time.monotonic() + CLOSE_SECONDS
        self._calls.close(CLOSE_SECONDS)
        for workers in self._workers:
            workers.stop(end - time.monotonic())
        self._close()

    async def aclose(self) -> None:
        """`close` without blocking the event loop."""
        await close_apart(self.close)

    def __enter__(self) -> Self:
        self._check()
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        await self._keepers.run(self._check)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.aclose()


class Done:
    """`None` that may be awaited: LangGraph's async stores have `await store.setup()`."""

    def __await__(self) -> Generator[Any, None, None]:
        return None
        yield
