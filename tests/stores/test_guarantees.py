"""What each store promises, in data; the tests of each store keep it to that."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import chromadb
import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from stores.chroma_clients import http_client, quiet, running_server
from stores.postgres_fixtures import *  # noqa: F403

from langmem_adapter.memory import Memory
from langmem_adapter.stores.chroma import ChromaMemoryStore
from langmem_adapter.stores.postgres import PostgresMemoryStore
from langmem_adapter.stores.sqlite import SqliteMemoryStore

PROMISED: dict[str, tuple[Callable[[Path], BaseStore], tuple[Any, ...]]] = {
    # atomic, many_writers, durable, hybrid, erasure
    "sqlite": (lambda p: SqliteMemoryStore(p / "memory.db"), (True, "processes", True, True, "verified")),
    "sqlite_in_memory": (lambda p: SqliteMemoryStore(":memory:"), (True, "threads", False, True, "verified")),
    "chroma": (lambda p: ChromaMemoryStore(str(p / "chroma")), (True, "threads", True, True, "verified")),
    "chroma_in_memory": (
        lambda p: ChromaMemoryStore(chromadb.EphemeralClient(quiet()), prefix="guarantees"),
        (True, "threads", False, True, "deleted"),
    ),
    "langgraph's": (lambda p: InMemoryStore(), (False, "threads", False, False, "deleted")),
}


def promised(store: BaseStore) -> tuple[Any, ...]:
    return tuple(Memory(store).guarantees().model_dump().values())


@pytest.mark.parametrize("kind", PROMISED)
def test_guarantees_say_what_holds(kind: str, tmp_path: Path) -> None:
    make, expected = PROMISED[kind]
    store = make(tmp_path)
    assert promised(store) == expected
    if close := getattr(store, "close", None):
        close()


def test_guarantees_say_what_holds_on_a_chroma_server(tmp_path: Path) -> None:
    with running_server(tmp_path / "data") as port, http_client(port) as client, ChromaMemoryStore(client) as store:
        assert promised(store) == (True, "threads", True, True, "deleted")


def test_guarantees_say_what_holds_on_postgres(postgres: PostgresMemoryStore) -> None:
    assert promised(postgres) == (True, "processes", True, True, "deleted")


def test_a_store_that_compares_by_value_is_known_by_what_it_is() -> None:
    class Equal(InMemoryStore):
        def __eq__(self, other: object) -> bool:  # so it has no hash, as any dataclass
            return isinstance(other, Equal)

    first, second = Memory(Equal()), Memory(Equal())
    assert [o.action for o in first.add("I live in Ghent.", user_id="u")] == ["CREATE"]
    assert second.get_all(user_id="u") == []
    assert first.key != second.key
