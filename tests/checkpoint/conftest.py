"""Checkpointers on real files, and what the tests put into them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


def config(thread_id: str = "t1", **more: Any) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread_id, **more}}
