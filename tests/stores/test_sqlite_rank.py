"""Exact blended ranking inside the store."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from langgraph.store.base import PutOp

from langmem_adapter.embeddings import HashEmbeddings
from langmem_adapter.records import MemoryRecord, Source
from langmem_adapter.scoring import Columns, Weights, Where, blend
from langmem_adapter.stores.base import Ranked, RankOp
from langmem_adapter.stores.sqlite import SqliteMemoryStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NS = ("memories", "default", "user", "u1", "facts")
OTHER = ("memories", "default", "user", "u2", "facts")
INDEX: Any = {"dims": 256, "embed": HashEmbeddings(), "fields": ["content"]}
WHERE = Where(now=NOW.timestamp())


def record(id: str, content: str, **fields: Any) -> dict[str, Any]:
    at = fields.pop("at", NOW)
    source = Source(source_type="user_explicit", source_id="s1", at=at, confidence=0.9)
    times = {"created_at": at, "updated_at": at, "confirmed_at": at}
    values: dict[str, Any] = {"seq": 1, "confidence": 0.9, "sources": (source,), **times, **fields}
    return MemoryRecord(memory_id=id, content=content, **values).model_dump(mode="json")


def rank(store: SqliteMemoryStore, query: str | None, *, namespaces: Any = (NS,), **fields: Any) -> list[Ranked]:
    fields.setdefault("where", WHERE)
    return store.read([RankOp(namespaces, query, **fields)])[0][0]  # type: ignore[no-any-return]


@pytest.fixture
def store() -> Any:
    with SqliteMemoryStore(":memory:", index=INDEX) as store:
        facts = [
            ("fish", "The user eats fish again.", 0.8),
            ("aisle", "The user prefers aisle seating on flights.", 0.5),
            ("Ada", "The user goes by Ada.", 0.8),
        ]
        store.batch([PutOp(NS, id, record(id, text, importance=i)) for id, text, i in facts])
        yield store


@pytest.mark.parametrize(
    ("query", "scores"),
    [
        ("any dietary restrictions I should know about?", {"fish": 0.473, "aisle": 0.388, "Ada": 0.370}),
        ("what seat should I book on the flight?", {"fish": 0.392, "aisle": 0.444, "Ada": 0.370}),
        ("what should we order for lunch?", {"fish": 0.370, "aisle": 0.349, "Ada": 0.370}),
    ],
)
def test_vector_mode_gives_the_reference_scores(store: SqliteMemoryStore, query: str, scores: dict[str, float]) -> None:
    found = rank(store, query, mode="vector")
    assert {r.item.key: round(r.score, 3) for r in found} == scores
    assert [r.score for r in found] == sorted((r.score for r in found), reverse=True)


def test_parts_are_unweighted_and_make_the_score(store: SqliteMemoryStore) -> None:
    for r in rank(store, "fish", weights=Weights(confidence=0.1)):
        p = r.parts
        assert r.score == pytest.approx(0.6 * p.relevance + 0.25 * p.recency + 0.15 * p.importance + 0.1 * p.confidence)
        assert r.item.score == r.score


def test_without_a_query_relevance_is_nought(store: SqliteMemoryStore) -> None:
    assert {r.item.key: round(r.score, 3) for r in rank(store, None)} == {"fish": 0.37, "aisle": 0.325, "Ada": 0.37}


def test_floor_limit_and_ties_newest_first(store: SqliteMemoryStore) -> None:
    assert [r.item.key for r in rank(store, None)] == ["Ada", "fish", "aisle"]
    assert [r.item.key for r in rank(store, None, limit=1)] == ["Ada"]
    assert [r.item.key for r in rank(store, None, floor=0.35)] == ["Ada", "fish"]
    assert rank(store, None, limit=0) == []


def test_statuses_topics_kinds_and_expiry_are_respected(store: SqliteMemoryStore) -> None:
    old = NOW - timedelta(days=2)
    puts = {
        "past": record("past", "expired", expires_at=old),
        "lost": record("lost", "superseded", status="superseded", invalidated_at=old, at=NOW - timedelta(days=9)),
        "seat": record("seat", "window", topic="travel/seat", kind="preference"),
    }
    store.batch([PutOp(NS, k, v) for k, v in puts.items()])
    now = NOW.timestamp()
    assert {r.item.key for r in rank(store, None)} == {"fish", "aisle", "Ada", "seat"}
    assert [r.item.key for r in rank(store, None, where=Where(now, topics=("travel",)))] == ["seat"]
    assert [r.item.key for r in rank(store, None, where=Where(now, kinds=("preference",)))] == ["seat"]
    assert [r.item.key for r in rank(store, None, where=Where(now, statuses=("superseded",)))] == ["lost"]
    then = (NOW - timedelta(days=5)).timestamp()
    assert [r.item.key for r in rank(store, None, where=Where(now, as_of=then))] == ["lost"]


def test_only_the_named_namespaces_are_ranked_together(store: SqliteMemoryStore) -> None:
    store.put(OTHER, "x", record("x", "The user eats fish again."))
    store.put((*NS[:-1], "session", "s", "facts"), "below", record("below", "fish"))
    assert "x" not in {r.item.key for r in rank(store, "fish", limit=100)}
    both = rank(store, "fish", namespaces=(NS, OTHER, ("none",)))
    assert {(r.item.namespace, r.item.key) for r in both} == {(OTHER, "x")} | {
        (NS, k) for k in ("fish", "aisle", "Ada")
    }
    assert rank(store, "fish", namespaces=(("none",),)) == []


def test_an_item_with_a_ttl_is_not_ranked_when_it_is_over() -> None:
    now = [NOW.timestamp()]
    with SqliteMemoryStore(":memory:", index=INDEX, clock=lambda: now[0]) as store:
        store.put(NS, "k", record("k", "fish"), ttl=1)
        assert len(rank(store, "fish")) == 1
        now[0] += 61
        assert rank(store, "fish") == []


def test_items_that_are_no_records_get_neutral_fields(store: SqliteMemoryStore) -> None:
    odd: dict[str, Any] = {"importance": "high", "half_life_days": 0, "created_at": 5, "status": ["x"], "topic": 7}
    store.put(NS, "odd", odd, index=False)
    found = {r.item.key: r.parts for r in rank(store, "fish")}
    assert (found["odd"].relevance, found["odd"].importance) == (0.0, 0.5)


@pytest.mark.parametrize("mode", ["vector", "text", "hybrid"])
def test_cached_ranking_equals_a_fresh_store_after_any_changes(tmp_path: Any, mode: Any) -> None:
    rng = np.random.default_rng(0)
    words = [f"word{i}" for i in range(40)]

    def text() -> str:
        return " ".join(rng.choice(words, 6))

    with SqliteMemoryStore(tmp_path / "a.db", index=INDEX) as store:
        for _ in range(30):
            ops = []
            for key in rng.choice(60, rng.integers(1, 9), replace=False):
                if rng.random() < 0.3:
                    ops.append(PutOp(NS, f"k{key}", None))
                else:
                    value = record(f"k{key}", text(), importance=float(rng.random()), topic=str(rng.choice(["a", "b"])))
                    ops.append(PutOp(NS, f"k{key}", value, index=False if rng.random() < 0.2 else None))
            store.batch(ops)
            query = text()
            warm = rank(store, query, mode=mode, limit=100)
            with SqliteMemoryStore(store.name, index=INDEX, mode=mode) as fresh:
                cold = rank(fresh, query, mode=mode, limit=100)
                store.mode = mode
                pages = [
                    [(i.key, i.score and round(i.score, 6)) for i in s.search(NS, query=query, limit=100)]
                    for s in (store, fresh)
                ]
            assert [(r.item.key, round(r.score, 6)) for r in warm] == [(r.item.key, round(r.score, 6)) for r in cold]
            assert pages[0] == pages[1]


def test_ranking_is_exact_over_all_records(tmp_path: Any) -> None:
    rng = np.random.default_rng(1)
    vectors = {f"text {i}": rng.standard_normal(32).tolist() for i in range(500)}
    index: Any = {"dims": 32, "embed": lambda texts: [vectors[t] for t in texts], "fields": ["content"]}
    values = [record(f"k{i}", f"text {i}", importance=i / 500, at=NOW - timedelta(days=i)) for i in range(500)]
    with SqliteMemoryStore(tmp_path / "a.db", index=index) as store:
        store.batch([PutOp(NS, v["memory_id"], v) for v in values])
        found = rank(store, "text 7", mode="vector", limit=20)
    matrix = np.array([vectors[v["content"]] for v in values])
    matrix /= np.linalg.norm(matrix, axis=1)[:, None]
    columns = Columns.of(values)
    scores = blend(columns.parts(np.maximum(0, matrix @ matrix[7]), WHERE.now), Weights())
    assert [r.item.key for r in found] == [f"k{i}" for i in np.argsort(-scores)[:20]]
    assert [r.score for r in found] == pytest.approx(sorted(scores, reverse=True)[:20], abs=1e-6)


def test_the_cache_stays_under_its_bound(tmp_path: Any) -> None:
    with SqliteMemoryStore(tmp_path / "a.db", index=INDEX, cache_bytes=300_000) as store:
        for user in range(20):
            namespace = ("n", str(user))
            store.batch([PutOp(namespace, f"k{i}", record(f"k{i}", f"fish {i}")) for i in range(50)])
            for _ in range(2):
                assert store.search(namespace, query="fish", limit=1)[0].namespace == namespace
            rank(store, "fish", namespaces=(namespace,))
            assert store.doctor().cache_bytes <= 300_000
        assert store.doctor().cache_bytes > 100_000
        assert len(store.search(("n",), query="fish", limit=2_000)) == 1_000
        assert store.doctor().cache_bytes <= 300_000
