"""What all methods of `Memory` share: the store, the rules, whom to tell."""

import functools
import inspect
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from langgraph.store.base import BaseStore

from langmem_adapter import arguments, injection, receipts, retrieval
from langmem_adapter import text as texts
from langmem_adapter.consolidation.rules import Rules
from langmem_adapter.errors import InvalidInput, MemoryNotFound
from langmem_adapter.guard import Guard
from langmem_adapter.namespaces import Reader
from langmem_adapter.ports import IO, Ask, run
from langmem_adapter.records import MemoryRecord
from langmem_adapter.scoring import Weights
from langmem_adapter.stores.base import MemoryStore
from langmem_adapter.stores.foreign import ForeignStore

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger("langmem_adapter")


def twins(
    step: Callable[Concatenate[Any, IO, P], Coroutine[Any, Any, T]],
) -> tuple[Callable[Concatenate[Any, P], T], Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]]:
    """A sync and an async method from one step."""

    @functools.wraps(step)
    def sync(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return run(step(self, self.io, *args, **kwargs))

    @functools.wraps(step)
    async def native(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await step(self, self.aio, *args, **kwargs)

    name = step.__name__.removeprefix("_")
    parameters = [p for p in inspect.signature(step).parameters.values() if p.name != "io"]
    twins: tuple[tuple[Any, str], ...] = ((sync, ""), (native, "a"))
    for method, prefix in twins:
        method.__name__ = prefix + name
        method.__qualname__ = f"Memory.{prefix}{name}"
        method.__signature__ = inspect.signature(step).replace(parameters=parameters)
    return sync, native


class Base:
    """What every method needs; the attributes are set by `Memory`."""

    io: IO
    aio: IO
    store: BaseStore
    inject_as: injection.Place
    _base: MemoryStore | ForeignStore
    _guard: Guard
    _rules: Rules
    _weights: Weights
    _threads: receipts.Checkpoints | None
    _on_event: Callable[[str, dict[str, Any]], None] | None

    def report(self, event: str, **data: Any) -> None:
        """Log what went wrong (names and ids, never a memory's text) and tell `on_event`."""
        logger.warning("%s %s", event, data)
        self._tell(event, data)

    def _bare(self, text: str, what: str) -> str:
        """The text without secrets."""
        return self._guard.redact(texts.clean(text, what=what))

    def _source(self, source_id: str | None, *, required: bool = False) -> str | None:
        """The name of a source; InvalidInput if a secret stands in it, as it is kept, and asked for, as it is written.

        A name of digits alone may look like a card's number by chance.
        """
        named = arguments.source_id(source_id, required=required)
        if named is not None and not named.isdigit() and self._bare(named, "source_id") != texts.clean(named):
            raise InvalidInput("source_id has a secret in it; name the source by something that may be kept")
        return named

    def _tell(self, event: str, data: dict[str, Any]) -> None:
        if self._on_event is None:
            return
        try:
            self._on_event(event, data)
        except Exception:  # what a listener does wrong must not undo what was done
            logger.exception("on_event failed for %s", event)

    async def _apart(self, io: IO, step: Callable[[IO], Coroutine[Any, Any, T]]) -> T:
        """The result of a step that goes through all of an owner's records: in a thread, if there is an event loop."""
        return await io.ask(Ask(lambda _: run(step(self.io))), None)

    async def _require(
        self, io: IO, memory_id: str, reader: Reader, *, expired: bool = False
    ) -> tuple[tuple[str, ...], MemoryRecord]:
        """The reader's memory of this id, or MemoryNotFound; of one that has expired only with `expired`."""
        found = await self._found(io, memory_id, reader, expired=expired)
        if found is None:
            raise MemoryNotFound(f"no memory {memory_id!r} for user {reader.user_id!r}")
        return found

    async def _found(
        self, io: IO, memory_id: str, reader: Reader, *, expired: bool = False
    ) -> tuple[tuple[str, ...], MemoryRecord] | None:
        found = await retrieval.find(io, reader, memory_id)
        if found is None or expired:
            return found
        ends = found[1].expires_at
        return found if ends is None or ends > self._rules.clock() else None
