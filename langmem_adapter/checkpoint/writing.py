"""Storing a checkpoint and its pending writes: pack first, then one short transaction."""

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP, ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.base import get_checkpoint_metadata as full_metadata

from langmem_adapter.checkpoint import threads, values
from langmem_adapter.checkpoint.configs import Where
from langmem_adapter.checkpoint.elements import Cache, Placing, Tools
from langmem_adapter.checkpoint.messages import Drafter
from langmem_adapter.checkpoint.sealing import Hashes
from langmem_adapter.checkpoint.threads import Thread
from langmem_adapter.stores.connections import Connections
from langmem_adapter.stores.workers import Ticket

PATIENCE = 0.5
"""Seconds that the writes of an unknown checkpoint of a thread that was once deleted wait for that checkpoint."""


class Writer:
    """Writes to one file."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self.cache = Cache()

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
        packed = _pack(checkpoint, full_metadata(config, metadata), new_versions, tools)
        with self._placing() as done, self._connections.writing(ticket) as conn:
            thread = threads.enter(conn, where.thread_id, where.ns, tools.hashes)
            threads.admit(conn, thread, where.thread_id, checkpoint["id"], where.checkpoint, metadata.get("parents"))
            placing = done(Placing(conn, thread, self.cache.of(conn, thread), tools, checkpoint["id"]))
            conn.executemany(
                "INSERT OR REPLACE INTO ckpt_channels VALUES (?, ?, ?, ?, ?)",
                list(_channel_rows(conn, thread, packed, checkpoint, placing, tools)),
            )
            conn.execute(
                "INSERT OR REPLACE INTO ckpt_checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    thread.space,
                    checkpoint["id"],
                    where.checkpoint,
                    int(time.time()),
                    _run_hash(tools.hashes, packed.run_id),
                    tools.sealing.seal(placing.redacted(packed.metadata)),
                    tools.sealing.seal(packed.body),
                ),
            )
            placing.finish()
        return where.config(checkpoint["id"])

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
        give_up = time.monotonic() + PATIENCE
        while not self._try_writes(where, prepared, task_id, task_path, tools, ticket):
            if time.monotonic() > give_up:
                raise threads.deleted(where.thread_id)
            time.sleep(0.01)

    def _try_writes(
        self,
        where: Where,
        prepared: list[tuple[int, str, values.Prepared]],
        task_id: str,
        task_path: str,
        tools: Tools,
        ticket: Ticket | None,
    ) -> bool:
        """False if the thread was once deleted and the checkpoint is not there (yet)."""
        checkpoint = where.required()
        # Not sealed while it may be tried again: a ticket is for one commit.
        with self._placing() as done, self._connections.writing() as conn:
            thread = threads.find(conn, where.thread_id, where.ns)
            died = threads.died_at(conn, where.thread_id, tools.hashes) if thread is None else thread.died
            if died is not None and (thread is None or not threads.has_checkpoint(conn, thread, checkpoint)):
                return False
            thread = threads.enter(conn, where.thread_id, where.ns, tools.hashes)
            placing = done(Placing(conn, thread, self.cache.of(conn, thread), tools, checkpoint))
            taken = {} if all(i < 0 for i, _, _ in prepared) else _taken(conn, thread.space, checkpoint, task_id)
            rows = []
            for i, channel, value in prepared:
                if i >= 0 and i in taken:
                    continue
                kind, data = value(placing)
                sealed = tools.sealing.seal(data)
                rows.append((thread.space, checkpoint, task_id, i, task_path, channel, kind, sealed))
            conn.executemany("INSERT OR REPLACE INTO ckpt_writes VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
            placing.finish()
            if ticket is not None:
                ticket.seal()
        return True


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
