"""A collection for each owner, or shared hash buckets: what either costs in Chroma, by owners × records.

    python benchmarks/chroma_layouts.py                            about a minute for each line of the table
    python benchmarks/chroma_layouts.py --cells 300x20 60x500 --json layouts.json

`ChromaMemoryStore` has 256 buckets for the owners after the first `own_collections`. With 16, as many owners share one
as among thousands of owners in 256, so that the run is short. Each cell is written by one process and read by
another.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from measure import machine

BUCKETS = 16
SEARCHED = 40
"""Owners searched, at most; files and memory are counted after all have been read."""


def opened(folder: str, shared: bool) -> tuple[Any, Any]:
    """A store with one layout, and the vectors of its texts."""
    from stores import Vectors

    from langmem_adapter.stores import chroma_places
    from langmem_adapter.stores.chroma import ChromaMemoryStore

    chroma_places.BUCKETS = BUCKETS
    vectors = Vectors()
    index: Any = {"dims": 384, "embed": vectors, "fields": ["content"]}
    own = 0 if shared else chroma_places.OWN_COLLECTIONS
    return ChromaMemoryStore(folder, index=index, own_collections=own), vectors


def write(folder: str, owners: int, records: int, shared: bool) -> dict[str, float]:
    """Every owner's records in one commit."""
    from stores import put

    took = []
    store, vectors = opened(folder, shared)
    for n in range(owners):
        puts = [put(vectors, f"u{n}", f"m_{i:020}", i + 1) for i in range(records)]
        began = time.perf_counter()
        store.commit(puts, expect={})
        took.append(time.perf_counter() - began)
    store.close()
    return {"write ms": 1e3 * statistics.median(took), "KB an owner": _bytes(Path(folder)) / owners / 1024}


def read(folder: str, owners: int, shared: bool) -> dict[str, float]:
    """A ranked search for every owner, and another for some."""
    from stores import NOW, space

    from langmem_adapter.scoring import Where
    from langmem_adapter.stores.base import RankOp

    store, vectors = opened(folder, shared)
    query, where = vectors.text("query", 5), Where(now=NOW.timestamp())
    vectors.embed_query(query)
    first: list[float] = []
    again: list[float] = []
    memory, files = _resident(), _open_files()
    for took, names in ((first, range(owners)), (again, range(owners)[-SEARCHED:])):
        for n in names:
            began = time.perf_counter()
            store.read([RankOp((space(f"u{n}"),), query, where, limit=8)])
            took.append(time.perf_counter() - began)
    figures = {
        "first search ms": 1e3 * statistics.median(first),
        "next search ms": 1e3 * statistics.median(again),
        "MB an owner, read": (_resident() - memory) / owners / 2**20,
        "descriptors": _open_files() - files,
    }
    store.close()
    return figures


def cell(owners: int, records: int, shared: bool) -> dict[str, float]:
    """Figures of one layout: written by one process, read by another."""
    parent = Path(tempfile.mkdtemp(prefix="bench-chroma-"))
    folder = str(parent / "chroma")  # the writer's lock lies beside it
    try:
        figures: dict[str, float] = {}
        for job, given in ((write, (folder, owners, records, shared)), (read, (folder, owners, shared))):
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
                figures |= alone.submit(job, *given).result()
        return figures
    finally:
        shutil.rmtree(parent, ignore_errors=True)


def _bytes(folder: Path) -> int:
    return sum(f.stat().st_blocks * 512 for f in folder.rglob("*") if f.is_file())


def _resident() -> int:
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd" if sys.platform == "linux" else "/dev/fd"))


def main() -> None:
    """Run, print, and write JSON if asked to."""
    from rich.console import Console
    from rich.table import Table

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", nargs="+", default=["300x20", "100x100", "60x500"], metavar="OWNERSxRECORDS")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    given = parser.parse_args()
    found: dict[str, dict[str, float]] = {}
    for name in given.cells:
        owners, records = map(int, name.split("x"))
        for shared in (False, True):
            key = f"{name}, {f'{BUCKETS} buckets' if shared else 'own'}"
            found[key] = cell(owners, records, shared)
            print(key, {k: round(v, 2) for k, v in found[key].items()}, flush=True)
    table = Table("owners × records, layout", *next(iter(found.values())))
    for key, figures in found.items():
        table.add_row(key, *(f"{v:,.3g}" if v < 100 else f"{v:,.0f}" for v in figures.values()))
    console = Console(width=150)
    console.print(table)
    for name, value in machine().items():
        console.print(f"{name}: {value}", markup=False, highlight=False)
    if given.json:
        given.json.write_text(json.dumps({"facts": machine(), "cells": found}, indent=1))


if __name__ == "__main__":
    main()
