"""The quick ways inside the SQLite store come to what the slow ways do."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import snowballstemmer
from langgraph.store.base import PutOp

from langmem_adapter.embeddings import HashEmbeddings
from langmem_adapter.stores.sqlite import SqliteMemoryStore
from langmem_adapter.stores.tokens import _hash
from langmem_adapter.stores.vectors import unit

NS = ("owner", "facts")


def _index() -> dict[str, object]:
    return {"dims": 32, "embed": HashEmbeddings(32), "fields": ["text"]}


def _text(n: int) -> str:
    words = "coffee train piano garden winter reading chess bread river doctor".split()
    return " ".join(words[(n * k) % 10] for k in (1, 3, 7)) + f" {n}"


@pytest.mark.parametrize("every", [2, 50, 400, 5_000])
@pytest.mark.parametrize("offset", [0, 3])
def test_a_filter_finds_the_best_of_what_it_admits_however_rare(every: int, offset: int) -> None:
    store = SqliteMemoryStore(":memory:", index=_index(), mode="vector")  # type: ignore[arg-type]
    values = [{"text": _text(n), "mark": n % every == 1} for n in range(2_000)]
    store.batch([PutOp(NS, f"k{n}", v) for n, v in enumerate(values)])
    found = store.search(NS, query="piano winter", filter={"mark": True}, limit=5, offset=offset)
    embed = HashEmbeddings(32)
    query = np.array(embed.embed_query("piano winter"))
    marked = [n for n, v in enumerate(values) if v["mark"]]
    vectors = unit(np.array(embed.embed_documents([_text(n) for n in marked]), dtype=np.float32))
    wanted = np.sort(np.maximum(0.0, vectors @ query))[::-1][offset : offset + 5]
    assert all(i.value["mark"] for i in found)
    assert [i.score for i in found] == pytest.approx(wanted.tolist(), abs=1e-5)
    store.close()


@pytest.mark.parametrize(
    "filter",
    [
        {"topic": "t1", "slot": "s2"},
        {"topic": "t1", "slot": "s2", "status": "active"},
        {"topic": "t1", "slot": {"$ne": "s2"}},
        {"slot": "s2"},
        {"topic": "t1", "status": "active"},
        {"topic": "t1", "slot": 2},
        {"topic": "t1", "slot": None},
    ],
)
@pytest.mark.parametrize("query", [None, "piano winter"])
def test_what_an_index_answers_is_what_reading_every_value_finds(filter: dict[str, Any], query: str | None) -> None:
    store = SqliteMemoryStore(":memory:", index=_index(), mode="vector")  # type: ignore[arg-type]
    slots = ("s1", "s2", 2, None, "")
    for again in (0, 1):
        for n in range(0, 400, 1 + 2 * again):
            value = {"text": _text(n), "topic": f"t{(n + again) % 3}", "slot": slots[(n // 3 + again) % 5]}
            store.put(NS if n % 2 else (*NS, "below"), f"k{n}", {**value, "status": "active" if n % 7 else "retracted"})
    store.delete(NS, "k1")

    def met(value: dict[str, Any]) -> bool:
        return all(value[k] != w["$ne"] if isinstance(w, dict) else value[k] == w for k, w in filter.items())

    for prefix in (NS, (*NS, "below")):
        every = store.search(prefix, query=query, limit=1_000)
        wanted = [i.key for i in every if met(i.value)]
        assert wanted
        assert [i.key for i in store.search(prefix, query=query, filter=filter, limit=1_000)] == wanted
        assert [i.key for i in store.search(prefix, query=query, filter=filter, limit=3, offset=1)] == wanted[1:4]
    store.close()


def test_a_large_batch_overwrites_deletes_and_adds(tmp_path: Path) -> None:
    store = SqliteMemoryStore(tmp_path / "memory.db")
    store.batch([PutOp(NS, f"k{n}", {"n": n}) for n in range(150)])
    created = {i.key: i.created_at for i in store.search(NS, limit=200)}
    puts = [PutOp(NS, f"k{n}", None if n % 3 == 0 else {"n": -n}) for n in range(250)]
    store.batch(puts)
    found = {i.key: i for i in store.search(NS, limit=300)}
    assert {k: i.value["n"] for k, i in found.items()} == {f"k{n}": -n for n in range(250) if n % 3}
    assert all(found[k].created_at == at for k, at in created.items() if k in found)
    store.close()


def test_many_small_changes_between_two_searches_leave_what_a_new_store_reads(tmp_path: Path) -> None:
    store = SqliteMemoryStore(tmp_path / "memory.db", index=_index())  # type: ignore[arg-type]
    store.batch([PutOp(NS, f"k{n}", {"text": _text(n)}) for n in range(100)])
    store.search(NS, query="piano")
    for n in range(60):
        store.put(NS, f"k{n * 3 % 40}", {"text": _text(n + 500)})
        store.put(NS, f"new{n % 7}", {"text": _text(n + 900)}, index=None if n % 2 else False)
        if n % 4 == 0:
            store.delete(NS, f"k{n}")
    mine = store.search(NS, query="piano winter", limit=200)
    fresh = SqliteMemoryStore(tmp_path / "memory.db", index=_index())  # type: ignore[arg-type]
    assert mine == fresh.search(NS, query="piano winter", limit=200)
    store.close()
    fresh.close()


def test_changes_that_wait_are_counted_and_bounded(tmp_path: Path) -> None:
    bound = 200_000
    store = SqliteMemoryStore(tmp_path / "memory.db", index=_index(), cache_bytes=bound)  # type: ignore[arg-type]
    store.put(NS, "first", {"text": _text(0)})
    store.search(NS, query="piano")
    for n in range(1_500):
        store.put(NS, f"k{n}", {"text": _text(n)}) if n % 100 else store.search(NS, query="piano")
        assert store._cache.nbytes <= bound
    assert len(store.search(NS, query="piano", limit=2_000)) == 1_486
    store.close()


def test_a_word_with_a_digit_at_its_end_hashes_as_its_stem_would() -> None:
    stemmer = snowballstemmer.stemmer("english")
    words = [
        f"{a}{b}{n}"
        for a in ("", "y", "say", "gene", "x9")
        for b in ("", "ing", "ies", "ly", "s", "y")
        for n in range(9)
    ]
    assert [stemmer.stemWord(w) for w in words] == words
    assert _hash("s4711", "english") == _hash("s4711's", "english")
