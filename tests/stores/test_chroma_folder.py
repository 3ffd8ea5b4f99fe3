"""What a Chroma folder must survive: a second process, kill -9, another embedder, erasure."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langgraph.store.base import PutOp
from stores.chroma_clients import http_client, running_server

from langmem_adapter import Memory
from langmem_adapter.embeddings import HashEmbeddings
from langmem_adapter.errors import Conflict, EmbedderMismatch, InvalidInput, StoreClosed, StoreError
from langmem_adapter.stores.chroma import ChromaMemoryStore

ADA, BOB = ("memories", "app", "user", "ada", "facts"), ("memories", "app", "user", "bob", "facts")
INDEX: Any = {"dims": 256, "embed": HashEmbeddings(), "fields": ["content"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "chroma"


@pytest.fixture
def store(folder: Path) -> Iterator[ChromaMemoryStore]:
    with ChromaMemoryStore(folder, index=INDEX) as store:
        yield store


def run_python(code: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60)


OPEN = """
import sys
from langmem_adapter.stores.chroma import ChromaMemoryStore
try:
    ChromaMemoryStore(sys.argv[1]).close()
    print("open")
except Exception as e:
    print(type(e).__name__, e)
"""


def test_what_was_written_is_there_after_reopening(folder: Path) -> None:
    with ChromaMemoryStore(folder, index=INDEX) as store:
        store.put(ADA, "k", {"content": "eats fish"})
        version = store.read([], versions=[ADA])[1][ADA]
    with ChromaMemoryStore(folder, index=INDEX) as again:
        assert [i.value for i in again.search(ADA, query="fish")] == [{"content": "eats fish"}]
        assert again.read([], versions=[ADA])[1][ADA] == version
        assert again.store_id == store.store_id


def test_a_client_opened_from_a_path_has_no_telemetry(store: ChromaMemoryStore) -> None:
    assert store._chroma._client.get_settings().anonymized_telemetry is False


def test_a_second_process_is_kept_out_and_told_by_whom(store: ChromaMemoryStore, folder: Path) -> None:
    said = run_python(OPEN, str(folder)).stdout
    assert said.startswith(f"StoreError {folder} is in use by process {os.getpid()} on ")
    assert "chroma run" in said


def test_another_process_may_come_in_after_closing(folder: Path) -> None:
    ChromaMemoryStore(folder).close()
    assert run_python(OPEN, str(folder)).stdout == "open\n"


def test_stores_of_one_process_share_a_folder(store: ChromaMemoryStore, folder: Path) -> None:
    with ChromaMemoryStore(folder, index=INDEX) as other:
        other.put(ADA, "k", {"content": "eats fish"})
        assert store.get(ADA, "k") is not None
        store.put(ADA, "k2", {"content": "eats meat"})
        assert [i.key for i in other.search(ADA, query="meat", limit=1)] == ["k2"]
    assert run_python(OPEN, str(folder)).stdout.startswith("StoreError")


def test_a_closed_store_says_so(folder: Path) -> None:
    store = ChromaMemoryStore(folder)
    store.close()
    store.close()
    with pytest.raises(StoreClosed):
        store.get(ADA, "k")
    with pytest.raises(StoreClosed):
        store.put(ADA, "k", {})


async def test_closing_waits_for_what_was_asked_before(folder: Path) -> None:
    store = ChromaMemoryStore(folder, index=INDEX)
    tasks = [asyncio.create_task(store.aput(ADA, f"k{i}", {"content": f"fact {i}"})) for i in range(5)]
    await asyncio.sleep(0.1)
    await store.aclose()
    await asyncio.gather(*tasks)
    with ChromaMemoryStore(folder, index=INDEX) as store:
        assert len(store.search(ADA)) == 5


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    file.write_text("x")
    with pytest.raises(InvalidInput, match="a Chroma database is a folder"):
        ChromaMemoryStore(file)


WRITE = """
import sys
from langgraph.store.base import PutOp
from langmem_adapter.stores.chroma import ChromaMemoryStore
ns, turns = ("memories", "a", "user", "u", "facts"), ("memories", "a", "user", "u", "turns")
with ChromaMemoryStore(sys.argv[1]) as store:
    last = max((int(i.key) for i in store.search(ns, filter={"status": "active"}, limit=9)), default=0)
    for n in range(last + 1, 10_000):
        puts = [PutOp(ns, str(n), {"n": n, "status": "active"}), PutOp(turns, str(n), {"n": n})]
        if n > 1:
            puts.append(PutOp(ns, str(n - 1), {"n": n - 1, "status": "superseded"}))
        if n > 3:
            puts.append(PutOp(ns, str(n - 3), None))
        store.commit(puts, expect={})
        print(n, flush=True)
"""


def test_kill_9_leaves_whole_commits_and_all_that_was_acknowledged(folder: Path) -> None:
    facts, turns = ("memories", "a", "user", "u", "facts"), ("memories", "a", "user", "u", "turns")
    version = 0
    for round_ in range(4):
        process = subprocess.Popen([sys.executable, "-c", WRITE, str(folder)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for _ in range(3 + round_):
            acknowledged = int(process.stdout.readline())
        time.sleep(0.013 * round_)
        process.send_signal(signal.SIGKILL)
        acknowledged = max([acknowledged, *map(int, process.stdout.read().split())])
        process.stdout.close()
        process.wait()
        with ChromaMemoryStore(folder) as store:
            found = {int(i.key): i.value["status"] for i in store.search(facts, limit=20_000)}
            last = max(found)
            assert acknowledged <= last <= acknowledged + 1
            kept = range(max(1, last - 2), last + 1)
            assert found == {n: "active" if n == last else "superseded" for n in kept}
            assert {int(i.key) for i in store.search(turns, limit=20_000)} == set(range(1, last + 1))
            assert store.doctor().problems == ()
            after = store.read([], versions=[facts])[1][facts]
            assert after > version
            version = after


# another embedder


def test_another_embedder_is_refused_and_reindex_accepts_it(folder: Path) -> None:
    with ChromaMemoryStore(folder, index=INDEX) as store:
        store.put(ADA, "k", {"content": "eats fish"})
        store.put(ADA, "silent", {"content": "never indexed"}, index=False)
        store.put(BOB, "k", {"content": "aisle seat"})
    other: Any = {"dims": 64, "embed": HashEmbeddings(dims=64), "fields": ["content"]}
    with pytest.raises(EmbedderMismatch):
        ChromaMemoryStore(folder, index=other)
    with ChromaMemoryStore(folder, index=other, replace_embedder=True) as store:
        seen: list[tuple[int, int]] = []
        assert store.reindex(progress=lambda done, total: seen.append((done, total))) == 2
        assert seen == [(1, 2), (2, 2)]
        assert store.reindex() == 0
        assert [(i.key, i.score is None) for i in store.search(ADA, query="fish")] == [("k", False), ("silent", True)]
        checkup = store.doctor()
        assert (checkup.embedder, checkup.dims, checkup.not_embedded) == ("hash-64", 64, 0)
        assert checkup.problems == ()


async def test_a_store_without_vectors_gets_them_by_reindex(folder: Path) -> None:
    with ChromaMemoryStore(folder) as store:
        store.put(ADA, "k", {"content": "eats fish"})
    async with ChromaMemoryStore(folder, index=INDEX, mode="vector") as store:
        await store.aput(ADA, "new", {"content": "aisle seat"})
        assert [i.score is None for i in await store.asearch(ADA, query="fish")] == [False, True]
        assert await store.areindex() == 1
        assert [i.key for i in await store.asearch(ADA, query="fish", limit=1)] == ["k"]


def test_one_folder_may_be_named_in_several_ways(folder: Path, tmp_path: Path, monkeypatch) -> None:
    with ChromaMemoryStore(folder, index=INDEX) as one:
        one.put(ADA, "k", {"content": "hello"})
        (tmp_path / "link").symlink_to(folder)
        with ChromaMemoryStore(tmp_path / "link", index=INDEX) as two:
            two.put(ADA, "k2", {"content": "two"})
            assert two.search(ADA, query="two")[0].key == "k2"
            two.put(ADA, "k3", {"content": "two"})
            for store in (one, two):
                assert {i.key for i in store.search(ADA, query="two")} == {"k", "k2", "k3"}
    monkeypatch.chdir(tmp_path)
    with ChromaMemoryStore("chroma", index=INDEX) as store:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        assert store.erase(ADA).state == "done"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_is_told_that_it_cannot_use_the_folder(store: ChromaMemoryStore) -> None:
    store.put(ADA, "k", {"content": "x"})
    child = os.fork()
    if not child:
        try:
            store.put(ADA, "k", {})
        except StoreError as e:
            os._exit(0 if "process" in str(e) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    store.put(ADA, "k", {"content": "y"})


# erasure

SECRET = "Xylophone Quetzal ordered 17 marzipan kumquats"


def vector_of(text: str) -> bytes:
    vector = np.array(HashEmbeddings().embed_documents([text])[0], dtype=np.float32)
    stored = (vector / np.linalg.norm(vector)).astype(np.float32).tobytes()
    parts = [stored[at : at + 64] for at in range(0, len(stored), 64)]
    return min(parts, key=lambda part: part.count(0))  # most of the others are zeros, which occur everywhere


def legible(folder: Path) -> set[str]:
    """Which forms of the secret are in which files."""
    forms = {"utf-8": SECRET.encode(), "utf-16": SECRET.encode("utf-16-le"), "lower": SECRET.lower().encode()}
    forms |= {"topic": b"kumquat/secret", "vector": vector_of(SECRET)}
    files = [p for p in folder.rglob("*") if p.is_file()]
    return {f"{name} in {p.name}" for p in files for name, form in forms.items() if form in p.read_bytes()}


def fill(store: ChromaMemoryStore) -> None:
    for i in range(30):
        store.put(ADA, f"k{i}", {"content": f"Ada fact number {i} about trains", "topic": "general"})
    store.put(ADA, "secret", {"content": SECRET, "topic": "kumquat/secret"})
    store.put(BOB, "k", {"content": "Bob likes the aisle seat", "topic": "general"})


def test_erased_bytes_are_in_no_file_any_more(folder: Path) -> None:
    with ChromaMemoryStore(folder, index=INDEX) as store:
        fill(store)
    # The control. Read while nobody has the folder open: closing a file drops the locks on it.
    assert {f.split(" in ")[0] for f in legible(folder)} >= {"utf-8", "topic", "vector"}
    with ChromaMemoryStore(folder, index=INDEX) as store:
        version = store.read([], versions=[ADA])[1][ADA]
        done = store.erase(ADA, ["secret"])
        assert (done.state, done.items, done.vacuumed, done.reason) == ("done", 1, True, "")
        assert done.found > 0
        assert done.bytes_searched > 100_000
        assert store.get(ADA, "secret") is None
        assert len(store.search(ADA, limit=100)) == 30
        assert store.search(BOB, query="seat")[0].value["content"] == "Bob likes the aisle seat"
        assert store.read([], versions=[ADA])[1][ADA] == version + 1
        assert store.doctor().problems == ()
        store.put(ADA, "later", {"content": "Ada came back"})
        assert store.search(ADA, query="came back")[0].key == "later"
    assert legible(folder) == set()


def test_what_was_deleted_before_goes_with_the_owners_erasure(folder: Path) -> None:
    with ChromaMemoryStore(folder, index=INDEX) as store:
        fill(store)
        store.delete(ADA, "secret")
    assert legible(folder) != set()
    with ChromaMemoryStore(folder, index=INDEX) as store:
        done = store.erase(ADA[:4])
        assert (done.state, done.items) == ("done", 30)
        assert store.list_namespaces() == [BOB]
        assert store.read([], versions=[ADA])[1][ADA] > 30
    assert legible(folder) == set()


async def test_text_that_others_hold_too_does_not_keep_an_erasure_pending(store: ChromaMemoryStore) -> None:
    await store.aput(ADA, "k", {"content": SECRET})
    await store.aput(BOB, "k", {"content": SECRET})
    done = await store.aerase(ADA)
    assert (done.state, done.items) == ("done", 1)
    assert done.shared > 0
    assert [i.value["content"] for i in store.search(BOB)] == [SECRET]


def test_an_interrupted_erasure_is_finished_later(folder: Path) -> None:
    with ChromaMemoryStore(folder, index=INDEX) as store:
        fill(store)
        place = store._book.places.find("memories.app.user.ada")
        assert place is not None
        store._eraser._mark([place])
        store.delete(ADA, "secret")
        store._chroma.create(f"{place.collection}-half")  # a rebuild that was killed
        assert len(store.doctor().problems) == 2
    with ChromaMemoryStore(folder, index=INDEX) as store:
        assert store.finish_erasure().state == "done"
        assert store.doctor().problems == ()
        assert len(store.search(ADA, limit=100)) == 30
    assert legible(folder) == set()


def test_over_http_an_erasure_is_pending_until_the_folder_is_opened(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with running_server(folder) as port, http_client(port) as client, ChromaMemoryStore(client, index=INDEX) as store:
        fill(store)
        done = store.erase(ADA, ["secret"])
        assert (done.state, done.items, done.searched) == ("pending", 1, ())
        assert "finish_erasure()" in done.reason
        assert store.get(ADA, "secret") is None
        assert "finish_erasure()" in store.doctor().problems[0]
    assert legible(folder) != set()
    with ChromaMemoryStore(folder, index=INDEX) as store:
        assert store.finish_erasure().state == "done"
    assert legible(folder) == set()


async def test_erase_with_commits_on_condition_and_clears(folder: Path) -> None:
    with ChromaMemoryStore(folder, index=INDEX) as store:
        fill(store)
        _, seen = store.read([], versions=[ADA])
        with pytest.raises(Conflict):
            store.erase_with([PutOp(ADA, "secret", None)], expect={ADA: 1})
        assert store.doctor().problems == ()
        new = {"content": "Ada keeps no secrets", "topic": "general"}
        done = store.erase_with([PutOp(ADA, "secret", new), PutOp(ADA, "k0", None)], expect=seen)
        assert (done.state, "searched" in done.note) == ("done", True)
        assert store.search(ADA, query="no secrets")[0].value == new
        assert store.get(ADA, "k0") is None
        _, seen = await store.aread([], versions=[ADA])
        assert (await store.aerase_with([PutOp(ADA, "k1", None)], expect=seen)).state == "done"
        assert store.doctor().problems == ()
    assert legible(folder) == set()


def test_what_memory_deletes_is_gone_from_the_files(folder: Path) -> None:
    def told() -> list[str]:
        return [p.name for p in folder.rglob("*") if p.is_file() and b"zebrapear" in p.read_bytes().lower()]

    with ChromaMemoryStore(folder, index=INDEX) as store:
        memory = Memory(store)
        memory.add("I like zebrapears.", user_id="ada", session_id="s")
        memory.add("I like tea.", user_id="bob", session_id="s")
    assert told()
    with ChromaMemoryStore(folder, index=INDEX) as store:
        memory = Memory(store)
        assert memory.forget_source("s", user_id="ada").state == "done"
        assert [r.content for r in memory.get_all(user_id="bob")] == ["The user likes tea."]
        memory.add("I like zebrapears.", user_id="ada", session_id="t")
        memory.delete_all(user_id="ada")
        assert {i.namespace[3] for i in store.search(("memories",))} == {"bob"}
        assert store.doctor().problems == ()
    assert told() == []


def test_erase_with_over_http_is_finished_when_the_folder_is_opened(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with running_server(folder) as port, http_client(port) as client, ChromaMemoryStore(client, index=INDEX) as store:
        fill(store)
        done = store.erase_with([PutOp(ADA, "secret", None)], expect={})
        assert (done.state, "finish_erasure()" in done.note) == ("pending", True)
        assert store.erase_with([], expect={}).state == "pending"
    assert legible(folder) != set()
    with ChromaMemoryStore(folder, index=INDEX) as store:
        assert store.erase_with([], expect={}).state == "done"
    assert legible(folder) == set()


def test_everything_is_never_erased_by_accident(store: ChromaMemoryStore) -> None:
    with pytest.raises(InvalidInput, match="delete the folder"):
        store.erase(())


def test_a_server_that_does_not_answer_is_a_store_error(tmp_path: Path) -> None:
    with running_server(tmp_path / "data") as port:
        client = http_client(port)
        made = client.__enter__()
        store = ChromaMemoryStore(made)
    with pytest.raises(StoreError, match="does not answer"):
        store.put(ADA, "k", {})
    store.close()
    client.__exit__(None, None, None)
