"""What the stores on one Chroma database know of it together: one writer at a time, and the heads of namespaces.

In this process a lock serialises writers, and readers notice a write that came in between by a count per owner.
An embedded database has no other writers, so heads are remembered. A server may have: heads are read each time,
and one that was replaced behind our back is noted.
"""

import secrets
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from langmem_adapter.stores.chroma_client import Chroma
from langmem_adapter.stores.chroma_places import Place, Places
from langmem_adapter.stores.chroma_rows import Head, head_of

Heads = dict[str, Head]

_MOST_OWNERS = 20_000
_PATIENCE = 10.0


class Shared:
    """The state of one database that all of this process's stores on it share."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.writer = secrets.token_hex(8)
        """Who we are in the heads we write."""
        self.heads: OrderedDict[str, Heads] = OrderedDict()
        self.counts: defaultdict[str, int] = defaultdict(int)
        """By owner: odd while somebody writes, and never the same again afterwards."""
        self.written: OrderedDict[str, Head] = OrderedDict()
        """On a server: the heads we wrote last."""
        self.clashes: list[str] = []
        """What other writers did to our heads."""

    @contextmanager
    def writing(self, owners: Iterable[str]) -> Iterator[None]:
        """The only writer in this process; if it fails nothing is remembered of these owners. May be nested."""
        with self.lock:
            begun = [owner for owner in owners if not self.counts[owner] % 2]  # the others we are writing already
            for owner in begun:
                self.counts[owner] += 1
            try:
                yield
            except BaseException:
                for owner in begun:
                    self.heads.pop(owner, None)
                raise
            finally:
                for owner in begun:
                    self.counts[owner] += 1

    def keep(self, owner: str, heads: Heads) -> None:
        """Remember the heads of an owner."""
        with self.lock:
            self.heads[owner] = heads
            self.heads.move_to_end(owner)
            while len(self.heads) > _MOST_OWNERS:
                self.heads.popitem(last=False)


_shared: dict[tuple[str, ...], tuple[Shared, int]] = {}
_sharing = threading.Lock()


def _enter(identity: tuple[str, ...]) -> Shared:
    """The state of the database with this identity, as long as any store is open on it."""
    with _sharing:
        shared, users = _shared.get(identity) or (Shared(), 0)
        _shared[identity] = (shared, users + 1)
        return shared


def _leave(identity: tuple[str, ...]) -> None:
    # Nothing is remembered beyond that: another process may write next.
    with _sharing:
        shared, users = _shared.pop(identity)
        if users > 1:
            _shared[identity] = (shared, users - 1)


class Book:
    """A database with its places and heads."""

    def __init__(self, chroma: Chroma, prefix: str, own_collections: int) -> None:
        self.chroma = chroma
        self._identity: tuple[str, ...] | None = (*chroma.identity, prefix)
        self.shared = _enter(self._identity)
        try:
            with self.shared.lock:
                self.places = Places(chroma, prefix, own_collections)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of what is shared with other stores, and close the client if it was opened here."""
        identity, self._identity = self._identity, None
        if identity is None:
            return
        waited = self.shared.lock.acquire(timeout=_PATIENCE)  # for a write that is going on
        try:
            self.chroma.close()
        finally:
            _leave(identity)
            if waited:
                self.shared.lock.release()

    @property
    def alone(self) -> bool:
        """Whether nobody outside this process can write."""
        return self.chroma.kind != "server"

    def heads(self, owner: str) -> Heads:
        """The heads of an owner's namespaces, by path."""
        count = self.shared.counts[owner]
        if self.alone and (known := self.shared.heads.get(owner)) is not None:
            return known
        place = self.places.find(owner)
        found = {} if place is None else self._read_heads(place, owner)
        if not self.alone:
            self._watch(found)
        elif place is not None:
            with self.shared.lock:
                if self.shared.counts[owner] == count:
                    self.shared.keep(owner, found)
        return found

    def assign(self, owner: str, dims: int) -> Place:
        """A place for a new owner; call it as its only writer."""
        place = self.places.assign(owner, dims)
        if self.alone:
            self.shared.keep(owner, {})  # nothing can be there yet
        return place

    def owners_in(self, place: Place) -> list[str]:
        """The owners whose items lie in this place."""
        rows = self.chroma.find(place.collection, {"is_head": True}, ["metadatas"])
        return sorted({m["owner"] for _, m, _, _ in rows})

    def _read_heads(self, place: Place, owner: str) -> Heads:
        rows = self.chroma.find(place.collection, {"$and": [{"owner": owner}, {"is_head": True}]})
        heads = [head_of(m, d) for _, m, d, _ in rows]
        return {h.path: h for h in heads}

    def _watch(self, found: Mapping[str, Head]) -> None:
        """Note heads that say something else than what we wrote last at the same or a later version."""
        with self.shared.lock:
            for path, head in found.items():
                mine = self.shared.written.get(path)
                if mine is None or head.mark == mine.mark:
                    continue
                if head.version <= mine.version and head.writer != mine.writer:
                    self.clash(
                        f"{path}: version {mine.version} was replaced by version {head.version} of writer {head.writer}"
                    )
                del self.shared.written[path]

    def clash(self, what: str) -> None:
        """Note that another process wrote where we did."""
        with self.shared.lock:
            del self.shared.clashes[:-99]
            self.shared.clashes.append(what)

    def wrote(self, owner: str, heads: Heads) -> list[str]:
        """Remember what we have written; the paths at which somebody else came in between (never, if `alone`)."""
        if self.alone:
            self.shared.keep(owner, {**self.shared.heads.get(owner, {}), **heads})
            return []
        place = self.places.find(owner)
        now = {} if place is None else self._read_heads(place, owner)
        lost = [p for p, h in heads.items() if p not in now or _replaced(h, now[p])]
        with self.shared.lock:
            self.shared.written.update({p: h for p, h in heads.items() if p not in lost})
            while len(self.shared.written) > _MOST_OWNERS:
                self.shared.written.popitem(last=False)
        for p in lost:
            self.clash(f"{p}: version {heads[p].version} was replaced while it was written")
        return lost


def _replaced(mine: Head, now: Head) -> bool:
    return now.writer != mine.writer and now.version <= mine.version
