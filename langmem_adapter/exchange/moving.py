"""A user's data out of one store, and as it was into another."""

import secrets
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Literal

from langgraph.store.base import PutOp

from langmem_adapter import arguments
from langmem_adapter.consent import KEY
from langmem_adapter.consolidation.rules import SEQS_A_TURN, turn_put
from langmem_adapter.errors import Conflict, InvalidInput
from langmem_adapter.exchange.archive import Export, Items, Manifest, pack, renamed
from langmem_adapter.exchange.report import Imported
from langmem_adapter.namespaces import Namespace, Reader
from langmem_adapter.paging import items_under, namespaces_under
from langmem_adapter.ports import IO, retried
from langmem_adapter.records import Turn
from langmem_adapter.topics import Topics

Progress = Callable[[int, int], None]
"""Told (done, total)."""

FILLER = "import-filler-"
"""Begins the ids of turns that are written and deleted again to raise a version; see `_raise`."""
BATCH = 500


async def export(io: IO, reader: Reader, at: datetime) -> Export:
    """Everything below the user's root in the store, all of one moment."""
    return pack(reader, await retried(io, partial(_snapshot, io, reader)), at)


async def _snapshot(io: IO, reader: Reader) -> Items:
    spaces = await namespaces_under(io, reader.root)
    _, before = await io.read([], versions=spaces)
    items = await _items(io, reader)
    _, after = await io.read([], versions=await namespaces_under(io, reader.root))
    if before != after:
        raise Conflict(f"the memories of user {reader.user_id!r} kept changing while they were exported; try again")
    return items


async def restore(
    io: IO,
    manifest: Manifest,
    items: Items,
    target: Reader,
    topics: Topics,
    now: datetime,
    progress: Progress | None,
    dry_run: bool,
) -> Imported:
    """Write what an export holds as the target's, in one commit; InvalidInput if he has other data."""
    arguments.function(progress, "progress", "a function of (done, total)")
    arguments.flag(dry_run, "dry_run")
    wanted = renamed(items, Reader(manifest.user_id, manifest.app_name), target)
    _consented(wanted, topics)
    if progress is not None:
        progress(0, len(wanted))
    missing = await retried(io, partial(_restore_once, io, wanted, target, now, dry_run))
    while missing is None:  # the store was made ready
        missing = await retried(io, partial(_restore_once, io, wanted, target, now, dry_run))
    if progress is not None:
        progress(len(wanted), len(wanted))
    return Imported(total=len(wanted), written=missing, already=len(wanted) - missing, dry_run=dry_run)


def _consented(items: Items, topics: Topics) -> None:
    for (ns, key), value in items.items():
        if ns[-1] == "facts" and not topics.consents(value["topic"]):
            raise InvalidInput(
                f"fact {key!r} is on topic {value['topic']!r}, to which there is no consent here; nothing was written"
            )


async def _restore_once(io: IO, wanted: Items, target: Reader, now: datetime, dry_run: bool) -> int | None:
    """How many items were missing and are written now; None if the version of the turns had to be raised first."""
    turns = target.space("turns")
    spaces = {*await namespaces_under(io, target.root), *(ns for ns, _ in wanted), turns, target.space("settings")}
    _, versions = await io.read([], versions=sorted(spaces))
    there = await _items(io, target)
    fillers = [at for at in there if at[0] == turns and at[1].startswith(FILLER)]
    own = (target.space("settings"), KEY)
    if own in there:  # a pause and what is forbidden here stay, also through a deletion of everything
        wanted = {at: value for at, value in wanted.items() if at != own}
    other = [at for at, value in there.items() if at not in [*fillers, own] and wanted.get(at) != value]
    if other:
        raise InvalidInput(
            f"user {target.user_id!r} already has {len(other)} other items here, such as {other[0][0][-1]} "
            f"{other[0][1]!r}; nothing was written. Import under another user_id, or delete_all first"
        )
    missing = [PutOp(ns, key, value, index=_index(ns)) for (ns, key), value in wanted.items() if (ns, key) not in there]
    if dry_run or not missing:
        return len(missing)
    ours = sum(put.namespace == turns for put in missing) + len(fillers)
    short = _place(wanted) - versions[turns] - ours
    if short > 0:
        await _raise(io, target, (short + 1) // 2, now)
        return None
    await io.commit([*missing, *(PutOp(ns, key, None) for ns, key in fillers)], expect=versions)
    return len(missing)


def _place(items: Items) -> int:
    """The version of the owner's turns from which new turns and records are behind all of these."""
    turns = [max(v.get("seq", 0), v.get("applied", 0)) for (ns, _), v in items.items() if ns[-1] == "turns"]
    facts = [v["seq"] // SEQS_A_TURN for (ns, _), v in items.items() if ns[-1] == "facts"]
    return int(max([0, *turns, *facts]))


async def _raise(io: IO, owner: Reader, count: int, now: datetime) -> None:
    """Raise the version of an owner's turns by `count` now, and again when these fillers are deleted.

    The order of turns and records is drawn from that version, and an export is younger than it looks: what was deleted
    or changed before it counted too.
    """
    ns = owner.space("turns")
    made = secrets.token_hex(4)
    for start in range(0, count, BATCH):
        fillers = (
            Turn(
                turn_id=f"{FILLER}{made}-{n}",
                user_id=owner.user_id,
                app_name=owner.app_name,
                at=now,
                digest="",
                source_id="import",
                status="done",
            )
            for n in range(start, min(start + BATCH, count))
        )
        await io.commit([turn_put(ns, turn) for turn in fillers], expect={})


def _index(ns: Namespace) -> list[str] | Literal[False]:
    return ["content"] if ns[-1] == "facts" else False


async def _items(io: IO, reader: Reader) -> Items:
    return {(i.namespace, i.key): i.value for i in await items_under(io, reader.root)}
