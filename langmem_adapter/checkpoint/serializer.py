"""The `serde` of a checkpointer, for whoever asks LangGraph's way: as strict, and encrypted, as the checkpointer."""

from collections.abc import Callable
from typing import Any

from langmem_adapter.checkpoint.codec import Codec
from langmem_adapter.checkpoint.errors import UnlistedType, WrongKey
from langmem_adapter.checkpoint.sealing import Sealing

_FORMAT = "msgpack"
_RAW: dict[str, Callable[[bytes], Any]] = {"null": lambda _: None, "bytes": bytes, "bytearray": bytearray}


class StrictSerializer:
    """LangGraph's `SerializerProtocol` over a codec and a sealing."""

    def __init__(self, codec: Codec, sealing: Sealing) -> None:
        self.codec = codec
        self._sealing = sealing
        self._tag = _FORMAT if sealing.scheme == "none" else f"{_FORMAT}+{sealing.scheme}"

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """The format and the bytes. UnlistedType for a type that is not allowed."""
        return self._tag, self._sealing.seal(self.codec.pack(obj))

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """The value. WrongKey for plaintext where there is encryption, UnlistedType for pickle or JSON constructors."""
        tag, packed = data
        if tag == self._tag:
            return self.codec.unpack(self._sealing.open(packed))
        if self._sealing.scheme != "none":
            raise WrongKey(f"a value in the format {tag!r} is not encrypted; it was not read")
        if tag in _RAW:
            return _RAW[tag](packed)
        raise UnlistedType(f"a value in the format {tag!r} is not loaded: it could name any callable")
