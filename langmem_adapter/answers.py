"""Asking a chat model for a structured answer, and reading what comes back.

One call, through `with_structured_output`; the answer is repaired where its meaning is plain (prose around the JSON, an
invalid escape), else asked for again with the complaint, a bounded number of times. An answer is used whole or not at
all.
"""

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.constants import TAG_NOSTREAM
from pydantic import BaseModel, ValidationError

from langmem_adapter.errors import InvalidInput, ModelFailed
from langmem_adapter.ports import IO, Ask
from langmem_adapter.records import Usage

S = TypeVar("S", bound=BaseModel)

TRIES = 3
"""How often a model is asked before its answer counts as failed; waits and complaints both use one up."""
WAIT_SECONDS = 1.0
"""The first wait after a rate limit or time-out; it doubles each time."""


@dataclass(frozen=True)
class Asker(Generic[S]):
    """A model that answers in one schema. `name` is the run's name in traces."""

    model: BaseChatModel
    schema: type[S]
    name: str
    calls: Ask[Sequence[BaseMessage], Any] = field(init=False)

    def __post_init__(self) -> None:
        try:
            structured = self.model.with_structured_output(self.schema, include_raw=True)
        except NotImplementedError as error:
            raise InvalidInput(f"{type(self.model).__name__} has no structured output; use a model that has") from error
        # Its tokens are not the user's answer; its run is a named child in whatever traces the turn.
        config: RunnableConfig = {"tags": [TAG_NOSTREAM], "run_name": self.name}
        ask: Ask[Sequence[BaseMessage], Any] = Ask(
            lambda messages: structured.invoke(list(messages), config),
            lambda messages: structured.ainvoke(list(messages), config),
        )
        object.__setattr__(self, "calls", ask)

    async def ask(self, io: IO, messages: Sequence[BaseMessage]) -> tuple[S, Usage]:
        """The answer, and what it cost. ModelFailed, with the cost so far, when no try gave a usable one."""
        asked = list(messages)
        usage = Usage()
        problem = ""
        for attempt in range(TRIES):
            try:
                answer = await io.ask(self.calls, asked)
            except Exception as error:  # providers share no base class; what passes is tried again
                problem = f"{type(error).__name__}: {error}"
                if not passes(error):
                    raise ModelFailed(problem, usage=usage) from error
                if attempt < TRIES - 1:
                    await io.sleep(WAIT_SECONDS * 2**attempt * random.uniform(0.5, 1.0))
                continue
            raw = answer["raw"]
            usage = usage.plus(raw)
            found = answer["parsed"] if isinstance(answer["parsed"], self.schema) else read(raw, self.schema)
            if isinstance(found, self.schema):
                return found, usage
            problem = str(found)
            asked = [*messages, AIMessage(raw.text or "(no text)"), HumanMessage(f"{_AGAIN} {problem}")]
        raise ModelFailed(problem, usage=usage)


def chat_model(model: BaseChatModel | str) -> BaseChatModel:
    """The model, or the one a LangChain string names (needs the `langchain` extra and its provider's package)."""
    if not isinstance(model, str):
        return model
    try:
        from langchain.chat_models import init_chat_model
    except ImportError as error:
        raise ImportError(
            f"model={model!r} needs LangChain: pip install 'langgraph-memory-adapter[langchain]'"
        ) from error
    return init_chat_model(model)


_AGAIN = "That answer could not be used. Answer again, in the given schema only. What was wrong:"


def passes(error: BaseException) -> bool:
    """Whether it is worth waiting for: rate limits, time-outs, connections, a server that is busy."""
    if isinstance(error, (TimeoutError, ConnectionError)):
        return True
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return status == 429 or status >= 500
    return any(word in type(error).__name__ for word in ("RateLimit", "Timeout", "Overloaded", "Connection"))


def read(raw: AIMessage, schema: type[S]) -> S | str:
    """The answer in a message that the parser could not read, or what is wrong with it."""
    problem = "the answer is empty"
    for given in _payloads(raw):
        try:
            value = given if isinstance(given, dict) else loads(given)
            return schema.model_validate(value)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            problem = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        except ValueError as error:
            problem = f"not JSON: {error}"
    return problem


def _payloads(raw: AIMessage) -> list[dict[str, Any] | str]:
    calls: list[dict[str, Any] | str] = [c["args"] for c in raw.tool_calls]
    calls += [c["args"] for c in raw.invalid_tool_calls if c["args"]]
    return calls + ([raw.text] if raw.text.strip() else [])


_BAD_ESCAPE = re.compile(r"\\(?:u(?![0-9a-fA-F]{4})|(?![\"\\/bfnrtu]))")


def loads(text: str) -> Any:
    """The JSON object in a text, whatever stands around it; invalid escapes are taken literally. ValueError if none."""
    start = text.find("{")
    if start < 0:
        raise ValueError("there is no object in it")
    fixed = _BAD_ESCAPE.sub(lambda m: "\\" + m[0], text[start:])
    value, _ = json.JSONDecoder(strict=False).raw_decode(fixed)
    return value
