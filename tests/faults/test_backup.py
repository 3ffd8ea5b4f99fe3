"""A backup while four processes write: whole, with all that was acknowledged before it began, and usable."""

from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from faults.concierge import Concierge
from invariants import whole
from langchain_core.messages import HumanMessage
from queue_processes import pipe, process
from support import SOAK

from langmem_adapter.memory import Memory

WRITERS = 4


def write(path: Path, writer: int, told: Connection) -> None:
    """Change one user's memory for ever; each record is told once it is acknowledged."""
    memory = Memory(path)
    for n in range(1_000_000):
        said = HumanMessage(f"I live in City{writer}x{n}. I like dish{writer}x{n}.", id=f"{writer}-{n}")
        for done in memory.add(said, user_id="u", session_id=f"{writer}"):
            told.send(done.memory_id)


def test_a_backup_under_four_writers_is_a_whole_memory(tmp_path: Path, tried: Callable[[str], None]) -> None:
    path = tmp_path / "m.db"
    Memory(path).close()
    pipes = [pipe() for _ in range(WRITERS)]
    writers = [process(write, path, n, end) for n, (_, end) in enumerate(pipes)]
    acknowledged: set[str] = set()
    backups = []
    with Memory(path) as memory:
        for n in range(20 if SOAK else 2):
            for reader, _ in pipes:
                assert reader.poll(60)
                while reader.poll():
                    acknowledged.add(reader.recv())
            backups.append((tmp_path / f"copy{n}.db", set(acknowledged)))
            memory.store.backup(backups[-1][0])  # type: ignore[attr-defined]
    for child in writers:
        child.kill()
        child.join()
    for copy, before in backups:
        with Concierge(copy) as concierge:
            assert concierge.memory.store.doctor(deep=True).problems == ()  # type: ignore[attr-defined]
            records = whole(concierge.memory)
            assert before <= {r.memory_id for r in records}
            assert sum(r.status == "active" for r in records if r.topic == "home/location") == 1
            concierge.say("I live in Ghent.")
            assert concierge.told() == ["learnt"]
    tried(f"{len(backups)} backups under {WRITERS} writers, {len(backups[-1][1])} records acknowledged before the last")
