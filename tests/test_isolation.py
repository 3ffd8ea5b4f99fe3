"""Users whose ids nearly collide never meet, by any public read; many writers lose nothing."""

import multiprocessing
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore

from langmem_adapter.errors import MemoryNotFound
from langmem_adapter.memory import Memory

USERS = ["A", "a", "a.b", "a/b", "john-doe", "john_doe", "u1", "u10", "u%", "u_", "*", "ada@x.org", "ADA@x.org"]

steps = st.lists(
    st.tuples(
        st.sampled_from(["add", "fact", "session", "update", "delete", "forget", "delete_all"]), st.sampled_from(USERS)
    ),
    min_size=5,
    max_size=25,
)


def act(memory: Memory, what: str, user: str, n: int) -> None:
    own = f"{USERS.index(user)}x{n}"  # words that only this user ever says
    mine = memory.get_all(user_id=user)
    if what == "add":
        memory.add(f"I love zorb{own}.", user_id=user, session_id=f"t{n}")
    elif what == "fact":
        memory.add_fact(f"The user met Quux{own}.", user_id=user, source_id=f"crm{n}")
    elif what == "session":
        memory.add_fact(f"Session note {own}.", user_id=user, scope="session", session_id="t", source_id="s")
    elif what == "update" and mine:
        memory.update(mine[0].memory_id, user_id=user, content=f"The user is Corrected{own}.")
    elif what == "delete" and mine:
        memory.delete(mine[0].memory_id, user_id=user)
    elif what == "forget":
        memory.forget_source(f"crm{n - 1}", user_id=user)
    elif what == "delete_all":
        memory.delete_all(user_id=user)


def check(memory: Memory) -> None:
    owners = {r.memory_id: u for u in USERS for r in memory.get_all(user_id=u, status="all")}
    for user in USERS:
        everything = memory.get_all(user_id=user, status="all")
        found = [
            h.record for q in ("", "zorb Quux note") for h in memory.search(q, user_id=user, k=100, session_id="t")
        ]
        found += [h.record for h in memory.search("", user_id=user, k=100, include_superseded=True)]
        assert {r.user_id for r in [*everything, *found]} <= {user}
        for memory_id, owner in owners.items():
            if owner == user:
                assert memory.get(memory_id, user_id=user) is not None
                assert {r.user_id for r in memory.why(memory_id, user_id=user).replaced} <= {user}
            else:
                assert memory.get(memory_id, user_id=user) is None
                for read in (memory.why, memory.history, memory.delete):
                    with pytest.raises(MemoryNotFound):
                        read(memory_id, user_id=user)


@pytest.mark.parametrize("kind", ["sqlite", "in_memory"])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(script=steps)
def test_ids_that_nearly_collide_never_meet(kind, tmp_path, script):
    path = tmp_path / f"{abs(hash(str(script)))}.db"
    path.unlink(missing_ok=True)
    with Memory(path) if kind == "sqlite" else Memory(InMemoryStore()) as memory:
        for n, (what, user) in enumerate(script):
            act(memory, what, user, n)
        check(memory)


CITIES = ["Rome", "Oslo", "Bonn", "Lima", "Cairo"]


def write(path: str, writer: int, results: Any) -> None:
    acknowledged = []
    with Memory(path) as memory:
        for i in range(40):
            text = [
                f"I live in {CITIES[(writer + i) % 5]}.",
                f"I love dish{writer}x{i}.",
                "I really like coffee.",
                f"Please call me Name{chr(65 + writer)}{chr(97 + i % 26)}.",
            ][i % 4]
            for op in memory.add(text, user_id="u", session_id=f"w{writer}-{i}"):
                acknowledged.append((op.action, op.memory_id, op.content))
    results.put(acknowledged)


def test_five_processes_leave_one_active_fact_a_slot_and_lose_nothing(tmp_path: Path):
    path = str(tmp_path / "memory.db")
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    writers = [context.Process(target=write, args=(path, n, results)) for n in range(5)]
    for w in writers:
        w.start()
    acknowledged = [op for _ in writers for op in results.get(timeout=120)]
    for w in writers:
        w.join(30)
        assert w.exitcode == 0
    assert len(acknowledged) == 200
    with Memory(path) as memory:
        records = {r.memory_id: r for r in memory.get_all(user_id="u", status="all")}
    active = [r for r in records.values() if r.status == "active"]
    slots = Counter(
        (r.topic, r.slot) for r in active if r.topic in ("home/location", "identity/name", "preference/likes")
    )
    assert set(slots.values()) == {1}
    assert {("home/location", ""), ("identity/name", ""), ("preference/likes", "coffee")} <= set(slots)
    assert len(slots) == 3 + 50
    for action, memory_id, content in acknowledged:
        assert memory_id in records
        assert action == "NOOP" or records[memory_id].content == content
    [coffee] = [r for r in active if r.slot == "coffee"]
    assert len(coffee.sources) == 50
    superseded = [r for r in records.values() if r.status == "superseded"]
    assert all(r.superseded_by in records for r in superseded)
    updates = sum(a == "UPDATE" for a, _, _ in acknowledged)
    assert len(superseded) == updates
