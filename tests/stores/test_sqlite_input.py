"""Bad input raises InvalidInput that names it, whatever the method; nothing else comes up from below."""

import asyncio
import gc
import threading
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp

from langmem_adapter.embeddings import HashEmbeddings
from langmem_adapter.errors import InvalidInput, StoreClosed
from langmem_adapter.scoring import Where
from langmem_adapter.stores.base import RankOp
from langmem_adapter.stores.sqlite import SqliteMemoryStore

N = ("n",)


@pytest.mark.parametrize(
    "read",
    [
        lambda s: s.get(("\ud800",), "k"),
        lambda s: s.search(("\ud800",)),
        lambda s: s.list_namespaces(prefix=("\ud800",)),
        lambda s: s.list_namespaces(suffix=("\ud800",)),
    ],
)
def test_labels_that_are_no_unicode_are_refused_in_reads_too(sqlite: SqliteMemoryStore, read: Any) -> None:
    with pytest.raises(InvalidNamespaceError):
        read(sqlite)


CIRCLE: dict[str, Any] = {}
CIRCLE["x"] = CIRCLE


@pytest.mark.parametrize(
    ("filter", "told"),
    [
        ({"a": "\ud800"}, "surrogate"),
        ({"a": {"b": ["\ud800"]}}, "surrogate"),
        ({"n": 10**400}, r"filter\['n'\] is an int of 1329 bits"),
        ({"n": {"$gt": -(10**400)}}, r"filter\['n'\]\['\$gt'\]"),
        ({"a": datetime.now(UTC)}, r"filter\['a'\] is a datetime"),
        ({"a": {1, 2}}, r"filter\['a'\] is a set"),
        ({"a": {"b": {1: 2}}}, "must be a str"),
        ({"a": CIRCLE}, "contains itself"),
        ("abc", "filter is a dict"),
        ([("a", 1)], "filter is a dict"),
    ],
)
def test_filters_that_cannot_be_are_refused(sqlite: SqliteMemoryStore, filter: Any, told: str) -> None:
    for query in (None, "cat"):
        with pytest.raises(InvalidInput, match=told):
            sqlite.search(N, filter=filter, query=query)


@pytest.mark.parametrize("bad", [2**70, 2.0, None, "3", True, -1])
@pytest.mark.parametrize("name", ["limit", "offset"])
def test_pages_that_cannot_be_are_refused(sqlite: SqliteMemoryStore, name: str, bad: Any) -> None:
    options: dict[str, Any] = {name: bad}
    for query in (None, "cat"):
        with pytest.raises(InvalidInput, match=name):
            sqlite.search(N, query=query, **options)
    with pytest.raises(InvalidInput, match=name):
        sqlite.list_namespaces(**options)


def test_queries_that_are_no_text_are_refused(sqlite: SqliteMemoryStore) -> None:
    bad: Any = 5
    with pytest.raises(InvalidInput, match="query is a str"):
        sqlite.search(N, query=bad)
    with pytest.raises(InvalidInput, match="query is a str"):
        sqlite.read([RankOp((N,), bad, Where(0.0))])


@pytest.mark.parametrize(
    ("name", "bad"), [("ttl", "5"), ("ttl", True), ("index", True), ("index", "abc"), ("index", [1])]
)
def test_puts_that_cannot_be_are_refused(sqlite: SqliteMemoryStore, name: str, bad: Any) -> None:
    with pytest.raises(InvalidInput, match=name):
        sqlite.batch([PutOp(N, "k", {}, **{name: bad})])


def test_an_unknown_kind_of_match_is_refused(sqlite: SqliteMemoryStore) -> None:
    kind: Any = "infix"
    with pytest.raises(InvalidInput, match="infix"):
        sqlite.batch([ListNamespacesOp(match_conditions=(MatchCondition(kind, ("a",)),))])


EMBED = HashEmbeddings()


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ({"index": {"dims": 256, "embed": EMBED, "fields": "text"}}, r"index\['fields'\] is a list"),
        ({"index": {"dims": 256, "embed": EMBED, "feilds": ["text"]}}, r"unknown keys \['feilds'\]"),
        ({"index": {"dims": True, "embed": EMBED}}, "dims"),
        ({"index": "x"}, "index is a dict"),
        ({"ttl": 5}, "ttl is a dict"),
        ({"ttl": {"default": 5}}, "unknown keys"),
        ({"cache_bytes": -5}, "cache_bytes"),
        ({"mode": "fuzzy"}, "mode"),
    ],
)
def test_options_that_cannot_be_are_refused(option: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        SqliteMemoryStore(":memory:", **option)


def test_a_clock_beyond_all_dates_is_refused_before_it_is_stored() -> None:
    now = [1e12]
    with SqliteMemoryStore(":memory:", clock=lambda: now[0]) as store, pytest.raises(InvalidInput, match="clock"):
        store.put(N, "k", {})


def test_scores_stay_within_one() -> None:
    for mode in ("hybrid", "vector"):
        index: Any = {"dims": 256, "embed": EMBED, "fields": ["t"]}
        with SqliteMemoryStore(":memory:", index=index, mode=mode) as store:
            for text in ("you are what", "the user likes tea", "a b c", "they were there then"):
                store.put(N, "k", {"t": text})
                (found,) = store.search(N, query=text)
                assert found.score is not None
                assert found.score <= 1.0
                ((ranked,),) = store.read([RankOp((N,), text, Where(0.0), mode=mode)])[0]
                assert ranked.parts.relevance <= 1.0


# the sweeper


@pytest.mark.parametrize("bad", [0, -1, float("nan"), True, "5"])
def test_a_sweeper_with_an_interval_that_cannot_be_is_refused(sqlite: SqliteMemoryStore, bad: Any) -> None:
    with pytest.raises(InvalidInput, match="sweep_interval_minutes"):
        sqlite.start_ttl_sweeper(bad)


@pytest.mark.parametrize(
    "use", [lambda s: s.start_ttl_sweeper(), lambda s: s.setup(), lambda s: s.__enter__(), lambda s: s.sweep_ttl()]
)
def test_a_closed_store_refuses_everything(tmp_path: Path, use: Callable[[SqliteMemoryStore], object]) -> None:
    store = SqliteMemoryStore(tmp_path / "memory.db")
    store.close()
    with pytest.raises(StoreClosed):
        use(store)


async def test_starting_a_sweeper_may_be_awaited(sqlite: SqliteMemoryStore) -> None:
    started = await asyncio.wait_for(sqlite.start_ttl_sweeper(1), 5)
    assert isinstance(started, Future)
    assert not started.done()
    assert sqlite.start_ttl_sweeper() is started


def test_a_dropped_store_ends_its_sweeper_long_before_its_next_sweep(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    store = SqliteMemoryStore(tmp_path / "memory.db")
    store.start_ttl_sweeper(60)
    (sweeper,) = set(threading.enumerate()) - before
    del store
    gc.collect()
    sweeper.join(5)
    assert not sweeper.is_alive()
