"""A file of every released schema is migrated whole, also if the process dies at any statement; a newer is refused."""

import itertools
import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from queue_processes import process
from stores.test_sqlite_keeping import FIXTURES
from support import SOAK

from langmem_adapter.errors import StoreTooNew
from langmem_adapter.memory import Memory
from langmem_adapter.stores import connections, schema
from langmem_adapter.stores.sqlite import SqliteMemoryStore

RELEASED = range(1, len(schema.MIGRATIONS))
"""Those that are migrated."""


def old(path: Path, released: int) -> None:
    conn = sqlite3.connect(path)
    conn.executescript((FIXTURES / f"schema_{released}.sql").read_text())
    conn.close()


def everything(path: Path) -> Any:
    """Every item with its times, and the versions."""
    with SqliteMemoryStore(path, clock=lambda: 1_700_000_130.0) as store:
        assert store.doctor(deep=True).integrity == ()
        items = [(i.namespace, i.key, i.value, i.created_at, i.updated_at) for i in store.search((), limit=1_000)]
        return items, store.read([], versions=store.list_namespaces())[1], store.store_id


def open_and_die(path: Path, number: int) -> None:
    """Open a memory, and die by SIGKILL before the statement of this number that opening it runs."""
    numbers = itertools.count()

    def trace(statement: str) -> None:
        if next(numbers) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    connect = sqlite3.connect

    def traced(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        conn = connect(*args, **kwargs)
        conn.set_trace_callback(trace)
        return conn

    connections.sqlite3.connect = traced  # type: ignore[attr-defined]
    SqliteMemoryStore(path).close()


@pytest.mark.skipif(sys.platform == "win32", reason="needs kill -9 and a forkserver")
@pytest.mark.parametrize("released", RELEASED)
def test_a_migration_that_dies_at_any_statement_can_be_started_again(
    released: int, tmp_path: Path, tried: Callable[[str], None]
) -> None:
    old(tmp_path / "old.db", released)
    shutil.copy(tmp_path / "old.db", tmp_path / "done.db")
    whole = everything(tmp_path / "done.db")
    assert len(whole[0]) > 3
    deaths = 0
    for number in range(0, 400, 1 if SOAK else 3):
        path = tmp_path / f"{number}.db"
        shutil.copy(tmp_path / "old.db", path)
        child = process(open_and_die, path, number)
        child.join(60)
        if child.exitcode == 0:
            break
        assert child.exitcode == -signal.SIGKILL
        deaths += 1
        conn = sqlite3.connect(path)
        found = conn.execute("SELECT value FROM memory_meta WHERE key = 'schema'").fetchone()
        conn.close()
        assert found in ((str(released),), (str(len(schema.MIGRATIONS)),))  # nothing in between
        assert everything(path) == whole
    assert deaths > 5
    tried(f"{deaths} deaths while schema {released} became {len(schema.MIGRATIONS)}")


def test_a_memory_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path, tried: Callable[[str], None]) -> None:
    with Memory(tmp_path / "m.db") as memory:
        memory.add("I'm a vegetarian.", user_id="u")
    raw = sqlite3.connect(tmp_path / "m.db")
    raw.execute("UPDATE memory_meta SET value = '999' WHERE key = 'schema'")
    raw.commit()
    raw.close()
    before = (tmp_path / "m.db").read_bytes()
    with pytest.raises(StoreTooNew, match=r"m\.db has schema 999"):
        Memory(tmp_path / "m.db")
    assert (tmp_path / "m.db").read_bytes() == before
    tried("1 file of schema 999")
