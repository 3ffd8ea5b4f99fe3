"""A store in a temporary file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from langmem_adapter.stores.sqlite import SqliteMemoryStore


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[SqliteMemoryStore]:
    with SqliteMemoryStore(tmp_path / "memory.db") as store:
        yield store
