"""LangGraph's own conformance suite, all of it, through the async methods and through the sync ones."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import ALL_CAPABILITIES, DetectedCapabilities

from langmem_adapter.checkpoint.sqlite import SqliteCheckpointer

KEY = b"0123456789abcdef"
TESTS = 81


class ThroughSync(BaseCheckpointSaver[str]):
    """Offers a checkpointer's sync methods as the async ones that the suite calls."""

    def __init__(self, saver: SqliteCheckpointer) -> None:
        super().__init__()
        self.saver = saver

    async def aget_tuple(self, *args: Any, **kwargs: Any) -> Any:
        return self.saver.get_tuple(*args, **kwargs)

    async def alist(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        for item in self.saver.list(*args, **kwargs):
            yield item

    async def aput(self, *args: Any, **kwargs: Any) -> Any:
        return self.saver.put(*args, **kwargs)

    async def aput_writes(self, *args: Any, **kwargs: Any) -> None:
        self.saver.put_writes(*args, **kwargs)

    async def adelete_thread(self, *args: Any, **kwargs: Any) -> None:
        self.saver.delete_thread(*args, **kwargs)

    async def adelete_for_runs(self, *args: Any, **kwargs: Any) -> None:
        self.saver.delete_for_runs(*args, **kwargs)

    async def acopy_thread(self, *args: Any, **kwargs: Any) -> None:
        self.saver.copy_thread(*args, **kwargs)

    async def aprune(self, *args: Any, **kwargs: Any) -> None:
        self.saver.prune(*args, **kwargs)


async def report_of(open_saver: Callable[[], SqliteCheckpointer], wrap: Callable[[Any], Any]) -> Any:
    """The suite's report; each capability gets a new file."""

    @checkpointer_test(name="SqliteCheckpointer")
    async def fresh() -> AsyncGenerator[Any, None]:
        async with open_saver() as saver:
            yield wrap(saver)

    return await validate(fresh)


@pytest.mark.parametrize("where", ["file", "memory", "encrypted"])
@pytest.mark.parametrize("wrap", [lambda saver: saver, ThroughSync], ids=["async", "sync"])
async def test_every_capability_is_detected_and_passes(tmp_path: Path, where: str, wrap: Callable[[Any], Any]) -> None:
    files = iter(range(100))

    def open_saver() -> SqliteCheckpointer:
        path = ":memory:" if where == "memory" else tmp_path / f"{next(files)}.db"
        return SqliteCheckpointer(path, encryption_key=KEY if where == "encrypted" else None)

    report = await report_of(open_saver, wrap)
    assert {name for name, r in report.results.items() if r.detected} == {c.value for c in ALL_CAPABILITIES}
    assert {name: r.failures for name, r in report.results.items() if r.failures} == {}
    assert all(r.passed for r in report.results.values())
    assert sum(r.tests_passed for r in report.results.values()) == TESTS


def test_a_missing_capability_would_be_noticed() -> None:
    class Without(SqliteCheckpointer):
        aprune = BaseCheckpointSaver.aprune

    with Without(":memory:") as saver:
        assert {c.value for c in DetectedCapabilities.from_instance(saver).missing} == {"prune"}
    with SqliteCheckpointer(":memory:") as saver:
        assert DetectedCapabilities.from_instance(saver).missing == frozenset()


def test_every_method_has_its_async_twin_with_the_same_arguments() -> None:
    import inspect

    methods = vars(SqliteCheckpointer)
    twins = [n for n in methods if f"a{n}" in methods]
    assert {"get_tuple", "list", "put", "put_writes", "delete_thread", "delete_for_runs", "copy_thread"} <= set(twins)
    assert {"prune", "get_delta_channel_history", "erase_thread", "erase_messages", "maintain", "close"} <= set(twins)
    for name in twins:
        one, other = methods[name], methods[f"a{name}"]
        assert str(inspect.signature(one)).split(" -> ")[0] == str(inspect.signature(other)).split(" -> ")[0]
        assert asyncio.iscoroutinefunction(other) or inspect.isasyncgenfunction(other)
