"""Whether the code that is running was called by a tool: an agent in there is talked to by a machine, not by a user.

LangGraph leaves no mark of it in an inner run's config, so a callback handler counts tool calls in a context
variable, which every task and thread that LangChain starts inherits. It is registered by the first memory node or
middleware of a process, not by an import.
"""

from contextvars import ContextVar
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers.context import register_configure_hook

_depth: ContextVar[int] = ContextVar("langmem_adapter_tool_depth", default=0)


class _Counter(BaseCallbackHandler):
    run_inline = True  # in the caller's context, so that what it sets is seen by the tool
    ignore_llm = ignore_chain = ignore_retriever = ignore_chat_model = ignore_retry = ignore_custom_event = True

    def on_tool_start(self, *args: Any, **kwargs: Any) -> None:
        _depth.set(_depth.get() + 1)

    def on_tool_end(self, *args: Any, **kwargs: Any) -> None:
        _depth.set(max(0, _depth.get() - 1))

    def on_tool_error(self, *args: Any, **kwargs: Any) -> None:
        _depth.set(max(0, _depth.get() - 1))


_handler: ContextVar[BaseCallbackHandler | None] = ContextVar("langmem_adapter_tool_counter", default=_Counter())  # noqa: B039 - stateless
_watching = False


def watch() -> None:
    """Start counting tool calls in this process; harmless twice."""
    global _watching
    if not _watching:
        register_configure_hook(_handler, inheritable=True)
        _watching = True


def inside_tool() -> bool:
    """Whether a tool call is running around this code."""
    return _depth.get() > 0
