"""How the extraction tests say a sentence and read what was learnt."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from langmem_adapter.extraction.grounding import ground
from langmem_adapter.extraction.rules import RuleExtractor
from langmem_adapter.records import Candidate, Extraction, Message, Turn
from langmem_adapter.text import clean

AT = datetime(2026, 5, 4, 9, 30, tzinfo=UTC)
"""A Monday."""


def _extract(
    text: str, *, role: str = "human", name: str | None = None, tools: frozenset[str] = frozenset()
) -> Extraction:
    """What the rules make of one message; every candidate must be grounded in it."""
    message = Message.model_validate({"id": "m1", "role": role, "text": clean(text), "name": name})
    turn = Turn(turn_id="m1", user_id="u", at=AT, messages=(message,), digest="d", source_id="s")
    extraction = RuleExtractor(tools).extract(turn)
    for candidate in extraction.candidates:
        assert ground(candidate, {"m1": message}) is None, candidate
    return extraction


def _facts(text: str) -> list[Candidate]:
    """The candidates of one human message."""
    return list(_extract(text).candidates)


def _brief(text: str) -> list[str]:
    """`topic|slot|value` of each candidate; `-` before what ended, `(person)` behind what is about another."""
    return [
        ("-" if c.intent == "retract" else "")
        + f"{c.topic}|{c.slot}|{c.value}"
        + (f" ({c.subject})" if c.subject != "user" else "")
        for c in _facts(text)
    ]


@pytest.fixture
def extract() -> Callable[..., Extraction]:
    """A function: message text → Extraction."""
    return _extract


@pytest.fixture
def facts() -> Callable[[str], list[Candidate]]:
    """A function: message text → candidates."""
    return _facts


@pytest.fixture
def brief() -> Callable[[str], list[str]]:
    """A function: message text → `topic|slot|value` of each candidate."""
    return _brief
