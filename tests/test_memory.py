"""`Memory` on every store: the story, the traps, contests, slots, why, correction, erasure, bad input."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from support import Clock, Scripted, fact, record

from langmem_adapter.consolidation.rules import record_put
from langmem_adapter.errors import InvalidInput, MemoryNotFound, MissingUser, UnknownTopic
from langmem_adapter.memory import Memory
from langmem_adapter.namespaces import namespace
from langmem_adapter.records import MemoryRecord, Operation

VEGETARIAN = "The user follows a vegetarian diet."
FISH = "The user eats fish again."
ADA = "The user goes by Ada."
AISLE = "The user prefers aisle seating on flights."


def story(memory: Memory, until: int = 3) -> list[list[Operation]]:
    sessions = [
        ("s1", "user_implicit", "Hi! I'm a vegetarian. Please call me Ada, and I prefer the aisle seat."),
        ("s2", "user_implicit", "As I said, I'm vegetarian."),
        ("s3", "user_explicit", "I've started eating fish again."),
    ]
    return [
        memory.add(text, user_id="ada", session_id=s, source_type=kind)  # type: ignore[arg-type]
        for s, kind, text in sessions[:until]
    ]


def by_content(memory: Memory, user_id: str = "ada") -> dict[str, MemoryRecord]:
    return {r.content: r for r in memory.get_all(user_id=user_id, status="all")}


class TestStory:
    def test_operations(self, memory):
        done = [[(o.action, o.content) for o in ops] for ops in story(memory)]
        assert done == [
            [("CREATE", VEGETARIAN), ("CREATE", ADA), ("CREATE", AISLE)],
            [("NOOP", VEGETARIAN)],
            [("UPDATE", FISH)],
        ]

    def test_confidence_sources_and_lineage(self, memory):
        story(memory, 1)
        assert {c: r.confidence for c, r in by_content(memory).items()} == {VEGETARIAN: 0.65, ADA: 0.65, AISLE: 0.65}
        story(memory, 2)
        assert by_content(memory)[VEGETARIAN].confidence == 0.70
        [[update]] = story(memory)[2:]
        records = by_content(memory)
        fish, old = records[FISH], records[VEGETARIAN]
        assert (update.memory_id, update.target_id) == (fish.memory_id, old.memory_id)
        assert (fish.confidence, fish.status, fish.supersedes) == (0.90, "active", (old.memory_id,))
        assert [(s.source_id, s.role) for s in fish.sources] == [
            ("s1", "lineage"),
            ("s2", "lineage"),
            ("s3", "support"),
        ]
        assert (old.status, old.superseded_by) == ("superseded", fish.memory_id)
        assert old.invalidated_at is not None

    def test_another_user_sees_nothing(self, memory):
        story(memory)
        assert memory.search("diet", user_id="bob") == []
        assert memory.get_all(user_id="bob", status="all") == []
        fish = by_content(memory)[FISH]
        assert memory.get(fish.memory_id, user_id="bob") is None
        for read in (memory.why, memory.history):
            with pytest.raises(MemoryNotFound):
                read(fish.memory_id, user_id="bob")
        memory.add("I'm vegan.", user_id="bob", session_id="s1")  # nor once he has memories of his own
        assert memory.get(fish.memory_id, user_id="bob") is None
        assert [h.record.user_id for h in memory.search("diet", user_id="bob", k=100)] == ["bob"]

    def test_reference_scores(self, memory):
        story(memory)
        expected = {
            "any dietary restrictions I should know about?": {FISH: 0.473, AISLE: 0.388, ADA: 0.370},
            "what seat should I book on the flight?": {FISH: 0.392, AISLE: 0.444, ADA: 0.370},
            "what should we order for lunch?": {FISH: 0.370, AISLE: 0.349, ADA: 0.370},
        }
        for query, scores in expected.items():
            hits = memory.search(query, user_id="ada", mode="vector")
            assert {h.record.content: round(h.score, 3) for h in hits} == scores

    def test_revoking_the_first_session_erases_what_rests_on_it_alone(self, memory):
        story(memory)
        before = by_content(memory)
        receipt = memory.forget_source("s1", user_id="ada")
        after = by_content(memory)
        assert set(receipt.erased) == {before[ADA].memory_id, before[AISLE].memory_id}
        assert set(after) == {VEGETARIAN, FISH}
        assert set(receipt.rebuilt) == {r.memory_id for r in after.values()}
        assert not any(r.needs_regeneration for r in after.values())
        assert {r.memory_id for r in after.values()} == {before[VEGETARIAN].memory_id, before[FISH].memory_id}
        assert after[VEGETARIAN].confidence == 0.65
        assert {s.source_id for r in after.values() for s in r.sources} == {"s2", "s3"}

    def test_revoking_the_last_session_brings_back_what_it_replaced(self, memory):
        story(memory)
        memory.forget_source("s3", user_id="ada")
        after = by_content(memory)
        assert set(after) == {VEGETARIAN, ADA, AISLE}
        assert (after[VEGETARIAN].status, after[VEGETARIAN].superseded_by) == ("active", None)

    def test_the_same_turn_five_times_changes_nothing(self, memory):
        story(memory)
        before = (by_content(memory), raw(memory))
        for _ in range(5):
            assert story(memory) == [[], [], []]
        assert (by_content(memory), raw(memory)) == before


def raw(memory: Memory) -> list[tuple[Any, ...]]:
    return sorted((i.namespace, i.key, str(i.value)) for i in memory.store.search(("memories",), limit=1_000))


class TestTraps:
    """A rejected contradiction, a tool, a sync: none of them overwrites what the user said."""

    def test_trap_1_lineage_does_not_lower_the_gate(self, make):
        memory = make(extractor=DIETS)
        memory.add("veg", user_id="u", session_id="s1", source_type="user_implicit")
        memory.add("fish", user_id="u", session_id="s2", source_type="user_explicit")
        [op] = memory.add("steak", user_id="u", session_id="s3", source_type="user_implicit")
        assert op.action == "CONTEST"
        assert active(memory) == ["The user eats fish."]

    def test_trap_2_many_tools_do_not_outrank_the_user(self, make):
        memory = make(extractor=DIETS)
        memory.add("veg", user_id="u", session_id="s1")
        memory.add("veg", user_id="u", session_id="t0", source_type="tool_output")
        assert memory.get_all(user_id="u")[0].confidence == 0.90
        for i in range(5):
            memory.add("steak", user_id="u", session_id=f"t{i + 1}", source_type="tool_output")
        assert active(memory) == [VEGETARIAN]
        assert memory.get_all(user_id="u")[0].confidence == 0.90
        [challenger] = memory.get_all(user_id="u", status="contested")
        assert challenger.confidence == 0.30

    def test_trap_3_a_rejected_contradiction_is_not_corroboration(self, make):
        memory = make(extractor=DIETS)
        memory.add("veg", user_id="u", session_id="s1")
        memory.add("steak", user_id="u", session_id="s2", source_type="user_implicit")
        [incumbent] = memory.get_all(user_id="u")
        assert (incumbent.confidence, [s.source_id for s in incumbent.sources]) == (0.90, ["s1"])

    def test_trap_4_an_unchanged_sync_does_not_undo_a_correction(self, memory):
        def sync(city: str) -> Operation:
            return memory.add_fact(
                f"The user lives in {city}.", user_id="u", topic="home/location", value=city, source_id="crm:7"
            )

        first = sync("Rome")
        corrected = memory.update(first.memory_id, user_id="u", content="The user lives in Bonn.")
        assert (corrected.action, corrected.target_id) == ("UPDATE", first.memory_id)
        again = sync("Rome")
        assert (again.action, again.reason, again.memory_id) == ("NOOP", "unchanged_resync", corrected.memory_id)
        assert active(memory) == ["The user lives in Bonn."]
        assert sync("Oslo").action == "UPDATE"
        assert active(memory) == ["The user lives in Oslo."]

    def test_a_retraction_below_trust_is_refused_with_its_reason(self, make):
        memory = make(extractor=DIETS)
        memory.add("veg", user_id="u", session_id="s1")
        [op] = memory.add("no longer veg", user_id="u", session_id="t", source_type="tool_output")
        assert (op.action, op.reason) == ("NOOP", "retract_below_trust")
        assert active(memory) == [VEGETARIAN]


DIETS = Scripted(
    {
        "veg": [fact(VEGETARIAN, "diet", "vegetarian", excerpt="veg")],
        "fish": [fact("The user eats fish.", "diet", "fish", excerpt="fish")],
        "steak": [fact("The user eats steak.", "diet", "steak", excerpt="steak")],
        "steak, really": [fact("The user eats steak.", "diet", "steak", excerpt="steak")],
        "veg, really": [fact(VEGETARIAN, "diet", "vegetarian", excerpt="veg")],
        "no longer veg": [
            fact("The user is no longer vegetarian.", "diet", "vegetarian", excerpt="no longer veg", intent="retract")
        ],
    }
)


def active(memory: Memory, user_id: str = "u") -> list[str]:
    return [r.content for r in memory.get_all(user_id=user_id)]


class TestContest:
    def contested(self, make) -> Memory:
        memory = make(extractor=DIETS)
        memory.add("veg", user_id="u", session_id="s1")
        [op] = memory.add("steak", user_id="u", session_id="s2", source_type="user_implicit")
        assert (op.action, op.target_id) == ("CONTEST", memory.get_all(user_id="u")[0].memory_id)
        return memory

    def test_it_is_linked_both_ways_and_injected_with_both_dates(self, make):
        memory = self.contested(make)
        [incumbent] = memory.get_all(user_id="u")
        [challenger] = memory.get_all(user_id="u", status="contested")
        assert (incumbent.contested_by, challenger.contests) == ((challenger.memory_id,), incumbent.memory_id)
        [hit] = memory.search("diet", user_id="u")
        block = memory.block([hit]).text
        day = f"{incumbent.confirmed_at:%Y-%m-%d}"
        assert f"contested] {VEGETARIAN} (said {day}; on {day} the user also said: The user eats steak.)" in block
        assert [r.content for r in memory.why(incumbent.memory_id, user_id="u").contested_by] == [
            "The user eats steak."
        ]

    def test_a_tools_challenge_is_injected_without_its_text(self, make):
        memory = make(extractor=DIETS)
        memory.add("veg", user_id="u", session_id="s1")
        memory.add("steak", user_id="u", session_id="t", source_type="tool_output")
        block = memory.block(memory.search("diet", user_id="u")).text
        assert "a tool result disagrees" in block
        assert "steak" not in block

    def test_a_reply_that_restates_the_challenger_settles_it(self, make):
        memory = self.contested(make)
        [op] = memory.add("steak, really", user_id="u", session_id="s3", source_type="user_implicit")
        assert (op.action, op.reason) == ("UPDATE", "settled_for_challenger")
        assert active(memory) == ["The user eats steak."]
        assert memory.get_all(user_id="u", status="contested") == []
        assert memory.get_all(user_id="u")[0].confidence == 0.70  # two implicit sources agree

    def test_a_reply_that_restates_the_incumbent_settles_it(self, make):
        memory = self.contested(make)
        [op] = memory.add("veg, really", user_id="u", session_id="s3")
        assert (op.action, op.reason) == ("NOOP", "settled_for_incumbent")
        [incumbent] = memory.get_all(user_id="u")
        assert (incumbent.content, incumbent.contested_by, incumbent.confidence) == (VEGETARIAN, (), 0.95)
        assert memory.get_all(user_id="u", status="contested") == []

    def test_a_person_settles_it(self, make):
        memory = self.contested(make)
        [challenger] = memory.get_all(user_id="u", status="contested")
        op = memory.update(challenger.memory_id, user_id="u", content="The user eats steak on Sundays.")
        assert op.action == "UPDATE"
        assert active(memory) == ["The user eats steak on Sundays."]
        assert memory.get_all(user_id="u", status="contested") == []

    def test_the_challenger_is_decided_again_when_the_incumbent_goes(self, make):
        memory = self.contested(make)
        memory.delete(memory.get_all(user_id="u")[0].memory_id, user_id="u")
        [heir] = memory.get_all(user_id="u")
        assert (heir.content, heir.contests, heir.confidence) == ("The user eats steak.", None, 0.65)
        assert memory.get_all(user_id="u", status="contested") == []

    def test_a_challenger_was_never_believed(self, make):
        clock = Clock()
        memory = make(extractor=DIETS, clock=clock)
        memory.add("veg", user_id="u", session_id="s1")
        clock.forward(days=1)
        memory.add("steak", user_id="u", session_id="s2", source_type="user_implicit")
        clock.forward(days=1)
        during = clock.now
        clock.forward(days=1)
        memory.add("steak, really", user_id="u", session_id="s3", source_type="user_implicit")
        clock.forward(days=1)
        assert [h.record.content for h in memory.search("", user_id="u", as_of=during)] == [VEGETARIAN]
        assert [h.record.content for h in memory.search("", user_id="u")] == ["The user eats steak."]


class TestTime:
    def test_as_of_answers_what_was_believed_then(self, make):
        clock = Clock()
        memory = make(extractor=DIETS, clock=clock)
        for text in ("veg", "fish", "steak"):
            memory.add(text, user_id="u", session_id=text)
            clock.forward(days=10)
        days = [
            [h.record.content for h in memory.search("", user_id="u", as_of=clock.now - timedelta(days=d))]
            for d in (25, 15, 5, 35)
        ]
        assert days == [[VEGETARIAN], ["The user eats fish."], ["The user eats steak."], []]

    def test_valid_at_answers_what_was_true_then(self, memory):
        memory.add_fact(
            "The user lived in Oslo.", user_id="u", source_id="crm", topic="general",
            valid_from="2020-01-01T00:00:00+00:00", valid_to="2021-01-01T00:00:00+00:00",
        )  # fmt: skip
        assert len(memory.search("Oslo", user_id="u", valid_at="2020-06-01T00:00:00Z")) == 1
        assert memory.search("Oslo", user_id="u", valid_at="2022-06-01T00:00:00Z") == []

    def test_a_topics_ttl_hides_and_corroboration_renews(self, make):
        clock = Clock()
        memory = make(clock=clock)

        def say(n: int) -> None:
            memory.add_fact(
                "The user works at Acme.", user_id="u", topic="work/employer", value="Acme", source_id=f"s{n}"
            )

        say(1)
        clock.forward(days=300)
        say(2)
        clock.forward(days=300)
        assert active(memory) == ["The user works at Acme."]
        clock.forward(days=66)
        assert active(memory) == []
        assert memory.search("Acme", user_id="u") == []
        assert len(memory.get_all(user_id="u", status="all")) == 1

    def test_old_memories_fade_to_a_lower_band(self, make):
        clock = Clock()
        memory = make(extractor=DIETS, clock=clock)
        memory.add("veg", user_id="u", session_id="s1")
        bands = []
        for _ in range(3):
            bands.append(memory.block(memory.search("", user_id="u")).text.split("confidence: ")[1].split(",")[0])
            clock.forward(days=300)
        assert bands == ["high", "medium", "low"]

    def test_a_clock_that_steps_back_does_not_change_who_is_newest(self, make):
        clock = Clock()
        memory = make(extractor=DIETS, clock=clock)
        memory.add("veg", user_id="u", session_id="s1")
        clock.forward(days=-1)
        memory.add("fish", user_id="u", session_id="s2")
        assert active(memory) == ["The user eats fish."]


class TestSlots:
    def test_love_then_hate_leaves_one_live_fact(self, memory):
        memory.add("I love Chinese food.", user_id="u", session_id="s1")
        [op] = memory.add("I hate Chinese food.", user_id="u", session_id="s2")
        assert op.action == "UPDATE"
        assert len(active(memory)) == 1

    def test_two_dishes_stand_side_by_side(self, memory):
        memory.add("I love Chinese food.", user_id="u", session_id="s1")
        memory.add("I love ramen.", user_id="u", session_id="s2")
        assert len(active(memory)) == 2

    def test_switching_supersedes_what_it_names(self, memory):
        memory.add("I use Vim.", user_id="u", session_id="s1")
        [op] = memory.add("I switched from Vim to Helix.", user_id="u", session_id="s2")
        assert op.action == "UPDATE"
        [record] = memory.get_all(user_id="u")
        assert "Helix" in record.content

    def test_no_longer_retracts_and_keeps_the_history(self, memory):
        memory.add("I work at Acme.", user_id="u", session_id="s1")
        [op] = memory.add("I no longer work at Acme.", user_id="u", session_id="s2")
        assert op.action == "RETRACT"
        assert active(memory) == []
        [record] = memory.get_all(user_id="u", status="retracted")
        assert [h.action for h in memory.history(record.memory_id, user_id="u")] == ["CREATE", "RETRACT"]


class TestRanking:
    def test_the_winner_may_be_two_hundredth_by_relevance(self, make):
        clock = Clock()
        memory = make(clock=clock)
        facts = namespace("facts", app_name="default", user_id="u")
        old = clock.now - timedelta(days=3_000)
        puts = [
            record_put(
                facts,
                record(
                    memory_id=f"m_{i}", seq=i, user_id="u", topic="general", value="", half_life_days=180.0,
                    content=f"For lunch number {i} they had pasta." if i < 199 else f"Note {i} on something else.",
                    importance=1.0 if i == 250 else 0.0, confirmed_at=clock.now if i == 250 else old,
                ),
            )
            for i in range(500)
        ]  # fmt: skip
        memory.store.batch(puts)
        hits = memory.search("lunch plans?", user_id="u", k=500, mode="vector")
        relevance = sorted((h.parts.relevance for h in hits), reverse=True)
        assert hits[0].record.content == "Note 250 on something else."
        assert relevance.index(hits[0].parts.relevance) >= 199

    def test_app_facts_are_read_by_all_and_written_by_none(self, memory):
        op = memory.add_fact("Support is closed on Sundays.", scope="app", source_id="admin")
        for user in ("a", "b"):
            assert [h.record.content for h in memory.search("support", user_id=user)] == [
                "Support is closed on Sundays."
            ]
            assert memory.get(op.memory_id, user_id=user) is not None
            with pytest.raises(MemoryNotFound):
                memory.delete(op.memory_id, user_id=user)
            with pytest.raises(MemoryNotFound):
                memory.update(op.memory_id, user_id=user, content="Support never closes.")
            memory.delete_all(user_id=user)
        assert len(memory.search("support", user_id="a")) == 1

    def test_session_facts_are_seen_in_their_session_only(self, memory):
        memory.add_fact("The user is in a hurry.", user_id="u", scope="session", session_id="t1", source_id="x")
        assert len(memory.search("hurry", user_id="u", session_id="t1")) == 1
        assert memory.search("hurry", user_id="u", session_id="t2") == []
        assert memory.search("hurry", user_id="u") == []
        assert memory.delete_all(user_id="u") == 1
        assert memory.search("hurry", user_id="u", session_id="t1") == []


class TestWhy:
    def test_it_tells_sources_decisions_and_what_was_replaced(self, memory):
        story(memory)
        fish = by_content(memory)[FISH]
        why = memory.why(fish.memory_id, user_id="ada")
        assert [(s.source_type, s.source_id) for s in why.sources] == [
            ("user_implicit", "s1"), ("user_implicit", "s2"), ("user_explicit", "s3"),
        ]  # fmt: skip
        assert "eating fish again" in why.sources[2].excerpt
        assert [r.content for r in why.replaced] == [VEGETARIAN]
        assert [d.action for d in why.decisions] == ["UPDATE"]
        assert (why.parts.relevance, round(why.parts.importance, 2), round(why.parts.confidence, 2)) == (0.0, 0.8, 0.9)
        told = str(why)
        assert all(word in told for word in (FISH, "s1", "s3", "replaced: " + VEGETARIAN, "UPDATE"))

    def test_history_never_holds_another_records_text(self, memory):
        story(memory)
        for content, one in by_content(memory).items():
            said = " ".join(h.model_dump_json() for h in one.history)
            assert not any(other in said for other in by_content(memory) if other != content)


class TestUpdate:
    def test_a_correction_is_a_new_version(self, memory):
        story(memory)
        fish = by_content(memory)[FISH]
        op = memory.update(fish.memory_id, user_id="ada", content="The user eats only shellfish.")
        assert (op.action, op.target_id, op.reason) == ("UPDATE", fish.memory_id, "corrected_by_person")
        new = memory.get(op.memory_id, user_id="ada")
        assert new is not None
        assert (new.content, new.confidence, new.topic) == ("The user eats only shellfish.", 0.90, "diet")
        old = memory.get(fish.memory_id, user_id="ada")
        assert old is not None
        assert (old.status, old.content) == ("superseded", FISH)

    def test_the_same_words_change_nothing_but_agree(self, memory):
        story(memory, 1)
        ada = by_content(memory)[ADA]
        assert memory.update(ada.memory_id, user_id="ada", content=ADA).action == "NOOP"

    def test_what_is_no_longer_believed_cannot_be_corrected(self, memory):
        story(memory)
        with pytest.raises(InvalidInput, match="superseded"):
            memory.update(by_content(memory)[VEGETARIAN].memory_id, user_id="ada", content="x")

    def test_restating_a_correction_is_the_same_fact(self, memory):
        memory.add("I live in Rome.", user_id="u", session_id="s1")
        [home] = memory.get_all(user_id="u")
        memory.update(home.memory_id, user_id="u", content="The user lives in Bonn.")
        assert [o.action for o in memory.add("I live in Bonn.", user_id="u", session_id="s2")] == ["NOOP"]


class TestDelete:
    def test_all_or_none(self, memory):
        story(memory)
        ids = [r.memory_id for r in by_content(memory).values()]
        with pytest.raises(MemoryNotFound, match="m_unknown"):
            memory.delete([ids[0], "m_unknown"], user_id="ada")
        assert len(by_content(memory)) == 4
        assert memory.delete(ids[:2], user_id="ada") == 2
        assert len(by_content(memory)) == 2

    @pytest.mark.parametrize(("previous", "left"), [("stay", "superseded"), ("restore", "active")])
    def test_what_it_had_replaced_stays_or_comes_back(self, memory, previous, left):
        story(memory)
        memory.delete(by_content(memory)[FISH].memory_id, user_id="ada", previous=previous)
        old = by_content(memory)[VEGETARIAN]
        assert (old.status, old.superseded_by) == (left, None)

    def test_refuse_refuses(self, memory):
        story(memory)
        with pytest.raises(InvalidInput, match="previous='restore'"):
            memory.delete(by_content(memory)[FISH].memory_id, user_id="ada", previous="refuse")
        assert FISH in by_content(memory)

    def test_no_pointer_dangles_in_a_chain(self, make):
        memory = make(extractor=DIETS)
        for text in ("veg", "fish", "steak"):
            memory.add(text, user_id="u", session_id=text)
        middle = next(r for r in memory.get_all(user_id="u", status="all") if "fish" in r.content)
        memory.delete(middle.memory_id, user_id="u")
        first, last = memory.get_all(user_id="u", status="all")
        assert (first.superseded_by, last.supersedes) == (last.memory_id, (first.memory_id,))

    def test_deleted_words_are_nowhere_in_the_store(self, memory):
        story(memory)
        memory.delete(by_content(memory)[ADA].memory_id, user_id="ada")
        assert "Ada" not in str(raw(memory))

    def test_delete_all_is_one_user_only(self, memory):
        story(memory)
        memory.add("I'm vegan.", user_id="ada2", session_id="s1")
        assert memory.delete_all(user_id="ada") == 4
        assert memory.get_all(user_id="ada", status="all") == []
        assert len(memory.get_all(user_id="ada2")) == 1

    @pytest.mark.parametrize("user_id", ["%", "*", "_", "u%"])
    def test_a_wildcard_is_an_id_like_any_other(self, memory, user_id):
        memory.add("I'm vegan.", user_id="u1", session_id="s1")
        assert memory.delete_all(user_id=user_id) == 0
        assert len(memory.get_all(user_id="u1")) == 1

    def test_forgotten_turns_may_be_said_again(self, memory):
        story(memory)
        memory.delete_all(user_id="ada")
        assert [[o.action for o in ops] for ops in story(memory)] == [["CREATE"] * 3, ["NOOP"], ["UPDATE"]]


class TestInput:
    @pytest.mark.parametrize(
        "messages",
        [
            "I'm vegan.",
            ["I'm vegan."],
            HumanMessage("I'm vegan."),
            {"role": "user", "content": "I'm vegan."},
            [{"role": "user", "content": [{"type": "text", "text": "I'm vegan."}]}],
            [("user", "I'm vegan.")],
            [SystemMessage("Be nice."), HumanMessage("I'm vegan."), AIMessage("Noted: you love steak.")],
        ],
    )
    def test_every_shape_of_message_is_understood(self, memory, messages):
        assert [o.content for o in memory.add(messages, user_id="u")] == ["The user follows a vegan diet."]

    @pytest.mark.parametrize("user_id", ["", " ", "\n", None, 5])
    def test_no_user_no_memory(self, memory, user_id):
        for call in (
            lambda: memory.add("I'm vegan.", user_id=user_id),
            lambda: memory.search("x", user_id=user_id),
            lambda: memory.get_all(user_id=user_id),
            lambda: memory.get("m_1", user_id=user_id),
            lambda: memory.delete("m_1", user_id=user_id),
            lambda: memory.delete_all(user_id=user_id),
            lambda: memory.forget_source("s", user_id=user_id),
            lambda: memory.add_fact("x", user_id=user_id, source_id="s"),
        ):
            with pytest.raises(MissingUser, match="user_id"):
                call()
        assert raw(memory) == []

    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            ({"content": 5}, "content must be a str"),
            ({"content": "  "}, "content is empty"),
            ({"content": "x" * 2_001}, "2001 characters"),
            ({"scope": "galaxy"}, "scope must be"),
            ({"scope": "app"}, "belongs to no user"),
            ({"topic": "hobbies"}, "'hobbies' is not registered"),
            ({"source_type": "god"}, "source_type must be one of"),
            ({"source_id": " "}, "source_id must name"),
            ({"confidence": 1.5}, "confidence"),
            ({"importance": -1}, "importance"),
            ({"at": "yesterday"}, "at is not an ISO 8601 time: 'yesterday'"),
            ({"valid_from": datetime(2026, 1, 1)}, "valid_from needs a time zone"),
            ({"expires_at": 7}, "expires_at must be a datetime"),
        ],
    )
    def test_a_bad_fact_raises_a_clear_error(self, memory, arguments, complaint):
        given = {"content": "The user is tall.", "user_id": "u", "source_id": "s"} | arguments
        with pytest.raises(InvalidInput, match=complaint):
            memory.add_fact(**given)
        assert raw(memory) == []

    def test_unknown_topics_have_their_own_error(self, memory):
        with pytest.raises(UnknownTopic, match="'nope'"):
            memory.add_fact("x", user_id="u", topic="nope", source_id="s")
        with pytest.raises(UnknownTopic) as caught:
            memory.forbid(user_id="u", topic=f"{'x ' * 29}my password is hunter2x9")
        assert "hunter2x9" not in str(caught.value)
        with pytest.raises(UnknownTopic) as caught:
            memory.add_fact("x", user_id="u", topic="my password is hunter2x9", source_id="s")
        assert "hunter2x9" not in str(caught.value)

    def test_bad_searches_raise_a_clear_error(self, memory):
        for arguments, complaint in [
            ({"query": None}, "query must be a str"),
            ({"k": -1}, "k must be"),
            ({"mode": "magic"}, "mode must be"),
            ({"as_of": "then"}, "as_of is not"),
            ({"scopes": ["galaxy"]}, "scope must be"),
        ]:
            with pytest.raises(InvalidInput, match=complaint):
                memory.search(**({"query": "x", "user_id": "u"} | arguments))

    def test_an_edit_replaces_what_the_message_taught(self, memory):
        memory.add(HumanMessage("I live in Rome.", id="h1"), user_id="u", session_id="s")
        memory.add(HumanMessage("I live in Oslo.", id="h1"), user_id="u", session_id="s")
        assert active(memory) == ["The user lives in Oslo."]
        memory.add(HumanMessage("Never mind.", id="h1"), user_id="u", session_id="s")
        assert active(memory) == []

    def test_an_edit_gives_back_what_its_old_text_had_replaced(self, memory):
        memory.add(HumanMessage("I live in Rome.", id="h1"), user_id="u", session_id="s")
        memory.add(HumanMessage("I live in Oslo.", id="h2"), user_id="u", session_id="s")
        memory.add(HumanMessage("It's raining.", id="h2"), user_id="u", session_id="s")
        assert active(memory) == ["The user lives in Rome."]

    def test_people_in_one_thread_teach_about_themselves(self, make):
        memory = make(people={"ann": "u-ann", "bo": "u-bo"})
        said = [
            HumanMessage("I'm vegan.", name="ann"),
            HumanMessage("I'm a nurse.", name="bo"),
            HumanMessage("I live in Rome.", name="stranger"),
        ]
        memory.add(said, user_id="u-ann", session_id="s")
        assert active(memory, "u-ann") == ["The user follows a vegan diet."]
        assert len(active(memory, "u-bo")) == 1

    def test_the_block_is_not_learnt_again(self, memory):
        story(memory)
        block = memory.inject("", memory.search("diet", user_id="ada"))
        assert memory.add(f"{block} and so on", user_id="bob") == []


async def test_async_twins_do_the_same(make):
    memory = make()
    for s, text in (("s1", "I'm a vegetarian."), ("s2", "I've started eating fish again.")):
        await memory.aadd(text, user_id="u", session_id=s)
    [hit] = await memory.asearch("fish", user_id="u")
    assert (await memory.aget(hit.record.memory_id, user_id="u")) == hit.record
    assert [r.content for r in (await memory.awhy(hit.record.memory_id, user_id="u")).replaced] == [VEGETARIAN]
    assert [h.action for h in await memory.ahistory(hit.record.memory_id, user_id="u")] == ["CREATE", "UPDATE"]
    op = await memory.aupdate(hit.record.memory_id, user_id="u", content="The user eats cod.")
    assert op.memory_id is not None
    assert await memory.adelete(op.memory_id, user_id="u") == 1
    assert (await memory.aadd_fact("The user is tall.", user_id="u", source_id="f")).action == "CREATE"
    await memory.aforget_source("s1", user_id="u")
    assert await memory.adelete_all(user_id="u") >= 1
    assert await memory.aget_all(user_id="u", status="all") == []


async def test_concurrent_tasks_leave_one_active_fact_and_lose_none(make):
    memory = make()

    async def say(i: int) -> list[Operation]:
        text = f"I live in City{chr(65 + i)}." if i % 2 else "I really like coffee."
        return await memory.aadd(text, user_id="u", session_id=f"s{i}")

    done = [op for ops in await asyncio.gather(*(say(i) for i in range(20))) for op in ops]
    records = memory.get_all(user_id="u", status="all")
    assert {op.memory_id for op in done} <= {r.memory_id for r in records}
    assert sorted(r.topic for r in records if r.status == "active") == ["home/location", "preference/likes"]
    assert len(records) == 11


def test_guarantees_are_data(make):
    assert make().guarantees().many_writers in ("processes", "threads")


def test_times_are_utc(memory):
    memory.add_fact("The user is tall.", user_id="u", source_id="s", at="2026-01-01T12:00:00+02:00")
    [record] = memory.get_all(user_id="u")
    assert record.sources[0].at == datetime(2026, 1, 1, 10, tzinfo=UTC)
