"""What `Memory(...)` is given is checked at once: each argument by itself, in one table."""

import inspect
from datetime import datetime

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from langmem_adapter import Guard, Memory
from langmem_adapter.consolidation.judge import ModelJudge
from langmem_adapter.errors import InvalidInput
from langmem_adapter.extraction.model import ModelExtractor
from langmem_adapter.testing import ScriptedChatModel
from langmem_adapter.topics import Topic
from langmem_adapter.trust import TrustPolicy

WRONG = {
    "store": [None, 3, b"m.db"],
    "embeddings": [3, ["hash"], {}, "", " "],
    "model": [3, object(), ScriptedChatModel, "", " "],
    "extractor": ["rules", 3, object(), ModelExtractor],
    "judge": ["openai:gpt", 3, object(), ModelJudge],
    "when": ["later", None, True],
    "debounce_seconds": [-1, "1", True, float("nan"), float("inf"), None],
    "topics": ["general", 3, None, ["general"], [], [3], [Topic(name="hobby")]],
    "policy": ["strict", {}, TrustPolicy],
    "tool_sources": [3, None, ["crm", 3]],
    "people": ["Bob", [("Bob", "u")], {"Bob": 3}, {3: "u"}, {"Bob": ""}],
    "checkpointer": ["threads.db", 3, object(), InMemorySaver],
    "keep_turns": ["all", None, 3],
    "recall_deadline": [0, -1, "1", True, float("nan")],
    "maintain_every": [0, -1, "50", 1.5, True],
    "retention_days": [-1, "30", None, True, float("inf")],
    "guard": ["x", [], 3, Guard],
    "inject_as": ["tool", None],
    "weights": ["x", 3, {"relevance": 1}],
    "on_event": ["print", 3],
    "clock": [None, "now", 3],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_each_argument_that_cannot_be_meant_is_named_with_its_value(tmp_path, name, value):
    """Before anything is opened."""
    given = {"store": tmp_path / "m.db", name: value}
    with pytest.raises(InvalidInput) as caught:
        Memory(given.pop("store"), **given)
    told = str(caught.value)
    assert told.startswith(name)
    assert f"{value!r:.40}" in told or value == [Topic(name="hobby")]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("made", [ModelExtractor, ModelJudge])
def test_a_model_without_a_name_is_refused_wherever_it_is_given(made):
    """As an environment variable that is not set gives it: not at the first turn."""
    with pytest.raises(InvalidInput, match="model is empty"):
        made("")


def test_all_arguments_are_tried():
    """A new argument of `Memory` needs a line above."""
    assert set(WRONG) == set(inspect.signature(Memory).parameters)


@pytest.mark.parametrize("told", [datetime(2026, 1, 1), "2026-01-01", None])
def test_a_clock_that_tells_no_time_with_a_zone_is_named(tmp_path, told):
    """When it is first asked."""
    with Memory(tmp_path / "m.db", clock=lambda: told) as memory, pytest.raises(InvalidInput, match="clock"):
        memory.add("I'm vegan.", user_id="u", session_id="s")


@pytest.mark.parametrize("timeout", ["x", True, float("nan")])
def test_drain_names_a_timeout_that_is_none(tmp_path, timeout):
    with Memory(tmp_path / "m.db") as memory, pytest.raises(InvalidInput, match="timeout"):
        memory.drain(timeout)
