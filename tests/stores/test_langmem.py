"""langmem's own tools and memory manager run on the SQLite store unchanged, sync and async."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.store.base import BaseStore

from langmem_adapter.embeddings import HashEmbeddings
from langmem_adapter.stores.sqlite import SqliteMemoryStore

langmem = pytest.importorskip("langmem")

INDEX: Any = {"dims": 256, "embed": HashEmbeddings(), "fields": ["content", "content.content"]}


class Says(BaseChatModel):
    """A chat model that replies with the tool calls it was given, in turn, then with none."""

    replies: list[list[dict[str, Any]]]
    at: list[int]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> "Says":
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        n, self.at[0] = self.at[0], self.at[0] + 1
        calls = self.replies[n] if n < len(self.replies) else []
        message = AIMessage("", tool_calls=[{**c, "id": str(uuid.uuid4()), "type": "tool_call"} for c in calls])
        return ChatResult(generations=[ChatGeneration(message=message)])


def remembering(content: str) -> Says:
    return Says(replies=[[{"name": "Memory", "args": {"content": content}}]], at=[0])


async def test_the_manage_and_search_tools_create_update_find_and_delete(tmp_path: Path) -> None:
    with SqliteMemoryStore(tmp_path / "memory.db", index=INDEX) as store:
        manage = langmem.create_manage_memory_tool(namespace=("memories", "u1"), store=store)
        search = langmem.create_search_memory_tool(namespace=("memories", "u1"), store=store)
        manage.invoke({"content": "The user eats fish."})
        await manage.ainvoke({"content": "The user likes an aisle seat."})
        found = json.loads(search.invoke({"query": "fish"}))
        assert found[0]["value"] == {"content": "The user eats fish."}
        assert json.loads(await search.ainvoke({"query": "seat"}))[0]["value"]["content"].endswith("aisle seat.")
        id = found[0]["key"]
        await manage.ainvoke({"action": "update", "id": id, "content": "The user eats meat."})
        assert [i.key for i in store.search(("memories", "u1"), query="meat", limit=1)] == [id]
        manage.invoke({"action": "delete", "id": id})
        assert len(store.search(("memories", "u1"))) == 1


async def test_the_memory_manager_stores_and_recalls(tmp_path: Path) -> None:
    with SqliteMemoryStore(tmp_path / "memory.db", index=INDEX) as store:
        config: Any = {"configurable": {"user_id": "u1"}}
        messages = [{"role": "user", "content": "I eat fish."}]
        for content, asynchronously in (("The user eats fish.", False), ("The user has a cat.", True)):
            manager = langmem.create_memory_store_manager(
                remembering(content), namespace=("memories", "{user_id}"), store=store
            )
            if asynchronously:
                await manager.ainvoke({"messages": messages}, config=config)
            else:
                manager.invoke({"messages": messages}, config=config)
        contents = {i.value["content"]["content"] for i in store.search(("memories", "u1"))}
        assert contents == {"The user eats fish.", "The user has a cat."}
        found = manager.search(query="fish", config=config)
        assert found[0].value.content == "The user eats fish."
        assert isinstance(store, BaseStore)
