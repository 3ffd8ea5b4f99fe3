"""Long-term memory for LangGraph and LangChain agents that can say why it believes something.

    from langmem_adapter import Memory

    memory = Memory("memory.db")
    memory.add("I'm a vegetarian.", user_id="ada")
    memory.search("what should we order?", user_id="ada")

The graph nodes are in `langmem_adapter.langgraph`, the agent middleware in `langmem_adapter.middleware`.
"""

from langmem_adapter.embeddings import HashEmbeddings
from langmem_adapter.errors import Conflict, MemoryAdapterError, MemoryNotFound, MissingUser
from langmem_adapter.guard import DEFAULT_RULES, Guard, Rule
from langmem_adapter.memory import Memory
from langmem_adapter.records import Block, MemoryRecord, Operation, Recalled
from langmem_adapter.stores.sqlite import SqliteMemoryStore
from langmem_adapter.topics import DEFAULT_TOPICS, Topic
from langmem_adapter.trust import TrustPolicy

__all__ = [
    "DEFAULT_RULES",
    "DEFAULT_TOPICS",
    "Block",
    "Conflict",
    "Guard",
    "HashEmbeddings",
    "Memory",
    "MemoryAdapterError",
    "MemoryNotFound",
    "MemoryRecord",
    "MissingUser",
    "Operation",
    "Recalled",
    "Rule",
    "SqliteMemoryStore",
    "Topic",
    "TrustPolicy",
]
