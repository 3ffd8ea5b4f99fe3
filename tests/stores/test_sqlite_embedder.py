"""Who made the vectors is remembered, and how another embedder takes over."""

import functools
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.base import PutOp

from langmem_adapter.embeddings import HashEmbeddings
from langmem_adapter.errors import EmbedderMismatch, InvalidInput
from langmem_adapter.stores.embedder import name_of
from langmem_adapter.stores.sqlite import SqliteMemoryStore

N = ("n",)


def index(dims: int = 256, **fields: Any) -> Any:
    return {"dims": dims, "embed": HashEmbeddings(dims), "fields": ["text"], **fields}


def filled(path: Path, count: int = 5) -> None:
    with SqliteMemoryStore(path, index=index()) as store:
        store.batch([PutOp(N, f"k{i}", {"text": f"cat {i} eats fish"}) for i in range(count)])


def test_another_embedder_is_refused_at_open_and_both_are_named(tmp_path: Path) -> None:
    filled(tmp_path / "a.db")
    with pytest.raises(EmbedderMismatch, match=r"hash-256 \(256 numbers\).*hash-64 \(64 numbers\)"):
        SqliteMemoryStore(tmp_path / "a.db", index=index(64))
    with SqliteMemoryStore(tmp_path / "a.db", index=index()) as store:
        assert store.search(N, query="fish")[0].score is not None


def test_get_and_word_search_work_without_the_embedder(tmp_path: Path) -> None:
    filled(tmp_path / "a.db")
    with SqliteMemoryStore(tmp_path / "a.db") as store:
        assert store.get(N, "k1") is not None
        found = store.search(N, query="3")
        assert (found[0].key, found[0].score is None, found[1].score) == ("k3", False, None)


def test_an_embedder_that_returns_other_lengths_is_refused_with_both_numbers() -> None:
    lying: Any = {"dims": 3, "embed": lambda texts: [[1.0, 0.0] for _ in texts], "fields": ["text"]}
    with SqliteMemoryStore(":memory:", index=lying) as store:
        with pytest.raises(EmbedderMismatch, match=r"of 2 numbers, index\['dims'\] says 3"):
            store.put(N, "k", {"text": "x"})
        assert store.get(N, "k") is None


@pytest.mark.parametrize("vectors", [[[float("nan"), 1.0]], [[1.0, 2.0]] * 3, []])
def test_vectors_that_cannot_be_are_refused(vectors: Any) -> None:
    with (
        SqliteMemoryStore(":memory:", index={"dims": 2, "embed": lambda _: vectors, "fields": ["text"]}) as store,
        pytest.raises(InvalidInput),
    ):
        store.put(N, "k", {"text": "x"})


def test_dims_may_be_left_to_the_embedder(tmp_path: Path) -> None:
    learned: Any = {"embed": lambda texts: [[1.0, float(len(t))] for t in texts], "fields": ["text"]}
    with SqliteMemoryStore(tmp_path / "a.db", index=learned) as store:
        store.put(N, "k", {"text": "x"})
        assert store.doctor().dims == 2


def test_names_tell_embedders_apart_and_hold_in_every_process() -> None:
    class Model(Embeddings):
        def __init__(self, model: str) -> None:
            self.model = model

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[1.0] for _ in texts]

        def embed_query(self, text: str) -> list[float]:
            return [1.0]

    assert name_of(HashEmbeddings(64)) == "hash-64"
    assert name_of(Model("small")) == f"{__name__}.{Model.__qualname__}:small"
    assert name_of(name_of) == "langmem_adapter.stores.embedder.name_of"


def made(sign: float) -> Any:
    def embed(texts: list[str], sign: float = sign) -> list[list[float]]:
        return [[sign * x for x in v] for v in HashEmbeddings(64).embed_documents(texts)]

    return {"lambda": lambda texts: embed(texts), "partial": functools.partial(embed), "closure": embed}


@pytest.mark.parametrize("kind", ["lambda", "partial", "closure"])
def test_embedders_of_one_name_are_told_apart_by_what_they_give(tmp_path: Path, kind: str) -> None:
    def opened(sign: float) -> SqliteMemoryStore:
        return SqliteMemoryStore(tmp_path / "a.db", index={"dims": 64, "embed": made(sign)[kind], "fields": ["text"]})

    with opened(1.0) as store:
        store.put(N, "k", {"text": "cat"})
        store.put(N, "k2", {"text": "dog"})
    with opened(1.0) as store:
        assert store.search(N, query="cat")[0].key == "k"
        store.put(N, "k3", {"text": "cow"})
    with opened(-50.0) as other:
        for use in (lambda: other.search(N, query="cat"), lambda: other.put(N, "k", {"text": "cat"}), other.reindex):
            with pytest.raises(EmbedderMismatch, match="other numbers"):
                use()
        assert "other numbers" in other.doctor().problems[0]


def test_a_wrapper_is_named_with_what_it_wraps() -> None:
    class Wrapper(Embeddings):
        def __init__(self, inner: Embeddings) -> None:
            self.inner = inner

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return self.inner.embed_documents(texts)

        def embed_query(self, text: str) -> list[float]:
            return self.inner.embed_query(text)

    assert name_of(Wrapper(HashEmbeddings(64))) == f"{__name__}.{Wrapper.__qualname__}(hash-64)"
    assert name_of(functools.partial(name_of, 1)) == "partial(langmem_adapter.stores.embedder.name_of)"


def test_an_index_added_later_is_missed_by_the_doctor_and_made_by_reindexing(tmp_path: Path) -> None:
    with SqliteMemoryStore(tmp_path / "a.db") as store:
        store.put(N, "k", {"text": "cat"})
    with SqliteMemoryStore(tmp_path / "a.db", index=index(), mode="vector") as store:
        assert (store.doctor().not_embedded, len(store.doctor().problems)) == (1, 1)
        assert store.reindex() == 1
        assert store.doctor().problems == ()
        assert store.search(N, query="cat")[0].score is not None


def test_other_fields_are_missed_by_the_doctor_and_renewed_by_reindexing(tmp_path: Path) -> None:
    with SqliteMemoryStore(tmp_path / "a.db", index=index()) as store:
        store.put(N, "k", {"text": "hello there", "note": "zebra"})
        store.put(N, "own", {"text": "hello there", "note": "lion"}, index=["text"])
        store.put(N, "not", {"text": "hello there", "note": "lion"}, index=False)
    with SqliteMemoryStore(tmp_path / "a.db", index=index(fields=["note"]), mode="vector") as store:
        (problem,) = store.doctor().problems
        assert "['text']" in problem
        assert "['note']" in problem
        assert store.reindex() == 1
        assert store.search(N, query="zebra")[0].score == pytest.approx(1.0)
        assert store.doctor().problems == ()
        assert store.reindex() == 0


def test_another_embedder_takes_over_by_reindexing(tmp_path: Path) -> None:
    filled(tmp_path / "a.db", 250)
    seen: list[tuple[int, int]] = []
    with SqliteMemoryStore(tmp_path / "a.db", index=index(64), replace_embedder=True, mode="vector") as store:
        assert store.doctor().not_embedded == 250
        assert store.search(N, query="cat 7 eats fish")[0].score is None
        assert store.reindex(progress=lambda done, total: seen.append((done, total))) == 250
        assert seen == [(100, 250), (200, 250), (250, 250)]
        assert store.search(N, query="cat 7 eats fish")[0].score == pytest.approx(1.0)
        assert store.doctor().problems == ()
        assert store.reindex() == 0
    with pytest.raises(EmbedderMismatch):
        SqliteMemoryStore(tmp_path / "a.db", index=index(256))


def test_an_interrupted_reindexing_continues_where_it_was(tmp_path: Path) -> None:
    filled(tmp_path / "a.db", 250)

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with (
        SqliteMemoryStore(tmp_path / "a.db", index=index(64), replace_embedder=True) as store,
        pytest.raises(KeyboardInterrupt),
    ):
        store.reindex(progress=stop)
    with SqliteMemoryStore(tmp_path / "a.db", index=index(64)) as store:
        assert store.reindex() == 150


async def test_reads_and_writes_go_on_while_reindexing(tmp_path: Path) -> None:
    filled(tmp_path / "a.db", 250)
    with SqliteMemoryStore(tmp_path / "a.db", index=index(64), replace_embedder=True, mode="vector") as store:

        def meanwhile(done: int, total: int) -> None:
            assert store.get(N, "k0") is not None
            assert len([i for i in store.search(N, query="fish", limit=500) if i.score is not None]) >= done
            store.put(N, "k249", {"text": "changed meanwhile"})
            store.delete(N, "k248")

        assert await store.areindex(progress=meanwhile) in (248, 249)
        assert store.search(N, query="changed meanwhile")[0].key == "k249"
        assert store.doctor().problems == ()


def test_reindexing_keeps_versions_and_skips_what_is_not_to_be_indexed(tmp_path: Path) -> None:
    with SqliteMemoryStore(tmp_path / "a.db") as store:
        store.put(N, "plain", {"text": "cat"})
        store.put(N, "own", {"note": "zebra"}, index=["note"])
        store.put(N, "hidden", {"text": "cat"}, index=False)
    with SqliteMemoryStore(tmp_path / "a.db", index=index(), mode="vector") as store:
        before = store.read([], versions=[N])[1]
        assert store.reindex() == 2
        assert store.read([], versions=[N])[1] == before
        assert store.search(N, query="zebra")[0].key == "own"
        assert [i.key for i in store.search(N, query="cat") if i.score is None] == ["hidden"]


def test_a_process_that_still_has_the_old_embedder_is_told_so(tmp_path: Path) -> None:
    filled(tmp_path / "a.db")
    with (
        SqliteMemoryStore(tmp_path / "a.db", index=index()) as old,
        SqliteMemoryStore(tmp_path / "a.db", index=index(64), replace_embedder=True) as new,
    ):
        new.reindex()
        with pytest.raises(EmbedderMismatch):
            old.put(N, "k", {"text": "x"})
        for use in (lambda: old.search(N, query="fish"), old.reindex):
            with pytest.raises(EmbedderMismatch, match="hash-64"):
                use()
        assert [p for p in old.doctor().problems if "was replaced" in p]
        old.put(N, "plain", {"text": "x"}, index=False)
        assert old.get(N, "k0") is not None
        assert len(old.search(N)) == 6


@pytest.mark.parametrize(
    "bad",
    [
        {"dims": 0, "embed": HashEmbeddings()},
        {"dims": 2},
        {"dims": 2, "embed": HashEmbeddings(), "distance_type": "l2"},
    ],
)
def test_an_index_that_cannot_work_is_refused(bad: Any) -> None:
    with pytest.raises(ValueError):
        SqliteMemoryStore(":memory:", index=bad)
