"""Checkpoints made by hand."""

import itertools
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint

from langmem_adapter.checkpoint.sqlite import SqliteCheckpointer

_versions = itertools.count(1)


def config(thread_id: str = "t1", ns: str = "", **more: Any) -> Any:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns, **more}}


def put(saver: SqliteCheckpointer, parent: Any = None, metadata: Any = None, **channels: Any) -> Any:
    """Store a checkpoint in which all these channels are new; returns its config."""
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = channels
    checkpoint["channel_versions"] = {c: f"{next(_versions):08x}.0" for c in channels}
    full = {"source": "loop", "step": 1, "parents": {}, **(metadata or {})}
    return saver.put(parent or config(), checkpoint, full, checkpoint["channel_versions"])


def talk(count: int, words: str = "some words said") -> list[BaseMessage]:
    """Messages of a person and a model in turn, with ids."""
    return [(HumanMessage, AIMessage)[i % 2](f"{words} {i}", id=f"m{i}") for i in range(count)]


def values(saver: SqliteCheckpointer, where: Any) -> dict[str, Any]:
    found = saver.get_tuple(where)
    assert found is not None
    return found.checkpoint["channel_values"]


def rows(saver: SqliteCheckpointer, table: str) -> int:
    with saver._connections.reading() as conn:
        return int(conn.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def ids(found: Sequence[Any]) -> list[str]:
    return [t.config["configurable"]["checkpoint_id"] for t in found]
