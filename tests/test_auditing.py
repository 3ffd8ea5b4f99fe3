"""What is laid before an auditor, in which order, and why."""

import pytest
from support import Clock, Scripted, fact

from langmem_adapter.errors import InvalidInput

SCRIPT = {
    "veg": [fact("The user is vegetarian.", "diet", "vegetarian")],
    "meat": [fact("The user eats meat.", "diet", "meat", source_type="user_implicit")],
    "tea": [fact("The user likes tea.", "preference/likes", "like", slot="tea")],
    "shy": [fact("The user goes by Shy.", "identity/name", "Shy", source_type="user_implicit")],
}


def reasons(memory, **arguments):
    return [(r.record.content, r.reasons) for r in memory.review(user_id="u", **arguments)]


def test_firm_weighty_and_resting_on_little_comes_first(make):
    clock = Clock()
    memory = make(extractor=Scripted(SCRIPT), clock=clock)
    for text in ("veg", "tea", "shy"):
        memory.add(text, user_id="u", session_id=text)
    assert reasons(memory) == [("The user is vegetarian.", ("important", "single_source"))]
    assert len(reasons(memory, min_confidence=0.5)) == 2
    memory.add("veg", user_id="u", session_id="again")
    assert reasons(memory) == [("The user is vegetarian.", ("important",))]


def test_a_contest_is_a_reason_for_a_month(make):
    clock = Clock()
    memory = make(extractor=Scripted(SCRIPT), clock=clock)
    memory.add("veg", user_id="u", session_id="s1")
    memory.add("meat", user_id="u", session_id="s2")
    assert reasons(memory)[0][1] == ("important", "single_source", "contested", "recently_contested")
    clock.forward(days=31)
    assert reasons(memory)[0][1] == ("important", "single_source", "contested")


async def test_it_is_one_users_and_checks_its_argument(make):
    memory = make(extractor=Scripted(SCRIPT))
    memory.add("veg", user_id="u", session_id="s1")
    assert await memory.areview(user_id="v") == []
    with pytest.raises(InvalidInput, match="min_confidence"):
        memory.review(user_id="u", min_confidence="high")
