"""A PostgreSQL for a benchmark: the one of a URL, or one started for it that is as durable as in production."""

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "stores"))

SETTINGS = {"fsync": "on", "autovacuum": "on", "shared_buffers": "'256MB'", "timezone": "'UTC'"}
"""What the tests' server has otherwise, or smaller."""


@contextmanager
def postgres(url: str | None) -> Iterator[str]:
    """How to connect, with the right to create schemas."""
    if url is not None:
        yield url
        return
    from postgres_server import server

    with server() as running:
        with psycopg.connect(running.url(), autocommit=True) as conn:
            for name, value in SETTINGS.items():
                conn.execute(f"ALTER SYSTEM SET {name} = {value}".encode())
        running._run("pg_ctl", "-D", running.data, "-m", "fast", "-w", "stop")
        running.start()
        yield running.url()


def described(url: str) -> dict[str, str]:
    """The server, its settings that matter, and the driver."""
    with psycopg.connect(url, autocommit=True) as conn:
        found = {name: conn.execute(f"SHOW {name}".encode()).fetchone() for name in ("server_version", *SETTINGS)}
        vector = conn.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
    told = ", ".join(f"{name} {row[0]}" for name, row in found.items() if row and name != "timezone")
    return {
        "postgres": f"{told}, pgvector {vector[0] if vector else 'absent'}",
        "psycopg": f"{version('psycopg')} on {platform.python_implementation()}",
    }


def server_cpu(url: str) -> float:
    """Seconds of CPU that the server's present connections have used; 0 if it is on another machine."""
    with psycopg.connect(url, autocommit=True) as conn:
        pids = conn.execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'langmem_adapter'").fetchall()
    stats = [Path(f"/proc/{pid}/stat") for (pid,) in pids]
    used = [stat.read_text().rsplit(")", 1)[1].split()[11:13] for stat in stats if stat.exists()]
    return sum(int(ticks) for both in used for ticks in both) / os.sysconf("SC_CLK_TCK")
