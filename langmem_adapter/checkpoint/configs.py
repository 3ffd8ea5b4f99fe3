"""What a config says: which thread, which namespace, which checkpoint."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig

from langmem_adapter.errors import InvalidInput


def thread_name(thread_id: object) -> str:
    """A thread's id as it is stored. InvalidInput if it cannot be."""
    name = str(thread_id)
    if any("\ud800" <= c <= "\udfff" for c in name):
        raise InvalidInput(f"thread_id {name!r} is no text: it holds half of a character")
    return name


def id_list(ids: Sequence[str], name: str) -> list[str]:
    """The ids of an argument. InvalidInput for a string, whose characters would be taken for ids."""
    if isinstance(ids, str | bytes):
        raise InvalidInput(f"{name} is a list of ids, not the string {ids!r}")
    return list(ids)


class Where(NamedTuple):
    """A place in the file. `checkpoint` is None where the latest is meant, or where there is no parent."""

    thread_id: str
    ns: str
    checkpoint: str | None

    @classmethod
    def of(cls, config: RunnableConfig) -> "Where":
        """The place that a config names. InvalidInput if it names no thread."""
        found = (config or {}).get("configurable") or {}
        if found.get("thread_id") is None:
            raise InvalidInput('no thread_id: pass config={"configurable": {"thread_id": "…"}}')
        return cls(
            thread_name(found["thread_id"]), found.get("checkpoint_ns") or "", found.get("checkpoint_id") or None
        )

    def required(self) -> str:
        """The checkpoint's id. InvalidInput if there is none."""
        if self.checkpoint is None:
            raise InvalidInput("no checkpoint_id in the config; writes belong to a checkpoint")
        return self.checkpoint

    def config(self, checkpoint: str) -> RunnableConfig:
        """The config of a checkpoint in this thread and namespace."""
        ids: dict[str, Any] = {"thread_id": self.thread_id, "checkpoint_ns": self.ns, "checkpoint_id": checkpoint}
        return {"configurable": ids}
