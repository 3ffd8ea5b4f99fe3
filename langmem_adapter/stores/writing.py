"""Puts and deletes: prepared before the transaction, applied inside it."""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, cast

from langgraph.store.base import PutOp, get_text_at_path, tokenize_path

from langmem_adapter.errors import Conflict
from langmem_adapter.namespaces import Namespace
from langmem_adapter.stores.base import Kept
from langmem_adapter.stores.facets import Deadlines, row_of, stored
from langmem_adapter.stores.part import Change, Part
from langmem_adapter.stores.schema import NAMESPACE_SHIFT, number
from langmem_adapter.stores.tokens import Indexed, index
from langmem_adapter.stores.values import encode, path, strings
from langmem_adapter.stores.vectors import Matrix

WHOLE = ("$",)


@dataclass(slots=True)
class Prepared:
    """One put or (`value` None) delete, with all that could be computed without the database."""

    path: str
    key: str
    value: str | None = None
    row: tuple[Any, ...] | None = None
    words: Indexed | None = None
    texts: tuple[str, ...] = ()
    """What is to be embedded."""
    vectors: Matrix | None = None
    fields: str | None = None
    topic: str | None = None
    status: str | None = None
    slot: str | None = None
    ttl: float | None = None
    times: tuple[int, int, int | None] | None = None
    """When it was created, updated and expires, if it comes from another store."""


class Written(NamedTuple):
    """What a transaction did to one namespace."""

    namespace: int
    before: int
    after: int
    changes: list[Change]


class Refreshed(NamedTuple):
    """The new deadlines of items of one namespace."""

    namespace: int
    before: int
    after: int
    deadlines: dict[int, int]

    def step(self, part: Part) -> Part:
        """A cached part as it is after this."""
        return part.moved(self.deadlines) if isinstance(part, Deadlines) else part


def prepare(puts: Iterable[PutOp], fields: Sequence[str]) -> list[Prepared]:
    """The puts, last write of each key only. Raises for values that cannot be stored."""
    last: dict[tuple[str, str], PutOp] = {}
    for op in puts:
        at = (path(op.namespace), op.key)
        last.pop(at, None)
        last[at] = op
    return [_prepared(where, key, op, fields) for (where, key), op in last.items()]


def _prepared(where: str, key: str, op: PutOp, fields: Sequence[str]) -> Prepared:
    if op.value is None:
        return Prepared(where, key)
    text = encode(op.value)
    paths = fields if op.index is None else () if op.index is False else tuple(op.index)
    texts = texts_at(op.value, paths)
    topic, status, slot = (v if isinstance(v := op.value.get(k), str) else None for k in ("topic", "status", "slot"))
    return Prepared(
        path=where,
        key=key,
        value=text,
        row=row_of(op.value),
        words=index(words_at(op.value, paths) if "$" in paths else texts),
        texts=texts,
        fields=None if op.index is None else _to_json(tuple(paths)),
        topic=topic,
        status=status,
        slot=slot,
        ttl=op.ttl,
    )


def texts_at(value: Mapping[str, Any], paths: Sequence[str]) -> tuple[str, ...]:
    """What to embed of a value: every non-blank text at the paths, as LangGraph's stores read them."""
    return tuple(t for p in paths for t in _texts(value, p) if t.strip())


def _texts(value: Mapping[str, Any], path: str) -> Sequence[str]:
    steps = _steps(path)
    if steps == [path] != ["*"] and isinstance(text := value.get(path), str):  # as nearly always
        return (text,)
    return get_text_at_path(value, steps)


@lru_cache(maxsize=1_000)
def _to_json(paths: tuple[str, ...]) -> str:
    return json.dumps(paths)


@lru_cache(maxsize=1_000)
def _steps(path: str) -> str | list[str]:
    return path if path == "$" else tokenize_path(path)


def words_at(value: Mapping[str, Any], paths: Sequence[str]) -> list[str]:
    """What to find a value by: as `texts_at`, but the whole value is its strings, not its keys and brackets."""
    return [t for p in paths for t in (strings(value) if p == "$" else texts_at(value, (p,)))]


def give_vectors(prepared: Sequence[Prepared], vectors: Matrix) -> None:
    """Set the vectors of the puts; they come in the order of all their texts."""
    start = 0
    for p in prepared:
        end = start + len(p.texts)
        if p.texts:
            p.vectors = vectors[start:end]
        start = end


def check_versions(conn: sqlite3.Connection, expect: Mapping[Namespace, int]) -> None:
    """Conflict unless every namespace is still at the version expected."""
    for wanted, version in expect.items():
        row = conn.execute("SELECT version FROM memory_namespaces WHERE path = ?", (path(wanted),)).fetchone()
        found = 0 if row is None else row[0]
        if found != version:
            raise Conflict(f"{wanted} is at version {found}, not {version}: another writer changed it; read it again")


def write(
    conn: sqlite3.Connection, prepared: Sequence[Prepared], embedder: int | None, now: int, *, erasing: bool = False
) -> list[Written]:
    """Apply the puts; what changed, by namespace. Namespaces in which nothing changed are left out.

    Unless `erasing`, a namespace is marked when anything goes from it: copies of it may stay in the file.
    """
    groups: dict[str, list[Prepared]] = {}
    for p in prepared:
        groups.setdefault(p.path, []).append(p)
    batches = [_write_one(conn, where, group, embedder, now) for where, group in groups.items()]
    marked = [(b.namespace,) for b in batches if b is not None and b.removed and not erasing]
    if marked:
        sql = "UPDATE memory_namespaces SET removed = ? WHERE id = ?"
        epoch = number(conn, "epoch")
        conn.executemany(sql, [(epoch, *id) for id in marked])
    return [b.written for b in batches if b is not None]


def _write_one(
    conn: sqlite3.Connection, where: str, group: Sequence[Prepared], embedder: int | None, now: int
) -> "_Batch | None":
    sql = "SELECT id, version, stamp, next_seq, latest FROM memory_namespaces WHERE path = ?"
    row = conn.execute(sql, (where,)).fetchone()
    if row is None:
        if all(p.value is None for p in group):
            return None
        cursor = conn.execute("INSERT INTO memory_namespaces VALUES (NULL, ?, 0, 0, 1, 0, 0)", (where,))
        row = (cursor.lastrowid, 0, 0, 1, 0)
    id, version, stamp, seq, latest = row
    batch = _Batch(conn, id, seq, latest, embedder, now)
    stored = _stored(conn, id, [p.key for p in group])
    for p in group:
        batch.add(p, stored.get(p.key))
    if not batch.changes:
        return None
    batch.flush()
    count = len(batch.changes)
    conn.execute(
        "UPDATE memory_namespaces SET version = ?, stamp = ?, next_seq = ?, latest = ? WHERE id = ?",
        (version + count, stamp + count, batch.seq, batch.latest, id),
    )
    batch.written = Written(id, stamp, stamp + count, batch.changes)
    return batch


_Old = tuple[int, int, int | None]
_COLUMNS = "id, created_at, expires_at"
_KEYS = 100


def _stored(conn: sqlite3.Connection, namespace: int, keys: Sequence[str]) -> dict[str, _Old]:
    """Id, created_at and expires_at of the items there are, by key."""
    found: dict[str, _Old] = {}
    if len(keys) < 8:
        sql = f"SELECT {_COLUMNS} FROM memory_items WHERE namespace = ? AND key = ?"
        for key in keys:
            row = conn.execute(sql, (namespace, key)).fetchone()
            if row is not None:
                found[key] = row
        return found
    # Always as many parameters: the statement is compiled once.
    sql = f"SELECT key, {_COLUMNS} FROM memory_items WHERE namespace = ? AND key IN ({', '.join('?' * _KEYS)})"
    for start in range(0, len(keys), _KEYS):
        some = keys[start : start + _KEYS]
        for key, *row in conn.execute(sql, (namespace, *some, *[None] * (_KEYS - len(some)))):
            found[key] = cast(_Old, tuple(row))
    return found


# An update, not a replacement: it leaves the index of keys alone.
_PUT = (
    "INSERT INTO memory_items VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
    "value = excluded.value, created_at = excluded.created_at, updated_at = excluded.updated_at, "
    "expires_at = excluded.expires_at, ttl = excluded.ttl, fields = excluded.fields, topic = excluded.topic, "
    "status = excluded.status, slot = excluded.slot"
)


class _Batch:
    """The rows of one namespace's changes, written together."""

    def __init__(
        self, conn: sqlite3.Connection, namespace: int, seq: int, latest: int, embedder: int | None, now: int
    ) -> None:
        self.changes: list[Change] = []
        self.written = Written(namespace, 0, 0, self.changes)
        self.removed = False
        """Whether anything was overwritten or deleted."""
        self.namespace = namespace
        self.seq = seq
        self.latest = latest
        self._conn = conn
        self._embedder = embedder
        self._now = now
        self._items: list[tuple[Any, ...]] = []
        self._index: list[tuple[Any, ...]] = []
        self._gone: list[tuple[int]] = []

    def add(self, p: Prepared, old: "_Old | None") -> None:
        """Note one put or delete; `old` is what is stored under its key."""
        self.removed |= old is not None
        if p.value is None:
            if old is not None:
                self._gone.append((old[0],))
                self.changes.append(Change(old[0], None, None, None, None))
            return
        if old is None:
            id, self.seq = self.namespace << NAMESPACE_SHIFT | self.seq, self.seq + 1
        else:
            id = old[0]
        # Strictly growing in a namespace, so that "newest first" survives a clock that steps back.
        self.latest = max(self._now, self.latest + 1) if p.times is None else max(self.latest, p.times[1])
        expired = old is not None and old[2] is not None and old[2] <= self._now
        created = self.latest if old is None or expired else old[1]
        expires = None if p.ttl is None else self._now + round(p.ttl * 60e6)
        self._put(id, p, p.times or (created, self.latest, expires))

    def _put(self, id: int, p: Prepared, times: tuple[int, int, int | None]) -> None:
        assert p.row is not None
        assert p.words is not None
        self._items.append((id, self.namespace, p.key, p.value, *times, p.ttl, p.fields, p.topic, p.status, p.slot))
        embedded = self._embedder is not None and p.fields != "[]"
        vectors = (self._embedder, b"" if p.vectors is None else p.vectors.tobytes()) if embedded else (None, None)
        self._index.append((id, p.words.hashes.tobytes(), p.words.language, *stored(p.row), *vectors))
        self.changes.append(Change(id, p.row, p.words, p.vectors, times[2]))

    def flush(self) -> None:
        """Write the rows."""
        for table in ("memory_items", "memory_index"):
            self._many(f"DELETE FROM {table} WHERE id = ?", self._gone)
        self._many(_PUT, self._items)
        self._many("INSERT OR REPLACE INTO memory_index VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", self._index)

    def _many(self, sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            self._conn.executemany(sql, rows)


def kept(conn: sqlite3.Connection, where: str) -> tuple[int, dict[str, Kept]]:
    """See `MemoryStore.kept`."""
    rows = conn.execute("SELECT id, latest FROM memory_namespaces WHERE path = ?", (where,)).fetchall()
    if not rows:
        return 0, {}
    [(id, latest)] = rows
    sql = "SELECT key, fields, created_at, updated_at, expires_at, ttl FROM memory_items WHERE namespace = ?"
    return latest, {key: kept_of(*rest) for key, *rest in conn.execute(sql, (id,))}


def kept_of(fields: str | None, created: int, updated: int, expires: int | None, ttl: float | None) -> Kept:
    """What is kept of an item, from its row."""
    return Kept(None if fields is None else tuple(json.loads(fields)), created, updated, expires, ttl)


def give_times(prepared: Iterable[Any], kept: Sequence[Kept]) -> None:
    """Set the times of the puts; they come in the same order."""
    for p, k in zip(prepared, kept, strict=True):
        p.times = (k.created_at, k.updated_at, k.expires_at)


def refresh(conn: sqlite3.Connection, ttls: Mapping[int, float], now: int) -> list[Refreshed]:
    """Start the ttl of these items again, unless they have expired meanwhile."""
    moved: dict[int, dict[int, int]] = {}
    for id, ttl in ttls.items():
        at = now + round(ttl * 60e6)
        sql = "UPDATE memory_items SET expires_at = ? WHERE id = ? AND ttl = ? AND expires_at > ?"
        if conn.execute(sql, (at, id, ttl, now)).rowcount:
            moved.setdefault(id >> NAMESPACE_SHIFT, {})[id] = at
    done = []
    for where, deadlines in moved.items():
        sql = "UPDATE memory_namespaces SET stamp = stamp + 1 WHERE id = ? RETURNING stamp"
        after = conn.execute(sql, (where,)).fetchall()[0][0]
        done.append(Refreshed(where, after - 1, after, deadlines))
    return done


def expired(conn: sqlite3.Connection, now: int) -> list[Prepared]:
    """Deletes of all items whose time is over."""
    rows = conn.execute(
        "SELECT n.path, i.key FROM memory_items i JOIN memory_namespaces n ON n.id = i.namespace "
        "WHERE i.expires_at IS NOT NULL AND i.expires_at <= ?",
        (now,),
    )
    return [Prepared(where, key) for where, key in rows]
