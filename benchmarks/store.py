"""`SqliteMemoryStore` against LangGraph's stores and Chroma, in one run, on the same data and vectors.

    python benchmarks/store.py                     100 owners × 100 and 1 owner × 10,000; under two minutes
    python benchmarks/store.py --large             1,000 × 1,000 as well; 8 GB of disk, half an hour
    python benchmarks/store.py --json result.json

SqliteStore needs sqlite-vec: where Python cannot load extensions, it runs on `pysqlite3-binary` in place of `sqlite3`
(`pip install pysqlite3-binary`), with the newer SQLite in it. All SQLite files have `synchronous=FULL`.
"""

import argparse
import json
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any
from zlib import crc32

import numpy as np
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore
from measure import Timing, forget_file, interleaved, machine, peak_memory, prepared

from langmem_adapter.stores.sqlite import SqliteMemoryStore

DIMS = 384
WORDS = 400
"""Size of the vocabulary, Zipf-distributed: the commonest words stand in about half of the texts."""
TOPICS = tuple(f"topic{i}" for i in range(10))


# -------------------------------------------------------------------- data


class Texts:
    """Random texts, and for each the sum of its words' random vectors: alike if they share words."""

    def __init__(self) -> None:
        syllables = "ba co de fi gu ha jo ku la me ni po qua ri so ta vu we xi zo".split()
        self.words = [syllables[i % 20] + syllables[i // 20] + "lon" for i in range(WORDS)]
        weights = 1 / np.arange(3, WORDS + 3)
        self._weights = np.cumsum(weights / weights.sum())
        self._vectors = np.random.default_rng(7).standard_normal((WORDS, DIMS)).astype(np.float32)
        self._at = {w: i for i, w in enumerate(self.words)}
        self._known: dict[str, list[float]] = {}

    def text(self, seed: str) -> str:
        """Twelve words."""
        at = np.searchsorted(self._weights, np.random.default_rng(crc32(seed.encode())).random(12))
        return " ".join(self.words[i] for i in at)

    def value(self, seed: str) -> dict[str, Any]:
        """An item as a memory is stored: a text and what it is filtered by."""
        n = crc32(seed.encode()) >> 3
        return {
            "content": self.text(seed),
            "topic": TOPICS[n % 10],
            "status": "superseded" if n % 7 == 0 else "active",
            "kind": "fact",
            "importance": (n % 100) / 100,
        }

    def vector(self, text: str) -> list[float]:
        """The vector of a text as an embedder returns it; remembered once asked for by `know`."""
        known = self._known.get(text)
        if known is not None:
            return known
        found: list[float] = self._vectors[[self._at[w] for w in text.split()]].sum(axis=0).tolist()
        return found

    def know(self, texts: Sequence[str]) -> None:
        """Embed beforehand, so that no candidate pays for it."""
        self._known.update({t: self.vector(t) for t in texts})

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """What LangGraph takes as `embed`."""
        return [self.vector(t) for t in texts]


def owner(n: int) -> tuple[str, ...]:
    """The namespace of an owner's items."""
    return ("memories", "app", "user", f"u{n}", "facts")


def items(texts: Texts, number: int, count: int) -> list[tuple[str, dict[str, Any]]]:
    """Key and value of each item of one owner."""
    return [(f"k{i}", texts.value(f"{number}/{i}")) for i in range(count)]


# -------------------------------------------------------------------- candidates


class Store:
    """A LangGraph store under test."""

    def __init__(self, store: Any, close: Callable[[], None]) -> None:
        self.store = store
        self.close = close

    def put(self, number: int, pairs: Sequence[tuple[str, dict[str, Any]]]) -> None:
        """Write some items of an owner in one batch."""
        ns = owner(number)
        # `index` by put: SqliteStore does not heed the `fields` of its configuration.
        self.store.batch([PutOp(ns, k, v, index=["content"]) for k, v in pairs])

    def search(self, number: int, query: str | None = None, limit: int = 5, **filter: str) -> list[str]:
        """Keys found."""
        found = self.store.search(owner(number), query=query, filter=filter or None, limit=limit)
        return [i.key for i in found]

    def list(self) -> Any:
        """The first hundred namespaces under a prefix that all owners share."""
        return self.store.list_namespaces(prefix=("memories", "app"), limit=100)


class Chroma:
    """A collection of a persistent Chroma client, an owner's items told apart by metadata."""

    def __init__(self, folder: Path, texts: Texts) -> None:
        import chromadb
        from chromadb.config import Settings

        self._client = chromadb.PersistentClient(str(folder), Settings(anonymized_telemetry=False))
        self._items = self._client.get_or_create_collection(
            "items", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )
        self._texts = texts

    def put(self, number: int, pairs: Sequence[tuple[str, dict[str, Any]]]) -> None:
        """Write some items of an owner."""
        self._items.upsert(
            ids=[f"{number}/{k}" for k, _ in pairs],
            embeddings=[self._texts.vector(v["content"]) for _, v in pairs],  # type: ignore[arg-type]
            documents=[json.dumps(v) for _, v in pairs],
            metadatas=[{"owner": number, "topic": v["topic"], "status": v["status"]} for _, v in pairs],
        )

    def search(self, number: int, query: str | None = None, limit: int = 5, **filter: str) -> list[str]:
        """Keys found."""
        tests: list[dict[str, Any]] = [{"owner": number}, *({k: v} for k, v in filter.items())]
        where: Any = tests[0] if len(tests) == 1 else {"$and": tests}
        if query is None:
            ids = self._items.get(where=where, limit=limit, include=["documents"])["ids"]
        else:
            vector: Any = [self._texts.vector(query)]
            ids = self._items.query(query_embeddings=vector, where=where, n_results=limit, include=["documents"])[
                "ids"
            ][0]
        return [i.split("/")[1] for i in ids]

    def close(self) -> None:
        """Nothing: the client is shared by path in this process."""


def ours(path: Path, texts: Texts, **options: Any) -> Store:
    """Our store, ranking by vectors alone as the others do."""
    options = {"mode": "vector"} | options
    store = SqliteMemoryStore(path, index=_index(texts), **options)
    return Store(store, store.close)


def in_memory(texts: Texts) -> Store:
    """LangGraph's `InMemoryStore`."""
    return Store(InMemoryStore(index=_index(texts)), lambda: None)


def upstream(path: Path, texts: Texts, *, wal: bool) -> Store:
    """LangGraph's `SqliteStore`: as shipped, or with a write-ahead log."""
    module, cls = _sqlite_store()
    conn = module.connect(str(path), check_same_thread=False, isolation_level=None)
    conn.execute(f"PRAGMA journal_mode = {'WAL' if wal else 'DELETE'}")
    conn.execute("PRAGMA synchronous = FULL")
    store = cls(conn, index=_index(texts))
    store.setup()
    return Store(store, conn.close)


def _index(texts: Texts) -> Any:
    return {"dims": DIMS, "embed": texts.embed, "fields": ["content"]}


def _sqlite_store() -> tuple[ModuleType, Any]:
    """The `sqlite3` module that can load extensions, and a `SqliteStore` that uses it."""
    if hasattr(sqlite3.Connection, "enable_load_extension"):
        module: ModuleType = sqlite3
    else:
        try:
            import pysqlite3 as module  # type: ignore[import-not-found,no-redef]
        except ImportError:
            raise SystemExit("this Python cannot load SQLite extensions: pip install pysqlite3-binary") from None
    sys.modules["sqlite3"] = module
    try:
        from langgraph.store.sqlite import SqliteStore
    finally:
        sys.modules["sqlite3"] = sqlite3
    return module, SqliteStore


# -------------------------------------------------------------------- results


@dataclass
class Row:
    """One measurement: what, each candidate's time, and what the table asks for (other, ratio, by wall or CPU)."""

    what: str
    times: dict[str, Timing]
    reach: list[tuple[str, float, str]] = field(default_factory=list)
    note: str = ""

    def ratio(self, other: str, by: str) -> float:
        """How many times longer the other takes."""
        mine: float = getattr(self.times["ours"], by)
        return float(getattr(self.times[other], by)) / mine

    def verdicts(self) -> list[str]:
        """Each reach with what was measured."""
        found = []
        for other, wanted, by in self.reach:
            if other not in self.times:
                continue
            ratio = self.ratio(other, by)
            mark = "met" if ratio >= wanted else "NOT MET"
            found.append(f"{other} {ratio:.3g}× {by}, at least {wanted:g}×: {mark}")
        return found


def show(rows: Sequence[Row], facts: dict[str, str]) -> None:
    """Print it all as tables."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=150)
    for row in rows:
        table = Table("", "wall ms", "CPU ms", "wall ratio", "CPU ratio", title=row.what, title_justify="left")
        for name, t in row.times.items():
            ratios = [f"{row.ratio(name, by):.3g}×" for by in ("wall", "cpu")] if name != "ours" else ["", ""]
            table.add_row(name, f"{t.wall:.3f}", f"{t.cpu:.3f}", *ratios)
        console.print(table)
        for verdict in row.verdicts() + ([row.note] if row.note else []):
            console.print("  " + verdict, markup=False)
    for name, value in facts.items():
        console.print(f"{name}: {value}", markup=False, highlight=False)


# -------------------------------------------------------------------- measurements


@dataclass
class Bench:
    """A filled set of candidates."""

    folder: Path
    texts: Texts
    owners: int
    each: int
    stores: dict[str, Any]
    loading: dict[str, float]

    @property
    def size(self) -> str:
        """As the tables call it."""
        return f"{self.owners:,} × {self.each:,}"

    def query(self, n: int) -> str:
        """The query of a round: five words."""
        return " ".join(self.texts.text(f"query {n}").split()[:5])

    def owner(self, n: int) -> int:
        """The owner asked about in a round."""
        return n * 7 % self.owners

    def timed(
        self, what: str, call: Callable[[Any, int], object], rounds: int, *, but: Sequence[str] = (), warm: int = 2
    ) -> Row:
        """One row: the same call on every store."""
        calls = {name: _bound(call, s) for name, s in self.stores.items() if name not in but}
        return Row(f"{what} ({self.size})", interleaved(calls, rounds, warm=warm))


def _bound(call: Callable[[Any, int], object], store: Any) -> Callable[[int], object]:
    return lambda n: call(store, n)


def fill(folder: Path, texts: Texts, owners: int, each: int, names: Sequence[str]) -> Bench:
    """The named stores with `each` items for each owner, and how long the loading took."""
    folder.mkdir()
    makers: dict[str, Callable[[], Any]] = {
        "ours": lambda: ours(folder / "ours.db", texts),
        "SqliteStore WAL": lambda: upstream(folder / "wal.db", texts, wal=True),
        "SqliteStore": lambda: upstream(folder / "shipped.db", texts, wal=False),
        "InMemoryStore": lambda: in_memory(texts),
        "Chroma": lambda: Chroma(folder / "chroma", texts),
    }
    bench = Bench(folder, texts, owners, each, {n: makers[n]() for n in names}, dict.fromkeys(names, 0.0))
    for number in range(owners):
        pairs = items(texts, number, each)
        for start in range(0, each, 1_000):
            for name, store in bench.stores.items():
                began = time.perf_counter()
                store.put(number, pairs[start : start + 1_000])
                bench.loading[name] += time.perf_counter() - began
    return bench


def searches(b: Bench, rounds: int) -> Iterator[Row]:
    """Reads: by vector, by filter, both, and the list of namespaces."""
    b.texts.know([b.query(n) for n in range(rounds + 2)])
    touch(b, rounds)
    row = b.timed("top 5 of one owner, warm", lambda s, n: s.search(b.owner(n), b.query(n)), rounds)
    row.note = "recall@5: " + ", ".join(f"{k} {v:.2f}" for k, v in recall(b, min(rounds, 20)).items())
    if "InMemoryStore" in row.times and b.owners == 1:
        row.reach = [("SqliteStore WAL", 20, "cpu"), ("InMemoryStore", 100, "cpu")]
        yield scan(b, rounds)
    elif "InMemoryStore" not in row.times:
        row.reach = [("SqliteStore WAL", 5, "cpu")]
    yield row
    where = {"topic": TOPICS[3], "status": "active"}
    row = b.timed("newest 10 by topic and status", lambda s, n: s.search(b.owner(n), None, 10, **where), rounds)
    row.reach = [("SqliteStore WAL", 8, "cpu")] if b.each >= 1_000 else []
    yield row
    row = b.timed("top 5 by vector, topic and status", lambda s, n: s.search(b.owner(n), b.query(n), **where), rounds)
    row.reach = [*([("SqliteStore WAL", 3.0, "cpu")] if b.each >= 1_000 else []), ("Chroma", 8, "cpu")]
    yield row
    row = b.timed(
        "top 5 by vector and kind", lambda s, n: s.search(b.owner(n), b.query(n), kind="fact"), rounds, but=["Chroma"]
    )
    row.note = "`kind` is in no index and no column of ours"
    yield row
    row = b.timed("list_namespaces(prefix)", lambda s, n: s.list(), rounds, but=["Chroma"])
    row.reach = [("SqliteStore WAL", 50, "cpu")] if b.owners * b.each >= 1_000_000 else []
    yield row


def scan(b: Bench, rounds: int) -> Row:
    """A search against reading a matrix of that size once."""
    matrix = np.random.default_rng(0).random((b.each, DIMS), dtype=np.float32)
    both = {"ours": lambda n: b.stores["ours"].search(0, b.query(n)), "numpy sum": lambda n: matrix.sum()}
    row = Row(f"top 5 of one owner against one pass over its matrix ({b.size})", interleaved(both, rounds))
    row.reach = [("numpy sum", 0.4, "cpu")]
    return row


def touch(b: Bench, rounds: int) -> None:
    """Bring the owners that will be asked about into the caches that there are."""
    for number in {b.owner(n) for n in range(rounds + 2)}:
        for store in b.stores.values():
            store.search(number, b.query(0))


def recall(b: Bench, rounds: int) -> dict[str, float]:
    """The part of the true top 5 that each store finds (ties count as found)."""
    found = dict.fromkeys(b.stores, 0.0)
    for n in range(rounds):
        number, query = b.owner(n), np.array(b.texts.vector(b.query(n)))
        vectors = {k: np.array(b.texts.vector(v["content"])) for k, v in items(b.texts, number, b.each)}
        cosine = {k: float(v @ query / np.sqrt((v @ v) * (query @ query))) for k, v in vectors.items()}
        fifth = sorted(cosine.values())[-5]
        for name, store in b.stores.items():
            keys = store.search(number, b.query(n))
            found[name] += sum(cosine[k] >= fifth - 1e-6 for k in keys) / 5 / rounds
    return found


def cold(b: Bench, rounds: int) -> Row:
    """The first search after opening, the files out of the system's cache."""
    paths = {"ours": b.folder / "ours.db", "SqliteStore WAL": b.folder / "wal.db"}
    for name in paths:
        b.stores[name].close()

    def opened(name: str) -> Callable[[], Any]:
        def make() -> Any:
            forget_file(str(paths[name]))
            return ours(paths[name], b.texts) if name == "ours" else upstream(paths[name], b.texts, wal=True)

        return make

    calls = {name: (opened(name), lambda s, n: s.search(b.owner(n), b.query(n))) for name in paths}
    row = Row(
        f"top 5 of one owner, cold ({b.size})",
        prepared(calls, rounds),
        [("SqliteStore WAL", 1.5, "wall")] if b.each >= 1_000 else [],
    )
    row.note = "opened anew, the file out of the system's cache; opening itself is not counted"
    for name in paths:
        b.stores[name] = ours(paths[name], b.texts) if name == "ours" else upstream(paths[name], b.texts, wal=True)
    return row


def writes(b: Bench, rounds: int) -> Iterator[Row]:
    """Durable writes: one item, an overwrite, and a hundred at once."""
    fresh = [(f"new{i}", b.texts.value(f"new {i}")) for i in range(100 * (rounds + 2))]
    b.texts.know([v["content"] for _, v in fresh])
    wal = [("SqliteStore WAL", 1.0, by) for by in ("wall", "cpu")]
    row = b.timed("durable put", lambda s, n: s.put(b.owner(n), [fresh[n]]), rounds)
    row.reach = [*wal, ("SqliteStore", 3, "wall"), ("Chroma", 4, "wall")]
    yield row
    row = b.timed("durable overwrite", lambda s, n: s.put(b.owner(n), [("k3", fresh[n][1])]), rounds)
    yield row
    row = b.timed("batch of 100 puts", lambda s, n: s.put(b.owner(n), fresh[100 * n : 100 * n + 100]), rounds // 3)
    row.reach = wal
    yield row


def words(b: Bench, rounds: int) -> Row:
    """Word search against FTS5 asked for matches first and the owner then."""
    conn = sqlite3.connect(b.folder / "fts.db")
    conn.execute("CREATE VIRTUAL TABLE texts USING fts5(content, owner UNINDEXED, tokenize = 'porter')")
    for number in range(b.owners):
        rows = [(v["content"], number) for _, v in items(b.texts, number, b.each)]
        conn.executemany("INSERT INTO texts VALUES (?, ?)", rows)
    conn.commit()
    sql = "SELECT rowid FROM texts WHERE texts MATCH ? AND owner = ? ORDER BY bm25(texts) LIMIT 5"
    store = ours(b.folder / "ours.db", b.texts, mode="text")
    common = b.texts.words[:5]
    for n in range(rounds + 2):
        store.search(b.owner(n), " ".join(common))
    calls: dict[str, Callable[[int], object]] = {
        "ours": lambda n: store.search(b.owner(n), " ".join(common[n % 3 :])),
        "FTS5": lambda n: conn.execute(sql, (" OR ".join(common[n % 3 :]), b.owner(n))).fetchall(),
    }
    row = Row(f"word search, common words, warm ({b.size})", interleaved(calls, rounds))
    row.reach = [("FTS5", 100, "cpu")] if b.owners * b.each >= 1_000_000 else []
    row.note = "FTS5: match, then filter by owner; porter stemmer. Ours returns the items, FTS5 only their ids"
    store.close()
    conn.close()
    return row


def memory(b: Bench) -> dict[str, str]:
    """Whether the cache keeps its bound, and how long opening takes."""
    limit = 8_000_000
    b.stores["ours"].close()
    forget_file(str(b.folder / "ours.db"))
    began = time.perf_counter()
    store = SqliteMemoryStore(b.folder / "ours.db", index=_index(b.texts), cache_bytes=limit)
    opening = time.perf_counter() - began
    most = 0
    with closing(store):
        for number in range(min(b.owners, 200)):
            store.search(owner(number), query=b.query(number))
            most = max(most, store._cache.nbytes)
    b.stores["ours"] = ours(b.folder / "ours.db", b.texts)
    size = (b.folder / "ours.db").stat().st_size
    other = (b.folder / "wal.db").stat().st_size
    return {
        f"opening {b.size}": f"{1e3 * opening:.1f} ms, the file out of the system's cache (at most 1,000)",
        f"cache over {min(b.owners, 200)} owners of {b.size}": f"{most:,} of at most {limit:,} bytes",
        f"file of {b.size}": f"{size / 1e6:.0f} MB, SqliteStore's {other / 1e6:.0f} MB",
        f"loading {b.size}": ", ".join(f"{n} {s:.1f} s" for n, s in b.loading.items()),
    }


def run(folder: Path, *, large: bool, rounds: int) -> tuple[list[Row], dict[str, str]]:
    """All rows and what else there is to say."""
    texts = Texts()
    rows: list[Row] = []
    everyone = ("ours", "SqliteStore WAL", "SqliteStore", "InMemoryStore", "Chroma")
    facts = machine()
    module, _ = _sqlite_store()
    if module is not sqlite3:
        facts["SqliteStore runs on"] = (
            f"pysqlite3-binary, SQLite {module.sqlite_version}; this Python loads no extensions"
        )
    one = fill(folder / "one", texts, 1, 10_000, everyone)
    rows += searches(one, rounds)
    facts |= memory(one)
    _close(one)
    many = fill(folder / "many", texts, 100, 100, everyone)
    rows += [*searches(many, rounds), cold(many, max(5, rounds // 3)), words(many, rounds), *writes(many, rounds)]
    facts |= memory(many)
    _close(many)
    if large:
        huge = fill(folder / "huge", texts, 1_000, 1_000, ("ours", "SqliteStore WAL"))
        rows += [*searches(huge, 15), cold(huge, 9), *writes(huge, rounds)]
        facts |= memory(huge)
        rows.append(words(huge, 9))
        _close(huge)
    facts["peak memory"] = f"{peak_memory() / 1e6:.0f} MB"
    return rows, facts


def _close(b: Bench) -> None:
    for store in b.stores.values():
        store.close()


def main() -> None:
    """Run, print, and write JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="1,000 owners × 1,000 items as well")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--folder", type=Path, help="where to put the databases (default: a temporary folder)")
    given = parser.parse_args()
    random.seed(0)
    folder = Path(tempfile.mkdtemp(prefix="bench-store-", dir=given.folder))
    began = time.perf_counter()
    try:
        rows, facts = run(folder, large=given.large, rounds=given.rounds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    facts["this run took"] = f"{time.perf_counter() - began:.0f} s"
    show(rows, facts)
    if given.json:
        found = [
            asdict(r) | {"verdicts": r.verdicts(), "times": {n: t._asdict() for n, t in r.times.items()}} for r in rows
        ]
        given.json.write_text(json.dumps({"facts": facts, "rows": found}, indent=1))


if __name__ == "__main__":
    main()
