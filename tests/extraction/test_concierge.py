"""The travel concierge's three sessions, word for word."""

from datetime import UTC, datetime

from langmem_adapter.extraction.rules import RuleExtractor
from langmem_adapter.records import Message, Turn


def _turn(text: str) -> Turn:
    message = Message(id="m1", role="human", text=text)
    return Turn(
        turn_id="m1", user_id="u", at=datetime(2026, 5, 4, tzinfo=UTC), messages=(message,), digest="d", source_id="s"
    )


def _facts(text: str) -> list[tuple[str, str, str]]:
    return [(c.topic, c.value, c.content) for c in RuleExtractor().extract(_turn(text)).candidates]


def test_the_first_session_teaches_diet_name_and_seat():
    assert _facts("Hi! I'm a vegetarian. Please call me Ada, and I prefer the aisle seat.") == [
        ("diet", "vegetarian", "The user follows a vegetarian diet."),
        ("identity/name", "Ada", "The user goes by Ada."),
        ("travel/seat", "aisle", "The user prefers aisle seating on flights."),
    ]


def test_the_second_session_says_the_same_diet():
    assert _facts("As I said, I'm vegetarian.") == [("diet", "vegetarian", "The user follows a vegetarian diet.")]


def test_the_third_session_changes_the_diet():
    assert _facts("I've started eating fish again.") == [("diet", "eats fish", "The user eats fish again.")]
