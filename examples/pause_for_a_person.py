"""An agent that asks a person before it acts, and goes on in another process once the person has answered.

    python examples/pause_for_a_person.py                       both halves, each in a process of its own
    python examples/pause_for_a_person.py ask --db trip.db      plan a trip and stop before booking
    python examples/pause_for_a_person.py answer yes --db trip.db       hours later, anywhere: book it, or do not

Memory and checkpoints share one file. What the memory knows about the user is in the prompt when the plan is made and
never in a checkpoint. Offline: the planner is a function that reads its prompt.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from langmem_adapter import Memory
from langmem_adapter.checkpoint.sqlite import SqliteCheckpointer, state_types
from langmem_adapter.langgraph import MemoryState, prompt_with_memories, recall_node, remember_node

CONFIG: Any = {"configurable": {"user_id": "ada", "thread_id": "trip-7"}}
REQUEST = "Please book me a flight to Lisbon on Friday."


@dataclass
class Booking:
    """What would be booked: a type of our own in the state, so the checkpointer has to be told about it."""

    to: str
    seat: str
    done: bool = False


class TripState(MemoryState):
    """A conversation, what was recalled, and the booking that waits for a person."""

    booking: Booking


def plan(prompt: Sequence[BaseMessage]) -> Booking:
    """A planner that knows only its prompt, as a chat model would."""
    return Booking(to="Lisbon", seat="aisle" if "aisle" in prompt[0].text else "any")


def build(memory: Memory) -> StateGraph[Any, Any, Any, Any]:
    """recall → propose → ask a person → act → remember."""

    def propose(state: TripState) -> dict[str, Any]:
        return {"booking": plan(prompt_with_memories(state, system="You book trips."))}

    def confirm(state: TripState) -> dict[str, Any]:
        booking = state["booking"]
        agreed = interrupt(f"Book a flight to {booking.to}, {booking.seat} seat?") == "yes"
        said = f"Booked: {booking.to}, {booking.seat} seat." if agreed else "Nothing was booked."
        return {"booking": Booking(booking.to, booking.seat, done=agreed), "messages": [AIMessage(said)]}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(TripState)
    graph.add_node("recall", recall_node(memory))
    graph.add_node("propose", propose)
    graph.add_node("confirm", confirm)
    graph.add_node("remember", remember_node(memory))
    for start, end in ((START, "recall"), ("recall", "propose"), ("propose", "confirm"), ("confirm", "remember")):
        graph.add_edge(start, end)
    graph.add_edge("remember", END)
    return graph


def ask(db: Path) -> str:
    """Run until a person is needed; returns the question."""
    with Memory(db) as memory:
        memory.add("I prefer the aisle seat.", user_id="ada", session_id="trip-1")
        graph = build(memory)
        with SqliteCheckpointer(db, allow=state_types(graph)) as checkpointer:
            paused = graph.compile(checkpointer=checkpointer).invoke({"messages": [HumanMessage(REQUEST)]}, CONFIG)
    return str(paused["__interrupt__"][0].value)


def answer(db: Path, reply: str) -> str:
    """Go on from the question with a person's reply; returns what the agent says."""
    with Memory(db) as memory:
        graph = build(memory)
        with SqliteCheckpointer(db, allow=state_types(graph)) as checkpointer:
            compiled = graph.compile(checkpointer=checkpointer)
            if not compiled.get_state(CONFIG).next:
                return "Nobody is waiting for an answer."
            return str(compiled.invoke(Command(resume=reply), CONFIG)["messages"][-1].text)


def both(db: Path) -> int:
    """`ask` and `answer`, each in a process of its own."""
    for arguments in (["ask"], ["answer", "yes"], ["answer", "yes"]):
        print(f"$ pause_for_a_person.py {' '.join(arguments)}", flush=True)
        done = subprocess.run([sys.executable, __file__, *arguments, "--db", str(db)], check=False)
        if done.returncode:
            return done.returncode
    return 0


def main(arguments: list[str]) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", nargs="?", choices=["ask", "answer"])
    parser.add_argument("reply", nargs="?", default="yes")
    parser.add_argument("--db", type=Path)
    options = parser.parse_args(arguments)
    if options.step is None:
        with tempfile.TemporaryDirectory() as folder:
            return both(options.db or Path(folder) / "trip.db")
    if options.db is None:
        parser.error("--db: which file?")
    print(ask(options.db) if options.step == "ask" else answer(options.db, options.reply))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
