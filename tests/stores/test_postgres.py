"""The contract suite on PostgreSQL: as a superuser, guarded and partitioned, and without pgvector."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, ClassVar

import pytest
from stores.postgres_fixtures import *  # noqa: F403

from langmem_adapter.stores.postgres import PostgresMemoryStore
from langmem_adapter.testing import StoreContract

MakeStore = Callable[..., PostgresMemoryStore]

NO_NUL: Any = dict.fromkeys(
    ("test_what_is_put_can_be_got", "test_a_text_with_a_nul_is_compared_to_its_end"),
    "PostgreSQL holds no NUL: ValueError",
)


class TestPostgres(StoreContract):
    deviations: ClassVar = NO_NUL

    @pytest.fixture
    def make_store(self, open_store: MakeStore) -> MakeStore:
        return open_store


class TestGuardedAndPartitioned(StoreContract):
    """Row-level security on, as a role that it holds for, and four partitions."""

    deviations: ClassVar = NO_NUL

    @pytest.fixture
    def make_store(self, restricted: str, schema: str) -> Iterator[MakeStore]:
        with ExitStack() as stack:
            yield lambda **config: stack.enter_context(
                PostgresMemoryStore(restricted, schema=schema, rls=True, partitions=4, **config)
            )


class TestWithoutPgvector(StoreContract):
    deviations: ClassVar = NO_NUL

    @pytest.fixture
    def make_store(self, restricted_bare: str, schema: str) -> Iterator[MakeStore]:
        with ExitStack() as stack:
            yield lambda **config: stack.enter_context(PostgresMemoryStore(restricted_bare, schema=schema, **config))
