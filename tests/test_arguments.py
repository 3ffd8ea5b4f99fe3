"""What `Memory(...)` is given is checked at once: each argument by itself, in one table."""

import inspect
from datetime import datetime

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

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


MISUSED = {
    ("search", "k"): [True, -1, 1.5, None],
    ("search", "scopes"): [3, True],
    ("get_all", "topic"): [[], {}, 3],
    ("review", "min_confidence"): [7, -0.1, "x", True],
    ("block", "hits"): [None, 3, ["x"], "x", object()],
    ("block", "max_records"): [None, 1.5, -1, "6"],
    ("block", "max_tokens"): [None, 1.5, -1, "500"],
    ("inject", "hits"): [None, ["x"]],
    ("inject_message", "hits"): [None, ["x"]],
    ("inject_message", "system"): ["You are kind.", 3],
    ("recall", "hear"): [None, "no"],
    ("recall_block", "recollection"): [None, "m_1", {}],
    ("delete", "filter"): ["x", 3, [("topic", "diet")]],
    ("forget_source", "dry_run"): ["no", None, 1],
    ("forget_source", "reextract"): ["no", None],
    ("lift_hold", "reason"): [3, ["case"]],
    ("maintain", "progress"): [True, "print"],
    ("import_", "source"): ["", "/no/such/file", "\0", "x" * 5_000, "/"],
    ("import_", "progress"): [True],
    ("import_", "dry_run"): ["no"],
    ("import_lines", "source"): ["/no/such/file", "/"],
    ("import_lines", "app_name"): [None],
    ("import_lines", "progress"): ["print"],
    ("import_lines", "dry_run"): ["no"],
    ("import_mem0", "memories"): ["/no/such/file", "/"],
    ("import_mem0", "history"): [3, ["h.db"], "\0", "x" * 5_000],
    ("import_mem0", "progress"): [3],
    ("import_items", "namespace"): [3, "u", object(), (1,)],
    ("import_items", "progress"): [3],
}


@pytest.mark.parametrize(
    ("method", "name", "value"), [(*which, value) for which, values in MISUSED.items() for value in values]
)
def test_what_a_method_cannot_mean_is_named_with_its_value(method, name, value):
    """Not met as a TypeError or a KeyError further in; both twins share the step."""
    with Memory(":memory:") as memory:
        memory.add("I'm vegan.", user_id="u", session_id="s")
        said = [HumanMessage("Hello!", id="m1")]
        given = {
            "search": {"query": "diet", "user_id": "u"},
            "block": {"hits": []},
            "inject": {"system": "You are kind.", "hits": []},
            "inject_message": {"system": None, "hits": []},
            "recall": {"messages": said, "user_id": "u"},
            "lift_hold": {"user_id": "u"},
            "maintain": {},
            "forget_source": {"source_id": "s", "user_id": "u"},
            "recall_block": {},
            "import_": {"source": memory.export(user_id="u"), "user_id": "u"},
            "import_lines": {"source": ["The user is tall."], "user_id": "u", "source_id": "crm"},
            "import_mem0": {"memories": []},
            "import_items": {"store": InMemoryStore(), "namespace": ("u",), "user_id": "u"},
        }.get(method, {"user_id": "u"})
        with pytest.raises(InvalidInput) as caught:
            getattr(memory, method)(**given | {name: value})
        assert name.rstrip("s") in str(caught.value) or "file" in str(caught.value)
        assert f"{value!r:.40}" in str(caught.value)
        assert len(memory.get_all(user_id="u")) == 1
