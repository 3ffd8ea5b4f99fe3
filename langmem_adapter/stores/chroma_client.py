"""A Chroma client as the store uses it: opened, paged, within Chroma's limits, its errors translated.

`chromadb` is imported here only, when a store is opened.
"""

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from langmem_adapter.errors import (
    InvalidInput,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
)
from langmem_adapter.stores import chroma_guard
from langmem_adapter.stores.chroma_rows import Record

PAGE = 5_000
"""Records per `get`; also ids per `get` and `delete`."""

_HANDLES = 5_000

_PAYLOAD = 30_000_000
"""Bytes of one request; a server refuses more than 40 MB unless it is told otherwise."""

_NUMBER = 22
"""Bytes of one number of a vector in JSON, at most."""

Kind = Literal["memory", "files", "server"]
Found = list[tuple[str, dict[str, Any], str | None, Any]]
"""id, metadata, document, vector; what was not asked for is None."""

_SERVER = "run `chroma run` and give every process a chromadb.HttpClient"

T = TypeVar("T")


class Gone(StoreError):
    """A collection is not there any more: another process rebuilt it. The place is to be looked up again."""


class Chroma:
    """The collections of one database. A path is opened as a `PersistentClient`, without telemetry."""

    def __init__(self, client_or_path: Any) -> None:
        self._handles: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()
        self._closed = False
        self._pid = os.getpid()
        self._guard: str | None = None
        self._given: Path | None = None
        self._client: Any = None
        if isinstance(client_or_path, str | os.PathLike):
            self._given = Path(client_or_path).resolve()  # Chroma takes a link to it for another folder
            self._guard = chroma_guard.enter(self._given)
        try:
            self._client = _opened(self._given) if self._given is not None else _checked(client_or_path)
            self.kind, self.path = _kind(self._client)
            if self.path is not None and self._guard is None:
                self._guard = chroma_guard.enter(self.path)
            with translated(self.name):
                self._batch: int = self._client.get_max_batch_size()
        except BaseException:
            self.close()
            raise

    # what it is

    kind: Kind
    path: Path | None = None

    @property
    def name(self) -> str:
        """Where it is, for messages."""
        if self._given is not None or self.path is not None:
            return str(self._given or self.path)
        if self.kind == "memory":
            return "Chroma in memory"
        settings = self._client.get_settings()
        return f"Chroma at {settings.chroma_server_host}:{settings.chroma_server_http_port}"

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    @property
    def identity(self) -> tuple[str, ...]:
        """The same for all clients of one database in this process."""
        settings = self._client.get_settings()
        where = {
            "memory": "",
            "files": str(self.path.resolve()) if self.path else "",
            "server": f"{settings.chroma_server_host}:{settings.chroma_server_http_port}",
        }[self.kind]
        return self.kind, where, self._client.tenant, self._client.database

    @property
    def room(self) -> int:
        """How many records one upsert may have."""
        return self._batch

    # records

    def get(self, name: str, ids: Sequence[str], include: Sequence[str] = ("metadatas", "documents")) -> Found:
        """The records of these ids that exist, in no order."""
        found: Found = []
        for at in range(0, len(ids), PAGE):
            part = list(ids[at : at + PAGE])
            found += _rows(self._call(name, lambda c, part=part: c.get(ids=part, include=list(include))))  # type: ignore[misc]
        return found

    def pages(
        self, name: str, where: Mapping[str, Any] | None, include: Sequence[str] = ("metadatas", "documents")
    ) -> Iterator[Found]:
        """All records that meet the condition, in pages; read them while nobody writes, or look again after."""
        asked = {"where": dict(where)} if where else {}
        for at in range(0, 1 << 40, PAGE):
            page = _rows(
                self._call(name, lambda c, at=at: c.get(**asked, include=list(include), limit=PAGE, offset=at))  # type: ignore[misc]
            )
            if page:
                yield page
            if len(page) < PAGE:
                return

    def find(
        self, name: str, where: Mapping[str, Any] | None, include: Sequence[str] = ("metadatas", "documents")
    ) -> Found:
        """`pages`, together."""
        return [row for page in self.pages(name, where, include) for row in page]

    def upsert(self, name: str, records: Sequence[Record]) -> None:
        """Write the records: all at once if they are no more than `room`, else the last ones last."""
        most = self._most(records)
        first = len(records) % most or most
        for start, end in [(max(0, at - most), at) for at in range(first, len(records) + 1, most)]:
            part = records[start:end]
            args = {
                "ids": [r.id for r in part],
                "embeddings": [r.embedding for r in part],
                "documents": [r.document for r in part],
                "metadatas": [r.metadata for r in part],
            }
            self._call(name, lambda c, args=args: c.upsert(**args))  # type: ignore[misc]

    def _most(self, records: Sequence[Record]) -> int:
        if self.kind != "server" or not records:
            return self._batch
        size = max(len(r.document) for r in records) + _NUMBER * len(records[0].embedding) + 1_000
        return max(1, min(self._batch, _PAYLOAD // size))

    def update(self, name: str, metadatas: Mapping[str, Mapping[str, Any]]) -> None:
        """Change metadata of existing records, by id: only the keys that are given."""
        ids = list(metadatas)
        self._call(name, lambda c: c.update(ids=ids, metadatas=[dict(metadatas[i]) for i in ids]))

    def delete(self, name: str, ids: Sequence[str]) -> None:
        """Delete the records of these ids, those that exist."""
        for at in range(0, len(ids), PAGE):
            part = list(ids[at : at + PAGE])
            self._call(name, lambda c, part=part: c.delete(ids=part))  # type: ignore[misc]

    def touch(self, name: str) -> None:
        """Have Chroma load the collection's index and finish what waits to be written there."""
        self._call(name, lambda c: c.get(limit=1, include=["embeddings"]))

    # collections

    def create(self, name: str) -> None:
        """Make the collection, if it is not there."""
        with translated(self.name):
            handle = self._open().get_or_create_collection(name, embedding_function=None)
        self._keep(name, handle)

    def drop(self, name: str) -> None:
        """Delete the collection, if it is there."""
        self._handles.pop(name, None)
        try:
            with translated(self.name):
                self._open().delete_collection(name)
        except Gone:
            pass

    def names(self) -> list[str]:
        """The names of all collections."""
        found: list[str] = []
        while True:
            with translated(self.name):
                page = self._open().list_collections(limit=PAGE, offset=len(found))
            found += [c.name for c in page]
            if len(page) < PAGE:
                return found

    def collection_id(self, name: str) -> str:
        """Chroma's id of the collection."""
        return str(self._handle(name).id)

    # opening and closing

    def close(self) -> None:
        """Close a client that was opened here, and let other processes in. A client passed in stays open."""
        closing, self._closed = not self._closed, True
        if closing and self._given is not None and self._client is not None:
            self._client.close()
        if self._guard is not None:
            chroma_guard.leave(self._guard)
            self._guard = None
        self._handles.clear()

    def _reopen(self, stale: Any) -> None:
        with self._lock:
            self._handles.clear()
            if self._given is not None and self._client is stale and not self._closed:
                self._client.close()
                self._client = _opened(self._given)

    def check(self) -> None:
        """StoreError if it cannot be used: closed, or opened by a parent process."""
        self._open()

    def _open(self) -> Any:
        if self._closed:
            raise StoreClosed("the store was closed before this call")
        if self.kind != "server" and self._pid != os.getpid():
            raise StoreError(
                f"{self.name} belongs to the process that opened it (this one was forked from it): {_SERVER}"
            )
        return self._client

    def _call(self, name: str, act: Callable[[Any], T]) -> T:
        """The act on a collection; once more on a new handle if Chroma's view of it was stale."""
        import chromadb.errors

        client = self._open()
        with translated(self.name):
            try:
                return act(self._handle(name))
            except (chromadb.errors.InternalError, chromadb.errors.NotFoundError, AttributeError) as e:
                if "database is locked" in str(e):
                    time.sleep(0.1)  # it is being vacuumed
                else:
                    self._reopen(client)  # AttributeError: another thread has just reopened it
            return act(self._handle(name))

    def _handle(self, name: str) -> Any:
        with self._lock:
            handle = self._handles.get(name)
            if handle is not None:
                self._handles.move_to_end(name)
                return handle
        with translated(self.name):
            handle = self._open().get_collection(name, embedding_function=None)
        self._keep(name, handle)
        return handle

    def _keep(self, name: str, handle: Any) -> None:
        with self._lock:
            self._handles[name] = handle
            while len(self._handles) > _HANDLES:
                self._handles.popitem(last=False)


def _opened(path: Path) -> Any:
    import chromadb
    from chromadb.config import Settings

    if path.exists() and not path.is_dir():
        raise InvalidInput(f"{path} is a file; a Chroma database is a folder")
    with translated(str(path)):
        return chromadb.PersistentClient(str(path), Settings(anonymized_telemetry=False))


def _checked(client: Any) -> Any:
    if not callable(getattr(client, "get_or_create_collection", None)):
        raise InvalidInput(f"need a Chroma client or the path of a folder, got {type(client).__name__}: {client!r:.80}")
    if "Async" in type(client).__name__:
        raise InvalidInput(
            "an AsyncHttpClient belongs to one event loop; pass a chromadb.HttpClient: aput() etc. do not block"
        )
    return client


def _kind(client: Any) -> tuple[Kind, Path | None]:
    settings = client.get_settings()
    if "fastapi" in str(settings.chroma_api_impl).lower():
        return "server", None
    return ("files", Path(settings.persist_directory).resolve()) if settings.is_persistent else ("memory", None)


def _rows(result: Mapping[str, Any]) -> Found:
    ids = result["ids"]
    none = [None] * len(ids)
    metadatas, documents = result.get("metadatas") or [{}] * len(ids), result.get("documents") or none
    vectors = result.get("embeddings")
    return list(zip(ids, metadatas, documents, none if vectors is None else np.asarray(vectors), strict=True))


@contextmanager
def translated(name: str) -> Iterator[None]:
    """Chroma's errors as ours, naming the database."""
    try:
        yield
    except Exception as e:
        ours = _as_ours(e, name)
        if ours is None:
            raise
        raise ours from e


_SIGNS: tuple[tuple[str, type[StoreError]], ...] = (
    ("disk is full", StoreFull),
    ("no space left", StoreFull),
    ("readonly database", StoreReadOnly),
    ("read-only file", StoreReadOnly),
    ("permission denied", StoreReadOnly),
    ("malformed", StoreCorrupt),
    ("not a database", StoreCorrupt),
)


def _as_ours(e: Exception, name: str) -> StoreError | None:
    import httpx
    from chromadb.errors import ChromaError, NotFoundError

    if isinstance(e, StoreError):
        return None
    if isinstance(e, NotFoundError):
        return Gone(f"{name}: {e}")
    text = str(e).lower()
    if isinstance(e, httpx.HTTPError) or (isinstance(e, ValueError) and "connect to" in text and "server" in text):
        return StoreError(f"{name} does not answer ({type(e).__name__}: {e}); is the server running?")
    kind = next((kind for sign, kind in _SIGNS if sign in text), None)
    if kind is None and not isinstance(e, ChromaError):
        return None
    return (kind or StoreError)(f"{name}: {type(e).__name__}: {e}")
