"""A schema for each PostgreSQL test, on one server for the session."""

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from stores.postgres_server import URL, create_database, server

from langmem_adapter.stores.postgres import PostgresMemoryStore

_numbers = itertools.count(1)

OpenStore = Callable[..., PostgresMemoryStore]


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A server whose databases may be created and dropped; as a superuser."""
    if URL:
        yield URL
        return
    with server() as running:
        yield running.url()


@pytest.fixture(scope="session")
def database(postgres_url: str) -> Iterator[str]:
    """The connection string of a database of this session."""
    name = f"memory_test_{os.getpid()}"
    create_database(postgres_url, name)
    yield make_conninfo(postgres_url, dbname=name)
    with psycopg.connect(postgres_url, autocommit=True) as conn:
        conn.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


@pytest.fixture
def schema() -> str:
    """The name of a schema that no other test uses."""
    return f"memory_{next(_numbers)}"


@pytest.fixture
def open_store(database: str, schema: str) -> Iterator[OpenStore]:
    """Opens stores on the test's schema; they are closed after it."""
    with ExitStack() as stack:

        def make(**config: Any) -> PostgresMemoryStore:
            return stack.enter_context(PostgresMemoryStore(database, **{"schema": schema, **config}))

        yield make
