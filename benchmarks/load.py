"""Many users at once through a compiled graph, on SQLite and on PostgreSQL: how fast, and is everything kept?

    python benchmarks/load.py                          64 users × 50 turns on each; about five minutes on two cores
    python benchmarks/load.py --users 16 --turns 10    shorter
    python benchmarks/load.py --url "host=db dbname=memories" --json load.json

Every user has a thread and waits for an answer before saying the next thing; all threads run in one event loop, in one
process. A turn is recall, an instant scripted model that is given the block, and remember. Of five things said three
are new facts, one is a move to another city (which replaces the last), one a question. Afterwards everything is
counted in a store opened anew: each turn learnt, each fact there and active, one active city for each user.
"""

import argparse
import asyncio
import json
import shutil
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from database import described, postgres, server_cpu
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from measure import machine

from langmem_adapter.embeddings import HashEmbeddings
from langmem_adapter.langgraph import MemoryState, aprompt_with_memories, recall_node, remember_node
from langmem_adapter.memory import Memory
from langmem_adapter.namespaces import namespace
from langmem_adapter.stores.base import MemoryStore

INDEX: Any = {"dims": 256, "embed": HashEmbeddings(), "fields": ["content"]}
CITIES = "Ghent Oslo Rome Bonn Lyon Turin Porto Krakow Graz Bergen".split()
DISHES = "mango lassi|red lentils|pea soup|rye bread|fig jam|kelp salad|corn chowder|plum cake".split("|")


@dataclass
class Result:
    """One store's run."""

    store: str
    users: int
    turns: int
    seconds: float
    cpu_seconds: float
    server_cpu_seconds: float
    turns_per_second: float
    p50_ms: float
    p99_ms: float
    slowest_ms: float
    errors: int
    events: dict[str, int]
    with_block: int
    lost: list[str]


def said(n: int) -> str:
    """What a user says in turn `n`."""
    match n % 5:
        case 1:
            return f"I moved to {CITIES[n // 5 % len(CITIES)]}."
        case 4:
            return "What do I like to eat, and where do I live?"
    return f"I like {DISHES[n % len(DISHES)]} number {n}."


def expected(turns: int) -> tuple[set[str], str | None]:
    """The contents that must be active after so many turns, but for the city; and the city."""
    likes = {f"The user {said(n)[2:].replace('like', 'likes', 1)}" for n in range(turns) if n % 5 not in (1, 4)}
    moves = [n for n in range(turns) if n % 5 == 1]
    return likes, CITIES[moves[-1] // 5 % len(CITIES)] if moves else None


def compiled(memory: Memory, blocks: list[bool]) -> Any:
    """The graph."""

    async def answer(state: Any) -> dict[str, Any]:
        prompt = await aprompt_with_memories(state, system="You are a concierge.")
        blocks.append("<MEMORIES>" in prompt[0].text)
        return {"messages": [AIMessage("Noted.")]}

    graph = StateGraph(MemoryState)
    graph.add_node("recall", recall_node(memory))
    graph.add_node("model", answer)
    graph.add_node("remember", remember_node(memory))
    for a, b in ((START, "recall"), ("recall", "model"), ("model", "remember"), ("remember", END)):
        graph.add_edge(a, b)
    return graph.compile(checkpointer=InMemorySaver())


async def talk(app: Any, user: str, turns: int, took: list[float], failed: list[str]) -> None:
    """One user's conversation."""
    for n in range(turns):
        began = time.perf_counter()
        try:
            config = {"configurable": {"user_id": user, "thread_id": f"thread-{user}"}}
            done = await app.ainvoke({"messages": [HumanMessage(said(n))]}, config)
            assert done["messages"][-1].text == "Noted."
        except Exception as e:  # noqa: BLE001 - counted, and the run goes on
            failed.append(f"{type(e).__name__}: {e}")
        took.append(time.perf_counter() - began)


async def crowd(app: Any, users: Sequence[str], turns: int, took: list[float], failed: list[str]) -> None:
    """All of them at once."""
    await asyncio.gather(*(talk(app, user, turns, took, failed) for user in users))


def measure(
    name: str, opened: Callable[[], MemoryStore], users: int, turns: int, server: Callable[[], float] = lambda: 0.0
) -> Result:
    """Run the load on a new store, close it, open it again and count."""
    names, events = [f"u{i}" for i in range(users)], Counter[str]()
    took: list[float] = []
    failed: list[str] = []
    blocks: list[bool] = []
    store = opened()
    memory = Memory(store, on_event=lambda event, data: events.update([event]))
    app = compiled(memory, blocks)
    # Opened, and every thread and connection made, before the clock starts.
    asyncio.run(crowd(app, [f"warm{i}" for i in range(8)], 2, [], failed))
    blocks.clear()
    events.clear()
    wall, cpu, theirs = time.perf_counter(), time.process_time(), server()
    asyncio.run(crowd(app, names, turns, took, failed))
    wall, cpu, theirs = time.perf_counter() - wall, time.process_time() - cpu, server() - theirs
    store.close()  # type: ignore[attr-defined]
    again = opened()
    lost = list(missing(Memory(again), names, turns))
    again.close()  # type: ignore[attr-defined]
    trouble = sum(n for event, n in events.items() if event.endswith("_failed"))
    centiles = statistics.quantiles(took, n=100)
    return Result(
        store=name,
        users=users,
        turns=len(took),
        seconds=round(wall, 2),
        cpu_seconds=round(cpu, 2),
        server_cpu_seconds=round(theirs, 2),
        turns_per_second=round(len(took) / wall, 1),
        p50_ms=round(1e3 * centiles[49], 1),
        p99_ms=round(1e3 * centiles[98], 1),
        slowest_ms=round(1e3 * max(took), 1),
        errors=len(failed) + trouble,
        events=dict(events),
        with_block=sum(blocks),
        lost=lost + failed[:5],
    )


def missing(memory: Memory, users: Sequence[str], turns: int) -> Iterator[str]:
    """What is not in the store as it should be."""
    likes, city = expected(turns)
    for user in users:
        queue = memory.store.search(namespace("turns", app_name="default", user_id=user), limit=10 * turns)
        learnt = sum(item.value["status"] == "done" for item in queue)
        if learnt != turns:
            yield f"{user}: {learnt} of {turns} turns learnt"
        records = memory.get_all(user_id=user)
        homes = [r.content for r in records if r.topic == "home/location"]
        if homes != ([] if city is None else [f"The user lives in {city}."]):
            yield f"{user}: lives in {homes}"
        here = {r.content for r in records if r.topic != "home/location"}
        if here != likes:
            yield f"{user}: {len(likes - here)} facts lost, {len(here - likes)} too many"


def show(results: Sequence[Result], facts: dict[str, str]) -> None:
    """Print it as a table."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=150)
    first = results[0]
    table = Table(
        *("", "turns/s", "p50 ms", "p99 ms", "slowest ms", "CPU ms a turn", "the server's", "errors", "lost"),
        title=f"{first.users} users × {first.turns // first.users} turns",
    )
    for r in results:
        times = [f"{t:.1f}" for t in (r.turns_per_second, r.p50_ms, r.p99_ms, r.slowest_ms)]
        cpu = [f"{1e3 * t / r.turns:.1f}" for t in (r.cpu_seconds, r.server_cpu_seconds)]
        table.add_row(r.store, *times, *cpu, str(r.errors), str(len(r.lost)))
    console.print(table)
    for r in results:
        for line in r.lost[:10]:
            console.print(f"  {r.store}: {line}", markup=False)
    for name, value in facts.items():
        console.print(f"{name}: {value}", markup=False, highlight=False)


def main() -> None:
    """Run, print, write JSON if asked to; exit with 1 if anything failed or was lost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=64)
    parser.add_argument("--turns", type=int, default=50)
    parser.add_argument("--store", choices=["sqlite", "postgres"], action="append", help="only this one")
    parser.add_argument("--url", help="a PostgreSQL to use; else one is started. A schema load_… is made and dropped")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    given = parser.parse_args()
    stores = given.store or ["sqlite", "postgres"]
    folder, results, facts = Path(tempfile.mkdtemp(prefix="bench-load-")), [], machine()
    try:
        if "sqlite" in stores:
            from langmem_adapter.stores.sqlite import SqliteMemoryStore

            path = folder / "memory.db"
            results.append(measure("SQLite", lambda: SqliteMemoryStore(path, index=INDEX), given.users, given.turns))
        if "postgres" in stores:
            results.append(on_postgres(given.url, given.users, given.turns, facts))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    show(results, facts)
    if given.json:
        given.json.write_text(json.dumps({"facts": facts, "results": [asdict(r) for r in results]}, indent=1))
    if any(r.errors or r.lost for r in results):
        raise SystemExit("errors, or something was lost")


def rows(url: str, schema: str) -> str:
    """How many rows of facts and turns there are, and their average size without what a page adds."""
    import psycopg

    sql = (
        f"SELECT CASE WHEN i.topic IS NULL THEN 'turns' ELSE 'facts' END, count(*), avg(pg_column_size(i.*))::int "
        f"FROM {schema}.items i GROUP BY 1 ORDER BY 1"
    )
    with psycopg.connect(url) as conn:
        found = conn.execute(sql.encode()).fetchall()
        [vectors] = conn.execute(
            f"SELECT avg(pg_column_size(v.*))::int FROM {schema}.vectors v".encode()
        ).fetchone() or [0]
    return ", ".join(f"{count:,} {kind} of {size:,} bytes" for kind, count, size in found) + f", vectors of {vectors:,}"


def on_postgres(url: str | None, users: int, turns: int, facts: dict[str, str]) -> Result:
    """The run on a schema of its own, which is dropped."""
    import psycopg

    from langmem_adapter.stores.postgres import PostgresMemoryStore

    schema = f"load_{time.time_ns()}"
    with postgres(url) as server:
        try:
            result = measure(
                "PostgreSQL",
                lambda: PostgresMemoryStore(server, schema=schema, index=INDEX),
                users,
                turns,
                lambda: server_cpu(server),
            )
            facts |= described(server) | {"rows": rows(server, schema)}
        finally:
            with psycopg.connect(server, autocommit=True) as conn:
                conn.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE".encode())
    return result


if __name__ == "__main__":
    main()
