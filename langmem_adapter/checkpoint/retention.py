"""How long checkpoints are kept: what a policy means and how it is applied."""

import sqlite3
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from langmem_adapter.checkpoint.collecting import Keep, Stored
from langmem_adapter.errors import InvalidInput
from langmem_adapter.records import Frozen

GRAVE_SECONDS = 30 * 24 * 3600
"""How long a deleted thread's hash is kept to recognise late writes; no run lives longer."""


class Maintained(Frozen):
    """What `maintain` did."""

    threads: int
    """Threads deleted, because nothing was stored in them within `max_age`."""
    checkpoints: int
    """Checkpoints removed from the other threads."""
    erasure: str
    """`done`, or `pending`: a reader was in the way of clearing the files; call `maintain` again."""


class Policy(NamedTuple):
    """At most `keep_last` checkpoints per thread and namespace, none older than `max_age` seconds."""

    keep_last: int | None
    max_age: float | None

    @classmethod
    def of(cls, keep_last: int | None, max_age: timedelta | float | None) -> "Policy":
        """The policy of these arguments. InvalidInput unless both are positive or None."""
        seconds = max_age.total_seconds() if isinstance(max_age, timedelta) else max_age
        if keep_last is not None and (type(keep_last) is not int or keep_last < 1):
            raise InvalidInput(f"keep_last must be a whole number, at least 1, got {keep_last!r}")
        if seconds is not None and (type(seconds) not in (int, float) or not seconds > 0):
            raise InvalidInput(f"max_age must be positive (a timedelta, or seconds), got {max_age!r}")
        return cls(keep_last, seconds)

    def keep(self, now: float) -> Keep:
        """Which checkpoints of a namespace to keep."""

        def chosen(stored: Sequence[Stored]) -> Sequence[Stored]:
            young = [s for s in stored if self.max_age is None or s.saved >= now - self.max_age]
            return young[: self.keep_last]

        return chosen


def idle_threads(conn: sqlite3.Connection, before: float) -> list[str]:
    """Threads in which nothing was stored since. Writes without a checkpoint have the age that its id tells."""
    rows = conn.execute(
        "SELECT t.thread, max(c.saved), (SELECT max(w.checkpoint) FROM ckpt_writes w JOIN ckpt_spaces s "
        "ON w.space = s.id WHERE s.thread = t.id) FROM ckpt_threads t LEFT JOIN ckpt_spaces s ON s.thread = t.id "
        "LEFT JOIN ckpt_checkpoints c ON c.space = s.id GROUP BY t.id HAVING coalesce(max(c.saved), 0) < ?",
        (before,),
    )
    return [thread for thread, saved, written in rows if saved is not None or _made_at(written or "") < before]


def _made_at(checkpoint: str) -> float:
    """The time in a checkpoint's id, in seconds since the epoch; 0 if it has none."""
    if len(checkpoint) != 36 or checkpoint[14] != "6":
        return 0
    digits = checkpoint.replace("-", "")
    return (int(digits[:12] + digits[13:16], 16) - _GREGORIAN) / 10_000_000


_GREGORIAN = 0x01B21DD213814000
"""What a UUID's time, in 100 ns, is at the epoch."""


def all_threads(conn: sqlite3.Connection) -> list[str]:
    """Every thread."""
    return [thread for (thread,) in conn.execute("SELECT thread FROM ckpt_threads ORDER BY id")]


def clear_graves(conn: sqlite3.Connection, now: float) -> None:
    """Forget threads deleted long ago."""
    conn.execute("DELETE FROM ckpt_dead WHERE at < ?", (now - GRAVE_SECONDS,))
