"""Timing several candidates in turns in one process, and the machine they ran on.

A few calls of one candidate are followed by a few of every other, so that a noisy neighbour slows them all. CPU time
is that of the process, all threads included.
"""

import os
import platform
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

PACKAGES = ("langgraph", "langgraph-checkpoint", "langgraph-checkpoint-sqlite", "chromadb", "langmem", "numpy")


class Timing(NamedTuple):
    """Medians, in milliseconds."""

    wall: float
    cpu: float


def interleaved(
    candidates: Mapping[str, Callable[[int], object]], rounds: int, *, block: int = 5, warm: int = 2
) -> dict[str, Timing]:
    """The median time of one call of each candidate, given its number.

    They take turns of `block` calls: one call at a time would measure how fast code comes back into the processor's
    caches after the others' code. The first `warm` calls of all are not counted.
    """
    wall: dict[str, list[float]] = {name: [] for name in candidates}
    cpu: dict[str, list[float]] = {name: [] for name in candidates}
    for n in range(warm):
        for call in candidates.values():
            call(n)
    for start in range(warm, warm + rounds, block):
        for name, call in candidates.items():
            for n in range(start, min(start + block, warm + rounds)):
                w, c = time.perf_counter(), time.process_time()
                call(n)
                c, w = time.process_time() - c, time.perf_counter() - w
                wall[name].append(w)
                cpu[name].append(c)
    return {
        name: Timing(1e3 * statistics.median(wall[name]), 1e3 * statistics.median(cpu[name])) for name in candidates
    }


def prepared(
    candidates: Mapping[str, tuple[Callable[[], Any], Callable[[Any, int], object]]], rounds: int
) -> dict[str, Timing]:
    """As `interleaved`, but each call gets what its first function makes anew, which is not timed, and is closed."""
    wall: dict[str, list[float]] = {name: [] for name in candidates}
    cpu: dict[str, list[float]] = {name: [] for name in candidates}
    for n in range(rounds):
        for name, (make, call) in candidates.items():
            made = make()
            w, c = time.perf_counter(), time.process_time()
            call(made, n)
            c, w = time.process_time() - c, time.perf_counter() - w
            wall[name].append(w)
            cpu[name].append(c)
            made.close()
    return {
        name: Timing(1e3 * statistics.median(wall[name]), 1e3 * statistics.median(cpu[name])) for name in candidates
    }


def forget_file(path: str) -> None:
    """Drop the file's pages from the system's cache, where it can be asked to. Nobody may have the file open."""
    for name in (path, f"{path}-wal"):
        if os.path.exists(name) and hasattr(os, "posix_fadvise"):
            descriptor = os.open(name, os.O_RDWR)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def machine() -> dict[str, str]:
    """Processor, system and the versions that matter."""
    found = {
        "cpu": f"{_processor()}, {os.cpu_count()} cores",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "absent"
    blas = {k: v for k, v in os.environ.items() if k.startswith("OPENBLAS_")}
    return found | ({"environment": str(blas)} if blas else {})


def peak_memory() -> int:
    """The most bytes this process has had resident."""
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as f:
            return next(line.split(":", 1)[1].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
