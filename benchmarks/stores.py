"""The stores that a Memory runs on, on the same records and vectors: SQLite, Chroma, PostgreSQL, LangGraph's in memory.

    python benchmarks/stores.py                       owners of 200 and 1,000 records among 20 of 200; two minutes
    python benchmarks/stores.py --url "host=db dbname=memories" --json stores.json

Every call is one that `Memory` makes. InMemoryStore is wrapped as `Memory` wraps a store that is not ours. SQLite has
`synchronous=FULL`, PostgreSQL `fsync=on`, Chroma is as it comes, and InMemoryStore writes nothing. CPU is that of this
process, Chroma's included; PostgreSQL's own is told beside it. Vectors are made beforehand.
"""

import argparse
import json
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psycopg
from database import described, postgres, server_cpu
from langchain_core.embeddings import Embeddings
from langgraph.store.base import GetOp, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from measure import Timing, interleaved, machine

from langmem_adapter.namespaces import Namespace, namespace
from langmem_adapter.records import MemoryRecord, Source
from langmem_adapter.scoring import Where
from langmem_adapter.stores.base import RankOp
from langmem_adapter.stores.chroma import ChromaMemoryStore
from langmem_adapter.stores.foreign import ForeignStore
from langmem_adapter.stores.postgres import PostgresMemoryStore
from langmem_adapter.stores.sqlite import SqliteMemoryStore

DIMS = 384
OWNERS = 20
EACH = 200
BIG = 1_000
TOPICS = tuple(f"topic/{i}" for i in range(12))
NOW = datetime(2026, 3, 1, tzinfo=UTC)

# -------------------------------------------------------------------- data


class Vectors(Embeddings):
    """A word's vector is random, a text's the sum of its words': alike if they share words. Each is made once."""

    def __init__(self) -> None:
        syllables = "ba co de fi gu ha jo ku la me ni po qua ri so ta vu we xi zo".split()
        self.words = [a + b + "lon" for a in syllables for b in syllables]
        made = np.random.default_rng(7).standard_normal((len(self.words), DIMS)).astype(np.float32)
        self._of = dict(zip(self.words, made, strict=True))
        self._known: dict[str, list[float]] = {}

    def embed_query(self, text: str) -> list[float]:
        """The vector of a text."""
        if text not in self._known:
            found: list[float] = np.sum([self._of[w] for w in text.split() if w in self._of], axis=0).tolist()
            self._known[text] = found
        return self._known[text]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One for each text."""
        return [self.embed_query(t) for t in texts]

    def text(self, seed: str, words: int) -> str:
        """Some words, the first ones more often."""
        chance = random.Random(seed)
        return " ".join(self.words[int(len(self.words) * chance.random() ** 3)] for _ in range(words))


def space(owner: str) -> Namespace:
    """Where an owner's facts are."""
    return namespace("facts", app_name="default", user_id=owner)


def put(vectors: Vectors, owner: str, key: str, seq: int) -> PutOp:
    """A record as a Memory stores it: about 1,100 characters of JSON, twelve words of text."""
    chance, at = random.Random(key), NOW - timedelta(days=seq % 400)
    content = vectors.text(f"{owner}/{key}", 12)
    record = MemoryRecord(
        memory_id=key,
        seq=seq,
        content=content,
        topic=TOPICS[seq % len(TOPICS)],
        value=content[:20],
        user_id=owner,
        session_id=f"session-{seq % 9}",
        importance=chance.random(),
        confidence=chance.random(),
        sources=(Source(source_type="user_implicit", source_id=f"session-{seq % 9}", at=at, confidence=0.9),),
        created_at=at,
        updated_at=at,
        confirmed_at=at,
        status="superseded" if seq % 7 == 0 else "active",
    )
    vectors.embed_query(content)
    return PutOp(space(owner), key, record.model_dump(mode="json"), index=["content"])


class Opened(NamedTuple):
    """A store under test."""

    store: Any
    close: Callable[[], None]


def opened(folder: Path, url: str, schema: str, vectors: Vectors, partitions: int | None) -> dict[str, Opened]:
    """All four, empty."""
    index: Any = {"dims": DIMS, "embed": vectors, "fields": ["content"]}
    sqlite = SqliteMemoryStore(folder / "memory.db", index=index)
    chroma = ChromaMemoryStore(str(folder / "chroma"), index=index)
    server = PostgresMemoryStore(url, schema=schema, index=index, partitions=partitions)
    memory = ForeignStore(InMemoryStore(index=index), vectors)
    return {
        "SQLite": Opened(sqlite, sqlite.close),
        "Chroma": Opened(chroma, chroma.close),
        "PostgreSQL": Opened(server, server.close),
        "InMemoryStore": Opened(memory, lambda: None),
    }


def fill(stores: dict[str, Opened], vectors: Vectors) -> dict[str, float]:
    """Twenty small owners and a big one in each store; how many seconds each took."""
    took = dict.fromkeys(stores, 0.0)
    sizes = {f"u{i}": EACH for i in range(OWNERS)} | {"big": BIG}
    for owner, count in sizes.items():
        puts = [put(vectors, owner, f"m_{i:020}", i + 1) for i in range(count)]
        for at in range(0, count, 200):
            for name, (store, _) in stores.items():
                began = time.perf_counter()
                store.commit(puts[at : at + 200], expect={})
                took[name] += time.perf_counter() - began
    return took


# -------------------------------------------------------------------- measurements

Call = Callable[[Any, int], object]


def calls(vectors: Vectors, rounds: int) -> Iterator[tuple[str, Call, int]]:
    """What is measured, how, and how often."""
    asked = [vectors.text(f"query {n}", 5) for n in range(rounds + 2)]
    vectors.embed_documents(asked)
    fresh = iter(range(10**6))

    def fresh_puts(what: str, owner: str, n: int, count: int) -> list[PutOp]:
        return [put(vectors, owner, f"{what}_{n}_{i}", 10_000 + next(fresh)) for i in range(count)]

    def rank(owner: str) -> Call:
        where = Where(now=NOW.timestamp())
        return lambda s, n: s.read([RankOp((space(owner),), asked[n], where, limit=8)])

    def sweep(owner: str) -> Call:
        return lambda s, n: s.read([SearchOp(space(owner), {"topic": TOPICS[n % 12], "status": "active"}, 1_000)])

    def conditional(s: Any, n: int) -> None:
        _, versions = s.read([GetOp(space("u3"), "m_00000000000000000001")], versions=(space("u3"),))
        s.commit(singles[n], expect=versions)

    def put_then_rank(s: Any, n: int) -> None:
        s.commit(later[n], expect={})
        rank("u7")(s, n)

    singles = [fresh_puts("single", "u3", n, 1) for n in range(rounds + 2)]
    later = [fresh_puts("later", "u7", n, 1) for n in range(rounds + 2)]
    alone = [fresh_puts("alone", "u1", n, 1) for n in range(rounds + 2)]
    many = [fresh_puts("many", "u4", n, 100) for n in range(rounds // 4 + 2)]
    yield "get", lambda s, n: s.read([GetOp(space("u5"), f"m_{n:020}")]), rounds
    yield f"ranked search, {EACH} records", rank("u6"), rounds
    yield f"ranked search, {BIG:,} records", rank("big"), rounds
    yield f"topic sweep, {EACH} records", sweep("u6"), rounds
    yield f"topic sweep, {BIG:,} records", sweep("big"), rounds
    yield "durable put", lambda s, n: s.commit(alone[n], expect={}), rounds
    yield "batch of 100 puts", lambda s, n: s.commit(many[n], expect={}), rounds // 4
    yield "read and conditional commit", conditional, rounds
    yield f"put, then ranked search, {EACH} records", put_then_rank, rounds


def run(
    stores: dict[str, Opened], vectors: Vectors, rounds: int, url: str
) -> tuple[dict[str, dict[str, Timing]], dict[str, float]]:
    """Medians of every call on every store; and PostgreSQL's own CPU for each call, in milliseconds, on average."""
    found, server = {}, {}
    for what, call, times in calls(vectors, rounds):
        bound = {name: _bound(call, store) for name, (store, _) in stores.items()}
        before = server_cpu(url)
        found[what] = interleaved(bound, times)
        server[what] = 1e3 * (server_cpu(url) - before) / (times + 2)
    return found, server


def _bound(call: Call, store: Any) -> Callable[[int], object]:
    return lambda n: call(store, n)


def sizes(folder: Path, url: str, schema: str) -> dict[str, float]:
    """Bytes a record on the disk of each store, and of each table and index of PostgreSQL."""
    with psycopg.connect(url, autocommit=True) as conn:
        for table in ("items", "vectors", "namespaces"):
            conn.execute(f"VACUUM {schema}.{table}".encode())
        rows = conn.execute(
            r"SELECT regexp_replace(relname, '_\d+', ''), sum(pg_table_size(oid))::bigint, relkind FROM pg_class "
            "WHERE relkind IN ('r', 'i') AND relname !~ '^(pg_|commits|meta)' AND relnamespace = %s::regnamespace "
            "GROUP BY 1, 3 ORDER BY 1",
            (schema,),
        ).fetchall()
        [count] = conn.execute(f"SELECT count(*) FROM {schema}.items".encode()).fetchone() or [1]
    found = {"SQLite": _bytes(folder, "memory.db*"), "Chroma": _bytes(folder / "chroma", "**/*")}
    found |= {f"PostgreSQL {name}{' (index)' if kind == 'i' else ''}": size for name, size, kind in rows}
    found["PostgreSQL, all"] = sum(size for _, size, _ in rows)
    return {name: size / count for name, size in found.items()}


def _bytes(folder: Path, pattern: str) -> int:
    return sum(f.stat().st_blocks * 512 for f in folder.glob(pattern) if f.is_file())


# -------------------------------------------------------------------- results


def show(
    found: dict[str, dict[str, Timing]], server: dict[str, float], each: dict[str, float], facts: dict[str, str]
) -> None:
    """Print it as tables."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=150)
    names = list(next(iter(found.values())))
    table = Table("wall / CPU, median ms", *names, "PostgreSQL's own CPU")
    for what, times in found.items():
        table.add_row(what, *(f"{times[n].wall:.2f} / {times[n].cpu:.2f}" for n in names), f"{server[what]:.1f}")
    console.print(table)
    table = Table("on disk", "bytes a record")
    for name, size in each.items():
        table.add_row(name, f"{size:,.0f}")
    console.print(table)
    for name, value in facts.items():
        console.print(f"{name}: {value}", markup=False, highlight=False)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, print, and write JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--partitions", type=int, help="divide PostgreSQL's tables into so many")
    parser.add_argument("--url", help="a PostgreSQL to use; else one is started. A schema bench_… is made and dropped")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    given = parser.parse_args(arguments)
    folder, facts, schema = Path(tempfile.mkdtemp(prefix="bench-stores-")), machine(), f"bench_{time.time_ns()}"
    vectors = Vectors()
    try:
        with postgres(given.url) as url:
            stores = opened(folder, url, schema, vectors, given.partitions)
            facts["filled in"] = ", ".join(f"{n} {t:.1f} s" for n, t in fill(stores, vectors).items())
            facts |= described(url)
            each = sizes(folder, url, schema)
            found, server = run(stores, vectors, given.rounds, url)
            for _, close in stores.values():
                close()
            with psycopg.connect(url, autocommit=True) as conn:
                conn.execute(f"DROP SCHEMA {schema} CASCADE".encode())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    show(found, server, each, facts)
    if given.json:
        rows = {what: {name: t._asdict() for name, t in times.items()} for what, times in found.items()}
        given.json.write_text(
            json.dumps({"facts": facts, "bytes a record": each, "medians": rows, "server CPU": server}, indent=1)
        )


if __name__ == "__main__":
    main()
