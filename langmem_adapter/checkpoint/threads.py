"""A thread's row, how it comes into being, and what tells a late write to a deleted one."""

import sqlite3
import time
from typing import Any, NamedTuple

from langgraph.checkpoint.base.id import uuid6

from langmem_adapter.checkpoint.errors import ThreadDeleted
from langmem_adapter.checkpoint.sealing import Hashes

_HIGHEST_CLOCK = 0x3FFF


class Thread(NamedTuple):
    """A thread and the namespace at hand. `space` is 0 if the namespace has no row."""

    id: int
    epoch: int
    next_seq: int
    next_loose: int
    died: str | None
    space: int


def find(conn: sqlite3.Connection, thread_id: str, ns: str) -> Thread | None:
    """The thread of this id; None if there is none."""
    row = conn.execute(
        "SELECT t.id, t.epoch, t.next_seq, t.next_loose, t.died, coalesce(s.id, 0) FROM ckpt_threads t "
        "LEFT JOIN ckpt_spaces s ON s.thread = t.id AND s.ns = ? WHERE t.thread = ?",
        (ns, thread_id),
    ).fetchone()
    return None if row is None else Thread(*row)


def enter(conn: sqlite3.Connection, thread_id: str, ns: str, hashes: Hashes) -> Thread:
    """The thread with its namespace, both created if they are new."""
    thread = find(conn, thread_id, ns)
    if thread is None:
        died = died_at(conn, thread_id, hashes)
        done = conn.execute("INSERT INTO ckpt_threads (thread, family, died) VALUES (?, 0, ?)", (thread_id, died))
        conn.execute("UPDATE ckpt_threads SET family = id WHERE id = ?", (done.lastrowid,))
        thread = find(conn, thread_id, ns)
        assert thread is not None
    if not thread.space:
        done = conn.execute("INSERT INTO ckpt_spaces (thread, ns) VALUES (?, ?)", (thread.id, ns))
        thread = thread._replace(space=int(done.lastrowid or 0))
    return thread


def died_at(conn: sqlite3.Connection, thread_id: str, hashes: Hashes) -> str | None:
    """When a thread of this id was last deleted, as a checkpoint id."""
    row = conn.execute("SELECT died FROM ckpt_dead WHERE thread = ?", (_address(hashes, thread_id),)).fetchone()
    return None if row is None else str(row[0])


def bury(conn: sqlite3.Connection, thread_id: str, hashes: Hashes) -> None:
    """Remember, by a hash, that the thread was deleted now."""
    row = (_address(hashes, thread_id), moment(), int(time.time()))
    conn.execute("INSERT OR REPLACE INTO ckpt_dead VALUES (?, ?, ?)", row)


def moment() -> str:
    """Now, as a checkpoint id that sorts after all made before."""
    return str(uuid6(clock_seq=_HIGHEST_CLOCK))


def is_later(checkpoint: str, mark: str | None) -> bool:
    """Whether a checkpoint was certainly made after a moment. Ids that do not tell a time were not."""
    if mark is None:
        return False
    return len(checkpoint) == 36 and checkpoint[14] == "6" and checkpoint > mark


def admit(
    conn: sqlite3.Connection, thread: Thread, thread_id: str, checkpoint: str, parent: str | None, parents: Any
) -> None:
    """ThreadDeleted if this checkpoint belongs to a run from before the thread was deleted.

    It does if it continues a checkpoint that is gone, if it was made before, or if it belongs to a subgraph whose
    caller's checkpoint was made before. A new run on the same id is welcome.
    """
    if thread.died is None:
        return
    mark = thread.died
    late = _made_before(checkpoint, mark) if parent is None else not _has(conn, thread.space, parent)
    for ns, caller in parents.items() if isinstance(parents, dict) else ():
        late = late or (_made_before(str(caller), mark) and not _stored(conn, thread.id, ns, caller))
    if late:
        raise deleted(thread_id)


def deleted(thread_id: str) -> ThreadDeleted:
    """The error for a late write."""
    return ThreadDeleted(
        f"thread {thread_id!r} was deleted while a run was using it; the run's checkpoint was refused. "
        "Start a new run to use the id again"
    )


def has_checkpoint(conn: sqlite3.Connection, thread: Thread, checkpoint: str) -> bool:
    """Whether the checkpoint is stored."""
    return _has(conn, thread.space, checkpoint)


def _has(conn: sqlite3.Connection, space: int, checkpoint: str) -> bool:
    found = conn.execute("SELECT 1 FROM ckpt_checkpoints WHERE space = ? AND id = ?", (space, checkpoint))
    return found.fetchone() is not None


def _stored(conn: sqlite3.Connection, thread: int, ns: str, checkpoint: str) -> bool:
    row = conn.execute("SELECT id FROM ckpt_spaces WHERE thread = ? AND ns = ?", (thread, ns)).fetchone()
    return row is not None and _has(conn, row[0], checkpoint)


def _made_before(checkpoint: str, mark: str) -> bool:
    return len(checkpoint) == 36 and checkpoint[14] == "6" and checkpoint <= mark


def _address(hashes: Hashes, thread_id: str) -> bytes:
    return hashes.of("thread", thread_id.encode("utf-8", "surrogatepass"))
