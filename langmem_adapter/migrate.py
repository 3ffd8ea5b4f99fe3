"""Moving: everything in one LangGraph store, copied into another, and checked.

SQLite → PostgreSQL is the path a growing user takes; any two `BaseStore`s will do. Between stores of ours an item's
times, time-to-live and own index setting are moved too; of other stores they are not known, so there the target sets
them. Run it while nobody writes to either, and no more once the target is in use.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

from langgraph.store.base import BaseStore, ListNamespacesOp, PutOp, SearchItem, SearchOp

from langmem_adapter.errors import StoreError
from langmem_adapter.namespaces import Namespace
from langmem_adapter.records import Frozen
from langmem_adapter.stores.base import Kept, MemoryStore

BATCH = 500
PAGE = 1_000


class Migration(Frozen):
    """What was moved."""

    namespaces: int
    items: int
    copied: int
    """Items written in this run; the others were there already, from an earlier one."""
    deleted: int
    """Items deleted in the target, because the source had them once and has not any more."""
    pending: str
    """Why the bytes of those may still be in the target's files ("": they are not); its `finish_erasure()` goes on."""
    digest: str
    """Of all namespaces, keys and values, in no order; equal in both stores."""


class _There(NamedTuple):
    """What a store has of an item."""

    hash: int
    kept: Kept | None


def migrate(source: BaseStore, target: BaseStore, *, progress: Callable[[int, int], None] | None = None) -> Migration:
    """Make the target's copy of every namespace of `source` equal to it, and compare number and hashes of both.

    Interrupted, it goes on where it was: items that are equal in both are not written again. Repeated, it also
    deletes what was deleted in the source meanwhile (if that is a store of ours, which knows what it once had); what
    the source never had a namespace for stays as it is. `progress(done, total)` counts namespaces.

    StoreError, naming the namespace, if the target does not take an item, does not give back what it was given, or
    was written to since by others.
    """
    spaces = [*_namespaces(source), *_emptied(source, target)]
    items = copied = digest = 0
    gone: list[PutOp] = []
    for done, namespace in enumerate(spaces):
        if progress is not None:
            progress(done, len(spaces))
        copy = _copy(source, target, namespace)
        items, copied, digest = items + copy.items, copied + copy.written, digest ^ copy.digest
        gone += copy.gone
        _go_on_from(source, target, namespace)
    pending = _delete(target, gone)
    if progress is not None:
        progress(len(spaces), len(spaces))
    return Migration(
        namespaces=len(spaces),
        items=items,
        copied=copied,
        deleted=len(gone),
        pending=pending,
        digest=f"{digest:032x}",
    )


class _Copy(NamedTuple):
    """What came of one namespace."""

    items: int
    written: int
    digest: int
    gone: list[PutOp]
    """Deletes of what the target has in excess, still to be done."""


def _copy(source: BaseStore, target: BaseStore, namespace: Namespace) -> _Copy:
    latest, kept = _kept(source, namespace)
    before, wanted, written = _listed(target, namespace), dict[str, _There](), 0
    for page in _pages(source, namespace):
        missing = []
        for item in page:
            wanted[item.key] = there = _There(_hash(item), kept.get(item.key))
            if not _same(before.get(item.key), there):
                missing.append(item)
        _not_in_use(namespace, latest, before, [i.key for i in missing])
        for at in range(0, len(missing), BATCH):
            _put(target, namespace, missing[at : at + BATCH], kept)
        written += len(missing)
    excess = sorted(before.keys() - wanted.keys())
    if excess and not isinstance(source, MemoryStore):
        raise StoreError(
            f"the target has {len(excess)} items in {namespace} that the source has not, like {excess[0]!r:.80}; "
            "they were deleted in the source meanwhile, or never came from there: delete them, or move them elsewhere"
        )
    _not_in_use(namespace, latest, before, excess)
    after = _listed(target, namespace)
    if after.keys() - excess != wanted.keys() or not all(_same(after[key], there) for key, there in wanted.items()):
        raise StoreError(f"the target does not give back what was written to {namespace}; nothing was deleted")
    digest = 0
    for there in wanted.values():
        digest ^= there.hash
    return _Copy(len(wanted), written, digest, [PutOp(namespace, key, None) for key in excess])


def _go_on_from(source: BaseStore, target: BaseStore, namespace: Namespace) -> None:
    """Bring the version of an owner's turns to the source's: the order of what is learnt next is drawn from it."""
    if namespace[0] != "memories" or namespace[-1] != "turns":
        return
    if not isinstance(source, MemoryStore) or not isinstance(target, MemoryStore):
        return
    wanted, found = (store.read([], versions=[namespace])[1][namespace] for store in (source, target))
    fillers = [f"filler-{i}" for i in range((wanted - found + 1) // 2)]
    values: tuple[dict[str, Any] | None, ...] = ({}, None)
    for value in values:  # a version grows by what is written and by what is deleted
        for at in range(0, len(fillers), BATCH):
            target.commit([PutOp(namespace, key, value, index=False) for key in fillers[at : at + BATCH]], expect={})


def _same(there: _There | None, wanted: _There) -> bool:
    if there is None or there.hash != wanted.hash:
        return False
    return None in (there.kept, wanted.kept) or there.kept == wanted.kept


def _not_in_use(namespace: Namespace, latest: int, there: Mapping[str, _There], keys: Sequence[str]) -> None:
    """StoreError if one of these items of the target is younger than whatever the source had here."""
    for key in keys:
        kept = there[key].kept if key in there else None
        if latest and kept is not None and kept.updated_at > latest:
            raise StoreError(
                f"the target was written to since something was moved to it: {key!r:.80} in {namespace} is younger "
                "than all that the source ever had there, and stays as it is; move to a new target, or delete it first"
            )


def _put(target: BaseStore, namespace: Namespace, items: Sequence[SearchItem], kept: Mapping[str, Kept]) -> None:
    puts = [_put_op(target, i, kept.get(i.key)) for i in items]
    try:
        if isinstance(target, MemoryStore) and kept:
            target.take_over(puts, [kept[i.key] for i in items])
        else:
            target.batch(puts)
    except (ValueError, StoreError) as e:
        raise StoreError(f"the target does not take what is in {namespace}: {e}") from e


def _put_op(target: BaseStore, item: SearchItem, kept: Kept | None) -> PutOp:
    if kept is None:
        return PutOp(item.namespace, item.key, item.value, _index(item.namespace))
    index = None if kept.paths is None else list(kept.paths) or False
    return PutOp(item.namespace, item.key, item.value, index, kept.ttl if target.supports_ttl else None)  # type: ignore[arg-type]


def _delete(target: BaseStore, gone: Sequence[PutOp]) -> str:
    """Why the bytes of what is deleted may be left; "" if they are not."""
    pending = ""
    for at in range(0, len(gone), BATCH):
        batch = gone[at : at + BATCH]
        if isinstance(target, MemoryStore):
            done = target.erase_with(batch, expect={})
            pending = pending or (done.note if done.state == "pending" else "")
        else:
            target.batch(batch)
    return pending


def _kept(store: BaseStore, namespace: Namespace) -> tuple[int, dict[str, Kept]]:
    return store.kept(namespace) if isinstance(store, MemoryStore) else (0, {})


def _listed(store: BaseStore, namespace: Namespace) -> dict[str, _There]:
    _, kept = _kept(store, namespace)
    return {i.key: _There(_hash(i), kept.get(i.key)) for page in _pages(store, namespace) for i in page}


def _emptied(source: BaseStore, target: BaseStore) -> list[Namespace]:
    """The target's namespaces from which everything was deleted in the source."""
    if not isinstance(source, MemoryStore):
        return []
    here = set(_namespaces(source))
    return [ns for ns in _namespaces(target) if ns not in here and source.kept(ns)[0]]


def _index(namespace: Namespace) -> list[str] | Literal[False] | None:
    # Our own items are indexed as `Memory` does; others as the target is configured.
    if namespace[0] != "memories":
        return None
    return ["content"] if namespace[-1] == "facts" else False


def _hash(item: SearchItem) -> int:
    text = json.dumps([item.namespace, item.key, item.value], sort_keys=True, ensure_ascii=True)
    return int.from_bytes(blake2b(text.encode(), digest_size=16).digest(), "big")


def _namespaces(store: BaseStore) -> Iterator[Namespace]:
    offset = 0
    while True:
        [page] = store.batch([ListNamespacesOp(limit=PAGE, offset=offset)])
        assert isinstance(page, list)
        yield from (tuple(ns) for ns in page)  # type: ignore[arg-type]
        if not page:
            return
        offset += len(page)  # a store may give shorter pages than it was asked for


def _pages(store: BaseStore, namespace: Namespace) -> Iterator[list[SearchItem]]:
    offset = 0
    while True:
        [page] = store.batch([SearchOp(namespace, None, PAGE, offset, refresh_ttl=False)])
        assert isinstance(page, list)
        yield [i for i in page if isinstance(i, SearchItem) and i.namespace == namespace]
        if not page:
            return
        offset += len(page)  # a store may give shorter pages than it was asked for
