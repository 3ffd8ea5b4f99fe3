"""One transaction on a Chroma database: reads of one moment, then the puts, owner by owner."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from langmem_adapter.errors import Conflict
from langmem_adapter.namespaces import Namespace
from langmem_adapter.stores import chroma_writing
from langmem_adapter.stores import embedder as embedders
from langmem_adapter.stores.base import Mode
from langmem_adapter.stores.chroma_book import Book
from langmem_adapter.stores.chroma_client import Gone
from langmem_adapter.stores.chroma_embedder import enrol, meet, stored
from langmem_adapter.stores.chroma_places import Place
from langmem_adapter.stores.chroma_reading import Settings, Snapshot, Torn
from langmem_adapter.stores.chroma_rebuild import rebuilt
from langmem_adapter.stores.chroma_shelf import Changed, Shelves
from langmem_adapter.stores.chroma_writing import By, Written
from langmem_adapter.stores.embedder import Embedder
from langmem_adapter.stores.plan import Plan
from langmem_adapter.stores.values import micros
from langmem_adapter.stores.vectors import Matrix
from langmem_adapter.stores.workers import Ticket
from langmem_adapter.stores.writing import Prepared

TRIES = 20
"""How often a read is made again because a write came in between, before writers are kept out (embedded)."""


class Engine:
    """Runs checked and embedded batches, and remembers what they need of the database."""

    def __init__(
        self,
        book: Book,
        embedder: Embedder | None,
        fields: tuple[str, ...],
        *,
        mode: Mode,
        cache_bytes: int,
        replace_embedder: bool,
        clock: Callable[[], float],
    ) -> None:
        self.book = book
        self.chroma = book.chroma
        self.embedder = embedder
        self.fields = fields
        self.shelves = Shelves(cache_bytes)
        self.embedder_id = meet(book.places, embedder, book.chroma.name, replace=replace_embedder)
        self._mode = mode
        self._clock = clock
        self._latest = 0.0

    def transact(
        self, plan: Plan, prepared: Sequence[Prepared], queries: Mapping[str, Matrix], ticket: Ticket | None
    ) -> tuple[list[Any], dict[Namespace, int]]:
        """Results and versions. The puts happen unless something raises; `ticket` is sealed before the first."""
        self.chroma.check()
        if plan.writes:
            try:
                return self._write(plan, prepared, queries, ticket)
            except Gone:
                self.book.places.forget()  # nothing was written to a collection that is not there
                return self._write(plan, prepared, queries, ticket)
        for _ in range(TRIES):
            try:
                return self._read(plan, self._snapshot(queries))
            except Torn:
                time.sleep(0.001)
            except Gone:
                self.book.places.forget()
        if not self.book.alone:
            raise Conflict(f"{self.chroma.name} changed each of the {TRIES} times it was read")
        with self.book.shared.lock:
            return self._read(plan, self._snapshot(queries, locked=True))

    def _snapshot(self, queries: Mapping[str, Matrix], *, locked: bool = False) -> Snapshot:
        if self.embedder_id is None and self.embedder is not None:
            self.embedder_id = meet(self.book.places, self.embedder, self.chroma.name, replace=False)
        dims = (self.embedder.dims if self.embedder is not None else None) or 0
        settings = Settings(self.shelves, self.embedder_id, dims, self.fields, self._mode)
        return Snapshot(self.book, settings, queries, self.now(), locked)

    def _read(self, plan: Plan, snapshot: Snapshot) -> tuple[list[Any], dict[Namespace, int]]:
        found = _results(plan, snapshot)
        snapshot.verify()
        for owner, rows in snapshot.refresh.items():
            with self.book.shared.writing([owner]):
                moved = chroma_writing.refresh(self.book, owner, rows, self.by(snapshot.now))
            self.advance(moved)
        return found

    def _write(
        self, plan: Plan, prepared: Sequence[Prepared], queries: Mapping[str, Matrix], ticket: Ticket | None
    ) -> tuple[list[Any], dict[Namespace, int]]:
        groups = chroma_writing.by_owner(prepared)
        with self.book.shared.writing(groups):
            if ticket is not None:
                ticket.check()
            chroma_writing.check_versions(self.book, plan.expect or {})
            snapshot = self._snapshot(queries, locked=True)
            found = _results(plan, snapshot)
            if any(p.value is not None for p in prepared):
                self.enrol()
            ready = [w for o, g in groups.items() if (w := self.written(o, g, snapshot.now)) is not None]
            if ticket is not None:
                ticket.seal()
            for done in ready:
                chroma_writing.apply(self.book, done)
                self.advance(done.changed)
        for owner, rows in snapshot.refresh.items():
            with self.book.shared.writing([owner]):
                self.advance(chroma_writing.refresh(self.book, owner, rows, self.by(snapshot.now)))
        return found

    def written(self, owner: str, group: Sequence[Prepared], now: int) -> Written | None:
        """What the group comes to; None if it is only deletes of what was never there."""
        vectors = next((p.vectors for p in group if p.vectors is not None), None)
        dims = None if vectors is None else vectors.shape[1]
        place = self.book.places.find(owner)
        if place is None:
            if all(p.value is None for p in group):
                return None
            place = self.book.assign(owner, dims or (self.embedder.dims if self.embedder else None) or 1)
        if dims is not None and dims != place.dims:
            place = rebuilt(self.book, place, dims)
            self.shelves.clear()
        heads = self.book.heads(owner)
        chroma_writing.finish_deletes(
            self.book, place, [h for p, h in heads.items() if any(p == g.path for g in group)]
        )
        old = chroma_writing.stored_rows(self.book, place, heads, group)
        return chroma_writing.written(owner, place, group, old, heads, self.by(now))

    def by(self, now: int) -> By:
        """Us, as a writer."""
        return By(self.book.shared.writer, self.embedder_id, now)

    def enrol(self) -> None:
        """Our embedder's number is given out with the first vectors; EmbedderMismatch if it was replaced."""
        if self.embedder is None or self.embedder.dims is None:
            return
        found = stored(self.book.places)
        if found is not None:
            embedders.check(found, self.embedder, self.chroma.name)
            self.embedder_id = found.id
        else:
            self.embedder_id = enrol(self.book.places, self.embedder, 1)

    def advance(self, changed: Iterable[Changed]) -> None:
        """Carry what is cached over a write."""
        for done in changed:
            self.shelves.advance(done)

    def now(self) -> int:
        """Microseconds since the epoch; never less than before, or expired items would come back."""
        self._latest = max(self._latest, self._clock())
        return micros(self._latest)

    def sweep(self) -> int:
        """Delete the expired items; how many there were."""
        now = self.now()
        return sum(self._sweep(place, now) for place in self.book.places.all())

    def _sweep(self, place: Place, now: int) -> int:
        count = 0
        for owner in chroma_writing.expired(self.book, place, now):
            with self.book.shared.writing([owner]):
                # Looked up again: what was refreshed meanwhile stays.
                deletes = chroma_writing.expired(self.book, place, now).get(owner, [])
                done = self.written(owner, deletes, now)
                if done is not None:
                    chroma_writing.apply(self.book, done)
                    self.advance(done.changed)
                    count += len(deletes)
        return count


def _results(plan: Plan, snapshot: Snapshot) -> tuple[list[Any], dict[Namespace, int]]:
    results: list[Any] = [None] * plan.size
    for (i, _), found in zip(plan.reads, snapshot.run_all([op for _, op in plan.reads]), strict=True):
        results[i] = found
    return results, snapshot.versions(plan.versions)
