"""Reads with versions and commits that check them."""

import pytest
from langgraph.store.base import GetOp, PutOp, SearchOp

from langmem_adapter.errors import Conflict, InvalidInput
from langmem_adapter.stores.sqlite import SqliteMemoryStore

A, B, C = ("a",), ("a", "b"), ("c",)


def versions(store: SqliteMemoryStore) -> dict[tuple[str, ...], int]:
    return store.read([], versions=[A, B, C])[1]


def test_a_version_grows_by_the_number_of_items_changed_in_that_namespace(sqlite: SqliteMemoryStore) -> None:
    assert versions(sqlite) == {A: 0, B: 0, C: 0}
    sqlite.batch([PutOp(A, "x", {}), PutOp(A, "y", {}), PutOp(B, "x", {}), PutOp(C, "never", None)])
    assert versions(sqlite) == {A: 2, B: 1, C: 0}
    sqlite.batch([PutOp(A, "x", None), PutOp(A, "z", None), PutOp(A, "y", {"n": 1})])
    assert versions(sqlite) == {A: 4, B: 1, C: 0}


def test_a_version_never_goes_back_when_the_last_item_goes(sqlite: SqliteMemoryStore) -> None:
    sqlite.put(A, "x", {})
    sqlite.delete(A, "x")
    assert versions(sqlite)[A] == 2
    assert sqlite.list_namespaces() == []
    sqlite.put(A, "x", {})
    assert versions(sqlite)[A] == 3


def test_a_commit_applies_only_if_every_expected_version_holds(sqlite: SqliteMemoryStore) -> None:
    sqlite.put(A, "x", {"n": 0})
    seen = versions(sqlite)
    sqlite.commit([PutOp(A, "x", {"n": 1}), PutOp(B, "y", {})], expect=seen)
    with pytest.raises(Conflict, match=r"\('a',\) is at version 2, not 1"):
        sqlite.commit([PutOp(C, "z", {})], expect=seen)
    assert sqlite.get(C, "z") is None
    assert versions(sqlite) == {A: 2, B: 1, C: 0}


def test_a_commit_may_expect_a_namespace_it_does_not_write(sqlite: SqliteMemoryStore) -> None:
    sqlite.put(B, "x", {})
    with pytest.raises(Conflict):
        sqlite.commit([PutOp(A, "x", {})], expect={B: 0})
    sqlite.commit([PutOp(A, "x", {})], expect={B: 1, C: 0})
    with pytest.raises(Conflict):
        sqlite.commit([], expect={A: 0})


async def test_the_async_twins_do_the_same(sqlite: SqliteMemoryStore) -> None:
    await sqlite.acommit([PutOp(A, "x", {"n": 1})], expect={A: 0})
    results, found = await sqlite.aread([GetOp(A, "x"), SearchOp(())], versions=[A])
    assert results[0].value == {"n": 1}
    assert [i.key for i in results[1]] == ["x"]
    assert found == {A: 1}
    with pytest.raises(Conflict):
        await sqlite.acommit([PutOp(A, "x", {"n": 2})], expect={A: 0})


def test_a_read_does_not_change_a_version_even_if_it_refreshes_a_ttl(sqlite: SqliteMemoryStore) -> None:
    now = [1000.0]
    with SqliteMemoryStore(":memory:", clock=lambda: now[0]) as store:
        store.put(A, "x", {}, ttl=1)
        now[0] += 40
        _, seen = store.read([GetOp(A, "x", refresh_ttl=True)], versions=[A])
        store.commit([PutOp(A, "y", {})], expect=seen)
        now[0] += 40
        assert store.get(A, "x") is not None


def test_read_takes_no_puts_and_commit_nothing_else(sqlite: SqliteMemoryStore) -> None:
    with pytest.raises(InvalidInput):
        sqlite.read([PutOp(A, "x", {})])
    with pytest.raises(InvalidInput):
        sqlite.commit([GetOp(A, "x")], expect={})  # type: ignore[list-item]


def test_the_store_id_is_the_files(sqlite: SqliteMemoryStore) -> None:
    with SqliteMemoryStore(sqlite.name) as again, SqliteMemoryStore(":memory:") as other:
        assert again.store_id == sqlite.store_id != other.store_id


def test_newest_first_holds_when_the_clock_steps_back() -> None:
    now = [1_000_000.0]
    with SqliteMemoryStore(":memory:", clock=lambda: now[0]) as store:
        store.put(A, "first", {})
        now[0] -= 86_400
        store.put(A, "second", {})
        store.put(A, "third", {})
        assert [i.key for i in store.search(A)] == ["third", "second", "first"]


def test_a_clock_that_steps_back_revives_nothing() -> None:
    now = [1_000_000.0]
    with SqliteMemoryStore(":memory:", clock=lambda: now[0]) as store:
        store.put(A, "x", {}, ttl=1)
        now[0] += 61
        assert store.get(A, "x") is None
        now[0] -= 86_400
        assert store.get(A, "x") is None
        assert store.search(A) == []
