"""`StoreContract`: what a LangGraph store promises, as tests that any store can subclass.

class TestMyStore(StoreContract):
    @pytest.fixture
    def make_store(self, tmp_path):
        return lambda **config: MyStore(tmp_path / "store", **config)
"""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pytest
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)

from langmem_adapter.embeddings import HashEmbeddings

MakeStore = Callable[..., BaseStore]
QUOTED = 'it\'s "q" \\ \n é'
BAD_NAMESPACES: tuple[Any, ...] = ((), ("langgraph",), ("langgraph", "x"), ("a", ""), ("a.b",), ("a", "b\0"), ("a", 1))


class StoreContract:
    """What any LangGraph store must do; each test is one promise. Subclass it and override `make_store`.

    `deviations` lists the promises a store is known to break, by the name of the test, with the reason; a listed
    test must fail.
    """

    deviations: ClassVar[Mapping[str, str]] = {}

    @pytest.fixture
    def make_store(self) -> MakeStore:
        """A function `(index=…, ttl=…) -> store`; every call within a test may give the same data or fresh data."""
        raise NotImplementedError("override the make_store fixture")

    @pytest.fixture
    def store(self, make_store: MakeStore) -> BaseStore:
        """A store without an index."""
        return make_store()

    @pytest.fixture
    def indexed(self, make_store: MakeStore) -> BaseStore:
        """A store that embeds the field `text`."""
        return make_store(index={"dims": 256, "embed": HashEmbeddings(), "fields": ["text"]})

    @pytest.fixture
    def colors(self, store: BaseStore) -> BaseStore:
        """A store with items to filter."""
        meta = {"a": 1, "b": [1]}
        items: dict[str, dict[str, Any]] = {
            "a": {"color": "red", "n": 1, "ok": True, "tags": ["x", "y"], "meta": meta, "at": "2025-01-01"},
            "b": {"color": "red", "n": 2, "ok": False, "tags": ["x"], "meta": {"a": 1}, "at": "2025-07-01"},
            "c": {"color": "blue", "n": 9, "meta": {"z": {"y": 3}}},
            "d": {"color": "RED", "n": 10.5, "ok": None, "tags": "x"},
            "e": {"q": QUOTED, "meta": "text"},
        }
        for key, value in items.items():
            store.put(("n",), key, value)
        return store

    @pytest.fixture(autouse=True)
    def _listed(self, request: pytest.FixtureRequest) -> None:
        name = request.node.name
        reason = self.deviations.get(name) or self.deviations.get(getattr(request.node, "originalname", name))
        if reason is not None:
            request.applymarker(pytest.mark.xfail(reason=reason, strict=True))

    # items

    def test_what_is_put_can_be_got(self, store: BaseStore) -> None:
        value = {"s": "é猫\n\0", "i": 1, "f": 0.1, "big": 2**70, "n": None, "b": True, "l": [1, {"x": []}], "d": {}}
        store.put(("a", "b"), "k", value)
        item = store.get(("a", "b"), "k")
        assert item is not None
        assert (item.namespace, item.key, item.value) == (("a", "b"), "k", value)

    def test_an_unknown_item_is_none(self, store: BaseStore) -> None:
        store.put(("a",), "k", {"x": 1})
        assert store.get(("a",), "other") is None
        assert store.get(("b",), "k") is None

    def test_a_put_replaces_the_whole_value(self, store: BaseStore) -> None:
        store.put(("a",), "k", {"x": 1, "y": 2})
        store.put(("a",), "k", {"x": 3})
        assert _value(store, ("a",), "k") == {"x": 3}

    def test_a_deleted_item_is_gone(self, store: BaseStore) -> None:
        store.put(("a",), "k", {"x": 1})
        store.delete(("a",), "k")
        store.delete(("a",), "never there")
        assert store.get(("a",), "k") is None
        assert store.search(("a",)) == []

    def test_created_at_survives_an_update_and_updated_at_moves(self, store: BaseStore) -> None:
        store.put(("a",), "k", {"x": 1})
        first = store.get(("a",), "k")
        time.sleep(0.002)
        store.put(("a",), "k", {"x": 2})
        second = store.get(("a",), "k")
        assert first is not None
        assert second is not None
        assert second.created_at == first.created_at
        assert second.updated_at > first.updated_at

    def test_times_are_utc_aware_with_microseconds(self, store: BaseStore) -> None:
        before = datetime.now(UTC)
        store.put(("a",), "k", {"x": 1})
        item = store.get(("a",), "k")
        assert item is not None
        for at in (item.created_at, item.updated_at):
            assert at.utcoffset() == timedelta(0)
            assert before - timedelta(milliseconds=1) <= at <= datetime.now(UTC)

    def test_values_never_alias_stored_state(self, store: BaseStore) -> None:
        value: dict[str, Any] = {"l": [1]}
        store.put(("a",), "k", value)
        value["l"].append(2)
        got = store.get(("a",), "k")
        assert got is not None
        assert got.value == {"l": [1]}
        got.value["l"].append(3)
        store.search(("a",))[0].value["l"].append(4)
        assert _value(store, ("a",), "k") == {"l": [1]}

    def test_items_can_be_dumped_as_json(self, store: BaseStore) -> None:
        store.put(("a",), "k", {"x": 1})
        item = store.get(("a",), "k")
        assert item is not None
        assert json.loads(json.dumps(item.dict()))["value"] == {"x": 1}
        assert json.loads(json.dumps(store.search(("a",))[0].dict()))["score"] is None

    def test_a_store_is_always_true(self, store: BaseStore) -> None:
        assert bool(store)
        assert not hasattr(store, "__len__")

    # batches

    def test_results_keep_the_order_of_the_ops(self, store: BaseStore) -> None:
        for k in "abc":
            store.put(("n",), k, {"k": k})
        ops: list[Any] = [GetOp(("n",), "c"), PutOp(("n",), "d", {"k": "d"}), GetOp(("n",), "x"), GetOp(("n",), "a")]
        found = [getattr(r, "key", None) for r in store.batch(ops)]
        assert found == ["c", None, None, "a"]

    def test_a_batch_sees_the_state_before_it(self, store: BaseStore) -> None:
        store.put(("n",), "k", {"x": 1})
        puts: list[Any] = [PutOp(("n",), "k", {"x": 2}), PutOp(("m",), "k", {})]
        results: list[Any] = store.batch([*puts, GetOp(("n",), "k"), SearchOp(("n",)), ListNamespacesOp()])
        _, _, got, found, listed = results
        assert got.value == {"x": 1}
        assert [i.value for i in found] == [{"x": 1}]
        assert listed == [("n",)]
        assert _value(store, ("n",), "k") == {"x": 2}

    def test_the_last_write_to_a_key_counts(self, store: BaseStore) -> None:
        store.batch([PutOp(("n",), "k", {"x": i}) for i in range(3)])
        assert _value(store, ("n",), "k") == {"x": 2}
        store.batch([PutOp(("n",), "k", {"x": 9}), PutOp(("n",), "k", None)])
        assert store.get(("n",), "k") is None

    def test_a_failed_batch_changes_nothing(self, store: BaseStore) -> None:
        with pytest.raises((TypeError, ValueError)):
            store.batch([PutOp(("n",), "a", {"x": 1}), PutOp(("n",), "b", {"x": object()})])
        assert store.get(("n",), "a") is None
        assert store.list_namespaces() == []

    def test_an_empty_batch_is_empty(self, store: BaseStore) -> None:
        assert store.batch([]) == []

    def test_an_unknown_op_is_refused(self, store: BaseStore) -> None:
        with pytest.raises(ValueError, match="Unknown operation"):
            store.batch(["get"])  # type: ignore[list-item]

    # namespaces

    @pytest.mark.parametrize("namespace", BAD_NAMESPACES, ids=repr)
    def test_put_refuses_bad_namespaces(self, store: BaseStore, namespace: Any) -> None:
        with pytest.raises(InvalidNamespaceError):
            store.put(namespace, "k", {})

    @pytest.mark.parametrize("namespace", BAD_NAMESPACES, ids=repr)
    def test_a_batch_refuses_bad_namespaces(self, store: BaseStore, namespace: Any) -> None:
        with pytest.raises(InvalidNamespaceError):
            store.batch([PutOp(namespace, "k", {})])

    def test_a_batch_refuses_bad_labels_in_reads(self, store: BaseStore) -> None:
        bad: list[Any] = [GetOp(("a.b",), "k"), SearchOp(("a", "")), _list_op("prefix", ("a.b",))]
        for op in bad:
            with pytest.raises(InvalidNamespaceError):
                store.batch([op])

    def test_searching_below_nothing_searches_everything(self, store: BaseStore) -> None:
        store.put(("a",), "k", {})
        store.put(("b", "c"), "k", {})
        assert {i.namespace for i in store.search(())} == {("a",), ("b", "c")}

    def test_prefixes_match_whole_labels(self, store: BaseStore) -> None:
        for namespace in (("a",), ("ab",), ("a", "b"), ("a-b",), ("a", "b", "c")):
            store.put(namespace, "k", {})
        assert {i.namespace for i in store.search(("a",))} == {("a",), ("a", "b"), ("a", "b", "c")}
        assert store.list_namespaces(prefix=("a", "b")) == [("a", "b"), ("a", "b", "c")]

    def test_wildcards_of_databases_in_labels_match_only_themselves(self, store: BaseStore) -> None:
        labels = ("john_doe", "john-doe", "u%", "ux", "U%", "u*", "[a]", "a'b", "Ä", "ä")
        for label in labels:
            store.put(("n", label), "k", {})
        for label in labels:
            assert [i.namespace for i in store.search(("n", label))] == [("n", label)]
            assert store.list_namespaces(prefix=("n", label)) == [("n", label)]

    def test_prefixes_may_be_lists(self, store: BaseStore) -> None:
        store.put(("a", "b"), "k", {})
        assert len(store.search(["a"])) == 1  # type: ignore[arg-type]
        assert store.list_namespaces(prefix=["a"]) == [("a", "b")]  # type: ignore[arg-type]

    def test_namespaces_are_listed_by_prefix_suffix_and_wildcard(self, store: BaseStore) -> None:
        for namespace in (("a", "b", "v1"), ("a", "c", "v1"), ("a", "c", "v2"), ("x", "b", "v1")):
            store.put(namespace, "k", {})
        assert store.list_namespaces(suffix=("v1",)) == [("a", "b", "v1"), ("a", "c", "v1"), ("x", "b", "v1")]
        assert store.list_namespaces(prefix=("a", "*", "v1")) == [("a", "b", "v1"), ("a", "c", "v1")]
        assert store.list_namespaces(prefix=("*", "b")) == [("a", "b", "v1"), ("x", "b", "v1")]
        assert store.list_namespaces(suffix=("c", "*")) == [("a", "c", "v1"), ("a", "c", "v2")]
        assert store.list_namespaces(prefix=("a",), suffix=("v2",)) == [("a", "c", "v2")]
        assert store.list_namespaces(prefix=("a", "b", "v1", "x")) == []

    def test_listed_namespaces_are_cut_at_max_depth_and_paged(self, store: BaseStore) -> None:
        for namespace in (("a", "b"), ("a", "c", "d"), ("a", "c", "e"), ("b",)):
            store.put(namespace, "k", {})
        assert store.list_namespaces(max_depth=2) == [("a", "b"), ("a", "c"), ("b",)]
        assert store.list_namespaces(limit=2, offset=1) == [("a", "c", "d"), ("a", "c", "e")]
        assert store.list_namespaces(max_depth=1, limit=1, offset=1) == [("b",)]

    def test_reads_and_deletes_leave_no_ghost_namespaces(self, store: BaseStore) -> None:
        store.get(("ghost",), "k")
        store.search(("ghost", "b"))
        store.delete(("ghost",), "k")
        store.put(("was",), "k", {})
        store.delete(("was",), "k")
        assert store.list_namespaces() == []

    # search without a query

    def test_a_page_continues_where_the_last_one_ended(self, store: BaseStore) -> None:
        for i in range(25):
            store.put(("n",), f"k{i}", {"i": i})
        pages = [[i.key for i in store.search(("n",), limit=10, offset=o)] for o in (0, 10, 20, 30)]
        assert [len(p) for p in pages] == [10, 10, 5, 0]
        assert len({k for p in pages for k in p}) == 25

    def test_the_last_updated_item_comes_first(self, store: BaseStore) -> None:
        for k in "abc":
            store.put(("n",), k, {})
        store.put(("n",), "a", {})
        assert [i.key for i in store.search(("n",))] == ["a", "c", "b"]

    # filters

    @pytest.mark.parametrize(
        ("filter", "keys"),
        [
            ({"color": "red"}, "ab"),
            ({"color": "red", "n": 2}, "b"),
            ({"n": 1.0}, "a"),
            ({"n": {"$eq": 2}}, "b"),
            ({"n": {"$ne": 2}}, "acde"),
            ({"ok": True}, "a"),
            ({"ok": False}, "b"),
            ({"ok": None}, "cde"),
            ({"tags": ["x", "y"]}, "a"),
            ({"tags": {"$eq": ["x"]}}, "b"),
            ({"meta": {"b": [1], "a": 1}}, "a"),
            ({"meta": {"$ne": {"a": 1, "b": [1]}}}, "bcde"),
            ({"missing": "x"}, ""),
            ({"n": "1"}, ""),
            ({"color": "r%"}, ""),
            ({"q": QUOTED}, "e"),
            ({}, "abcde"),
            (None, "abcde"),
        ],
        ids=repr,
    )
    def test_equality_filters_select(self, colors: BaseStore, filter: dict[str, Any] | None, keys: str) -> None:
        assert {i.key for i in colors.search(("n",), filter=filter)} == set(keys)

    @pytest.mark.parametrize(
        ("filter", "keys"),
        [
            ({"n": {"$gt": 2}}, "cd"),
            ({"n": {"$gte": 2, "$lt": 10}}, "bc"),
            ({"n": {"$lte": 9}}, "abc"),
            ({"n": {"$gt": 9}}, "d"),
            ({"at": {"$gte": "2025-06-01"}}, "b"),
            ({"missing": {"$gt": 0}}, ""),
            ({"missing": {"$lt": 0}}, ""),
            ({"color": {"$gt": 1}}, ""),
        ],
        ids=repr,
    )
    def test_ordering_filters_compare_like_with_like(
        self, colors: BaseStore, filter: dict[str, Any], keys: str
    ) -> None:
        assert {i.key for i in colors.search(("n",), filter=filter)} == set(keys)

    def test_a_text_with_a_nul_is_compared_to_its_end(self, store: BaseStore) -> None:
        store.put(("n",), "1", {"a": "x\0y"})
        store.put(("n",), "2", {"a": "x"})
        store.put(("n",), "3", {"a": 1, "b": "\\u0000"})
        expected: list[tuple[Any, set[str]]] = [
            ("x", {"2"}),
            ("x\0y", {"1"}),
            ({"$ne": "x"}, {"1", "3"}),
            ({"$ne": "x\0y"}, {"2", "3"}),
            ({"$gt": "x"}, {"1"}),
            ({"$gte": "x"}, {"1", "2"}),
            ({"$lt": "x\0y"}, {"2"}),
            ({"$lte": "x\0y"}, {"1", "2"}),
        ]
        for wanted, keys in expected:
            assert {i.key for i in store.search(("n",), filter={"a": wanted})} == keys, wanted

    @pytest.mark.parametrize(
        ("filter", "keys"), [({"meta.a": 1}, "ab"), ({"meta.a": {"$gt": 0}}, "ab"), ({"meta.z.y": 3}, "c")], ids=repr
    )
    def test_dotted_filter_keys_follow_paths(self, colors: BaseStore, filter: dict[str, Any], keys: str) -> None:
        assert {i.key for i in colors.search(("n",), filter=filter)} == set(keys)

    @pytest.mark.parametrize(
        "filter",
        [{"n": {"$in": [1]}}, {"n": {"$regex": "x"}}, {"n": {"$gt": 1, "$between": 2}}, {"n": {"$gt": 1, "x": 2}}],
        ids=repr,
    )
    def test_unknown_operators_are_refused(self, store: BaseStore, filter: dict[str, Any]) -> None:
        store.put(("n",), "k", {"n": 5})
        with pytest.raises(ValueError):
            store.search(("n",), filter=filter)

    @pytest.mark.parametrize(
        "key", ["$or", "$and", "a'b", 'a"b', "a b", "a..b", ".a", "a.", "", "a\0", "a\n", "a[0]", "a') OR 1=1 --"]
    )
    def test_bad_filter_keys_are_refused(self, store: BaseStore, key: str) -> None:
        store.put(("n",), "k", {"n": 1})
        with pytest.raises(ValueError, match="Invalid filter key"):
            store.search(("n",), filter={key: 1})

    # search by meaning

    def test_the_nearest_item_comes_first_with_the_highest_score(self, indexed: BaseStore) -> None:
        _texts(indexed, fish="the cat eats fish", seat="an aisle seat on flights", car="a red car")
        found = indexed.search(("n",), query="cat eats fish")
        assert found[0].key == "fish"
        assert len(found) == 3
        scores = [i.score for i in found]
        assert all(s is not None for s in scores)
        assert scores == sorted(scores, key=lambda s: -(s or 0.0))
        assert (scores[0] or 0.0) > (scores[1] or 0.0)

    def test_only_the_configured_fields_are_searched(self, make_store: MakeStore) -> None:
        store = make_store(index={"dims": 256, "embed": HashEmbeddings(), "fields": ["text", "meta.title"]})
        store.put(("n",), "a", {"text": "apple", "other": "banana"})
        store.put(("n",), "b", {"text": "cherry", "meta": {"title": "banana"}})
        assert store.search(("n",), query="banana")[0].key == "b"

    def test_an_item_with_several_fields_comes_once(self, make_store: MakeStore) -> None:
        store = make_store(index={"dims": 256, "embed": HashEmbeddings(), "fields": ["parts[*]"]})
        store.put(("n",), "many", {"parts": ["red fish", "red fish soup", "red fish pie", "red fish cake"]})
        store.put(("n",), "one", {"parts": ["blue sky"]})
        assert [i.key for i in store.search(("n",), query="red fish", limit=2)] == ["many", "one"]
        assert [i.key for i in store.search(("n",), query="red fish", limit=1, offset=1)] == ["one"]

    def test_a_put_may_name_its_own_fields(self, indexed: BaseStore) -> None:
        indexed.put(("n",), "a", {"text": "apple", "note": "zebra"}, index=["note"])
        indexed.put(("n",), "b", {"text": "apple pie"})
        assert indexed.search(("n",), query="zebra")[0].key == "a"
        assert indexed.search(("n",), query="apple")[0].key == "b"

    def test_items_put_without_index_come_last_and_unscored(self, indexed: BaseStore) -> None:
        indexed.put(("n",), "hidden", {"text": "cat eats fish"}, index=False)
        indexed.put(("n",), "seen", {"text": "aisle seat"})
        assert [(i.key, i.score is None) for i in indexed.search(("n",), query="cat eats fish")] == [
            ("seen", False),
            ("hidden", True),
        ]

    def test_a_new_put_without_index_leaves_no_stale_vector(self, indexed: BaseStore) -> None:
        indexed.put(("n",), "k", {"text": "cat eats fish"})
        indexed.put(("n",), "k", {"text": "cat eats fish"}, index=False)
        assert [i.score for i in indexed.search(("n",), query="cat eats fish")] == [None]

    def test_a_deleted_item_is_not_found_by_meaning(self, indexed: BaseStore) -> None:
        _texts(indexed, a="cat eats fish", b="cat eats meat")
        indexed.search(("n",), query="cat")
        indexed.delete(("n",), "a")
        assert [i.key for i in indexed.search(("n",), query="cat eats fish")] == ["b"]
        indexed.put(("n",), "a", {"other": 1})
        assert [i.score is None for i in indexed.search(("n",), query="cat eats fish")] == [False, True]

    def test_a_changed_item_is_found_by_its_new_text_only(self, indexed: BaseStore) -> None:
        _texts(indexed, a="cat eats fish", b="aisle seat")
        indexed.search(("n",), query="cat")
        _texts(indexed, a="a red car")
        found = {i.key: i.score for i in indexed.search(("n",), query="cat eats fish")}
        assert (found["a"] or 0.0) < 0.3
        assert indexed.search(("n",), query="red car")[0].key == "a"

    def test_the_same_text_twice_in_a_batch_is_embedded_for_both(self, indexed: BaseStore) -> None:
        indexed.batch([PutOp(("n",), k, {"text": "cat eats fish"}) for k in "ab"])
        found = indexed.search(("n",), query="cat eats fish")
        assert {i.key for i in found} == {"a", "b"}
        assert found[0].score == found[1].score

    def test_a_query_pages_without_gaps(self, indexed: BaseStore) -> None:
        indexed.batch([PutOp(("n",), f"k{i}", {"text": f"cat number {i} eats fish"}) for i in range(30)])
        whole = [i.key for i in indexed.search(("n",), query="cat eats", limit=30)]
        paged = [i.key for o in range(0, 30, 7) for i in indexed.search(("n",), query="cat eats", limit=7, offset=o)]
        assert paged == whole
        assert len(set(whole)) == 30

    def test_a_query_respects_prefix_and_filter(self, indexed: BaseStore) -> None:
        for user in ("u1", "u10", "u2"):
            for kind in ("x", "y"):
                indexed.put(("m", user), kind, {"text": "cat eats fish", "kind": kind})
        found = indexed.search(("m", "u1"), query="cat eats fish", filter={"kind": "y"})
        assert [(i.namespace, i.key) for i in found] == [(("m", "u1"), "y")]
        assert len(indexed.search(("m",), query="cat", filter={"kind": {"$ne": "y"}})) == 3

    def test_embed_may_be_a_function(self, make_store: MakeStore) -> None:
        store = make_store(index={"dims": 256, "embed": HashEmbeddings().embed_documents, "fields": ["text"]})
        _texts(store, a="cat eats fish", b="aisle seat")
        assert store.search(("n",), query="fish")[0].key == "a"

    async def test_embed_may_be_an_async_function(self, make_store: MakeStore) -> None:
        async def embed(texts: Any) -> list[list[float]]:
            await asyncio.sleep(0)
            return HashEmbeddings().embed_documents(list(texts))

        store = make_store(index={"dims": 256, "embed": embed, "fields": ["text"]})
        await store.aput(("n",), "a", {"text": "cat eats fish"})
        await store.aput(("n",), "b", {"text": "aisle seat"})
        assert (await store.asearch(("n",), query="fish"))[0].key == "a"

    def test_one_failing_embedding_fails_the_whole_batch(self, make_store: MakeStore) -> None:
        def embed(texts: Any) -> list[list[float]]:
            if any("bad" in t for t in texts):
                raise RuntimeError("no embedding")
            return HashEmbeddings().embed_documents(list(texts))

        store = make_store(index={"dims": 256, "embed": embed, "fields": ["text"]})
        with pytest.raises(RuntimeError, match="no embedding"):
            store.batch([PutOp(("n",), "a", {"text": "good"}), PutOp(("n",), "b", {"text": "bad"})])
        assert store.search(("n",)) == []

    # time to live

    def test_a_ttl_is_refused_where_it_is_not_supported(self, store: BaseStore) -> None:
        if store.supports_ttl:
            pytest.skip("ttl is supported")
        with pytest.raises(NotImplementedError):
            store.put(("n",), "k", {}, ttl=1)

    def test_expired_items_are_in_no_read(self, indexed: BaseStore) -> None:
        _needs_ttl(indexed)
        indexed.put(("n",), "k", {"text": "cat eats fish"}, ttl=0.003)
        assert indexed.get(("n",), "k", refresh_ttl=False) is not None
        assert len(indexed.search(("n",), query="cat", refresh_ttl=False)) == 1
        time.sleep(0.25)
        assert indexed.get(("n",), "k") is None
        assert indexed.search(("n",)) == []
        assert indexed.search(("n",), query="cat eats fish") == []
        assert indexed.list_namespaces() == []

    def test_a_read_refreshes_the_ttl_unless_told_not_to(self, store: BaseStore) -> None:
        _needs_ttl(store)
        store.put(("n",), "read", {}, ttl=0.01)
        store.put(("n",), "found", {"f": 1}, ttl=0.01)
        store.put(("n",), "left", {}, ttl=0.01)
        time.sleep(0.4)
        assert store.get(("n",), "read") is not None
        assert store.search(("n",), filter={"f": 1}) != []
        assert store.get(("n",), "left", refresh_ttl=False) is not None
        time.sleep(0.4)
        assert [store.get(("n",), k) is not None for k in ("read", "found", "left")] == [True, True, False]

    def test_a_refresh_does_not_revive(self, store: BaseStore) -> None:
        _needs_ttl(store)
        store.put(("n",), "k", {}, ttl=0.002)
        time.sleep(0.2)
        assert store.get(("n",), "k", refresh_ttl=True) is None
        assert store.get(("n",), "k") is None

    def test_an_expired_item_put_again_is_new(self, store: BaseStore) -> None:
        _needs_ttl(store)
        store.put(("n",), "k", {"x": 1}, ttl=0.002)
        first = store.get(("n",), "k", refresh_ttl=False)
        time.sleep(0.2)
        store.put(("n",), "k", {"x": 2}, ttl=None)
        second = store.get(("n",), "k")
        assert first is not None
        assert second is not None
        assert second.created_at > first.created_at

    def test_an_omitted_ttl_is_the_default_and_none_is_never(self, make_store: MakeStore) -> None:
        store = make_store(ttl={"default_ttl": 0.002, "refresh_on_read": False})
        _needs_ttl(store)
        store.put(("n",), "default", {})
        store.put(("n",), "never", {}, ttl=None)
        time.sleep(0.2)
        assert [i.key for i in store.search(("n",))] == ["never"]

    def test_a_sweep_deletes_the_expired_and_says_how_many(self, store: BaseStore) -> None:
        _needs_ttl(store)
        store.put(("n",), "a", {}, ttl=0.001)
        store.put(("n",), "b", {}, ttl=0.001)
        store.put(("n",), "c", {}, ttl=10)
        time.sleep(0.15)
        assert store.sweep_ttl() == 2  # type: ignore[attr-defined]
        assert store.sweep_ttl() == 0  # type: ignore[attr-defined]
        assert [i.key for i in store.search(("n",))] == ["c"]

    # sync, async, threads

    async def test_every_method_has_its_async_twin(self, indexed: BaseStore) -> None:
        await indexed.aput(("n",), "a", {"text": "cat eats fish"})
        item = await indexed.aget(("n",), "a")
        assert item is not None
        assert item.value == {"text": "cat eats fish"}
        assert [i.key for i in await indexed.asearch(("n",), query="fish")] == ["a"]
        assert await indexed.alist_namespaces() == [("n",)]
        await indexed.adelete(("n",), "a")
        assert await indexed.aget(("n",), "a") is None
        assert await indexed.abatch([]) == []

    async def test_an_async_batch_refuses_what_a_batch_refuses(self, store: BaseStore) -> None:
        with pytest.raises(InvalidNamespaceError):
            await store.abatch([PutOp(("langgraph",), "k", {})])

    def test_one_object_serves_several_event_loops_and_threads(self, store: BaseStore) -> None:
        async def write(name: str) -> None:
            await asyncio.gather(*(store.aput(("n",), f"{name}{i}", {}) for i in range(10)))

        def work(name: str) -> None:
            asyncio.run(write(name))
            for i in range(10):
                store.put(("n",), f"{name}-sync{i}", {})

        threads = [threading.Thread(target=work, args=(f"t{i}",)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert len(store.search(("n",), limit=100)) == 80

    async def test_many_tasks_at_once_lose_nothing(self, store: BaseStore) -> None:
        await asyncio.gather(*(store.aput(("n", str(i % 7)), f"k{i}", {"i": i}) for i in range(100)))
        found = await asyncio.gather(*(store.aget(("n", str(i % 7)), f"k{i}") for i in range(100)))
        assert [f.value["i"] for f in found if f is not None] == list(range(100))

    # what may not wait, and what may not be torn

    def test_a_background_sweeper_deletes_what_expired(self, store: BaseStore) -> None:
        _needs_ttl(store)
        if not hasattr(store, "start_ttl_sweeper"):
            pytest.skip("it has no background sweeper")
        store.start_ttl_sweeper(0.0005)
        try:
            for _ in range(50):
                store.put(("n",), "k", {}, ttl=0.0005)
                time.sleep(0.1)
                threading.Event().wait(0.1)  # also where a test has put a clock of its own in the place of time
                if store.sweep_ttl() == 0:  # type: ignore[attr-defined]
                    return
        finally:
            assert store.stop_ttl_sweeper(30)  # type: ignore[attr-defined]
        pytest.fail("it left all expired items to others")

    async def test_a_cancelled_batch_happened_as_a_whole_or_not_at_all(self, store: BaseStore) -> None:
        for n in range(20):
            task = asyncio.create_task(store.abatch([PutOp(("n",), k, {"n": n}) for k in "abc"]))
            await asyncio.sleep(n * 0.0005)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            found = [i.value["n"] for i in await store.asearch(("n",))]
            assert found in ([], [found[0]] * 3 if found else [])

    def test_embedding_keeps_no_other_call_waiting(self, make_store: MakeStore) -> None:
        embed = _Hanging()
        store = make_store(index={"dims": 256, "embed": embed.texts, "fields": ["text"]})
        store.put(("n",), "there", {"text": "quick"})
        slow = threading.Thread(target=store.put, args=(("n",), "k", {"text": "slow"}))
        slow.start()
        found: list[Any] = []

        def meanwhile() -> None:
            store.put(("n",), "plain", {"text": "x"}, index=False)
            found.extend(store.get(("n",), key) is not None for key in ("there", "plain", "k"))

        other = threading.Thread(target=meanwhile, daemon=True)
        assert embed.began.wait(60)
        other.start()
        other.join(20)
        try:
            assert found == [True, True, False]
        finally:
            embed.go.set()
            slow.join()
        assert store.get(("n",), "k") is not None

    async def test_embedding_does_not_block_the_event_loop(self, make_store: MakeStore) -> None:
        embed = _Hanging()
        store = make_store(index={"dims": 256, "embed": embed.texts, "fields": ["text"]})
        await store.aput(("n",), "there", {"text": "quick"})
        slow = [asyncio.create_task(store.aput(("n",), f"k{i}", {"text": "slow"})) for i in range(8)]
        assert await asyncio.to_thread(embed.began.wait, 60)
        assert await store.aget(("n",), "there") is not None
        assert not any(t.done() for t in slow)
        embed.go.set()
        await asyncio.gather(*slow)
        assert len(await store.asearch(("n",))) == 9


class _Hanging:
    """An embedder that waits to be let `go` when it meets the text "slow"; a blocked event loop never lets it."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.go = threading.Event()

    def texts(self, texts: Any) -> list[list[float]]:
        if "slow" in texts:
            self.began.set()
            if not self.go.wait(20):
                raise TimeoutError("nobody went on while this was embedding")
        return HashEmbeddings().embed_documents(list(texts))


def _value(store: BaseStore, namespace: tuple[str, ...], key: str) -> Any:
    item = store.get(namespace, key)
    return None if item is None else item.value


def _texts(store: BaseStore, **texts: str) -> None:
    store.batch([PutOp(("n",), key, {"text": text}) for key, text in texts.items()])


def _list_op(kind: Any, path: tuple[str, ...]) -> ListNamespacesOp:
    return ListNamespacesOp(match_conditions=(MatchCondition(kind, path),))


def _needs_ttl(store: BaseStore) -> None:
    if not store.supports_ttl:
        pytest.skip("ttl is not supported")
