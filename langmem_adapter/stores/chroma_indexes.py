"""The folders in which an embedded Chroma keeps its vector indexes, one for each collection.

A dropped collection leaves its folder behind. And a new index is written with room for more elements, which is
memory as it was found: texts of any owner have been seen there. Both are part of making erased bytes go.
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

# In another process: opening the database in this one with a second SQLite library would drop Chroma's file locks.
_SEGMENTS = """
import json, sqlite3, sys
conn = sqlite3.connect(sys.argv[1])
print(json.dumps([row[0] for row in conn.execute("SELECT id FROM segments")]))
"""

_HEADER = struct.Struct("<i4Q")
"""The beginning of hnswlib's header.bin: version, offset of level 0, room and number of elements, bytes of each."""

_LENGTH = 4
"""Bytes for each element in length.bin."""


def remove_orphans(folder: Path) -> str:
    """Remove the index folders of collections that are gone; what went wrong, or ""."""
    there = list(_indexes(folder))
    done = subprocess.run(
        [sys.executable, "-c", _SEGMENTS, str(folder / "chroma.sqlite3")], capture_output=True, text=True, check=False
    )
    if done.returncode:
        return f"the collections could not be listed: {done.stderr.strip()[-200:]}"
    alive = set(json.loads(done.stdout))
    try:
        for orphan in [p for p in there if p.name not in alive]:
            shutil.rmtree(orphan)
    except OSError as e:
        return f"the folder of a dropped collection could not be removed: {e}"
    return ""


def clear_unused(folder: Path) -> str:
    """Overwrite the unused room of all index files with zeros; what went wrong, or "". Keep writers out meanwhile.

    Chroma clears an element's room itself when it takes it, so nothing relies on what is there.
    """
    try:
        for index in _indexes(folder):
            _clear(index)
    except OSError as e:
        return f"unused room of an index could not be cleared: {e}"
    return ""


def _clear(index: Path) -> None:
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
