"""Closing a store finishes what was asked of it before, sync and async; afterwards every call raises StoreClosed."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from stores.postgres_fixtures import *  # noqa: F403
from test_event_loop import heartbeat

from langmem_adapter.errors import StoreClosed
from langmem_adapter.stores.base import MemoryStore
from langmem_adapter.stores.chroma import ChromaMemoryStore
from langmem_adapter.stores.sqlite import SqliteMemoryStore

N = ("n",)
COUNT = 40

CLOSE: dict[str, Callable[[Any], Awaitable[object]]] = {
    "close": lambda store: asyncio.to_thread(store.close),
    "aclose": lambda store: store.aclose(),
    "close on the loop": lambda store: _at_once(store),
}


async def _at_once(store: Any) -> None:
    store.close()


@pytest.fixture(params=["sqlite", "chroma", "postgres"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], MemoryStore]:
    if request.param == "sqlite":
        return lambda: SqliteMemoryStore(tmp_path / "memory.db")
    if request.param == "chroma":
        return lambda: ChromaMemoryStore(str(tmp_path / "chroma"))
    return request.getfixturevalue("open_store")  # type: ignore[no-any-return]


@pytest.mark.parametrize("way", CLOSE)
async def test_what_was_asked_before_is_done(reopen: Callable[[], Any], way: str) -> None:
    store = reopen()
    await store.aput(N, "first", {})
    batches = [asyncio.create_task(store.aput(N, f"k{n}", {"text": "cat " * 500})) for n in range(COUNT)]
    reads = [asyncio.create_task(store.aget(N, "first")) for _ in range(COUNT)]
    await asyncio.sleep(0)  # they are with the store's threads now
    async with heartbeat() as beats:
        await CLOSE[way](store)
        await CLOSE[way](store)  # harmless
    done = await asyncio.gather(*batches, *reads, return_exceptions=True)
    failed = [d for d in done if isinstance(d, Exception)]
    if way == "close on the loop":  # it cannot wait for its own loop
        assert {type(e) for e in failed} <= {StoreClosed}
    else:
        assert failed == []
        assert max(b.ours for b in beats) < 0.1
    for call in (store.aput(N, "late", {}), store.aget(N, "first"), store.adoctor()):
        with pytest.raises(StoreClosed):
            await call
    with pytest.raises(StoreClosed):
        store.get(N, "first")
    again = reopen()
    stored = sum(not isinstance(d, Exception) for d in done[:COUNT])
    assert len(again.search(N, limit=100)) == stored + 1
    again.close()
