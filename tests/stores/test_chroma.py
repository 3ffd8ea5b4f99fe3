"""The contract of a LangGraph store and the concierge's story, on each kind of Chroma client."""

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import chromadb
import pytest
from stores.chroma_clients import http_client, quiet, running_server

from langmem_adapter.embeddings import HashEmbeddings
from langmem_adapter.memory import Memory
from langmem_adapter.stores.chroma import ChromaMemoryStore
from langmem_adapter.stores.chroma_rows import head_id
from langmem_adapter.testing import StoreContract, contract

Make = Callable[..., ChromaMemoryStore]
INDEX: Any = {"dims": 256, "embed": HashEmbeddings(), "fields": ["content"]}

_numbers = itertools.count()


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a Chroma server."""
    with running_server(tmp_path_factory.mktemp("server") / "data") as port:
        yield port


@pytest.fixture(params=["ephemeral", "persistent", "http"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """A client of each kind."""
    if request.param == "http":
        with http_client(request.getfixturevalue("port")) as made:
            yield made
    elif request.param == "persistent":
        with chromadb.PersistentClient(tmp_path / "chroma", quiet()) as made:
            yield made
    else:
        with chromadb.EphemeralClient(quiet()) as made:
            yield made


@pytest.fixture
def make_store(client: Any) -> Iterator[Make]:
    """Makes fresh stores: clients may share data with others, so each store has a prefix of its own."""
    made: list[ChromaMemoryStore] = []

    def make(**config: Any) -> ChromaMemoryStore:
        made.append(ChromaMemoryStore(client, prefix=f"test{next(_numbers)}", **config))
        return made[-1]

    yield make
    for store in made:
        store.close()


class TestChroma(StoreContract):
    @pytest.fixture
    def make_store(self, make_store: Make, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Make:
        if not any(word in request.node.name for word in ("ttl", "expired", "refresh", "sweep")):
            return make_store
        # Chroma may take longer than these times to live: here time passes only when a test sleeps.
        now = [time.time()]
        monkeypatch.setattr(contract, "time", SimpleNamespace(sleep=lambda seconds: now.append(now[-1] + seconds)))
        return lambda **config: make_store(clock=lambda: now[-1], **config)


def test_the_concierge_remembers_revises_and_forgets(make_store: Make) -> None:
    memory = Memory(make_store(index=INDEX))
    memory.add(
        "Hi! I'm a vegetarian. Please call me Ada, and I prefer the aisle seat.",
        user_id="ada",
        session_id="s1",
        source_type="user_implicit",
    )
    first = memory.get_all(user_id="ada")
    assert {(r.content, r.confidence) for r in first} == {
        ("The user follows a vegetarian diet.", 0.65),
        ("The user goes by Ada.", 0.65),
        ("The user prefers aisle seating on flights.", 0.65),
    }
    [again] = memory.add("As I said, I'm vegetarian.", user_id="ada", session_id="s2", source_type="user_implicit")
    assert again.action == "NOOP"
    [update] = memory.add(
        "I've started eating fish again.", user_id="ada", session_id="s3", source_type="user_explicit"
    )
    fish = memory.get(update.memory_id or "", user_id="ada")
    assert fish is not None
    assert (update.action, fish.content, fish.confidence) == ("UPDATE", "The user eats fish again.", 0.9)
    assert {s.source_id for s in fish.sources} == {"s1", "s2", "s3"}
    hits = memory.search("any dietary restrictions I should know about?", user_id="ada", mode="vector", k=3)
    assert [(h.record.content, round(h.score, 3)) for h in hits] == [
        ("The user eats fish again.", 0.473),
        ("The user prefers aisle seating on flights.", 0.388),
        ("The user goes by Ada.", 0.37),
    ]
    assert memory.search("fish", user_id="bob") == []
    memory.forget_source("s1", user_id="ada")
    assert [r.content for r in memory.get_all(user_id="ada")] == ["The user eats fish again."]


async def test_the_async_methods_tell_the_same_story(make_store: Make) -> None:
    memory = Memory(make_store(index=INDEX))
    await memory.aadd("I'm a vegetarian.", user_id="ada", session_id="s1")
    await memory.aadd("I've started eating fish again.", user_id="ada", session_id="s2")
    hits = await memory.asearch("fish", user_id="ada")
    assert [h.record.content for h in hits] == ["The user eats fish again."]


def test_chromas_own_distances_are_those_of_the_design(client: Any, make_store: Make) -> None:
    store = make_store(index=INDEX)
    texts = ["The user eats fish again.", "The user prefers aisle seating on flights.", "The user goes by Ada."]
    for i, text in enumerate(texts):
        store.put(("memories", "default", "user", "ada", "facts"), f"m{i}", {"content": text})
    place = store._book.places.find("memories.default.user.ada")
    assert place is not None
    collection = client.get_collection(place.collection, embedding_function=None)
    query = HashEmbeddings().embed_query("any dietary restrictions I should know about?")
    found = collection.query(query_embeddings=[query], n_results=3, where={"has_vector": True})
    assert [round(d, 3) for d in found["distances"][0]] == [1.655, 1.789, 2.0]
    assert found["metadatas"][0][0]["ns"] == "memories.default.user.ada.facts"


def test_another_process_on_the_server_is_noticed(port: int) -> None:
    prefix = f"test{next(_numbers)}"
    with http_client(port) as one, ChromaMemoryStore(one, prefix=prefix) as ours:
        ours.put(("memories", "a", "user", "u"), "k", {"x": 1})
        place = ours._book.places.find("memories.a.user.u")
        assert place is not None
        head = ours._book.heads("memories.a.user.u")["memories.a.user.u"]
        # What a second process does that read the same version and wrote after us.
        ours._chroma.update(place.collection, {head_id(head.path): {"writer": "another", "version": head.version}})
        assert ours.get(("memories", "a", "user", "u"), "k") is not None
        assert len(ours._book.shared.clashes) == 1
