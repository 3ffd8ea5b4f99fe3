"""What several tests need: facts as an extractor would propose them, and a clock that is moved by hand."""

import os
from datetime import UTC, datetime, timedelta
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from pydantic import Field

from langmem_adapter.records import Candidate, Extraction, MemoryRecord, Source, Turn

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

SOAK = bool(os.environ.get("SOAK"))
"""Whether the long forms run (`make soak`)."""


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self, now: datetime = START) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **delta: float) -> None:
        self.now += timedelta(**delta)


class Scripted:
    """An extractor that proposes what it was told for a text: `Scripted({"I'm vegan": [fact(…)]})`."""

    def __init__(self, script: dict[str, list[Candidate]]) -> None:
        self.script = script
        self.asked: list[str] = []

    def extract(self, turn: Turn) -> Extraction:
        found = []
        for message in turn.messages:
            self.asked.append(message.text)
            found += [
                c.model_copy(update={"message_id": message.id, "excerpt": c.excerpt or message.text})
                for c in self.script.get(message.text, [])
            ]
        return Extraction(candidates=tuple(found))


def fact(content: str, topic: str = "general", value: str = "", **fields: Any) -> Candidate:
    """A candidate."""
    return Candidate(content=content, topic=topic, value=value or content, **fields)


def source(source_type: str = "user_explicit", source_id: str = "s1", **fields: Any) -> Source:
    """A source that asserts 1.0."""
    defaults: dict[str, Any] = {"at": START, "confidence": 1.0}
    return Source(source_type=source_type, source_id=source_id, **(defaults | fields))  # type: ignore[arg-type]


def record(*sources: Source, **fields: Any) -> MemoryRecord:
    """An active record on the user's diet."""
    defaults: dict[str, Any] = {
        "memory_id": "m_1",
        "seq": 1,
        "content": "The user follows a vegetarian diet.",
        "topic": "diet",
        "value": "vegetarian",
        "user_id": "u1",
        "confidence": 0.9,
        "sources": sources or (source(),),
        "created_at": START,
        "updated_at": START,
        "confirmed_at": START,
    }
    return MemoryRecord(**(defaults | fields))


class Model(BaseChatModel):
    """A chat model that answers from a list (the last reply for ever) and keeps every prompt it was given."""

    replies: list[Any] = Field(default_factory=lambda: ["Understood."])
    prompts: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        reply = self.replies[min(len(self.prompts), len(self.replies) - 1)]
        self.prompts.append(list(messages))
        message = AIMessage(reply) if isinstance(reply, str) else reply.model_copy(deep=True)
        return ChatResult(generations=[ChatGeneration(message=message)])

    @property
    def system(self) -> str:
        """The text of the system message of the last prompt, "" if there was none."""
        first = self.prompts[-1][0]
        return first.text if isinstance(first, SystemMessage) else ""


def config(user_id: str = "u", thread_id: str = "t1", **more: Any) -> RunnableConfig:
    """A run's config."""
    return {"configurable": {"user_id": user_id, "thread_id": thread_id, **more}}
