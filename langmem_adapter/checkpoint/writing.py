"""Storing a checkpoint and its pending writes: pack first, then one short transaction."""

import sqlite3
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP, ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.base import get_checkpoint_metadata as full_metadata

from langmem_adapter.checkpoint import threads, values
from langmem_adapter.checkpoint.configs import Where
from langmem_adapter.checkpoint.elements import Cache, Placing, Tools
from langmem_adapter.checkpoint.errors import ThreadDeleted
from langmem_adapter.checkpoint.lives import REFUSED, Lives
from langmem_adapter.checkpoint.messages import Drafter
from langmem_adapter.checkpoint.sealing import Hashes
from langmem_adapter.checkpoint.threads import Thread
from langmem_adapter.stores.connections import Connections
from langmem_adapter.stores.workers import Ticket

_HELD = 1_000
"""Checkpoints whose writes may be held in memory until they come."""


class Writer:
    """Writes to one file."""

    def __init__(self, connections: Connections, lives: Lives) -> None:
        self._connections = connections
        self.lives = lives
        self.cache = Cache()
        self._held: OrderedDict[Where, list[_Writes]] = OrderedDict()

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        tools: Tools,
        ticket: Ticket | None,
    ) -> RunnableConfig:
        """Store a checkpoint and return its config."""
        where = Where.of(config)
        made = where._replace(checkpoint=checkpoint["id"])
        packed = _pack(checkpoint, full_metadata(config, metadata), new_versions, tools)
        with self._placing() as done, self._connections.writing(ticket) as conn:
            thread = threads.enter(conn, where.thread_id, where.ns, tools.hashes)
            self._admit(conn, thread, made, where.checkpoint, metadata.get("parents"), packed.versions.values())
            began = threads.began(conn, thread, made, where.checkpoint, metadata)
            placing = done(Placing(conn, thread, self.cache.of(conn, thread), tools, began))
            conn.executemany(
                "INSERT OR REPLACE INTO ckpt_channels VALUES (?, ?, ?, ?, ?)",
                list(_channel_rows(conn, thread, packed, checkpoint, placing, tools)),
            )
            conn.execute(
                "INSERT OR REPLACE INTO ckpt_checkpoints VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    thread.space,
                    checkpoint["id"],
                    where.checkpoint,
                    int(time.time()),
                    _run_hash(tools.hashes, packed.run_id),
                    tools.sealing.seal(placing.redacted(packed.metadata)),
                    tools.sealing.seal(packed.body),
                    began,
                ),
            )
            for writes in self._held.pop(made, ()):
                _insert_writes(conn, thread, made, writes, placing, tools)
            placing.finish()
        self.lives.note(made, max(self.lives.deaths, thread.death))
        return where.config(checkpoint["id"])

    def _admit(
        self, conn: sqlite3.Connection, thread: Thread, made: Where, parent: str | None, parents: Any, versions: Any
    ) -> None:
        try:
            threads.admit(conn, thread, made, parent, parents, versions, self.lives)
        except ThreadDeleted:
            self._held.pop(made, None)
            self.lives.note(made, REFUSED)
            raise

    @contextmanager
    def _placing(self) -> Iterator[Callable[[Placing], Placing]]:
        """Hold the lock of the writing connection until the cache knows what was committed."""
        placed: list[Placing] = []

        def done(placing: Placing) -> Placing:
            placed.append(placing)
            return placing

        with self._connections.alone():
            yield done
            for placing in placed:
                placing.committed()
            self.cache.trim()

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
        tools: Tools,
        ticket: Ticket | None,
    ) -> None:
        """Store writes. Those of a task that are stored already stay, except errors, interrupts and resumes."""
        where = Where.of(config)
        drafter = Drafter(tools.codec)
        prepared = [
            (WRITES_IDX_MAP.get(channel, i), channel, values.prepare(value, tools.codec, drafter))
            for i, (channel, value) in enumerate(writes)
        ]
        given = _Writes(prepared, task_id, task_path)
        made = where._replace(checkpoint=where.required())
        with self._placing() as done, self._connections.writing(ticket) as conn:
            thread = threads.find(conn, where.thread_id, where.ns)
            if self._is_early(conn, thread, made, tools):
                self._hold(made, given)
                return
            thread = threads.enter(conn, where.thread_id, where.ns, tools.hashes)
            began = threads.began_of(conn, thread.space, made.checkpoint) if thread.erasures else 0
            placing = done(Placing(conn, thread, self.cache.of(conn, thread), tools, began))
            _insert_writes(conn, thread, made, given, placing, tools)
            placing.finish()

    def _is_early(self, conn: sqlite3.Connection, thread: Thread | None, made: Where, tools: Tools) -> bool:
        """Whether writes must wait for their checkpoint, because only that tells if a deleted thread is meant, or
        which erased words they may carry.

        ThreadDeleted if it is known to be. LangGraph stores checkpoints one after the other, but writes at once.
        """
        died, death = threads.died_at(conn, made.thread_id, tools.hashes) if thread is None else thread[4:6]
        if died is None and (thread is None or not thread.erasures):
            return False
        if thread is not None and threads.has_checkpoint(conn, thread, str(made.checkpoint)):
            return False
        if died is not None and self.lives.is_from_before(made, death):
            raise threads.deleted(made.thread_id)
        return not self.lives.knows(made)

    def _hold(self, made: Where, given: "_Writes") -> None:
        """Keep writes until their checkpoint comes. Without it they are worth nothing, so nothing is lost with them."""
        self._held.setdefault(made, []).append(given)
        if len(self._held) > _HELD:
            self._held.popitem(last=False)


class _Writes(NamedTuple):
    """What a task wrote: (index, channel, value) of each."""

    values: list[tuple[int, str, values.Prepared]]
    task_id: str
    task_path: str


def _insert_writes(
    conn: sqlite3.Connection, thread: Thread, made: Where, given: _Writes, placing: Placing, tools: Tools
) -> None:
    some_stay = any(i >= 0 for i, _, _ in given.values)
    taken = _taken(conn, thread.space, str(made.checkpoint), given.task_id) if some_stay else set()
    rows = []
    for i, channel, value in given.values:
        if i >= 0 and i in taken:
            continue
        kind, data = value(placing)
        sealed = tools.sealing.seal(data)
        rows.append((thread.space, made.checkpoint, given.task_id, i, given.task_path, channel, kind, sealed))
    conn.executemany("INSERT OR REPLACE INTO ckpt_writes VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)


class _Packed(NamedTuple):
    """A checkpoint as far as it can be packed outside of the transaction."""

    body: bytes
    metadata: bytes
    run_id: Any
    versions: dict[str, Any]
    values: dict[str, values.Prepared]
    drafter: Drafter


def _pack(checkpoint: Checkpoint, metadata: CheckpointMetadata, new: ChannelVersions, tools: Tools) -> _Packed:
    held = checkpoint["channel_values"]
    versions = dict(checkpoint["channel_versions"])
    unversioned = [c for c in held if c not in versions]
    versions.update((c, f"@{checkpoint['id']}") for c in unversioned)
    body = {k: v for k, v in checkpoint.items() if k not in ("id", "channel_values")}
    if unversioned:
        body[values.UNVERSIONED] = unversioned
    drafter = Drafter(tools.codec)
    return _Packed(
        body=tools.codec.pack(body),
        metadata=tools.codec.pack(metadata),
        run_id=metadata.get("run_id"),
        versions=versions,
        values={c: values.prepare(held[c], tools.codec, drafter) for c in held if c in new or c in unversioned},
        drafter=drafter,
    )


def _channel_rows(
    conn: sqlite3.Connection, thread: Thread, packed: _Packed, checkpoint: Checkpoint, placing: Placing, tools: Tools
) -> Iterator[tuple[int, str, Any, int, bytes]]:
    """The versions that are new, and those that should be there but are not: pruned, or never given to us."""
    for channel, version in packed.versions.items():
        if channel not in checkpoint["channel_values"]:
            continue
        value = packed.values.get(channel)
        if value is None:
            if _has_version(conn, thread.space, channel, version):
                continue
            value = values.prepare(checkpoint["channel_values"][channel], tools.codec, packed.drafter)
        kind, data = value(placing)
        yield thread.space, channel, version, kind, tools.sealing.seal(data)


def _has_version(conn: sqlite3.Connection, space: int, channel: str, version: Any) -> bool:
    found = conn.execute(
        "SELECT 1 FROM ckpt_channels WHERE space = ? AND channel = ? AND version = ?", (space, channel, version)
    )
    return found.fetchone() is not None


def _taken(conn: sqlite3.Connection, space: int, checkpoint: str, task_id: str) -> set[int]:
    rows = conn.execute(
        "SELECT idx FROM ckpt_writes WHERE space = ? AND checkpoint = ? AND task = ?", (space, checkpoint, task_id)
    )
    return {i for (i,) in rows}


def _run_hash(hashes: Hashes, run_id: Any) -> bytes | None:
    return None if run_id is None else hashes.of("run", str(run_id).encode())
