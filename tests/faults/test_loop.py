"""The event loop stays free for an owner of very much; a cancelled turn leaves nothing half done and no lock."""

import asyncio
import contextlib
import itertools
import json
import random
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from faults.concierge import Concierge
from invariants import whole
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.store.base import PutOp
from support import SOAK, Model, record
from test_event_loop import free

from langmem_adapter import Memory, MemoryAdapterError
from langmem_adapter.errors import ModelFailed
from langmem_adapter.extraction.model import ModelExtractor
from langmem_adapter.namespaces import namespace
from langmem_adapter.testing import ScriptedChatModel

RECORDS = 10_000 if SOAK else 2_000
TURNS = 500 if SOAK else 25


PROSE = "The quick Brown fox saw 12 things in Lisbon. "
LOG = "10:15:00 INFO [worker-é] token refreshed, key ok, pass 4111 1111 1111 1111 to https://a.example/?q=AB12\n"


@pytest.mark.parametrize(
    ("line", "length"),
    [(PROSE, 2_000), (PROSE, 1_000_000), (PROSE, 10_000_000), (LOG, 10_000_000)],
    ids=["2 kB", "1 MB", "10 MB", "10 MB of a log"],
)
async def test_a_long_message_to_an_owner_of_many_records_leaves_no_gap(
    line: str, length: int, tmp_path: Path, tried: Callable[[str], None]
) -> None:
    text = "I'm vegan. " + line * (length // len(line))
    numbers = itertools.count()
    with Concierge(tmp_path / "m.db") as concierge:
        facts = namespace("facts", app_name="default", user_id="u")
        one = record(topic="general", value="", user_id="u")
        puts = [
            PutOp(
                facts,
                f"m_{n}",
                one.change(memory_id=f"m_{n}", seq=n, content=f"The user owns object {n}.").model_dump(mode="json"),
                index=["content"],
            )
            for n in range(RECORDS)
        ]
        for start in range(0, RECORDS, 1_000):
            await asyncio.to_thread(concierge.memory.store.batch, puts[start : start + 1_000])
        await concierge.asay("Hello.", id="warm")

        async def work() -> None:
            for n in itertools.islice(numbers, 10 if line == PROSE else 3):
                assert "object" in await concierge.asay(f"Which object number {n} do I own? {text}", id=f"h{n}")

        beat = await free(work)
        assert "recall_failed" not in concierge.told()
        tried(f"{RECORDS} records, {length} characters, a gap of {max(beat.cpu, 0) * 1e3:.0f} ms computing")


LONG = LOG * (10_000_000 // len(LOG))
MANY = [m for n in range(500) for m in (HumanMessage(LONG[:20_000], id=f"h{n}"), AIMessage("Noted.", id=f"a{n}"))]
MUCH = 3_000_000
"""Characters of a value, each word of which is indexed."""
IDS: dict[str, Any] = {"user_id": "u", "session_id": "s"}
FACT: dict[str, Any] = {"user_id": "u", "source_id": "crm"}

ENTRIES: dict[str, Callable[[Memory, str], Awaitable[object]]] = {
    "aadd": lambda m, text: m.aadd(text, **IDS),
    "aadd, many messages": lambda m, text: m.aadd(MANY[:100], **IDS),
    "arecall": lambda m, text: m.arecall([HumanMessage(text)], **IDS),
    "aremember": lambda m, text: m.aremember([HumanMessage(text)], **IDS),
    "aend_session": lambda m, text: m.aend_session([HumanMessage(text, id="h"), AIMessage(text, id="a")], **IDS),
    "aend_session, many messages": lambda m, text: m.aend_session(MANY, **IDS),
    "aend_session, with a model": lambda m, text: _with_a_model(m).aend_session([HumanMessage(text, id="h")], **IDS),
    "asearch": lambda m, text: m.asearch(text, user_id="u"),
    "aupdate": lambda m, text: m.aupdate("m_1", content=text, user_id="u"),
    **{
        f"aadd_fact, {field}": lambda m, text, field=field: m.aadd_fact(
            **FACT | {"content": "The user is tall."} | {field: text}
        )
        for field in ("content", "slot", "value", "subject", "kind", "purpose", "source_id", "user_id", "topic", "at")
    },
    "aadd_fact, entities": lambda m, text: m.aadd_fact("The user is tall.", **FACT, entities=[text]),
    "ahold": lambda m, text: m.ahold("u", text),
    "alift_hold": lambda m, text: m.alift_hold("u", text),
    "aforbid": lambda m, text: m.aforbid(user_id="u", topic=text),
    "aforget_source": lambda m, text: m.aforget_source(text, user_id="u"),
    "aget": lambda m, text: m.aget(text, user_id="u"),
    "aget_all": lambda m, text: m.aget_all(user_id=text),
    "aimport_lines": lambda m, text: m.aimport_lines([text], user_id="u", source_id="notes"),
    "aimport_lines, many lines": lambda m, text: m.aimport_lines([text[:20_000]] * 100, user_id="u", source_id="notes"),
    "aimport_mem0": lambda m, text: m.aimport_mem0([{"id": "1", "memory": text, "user_id": "u"}]),
    "aput": lambda m, text: m.store.aput(("n",), "k", {"content": text[:MUCH]}),
    "aput, many texts": lambda m, text: m.store.aput(("n",), "k", {"lines": text[:MUCH].split("\n")}),
    "aput, indexed whole": lambda m, text: m.store.aput(("n",), "k", {"lines": text[:MUCH].split("\n")}, index=["$"]),
    "aput, a long integer": lambda m, text: m.store.aput(("n",), "k", {"content": text[:MUCH], "n": 2**70}),
}


def _with_a_model(memory: Memory) -> Memory:
    return Memory(memory.store, model=ScriptedChatModel(replies=["They looked at a log."]))


@pytest.mark.parametrize("entry", ENTRIES)
async def test_no_way_in_holds_the_loop_with_a_long_text(entry: str, tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db") as memory:
        puts = record(memory_id="m_1", user_id="u").model_dump(mode="json")
        await memory.store.aput(namespace("facts", app_name="default", user_id="u"), "m_1", puts)
        texts = [LONG + str(n) for n in range(3)]

        async def work() -> None:
            with contextlib.suppress(MemoryAdapterError):
                await ENTRIES[entry](memory, texts.pop())
            await rest()

        await free(work, rest)


FACTS = [
    {"content": f"The user saw thing{n}.", "topic": "general", "value": f"thing{n}", "line": "l1", "excerpt": "I saw"}
    for n in range(10_000)
]
ANSWERS: dict[str, Any] = {
    "brackets": "[" * 100_000,
    "a few brackets": "[" * 4_000,
    "objects": '{"a":' * 20_000,
    "unfinished": json.dumps({"facts": FACTS[:1_000]})[:-5],
    "empty objects": "{} " * 60_000,
    "many facts, as text": json.dumps({"facts": FACTS}),
    "many facts, as a call": AIMessage("", tool_calls=[{"name": "Facts", "args": {"facts": FACTS}, "id": "1"}]),
    "many facts, as calls": AIMessage(
        "", tool_calls=[{"name": "Facts", "args": {"facts": FACTS[n::10]}, "id": str(n)} for n in range(10)]
    ),
    "many bad facts": AIMessage(
        "", tool_calls=[{"name": "Facts", "args": {"facts": [{"topic": "x"}] * 10_000}, "id": "1"}]
    ),
}


class Says(Model):
    """A model that answers with this very message."""

    said: Any

    async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.said)])


@pytest.mark.parametrize("answer", ANSWERS)
async def test_no_answer_of_a_model_holds_the_loop(answer: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("langmem_adapter.answers.WAIT_SECONDS", 0.001)
    said = ANSWERS[answer] if isinstance(ANSWERS[answer], AIMessage) else AIMessage(ANSWERS[answer])
    numbers = itertools.count()
    with Memory(tmp_path / "m.db", extractor=ModelExtractor(Says(said=said))) as memory:

        async def work() -> None:
            with contextlib.suppress(ModelFailed):
                await memory.aadd(HumanMessage("I saw things.", id="h"), user_id=f"u{next(numbers)}")
            await rest()

        await free(work, rest)


async def rest() -> None:
    await asyncio.sleep(0.25)


async def test_a_cancelled_turn_leaves_no_open_transaction_and_is_whole_or_not_there(
    tmp_path: Path, tried: Callable[[str], None]
) -> None:
    rng = random.Random(4)
    path = tmp_path / "m.db"
    outcomes = {"answered": 0, "cancelled": 0}
    with Concierge(path) as concierge:
        memory = concierge.memory
        await concierge.asay("Hello.", id="warm")
        for n in range(TURNS):
            turn: Any = asyncio.create_task(concierge.asay(f"I live in City{n}. I like dish{n}.", id=f"h{n}"))
            await asyncio.sleep(rng.random() * 0.06)
            turn.cancel()
            try:
                await turn
                outcomes["answered"] += 1
            except asyncio.CancelledError:
                outcomes["cancelled"] += 1
            with contextlib.closing(sqlite3.connect(path, timeout=10, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")  # nobody holds the lock
                other.execute("ROLLBACK")
            whole(memory)
        memory.retry(user_id="u")
        records = whole(memory)
        assert memory.pending(user_id="u") == []
        # Whatever was heard is learnt, both facts of a turn or none, and once.
        taught = [r.content for r in records]
        assert len(set(taught)) == len(taught)
        cities = {t.removeprefix("The user lives in City") for t in taught if "City" in t}
        assert cities == {t.removeprefix("The user likes dish") for t in taught if "dish" in t}
        assert concierge.told().count("remember_failed") == 0
    assert outcomes["cancelled"]
    tried(f"{TURNS} turns, {outcomes}, {len(cities)} of them heard")
