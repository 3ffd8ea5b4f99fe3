"""What a turn costs with memory: recall, injection and the full durable cycle, against a bare graph and langmem.

    python benchmarks/turn.py [--json result.json]

The user has 1,000 records. One scripted model with the same fixed replies answers at once for all, and teaches one
fact a turn; the embedder is the same. Files are on disk, with write-ahead logs and `synchronous=FULL`.
"""

import argparse
import itertools
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.store.base import GetOp, PutOp
from langmem import create_memory_store_manager
from measure import interleaved, machine
from store import Row, _sqlite_store, show

from langmem_adapter import Memory
from langmem_adapter.consolidation import neighbours
from langmem_adapter.consolidation.rules import record_put
from langmem_adapter.embeddings import HashEmbeddings
from langmem_adapter.langgraph import MemoryState, prompt_with_memories, recall_node, remember_node
from langmem_adapter.records import Candidate, Extraction, MemoryRecord, Source, Turn
from langmem_adapter.scoring import Weights, Where
from langmem_adapter.stores.base import RankOp
from langmem_adapter.stores.sqlite import SqliteMemoryStore
from langmem_adapter.testing import ScriptedChatModel
from langmem_adapter.topics import DEFAULT_TOPICS, Topics

RECORDS = 1_000
USER = "ada"
THINGS = (
    "coffee trains pianos gardens winters novels chess bread rivers doctors bikes films maps tea opera ferries".split()
)
PLACES = "Lisbon Oslo Boston Kyoto Lima Cairo Delhi Quito Turin Perth Gdansk Malmo Porto Basel Ghent Leeds".split()


def fact(n: int) -> str:
    """What the user says in the n-th turn."""
    return f"I enjoy {THINGS[n % 16]} with {THINGS[n // 16 % 16]} in {PLACES[n // 7 % 16]} on day {n}"


class OneFact:
    """An extractor that answers at once with the one fact of the message."""

    def extract(self, turn: Turn) -> Extraction:
        """One candidate."""
        message = turn.messages[-1]
        return Extraction(candidates=self.candidates(message.text, message.id))

    def candidates(self, text: str, message_id: str | None) -> tuple[Candidate, ...]:
        """What a message teaches."""
        slot = text.rpartition("on ")[2]
        content = f"The user said: {text}"
        candidate = Candidate(
            content=content, topic="preference/likes", slot=slot, value="like", excerpt=text, message_id=message_id
        )
        return (candidate,)


def said(n: int) -> dict[str, Any]:
    """The input of the n-th turn."""
    return {"messages": [HumanMessage(fact(n), id=f"m{n}")]}


def config(n: int) -> Any:
    """Each turn in a thread of its own, so that no conversation grows."""
    return {"configurable": {"thread_id": f"t{n}", "user_id": USER}}


def record(n: int, now: datetime) -> MemoryRecord:
    """One of the thousand."""
    source = Source(source_type="user_explicit", source_id="s", at=now, confidence=0.9, excerpt=fact(n))
    return MemoryRecord(
        memory_id=f"old{n}",
        seq=n + 1,
        content=f"The user said: {fact(n)}",
        user_id=USER,
        topic="preference/likes",
        slot=f"day {n}",
        value="like",
        confidence=0.9,
        sources=(source,),
        created_at=now,
        updated_at=now,
        confirmed_at=now,
    )


# -------------------------------------------------------------------- the turns


def bare() -> Callable[[int], object]:
    """A graph of one node that calls the model."""
    model = ScriptedChatModel()
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_edge(START, "model")
    graph.add_edge("model", END)
    compiled: Any = graph.compile(checkpointer=InMemorySaver())
    return lambda n: compiled.invoke(said(n), config(n))


def ours(memory: Memory, *, learn: bool) -> Callable[[int], object]:
    """The same with `recall_node` and the block in the prompt, and `remember_node` unless nothing is to be learnt."""
    model = ScriptedChatModel()
    graph = StateGraph(MemoryState)
    graph.add_node("recall", recall_node(memory))
    graph.add_node("model", lambda state: {"messages": [model.invoke(prompt_with_memories(state, system="Help."))]})
    graph.add_edge(START, "recall")
    graph.add_edge("recall", "model")
    if learn:
        graph.add_node("remember", remember_node(memory))
        graph.add_edge("model", "remember")
        graph.add_edge("remember", END)
    else:
        graph.add_edge("model", END)
    compiled: Any = graph.compile(checkpointer=InMemorySaver())
    return lambda n: compiled.invoke(said(n), config(n) if learn else _unheard(n))


def _unheard(n: int) -> Any:
    return {"configurable": config(n)["configurable"] | {"remember": False}}


def theirs(store: Any) -> Callable[[int], object]:
    """The same with what langmem's documentation suggests: search, inject, and the store manager afterwards."""
    model = ScriptedChatModel()
    turn = itertools.count()

    def learnt(prompt: Any) -> AIMessage:
        call = {"name": "Memory", "args": {"content": f"The user said: {fact(next(turn))}"}, "id": "c1"}
        return AIMessage("", tool_calls=[call])

    namespace = ("memories", USER)
    manager = create_memory_store_manager(ScriptedChatModel(replies=[learnt]), namespace=namespace, store=store)
    graph = StateGraph(MessagesState)

    def call_model(state: Any) -> Any:
        hits = store.search(namespace, query=state["messages"][-1].text, limit=10)
        block = "\n".join(h.value["content"]["content"] for h in hits)
        return {"messages": [model.invoke([("system", f"Help.\n{block}"), *state["messages"]])]}

    def remember(state: Any) -> Any:
        manager.invoke({"messages": state["messages"]})
        return {}

    graph.add_node("model", call_model)
    graph.add_node("remember", remember)
    graph.add_edge(START, "model")
    graph.add_edge("model", "remember")
    graph.add_edge("remember", END)
    compiled: Any = graph.compile(checkpointer=InMemorySaver())
    return lambda n: compiled.invoke(said(n), config(n))


# -------------------------------------------------------------------- the steps


def steps(store: SqliteMemoryStore, memory: Memory) -> dict[str, Callable[[int], object]]:
    """Each step of our turn by itself."""
    facts = ("memories", "default", "user", USER, "facts")
    topics = Topics(DEFAULT_TOPICS)
    now = datetime.now(UTC)
    where = Where(now.timestamp())
    messages = [HumanMessage(fact(7), id="probe")]
    found = memory.recall(messages, user_id=USER, hear=False)
    assert found is not None

    def decided(n: int) -> object:
        candidates = OneFact().candidates(fact(n), None)
        results, _ = store.read(neighbours.reads(facts, candidates, topics, now), versions=(facts,))
        return neighbours.records(results)

    def committed(n: int) -> None:
        _, versions = store.read([], versions=(facts,))
        store.commit([record_put(facts, record(200_000 + n, now))], expect=versions)

    return {
        "read: ten records by key": lambda n: store.read(
            [_get(facts, f"old{(n * 10 + i) % RECORDS}") for i in range(10)]
        ),
        "rank: the best ten": lambda n: store.read([RankOp((facts,), fact(n), where, Weights(), 10)]),
        "recall: rank and validate": lambda n: memory.recall(messages, user_id=USER, hear=False),
        "block: ten records into text": lambda n: memory.recall_block(found),
        "enqueue: the message into the queue, durable": lambda n: memory.recall(
            [HumanMessage(fact(n), id=f"q{n}")], user_id=f"queue{n}", session_id="s"
        ),
        "decide: read what a fact is compared with": decided,
        "commit: one record, durable": committed,
        "remember: extract, consolidate, commit, durable": lambda n: memory.remember(
            [HumanMessage(fact(300_000 + n), id=f"r{n}")], user_id=USER, session_id=f"s{n}"
        ),
    }


def _get(namespace: tuple[str, ...], key: str) -> GetOp:
    return GetOp(namespace, key, refresh_ttl=False)


BUDGETS = {
    "read: ten records by key": 0.5,
    "rank: the best ten": 1.0,
    "recall: rank and validate": 1.5,
    "block: ten records into text": 1.0,
    "enqueue: the message into the queue, durable": 3.0,
    "decide: read what a fact is compared with": 2.0,
    "commit: one record, durable": 1.5,
    "remember: extract, consolidate, commit, durable": 6.0,
}
"""CPU milliseconds a step may take, about twice what it took when this was written, on a busy machine."""


# -------------------------------------------------------------------- all of it


def run(folder: Path, rounds: int) -> tuple[list[Row], dict[str, str]]:
    """The rows, and what else there is to say."""
    now = datetime.now(UTC)
    embed = HashEmbeddings()
    index: Any = {"dims": embed.dims, "embed": embed, "fields": ["content"]}
    store = SqliteMemoryStore(folder / "ours.db", index=index)
    facts = ("memories", "default", "user", USER, "facts")
    store.batch([record_put(facts, record(n, now)) for n in range(RECORDS)])
    memory = Memory(store, embeddings=embed, extractor=OneFact())

    module, cls = _sqlite_store()
    conn = module.connect(str(folder / "langmem.db"), check_same_thread=False, isolation_level=None)
    conn.execute("PRAGMA journal_mode = WAL")
    conn.execute("PRAGMA synchronous = FULL")
    other = cls(conn, index=index)
    other.setup()
    old = [{"kind": "Memory", "content": {"content": f"The user said: {fact(n)}"}} for n in range(RECORDS)]
    other.batch([PutOp(("memories", USER), f"old{n}", v, index=["content.content"]) for n, v in enumerate(old)])

    turns = {
        "ours": ours(memory, learn=True),
        "bare graph": bare(),
        "recall + inject": ours(memory, learn=False),
        "langmem manager": theirs(other),
    }
    times = interleaved({k: _later(c) for k, c in turns.items()}, rounds)
    row = Row("a turn; ours: the full durable cycle", times, [("langmem manager", 5, "cpu")])
    extra = times["recall + inject"].cpu - times["bare graph"].cpu
    allowed = max(1.5, times["bare graph"].cpu)
    mark = "met" if extra <= allowed else "NOT MET"
    row.note = f"recall + inject adds {extra:.2f} ms CPU to the bare turn; at most {allowed:.2f}: {mark}"
    rows = [row]
    each = interleaved(steps(store, memory), rounds)
    facts_found = machine()
    for name, t in each.items():
        mark = "" if t.cpu <= BUDGETS[name] else "  OVER BUDGET"
        facts_found[name] = f"{t.wall:.2f} ms wall, {t.cpu:.2f} ms CPU, budget {BUDGETS[name]:g}{mark}"
    taught = len(store.search(facts, limit=10_000)) - RECORDS
    facts_found["facts that our turns taught"] = str(taught)
    facts_found["facts that langmem's taught"] = str(len(other.search(("memories", USER), limit=10_000)) - RECORDS)
    store.close()
    conn.close()
    return rows, facts_found


def _later(call: Callable[[int], object]) -> Callable[[int], object]:
    # Days that none of the thousand is about.
    return lambda n: call(100_000 + n)


def main() -> None:
    """Run, print, and write JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-turn-"))
    began = time.perf_counter()
    try:
        rows, facts = run(folder, given.rounds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    facts["this run took"] = f"{time.perf_counter() - began:.0f} s"
    show(rows, facts)
    if given.json:
        found = [
            asdict(r) | {"verdicts": r.verdicts(), "times": {n: t._asdict() for n, t in r.times.items()}} for r in rows
        ]
        given.json.write_text(json.dumps({"facts": facts, "rows": found}, indent=1))


if __name__ == "__main__":
    main()
