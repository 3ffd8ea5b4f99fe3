"""Keeping a file: migrations, backups, checkups, and what happens to files that cannot be used."""

import contextlib
import errno
import os
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import PutOp

from langmem_adapter.embeddings import HashEmbeddings
from langmem_adapter.errors import (
    InvalidInput,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreTooNew,
)
from langmem_adapter.scoring import Where
from langmem_adapter.stores import schema
from langmem_adapter.stores.base import RankOp
from langmem_adapter.stores.sqlite import SqliteMemoryStore

N = ("n",)
INDEX: Any = {"dims": 256, "embed": HashEmbeddings(), "fields": ["text"]}
FIXTURES = Path(__file__).parent / "fixtures"


def four(texts: list[str]) -> list[list[float]]:
    return [[float(len(t)), 1.0, 0.0, 0.0] for t in texts]


four.__module__, four.__qualname__ = "fixture", "four"


# migrations


@pytest.mark.parametrize("released", range(1, len(schema.MIGRATIONS) + 1))
def test_a_file_of_every_released_schema_opens_whole(tmp_path: Path, released: int) -> None:
    path = tmp_path / "memory.db"
    old = sqlite3.connect(path)
    old.executescript((FIXTURES / f"schema_{released}.sql").read_text())
    old.close()
    owner = ("memories", "default", "user", "u1", "facts")
    index: Any = {"dims": 4, "embed": four, "fields": ["content"]}
    with SqliteMemoryStore(path, index=index, clock=lambda: 1_700_000_130.0) as store:
        assert store.store_id == "e12b88a71bbf8fa87aa193d0a80aee5f"
        assert store.list_namespaces() == [owner, ("n", "hidden")]
        item = store.get(owner, "m1")
        assert item is not None
        assert item.value["content"] == "The user eats fish again, and meat."
        assert item.created_at == datetime(2023, 11, 14, 22, 13, 20, 250_000, tzinfo=UTC)
        assert item.updated_at == datetime(2023, 11, 14, 22, 15, 20, 250_000, tzinfo=UTC)
        assert store.read([], versions=[owner])[1] == {owner: 6}
        assert [i.key for i in store.search(owner)] == ["m1", "own", "m2"]
        assert [i.key for i in store.search(owner, filter={"status": "superseded"})] == ["m2"]
        assert store.search(owner, query="zebra")[0].key == "own"
        (ranked,) = store.read([RankOp((owner,), "meat", Where(1_700_000_130.0, topics=("diet",)))])[0][0]
        assert (ranked.item.key, ranked.parts.importance) == ("m1", 0.8)
        assert store.doctor(deep=True).problems == ()
    with SqliteMemoryStore(path, clock=lambda: 1_700_010_000.0) as later:
        assert later.get(owner, "m2") is None


def test_a_file_from_before_slots_had_a_column_is_searched_by_slot(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    old = sqlite3.connect(path)
    old.executescript((FIXTURES / "schema_1.sql").read_text())
    values = [
        '{"topic":"t","slot":"a \\u00e9"}',
        ' {"topic":"t","slot":"b"}',
        '{"topic":"t","slot":1}',
        '{"topic":"t","sl',
    ]
    for n, value in enumerate(values):
        row = ((2 << 32) + 10 + n, f"k{n}", value, n, n)
        old.execute("INSERT INTO memory_items VALUES (?, 2, ?, ?, ?, ?, NULL, NULL, '[]', 't', NULL)", row)
    old.commit()
    old.close()
    with SqliteMemoryStore(path) as store:
        found = [[i.key for i in store.search(("n",), filter={"topic": "t", "slot": s})] for s in ("a é", "b", "sl")]
        assert found == [["k0"], ["k1"], []]
        with pytest.raises(StoreCorrupt, match="left as it is"):
            store.get(("n", "hidden"), "k3")


def test_a_newer_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with SqliteMemoryStore(path) as store:
        store.put(N, "k", {})
    raw = sqlite3.connect(path)
    raw.execute("UPDATE memory_meta SET value = '999' WHERE key = 'schema'")
    raw.commit()
    raw.close()
    with pytest.raises(StoreTooNew, match=r"memory\.db has schema 999"):
        SqliteMemoryStore(path)
    raw = sqlite3.connect(path)
    assert raw.execute("SELECT count(*) FROM memory_items").fetchone() == (1,)
    raw.close()


def test_a_migration_is_all_or_nothing_and_can_be_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.db"
    with SqliteMemoryStore(path) as store:
        store.put(N, "k", {"x": 1})
    step = ("ALTER TABLE memory_items ADD COLUMN extra TEXT", "UPDATE memory_items SET extra = 'new'")
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, (*step, "SELECT no_such_function()")))
    with pytest.raises(StoreError, match="no_such_function"):
        SqliteMemoryStore(path)
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS[:-1], step))
    with SqliteMemoryStore(path) as store:
        assert store.get(N, "k") is not None
        assert store.doctor().schema_version == len(schema.MIGRATIONS)


def test_other_tables_in_the_file_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "shared.db"
    raw = sqlite3.connect(path)
    raw.execute("CREATE TABLE items (id TEXT)")
    raw.execute("INSERT INTO items VALUES ('theirs')")
    raw.commit()
    raw.close()
    with SqliteMemoryStore(path) as store:
        store.put(N, "k", {})
    raw = sqlite3.connect(path)
    assert raw.execute("SELECT * FROM items").fetchall() == [("theirs",)]
    raw.close()


# backup and checkup


def test_a_backup_under_four_writers_has_everything_acknowledged_before_it(tmp_path: Path) -> None:
    with SqliteMemoryStore(tmp_path / "memory.db", index=INDEX) as store:
        acknowledged: list[str] = []
        done = threading.Event()

        def write(name: str) -> None:
            i = 0
            while not done.is_set():
                store.put(N, f"{name}-{i}", {"text": f"cat {i}"})
                acknowledged.append(f"{name}-{i}")
                i += 1

        writers = [threading.Thread(target=write, args=(f"t{i}",)) for i in range(4)]
        for w in writers:
            w.start()
        while len(acknowledged) < 50:
            done.wait(0.005)
        before = set(acknowledged)
        store.backup(tmp_path / "copy.db")
        done.set()
        for w in writers:
            w.join()
        assert sorted(p.name for p in tmp_path.glob("copy*")) == ["copy.db"]
        with SqliteMemoryStore(tmp_path / "copy.db", index=INDEX) as copy:
            assert before <= {i.key for i in copy.search(N, limit=100_000)}
            assert copy.store_id == store.store_id
            assert copy.search(N, query="cat 7")[0].score is not None
            assert copy.doctor(deep=True).problems == ()


async def test_a_backup_never_overwrites(sqlite: SqliteMemoryStore, tmp_path: Path) -> None:
    await sqlite.abackup(tmp_path / "copy.db")
    for target in (tmp_path / "copy.db", sqlite.name):
        with pytest.raises(InvalidInput, match="exists"):
            sqlite.backup(target)
    with pytest.raises(StoreError, match="folder"):
        sqlite.backup(tmp_path / "nowhere" / "copy.db")


async def test_doctor_tells_what_there_is(tmp_path: Path) -> None:
    with SqliteMemoryStore(tmp_path / "memory.db", index=INDEX) as store:
        store.put(N, "a", {"text": "cat"})
        store.put(("m",), "b", {"text": "cat"}, ttl=0)
        found = await store.adoctor(deep=True)
        assert found.model_dump(
            include={"namespaces", "items", "expired", "integrity", "embedder", "dims", "problems"}
        ) == {
            "namespaces": 2,
            "items": 2,
            "expired": 1,
            "integrity": (),
            "embedder": "hash-256",
            "dims": 256,
            "problems": (),
        }
        assert found.sqlite_version == sqlite3.sqlite_version
        assert found.secure_delete
        assert found.journal_mode == "wal"
        assert found.file_bytes > 0


# files that cannot be used


def test_a_missing_folder_and_a_folder_are_named(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere" / "memory.db", tmp_path):
        with pytest.raises(StoreError, match=str(path)):
            SqliteMemoryStore(path)
    with pytest.raises(StoreError, match="empty"):
        SqliteMemoryStore("")


@pytest.mark.parametrize(
    "content", [b"this is not a database, it is a diary\n" * 300, b"SQLite format 3\0" + b"\xff" * 9000]
)
def test_a_garbage_file_is_refused_and_never_overwritten(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(content)
    with pytest.raises(StoreCorrupt, match=r"memory\.db"):
        SqliteMemoryStore(path)
    assert path.read_bytes() == content


def big(path: Path) -> None:
    with SqliteMemoryStore(path, index=INDEX) as store:
        ops = [PutOp((f"n{i % 5}",), f"k{i}", {"text": f"cat {i} " * 20, "topic": "x"}) for i in range(400)]
        store.batch(ops)


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_file_gives_typed_errors_that_name_it(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "memory.db"
    big(path)
    rng = random.Random(seed)
    data = bytearray(path.read_bytes())
    pages = len(data) // 8192
    for page in rng.sample(range(1, pages), min(20, pages - 1)):
        for _ in range(100):
            data[page * 8192 + rng.randrange(8192)] ^= rng.randrange(1, 256)
    path.write_bytes(data)
    attempts: list[Any] = [
        lambda s: s.search(("n1",), query="cat 7", limit=50),
        lambda s: s.search((), limit=1_000),
        lambda s: s.search((), filter={"text": {"$gt": "a"}}, limit=1_000),
        lambda s: s.read([RankOp((("n1",), ("n2",)), "cat", Where(0.0), limit=100)]),
        lambda s: s.list_namespaces(),
        lambda s: [s.get((f"n{i % 5}",), f"k{i}") for i in range(400)],
        lambda s: s.put(("n1",), "k1", {"text": "cat"}),
        lambda s: s.sweep_ttl(),
        lambda s: s.doctor(deep=True),
    ]
    damaged = 0
    for attempt in attempts:
        try:
            with SqliteMemoryStore(path, index=INDEX) as store:
                attempt(store)
        except StoreError as e:
            damaged += 1
            named = "memory.db" in str(e)
        else:
            named = True
        assert named
    assert damaged > 0


def test_a_namespace_that_is_not_found_by_its_name_is_damage_and_no_new_owner(tmp_path: Path) -> None:
    """A damaged index reads as if nothing were known, and the next write would begin anew."""
    path = tmp_path / "m.db"
    with SqliteMemoryStore(path) as store:
        for user in ("ada", "bob"):
            store.put(("memories", user), "k", {"said": "hello"})
    with contextlib.closing(sqlite3.connect(path)) as raw:
        size = raw.execute("PRAGMA page_size").fetchone()[0]
        sql = "SELECT rootpage FROM sqlite_master WHERE type = 'index' AND tbl_name = 'memory_namespaces'"
        start = (raw.execute(sql).fetchone()[0] - 1) * size
    data = path.read_bytes()
    damaged = data[:start] + data[start : start + size].replace(b"bob", b"b~b") + data[start + size :]
    assert damaged != data
    path.write_bytes(damaged)
    with pytest.raises(StoreCorrupt, match=r"m\.db is damaged.*namespaces"):
        SqliteMemoryStore(path)
    assert path.read_bytes() == damaged


def test_a_truncated_wal_loses_the_tail_only(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with SqliteMemoryStore(path) as store:
        store.put(N, "first", {})
        for i in range(50):
            store.put(N, f"k{i}", {"text": "x" * 500})
        shutil.copy(path, tmp_path / "copy.db")
        wal = (tmp_path / "memory.db-wal").read_bytes()
    (tmp_path / "copy.db-wal").write_bytes(wal[: len(wal) // 2])
    with SqliteMemoryStore(tmp_path / "copy.db") as copy:
        assert copy.get(N, "first") is not None
        assert copy.doctor(deep=True).problems == ()


def test_a_full_disk_is_a_typed_error_and_writes_resume(tmp_path: Path) -> None:
    with SqliteMemoryStore(tmp_path / "memory.db", index=INDEX) as store:
        store.put(N, "old", {"text": "cat"})
        with store._connections.alone() as conn:
            pages = conn.execute("PRAGMA page_count").fetchone()[0]
            conn.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(StoreFull, match=r"memory\.db") as caught:
            store.batch([PutOp(N, f"k{i}", {"text": "cat " * 500}) for i in range(50)])
        assert isinstance(caught.value, OSError)
        assert store.search(N, query="cat")[0].key == "old"
        assert len(store.search(N, limit=100)) == 1
        with store._connections.alone() as conn:
            conn.execute("PRAGMA max_page_count = 1000000")
        store.put(N, "new", {"text": "cat"})
        assert len(store.search(N, query="cat")) == 2


def test_a_read_only_file_can_be_read_but_not_written(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with SqliteMemoryStore(path, index=INDEX) as store:
        store.put(N, "k", {"text": "cat"}, ttl=10)
    with SqliteMemoryStore(f"file:{path}?mode=ro", index=INDEX, clock=lambda: datetime.now().timestamp() + 60) as store:
        assert store.search(N, query="cat")[0].key == "k"  # it would refresh the ttl if it could
        assert store.get(N, "k") is not None
        with pytest.raises(StoreReadOnly, match=r"memory\.db") as caught:
            store.put(N, "k", {})
        assert isinstance(caught.value, PermissionError)
        assert store.doctor().problems == ()


UNPRIVILEGED = """
import os, sys
from langmem_adapter.errors import StoreReadOnly
from langmem_adapter.stores.sqlite import SqliteMemoryStore
if os.getuid() == 0:
    os.setuid(65534)
with SqliteMemoryStore(sys.argv[1]) as store:
    assert store.get(("n",), "k").value == {"text": "cat"}
    assert store.search(("n",), query="cats")[0].key == "k"
    try:
        store.put(("n",), "k", {})
    except StoreReadOnly:
        print("read only")
"""


@pytest.mark.skipif(os.name != "posix", reason="file modes")
@pytest.mark.parametrize("folder", [0o555, 0o777], ids=oct)
def test_a_file_without_write_permission_can_be_read(tmp_path: Path, folder: int) -> None:
    for parent in (tmp_path, *list(tmp_path.parents)[:2]):
        parent.chmod(parent.stat().st_mode | stat.S_IROTH | stat.S_IXOTH)
    home = tmp_path / "home"
    home.mkdir()
    with SqliteMemoryStore(home / "memory.db") as store:
        store.put(N, "k", {"text": "cat"})
    (home / "memory.db").chmod(0o444)
    home.chmod(folder)
    try:
        child = subprocess.run(
            [sys.executable, "-c", UNPRIVILEGED, home / "memory.db"], capture_output=True, text=True, timeout=30
        )
    finally:
        home.chmod(0o755)
    if "Permission denied" in child.stderr or child.returncode == -errno.EACCES:
        pytest.skip("an unprivileged user cannot reach the interpreter here")
    assert (child.stdout, child.stderr) == ("read only\n", "")


# values


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({"a": float("nan")}, r"value\['a'\]"),
        ({"a": [1, {"b": float("inf")}]}, r"value\['a'\]\[1\]\['b'\]"),
        ({"a": {1: 2}}, r"value\['a'\] has the key 1"),
        ({1: 2}, "value has the key 1"),
        ({"a": {"b": object()}}, r"value\['a'\]\['b'\] is a object"),
        ({"a": {1, 2}}, r"value\['a'\] is a set"),
        ({"a": b"x"}, r"value\['a'\] is a bytes"),
        ({"a": ["x", "\ud800"]}, r"value\['a'\]\[1\] is not valid Unicode"),
        ({"\ud800": 1}, "a key of value is not valid Unicode"),
        (["x"], "a value must be a dict"),
        ("text", "a value must be a dict"),
    ],
)
def test_what_json_cannot_hold_is_refused_and_its_place_named(
    sqlite: SqliteMemoryStore, value: Any, where: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=where):
        sqlite.put(N, "k", value)
    assert sqlite.search(N) == []


def test_lone_surrogates_in_keys_labels_and_queries_do_not_crash(sqlite: SqliteMemoryStore) -> None:
    sqlite.put(N, "k", {"text": "cat"})
    with pytest.raises(ValueError):
        sqlite.put(N, "\ud800", {})
    with pytest.raises(ValueError):
        sqlite.put(("\ud800",), "k", {})
    with pytest.raises(ValueError):
        sqlite.get(("\ud800",), "k")
    with pytest.raises(ValueError):
        sqlite.search(N, filter={"text": "\ud800"})
    assert sqlite.search(N, query="cat \ud800")[0].key == "k"


def test_circular_and_bottomless_values_are_refused(sqlite: SqliteMemoryStore) -> None:
    circle: dict[str, Any] = {}
    circle["self"] = circle
    deep: Any = {}
    for _ in range(100_000):
        deep = {"d": deep}
    for value in (circle, deep):
        with pytest.raises(ValueError):
            sqlite.put(N, "k", value)
    # Whatever Python can nest SQLite can look into.
    nested: Any = {"x": 1}
    for _ in range(400):
        nested = {"d": nested}
    sqlite.put(N, "deep", nested)
    assert sqlite.search(N, filter={"a": 1}) == []


@pytest.mark.parametrize("ttl", [-1, float("nan"), float("inf"), 1e12])
def test_a_ttl_that_makes_no_sense_is_refused(sqlite: SqliteMemoryStore, ttl: float) -> None:
    with pytest.raises(ValueError, match="ttl"):
        sqlite.put(N, "k", {}, ttl=ttl)


def test_negative_pages_are_refused(sqlite: SqliteMemoryStore) -> None:
    for bad in ({"limit": -1}, {"offset": -1}):
        with pytest.raises(ValueError, match="negative"):
            sqlite.search(N, **bad)  # type: ignore[arg-type]
    assert sqlite.search(N, limit=0) == []


def test_guarantees_say_what_holds(sqlite: SqliteMemoryStore) -> None:
    assert sqlite.guarantees.model_dump() == {
        "atomic": True,
        "many_writers": "processes",
        "durable": True,
        "hybrid": True,
        "erasure": "verified",
    }
    with SqliteMemoryStore(":memory:") as memory:
        assert (memory.guarantees.durable, memory.guarantees.many_writers) == (False, "threads")
