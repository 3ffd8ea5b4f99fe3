"""What was said last counts, in whatever order it is learnt."""

import contextlib
import itertools
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

from langmem_adapter import Memory
from langmem_adapter.errors import ModelFailed
from langmem_adapter.extraction.model import ModelExtractor
from langmem_adapter.testing import ScriptedChatModel

LATE = ValueError("the model is away")


def told(messages: Sequence[BaseMessage]) -> dict[str, Any]:
    """The one fact of "I live in PLACE", "I'm vegan", "I'm no longer vegan"."""
    said = json.loads(messages[1].text.splitlines()[0])["text"]
    word = said.split()[-1]
    found = {"content": f"The user lives in {word}.", "topic": "home/location", "value": word}
    if word == "vegan":
        found = {"content": "The user is vegan.", "topic": "diet", "value": "vegan"}
    if "no longer" in said:
        found |= {"content": "The user is no longer vegan.", "intent": "retract"}
    return {"facts": [found | {"line": "l1", "excerpt": said}]}


def ticking() -> Callable[[], datetime]:
    """A clock that moves on by a minute whenever it is looked at."""
    minutes = itertools.count()
    return lambda: datetime(2026, 5, 1, tzinfo=UTC) + timedelta(minutes=next(minutes))


def say(memory: Memory, *texts: str) -> None:
    """Each text as a turn; those for which the model is away stay queued."""
    for text in texts:
        with contextlib.suppress(ModelFailed):
            memory.add(HumanMessage(text, id=text), user_id="ada", session_id="s")


def homes(memory: Memory) -> list[str]:
    return [r.value for r in memory.get_all(user_id="ada")]


def extractor(*replies: Any) -> ModelExtractor:
    return ModelExtractor(ScriptedChatModel(replies=[*replies, told]))


def test_a_turn_learnt_late_does_not_replace_what_was_said_after_it(make):
    memory = make(extractor=extractor(LATE), clock=ticking())
    say(memory, "I live in Rome", "I live in Oslo")
    [late] = memory.retry(user_id="ada")
    assert homes(memory) == ["Oslo"]
    rome, oslo = sorted(memory.get_all(user_id="ada", status="all"), key=lambda r: r.value, reverse=True)
    assert (late.action, late.reason, late.memory_id, late.target_id) == (
        "CREATE",
        "said_earlier",
        rome.memory_id,
        oslo.memory_id,
    )
    assert (rome.status, rome.superseded_by, oslo.supersedes) == ("superseded", oslo.memory_id, (rome.memory_id,))
    assert rome.valid_from < rome.valid_to == oslo.valid_from


def test_what_was_said_again_meanwhile_stays(make):
    memory = make(extractor=extractor(told, LATE), clock=ticking())
    say(memory, "I live in Rome", "I live in Oslo", "So I live in Rome")
    memory.retry(user_id="ada")
    assert homes(memory) == ["Rome"]


def test_a_retraction_learnt_late_does_not_end_what_was_said_after_it(make):
    memory = make(extractor=extractor(told, LATE), clock=ticking())
    say(memory, "I'm vegan", "I'm no longer vegan", "Again I'm vegan")
    assert [o.reason for o in memory.retry(user_id="ada")] == ["said_earlier"]
    assert homes(memory) == ["vegan"]


def test_the_earlier_word_holds_when_the_later_one_is_forgotten(make):
    memory = make(extractor=extractor(LATE), clock=ticking())
    say(memory, "I live in Rome", "I live in Oslo")
    memory.retry(user_id="ada")
    memory.forget_source("I live in Oslo", user_id="ada")
    assert homes(memory) == ["Rome"]


def test_of_three_turns_learnt_backwards_the_last_said_counts(make):
    memory = make(extractor=extractor(LATE, LATE), clock=ticking())
    say(memory, "I live in Rome", "I live in Lima", "I live in Oslo")
    memory.retry(user_id="ada")
    assert homes(memory) == ["Oslo"]


def test_a_time_that_is_given_is_when_it_was_said(memory):
    memory.add("I live in Oslo.", user_id="ada", session_id="s", at="2026-03-01T00:00:00Z")
    memory.add("I live in Rome.", user_id="ada", session_id="s", at="2020-01-01T00:00:00Z")
    assert homes(memory) == ["Oslo"]
    memory.add("I live in Bern.", user_id="ada", session_id="s")
    assert homes(memory) == ["Bern"]
    for r in memory.get_all(user_id="ada", status="all"):
        assert r.valid_to is None or r.valid_from <= r.valid_to


def test_a_clock_set_back_does_not_make_the_newest_word_old(make):
    memory = make(clock=lambda: datetime(2026, 5, 2, tzinfo=UTC))
    memory.add("I live in Oslo.", user_id="ada", session_id="s")
    other = Memory(memory.store, clock=lambda: datetime(2026, 5, 1, tzinfo=UTC))
    other.add("I live in Rome.", user_id="ada", session_id="s")
    assert homes(memory) == ["Rome"]


def test_a_tool_that_spoke_later_does_not_outweigh_the_user(make):
    memory = make(extractor=extractor(LATE), clock=ticking())
    say(memory, "I live in Rome")
    memory.add_fact(
        "The user lives in Oslo.",
        user_id="ada",
        topic="home/location",
        value="Oslo",
        source_type="tool_output",
        source_id="crm",
    )
    memory.retry(user_id="ada")
    assert homes(memory) == ["Rome"]
