"""Looking for erased bytes in the files of a database, and what an erasure found and did.

Deleting, `secure_delete` and a checkpoint are not enough: moving cells between pages leaves copies in the gaps. So
the bytes themselves are searched for, in pieces short enough to lie on one page; and where texts went before that
nobody knows any more, the file is rebuilt.
"""

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from langmem_adapter.errors import StoreError
from langmem_adapter.records import Frozen
from langmem_adapter.stores import schema
from langmem_adapter.stores.connections import BUSY_SECONDS, Connections
from langmem_adapter.stores.values import inside_json, telling, under
from langmem_adapter.stores.writing import Prepared

SHORTEST, LONGEST = 12, 48
"""Bytes of a piece: shorter ones occur by chance, longer ones may be split between pages."""

_PER_ITEM = 16
_CHUNK = 4 * 1024 * 1024
_KEY = 8
_BITS = 20
_FACTOR = np.uint64(0x9E3779B97F4A7C15)

# POSIX drops all locks a process holds on a file when it closes *any* descriptor of it, those of SQLite included.
# A descriptor that has read a database is therefore kept, one per file, as long as the process lives.
_held: dict[tuple[int, int], int] = {}


class Erasure(Frozen):
    """What an erasure deleted, where it looked for remains, and whether any are left."""

    items: int
    """Items deleted."""
    pieces: int
    """Byte strings of them that were looked for: texts, vectors, word hashes."""
    shared: int
    """Pieces that live items hold too, so that finding them says nothing."""
    searched: tuple[str, ...]
    """Files searched, each to the end."""
    bytes_searched: int
    found: int
    """Pieces still legible after the delete and the checkpoint, before the file was rebuilt."""
    vacuumed: bool
    """Whether the file was rebuilt to get rid of them."""
    state: Literal["done", "pending"]
    """`done`: the last search found nothing. `pending`: see `reason`, and call `finish_erasure` later."""
    reason: str = ""


def pieces_of(value_json: str, vectors: bytes | None, words: bytes) -> set[bytes]:
    """The byte strings by which an item's row can be recognised in a file."""
    stored = [inside_json(t).encode() for t in telling(json.loads(value_json))]
    longest = sorted((s for s in stored if len(s) >= SHORTEST), key=len)[-_PER_ITEM:]
    if not longest and len(value_json) >= SHORTEST:
        longest = [value_json.encode()]
    found = {p for s in longest for p in _cut(s)}
    for blob in (vectors, words):
        found |= {p for p in _cut(blob or b"") if p.count(0) <= len(p) // 2}
    return found


def _cut(data: bytes) -> list[bytes]:
    if len(data) <= LONGEST:
        return [data] if len(data) >= SHORTEST else []
    middle = (len(data) - LONGEST) // 2
    return [data[:LONGEST], data[middle : middle + LONGEST], data[-LONGEST:]]


class Scanner:
    """Searches any number of bytes for any number of pieces in one pass."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._by_key: dict[int, list[tuple[bytes, int]]] = {}
        for piece in pieces:
            at = (len(piece) - _KEY) // 2  # the middle: beginnings are more often alike
            key = int.from_bytes(piece[at : at + _KEY], "little")
            self._by_key.setdefault(key, []).append((piece, at))
        self._keys = np.sort(np.array(list(self._by_key), dtype=np.uint64))
        self._maybe = np.zeros(1 << _BITS, dtype=bool)
        self._maybe[self._slot(self._keys)] = True

    def search(self, data: bytes) -> set[bytes]:
        """The pieces that occur in the data."""
        found: set[bytes] = set()
        for start in range(min(_KEY, max(0, len(data) - _KEY + 1))):
            count = (len(data) - start) // _KEY
            windows = np.frombuffer(data, dtype="<u8", count=count, offset=start)
            hits = np.flatnonzero(self._maybe[self._slot(windows)])
            for i in hits[np.isin(windows[hits], self._keys)]:
                found |= self._at(data, int(windows[i]), start + int(i) * _KEY)
        return found

    def _at(self, data: bytes, key: int, where: int) -> set[bytes]:
        candidates = self._by_key[key]
        return {p for p, at in candidates if where >= at and data[where - at : where - at + len(p)] == p}

    @staticmethod
    def _slot(windows: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        return (windows * _FACTOR) >> np.uint64(64 - _BITS)

    def search_all(self, chunks: Iterable[bytes]) -> tuple[set[bytes], int]:
        """The pieces that occur in the chunks taken as one text, and its length."""
        found: set[bytes] = set()
        tail, size = b"", 0
        for chunk in chunks:
            size += len(chunk)
            found |= self.search(tail + chunk)
            tail = chunk[-(LONGEST - 1) :]
        return found, size


def files_of(file: Path) -> list[Path]:
    """The files in which rows of a database may lie."""
    return [p for p in (file, Path(f"{file}-wal"), Path(f"{file}-journal")) if p.exists()]


def read_file(path: Path) -> Iterator[bytes]:
    """The bytes of a file, without disturbing SQLite's locks on it."""
    if os.name != "posix" or path.name.endswith(("-wal", "-journal")):
        with path.open("rb") as f:
            while chunk := f.read(_CHUNK):
                yield chunk
        return
    descriptor, at = _descriptor(path), 0
    while chunk := os.pread(descriptor, _CHUNK, at):
        at += len(chunk)
        yield chunk


def _descriptor(path: Path) -> int:
    found = path.stat()
    key = (found.st_dev, found.st_ino)
    if key not in _held:  # two threads at once open it twice: without a lock, which a fork could leave locked
        _held.setdefault(key, os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)))
    return _held[key]


_LIVE = (
    "SELECT key || char(0) || value || char(0) || coalesce(fields, '') FROM memory_items",
    "SELECT slot FROM memory_items WHERE slot IS NOT NULL",
    "SELECT path FROM memory_namespaces",
    "SELECT topic || char(0) || kind FROM memory_index",
    "SELECT words FROM memory_index",
    "SELECT coalesce(vectors, x'') FROM memory_index",
)


def live_bytes(conn: sqlite3.Connection) -> Iterator[bytes]:
    """All that the live rows of the file hold, in chunks that join no two rows. Not only the store's: who shares its
    file, as a checkpointer may, holds what it holds with the same right."""
    for sql in _LIVE:
        rows = conn.execute(sql)
        while chunk := rows.fetchmany(500):
            yield _GAP.join([v if isinstance(v, bytes) else str(v).encode() for (v,) in chunk]) + _GAP
    yield from cells(conn, not_of="memory_")


def cells(conn: sqlite3.Connection, not_of: str = "") -> Iterator[bytes]:
    """All texts and bytes of the file's tables, but for those whose names begin like this."""
    for (name,) in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        if not_of and name.startswith(not_of):
            continue
        quoted = name.replace('"', '""')
        rows = conn.execute(f'SELECT * FROM "{quoted}"')
        while chunk := rows.fetchmany(200):
            found = [c for row in chunk for c in row if isinstance(c, str | bytes)]
            yield _GAP.join(c.encode("utf-8", "replace") if isinstance(c, str) else c for c in found) + _GAP


_GAP = b"\0" * LONGEST


class Wanted(NamedTuple):
    """What is to be erased."""

    deletes: list[Prepared]
    pieces: set[bytes]
    """Pieces of their rows."""
    blind: bool
    """Whether there are remains that nobody can look for, so that the file must be rebuilt."""


def erase(conn: sqlite3.Connection, prefix: Sequence[str], keys: Sequence[str] | None) -> Wanted:
    """What to erase under the prefix (only items of `keys`, if given)."""
    where, params = under(prefix, "n.path")
    rows = conn.execute(
        "SELECT n.path, i.key, i.value, x.vectors, x.words FROM memory_namespaces n JOIN memory_items i ON "
        f"i.namespace = n.id LEFT JOIN memory_index x ON x.id = i.id WHERE {where}",
        params,
    )
    wanted = None if keys is None else set(keys)
    deletes: list[Prepared] = []
    pieces: set[bytes] = set()
    blind = _lingering(conn, prefix)
    for path, key, value, vectors, words in rows:
        if wanted is None or key in wanted:
            deletes.append(Prepared(path, key))
            own = set()
            with suppress(ValueError, TypeError):  # damaged: its row goes, but there is nothing to look for
                own = pieces_of(value, vectors, words or b"")
            pieces |= own
            blind |= not own
    return Wanted(deletes, pieces, blind)


def verify(connections: Connections, pieces: set[bytes], items: int, wait: float, *, rebuild: bool = False) -> Erasure:
    """Clear the WAL, look for the pieces, rebuild the file if any is found, look again.

    `wait` is how many seconds readers of older states may take to finish. `rebuild` does not wait for a find.
    """
    search = Search(connections, pieces, live_bytes)
    give_up = time.monotonic() + wait
    clear = checkpoint(connections, give_up)
    found = search.remains()
    if found or rebuild:
        try:
            _rebuild(connections)
        except StoreError as e:
            return search.report(items, found, False, f"the file could not be rebuilt: {e}")
        # A reader that was there before has had its time; one that came meanwhile gets as much.
        clear = checkpoint(connections, time.monotonic() + wait if clear else give_up)
        left = search.remains()
    else:
        left = found
    reason = ""
    if pieces and not search.bytes_searched:
        reason = f"there was nothing to search: {connections.name} has no file that can be read"
    elif not clear:
        reason = "another connection is reading an older state, so the write-ahead log could not be cleared"
    elif left:
        reason = f"{len(left)} pieces are still legible"
    return search.report(items, found, bool(found) or rebuild, reason)


def _lingering(conn: sqlite3.Connection, prefix: Sequence[str]) -> bool:
    """Whether values were overwritten or deleted there that nobody can look for any more.

    Earlier versions of an item, and items deleted without erasing, leave copies as well. Only a rebuild removes
    them for certain; after one, a namespace is clean until something goes from it again.
    """
    where, params = under(prefix)
    sql = f"SELECT max(removed) FROM memory_namespaces WHERE {where}"
    return (conn.execute(sql, params).fetchone()[0] or 0) > schema.number(conn, "rebuilt")


def _rebuild(connections: Connections) -> None:
    # What is removed while the rebuild goes on belongs to the next epoch, so it stays marked.
    with connections.writing() as conn:
        epoch = schema.number(conn, "epoch")
        schema.set_meta(conn, "epoch", str(epoch + 1))
    with connections.alone() as conn:
        conn.execute("VACUUM")
    with connections.writing() as conn:
        schema.set_meta(conn, "rebuilt", str(max(epoch, schema.number(conn, "rebuilt"))))


def checkpoint(connections: Connections, give_up: float) -> bool:
    """Move the WAL into the file and cut it to nothing; False if readers prevented it until `give_up`."""
    if connections.in_memory:
        return True
    while True:
        with connections.alone() as conn:
            # Not with the usual patience: the lock would keep writers waiting for a slow reader.
            conn.execute("PRAGMA busy_timeout = 100")
            try:
                busy = conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            finally:
                conn.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")
        if not busy:
            return True
        if time.monotonic() >= give_up:
            return False
        time.sleep(0.05)


class Search:
    """Repeated searches for the same pieces, and what they came to."""

    def __init__(
        self, connections: Connections, pieces: set[bytes], live: Callable[[sqlite3.Connection], Iterator[bytes]]
    ) -> None:
        self._connections = connections
        self._live = live
        self._pieces = pieces
        self._shared: set[bytes] = set()
        self._files: dict[str, int] = {}

    @property
    def bytes_searched(self) -> int:
        """How much was read in the last search of each file."""
        return sum(self._files.values())

    def remains(self) -> set[bytes]:
        """The pieces that are in a file but in no live row."""
        wanted = self._pieces - self._shared
        if not wanted:
            return set()
        found: set[bytes] = set()
        scanner = Scanner(wanted)
        for name, chunks in self._chunks():
            here, size = scanner.search_all(chunks)
            found |= here
            self._files[name] = size
        if found:
            with self._connections.reading() as conn:
                live, _ = Scanner(found).search_all(self._live(conn))
            self._shared |= live
        return found - self._shared

    def _chunks(self) -> Iterator[tuple[str, Iterator[bytes]]]:
        file = self._connections.file
        if file is None:
            with self._connections.alone() as conn:
                data = conn.serialize()
            yield self._connections.name, iter([data])
            return
        for path in files_of(file):
            yield str(path), read_file(path)

    def report(self, items: int, found: set[bytes], vacuumed: bool, reason: str) -> Erasure:
        """The record of it all; pending if there is a reason to be."""
        return Erasure(
            items=items,
            pieces=len(self._pieces),
            shared=len(self._shared),
            searched=tuple(self._files),
            bytes_searched=self.bytes_searched,
            found=len(found),
            vacuumed=vacuumed,
            state="pending" if reason else "done",
            reason=reason,
        )
