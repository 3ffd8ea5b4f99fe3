"""Users whose ids nearly collide never meet, by any public read."""

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
