"""Every error this package raises on purpose.

MemoryAdapterError
├── InvalidInput (ValueError)          an argument that cannot be used; says which, and its value
│   ├── MissingUser                    no user id where one is needed
│   └── UnknownTopic                   a topic nobody registered
├── MemoryNotFound (KeyError)          no such memory for this user (also: it is somebody else's)
├── OnHold                             erasure is refused: the user's data is under a legal hold
├── Conflict                           another writer kept winning; nothing was written
├── ModelFailed                        a chat model gave no usable answer; the turn stays queued
└── StoreError                         the database under a store
    ├── StoreClosed
    ├── StoreReadOnly (PermissionError)
    ├── StoreFull (OSError)
    ├── StoreCorrupt
    ├── StoreTooNew                    written by a newer version of this package
    └── EmbedderMismatch (ValueError)  the file was built with another embedder

Those that only a checkpointer raises are in `checkpoint.errors`.
"""


class MemoryAdapterError(Exception):
    """Base of every error raised by this package."""


class InvalidInput(MemoryAdapterError, ValueError):
    """An argument that cannot be used; the message names it, its value and what to do."""


class MissingUser(InvalidInput):
    """No user id was given where memories belong to a user."""


class UnknownTopic(InvalidInput):
    """A topic that is not registered with this Memory."""


class MemoryNotFound(MemoryAdapterError, KeyError):
    """No memory of this id belongs to this user; the same answer for a stranger's id and an unknown one."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class OnHold(MemoryAdapterError):
    """The user's data is under a legal hold, whose reason is in the message; nothing was erased."""


class Conflict(MemoryAdapterError):
    """Other writers changed the owner's memories each time we tried to commit; nothing was written."""


class ModelFailed(MemoryAdapterError):
    """A chat model gave no usable answer in the tries it had.

    `usage` is what they cost; `why` says what was wrong without a word of anybody's.
    """

    def __init__(self, message: str, usage: object = None, why: str = "") -> None:
        super().__init__(message)
        self.usage = usage
        self.why = why


class StoreError(MemoryAdapterError):
    """The database under a store could not do what was asked."""


class StoreClosed(StoreError):
    """The store was closed before this call."""


class StoreReadOnly(StoreError, PermissionError):
    """The database file cannot be written; reads still work."""


class StoreFull(StoreError, OSError):
    """No room to write; nothing of this write was kept and old data is readable."""


class StoreCorrupt(StoreError):
    """The file is damaged or is not a memory database; it was left as it is."""


class StoreTooNew(StoreError):
    """The file was written by a newer version of this package; upgrade the package to open it."""


class EmbedderMismatch(StoreError, ValueError):
    """The stored vectors come from another embedder; open with that one, or `reindex()`."""
