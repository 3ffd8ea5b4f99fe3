"""A candidate rests on its words or is refused with a reason."""

import pytest

from langmem_adapter.extraction.grounding import ground
from langmem_adapter.records import Candidate, Message

MESSAGES = {
    "m1": Message(id="m1", role="human", text="I’m  vegan,\nand I live in Ghent with 2 cats. My name isn't Bob."),
    "m2": Message(id="m2", role="human", text="Cafe\u0301 au lait is fine."),
}


def _reason(content: str, excerpt: str, message_id: str | None = "m1", **fields: str) -> str | None:
    return ground(Candidate(content=content, excerpt=excerpt, message_id=message_id, **fields), MESSAGES)


@pytest.mark.parametrize(
    ("content", "excerpt", "message_id"),
    [
        ("The user follows a vegan diet.", "I'm vegan", "m1"),
        ("The user lives in Ghent.", "i live in ghent", "m1"),
        ("The user has 2 cats.", "with 2 cats", "m1"),
        ("The user's name is not Bob.", "My name isn't Bob", "m1"),
        ("The user lives in Ghent.", "vegan, and I live in Ghent", None),
        ("The user drinks café au lait.", "Café au lait", "m2"),
    ],
)
def test_a_fact_with_its_words_is_grounded(content, excerpt, message_id):
    """Up to Unicode form, case, apostrophes and white space."""
    assert _reason(content, excerpt, message_id) is None


@pytest.mark.parametrize(
    ("reason", "content", "excerpt", "message_id"),
    [
        ("no_excerpt", "The user is vegan.", "  ", "m1"),
        ("unknown_message", "The user is vegan.", "I'm vegan", "m9"),
        ("excerpt_not_in_message", "The user is vegan.", "I am so vegan", "m1"),
        ("excerpt_not_in_message", "The user is vegan.", "I'm vegan", "m2"),
        ("ungrounded_name", "The user lives in Bruges.", "I live in Ghent", "m1"),
        ("ungrounded_number", "The user has 3 cats.", "with 2 cats", "m1"),
        ("negation_differs", "The user's name is Bob.", "My name isn't Bob", "m1"),
        ("negation_differs", "The user is not vegan.", "I'm vegan", "m1"),
        ("placeholder", "The user is called {name}.", "I'm vegan", "m1"),
        ("placeholder", "The user is called John Doe.", "I'm vegan", "m1"),
        ("placeholder", "The user lives in <insert city>.", "I'm vegan", "m1"),
        ("placeholder", "The user is [your name].", "I'm vegan", "m1"),
    ],
)
def test_a_fact_without_its_words_is_refused(reason, content, excerpt, message_id):
    """Each reason by its code."""
    assert _reason(content, excerpt, message_id) == reason


def test_a_placeholder_in_the_value_is_refused():
    """Also where the content does not show it."""
    assert _reason("The user follows a vegan diet.", "I'm vegan", value="{diet}") == "placeholder"
