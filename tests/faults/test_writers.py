"""Eight processes teach one user at once: half of them the same facts, half of them other values of one slot."""

import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from invariants import whole
from langchain_core.messages import HumanMessage
from queue_processes import pipe, process
from support import SOAK

from langmem_adapter.memory import Memory

WRITERS = 8
TURNS = 60 if SOAK else 10
SAME = ("I really like coffee.", "I'm allergic to peanuts.", "I love dish{n}.")


def write(path: Path, writer: int, told: Connection) -> None:
    """Say `TURNS` things; tell what was decided of each, and how long the slowest took."""
    decided: list[tuple[str, str | None, str]] = []
    slowest = 0.0
    with Memory(path) as memory:
        for n in range(TURNS):
            text = SAME[n % len(SAME)].format(n=n) if writer % 2 else f"I live in City{chr(65 + writer)}x{n}."
            began = time.monotonic()
            said = HumanMessage(text, id=f"{writer}-{n}")
            decided += [
                (o.action, o.memory_id, o.content) for o in memory.add(said, user_id="u", session_id=f"{writer}")
            ]
            slowest = max(slowest, time.monotonic() - began)
    told.send((decided, slowest))


def test_eight_processes_leave_one_row_a_fact_and_one_active_value(
    tmp_path: Path, tried: Callable[[str], None]
) -> None:
    path = tmp_path / "memory.db"  # none of them finds it there: they also race to create it
    pipes = [pipe() for _ in range(WRITERS)]
    writers = [process(write, path, n, end) for n, (_, end) in enumerate(pipes)]
    for _, end in pipes:
        end.close()
    results = [reader.recv() for reader, _ in pipes]
    for child in writers:
        child.join(60)
        assert child.exitcode == 0
    acknowledged = [op for decided, _ in results for op in decided]
    assert len(acknowledged) == WRITERS * TURNS  # no write failed
    assert max(slowest for _, slowest in results) < 30
    with Memory(path) as memory:
        records = {r.memory_id: r for r in whole(memory)}
        assert memory.store.doctor(deep=True).problems == ()  # type: ignore[attr-defined]
    homes = [r for r in records.values() if r.topic == "home/location"]
    facts = [r for r in records.values() if r.topic != "home/location"]
    # One row a fact, with a source for each turn that said it.
    assert len({(r.topic, r.slot) for r in facts}) == len(facts) == len({SAME[n % 3].format(n=n) for n in range(TURNS)})
    assert {len(r.sources) for r in facts if r.topic == "diet/allergy"} == {WRITERS // 2 * len(range(1, TURNS, 3))}
    # One value is believed, and each of the others was replaced by the next, in the order of their numbers.
    assert len(homes) == WRITERS // 2 * TURNS
    [at] = [r for r in homes if r.status == "active"]
    chain = [at]
    while chain[-1].supersedes:
        [before] = chain[-1].supersedes
        chain.append(records[before])
    assert [r.memory_id for r in chain] == [r.memory_id for r in sorted(homes, key=lambda r: -r.seq)]
    assert len(chain) - 1 == sum(action == "UPDATE" for action, _, _ in acknowledged)
    for action, memory_id, content in acknowledged:
        assert action == "NOOP" or records[memory_id or ""].content == content
    tried(f"{WRITERS} processes, {len(acknowledged)} turns, {len(chain) - 1} supersessions, slowest "
          f"{max(s for _, s in results):.1f} s")  # fmt: skip
