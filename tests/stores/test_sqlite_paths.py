"""A store stays with the file it was opened on, however its path was spelt and whatever happens to the folder."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint

from langmem_adapter.checkpoint.sqlite import SqliteCheckpointer
from langmem_adapter.errors import InvalidInput, StoreError
from langmem_adapter.stores.sqlite import SqliteMemoryStore

N = ("n",)
TEXT = "the secret is buried in Ghent"


def test_a_relative_path_means_the_same_file_after_a_change_of_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        with SqliteMemoryStore("memory.db") as store:
            store.put(N, "k", {"in": f"the folder called {name}"})
    for spelt in ("memory.db", "file:memory.db?mode=rw"):
        monkeypatch.chdir(tmp_path / "a")
        with SqliteMemoryStore(spelt) as store:
            monkeypatch.chdir(tmp_path / "b")
            item = store.get(N, "k")
            assert item is not None
            assert item.value == {"in": "the folder called a"}
            assert store.erase(N).searched[0] == str(tmp_path / "a" / "memory.db")
            store.put(N, "k", {"in": "the folder called a"})
    with SqliteMemoryStore(tmp_path / "b" / "memory.db") as store:
        assert [i.value for i in store.search(N)] == [{"in": "the folder called b"}]


def test_a_checkpointer_stays_with_its_file_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with SqliteCheckpointer("threads.db") as checkpointer:
        monkeypatch.chdir(tmp_path / "elsewhere")
        config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        checkpointer.put(config, empty_checkpoint(), {}, {})
        assert checkpointer.get_tuple(config) is not None
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize(
    "spelt",
    [
        lambda folder: folder / "a b#c?d%20.db",
        lambda folder: f"file:{folder}/u%20ri.db",
        lambda folder: f"file://{folder}/plain.db?mode=rwc#end",
    ],
)
def test_an_erasure_searches_the_file_that_sqlite_opened(tmp_path: Path, spelt: Callable[[Path], Any]) -> None:
    with SqliteMemoryStore(spelt(tmp_path)) as store:
        store.put(N, "k", {"t": TEXT})
        found = store.erase(N)
        assert (found.state, found.searched[0]) == ("done", str(next(tmp_path.glob("*.db"))))
        assert found.bytes_searched >= store.doctor().file_bytes > 0


def test_a_log_beside_the_target_of_a_link_is_searched_and_measured(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.db").symlink_to(tmp_path / "real" / "memory.db")
    with SqliteMemoryStore(tmp_path / "link.db") as store:
        store.put(N, "k", {"t": TEXT})
        assert store.doctor().wal_bytes > 0
        assert store.erase(N).searched == tuple(str(tmp_path / "real" / f"memory.db{end}") for end in ("", "-wal"))


def test_a_file_that_was_removed_or_replaced_is_not_written_or_made_again(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    for replace in (False, True):
        with SqliteMemoryStore(path) as store:
            store.put(N, "k", {"x": 1})
            for file in tmp_path.iterdir():
                file.unlink()
            if replace:
                with SqliteMemoryStore(tmp_path / "other.db") as other:
                    other.put(N, "k", {"x": 2})
                os.replace(tmp_path / "other.db", path)
            for use in (lambda: store.put(N, "k", {"x": 3}), lambda: store.get(N, "k"), lambda: store.erase(N)):
                with pytest.raises(StoreError, match="removed, moved or replaced"):
                    use()
            assert path.exists() == replace


def test_a_path_may_contain_what_looks_like_an_option(tmp_path: Path) -> None:
    with SqliteMemoryStore(tmp_path / "mode=memory.db") as store:
        store.put(N, "k", {})
        assert store.guarantees.durable
    assert (tmp_path / "mode=memory.db").exists()
    with SqliteMemoryStore("file:shared?mode=memory") as store:
        store.put(N, "k", {})
        assert not store.guarantees.durable


@pytest.mark.parametrize("path", [b"memory.db", 5, None])
def test_a_path_that_is_none_is_refused(path: Any) -> None:
    with pytest.raises(InvalidInput, match="path"):
        SqliteMemoryStore(path)


@pytest.mark.parametrize("given", ["dbname=prod user=x password=s3cret host=db", "postgresql://u:s3cret@localhost/x"])
def test_a_connection_string_makes_no_file_and_is_not_repeated(tmp_path: Path, monkeypatch, given: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="PostgresMemoryStore") as e:
        SqliteMemoryStore(given)
    assert "s3cret" not in str(e.value)
    assert list(tmp_path.iterdir()) == []
