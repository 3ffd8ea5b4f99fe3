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


class Change(NamedTuple):
    """One item put or deleted by a commit, as the caches need to know it. `row` None: it was deleted."""

    id: int
    row: tuple[Any, ...] | None
    """Its row of `scoring.Columns`."""
    words: Indexed | None
    vectors: npt.NDArray[np.float32] | None
    """Unit vectors, one a row; None if there are none."""
    expires_at: int | None


class Part(Protocol):
    """Something loaded from the rows of one namespace; immutable to its readers."""

    @property
    def nbytes(self) -> int: ...

    def changed(self, changes: Sequence[Change]) -> Self | None:
        """This part after the changes; None if loading it again is the better way."""


class Cache:
    """Parts by (namespace id, kind), least recently used first out, never above `limit` bytes in sum."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.nbytes = 0
        self._parts: OrderedDict[tuple[int, str], tuple[int, Part]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, namespace: int, kind: str, stamp: int, load: Callable[[], Part]) -> Part:
        """The part as of `stamp`, loaded if it is not there. An older snapshot never displaces a newer part."""
        with self._lock:
            found = self._parts.get((namespace, kind))
            if found is not None and found[0] == stamp:
                self._parts.move_to_end((namespace, kind))
                return found[1]
        part = load()
        with self._lock:
            newest = self._parts.get((namespace, kind))
            if newest is None or newest[0] < stamp:
                self._set((namespace, kind), stamp, part)
        return part

    def advance(self, namespace: int, before: int, after: int, step: Callable[[Part], Part | None]) -> None:
        """Carry the parts of a namespace over a commit of our own; what was not at `before` is left alone."""
        with self._lock:
            for key in [(namespace, kind) for kind in KINDS]:
                found = self._parts.get(key)
                if found is not None and found[0] == before:
                    part = step(found[1])
                    if part is None:
                        self._drop(key)
                    else:
                        self._set(key, after, part)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._parts.clear()
            self.nbytes = 0

    def _set(self, key: tuple[int, str], stamp: int, part: Part) -> None:
        self._drop(key)
        size = part.nbytes + 256
        if size > self.limit:
            return
        self._parts[key] = (stamp, part)
        self.nbytes += size
        while self.nbytes > self.limit:
            self._drop(next(iter(self._parts)))

    def _drop(self, key: tuple[int, str]) -> None:
        found = self._parts.pop(key, None)
        if found is not None:
            self.nbytes -= found[1].nbytes + 256


def positions(ids: Ids, wanted: Ids) -> npt.NDArray[np.intp]:
    """Where each wanted id stands in the ascending `ids`; −1 if it is not there."""
    if len(ids) == len(wanted) and np.array_equal(ids, wanted):
        return np.arange(len(ids))
    if not len(ids):
        return np.full(len(wanted), -1, dtype=np.intp)
    at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return np.where(ids[at] == wanted, at, -1)
