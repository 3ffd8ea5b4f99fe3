"""A real chat model, named by LANGMEM_TEST_MODEL, extracts, notices a contradiction, and leaves small talk alone.

LANGMEM_TEST_MODEL=openai:gpt-4o-mini pytest -m llm
"""

import os
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from langmem_adapter import Memory

NAME = os.environ.get("LANGMEM_TEST_MODEL", "")

pytestmark = [
    pytest.mark.llm,
    pytest.mark.skipif(not NAME, reason="LANGMEM_TEST_MODEL names no model: a LangChain string or a path to a .gguf"),
    pytest.mark.filterwarnings("default"),  # those of the provider's package are not ours
]


@pytest.fixture(scope="module")
def model() -> Any:
    """The model's LangChain string, or the model in a GGUF file."""
    if not NAME.endswith(".gguf"):
        return NAME
    community = pytest.importorskip(
        "langchain_community.chat_models", reason="pip install langchain-community llama-cpp-python"
    )
    return community.ChatLlamaCpp(model_path=NAME, n_ctx=8_192, max_tokens=1_024, temperature=0.0, verbose=False)


@pytest.fixture
def memory(model: Any, tmp_path: Path) -> Any:
    with Memory(tmp_path / "m.db", model=model) as opened:
        yield opened


def say(memory: Memory, *texts: str) -> list[str]:
    """What is believed after the user said these, one turn each."""
    for i, text in enumerate(texts):
        memory.add(HumanMessage(text, id=f"h{i}"), user_id="u", session_id=f"s{i}")
    assert memory.pending(user_id="u") == []
    return [r.content for r in memory.get_all(user_id="u")]


def test_extraction_finds_what_was_said_and_where(memory: Memory) -> None:
    """Two facts in one message, each resting on words of it."""
    known = " / ".join(say(memory, "By the way, I'm a vegetarian, and I work for Siemens in Munich."))
    assert "vegetarian" in known.casefold()
    assert "Siemens" in known
    assert all(s.excerpt for r in memory.get_all(user_id="u") for s in r.sources)


def test_a_contradiction_replaces_what_was_known(memory: Memory) -> None:
    """The old home is history, and the new one is believed."""
    known = " / ".join(say(memory, "I live in Bonn.", "I don't live in Bonn any more, I moved to Oslo."))
    assert "Oslo" in known
    homes = [r for r in memory.get_all(user_id="u", status="all") if r.content.startswith("The user lives in Bonn")]
    assert homes
    assert all(r.status != "active" for r in homes)


def test_small_talk_teaches_nothing(memory: Memory) -> None:
    """Greetings, thanks, and a question."""
    assert say(memory, "Hello there!", "Thanks a lot, that helps.", "What's the capital of Norway?") == []
