"""The contract suite on PostgreSQL, and what is peculiar to it."""

from typing import Any, ClassVar

import pytest
from stores.postgres_fixtures import *  # noqa: F403

from langmem_adapter.testing import MakeStore, StoreContract

NO_NUL: Any = {"test_what_is_put_can_be_got": "PostgreSQL holds no NUL: ValueError"}


class TestPostgres(StoreContract):
    deviations: ClassVar = NO_NUL

    @pytest.fixture
    def make_store(self, open_store: MakeStore) -> MakeStore:
        return open_store
