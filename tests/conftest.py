"""The stores every pipeline test runs on: SQLite, LangGraph's own in memory, Chroma on disk, a real PostgreSQL."""

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from stores.postgres_fixtures import database, postgres_url  # noqa: F401 - fixtures

from langmem_adapter.embeddings import HashEmbeddings
from langmem_adapter.memory import Memory

Make = Callable[..., Memory]
INDEX: Any = {"dims": 256, "embed": HashEmbeddings(), "fields": ["content"]}


@pytest.fixture(params=["sqlite", "in_memory", "in_memory_indexed", "chroma", "postgres"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Makes a Memory on each kind of store, one a test; keyword arguments go to Memory."""
    opened: list[Memory] = []
    stores: list[Any] = []

    def store() -> BaseStore | Path:
        if request.param == "sqlite":
            return tmp_path / "memory.db"
        if request.param == "postgres":
            from langmem_adapter.stores.postgres import PostgresMemoryStore

            name = f"memory_{secrets.token_hex(6)}"
            stores.append(PostgresMemoryStore(request.getfixturevalue("database"), schema=name, index=INDEX))
            return stores[-1]
        if request.param == "chroma":
            from langmem_adapter.stores.chroma import ChromaMemoryStore

            stores.append(ChromaMemoryStore(str(tmp_path / "chroma"), index=INDEX))
            return stores[-1]
        return InMemoryStore(index=INDEX) if request.param == "in_memory_indexed" else InMemoryStore()

    def build(**kwargs: Any) -> Memory:
        opened.append(Memory(store(), **kwargs))
        return opened[-1]

    yield build
    for one in [*opened, *stores]:
        one.close()


@pytest.fixture
def memory(make: Make) -> Memory:
    """A Memory with the offline rules."""
    return make()


@pytest.fixture
def tried(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Tells at the end of the run what a test tried: rounds, kills, inputs."""
    return lambda what: record_property("tried", what)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line for each test that says what it tried; processes that share the work send it with their reports."""
    reports = [r for outcome in ("passed", "failed") for r in terminalreporter.getreports(outcome) if r.when == "call"]
    told = sorted((r.nodeid, value) for r in reports for name, value in r.user_properties if name == "tried")
    if told:
        terminalreporter.section("tried")
    for name, value in told:
        terminalreporter.write_line(f"{name.removeprefix('tests/')}: {value}")


@pytest.fixture(autouse=True)
def a_busy_machine_is_no_slow_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests run side by side: a recall may take its time, except where a test says how much."""
    monkeypatch.setattr("langmem_adapter.memory.LOCAL_DEADLINE", 30.0)
    monkeypatch.setattr("langmem_adapter.methods.turns.LEARNING_DEADLINE", 60.0)
