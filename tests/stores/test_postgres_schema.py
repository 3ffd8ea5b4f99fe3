"""Setting up, guarding, partitioning, migrating, importing, erasing, and what the database can hold."""

import random
import re
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from langgraph.store.base import GetOp, PutOp
from langgraph.store.postgres import PostgresStore
from psycopg.conninfo import make_conninfo
from psycopg_pool import ConnectionPool
from stores.postgres_fixtures import *  # noqa: F403
from stores.postgres_fixtures import execute
from stores.postgres_writers import open_and_put, processes

from langmem_adapter.embeddings import HashEmbeddings
from langmem_adapter.errors import EmbedderMismatch, InvalidInput, StoreError, StoreTooNew
from langmem_adapter.scoring import Where
from langmem_adapter.stores.base import RankOp
from langmem_adapter.stores.postgres import PostgresMemoryStore
from langmem_adapter.stores.postgres_owners import owner_of, owner_under

N = ("n",)
OWNED = ("namespaces", "items", "vectors")
INDEX: Any = {"dims": 256, "embed": HashEmbeddings(), "fields": ["text"]}


# setting up


def test_twelve_processes_may_set_up_at_once(database: str, schema: str) -> None:
    ids = processes(12, open_and_put, database, schema)
    assert len(set(ids)) == 1
    with PostgresMemoryStore(database, schema=schema) as store:
        assert len(store.search(N, limit=100)) == 12
        assert store.store_id == ids[0]


async def test_setup_is_harmless_and_may_be_awaited(database: str, schema: str) -> None:
    async with PostgresMemoryStore.from_conn_string(database, schema=schema) as store:
        await store.setup()
        store.setup()
        await store.aput(N, "k", {})
        assert await store.aget(N, "k") is not None


def test_a_newer_schema_is_refused(postgres: PostgresMemoryStore, database: str, schema: str) -> None:
    execute(database, f"UPDATE {schema}.meta SET value = '99' WHERE key = 'schema'")
    with pytest.raises(StoreTooNew, match="schema 99"):
        PostgresMemoryStore(database, schema=schema).setup()


def test_arguments_that_cannot_be_are_refused(database: str, open_store) -> None:
    with pytest.raises(InvalidInput, match="schema"):
        PostgresMemoryStore(database, schema='x"; DROP')
    with pytest.raises(InvalidInput, match="mode"):
        PostgresMemoryStore(database, mode="best")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="language"):
        open_store(language="klingon")
    with pytest.raises(InvalidInput, match="partitions"):
        open_store(partitions=0)


def test_a_pool_that_was_passed_in_is_used_and_stays_open(database: str, schema: str) -> None:
    with ConnectionPool(database, min_size=1, max_size=3, open=True) as pool:
        with PostgresMemoryStore(pool, schema=schema) as store:
            store.put(N, "k", {"n": 1})
            assert store.search(N)[0].value == {"n": 1}
        with pool.connection() as conn:
            assert conn.execute(f"SELECT count(*) FROM {schema}.items".encode()).fetchone() == (1,)


def test_without_the_driver_the_error_names_the_install_command() -> None:
    code = "import sys; sys.modules['psycopg'] = None; import langmem_adapter.stores.postgres"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "pip install 'langgraph-memory-adapter[postgres]'" in done.stderr


# owners, row-level security, partitions


@pytest.mark.parametrize(
    ("namespace", "owner", "under"),
    [
        (("memories", "app", "user", "ada", "facts"), "memories.app.user.ada", "memories.app.user.ada"),
        (("memories", "app", "user", "ada"), "memories.app.user.ada", "memories.app.user.ada"),
        (("memories", "app", "user"), "memories.app.user", None),
        (("memories", "app", "app", "facts"), "memories.app.app", "memories.app.app"),
        (("memories", "ada"), "memories.ada", None),
        (("memories", "ada", "notes"), "memories.ada", "memories.ada"),
        (("users", "ada", "prefs"), "users.ada", "users.ada"),
        (("users",), "users", None),
    ],
)
def test_an_owner_is_a_part_of_the_namespace(namespace: tuple[str, ...], owner: str, under: str | None) -> None:
    assert owner_of(namespace) == owner
    assert owner_under(namespace) == under


def test_a_raw_query_under_another_owner_or_none_returns_nothing(restricted: str, schema: str) -> None:
    with PostgresMemoryStore(restricted, schema=schema, index=INDEX, rls=True, partitions=2) as store:
        store.put(("users", "ada"), "k", {"text": "cat eats fish"})
        store.put(("users", "bob"), "k", {"text": "dog eats meat"})
        assert store.doctor().problems == (
            "fsync or synchronous_commit is off: an acknowledged write can be lost in a crash",
        )
        parts = [f"{t}_{i}" for t in ("namespaces", "items", "vectors") for i in (0, 1)]
    with psycopg.connect(restricted) as conn:

        def seen(owner: str | None) -> list[int]:
            with conn.transaction():
                if owner is not None:
                    conn.execute("SELECT set_config('lm.owner', %s, true)", (owner,))
                tables = ["namespaces", "items", "vectors", *parts]
                return [conn.execute(f"SELECT count(*) FROM {schema}.{t}".encode()).fetchone()[0] for t in tables]  # type: ignore[index]

        assert sum(seen(None)) == 0
        assert sum(seen("users.eve")) == 0
        assert sum(seen("users")) == 0
        assert seen("users.ada")[:3] == [1, 1, 1]
        assert sum(seen("users.ada")[3:]) == 3
        assert seen("users.ada..users.bob")[:3] == [2, 2, 2]
        assert sum(seen(None)) == 0, "the setting ends with its transaction"
        conn.execute("SELECT set_config('lm.owner', 'users.ada', true)")
        assert conn.execute(f"UPDATE {schema}.items SET value = '{{}}'".encode()).rowcount == 1
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute(f"UPDATE {schema}.items SET owner = 'users.bob'".encode())
    with PostgresMemoryStore(restricted, schema=schema, index=INDEX) as store:  # it is on for good
        assert [i.key for i in store.search(("users", "bob"), query="dog")] == ["k"]
        assert len(store.search(("users",))) == 2
        assert store.doctor().row_level_security


def test_row_level_security_that_does_not_hold_is_a_problem(open_store) -> None:
    assert any("SUPERUSER" in p for p in open_store(rls=True).doctor().problems)


def test_rows_are_divided_by_their_owner(open_store, database: str, schema: str) -> None:
    store = open_store(partitions=4, index=INDEX)
    for i in range(40):
        store.put(("users", f"u{i}"), "k", {"text": f"cat {i}"})
    counts = [execute(database, f"SELECT count(*) FROM {schema}.items_{i}")[0][0] for i in range(4)]
    assert sum(counts) == 40
    assert min(counts) > 0
    plan = execute(database, f"EXPLAIN SELECT * FROM {schema}.items WHERE owner = 'users.u1' AND namespace = 1")
    assert sum("items_" in line and "Scan" in line for (line,) in plan) == 1
    with pytest.raises(InvalidInput, match="partitions=4, not 8"):
        PostgresMemoryStore(database, schema=schema, partitions=8).setup()
    assert [len(store.search(("users", f"u{i}"))) for i in range(40)] == [1] * 40
    assert store.doctor().partitions == 4


def test_a_call_opens_its_owners_partitions_only(restricted: str, schema: str, monkeypatch) -> None:
    """Not even for planning: at its end a transaction has locks on all tables that the server looked at."""
    run, opened = psycopg.Cursor.execute, []
    locked = "SELECT DISTINCT relation::regclass::text FROM pg_locks WHERE pid = pg_backend_pid() AND relation > 16384"

    def execute(cursor: Any, query: Any, *args: Any, **more: Any) -> Any:
        if "COMMIT" in str(query) and "BEGIN" not in str(query):
            found = cursor.connection.execute(locked).fetchall()
            opened.append({name.split(".")[1] for (name,) in found if "." in name})
        return run(cursor, query, *args, **more)

    ada, bob, where = ("users", "ada"), ("users", "bob"), Where(now=time.time())
    calls: dict[str, Callable[[PostgresMemoryStore, int], Any]] = {
        "put": lambda s, n: s.put(ada, f"k{n}", {"text": f"cat {n}"}, ttl=1),
        "get": lambda s, n: s.get(ada, f"k{n}", refresh_ttl=False),
        "get, refreshed": lambda s, n: s.get(ada, "k0"),
        "commit": lambda s, n: s.commit([PutOp(ada, "k", {"text": f"dog {n}"})], expect=s.read([], versions=[ada])[1]),
        "rank": lambda s, n: s.read([RankOp((ada,), "cat", where, limit=3)]),
        "search": lambda s, n: s.search(ada, query="cat", filter={"text": {"$ne": "x"}}),
        "newest": lambda s, n: s.search(ada, filter={"topic": "t"}),
        "list": lambda s, n: s.list_namespaces(prefix=ada),
        "delete": lambda s, n: s.delete(ada, f"k{n}"),
        "erase": lambda s, n: s.erase(ada, ["none"], rebuild=False),
        "two owners": lambda s, n: s.read([RankOp((ada, bob), "cat", where)], versions=[ada, bob]),
    }
    now = [time.time()]
    with PostgresMemoryStore(
        restricted,
        schema=schema,
        index=INDEX,
        ttl={"refresh_on_read": True},
        rls=True,
        partitions=16,
        clock=lambda: now[0],
    ) as store:
        store.put(ada, "k0", {"text": "cat"}, ttl=1)
        store.put(bob, "k0", {"text": "cat"})
        monkeypatch.setattr(psycopg.Cursor, "execute", execute)
        wrong = {}
        for what, call in calls.items():
            opened.clear()
            for n in range(12):  # the driver prepares a statement the fifth time; the server may then keep a plan
                now[0] += 1
                call(store, n)
            assert opened, what
            tables = {name for names in opened for name in names}
            parts = [{t for t in tables if re.fullmatch(rf"{table}_\d+", t)} for table in OWNED]
            if max(map(len, parts)) > (2 if what == "two owners" else 1):
                wrong[what] = [len(names) for names in parts]
        assert wrong == {}


@pytest.mark.parametrize("partitions", [None, 4])
def test_a_put_does_not_compare_all_vectors_of_an_owner_to_all_items(
    open_store, monkeypatch, partitions: int | None
) -> None:
    store = open_store(partitions=partitions, index=INDEX)
    store.batch([PutOp(N, f"k{i}", {"text": f"cat {i}"}) for i in range(400)])
    run, read = psycopg.Cursor.execute, []
    rows = "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int FROM pg_stat_xact_user_tables"

    def execute(cursor: Any, query: Any, *args: Any, **more: Any) -> Any:
        if "COMMIT" in str(query) and "BEGIN" not in str(query):
            read.append(cursor.connection.execute(rows).fetchone()[0])
        return run(cursor, query, *args, **more)

    monkeypatch.setattr(psycopg.Cursor, "execute", execute)
    store.put(N, "k7", {"text": "dog"})
    store.delete(N, "k9")
    assert len(read) == 2
    assert read[-1] < 10 * 400, "which the server may count from the first batch on"


# what it can hold


def test_keys_may_be_long_and_namespaces_up_to_a_limit(postgres: PostgresMemoryStore) -> None:
    long = "ключ" * 2_000
    postgres.put(N, long, {"n": 1})
    postgres.put(N, long + "x", {"n": 2})
    assert [getattr(postgres.get(N, k), "value", None) for k in (long, long + "x")] == [{"n": 1}, {"n": 2}]
    postgres.delete(N, long)
    assert [i.key for i in postgres.search(N)] == [long + "x"]
    deep = tuple("x" * 99 for _ in range(10))
    postgres.put(deep, "k", {})
    assert postgres.list_namespaces(prefix=("x" * 99,)) == [deep]
    with pytest.raises(InvalidInput, match="at most 1000"):
        postgres.put((*deep, "y"), "k", {})
    assert postgres.get((*deep, "y"), "k") is None


@pytest.mark.parametrize("bad", ["a\0b", "\ud800", float("nan"), float("inf")], ids=repr)
def test_what_json_or_the_database_cannot_hold_is_refused_before_anything_is_written(
    postgres: PostgresMemoryStore, bad: Any
) -> None:
    for value in ({"x": bad}, {"l": [{"y": bad}]}):
        with pytest.raises(ValueError):
            postgres.batch([PutOp(N, "good", {}), PutOp(N, "bad", value)])
    if isinstance(bad, str):
        with pytest.raises(ValueError):
            postgres.put(N, bad, {})
        with pytest.raises(ValueError):
            postgres.put(N, "k", {bad: 1})
        with pytest.raises(ValueError):
            postgres.put(("n", bad), "k", {})
    assert postgres.search(N) == []


def test_values_come_back_as_they_were(postgres: PostgresMemoryStore) -> None:
    value = {
        "s": "é猫\n\\u0000 'q' \"q\" %s {} \x01",
        "numbers": [1, 1.0, -0.0, 0.1, 1e300, 1e-300, 2**70, 10**30, True],
        "z": None,
        "a": {"": [], "b": {}},
    }
    postgres.put(N, "k", value)
    item = postgres.get(N, "k")
    assert item is not None
    assert repr(item.value) == repr(value)


@pytest.mark.parametrize(
    ("filter", "found"),
    [
        ({"n": 1}, ["a"]),
        ({"n": {"$gt": 9.5}}, ["b"]),
        ({"n": {"$lt": float("inf")}}, ["a", "b"]),
        ({"n": 10**30}, []),
        ({"s": "x\0"}, []),
        ({"s": {"$gt": "Z"}}, ["a"]),  # by code points, not by the database's language
        ({"l.0": 1}, []),
        ({"d": {"y": 1.0, "x": [1]}}, ["a"]),
        ({"d": {"x": [1]}}, []),
        ({"topic": None}, ["b"]),
        ({"topic": "t", "n": {"$lte": 1}}, ["a"]),
        ({"status": 5}, ["b"]),
    ],
    ids=repr,
)
def test_filters_compare_like_with_like(
    postgres: PostgresMemoryStore, filter: dict[str, Any], found: list[str]
) -> None:
    postgres.put(N, "a", {"n": 1, "s": "a", "l": [1], "d": {"x": [1], "y": 1}, "topic": "t", "status": "5"})
    postgres.put(N, "b", {"n": 10, "s": "B", "status": 5})
    assert sorted(i.key for i in postgres.search(N, filter=filter)) == found


@pytest.mark.parametrize("partitions", [None, 4])
def test_a_topic_or_status_may_be_a_long_text(open_store, partitions: int | None) -> None:
    store = open_store(partitions=partitions)
    long = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789 ", k=3_000))
    for n, text in enumerate((long, "ключ" * 150, "short")):
        store.put(N, str(n), {"topic": text, "status": text})
        for field in ("topic", "status"):
            assert [i.key for i in store.search(N, filter={field: text})] == [str(n)]
            assert str(n) not in [i.key for i in store.search(N, filter={field: {"$ne": text}})]
    assert len(store.search(N, filter={"topic": {"$ne": "x"}})) == 3


def test_an_operator_that_cannot_be_compared_is_refused(postgres: PostgresMemoryStore) -> None:
    with pytest.raises(ValueError):
        postgres.search(N, filter={"s": {"$gt": "a\0"}})


def test_a_text_of_ten_megabytes_is_stored_and_found_by_its_beginning(postgres: PostgresMemoryStore) -> None:
    text = "walrus " + " ".join(f"word{i}" for i in range(1_000_000))
    postgres.put(N, "k", {"text": text})
    assert [(i.key, i.score is not None) for i in postgres.search(N, query="walrus")] == [("k", True)]


# words


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("The user is running marathons", "does she run a marathon?"),
        ("Die Nutzerin liest viele Bücher über die Häuser der Stadt", "Buch Haus"),
        ("Пользователь любит кошек и собак", "собаку"),
        ("ユーザーは東京に住んでいます", "東京"),
        ("用户喜欢吃川菜", "川菜"),
        ("L'utilisateur mange du poisson et préfère le café", "cafe"),
        ("it's Ada's \\ o'clock 'quoted'", "ada's o'clock"),
    ],
)
def test_words_are_found_in_their_own_language(open_store, text: str, query: str) -> None:
    store = open_store()
    store.put(N, "hit", {"text": text})
    store.put(N, "miss", {"text": "Lorem ipsum dolor sit amet"})
    found = store.search(N, query=query)
    assert [i.key for i in found] == ["hit", "miss"]
    assert 0 < (found[0].score or 0) <= 1
    assert found[1].score is None


def test_a_fixed_language_is_used_for_every_text(open_store) -> None:
    store = open_store(language="german")
    store.put(N, "k", {"text": "Bäume"})
    assert store.search(N, query="Baum")[0].score is not None


def test_an_owner_ranks_exactly_over_all_records(open_store) -> None:
    store = open_store(index=INDEX)
    now = time.time()
    texts = {f"k{i}": f"cat number {i} eats fish" for i in range(300)} | {"far": "an aisle seat on flights"}
    store.batch([PutOp(N, k, {"text": t, "importance": 0.5}) for k, t in texts.items()])
    store.put(("m",), "other", {"text": "an aisle seat on flights"})
    op = RankOp((N,), "aisle seat", Where(now=now), limit=3)
    for mode in ("vector", "text", "hybrid"):
        (ranked,), _ = store.read([op._replace(mode=mode)])
        assert ranked[0].item.key == "far", mode
    query = HashEmbeddings().embed_query("aisle seat")
    wanted = {
        k: sum(a * b for a, b in zip(query, HashEmbeddings().embed_query(t), strict=True)) for k, t in texts.items()
    }
    (ranked,), _ = store.read([op._replace(mode="vector", limit=301)])
    assert len(ranked) == 301
    for r in ranked:
        assert r.parts.relevance == pytest.approx(max(0.0, wanted[r.item.key]), abs=1e-6)


# another embedder


def test_another_embedder_is_refused_or_indexed_anew(open_store) -> None:
    first = open_store(index=INDEX)
    first.batch([PutOp(N, f"k{i}", {"text": f"cat {i} eats fish"}) for i in range(150)])
    other: Any = {"dims": 64, "embed": HashEmbeddings(64), "fields": ["text"]}
    with pytest.raises(EmbedderMismatch, match=r"hash-256.*hash-64"):
        open_store(index=other)
    store = open_store(index=other, replace_embedder=True)
    assert store.doctor().not_embedded == 150
    assert store.reindex() == 150
    assert store.doctor().not_embedded == 0
    assert store.search(N, query="cat 7 eats")[0].key == "k7"
    with pytest.raises(EmbedderMismatch):
        first.put(N, "late", {"text": "x"})


# LangGraph's store


def test_items_of_a_langgraph_store_are_taken_over_with_their_times(
    postgres_url: str, bare_database: str, open_store
) -> None:
    execute(bare_database, "DROP TABLE IF EXISTS store, store_migrations, store_vectors, vector_migrations")
    with PostgresStore.from_conn_string(bare_database) as old:
        old.setup()
        for i in range(250):
            old.put(("users", f"u{i % 3}"), f"k{i}", {"text": f"cat {i} eats fish"})
        old.put(("users", "u0"), "brief", {"text": "x"}, ttl=60)
        want = old.get(("users", "u1"), "k1")
    store = open_store(index=INDEX)
    store.put(("users", "u0"), "k0", {"text": "newer"})
    seen: list[int] = []
    assert store.import_langgraph(bare_database, progress=seen.append) == 250
    assert seen[-1] == 250
    got = store.get(("users", "u1"), "k1")
    assert want is not None
    assert got is not None
    assert (got.value, got.created_at, got.updated_at) == (want.value, want.created_at, want.updated_at)
    assert getattr(store.get(("users", "u0"), "k0"), "value", None) == {"text": "newer"}, "what is here stays"
    assert store.search(("users", "u1"), query="cat 7 eats")[0].key == "k7"
    assert store.import_langgraph(bare_database) == 0
    with pytest.raises(InvalidInput, match="table"):
        store.import_langgraph(bare_database, table="store; DROP TABLE store")


def test_a_langgraph_store_that_cannot_be_taken_over_is_a_typed_error(bare_database: str, open_store) -> None:
    store = open_store()
    execute(bare_database, "DROP TABLE IF EXISTS store, store_migrations, store_vectors, vector_migrations")
    for source in (bare_database, make_conninfo(bare_database, dbname="nowhere"), "postgresql://x:s3cret%zz@h/x"):
        with pytest.raises(StoreError) as e:
            store.import_langgraph(source)
        assert "s3cret" not in str(e.value)
    with PostgresStore.from_conn_string(bare_database) as old:
        old.setup()
        old.put(("users", "u"), "k", {"text": "cat"})
    execute(bare_database, "ALTER TABLE store DROP COLUMN expires_at, DROP COLUMN ttl_minutes")  # an older version's
    assert store.import_langgraph(bare_database) == 1
    execute(bare_database, "INSERT INTO store (prefix, key, value) VALUES ('x..y', 'odd', '{}')")
    with pytest.raises(InvalidInput, match=r"'x\.\.y'.*'odd'"):
        store.import_langgraph(bare_database)


def test_what_langgraph_did_not_index_is_not_searched_by_meaning(database: str, schema: str, open_store) -> None:
    execute(database, "DROP TABLE IF EXISTS store, store_migrations, store_vectors, vector_migrations")
    with PostgresStore.from_conn_string(database, index=INDEX) as old:
        old.setup()
        old.put(("docs", "x"), "open", {"text": "apple"})
        old.put(("docs", "x"), "secret", {"text": "apple"}, index=False)
    store = open_store(index=INDEX)
    assert store.import_langgraph(database) == 2
    assert [i.key for i in store.search(("docs", "x"), query="apple") if i.score] == ["open"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"pool_size": 0},
        {"pool_size": -1},
        {"partitions": "4"},
        {"schema": "a" * 64},
        {"source": None},
        {"source": 5},
    ],
    ids=str,
)
def test_what_cannot_be_a_setting_is_refused_at_once(database: str, wrong: dict[str, Any]) -> None:
    given = {"source": database, **wrong}
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        PostgresMemoryStore(**given)


# time to live


def test_sweeping_raises_versions_and_never_takes_what_was_put_again(open_store) -> None:
    now = [1_000.0]
    store = open_store(clock=lambda: now[0], index=INDEX)
    store.batch([PutOp(N, f"k{i}", {"text": "cat"}, ttl=1) for i in range(1_200)])
    store.put(N, "stays", {"text": "cat"}, ttl=None)
    now[0] += 61
    store.put(N, "k7", {"text": "again"}, ttl=1)
    assert store.doctor().expired == 1_199
    assert store.sweep_ttl() == 1_199
    assert store.read([], versions=[N])[1] == {N: 1_201 + 1 + 1_199}
    now[0] -= 600  # a clock that steps back revives nothing
    assert {i.key for i in store.search(N)} == {"k7", "stays"}


def test_a_sweeper_works_in_the_background(open_store, database: str, schema: str) -> None:
    store = open_store()
    store.put(N, "k", {}, ttl=0.0001)
    running = store.start_ttl_sweeper(0.0005)
    give_up = time.monotonic() + 5
    while execute(database, f"SELECT count(*) FROM {schema}.items")[0][0] and time.monotonic() < give_up:
        time.sleep(0.02)
    assert execute(database, f"SELECT count(*) FROM {schema}.items") == [(0,)]
    running.cancel()
    assert store.stop_ttl_sweeper(1)


def test_a_get_refreshes_without_changing_a_version(open_store) -> None:
    now = [1_000.0]
    store = open_store(clock=lambda: now[0])
    store.put(N, "x", {}, ttl=1)
    now[0] += 40
    _, seen = store.read([GetOp(N, "x", refresh_ttl=True)], versions=[N])
    store.commit([PutOp(N, "y", {})], expect=seen)
    now[0] += 40
    assert store.get(N, "x") is not None
