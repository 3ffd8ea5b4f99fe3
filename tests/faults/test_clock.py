"""A clock that steps back a day, or stands still: order is by sequence, and nothing that is over comes back."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from faults.concierge import Concierge
from invariants import whole
from langchain_core.messages import HumanMessage
from support import Clock

from langmem_adapter.memory import Memory

CITIES = ("Rome", "Oslo", "Bonn", "Lima", "Cairo", "Quito")


@pytest.mark.parametrize("step", [timedelta(days=-1), timedelta(0), timedelta(microseconds=-1)], ids=str)
def test_the_newest_word_counts_whatever_the_clock_says(
    step: timedelta, tmp_path: Path, tried: Callable[[str], None]
) -> None:
    clock = Clock()
    with Concierge(tmp_path / "m.db", clock=clock) as concierge:
        for n, city in enumerate(CITIES):
            concierge.say(f"I live in {city}.", id=f"h{n}", thread=f"t{n}")
            clock.now += step
            records = whole(concierge.memory)
            assert [r.content for r in records] == [f"The user lives in {c}." for c in CITIES[: n + 1]]
            assert [r.status for r in records] == ["superseded"] * n + ["active"]
        assert "lives in Quito" in concierge.say("Where do I live?", id="q", thread="q")
        assert [t.seq for t in concierge.memory.pending(user_id="u")] == []
    with Memory(tmp_path / "m.db", clock=clock) as memory:  # another process, whose clock is behind
        clock.now -= timedelta(days=30)
        memory.add(HumanMessage("I live in Ghent.", id="last"), user_id="u", session_id="s")
        assert [r.content for r in memory.get_all(user_id="u")] == ["The user lives in Ghent."]
        assert [h.record.content for h in memory.search("Where do I live?", user_id="u")] == [
            "The user lives in Ghent."
        ]
    tried(f"{len(CITIES)} turns, each {step} after the last, and one of a process 30 days behind")


def test_turns_are_learnt_in_the_order_in_which_they_were_queued(tmp_path: Path, tried: Callable[[str], None]) -> None:
    """Also when each was said, by the clock, before the last."""
    clock = Clock()
    with Memory(tmp_path / "m.db", when="background", debounce_seconds=60, clock=clock) as memory:
        for n, city in enumerate(CITIES):
            memory.add(HumanMessage(f"I live in {city}.", id=f"h{n}"), user_id="u", session_id="s")
            clock.now -= timedelta(days=1)
        assert memory.drain(timeout=60)
        assert [r.content for r in whole(memory)] == [f"The user lives in {city}." for city in CITIES]
    tried(f"{len(CITIES)} turns queued, each a day before the last")


def test_a_clock_that_steps_back_revives_no_expired_memory(tmp_path: Path, tried: Callable[[str], None]) -> None:
    clock = Clock()
    with Concierge(tmp_path / "m.db", clock=clock) as concierge:
        memory = concierge.memory
        memory.add_fact("The user has a cold.", user_id="u", source_id="crm", expires_at=clock() + timedelta(hours=1))
        assert "cold" in concierge.say("Do I have a cold?", id="h1")
        clock.forward(hours=2)
        assert "cold" not in concierge.say("Do I have a cold now?", id="h2")
        clock.forward(days=-1)
        assert memory.get_all(user_id="u") == []
        assert memory.search("cold", user_id="u") == []
        assert "cold" not in concierge.say("And now?", id="h3")
    tried("a step back of a day, 22 hours before a memory expired")
