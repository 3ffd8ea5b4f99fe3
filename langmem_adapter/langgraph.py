"""Memory in a LangGraph graph: recall before the model, remember after it, the block only in the prompt.

    graph.add_node("recall", recall_node(memory))
    graph.add_node("model", call_model)        # calls model.invoke(prompt_with_memories(state, system="You are …"))
    graph.add_node("remember", remember_node(memory))

State holds ids and confidence bands, never a memory's text; the text is read when the prompt is made. A node that
cannot recall or remember reports it and lets the turn go on; only a missing user id stops it.
"""

import functools
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NotRequired, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable, RunnableConfig, ensure_config
from langgraph.config import get_config
from langgraph.graph import END, MessagesState, StateGraph
from langgraph.runtime import Runtime, get_runtime
from langgraph.store.base import BaseStore

from langmem_adapter import injection
from langmem_adapter.errors import Conflict, InvalidInput, MemoryAdapterError, MissingUser, StoreError, StoreFull
from langmem_adapter.extraction.origin import coerce, length
from langmem_adapter.extraction.turns import last_said
from langmem_adapter.memory import Memory
from langmem_adapter.namespaces import Reader, escape
from langmem_adapter.ports import IO, run, worked
from langmem_adapter.records import Block, Recollection
from langmem_adapter.sessions import covered
from langmem_adapter.toolcalls import inside_tool, watch

T = TypeVar("T")

NO_BLOCK = Block(text="", tokens=0)


class MemoryState(MessagesState):
    """`MessagesState` and what was recalled for the last human message: ids and bands, never text."""

    memories: NotRequired[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Ids:
    """Who is speaking, in which thread."""

    user_id: str
    session_id: str | None
    app_name: str
    agent_id: str | None
    learn: bool
    source_type: Any = None

    @property
    def reader(self) -> dict[str, Any]:
        """The ids as `Memory` takes them."""
        return {
            "user_id": self.user_id,
            "session_id": self.session_id,
            "app_name": self.app_name,
            "agent_id": self.agent_id,
        }


def ids_of(config: RunnableConfig, context: Any = None) -> Ids:
    """The ids in `config["configurable"]` and in the runtime context.

    MissingUser if neither has a `user_id`; InvalidInput if they disagree. `configurable={"remember": False}` keeps a
    turn from being learnt; `{"source_type": "user_implicit"}` says what the user's words amount to.
    """
    configurable = config.get("configurable") or {}
    user_id = _agreed("user_id", configurable.get("user_id"), _field(context, "user_id"))
    if user_id is None:
        raise MissingUser(
            'no user_id: pass config={"configurable": {"user_id": "…", "thread_id": "…"}} (or a runtime context with '
            "user_id); memories belong to a user, and there is no shared default one"
        )
    escape(user_id, what="user_id")  # complains of a blank one
    thread_id = configurable.get("thread_id")
    ids = Ids(
        user_id=user_id,
        session_id=None if thread_id in (None, "") else str(thread_id),
        app_name=_agreed("app_name", configurable.get("app_name"), _field(context, "app_name")) or "default",
        agent_id=_agreed("agent_id", configurable.get("agent_id"), _field(context, "agent_id")) or None,
        learn=configurable.get("remember", True) is not False and not inside_tool(),
        source_type=configurable.get("source_type"),
    )
    return ids


def recall_node(memory: Memory | None = None) -> Runnable[Any, dict[str, Any]]:
    """A node that recalls for the last human message, once, and queues that message to be learnt.

    Writes `{"memories": …}`. Without an argument it uses the graph's own store.
    """
    return _Node("recall", memory, recall_step)


def remember_node(memory: Memory | None = None, *, backfill: bool = False) -> Runnable[Any, dict[str, Any]]:
    """A node that learns from the last human message; put it after the model. Writes nothing to state.

    `backfill`: learn from all human messages of a thread that is older than its memory.
    """

    async def step(mine: Memory, io: IO, state: Any, ids: Ids) -> dict[str, Any]:
        await remember_step(mine, io, state, ids, backfill=backfill)
        return {}

    return _Node("remember", memory, step)


def prompt_with_memories(state: Any, *, system: str | None = None, memory: Memory | None = None) -> list[BaseMessage]:
    """The model's messages: `system`, the block of what was recalled, and the conversation. Call it inside a node.

    The block is merged into the first system message, or (`Memory(inject_as="user")`) into the last human one. Without
    memories and `system` the messages are as they were. `memory` is needed only where no recalling node of this process
    knows it.
    """
    ids = _ids(get_config())
    mine = memory or _recaller(state, ids)
    block = NO_BLOCK if mine is None else run(block_step(mine, mine.io, state, ids))
    return injection.into_messages(_prompt(state, system), block, _place(mine))


async def aprompt_with_memories(
    state: Any, *, system: str | None = None, memory: Memory | None = None
) -> list[BaseMessage]:
    """`prompt_with_memories` for async nodes."""
    ids = _ids(get_config())
    mine = memory or _recaller(state, ids)
    block = NO_BLOCK if mine is None else await block_step(mine, mine.aio, state, ids)
    return injection.into_messages(_prompt(state, system), block, _place(mine))


def with_memories(
    model: Runnable[LanguageModelInput, AIMessage], memory: Memory | None = None
) -> Runnable[LanguageModelInput, AIMessage]:
    """The model, with the user's memories merged into the first system message of whatever it is given.

    Recalled once per (thread, human message); it learns nothing, which is `remember_node`'s work. Bind tools before:
    `with_memories(model.bind_tools(tools), memory)`.
    """

    async def step(mine: Memory, io: IO, given: LanguageModelInput, ids: Ids) -> list[BaseMessage]:
        messages = _input(given)
        block = await block_step(mine, io, {"messages": messages}, ids)
        return injection.into_messages(messages, block, mine.inject_as)

    return _Node("with_memories", memory, step) | model


def add_memory(
    graph: StateGraph[Any, Any, Any, Any],
    memory: Memory | None = None,
    *,
    model_node: str,
    backfill: bool = False,
) -> StateGraph[Any, Any, Any, Any]:
    """Wire `recall` before and `remember` after an existing model node; call it when all edges are there, then compile.

    Every way into the model node leads through `recall` (which does its work once per human message), and every way
    from there to the end through `remember`. The node itself is untouched: it uses `prompt_with_memories(state)`, or
    a model wrapped by `with_memories`. Conditional edges need a path map (or a `Literal` return type).
    """
    if model_node not in graph.nodes:
        raise InvalidInput(f"the graph has no node {model_node!r}; it has {sorted(graph.nodes)}")
    if taken := {"recall", "remember"} & graph.nodes.keys():
        raise InvalidInput(f"the graph has a node {sorted(taken)[0]!r} already; wire the memory nodes by hand")
    ways_out = {start for start, end in graph.edges if end == END} | {
        start for start, specs in graph.branches.items() for spec in specs.values() if END in (spec.ends or {}).values()
    }
    if not ways_out:
        raise InvalidInput("no edge leads to END yet; call add_memory when all edges are there")
    leaving = {model_node} & ways_out or ways_out
    graph.add_node("recall", recall_node(memory), input_schema=MemoryState)
    graph.add_node("remember", remember_node(memory, backfill=backfill), input_schema=MemoryState)
    for start, end in list(graph.edges):
        to = "recall" if end == model_node else "remember" if end == END and start in leaving else end
        graph.edges.discard((start, end))
        graph.edges.add((start, to))
    for start, specs in graph.branches.items():
        for name, spec in specs.items():
            specs[name] = spec._replace(ends=_rewired(start, name, spec.ends, model_node, start in leaving))
    graph.add_edge("recall", model_node)
    graph.add_edge("remember", END)
    return graph


def _rewired(
    start: str, name: str, ends: dict[Any, str] | None, model_node: str, leaving: bool
) -> dict[Any, str] | None:
    if ends is None:
        raise InvalidInput(f"the conditional edge {name!r} of {start!r} has no path map; add one, so it can be rewired")
    to = {model_node: "recall"} | ({END: "remember"} if leaving else {})
    return {key: to.get(end, end) for key, end in ends.items()}


# -------------------------------------------------------------------- steps, shared with the middleware


async def recall_step(memory: Memory, io: IO, state: Any, ids: Ids) -> dict[str, Any]:
    """The state update of a recall; the same again if this human message has been recalled for."""
    messages = _messages(state)
    _kept(state)  # complains of a state that uses the channel for something else
    try:
        found = _recalled(memory, ids, state, messages)
        if found is None:
            found = await memory._in_time(
                io, lambda io: memory._recall(io, messages, **ids.reader, source_type=ids.source_type, hear=ids.learn)
            )
    except Exception as error:  # noqa: BLE001 - a memory that cannot be recalled must not fail the user's turn
        memory.report("recall_failed", error=type(error).__name__, thread_id=ids.session_id)
        late = isinstance(error, TimeoutError)
        if late and ids.learn:  # its place is behind what was said before, and before what is said next
            await _queued(memory, io, messages, ids)
        found = _nothing(memory, ids, messages, late=late)
    if found is None:
        return {}
    _keep(memory, ids, messages, found)
    return {"memories": found.model_dump(mode="json")}


async def block_step(memory: Memory, io: IO, state: Any, ids: Ids) -> Block:
    """The block of what was recalled for the last human message; recalled now if no node has done so."""
    messages = _messages(state)
    try:
        found = _recalled(memory, ids, state, messages)
        if found is None:
            found = await memory._in_time(io, lambda io: memory._recall(io, messages, **ids.reader, hear=False))
            if found is None:
                return NO_BLOCK
            _keep(memory, ids, messages, found)
        if not found.refs:
            return NO_BLOCK
        recalled = found
        return await memory._in_time(
            io,
            lambda io: memory._recall_block(
                io, recalled, session_id=ids.session_id, app_name=ids.app_name, agent_id=ids.agent_id
            ),
        )
    except Exception as error:  # noqa: BLE001 - a memory that cannot be recalled must not fail the user's turn
        memory.report("recall_failed", error=type(error).__name__, thread_id=ids.session_id)
        return NO_BLOCK


def _nothing(memory: Memory, ids: Ids, messages: Sequence[BaseMessage], *, late: bool) -> Recollection | None:
    # Nothing was recalled, and nobody shall try again in this turn.
    last = messages[-1].id if messages and isinstance(messages[-1], HumanMessage) else None
    if last is None:
        return None
    return Recollection(message_id=last, user_id=ids.user_id, key=_key(memory) or "", late=late)


async def remember_step(memory: Memory, io: IO, state: Any, ids: Ids, *, backfill: bool = False) -> None:
    """Learn from the last human message, unless the turn is not to be learnt; queue it if the store cannot be used."""
    if not ids.learn:
        return
    messages = _messages(state)
    kept = heard = False
    try:
        found = _recalled(memory, ids, state, messages)
        heard = found is not None and found.heard
        # What was said before must not be learnt after it.
        behind = memory._outstanding(ids.user_id if found is None else found.user_id, ids.app_name)
        kept = behind or (found is not None and found.late)
        if not kept:
            await memory._learn_in_time(
                io,
                lambda io: memory._remember(
                    io, messages, **ids.reader, source_type=ids.source_type, backfill=backfill, heard=heard
                ),
            )
    except Exception as error:  # noqa: BLE001 - the user has the answer; the turn is queued, or will be
        memory.report("remember_failed", error=type(error).__name__, thread_id=ids.session_id)
        # What the memory itself refuses it refuses again; what its store could not do, it can perhaps do later.
        kept = not isinstance(error, MemoryAdapterError) or type(error) in (StoreError, StoreFull, Conflict)
    if kept:
        if await _queued(memory, io, messages, ids, backfill=backfill, heard=heard):
            memory.report("remember_queued", thread_id=ids.session_id)
        else:
            memory.report("turns_lost", count=1, thread_id=ids.session_id)


async def _queued(memory: Memory, io: IO, messages: Sequence[BaseMessage], ids: Ids, **how: bool) -> bool:
    """Queue the turn for when the store can take it; whether that could be done."""
    try:
        await memory._keep(io, messages, Reader(**ids.reader), ids.source_type, **how)
    except Exception:  # noqa: BLE001 - what failed before, a clock or the redaction, fails here too: the turn goes on
        return False
    return True


async def summary_step(
    memory: Memory, io: IO, messages: Sequence[BaseMessage], ids: Ids
) -> tuple[list[BaseMessage], Block]:
    """The messages that the session's summary does not cover, and the block that stands in for the others."""
    if ids.session_id is None:
        return list(messages), NO_BLOCK
    try:
        summary = await memory._get_summary(io, user_id=ids.user_id, session_id=ids.session_id, app_name=ids.app_name)
        if summary is None:
            return list(messages), NO_BLOCK
        at = await worked(io, functools.partial(covered, summary, messages), sum(length(m) for m in messages))
    except Exception as error:  # noqa: BLE001 - a memory that cannot be recalled must not fail the user's turn
        memory.report("recall_failed", error=type(error).__name__, thread_id=ids.session_id)
        return list(messages), NO_BLOCK
    while 0 < at < len(messages) and isinstance(messages[at], ToolMessage):
        at -= 1  # a tool's answer stays with its call
    if at in (0, len(messages)):
        return list(messages), NO_BLOCK
    return list(messages[at:]), injection.summary_block(summary.content)


async def was_silent(memory: Memory, io: IO, state: Any, ids: Ids, idle: timedelta) -> bool:
    """Whether the thread's user was silent for so long before speaking now; ask before the message is heard."""
    if ids.session_id is None or not ids.learn or not last_said(_messages(state)):
        return False
    try:
        session_id = ids.session_id
        return idle <= await memory._in_time(
            io, lambda io: memory._silent_for(io, ids.user_id, ids.app_name, session_id)
        )
    except Exception as error:  # noqa: BLE001 - the transcript is still there
        memory.report("summary_failed", error=type(error).__name__, thread_id=ids.session_id)
        return False


async def silence_step(memory: Memory, io: IO, state: Any, ids: Ids) -> None:
    """Summarise the thread up to its last answer."""
    messages = _messages(state)
    speaker = Reader(ids.user_id, ids.app_name, ids.session_id)
    try:
        await memory._fell_silent(io, messages[: last_said(messages)], speaker)
    except Exception as error:  # noqa: BLE001 - the transcript is still there
        memory.report("summary_failed", error=type(error).__name__, thread_id=ids.session_id)


Step = Callable[[Memory, IO, Any, Ids], Coroutine[Any, Any, T]]


class _Node(Runnable[Any, T]):
    """A runnable that runs a step, sync or async, with the ids of the run.

    No `RunnableLambda`: it makes a run of its own, which costs time and whose output, the block, LangGraph would
    stream.
    """

    def __init__(self, name: str, memory: Memory | None, step: Step[T]) -> None:
        self.name = name
        self._memory = memory
        self._step = step
        watch()
        if memory is not None:
            _known[id(memory)] = memory

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> T:
        mine = self._memory or own_memory()
        return run(self._step(mine, mine.io, input, _ids(ensure_config(config))))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> T:
        mine = self._memory or own_memory()
        return await self._step(mine, mine.aio, input, _ids(ensure_config(config)))


# -------------------------------------------------------------------- which memory, which message

_known: WeakValueDictionary[int, Memory] = WeakValueDictionary()
_own: OrderedDict[int, tuple[BaseStore, Memory]] = OrderedDict()
_recent: WeakKeyDictionary[Memory, OrderedDict[tuple[Any, ...], Recollection]] = WeakKeyDictionary()
RECENT = 1_000
"""Recollections kept per memory, for models that are not given the graph's state."""


def own_memory(store: BaseStore | None = None) -> Memory:
    """The memory on a graph's own store (of the running graph, by default); one per store."""
    store = store or _store()
    if store is None:
        raise InvalidInput("no memory was given and the graph has no store; pass recall_node(memory) or store=…")
    if id(store) not in _own:
        _own[id(store)] = (store, Memory(store))  # the store is held too: its id must not be reused
        while len(_own) > 8:
            _own.popitem(last=False)
    memory = _own[id(store)][1]
    _known[id(memory)] = memory
    return memory


def _key(memory: Memory) -> str | None:
    """`memory.key`, if that is known without asking a server, which may be away."""
    return memory._base.known_id


def _recaller(state: Any, ids: Ids) -> Memory | None:
    """The memory that recalled for this state's last human message; None if there is nothing to recall for."""
    kept = _kept(state)
    by_key = {_key(m) or str(id(m)): m for m in _known.values()}
    if kept is not None and kept.key in by_key:
        return by_key[kept.key]
    if kept is not None and not kept.key and by_key:  # nothing was recalled, whichever it was
        return next((m for m in by_key.values() if _key(m) is None), next(iter(by_key.values())))
    messages = _messages(state)
    if not any(isinstance(m, HumanMessage) for m in messages):
        return None
    known = list(by_key.values())
    if not known and _store() is not None:
        return own_memory()
    # Without a `memories` channel the state does not say which; nor may it, when the store has moved.
    recalled = [m for m in known if _recalled(m, ids, state, messages) is not None]
    if recalled or len(known) == 1:
        return (recalled or known)[-1]
    spoken = [m for m in known if m.last_said(messages, **ids.reader) is not None]
    if known and not spoken:  # what was typed was not typed by a user of theirs
        return None
    raise InvalidInput(
        "prompt_with_memories cannot tell which memory to use: put recall_node(memory) before it, or pass memory=…"
    )


def _kept(state: Any) -> Recollection | None:
    """The recollection in state. InvalidInput if the channel holds something else."""
    kept = _field(state, "memories")
    if not kept:
        return None
    if not isinstance(kept, dict) or "refs" not in kept:
        raise InvalidInput(
            f"the graph's state uses 'memories' for something else ({type(kept).__name__}); rename that channel, or "
            "use with_memories(model) without the recall node"
        )
    return Recollection.model_validate(kept)


def _recalled(memory: Memory, ids: Ids, state: Any, messages: Sequence[BaseMessage]) -> Recollection | None:
    """What this memory recalled before for the last human message: from state, or from this process."""
    kept = _kept(state)
    if kept is None and not any(m.id for m in messages[last_said(messages) :]):
        return None  # a message without an id is known only by its text, which may be long, and only to the state
    last = memory.last_said(messages, **ids.reader)
    if last is not None and kept is not None and kept.message_id == last:
        key = _key(memory)
        if key is None or kept.key in ("", key):  # else it is another memory's
            return kept
    if not _has_id(messages, last):
        return None
    return _recent.get(memory, OrderedDict()).get((ids.user_id, ids.app_name, ids.session_id, last))


def _keep(memory: Memory, ids: Ids, messages: Sequence[BaseMessage], found: Recollection) -> None:
    if not _has_id(messages, found.message_id):
        return
    recent = _recent.setdefault(memory, OrderedDict())
    recent[(ids.user_id, ids.app_name, ids.session_id, found.message_id)] = found
    while len(recent) > RECENT:
        recent.popitem(last=False)


def _has_id(messages: Sequence[BaseMessage], last: str | None) -> bool:
    # The same words without an id may be another message: they are recalled for each time.
    return any(m.id == last for m in messages if last is not None)


def _ids(config: RunnableConfig) -> Ids:
    runtime = _runtime()
    return ids_of(config, None if runtime is None else runtime.context)


def _runtime() -> Runtime[Any] | None:
    try:
        return get_runtime()
    except RuntimeError:  # a wrapped model may be called outside a graph
        return None


def _store() -> BaseStore | None:
    runtime = _runtime()
    return None if runtime is None else runtime.store


def _agreed(name: str, one: Any, other: Any) -> Any:
    if one is not None and other is not None and one != other:
        raise InvalidInput(f"{name} is {one!r} in config and {other!r} in the runtime context; they must agree")
    return one if one is not None else other


def _field(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, dict) else getattr(holder, name, None)


def _messages(state: Any) -> list[BaseMessage]:
    messages = _field(state, "messages") if not isinstance(state, list) else state
    if messages is None:
        raise InvalidInput("the state has no 'messages'; memory needs a graph over messages (MemoryState)")
    return coerce(messages)


def _place(memory: Memory | None) -> injection.Place:
    return "system" if memory is None else memory.inject_as


def _prompt(state: Any, system: str | None) -> list[BaseMessage]:
    messages = _messages(state)
    return messages if system is None else [SystemMessage(content=system), *messages]


def _input(given: LanguageModelInput) -> list[BaseMessage]:
    if isinstance(given, PromptValue):
        return given.to_messages()
    return convert_to_messages([given] if isinstance(given, str) else given)
