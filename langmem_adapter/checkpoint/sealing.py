"""What is done to bytes before they are stored: nothing, or AES; and the hashes by which they are found again.

The hashes are keyed: with encryption by the key, so that they tell nothing to someone who has only the file; without
it by a random salt of the file.
"""

import hmac
import os
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Protocol

from langmem_adapter.checkpoint.errors import WrongKey
from langmem_adapter.errors import InvalidInput

HASH = 16
_NONCE, _TAG = 12, 16


class Sealing(Protocol):
    """How stored bytes are protected."""

    scheme: str

    def seal(self, data: bytes) -> bytes:
        """The bytes as they are stored."""

    def open(self, data: bytes) -> bytes:
        """The bytes as they were."""


class Plain:
    """Stores bytes as they are."""

    scheme = "none"

    def seal(self, data: bytes) -> bytes:
        """The same bytes."""
        return data

    def open(self, data: bytes) -> bytes:
        """The same bytes."""
        return data


class Aes:
    """AES-GCM with a key derived for one file. What it did not seal itself, it does not open."""

    scheme = "aes-gcm"

    def __init__(self, key: bytes, salt: bytes) -> None:
        self._aes = _aes()
        self._key = _derived(key, salt, b"seal")

    def seal(self, data: bytes) -> bytes:
        """Nonce, tag and ciphertext."""
        nonce = os.urandom(_NONCE)
        text, tag = self._aes.new(self._key, self._aes.MODE_GCM, nonce=nonce).encrypt_and_digest(data)
        return bytes(nonce + tag + text)

    def open(self, data: bytes) -> bytes:
        """The plaintext; WrongKey if this key did not seal it, as when it was never encrypted."""
        nonce, tag, text = data[:_NONCE], data[_NONCE : _NONCE + _TAG], data[_NONCE + _TAG :]
        try:
            return bytes(self._aes.new(self._key, self._aes.MODE_GCM, nonce=nonce).decrypt_and_verify(text, tag))
        except ValueError as e:
            raise WrongKey("a stored value was not encrypted with this key; it was not read") from e


def key_bytes(key: bytes | str | None) -> bytes | None:
    """The key of an argument. InvalidInput unless it has 16, 24 or 32 bytes."""
    if key is None:
        return None
    if not isinstance(key, bytes | bytearray | str):
        raise InvalidInput(f"encryption_key is bytes or a string, not of type {type(key).__name__}")
    raw = key.encode() if isinstance(key, str) else bytes(key)
    if len(raw) not in (16, 24, 32):
        raise InvalidInput(f"encryption_key has {len(raw)} bytes; an AES key has 16, 24 or 32")
    _aes()
    return raw


def sealing_for(key: bytes | None, salt: bytes) -> Sealing:
    """The sealing of a file with this salt."""
    return Plain() if key is None else Aes(key, salt)


def proof_of(key: bytes | None, salt: bytes) -> str:
    """What a file keeps to recognise its key."""
    return "none" if key is None else _derived(key, salt, b"proof").hex()


def verify(proof: str, key: bytes | None, salt: bytes, name: str) -> None:
    """WrongKey unless the file was made with this key, or without one if there is none."""
    if hmac.compare_digest(proof, proof_of(key, salt)):
        return
    if key is None:
        raise WrongKey(f"the checkpoints in {name} are encrypted; pass encryption_key=")
    if proof == "none":
        raise WrongKey(f"the checkpoints in {name} are not encrypted; a file is encrypted from its start or not at all")
    raise WrongKey(f"the checkpoints in {name} are encrypted with another key")


class Hashes:
    """Keyed hashes of 16 bytes, each kind apart from the others."""

    def __init__(self, key: bytes | None, salt: bytes) -> None:
        self._key = _derived(key or b"", salt, b"hash")
        self._bases: dict[str, Any] = {}

    def of(self, kind: str, data: bytes) -> bytes:
        """The hash of some bytes."""
        return self.maker(kind)(data)

    def maker(self, kind: str) -> Callable[[bytes], bytes]:
        """A function that hashes bytes of one kind; quicker if there are many."""
        base = self._bases.get(kind)
        if base is None:
            base = self._bases[kind] = blake2b(kind.encode() + b"\0", digest_size=HASH, key=self._key)

        def hashed(data: bytes) -> bytes:
            state = base.copy()
            state.update(data)
            return bytes(state.digest())

        return hashed


def _derived(key: bytes, salt: bytes, purpose: bytes) -> bytes:
    return blake2b(salt, digest_size=32, key=key, person=purpose).digest()


def _aes() -> Any:
    try:
        from Crypto.Cipher import AES
    except ImportError as e:
        raise ImportError(
            "encryption_key needs pycryptodome: pip install 'langgraph-memory-adapter[encryption]'"
        ) from e
    return AES
