"""Moving everything from one store to another."""

import secrets
from contextlib import ExitStack

import pytest
from langgraph.store.memory import InMemoryStore

from langmem_adapter import Memory
from langmem_adapter.embeddings import HashEmbeddings
from langmem_adapter.errors import StoreError
from langmem_adapter.migrate import migrate
from langmem_adapter.stores.postgres import PostgresMemoryStore

INDEX = {"dims": 256, "embed": HashEmbeddings(), "fields": ["content"]}


@pytest.fixture
def opened(tmp_path, request):
    """Opens a Memory on an empty store of a kind; the stores are closed after the test."""
    with ExitStack() as stack:

        def make(kind, name):
            if kind == "sqlite":
                return stack.enter_context(Memory(tmp_path / f"{name}.db"))
            if kind == "postgres":
                url, schema = request.getfixturevalue("database"), f"{name}_{secrets.token_hex(6)}"
                return Memory(stack.enter_context(PostgresMemoryStore(url, schema=schema, index=INDEX)))
            return Memory(InMemoryStore())

        yield make


@pytest.fixture
def filled(opened):
    return fill(opened("sqlite", "source"))


def fill(memory):
    for i in range(30):
        memory.add_fact(f"The user likes dish {i}.", user_id=f"u{i % 3}", topic="preference/likes", source_id="s",
                        slot=f"dish {i}", value="like")  # fmt: skip
    memory.add("I live in Rome.", user_id="u0", session_id="s1")
    memory.add("I live in Oslo.", user_id="u0", session_id="s2")
    memory.store.put(("other", "things"), "k", {"any": ["value", 1, None]})
    return memory


@pytest.mark.parametrize(
    ("source", "target"),
    [("sqlite", "sqlite"), ("sqlite", "in_memory"), ("sqlite", "postgres"), ("postgres", "sqlite")],
)
def test_a_moved_memory_goes_on_as_before(opened, source, target):
    filled, moved = fill(opened(source, "source")), opened(target, "target")
    seen = []
    done = migrate(filled.store, moved.store, progress=lambda n, total: seen.append((n, total)))
    assert done.copied == done.items == 31 + 1 + 32 + 1
    assert seen[-1] == (done.namespaces, done.namespaces)
    for user in ("u0", "u1", "u2"):
        assert moved.get_all(user_id=user, status="all") == filled.get_all(user_id=user, status="all")
        assert [h.record for h in moved.search("dish", user_id=user, mode="vector")] == [
            h.record for h in filled.search("dish", user_id=user, mode="vector")
        ]
    assert moved.store.get(("other", "things"), "k").value == {"any": ["value", 1, None]}
    assert moved.add("I live in Oslo.", user_id="u0", session_id="s2") == []  # the turn moved too
    [op] = moved.add("I live in Bonn.", user_id="u0", session_id="s3")
    assert op.action == "UPDATE"
    newest = max(moved.get_all(user_id="u0", status="all"), key=lambda r: r.seq)
    assert newest.content == "The user lives in Bonn."


@pytest.mark.parametrize("target", ["sqlite", "postgres"])
def test_an_interrupted_move_goes_on(filled, opened, target):
    def stop(done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    moved = opened(target, "target")
    with pytest.raises(KeyboardInterrupt):
        migrate(filled.store, moved.store, progress=stop)
    first = len(moved.store.search((), limit=1_000))
    done = migrate(filled.store, moved.store)
    assert 0 < first < done.items
    assert done.copied == done.items - first
    again = migrate(filled.store, moved.store)
    assert (again.copied, again.digest) == (0, done.digest)


def test_a_target_that_loses_things_is_told(filled):
    class Leaky(InMemoryStore):
        def batch(self, ops):
            return super().batch([op for op in ops if getattr(op, "key", "") != "k" or not hasattr(op, "value")])

    with pytest.raises(StoreError, match="does not give back"):
        migrate(filled.store, Leaky())
