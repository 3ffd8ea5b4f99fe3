"""Processes that queue turns, and processes that learn what was left: to be killed at any moment."""

import json
import multiprocessing
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

from langmem_adapter.extraction.model import ModelExtractor
from langmem_adapter.memory import Memory
from langmem_adapter.testing import ScriptedChatModel

OWNERS = ("ada", "ben")


def liked(messages: Sequence[BaseMessage]) -> dict[str, Any]:
    """The one fact of "I like WORD"."""
    said = json.loads(messages[1].text.splitlines()[0])["text"]
    word = said.split()[-1]
    found = {"content": f"The user likes {word}.", "topic": "preference/likes", "slot": word, "value": "like"}
    return {"facts": [found | {"line": "l1", "excerpt": said}]}


def talk(path: Path, prefix: str, acknowledged: Connection) -> None:
    """Queue turns for ever, while the worker learns them slowly; each is told once `add` has returned."""
    model = ScriptedChatModel(replies=[liked], delay=0.01)
    memory = Memory(path, extractor=ModelExtractor(model), when="background")
    n = 0
    while True:
        owner, word = OWNERS[n % 2], f"{prefix}x{n}"
        memory.add(HumanMessage(f"I like {word}", id=word), user_id=owner, session_id=prefix)
        acknowledged.send((owner, word))
        n += 1


def finish(path: Path) -> None:
    """Learn all that is queued, at a time when the leases of the dead have run out."""
    model = ScriptedChatModel(replies=[liked])
    extractor = ModelExtractor(model)
    clock = lambda: datetime.now(UTC) + timedelta(hours=1)  # noqa: E731
    with Memory(path, extractor=extractor, when="background", clock=clock) as memory:
        assert memory.drain(timeout=60)


def process(work: Any, *args: Any) -> Any:
    """A started process, forked from a server that has imported everything."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["langmem_adapter.memory", "langmem_adapter.testing", __name__])
    started = context.Process(target=work, args=args, daemon=True)
    started.start()
    return started


def pipe() -> tuple[Connection, Connection]:
    """The reading and the writing end."""
    return multiprocessing.get_context("forkserver").Pipe(duplex=False)
