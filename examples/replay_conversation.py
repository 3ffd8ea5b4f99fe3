"""Replay a conversation file through a LangGraph graph with memory, turn by turn, and look at what it remembers.

    python examples/replay_conversation.py chat.jsonl --user Ada
    python examples/replay_conversation.py locomo10.json --user Caroline --ask "where does she come from?"
    python examples/replay_conversation.py locomo10.json --user Jolene --score benchmarks/labels/conv-48-jolene.jsonl

What NAME says is the human's, everybody else is the assistant. The model is replaced by the file: whatever it is
asked, it answers what was answered then. Dates travel by `Memory(clock=…)`: before each turn the clock is set to
the time of that turn, so the graph's own nodes learn and forget in the conversation's time.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import extraction_score
from conversations import Conversation, Malformed, Said, read
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from langmem_adapter import Memory
from langmem_adapter.errors import MemoryAdapterError
from langmem_adapter.langgraph import MemoryState, prompt_with_memories, recall_node, remember_node
from langmem_adapter.records import MemoryRecord

SYSTEM = "You are a good friend of the user."
QUESTIONS = (
    "What do they like, and what do they dislike?",
    "What do they do for a living?",
    "Where do they live?",
    "Who belongs to their family, and what pets do they have?",
)


def build_graph(model: "RecordedModel", memory: Memory) -> Any:
    """recall → model → remember, with a checkpointer: the graph an application would have."""

    def call_model(state: MemoryState) -> dict[str, Any]:
        return {"messages": model.invoke(prompt_with_memories(state, system=SYSTEM))}

    graph = StateGraph(MemoryState)
    graph.add_node("recall", recall_node(memory))
    graph.add_node("model", call_model)
    graph.add_node("remember", remember_node(memory))
    graph.add_edge(START, "recall")
    graph.add_edge("recall", "model")
    graph.add_edge("model", "remember")
    return graph.compile(checkpointer=InMemorySaver())


# ---------------------------------------------------------------- the replay


@dataclass
class ReplayClock:
    """The time of the turn that is being replayed; the present for conversations without dates."""

    at: datetime | None = None

    def __call__(self) -> datetime:
        return self.at or datetime.now(UTC)


@dataclass
class RecordedModel:
    """Stands in for a chat model: it is given the whole prompt, and answers what the file says was answered."""

    replies: list[AIMessage] = field(default_factory=list)

    def invoke(self, prompt: list[BaseMessage]) -> list[AIMessage]:
        """The recorded replies; a live model would read the memories in `prompt`."""
        return self.replies


@dataclass(frozen=True)
class Turn:
    """One human message, what the others said before it, and what they answered."""

    thread_id: str
    before: tuple[Said, ...]
    human: Said
    replies: tuple[Said, ...]


def turns_of(conversation: Conversation, speaker: str) -> Iterator[Turn]:
    """The conversation cut at each message of the speaker."""
    for session in conversation.sessions:
        mine = [i for i, said in enumerate(session.said) if said.speaker == speaker]
        for n, (start, end) in enumerate(zip(mine, [*mine[1:], len(session.said)], strict=True)):
            before = session.said[:start] if n == 0 else ()
            yield Turn(session.id, before, session.said[start], session.said[start + 1 : end])


def replay(turns: Sequence[Turn], memory: Memory, clock: ReplayClock, user_id: str, progress: Progress) -> None:
    """Send each turn through the graph, at its own time."""
    model = RecordedModel()
    graph = build_graph(model, memory)
    bar = progress.add_task("", total=len(turns), thread=turns[0].thread_id)
    for turn in turns:
        clock.at = turn.human.at
        model.replies = _others(turn.replies)
        messages = [*_others(turn.before), HumanMessage(turn.human.text, id=turn.human.id)]
        config = {"configurable": {"user_id": user_id, "thread_id": turn.thread_id}}
        graph.invoke({"messages": messages}, config)
        progress.update(bar, advance=1, thread=turn.thread_id)


def _others(said: Sequence[Said]) -> list[AIMessage]:
    return [AIMessage(s.text, id=s.id) for s in said]


# ---------------------------------------------------------------- the report


def show_remembered(console: Console, memory: Memory, user_id: str) -> None:
    """What is believed now."""
    records = memory.get_all(user_id=user_id)
    console.rule(f"Remembered: {len(records)}", align="left")
    if not records:
        console.print("Nothing. The offline rules keep what a user plainly says about themselves, and nothing else.")
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("said", "topic", "conf."):
        table.add_column(title, no_wrap=True, style="dim")
    table.add_column("memory", overflow="fold")
    for r in records:
        content = Text(r.content + (" (contested)" if r.contested_by else ""))
        table.add_row(f"{r.confirmed_at:%Y-%m-%d}", r.topic, f"{r.confidence:.2f}", content)
    console.print(table)


def show_superseded(console: Console, memory: Memory, user_id: str) -> None:
    """What is no longer believed, or not yet, and why."""
    now = {r.memory_id for r in memory.get_all(user_id=user_id)}
    everything = {r.memory_id: r for r in memory.get_all(user_id=user_id, status="all")}
    past = [r for r in everything.values() if r.memory_id not in now]
    console.rule(f"Superseded, retracted, contested or expired: {len(past)}", align="left")
    for r in past:
        successor = everything.get(r.superseded_by or "")
        console.print(Text(_fate(r), style="dim"), Text(r.content))
        if successor is not None:
            console.print(Text(f"  since {successor.created_at:%Y-%m-%d}: {successor.content}"))


def _fate(record: MemoryRecord) -> str:
    when = record.invalidated_at or record.expires_at or record.updated_at
    return f"{when:%Y-%m-%d} {'expired' if record.status == 'active' else record.status}"


def show_answers(console: Console, memory: Memory, user_id: str, questions: Sequence[str]) -> None:
    """The best memories for each question, with their scores."""
    console.rule("Recalled", align="left")
    for question in questions:
        console.print(Text(f"? {question}", style="bold"))
        hits = memory.search(question, user_id=user_id, k=3)
        for hit in hits:
            relevance = f"(relevance {hit.parts.relevance:.2f})"
            console.print(Text.assemble(f"  {hit.score:.3f} ", (relevance, "dim"), f"  {hit.record.content}"))
        if not hits:
            console.print("  nothing")


def show_score(console: Console, memory: Memory, labels: extraction_score.Labels, name: str) -> None:
    """Precision and recall of what is remembered, and the rule by which they are counted."""
    console.rule("Score", align="left")
    score = extraction_score.score(labels, memory.get_all(user_id=labels.user, status="all"))
    for line in (extraction_score.RULE, *score.lines(name)):
        console.print(Text(line))


# ---------------------------------------------------------------- the command line


def choose(conversations: Sequence[Conversation], name: str, sample: str | None) -> Conversation:
    """The conversation asked for: by id or number (from 0), else the first one in which `name` speaks."""
    found: Sequence[Conversation] = conversations
    if sample is not None:
        found = [c for i, c in enumerate(conversations) if sample in (c.id, str(i))]
        if not found:
            ids = ", ".join(f"{i} {c.id}" for i, c in enumerate(conversations))
            raise Malformed(f"no sample {sample!r}; there are: {ids}")
    for conversation in found:
        if conversation.voice_of(name) is not None:
            return conversation
    speakers = "; ".join(f"{', '.join(c.speakers)} ({c.id})" for c in found)
    raise Malformed(f"nobody called {name!r} speaks in it; the speakers are: {speakers}")


def run(options: argparse.Namespace, console: Console) -> None:
    """Read, replay, report."""
    labels = extraction_score.load(options.score) if options.score else None
    sample = labels.sample if labels and options.sample is None else options.sample
    conversation = choose(read(options.file), options.user, sample)
    if labels:
        if labels.user != options.user:
            raise Malformed(f"the labels are of what {labels.user!r} said: pass --user {labels.user}")
        conversation = labels.stretch(conversation)
    turns = list(turns_of(conversation, conversation.voice_of(options.user) or ""))
    events: Counter[str] = Counter()
    clock = ReplayClock()

    def on_event(event: str, data: dict[str, Any]) -> None:
        events.update([o.action for o in data["operations"]] if event == "learnt" else [event])

    with ExitStack() as stack:
        file = options.db or Path(stack.enter_context(tempfile.TemporaryDirectory())) / "memory.db"
        memory = stack.enter_context(Memory(file, model=options.model, clock=clock, on_event=on_event))
        console.print(Text(_introduction(conversation, options.user, turns)))
        started = perf_counter()
        with _progress(console) as progress:
            replay(turns, memory, clock, options.user, progress)
        console.print(f"Replayed {len(turns)} turns in {perf_counter() - started:.1f} s.")
        counts = ", ".join(f"{n} {event}" for event, n in events.most_common()) or "nothing learnt"
        console.print(f"On the way: {counts}.", style="red" if any("failed" in event for event in events) else "")
        if labels:
            show_score(console, memory, labels, options.model or "the offline rules")
            return
        show_remembered(console, memory, options.user)
        show_superseded(console, memory, options.user)
        show_answers(console, memory, options.user, options.ask or QUESTIONS)


def _introduction(conversation: Conversation, name: str, turns: Sequence[Turn]) -> str:
    dates = sorted(t.human.at for t in turns if t.human.at is not None)
    said = f"said between {dates[0]:%Y-%m-%d} and {dates[-1]:%Y-%m-%d}" if dates else "undated: said now"
    return f"{conversation.id}: messages by {name}: {len(turns)}; sessions: {len(conversation.sessions)}; {said}."


def _progress(console: Console) -> Progress:
    columns = (BarColumn(bar_width=30), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[thread]}"))
    return Progress(*columns, console=console)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Replay a conversation through a LangGraph graph with memory.")
    parser.add_argument("file", type=Path, help="OpenAI-style messages (JSON or JSONL), or LoCoMo samples")
    parser.add_argument("--user", required=True, metavar="NAME", help="whose memory it is; also the user id")
    parser.add_argument("--db", type=Path, help="keep the memories in this file (default: a temporary one)")
    parser.add_argument("--sample", metavar="N|ID", help="LoCoMo: which sample (default: the first with NAME in it)")
    parser.add_argument("--ask", action="append", metavar="QUERY", help="what to recall at the end; may be repeated")
    parser.add_argument(
        "--model", metavar="STRING", help='extract and judge with a LangChain model, "openai:gpt-4o-mini"'
    )
    parser.add_argument("--score", type=Path, metavar="LABELS", help="compare with these labels, of a part of the file")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the example; 0, or 2 with one line on stderr if the file cannot be used."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal that lacks a character shows "?"
    options = parse(argv)
    console = Console(highlight=False)
    try:
        run(options, console)
    except OSError as error:
        print(f"{error.filename or options.file}: {error.strerror or error}", file=sys.stderr)
        return 2
    except (Malformed, MemoryAdapterError) as error:
        where = options.file if isinstance(error, Malformed) else options.db
        print(f"{where or options.file}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if options.model is None:
            raise
        # Each provider has its own errors; they all mean the same here.
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        hint = "It needs the provider's package (as in: pip install langchain-openai), an API key, and the network."
        print(f"cannot use --model {options.model!r} ({reason}). {hint}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
