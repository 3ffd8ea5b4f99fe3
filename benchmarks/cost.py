"""What a turn costs in model calls and tokens: ours, langmem's store manager and mem0, on one scripted conversation.

    python benchmarks/cost.py [--json result.json]

One counting model stands in for the provider. It answers each library in the form that library asks for, and finds the
same facts for all. Tokens are counted the same way for all: a quarter of the characters of the messages and of the tool
schemas sent with them, and of the answer. mem0 is measured where it can be imported (`pip install mem0ai`).
"""

import argparse
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.store.memory import InMemoryStore
from pydantic import Field

from langmem_adapter import Memory
from langmem_adapter.embeddings import HashEmbeddings

USER = "ada"


class Step(NamedTuple):
    """A turn, and what a good model finds in it."""

    kind: str
    said: str
    answered: str
    topic: str = ""
    slot: str = ""
    value: str = ""
    fact: str = ""
    changes: str = ""
    """Words of the known fact that this one replaces."""


TALK = (
    Step("teaches nothing", "Hi there! How are you today?", "Fine, and you?"),
    Step("teaches, nothing near", "I live in Bonn.", "A fine city.", "home/location", "", "Bonn",
         "The user lives in Bonn."),
    Step("teaches nothing", "What's the weather like there?", "Sunny."),
    Step("teaches, nothing near", "I'm a vegetarian.", "Noted.", "diet", "", "vegetarian",
         "The user is a vegetarian."),
    Step("teaches nothing", "Thanks, that helps.", "You are welcome."),
    Step("teaches, nothing near", "I'm allergic to peanuts.", "Good to know.", "diet/allergy", "peanuts", "allergic",
         "The user is allergic to peanuts."),
    Step("changes what is known", "I moved to Oslo.", "Congratulations.", "home/location", "", "Oslo",
         "The user moved to Oslo.", "Bonn"),
    Step("teaches nothing", "Can you suggest a book?", "Try Middlemarch."),
    Step("says it again", "As I said, I'm a vegetarian.", "I remember.", "diet", "", "vegetarian",
         "The user is a vegetarian.", "vegetarian"),
    Step("teaches nothing", "Good night!", "Sleep well."),
)  # fmt: skip


class Call(NamedTuple):
    """One call of the model, in tokens."""

    given: int
    answered: int


class CountingModel(BaseChatModel):
    """Answers as `reply(messages, tools)` says, and counts."""

    reply: Callable[[Sequence[BaseMessage], list[dict[str, Any]]], AIMessage]
    calls: list[Call] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "counting"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        """The model with the schemas of these tools in its prompt."""
        return self.bind(schemas=[convert_to_openai_tool(t) for t in tools])

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        schemas: list[dict[str, Any]] | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        answer = self.reply(messages, schemas or [])
        given = sum(_size(m) for m in messages) + (len(json.dumps(schemas)) if schemas else 0)
        self.calls.append(Call(given // 4, _size(answer) // 4))
        return ChatResult(generations=[ChatGeneration(message=answer)])


def _size(message: BaseMessage) -> int:
    calls = getattr(message, "tool_calls", None)
    return len(message.text) + (len(json.dumps([c["args"] for c in calls])) if calls else 0)


class Library(NamedTuple):
    """A library at work: its name, one turn of it, its model, and what it knows at the end."""

    name: str
    turn: Callable[[Step], object]
    model: CountingModel
    known: Callable[[], list[str]]


# -------------------------------------------------------------------- ours


def ours(folder: Path) -> Library:
    """A model extracts and judges."""
    step: list[Step] = []

    def reply(messages: Sequence[BaseMessage], schemas: list[dict[str, Any]]) -> AIMessage:
        name = schemas[0]["function"]["name"]
        now = step[-1]
        if name == "Facts":
            found = {"content": now.fact, "topic": now.topic, "slot": now.slot, "value": now.value, "line": "l1"}
            return _call(name, {"facts": [found | {"excerpt": now.said}] if now.fact else []})
        cases = [json.loads(line) for line in messages[1].text.splitlines()]
        verdicts = []
        for case in cases:
            near = [k["id"] for k in case["known"] if now.changes and now.changes in k["text"]]
            verdict = "new" if not near else "duplicate" if now.kind == "says it again" else "contradict"
            judged = {"fact": case["fact"], "reason": "It says so.", "verdict": verdict}
            verdicts.append(judged | {"known": near[0] if near else None})
        return _call(name, {"verdicts": verdicts})

    model = CountingModel(reply=reply)
    memory = Memory(folder / "ours.db", model=model)
    number = iter(range(100))

    def turn(now: Step) -> None:
        step.append(now)
        messages = [HumanMessage(now.said, id=f"h{next(number)}"), AIMessage(now.answered)]
        memory.remember(messages, user_id=USER, session_id="s")

    return Library("ours", turn, model, lambda: [r.content for r in memory.get_all(user_id=USER)])


# -------------------------------------------------------------------- langmem


def langmem(folder: Path) -> Library:
    """`create_memory_store_manager` with its defaults: no query model, one step."""
    from langmem import create_memory_store_manager

    step: list[Step] = []

    def reply(messages: Sequence[BaseMessage], schemas: list[dict[str, Any]]) -> AIMessage:
        now = step[-1]
        names = [s["function"]["name"] for s in schemas]
        if not now.fact or now.kind == "says it again":
            return AIMessage("Nothing to note.")
        if now.changes and "PatchDoc" in names:
            prompt = "\n".join(m.text for m in messages)
            shown = re.findall(r"<instance id=(\S+) [^\n]*\n([^\n]*)\n", prompt)
            known = next(i for i, text in shown if now.changes in text)
            patch = {"op": "replace", "path": "/content", "value": now.fact}
            return _call(
                "PatchDoc", {"json_doc_id": known, "planned_edits": "Replace the content.", "patches": [patch]}
            )
        return _call("Memory", {"content": now.fact})

    embed = HashEmbeddings()
    store = InMemoryStore(index={"dims": embed.dims, "embed": embed, "fields": ["content.content"]})
    space = ("memories", USER)
    model = CountingModel(reply=reply)
    manager = create_memory_store_manager(model, namespace=space, store=store)

    def turn(now: Step) -> None:
        step.append(now)
        manager.invoke({"messages": [HumanMessage(now.said), AIMessage(now.answered)]})

    return Library("langmem", turn, model, lambda: [i.value["content"]["content"] for i in store.search(space)])


# -------------------------------------------------------------------- mem0


def mem0(folder: Path) -> Library:
    """`mem0.Memory.add` with a local Qdrant."""
    os.environ["MEM0_TELEMETRY"] = "False"
    os.environ["MEM0_DIR"] = str(folder / "mem0")
    from mem0 import Memory as Mem0

    step: list[Step] = []

    def reply(messages: Sequence[BaseMessage], schemas: list[dict[str, Any]]) -> AIMessage:
        now = step[-1]
        again = now.kind == "says it again"
        found = [{"id": "0", "text": now.fact, "attributed_to": "user"}] if now.fact and not again else []
        return AIMessage(json.dumps({"memory": found}))

    model = CountingModel(reply=reply)
    embed = HashEmbeddings()
    memory = Mem0.from_config(
        {
            "llm": {"provider": "langchain", "config": {"model": model}},
            "embedder": {"provider": "langchain", "config": {"model": embed, "embedding_dims": embed.dims}},
            "vector_store": {
                "provider": "qdrant",
                "config": {"path": str(folder / "qdrant"), "embedding_model_dims": embed.dims},
            },
            "history_db_path": str(folder / "history.db"),
        }
    )

    def turn(now: Step) -> None:
        step.append(now)
        said = [{"role": "user", "content": now.said}, {"role": "assistant", "content": now.answered}]
        memory.add(said, user_id=USER)

    return Library(
        "mem0", turn, model, lambda: [m["memory"] for m in memory.get_all(filters={"user_id": USER})["results"]]
    )


def _call(name: str, args: dict[str, Any]) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": "c1"}])


# -------------------------------------------------------------------- all of it


class Cost(NamedTuple):
    """The average turn of one kind."""

    library: str
    kind: str
    turns: int
    calls: float
    given: float
    answered: float


def measured(library: Library) -> Iterator[Cost]:
    """The averages by kind of turn, and of all turns."""
    spent: list[tuple[str, list[Call]]] = []
    for step in TALK:
        before = len(library.model.calls)
        library.turn(step)
        spent.append((step.kind, library.model.calls[before:]))
    for kind in (*dict.fromkeys(s.kind for s in TALK), "all"):
        calls = [c for k, c in spent if kind in (k, "all")]
        yield Cost(
            library.name,
            kind,
            len(calls),
            sum(map(len, calls)) / len(calls),
            sum(c.given for turn in calls for c in turn) / len(calls),
            sum(c.answered for turn in calls for c in turn) / len(calls),
        )


def main() -> None:
    """Run, print, and write JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    given = parser.parse_args()
    rows: list[Cost] = []
    print("| library | turn | turns | calls | tokens in | tokens out |\n| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(prefix="bench-cost-", ignore_cleanup_errors=True) as folder:
        for make, package in ((ours, "langgraph-memory-adapter"), (langmem, "langmem"), (mem0, "mem0ai")):
            try:
                library = make(Path(folder))
            except ImportError as error:
                print(f"| {make.__name__} | not measured: pip install {package} ({error}) | | | | |")
                continue
            for cost in measured(library):
                rows.append(cost)
                name = f"{cost.library} {version(package)}"
                figures = f"{cost.calls:.1f} | {cost.given:.0f} | {cost.answered:.0f}"
                print(f"| {name} | {cost.kind} | {cost.turns} | {figures} |")
            print(f"<!-- {library.name} knows: {'; '.join(sorted(library.known()))} -->")
    if given.json:
        given.json.write_text(json.dumps([c._asdict() for c in rows], indent=1))


if __name__ == "__main__":
    main()
