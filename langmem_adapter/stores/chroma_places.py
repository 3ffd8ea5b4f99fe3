"""Which collection an owner's items lie in: the registry, itself a small collection.

Each owner has a collection of its own, which is small, quick to rank and can be erased as a whole. Each costs files
and memory, so above `OWN_COLLECTIONS` owners the later ones share `BUCKETS` collections by a hash of their name.
Where an owner lies never changes; a place may get another collection, when it is rebuilt.
"""

import json
import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from langmem_adapter.stores.chroma_client import Chroma
from langmem_adapter.stores.chroma_rows import Record, lies_in_one, owner_of
from langmem_adapter.stores.values import namespace, path

OWN_COLLECTIONS = 4_000
BUCKETS = 256
FORMAT = 1

_REMEMBERED = 50_000
_POINT = np.ones(1, dtype=np.float32)


class Place(NamedTuple):
    """Where items lie."""

    id: str
    collection: str
    dims: int


class Places:
    """Owners and their places. A place that was found is remembered until `forget`."""

    def __init__(self, chroma: Chroma, prefix: str, own_collections: int) -> None:
        self._chroma = chroma
        self._prefix = prefix
        self._most_own = own_collections
        self._registry = f"{prefix}-registry"
        self._owners: OrderedDict[str, str] = OrderedDict()
        self._known: dict[str, Place] = {}
        self._own: int | None = None
        self._lock = threading.Lock()
        chroma.create(self._registry)

    @property
    def store_id(self) -> str:
        """Chroma's id of the registry: made with it, and the same in every process."""
        return self._chroma.collection_id(self._registry)

    def meta(self) -> dict[str, Any]:
        """What the store wrote down about itself: `format`, `embedder`, `erasing`."""
        found = self._chroma.get(self._registry, ["store"])
        return dict(json.loads(found[0][2] or "{}")) if found else {}

    def set_meta(self, **changes: Any) -> None:
        """Change some of it; None removes."""
        meta = {k: v for k, v in {"format": FORMAT, **self.meta(), **changes}.items() if v is not None}
        record = Record("store", _POINT, json.dumps(meta, ensure_ascii=False), {"is_store": True})
        self._chroma.upsert(self._registry, [record])

    def find(self, owner: str) -> Place | None:
        """The owner's place; None for one that never wrote anything."""
        with self._lock:
            id = self._owners.get(owner)
            if id is not None and id in self._known:
                return self._known[id]
        if id is None:
            # An owner with a collection of its own is the usual case: then one call finds both.
            wanted = [_owner_id(owner), f"place-o-{_hash(owner)}"]
            rows = {i: m for i, m, _, _ in self._chroma.get(self._registry, wanted, ["metadatas"])}
            if wanted[0] not in rows:
                return None
            id = str(rows[wanted[0]]["place"])
            if f"place-{id}" in rows:
                return self._remember(owner, _place_of(rows[f"place-{id}"]))
        return self._remember(owner, self._place(id))

    def assign(self, owner: str, dims: int) -> Place:
        """A place for an owner that has none, for vectors of `dims` numbers. One thread at a time."""
        own = self._count_own() < self._most_own
        id = f"o-{_hash(owner)}" if own else f"b-{int(_hash(owner), 16) % BUCKETS}"
        known = self._chroma.get(self._registry, [f"place-{id}"], ["metadatas"])
        place = _place_of(known[0][1]) if known else Place(id, f"{self._prefix}-{id}", dims)
        self._chroma.create(place.collection)
        owner_record = Record(_owner_id(owner), _POINT, "", {"owner": owner, "place": id, "is_owner": True})
        self._chroma.upsert(self._registry, [owner_record, _record(place)])
        self._own = self._count_own() + own
        return self._remember(owner, place)

    def move(self, place: Place, dims: int, *, fill: Any) -> Place:
        """The same place with a new collection, which `fill(new)` has filled before anybody looks there."""
        new = Place(place.id, f"{self._prefix}-{place.id}-{secrets.token_hex(4)}", dims)
        self._chroma.create(new.collection)
        fill(new)
        self._chroma.upsert(self._registry, [_record(new)])
        with self._lock:
            self._known[new.id] = new
        return new

    def under(self, prefix: Sequence[str]) -> list[str]:
        """The owners that may have something under the prefix, in order."""
        if lies_in_one(prefix):
            owner = path(owner_of(prefix))
            return [owner] if self.find(owner) is not None else []
        rows = self._chroma.find(self._registry, {"is_owner": True}, ["metadatas"])
        owners = [str(m["owner"]) for _, m, _, _ in rows]
        return sorted(o for o in owners if _related(namespace(o), prefix))

    def all(self) -> list[Place]:
        """Every place."""
        rows = self._chroma.find(self._registry, {"is_place": True}, ["metadatas"])
        return sorted(_place_of(m) for _, m, _, _ in rows)

    def is_place(self, collection: str) -> bool:
        """Whether a collection of this name is one of ours, the registry excepted."""
        return collection.startswith((f"{self._prefix}-o-", f"{self._prefix}-b-"))

    def forget(self) -> None:
        """Look places up again: another process may have moved some."""
        with self._lock:
            self._owners.clear()
            self._known.clear()
            self._own = None

    def _place(self, id: str) -> Place:
        with self._lock:
            known = self._known.get(id)
        if known is not None:
            return known
        return _place_of(self._chroma.get(self._registry, [f"place-{id}"], ["metadatas"])[0][1])

    def _remember(self, owner: str, place: Place) -> Place:
        with self._lock:
            self._owners[owner] = place.id
            self._known[place.id] = place
            while len(self._owners) > _REMEMBERED:
                self._owners.popitem(last=False)
        return place

    def _count_own(self) -> int:
        if self._own is None:
            self._own = len(self._chroma.find(self._registry, {"$and": [{"is_place": True}, {"own": True}]}, []))
        return self._own


def _related(owner: Sequence[str], prefix: Sequence[str]) -> bool:
    """Whether one begins with the other."""
    short = min(len(owner), len(prefix))
    return tuple(owner[:short]) == tuple(prefix[:short])


def _hash(owner: str) -> str:
    return blake2b(owner.encode(), digest_size=12).hexdigest()


def _owner_id(owner: str) -> str:
    return f"owner-{blake2b(owner.encode(), digest_size=16).hexdigest()}"


def _record(place: Place) -> Record:
    metadata = {
        "place_id": place.id,
        "collection": place.collection,
        "dims": place.dims,
        "own": place.id.startswith("o-"),
        "is_place": True,
    }
    return Record(f"place-{place.id}", _POINT, "", metadata)


def _place_of(metadata: dict[str, Any]) -> Place:
    return Place(metadata["place_id"], metadata["collection"], metadata["dims"])
