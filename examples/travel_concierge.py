"""A travel concierge with long-term memory: a LangGraph graph, three sessions, and a guest who changes her mind.

    python examples/travel_concierge.py                     the story; offline, no key, no server
    python examples/travel_concierge.py --chat --db my.db   talk to it yourself
    python examples/travel_concierge.py --model openai:gpt-4o-mini

The graph (`build_graph`) is what an application would have. Without `--model` the concierge is a short script that
knows about the user only what stands in its system message, so what it says shows what the memory gave it.
"""

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from langmem_adapter import Memory
from langmem_adapter.errors import MemoryAdapterError
from langmem_adapter.langgraph import MemoryState, prompt_with_memories, recall_node, remember_node
from langmem_adapter.records import MemoryRecord, Operation, SourceType

SYSTEM = "You are a travel concierge. Be brief, and use what you know about the user."

STORY: tuple[tuple[str, SourceType, str], ...] = (
    ("s1", "user_implicit", "Hi! I'm a vegetarian. Please call me Ada, and I prefer the aisle seat."),
    ("s2", "user_implicit", "As I said, I'm vegetarian."),
    ("s3", "user_explicit", "I've started eating fish again."),
)
LUNCH = "What should we order for lunch?"
FLIGHT = "Please book me a seat on the flight."
QUERIES = (
    "any dietary restrictions I should know about?",
    "what seat should I book on the flight?",
    "what should we order for lunch?",
)


# ---------------------------------------------------------------- the graph


def build_graph(model: BaseChatModel, memory: Memory) -> Any:
    """recall → model → remember, with a checkpointer."""

    def call_model(state: MemoryState) -> dict[str, Any]:
        return {"messages": [model.invoke(prompt_with_memories(state, system=SYSTEM))]}

    graph = StateGraph(MemoryState)
    graph.add_node("recall", recall_node(memory))
    graph.add_node("model", call_model)
    graph.add_node("remember", remember_node(memory))
    graph.add_edge(START, "recall")
    graph.add_edge("recall", "model")
    graph.add_edge("model", "remember")
    return graph.compile(checkpointer=InMemorySaver())


def ask(graph: Any, text: str, *, user_id: str, thread_id: str, remember: bool = True, **config: Any) -> str:
    """One turn through the graph: what the concierge answers. `remember=False` answers without learning."""
    configurable = {"user_id": user_id, "thread_id": thread_id, "remember": remember}
    state = graph.invoke({"messages": [HumanMessage(text)]}, {"configurable": configurable, **config})
    return str(state["messages"][-1].text)


class Concierge(BaseChatModel):
    """A scripted chat model: it answers from its system message and the last thing the user said."""

    @property
    def _llm_type(self) -> str:
        return "scripted-concierge"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        known = _memory_lines(messages[0].text if messages[0].type == "system" else "")
        answer = _greeting(known) + _answer(messages[-1].text.lower(), known)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(answer))])


def _memory_lines(system: str) -> list[str]:
    """The memories in a system message, one text each, without their confidence."""
    return re.findall(r"^- \[confidence: [^\]]*\] (.*)$", system, re.MULTILINE)


def _greeting(known: list[str]) -> str:
    name = re.search(r"The user goes by (.+?)\.(?: |$)", "\n".join(known), re.MULTILINE)
    return f"{name[1]}, " if name else ""


def _answer(question: str, known: list[str]) -> str:
    if re.search(r"\b(lunch|dinner|eat|order|restaurant|menu)\b", question):
        return _dish([text for text in known if re.search(r"fish|vegetarian|vegan", text)])
    if re.search(r"\b(seat|flight|fly|book)\b", question):
        return _seat("\n".join(known))
    return "all right. I can suggest a dish and book your flights."


def _dish(diet: list[str]) -> str:
    if any("the user also said" in text for text in diet):
        return "before I order: you have told me two different things. Do you eat fish?"
    if any(text.startswith("The user eats fish") for text in diet):
        return "I recommend the grilled tuna: you eat fish."
    if diet:
        return "I recommend the mushroom risotto: no meat and no fish in it."
    return "I recommend the mushroom risotto: I don't know yet what you eat."


def _seat(known: str) -> str:
    seat = re.search(r"prefers (?:an? |the )?(aisle|window|middle)", known)
    return f"I have booked the {seat[1]} seat." if seat else "window or aisle? I don't know which you prefer."


# ---------------------------------------------------------------- the story


class Overheard(BaseCallbackHandler):
    """Keeps the system message that the model was given, whichever model it is."""

    def __init__(self) -> None:
        self.system = ""

    def on_chat_model_start(self, serialized: dict[str, Any], messages: list[list[BaseMessage]], **kwargs: Any) -> None:
        """Called by LangChain with the model's real input."""
        # The block of memories is a content block of its own.
        self.system = "\n\n".join(block["text"] for block in messages[0][0].content_blocks if block["type"] == "text")


def tell_story(console: Console, graph: Any, memory: Memory) -> None:
    """Three sessions, and then everything that can be seen of what was learnt."""
    user = new_guest(console, memory)
    learn_three_sessions(console, graph, memory, user)
    show_state(console, memory, user)
    show_retrieval(console, memory, user)
    show_isolation(console, graph, memory, user)
    show_block(console, graph, user)
    show_why(console, memory, user)
    revoke_first_session(console, graph, memory, user)
    console.print("\nNow you: run it again with --chat. There the graph's own remember node learns from you.")


def new_guest(console: Console, memory: Memory) -> str:
    """A user id that this file has not met: the story is only true the first time it is told to a user."""
    user, n = "ada", 1
    while memory.get_all(user_id=user, status="all"):
        user, n = f"ada-{n + 1}", n + 1
    if n > 1:
        console.print(f"This file knows Ada from an earlier run; today she checks in as {user!r}.\n", markup=False)
    return user


def learn_three_sessions(console: Console, graph: Any, memory: Memory, user: str) -> None:
    """Each session: what she says, what is learnt from it, and what the concierge then recommends."""
    heading(console, "1  Three sessions")
    console.print(
        "The script states how sure each session is (source_type=…) and so learns by memory.add; left alone, the "
        'rules would take "I\'m a vegetarian" for what it is: explicit, 0.90. The graph answers, in a new thread each '
        "time, and learns nothing here.",
        style="dim",
    )
    for session, source_type, text in STORY:
        console.print(f"\nSession {session} [dim]({source_type})[/dim]")
        line(console, "Ada", text)
        before = confidences(memory, user)
        operations = memory.add(text, user_id=user, session_id=session, source_type=source_type)
        show_operations(console, operations, before, confidences(memory, user))
        dialogue(console, graph, user, f"after-{session}", LUNCH)
    dialogue(console, graph, user, "flight", FLIGHT)


def dialogue(console: Console, graph: Any, user: str, thread: str, question: str) -> None:
    """A question and its answer in a thread of its own, so that only memory can carry anything over."""
    line(console, "Ada", question)
    line(console, "concierge", ask(graph, question, user_id=user, thread_id=thread, remember=False))


def confidences(memory: Memory, user: str) -> dict[str, float]:
    """Confidence by memory id."""
    return {r.memory_id: r.confidence for r in memory.get_all(user_id=user, status="all")}


def show_operations(
    console: Console, operations: Sequence[Operation], before: dict[str, float], after: dict[str, float]
) -> None:
    """What was decided about each fact found, and the confidence it left."""
    for o in operations:
        old, new = before.get(o.memory_id or ""), after.get(o.memory_id or "")
        change = "" if new is None else f"{new:.2f}" if old in (None, new) else f"{old:.2f} → {new:.2f}"
        console.print(Text(f"   {o.action:<7} {change:<12} {o.content}", style="green"))


def show_state(console: Console, memory: Memory, user: str) -> None:
    """Every record, and the history of those that no longer hold."""
    heading(console, "2  What is stored")
    records = memory.get_all(user_id=user, status="all")
    console.print(records_table(records))
    for r in records:
        if r.status == "active":
            continue
        console.print(Text(f"History of “{r.content}”"))
        for h in memory.history(r.memory_id, user_id=user):
            console.print(Text(f"   {h.at:%H:%M:%S}  {h.action:<10} {h.reason}  {h.source_id or ''}", style="dim"))


def records_table(records: Sequence[MemoryRecord]) -> Table:
    """Records as rows; invalidated ones are struck out."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("id", "status", "conf."):
        table.add_column(title, no_wrap=True)
    table.add_column("memory", overflow="fold")
    table.add_column("sources", overflow="fold")
    for r in records:
        style = "" if r.status == "active" else "strike dim"
        sources = ", ".join(s.source_id + (" (lineage)" if s.role == "lineage" else "") for s in r.sources)
        flag = " (flagged)" if r.needs_regeneration else ""
        cells = (r.memory_id[:8], r.status, f"{r.confidence:.2f}", r.content + flag, sources)
        table.add_row(*(Text(cell, style=style if i == 3 else "") for i, cell in enumerate(cells)))
    return table


def show_retrieval(console: Console, memory: Memory, user: str) -> None:
    """The scores of every active record for three queries."""
    heading(console, "3  Retrieval")
    console.print("score = 0.6 relevance + 0.25 recency + 0.15 importance; here by vectors alone", style="dim")
    for query in QUERIES:
        console.print(Text(f"? {query}"))
        for hit in memory.search(query, user_id=user, mode="vector"):
            console.print(Text(f"   {hit.score:.3f}  {hit.record.content}", style="green"))


def show_isolation(console: Console, graph: Any, memory: Memory, user: str) -> None:
    """Another user asks the same, and finds nothing."""
    heading(console, "4  Another user")
    other = "stranger"
    console.print(f"What a search finds for {other!r}: {memory.search(LUNCH, user_id=other)}", markup=False)
    line(console, other, LUNCH)
    line(console, "concierge", ask(graph, LUNCH, user_id=other, thread_id="other", remember=False))


def show_block(console: Console, graph: Any, user: str) -> None:
    """The system message as the model received it."""
    heading(console, "5  The system message, overheard at the model's door")
    overheard = Overheard()
    ask(graph, LUNCH, user_id=user, thread_id="overheard", remember=False, callbacks=[overheard])
    console.print(Panel(Text(overheard.system)))


def show_why(console: Console, memory: Memory, user: str) -> None:
    """Why it believes what it believes about her diet."""
    heading(console, "6  Why?")
    for record in memory.get_all(user_id=user, topic="diet"):
        console.print(Text(str(memory.why(record.memory_id, user_id=user))))


def revoke_first_session(console: Console, graph: Any, memory: Memory, user: str) -> None:
    """The first session is withdrawn: what rested on it alone is gone."""
    heading(console, '7  "Forget our first conversation"')
    show_receipt(console, memory, user, "s1")
    console.print("What is left:")
    console.print(records_table(memory.get_all(user_id=user, status="all")))
    dialogue(console, graph, user, "after-forgetting", FLIGHT)
    dialogue(console, graph, user, "after-forgetting", LUNCH)


def show_receipt(console: Console, memory: Memory, user: str, source: str) -> None:
    """Forget a source, and say what was reached."""
    receipt = memory.forget_source(source, user_id=user)
    console.print(Text(f"{len(receipt.erased)} erased, {len(receipt.flagged)} kept because of other sources"))
    for place in receipt.places:
        console.print(Text(f"   {place.state:<13} {place.count:>2}  {place.name}  {place.note}".rstrip(), style="dim"))


def heading(console: Console, title: str) -> None:
    """A section title."""
    console.print()
    console.rule(Text(title, style="bold"), align="left")


def line(console: Console, who: str, text: str) -> None:
    """A line of dialogue; the concierge's words begin with a capital letter."""
    style = "bold cyan" if who == "concierge" else "bold"
    console.print(Text.assemble((f"{who}: ", style), text[:1].upper() + text[1:]))


# ---------------------------------------------------------------- the conversation in the terminal

HELP = "/memories  /why ID  /forget SOURCE  /quit"


def chat(console: Console, graph: Any, memory: Memory, user: str) -> None:
    """Talk to the concierge; after each turn it says what it remembered."""
    thread = new_thread(memory, user)
    console.print(f"You are {user!r}, this thread is {thread!r}.\n{HELP}", markup=False)
    for typed in typed_lines(console):
        if typed in ("/quit", "/exit"):
            break
        if typed.startswith("/"):
            obey(console, memory, user, typed)
            continue
        before = snapshot(memory, user)
        line(console, "concierge", ask(graph, typed, user_id=user, thread_id=thread))
        show_changes(console, before, snapshot(memory, user))
    console.print("Goodbye.")


def new_thread(memory: Memory, user: str) -> str:
    """A thread id that no memory of the user came from; it is also the source that /forget takes."""
    used = {source.source_id for record in snapshot(memory, user).values() for source in record.sources}
    return next(name for n in count(1) if (name := f"chat-{n}") not in used)


def typed_lines(console: Console) -> Iterator[str]:
    """What is typed, or piped in, until it ends."""
    while True:
        try:
            typed = input("you: ").strip()
        except (EOFError, KeyboardInterrupt):
            console.print()
            return
        if not sys.stdin.isatty():
            console.print(typed, markup=False)  # piped input leaves no trace on the screen
        if typed:
            yield typed


def snapshot(memory: Memory, user: str) -> dict[str, MemoryRecord]:
    """Every record by id."""
    return {r.memory_id: r for r in memory.get_all(user_id=user, status="all")}


def show_changes(console: Console, before: dict[str, MemoryRecord], after: dict[str, MemoryRecord]) -> None:
    """What a turn changed in memory."""
    changes = [(word, r) for i, r in after.items() if (word := change_of(before.get(i), r))]
    for word, r in changes:
        console.print(Text(f"   ({word}: {r.content} {r.confidence:.2f})", style="green"))
    if not changes:
        console.print("   (nothing new to remember)", style="dim")


def change_of(old: MemoryRecord | None, new: MemoryRecord) -> str | None:
    """In a word, what became of a memory; None if nothing did."""
    if old is None:
        return "remembered" if new.status == "active" else new.status
    if old.status != new.status:
        return "believed again" if new.status == "active" else f"now {new.status}"
    return "confirmed" if old.confirmed_at != new.confirmed_at else None


def obey(console: Console, memory: Memory, user: str, typed: str) -> None:
    """A command of the conversation."""
    command, _, argument = typed.partition(" ")
    argument = argument.strip()
    if command == "/memories":
        records = memory.get_all(user_id=user, status="all")
        console.print(records_table(records) if records else "I remember nothing about you yet.")
    elif command == "/why" and argument:
        explain(console, memory, user, argument)
    elif command == "/forget" and argument:
        show_receipt(console, memory, user, argument)
    else:
        console.print(HELP, markup=False)


def explain(console: Console, memory: Memory, user: str, start: str) -> None:
    """Why the memory whose id begins like this is believed."""
    found = [r for r in memory.get_all(user_id=user, status="all") if r.memory_id.startswith(start)]
    if len(found) != 1:
        console.print(f"{len(found)} memories have an id that begins with {start!r}; see /memories", markup=False)
        return
    console.print(Text(str(memory.why(found[0].memory_id, user_id=user))))


# ---------------------------------------------------------------- the command line


class Unusable(Exception):
    """The model that was asked for cannot be used; the message is one line."""


def load_model(name: str | None) -> BaseChatModel:
    """The scripted concierge, or any model LangChain knows, tried once so that a missing key shows here."""
    if name is None:
        return Concierge()
    try:
        from langchain.chat_models import init_chat_model

        model: BaseChatModel = init_chat_model(name)
        model.invoke("Say hello.")
    except Exception as error:  # each provider has its own errors, and all mean the same here
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        hint = "It needs the provider's package (as in: pip install langchain-openai), an API key, and the network."
        raise Unusable(f"cannot use --model {name!r} ({reason}). {hint}") from error
    return model


@contextmanager
def open_memory(db: Path | None) -> Iterator[Memory]:
    """A memory in this file, or in a temporary one that is removed at the end."""
    with tempfile.TemporaryDirectory() as folder, Memory(db or Path(folder) / "memory.db") as memory:
        yield memory


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="A travel concierge that remembers, corrects itself, and says why.")
    parser.add_argument("--model", metavar="STRING", help='a LangChain model, e.g. "openai:gpt-4o-mini"')
    parser.add_argument("--db", type=Path, metavar="FILE", help="keep the memories here (default: a temporary file)")
    parser.add_argument("--chat", action="store_true", help="talk to the concierge in the terminal")
    parser.add_argument("--user", default="guest", metavar="ID", help="who is chatting (default: guest)")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the example; 0, or 2 with one line on stderr if the model or the file cannot be used."""
    for stream in (sys.stdout, sys.stdin):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character shows "?"
    options = parse(argv)
    console = Console(highlight=False)
    try:
        model = load_model(options.model)
        with open_memory(options.db) as memory:
            graph = build_graph(model, memory)
            if options.chat:
                chat(console, graph, memory, options.user)
            else:
                tell_story(console, graph, memory)
    except (Unusable, MemoryAdapterError, OSError) as error:
        print(f"travel_concierge: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
