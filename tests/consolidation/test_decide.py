"""The pure decision: same, replaced, contested, new."""

from typing import Any

import pytest
from support import START, fact, record, source

from langmem_adapter.consolidation.decide import Decision, decide
from langmem_adapter.records import Candidate, Judgement, MemoryRecord
from langmem_adapter.topics import Topics
from langmem_adapter.trust import TrustPolicy


def decided(candidate: Candidate, *known: MemoryRecord, source_id: str = "s9") -> Decision:
    return decide(candidate, known, source_id=source_id, topics=Topics(), policy=TrustPolicy(), now=START)


def diet(value: str, source_type: str = "user_explicit", **fields: Any) -> Candidate:
    return fact(f"The user eats {value}.", "diet", value, source_type=source_type, **fields)


def likes(thing: str, value: str, **fields: Any) -> Candidate:
    verb = {"like": "likes", "dislike": "dislikes"}[value]
    return fact(f"The user {verb} {thing}.", "preference/likes", value, slot=thing, **fields)


def liked(thing: str, value: str, n: int = 1, **fields: Any) -> MemoryRecord:
    c = likes(thing, value)
    return record(memory_id=f"m_{n}", seq=n, content=c.content, topic=c.topic, slot=thing, value=value, **fields)


def test_nothing_known_is_new():
    assert decided(diet("fish")) == Decision("CREATE", "new")


def test_the_empty_store_never_answers_noop():
    assert decided(diet("fish", intent="assert")).action == "CREATE"


@pytest.mark.parametrize("value", ["vegetarian", "Vegetarian", " VEGETARIAN. "])
def test_an_equal_value_is_the_same_fact(value):
    incumbent = record()
    candidate = fact("The user is a vegetarian.", "diet", value)
    assert decided(candidate, incumbent) == Decision("NOOP", "corroborated", incumbent)


def test_a_trusted_contradiction_on_an_exclusive_topic_replaces():
    incumbent = record()
    assert decided(diet("fish"), incumbent) == Decision("UPDATE", "trusted_and_newer", incumbent)


def test_an_untrusted_contradiction_is_kept_as_a_challenger():
    incumbent = record()
    assert decided(diet("steak", "user_implicit"), incumbent) == Decision("CONTEST", "below_trust", incumbent)


def test_more_detail_merges_and_less_detail_corroborates():
    home = record(content="The user lives in Bonn.", topic="home/location", value="Bonn")
    more = fact("The user lives in Bonn, Germany.", "home/location", "Bonn, Germany")
    assert decided(more, home) == Decision("MERGE", "more_detail", home)
    rich = home.change(content=more.content, value=more.value)
    less = fact("The user lives in Bonn.", "home/location", "Bonn")
    assert decided(less, rich) == Decision("NOOP", "corroborated", rich)


def test_a_tools_detail_does_not_overwrite_the_users_words():
    home = record(content="The user lives in Bonn.", topic="home/location", value="Bonn")
    tool = fact("The user lives in Bonn, Germany.", "home/location", "Bonn, Germany", source_type="tool_output")
    assert decided(tool, home) == Decision("NOOP", "corroborated", home)


def test_york_is_not_new_york():
    home = record(content="The user lives in York.", topic="home/location", value="York")
    assert decided(fact("The user lives in New York.", "home/location", "New York"), home).action == "UPDATE"


def test_love_then_hate_of_one_dish_is_a_contradiction():
    loved = liked("chinese food", "like")
    assert decided(likes("chinese food", "dislike"), loved) == Decision("UPDATE", "trusted_and_newer", loved)


def test_two_dishes_stand_side_by_side():
    assert decided(likes("ramen", "like"), liked("chinese food", "like")) == Decision("CREATE", "new")


def test_switching_from_x_to_y_supersedes_x_by_name():
    vim = record(content="The user uses Vim.", topic="preference/tool", slot="vim", value="Vim")
    helix = fact("The user uses Helix.", "preference/tool", "Helix", slot="helix", replaces="vim")
    assert decided(helix, vim) == Decision("UPDATE", "replaced_by_name", vim)


def test_switching_from_something_unknown_is_new():
    other = record(content="The user uses Make.", topic="preference/tool", slot="make", value="Make")
    helix = fact("The user uses Helix.", "preference/tool", "Helix", slot="helix", replaces="vim")
    assert decided(helix, other) == Decision("CREATE", "new")


def test_another_persons_fact_is_not_compared_with_the_users():
    mine = record()
    hers = diet("fish", subject="daughter")
    assert decided(hers, mine) == Decision("CREATE", "new")


def test_free_facts_with_equal_words_are_the_same():
    known = record(topic="general", content="The user collects old stamps.", value="")
    again = fact("The user collects OLD stamps")
    other = fact("The user collects new stamps.")
    assert decided(again, known) == Decision("NOOP", "corroborated", known)
    assert decided(other, known) == Decision("CREATE", "new")


@pytest.mark.parametrize(
    "other", ["The user wants 5 bullets.", "The user does not want 3 bullets.", "The user never wants 3 bullets."]
)
def test_numbers_and_negation_make_another_fact(other):
    known = record(topic="general", content="The user wants 3 bullets.", value="")
    assert decided(fact(other), known) == Decision("CREATE", "new")


def test_the_same_dislike_is_not_the_like():
    known = liked("opera", "like")
    assert decided(likes("opera", "dislike", source_type="tool_output"), known).action == "CONTEST"


class TestRetract:
    def gone(self, value: str = "vegetarian", source_type: str = "user_explicit") -> Candidate:
        return diet(value, source_type, intent="retract")

    def test_what_no_longer_holds_is_retracted(self):
        incumbent = record()
        assert decided(self.gone(), incumbent) == Decision("RETRACT", "no_longer_holds", incumbent)

    def test_without_a_value_whatever_held_is_retracted(self):
        incumbent = record()
        candidate = Candidate(content="The user changed diet.", topic="diet", intent="retract")
        assert decided(candidate, incumbent) == Decision("RETRACT", "no_longer_holds", incumbent)

    def test_another_value_is_left_alone(self):
        assert decided(self.gone("vegan"), record()) == Decision("NOOP", "nothing_to_retract")

    def test_below_trust_it_does_nothing_and_says_so(self):
        incumbent = record()
        assert decided(self.gone(source_type="tool_output"), incumbent) == Decision(
            "NOOP", "retract_below_trust", incumbent
        )


class TestContest:
    incumbent = record(contested_by=("m_2",))
    challenger = record(
        source("user_implicit", "s2", message_id="h2"),
        memory_id="m_2",
        seq=2,
        status="contested",
        contests="m_1",
        content="The user eats steak.",
        value="steak",
    )

    def test_a_human_who_restates_the_incumbent_settles_it(self):
        candidate = diet("vegetarian", "user_implicit", message_id="h3")
        assert decided(candidate, self.incumbent, self.challenger) == Decision(
            "NOOP", "settled_for_incumbent", self.incumbent, closed=(self.challenger,)
        )

    def test_a_human_who_restates_the_challenger_settles_it(self):
        candidate = diet("steak", "user_implicit", message_id="h3")
        assert decided(candidate, self.incumbent, self.challenger) == Decision(
            "UPDATE", "settled_for_challenger", self.incumbent, absorbed=(self.challenger,)
        )

    @pytest.mark.parametrize("value", ["vegetarian", "steak"])
    def test_a_tool_settles_nothing(self, value):
        decision = decided(diet(value, "tool_output", message_id="t1"), self.incumbent, self.challenger)
        assert (decision.action, decision.closed, decision.absorbed) == ("NOOP", (), ())

    def test_a_statement_that_passes_the_gate_settles_it(self):
        candidate = diet("fish", message_id="h3")
        assert decided(candidate, self.incumbent, self.challenger) == Decision(
            "UPDATE", "trusted_and_newer", self.incumbent, closed=(self.challenger,)
        )

    def test_repeating_it_in_the_same_message_settles_nothing(self):
        candidate = diet("steak", "user_implicit", message_id="h2")
        assert decided(candidate, self.incumbent, self.challenger).action == "NOOP"


class TestResync:
    """Trap 4: an unchanged system-of-record value does not undo a person's correction."""

    before = record(
        source("bootstrapped", "crm"),
        memory_id="m_1",
        status="superseded",
        superseded_by="m_2",
        topic="home/location",
        content="The user lives in Rome.",
        value="Rome",
    )
    after = record(
        source("user_explicit", "correction"),
        memory_id="m_2",
        seq=2,
        topic="home/location",
        content="The user lives in Bonn.",
        value="Bonn",
    )

    def synced(self, value: str) -> Candidate:
        return fact(f"The user lives in {value}.", "home/location", value, source_type="bootstrapped")

    def test_the_unchanged_value_is_no_news(self):
        decision = decided(self.synced("Rome"), self.before, self.after, source_id="crm")
        assert decision == Decision("NOOP", "unchanged_resync", self.after)

    def test_a_changed_value_is(self):
        decision = decided(self.synced("Oslo"), self.before, self.after, source_id="crm")
        assert decision == Decision("UPDATE", "trusted_and_newer", self.after)

    def test_so_is_another_systems_value(self):
        decision = decided(self.synced("Rome"), self.before, self.after, source_id="hr")
        assert decision == Decision("UPDATE", "trusted_and_newer", self.after)


def test_old_superseded_evidence_does_not_count():
    old = record(memory_id="m_0", seq=0, status="superseded", superseded_by="m_1", value="fish")
    incumbent = record()
    assert decided(diet("fish"), old, incumbent) == Decision("UPDATE", "trusted_and_newer", incumbent)


def test_an_expired_record_is_not_in_the_way():
    assert decided(diet("fish", "tool_output"), record(expires_at=START)) == Decision("CREATE", "new")


@pytest.mark.parametrize("verdict", ["duplicate", "merge"])
def test_no_judge_calls_two_values_of_an_exclusive_slot_the_same(verdict):
    home = record(content="The user lives in Rome.", topic="home/location", value="Rome")
    judgement = Judgement(verdict=verdict, target_id=home.memory_id)

    def judged(content: str, value: str) -> Decision:
        return decide(
            fact(content, "home/location", value),
            [home],
            source_id="s9",
            topics=Topics(),
            policy=TrustPolicy(),
            now=START,
            judgement=judgement,
        )

    assert judged("The user lives in Oslo.", "Oslo") == Decision("UPDATE", "trusted_and_newer", home)
    assert judged("Rome is where the user lives.", "the city of Rome").action in ("NOOP", "MERGE")


def test_what_was_said_earlier_is_filed_behind_what_was_said_later():
    incumbent = record()
    known = {"source_id": "s9", "topics": Topics(), "policy": TrustPolicy(), "now": START, "later": lambda r: True}
    assert decide(diet("fish"), [incumbent], **known) == Decision("CREATE", "said_earlier", behind=incumbent)
    gone = diet(incumbent.value, intent="retract")
    assert decide(gone, [incumbent], **known) == Decision("NOOP", "said_earlier", incumbent)
