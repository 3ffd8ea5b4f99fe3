"""Asking a chat model for a structured answer, and reading what comes back.

One call, through `with_structured_output`; the answer is repaired where its meaning is plain (prose around the JSON, an
invalid escape), else asked for again with the complaint, a bounded number of times. An answer is used whole or not at
all.
"""

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import Runnable, RunnableConfig, ensure_config
from langchain_core.runnables.config import merge_configs
from langgraph.constants import TAG_NOSTREAM
from pydantic import BaseModel, ValidationError

from langmem_adapter.errors import InvalidInput, ModelFailed
from langmem_adapter.ports import IO, Ask
from langmem_adapter.records import Usage

S = TypeVar("S", bound=BaseModel)
A = TypeVar("A")

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
    calls: Ask[Sequence[BaseMessage], "Answer"] = field(init=False)

    def __post_init__(self) -> None:
        try:
            # Not with `include_raw`: that runs the model in a thread which a process waits for when it ends.
            structured = self.model.with_structured_output(self.schema)
        except NotImplementedError as error:
            raise InvalidInput(f"{type(self.model).__name__} has no structured output; use a model that has") from error
        object.__setattr__(self, "calls", calls(structured, self.name))

    async def ask(self, io: IO, messages: Sequence[BaseMessage]) -> tuple[S, Usage]:
        """The answer, and what it cost. ModelFailed, with the cost so far, when no try gave a usable one."""
        return await insist(io, self.calls, messages, self._found)

    def _found(self, answer: "Answer") -> "S | str":
        if isinstance(answer.parsed, self.schema):
            return answer.parsed
        return "the answer is empty" if answer.raw is None else read(answer.raw, self.schema)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model said (None if it could not be seen), and what became of it: the parsed answer, or an error."""

    raw: AIMessage | None
    parsed: Any = None
    error: Exception | None = None


class _Heard(BaseCallbackHandler):
    """Keeps the message of one model call, also where what comes after it cannot read it."""

    run_inline = True
    message: AIMessage | None = None

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        made = response.generations[0][0] if response.generations and response.generations[0] else None
        if isinstance(made, ChatGeneration) and isinstance(made.message, AIMessage):
            self.message = made.message


def calls(model: Runnable[Any, Any], name: str) -> Ask[Sequence[BaseMessage], Answer]:
    """One call of a model, structured or not. Errors of the model rise; those of reading its answer are in the answer.

    Its tokens are not in the user's stream; its run is a named child in whatever traces the turn.
    """

    def config(heard: _Heard) -> RunnableConfig:
        # Merged: callbacks that are given replace those of the run around it.
        mine: RunnableConfig = {"tags": [TAG_NOSTREAM], "run_name": name, "callbacks": [heard]}
        return merge_configs(ensure_config(), mine)

    def answer(heard: _Heard, parsed: Any, error: Exception | None = None) -> Answer:
        raw = heard.message or (parsed if isinstance(parsed, AIMessage) else None)
        return Answer(raw, parsed, error)

    def sync(messages: Sequence[BaseMessage]) -> Answer:
        heard = _Heard()
        try:
            return answer(heard, model.invoke(list(messages), config(heard)))
        except Exception as error:
            if heard.message is None:
                raise
            return answer(heard, None, error)

    async def native(messages: Sequence[BaseMessage]) -> Answer:
        heard = _Heard()
        try:
            return answer(heard, await model.ainvoke(list(messages), config(heard)))
        except Exception as error:
            if heard.message is None:
                raise
            return answer(heard, None, error)

    return Ask(sync, native)


async def insist(
    io: IO,
    ask: Ask[Sequence[BaseMessage], Answer],
    messages: Sequence[BaseMessage],
    found: Callable[[Answer], A | str],
) -> tuple[A, Usage]:
    """What `found` makes of an answer, asked for again with its complaint (a str) where it makes nothing; and the cost.

    ModelFailed, with the cost so far, when no try gave a usable one.
    """
    asked = list(messages)
    usage = Usage()
    problem = why = ""
    for attempt in range(TRIES):
        try:
            answer = await io.ask(ask, asked)
        except Exception as error:  # providers share no base class; what passes is tried again
            problem, why = f"{type(error).__name__}: {error}", type(error).__name__
            if unreadable(error):
                asked = _again(messages, "", problem)
            elif not passes(error):
                raise ModelFailed(problem, usage=usage, why=why) from error
            elif attempt < TRIES - 1:
                await io.sleep(WAIT_SECONDS * 2**attempt * random.uniform(0.5, 1.0))
            continue
        usage = usage.plus(answer.raw)
        made = found(answer)
        if not isinstance(made, str):
            return made, usage
        problem = why = made
        asked = _again(messages, answer.raw.text if answer.raw else "", problem)
    raise ModelFailed(problem, usage=usage, why=why)


def _again(messages: Sequence[BaseMessage], said: str, problem: str) -> list[BaseMessage]:
    return [*messages, AIMessage(said or "(no text)"), HumanMessage(f"{_AGAIN} {problem[:500]}")]


def chat_model(model: BaseChatModel | str) -> BaseChatModel:
    """The model, or the one a LangChain string names (needs the `langchain` extra and its provider's package)."""
    if not isinstance(model, str):
        if not hasattr(model, "with_structured_output"):
            raise InvalidInput(f"model must be a LangChain chat model or a 'provider:model' string, got {model!r:.80}")
        return model
    try:
        from langchain.chat_models import init_chat_model
    except ImportError as error:
        raise ImportError(
            f"model={model!r} needs LangChain: pip install 'langgraph-memory-adapter[langchain]'"
        ) from error
    return init_chat_model(model)


_AGAIN = "That answer could not be used. Answer again, in the given schema only. What was wrong:"


_PASSING = (
    "RateLimit Timeout TimedOut DeadlineExceeded Overloaded Connection Throttl TooManyRequests ResourceExhausted "
    "ServiceUnavailable Unavailable InternalServerError"
).split()


def passes(error: BaseException) -> bool:
    """Whether it is worth waiting for: rate limits, time-outs, connections, a server that is busy."""
    if isinstance(error, (TimeoutError, ConnectionError)):
        return True
    response = getattr(error, "response", None)
    told = [getattr(error, name, None) for name in ("status_code", "http_status", "code", "status")]
    told.append(getattr(response, "status_code", None))
    if isinstance(response, Mapping) and isinstance(response.get("Error"), Mapping):  # botocore's ClientError
        told.append(response["Error"].get("Code"))
    for code in told:
        if isinstance(code, int):
            return code in (408, 429) or code >= 500
    names = [type(error).__name__, *(code for code in told if isinstance(code, str))]
    return any(word in name for word in _PASSING for name in names)


def unreadable(error: BaseException) -> bool:
    """Whether an integration could not read what its model said, so that it is worth telling the model."""
    return isinstance(error, (ValidationError, OutputParserException, json.JSONDecodeError))


def read(raw: AIMessage, schema: type[S]) -> S | str:
    """The answer in a message that the parser could not read, or what is wrong with it."""
    problem = "the answer is empty"
    for value in _values(raw):
        if isinstance(value, str):
            problem = value
            continue
        try:
            return schema.model_validate(_unwrapped(value, schema))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            problem = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return problem


def _values(raw: AIMessage) -> Iterator[Any]:
    """What may be the answer, in order; a str says why something is none."""
    for call in (*raw.tool_calls, *raw.invalid_tool_calls):
        if call["args"]:
            yield from [call["args"]] if isinstance(call["args"], dict) else _objects(call["args"])
        elif isinstance(call["args"], dict):
            yield call["args"]
    if raw.text.strip():
        yield from _objects(raw.text)


def _objects(text: str) -> Iterator[Any]:
    try:
        yield from objects(text)
    except ValueError as error:
        yield f"not JSON: {error}"


def _unwrapped(value: Any, schema: type[BaseModel]) -> Any:
    """The answer without what some models put around it: its schema's name, or nothing at all."""
    wanted = list(schema.model_fields)
    if isinstance(value, list) and len(wanted) == 1:
        return {wanted[0]: value}
    if isinstance(value, dict) and len(value) == 1 and not value.keys() & set(wanted):
        inner = next(iter(value.values()))
        return inner if isinstance(inner, dict) else value
    return value


_BAD_ESCAPE = re.compile(r"\\(?:u(?![0-9a-fA-F]{4})|(?![\"\\/bfnrtu]))")


def objects(text: str) -> Iterator[Any]:
    """The JSON objects and lists in a text, whatever stands around them; invalid escapes are taken literally.

    ValueError after the last one if there was none.
    """
    fixed = _BAD_ESCAPE.sub(lambda m: "\\" + m[0], text)
    decoder = json.JSONDecoder(strict=False)
    problem: ValueError | None = ValueError("there is no object in it")
    at = 0
    while (opening := _OPENING.search(fixed, at)) is not None:
        try:
            value, at = decoder.raw_decode(fixed, opening.start())
        except (ValueError, RecursionError) as error:
            at = opening.end()
            if isinstance(problem, ValueError):
                problem = ValueError(getattr(error, "msg", type(error).__name__))
            continue
        problem = None
        yield value
    if problem is not None:
        raise problem


_OPENING = re.compile(r"[{\[]")
