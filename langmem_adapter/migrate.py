"""Moving: everything in one LangGraph store, copied into another, and checked.

SQLite → PostgreSQL is the path a growing user takes; any two `BaseStore`s will do. Run it while nobody writes to the
source. What a store keeps outside its items stays behind: the store's own timestamps (a record's are in its value)
and time-to-live.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import Literal

from langgraph.store.base import BaseStore, GetOp, Item, ListNamespacesOp, PutOp, SearchItem, SearchOp

from langmem_adapter.errors import StoreError
from langmem_adapter.namespaces import Namespace
from langmem_adapter.records import Frozen

BATCH = 500
PAGE = 1_000


class Migration(Frozen):
    """What was moved."""

    namespaces: int
    items: int
    copied: int
    """Items written in this run; the others were there already, from a run that was interrupted."""
    digest: str
    """Of all namespaces, keys and values, in no order; equal in both stores."""


def migrate(source: BaseStore, target: BaseStore, *, progress: Callable[[int, int], None] | None = None) -> Migration:
    """Copy every item of `source` into `target`, and compare the two afterwards.

    Interrupted, it goes on where it was: items that are equal in both are not written again. `progress(done, total)`
    counts namespaces. StoreError, naming the namespace, if the target does not give back what it was given.
    """
    spaces = list(_namespaces(source))
    items = copied = 0
    digest = 0
    for done, namespace in enumerate(spaces):
        if progress is not None:
            progress(done, len(spaces))
        count, written, sum_ = _copy(source, target, namespace)
        items, copied, digest = items + count, copied + written, digest ^ sum_
    if progress is not None:
        progress(len(spaces), len(spaces))
    return Migration(namespaces=len(spaces), items=items, copied=copied, digest=f"{digest:032x}")


def _copy(source: BaseStore, target: BaseStore, namespace: Namespace) -> tuple[int, int, int]:
    count = copied = digest = 0
    for page in _pages(source, namespace):
        for at in range(0, len(page), BATCH):
            batch = page[at : at + BATCH]
            there = _get(target, batch)
            missing = [i for i, t in zip(batch, there, strict=True) if t is None or _hash(t) != _hash(i)]
            if missing:
                target.batch([PutOp(i.namespace, i.key, i.value, index=_index(namespace)) for i in missing])
            if [None if t is None else _hash(t) for t in _get(target, batch)] != [_hash(i) for i in batch]:
                raise StoreError(f"the target does not give back what was written to {namespace}; nothing was deleted")
            copied += len(missing)
            count += len(batch)
            for item in batch:
                digest ^= _hash(item)
    return count, copied, digest


def _get(store: BaseStore, items: Sequence[Item]) -> list[Item | None]:
    found = store.batch([GetOp(i.namespace, i.key, refresh_ttl=False) for i in items])
    return [i if isinstance(i, Item) else None for i in found]


def _index(namespace: Namespace) -> list[str] | Literal[False] | None:
    # Our own items are indexed as `Memory` does; others as the target is configured.
    if namespace[0] != "memories":
        return None
    return ["content"] if namespace[-1] == "facts" else False


def _hash(item: Item) -> int:
    text = json.dumps([item.namespace, item.key, item.value], sort_keys=True, ensure_ascii=True)
    return int.from_bytes(blake2b(text.encode(), digest_size=16).digest(), "big")


def _namespaces(store: BaseStore) -> Iterator[Namespace]:
    offset = 0
    while True:
        [page] = store.batch([ListNamespacesOp(limit=PAGE, offset=offset)])
        assert isinstance(page, list)
        yield from (tuple(ns) for ns in page)  # type: ignore[arg-type]
        if len(page) < PAGE:
            return
        offset += PAGE


def _pages(store: BaseStore, namespace: Namespace) -> Iterator[list[SearchItem]]:
    offset = 0
    while True:
        [page] = store.batch([SearchOp(namespace, None, PAGE, offset, refresh_ttl=False)])
        assert isinstance(page, list)
        yield [i for i in page if isinstance(i, SearchItem) and i.namespace == namespace]
        if len(page) < PAGE:
            return
        offset += PAGE
