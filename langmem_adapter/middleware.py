"""`MemoryMiddleware`: memory for an agent made by `langchain.agents.create_agent`.

    agent = create_agent(model, tools, middleware=[MemoryMiddleware(Memory("memory.db"))])

Needs the `langchain` extra. The block is added to each model request and to nothing that is saved.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, NotRequired, cast

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.config import get_config
from langgraph.runtime import Runtime

try:
    from langchain.agents.middleware.types import (
        AgentMiddleware,
        AgentState,
        ModelRequest,
        ModelResponse,
    )
except ImportError as error:
    raise ImportError("MemoryMiddleware needs LangChain: pip install 'langgraph-memory-adapter[langchain]'") from error

from langmem_adapter import injection
from langmem_adapter.langgraph import (
    Ids,
    block_step,
    ids_of,
    own_memory,
    recall_step,
    remember_step,
    silence_step,
    summary_step,
    was_silent,
)
from langmem_adapter.memory import Memory
from langmem_adapter.ports import IO, run
from langmem_adapter.records import Block
from langmem_adapter.toolcalls import watch


class MemoryAgentState(AgentState[Any]):
    """The agent's state and what was recalled for the last human message: ids and bands, never text."""

    memories: NotRequired[dict[str, Any]]


class MemoryMiddleware(AgentMiddleware[MemoryAgentState, Any, Any]):
    """Recalls before the agent runs, injects into each model request, learns when the agent is done.

    `memory=None` uses the agent's own store: `create_agent(…, store=store, middleware=[MemoryMiddleware()])`. The
    user's id comes from `config={"configurable": {"user_id": "…"}}` or from the runtime context. With `session_summary`
    the model is given the session's summary (`Memory.end_session`) in place of the messages it covers; a session that
    was silent for `idle` is summarised when its user speaks again (in the background, by a model: for the turn after).
    """

    state_schema = MemoryAgentState

    def __init__(
        self,
        memory: Memory | None = None,
        *,
        session_summary: bool = False,
        idle: timedelta = timedelta(minutes=30),
    ) -> None:
        super().__init__()
        watch()
        self.memory = memory
        self.session_summary = session_summary
        self.idle = idle

    def before_agent(self, state: MemoryAgentState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        memory = self._memory(runtime)
        return run(self._begun(memory, memory.io, state, _ids(runtime)))

    async def abefore_agent(self, state: MemoryAgentState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        memory = self._memory(runtime)
        return await self._begun(memory, memory.aio, state, _ids(runtime))

    async def _begun(self, memory: Memory, io: IO, state: MemoryAgentState, ids: Ids) -> dict[str, Any] | None:
        silent = self.session_summary and await was_silent(memory, io, state, ids, self.idle)
        recalled = await recall_step(memory, io, state, ids)  # the message is queued before a model is asked
        if silent:
            await silence_step(memory, io, state, ids)
        return recalled

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | AIMessage:
        memory = self._memory(request.runtime)
        return handler(run(self._prepared(memory, memory.io, request)))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any] | AIMessage:
        memory = self._memory(request.runtime)
        return await handler(await self._prepared(memory, memory.aio, request))

    async def _prepared(self, memory: Memory, io: IO, request: ModelRequest[Any]) -> ModelRequest[Any]:
        ids = _ids(request.runtime)
        block = await block_step(memory, io, request.state, ids)
        request = _with(request, block, memory.inject_as)
        if not self.session_summary:
            return request
        messages, block = await summary_step(memory, io, request.messages, ids)
        left = cast(list[AnyMessage], messages)
        return _with(request.override(messages=left), block, "system") if block.text else request

    def after_agent(self, state: MemoryAgentState, runtime: Runtime[Any]) -> None:
        memory = self._memory(runtime)
        run(remember_step(memory, memory.io, state, _ids(runtime)))

    async def aafter_agent(self, state: MemoryAgentState, runtime: Runtime[Any]) -> None:
        memory = self._memory(runtime)
        await remember_step(memory, memory.aio, state, _ids(runtime))

    def _memory(self, runtime: Runtime[Any]) -> Memory:
        return self.memory or own_memory(runtime.store)


def _ids(runtime: Runtime[Any]) -> Ids:
    return ids_of(get_config(), runtime.context)


def _with(request: ModelRequest[Any], block: Block, place: injection.Place) -> ModelRequest[Any]:
    if not block.text:
        return request
    if place == "user":
        return request.override(messages=injection.into_messages(request.messages, block, place))
    return request.override(system_message=injection.into_message(request.system_message, block))
