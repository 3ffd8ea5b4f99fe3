"""Loading checkpoints: each in one short read transaction, nothing held while a caller looks at what it got."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import ormsgpack
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple, DeltaChannelHistory, PendingWrite
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from langmem_adapter.checkpoint import threads, values
from langmem_adapter.checkpoint.configs import Where
from langmem_adapter.checkpoint.elements import Tools
from langmem_adapter.checkpoint.lives import Lives
from langmem_adapter.checkpoint.messages import Mould
from langmem_adapter.checkpoint.schema import SHIFT
from langmem_adapter.errors import StoreCorrupt
from langmem_adapter.stores.connections import Connections

BATCH = 16
"""Checkpoints loaded in one read transaction when listing; their messages are decoded once."""

_ROW = "SELECT c.id, c.parent, c.metadata, c.body FROM ckpt_checkpoints c WHERE c.space = ?"


class Key(NamedTuple):
    """A checkpoint to load."""

    thread: int
    space: int
    thread_id: str
    ns: str
    checkpoint: str


def get_tuple(connections: Connections, config: RunnableConfig, tools: Tools, lives: Lives) -> CheckpointTuple | None:
    """The checkpoint that the config names, or the latest of its namespace; None if there is none."""
    where = Where.of(config)
    with connections.reading() as conn:
        deaths, thread, space = conn.execute(_BEGIN, (threads.DEATHS, where.thread_id, where.ns)).fetchone()
        lives.deaths = deaths = max(lives.deaths, int(deaths or 0))
        found = None if space is None else Loading(conn, thread, tools).checkpoint(where, space)
    lives.note(where._replace(checkpoint=None), deaths)
    if found is not None:
        lives.note(where._replace(checkpoint=found.checkpoint["id"]), deaths)
    return found


_BEGIN = (
    "SELECT (SELECT value FROM ckpt_meta WHERE key = ?), t.id, s.id FROM (SELECT 1) "
    "LEFT JOIN ckpt_threads t ON t.thread = ? LEFT JOIN ckpt_spaces s ON s.thread = t.id AND s.ns = ?"
)


def space_of(conn: sqlite3.Connection, thread_id: str, ns: str) -> tuple[int, int] | None:
    """The numbers of a thread and its namespace."""
    found = conn.execute(
        "SELECT t.id, s.id FROM ckpt_threads t JOIN ckpt_spaces s ON s.thread = t.id WHERE t.thread = ? AND s.ns = ?",
        (thread_id, ns),
    ).fetchone()
    return None if found is None else (found[0], found[1])


def list_keys(
    connections: Connections,
    config: RunnableConfig | None,
    filter: dict[str, Any] | None,
    before: RunnableConfig | None,
    limit: int | None,
    tools: Tools,
) -> list[Key]:
    """The checkpoints that match, newest first."""
    sql, params = _search(config, before)
    if limit is not None and not filter:
        sql, params = f"{sql} LIMIT ?", [*params, max(0, limit)]
    found: list[Key] = []
    with connections.reading() as conn:
        for thread, space, thread_id, ns, checkpoint, metadata in conn.execute(sql, params):
            if limit is not None and len(found) >= limit:
                break
            if not filter or _matches(tools.codec.unpack(tools.sealing.open(metadata)), filter):
                found.append(Key(thread, space, thread_id, ns, checkpoint))
    return found


def _search(config: RunnableConfig | None, before: RunnableConfig | None) -> tuple[str, list[Any]]:
    conditions, params = ["1"], []
    if config is not None:
        ids = config.get("configurable") or {}
        conditions.append("t.thread = ?")
        params.append(Where.of(config).thread_id)
        for column, value in (("s.ns", ids.get("checkpoint_ns")), ("c.id", ids.get("checkpoint_id") or None)):
            if value is not None:
                conditions.append(f"{column} = ?")
                params.append(value)
    if before is not None and (earlier := (before.get("configurable") or {}).get("checkpoint_id")):
        conditions.append("c.id < ?")
        params.append(earlier)
    # CROSS JOIN: the thread first, so that the rest are ranges of primary keys.
    sql = (
        "SELECT t.id, s.id, t.thread, s.ns, c.id, c.metadata FROM ckpt_threads t CROSS JOIN ckpt_spaces s "
        "ON s.thread = t.id CROSS JOIN ckpt_checkpoints c ON c.space = s.id "
        f"WHERE {' AND '.join(conditions)} ORDER BY c.id DESC"
    )
    return sql, params


def _matches(metadata: dict[str, Any], filter: dict[str, Any]) -> bool:
    return all(metadata.get(key) == value for key, value in filter.items())


def load(connections: Connections, keys: Sequence[Key], tools: Tools) -> list[CheckpointTuple]:
    """The checkpoints of these keys, those deleted meanwhile left out."""
    found: list[CheckpointTuple] = []
    loading: Loading | None = None
    with connections.reading() as conn:
        for key in keys:
            if loading is None or loading.thread != key.thread:
                loading = Loading(conn, key.thread, tools, share=True)
            where = Where(key.thread_id, key.ns, key.checkpoint)
            item = loading.checkpoint(where, key.space)
            if item is not None:
                found.append(item)
    return found


def batches(keys: Sequence[Key]) -> Iterator[Sequence[Key]]:
    """Keys in growing batches: whoever wants one only does not wait for sixteen."""
    start, size = 0, 1
    while start < len(keys):
        yield keys[start : start + size]
        start, size = start + size, min(size * 4, BATCH)


class Loading:
    """Loads checkpoints of one thread within a read transaction.

    With `share` a message in several checkpoints is decoded once, and each checkpoint gets its own copy.
    """

    def __init__(self, conn: sqlite3.Connection, thread: int, tools: Tools, *, share: bool = False) -> None:
        self.thread = thread
        self._conn = conn
        self._codec, self._sealing, _ = tools
        self._decoded: dict[int, Mould] | None = {} if share else None

    def checkpoint(self, where: Where, space: int) -> CheckpointTuple | None:
        """The checkpoint of this id, or the latest; None if it is not there."""
        if where.checkpoint is None:
            row = self._conn.execute(f"{_ROW} ORDER BY c.id DESC LIMIT 1", (space,)).fetchone()
        else:
            row = self._conn.execute(f"{_ROW} AND c.id = ?", (space, where.checkpoint)).fetchone()
        if row is None:
            return None
        checkpoint_id, parent, metadata, sealed = row
        body = self.body(sealed)
        versions = body["channel_versions"] | dict.fromkeys(body.pop(values.UNVERSIONED, ()), f"@{checkpoint_id}")
        held = {c: v for c, v in ((c, self.channel(space, c, v)) for c, v in versions.items()) if v is not ABSENT}
        return CheckpointTuple(
            config=where.config(checkpoint_id),
            checkpoint=cast(Any, {**body, "id": checkpoint_id, "channel_values": held}),
            metadata=cast(Any, self.body(metadata)),
            parent_config=where.config(parent) if parent else None,
            pending_writes=self.writes(space, checkpoint_id),
        )

    def body(self, sealed: bytes) -> dict[str, Any]:
        """What a checkpoint holds besides its values; also: its metadata."""
        return cast(dict[str, Any], self._codec.unpack(self._sealing.open(sealed)))

    def channel(self, space: int, channel: str, version: Any) -> Any:
        """The value of a channel's version; ABSENT if it had none."""
        row = self._conn.execute(
            "SELECT kind, data FROM ckpt_channels WHERE space = ? AND channel = ? AND version = ?",
            (space, channel, version),
        ).fetchone()
        return ABSENT if row is None else self.value(*row)

    def writes(self, space: int, checkpoint: str, channels: Iterable[str] | None = None) -> list[PendingWrite]:
        """The writes of a checkpoint, in the order in which they are applied."""
        rows = self._conn.execute(
            "SELECT task, channel, kind, data FROM ckpt_writes WHERE space = ? AND checkpoint = ? "
            "ORDER BY path, task, idx",
            (space, checkpoint),
        ).fetchall()
        wanted = None if channels is None else set(channels)
        return [(t, c, self.value(kind, data)) for t, c, kind, data in rows if wanted is None or c in wanted]

    def value(self, kind: int, sealed: bytes) -> Any:
        """The value of a row."""
        data = self._sealing.open(sealed)
        if kind & values.SNAPSHOT:
            return _DeltaSnapshot(self._plain(kind & ~values.SNAPSHOT, data))
        return self._plain(kind, data)

    def _plain(self, kind: int, data: bytes) -> Any:
        if kind == values.RUNS:
            return [m for first, count in values.unpack_runs(data) for m in self._run(first, count)]
        if kind == values.ELEMENT:
            (data,) = self._elements(ormsgpack.unpackb(data), 1)
        return self._codec.unpack(data, self._message)

    def _message(self, number: int) -> Any:
        return self._run(number, 1)[0]

    def _run(self, first: int, count: int) -> list[Any]:
        """Consecutive messages, decoded in one go."""
        if self._decoded is None:
            return self._decode(self._elements(first, count))
        wanted = range(first, first + count)
        for start, length in _gaps(wanted, self._decoded):
            fresh = self._decode(self._elements(start, length))
            self._decoded.update(zip(range(start, start + length), map(Mould, fresh), strict=True))
        return [self._decoded[n].cast() for n in wanted]

    def _decode(self, packed: list[bytes]) -> list[Any]:
        header = b"\xdd" + len(packed).to_bytes(4, "big")
        return cast(list[Any], self._codec.unpack(header + b"".join(packed)))

    def _elements(self, first: int, count: int) -> list[bytes]:
        start = self.thread << SHIFT | first
        rows = self._conn.execute(
            "SELECT data FROM ckpt_elements WHERE id BETWEEN ? AND ? ORDER BY id", (start, start + count - 1)
        ).fetchall()
        if len(rows) != count:
            raise StoreCorrupt(f"{count - len(rows)} of {count} messages of a checkpoint are missing")
        return [self._sealing.open(data) for (data,) in rows]


ABSENT = object()


def _gaps(wanted: range, have: dict[int, Mould]) -> Iterator[tuple[int, int]]:
    """The runs of numbers that are not there yet."""
    start = None
    for n in wanted:
        if n in have:
            if start is not None:
                yield start, n - start
            start = None
        elif start is None:
            start = n
    if start is not None:
        yield start, wanted.stop - start


def delta_history(
    connections: Connections, config: RunnableConfig, channels: Sequence[str], tools: Tools
) -> dict[str, DeltaChannelHistory]:
    """For each channel the writes since its last stored value, along the parents, and that value as `seed`."""
    where = Where.of(config)
    collected: dict[str, list[PendingWrite]] = {c: [] for c in channels}
    seeds: dict[str, Any] = {}
    with connections.reading() as conn:
        found = space_of(conn, where.thread_id, where.ns)
        if found is not None:
            loading = Loading(conn, found[0], tools)
            for checkpoint, body in ancestors(conn, loading, found[1], where.checkpoint):
                open_ones = [c for c in collected if c not in seeds]
                if not open_ones:
                    break
                for write in reversed(loading.writes(found[1], checkpoint, open_ones)):
                    collected[write[1]].append(write)
                for c in open_ones:
                    version = body["channel_versions"].get(c)
                    value = ABSENT if version is None else loading.channel(found[1], c, version)
                    if value is not ABSENT:
                        seeds[c] = value
    return {c: _history(collected[c], seeds.get(c, ABSENT)) for c in channels}


def _history(newest_first: list[PendingWrite], seed: Any) -> DeltaChannelHistory:
    history: DeltaChannelHistory = {"writes": newest_first[::-1]}
    if seed is not ABSENT:
        history["seed"] = seed
    return history


def ancestors(
    conn: sqlite3.Connection, loading: Loading, space: int, checkpoint: str | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The ids and bodies of a checkpoint's ancestors, nearest first; of the latest checkpoint, if none is named."""
    sql = "SELECT id, parent, body FROM ckpt_checkpoints WHERE space = ?"
    if checkpoint is None:
        row = conn.execute(f"{sql} ORDER BY id DESC LIMIT 1", (space,)).fetchone()
    else:
        row = conn.execute(f"{sql} AND id = ?", (space, checkpoint)).fetchone()
    seen = set()
    while row is not None and row[1] and row[0] not in seen:
        seen.add(row[0])
        row = conn.execute(f"{sql} AND id = ?", (space, row[1])).fetchone()
        if row is not None and row[0] not in seen:
            yield row[0], loading.body(row[2])
