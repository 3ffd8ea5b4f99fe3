"""Making erased bytes go from a Chroma folder, and making sure of it.

After a delete the text stays in `chroma.sqlite3` and the vectors in `data_level0.bin`. So the owner's collection is
built anew, the old one dropped and its folder removed, the database vacuumed by Chroma's own command in a process of
its own, the unused room of index files cleared, and every file searched for what was erased.
"""

import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from langgraph.store.base import PutOp

from langmem_adapter.namespaces import Namespace
from langmem_adapter.stores.chroma_book import Book
from langmem_adapter.stores.chroma_client import Chroma
from langmem_adapter.stores.chroma_engine import Engine
from langmem_adapter.stores.chroma_indexes import clear_unused, names_of, remove_orphans
from langmem_adapter.stores.chroma_places import Place
from langmem_adapter.stores.chroma_rebuild import rebuilt, stray
from langmem_adapter.stores.chroma_writing import apply, by_owner, check_versions
from langmem_adapter.stores.erasure import LONGEST, Erasure, Scanner, pieces_of, read_file
from langmem_adapter.stores.plan import Plan
from langmem_adapter.stores.values import path
from langmem_adapter.stores.writing import Prepared

_EVERYTHING = ("metadatas", "documents", "embeddings")
_CHUNK = 4 * 1024 * 1024
_CLEARINGS = 2
"""Clearing an index may make Chroma write another one from memory."""

# In another process: opening the database in this one with a second SQLite library would drop Chroma's file locks.
_VACUUM = """
import sys, chromadb_rust_bindings
chromadb_rust_bindings.cli(["chroma", "vacuum", "--path", sys.argv[1], "--force"])
"""


class Wanted(NamedTuple):
    """What is to be erased."""

    owners: tuple[str, ...]
    deletes: list[Prepared]
    pieces: set[bytes]
    """By which the items can be recognised in a file."""


class Eraser:
    """Erases items of a database, and remembers what to look for until it is gone from the files."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._book = engine.book
        self._unverified: set[bytes] = set()
        self._erased: set[bytes] = set()
        """All that this process erased: it may still be in its memory, and get into an index from there."""
        self._since = time.time() - 1.0
        folder = self._book.chroma.path
        if folder is not None and self._book.places.meta().get("in_memory"):
            with self._book.shared.lock:  # a process that erased something died
                clear(self._book.chroma, list(names_of(folder)), folder)
                self._book.places.set_meta(in_memory=None)

    def erase(self, prefix: Namespace, keys: Sequence[str] | None, wait: float) -> Erasure:
        """Delete what is under the prefix, rebuild the collections it lay in, and verify."""
        places = self._book.places
        with self._book.shared.writing(places.under(prefix)):
            found = wanted(self._book, prefix, keys)
            homes = self._homes(found.owners)
            self._mark(homes)  # until verified, also if this process dies
            groups, now = by_owner(found.deletes), self._engine.now()
            for done in [w for o, g in groups.items() if (w := self._engine.written(o, g, now)) is not None]:
                apply(self._book, done)
                self._engine.advance(done.changed)
            self._rebuild(homes)
        return self._verify(len(found.deletes), wait, found.pieces)

    def erase_with(self, plan: Plan, prepared: Sequence[Prepared], wait: float) -> Erasure:
        """Commit, rebuild the collections in which the old values of what the puts touch lay, and verify."""
        owners, pieces = by_owner(prepared), set[bytes]()
        with self._book.shared.writing(owners):
            check_versions(self._book, plan.expect or {})
            for namespace, keys in _keys_by_namespace(plan.puts).items():
                pieces |= wanted(self._book, namespace, keys).pieces
            homes = self._homes(owners)
            self._mark(homes)
            self._engine.transact(plan, prepared, {}, None)
            self._rebuild(homes)
        return self._verify(len(plan.puts), wait, pieces)

    def finish(self, wait: float) -> Erasure:
        """Rebuild what is marked, drop what an interrupted rebuild left, and verify."""
        with self._book.shared.lock:
            marked = set(self._book.places.meta().get("erasing") or ())
            self._rebuild([p for p in self._book.places.all() if p.id in marked])
            for name in stray(self._book):
                self._book.chroma.drop(name)
        return self._verify(0, wait, set())

    def close(self) -> None:
        """Look into the indexes once more: what Chroma touched since may have been written with what memory held."""
        folder = self._book.chroma.path
        if folder is None or not self._erased:
            return
        with self._book.shared.lock:
            # All that were written, not only those with a find: what was deleted earlier is not known any more.
            clear(self._book.chroma, [p for p in names_of(folder) if _written(p) >= self._since], folder)
            search = _Search(self._book, folder, self._erased)
            if not search.remains("*.bin"):
                self._book.places.set_meta(in_memory=None)
                self._erased.clear()

    def _homes(self, owners: Iterable[str]) -> list[Place]:
        return sorted({p for owner in owners if (p := self._book.places.find(owner)) is not None})

    def _mark(self, places: Sequence[Place]) -> None:
        marked = set(self._book.places.meta().get("erasing") or ())
        in_memory = True if self._book.chroma.path is not None else None
        self._book.places.set_meta(erasing=sorted(marked | {p.id for p in places}) or None, in_memory=in_memory)

    def _rebuild(self, places: Sequence[Place]) -> None:
        if not self._book.alone:
            return  # another process may be writing to the old collection
        for place in places:
            with self._book.shared.writing(self._book.owners_in(place)):
                rebuilt(self._book, place, place.dims)

    def _verify(self, items: int, wait: float, erased: set[bytes]) -> Erasure:
        self._unverified |= erased
        self._erased |= erased
        folder, pieces = self._book.chroma.path, set(self._unverified)
        if folder is None:
            done = unreachable(self._book.chroma, items)
        else:
            done = clean(self._book, folder, pieces, items, wait)
        if done.state == "done":
            self._unverified -= pieces
            if not self._unverified:
                self._book.places.set_meta(erasing=None)
        return done


def _keys_by_namespace(puts: Iterable[PutOp]) -> dict[Namespace, list[str]]:
    found: dict[Namespace, list[str]] = {}
    for put in puts:
        found.setdefault(tuple(put.namespace), []).append(put.key)
    return found


def _written(index: Path) -> float:
    """When an index was last written; 0.0 for one that has no files yet."""
    return max((p.stat().st_mtime for p in index.glob("*.bin")), default=0.0)


def wanted(book: Book, prefix: Namespace, keys: Sequence[str] | None) -> Wanted:
    """The items under a prefix, only those of `keys` if given."""
    start, chosen = path(prefix), None if keys is None else set(keys)
    found = Wanted(tuple(book.places.under(prefix)), [], set())
    for owner in found.owners:
        place = book.places.find(owner)
        for where, head in book.heads(owner).items():
            if place is None or not (where == start or where.startswith(f"{start}.")):
                continue
            names: set[int] = set()
            for id, m, document, vector in book.chroma.find(place.collection, {"ns": where}, _EVERYTHING):
                if id not in head.dead and (chosen is None or m["key"] in chosen):
                    names.add(m["seq"])
                    found.deletes.append(Prepared(where, m["key"]))
                    found.pieces.update(pieces_of(document or "{}", _bytes(vector) if m["has_vector"] else None, b""))
            for _, m, _, vector in book.chroma.find(place.collection, {"of": where}, _EVERYTHING):
                if m["seq"] in names:
                    found.pieces.update(pieces_of("{}", _bytes(vector), b""))
    return found


def _bytes(vector: object) -> bytes:
    return np.asarray(vector, dtype=np.float32).tobytes()


def clean(book: Book, folder: Path, pieces: set[bytes], items: int, wait: float) -> Erasure:
    """Vacuum the database, remove what dropped collections left, and look for the pieces before and after."""
    search = _Search(book, folder, pieces)
    found = search.remains()
    with book.shared.lock:  # a writer would make the vacuum wait
        reason = _vacuum(folder, time.monotonic() + wait)
        vacuumed = not reason
        try:
            remove_orphans(folder)
            left = search.remains()
            for _ in range(_CLEARINGS):
                if left or not pieces:
                    clear(book.chroma, search.hits if pieces else list(names_of(folder)), folder)
                    left = search.remains()
        except OSError as e:
            left, reason = found, f"an index could not be cleared: {e}"
    if left and not reason:
        reason = f"{len(left)} pieces are still legible"
    return search.report(items, found, vacuumed, reason)


def clear(chroma: Chroma, found_in: Sequence[Path], folder: Path) -> None:
    """Clear the unused room of the indexes in which these files lie (or which these folders are)."""
    names = names_of(folder) if found_in else {}
    for index in {p if p in names else p.parent for p in found_in} & names.keys():
        chroma.touch(names[index])
        clear_unused(index)


def unreachable(chroma: Chroma, items: int) -> Erasure:
    """The report where files are out of our hands (a server), or there are none (in memory)."""
    reason = ""
    if chroma.kind == "server":
        reason = (
            f"deleted, but the files of {chroma.name} are out of reach: their bytes are gone when the server was "
            "stopped, the folder opened with ChromaMemoryStore(path) and finish_erasure() called"
        )
    state = "pending" if reason else "done"
    return Erasure(
        items=items,
        pieces=0,
        shared=0,
        searched=(),
        bytes_searched=0,
        found=0,
        vacuumed=False,
        state=state,  # type: ignore[arg-type]
        reason=reason,
    )


def _vacuum(folder: Path, give_up: float) -> str:
    """Why the database could not be rebuilt; "" if it was."""
    while True:
        done = subprocess.run(
            [sys.executable, "-c", _VACUUM, str(folder)], capture_output=True, text=True, errors="replace", check=False
        )
        if done.returncode == 0 and "complete" in done.stdout:
            return ""
        if time.monotonic() >= give_up:
            said = (done.stderr or done.stdout).strip()[-200:]
            return f"the database could not be vacuumed: {said}"
        time.sleep(0.2)


class _Search:
    """Repeated searches for the same pieces, and what they came to."""

    def __init__(self, book: Book, folder: Path, pieces: set[bytes]) -> None:
        self._book = book
        self._folder = folder
        self._pieces = pieces
        self._shared: set[bytes] = set()
        self._files: dict[str, int] = {}
        self.hits: list[Path] = []
        """The files in which the last search found something."""

    def remains(self, names: str = "*") -> set[bytes]:
        """The pieces that are in a file but in no live record."""
        self.hits = []
        if not self._pieces - self._shared:
            return set()
        found: set[bytes] = set()
        scanner = Scanner(self._pieces - self._shared)
        self._files = {}
        for file in sorted(p for p in self._folder.rglob(names) if p.is_file()):
            here, self._files[str(file)] = scanner.search_all(_read(file))
            found |= here
            self.hits += [file] if here else []
        if found:
            self._shared |= Scanner(found).search_all(self._live())[0]
        return found - self._shared

    def _live(self) -> Iterator[bytes]:
        gap = b"\0" * LONGEST
        for place in self._book.places.all():
            for page in self._book.chroma.pages(place.collection, None, _EVERYTHING):
                yield gap.join(_pieces_of_page(page)) + gap

    def report(self, items: int, found: set[bytes], vacuumed: bool, reason: str) -> Erasure:
        """The record of it all; pending if there is a reason to be."""
        return Erasure(
            items=items,
            pieces=len(self._pieces),
            shared=len(self._shared),
            searched=tuple(self._files),
            bytes_searched=sum(self._files.values()),
            found=len(found),
            vacuumed=vacuumed,
            state="pending" if reason else "done",
            reason=reason,
        )


def _pieces_of_page(page: Iterable[tuple[str, dict[str, object], str | None, object]]) -> Iterator[bytes]:
    for _, metadata, document, vector in page:
        yield (document or "").encode()
        yield _bytes(vector)
        yield from (str(v).encode() for v in metadata.values())


def _read(file: Path) -> Iterator[bytes]:
    if file.name == "chroma.sqlite3":
        yield from read_file(file)  # without disturbing SQLite's locks
        return
    with file.open("rb") as f:
        while chunk := f.read(_CHUNK):
            yield chunk
