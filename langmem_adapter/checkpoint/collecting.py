"""Removing checkpoints, and then what no remaining checkpoint needs; copying a thread.

All of it runs inside one write transaction per thread, which is what makes it safe: who writes at the same time
waits, and then finds another epoch.
"""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from langmem_adapter.checkpoint import threads, values
from langmem_adapter.checkpoint.elements import Tools
from langmem_adapter.checkpoint.reading import ABSENT, Loading, ancestors
from langmem_adapter.checkpoint.schema import SHIFT
from langmem_adapter.errors import InvalidInput


class Stored(NamedTuple):
    """A checkpoint that may be kept or not."""

    id: str
    saved: int


Keep = Callable[[Sequence[Stored]], Iterable[Stored]]
"""Of a namespace's checkpoints, newest first, those to keep. The newest is kept in any case."""


def newest(count: int) -> Keep:
    """Keep so many."""
    return lambda stored: stored[:count]


def thin(conn: sqlite3.Connection, thread_id: str, keep: Keep, tools: Tools) -> int:
    """Remove the checkpoints that are not to be kept; returns how many.

    Ancestors that a DeltaChannel of a kept checkpoint is rebuilt from stay as well.
    """
    thread = threads.find(conn, thread_id, "")
    if thread is None:
        return 0
    loading = Loading(conn, thread.id, tools)
    removed = 0
    # Callers first, for what they leave of their subgraphs' namespaces.
    sql = "SELECT id, ns FROM ckpt_spaces WHERE thread = ? ORDER BY length(ns)"
    for space, ns in conn.execute(sql, (thread.id,)).fetchall():
        sql = "SELECT id, saved FROM ckpt_checkpoints WHERE space = ? ORDER BY id DESC"
        stored = [Stored(*row) for row in conn.execute(sql, (space,))]
        if not stored:
            continue
        gone_with_caller = _is_orphan(conn, loading, space, ns, stored[0].id)
        kept = set() if gone_with_caller else {stored[0].id, *(s.id for s in keep(stored))}
        if len(kept) < len(stored):
            kept |= _needed(conn, loading, space, kept)
        gone = [(space, s.id) for s in stored if s.id not in kept]
        _remove(conn, gone)
        removed += len(gone)
    if removed:
        collect(conn, thread.id, tools)
    return removed


def _is_orphan(conn: sqlite3.Connection, loading: Loading, space: int, ns: str, latest: str) -> bool:
    """Whether a namespace is that of one call of a subgraph, by a checkpoint that has been removed. One that is newer
    than all of its namespace is not there yet."""
    graph, _, call = ns.rpartition("|")
    if ":" not in call:
        return False  # a subgraph that keeps its state from call to call
    sql = "SELECT metadata FROM ckpt_checkpoints WHERE space = ? AND id = ?"
    parents = loading.body(conn.execute(sql, (space, latest)).fetchone()[0]).get("parents") or {}
    caller = parents.get(graph)
    calling = threads.space_of(conn, loading.thread, graph)
    (newest,) = conn.execute("SELECT max(id) FROM ckpt_checkpoints WHERE space = ?", (calling,)).fetchone()
    if caller is None or newest is None or caller >= newest:
        return False
    sql = "SELECT 1 FROM ckpt_checkpoints WHERE space = ? AND id = ?"
    return conn.execute(sql, (calling, caller)).fetchone() is None


def remove_runs(conn: sqlite3.Connection, run_ids: Sequence[str], tools: Tools) -> int:
    """Remove the checkpoints of these runs, in all threads; returns how many."""
    gone: list[tuple[int, str]] = []
    for run_id in run_ids:
        run = tools.hashes.of("run", str(run_id).encode())
        gone += conn.execute("SELECT space, id FROM ckpt_checkpoints WHERE run = ?", (run,)).fetchall()
    _remove(conn, gone)
    spaces = {space for space, _ in gone}
    touched = {conn.execute("SELECT thread FROM ckpt_spaces WHERE id = ?", (s,)).fetchone()[0] for s in spaces}
    for thread in touched:
        collect(conn, thread, tools)
    return len(gone)


def _remove(conn: sqlite3.Connection, gone: Sequence[tuple[int, str]]) -> None:
    conn.executemany("DELETE FROM ckpt_checkpoints WHERE space = ? AND id = ?", gone)
    conn.executemany("DELETE FROM ckpt_writes WHERE space = ? AND checkpoint = ?", gone)


def _needed(conn: sqlite3.Connection, loading: Loading, space: int, kept: set[str]) -> set[str]:
    """The ancestors from which DeltaChannels of the kept checkpoints are rebuilt."""
    sql = "SELECT DISTINCT channel FROM ckpt_channels WHERE space = ? AND kind >= ?"
    snapshots = {c for (c,) in conn.execute(sql, (space, values.SNAPSHOT))}
    needed: set[str] = set()
    for checkpoint in kept:
        sql = "SELECT metadata, body FROM ckpt_checkpoints WHERE space = ? AND id = ?"
        metadata, sealed = conn.execute(sql, (space, checkpoint)).fetchone()
        opened = loading.body(metadata)
        versions = loading.body(sealed)["channel_versions"]
        deltas = snapshots | set(opened.get("counters_since_delta_snapshot") or ())
        missing = {c for c in deltas if c in versions and not _has(loading, space, c, versions[c])}
        if missing:
            needed |= _until_seeded(conn, loading, space, checkpoint, missing)
    return needed


def _until_seeded(
    conn: sqlite3.Connection, loading: Loading, space: int, checkpoint: str, missing: set[str]
) -> set[str]:
    needed = set()
    for ancestor, body in ancestors(conn, loading, space, checkpoint):
        if not missing:
            break
        needed.add(ancestor)
        versions = body["channel_versions"]
        missing -= {c for c in missing if c in versions and _has(loading, space, c, versions[c])}
    return needed


def _has(loading: Loading, space: int, channel: str, version: object) -> bool:
    return loading.channel(space, channel, version) is not ABSENT


def collect(conn: sqlite3.Connection, thread: int, tools: Tools) -> None:
    """Remove the thread's versions, elements and namespaces that nothing refers to; the thread too, if it is empty."""
    loading = Loading(conn, thread, tools)
    spaces = [s for (s,) in conn.execute("SELECT id FROM ckpt_spaces WHERE thread = ?", (thread,))]
    for space in spaces:
        _collect_versions(conn, loading, space)
    _collect_elements(conn, thread, spaces, tools)
    for space in spaces:
        conn.execute(
            "DELETE FROM ckpt_spaces WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM ckpt_checkpoints WHERE space = ?1) "
            "AND NOT EXISTS (SELECT 1 FROM ckpt_writes WHERE space = ?1)",
            (space,),
        )
    conn.execute("UPDATE ckpt_threads SET epoch = epoch + 1 WHERE id = ?", (thread,))
    if conn.execute("SELECT 1 FROM ckpt_spaces WHERE thread = ?", (thread,)).fetchone() is None:
        conn.execute("DELETE FROM ckpt_erased WHERE thread = ?", (thread,))
        conn.execute("DELETE FROM ckpt_threads WHERE id = ?", (thread,))


def _collect_versions(conn: sqlite3.Connection, loading: Loading, space: int) -> None:
    used = set()
    for checkpoint, sealed in conn.execute("SELECT id, body FROM ckpt_checkpoints WHERE space = ?", (space,)):
        body = loading.body(sealed)
        used |= set(body["channel_versions"].items())
        used |= {(c, f"@{checkpoint}") for c in body.get(values.UNVERSIONED, ())}
    rows = conn.execute("SELECT channel, version FROM ckpt_channels WHERE space = ?", (space,)).fetchall()
    conn.executemany(
        "DELETE FROM ckpt_channels WHERE space = ? AND channel = ? AND version = ?",
        [(space, c, v) for c, v in rows if (c, v) not in used],
    )


def _collect_elements(conn: sqlite3.Connection, thread: int, spaces: Sequence[int], tools: Tools) -> None:
    used: set[int] = set()
    large: set[int] = set()
    for table in ("ckpt_channels", "ckpt_writes"):
        for space in spaces:
            for kind, sealed in conn.execute(f"SELECT kind, data FROM {table} WHERE space = ?", (space,)):
                found = values.references(kind, tools.sealing.open(sealed))
                (large if kind & ~values.SNAPSHOT == values.ELEMENT else used).update(found)
    for number in large:  # these refer to messages in turn
        row = conn.execute("SELECT data FROM ckpt_elements WHERE id = ?", (thread << SHIFT | number,)).fetchone()
        used |= values.references(values.INLINE, tools.sealing.open(row[0]))
    used |= large
    bounds = (thread << SHIFT, (thread + 1) << SHIFT)
    ids = conn.execute("SELECT id FROM ckpt_elements WHERE id >= ? AND id < ?", bounds).fetchall()
    unused = [(i,) for (i,) in ids if i - bounds[0] not in used]
    conn.executemany("DELETE FROM ckpt_elements WHERE id = ?", unused)


def copy(conn: sqlite3.Connection, source: str, target: str, tools: Tools) -> None:
    """Copy a thread with all its checkpoints and writes. InvalidInput if the target exists; nothing if the source
    does not."""
    thread = threads.find(conn, source, "")
    if thread is None:
        return
    if threads.find(conn, target, "") is not None:
        raise InvalidInput(f"thread {target!r} exists; a copy never overwrites, delete it first or name a new one")
    new = conn.execute(
        "INSERT INTO ckpt_threads (thread, family, epoch, next_seq, next_loose, erasures, died, death) "
        "SELECT ?, family, 1, next_seq, next_loose, erasures, ?, ? FROM ckpt_threads WHERE id = ?",
        (target, *threads.died_at(conn, target, tools.hashes), thread.id),
    ).lastrowid
    assert new is not None
    for space, ns in conn.execute("SELECT id, ns FROM ckpt_spaces WHERE thread = ?", (thread.id,)).fetchall():
        copied = conn.execute("INSERT INTO ckpt_spaces (thread, ns) VALUES (?, ?)", (new, ns)).lastrowid
        for table, columns in _COPIED.items():
            conn.execute(f"INSERT INTO {table} SELECT ?, {columns} FROM {table} WHERE space = ?", (copied, space))
    shift = (new - thread.id) << SHIFT
    bounds = (thread.id << SHIFT, (thread.id + 1) << SHIFT)
    conn.execute(
        "INSERT INTO ckpt_elements SELECT id + ?, hash, message, body, data FROM ckpt_elements "
        "WHERE id >= ? AND id < ?",
        (shift, *bounds),
    )
    conn.execute(
        "INSERT INTO ckpt_erased SELECT ?, hash, until, erasure, shape FROM ckpt_erased WHERE thread = ?",
        (new, thread.id),
    )


_COPIED = {
    "ckpt_checkpoints": "id, parent, saved, run, metadata, body, began",
    "ckpt_channels": "channel, version, kind, data",
    "ckpt_writes": "checkpoint, task, idx, path, channel, kind, data",
}
