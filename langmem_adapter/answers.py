"""Asking a chat model for a structured answer, and reading what comes back.

One call, through `with_structured_output`; the answer is repaired where its meaning is plain (prose around the JSON, an
invalid escape), else asked for again with the complaint, a bounded number of times. Every answer is a list: its items
are read one by one, and it is unusable only if all of them are.

Models repeat themselves without end, so reading is linear in the answer's length, and a long one is not read on an
event loop.
"""

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Self, TypeVar

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import Runnable, RunnableConfig, ensure_config
from langchain_core.runnables.config import merge_configs
from langgraph.constants import TAG_NOSTREAM
from pydantic import BaseModel, ModelWrapValidatorHandler, PrivateAttr, ValidationError, model_validator

from langmem_adapter.errors import InvalidInput, ModelFailed
from langmem_adapter.ports import AT_ONCE, IO, Ask, worked
from langmem_adapter.records import Usage

A = TypeVar("A")

TRIES = 3
"""How often a model is asked before its answer counts as failed; waits and complaints both use one up."""
SHOWN_AGAIN = 4_000
"""Characters of an unusable answer that its model is shown."""
WAIT_SECONDS = 1.0
"""The first wait after a rate limit or time-out; it doubles each time."""
MAX_ANSWER = 200_000
"""Characters of an answer's text; a longer one is not read."""
MAX_ITEMS = 200
"""Items of an answer's list that are read."""
STARTS = 50
"""How many openings of JSON in an answer's text may lead nowhere before the rest is not read, and how many of its
objects are tried."""


class Listed(BaseModel):
    """An answer that is one list. An item that cannot be read costs no other; ValidationError if none can be."""

    _unreadable: int = PrivateAttr(0)
    _beyond: int = PrivateAttr(0)

    @property
    def unreadable(self) -> int:
        """How many items were left out because they do not fit the schema."""
        return self._unreadable

    @property
    def beyond(self) -> int:
        """How many items were not read because there were too many."""
        return self._beyond

    @model_validator(mode="wrap")
    @classmethod
    def _one_by_one(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        [wanted] = cls.model_fields
        given = data.get(wanted) if isinstance(data, dict) else None
        if not isinstance(given, list):
            return handler(data)
        items = given[:MAX_ITEMS]
        try:
            made = handler({wanted: items})
        except ValidationError as error:
            bad = {e["loc"][1] for e in error.errors(include_url=False, include_input=False)}
            good = [item for n, item in enumerate(items) if n not in bad]
            if not good:
                raise
            made = handler({wanted: good})
            made._unreadable = len(items) - len(good)
        made._beyond = len(given) - len(items)
        return made


S = TypeVar("S", bound=Listed)


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
        parsed = answer.parsed if isinstance(answer.parsed, self.schema) else None
        if answer.raw is None:
            return parsed or "the answer is empty"
        if parsed is not None and len(answer.raw.tool_calls) == 1:
            return parsed
        # An integration may take the first of several calls, or a draft in a text.
        found = read(answer.raw, self.schema)
        return parsed if parsed is not None and isinstance(found, str) else found


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
        made = await worked(io, partial(found, answer), _size(answer.raw))
        if not isinstance(made, str):
            return made, usage
        problem = why = made
        asked = _again(messages, answer.raw.text[:SHOWN_AGAIN] if answer.raw else "", problem)
    raise ModelFailed(problem, usage=usage, why=why)


def _again(messages: Sequence[BaseMessage], said: str, problem: str) -> list[BaseMessage]:
    return [*messages, AIMessage(said or "(no text)"), HumanMessage(f"{_AGAIN} {problem[:500]}")]


def chat_model(model: BaseChatModel | str) -> BaseChatModel:
    """The model, or the one a LangChain string names (needs the `langchain` extra and its provider's package)."""
    if not isinstance(model, str):
        try:
            able = not isinstance(model, type) and callable(getattr(model, "with_structured_output", None))
        except NameError:  # `with_fallbacks` looks up the annotations of a method, and LangChain's own need an import
            able = False
        if not able:
            raise InvalidInput(f"model must be a LangChain chat model or a 'provider:model' string, got {model!r:.80}")
        return model
    if not model.strip():
        raise InvalidInput(f"model is empty ({model!r:.80}); name one, e.g. 'openai:gpt-4o-mini', or leave it out")
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
    """The answer in a message, or what is wrong with it."""
    problem = ""
    for value in _values(raw, schema):
        if not isinstance(value, str):
            try:
                return schema.model_validate(value)
            except ValidationError as error:
                first = error.errors(include_url=False, include_input=False)[0]
                value = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        problem = problem or value
    return problem or "the answer is empty"


def _values(raw: AIMessage, schema: type[Listed]) -> Iterator[Any]:
    """What may be the answer, the likeliest first; a str says why something is none.

    Several calls are one answer. Of a text the last object counts: what stands before it are drafts.
    """
    [wanted] = schema.model_fields
    called = [value for call in (*raw.tool_calls, *raw.invalid_tool_calls) for value in _called(call["args"], wanted)]
    lists = [v[wanted] for v in called if isinstance(v, dict) and isinstance(v.get(wanted), list)]
    if len(lists) > 1:
        yield {wanted: [item for items in lists for item in items]}
    yield from called
    if (text := spoken(raw.text)).strip():
        yield from _objects(text, wanted)


def _called(args: Any, wanted: str) -> list[Any]:
    if isinstance(args, dict):
        return [_unwrapped(args, wanted)]
    return _objects(args, wanted)[:1] if args else []


def _objects(text: str, wanted: str) -> list[Any]:
    """The objects in a text, the last first, and lists only after them: prose has brackets too."""
    if len(text) > MAX_ANSWER:
        return [f"the answer has {len(text)} characters; {MAX_ANSWER} are read"]
    try:
        found = list(objects(text))
    except ValueError as error:
        return [f"not JSON: {error}"]
    likely = sorted(found[-STARTS:], key=lambda value: isinstance(value, dict))  # stable: the last stays last
    return [_unwrapped(value, wanted) for value in reversed(likely)]


def _unwrapped(value: Any, wanted: str) -> Any:
    """The answer without what some models put around it: its schema's name, or nothing at all."""
    if isinstance(value, list):
        return {wanted: value}
    if isinstance(value, dict) and len(value) == 1 and wanted not in value:
        inner = next(iter(value.values()))
        return inner if isinstance(inner, dict) else value
    return value


def _size(raw: AIMessage | None) -> int:
    """Characters of an answer, counted until they are too many to be read at once."""
    if raw is None:
        return 0
    size, left = 0, [raw.content, *(call["args"] for call in (*raw.tool_calls, *raw.invalid_tool_calls))]
    while left and size <= AT_ONCE:
        value = left.pop()
        size += len(value) if isinstance(value, str | list | dict) else 1
        if size <= AT_ONCE and isinstance(value, list | dict):
            left.extend(value.values() if isinstance(value, dict) else value)
    return size


_TAG = r"think(?:ing)?|thought|reasoning"
_THOUGHT = re.compile(rf"\s*<({_TAG})>.*?(?:</\1>|\Z)", re.IGNORECASE | re.DOTALL)
_REST_OF_THOUGHT = re.compile(rf"\s*[^\s{{\[`].*?</(?:{_TAG})>", re.IGNORECASE | re.DOTALL)


def spoken(text: str) -> str:
    """What a model said, without what it thought before: blocks in <think> at the beginning, closed or not.

    Some servers leave out the opening tag.
    """
    at = 0
    while (thought := _THOUGHT.match(text, at)) is not None:
        at = thought.end()
    if (rest := _REST_OF_THOUGHT.match(text, at)) is not None:
        at = rest.end()
    return text[at:]


_BAD_ESCAPE = re.compile(r"\\(?:u(?![0-9a-fA-F]{4})|(?![\"\\/bfnrtu]))")


def objects(text: str) -> Iterator[Any]:
    """The JSON objects and lists in a text, whatever stands around them; invalid escapes are taken literally.

    What follows after `STARTS` openings that led nowhere, or after one that leads too deep, is not read: each may have
    to be followed to the end of the text. ValueError after the last one if there was none.
    """
    fixed = _BAD_ESCAPE.sub(lambda m: "\\" + m[0], text)
    decoder = json.JSONDecoder(strict=False)
    problem: ValueError | None = ValueError("there is no object in it")
    at = failed = 0
    while failed < STARTS and (opening := _OPENING.search(fixed, at)) is not None:
        try:
            value, at = decoder.raw_decode(fixed, opening.start())
        except RecursionError:
            problem = problem and ValueError("it is nested too deeply")
            break
        except ValueError as error:
            at = opening.end()
            failed += 1
            problem = problem and ValueError(getattr(error, "msg", str(error)))
            continue
        problem = None
        yield value
    if problem is not None:
        raise problem


_OPENING = re.compile(r"[{\[]")
