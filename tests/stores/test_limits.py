"""What PostgreSQL cannot keep is refused by every store of ours, so that moving to it strands nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import GetOp, PutOp
from stores.postgres_fixtures import *  # noqa: F403

from langmem_adapter.errors import InvalidInput
from langmem_adapter.stores.chroma import ChromaMemoryStore
from langmem_adapter.stores.sqlite import SqliteMemoryStore

LONG = ("memories", "é" * 500)
FITS = ("memories", "é" * 495)
UNFIT: dict[str, tuple[tuple[str, ...], str, str]] = {
    "a namespace of 1,009 bytes": (LONG, "k", r"namespace is 1009 bytes long, at most 1000.*'memories', 'éé"),
    "a key with NUL": (("a",), "begin\0end", r"key has a NUL.*'begin\\x00end'"),
}


@pytest.fixture(params=["sqlite", "chroma", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "sqlite":
        return SqliteMemoryStore(tmp_path / "memory.db")
    if request.param == "chroma":
        return ChromaMemoryStore(str(tmp_path / "chroma"))
    return request.getfixturevalue("open_store")()


@pytest.mark.parametrize("what", UNFIT)
async def test_unfit_ids_are_refused_everywhere(store: Any, what: str) -> None:
    ns, key, message = UNFIT[what]
    put = PutOp(ns, key, {"x": 1})
    ways: tuple[Callable[[], object], ...] = (
        lambda: store.put(ns, key, {"x": 1}),
        lambda: store.batch([PutOp(("a",), "k", {}), put]),
        lambda: store.commit([put], expect={}),
        lambda: store.erase_with([put], expect={}),
    )
    for way in ways:
        with pytest.raises(InvalidInput, match=message):
            way()
    for awaitable in (store.aput(ns, key, {"x": 1}), store.acommit([put], expect={})):
        with pytest.raises(InvalidInput, match=message):
            await awaitable
    assert store.get(("a",), "k") is None
    assert store.batch([GetOp(ns, key)]) == [None]  # it may be asked for, and deleted: an older version took it
    store.delete(ns, key)
    await store.aclose()


def test_what_just_fits_is_kept(store: Any) -> None:
    store.put(FITS, "é" * 5_000, {"x": 1})
    assert store.get(FITS, "é" * 5_000).value == {"x": 1}
    store.close()
