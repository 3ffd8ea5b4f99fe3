"""Where a fact stands that a person put into other words."""

import pytest
from support import record

from langmem_adapter.consolidation.correct import corrected_to


@pytest.mark.parametrize(
    ("content", "slot", "value", "new", "expected"),
    [
        ("The user lives in Rome.", "", "Rome", "The user lives in Bonn.", ("", "Bonn")),
        ("The user lives in Rome.", "", "Rome", "Home is Bonn.", ("", "home is bonn")),
        (
            "The user is allergic to peanuts.",
            "peanut",
            "allergic",
            "The user is allergic to cats.",
            ("cat", "allergic"),
        ),
        ("The user is allergic to milk.", "milk", "allergic", "The user is allergic to eggs.", ("eggs", "allergic")),
        ("The user likes tea.", "tea", "like", "The user likes coffee.", ("coffee", "like")),
        ("The user hates coriander.", "coriander", "dislike", "The user hates parsley.", ("parsley", "dislike")),
        (
            "The user hates coriander.",
            "coriander",
            "dislike",
            "The user loves coriander.",
            ("coriander", "user loves coriander"),
        ),
        (
            "The user hates coriander.",
            "coriander",
            "dislike",
            "The user loves parsley.",
            ("loves parsley", "user loves parsley"),
        ),
        (
            "The user has a dog called Rexy.",
            "dog rexy",
            "Rexy",
            "The user has a dog called Bello.",
            ("dog bello", "Bello"),
        ),
        (
            "The user speaks French.",
            "speaks french",
            "French",
            "The user speaks Spanish!",
            ("speaks spanish", "Spanish"),
        ),
        ("The user drives a Tesla.", "drive a tesla", "yes", "The user drives a Fiat.", ("drive a fiat", "yes")),
        ("The user uses Vim.", "vim", "Vim", "The user uses Helix.", ("helix", "Helix")),
        (
            "The user's favourite colour is blue.",
            "favourite colour",
            "blue",
            "The user's favourite colour is green.",
            ("favourite colour", "green"),
        ),
        (
            "The user's favourite colour is blue.",
            "favourite colour",
            "blue",
            "Green is the user's favourite colour.",
            ("favourite colour", "green is the user's favourite colour"),
        ),
        ("The user is ill.", "user is ill", "user is ill", "The user is well.", ("user is well", "user is well")),
        ("The user is ill.", "health", "ill", "The user is well.", ("health", "well")),
        ("The user is ill.", "ill", "yes", "The user.", ("", "user")),
    ],
)
def test_words_of_its_slot_that_are_not_said_any_more_give_way(content, slot, value, new, expected):
    candidate = corrected_to(record(content=content, slot=slot, value=value), new)
    assert (candidate.slot, candidate.value) == expected
