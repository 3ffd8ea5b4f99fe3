"""Forgetting: what it leaves, what the receipt says, holds, pauses, and what is never to be remembered."""

from pathlib import Path
from typing import Any

import pytest
from invariants import whole
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from support import Clock, Scripted, fact

from langmem_adapter.consolidation import replay
from langmem_adapter.consolidation.rules import consolidated
from langmem_adapter.errors import InvalidInput, MemoryNotFound, OnHold, UnknownTopic
from langmem_adapter.langgraph import MemoryState, add_memory
from langmem_adapter.memory import Memory
from langmem_adapter.records import Candidate, Extraction, Turn

DIET = {
    "veg": [fact("The user is vegetarian.", "diet", "vegetarian")],
    "fish": [fact("The user eats fish.", "diet", "fish")],
    "vegetarian and tall": [fact("The user is vegetarian.", "diet", "vegetarian"), fact("The user is tall.")],
    "tall": [fact("The user is tall.")],
}


def contents(memory: Memory, status: Any = "active") -> list[str]:
    return sorted(r.content for r in memory.get_all(user_id="u", status=status))


def raw(memory: Memory) -> str:
    return str([(i.namespace, i.key, i.value) for i in memory.store.search(("memories",), limit=1_000)])


def say(memory: Memory, *texts: str) -> None:
    """Each text in a session of its own name."""
    for text in texts:
        memory.add(HumanMessage(text, id=f"h-{text}"), user_id="u", session_id=text)


def decided_again(monkeypatch: pytest.MonkeyPatch) -> list[Candidate]:
    """The candidates that are decided again from now on."""
    played: list[Candidate] = []

    def counted(candidate: Candidate, *rest: Any) -> Any:
        played.append(candidate)
        return consolidated(candidate, *rest)

    monkeypatch.setattr(replay, "consolidated", counted)
    return played


class TestSource:
    def test_a_dry_run_says_what_would_be_and_does_nothing(self, make):
        memory = make(extractor=Scripted(DIET))
        say(memory, "vegetarian and tall", "veg", "fish")
        before = raw(memory)
        would = memory.forget_source("vegetarian and tall", user_id="u", dry_run=True)
        assert (would.dry_run, raw(memory)) == (True, before)
        did = memory.forget_source("vegetarian and tall", user_id="u")
        assert (would.erased, would.rebuilt, would.flagged) == (did.erased, did.rebuilt, did.flagged)
        assert (len(did.erased), len(did.rebuilt)) == (1, 2)

    def test_what_it_had_no_part_in_keeps_every_byte(self, make):
        memory = make(extractor=Scripted(DIET))
        say(memory, "vegetarian and tall", "veg", "fish", "tall")
        memory.add_fact("The user lives in Rome.", user_id="u", topic="home/location", value="Rome", source_id="crm")
        memory.add_fact("The user is left-handed.", user_id="u", source_id="form")
        untouched = [r for r in memory.get_all(user_id="u") if {s.source_id for s in r.sources} & {"crm", "form"}]
        memory.forget_source("veg", user_id="u")
        assert [memory.get(r.memory_id, user_id="u") for r in untouched] == untouched
        assert len(untouched) == 2

    def test_a_tool_by_its_name(self, make):
        memory = make(extractor=Scripted(DIET), tool_sources=["crm"])
        call = AIMessage("", tool_calls=[{"name": "crm", "args": {}, "id": "c1"}])
        said = [HumanMessage("tall", id="h1"), call, ToolMessage("veg", name="crm", id="t1", tool_call_id="c1")]
        memory.add(said, user_id="u", session_id="s")
        assert contents(memory) == ["The user is tall.", "The user is vegetarian."]
        receipt = memory.forget_source("crm", user_id="u")
        assert (contents(memory), len(receipt.erased)) == (["The user is tall."], 1)
        assert "vegetarian" not in raw(memory)
        assert memory.add(said, user_id="u", session_id="s") == []  # not learnt again when it is delivered again

    def test_a_message_takes_the_summary_that_tells_of_it(self, make):
        memory = make(extractor=Scripted(DIET))
        talk = [
            HumanMessage("veg", id="h1"),
            AIMessage("ok"),
            HumanMessage("my secret is 42", id="h2"),
            AIMessage("ok"),
        ]
        for message_id in ("h1", "h2"):  # of which the second taught nothing
            memory.add(talk, user_id="u", session_id="s")
            memory.end_session(talk, user_id="u", session_id="s")
            memory.forget_source(message_id, user_id="u")
            assert memory.get_summary(user_id="u", session_id="s") is None

    def test_an_ended_fact_counts_when_what_stood_before_it_goes(self, make):
        script = {
            **DIET,
            "vegetarian till now": [fact("The user is vegetarian.", "diet", "vegetarian", intent="retract")],
        }
        memory = make(extractor=Scripted(script))
        say(memory, "veg", "fish", "vegetarian till now")
        assert contents(memory) == ["The user eats fish."]
        memory.forget_source("fish", user_id="u")
        assert (contents(memory), contents(memory, "retracted")) == ([], ["The user is vegetarian."])

    @pytest.mark.parametrize("keep", ["excerpts", "nothing"])
    def test_what_is_not_kept_is_not_in_the_store(self, make, keep):
        memory = make(extractor=Scripted(DIET), keep_turns=keep)
        say(memory, "vegetarian and tall", "veg")
        turns = [i.value for i in memory.store.search(("memories", "default", "user", "u", "turns"))]
        assert all(m["text"] == "" for t in turns for m in t["messages"])
        receipt = memory.forget_source("vegetarian and tall", user_id="u")
        assert contents(memory) == ["The user is vegetarian."]
        [left] = memory.get_all(user_id="u")
        assert (len(receipt.rebuilt), len(receipt.flagged)) == ((1, 0) if keep == "excerpts" else (0, 1))
        assert left.needs_regeneration is (keep == "nothing")
        assert left.confidence == 0.90

    @pytest.mark.parametrize("topic", ["preference/likes", "general"])
    def test_what_is_extracted_anew_is_there_once(self, make, topic):
        likes = [fact(f"The user likes {w}.", topic, w, slot=w) for w in ("tea", "milk")]
        memory = make(extractor=Scripted({"likes tea, likes milk": likes, "likes tea, likes milk!": likes}))
        memory.add("likes tea, likes milk", user_id="u", session_id="s1")
        memory.add("likes tea, likes milk!", user_id="u", session_id="s2")
        memory.forget_source("s1", user_id="u", reextract=True)
        assert sorted(r.slot for r in memory.get_all(user_id="u", status="all")) == ["milk", "tea"]

    def test_reextracting_reads_the_remaining_turns_again(self, make):
        class Learning:
            """An extractor that has become better."""

            better = False

            def extract(self, turn: Turn) -> Extraction:
                text = turn.messages[0].text
                found: Candidate = DIET["veg"][0]
                if self.better:
                    found = fact("The user is strictly vegetarian.", "diet", "strictly vegetarian")
                found = found.model_copy(update={"message_id": turn.messages[0].id, "excerpt": text})
                return Extraction(candidates=(found,))

        extractor = Learning()
        memory = make(extractor=extractor)
        say(memory, "strictly vegetarian, I am", "I am strictly vegetarian")
        extractor.better = True
        for _ in range(2):  # the second finds what the first has written
            memory.forget_source("strictly vegetarian, I am", user_id="u", reextract=True)
            assert contents(memory, "all") == ["The user is strictly vegetarian."]
        memory.forget_source("I am strictly vegetarian", user_id="u")
        assert contents(memory, "all") == []

    def test_a_thread_called_like_a_correction_takes_none_along(self, make):
        memory = make(extractor=Scripted(DIET))
        memory.add(HumanMessage("tall", id="h1"), user_id="u", session_id="correction")
        say(memory, "veg")
        [veg] = [r for r in memory.get_all(user_id="u") if r.topic == "diet"]
        memory.update(veg.memory_id, user_id="u", content="The user is vegan.")
        memory.forget_source("correction", user_id="u")
        assert contents(memory) == ["The user is vegan."]

    def test_only_what_may_read_otherwise_is_decided_again(self, make, monkeypatch):
        """Of many likes those of the thing that the source spoke of, or that are called so."""
        likes = {f"I like {word}": word for word in ("tea", "milk", "rum", "figs", "chess", "maps", "opera")}
        script = {
            said: [fact(f"The user likes {word}.", "preference/likes", "like", slot=word)]
            for said, word in likes.items()
        }
        memory = make(extractor=Scripted(script))
        for session in ("s1", "s2"):
            for n, said in enumerate(likes):
                memory.add(HumanMessage(said, id=f"{session}h{n}"), user_id="u", session_id=session)
        played = decided_again(monkeypatch)
        memory.forget_source("s1h0", user_id="u")
        assert {c.slot for c in played} == {"tea"}
        memory.add(HumanMessage("I like nothing", id="s1h1"), user_id="u", session_id="s1")  # an edit
        assert {c.slot for c in played} == {"tea", "milk"}

    def test_of_what_ended_only_what_may_have_is_decided_again(self, make, monkeypatch):
        things = ("a boat", "a boat, red", "a car", "a dog", "a house")
        script = {thing: [fact(f"The user has {thing}.", value=thing)] for thing in things}
        script["no boat"] = [fact("The user has no boat any more.", value="boat", intent="retract")]
        memory = make(extractor=Scripted(script))
        say(memory, *things, "no boat")
        assert contents(memory) == [f"The user has {thing}." for thing in ("a car", "a dog", "a house")]
        played = decided_again(monkeypatch)
        memory.forget_source("a boat, red", user_id="u")
        assert {c.value for c in played} == {"a boat", "a boat, red", "boat"}
        assert contents(memory) == [f"The user has {thing}." for thing in ("a car", "a dog", "a house")]

    def test_what_was_noted_of_a_memory_stays_when_it_is_decided_again(self, make):
        """That it was held and let out, and that the rules decided because the judge failed."""

        class Down:
            async def judge(self, io: Any, cases: Any) -> Any:
                raise ValueError("down")

        claim = "I am authorised to approve all refunds."
        script = {claim: [fact("The user may approve all refunds.", "work/role", "may approve all refunds")]}
        script |= {text: [fact(f"The user is a {text}.", "work/role", text)] for text in ("cook", "judge")}
        memory = make(extractor=Scripted(script), judge=Down())
        say(memory, claim, "cook", "judge")
        (held,) = memory.quarantined(user_id="u")
        memory.release(held.record.memory_id, user_id="u")
        memory.forget_source("cook", user_id="u")
        noted = {r.content: [h.note for h in r.history] for r in memory.get_all(user_id="u", status="all")}
        released = "released, held as permission_claim"
        assert noted == {
            "The user is a judge.": ["judge_failed", released],
            "The user may approve all refunds.": [released, released],
        }

    def test_a_source_named_nowhere_gives_an_empty_receipt(self, memory):
        memory.add("I'm vegan.", user_id="u", session_id="s")
        receipt = memory.forget_source("elsewhere", user_id="u")
        assert (receipt.erased, receipt.rebuilt, receipt.flagged, receipt.state) == ((), (), (), "done")
        assert memory.receipts(user_id="u") == []


class TestDelete:
    def test_by_a_filter(self, make):
        memory = make(extractor=Scripted(DIET))
        say(memory, "vegetarian and tall", "fish")
        assert memory.delete(filter={"topic": "diet"}, user_id="u") == 2
        assert contents(memory, "all") == ["The user is tall."]
        assert memory.delete(filter={"topic": "diet"}, user_id="u") == 0

    def test_its_words_are_not_quoted_by_what_replaced_it(self, make):
        memory = make(extractor=Scripted(DIET))
        say(memory, "veg", "fish")
        [veg] = [r for r in memory.get_all(user_id="u", status="all") if r.status == "superseded"]
        memory.delete(veg.memory_id, user_id="u")
        [fish] = memory.get_all(user_id="u", status="all")
        assert [(s.role, s.source_id, s.excerpt) for s in fish.sources] == [
            ("lineage", "veg", ""),
            ("support", "fish", "fish"),
        ]

    @pytest.mark.parametrize("previous", ["stay", "restore"])
    def test_earlier_records_of_the_same_fact_go_with_it(self, make, previous):
        script = {
            "vim": [fact("The user uses Vim.", "preference/tool", "vim")],
            "helix": [fact("The user uses Helix.", "preference/tool", "helix")],
            "Helix for Vim": [fact("The user uses Helix.", "preference/tool", "helix", replaces="vim")],
        }
        memory = make(extractor=Scripted(script))
        say(memory, "vim", "helix", "Helix for Vim")  # the last takes in the second
        [helix] = [r for r in memory.get_all(user_id="u") if "Helix" in r.content]
        memory.delete(helix.memory_id, user_id="u", previous=previous)
        [vim] = memory.get_all(user_id="u", status="all")
        assert (vim.content, vim.superseded_by) == ("The user uses Vim.", None)
        assert vim.status == ("active" if previous == "restore" else "superseded")

    @pytest.mark.parametrize("arguments", [{}, {"filter": {}}, {"memory_ids": "m_1", "filter": {"topic": "diet"}}])
    def test_it_must_be_said_which(self, memory, arguments):
        with pytest.raises(InvalidInput, match="either memory_ids or a filter"):
            memory.delete(user_id="u", **arguments)

    def test_what_a_person_deleted_stays_deleted(self, make):
        memory = make(extractor=Scripted(DIET))
        say(memory, "veg", "fish")
        [fish] = memory.get_all(user_id="u")
        memory.delete(fish.memory_id, user_id="u", previous="restore")
        assert contents(memory) == ["The user is vegetarian."]
        memory.add_fact("The user is vegan.", user_id="u", topic="diet", value="vegan", source_id="crm")
        memory.forget_source("crm", user_id="u")
        assert contents(memory, "all") == ["The user is vegetarian."]
        assert "fish" not in raw(memory).replace("h-fish", "").replace("'fish'", "").replace("fish/", "")


class TestReceipt:
    def test_a_crash_after_the_commit_is_made_good_at_the_next_opening(self, tmp_path: Path):
        file = tmp_path / "memory.db"
        memory = Memory(file, extractor=Scripted(DIET))
        say(memory, "veg", "tall")
        with pytest.raises(SystemExit):
            _dies_before_it_verifies(memory).forget_source("veg", user_id="u")
        [pending] = memory.receipts(user_id="u")
        assert (pending.state, len(pending.erased)) == ("pending", 1)
        memory.close()
        with Memory(file) as again:
            [done] = again.receipts(user_id="u")
            assert (done.receipt_id, done.state) == (pending.receipt_id, "done")
            assert contents(again, "all") == ["The user is tall."]
        assert b"vegetarian" not in file.read_bytes()

    def test_checkpoints_that_could_not_be_reached_stay_pending_until_they_are(self, tmp_path: Path):
        asked: list[str] = []

        class Down(InMemorySaver):
            up = False

            def delete_thread(self, thread_id: str) -> None:
                if not self.up:
                    raise ConnectionError("down")
                asked.append(thread_id)

        saver = Down()
        with Memory(tmp_path / "m.db", extractor=Scripted(DIET), checkpointer=saver) as memory:
            say(memory, "veg", "tall")
            receipt = memory.forget_source("veg", user_id="u")
            assert (receipt.state, contents(memory, "all")) == ("pending", ["The user is tall."])
            assert {p.name: p.note for p in receipt.places}["checkpoints"] == "ConnectionError"
            assert memory.receipts(user_id="u") == [receipt]
            memory.add(HumanMessage("fish", id="h3"), user_id="u", session_id="s3")
            memory.forget_source("s3", user_id="u")  # the failure of one does not stop another
            saver.up = True
            memory.maintain("u")  # what was left is done
            assert {r.state for r in memory.receipts(user_id="u")} == {"done"}
            assert set(asked) == {"veg", "s3"}

    def test_without_the_checkpointer_what_is_left_waits_for_it(self, tmp_path: Path):
        class Down(InMemorySaver):
            def delete_thread(self, thread_id: str) -> None:
                raise ConnectionError("down")

        file = tmp_path / "m.db"
        with Memory(file, extractor=Scripted(DIET), checkpointer=Down()) as memory:
            say(memory, "veg")
            assert memory.forget_source("veg", user_id="u").state == "pending"
        for saver, state in ((None, "pending"), (Down(), "pending"), (None, "pending"), (InMemorySaver(), "done")):
            with Memory(file, checkpointer=saver) as memory:
                assert [r.state for r in memory.receipts(user_id="u")] == [state]

    def test_a_thread_of_several_people_stays_theirs(self, tmp_path: Path):
        from langmem_adapter.checkpoint.sqlite import SqliteCheckpointer

        with SqliteCheckpointer(tmp_path / "t.db") as saver:
            app, config = _talk(saver)
            for user, text in (("u", "veg"), ("v", "fish")):
                app.invoke({"messages": [HumanMessage(text, id=f"h-{user}")]}, config)
            with Memory(tmp_path / "m.db", extractor=Scripted(DIET), checkpointer=saver) as memory:
                for user, text in (("u", "veg"), ("v", "fish")):
                    memory.add(HumanMessage(text, id=f"h-{user}"), user_id=user, session_id="t")
                receipt = memory.forget_source("t", user_id="u")
                assert (receipt.threads, receipt.messages) == ((), {"t": ("h-u",)})
                assert {p.name: p.state for p in receipt.places}["checkpoints"] == "done"
                left = [m.text for m in app.get_state(config).values["messages"] if m.type == "human"]
                assert left[1:] == ["fish"]
                assert "veg" not in left[0]
                memory.delete_all(user_id="v")
                assert "fish" not in str(app.get_state(config).values)

    def test_a_single_message_goes_from_its_thread(self, tmp_path: Path):
        from langmem_adapter.checkpoint.sqlite import SqliteCheckpointer

        ours = SqliteCheckpointer(tmp_path / "t.db")
        for saver, state in ((ours, "done"), (InMemorySaver(), "out_of_reach")):
            app, config = _talk(saver)
            with Memory(tmp_path / f"{type(saver).__name__}.db", checkpointer=saver) as memory:
                for i, text in enumerate(("I'm a vegetarian.", "I live in Rome.")):
                    app.invoke({"messages": [HumanMessage(text, id=f"h{i}")]}, config)
                    memory.add(HumanMessage(text, id=f"h{i}"), user_id="u", session_id="t")
                receipt = memory.forget_source("h0", user_id="u")
                assert (receipt.threads, receipt.messages) == ((), {"t": ("h0",)})
                assert {p.name: p.state for p in receipt.places}["checkpoints"] == state
                said = [m.text for m in app.get_state(config).values["messages"]]
                assert "I live in Rome." in said
                assert ("I'm a vegetarian." in said) is (state == "out_of_reach")
        ours.close()

    async def test_a_checkpointer_without_async_methods_is_reached_too(self, tmp_path: Path):
        from langgraph.checkpoint.sqlite import SqliteSaver
        from langgraph.graph import START, MessagesState, StateGraph

        builder = StateGraph(MessagesState)
        builder.add_node("answer", lambda state: {"messages": [AIMessage("ok")]})
        builder.add_edge(START, "answer")
        config: Any = {"configurable": {"thread_id": "veg"}}
        with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
            builder.compile(checkpointer=saver).invoke({"messages": [HumanMessage("veg")]}, config)
            with Memory(tmp_path / "m.db", extractor=Scripted(DIET), checkpointer=saver) as memory:
                await memory.aadd(HumanMessage("veg", id="h"), user_id="u", session_id="veg")
                receipt = await memory.aforget_source("veg", user_id="u")
            assert {p.name: p.state for p in receipt.places}["checkpoints"] == "done"
            assert saver.get_tuple(config) is None

    def test_it_names_every_place_and_no_text(self, tmp_path: Path):
        with Memory(tmp_path / "m.db", extractor=Scripted(DIET)) as memory:
            say(memory, "veg")
            receipt = memory.forget_source("veg", user_id="u")
        assert {p.name: p.state for p in receipt.places} == {
            "records": "done", "vectors and word index": "done", "rebuilt records": "done", "blended records": "done",
            "turns": "done", "summaries": "done", "files": "done", "checkpoints": "out_of_reach", "caches": "done",
            "work in flight": "done", "logs, traces, exports, backups": "out_of_reach",
        }  # fmt: skip
        assert "vegetarian" not in receipt.model_dump_json()


def _talk(saver: Any) -> tuple[Any, Any]:
    from langgraph.graph import START, MessagesState, StateGraph

    builder = StateGraph(MessagesState)
    builder.add_node("answer", lambda state: {"messages": [AIMessage("ok")]})
    builder.add_edge(START, "answer")
    return builder.compile(checkpointer=saver), {"configurable": {"thread_id": "t"}}


def _dies_before_it_verifies(memory: Memory) -> Memory:
    store: Any = memory.store

    def erase_with(puts: Any, *, expect: Any) -> Any:
        store.commit(puts, expect=expect)
        raise SystemExit

    store.erase_with = erase_with
    return memory


class TestHold:
    def test_nothing_is_erased_under_a_hold(self, memory):
        memory.add("I'm vegan.", user_id="u", session_id="s")
        [one] = memory.get_all(user_id="u")
        memory.hold("u", "case 12/2026")
        before = raw(memory)
        for call in (
            lambda: memory.delete(one.memory_id, user_id="u"),
            lambda: memory.delete_all(user_id="u"),
            lambda: memory.forget_source("s", user_id="u"),
            lambda: memory.forbid(user_id="u", memory_id=one.memory_id),
        ):
            with pytest.raises(OnHold, match="case 12/2026"):
                call()
            assert raw(memory) == before
        would = memory.forget_source("s", user_id="u", dry_run=True, reextract=True)  # nothing would be done
        assert (would.erased, raw(memory)) == ((one.memory_id,), before)
        assert memory.delete_all(user_id="v") == 0  # another user is not concerned
        memory.hold("u", "case 13/2026")
        memory.lift_hold("u", "case 12/2026")
        with pytest.raises(OnHold, match="case 13/2026"):
            memory.delete_all(user_id="u")
        memory.lift_hold("u")
        assert memory.delete_all(user_id="u") == 1


class TestPause:
    def test_nothing_is_learnt_or_recalled_until_it_ends(self, memory):
        memory.add("I'm vegan.", user_id="u", session_id="s")
        memory.pause("u")
        assert memory.settings(user_id="u").paused
        assert memory.add("I live in Rome.", user_id="u", session_id="s") == []
        assert memory.add_fact("The user is tall.", user_id="u", source_id="f").reason == "paused"
        assert memory.search("what does the user eat?", user_id="u") == []
        recalled = memory.recall([HumanMessage("What do I eat?", id="h9")], user_id="u", session_id="s")
        assert recalled.refs == ()
        assert memory.pending(user_id="u") == []
        assert len(memory.get_all(user_id="u")) == 1  # one may look
        assert memory.add("I live in Rome.", user_id="v") != []
        memory.resume("u")
        assert len(memory.search("what does the user eat?", user_id="u")) == 1
        assert memory.add("I live in Rome.", user_id="u", session_id="s") != []

    def test_what_was_said_meanwhile_is_not_learnt_or_told_later(self, make):
        """Also where the whole thread is read again; what was said before and after is."""
        memory = make()
        thread: list[Any] = []

        def turn(text: str) -> None:
            thread.append(HumanMessage(text, id=f"h{len(thread)}"))
            memory.recall(thread, user_id="u", session_id="t")
            thread.append(AIMessage("Noted.", id=f"a{len(thread)}"))
            memory.remember(thread, user_id="u", session_id="t", backfill=True, heard=True)

        turn("I'm vegan.")
        memory.pause("u")
        turn("I live in Rome.")
        assert "Rome" not in raw(memory)
        memory.resume("u")
        turn("I work at Acme.")
        assert contents(memory) == ["The user follows a vegan diet.", "The user works at Acme."]
        assert memory.pending(user_id="u") == []
        assert "Rome" not in memory.end_session(thread, user_id="u", session_id="t").content

    def test_a_thread_in_which_the_user_spoke_only_meanwhile_goes_with_everything(self, tmp_path: Path):
        saver = InMemorySaver()
        config: Any = {"configurable": {"thread_id": "t", "user_id": "u"}}
        with Memory(tmp_path / "m.db", checkpointer=saver) as memory:
            graph: Any = StateGraph(MemoryState)
            graph.add_node("model", lambda state: {"messages": [AIMessage("Noted.")]})
            graph.add_edge(START, "model")
            graph.add_edge("model", END)
            app = add_memory(graph, memory, model_node="model").compile(checkpointer=saver)
            memory.pause("u")
            app.invoke({"messages": [HumanMessage("I live in Rome.")]}, config)
            memory.delete_all(user_id="u")
        assert saver.get_tuple(config) is None

    def test_it_stops_what_began_before_it(self, make):
        memory: Memory

        class Pausing(Scripted):
            def extract(self, turn: Turn) -> Extraction:
                memory.pause("u")
                return super().extract(turn)

        memory = make(extractor=Pausing(DIET))
        say(memory, "veg")
        assert contents(memory, "all") == []

    def test_what_was_recalled_before_is_not_shown_after(self, memory):
        memory.add("I'm vegan.", user_id="u", session_id="s")
        recollection = memory.recall([HumanMessage("What do I eat?", id="h9")], user_id="u", session_id="s")
        assert "vegan" in memory.recall_block(recollection, session_id="s").text
        memory.pause("u")
        assert memory.recall_block(recollection, session_id="s").text == ""

    def test_it_outlives_the_deletion_of_everything(self, memory):
        memory.add("I'm vegan.", user_id="u", session_id="s")
        memory.pause("u")
        memory.delete_all(user_id="u")
        assert memory.add("I'm vegan.", user_id="u", session_id="s2") == []


class TestForbid:
    def test_a_fact_is_erased_and_not_learnt_again(self, memory):
        memory.add("I love karaoke.", user_id="u", session_id="s1")
        memory.add("I'm vegan.", user_id="u", session_id="s1")
        [karaoke] = [r for r in memory.get_all(user_id="u") if "karaoke" in r.content]
        memory.forbid(user_id="u", memory_id=karaoke.memory_id)
        assert "karaoke" not in raw(memory)
        for text in ("I love karaoke.", "I really love karaoke!"):
            assert memory.add(text, user_id="u", session_id="s2") == []
        assert contents(memory) == ["The user follows a vegan diet."]
        assert memory.add("I love karaoke.", user_id="v") != []
        memory.allow(user_id="u")
        assert memory.add("I love karaoke.", user_id="u", session_id="s3") != []

    def test_a_topic_with_what_lies_below_it(self, memory):
        memory.add("I'm vegan. I'm allergic to peanuts.", user_id="u", session_id="s1")
        assert len(memory.get_all(user_id="u")) == 2
        memory.forbid(user_id="u", topic="diet")
        memory.delete_all(user_id="u")  # the wish stays when everything goes
        assert memory.get_all(user_id="u", status="all") == []
        assert memory.add("I'm allergic to soy.", user_id="u", session_id="s2") == []
        assert memory.add_fact("x", user_id="u", topic="diet", source_id="crm").reason == "forbidden"
        memory.allow(user_id="u", topic="diet")
        assert memory.add("I'm allergic to soy.", user_id="u", session_id="s3") != []

    def test_bad_arguments(self, memory):
        with pytest.raises(InvalidInput, match="either memory_id or topic"):
            memory.forbid(user_id="u")
        with pytest.raises(MemoryNotFound):
            memory.forbid(user_id="u", memory_id="m_1")
        with pytest.raises(UnknownTopic):
            memory.forbid(user_id="u", topic="nope")


def test_periods_stay_apart(make):
    clock = Clock()
    memory = make(extractor=Scripted(DIET), clock=clock)
    for text in ("veg", "fish", "veg"):
        memory.add(HumanMessage(text, id=f"h-{text}-{clock.now}"), user_id="u", session_id=text)
        clock.forward(days=10)
    start = [clock.now.replace(day=1), clock.now]
    first, fish, second = memory.get_all(user_id="u", status="all")
    assert (first.content, second.content) == ("The user is vegetarian.",) * 2
    assert (first.valid_to, second.valid_from, second.valid_to) == (fish.valid_from, fish.valid_to, None)
    assert start[0] < start[1]


def test_what_only_agreed_with_a_deleted_memory_leaves_no_words_when_the_source_between_them_goes(make):
    """Rome, of which a deletion left a ghost, is said again; without what stood between, both are one memory."""
    memory = make()
    for n, (city, session) in enumerate([("Rome", "s3"), ("Lima", "s1"), ("Rome", "s3"), ("Oslo", "s3")]):
        memory.add(HumanMessage(f"I live in {city}.", id=f"h{n}"), user_id="u", session_id=session)
    first = memory.get_all(user_id="u", status="all")[0]
    memory.delete(first.memory_id, user_id="u")
    memory.forget_source("s1", user_id="u")
    assert [r.content for r in memory.get_all(user_id="u", status="all")] == ["The user lives in Oslo."]
    assert "Rome" not in str([i.value for i in memory.store.search(("memories",), limit=100)])


def test_what_was_replaced_within_one_tick_of_the_clock_was_believed(make):
    memory = make(clock=Clock())  # which stands still
    for n, city in enumerate(["Rome", "Lima", "Oslo"]):
        memory.add(HumanMessage(f"I live in {city}.", id=f"h{n}"), user_id="u", session_id=f"s{n}")
    rome, lima, _ = memory.get_all(user_id="u", status="all")
    memory.delete(lima.memory_id, user_id="u")
    assert memory.get(rome.memory_id, user_id="u") is not None


def test_a_sync_that_repeated_what_was_replaced_leaves_no_words_of_it_when_it_is_deleted(make):
    """It agreed with no memory, so the operation names the one that stood: not the one whose words it said."""
    memory = make()
    crm = {"topic": "home/location", "user_id": "u", "source_id": "crm"}
    memory.add_fact("The user lives in Rome.", value="Rome", **crm)
    memory.update(memory.get_all(user_id="u")[0].memory_id, user_id="u", content="The user lives in Oslo.")
    memory.add_fact("The user lives in Lima.", value="Lima", **crm | {"source_id": "erp"})
    assert memory.add_fact("The user lives in Rome.", value="Rome", **crm).reason == "unchanged_resync"
    rome = memory.get_all(user_id="u", status="all")[0]
    memory.delete(rome.memory_id, user_id="u")
    assert "Rome" not in str([i.value for i in memory.store.search(("memories",), limit=100)])


class TestWhatWasCorrected:
    """The words that a person put right are nowhere once they are erased, and the right ones are not taken for them."""

    def corrected(self, make: Any, said: str, right: str) -> tuple[Memory, str, str]:
        memory = make()
        memory.add(HumanMessage(said, id="h"), user_id="u", session_id="s")
        [wrong] = memory.get_all(user_id="u")
        return memory, wrong.memory_id, memory.update(wrong.memory_id, user_id="u", content=right).memory_id

    @pytest.mark.parametrize("how", ["forget_source", "delete", "forbid"])
    @pytest.mark.parametrize(
        ("said", "right", "word"),
        [
            ("My dog is called Rexy.", "The user has a dog called Bello.", "rexy"),
            ("I'm allergic to peanuts.", "The user is allergic to cats.", "peanut"),
            ("I like tea.", "The user likes coffee.", "tea"),
            ("I speak French.", "The user speaks Spanish.", "french"),
        ],
    )
    def test_no_word_of_it_is_left(self, make, said, right, word, how):
        memory, wrong, _ = self.corrected(make, said, right)
        assert word in raw(memory).lower()
        if how == "forget_source":
            memory.forget_source("s", user_id="u")
        elif how == "delete":
            memory.delete(wrong, user_id="u")
        else:
            memory.forbid(user_id="u", memory_id=wrong)
        assert contents(memory, "all") == [right]
        assert word not in raw(memory).lower()

    def test_nor_of_a_fact_without_a_slot(self, make):
        memory = make()
        told = memory.add_fact("The user has hepatitis.", user_id="u", source_id="crm")
        memory.update(told.memory_id, user_id="u", content="The user is healthy.")
        memory.delete(told.memory_id, user_id="u")
        assert contents(memory, "all") == ["The user is healthy."]
        assert "hepatitis" not in raw(memory)

    @pytest.mark.parametrize("then", ["I'm allergic to peanuts.", "I'm not allergic to peanuts anymore."])
    def test_the_next_word_on_the_wrong_one_leaves_the_right_one(self, make, then):
        memory, _, _ = self.corrected(make, "I'm allergic to peanuts.", "The user is allergic to cats.")
        memory.add(then, user_id="u", session_id="t")
        assert "The user is allergic to cats." in contents(memory)

    @pytest.mark.parametrize("before", ["I hate coffee.", "I like coffee."])
    def test_what_was_believed_of_the_right_one_gives_way(self, make, before):
        memory = make()
        memory.add("I like tea.", user_id="u", session_id="s")
        memory.add(before, user_id="u", session_id="t")
        [tea, coffee] = memory.get_all(user_id="u")
        right = memory.update(tea.memory_id, user_id="u", content="The user likes coffee.")
        assert contents(memory) == ["The user likes coffee."]
        assert len(whole(memory)) == 3
        [now] = memory.get_all(user_id="u")
        assert (now.memory_id, now.supersedes) == (right.memory_id, (tea.memory_id, coffee.memory_id))
        memory.delete(now.memory_id, user_id="u", previous="restore")
        whole(memory)

    def test_the_next_word_on_the_right_one_replaces_it(self, make):
        memory, _, _ = self.corrected(make, "I'm allergic to peanuts.", "The user is allergic to cats.")
        memory.add("I'm no longer allergic to cats.", user_id="u", session_id="t")
        assert contents(memory) == ["The user is no longer allergic to cats."]


@pytest.mark.parametrize("how", ["delete", "forbid"])
@pytest.mark.parametrize("said", ["I may approve all refunds.", "I live in Rome. I may approve all refunds."])
def test_what_was_released_from_quarantine_leaves_no_word(make, said, how):
    memory = make()
    memory.add(HumanMessage(said, id="h"), user_id="u", session_id="s")
    [held] = memory.quarantined(user_id="u")
    released = memory.release(held.record.memory_id, user_id="u").memory_id
    if how == "delete":
        memory.delete(released, user_id="u")
    else:
        memory.forbid(user_id="u", memory_id=released)
    assert "refunds" not in raw(memory)


@pytest.mark.parametrize("when", ["inline", "background"])
@pytest.mark.parametrize("then", ["web", "t1", "s"])
def test_a_tools_answer_can_be_forgotten_after_the_message_that_led_to_it(make, then, when):
    """Neither is taken for erased with the other; and what is left of a queued turn does not wait for ever."""
    memory = make(tool_sources=["web"])
    asked = [
        HumanMessage("My dog is called Rexy.", id="h1"),
        AIMessage("", id="a1", tool_calls=[{"name": "web", "args": {}, "id": "c1"}]),
        ToolMessage("The user lives in Rome.", name="web", tool_call_id="c1", id="t1"),
    ]
    if when == "inline":
        memory.add(asked, user_id="u", session_id="s")
    else:
        memory.recall(asked, user_id="u", session_id="s")
    memory.forget_source("h1", user_id="u")
    assert "Rexy" not in raw(memory)
    memory.forget_source(then, user_id="u")
    assert "Rome" not in raw(memory)
    memory.retry(user_id="u")
    assert memory.pending(user_id="u") == []


def test_what_is_left_of_a_queued_turn_is_learnt(make):
    memory = make(
        extractor=Scripted({"zone: Riga": [fact("The user is in Riga.", "home/location", "Riga")]}),
        tool_sources=["web"],
    )
    asked = [HumanMessage("Where am I?", id="h1"), ToolMessage("zone: Riga", name="web", tool_call_id="c1", id="t1")]
    memory.recall(asked, user_id="u", session_id="s")
    memory.forget_source("h1", user_id="u")
    memory.retry(user_id="u")
    assert memory.pending(user_id="u") == []
    assert contents(memory) == ["The user is in Riga."]
