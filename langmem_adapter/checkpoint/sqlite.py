"""`SqliteCheckpointer`: LangGraph checkpoints in one SQLite file, for sync and async graphs alike.

    checkpointer = SqliteCheckpointer("memory.db", allow=state_types(builder))
    graph = builder.compile(checkpointer=checkpointer)

A thread grows by what is new: a message that stands in a hundred checkpoints is stored once.
"""

import copy
import functools
import time
import weakref
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)

from langmem_adapter.checkpoint import collecting, erasure, reading, retention, schema, sealing, threads
from langmem_adapter.checkpoint.allowlist import names, state_types
from langmem_adapter.checkpoint.codec import Codec
from langmem_adapter.checkpoint.configs import id_list, thread_name
from langmem_adapter.checkpoint.elements import Tools
from langmem_adapter.checkpoint.lives import Lives
from langmem_adapter.checkpoint.retention import Maintained, Policy
from langmem_adapter.checkpoint.serializer import StrictSerializer
from langmem_adapter.checkpoint.writing import Writer
from langmem_adapter.errors import InvalidInput, StoreError
from langmem_adapter.stores.connections import Connections
from langmem_adapter.stores.erasure import Erasure
from langmem_adapter.stores.workers import CLOSE_SECONDS, Ticket, Workers, close_apart, settled

__all__ = ["SqliteCheckpointer", "state_types"]

READERS = 4
T = TypeVar("T")


class SqliteCheckpointer(BaseCheckpointSaver[str]):
    """A LangGraph checkpointer in one SQLite file that many threads, event loops and processes may share.

    The file may be that of a `SqliteMemoryStore`. `allow` names the types besides LangGraph's own and LangChain's
    messages that may stand in a checkpoint: types, (module, name) pairs, or `state_types(graph)`; anything else
    raises `UnlistedType` when it is written, and is not loaded when it is read. `encryption_key` (16, 24 or 32 bytes)
    encrypts values and metadata with AES; ids and channel names stay legible; a file is encrypted from its start or
    not at all. `keep_last` checkpoints per thread and namespace, and `max_age` (a timedelta, or seconds), are applied
    by `maintain()`.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        allow: Iterable[type | tuple[str, ...]] = (),
        encryption_key: bytes | str | None = None,
        keep_last: int | None = None,
        max_age: timedelta | float | None = None,
    ) -> None:
        if not isinstance(path, str | Path):
            raise InvalidInput(f"path is a string or a Path, not of type {type(path).__name__}")
        codec = Codec(names(allow))
        key = sealing.key_bytes(encryption_key)
        self._policy = Policy.of(keep_last, max_age)
        self._connections = Connections(path)
        self._readers = Workers(READERS, f"checkpoint-read {self.name}")
        self._writers = Workers(1, f"checkpoint-write {self.name}")
        try:
            salt, deaths = self._open(key)
        except BaseException:
            self.close()
            raise
        self._tools = Tools(codec, sealing.sealing_for(key, salt), sealing.Hashes(key, salt))
        self._writer = Writer(self._connections, Lives(deaths))
        super().__init__(serde=StrictSerializer(codec, self._tools.sealing))
        self._finalizer = weakref.finalize(self._writer, _shut, self._connections, self._readers, self._writers)

    def _open(self, key: bytes | None) -> tuple[bytes, int]:
        """Bring the schema up to date and compare the key; returns the file's salt and its count of deletions."""
        with self._connections.alone() as conn:
            schema.migrate(conn, self.name)
            salt = bytes.fromhex(schema.meta(conn, "salt") or "")
            proof = schema.meta(conn, "key")
            deaths = int(schema.meta(conn, threads.DEATHS) or 0)
        if proof is None:
            with self._connections.writing() as conn:
                proof = schema.meta(conn, "key") or sealing.proof_of(key, salt)
                schema.set_meta(conn, "key", proof)
        sealing.verify(proof, key, salt, self.name)
        return salt, deaths

    @property
    def name(self) -> str:
        """The path it was opened with."""
        return self._connections.name

    # reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that the config names, or the latest of its thread and namespace; None if there is none."""
        return reading.get_tuple(self._connections, config, self._tools, self._writer.lives)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Async twin of `get_tuple`."""
        return await self._read(reading.get_tuple, self._connections, config, self._tools, self._writer.lives)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """The matching checkpoints, newest first. Nothing is locked between two of them."""
        keys = reading.list_keys(self._connections, config, filter, before, limit, self._tools)
        for batch in reading.batches(keys):
            yield from reading.load(self._connections, batch, self._tools)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Async twin of `list`."""
        keys = await self._read(reading.list_keys, self._connections, config, filter, before, limit, self._tools)
        for batch in reading.batches(keys):
            for item in await self._read(reading.load, self._connections, batch, self._tools):
                yield item

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """For each channel the writes since its last stored value, oldest first, and that value as `seed`."""
        return reading.delta_history(self._connections, config, channels, self._tools)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Async twin of `get_delta_channel_history`."""
        return await self._read(reading.delta_history, self._connections, config, channels, self._tools)

    # writing

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint; returns its config.

        UnlistedType if a value's type is not allowed, ThreadDeleted if the thread was deleted under the run.
        """
        return self._writer.put(config, checkpoint, metadata, new_versions, self._tools, None)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Async twin of `put`."""
        return await self._write(self._writer.put, config, checkpoint, metadata, new_versions, self._tools)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task wrote, before the checkpoint that applies it. Repeating it changes nothing, except for
        errors, interrupts and resumes, which are replaced."""
        self._writer.put_writes(config, writes, task_id, task_path, self._tools, None)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Async twin of `put_writes`."""
        await self._write(self._writer.put_writes, config, writes, task_id, task_path, self._tools)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread. InvalidInput if the target exists; nothing happens if the source does not."""
        self._change(collecting.copy, thread_name(source_thread_id), thread_name(target_thread_id), self._tools)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Async twin of `copy_thread`."""
        await self._write(
            self._change, collecting.copy, thread_name(source_thread_id), thread_name(target_thread_id), self._tools
        )

    # removing

    def delete_thread(self, thread_id: str) -> None:
        """Erase a thread (see `erase_thread`); StoreError if its bytes could not be cleared from the files yet."""
        _insist(self.erase_thread(thread_id))

    async def adelete_thread(self, thread_id: str) -> None:
        """Async twin of `delete_thread`."""
        _insist(await self.aerase_thread(thread_id))

    def erase_thread(self, thread_id: str, *, wait: float = 5.0) -> Erasure:
        """Delete a thread and make sure that no byte of it is left in the files.

        Later writes of runs that were using it are refused. `wait` is how many seconds readers of older states may
        take to finish; the receipt says `pending` if one did not, and `maintain()` completes it.
        """
        return self._erase([thread_name(thread_id)], wait)

    async def aerase_thread(self, thread_id: str, *, wait: float = 5.0) -> Erasure:
        """Async twin of `erase_thread`."""
        return await self._write(self._erase, [thread_name(thread_id)], wait)

    def erase_messages(self, thread_id: str, message_ids: Sequence[str], *, wait: float = 5.0) -> Erasure:
        """Replace messages by tombstones in every checkpoint, fork and copy of a thread, and clear their bytes.

        Also where they were stored without an id, in inputs, pending writes and payloads of tasks. A tombstone keeps
        type, id and the ends of tool calls. What a message said — its texts of 12 bytes or more, in content, arguments
        and extras — is taken out of all other values of the thread as well, wherever it stands in them; out of other
        messages if it has 24 bytes or more. A run that began before cannot store any of it again; new input can. The
        receipt is `pending`, with the reason, while the thread still says it. `items` counts the places; `shared`,
        pieces of it that other threads or memories in the file hold too.
        """
        return self._erase_messages(thread_id, message_ids, wait)

    async def aerase_messages(self, thread_id: str, message_ids: Sequence[str], *, wait: float = 5.0) -> Erasure:
        """Async twin of `erase_messages`."""
        return await self._write(self._erase_messages, thread_id, message_ids, wait)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints and writes of these runs, in all threads.

        A DeltaChannel of a thread that goes on loses what these runs wrote to it. This is no erasure: their bytes
        may stay in the files, unreachable, until something else clears them.
        """
        self._change(collecting.remove_runs, id_list(run_ids, "run_ids"), self._tools)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Async twin of `delete_for_runs`."""
        await self._write(self._change, collecting.remove_runs, id_list(run_ids, "run_ids"), self._tools)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep only the latest checkpoint of each namespace ("keep_latest"), or nothing ("delete").

        Ancestors that a DeltaChannel is rebuilt from are kept as well.
        """
        self._prune(thread_ids, strategy)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Async twin of `prune`."""
        await self._write(self._prune, thread_ids, strategy)

    def maintain(self, *, now: float | None = None) -> Maintained:
        """Apply `keep_last` and `max_age`, and complete erasures that a reader or a crash interrupted.

        A thread in which nothing was stored within `max_age` is erased. In the others the latest checkpoint of each
        namespace stays. `now` is in seconds since the epoch.
        """
        return self._maintain(time.time() if now is None else now)

    async def amaintain(self, *, now: float | None = None) -> Maintained:
        """Async twin of `maintain`."""
        return await self._write(self._maintain, time.time() if now is None else now)

    def _erase(self, thread_ids: Sequence[str], wait: float, ticket: Ticket | None = None) -> Erasure:
        count, pieces = self._change(erasure.erase_threads, thread_ids, self._tools, ticket=ticket)
        return erasure.verify(self._connections, pieces, count, wait)

    def _erase_messages(
        self, thread_id: str, message_ids: Sequence[str], wait: float, ticket: Ticket | None = None
    ) -> Erasure:
        wanted = id_list(message_ids, "message_ids")
        if not all(isinstance(i, str) for i in wanted):
            raise InvalidInput(f"message_ids is a list of ids, which are strings, not {wanted!r}")
        change = erasure.erase_messages
        count, pieces, left = self._change(change, thread_name(thread_id), wanted, self._tools, ticket=ticket)
        return erasure.verify(self._connections, pieces, count, wait, left=left)

    def _prune(self, thread_ids: Sequence[str], strategy: str, ticket: Ticket | None = None) -> None:
        names = [thread_name(t) for t in id_list(thread_ids, "thread_ids")]
        if strategy == "delete":
            if names:
                _insist(self._erase(names, 5.0, ticket))
        elif strategy == "keep_latest":
            self._change(_thin_all, names, collecting.newest(1), self._tools, ticket=ticket)
        else:
            raise InvalidInput(f"strategy must be 'keep_latest' or 'delete', got {strategy!r}")

    def _maintain(self, now: float, ticket: Ticket | None = None) -> Maintained:
        if ticket is not None:
            ticket.seal()  # many commits: either all of it or none
        with self._connections.reading() as conn:
            idle = [] if self._policy.max_age is None else retention.idle_threads(conn, now - self._policy.max_age)
            unfinished = schema.meta(conn, erasure.UNFINISHED) is not None
            others = [] if self._policy == (None, None) else retention.all_threads(conn)
        state = self._erase(idle, 5.0).state if idle else "done"
        keep = self._policy.keep(now)
        removed = sum(self._change(collecting.thin, t, keep, self._tools) for t in others if t not in set(idle))
        if unfinished or state == "pending":
            state = erasure.verify(self._connections, set(), 0, 5.0, rebuild=True).state
        self._change(retention.clear_graves, now)
        return Maintained(threads=len(idle), checkpoints=removed, erasure=state)

    # LangGraph's other hooks

    def get_next_version(self, current: str | None, channel: None) -> str:
        """A version that sorts after `current`, and that no fork and no other run has."""
        return self._writer.lives.next_version(current)

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> "SqliteCheckpointer":
        """This checkpointer, on the same connections, allowing these types too."""
        codec = self._tools.codec.extended(names(extra_allowlist))
        if codec is self._tools.codec:
            return self
        clone = copy.copy(self)
        clone._tools = self._tools._replace(codec=codec)
        clone.serde = StrictSerializer(codec, self._tools.sealing)
        return clone

    # running and closing

    def _change(self, change: Callable[..., T], *args: Any, ticket: Ticket | None = None) -> T:
        """Run `change(conn, *args)` in one write transaction."""
        with self._connections.writing(ticket) as conn:
            return change(conn, *args)

    async def _read(self, job: Callable[..., T], *args: Any) -> T:
        return await self._readers.run(functools.partial(job, *args))

    async def _write(self, job: Callable[..., T], *args: Any) -> T:
        """Run `job(*args, ticket=…)`; a cancelled caller either rolls it back or came too late."""
        ticket = Ticket()
        return await settled(self._writers.submit(functools.partial(job, *args, ticket=ticket)), ticket)

    def close(self) -> None:
        """Finish what was asked for, unless it takes longer than ten seconds, and close the file.

        May be called again; any other call then raises StoreClosed.
        """
        end = time.monotonic() + CLOSE_SECONDS
        for each in (self._readers, self._writers):
            each.stop(end - time.monotonic())
        _shut(self._connections, self._readers, self._writers)

    async def aclose(self) -> None:
        """`close` without blocking the event loop."""
        await close_apart(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.aclose()


def _shut(connections: Connections, *workers: Workers) -> None:
    for each in workers:
        each.stop()
    connections.close()


def _thin_all(conn: Any, thread_ids: Sequence[str], keep: collecting.Keep, tools: Tools) -> int:
    return sum(collecting.thin(conn, t, keep, tools) for t in thread_ids)


def _insist(receipt: Erasure) -> None:
    if receipt.state != "done":
        raise StoreError(
            f"deleted, but bytes of it may still lie in the file: {receipt.reason}; call maintain() to complete it"
        )
