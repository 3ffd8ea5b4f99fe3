"""Checkpointers on real files."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from langmem_adapter.checkpoint.sqlite import SqliteCheckpointer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the file is."""
    return tmp_path / "checkpoints.db"


@pytest.fixture
def saver(path: Path) -> Iterator[SqliteCheckpointer]:
    """A checkpointer on a new file."""
    with SqliteCheckpointer(path) as opened:
        yield opened
