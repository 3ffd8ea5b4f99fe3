"""Checkpointers side by side: ours, InMemorySaver, SqliteSaver, AsyncSqliteSaver.

    python benchmarks/checkpoint.py                 the full run: 50 messages, then 200 turns of 2; 8 processes
    python benchmarks/checkpoint.py --turns 20 --processes 2 --json -      a quick look, as JSON

Each turn is one `invoke` of a graph with one model node, so three checkpoints and two sets of writes. The savers take
turns. Times of `put` are CPU time of its thread, summed per turn; figures of a turn are the median of the twenty turns
up to it, reads the best of several, processes the median of three crowds. The ratios compare this very run; those of
reads are of CPU time, which other work on the machine disturbs least.
"""

import argparse
import asyncio
import json
import multiprocessing
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph

from langmem_adapter.checkpoint.sqlite import SqliteCheckpointer

OURS, MEMORY, SQLITE, ASYNC = "SqliteCheckpointer", "InMemorySaver", "SqliteSaver", "AsyncSqliteSaver"
CONFIG: Any = {"configurable": {"thread_id": "t"}}
QUESTION = "What would you suggest for the second day, if it should rain again and we want to stay near the station? "
ANSWER = "You could take the tram to the museum of the city; it opens at ten, and there is a café on its first floor. "
CROWDS = 3
REACH = {
    "bytes, of SqliteSaver's": ("<=", 1 / 40),
    "put CPU, of SqliteSaver's": ("<=", 0.6),
    "put CPU, of InMemorySaver's": ("<=", 1.5),
    "get_tuple, of SqliteSaver's": ("<=", 1.15),
    "list(limit=10), times faster than SqliteSaver": (">=", 2.0),
    "throughput of the processes, of SqliteSaver's": (">=", 1.0),
}


def graph(saver: Any) -> Any:
    """One model node that says something new each time."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(MessagesState)
    builder.add_node("model", lambda state: {"messages": [AIMessage(f"{ANSWER * 2}({len(state['messages'])})")]})
    builder.add_edge(START, "model")
    builder.add_edge("model", END)
    return builder.compile(checkpointer=saver)


def said(turn: int) -> dict[str, Any]:
    return {"messages": [HumanMessage(f"{QUESTION}({turn})")]}


def history(count: int) -> dict[str, Any]:
    return {"messages": [(HumanMessage, AIMessage)[i % 2](f"{QUESTION}{ANSWER}[{i}]") for i in range(count)]}


@contextmanager
def opened(kind: str, path: Path) -> Iterator[Any]:
    """A synchronous saver on a file."""
    if kind == OURS:
        with SqliteCheckpointer(path) as saver:
            yield saver
    elif kind == SQLITE:
        with SqliteSaver.from_conn_string(str(path)) as saver:
            yield saver
    else:
        yield InMemorySaver()


class Measured:
    """One saver under measurement: its graph, and what its turns and reads took."""

    def __init__(self, kind: str, path: Path, saver: Any) -> None:
        self.kind, self.path, self.saver = kind, path, saver
        self.graph = graph(saver)
        self.spent = 0.0
        self.put_cpu: list[float] = []
        self.turn_cpu: list[float] = []
        self.turn_wall: list[float] = []
        self.reads: dict[str, list[float]] = {}
        if kind != ASYNC:
            self._time_put()

    def _time_put(self) -> None:
        put = self.saver.put

        def timed(*args: Any) -> Any:
            start = time.thread_time()
            try:
                return put(*args)
            finally:
                self.spent += time.thread_time() - start

        self.saver.put = timed

    async def turn(self, given: Any) -> None:
        self.spent, cpu, wall = 0.0, time.process_time(), time.perf_counter()
        if self.kind == ASYNC:
            await self.graph.ainvoke(given, CONFIG, durability="sync")
        else:
            self.graph.invoke(given, CONFIG, durability="sync")
        self.put_cpu.append(self.spent)
        self.turn_cpu.append(time.process_time() - cpu)
        self.turn_wall.append(time.perf_counter() - wall)

    def forget(self) -> None:
        """The turn before counts for nothing."""
        for times in (self.put_cpu, self.turn_cpu, self.turn_wall):
            times.clear()

    async def read(self, name: str, limit: int | None) -> None:
        cpu, wall = time.process_time(), time.perf_counter()
        if self.kind == ASYNC and name == "get_tuple":
            await self.saver.aget_tuple(CONFIG)
        elif self.kind == ASYNC:
            [item async for item in self.saver.alist(CONFIG, limit=limit)]
        elif name == "get_tuple":
            self.saver.get_tuple(CONFIG)
        else:
            list(self.saver.list(CONFIG, limit=limit))
        self.reads.setdefault(f"{name}, CPU ms", []).append(time.process_time() - cpu)
        self.reads.setdefault(f"{name}, wall ms", []).append(time.perf_counter() - wall)

    def figures(self) -> dict[str, float]:
        found = {} if self.kind == ASYNC else _turns("put, CPU ms", self.put_cpu)
        found |= _turns("turn, CPU ms", self.turn_cpu) | _turns("turn, wall ms", self.turn_wall)
        found |= {name: min(times) * 1000 for name, times in self.reads.items()}
        return found


READS = (("get_tuple", 1, 15), ("list(limit=10)", 10, 9), ("full list", None, 2))
"""What is read, its limit, how often."""


async def measure(folder: Path, turns: int) -> dict[str, dict[str, Any]]:
    """All savers through the same conversation, taking turns, so that none has the machine at a better time."""
    async with AsyncExitStack() as stack:
        measured = []
        for kind in (OURS, MEMORY, SQLITE):
            path = folder / f"{kind}.db"
            measured.append(Measured(kind, path, stack.enter_context(opened(kind, path))))
        path = folder / f"{ASYNC}.db"
        measured.append(
            Measured(ASYNC, path, await stack.enter_async_context(AsyncSqliteSaver.from_conn_string(str(path))))
        )
        for each in measured:
            await each.graph.ainvoke(history(50), CONFIG) if each.kind == ASYNC else each.graph.invoke(
                history(50), CONFIG
            )
        for turn in range(turns):
            for each in measured:
                await each.turn(said(turn))
        for name, limit, rounds in READS:
            for _ in range(rounds):
                for each in measured:
                    await each.read(name, limit)
    # Closed: nothing is left in a write-ahead log.
    return {each.kind: each.figures() | {"bytes on disk": size(each.path)} for each in measured}


def _turns(name: str, times: list[float]) -> dict[str, float]:
    at = sorted({min(t, len(times)) for t in (20, 100, 200)})
    return {f"{name} @{t}": statistics.median(times[max(0, t - 20) : t]) * 1000 for t in at}


def size(path: Path) -> int:
    """Bytes of the file and its companions."""
    return sum(p.stat().st_size for p in path.parent.glob(f"{path.name}*"))


# -------------------------------------------------------------------- many processes


def crowd(kind: str, path: Path, processes: int, turns: int) -> dict[str, Any]:
    """So many processes, each with its own thread of 50 messages in one file."""
    with opened(kind, path) as saver:
        graph(saver).invoke(said(0), {"configurable": {"thread_id": "first"}})
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes) as pool:
        pool.map(_warm, range(processes), 1)
        start = time.perf_counter()
        done = pool.starmap(_member, [(kind, str(path), n, turns) for n in range(processes)], 1)
        wall = time.perf_counter() - start
    errors = sorted({error for _, error in done if error})
    return {
        "turns/s": sum(n for n, _ in done) / wall,
        "turns lost": processes * turns - sum(n for n, _ in done),
        "errors": errors,
    }


def _warm(_: int) -> None:
    time.sleep(0.2)  # long enough that each process takes one


def _member(kind: str, path: str, number: int, turns: int) -> tuple[int, str]:
    done = 0
    try:
        with opened(kind, Path(path)) as saver:
            compiled, config = graph(saver), {"configurable": {"thread_id": f"t{number}"}}
            compiled.invoke(history(50), config, durability="sync")
            for turn in range(turns):
                compiled.invoke(said(turn), config, durability="sync")
                done += 1
    except sqlite3.OperationalError as e:
        return done, str(e)
    return done, ""


# -------------------------------------------------------------------- report


def run(folder: Path, turns: int, processes: int, crowd_turns: int) -> dict[str, Any]:
    """All measurements and the ratios."""
    results = asyncio.run(measure(folder, turns))
    rounds: dict[str, list[dict[str, Any]]] = {OURS: [], SQLITE: []}
    for i in range(CROWDS):
        for kind, found in rounds.items():
            found.append(crowd(kind, folder / f"{kind}-crowd-{i}.db", processes, crowd_turns))
    for kind, found in rounds.items():
        results[kind] |= {
            f"{processes} processes, turns/s": statistics.median(f["turns/s"] for f in found),
            f"{processes} processes, turns lost": sum(f["turns lost"] for f in found),
            f"{processes} processes, errors": sorted({e for f in found for e in f["errors"]}),
        }
    return {"turns": turns, "processes": processes, "savers": results, "reach": reach(results, turns, processes)}


def reach(results: dict[str, dict[str, Any]], turns: int, processes: int) -> dict[str, dict[str, Any]]:
    """The ratios that are promised, each with its bound."""
    ours, memory, sqlite = results[OURS], results[MEMORY], results[SQLITE]
    put = f"put, CPU ms @{min(200, turns)}"
    found = (
        ours["bytes on disk"] / sqlite["bytes on disk"],
        ours[put] / sqlite[put],
        ours[put] / memory[put],
        ours["get_tuple, CPU ms"] / sqlite["get_tuple, CPU ms"],
        sqlite["list(limit=10), CPU ms"] / ours["list(limit=10), CPU ms"],
        ours[f"{processes} processes, turns/s"] / sqlite[f"{processes} processes, turns/s"],
    )
    return {
        name: {
            "ratio": ratio,
            "bound": f"{sign} {bound:.4g}",
            "met": ratio <= bound if sign == "<=" else ratio >= bound,
        }
        for (name, (sign, bound)), ratio in zip(REACH.items(), found, strict=True)
    }


def table(report: dict[str, Any]) -> str:
    """The report as a Markdown table."""
    savers = report["savers"]
    names = list(dict.fromkeys(name for found in savers.values() for name in found))
    lines = [["", *savers], ["---"] * (1 + len(savers))]
    lines += [[name, *(_cell(found.get(name)) for found in savers.values())] for name in names]
    lines += [[""], ["ratio", "measured", "bound", "met"]]
    lines += [[n, f"{r['ratio']:.4f}", r["bound"], "yes" if r["met"] else "NO"] for n, r in report["reach"].items()]
    return "\n".join("| " + " | ".join(line) + " |" if line != [""] else "" for line in lines)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, list):
        return ", ".join(value) or "none"
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--crowd-turns", type=int, default=25, help="turns of each process")
    parser.add_argument("--json", metavar="FILE", help="also write the figures there; - for standard output only")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        report = run(Path(folder), options.turns, options.processes, options.crowd_turns)
    text = json.dumps(report, indent=2)
    print(text if options.json == "-" else table(report))
    if options.json not in (None, "-"):
        Path(options.json).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
