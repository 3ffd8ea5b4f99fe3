"""Processes that change a memory and die: by their own hand before a statement, or by another's at any moment."""

import itertools
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from langchain_core.messages import HumanMessage

from langmem_adapter.memory import Memory

SECRET = "Xylofonberg"
CITIES = ("Rome", "Oslo", "Bonn", "Lima", "Cairo", "Quito", "Ghent")


def prepare(memory: Memory) -> None:
    """What is known before each change: a fact with a past, one that is contested, and others of other sources."""
    memory.add(HumanMessage("I live in Rome.", id="h1"), user_id="u", session_id="s1")
    memory.add(HumanMessage(f"I live in {SECRET}.", id="h2"), user_id="u", session_id="s2")
    memory.add_fact("The user is vegan.", topic="diet", value="vegan", user_id="u", source_id="crm")
    memory.add_fact(
        "The user is vegetarian.", topic="diet", value="vegetarian", user_id="u", source_id="web",
        source_type="tool_output",
    )  # fmt: skip
    memory.add(HumanMessage("I love pea soup.", id="h3"), user_id="u", session_id="s2")


def _living(memory: Memory) -> str:
    [home] = memory.get_all(user_id="u", topic="home/location")
    return home.memory_id


def _deliver(memory: Memory, *, after: str) -> None:
    memory.add(HumanMessage(after, id="h9"), user_id="u", session_id="s9")


CHANGES: dict[str, Callable[[Memory], object]] = {
    "supersede": lambda m: _deliver(m, after="I live in Oslo."),
    "settle a contest": lambda m: _deliver(m, after="I'm a vegetarian."),
    "two facts of one turn": lambda m: _deliver(m, after="I live in Oslo. I hate pea soup."),
    "correct": lambda m: m.update(_living(m), user_id="u", content="The user lives in Oslo."),
    "forbid": lambda m: m.forbid(memory_id=_living(m), user_id="u"),
    "delete": lambda m: m.delete(_living(m), user_id="u", previous="restore"),
    "forget a source": lambda m: m.forget_source("s2", user_id="u"),
    "delete all": lambda m: m.delete_all(user_id="u"),
}
"""Changes of which each happens as a whole or not at all."""

ERASES = ("forbid", "delete", "forget a source", "delete all")


def _watch(memory: Memory, trace: Callable[[str], object] | None) -> None:
    """Call `trace` before each statement of the connection that writes."""
    with memory.store._connections.alone() as conn:  # type: ignore[attr-defined]
        conn.set_trace_callback(trace)


def count(path: Path, change: str) -> list[str]:
    """The statements by which the change is made, in order."""
    told: list[str] = []
    with Memory(path) as memory:
        _watch(memory, told.append)
        CHANGES[change](memory)
        _watch(memory, None)
    return [" ".join(t.split())[:40] for t in told]


def die_before(path: Path, change: str, number: int) -> None:
    """Make the change, and die by SIGKILL before its statement of this number, or before its caller hears of it."""
    numbers = itertools.count()

    def trace(statement: str) -> None:
        if next(numbers) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    memory = Memory(path)
    _watch(memory, trace)
    CHANGES[change](memory)
    os.kill(os.getpid(), signal.SIGKILL)


def live(path: Path, name: str, told: Connection) -> None:
    """Change one user's memory for ever; each change is told when it is acknowledged, a deletion before it too."""
    memory = Memory(path)
    for n in itertools.count():
        city = CITIES[n % len(CITIES)]
        match n % 6:
            case 3:
                op = memory.add_fact(
                    f"The user lives in {city}.", topic="home/location", value=city, user_id="u",
                    source_id=f"{name}-{n}", source_type="tool_output",
                )  # fmt: skip
            case 4:
                op = memory.update(_living(memory), user_id="u", content=f"The user lives in {name}x{n}.")
            case 5:
                gone = [r.memory_id for r in memory.get_all(user_id="u", status="superseded")][:1]
                told.send(("deleting", gone[0], ""))
                memory.delete(gone, user_id="u")
                continue
            case _:
                said = HumanMessage(f"I live in {city}. I like dish{name}x{n}.", id=f"{name}-{n}")
                for done in memory.add(said, user_id="u", session_id=f"{name}-{n}"):
                    if done.action != "NOOP":
                        told.send(("learnt", done.memory_id, done.content))
                continue
        if op.action != "NOOP":
            told.send(("learnt", op.memory_id, op.content))
