"""Errors that only a checkpointer raises.

MemoryAdapterError
├── InvalidInput (ValueError)
│   └── UnlistedType (TypeError)     a value's type is not in the allowlist; names it and says how to add it
└── StoreError
    ├── ThreadDeleted                a write that belongs to a thread from before its deletion
    └── WrongKey (PermissionError)   the file is encrypted and this is not its key, or it is not and a key was given
"""

from langmem_adapter.errors import InvalidInput, StoreError


class UnlistedType(InvalidInput, TypeError):
    """A value, or a stored payload, names a type that is not in the allowlist; nothing of it was run or stored."""


class ThreadDeleted(StoreError):
    """The thread was deleted while this run was going on; its writes are refused. A new run starts a new thread."""


class WrongKey(StoreError, PermissionError):
    """The file's encryption and the key that was given do not fit together."""
