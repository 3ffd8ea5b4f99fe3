"""The stores every pipeline test runs on."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from langmem_adapter.memory import Memory

Make = Callable[..., Memory]


@pytest.fixture(params=["sqlite", "in_memory", "in_memory_indexed"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Makes a Memory on each kind of store; keyword arguments go to Memory."""
    opened: list[Memory] = []

    def build(**kwargs: Any) -> Memory:
        if request.param == "sqlite":
            memory = Memory(tmp_path / "memory.db", **kwargs)
        elif request.param == "in_memory":
            memory = Memory(InMemoryStore(), **kwargs)
        else:
            from langmem_adapter.embeddings import HashEmbeddings

            memory = Memory(
                InMemoryStore(index={"dims": 256, "embed": HashEmbeddings(), "fields": ["content"]}), **kwargs
            )
        opened.append(memory)
        return memory

    yield build
    for memory in opened:
        memory.close()


@pytest.fixture
def memory(make: Make) -> Memory:
    """A Memory with the offline rules."""
    return make()


@pytest.fixture
def sqlite_memory(tmp_path: Path) -> Iterator[Memory]:
    """A Memory on one SQLite file."""
    with Memory(tmp_path / "memory.db") as memory:
        yield memory
