"""What the cached parts of a namespace have in common: ids, changes, and a cache bounded in bytes."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from langmem_adapter.stores.tokens import Indexed

Ids = npt.NDArray[np.int64]

KINDS = ("vectors", "words", "facets", "deadlines")

_OVERHEAD = 256
_MOST_CHANGES = 1_000
"""Changes that wait to be taken into a part."""


class Change(NamedTuple):
    """One item put or deleted by a commit, as the caches need to know it. `row` None: it was deleted."""

    id: int
    row: tuple[Any, ...] | None
    """Its row of `scoring.Columns`."""
    words: Indexed | None
    vectors: npt.NDArray[np.float32] | None
    """Unit vectors, one a row; None if there are none."""
    expires_at: int | None

    @property
    def nbytes(self) -> int:
        """About what it takes in memory."""
        vectors = 0 if self.vectors is None else self.vectors.nbytes
        return _OVERHEAD + vectors + (0 if self.words is None else self.words.hashes.nbytes)


class Part(Protocol):
    """Something loaded from the rows of one namespace; immutable to its readers."""

    @property
    def nbytes(self) -> int: ...

    def changed(self, changes: Sequence[Change]) -> Self | None:
        """This part after the changes; None if loading it again is the better way."""


class _Kept:
    """A part, and the changes that lead from it to the state at `stamp`."""

    __slots__ = ("changes", "nbytes", "part", "stamp")

    def __init__(self, stamp: int, part: Part) -> None:
        self.stamp = stamp
        self.part = part
        self.changes: list[Change] = []
        self.nbytes = part.nbytes + _OVERHEAD


class Cache:
    """Parts by (namespace id, kind), least recently used first out, never above `limit` bytes in sum.

    Changes are noted when they are committed and taken in together when the part is next asked for: a put does not
    pay for the searches that may come, nor a search for every put by itself.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.nbytes = 0
        self._parts: OrderedDict[tuple[int, str], _Kept] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, namespace: int, kind: str, stamp: int, load: Callable[[], Part]) -> Part:
        """The part as of `stamp`, loaded if it is not there. An older snapshot never displaces a newer part."""
        key = (namespace, kind)
        with self._lock:
            part = self._at(key, stamp)
            if part is not None:
                return part
        part = load()
        with self._lock:
            newest = self._parts.get(key)
            if newest is None or newest.stamp < stamp:
                self._set(key, stamp, part)
        return part

    def advance(self, namespace: int, before: int, after: int, changes: Sequence[Change]) -> None:
        """Carry the parts of a namespace over a commit of our own; what was not at `before` is left alone."""
        size = sum(c.nbytes for c in changes)
        with self._lock:
            for key in [(namespace, kind) for kind in KINDS]:
                kept = self._parts.get(key)
                if kept is None or kept.stamp != before:
                    continue
                kept.stamp = after
                kept.changes += changes
                kept.nbytes += size
                self.nbytes += size
                if len(kept.changes) >= _MOST_CHANGES:
                    self._at(key, after)
            self._shrink()

    def move(self, namespace: int, before: int, after: int, step: Callable[[Part], Part]) -> None:
        """Carry the parts of a namespace over a commit of our own that only moved deadlines."""
        with self._lock:
            for key in [(namespace, kind) for kind in KINDS]:
                part = self._at(key, before)
                if part is not None:
                    self._set(key, after, step(part))

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._parts.clear()
            self.nbytes = 0

    def renew(self) -> None:
        """Start anew in a forked child, where a thread that is not there may hold the lock."""
        self._lock = threading.Lock()
        self.clear()

    def _at(self, key: tuple[int, str], stamp: int) -> Part | None:
        """The part as of `stamp`, its changes taken in; None if it is not there."""
        kept = self._parts.get(key)
        if kept is None or kept.stamp != stamp:
            return None
        self._parts.move_to_end(key)
        if not kept.changes:
            return kept.part
        last = {c.id: c for c in kept.changes}
        part = kept.part.changed(list(last.values()))
        if part is None:
            self._drop(key)
        else:
            self._set(key, stamp, part)
        return part

    def _set(self, key: tuple[int, str], stamp: int, part: Part) -> None:
        self._drop(key)
        kept = _Kept(stamp, part)
        if kept.nbytes <= self.limit:
            self._parts[key] = kept
            self.nbytes += kept.nbytes
            self._shrink()

    def _shrink(self) -> None:
        while self.nbytes > self.limit:
            self._drop(next(iter(self._parts)))

    def _drop(self, key: tuple[int, str]) -> None:
        kept = self._parts.pop(key, None)
        if kept is not None:
            self.nbytes -= kept.nbytes


def positions(ids: Ids, wanted: Ids) -> npt.NDArray[np.intp]:
    """Where each wanted id stands in the ascending `ids`; −1 if it is not there."""
    if len(ids) == len(wanted) and np.array_equal(ids, wanted):
        return np.arange(len(ids))
    if not len(ids):
        return np.full(len(wanted), -1, dtype=np.intp)
    at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return np.where(ids[at] == wanted, at, -1)
