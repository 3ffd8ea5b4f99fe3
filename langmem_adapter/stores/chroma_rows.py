"""The form of items and heads in Chroma: what is in the id, the document, the metadata and the vector.

An item is one record: its value as JSON in the document, its times and the fields that are filtered most in the
metadata, its first vector (or a dummy). Further vectors are records of their own, valid while they carry the item's
`rev`. Each namespace has a head: its version, how many items it has, and which ids are being deleted.

`upsert` merges metadata and keeps what it is not told of, so every record says all of its keys, None to remove one.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from langmem_adapter.stores.vectors import Matrix

PROMOTED = ("topic", "slot", "status", "kind", "memory_id")
"""Fields of a value that are metadata too, so that filters on them run in the database."""

LONGEST = 256
"""Characters of a promoted string; longer ones are compared in Python."""

_MOST_SOURCES = 64


class Record(NamedTuple):
    """One record as Chroma takes it."""

    id: str
    embedding: Matrix
    document: str
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """An item as it is stored, without its vectors."""

    id: str
    path: str
    key: str
    value: str
    """JSON text; "" if it was not read."""
    seq: int
    """Grows with each new item of the namespace."""
    rev: int
    """The namespace's version when it was written."""
    created: int
    updated: int
    expires: int | None
    ttl: float | None
    fields: str | None
    """Paths to index as JSON; None: the store's own."""
    embedder: int | None
    """Number of the embedder that has seen it; None: none has."""
    vectors: int
    """How many vectors it has, further records included."""

    @property
    def more(self) -> list[str]:
        """The ids of the further records."""
        return [more_id(self.id, n) for n in range(1, self.vectors)]

    @property
    def lasting(self) -> bool:
        """Whether it never expires."""
        return self.expires is None


@dataclass(frozen=True, slots=True)
class Head:
    """What is known of a namespace as a whole."""

    path: str
    version: int = 0
    """Grows with every change by the number of items changed; never goes back."""
    stamp: int = 0
    """Grows with whatever makes cached parts stale: changes, new deadlines, new vectors."""
    count: int = 0
    lasting: int = 0
    """Items that never expire."""
    latest: int = 0
    """The youngest `updated`: times of a namespace grow strictly."""
    writer: str = ""
    dead: tuple[str, ...] = ()
    """Records that the last commit deleted. They may still be there if the process died: readers leave them out."""

    @property
    def mark(self) -> tuple[int, int, str]:
        """What changes when anything does."""
        return self.version, self.stamp, self.writer


def record_id(path: str, key: str) -> str:
    """The id of an item: a hash, so that deleted keys need not be named."""
    return blake2b(f"{path}\0{key}".encode(), digest_size=16).hexdigest()


def more_id(id: str, n: int) -> str:
    """The id of an item's further vector n ≥ 1."""
    return f"{id}-{n}"


def head_id(path: str) -> str:
    """The id of a namespace's head."""
    return f"head-{blake2b(path.encode(), digest_size=16).hexdigest()}"


def dummy(dims: int) -> Matrix:
    """The vector of what has none."""
    vector = np.zeros(dims, dtype=np.float32)
    vector[0] = 1.0
    return vector


def item_records(row: Row, owner: str, value: Mapping[str, Any], vectors: Matrix | None, dims: int) -> list[Record]:
    """The record of an item and those of its further vectors."""
    has = vectors is not None and len(vectors) > 0
    first = vectors[0] if has and vectors is not None else dummy(dims)
    metadata = {
        "owner": owner,
        "ns": row.path,
        "key": row.key,
        "seq": row.seq,
        "rev": row.rev,
        "created": row.created,
        "updated": row.updated,
        "expires": row.expires,
        "ttl": None if row.ttl is None else float(row.ttl),
        "fields": row.fields,
        "embedder": row.embedder,
        "vectors": row.vectors,
        "has_vector": has,
        **_promoted(value),
    }
    records = [Record(row.id, first, row.value, metadata)]
    for n in range(1, row.vectors):
        assert vectors is not None
        more = {"owner": owner, "of": row.path, "seq": row.seq, "rev": row.rev, "has_vector": True}
        records.append(Record(more_id(row.id, n), vectors[n], "", more))
    return records


def _promoted(value: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {k: v if is_short(v := value.get(k)) else None for k in PROMOTED}
    sources = value.get("sources")
    ids = [s.get("source_id") for s in sources if isinstance(s, Mapping)] if isinstance(sources, list | tuple) else []
    found["sources"] = sorted({str(i) for i in ids if is_short(i)})[:_MOST_SOURCES] or None  # no empty lists
    return found


def is_short(value: Any) -> bool:
    """Whether a promoted field can hold this value."""
    return isinstance(value, str) and 0 < len(value) <= LONGEST and "\0" not in value


def row_of(id: str, metadata: Mapping[str, Any], document: str | None) -> Row:
    """The item of a stored record."""
    get = metadata.get
    return Row(
        id=id,
        path=metadata["ns"],
        key=metadata["key"],
        value=document or "",
        seq=metadata["seq"],
        rev=metadata["rev"],
        created=metadata["created"],
        updated=metadata["updated"],
        expires=get("expires"),
        ttl=get("ttl"),
        fields=get("fields"),
        embedder=get("embedder"),
        vectors=get("vectors", 0),
    )


def head_record(head: Head, owner: str, dims: int) -> Record:
    """The record of a head."""
    metadata = {
        "owner": owner,
        "head": head.path,
        "version": head.version,
        "stamp": head.stamp,
        "count": head.count,
        "lasting": head.lasting,
        "latest": head.latest,
        "writer": head.writer,
        "is_head": True,
    }
    return Record(head_id(head.path), dummy(dims), json.dumps(head.dead), metadata)


def head_of(metadata: Mapping[str, Any], document: str | None) -> Head:
    """The head of a stored record."""
    return Head(
        path=metadata["head"],
        version=metadata["version"],
        stamp=metadata["stamp"],
        count=metadata["count"],
        lasting=metadata["lasting"],
        latest=metadata["latest"],
        writer=metadata["writer"],
        dead=tuple(json.loads(document or "[]")),
    )


def owner_of(namespace: Sequence[str]) -> tuple[str, ...]:
    """Whose collection a namespace lies in: up to the id of the user or team, or the app; elsewhere two labels."""
    if namespace[0] == "memories" and len(namespace) >= 3:
        if namespace[2] == "app":
            return tuple(namespace[:3])
        if namespace[2] in ("user", "team") and len(namespace) >= 4:
            return tuple(namespace[:4])
    return tuple(namespace[:2])


def lies_in_one(prefix: Sequence[str]) -> bool:
    """Whether everything under the prefix has the same owner."""
    if len(prefix) < 2:
        return False
    if prefix[0] != "memories":
        return True
    return len(prefix) >= 4 or (len(prefix) == 3 and prefix[2] not in ("user", "team"))
