"""A chat model that answers nonsense, or nothing: the turn is answered and kept, and no fact is half learnt."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from faults.concierge import Concierge
from invariants import whole
from langchain_core.messages import AIMessage, BaseMessage
from support import Clock

from langmem_adapter.testing import ScriptedChatModel

SAID = "I'm vegan, and I live in Rome."
VEGAN = {"content": "The user is vegan.", "topic": "diet", "value": "vegan", "line": "l1", "excerpt": "I'm vegan"}
ROME = {
    "content": "The user lives in Rome.", "topic": "home/location", "value": "Rome", "line": "l1",
    "excerpt": "I live in Rome",
}  # fmt: skip
GOOD = {"facts": [VEGAN, ROME]}


class RateLimitError(Exception):
    """As providers raise it."""


FAULTS: dict[str, Any] = {
    "invalid JSON": '{"facts": [{"content": "The user is vegan.",',
    "prose": "I found that the user is vegan and lives in Rome.",
    "an invalid escape": '{"facts": [{"content": "The user is \\ud vegan.", "topic": "diet"}]}',
    "a wrong type": {"facts": [VEGAN, ROME | {"content": 7}]},
    "facts that are no list": {"facts": "The user is vegan."},
    "a missing field": {"facts": [VEGAN, {"content": "The user lives in Rome."}]},
    "a topic that does not exist": {"facts": [VEGAN, ROME | {"topic": "nonsense"}]},
    "an empty reply": "",
    "an empty message": AIMessage(""),
    "a time-out": TimeoutError("no answer in 60 s"),
    "an exception": RuntimeError("boom"),
    "a lost connection": ConnectionError("gone"),
    "a rate limit": RateLimitError("slow down"),
    "a context that is too long": ValueError("maximum context length is 8192 tokens"),
}


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("langmem_adapter.answers.WAIT_SECONDS", 0.001)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_model_that_always_fails_costs_no_turn_and_teaches_all_or_nothing(
    fault: str, tmp_path: Path, tried: Callable[[str], None]
) -> None:
    clock = Clock()
    model = ScriptedChatModel(replies=[FAULTS[fault]])
    with Concierge(tmp_path / "m.db", model=model, clock=clock) as concierge:
        memory = concierge.memory
        concierge.say(SAID, id="h1")
        known = [r.content for r in whole(memory)]
        calls = len(model.prompts)
        assert calls <= 6  # retries are bounded
        waiting = memory.pending(user_id="u")
        if waiting:
            assert "remember_failed" in concierge.told()
            assert known == []  # no partial facts
            [turn] = waiting
            assert (turn.messages[0].text, turn.attempts) == (SAID, 1)
            assert turn.error
        else:  # what can be used of the answer was
            assert known == ["The user is vegan."]
        # Later turns proceed, and this one is learnt when the model is well again.
        model.replies = [_well]
        concierge.say("I really like coffee.", id="h2")
        assert "The user likes coffee." in [r.content for r in whole(memory)]
        clock.now += timedelta(hours=3)
        concierge.say("Hello again.", id="h3")
        assert memory.pending(user_id="u") == []
        if waiting:
            assert {"The user is vegan.", "The user lives in Rome."} <= {r.content for r in whole(memory)}
        assert all(len(r.sources) == 1 for r in whole(memory))
        tried(f"{calls} calls, then {'kept, and learnt later' if waiting else f'{len(known)} of 2 facts learnt'}")


def _well(messages: list[BaseMessage]) -> dict[str, Any]:
    if SAID in messages[1].text:
        return GOOD
    if "coffee" in messages[1].text:
        coffee = {"content": "The user likes coffee.", "topic": "preference/likes", "slot": "coffee", "value": "like"}
        return {"facts": [coffee | {"line": "l1", "excerpt": "I really like coffee"}]}
    return {"facts": []}


def test_ten_thousand_facts_are_cut_to_what_one_turn_can_teach(tmp_path: Path, tried: Callable[[str], None]) -> None:
    many = [VEGAN | {"content": f"The user is vegan, {_word(n)}.", "topic": "general", "value": _word(n)}
            for n in range(10_000)]  # fmt: skip
    with Concierge(
        tmp_path / "m.db", model=ScriptedChatModel(replies=[{"facts": many}, {"verdicts": []}])
    ) as concierge:
        concierge.say(SAID, id="h1")
        assert concierge.told() == ["model_call", "learnt"] or concierge.memory.pending(user_id="u")
        assert len(whole(concierge.memory)) <= 20
        tried(f"{len(many)} facts proposed, {len(whole(concierge.memory))} learnt")


def _word(n: int) -> str:
    return "".join(chr(97 + n // 26**i % 26) for i in range(4))


VERDICTS: dict[str, Callable[[str], dict[str, Any]]] = {
    "an unknown operation": lambda known: {"fact": 0, "verdict": "obliterate", "known": known, "reason": "x"},
    "an id that was not offered": lambda known: {"fact": 0, "verdict": "contradict", "known": "m_else", "reason": "x"},
    "a fact that was not asked about": lambda known: {"fact": 7, "verdict": "retract", "known": known, "reason": "x"},
    "no verdict at all": lambda known: {},
}


@pytest.mark.parametrize("fault", VERDICTS)
def test_a_verdict_that_makes_no_sense_changes_no_memory(
    fault: str, tmp_path: Path, tried: Callable[[str], None]
) -> None:
    asked = []

    def answer(messages: list[BaseMessage]) -> dict[str, Any]:
        if '"known"' in messages[1].text:
            asked.append(fault)
            return {"verdicts": [VERDICTS[fault](memory.get_all(user_id="u")[0].memory_id)]}
        said = "I like tea" if "tea" in messages[1].text else "I like tee"
        fact = {"content": f"The user said: {said}", "topic": "general", "value": said, "line": "l1", "excerpt": said}
        return {"facts": [fact]}

    model = ScriptedChatModel(replies=[answer])
    with Concierge(tmp_path / "m.db", model=model) as concierge:
        memory = concierge.memory
        concierge.say("I like tea", id="h1")
        [first] = whole(memory)
        concierge.say("I like tee", id="h2")
        assert asked
        assert memory.get(first.memory_id, user_id="u") == first
        assert [r.status for r in whole(memory)] == ["active", "active"]
        assert memory.pending(user_id="u") == []
        tried(f"{len(asked)} such verdicts, 2 facts left as they were")
