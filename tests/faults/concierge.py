"""A graph with a memory, that notes what each model call was given and what was reported."""

from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, StateGraph
from support import config

from langmem_adapter.langgraph import MemoryState, prompt_with_memories, recall_node, remember_node
from langmem_adapter.memory import Memory

SYSTEM = "Concierge."


class Concierge:
    """`say` gives the system message of the answer; the turn has failed if there was no answer."""

    def __init__(self, store: Any, **options: Any) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.memory = Memory(store, on_event=lambda name, data: self.events.append((name, data)), **options)
        self.systems: list[str] = []
        builder = StateGraph(MemoryState)
        builder.add_node("recall", recall_node(self.memory))
        builder.add_node("model", self._answer)
        builder.add_node("remember", remember_node(self.memory))
        for a, b in ((START, "recall"), ("recall", "model"), ("model", "remember"), ("remember", END)):
            builder.add_edge(a, b)
        self.builder = builder
        self.app: Any = builder.compile()

    def _answer(self, state: Any) -> dict[str, Any]:
        self.systems.append(prompt_with_memories(state, system=SYSTEM)[0].text)
        return {"messages": [AIMessage("Noted.")]}

    def say(self, text: str, *, id: str | None = None, user: str = "u", thread: str = "t") -> str:
        done = self.app.invoke({"messages": [HumanMessage(text, id=id)]}, config(user, thread))
        assert done["messages"][-1].text == "Noted."
        return self.systems[-1]

    async def asay(self, text: str, *, id: str | None = None, user: str = "u", thread: str = "t") -> str:
        done = await self.app.ainvoke({"messages": [HumanMessage(text, id=id)]}, config(user, thread))
        assert done["messages"][-1].text == "Noted."
        return self.systems[-1]

    def told(self) -> list[str]:
        """The names of what was reported since the last call, but for upkeep, which has its own times."""
        names = [name for name, _ in self.events if name != "maintained"]
        self.events.clear()
        return names

    def __enter__(self) -> "Concierge":
        return self

    def __exit__(self, *error: object) -> None:
        self.memory.close()


def taught(path: Path) -> None:
    """A file in which something is known of the user."""
    with Memory(path) as memory:
        memory.add(HumanMessage("I'm a vegetarian.", id="h0"), user_id="u", session_id="s0")


KNOWN = "The user follows a vegetarian diet."
