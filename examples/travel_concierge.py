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
from itertools import count
from pathlib import Path
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel, SimpleChatModel
from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from langmem_adapter import Memory
from langmem_adapter.errors import MemoryAdapterError
from langmem_adapter.langgraph import MemoryState, prompt_with_memories, recall_node, remember_node
from langmem_adapter.records import MemoryRecord

console = Console(highlight=False)
SYSTEM = "You are a travel concierge. Be brief, and use what you know about the user."


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


def ask(graph: Any, text: str, *, user_id: str, thread_id: str, **configurable: Any) -> None:
    """One turn through the graph. The answer is shown as soon as it is there; then the turn is learnt from."""
    config = {"configurable": {"user_id": user_id, "thread_id": thread_id, **configurable}}
    for step in graph.stream({"messages": [HumanMessage(text)]}, config, stream_mode="updates"):
        if "model" in step:
            line("concierge", step["model"]["messages"][-1].text)


def open_memory(file: Path) -> Memory:
    """The memory in this file; it tells on the screen what it learnt from a turn, and what went wrong."""
    confidence: dict[str, float] = {}  # as it was last shown

    def on_event(event: str, data: dict[str, Any]) -> None:
        if event not in ("learnt", "erased"):
            console.print(Text(f"   {event}: {data}", style="red"))
        for o in data.get("operations", ()):
            record = memory.get(o.memory_id, user_id=data["user_id"]) if o.memory_id else None
            change = ""
            if record is not None:
                old, new = confidence.get(record.memory_id, record.confidence), record.confidence
                change = f"{new:.2f}" if old == new else f"{old:.2f} → {new:.2f}"
                confidence[record.memory_id] = new
            console.print(Text(f"   {o.action:<7} {change:<12} {o.content}", style="green"))

    memory = Memory(file, on_event=on_event)
    return memory


# ---------------------------------------------------------------- the scripted model


class Concierge(SimpleChatModel):
    """A scripted chat model: it answers from its system message and the last thing the user said."""

    @property
    def _llm_type(self) -> str:
        return "scripted-concierge"

    def _call(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> str:
        known = re.findall(r"^- \[confidence: [^\]]*\] (.*)$", messages[0].text, re.MULTILINE)
        return _greeting(known) + _answer(messages[-1].text.lower(), known)


def _greeting(known: list[str]) -> str:
    name = re.search(r"The user goes by (.+?)\.(?: |$)", "\n".join(known), re.MULTILINE)
    return f"{name[1]}, " if name else ""


def _answer(question: str, known: list[str]) -> str:
    if re.search(r"\b(lunch|dinner|eat|order|restaurant|menu)\b", question):
        return _dish([text for text in known if re.search(r"fish|vegetarian|vegan", text)])
    if re.search(r"\b(flight|fly|book)\b|\bseat\b.*\?", question):
        return _seat("\n".join(known))
    return "noted. Shall I suggest a dish, or book a flight?"


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

LUNCH = "What should we order for lunch?"
FLIGHT = "Please book me a seat on the flight."
STORY = (  # the thread, what her words amount to, and what she says
    ("s1", "user_implicit", ("Hi! I'm a vegetarian. Please call me Ada, and I prefer the aisle seat.", LUNCH)),
    ("s2", "user_implicit", ("As I said, I'm vegetarian.", LUNCH)),
    ("s3", "user_explicit", ("I've started eating fish again.", LUNCH, FLIGHT)),
)
QUERIES = (
    "any dietary restrictions I should know about?",
    "what seat should I book on the flight?",
    "what should we order for lunch?",
)


def tell_story(graph: Any, memory: Memory) -> None:
    """Three sessions, and then everything that can be seen of what was learnt."""
    user = new_guest(memory)
    show_sessions(graph, user)
    show_state(memory, user)
    show_retrieval(memory, user)
    show_isolation(graph, memory)
    show_block(graph, user)
    show_why(memory, user)
    show_forgetting(graph, memory, user)
    console.print("\nNow you: run it again with --chat.")


def new_guest(memory: Memory) -> str:
    """A user id that this file has not met: the story is only true the first time it is told to a user."""
    names = ("ada" if n == 1 else f"ada-{n}" for n in count(1))
    user = next(name for name in names if not memory.get_all(user_id=name, status="all"))
    if user != "ada":
        console.print(f"This file knows Ada from an earlier run; today she checks in as {user!r}.\n", markup=False)
    return user


def show_sessions(graph: Any, user: str) -> None:
    """Each line is one run of the graph; no session sees the messages of another."""
    heading("1  Three sessions")
    for session, source_type, lines in STORY:
        console.print(f"\nSession {session} [dim]({source_type})[/dim]")
        for text in lines:
            line("Ada", text)
            ask(graph, text, user_id=user, thread_id=session, source_type=source_type)


def show_state(memory: Memory, user: str) -> None:
    """Every record, and the history of those that no longer hold."""
    heading("2  What is stored")
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


def show_retrieval(memory: Memory, user: str) -> None:
    """The scores of every active record for three queries."""
    heading("3  Retrieval")
    console.print("score = 0.6 relevance + 0.25 recency + 0.15 importance; here by vectors alone", style="dim")
    for query in QUERIES:
        console.print(Text(f"? {query}"))
        for hit in memory.search(query, user_id=user, mode="vector"):
            console.print(Text(f"   {hit.score:.3f}  {hit.record.content}", style="green"))


def show_isolation(graph: Any, memory: Memory) -> None:
    """Another user asks the same, and finds nothing."""
    heading("4  Another user")
    other = "stranger"
    console.print(f"What a search finds for {other!r}: {memory.search(LUNCH, user_id=other)}", markup=False)
    line(other, LUNCH)
    ask(graph, LUNCH, user_id=other, thread_id="other")


class Overheard(BaseCallbackHandler):
    """Keeps the system message that the model was given, whichever model it is."""

    system = ""

    def on_chat_model_start(self, serialized: dict[str, Any], messages: list[list[BaseMessage]], **kwargs: Any) -> None:
        """Called by LangChain with the model's real input; the memories are a content block of their own."""
        self.system = "\n\n".join(block["text"] for block in messages[0][0].content_blocks if block["type"] == "text")


def show_block(graph: Any, user: str) -> None:
    """The system message as the model received it."""
    heading("5  The system message, overheard at the model's door")
    overheard = Overheard()
    config = {"configurable": {"user_id": user, "thread_id": "overheard"}, "callbacks": [overheard]}
    graph.invoke({"messages": [HumanMessage(LUNCH)]}, config)
    console.print(Panel(Text(overheard.system)))


def show_why(memory: Memory, user: str) -> None:
    """Why it believes what it believes about her diet."""
    heading("6  Why?")
    for record in memory.get_all(user_id=user, topic="diet"):
        console.print(Text(str(memory.why(record.memory_id, user_id=user))))


def show_forgetting(graph: Any, memory: Memory, user: str) -> None:
    """The first session is withdrawn: what rested on it alone is gone."""
    heading('7  "Forget our first conversation"')
    show_receipt(memory, user, "s1")
    console.print("What is left:")
    console.print(records_table(memory.get_all(user_id=user, status="all")))
    for text in (FLIGHT, LUNCH):
        line("Ada", text)
        ask(graph, text, user_id=user, thread_id="s4")
    heading('8  "Forget what I said about fish, too"')
    show_receipt(memory, user, "s3")
    console.print("What the fish had replaced is believed again:")
    console.print(records_table(memory.get_all(user_id=user, status="all")))


def show_receipt(memory: Memory, user: str, source: str) -> None:
    """Forget a source, and say what was reached."""
    receipt = memory.forget_source(source, user_id=user)
    console.print(Text(f"{len(receipt.erased)} erased, {len(receipt.rebuilt)} decided again from other sources"))
    for place in receipt.places:
        console.print(Text(f"   {place.state:<13} {place.count:>2}  {place.name}  {place.note}".rstrip(), style="dim"))


def heading(title: str) -> None:
    """A section title."""
    console.print()
    console.rule(Text(title, style="bold"), align="left")


def line(who: str, text: str) -> None:
    """A line of dialogue; the concierge's words begin with a capital letter."""
    style = "bold cyan" if who == "concierge" else "bold"
    console.print(Text.assemble((f"{who}: ", style), text[:1].upper() + text[1:]))


# ---------------------------------------------------------------- the conversation in the terminal

HELP = "/memories  /why ID  /forget SOURCE  /quit"


def chat(graph: Any, memory: Memory, user: str) -> None:
    """Talk to the concierge; what it learns from a line stands below its answer."""
    records = memory.get_all(user_id=user, status="all")
    used = {source.source_id for record in records for source in record.sources}
    thread = next(name for n in count(1) if (name := f"chat-{n}") not in used)  # also what /forget takes
    console.print(f"You are {user!r}, this thread is {thread!r}.\n{HELP}", markup=False)
    for typed in typed_lines():
        if typed in ("/quit", "/exit"):
            break
        if typed.startswith("/"):
            obey(memory, user, typed)
        else:
            ask(graph, typed, user_id=user, thread_id=thread)
    console.print("Goodbye.")


def typed_lines() -> Iterator[str]:
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


def obey(memory: Memory, user: str, typed: str) -> None:
    """A command of the conversation."""
    command, _, argument = typed.partition(" ")
    argument = argument.strip()
    if command == "/memories":
        records = memory.get_all(user_id=user, status="all")
        console.print(records_table(records) if records else "I remember nothing about you yet.")
    elif command == "/why" and argument:
        explain(memory, user, argument)
    elif command == "/forget" and argument:
        show_receipt(memory, user, argument)
    else:
        console.print(HELP, markup=False)


def explain(memory: Memory, user: str, start: str) -> None:
    """Why the memory whose id begins like this is believed."""
    found = [r for r in memory.get_all(user_id=user, status="all") if r.memory_id.startswith(start)]
    if len(found) != 1:
        console.print(f"{len(found)} memories have an id that begins with {start!r}; see /memories", markup=False)
        return
    console.print(Text(str(memory.why(found[0].memory_id, user_id=user))))


# ---------------------------------------------------------------- the command line


def load_model(name: str | None) -> BaseChatModel:
    """The scripted concierge, or any model LangChain knows."""
    if name is None:
        return Concierge()
    from langchain.chat_models import init_chat_model

    model: BaseChatModel = init_chat_model(name)
    return model


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
    try:
        model = load_model(options.model)
        with tempfile.TemporaryDirectory() as folder, open_memory(options.db or Path(folder, "memory.db")) as memory:
            graph = build_graph(model, memory)
            if options.chat:
                chat(graph, memory, options.user)
            else:
                tell_story(graph, memory)
    except (MemoryAdapterError, OSError) as error:
        return complain(str(error))
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if options.model is None:
            raise
        # Each provider has its own errors, at the start and in the middle of a run; they all mean the same here.
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        hint = "It needs the provider's package (as in: pip install langchain-openai), an API key, and the network."
        return complain(f"cannot use --model {options.model!r} ({reason}). {hint}")
    return 0


def complain(problem: str) -> int:
    """One line on stderr, and the exit code that goes with it."""
    print(f"travel_concierge: {problem}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
