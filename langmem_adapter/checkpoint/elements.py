"""A thread's elements: each message and each large value once, found by its hash, named by a number.

What a process has learnt about a thread's elements is cached. The thread's row tells whether that is still so: if the
epoch is the same, no element was removed or replaced, and those past the counters are the only ones that are new.
"""

import sqlite3
from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import NamedTuple

from langmem_adapter.checkpoint import threads
from langmem_adapter.checkpoint.allowlist import Name
from langmem_adapter.checkpoint.codec import Codec
from langmem_adapter.checkpoint.messages import Batch, Draft, kind_of, stored
from langmem_adapter.checkpoint.schema import LOOSE, SHIFT
from langmem_adapter.checkpoint.sealing import Hashes, Sealing
from langmem_adapter.checkpoint.threads import Thread
from langmem_adapter.checkpoint.tombstones import Redactor, Refused, body_hash, id_hash
from langmem_adapter.checkpoint.trees import parse

CACHE_BYTES = 64 << 20
"""Memory for what a process knows of elements, over all threads."""
_ENTRY = 150
_LISTS = 4
_LONGEST_LIST = 8 << 20


class Tools(NamedTuple):
    """What turns values into stored bytes and back."""

    codec: Codec
    sealing: Sealing
    hashes: Hashes


class Listed(NamedTuple):
    """A list of messages that was stored: what it was packed to, and what became of it."""

    names: list[Name]
    fields: bytes
    runs: list[int]
    began: int

    def begins(self, batch: Batch, began: int) -> bool:
        """Whether the other list goes on where this one ends, and would have been refused nothing else."""
        return (
            self.began == began
            and batch.fields.startswith(self.fields)
            and batch.names[: len(self.names)] == self.names
        )


class Known:
    """What is known of one thread's elements."""

    __slots__ = ("epoch", "erased", "lists", "next_loose", "next_seq", "numbers", "size")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.next_seq = 0
        self.next_loose = LOOSE
        self.numbers: dict[bytes, int] = {}
        """By hash: all elements."""
        self.lists: deque[Listed] = deque(maxlen=_LISTS)
        """The lists stored last: a list that begins like one of them needs no hashing but for its end."""
        self.erased: list[tuple[bytes, int | None, int]] = []
        """Hash of what must not come back, number of the erasure (None: for ever), shape."""
        self.size = 0

    def learn(self, numbers: Iterable[tuple[bytes, int]]) -> None:
        """Elements by their hashes."""
        before = len(self.numbers)
        self.numbers.update(numbers)
        self.size += (len(self.numbers) - before) * _ENTRY

    def longest(self, batch: Batch, began: int) -> Listed | None:
        """The longest known list with which this one begins."""
        found = (known for known in self.lists if known.begins(batch, began))
        return max(found, key=lambda known: len(known.names), default=None)

    def keep(self, listed: Listed) -> None:
        """Know this list; it takes the place of the one it continues."""
        if len(listed.fields) > _LONGEST_LIST:
            return
        kept = [known for known in self.lists if not listed.fields.startswith(known.fields)]
        self.lists = deque((*kept, listed), maxlen=_LISTS)

    @property
    def bytes(self) -> int:
        """Memory it takes, about."""
        return self.size + sum(len(known.fields) for known in self.lists)


class Cache:
    """What is known of the threads used last. Use it under the lock of the writing connection."""

    def __init__(self) -> None:
        self._threads: OrderedDict[int, Known] = OrderedDict()

    def of(self, conn: sqlite3.Connection, thread: Thread) -> Known:
        """All elements of the thread as the transaction sees them."""
        known = self._threads.get(thread.id)
        if known is None or known.epoch != thread.epoch:
            known = self._threads[thread.id] = Known(thread.epoch)
            known.erased = threads.erased_from(conn, thread.id)
        self._threads.move_to_end(thread.id)
        for start, end in ((known.next_seq, thread.next_seq), (known.next_loose, thread.next_loose)):
            if start < end:
                ids = (thread.id << SHIFT | start, thread.id << SHIFT | (end - 1))
                rows = conn.execute("SELECT hash, id & 4294967295 FROM ckpt_elements WHERE id BETWEEN ? AND ?", ids)
                known.learn(rows.fetchall())
        known.next_seq, known.next_loose = thread.next_seq, thread.next_loose
        return known

    def trim(self) -> None:
        """Forget the threads used longest ago, beyond the bound."""
        while len(self._threads) > 1 and sum(k.bytes for k in self._threads.values()) > CACHE_BYTES:
            self._threads.popitem(last=False)


class Placing:
    """Gives elements their numbers within one write transaction."""

    def __init__(self, conn: sqlite3.Connection, thread: Thread, known: Known, tools: Tools, began: int) -> None:
        self._conn = conn
        self._thread = thread
        self._known = known
        self._tools = tools
        self._began = began
        self._refused = Refused((h, s) for h, n, s in known.erased if n is None or n > began)
        self._new: dict[bytes, int] = {}
        self._lists: list[Listed] = []
        self._rows: list[tuple[int, bytes, bytes | None, bytes | None, bytes]] = []
        self._next = [thread.next_seq, thread.next_loose]

    def runs(self, batch: Batch) -> list[int]:
        """The runs of a list's messages (see `values`)."""
        known = self._known.longest(batch, self._began)
        start, fields, runs = (len(known.names), known.fields, known.runs.copy()) if known else (0, b"", [])
        drafts = batch.drafts(start)
        fields += b"".join(packed for _, packed in drafts)
        if known and fields != batch.fields:  # somebody changed a message since the list was packed
            runs, drafts = [], batch.drafts()
            fields = b"".join(packed for _, packed in drafts)
        for draft in drafts:
            number = self.message(draft)
            if runs and runs[-2] + runs[-1] == number:
                runs[-1] += 1
            else:
                runs += (number, 1)
        self._lists.append(Listed(batch.names, fields, runs, self._began))
        return runs

    def message(self, draft: Draft) -> int:
        """The number of a message, stored now if it is new; that of its tombstone if it was erased."""
        name, packed = draft
        hashes = self._tools.hashes
        address = hashes.of(kind_of(name), packed)
        number = self._number(address)
        if number is not None:
            return number
        fields = self.redacted(packed)
        if fields is not packed:
            return self.message((name, fields))
        tree = parse(fields)
        message_id = tree.get("id") or None
        identity = None if message_id is None else id_hash(hashes, str(message_id))
        data = stored(name, fields)
        return self._store(address, identity, body_hash(hashes, tree), data, loose=message_id is None)

    def value(self, packed: bytes) -> int:
        """The number of a large value."""
        address = self._tools.hashes.of("value", packed)
        number = self._number(address)
        return self._store(address, None, None, packed, loose=True) if number is None else number

    def redacted(self, packed: bytes) -> bytes:
        """Packed bytes without the messages that were erased from this thread."""
        return Redactor(self._tools.hashes, self._refused).redact(packed) if self._refused.hashes else packed

    def finish(self) -> None:
        """Write the new elements and the thread's counters."""
        if not self._rows:
            return
        self._conn.executemany("INSERT INTO ckpt_elements VALUES (?, ?, ?, ?, ?)", self._rows)
        self._conn.execute(
            "UPDATE ckpt_threads SET next_seq = ?, next_loose = ? WHERE id = ?", (*self._next, self._thread.id)
        )

    def committed(self) -> None:
        """Tell the cache; call it after the commit."""
        self._known.learn(self._new.items())
        for listed in self._lists:
            self._known.keep(listed)
        self._known.next_seq, self._known.next_loose = self._next

    def _number(self, address: bytes) -> int | None:
        number = self._known.numbers.get(address)
        return self._new.get(address) if number is None else number

    def _store(self, address: bytes, message: bytes | None, body: bytes | None, data: bytes, *, loose: bool) -> int:
        number = self._next[loose]
        self._next[loose] += 1
        self._new[address] = number
        row_id = self._thread.id << SHIFT | number
        self._rows.append((row_id, address, message, body, self._tools.sealing.seal(data)))
        return number
