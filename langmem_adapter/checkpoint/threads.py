"""A thread's row, how it comes into being, and what tells a late write to a deleted one."""

import sqlite3
import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from langgraph.checkpoint.base.id import uuid6

from langmem_adapter.checkpoint import schema
from langmem_adapter.checkpoint.configs import Where
from langmem_adapter.checkpoint.errors import ThreadDeleted
from langmem_adapter.checkpoint.lives import Lives, born
from langmem_adapter.checkpoint.sealing import Hashes

DEATHS = "deaths"
_HIGHEST_CLOCK = 0x3FFF


class Thread(NamedTuple):
    """A thread and the namespace at hand. `space` is 0 if the namespace has no row."""

    id: int
    epoch: int
    next_seq: int
    next_loose: int
    died: str | None
    death: int
    erasures: int
    space: int


def find(conn: sqlite3.Connection, thread_id: str, ns: str) -> Thread | None:
    """The thread of this id; None if there is none."""
    row = conn.execute(
        "SELECT t.id, t.epoch, t.next_seq, t.next_loose, t.died, t.death, t.erasures, coalesce(s.id, 0) "
        "FROM ckpt_threads t LEFT JOIN ckpt_spaces s ON s.thread = t.id AND s.ns = ? WHERE t.thread = ?",
        (ns, thread_id),
    ).fetchone()
    return None if row is None else Thread(*row)


def enter(conn: sqlite3.Connection, thread_id: str, ns: str, hashes: Hashes) -> Thread:
    """The thread with its namespace, both created if they are new."""
    thread = find(conn, thread_id, ns)
    if thread is None:
        row = (thread_id, *died_at(conn, thread_id, hashes))
        done = conn.execute("INSERT INTO ckpt_threads (thread, family, died, death) VALUES (?, 0, ?, ?)", row)
        conn.execute("UPDATE ckpt_threads SET family = id WHERE id = ?", (done.lastrowid,))
        thread = find(conn, thread_id, ns)
        assert thread is not None
    if not thread.space:
        done = conn.execute("INSERT INTO ckpt_spaces (thread, ns) VALUES (?, ?)", (thread.id, ns))
        thread = thread._replace(space=int(done.lastrowid or 0))
    return thread


def died_at(conn: sqlite3.Connection, thread_id: str, hashes: Hashes) -> tuple[str | None, int]:
    """When a thread of this id was last deleted, as a checkpoint id, and the number of that deletion."""
    row = conn.execute("SELECT died, death FROM ckpt_dead WHERE thread = ?", (_address(hashes, thread_id),)).fetchone()
    return (None, 0) if row is None else (str(row[0]), int(row[1]))


def bury(conn: sqlite3.Connection, thread_id: str, hashes: Hashes) -> None:
    """Remember, by a hash, that the thread was deleted now."""
    death = int(schema.meta(conn, DEATHS) or 0) + 1
    schema.set_meta(conn, DEATHS, str(death))
    row = (_address(hashes, thread_id), moment(), int(time.time()), death)
    conn.execute("INSERT OR REPLACE INTO ckpt_dead VALUES (?, ?, ?, ?)", row)


def moment() -> str:
    """Now, as a checkpoint id that sorts after all made before."""
    return str(uuid6(clock_seq=_HIGHEST_CLOCK))


def began(
    conn: sqlite3.Connection, thread: Thread, made: Where, parent: str | None, metadata: Mapping[str, Any]
) -> int:
    """After which erasure of the thread's messages the run of a new checkpoint began.

    A run that begins with new words begins now; what goes on inherits from its parent, and a subgraph from its
    caller. Where that cannot be told, before all of them.
    """
    if not thread.erasures:
        return 0
    callers = metadata.get("parents") or {}
    if callers:
        ns, caller = max(callers.items(), key=lambda item: len(item[0]))
        return began_of(conn, space_of(conn, thread.id, ns), caller)
    if metadata.get("source") in ("input", "update"):
        mark = conn.execute("SELECT max(until) FROM ckpt_erased WHERE thread = ?", (thread.id,)).fetchone()[0]
        return thread.erasures if _is_later(str(made.checkpoint), mark or "") else 0
    return began_of(conn, thread.space, parent)


def began_of(conn: sqlite3.Connection, space: int, checkpoint: str | None) -> int:
    """The same of a stored checkpoint; 0 if it is not there."""
    row = conn.execute("SELECT began FROM ckpt_checkpoints WHERE space = ? AND id = ?", (space, checkpoint)).fetchone()
    return 0 if row is None else int(row[0])


def erased_from(conn: sqlite3.Connection, thread: int) -> list[tuple[bytes, int | None, int]]:
    """What was erased from a thread: hash, number of the erasure (None: refused for ever), shape of a text."""
    rows = conn.execute("SELECT hash, until IS NULL, erasure, shape FROM ckpt_erased WHERE thread = ?", (thread,))
    return [(hashed, None if always else number, shape) for hashed, always, number, shape in rows]


def space_of(conn: sqlite3.Connection, thread: int, ns: str) -> int:
    """The number of a namespace; 0 if it has none."""
    row = conn.execute("SELECT id FROM ckpt_spaces WHERE thread = ? AND ns = ?", (thread, ns)).fetchone()
    return 0 if row is None else int(row[0])


def _is_later(checkpoint: str, mark: str) -> bool:
    """Whether a checkpoint was certainly made after a moment. Ids that do not tell a time were not."""
    return len(checkpoint) == 36 and checkpoint[14] == "6" and checkpoint > mark


def admit(
    conn: sqlite3.Connection, thread: Thread, made: Where, parent: str | None, parents: Any, versions: Any, lives: Lives
) -> None:
    """ThreadDeleted if this checkpoint belongs to a run from before the thread was deleted.

    `made` is its place, `parents` are the checkpoints of the graphs that called its own, `versions` those of its
    channels. A new run on the same id is welcome.
    """
    if thread.died is None:
        return
    late = not (parent and _has(conn, thread.space, parent)) and _is_old(thread, made, parent, versions)
    for ns, caller in parents.items() if isinstance(parents, dict) else ():
        late = late or (
            not _stored(conn, thread.id, ns, caller) and _calls_from_before(thread, made._replace(ns=ns), caller, lives)
        )
    if late:
        raise deleted(made.thread_id)


def _is_old(thread: Thread, made: Where, parent: str | None, versions: Iterable[Any]) -> bool:
    """Of a checkpoint whose parent, if it has one, is not there: deleted, or only pruned."""
    life = born(versions)
    if life is not None:
        return life < thread.death
    return parent is not None or _made_before(str(made.checkpoint), str(thread.died))


def _calls_from_before(thread: Thread, graph: Where, caller: str, lives: Lives) -> bool:
    """Of a checkpoint that called a subgraph and is not there: deleted, or not there yet."""
    call = graph._replace(checkpoint=caller)
    if lives.knows(call):
        return lives.is_from_before(call, thread.death)
    run = graph._replace(checkpoint=None)
    return lives.is_from_before(run, thread.death) or _made_before(caller, str(thread.died))


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
    return _has(conn, space_of(conn, thread, ns), checkpoint)


def _made_before(checkpoint: str, mark: str) -> bool:
    """Whether the time in an id is before a moment. Where the clock was set back since, nothing is."""
    return len(checkpoint) == 36 and checkpoint[14] == "6" and checkpoint <= mark < moment()


def _address(hashes: Hashes, thread_id: str) -> bytes:
    return hashes.of("thread", thread_id.encode("utf-8", "surrogatepass"))
