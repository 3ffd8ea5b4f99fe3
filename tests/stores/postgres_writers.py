"""Work that threads and processes do on one PostgreSQL store at the same time."""

import multiprocessing
from collections.abc import Callable
from typing import Any

from langgraph.store.base import GetOp, PutOp

from langmem_adapter.errors import Conflict
from langmem_adapter.memory import Memory
from langmem_adapter.stores.postgres import PostgresMemoryStore

COUNTER = ("counter", "one")
LIVES = 4


def count_up(store: PostgresMemoryStore, times: int) -> None:
    """Read a number, add one, write it: as often."""
    for _ in range(times):
        while True:
            (item,), seen = store.read([GetOp(COUNTER, "c")], versions=[COUNTER])
            n = 1 + (item.value["n"] if item else 0)
            try:
                store.commit([PutOp(COUNTER, "c", {"n": n})], expect=seen)
                break
            except Conflict:
                continue


def live(number: int, url: str, schema: str) -> list[str]:
    """Move house and change diet again and again; the ids of the memories that were acknowledged."""
    done = []
    with PostgresMemoryStore(url, schema=schema, pool_size=3) as store:
        memory = Memory(store)
        for i in range(LIVES):
            topic = ("home/location", "diet")[i % 2]
            value = f"place{number}x{i}"  # one word: the rules see no detail added to another value
            text = f"The user's {topic} is {value}."
            operation = memory.add_fact(text, user_id="u", topic=topic, value=value, source_id=value)
            assert operation.action in ("CREATE", "UPDATE"), operation
            done.append(operation.memory_id)
    return done


def open_and_put(number: int, url: str, schema: str) -> str:
    """Open the store, put one item; the store's id."""
    with PostgresMemoryStore(url, schema=schema) as store:
        store.put(("n",), f"k{number}", {})
        return store.store_id


def processes(count: int, work: Callable[..., Any], *args: Any) -> list[Any]:
    """What each of so many processes returned; the first argument is its number."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "langmem_adapter.memory", "langmem_adapter.stores.postgres"])
    with context.Pool(count) as pool:
        return pool.starmap(work, [(n, *args) for n in range(count)], chunksize=1)
