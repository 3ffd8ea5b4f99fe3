"""A real Chroma server for tests, and clients of every kind without telemetry."""

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import chromadb
from chromadb.config import Settings

SERVE = "import sys, chromadb_rust_bindings; chromadb_rust_bindings.cli(['chroma', *sys.argv[1:]])"


def quiet() -> Settings:
    """Settings without telemetry; each client needs its own."""
    return Settings(anonymized_telemetry=False)


@contextmanager
def running_server(folder: Path) -> Iterator[int]:
    """The port of a Chroma server on a folder."""
    port = _free_port()
    with (folder.parent / "server.log").open("wb") as log:
        arguments = ["run", "--path", str(folder), "--host", "127.0.0.1", "--port", str(port)]
        process = subprocess.Popen([sys.executable, "-c", SERVE, *arguments], stdout=log, stderr=log)
        try:
            _wait(port, process)
            yield port
        finally:
            process.kill()
            process.wait()


@contextmanager
def http_client(port: int) -> Iterator[Any]:
    """A client of the server, closed afterwards."""
    client = chromadb.HttpClient("127.0.0.1", port, settings=quiet())
    try:
        yield client
    finally:
        # Chroma leaves its sockets to the garbage collector, which warns.
        sessions = [client._server._session, client._admin_client._server._session]
        client.close()
        for session in sessions:
            session.close()


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def _wait(port: int, process: "subprocess.Popen[bytes]") -> None:
    for _ in range(300):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v2/heartbeat", timeout=1):
                return
        except (urllib.error.URLError, OSError):
            assert process.poll() is None, "the server ended; a port in use makes it exit with 0"
            time.sleep(0.1)
    raise AssertionError("the server did not answer within 30 s")
