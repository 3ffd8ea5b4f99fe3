"""Moving everything from one store to another."""

import secrets
from contextlib import ExitStack

import pytest
from langgraph.store.base import SearchOp
from langgraph.store.memory import InMemoryStore

from langmem_adapter import Memory
from langmem_adapter.embeddings import HashEmbeddings
from langmem_adapter.errors import StoreError
from langmem_adapter.migrate import migrate
from langmem_adapter.stores.chroma import ChromaMemoryStore
from langmem_adapter.stores.postgres import PostgresMemoryStore

INDEX = {"dims": 256, "embed": HashEmbeddings(), "fields": ["content"]}


@pytest.fixture
def opened(tmp_path, request):
    """Opens a Memory on an empty store of a kind; the stores are closed after the test."""
    with ExitStack() as stack:

        def make(kind, name):
            if kind == "sqlite":
                return stack.enter_context(Memory(tmp_path / f"{name}.db"))
            if kind == "chroma":
                return Memory(stack.enter_context(ChromaMemoryStore(tmp_path / name, index=INDEX)))
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


OURS = [("sqlite", "postgres"), ("postgres", "chroma"), ("chroma", "sqlite")]


@pytest.mark.parametrize(("source", "target"), [*OURS, ("sqlite", "in_memory")])
def test_what_was_forgotten_since_an_earlier_move_is_forgotten_in_the_target_too(opened, source, target):
    old, new = opened(source, "source"), opened(target, "target")
    old.add("I'm a vegetarian.", user_id="u", session_id="s1")
    old.add("I live in Ghent.", user_id="u", session_id="s2")
    old.add("I live in Oslo.", user_id="v", session_id="s3")
    new.store.put(("its", "own"), "k", {"any": "value"})
    migrate(old.store, new.store)
    old.forget_source("s1", user_id="u")
    old.delete_all(user_id="v")
    done = migrate(old.store, new.store)
    assert done.deleted > 0
    assert [r.content for r in new.get_all(user_id="u", status="all")] == ["The user lives in Ghent."]
    assert new.get_all(user_id="v", status="all") == []
    assert [i.namespace for i in new.store.search(("memories",), limit=99) if i.namespace[3] == "v"] == []
    new.store.delete(("its", "own"), "k")
    assert migrate(new.store, InMemoryStore()).digest == done.digest  # the target's own


@pytest.mark.parametrize(("source", "target"), OURS)
def test_a_target_in_use_is_not_overwritten(opened, source, target):
    old, new = opened(source, "source"), opened(target, "target")
    old.add("I live in Ghent.", user_id="u", session_id="s1")
    migrate(old.store, new.store)
    new.add("I'm a vegetarian.", user_id="u", session_id="s2")
    before = new.get_all(user_id="u")
    with pytest.raises(StoreError, match=r"written to since.*'u', 'facts'"):
        migrate(old.store, new.store)
    assert new.get_all(user_id="u") == before


@pytest.mark.parametrize(("source", "target"), OURS)
def test_times_deadlines_and_index_settings_are_moved(opened, source, target):
    old, new, n = opened(source, "source").store, opened(target, "target").store, ("docs", "x")
    old.put(n, "secret", {"content": "apple"}, index=False)
    old.put(n, "own", {"title": "pear"}, index=["title"])
    old.put(n, "brief", {"content": "plum"}, ttl=600)
    old.put(n, "own", {"title": "a pear"}, index=["title"])
    old.put(n, "twice", {"content": "fig"})
    migrate(old, new)

    def seen(store):
        return [(i.key, i.value, i.created_at, i.updated_at) for i in store.search(n)]

    assert seen(new) == seen(old)
    for query in ("apple", "pear", "plum"):
        found = [{i.key for i in store.search(n, query=query) if i.score} for store in (old, new)]
        assert found[0] == found[1]
    assert new.kept(n) == old.kept(n)
    assert migrate(old, new).copied == 0
    new.put(n, "later", {"content": "date"})
    assert new.search(n)[0].key == "later"


def test_a_source_with_short_pages_is_moved_as_a_whole(opened):
    class Capped(InMemoryStore):
        def batch(self, ops):
            return super().batch(
                [op._replace(limit=min(op.limit, 7)) if isinstance(op, SearchOp) else op for op in ops]
            )

    source, target = Capped(), opened("sqlite", "target").store
    for i in range(30):
        source.put(("a", "b"), str(i), {"n": i})
    assert migrate(source, target).items == 30
    assert len(target.search(("a", "b"), limit=99)) == 30


def test_what_a_foreign_source_does_not_have_is_named(opened):
    source, target = InMemoryStore(), opened("sqlite", "target").store
    source.put(("a", "b"), "k", {})
    target.put(("a", "b"), "more", {})
    with pytest.raises(StoreError, match=r"1 items in \('a', 'b'\).*'more'"):
        migrate(source, target)


def test_what_a_target_does_not_take_is_named(opened):
    source, target = opened("sqlite", "source").store, opened("postgres", "target").store
    source.put(("a", "b"), "k", {"text": "a\0b"})
    with pytest.raises(StoreError, match=r"'a', 'b'.*NUL"):
        migrate(source, target)


@pytest.mark.parametrize("kind", ["sqlite", "chroma", "postgres"])
def test_what_is_learnt_after_a_move_comes_after_what_was_moved(opened, kind):
    source, target = opened("sqlite", "source"), opened(kind, "target")
    for i in range(12):  # versions of the source run ahead of its items
        op = source.add_fact(f"The user likes dish {i}.", user_id="u", source_id=f"s{i}")
        if i % 2:
            source.delete(op.memory_id, user_id="u")
    migrate(source.store, target.store)
    new = target.add_fact("The user is tall.", user_id="u", source_id="later")
    assert target.get_all(user_id="u")[-1].memory_id == new.memory_id
    turns = [i.value for i in target.store.search(("memories", "default", "user", "u", "turns"), limit=100)]
    assert max(turns, key=lambda t: t["applied"])["source_id"] == "later"
    assert not [t for t in turns if "turn_id" not in t]
