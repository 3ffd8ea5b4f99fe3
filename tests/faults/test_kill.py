"""kill -9: what was acknowledged is there, and each change happened as a whole or not at all."""

import os
import random
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faults.dying import CHANGES, ERASES, SECRET, count, die_before, live, prepare
from invariants import whole
from queue_processes import pipe, process
from support import SOAK
from test_erasure import forms, found_in
from test_killed import told

from langmem_adapter.memory import Memory

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs kill -9 and a forkserver")

ROUNDS = 200 if SOAK else 8
POINTS = None if SOAK else 8
"""How many statements of a change are died at; None: all."""


def state(memory: Memory) -> Any:
    """What a memory says, without what differs between two runs: ids and times."""
    records = whole(memory)
    names = {r.memory_id: (r.topic, r.content, r.status) for r in records}

    def named(*ids: str | None) -> list[Any]:
        return sorted(names[i] for i in ids if i is not None)

    return [
        (names[r.memory_id], named(*r.supersedes), named(r.superseded_by), named(*r.contested_by), named(r.contests),
         r.confidence, sorted((s.source_id, s.role) for s in r.sources), [h.action for h in r.history])
        for r in sorted(records, key=lambda r: names[r.memory_id])
    ]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_process_that_dies_at_any_statement_has_made_the_whole_change_or_none_of_it(
    change: str, tmp_path: Path, tried: Callable[[str], None]
) -> None:
    with Memory(tmp_path / "prepared.db") as memory:
        prepare(memory)
        before = state(memory)
    shutil.copy(tmp_path / "prepared.db", tmp_path / "done.db")
    statements = count(tmp_path / "done.db", change)
    with Memory(tmp_path / "done.db") as memory:
        after = state(memory)
    assert after != before
    numbers = range(len(statements))
    some = numbers if POINTS is None else sorted(random.Random(change).sample(numbers, min(POINTS, len(numbers))))
    chosen = [*some, len(statements)]  # at last: the change was made, and nobody was told
    outcomes = {"before": 0, "after": 0}
    for number in chosen:
        folder = tmp_path / str(number)
        folder.mkdir()
        path = folder / "m.db"
        shutil.copy(tmp_path / "prepared.db", path)
        child = process(die_before, path, change, number)
        child.join(60)
        assert child.exitcode == -9, "it lived"
        with Memory(path) as memory:
            assert memory.store.doctor(deep=True).integrity == ()  # type: ignore[attr-defined]
            found = state(memory)
            assert found in (before, after), f"half a change, dead at {[*statements, 'the end'][number]!r}"
            outcomes["after" if found == after else "before"] += 1
            if change in ERASES and found == after:
                assert all(r.state == "done" for r in memory.receipts(user_id="u"))
                assert found_in(folder, forms(SECRET)) == []
            if found == before or change not in ("correct", *ERASES):
                CHANGES[change](memory)  # the caller, who heard nothing, does it again
                assert state(memory) == after
    assert all(outcomes.values())
    tried(f"{len(chosen)} deaths at {len(statements)} statements: {outcomes}")


def test_processes_killed_at_random_moments_lose_nothing_acknowledged(
    tmp_path: Path, tried: Callable[[str], None]
) -> None:
    rng = random.Random(os.environ.get("SOAK", 7))
    path = tmp_path / "m.db"
    Memory(path).close()
    learnt: dict[str, str] = {}
    deleted: set[str] = set()
    for n in range(ROUNDS):
        reader, writer = pipe()
        child = process(live, path, f"r{n}", writer)
        writer.close()
        assert reader.poll(60), "the child changed nothing"
        time.sleep(rng.uniform(0.0, 0.3))
        child.kill()
        child.join()
        for what, memory_id, content in told(reader):
            if what == "learnt":
                learnt[memory_id] = content
            else:
                deleted.add(memory_id)
        reader.close()
        with Memory(path) as memory:
            assert memory.store.doctor(deep=True).integrity == ()  # type: ignore[attr-defined]
            stored = {r.memory_id: r.content for r in whole(memory)}
            assert {i: c for i, c in learnt.items() if i not in deleted}.items() <= stored.items()
            assert all(r.state == "done" for r in memory.receipts(user_id="u"))
            assert memory.pending(user_id="u") == []
    tried(f"{ROUNDS} kills, {len(learnt)} changes and {len(deleted)} deletions acknowledged")
