"""A schema for each PostgreSQL test, on one server for the session."""

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from stores.postgres_server import URL, Server, create_database

from langmem_adapter.stores.postgres import PostgresMemoryStore

_numbers = itertools.count(1)

OpenStore = Callable[..., PostgresMemoryStore]


def execute(url: str, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements on a connection of their own; the rows of the last."""
    rows: list[tuple[Any, ...]] = []
    with psycopg.connect(url, autocommit=True) as conn:
        for statement in statements:
            cursor = conn.execute(statement.encode())
            rows = cursor.fetchall() if cursor.description else []
    return rows


_running: list[Server] = []
_users = itertools.count(1)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A server whose databases may be created and dropped; as a superuser."""
    if URL:
        yield URL
        return
    # Each module that imports this has a fixture of its own; they all end with the session, and share one server.
    first = next(_users) == 1
    if first:
        _running.append(Server())
    yield _running[0].url()
    if first:
        _running[0].stop()


def _database(postgres_url: str, kind: str) -> Iterator[str]:
    name = f"memory_test_{kind}_{os.getpid()}_{next(_numbers)}"
    create_database(postgres_url, name)
    yield make_conninfo(postgres_url, dbname=name)
    if URL:  # our own server is thrown away
        execute(postgres_url, f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture(scope="session")
def database(postgres_url: str) -> Iterator[str]:
    """A database of this session; as a superuser."""
    yield from _database(postgres_url, "main")


@pytest.fixture(scope="session")
def bare_database(postgres_url: str) -> Iterator[str]:
    """Another one, without pgvector."""
    yield from _database(postgres_url, "bare")


@pytest.fixture(scope="session")
def role(postgres_url: str) -> Iterator[str]:
    """The name of a role that is no superuser."""
    name = f"memory_role_{os.getpid()}_{next(_numbers)}"
    execute(postgres_url, f"CREATE ROLE {name} LOGIN")
    yield name
    if URL:
        execute(postgres_url, f"DROP ROLE {name}")


@pytest.fixture
def schema() -> str:
    """The name of a schema that no other test uses."""
    return f"memory_{os.getpid()}_{next(_numbers)}"


@pytest.fixture
def open_store(database: str, schema: str) -> Iterator[OpenStore]:
    """Opens stores on the test's schema; they are closed after it."""
    with ExitStack() as stack:

        def make(**config: Any) -> PostgresMemoryStore:
            return stack.enter_context(PostgresMemoryStore(database, **{"schema": schema, **config}))

        yield make


@pytest.fixture
def postgres(open_store: OpenStore) -> PostgresMemoryStore:
    """A store without an index."""
    return open_store()


@pytest.fixture
def restricted(database: str, schema: str, role: str) -> Iterator[str]:
    """How that role connects; the schema was made for it."""
    yield from _for_role(database, schema, role, "CREATE EXTENSION IF NOT EXISTS vector")


@pytest.fixture
def restricted_bare(bare_database: str, schema: str, role: str) -> Iterator[str]:
    """The same where there is no pgvector and the role may not create it."""
    yield from _for_role(bare_database, schema, role)


def _for_role(url: str, schema: str, role: str, *first: str) -> Iterator[str]:
    execute(url, *first, f"CREATE SCHEMA {schema} AUTHORIZATION {role}")
    yield make_conninfo(url, user=role)
    if URL:
        execute(url, f"DROP SCHEMA {schema} CASCADE")
