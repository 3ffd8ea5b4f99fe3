"""Test suites and fakes for code built on this package. Needs pytest; nothing in the package imports it.

`StoreContract`: every rule of a LangGraph store, for any store to subclass. `ScriptedChatModel`: a chat model that
answers, fails and misbehaves as it is told.
"""

from langmem_adapter.testing.contract import MakeStore, StoreContract
from langmem_adapter.testing.model import ScriptedChatModel

__all__ = ["MakeStore", "ScriptedChatModel", "StoreContract"]
