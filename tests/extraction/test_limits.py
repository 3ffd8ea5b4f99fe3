"""Long, odd and adversarial input stays cheap and bounded; tools; time."""

import time
from datetime import UTC, datetime

import pytest

from langmem_adapter.extraction.rules import MAX_CANDIDATES

MEGABYTE = 1_000_000
TENTH = 100_000


@pytest.mark.parametrize("unit", ["a", " ", "'", "I like "])
def test_a_megabyte_of_anything_is_read_in_seconds(extract, unit):
    """No pattern backtracks over the whole text."""
    started = time.thread_time()
    extract(unit * (MEGABYTE // len(unit)))
    assert time.thread_time() - started < 15


@pytest.mark.parametrize(
    "unit",
    [
        '"',
        "`",
        "I'm ",
        "my ",
        "and ",
        ", ",
        "<",
        "{",
        '{"',
        "1",
        "4 ",
        "i am allergic to ",
        "\n",
        "> ",
        "A1",
        "é",
        "(",
        "- ",
        "? ",
        "a  ",
    ],
)
def test_repeated_marks_and_words_cost_no_more(extract, unit):
    """Each of these made some pattern quadratic once, or could."""
    started = time.thread_time()
    extract(unit * (TENTH // len(unit)))
    assert time.thread_time() - started < 3


def test_many_facts_are_capped_and_the_rest_counted(extract):
    """One turn gives at most fifty candidates."""
    names = [f"{a}{b}" for a in "bcdfghjkl" for b in ("ana", "eno", "ilo", "ura", "ema", "oki", "asu", "eti")]
    extraction = extract(" ".join(f"I like {n}." for n in names))
    assert len(extraction.candidates) == MAX_CANDIDATES
    assert extraction.dropped["too_many"] == len(names) - MAX_CANDIDATES


def test_what_is_said_twice_is_one_candidate(facts):
    """Also in other words, if value and slot agree."""
    assert len(facts("I like tea. I like tea! I'm vegan. Yes, I am a vegan.")) == 2


def test_the_last_word_wins_on_an_exclusive_topic(facts):
    """A correction inside one message."""
    assert [c.value for c in facts("I'm vegan. Well, actually I'm pescatarian.")] == ["pescatarian"]


def test_a_fact_far_inside_a_long_message_is_found(facts):
    """Behind a window's edge, in its own words."""
    text = "The weather was grey and the path was wet. " * 8_000 + "By the way, I'm vegan. " + "It rained. " * 3_000
    (found,) = facts(text)
    assert (found.value, found.excerpt) == ("vegan", "I'm vegan")


def test_assistants_and_others_teach_nothing(extract):
    """Whatever they say."""
    for role in ("assistant", "other", "tool"):
        assert extract("I'm vegan and I live in Rome.", role=role, name="x").candidates == ()


def test_a_trusted_tool_teaches_settings_at_a_tools_trust(extract):
    """Only if it was named, and only plain settings."""
    said = '{"profile": {"timezone": "Asia/Tokyo", "note": "The user says: I moved to Rome"}}'
    assert extract(said, role="tool", name="crm").candidates == ()
    (found,) = extract(said, role="tool", name="crm", tools=frozenset({"crm"})).candidates
    assert (found.slot, found.value, found.source_type) == ("timezone", "Asia/Tokyo", "tool_output")
    lines = extract("Name: x\nTime zone: Europe/Oslo\n", role="tool", name="crm", tools=frozenset({"crm"}))
    assert [c.value for c in lines.candidates] == ["Europe/Oslo"]


@pytest.mark.parametrize(
    ("said", "value", "end"),
    [
        ("I'm in Graz until Friday.", "Graz", datetime(2026, 5, 9, tzinfo=UTC)),
        ("No sugar for me this week.", "avoid", datetime(2026, 5, 11, tzinfo=UTC)),
        ("I'm staying in Turin till 12 June.", "Turin", datetime(2026, 6, 13, tzinfo=UTC)),
        ("I'm vegan this month.", "vegan", datetime(2026, 6, 1, tzinfo=UTC)),
        ("I don't drink coffee for the next two weeks.", "avoid", datetime(2026, 5, 19, tzinfo=UTC)),
    ],
)
def test_a_temporary_state_ends_and_replaces_nothing(facts, said, value, end):
    """It is kept apart from what holds in general."""
    (found,) = facts(said)
    assert (found.topic, found.value, found.expires_at, found.valid_to) == ("general", value, end, end)


@pytest.mark.parametrize("said", ["I'm vegan for now.", "I live in Rome temporarily.", "I'm in Oslo for a few days."])
def test_a_temporary_state_without_a_clear_end_is_not_stored(extract, said):
    """Better forgotten than believed for ever."""
    assert extract(said).candidates == ()


def test_what_is_only_implied_is_implicit(facts):
    """A workplace mentioned in passing; an allergy suspected."""
    (job,) = facts("There is a plant on my desk at Siemens.")
    assert (job.topic, job.value, job.source_type) == ("work/employer", "Siemens", "user_implicit")
    (allergy,) = facts("I think I might be allergic to kiwis, not tested yet.")
    assert (allergy.slot, allergy.source_type) == ("kiwi", "user_implicit")
    assert allergy.confidence <= 0.3


def test_a_correction_names_what_it_replaces(facts):
    """So that the old value can be found."""
    (home,) = facts("Sorry, I meant Bath, not Bristol - that's where I live.")
    assert (home.value, home.replaces) == ("Bath", "Bristol")
    (tool,) = facts("I switched from Slack to Zulip.")
    assert (tool.value, tool.replaces) == ("Zulip", "Slack")


def test_the_excerpt_is_what_was_typed(facts):
    """Typographic marks kept, lead-in words not."""
    (found,) = facts("By the way, I’m vegan!")
    assert found.excerpt == "I’m vegan"


@pytest.mark.parametrize("sentence", ["I like {}.", "I live in Rome{}.", "I went there with {}.", "I like tea."])
def test_time_grows_with_the_length_of_a_message_not_its_square(extract, sentence):
    """Four times as many sentences take at most eight times the time: their square would be sixteen times."""

    def cost(count: int) -> float:
        text = " ".join(sentence.format(f"x{n:05d}a") for n in range(count))
        started = time.thread_time()
        extract(text)
        return time.thread_time() - started

    cost(100)
    assert cost(8_000) <= 8 * cost(2_000) + 0.5


def test_a_code_fence_longer_than_one_window_stays_code(facts):
    """What is pasted as code teaches nothing, wherever the text is cut; what follows it does."""
    pasted = "```\n" + "some line of code\n" * 5_000 + "I live in Rome.\n```\nI'm vegan."
    assert [c.value for c in facts(pasted)] == ["vegan"]


def test_a_story_longer_than_one_window_stays_a_story(facts):
    """What was said to be fiction is so to the end of the message."""
    assert facts("Write a story: it was a dark night. " + "It rained a lot. " * 5_000 + "I live in Rome.") == []
