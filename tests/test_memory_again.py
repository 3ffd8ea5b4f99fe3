"""Saying a thing again, taking things back, other people, the application's facts: kinds of faults found by others."""

from datetime import timedelta
from itertools import permutations
from typing import Any

import pytest
from invariants import whole
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.store.memory import InMemoryStore
from support import Clock, Scripted, fact

from langmem_adapter.errors import InvalidInput, MemoryNotFound, MissingUser
from langmem_adapter.guard import Guard, Rule
from langmem_adapter.memory import Memory


def active(memory: Memory, user_id: str = "u") -> list[str]:
    return [r.content for r in memory.get_all(user_id=user_id)]


class TestSayingItAgain:
    @pytest.mark.parametrize("session_id", [None, "s"])
    def test_going_back_to_what_was_said_before_is_news(self, memory, session_id):
        for text in ("I live in Rome.", "I moved to Bonn.", "I live in Rome."):
            memory.add(text, user_id="u", session_id=session_id)
        assert active(memory) == ["The user lives in Rome."]

    def test_so_is_taking_back_that_it_ended(self, memory):
        for text in ("I'm vegan.", "I'm not vegan anymore.", "I'm vegan."):
            memory.add(text, user_id="u", session_id="s")
        assert active(memory) == ["The user follows a vegan diet."]

    def test_restating_the_incumbent_in_the_same_session_settles_a_contest(self, memory):
        memory.add("I'm a vegetarian.", user_id="u", session_id="s")
        memory.add("I eat meat again.", user_id="u", session_id="s", source_type="user_implicit")
        assert len(memory.get_all(user_id="u", status="contested")) == 1
        [op] = memory.add("I'm a vegetarian.", user_id="u", session_id="s")
        assert op.reason == "settled_for_incumbent"

    def test_a_fact_that_changes_for_years_does_not_grow(self, tmp_path):
        """Who spoke long ago is told by the chain of what it replaced, and not once more in every record."""
        with Memory(tmp_path / "m.db") as memory:
            for n in range(60):
                memory.add(HumanMessage(f"I live in City{n}.", id=f"h{n}"), user_id="u", session_id=f"s{n}")
            records = memory.get_all(user_id="u", status="all")
            sizes = [len(r.model_dump_json()) for r in records]
            assert max(sizes[30:]) < 1.1 * max(sizes[:30])
            [home] = memory.get_all(user_id="u")
            assert [s.source_id for s in home.sources] == [f"s{n}" for n in range(49, 60)]
            assert len({h.memory_id for h in memory.history(home.memory_id, user_id="u")}) == 60
            memory.forget_source("s0", user_id="u")
            assert [r.value for r in memory.get_all(user_id="u", status="all")] == [f"City{n}" for n in range(1, 60)]

    def test_twice_in_a_row_is_one_message(self, memory):
        first = memory.add("I live in Rome.", user_id="u")
        assert len(first) == 1
        assert [memory.add("I live in Rome.", user_id="u") for _ in range(4)] == [[]] * 4
        assert len(memory.get_all(user_id="u")[0].sources) == 1

    def test_what_was_forgotten_may_be_said_again_but_is_not_redelivered(self, memory):
        told = HumanMessage("I live in Rome.", id="h1")
        memory.add(told, user_id="u", session_id="s")
        memory.forget_source("s", user_id="u")
        assert memory.add(told, user_id="u", session_id="s") == []
        assert [o.action for o in memory.add("I live in Rome.", user_id="u", session_id="s")] == ["CREATE"]
        assert "Rome" not in str(memory.store.get(("memories", "default", "user", "u", "turns"), "s/h1").value)


class TestTakingBack:
    def fasting(self, make) -> tuple[Memory, Clock]:
        clock = Clock()
        memory = make(clock=clock)
        ends = (clock.now + timedelta(days=2)).isoformat()
        for content, value, source, more in (
            ("The user is vegetarian.", "vegetarian", "a", {}),
            ("The user is fasting.", "fasting", "b", {"expires_at": ends}),
            ("The user eats meat.", "meat", "c", {}),
        ):
            memory.add_fact(content, user_id="u", topic="diet", value=value, source_id=source, **more)
            clock.forward(days=5)
        return memory, clock

    def test_what_comes_back_does_not_share_an_exclusive_slot(self, make):
        memory, _ = self.fasting(make)
        memory.forget_source("b", user_id="u")
        assert active(memory) == ["The user eats meat."]
        old = next(r for r in memory.get_all(user_id="u", status="all") if r.value == "vegetarian")
        assert old.superseded_by == memory.get_all(user_id="u")[0].memory_id

    def test_nor_does_it_double_a_by_slot_fact(self, memory):
        for s, text in (("s1", "I use Vim."), ("s2", "I switched from Vim to Emacs."), ("s3", "I use Vim.")):
            memory.add(text, user_id="u", session_id=s)
        memory.forget_source("s2", user_id="u")
        assert len(memory.get_all(user_id="u", topic="preference/tool")) == 1

    def test_forgetting_who_ended_a_fact_brings_it_back(self, memory):
        memory.add("I'm vegan.", user_id="u", session_id="s1")
        memory.add("I'm no longer vegan.", user_id="u", session_id="s2")
        memory.forget_source("s2", user_id="u")
        assert active(memory) == ["The user follows a vegan diet."]

    def test_so_does_editing_the_message_that_ended_it(self, memory):
        memory.add(HumanMessage("I'm vegan.", id="h1"), user_id="u", session_id="s")
        memory.add(HumanMessage("I'm no longer vegan.", id="h2"), user_id="u", session_id="s")
        memory.add(HumanMessage("It's raining.", id="h2"), user_id="u", session_id="s")
        assert active(memory) == ["The user follows a vegan diet."]

    def contested(self, memory: Memory) -> tuple[str, str]:
        memory.add("I'm a vegetarian.", user_id="u", session_id="s1")
        [op] = memory.add("I eat meat again.", user_id="u", session_id="s2", source_type="user_implicit")
        return op.target_id, op.memory_id

    def test_after_an_incumbent_is_erased_nothing_points_at_it(self, memory):
        incumbent, _ = self.contested(memory)
        memory.delete(incumbent, user_id="u")
        assert incumbent not in str([r.model_dump_json() for r in memory.get_all(user_id="u", status="all")])

    @pytest.mark.parametrize("previous", ["stay", "restore"])
    def test_erasing_a_promoted_challenger_erases_its_words_everywhere(self, memory, previous):
        incumbent, _ = self.contested(memory)
        memory.delete(incumbent, user_id="u")
        [heir] = memory.get_all(user_id="u")
        memory.delete(heir.memory_id, user_id="u", previous=previous)
        assert memory.get_all(user_id="u", status="all") == []
        assert "meat" not in str([i.value for i in memory.store.search(("memories",), limit=100)])


class TestEdits:
    """A message with other words under its id: what only its old words taught was never said."""

    def say(self, memory: Memory, *said: tuple[str, str, str]) -> None:
        for text, message_id, session in said:
            memory.add(HumanMessage(text, id=message_id), user_id="u", session_id=session)
            whole(memory)

    def edited(self, make) -> Memory:
        memory = make()
        self.say(memory, ("I live in Paris.", "m0", "s0"), ("I live in Oslo.", "m1", "s1"))
        self.say(memory, ("What's the weather?", "m0", "s0"))
        return memory

    def all(self, memory: Memory) -> list[tuple[str, str]]:
        return [(r.content, r.status) for r in whole(memory)]

    def test_what_was_edited_away_is_history_by_itself(self, make):
        paris, oslo = whole(self.edited(make))
        assert (paris.status, paris.superseded_by, oslo.status, oslo.supersedes) == ("retracted", None, "active", ())
        assert [s.message_id for s in oslo.sources] == ["m1"]

    @pytest.mark.parametrize("how", ["delete", "forget_source"])
    def test_it_is_not_believed_again_when_what_replaced_it_goes(self, make, how):
        memory = self.edited(make)
        if how == "delete":
            memory.delete(memory.get_all(user_id="u")[0].memory_id, user_id="u", previous="restore")
        else:
            memory.forget_source("s1", user_id="u")
        assert self.all(memory) == [("The user lives in Paris.", "retracted")]
        assert memory.block(memory.search("Where does the user live?", user_id="u")).text == ""

    def test_it_quotes_nothing_of_what_it_had_replaced(self, make):
        memory = make()
        told = {"topic": "home/location", "source_type": "bootstrapped", "user_id": "u"}
        memory.add_fact("The user lives in Paris.", value="Paris", source_id="crm", **told)
        memory.add_fact("The user lives in Bonn.", value="Bonn", source_id="hr", **told)
        self.say(memory, ("I live in Oslo.", "m1", "a"))
        [bonn] = memory.get_all(user_id="u")
        oslo = memory.update(bonn.memory_id, user_id="u", content="The user lives in Oslo.").memory_id
        self.say(memory, ("I live in Rome.", "m2", "b"), ("It's raining.", "m2", "b"))
        [challenger] = [r for r in whole(memory) if r.value.casefold() == "oslo" and r.memory_id != oslo]
        memory.delete(challenger.memory_id, user_id="u")
        memory.forget_source("crm", user_id="u")
        whole(memory)
        memory.delete(oslo, user_id="u")
        assert [r.content for r in whole(memory)] == ["The user lives in Bonn.", "The user lives in Rome."]
        assert "Oslo" not in str([i.value for i in memory.store.search(("memories",), limit=100)])

    def test_nor_does_what_is_left_quote_what_is_erased_after_it(self, make):
        memory = make()
        told = {"topic": "home/location", "source_type": "bootstrapped", "user_id": "u"}
        memory.add_fact("The user lives in Paris.", value="Paris", source_id="crm", **told)
        self.say(memory, ("I live in Oslo.", "m1", "a"))
        [paris] = memory.get_all(user_id="u")
        oslo = memory.update(paris.memory_id, user_id="u", content="The user lives in Oslo.").memory_id
        [challenger] = [r for r in whole(memory) if r.value.casefold() == "oslo" and r.memory_id != oslo]
        memory.delete(challenger.memory_id, user_id="u")
        for text, message_id, meant in (
            ("I live in Bern.", "m2", "user_implicit"),
            ("I live in Rome.", "m3", "user_explicit"),
            ("It's raining.", "m2", "user_implicit"),
        ):
            memory.add(HumanMessage(text, id=message_id), user_id="u", session_id="a", source_type=meant)
            whole(memory)
        memory.delete(oslo, user_id="u")
        assert self.all(memory) == [
            ("The user lives in Paris.", "superseded"),
            ("The user lives in Bern.", "retracted"),
            ("The user lives in Rome.", "active"),
        ]
        assert "Oslo" not in str([i.value for i in memory.store.search(("memories",), limit=100)])

    def test_what_stood_on_both_sides_of_it_is_linked(self, make):
        memory = make()
        cities = (("I live in Paris.", "m0", "a"), ("I live in Oslo.", "m1", "b"), ("I live in Rome.", "m2", "c"))
        self.say(memory, *cities, ("It's raining.", "m1", "b"))
        [rome] = memory.get_all(user_id="u")
        [paris] = memory.why(rome.memory_id, user_id="u").replaced
        assert (paris.content, paris.superseded_by) == ("The user lives in Paris.", rome.memory_id)
        memory.delete(rome.memory_id, user_id="u", previous="restore")
        assert [r.content for r in memory.get_all(user_id="u")] == ["The user lives in Paris."]
        whole(memory)

    @pytest.mark.parametrize("keep_turns", ["text", "nothing"])
    def test_what_it_had_ended_stays_ended_where_something_else_holds_by_now(self, make, keep_turns):
        memory = make(keep_turns=keep_turns)
        self.say(memory, ("I live in Paris.", "m0", "a"), ("I no longer live in Paris.", "m1", "b"))
        self.say(memory, ("I live in Rome.", "m2", "c"), ("It's raining.", "m1", "b"))
        assert self.all(memory) == [("The user lives in Paris.", "superseded"), ("The user lives in Rome.", "active")]

    def test_what_ended_it_brings_it_back_no_more(self, make):
        memory = make()
        self.say(memory, ("I'm vegan.", "m0", "a"), ("I'm no longer vegan.", "m1", "b"))
        self.say(memory, ("It's raining.", "m0", "a"), ("It's raining.", "m1", "b"))
        assert self.all(memory) == [("The user follows a vegan diet.", "retracted")]

    def test_detail_that_it_gave_to_another_goes(self, make):
        memory = make()
        self.say(memory, ("I live in Bonn.", "m0", "a"), ("I live in Bonn, Germany.", "m1", "b"))
        self.say(memory, ("It's raining.", "m1", "b"))
        assert self.all(memory) == [("The user lives in Bonn.", "active")]

    def test_at_no_time_were_both_believed(self, make):
        clock = Clock()
        memory = make(clock=clock)
        self.say(memory, ("I live in Paris.", "m0", "a"))
        clock.forward(days=1)
        self.say(memory, ("I live in Oslo.", "m1", "b"))
        clock.forward(days=1)
        then = clock()
        clock.forward(days=1)
        self.say(memory, ("It's raining.", "m0", "a"))
        assert [h.record.content for h in memory.search("", user_id="u", as_of=then)] == ["The user lives in Oslo."]

    @pytest.mark.parametrize("keep_turns", ["text", "nothing"])
    def test_what_an_auditor_had_released_of_it_goes_too(self, make, keep_turns):
        memory = make(keep_turns=keep_turns, guard=Guard(rules=[Rule("heron", "heron")]))
        self.say(memory, ("My name is Heron.", "m0", "a"), ("I live in Oslo.", "m1", "a"))
        [held] = memory.quarantined(user_id="u")
        memory.release(held.record.memory_id, user_id="u")
        assert [r.value for r in memory.get_all(user_id="u")] == ["Oslo", "Heron"]
        self.say(memory, ("My name is Heron.", "m0", "a"))  # as it was
        assert [r.value for r in memory.get_all(user_id="u")] == ["Oslo", "Heron"]
        self.say(memory, ("It's raining.", "m0", "a"))
        assert [r.value for r in memory.get_all(user_id="u")] == ["Oslo"]

    def test_it_never_held_but_it_was_believed(self, make):
        clock = Clock()
        memory = make(clock=clock)
        self.say(memory, ("I live in Paris.", "m0", "a"))
        clock.forward(days=2)
        self.say(memory, ("It's raining.", "m0", "a"))
        then = clock() - timedelta(days=1)
        assert memory.search("", user_id="u", valid_at=then) == []
        assert memory.search("", user_id="u", valid_at=then - timedelta(days=9)) == []
        assert [h.record.content for h in memory.search("", user_id="u", as_of=then)] == ["The user lives in Paris."]

    def test_a_deletion_while_it_waits_takes_none_of_its_new_words(self, make):
        cities = {f"I live in {c}.": [fact(f"The user lives in {c}.", "home/location", c)] for c in ("Paris", "Oslo")}
        memory = make(extractor=Scripted(cities))
        self.say(memory, ("I live in Paris.", "m0", "a"))
        memory.recall([HumanMessage("I live in Oslo.", id="m0")], user_id="u", session_id="a")
        memory.delete(memory.get_all(user_id="u")[0].memory_id, user_id="u")
        memory.retry(user_id="u")
        assert self.all(memory) == [("The user lives in Oslo.", "active")]


class TestTime:
    def test_valid_at_finds_what_held_then_also_if_it_was_replaced_or_ended(self, make):
        clock = Clock()
        memory = make(clock=clock)
        memory.add("I live in Rome.", user_id="u", session_id="s1")
        memory.add("I'm vegan.", user_id="u", session_id="s1")
        then = clock.now + timedelta(days=1)
        clock.forward(days=10)
        memory.add("I live in Bonn.", user_id="u", session_id="s2")
        memory.add("I'm no longer vegan.", user_id="u", session_id="s2")
        clock.forward(days=10)
        held = {h.record.content for h in memory.search("", user_id="u", valid_at=then)}
        assert held == {"The user lives in Rome.", "The user follows a vegan diet."}
        assert [h.record.content for h in memory.search("", user_id="u", valid_at=clock.now)] == [
            "The user lives in Bonn."
        ]

    def test_what_is_learnt_late_held_until_what_was_said_after_it(self, make):
        clock = Clock()
        memory = make(clock=clock)
        day = clock.now
        clock.forward(days=10)
        memory.add("I live in Oslo.", user_id="u", session_id="s2", at=day + timedelta(days=5))
        memory.add("I live in Paris.", user_id="u", session_id="s1", at=day + timedelta(days=2))

        def lived(**when) -> list[str]:
            return [h.record.value for h in memory.search("", user_id="u", **when)]

        assert [lived(valid_at=day + timedelta(days=n)) for n in (1, 3, 6)] == [[], ["Paris"], ["Oslo"]]
        assert lived(as_of=clock.now) == ["Oslo"]

    @pytest.mark.parametrize("order", list(permutations(range(4))))
    def test_a_slot_with_room_for_one_has_one_answer_at_each_time_in_whatever_order_it_was_learnt(self, order):
        clock = Clock()
        memory = Memory(InMemoryStore(), clock=clock)
        day = clock.now
        clock.forward(days=50)
        cities = ("Rome", "Bern", "Kiel", "Oslo")
        for n in order:
            memory.add(f"I live in {cities[n]}.", user_id="u", session_id=f"s{n}", at=day + timedelta(days=10 * n))
        whole(memory)

        def lived() -> list[list[str]]:
            times = [day + timedelta(days=10 * n + 5) for n in range(4)]
            return [[h.record.value for h in memory.search("", user_id="u", valid_at=t)] for t in times]

        assert lived() == [["Rome"], ["Bern"], ["Kiel"], ["Oslo"]]
        memory.forget_source("s1", user_id="u")
        whole(memory)
        assert lived() == [["Rome"], ["Rome"], ["Kiel"], ["Oslo"]]

    def test_an_end_that_was_said_stays_when_something_else_is_learnt_late(self, make):
        clock = Clock()
        memory = make(clock=clock)
        day = clock.now
        clock.forward(days=50)
        memory.add_fact("The user lives in Rome.", user_id="u", topic="home/location", value="Rome", source_id="crm",
                        source_type="user_explicit", at=day, valid_to=day + timedelta(days=12))  # fmt: skip
        for city, n in (("Oslo", 20), ("Bern", 10)):
            memory.add(f"I live in {city}.", user_id="u", session_id=city, at=day + timedelta(days=n))
        ends = {r.value: r.valid_to for r in memory.get_all(user_id="u", status="all")}
        assert ends == {"Rome": day + timedelta(days=12), "Bern": day + timedelta(days=20), "Oslo": None}

    def test_a_fact_does_not_end_before_it_begins(self, memory):
        begins, ends = "2030-01-01T00:00:00Z", "2020-01-01T00:00:00Z"
        with pytest.raises(InvalidInput, match="valid_to is before valid_from, got 2030-01-01"):
            memory.add_fact("The user is in Rome.", user_id="u", source_id="x", valid_from=begins, valid_to=ends)
        assert active(memory) == []

    def test_nor_does_one_that_an_extractor_dates_so(self, make):
        """A time that it got wrong is no reason to lose the fact."""
        day = timedelta(days=1)
        clock = Clock()
        kiel = fact("The user was in Kiel.", valid_from=clock.now, valid_to=clock.now - day)
        memory = make(extractor=Scripted({"I was in Kiel.": [kiel]}), clock=clock)
        memory.add("I was in Kiel.", user_id="u", session_id="s")
        assert [(r.valid_from, r.valid_to) for r in memory.get_all(user_id="u")] == [(None, clock.now - day)]

    def test_recall_does_not_ask_when_a_fact_holds_unless_it_is_told_to(self, make):
        clock = Clock()
        memory = make(clock=clock)
        day = timedelta(days=1)
        memory.add_fact("The user was in Rome.", user_id="u", source_id="x", valid_to=clock.now - day)
        memory.add_fact("The user will be in Oslo.", user_id="u", source_id="x", valid_from=clock.now + day)
        memory.add_fact("The user is in Bern.", user_id="u", source_id="x", expires_at=clock.now - day)

        def found(**when) -> set[str]:
            return {h.record.content for h in memory.search("", user_id="u", **when)}

        assert found() == {"The user was in Rome.", "The user will be in Oslo."}
        assert found(valid_at=clock.now - 2 * day) == {"The user was in Rome."}
        assert found(valid_at=clock.now) == set()
        assert found(valid_at=clock.now + day) == {"The user will be in Oslo."}


class TestPeople:
    def test_whoever_speaks_is_recalled_for(self, make):
        memory = make(people={"Ada": "ada", "Bob": "bob"})
        memory.add("I live in Rome.", user_id="ada", session_id="a")
        memory.add("I live in Oslo.", user_id="bob", session_id="b")
        found = memory.recall([HumanMessage("Where do I live?", name="Bob", id="h")], user_id="ada", session_id="group")
        block = memory.recall_block(found, session_id="group")
        assert "Oslo" in block.text
        assert "Rome" not in block.text


class TestTools:
    def test_a_tool_that_answers_late_is_still_heard(self, make):
        zone = fact("The user's timezone is Europe/Riga.", value="Europe/Riga", excerpt="Europe/Riga")
        memory = make(extractor=Scripted({"timezone: Europe/Riga": [zone]}), tool_sources="crm")
        asked = HumanMessage("When am I free?", id="h1")
        memory.recall([asked], user_id="u", session_id="A")
        memory.recall([HumanMessage("Hi.", id="h2")], user_id="u", session_id="B")  # learns what A left
        answer = ToolMessage("timezone: Europe/Riga", tool_call_id="1", name="crm", id="t1")
        memory.remember([asked, answer], user_id="u", session_id="A")
        assert active(memory) == ["The user's timezone is Europe/Riga."]
        assert memory.remember([asked, answer], user_id="u", session_id="A") == []

    @pytest.fixture(params=["inline", "background"])
    def crm(self, make, request) -> "Crm":
        return Crm(make, request.param)

    @pytest.mark.parametrize("keep_turns", ["text", "nothing"])
    def test_an_answer_in_a_fork_replaces_that_of_the_old_branch(self, make, keep_turns):
        crm = Crm(make, "inline", keep_turns=keep_turns)
        crm.answers(("golf", "t1"))
        [tea] = [r for r in whole(crm.memory) if "tea" in r.content]
        crm.answers(("tennis", "t2"))
        assert crm.believed == {"golf": "retracted", "tennis": "active", "tea": "active"}
        assert tea in whole(crm.memory)  # the user said it in both
        assert crm.answers(("tennis", "t2")) == 0
        crm.answers(("golf", "t1"))  # back to the first branch
        assert sorted(active(crm.memory)) == ["The user likes golf.", "The user likes tea."]

    def test_so_does_another_answer_under_its_id(self, crm):
        crm.answers(("golf", "t1"))
        crm.answers(("tennis", "t1"))
        assert crm.believed == {"golf": "retracted", "tennis": "active", "tea": "active"}

    def test_an_answer_where_the_old_branch_had_none_to_learn_from_is_heard(self, crm):
        crm.answers(("timeout", "t1"))
        crm.answers(("tennis", "t2"))
        assert crm.believed == {"tennis": "active", "tea": "active"}

    def test_answers_before_the_fork_stay(self, crm):
        crm.answers(("golf", "t1"), ("chess", "t2"))
        crm.answers(("golf", "t1"), ("tennis", "t3"))
        assert crm.believed == {"golf": "active", "chess": "retracted", "tennis": "active", "tea": "active"}

    def test_one_answer_more_takes_nothing_back(self, crm):
        """Also if those before it were cut out of a long thread since."""
        crm.answers(("golf", "t1"))
        crm.answers(("golf", "t1"), ("chess", "t2"))
        crm.answers(("chess", "t2"), ("tennis", "t3"))
        assert crm.believed == dict.fromkeys(("golf", "chess", "tennis", "tea"), "active")
        assert crm.answers(("golf", "t1"), ("chess", "t2"), ("tennis", "t3")) == 0
        assert crm.answers() == 0

    def test_the_same_answer_again_is_not_read_again(self, crm):
        crm.answers(("golf", "t1"))
        assert crm.answers(("golf", "t2")) == 0
        assert crm.believed == {"golf": "active", "tea": "active"}

    def test_of_a_turn_that_waits_the_newer_branch_is_learnt(self, make):
        crm = Crm(make, "background", debounce_seconds=60)
        crm.answers(("golf", "t1"), drained=False)
        crm.answers(("tennis", "t2"))
        assert crm.believed == {"tennis": "active", "tea": "active"}

    def test_what_a_forgotten_tool_said_stays_forgotten_when_another_answers(self, crm):
        crm.answers(("golf", "t1"))
        crm.memory.forget_source("crm", user_id="u")
        crm.answers(("golf", "t1"), ("chess", "t2"))
        crm.answers(("golf", "t1"), ("tennis", "t3"))
        assert crm.believed == {"chess": "retracted", "tennis": "active", "tea": "active"}


class Crm:
    """A thread in which the user says that they like tea, and tools answer what else they like."""

    def __init__(self, make: Any, when: str, **options: Any) -> None:
        liked = ("golf", "tennis", "chess", "tea")
        self.extractor = Scripted({f"likes {w}": [fact(f"The user likes {w}.", value=w)] for w in liked})
        self.memory: Memory = make(extractor=self.extractor, tool_sources=["crm"], when=when, **options)

    def answers(self, *said: tuple[str, str], drained: bool = True) -> int:
        """The thread with these answers goes through a graph; how many texts were read to learn from it."""
        before = len(self.extractor.asked)
        typed = HumanMessage("likes tea", id="h1")
        told = [ToolMessage(f"likes {w}", tool_call_id=i, name="crm", id=i) for w, i in said]
        self.memory.recall([typed], user_id="u", session_id="s")
        self.memory.remember([typed, *told], user_id="u", session_id="s", heard=True)
        assert not drained or self.memory.drain(20)
        return len(self.extractor.asked) - before

    @property
    def believed(self) -> dict[str, str]:
        return {r.value: r.status for r in whole(self.memory)}


class TestApplication:
    def test_its_facts_are_corrected_and_erased_by_an_administrator_only(self, memory):
        op = memory.add_fact("Support is closed on Mondays.", scope="app", source_id="admin")
        with pytest.raises(MemoryNotFound):
            memory.update(op.memory_id, user_id="u", content="Support never closes.")
        corrected = memory.update(op.memory_id, scope="app", content="Support is closed on Sundays.")
        assert [h.record.content for h in memory.search("support", user_id="u")] == ["Support is closed on Sundays."]
        assert memory.delete(corrected.memory_id, scope="app", previous="restore") == 1
        assert [h.record.content for h in memory.search("support", user_id="u")] == ["Support is closed on Mondays."]
        assert len(memory.forget_source("admin", scope="app").erased) == 1
        assert memory.search("support", user_id="u") == []

    def test_no_user_id_does_not_mean_the_application(self, memory):
        op = memory.add_fact("Support is closed.", scope="app", source_id="admin")
        for call in (
            lambda: memory.delete(op.memory_id, user_id=None),
            lambda: memory.update(op.memory_id, content="x"),
            lambda: memory.forget_source("admin"),
            lambda: memory.search("support", user_id=None),
            lambda: memory.get(op.memory_id, user_id=None),
        ):
            with pytest.raises(MissingUser):
                call()
        with pytest.raises(InvalidInput, match="belongs to no user"):
            memory.delete(op.memory_id, user_id="u", scope="app")


class TestArguments:
    def test_one_string_is_a_list_of_one(self, memory):
        memory.add("I'm vegan.", user_id="u")
        assert len(memory.search("", user_id="u", topics="diet")) == 1
        assert len(memory.search("", user_id="u", kinds="fact")) == 1

    def test_a_topic_includes_what_lies_below_it(self, memory):
        memory.add("I'm allergic to peanuts.", user_id="u")
        assert len(memory.get_all(user_id="u", topic="diet")) == 1

    @pytest.mark.parametrize(
        "call",
        [
            lambda m: m.get_all(user_id="u", status="foo"),
            lambda m: m.get_all(user_id="u", topic="foo"),
            lambda m: m.search("x", user_id="u", floor=float("nan")),
            lambda m: m.search("x", user_id="u", floor="a"),
            lambda m: m.search("x", user_id="u", weights=(1, 2, 3)),
            lambda m: m.search("x", user_id="u", topics=[1]),
            lambda m: m.add("x", user_id="u", source_id=5),
            lambda m: m.add("x", user_id="u", source_id=" "),
            lambda m: m.add("x", user_id="u", at="0001-01-01T00:00:00+14:00"),
            lambda m: m.add_fact("x", user_id="u", source_id="s", source_type=None),
            lambda m: m.add_fact("x", user_id="u", source_id="s", source_type=[]),
            lambda m: m.add_fact("x", user_id="u"),
            lambda m: m.delete(None, user_id="u"),
            lambda m: m.delete(5, user_id="u"),
            lambda m: Memory(5),
        ],
    )
    def test_what_cannot_be_used_is_one_kind_of_error(self, memory, call):
        with pytest.raises(InvalidInput):
            call(memory)


def test_what_a_listener_does_wrong_undoes_nothing(make):
    def listener(name: str, data: object) -> None:
        raise RuntimeError("listener")

    memory = make(on_event=listener)
    assert [o.action for o in memory.add("I'm vegan.", user_id="u")] == ["CREATE"]
    assert active(memory) == ["The user follows a vegan diet."]


class TestCheckpoints:
    """Forgetting reaches the threads of the user in a checkpointer, and nobody else's."""

    def talk(self, memory: Memory, saver: object) -> object:
        from langgraph.graph import START, StateGraph
        from support import config

        from langmem_adapter.langgraph import MemoryState, recall_node, remember_node

        builder = StateGraph(MemoryState)
        builder.add_node("recall", recall_node(memory))
        builder.add_node("remember", remember_node(memory))
        builder.add_edge(START, "recall")
        builder.add_edge("recall", "remember")
        app = builder.compile(checkpointer=saver)
        for user, thread in (("u", "t1"), ("u", "t2"), ("other", "t3")):
            app.invoke({"messages": [HumanMessage("I live in Rome.")]}, config(user, thread))
        return app

    def left(self, saver) -> set[str]:
        return {c.config["configurable"]["thread_id"] for c in saver.list(None)}

    @pytest.mark.parametrize("kind", ["in_memory", "sqlite"])
    def test_a_forgotten_thread_is_gone_and_so_are_all_of_a_deleted_user(self, kind, tmp_path):
        from langgraph.checkpoint.memory import InMemorySaver

        from langmem_adapter.checkpoint.sqlite import SqliteCheckpointer

        saver = InMemorySaver() if kind == "in_memory" else SqliteCheckpointer(tmp_path / "threads.db")
        with Memory(tmp_path / "memory.db", checkpointer=saver) as memory:
            self.talk(memory, saver)
            memory.forget_source("t3", user_id="u")  # not this user's thread
            assert self.left(saver) == {"t1", "t2", "t3"}
            places = {p.name: p for p in memory.forget_source("t1", user_id="u").places}
            assert (places["checkpoints"].state, places["checkpoints"].count) == ("done", 1)
            assert self.left(saver) == {"t2", "t3"}
            memory.delete_all(user_id="u")
            assert self.left(saver) == {"t3"}
        if kind == "sqlite":
            saver.close()

    def test_postgres_savers_threads_too(self, database, tmp_path):
        from langgraph.checkpoint.postgres import PostgresSaver

        with (
            PostgresSaver.from_conn_string(database) as saver,
            Memory(tmp_path / "memory.db", checkpointer=saver) as memory,
        ):
            saver.setup()
            self.talk(memory, saver)
            memory.delete_all(user_id="u")
            assert self.left(saver) == {"t3"}


def test_a_fact_from_a_system_of_record_that_says_the_same_agrees(memory):
    memory.add("I'm allergic to peanuts.", user_id="u", session_id="s")
    op = memory.add_fact("The user is allergic to peanuts.", user_id="u", topic="diet/allergy", source_id="crm")
    assert (op.action, op.reason) == ("NOOP", "corroborated")
    [one] = memory.get_all(user_id="u")
    assert {s.source_id for s in one.sources} == {"s", "crm"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The user's flight goes from rome to oslo.", "The user's flight goes from oslo to rome."),
        ("Bob owes Carl money.", "Carl owes Bob money."),
        ("Anna is older than Ben.", "Ben is older than Anna."),
        ("The user writes C++ code.", "The user writes C code."),
        ("The user was at Acme.", "The user is at Acme."),
        ("The window is open and the door is closed.", "The window is closed and the door is open."),
    ],
)
def test_facts_of_the_same_words_may_be_two(memory, one, other):
    for n, content in enumerate((one, other, one)):
        op = memory.add_fact(content, user_id="u", source_id=f"s{n}")
        assert op.action == ("CREATE" if n < 2 else "NOOP")


def test_what_has_expired_is_found_by_no_read(make):
    clock = Clock()
    memory = make(clock=clock)
    ends = (clock.now + timedelta(hours=1)).isoformat()
    op = memory.add_fact("The user is in Rome.", user_id="u", source_id="x", expires_at=ends)
    assert memory.get(op.memory_id, user_id="u") is not None
    clock.forward(hours=2)
    assert memory.get(op.memory_id, user_id="u") is None
    assert memory.search("", user_id="u") == memory.get_all(user_id="u") == []
    stored = memory.get_all(user_id="u", status="all")  # what is still there, for whoever wants it gone
    assert [r.memory_id for r in stored] == [op.memory_id]
    for read in (memory.why, memory.history):
        with pytest.raises(MemoryNotFound):
            read(op.memory_id, user_id="u")
    assert memory.delete(op.memory_id, user_id="u") == 1


def test_a_person_who_corrects_one_side_of_a_contest_settles_it_with_all_others(make):
    memory = make()
    told = (("crm", "Bonn", "bootstrapped"), ("t1", "Rome", "tool_output"), ("t2", "Oslo", "tool_output"))
    for source, city, kind in told:
        memory.add_fact(
            f"The user lives in {city}.", user_id="u", topic="home/location", value=city, source_id=source,
            source_type=kind,
        )  # fmt: skip
    rome = next(r for r in memory.get_all(user_id="u", status="contested") if "Rome" in r.content)
    memory.update(rome.memory_id, user_id="u", content="The user lives in Rome, near the river.")
    assert [r.content for r in memory.get_all(user_id="u")] == ["The user lives in Rome, near the river."]
    assert memory.get_all(user_id="u", status="contested") == []
