"""The queue of turns: erasures and edits during an extraction, long queues, a worker that outlives what models do."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from queue_processes import liked
from support import Clock
from test_event_loop import heartbeat

from langmem_adapter import Memory, turnqueue
from langmem_adapter.errors import ModelFailed, StoreClosed
from langmem_adapter.extraction.model import ModelExtractor
from langmem_adapter.namespaces import Reader
from langmem_adapter.ports import run
from langmem_adapter.testing import ScriptedChatModel
from langmem_adapter.worker import Worker

Erase = Callable[[Memory], object]
ERASURES: dict[str, Erase] = {
    "session": lambda m: m.forget_source("s", user_id="u"),
    "message": lambda m: m.forget_source("h", user_id="u"),
    "all": lambda m: m.delete_all(user_id="u"),
}


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr("langmem_adapter.answers.WAIT_SECONDS", 0.001)


def said(messages: Sequence[BaseMessage]) -> str:
    return str(json.loads(messages[1].text.splitlines()[0])["text"])


def lives(messages: Sequence[BaseMessage]) -> dict[str, Any]:
    """The one fact of "I live in CITY"."""
    city = said(messages).split()[-1]
    found = {"content": f"The user lives in {city}.", "topic": "home/location", "value": city, "line": "l1"}
    return {"facts": [found | {"excerpt": said(messages)}]}


class Slow:
    """A model that takes its time over Rome: `started` when it is asked, answers (or fails) once it may `go`."""

    def __init__(self, *, fails: bool) -> None:
        self.fails = fails
        self.started, self.go = threading.Event(), threading.Event()

    def __call__(self, messages: Sequence[BaseMessage]) -> Any:
        if "Rome" in said(messages) and not self.go.is_set():
            self.started.set()
            assert self.go.wait(30)
            if self.fails:
                return ValueError("boom")
        return lives(messages)


def by(memory: Memory, way: str, *thread: BaseMessage) -> threading.Thread:
    """Begin to learn from a thread, in one of three ways; the Python thread ends when it is learnt or has failed."""
    said = list(thread)
    if way == "remember":
        memory.recall(said[:1], user_id="u", session_id="s")
    ways = {
        "background": lambda: memory.add(said, user_id="u", session_id="s"),
        "add": lambda: memory.add(said, user_id="u", session_id="s"),
        "remember": lambda: memory.remember(said, user_id="u", session_id="s", heard=True),
    }

    def begin() -> None:
        with contextlib.suppress(ModelFailed, StoreClosed):
            ways[way]()

    begun = threading.Thread(target=begin)
    begun.start()
    return begun


WAYS = ("background", "add", "remember")


def make_one(make: Any, way: str, answer: Any, **more: Any) -> Memory:
    model = ScriptedChatModel(replies=[answer])
    return make(extractor=ModelExtractor(model), when="background" if way == "background" else "inline", **more)


@pytest.mark.parametrize("fails", [False, True], ids=["answers", "fails"])
@pytest.mark.parametrize("erasure", ERASURES)
@pytest.mark.parametrize("way", WAYS)
def test_nothing_erased_while_it_is_extracted_comes_back(make, way, erasure, fails):
    slow = Slow(fails=fails)
    memory = make_one(make, way, slow)
    thread = by(memory, way, HumanMessage("I live in Rome", id="h"))
    assert slow.started.wait(10)
    ERASURES[erasure](memory)
    slow.go.set()
    thread.join()
    memory.drain(10)
    assert memory.pending(user_id="u") == []
    memory.retry(user_id="u")
    assert memory.get_all(user_id="u", status="all") == []
    left = [i for i in memory.store.search(("memories",)) if i.namespace[-1] != "receipts"]
    assert "Rome" not in str(left)


@pytest.mark.parametrize("fails", [False, True], ids=["answers", "fails"])
@pytest.mark.parametrize("way", WAYS)
def test_an_edit_made_while_the_old_text_is_extracted_wins(make, way, fails):
    slow = Slow(fails=fails)
    memory = make_one(make, way, slow)
    thread = by(memory, way, HumanMessage("I live in Rome", id="h"))
    assert slow.started.wait(10)
    edited = by(memory, way, HumanMessage("I live in Oslo", id="h"))
    edited.join()
    slow.go.set()
    thread.join()
    memory.drain(10)
    assert [(r.content, r.status) for r in memory.get_all(user_id="u", status="all")] == [
        ("The user lives in Oslo.", "active")
    ]
    assert memory.pending(user_id="u") == []


@pytest.mark.parametrize("fails", [False, True], ids=["answers", "fails"])
@pytest.mark.parametrize("way", WAYS)
def test_so_does_another_answer_of_a_tool_in_a_fork(make, way, fails):
    started, go = threading.Event(), threading.Event()

    def answer(messages: Sequence[BaseMessage]) -> Any:
        word = "Rome" if "Rome" in messages[1].text else "Oslo"
        if word == "Rome":
            started.set()
            assert go.wait(30)
            if fails:
                return ValueError("boom")
        found = {"content": f"The user lives in {word}.", "topic": "home/location", "value": word, "line": "l2"}
        return {"facts": [found | {"excerpt": f"lives in {word}"}]}

    def thread(word: str) -> list[BaseMessage]:
        told = ToolMessage(f"lives in {word}", tool_call_id="c", name="crm", id=f"t-{word}")
        return [HumanMessage("Where do I live?", id="h"), told]

    memory = make_one(make, way, answer, tool_sources=["crm"])
    first = by(memory, way, *thread("Rome"))
    assert started.wait(10)
    by(memory, way, *thread("Oslo")).join()
    go.set()
    first.join()
    memory.drain(10)
    assert [(r.content, r.status) for r in memory.get_all(user_id="u", status="all")] == [
        ("The user lives in Oslo.", "active")
    ]
    assert memory.pending(user_id="u") == []


def test_a_turn_that_fails_does_not_lose_the_turns_behind_it(make):
    def answer(messages: Sequence[BaseMessage]) -> Any:
        return ValueError("boom") if "broken" in said(messages) else liked(messages)

    memory = make_one(make, "add", answer)
    spoken = [HumanMessage(f"I like {word}", id=word) for word in ("tea", "broken", "milk")]
    with pytest.raises(ModelFailed):
        memory.add(spoken, user_id="u", session_id="s")
    assert sorted(r.slot for r in memory.get_all(user_id="u")) == ["milk", "tea"]
    assert [t.turn_id for t in memory.pending(user_id="u")] == ["s/broken"]


def test_all_turns_of_a_call_are_queued_before_the_first_is_extracted(make):
    waiting: list[list[str]] = []
    holder: list[Memory] = []

    def answer(messages: Sequence[BaseMessage]) -> Any:
        waiting.append([t.turn_id for t in holder[0].pending(user_id="u")])
        return liked(messages)

    holder.append(make_one(make, "add", answer))
    holder[0].add([HumanMessage("I like tea", id="h1"), HumanMessage("I like milk", id="h2")], user_id="u")
    assert waiting == [["h1", "h2"], ["h2"]]


def test_a_turn_that_is_being_learnt_is_not_asked_about_twice(make):
    slow = Slow(fails=False)
    model = ScriptedChatModel(replies=[slow])
    memory = make(extractor=ModelExtractor(model))
    thread = by(memory, "remember", HumanMessage("I live in Rome", id="h"))
    assert slow.started.wait(10)
    memory.recall([HumanMessage("Hello", id="h2")], user_id="u", session_id="s")
    memory.retry(user_id="u")
    slow.go.set()
    thread.join()
    assert [said(p) for p in model.prompts if "Rome" in said(p)] == ["I live in Rome"]


def test_a_queue_of_more_than_a_page_is_learnt_and_told(tmp_path, monkeypatch):
    monkeypatch.setattr("langmem_adapter.paging.PAGE", 20)
    extractor = ModelExtractor(ScriptedChatModel(replies=[{"facts": []}]))
    with Memory(tmp_path / "m.db", extractor=extractor, when="background", debounce_seconds=600) as memory:
        memory.drain(5)
        memory.add([HumanMessage(f"thing{i}", id=f"h{i}") for i in range(50)], user_id="u", session_id="s")
        assert len(memory.pending(user_id="u")) == 50
        assert memory.drain(60)
        assert memory.pending(user_id="u") == []


def test_a_recall_queues_the_message_and_asks_no_model(make):
    model = ScriptedChatModel(replies=[liked])
    memory = make(extractor=ModelExtractor(model))
    for n in ("h1", "h2"):  # the first of them interrupted
        memory.recall([HumanMessage(f"I like {n}", id=n)], user_id="u", session_id="s")
    assert model.prompts == []
    assert [(t.turn_id, turnqueue.goes_on(t)) for t in memory.pending(user_id="u")] == [("s/h1", False), ("s/h2", True)]
    memory.remember([HumanMessage("I like h2", id="h2")], user_id="u", session_id="s", heard=True)
    assert sorted(r.slot for r in memory.get_all(user_id="u")) == ["h1", "h2"]


async def test_a_cancelled_extraction_is_free_for_others_at_once(make):
    model = ScriptedChatModel(replies=[liked], delay=0.5)
    memory = make(extractor=ModelExtractor(model))
    task = asyncio.create_task(memory.aadd(HumanMessage("I like tea", id="h"), user_id="u"))
    while not (waiting := await memory.apending(user_id="u")) or waiting[0].leased_to is None:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [(t.leased_to, t.leased_until) for t in await memory.apending(user_id="u")] == [(None, None)]


def test_the_backlog_is_learnt_after_the_users_model_ran(make):
    clock = Clock()
    model = ScriptedChatModel(replies=[ValueError("down")])
    memory = make(extractor=ModelExtractor(model), clock=clock)
    for i in range(5):
        with pytest.raises(ModelFailed):
            memory.add(HumanMessage(f"I like thing{i}", id=f"h{i}"), user_id="u", session_id="s")
    for i in range(5):
        memory.recall([HumanMessage(f"I like cup{i}", id=f"c{i}")], user_id="u", session_id=f"other{i}")
    clock.forward(hours=1)
    model.prompts.clear()
    model.replies = [liked]
    message = HumanMessage("I like milk", id="h")
    memory.recall([message], user_id="u", session_id="s")
    assert model.prompts == []
    memory.remember([message], user_id="u", session_id="s", heard=True)
    assert len(model.prompts) == 11
    assert memory.pending(user_id="u") == []


def test_remember_gives_up_on_the_backlog_when_the_model_fails(make):
    clock = Clock()
    model = ScriptedChatModel(replies=[ValueError("down")])
    memory = make(extractor=ModelExtractor(model), clock=clock)
    for i in range(5):
        with pytest.raises(ModelFailed):
            memory.add(HumanMessage(f"I like thing{i}", id=f"h{i}"), user_id="u", session_id="s")
    clock.forward(hours=1)
    model.prompts.clear()
    model.replies = [lambda p: liked(p) if "milk" in said(p) else ValueError("down")]
    memory.remember([HumanMessage("I like milk", id="h")], user_id="u", session_id="s")
    assert len(model.prompts) == 2


@pytest.mark.parametrize("thrown", [asyncio.CancelledError(), SystemExit(1), KeyboardInterrupt()], ids=repr)
def test_the_worker_outlives_whatever_a_model_throws(make, thrown, monkeypatch):
    monkeypatch.setattr(turnqueue, "PAUSE", turnqueue.timedelta(seconds=0.3))

    def answer(messages: Sequence[BaseMessage]) -> Any:
        return thrown if "tea" in said(messages) and len(model.prompts) == 1 else liked(messages)

    model = ScriptedChatModel(replies=[answer])
    memory = make(extractor=ModelExtractor(model), when="background")
    memory.add(HumanMessage("I like tea", id="h1"), user_id="u")
    memory.drain(10)
    memory.add(HumanMessage("I like milk", id="h2"), user_id="v")
    deadline = time.monotonic() + 10
    while memory.pending(user_id="u") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert memory.drain(10)
    assert [r.slot for u in "uv" for r in memory.get_all(user_id=u)] == ["tea", "milk"]


def test_drain_tells_of_turns_that_are_not_learnt(make):
    memory = make_one(make, "background", ValueError("down"))
    memory.add(HumanMessage("I like tea", id="h"), user_id="u")
    assert memory.drain(10) is False
    assert len(memory.pending(user_id="u")) == 1


def test_drain_tells_of_turns_that_later_ones_went_past(make):
    """In line: one failed, one was only heard; what its user says afterwards is learnt all the same."""

    def answer(messages: Sequence[BaseMessage]) -> Any:
        return ValueError("down") if "tea" in said(messages) else liked(messages)

    memory = make_one(make, "add", answer)
    with pytest.raises(ModelFailed):
        memory.add(HumanMessage("I like tea", id="h1"), user_id="u", session_id="s")
    memory.recall([HumanMessage("I like milk", id="h2")], user_id="u", session_id="s2")
    memory.add(HumanMessage("I like rum", id="h3"), user_id="u", session_id="s")
    assert memory.drain(5) is False
    memory.retry(user_id="u")
    memory.forget_source("h1", user_id="u")
    assert memory.pending(user_id="u") == []
    assert memory.drain(5) is True


def test_drain_learns_what_an_interrupted_run_left(make):
    memory = make_one(make, "background", liked)
    memory.recall([HumanMessage("I like tea", id="h")], user_id="u", session_id="s")
    assert memory.drain(10) is True
    assert [r.slot for r in memory.get_all(user_id="u")] == ["tea"]


def test_a_turn_that_still_goes_on_is_not_learnt_with_the_one_before(make):
    model = ScriptedChatModel(replies=[liked])
    memory = make(extractor=ModelExtractor(model), when="background", debounce_seconds=0.1)
    memory.remember([HumanMessage("I like tea", id="h1")], user_id="u", session_id="s")
    second = [HumanMessage("I like milk", id="h2")]
    memory.recall(second, user_id="u", session_id="s")  # and the agent works on it
    deadline = time.monotonic() + 20
    while len(memory.pending(user_id="u")) > 1 and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.3)
    assert [said(p) for p in model.prompts] == ["I like tea"]
    memory.remember([*second, AIMessage("Noted.", id="a2")], user_id="u", session_id="s", heard=True)
    while memory.pending(user_id="u") and time.monotonic() < deadline:  # `drain` would learn it in any case
        time.sleep(0.02)
    assert [said(p) for p in model.prompts] == ["I like tea", "I like milk"]
    assert sorted(r.slot for r in memory.get_all(user_id="u")) == ["milk", "tea"]


@pytest.mark.parametrize("when", ["inline", "background"])
def test_what_is_still_going_on_in_another_thread_is_left_alone(make, when):
    model = ScriptedChatModel(replies=[liked])
    memory = make(extractor=ModelExtractor(model), when=when)
    turns = {name: [HumanMessage(f"I like {name}", id="h")] for name in ("tea", "milk", "rum")}
    for name, turn in turns.items():
        memory.recall(turn, user_id="u", session_id=name)
    learnt: list[str] = []
    deadline = time.monotonic() + 20
    for name, turn in turns.items():
        memory.remember([*turn, AIMessage("Noted.", id="a")], user_id="u", session_id=name, heard=True)
        learnt.append(name)
        while len(memory.pending(user_id="u")) + len(learnt) > len(turns) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert [said(p).split()[-1] for p in model.prompts] == learnt
    assert memory.drain(10)


@pytest.mark.parametrize("answered", [False, True], ids=["as heard", "answered"])
def test_a_turn_that_was_heard_is_learnt_once_it_is_remembered(make, answered):
    model = ScriptedChatModel(replies=[liked])
    memory = make(extractor=ModelExtractor(model), when="background")
    turn = [HumanMessage("I like milk", id="h")]
    memory.recall(turn, user_id="u", session_id="s")
    (waiting,) = memory.pending(user_id="u")
    assert waiting.leased_until is not None
    memory.recall(turn, user_id="u", session_id="s")  # resumed after an interrupt
    memory.remember([*turn, AIMessage("Noted.", id="a")][: 1 + answered], user_id="u", session_id="s", heard=True)
    deadline = time.monotonic() + 20
    while memory.pending(user_id="u") and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [said(p) for p in model.prompts] == ["I like milk"]


def test_a_turn_that_is_never_remembered_is_learnt_after_a_while(make, monkeypatch):
    monkeypatch.setattr("langmem_adapter.methods.queue.INTERRUPTED", 0.3)
    memory = make_one(make, "background", liked)
    memory.recall([HumanMessage("I like tea", id="h")], user_id="u", session_id="s")
    deadline = time.monotonic() + 20
    while memory.pending(user_id="u") and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [r.slot for r in memory.get_all(user_id="u")] == ["tea"]


@pytest.mark.parametrize("away", [False, True], ids=["worker", "backlog"])
def test_a_drain_by_whoever_is_told_of_the_learning_does_not_wait_for_itself(tmp_path, monkeypatch, away):
    drained: list[bool] = []
    holder: list[Memory] = []

    def told(name: str, data: dict[str, Any]) -> None:
        if name == "learnt":
            drained.append(holder[0].drain())

    extractor = ModelExtractor(ScriptedChatModel(replies=[liked]))
    when = "inline" if away else "background"
    with Memory(tmp_path / "m.db", extractor=extractor, when=when, on_event=told) as memory:
        holder.append(memory)
        if away:  # kept in the process, and learnt behind the conversation
            monkeypatch.setattr("langmem_adapter.backlog.PAUSE", 0.01)
            turn = [HumanMessage("I like tea", id="h")]
            run(memory._keep(memory.io, turn, Reader("u", session_id="s"), None))
        else:
            memory.add(HumanMessage("I like tea", id="h"), user_id="u")
        deadline = time.monotonic() + 10
        while not drained and time.monotonic() < deadline:
            time.sleep(0.02)
        assert drained == [False]
        assert memory.drain(10)


@pytest.mark.parametrize("seconds", [3_600.0, 1e10, 1e12, 1e300])
def test_whatever_the_debounce_a_turn_that_goes_on_is_left_alone_and_learnt_in_the_end(tmp_path, seconds):
    model = ScriptedChatModel(replies=[liked])
    options: Any = {"extractor": ModelExtractor(model), "when": "background", "debounce_seconds": seconds}
    with Memory(tmp_path / "m.db", **options) as memory:
        memory.recall([HumanMessage("I like tea", id="h")], user_id="u", session_id="s")
        memory.resume("u")  # wakes the worker
        with Memory(tmp_path / "m.db", **options):  # and so does another one
            time.sleep(0.3)
        assert model.prompts == []
        assert memory.drain(1e12)
        assert [r.slot for r in memory.get_all(user_id="u")] == ["tea"]


def test_the_end_of_a_pause_wakes_the_worker(make):
    slow = Slow(fails=False)
    memory = make_one(make, "background", slow)
    memory.add("I live in Rome", user_id="u")
    assert slow.started.wait(10)
    memory.pause("u")  # while it is extracted: it goes back into the queue
    slow.go.set()
    assert memory.drain(10) is False
    assert len(memory.pending(user_id="u")) == 1
    memory.resume("u")
    deadline = time.monotonic() + 10
    while memory.pending(user_id="u") and time.monotonic() < deadline:  # `drain` would wake it, too
        time.sleep(0.02)
    assert [r.content for r in memory.get_all(user_id="u")] == ["The user lives in Rome."]


def test_queued_turns_that_were_imported_are_learnt(make, tmp_path):
    with Memory(tmp_path / "other.db", extractor=ModelExtractor(ScriptedChatModel(replies=[liked]))) as other:
        other.recall([HumanMessage("I like tea", id="h1")], user_id="u", session_id="s")
        other.recall([HumanMessage("Hello", id="h2")], user_id="u", session_id="s")
        exported = other.export(user_id="u")
    memory = make_one(make, "background", liked)
    memory.drain(10)
    memory.import_(exported)
    deadline = time.monotonic() + 10
    while not memory.get_all(user_id="u") and time.monotonic() < deadline:  # `drain` would wake it, too
        time.sleep(0.02)
    assert [r.slot for r in memory.get_all(user_id="u")] == ["tea"]
    assert memory.drain(10)
    assert memory.pending(user_id="u") == []


def test_after_close_nothing_is_said_to_be_learnt(tmp_path):
    from langmem_adapter import SqliteMemoryStore

    store = SqliteMemoryStore(tmp_path / "m.db")
    memory = Memory(store, extractor=ModelExtractor(ScriptedChatModel(replies=[liked])), when="background")
    memory.close()
    memory.add(HumanMessage("I like tea", id="h"), user_id="u")
    assert memory.drain(1) is False
    store.close()


@pytest.mark.parametrize("way", WAYS)
def test_what_is_learnt_when_a_memory_closes_is_free_for_the_next(tmp_path, way, monkeypatch):
    monkeypatch.setattr("langmem_adapter.worker.CLOSING", 0.1)
    slow = Slow(fails=False)
    memory = make_one(lambda **more: Memory(tmp_path / "m.db", **more), way, slow)
    thread = by(memory, way, HumanMessage("I live in Rome", id="h"))
    assert slow.started.wait(10)
    memory.close()
    slow.go.set()
    thread.join(10)
    with Memory(tmp_path / "m.db", extractor=ModelExtractor(ScriptedChatModel(replies=[lives]))) as following:
        following.retry(user_id="u")
        assert [r.content for r in following.get_all(user_id="u")] == ["The user lives in Rome."]
        assert following.pending(user_id="u") == []


def test_owners_are_learnt_at_once_and_each_in_order(make):
    hangs = threading.Event()

    def answer(messages: Sequence[BaseMessage]) -> Any:
        if "slow" in said(messages):
            assert hangs.wait(30)
        return liked(messages)

    memory = make_one(make, "background", answer)
    memory.add(HumanMessage("I like slow", id="h"), user_id="u")
    memory.add([HumanMessage(f"I like cup{i}", id=f"h{i}") for i in range(4)], user_id="v")
    deadline = time.monotonic() + 20
    while memory.pending(user_id="v") and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [r.slot for r in sorted(memory.get_all(user_id="v"), key=lambda r: r.seq)] == [f"cup{i}" for i in range(4)]
    assert len(memory.pending(user_id="u")) == 1
    hangs.set()
    assert memory.drain(10)


def test_a_key_that_is_asked_for_all_the_time_has_its_turn():
    done = threading.Event()
    worker: Worker[str] = Worker(lambda key: done.set(), name="test_worker")
    deadline = time.monotonic() + 10
    while not done.is_set() and time.monotonic() < deadline:
        worker.ask("a", 0.05)
        time.sleep(0.01)
    worker.close()
    assert done.is_set()


def test_jobs_of_one_key_do_not_overlap():
    running: list[str] = []
    most: list[int] = []

    def work(key: str) -> None:
        running.append(key)
        most.append(running.count(key))
        time.sleep(0.02)
        running.remove(key)

    worker: Worker[str] = Worker(work, name="test_worker")
    for _ in range(10):
        worker.ask("a")
        worker.ask("b")
        time.sleep(0.005)
    assert worker.drain(10)
    worker.close()
    assert set(most) == {1}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_process_has_a_queue_that_works(tmp_path):
    code = f"""
import os, sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
from langchain_core.messages import HumanMessage
from langmem_adapter import Memory
from langmem_adapter.extraction.model import ModelExtractor
from langmem_adapter.testing import ScriptedChatModel
from queue_processes import liked
model = ScriptedChatModel(replies=[liked])
memory = Memory({str(tmp_path / "m.db")!r}, extractor=ModelExtractor(model), when="background")
memory.add(HumanMessage("I like tea", id="h1"), user_id="u")
assert memory.drain(10)
child = os.fork()
if child == 0:
    memory.add(HumanMessage("I like milk", id="h2"), user_id="u")
    os._exit(0 if memory.drain(10) and not memory.pending(user_id="u") else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_model_call_keeps_no_process_alive(tmp_path):
    code = f"""
import threading, sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
from langchain_core.messages import HumanMessage
from langmem_adapter import Memory
from langmem_adapter.extraction.model import ModelExtractor
from langmem_adapter.testing import ScriptedChatModel
asked = threading.Event()
def hang(messages):
    asked.set()
    threading.Event().wait(50)
model = ScriptedChatModel(replies=[hang])
memory = Memory({str(tmp_path / "m.db")!r}, extractor=ModelExtractor(model), when="background")
memory.add(HumanMessage("I like tea", id="h1"), user_id="u")
assert asked.wait(10)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr


def test_closing_frees_the_turns_it_was_at(tmp_path, monkeypatch):
    slow = Slow(fails=False)
    memory = Memory(tmp_path / "m.db", extractor=ModelExtractor(ScriptedChatModel(replies=[slow])), when="background")
    memory.add(HumanMessage("I live in Rome", id="h"), user_id="u")
    assert slow.started.wait(10)
    monkeypatch.setattr("langmem_adapter.worker.CLOSING", 0.05)
    memory.close()
    slow.go.set()
    again = Memory(tmp_path / "m.db", extractor=ModelExtractor(ScriptedChatModel(replies=[lives])), when="background")
    assert again.drain(10)
    assert [r.value for r in again.get_all(user_id="u")] == ["Rome"]
    again.close()


def test_closing_does_not_wait_for_the_whole_queue(tmp_path):
    slow = Slow(fails=False)
    memory = Memory(tmp_path / "m.db", extractor=ModelExtractor(ScriptedChatModel(replies=[slow])), when="background")
    memory.add([HumanMessage(f"I live in Rome{i}", id=f"h{i}") for i in range(5)], user_id="u")
    assert slow.started.wait(10)
    closing = threading.Thread(target=memory.close)
    closing.start()
    assert memory._worker is not None
    while not memory._worker.closed:
        time.sleep(0.01)
    slow.go.set()
    closing.join()
    with Memory(tmp_path / "m.db") as again:
        assert len(again.pending(user_id="u")) == 4
        assert all(t.leased_to is None for t in again.pending(user_id="u"))


def test_what_is_not_to_be_remembered_is_neither_kept_nor_shown_to_a_model(make):
    model = ScriptedChatModel(replies=[liked])
    memory = make(extractor=ModelExtractor(model))
    message = HumanMessage("Don't remember this: I live in Rome.", id="h")
    memory.recall([message], user_id="u", session_id="s")
    assert "Rome" not in str(memory.store.search(("memories",)))
    memory.remember([message], user_id="u", session_id="s", heard=True)
    assert (model.prompts, memory.pending(user_id="u")) == ([], [])
    assert "Rome" not in str(memory.store.search(("memories",)))


def test_a_clock_set_back_holds_up_nothing(make):
    clock = Clock()
    model = ScriptedChatModel(replies=[ValueError("x")])
    memory = make(extractor=ModelExtractor(model), clock=clock)
    with pytest.raises(ModelFailed):
        memory.add(HumanMessage("I like tea", id="h"), user_id="u", session_id="s")
    clock.forward(days=-1)
    assert memory.search("tea", user_id="u") == []
    clock.forward(minutes=2)  # the pause after a failure
    model.replies = [liked]
    memory.remember([HumanMessage("I like milk", id="m")], user_id="u", session_id="s")
    assert memory.pending(user_id="u") == []


def test_an_error_is_kept_without_anybodys_words(make):
    memory = make_one(make, "add", ValueError("echo: my secret"))
    for _ in range(40):
        with contextlib.suppress(ModelFailed):
            memory.add(HumanMessage("I like tea, my secret", id="h"), user_id="u")
    [turn] = memory.pending(user_id="u")
    assert (turn.status, turn.attempts, turn.error) == ("failed", 40, "ModelFailed: ValueError")


@pytest.mark.parametrize("way", ["close", "aclose", "async with"])
async def test_closing_finishes_the_jobs_at_hand(tmp_path, way):
    """Sync and async alike: what the worker is learning is learnt, what waits stays queued, and the loop is free."""
    slow = Slow(fails=False)
    path = tmp_path / "m.db"
    memory = Memory(path, extractor=ModelExtractor(ScriptedChatModel(replies=[slow])), when="background")
    await memory.aadd([HumanMessage("I live in Rome", id="h1"), HumanMessage("I live in Bonn", id="h2")], user_id="u")
    assert await asyncio.to_thread(slow.started.wait, 10)
    asyncio.get_running_loop().call_later(1.0, slow.go.set)  # while it is being closed: who waits for it waits longer
    async with heartbeat() as beats:
        if way == "close":
            await asyncio.to_thread(memory.close)
        elif way == "aclose":
            await asyncio.gather(memory.aclose(), memory.aclose())
        else:
            async with memory:
                pass
        await memory.aclose()
    assert max(b.wall for b in beats) < 0.8
    with pytest.raises(StoreClosed):
        await memory.aget_all(user_id="u")
    with pytest.raises(StoreClosed):
        memory.add("I live in Oslo", user_id="u")
    with Memory(path) as again:
        assert [r.content for r in again.get_all(user_id="u")] == ["The user lives in Rome."]
        assert [t.messages[0].text for t in again.pending(user_id="u")] == ["I live in Bonn"]
