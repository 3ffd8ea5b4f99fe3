"""A chat model that does as it is told, for tests without a provider."""

import asyncio
import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from pydantic import Field, PrivateAttr

Reply = str | dict[str, Any] | BaseMessage | BaseException | Callable[[Sequence[BaseMessage]], Any]


class ScriptedChatModel(BaseChatModel):
    """Answers from a list, the last reply for ever; with structured output, dicts become the answer.

    A reply is a `str` (plain text, also where structure was asked for), a `dict` (the arguments of the structured
    answer), an `AIMessage`, an exception (raised), or a function of the prompt that returns one of those. `delay` in
    seconds passes before each answer. `prompts` keeps what it was given.
    """

    replies: list[Any] = Field(default_factory=lambda: ["Understood."])
    delay: float = 0.0
    prompts: list[list[BaseMessage]] = Field(default_factory=list)
    _count: Any = PrivateAttr(default_factory=itertools.count)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        """The model, answering dicts as calls of the first of these tools."""
        first = tools[0] if tools else None
        name = getattr(first, "name", None) or getattr(first, "__name__", None) or "answer"
        return self.bind(answer_as=name)

    def with_structured_output(self, schema: Any, **kwargs: Any) -> Runnable[Any, Any]:
        """As every chat model; said again with annotations that `with_fallbacks` can look up."""
        return super().with_structured_output(schema, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        answer_as: str | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        time.sleep(self.delay)
        return self._answer(messages, answer_as)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        answer_as: str | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        await asyncio.sleep(self.delay)
        return self._answer(messages, answer_as)

    def _answer(self, messages: list[BaseMessage], answer_as: str | None) -> ChatResult:
        reply: Any = self.replies[min(next(self._count), len(self.replies) - 1)]
        self.prompts.append(list(messages))
        if callable(reply) and not isinstance(reply, (BaseMessage, BaseException)):
            reply = reply(messages)
        if isinstance(reply, BaseException):
            raise reply
        return ChatResult(generations=[ChatGeneration(message=_message(reply, answer_as, messages))])


def _message(reply: Any, answer_as: str | None, messages: Sequence[BaseMessage]) -> AIMessage:
    words = sum(len(m.text.split()) for m in messages)
    usage = {"input_tokens": words, "output_tokens": 10, "total_tokens": words + 10}
    if isinstance(reply, AIMessage):
        return reply.model_copy(deep=True)
    if isinstance(reply, dict):
        call = {"name": answer_as or "answer", "args": reply, "id": "call_1"}
        return AIMessage("", tool_calls=[call], usage_metadata=usage)
    return AIMessage(str(reply), usage_metadata=usage)
