"""Erasing threads and messages so that their bytes are gone, and proof of it.

First a transaction deletes or replaces the rows; then the write-ahead log is cleared and the files are searched for
pieces of what was erased; if any is found outside of live rows, the file is rebuilt and searched again. Between the
two a mark in `ckpt_meta` says that an erasure is unfinished, so that a crash or a reader in the way loses nothing.
"""

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from langmem_adapter.checkpoint import schema, threads, tombstones, trees, values
from langmem_adapter.checkpoint.elements import Tools
from langmem_adapter.checkpoint.messages import kind_of
from langmem_adapter.checkpoint.schema import SHIFT
from langmem_adapter.checkpoint.tombstones import Redactor, Refused, body_hash, id_hash
from langmem_adapter.checkpoint.trees import Branch
from langmem_adapter.errors import StoreError
from langmem_adapter.stores.connections import Connections
from langmem_adapter.stores.erasure import LONGEST, SHORTEST, Erasure, Search, cells, checkpoint

UNFINISHED = "erasing"
_PER_VALUE = 16

_ROWS = (
    "SELECT metadata, NULL FROM ckpt_checkpoints WHERE space = ?",
    "SELECT data, kind FROM ckpt_channels WHERE space = ?",
    "SELECT data, kind FROM ckpt_writes WHERE space = ?",
)


def erase_threads(conn: sqlite3.Connection, thread_ids: Sequence[str], tools: Tools) -> tuple[int, set[bytes]]:
    """Delete threads; returns how many checkpoints they had and the pieces to look for."""
    count = 0
    pieces: set[bytes] = set()
    for thread_id in thread_ids:
        threads.bury(conn, thread_id, tools.hashes)
        thread = threads.find(conn, thread_id, "")
        if thread is None:
            continue
        pieces |= _cut_all([thread_id.encode("utf-8", "replace")])
        pieces |= _pieces_of_thread(conn, thread.id, tools)
        spaces = conn.execute("SELECT id FROM ckpt_spaces WHERE thread = ?", (thread.id,)).fetchall()
        count += sum(conn.execute("DELETE FROM ckpt_checkpoints WHERE space = ?", s).rowcount for s in spaces)
        for table in ("ckpt_channels", "ckpt_writes"):
            conn.executemany(f"DELETE FROM {table} WHERE space = ?", spaces)
        conn.execute("DELETE FROM ckpt_elements WHERE id >= ? AND id < ?", _range(thread.id))
        for table, column in (("ckpt_erased", "thread"), ("ckpt_spaces", "thread"), ("ckpt_threads", "id")):
            conn.execute(f"DELETE FROM {table} WHERE {column} = ?", (thread.id,))
    schema.set_meta(conn, UNFINISHED, "1")
    return count, pieces


def _pieces_of_thread(conn: sqlite3.Connection, thread: int, tools: Tools) -> set[bytes]:
    pieces: set[bytes] = set()
    for (data,) in conn.execute("SELECT data FROM ckpt_elements WHERE id >= ? AND id < ?", _range(thread)):
        pieces |= _pieces_of(data, tools)
    for (space,) in conn.execute("SELECT id FROM ckpt_spaces WHERE thread = ?", (thread,)).fetchall():
        for sql in _ROWS:
            for data, kind in conn.execute(sql, (space,)):
                if kind is None or kind & ~values.SNAPSHOT == values.INLINE:
                    pieces |= _pieces_of(data, tools)
    return pieces


def _pieces_of(data: bytes, tools: Tools) -> set[bytes]:
    """By what a stored value can be recognised: its texts; encrypted, its ciphertext."""
    if tools.sealing.scheme != "none":
        return _cut_all([data])
    tree = trees.parse(data)
    telling = [t.encode("utf-8", "replace") for t in trees.strings(tree)] + list(trees.blobs(tree))
    return _cut_all(sorted((t for t in telling if t not in _COMMON), key=len)[-_PER_VALUE:])


_COMMON = frozenset((b"model_validate_json", b"fromisoformat"))


def _cut_all(texts: Iterable[bytes]) -> set[bytes]:
    return {p for t in texts for p in _cut(t)}


def _cut(data: bytes) -> list[bytes]:
    if len(data) <= LONGEST:
        return [data] if len(data) >= SHORTEST else []
    middle = (len(data) - LONGEST) // 2
    return [data[:LONGEST], data[middle : middle + LONGEST], data[-LONGEST:]]


def _range(thread: int) -> tuple[int, int]:
    return thread << SHIFT, (thread + 1) << SHIFT


# ------------------------------------------------------------------ messages


def erase_messages(
    conn: sqlite3.Connection, thread_id: str, message_ids: Sequence[str], tools: Tools
) -> tuple[int, set[bytes], int]:
    """Replace messages by tombstones in the thread and all copies of it, and take their words out of all else there.

    Returns how many places, pieces to look for, and how often a short text stays because other messages say it.
    """
    sql = "SELECT id FROM ckpt_threads WHERE family = (SELECT family FROM ckpt_threads WHERE thread = ?)"
    family = [t for (t,) in conn.execute(sql, (thread_id,))]
    wanted = {id_hash(tools.hashes, m) for m in message_ids}
    bodies: dict[bytes, int] = {}
    for thread in family:
        bodies |= _bodies(conn, thread, wanted, tools)
    refused = Refused((*((h, 0) for h in wanted), *bodies.items()))
    mark = threads.moment()
    changed = left = 0
    pieces: set[bytes] = set()
    for thread in family:
        found, more, stay = _redact_thread(conn, thread, refused, tools)
        changed, pieces, left = changed + found, pieces | more, left + stay
        conn.execute("UPDATE ckpt_threads SET epoch = epoch + 1, erasures = erasures + 1 WHERE id = ?", (thread,))
        (number,) = conn.execute("SELECT erasures FROM ckpt_threads WHERE id = ?", (thread,)).fetchone()
        rows: list[tuple[Any, ...]] = [(thread, h, None, number, 0) for h in wanted]
        rows += [(thread, h, mark, number, shape) for h, shape in bodies.items()]
        conn.executemany("INSERT OR REPLACE INTO ckpt_erased VALUES (?, ?, ?, ?, ?)", rows)
    schema.set_meta(conn, UNFINISHED, "1")
    return changed, pieces, left


def _bodies(conn: sqlite3.Connection, thread: int, wanted: set[bytes], tools: Tools) -> dict[bytes, int]:
    """The hashes of the messages with these ids as they are without an id, wherever they are stored."""
    watcher = Redactor(tools.hashes, Refused((h, 0) for h in wanted))
    for _, _, _, data in _texts(conn, thread):
        watcher.redact(tools.sealing.open(data))
    return {h: s for m in watcher.removed for h, s in tombstones.traces(tools.hashes, m).items()}


def _redact_thread(
    conn: sqlite3.Connection, thread: int, refused: Refused, tools: Tools
) -> tuple[int, set[bytes], int]:
    redactor = Redactor(tools.hashes, refused)
    pieces: set[bytes] = set()
    for table, key, hashed, data in list(_texts(conn, thread)):
        redactor.removed.clear()
        before = tools.sealing.open(data)
        after = redactor.redact(before)
        if after is before:
            continue
        if tools.sealing.scheme == "none":
            pieces |= _cut_all(v for m in redactor.removed for t in tombstones.texts(m) for v in tombstones.variants(t))
        else:
            pieces |= _cut_all([data])
        if hashed is not None:
            address, body = _addresses(after, tools)
            conn.execute("UPDATE ckpt_elements SET hash = ?, body = ? WHERE id = ?", (address, body, *key))
        column, where = _PLACES[table]
        conn.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (tools.sealing.seal(after), *key))
    return redactor.changed, pieces, redactor.left


_PLACES = {
    "ckpt_elements": ("data", "id = ?"),
    "ckpt_checkpoints": ("metadata", "space = ? AND id = ?"),
    "ckpt_channels": ("data", "space = ? AND channel = ? AND version = ?"),
    "ckpt_writes": ("data", "space = ? AND checkpoint = ? AND task = ? AND idx = ?"),
}

_Row = tuple[str, tuple[object, ...], bytes | None, bytes]


def _texts(conn: sqlite3.Connection, thread: int) -> Iterator[_Row]:
    """Every stored value of a thread that may hold text: table, key, hash of an element, bytes."""
    for i, hashed, data in conn.execute(
        "SELECT id, hash, data FROM ckpt_elements WHERE id >= ? AND id < ?", _range(thread)
    ).fetchall():
        yield "ckpt_elements", (i,), hashed, data
    for (space,) in conn.execute("SELECT id FROM ckpt_spaces WHERE thread = ?", (thread,)).fetchall():
        for i, data in conn.execute("SELECT id, metadata FROM ckpt_checkpoints WHERE space = ?", (space,)).fetchall():
            yield "ckpt_checkpoints", (space, i), None, data
        inline = f"kind & ~{values.SNAPSHOT} = {values.INLINE}"
        sql = f"SELECT channel, version, data FROM ckpt_channels WHERE space = ? AND {inline}"
        for channel, version, data in conn.execute(sql, (space,)).fetchall():
            yield "ckpt_channels", (space, channel, version), None, data
        sql = f"SELECT checkpoint, task, idx, data FROM ckpt_writes WHERE space = ? AND {inline}"
        for *key, data in conn.execute(sql, (space,)).fetchall():
            yield "ckpt_writes", (space, *key), None, data


def _addresses(packed: bytes, tools: Tools) -> tuple[bytes, bytes | None]:
    """The new hash of a changed element, and of its body if it is a message."""
    tree = trees.parse(packed)
    if isinstance(tree, Branch) and isinstance(tree.tree, list) and len(tree.tree) == 4:
        module, name, fields, _ = tree.tree
        if tombstones.is_message(fields):
            data = trees.serialize(fields)
            return tools.hashes.of(kind_of((module, name)), data), body_hash(tools.hashes, fields)
    return tools.hashes.of("value", packed), None


# ------------------------------------------------------------------ verification


def verify(
    connections: Connections, pieces: set[bytes], items: int, wait: float, *, left: int = 0, rebuild: bool = False
) -> Erasure:
    """Clear the log, search the files, rebuild the file if anything is found (or if told to), search again.

    `left` is how often live rows of the thread still say it.
    """
    search = Search(connections, pieces, cells)
    give_up = time.monotonic() + wait
    clear = checkpoint(connections, give_up)
    found = legible = search.remains()
    if found or rebuild:
        try:
            with connections.alone() as conn:
                conn.execute("VACUUM")
        except StoreError as e:
            return search.report(items, found, False, f"the file could not be rebuilt: {e}")
        clear = checkpoint(connections, time.monotonic() + wait if clear else give_up)
        legible = search.remains()
    reason = ""
    if not clear:
        reason = "another connection is reading an older state, so the write-ahead log could not be cleared"
    elif legible:
        reason = f"{len(legible)} pieces are still legible"
    else:
        with connections.writing() as conn:
            schema.set_meta(conn, UNFINISHED, None)
        if left:
            reason = f"the same words stand in {left} other places of the thread's messages; erase those messages too"
    return search.report(items, found, bool(found) or rebuild, reason)
