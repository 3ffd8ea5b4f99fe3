"""A thread's elements: each message and each large value once, found by its hash, named by a number.

What a process has learnt about a thread's elements is cached. The thread's row tells whether that is still so: if the
epoch is the same, no element was removed or replaced, and those past the counters are the only ones that are new.
"""

import sqlite3
from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

from langmem_adapter.checkpoint.codec import Codec
from langmem_adapter.checkpoint.messages import Draft, kind_of, stored
from langmem_adapter.checkpoint.schema import LOOSE, SHIFT
from langmem_adapter.checkpoint.sealing import Hashes, Sealing
from langmem_adapter.checkpoint.threads import Thread, is_later
from langmem_adapter.checkpoint.tombstones import Redactor, body_hash, id_hash
from langmem_adapter.checkpoint.trees import parse

CACHE_BYTES = 64 << 20
"""Memory for what a process knows of elements, over all threads."""
_ENTRY = 150
_LONGEST_KEY = 4096


class Tools(NamedTuple):
    """What turns values into stored bytes and back."""

    codec: Codec
    sealing: Sealing
    hashes: Hashes


class Known:
    """What is known of one thread's elements."""

    __slots__ = ("epoch", "erased", "fields", "next_loose", "next_seq", "numbers", "size")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.next_seq = 0
        self.next_loose = LOOSE
        self.numbers: dict[bytes, int] = {}
        """By hash: all elements."""
        self.fields: dict[Draft, int] = {}
        """By class and packed fields: messages seen by this process, which need no hashing."""
        self.erased: dict[bytes, str | None] = {}
        self.size = 0

    def learn(self, numbers: Iterable[tuple[bytes, int]]) -> None:
        """Elements by their hashes."""
        before = len(self.numbers)
        self.numbers.update(numbers)
        self.size += (len(self.numbers) - before) * _ENTRY

    def recognise(self, draft: Draft, number: int) -> None:
        """The number of a message with these very fields."""
        if len(draft[1]) <= _LONGEST_KEY:
            self.fields[draft] = number
            self.size += len(draft[1]) + _ENTRY


class Cache:
    """What is known of the threads used last. Used under the lock of the writing connection."""

    def __init__(self) -> None:
        self._threads: OrderedDict[int, Known] = OrderedDict()

    def of(self, conn: sqlite3.Connection, thread: Thread) -> Known:
        """All elements of the thread as the transaction sees them."""
        known = self._threads.get(thread.id)
        if known is None or known.epoch != thread.epoch:
            known = self._threads[thread.id] = Known(thread.epoch)
            rows = conn.execute("SELECT hash, until FROM ckpt_erased WHERE thread = ?", (thread.id,))
            known.erased = dict(rows.fetchall())
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
        while len(self._threads) > 1 and sum(k.size for k in self._threads.values()) > CACHE_BYTES:
            self._threads.popitem(last=False)

    def clear(self) -> None:
        """Forget everything, as after a rollback."""
        self._threads.clear()


class Placing:
    """Gives elements their numbers within one write transaction."""

    def __init__(self, conn: sqlite3.Connection, thread: Thread, known: Known, tools: Tools, checkpoint: str) -> None:
        self._conn = conn
        self._thread = thread
        self._known = known
        self._tools = tools
        self._checkpoint = checkpoint
        self._new: dict[bytes, int] = {}
        self._seen: dict[Draft, int] = {}
        self._refused: set[Draft] = set()
        self._rows: list[tuple[int, bytes, bytes | None, bytes | None, bytes]] = []
        self._next = [thread.next_seq, thread.next_loose]

    def message(self, draft: Draft) -> int:
        """The number of a message, stored now if it is new; that of its tombstone if it was erased."""
        return self.messages((draft,))[0]

    def messages(self, drafts: Iterable[Draft]) -> list[int]:
        """The number of each message."""
        known, seen = self._known.fields, self._seen
        found = []
        for draft in drafts:
            number = known.get(draft)
            if number is None:
                number = seen.get(draft)
                if number is None:
                    number = seen[draft] = self._entered(draft)
            found.append(number)
        return found

    def _entered(self, draft: Draft) -> int:
        name, packed = draft
        hashes = self._tools.hashes
        address = hashes.of(kind_of(name), packed)
        number = self._number(address)
        if number is not None:
            return number
        fields = self.redacted(packed)
        if fields is not packed:
            self._refused.add(draft)
            return self._entered((name, fields))
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
        erased = self._known.erased
        if not erased:
            return packed

        def refused(hashed: bytes) -> bool:
            return hashed in erased and not is_later(self._checkpoint, erased[hashed])

        return Redactor(self._tools.hashes, refused).redact(packed)

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
        for draft, number in self._seen.items():
            if draft not in self._refused:  # what is refused in this checkpoint may be welcome in a later one
                self._known.recognise(draft, number)
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
