"""Upkeep: what expired or faded goes, what says the same becomes one, what was left half done is completed."""

import asyncio
import threading
from collections import Counter
from datetime import timedelta

import pytest
from langchain_core.messages import HumanMessage
from support import START, Clock, Scripted, fact, record, source

from langmem_adapter.consolidation.rules import record_put
from langmem_adapter.errors import OnHold, StoreError
from langmem_adapter.memory import Memory
from langmem_adapter.namespaces import namespace
from langmem_adapter.records import HistoryEntry, MemoryRecord, Turn

FACTS = namespace("facts", app_name="default", user_id="u1")
TURNS = namespace("turns", app_name="default", user_id="u1")
HIKES = "The user takes long walks in the mountains with old friends every summer and every autumn."
GOOD_HIKES = HIKES.replace("old friends", "good old friends")  # cosine 0.97
BULLETS = "The user decided that every single answer of the support team is to be given in 3 bullets, with a summary."


def plant(memory: Memory, *records: MemoryRecord) -> None:
    """Store records as another tool, or a process that died, might have left them."""
    for one in records:
        memory.store.batch([record_put(FACTS, one)])


def stored(memory: Memory) -> dict[str, MemoryRecord]:
    return {r.memory_id: r for r in memory.get_all(user_id="u1", status="all")}


def turns(memory: Memory) -> dict[str, Turn]:
    return {i.key: Turn.model_validate(i.value) for i in memory.store.search(TURNS, limit=1_000)}


def put(memory: Memory, content: str, source_id: str = "crm", **fields) -> str:
    op = memory.add_fact(content, user_id="u1", source_id=source_id, **fields)
    assert op.memory_id is not None
    return op.memory_id


def did(report) -> list[tuple[str, str, str]]:
    return sorted((u.action, u.reason, u.id) for u in report.done)


class TestExpiry:
    def test_what_expired_is_hidden_at_once_and_erased_after_the_retention(self, make):
        clock = Clock()
        memory = make(clock=clock, retention_days=10)
        project = put(memory, "The user builds a boat.", topic="project", slot="boat")
        name = put(memory, "The user's name is Ada.", topic="identity/name")
        clock.forward(days=91)
        assert [r.memory_id for r in memory.get_all(user_id="u1")] == [name]
        assert memory.maintain("u1").done == ()
        assert project in stored(memory)
        clock.forward(days=10)
        report = memory.maintain("u1")
        assert did(report) == [("expire", "retention_over", project)]
        assert report.counts == {"expire": 1}
        assert stored(memory).keys() == {name}
        assert [(r.action, r.erased) for r in memory.receipts(user_id="u1")] == [("maintain", (project,))]
        assert "boat" not in str([t.model_dump() for t in turns(memory).values()])
        assert memory.maintain("u1").done == ()

    def test_history_stays(self, make):
        clock = Clock()
        memory = make(clock=clock)
        put(memory, "The user lives in Rome.", topic="home/location", value="Rome")
        clock.forward(days=1)
        put(memory, "The user lives in Bonn.", topic="home/location", value="Bonn")
        clock.forward(days=1_000)
        assert memory.maintain("u1").done == ()
        assert Counter(r.status for r in stored(memory).values()) == {"active": 1, "superseded": 1}

    def test_no_byte_of_it_is_left(self, tmp_path):
        clock = Clock()
        with Memory(tmp_path / "memory.db", clock=clock) as memory:
            for n in range(50):
                put(memory, f"The user owns object number {n}.")
            put(memory, "The user builds a Xylofon.", topic="project", slot="instrument")
            clock.forward(days=200)
            data = b"".join(p.read_bytes() for p in tmp_path.iterdir())
            assert b"Xylofon" in data
            memory.maintain()
            data = b"".join(p.read_bytes() for p in tmp_path.iterdir())
            assert (b"ylofon" in data, b"instrument" in data) == (False, False)


class TestPruning:
    def test_what_faded_goes_but_not_what_matters(self, make):
        """An allergy does not end because nobody spoke of it for forty-five years."""
        clock = Clock()
        memory = make(clock=clock)
        faded = put(memory, "The user read a book about bees.")
        put(memory, "The user is allergic to peanuts.", topic="diet/allergy", slot="peanuts")
        clock.forward(days=180 * 4)
        assert memory.maintain("u1").done == ()
        clock.forward(days=180)
        assert did(memory.maintain("u1")) == [("prune", "confidence_below_floor", faded)]
        clock.forward(days=3_650 * 4.5)
        assert memory.maintain("u1").done == ()
        assert len(memory.get_all(user_id="u1")) == 1

    def test_an_inferred_sensitive_fact_goes(self, make):
        clock = Clock()
        memory = make(clock=clock)
        put(memory, "The user eats fish.", topic="diet", source_type="user_implicit")
        clock.forward(days=365 * 5)
        assert memory.maintain("u1").counts == {"prune": 1}

    def test_the_floor_is_an_argument(self, make):
        clock = Clock()
        memory = make(clock=clock)
        put(memory, "The user read a book about bees.")
        clock.forward(days=180)
        assert memory.maintain("u1", floor=0.4).done == ()
        assert memory.maintain("u1", floor=0.5).counts == {"prune": 1}


class TestDeduplication:
    def test_the_better_supported_survives_with_the_sources_of_both(self, make):
        memory = make(clock=Clock())
        strong = put(memory, HIKES, "a", slot="hikes", entities=["mountains"])
        assert put(memory, HIKES, "b", slot="hikes") == strong
        weak = put(memory, GOOD_HIKES, "c", slot="hikes", entities=["friends"])
        report = memory.maintain("u1")
        assert [(u.action, u.reason, u.id, u.other) for u in report.done] == [
            ("deduplicate", "near_identical", weak, strong)
        ]
        [left] = memory.get_all(user_id="u1")
        assert (left.memory_id, left.content, left.supersedes) == (strong, HIKES, (weak,))
        assert sorted(s.source_id for s in left.sources) == ["a", "b", "c"]
        assert left.confidence == 1.0
        assert left.entities == ("mountains", "friends")
        absorbed = stored(memory)[weak]
        assert (absorbed.status, absorbed.superseded_by) == ("superseded", strong)
        assert absorbed.history[-1].reason == "near_identical"
        assert memory.maintain("u1").done == ()

    @pytest.mark.parametrize(
        "other",
        [
            BULLETS.replace("3", "5"),
            BULLETS.replace("that every", "that not every"),
            BULLETS.replace("support", "Berlin"),
            BULLETS.replace("3", "three"),
        ],
        ids=["number", "negation", "name", "numeral"],
    )
    def test_near_is_not_the_same(self, make, other):
        memory = make()
        put(memory, BULLETS, slot="answers", topic="decision")
        put(memory, other, slot="answers", topic="decision")
        assert len(memory.get_all(user_id="u1")) == 2
        assert memory.maintain("u1").done == ()

    @pytest.mark.parametrize(
        "fields",
        [{"slot": "walks"}, {"topic": "decision"}, {"subject": "Bob"}, {"value": "long ones"}],
        ids=lambda f: next(iter(f)),
    )
    def test_what_is_about_something_else_is_not_the_same(self, make, fields):
        memory = make()
        put(memory, HIKES, slot="hikes", value="short ones")
        put(memory, GOOD_HIKES, **({"slot": "hikes", "value": "short ones"} | fields))
        assert memory.maintain("u1").done == ()

    def test_separate_periods_stay_two_intervals(self, make):
        memory = make(clock=Clock())
        first = {"valid_from": "2010-01-01T00:00Z", "valid_to": "2012-01-01T00:00Z"}
        second = {"valid_from": "2015-01-01T00:00Z", "valid_to": "2017-01-01T00:00Z"}
        put(memory, HIKES, slot="hikes", **first)
        put(memory, GOOD_HIKES, slot="hikes", **second)
        assert memory.maintain("u1").done == ()
        assert len(memory.get_all(user_id="u1")) == 2

    def test_overlapping_periods_become_one(self, make):
        memory = make(clock=Clock())
        put(memory, HIKES, slot="hikes", valid_from="2010-01-01T00:00Z", valid_to="2012-01-01T00:00Z")
        put(memory, GOOD_HIKES, slot="hikes", valid_from="2011-01-01T00:00Z", valid_to="2017-01-01T00:00Z")
        memory.maintain("u1")
        [left] = memory.get_all(user_id="u1")
        assert (left.valid_from.year, left.valid_to.year) == (2010, 2017)
        assert len(memory.search("hikes", user_id="u1", valid_at="2011-06-01T00:00Z")) == 1

    def test_deleting_the_survivor_erases_what_became_one_with_it(self, make):
        memory = make()
        put(memory, HIKES, slot="hikes")
        put(memory, GOOD_HIKES, slot="hikes")
        memory.maintain("u1")
        [left] = memory.get_all(user_id="u1")
        memory.delete(left.memory_id, user_id="u1")
        assert stored(memory) == {}


class TestRepair:
    def test_an_interrupted_supersession_is_completed(self, make):
        memory = make(clock=Clock())
        old = record(seq=1)
        new = record(
            memory_id="m_2", seq=2, content="The user eats fish again.", value="fish", supersedes=("m_1",)
        )  # the process died before it closed the old one
        plant(memory, new, old)
        assert did(memory.maintain("u1")) == [("repair", "interrupted_supersession", "m_1")]
        assert [r.memory_id for r in memory.get_all(user_id="u1")] == ["m_2"]
        closed = stored(memory)["m_1"]
        assert (closed.status, closed.superseded_by) == ("superseded", "m_2")
        assert memory.maintain("u1").done == ()

    def test_what_was_edited_away_is_in_no_chain(self, make):
        memory = make()
        edit = HistoryEntry(at=START, action="RETRACT", reason="turn_edited")
        gone = record(status="retracted", superseded_by="m_2", history=(edit,))
        plant(memory, gone, record(memory_id="m_2", seq=2, value="vegan", supersedes=("m_1",)))
        report = memory.maintain("u1")
        assert did(report) == [("repair", "dangling_pointer", "m_1"), ("repair", "dangling_pointer", "m_2")]
        memory.delete("m_2", user_id="u1", previous="restore")
        assert [(r.memory_id, r.status) for r in stored(memory).values()] == [("m_1", "retracted")]

    def test_dangling_pointers_are_mended(self, make):
        memory = make(clock=Clock())
        plant(
            memory,
            record(seq=1, supersedes=("m_gone",), contested_by=("m_lost",)),
            record(memory_id="m_2", seq=2, topic="general", slot="x", status="superseded", superseded_by="m_gone"),
        )
        report = memory.maintain("u1")
        assert did(report) == [("repair", "dangling_pointer", "m_1"), ("repair", "dangling_pointer", "m_2")]
        links = {i: (r.supersedes, r.contested_by, r.superseded_by) for i, r in stored(memory).items()}
        assert links == {"m_1": ((), (), None), "m_2": ((), (), None)}

    def test_a_challenger_without_its_incumbent_is_believed(self, make):
        memory = make(clock=Clock())
        plant(memory, record(seq=1, status="contested", contests="m_gone"))
        memory.maintain("u1")
        [left] = memory.get_all(user_id="u1")
        assert (left.content, left.contests) == ("The user follows a vegetarian diet.", None)

    def test_of_two_rivals_the_later_stays(self, make):
        memory = make(clock=Clock())
        plant(
            memory,
            record(source(source_id="a"), seq=1),
            record(source(source_id="b"), memory_id="m_2", seq=2, content="The user eats fish again.", value="fish"),
        )
        assert did(memory.maintain("u1")) == [("repair", "rivals_on_one_slot", "m_1")]
        [left] = memory.get_all(user_id="u1")
        assert (left.memory_id, left.supersedes) == ("m_2", ("m_1",))
        assert [(s.source_id, s.role) for s in left.sources] == [("a", "lineage"), ("b", "support")]

    def test_an_inferred_fact_gives_way_to_a_newer_explicit_one(self, make):
        memory = make(clock=Clock())
        plant(
            memory,
            record(source("user_implicit"), seq=1, confidence=0.65),
            record(source(source_id="b"), memory_id="m_2", seq=2, content="The user eats fish again.", value="fish"),
        )
        report = memory.maintain("u1")
        assert [(u.action, u.reason, u.id, u.other) for u in report.done] == [
            ("rescore", "inferred_outdated", "m_1", "m_2")
        ]

    def test_a_newer_inferred_fact_only_contests_an_explicit_one(self, make):
        memory = make(clock=Clock())
        plant(
            memory,
            record(seq=1),
            record(source("user_implicit", "b"), memory_id="m_2", seq=2, content="The user eats fish.", value="fish"),
        )
        assert did(memory.maintain("u1")) == [("repair", "below_trust", "m_2")]
        [left] = memory.get_all(user_id="u1")
        assert (left.memory_id, left.contested_by) == ("m_1", ("m_2",))

    def test_rivals_that_say_the_same_become_one(self, make):
        memory = make(clock=Clock())
        plant(memory, record(source(source_id="a"), seq=1), record(source(source_id="b"), memory_id="m_2", seq=2))
        assert did(memory.maintain("u1")) == [("deduplicate", "same_fact", "m_1")]
        assert [r.confidence for r in memory.get_all(user_id="u1")] == [0.95]


class TestTurns:
    def test_turns_that_nothing_rests_on_keep_no_word(self, make):
        memory = make(clock=Clock(), extractor=Scripted({"I build a boat": [fact("The user builds a boat.", "issue")]}))
        memory.add(HumanMessage("I build a boat", id="h1"), user_id="u1", session_id="s")
        assert memory.maintain("u1").done == ()
        for one in stored(memory):  # by another tool
            memory.store.delete(FACTS, one)
        report = memory.maintain("u1")
        assert did(report) == [("collect", "no_record_needs_it", "s/h1")]
        assert "boat" not in str([t.model_dump() for t in turns(memory).values()])
        assert memory.add(HumanMessage("I build a boat", id="h1"), user_id="u1", session_id="s") == []
        assert stored(memory) == {}
        assert memory.maintain("u1").done == ()

    def test_of_what_ended_the_candidates_stay(self, make):
        ended = [fact("The user works at Acme.", "work/employer", "Acme", intent="retract")]
        script = {"I work at Acme": [fact("The user works at Acme.", "work/employer", "Acme")], "I left Acme": ended}
        memory = make(clock=Clock(), extractor=Scripted(script))
        memory.add(HumanMessage("I work at Acme", id="h1"), user_id="u1", session_id="a")
        memory.add(HumanMessage("I left Acme", id="h2"), user_id="u1", session_id="b")
        assert memory.maintain("u1").counts == {"collect": 2}
        assert [m.text for t in turns(memory).values() for m in t.messages] == ["", ""]
        memory.forget_source("b", user_id="u1")
        assert [r.content for r in memory.get_all(user_id="u1")] == ["The user works at Acme."]


class TestSize:
    def test_it_is_told_once_per_crossing(self, make):
        told: list[dict] = []
        memory = make(on_event=lambda name, data: told.append(data) if name == "size" else None)
        ids = [put(memory, f"The user owns object number {n}.") for n in range(3)]
        assert memory.maintain("u1", alert_at=4).done == ()
        put(memory, "The user owns a boat.")
        assert did(memory.maintain("u1", alert_at=4)) == [("alert", "size", "")]
        assert memory.maintain("u1", alert_at=4).done == ()
        assert told == [{"user_id": "u1", "records": 4, "alert_at": 4}]
        memory.delete(ids, user_id="u1")
        assert memory.maintain("u1", alert_at=4).done == ()
        for n in range(10, 13):
            put(memory, f"The user owns object number {n}.")
        assert memory.maintain("u1", alert_at=4).counts == {"alert": 1}
        assert len(told) == 2


class TestHold:
    def test_nothing_is_deleted_under_a_hold_and_the_report_says_so(self, make):
        clock = Clock()
        memory = make(clock=clock)
        put(memory, "The user builds a boat.", topic="project", slot="boat")
        put(memory, HIKES, slot="hikes", importance=0.9)
        put(memory, GOOD_HIKES, slot="hikes")
        memory.hold("u1", "case 7")
        clock.forward(days=2_000)
        report = memory.maintain("u1")
        assert report.held == ("u1",)
        assert report.counts == {"deduplicate": 1}
        assert len(stored(memory)) == 3
        with pytest.raises(OnHold):
            memory.delete_all(user_id="u1")
        memory.lift_hold("u1")
        report = memory.maintain("u1")
        assert (report.held, report.counts) == ((), {"expire": 1, "prune": 2, "collect": 1})

    def test_a_pause_does_not_stop_upkeep(self, make):
        clock = Clock()
        memory = make(clock=clock)
        put(memory, "The user builds a boat.", topic="project", slot="boat")
        memory.pause("u1")
        clock.forward(days=200)
        assert memory.maintain("u1").counts == {"expire": 1}


class TestRunning:
    def test_everybodys_and_the_applications(self, make):
        clock = Clock()
        memory = make(clock=clock)
        seen: list[tuple[int, int]] = []
        soon = clock.now + timedelta(days=1)
        for user in ("a", "b"):
            memory.add_fact("The user waits.", user_id=user, source_id="crm", expires_at=soon)
        memory.add_fact("The office is closed.", scope="app", source_id="crm", expires_at=soon)
        memory.add_fact("The user waits.", user_id="c", source_id="crm", app_name="other", expires_at=soon)
        clock.forward(days=60)
        report = memory.maintain(progress=lambda done, total: seen.append((done, total)))
        assert sorted((u.user_id, u.action) for u in report.done) == [("", "expire"), ("a", "expire"), ("b", "expire")]
        assert (report.owners, seen) == (3, [(0, 3), (1, 3), (2, 3), (3, 3)])
        assert len(memory.get_all(user_id="c", status="all", app_name="other")) == 1

    def test_facts_of_sessions_and_agents_too(self, make):
        clock = Clock()
        memory = make(clock=clock)
        soon = clock.now + timedelta(days=1)
        put(memory, "The user waits.", scope="session", session_id="s", expires_at=soon)
        put(memory, "The user waits.", scope="agent", agent_id="g", expires_at=soon)
        clock.forward(days=60)
        assert memory.maintain("u1").counts == {"expire": 2}
        assert stored(memory) == {}

    def test_an_interrupted_run_is_taken_up(self, make):
        clock = Clock()
        memory = make(clock=clock)
        for user in ("a", "b", "c"):
            memory.add_fact("The user builds.", user_id=user, source_id="crm", topic="project", slot="x")
        clock.forward(days=200)

        class Killed(Exception):
            pass

        def killed(done: int, total: int) -> None:
            if done == 2:
                raise Killed

        with pytest.raises(Killed):
            memory.maintain(progress=killed)
        assert memory.maintain().counts == {"expire": 1}

    def test_in_batches(self, make, monkeypatch):
        monkeypatch.setattr("langmem_adapter.maintenance.BATCH", 2)
        clock = Clock()
        memory = make(clock=clock)
        ids = [put(memory, f"The user builds boat {n}.", topic="project", slot=f"{n}") for n in range(5)]
        clock.forward(days=200)
        assert sorted(u.id for u in memory.maintain("u1").done) == sorted(ids)
        assert stored(memory) == {}
        assert sorted(len(r.erased) for r in memory.receipts(user_id="u1")) == [1, 2, 2]

    async def test_the_async_twin_does_the_same(self, make):
        clock = Clock()
        memory = make(clock=clock)
        await memory.aadd_fact("The user builds.", user_id="u1", source_id="crm", topic="project", slot="x")
        clock.forward(days=200)
        assert (await memory.amaintain("u1")).counts == {"expire": 1}

    def test_beside_live_traffic_nothing_is_lost(self, make):
        memory = make(clock=Clock())
        failed: list[BaseException] = []

        def chat() -> None:
            try:
                for n in range(8):
                    put(memory, f"{HIKES} {n}", f"s{n}", slot="hikes")
            except BaseException as error:  # noqa: BLE001 - told to the test
                failed.append(error)

        for n in range(8):
            put(memory, f"{GOOD_HIKES} {n}", f"t{n}", slot="hikes")
        thread = threading.Thread(target=chat)
        thread.start()
        for _ in range(3):
            memory.maintain("u1")
        thread.join()
        memory.maintain("u1")
        assert failed == []
        left = memory.get_all(user_id="u1")
        assert sorted(s.source_id for r in left for s in r.sources) == sorted(f"{c}{n}" for n in range(8) for c in "st")
        assert len(left) == 8

    def test_an_unknown_user_has_nothing_to_keep_up(self, make):
        assert make().maintain("nobody").done == ()

    def test_bad_arguments_are_told(self, make):
        memory = make()
        for bad in ({"user_id": " "}, {"floor": "x"}, {"alert_at": 0}, {"retention_days": -1}):
            with pytest.raises(ValueError, match=r"user_id|floor|alert_at|retention_days"):
                memory.maintain(**bad)
        with pytest.raises(ValueError, match="maintain_every"):
            make(maintain_every=0)

    def test_a_checkpointer_is_maintained_with_all(self, make, tmp_path):
        from langmem_adapter.checkpoint.sqlite import SqliteCheckpointer

        with SqliteCheckpointer(tmp_path / "threads.db") as checkpointer:
            memory = make(checkpointer=checkpointer)
            put(memory, "The user waits.")
            assert memory.maintain("u1").checkpoints is None
            assert memory.maintain().checkpoints == 0
            assert asyncio.run(memory.amaintain()).checkpoints == 0


class TestByItself:
    def test_after_so_many_memories(self, make):
        events: list[str] = []
        memory = make(maintain_every=5, on_event=lambda name, data: events.append(name))
        for n in range(4):
            memory.add_fact(f"The user owns object number {n}.", user_id="u1", source_id="crm")
        memory.add_fact("The user owns a boat.", user_id="u2", source_id="crm")
        assert "maintained" not in events
        put(memory, "The user owns a house.")
        assert events.count("maintained") == 1

    def test_in_the_worker_if_there_is_one(self, make):
        threads: list[str] = []

        def heard(name: str, data: dict) -> None:
            if name == "maintained":
                threads.append(threading.current_thread().name)

        memory = make(maintain_every=1, when="background", on_event=heard)
        memory.add("I'm a vegetarian.", user_id="u1", session_id="s")
        assert memory.drain(10)
        assert threads == ["langmem_adapter"]

    def test_never_if_not_wanted(self, make):
        events: list[str] = []
        memory = make(maintain_every=None, on_event=lambda name, data: events.append(name))
        for n in range(60):
            memory.add_fact(f"The user owns object number {n}.", user_id="u1", source_id="crm")
        assert "maintained" not in events

    def test_its_failure_is_told_and_does_not_fail_the_turn(self, tmp_path):
        events: list[tuple[str, dict]] = []

        def full() -> None:
            raise StoreError("the disk is full")

        memory = Memory(tmp_path / "m.db", maintain_every=1, on_event=lambda *event: events.append(event))
        memory.store.erase_with = lambda puts, *, expect: full()  # the one thing that only erasing needs
        memory.add_fact("The user waits.", user_id="u1", source_id="crm", expires_at=START - timedelta(days=9_000))
        assert ("maintenance_failed", {"user_id": "u1", "error": "StoreError"}) in events
        assert len(stored(memory)) == 1
        memory.close()


class TestTime:
    """What was believed then, and what was true then, after upkeep and after forgetting too."""

    @staticmethod
    def homes(memory: Memory, clock: Clock) -> list[str]:
        """A year in Rome, one in Bonn, and Rome again."""
        ids = []
        for city in ("Rome", "Bonn", "Rome"):
            ids.append(
                put(memory, f"The user lives in {city}.", f"in {city} {len(ids)}", topic="home/location", value=city)
            )
            clock.forward(days=365)
        return ids

    @staticmethod
    def lived(memory: Memory, **then) -> list[str]:
        hits = memory.search("where does the user live?", user_id="u1", topics="home/location", **then)
        return [h.record.memory_id for h in hits]

    def test_a_fact_true_in_two_periods_has_two_intervals(self, make):
        clock = Clock()
        memory = make(clock=clock)
        first, bonn, second = self.homes(memory, clock)
        memory.maintain("u1")
        for days, there in ((100, first), (465, bonn), (830, second)):
            then = START + timedelta(days=days)
            assert self.lived(memory, valid_at=then) == [there]
            assert self.lived(memory, as_of=then) == [there]

    def test_without_the_years_between_one_interval_is_left(self, make):
        clock = Clock()
        memory = make(clock=clock)
        first, _, _ = self.homes(memory, clock)
        memory.maintain("u1")
        memory.forget_source("in Bonn 1", user_id="u1")
        memory.maintain("u1")
        for days in (100, 465, 830):
            then = START + timedelta(days=days)
            assert self.lived(memory, valid_at=then) == [first]
            assert self.lived(memory, as_of=then) == [first]

    @pytest.mark.parametrize("topic", ["home/location", "general"])
    def test_periods_that_are_named_stay_apart_too(self, make, topic):
        clock = Clock()
        memory = make(clock=clock)
        for start, end in (("2010", "2012"), ("2015", "2017")):
            clock.forward(days=1)
            put(memory, "The user lived in Rome.", f"in {start}", topic=topic, value="Rome", slot="home",
                valid_from=f"{start}-01-01T00:00Z", valid_to=f"{end}-01-01T00:00Z")  # fmt: skip
        memory.maintain("u1")

        def true_in(year: int) -> list[str]:
            hits = memory.search("Rome", user_id="u1", valid_at=f"{year}-06-01T00:00Z")
            return [s.source_id for h in hits for s in h.record.sources if s.role == "support"]

        assert [true_in(year) for year in (2011, 2013, 2016, 2018)] == [["in 2010"], [], ["in 2015"], []]

    def test_the_same_period_told_again_is_one_fact(self, make):
        memory = make(clock=Clock())
        period = {"valid_from": "2010-01-01T00:00Z", "valid_to": "2012-01-01T00:00Z"}
        one = put(memory, "The user lived in Rome.", "a", **period)
        assert put(memory, "The user lived in Rome.", "b", **period) == one

    def test_what_became_one_was_believed_apart_before(self, make):
        clock = Clock()
        memory = make(clock=clock)
        old = put(memory, HIKES, "a", slot="hikes")
        clock.forward(days=10)
        new = put(memory, GOOD_HIKES, "b", slot="hikes")
        clock.forward(days=10)
        memory.maintain("u1")
        clock.forward(days=10)

        def found(**then) -> list[str]:
            return sorted(h.record.memory_id for h in memory.search("walks", user_id="u1", **then))

        assert found() == [new]
        assert found(as_of=START + timedelta(days=15)) == sorted([old, new])
        assert found(as_of=START + timedelta(days=5)) == [old]
        assert found(valid_at=START + timedelta(days=5)) == [new]
        memory.forget_source("b", user_id="u1")
        assert found() == [old]
        assert found(as_of=START + timedelta(days=25)) == [old]

    def test_history_reads_as_a_timeline(self, make):
        clock = Clock()
        memory = make(clock=clock)
        first, bonn, second = self.homes(memory, clock)
        put(memory, "The user lives in Rome.", "again", topic="home/location", value="Rome")
        told = memory.history(second, user_id="u1")
        assert [(h.at, h.action, h.memory_id) for h in told] == [
            (START, "CREATE", first),
            (START + timedelta(days=365), "UPDATE", bonn),
            (START + timedelta(days=730), "UPDATE", second),
            (START + timedelta(days=1095), "NOOP", second),
        ]
        assert [h.memory_id for h in memory.history(bonn, user_id="u1")] == [first, bonn, bonn]
        assert [h.action for h in memory.history(first, user_id="u1")] == ["CREATE", "UPDATE"]

    def test_a_merge_is_part_of_the_story(self, make):
        memory = make(clock=Clock())
        old = put(memory, HIKES, "a", slot="hikes")
        new = put(memory, GOOD_HIKES, "b", slot="hikes")
        memory.maintain("u1")
        told = [(h.action, h.reason, h.memory_id) for h in memory.history(new, user_id="u1")]
        assert told == [("CREATE", "new", old), ("CREATE", "new", new), ("MERGE", "near_identical", new)]


# Not on Chroma, where each of the many erasures rebuilds a folder: a minute.
@pytest.mark.parametrize("make", ["sqlite", "in_memory", "postgres"], indirect=True)
def test_a_year(make):
    """Three users talk every day and upkeep runs once a week: afterwards everything is as it should be."""
    clock = Clock()
    memory = make(clock=clock, retention_days=30, maintain_every=None)
    users = ("u1", "u2", "u3")
    for user in users:
        for content, topic, slot in (
            ("is called Ada", "identity/name", ""),
            ("is allergic to nuts", "diet/allergy", "nuts"),
        ):
            memory.add_fact(f"The user {content}.", user_id=user, topic=topic, slot=slot, source_id="person",
                            source_type="user_explicit")  # fmt: skip
    reports = []
    for day in range(365):
        user = users[day % 3]
        what, n = ("project", "issue", "home", "walk")[day // 3 % 4], day // 24
        said = {
            "project": {"content": f"The user builds boat {n}.", "topic": "project", "slot": f"boat {n}"},
            "issue": {"content": f"The user's printer {n} is broken.", "topic": "issue"},
            "home": {"content": f"The user lives in town {n}.", "topic": "home/location", "value": f"town {n}"},
            "walk": {"content": GOOD_HIKES if n % 2 else HIKES, "topic": "decision", "slot": "walks"},
        }[what]
        memory.add_fact(**said, user_id=user, source_id=f"day {day}", source_type="user_explicit")
        clock.forward(days=1)
        if day % 7 == 6:
            reports.append(memory.maintain())
    reports.append(memory.maintain())
    counts = sum((Counter(r.counts) for r in reports), Counter())
    assert counts.keys() == {"expire", "deduplicate"}
    assert min(counts.values()) > 20
    for user in users:
        records = {r.memory_id: r for r in memory.get_all(user_id=user, status="all")}
        now = clock()
        assert [r for r in records.values() if r.expires_at and r.expires_at + timedelta(days=30) <= now] == []
        links = {
            i for r in records.values() for i in (*r.supersedes, r.superseded_by, r.contests, *r.contested_by) if i
        }
        assert links <= records.keys()
        held = Counter((r.topic, r.slot) for r in records.values() if r.is_active(now) and memory._rules.exclusive(r))
        assert set(held.values()) == {1}
        assert {r.topic for r in records.values() if r.is_active(now)} >= {
            "identity/name",
            "diet/allergy",
            "home/location",
        }
        towns = [r for r in records.values() if r.topic == "home/location"]
        assert len({s.source_id for r in towns for s in r.sources if s.role == "support"}) == len(
            [d for d in range(365) if users[d % 3] == user and d // 3 % 4 == 2]
        )
        assert len([r for r in records.values() if r.is_active(now) and r.slot == "walks"]) == 1
    assert memory.maintain().done == ()
