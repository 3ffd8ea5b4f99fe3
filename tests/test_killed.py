"""A process that dies loses no turn that was queued, and nothing is learnt twice."""

import contextlib
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage
from queue_processes import OWNERS, finish, liked, pipe, process, talk

from langmem_adapter import Memory, turnqueue
from langmem_adapter.extraction.model import ModelExtractor
from langmem_adapter.testing import ScriptedChatModel

ROUNDS = 100 if os.environ.get("SOAK") else 6
A_FILE = 10
"""Rounds with one file: what is compared grows with each."""


def told(reader: Connection) -> Iterator[tuple[str, str]]:
    """What arrives until the other end is gone; a word cut off by the kill was not acknowledged."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            yield reader.recv()


@pytest.mark.skipif(sys.platform == "win32", reason="needs kill -9 and a forkserver")
def test_a_killed_process_loses_no_queued_turn_and_none_is_learnt_twice(
    tmp_path: Path, tried: Callable[[str], None]
) -> None:
    """Each round: kill -9 in the midst of queueing and learning; another process learns what was left."""
    rng = random.Random(os.environ.get("SOAK", 8))
    total = left = done = 0
    for n in range(ROUNDS):
        if n % A_FILE == 0:
            path = tmp_path / f"m{n}.db"
            Memory(path).close()
            acknowledged: dict[str, set[str]] = {owner: set() for owner in OWNERS}
        reader, writer = pipe()
        child = process(talk, path, f"round{n}", writer)
        writer.close()
        assert reader.poll(60), "the child queued nothing"
        time.sleep(rng.uniform(0.0, 0.8))
        child.kill()
        child.join()
        heard = list(told(reader))
        reader.close()
        assert heard
        for owner, word in heard:
            acknowledged[owner].add(word)
        total += len(heard)
        with Memory(path) as memory:
            left += sum(len(memory.pending(user_id=owner)) for owner in OWNERS)
            known = [r for owner in OWNERS for r in memory.get_all(user_id=owner, status="all")]
            done += sum(r.slot.startswith(f"round{n}x") for r in known)
        worker = process(finish, path)
        worker.join(90)
        assert worker.exitcode == 0
        with Memory(path) as memory:
            for owner in OWNERS:
                assert [(t.turn_id, t.attempts, t.error) for t in memory.pending(user_id=owner)] == []
                known = memory.get_all(user_id=owner, status="all")
                slots = [r.slot for r in known]
                assert len(set(slots)) == len(slots)
                # A turn may be queued and its word lost on the way to us, so there can be more; never fewer.
                assert acknowledged[owner] <= set(slots)
                assert len(slots) - len(acknowledged[owner]) <= n % A_FILE + 1
                assert all(len(r.sources) == 1 and len(r.history) == 1 for r in known)
    assert left, "no kill ever left anything to learn: the test tests nothing"
    tried(f"{ROUNDS} kills, {total} turns acknowledged; the dead had learnt {done} and left {left} queued")


def stuck_with_tea(path: Path) -> tuple[Memory, threading.Event]:
    """A Memory whose worker has taken "I like tea" and is silent until the event is set."""
    revived = threading.Event()

    def stuck(messages: Sequence[BaseMessage]) -> Any:
        revived.wait(60)
        return liked(messages)

    slow = Memory(path, extractor=ModelExtractor(ScriptedChatModel(replies=[stuck])), when="background")
    slow.add(HumanMessage("I like tea", id="h"), user_id="ada", session_id="s")
    while slow.pending(user_id="ada")[0].leased_until is None:
        time.sleep(0.01)
    return slow, revived


def test_a_turn_that_a_dead_worker_had_leased_is_learnt_when_the_lease_ends(tmp_path, monkeypatch):
    """Without another turn of its owner, and without a restart."""
    monkeypatch.setattr(turnqueue, "LEASE", turnqueue.timedelta(seconds=2))
    path = tmp_path / "m.db"
    slow, revived = stuck_with_tea(path)
    with Memory(path, extractor=ModelExtractor(ScriptedChatModel(replies=[liked])), when="background") as memory:
        assert memory.drain(timeout=10)  # which does not wait for what is another's
        assert len(memory.pending(user_id="ada")) == 1
        patience = time.monotonic() + 30
        while memory.pending(user_id="ada") and time.monotonic() < patience:
            time.sleep(0.05)
        revived.set()  # it was not dead after all, only late: the turn is not learnt again
        slow.close()
        [record] = memory.get_all(user_id="ada", status="all")
        assert (record.content, len(record.sources)) == ("The user likes tea.", 1)


def test_drain_learns_what_a_dead_worker_had_leased_of_a_user_heard_here(tmp_path, monkeypatch):
    """It waits for a lease that may be alive, and takes the turn when the lease is over."""
    monkeypatch.setattr(turnqueue, "LEASE", turnqueue.timedelta(seconds=2))
    path = tmp_path / "m.db"
    slow, revived = stuck_with_tea(path)
    with Memory(path, extractor=ModelExtractor(ScriptedChatModel(replies=[liked] * 2)), when="background") as memory:
        memory.add(HumanMessage("I like rye", id="g"), user_id="ada", session_id="s")
        assert not memory.drain(timeout=0.1)
        assert memory.drain(timeout=30)
        assert {r.content for r in memory.get_all(user_id="ada")} == {"The user likes tea.", "The user likes rye."}
        revived.set()
        slow.close()


def test_a_turn_that_failed_in_the_background_is_tried_again_after_its_pause(tmp_path, monkeypatch, caplog):
    """By itself: nobody need speak again. That it failed is in the log."""
    monkeypatch.setattr(turnqueue, "PAUSE", turnqueue.timedelta(seconds=0.5))
    model = ScriptedChatModel(replies=[ValueError("context too long"), liked])
    with Memory(tmp_path / "m.db", extractor=ModelExtractor(model), when="background") as memory:
        memory.add(HumanMessage("I like tea", id="h"), user_id="ada", session_id="s")
        memory.drain(timeout=10)
        assert "remember_failed" in caplog.text
        patience = time.monotonic() + 30
        while memory.pending(user_id="ada") and time.monotonic() < patience:
            time.sleep(0.05)
        assert [r.content for r in memory.get_all(user_id="ada")] == ["The user likes tea."]
