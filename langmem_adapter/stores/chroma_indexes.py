"""The folders in which an embedded Chroma keeps its vector indexes, one for each collection.

A dropped collection leaves its folder behind. And a small index is written, whenever a process first touches it, with
room for 100 elements that is memory as it was found: texts of any owner have been seen there. Both are part of making
erased bytes go.
"""

import json
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from langmem_adapter.errors import StoreError

# In another process: opening the database in this one with a second SQLite library would drop Chroma's file locks.
_SEGMENTS = """
import json, sqlite3, sys
conn = sqlite3.connect(sys.argv[1])
sql = "SELECT s.id, c.name FROM segments s JOIN collections c ON c.id = s.collection WHERE s.scope = 'VECTOR'"
print(json.dumps(dict(conn.execute(sql).fetchall())))
"""

_HEADER = struct.Struct("<i4Q")
"""The beginning of hnswlib's header.bin: version, offset of level 0, room and number of elements, bytes of each."""

_LENGTH = 4
"""Bytes for each element in length.bin."""


def names_of(folder: Path) -> dict[Path, str]:
    """The index folder of each live collection, with its name."""
    done = subprocess.run(
        [sys.executable, "-c", _SEGMENTS, str(folder / "chroma.sqlite3")], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise StoreError(f"the collections of {folder} could not be listed: {done.stderr.strip()[-200:]}")
    return {folder / id: name for id, name in json.loads(done.stdout).items()}


def remove_orphans(folder: Path) -> None:
    """Remove the index folders of collections that are gone."""
    there = list(_indexes(folder))
    alive = names_of(folder)
    for orphan in [p for p in there if p not in alive]:
        shutil.rmtree(orphan)


def clear_unused(index: Path) -> None:
    """Overwrite the unused room of an index with zeros. Keep writers out, and have it read once before, so that
    nothing waits to be written there: Chroma clears an element's room itself when it takes it."""
    with suppress(FileNotFoundError):
        header = (index / "header.bin").read_bytes()
        if len(header) < _HEADER.size:
            return
        version, _, room, count, size = _HEADER.unpack_from(header)
        data, lengths = index / "data_level0.bin", index / "length.bin"
        if version != 1 or data.stat().st_size != room * size or count > room:
            return  # another format: the search will tell
        _zero(data, count * size)
        if lengths.stat().st_size == room * _LENGTH:
            _zero(lengths, count * _LENGTH)


def _zero(file: Path, start: int) -> None:
    with file.open("r+b") as f:
        f.seek(start)
        rest = f.read()
        if any(rest):
            f.seek(start)
            f.write(bytes(len(rest)))


def _indexes(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_dir():
            with suppress(ValueError):
                UUID(path.name)
                yield path
