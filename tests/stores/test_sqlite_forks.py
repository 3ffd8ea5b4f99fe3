"""A fork at any moment loses nothing and hangs nobody. Nothing of SQLite's may be open while the process forks."""

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint

from langmem_adapter.checkpoint.sqlite import SqliteCheckpointer
from langmem_adapter.embeddings import HashEmbeddings
from langmem_adapter.errors import StoreError
from langmem_adapter.stores.sqlite import SqliteMemoryStore

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]

N = ("n",)
INDEX: Any = {"dims": 256, "embed": HashEmbeddings(), "fields": ["text"]}


def forked(work: Callable[[], None]) -> Callable[[], int]:
    """Runs `work` in a forked child; the result waits for it and gives its exit code: 0, or 1 if it raised."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return lambda: os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def put_thread(checkpointer: SqliteCheckpointer, name: str) -> None:
    checkpointer.put({"configurable": {"thread_id": name, "checkpoint_ns": ""}}, empty_checkpoint(), {}, {})


def threads_of(path: Path) -> set[str]:
    with SqliteCheckpointer(path) as checkpointer:
        return {t.config["configurable"]["thread_id"] for t in checkpointer.list(None)}


def keys_of(path: Path) -> set[str]:
    with SqliteMemoryStore(path) as store:
        assert store.doctor(deep=True).problems == ()
        return {i.key for i in store.search(N, limit=1_000)}


def test_parent_and_child_go_on_with_the_same_store(tmp_path: Path) -> None:
    with SqliteMemoryStore(tmp_path / "memory.db", index=INDEX) as store:
        asyncio.run(store.aput(N, "parent", {"text": "cat"}))
        store.search(N, query="cat")

        def work() -> None:
            store.put(N, "child", {"text": "cat"})
            asyncio.run(store.aput(N, "async child", {"text": "cat"}))
            assert len(store.search(N, query="cat")) == 3

        assert forked(work)() == 0
        store.put(N, "after", {"text": "cat"})
        assert {i.key for i in store.search(N, query="cat")} == {"parent", "child", "async child", "after"}
        assert store.doctor(deep=True).problems == ()


@pytest.mark.parametrize("own", [False, True], ids=["inherited", "opened by the child"])
def test_what_a_child_wrote_is_kept_when_its_parent_closes_first(tmp_path: Path, own: bool) -> None:
    path = tmp_path / "memory.db"
    ready, (closed_r, closed_w) = os.pipe(), os.pipe()
    store, checkpointer = SqliteMemoryStore(path), SqliteCheckpointer(path)
    store.put(N, "parent", {})
    store.get(N, "parent")

    def work() -> None:
        mine = SqliteMemoryStore(path) if own else store
        threads = SqliteCheckpointer(path) if own else checkpointer
        mine.put(N, "before", {})
        put_thread(threads, "before")
        os.write(ready[1], b"x")
        os.close(closed_w)
        os.read(closed_r, 1)
        for n in range(3):
            mine.put(N, f"after {n}", {})
            put_thread(threads, f"after {n}")

    wait = forked(work)
    os.read(ready[0], 1)
    store.close()
    checkpointer.close()
    os.write(closed_w, b"x")
    assert wait() == 0
    for end in (*ready, closed_r, closed_w):
        os.close(end)
    assert keys_of(path) == {"parent", "before", "after 0", "after 1", "after 2"}
    assert threads_of(path) == {"before", "after 0", "after 1", "after 2"}


def test_what_a_parent_wrote_is_kept_when_its_child_closes_first(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with SqliteMemoryStore(path) as store:
        store.put(N, "parent", {})

        def work() -> None:
            store.put(N, "child", {})
            store.close()

        assert forked(work)() == 0
        store.put(N, "after", {})
    assert keys_of(path) == {"parent", "child", "after"}


def test_children_forked_while_others_read_and_write_can_write(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    done = threading.Event()
    written: list[str] = []
    with SqliteMemoryStore(path, index=INDEX) as store, SqliteCheckpointer(path) as checkpointer:

        def write() -> None:
            while not done.is_set():
                store.put(N, f"p{len(written)}", {"text": "cat"})
                written.append(f"p{len(written)}")

        def read() -> None:
            while not done.is_set():
                store.search(N, query="cat")

        others = [threading.Thread(target=t) for t in (write, read, read)]
        for t in others:
            t.start()
        waits = []
        for n in range(8):

            def work(n: int = n) -> None:
                store.put(N, f"c{n}", {"text": "cat"})
                put_thread(checkpointer, f"c{n}")
                assert store.search(N, query="cat", limit=1)[0].score is not None

            waits.append(forked(work))
        assert [w() for w in waits] == [0] * 8
        done.set()
        for t in others:
            t.join()
    assert keys_of(path) == {*written, *(f"c{n}" for n in range(8))}
    assert threads_of(path) == {f"c{n}" for n in range(8)}


def test_a_child_forked_inside_a_transaction_says_so_at_once_and_its_parent_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with SqliteMemoryStore(path) as store:
        store.put(N, "before", {})
        with store._connections.writing():

            def work() -> None:
                for use in (
                    lambda: store.put(N, "child", {}),
                    lambda: store.get(N, "before"),
                    lambda: SqliteMemoryStore(path),
                ):
                    with pytest.raises(StoreError, match="forked"):
                        use()
                store.close()

            wait = forked(work)
        assert wait() == 0
        store.put(N, "after", {})
        assert {i.key for i in store.search(N)} == {"before", "after"}


def test_a_store_in_memory_is_copied_whole(tmp_path: Path) -> None:
    with SqliteMemoryStore(":memory:") as store:
        store.put(N, "parent", {})

        def work() -> None:
            store.put(N, "child", {})
            assert {i.key for i in store.search(N)} == {"parent", "child"}

        assert forked(work)() == 0
        assert {i.key for i in store.search(N)} == {"parent"}
