"""The contract suite on the SQLite store, in a file and in memory, and on LangGraph's own InMemoryStore."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

import pytest
from langgraph.store.memory import InMemoryStore

from langmem_adapter.stores.sqlite import SqliteMemoryStore
from langmem_adapter.testing import MakeStore, StoreContract


class TestSqliteFile(StoreContract):
    @pytest.fixture
    def make_store(self, tmp_path: Path) -> Iterator[MakeStore]:
        with ExitStack() as stack:
            yield lambda **config: stack.enter_context(SqliteMemoryStore(tmp_path / "memory.db", **config))


class TestSqliteInMemory(StoreContract):
    @pytest.fixture
    def make_store(self) -> Iterator[MakeStore]:
        with ExitStack() as stack:
            yield lambda **config: stack.enter_context(SqliteMemoryStore(":memory:", **config))


class TestSqliteVectorMode(StoreContract):
    @pytest.fixture
    def make_store(self, tmp_path: Path) -> Iterator[MakeStore]:
        with ExitStack() as stack:
            yield lambda **config: stack.enter_context(SqliteMemoryStore(":memory:", mode="vector", **config))


class TestInMemoryStore(StoreContract):
    """LangGraph's reference store keeps most of the contract; the rest is listed."""

    deviations: ClassVar = {
        "test_created_at_survives_an_update_and_updated_at_moves": "an update resets created_at",
        "test_values_never_alias_stored_state": "it hands out the stored dict",
        "test_a_failed_batch_changes_nothing": "anything can be a value, so nothing fails",
        "test_a_batch_refuses_bad_namespaces": "only put() checks",
        "test_a_batch_refuses_bad_labels_in_reads": "only the methods check",
        "test_an_async_batch_refuses_what_a_batch_refuses": "only aput() checks",
        "test_prefixes_may_be_lists": "a list equals no tuple",
        "test_reads_and_deletes_leave_no_ghost_namespaces": "its defaultdict keeps what was asked for",
        "test_the_last_updated_item_comes_first": "items come in the order of their first put",
        "test_ordering_filters_compare_like_with_like": "float() of whatever is there, or of nothing",
        "test_a_text_with_a_nul_is_compared_to_its_end": "float() of a text",
        "test_dotted_filter_keys_follow_paths": "top-level keys only",
        "test_bad_filter_keys_are_refused": "any key is looked up",
        "test_a_new_put_without_index_leaves_no_stale_vector": "the old vector stays",
        "test_the_same_text_twice_in_a_batch_is_embedded_for_both": "it counts distinct texts against items",
    }

    @pytest.fixture
    def make_store(self) -> MakeStore:
        def make(index: Any = None, ttl: Any = None) -> InMemoryStore:
            return InMemoryStore(index=index)

        return make
