"""Erasing: by source, by memory, or all of a user. Bytes go, pointers are mended, a receipt says what was reached."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

from langgraph.store.base import ListNamespacesOp, MatchCondition, PutOp, SearchItem

from langmem_adapter.consolidation.apply import Change, Owner
from langmem_adapter.consolidation.step import Rules, counter, record_put, turn_put
from langmem_adapter.consolidation.undo import Names, undo, unlink
from langmem_adapter.errors import InvalidInput, MemoryNotFound
from langmem_adapter.namespaces import Namespace, Reader
from langmem_adapter.ports import IO, Ask, retried
from langmem_adapter.records import HistoryEntry, MemoryRecord, Place, Receipt, Turn
from langmem_adapter.retrieval import items_under

Previous = Literal["stay", "restore", "refuse"]


Threads = Ask[str, None]
"""Deletes a thread's checkpoints, by its id."""


async def forget_source(
    io: IO, reader: Reader, source_id: str, rules: Rules, threads: Threads | None = None
) -> Receipt:
    """Erase what rests only on the source; take it out of what rests on others too, and flag that.

    What an erased record had replaced is active again, and so is what the source had declared over. Its turns keep
    their ids and times only. Unknown sources give an empty receipt.
    """
    mine = await _threads_of(io, reader) & {source_id}  # before the turns that tell whose thread it is are gone
    receipt = await retried(io, lambda: _forget_once(io, reader, source_id, rules))
    return receipt.change(places=(*receipt.places, await _checkpoints(io, mine, threads), *_OUT_OF_REACH))


async def _forget_once(io: IO, reader: Reader, source_id: str, rules: Rules) -> Receipt:
    spaces, versions = await _spaces(io, reader.root)
    puts: list[PutOp] = []
    erased: list[str] = []
    flagged: list[str] = []
    for ns in spaces:
        if ns[-1] != "facts":
            continue
        records = [MemoryRecord.model_validate(i.value) for i in await _items(io, ns)]
        change = _change(reader, rules, versions, records)
        undone = undo(records, _names(source_id), change)
        blended = {r.memory_id for r in undone.blended}
        puts += [record_put(ns, _flagged(r, change) if r.memory_id in blended else r) for r in undone.changed]
        puts += [PutOp(ns, r.memory_id, None) for r in undone.gone]
        erased += [r.memory_id for r in undone.gone]
        flagged += sorted(blended)
    turns = await _turns_of(io, reader, source_id)
    summaries = await _summaries(io, reader, {source_id})
    puts += [*turns, *summaries]
    files = await _erased(io, puts, versions)
    places = (
        files,
        Place(name="records", state="done", count=len(erased)),
        Place(name="turns", state="done", count=len(turns)),
        Place(name="summaries", state="done", count=len(summaries)),
        Place(name="blended records", state="done", count=len(flagged), note="kept, marked needs_regeneration"),
    )
    return Receipt(
        source_id=source_id,
        user_id=reader.user_id,
        at=rules.clock(),
        erased=tuple(erased),
        flagged=tuple(flagged),
        places=places,
    )


async def delete(io: IO, reader: Reader, ids: Sequence[str], previous: Previous, rules: Rules) -> tuple[int, Place]:
    """How many records were erased — all of these, or (MemoryNotFound) none — and what became of their bytes.

    `previous`: what becomes of the record that an erased one had replaced. "stay": it stays history; "restore": it
    is active again if the slot is free; "refuse": InvalidInput if there is one.
    """
    return await retried(io, lambda: _delete_once(io, reader, tuple(dict.fromkeys(ids)), previous, rules))


async def _delete_once(
    io: IO, reader: Reader, ids: tuple[str, ...], previous: Previous, rules: Rules
) -> tuple[int, Place]:
    spaces, versions = await _spaces(io, reader.root)
    left = set(ids)
    puts: list[PutOp] = []
    sessions: set[str] = set()
    erased: set[str] = set()
    for ns in spaces:
        if ns[-1] != "facts" or not left:
            continue
        known = {i.key: MemoryRecord.model_validate(i.value) for i in await _items(io, ns)}
        named = [known[i] for i in ids if i in known]
        _check_previous(named, previous)
        gone = _with_twins(named, known)
        change = _change(reader, rules, versions, known.values())
        changed = unlink(known, gone, change, restore=previous == "restore")
        puts += [record_put(ns, r) for r in changed.values()]
        puts += [PutOp(ns, r.memory_id, None) for r in gone]
        erased |= {r.memory_id for r in gone}
        left -= {r.memory_id for r in gone}
        sessions |= {s.source_id for r in gone for s in r.sources}
    if left:
        raise MemoryNotFound(f"no memory {sorted(left)[0]!r} for user {reader.user_id!r}; nothing was deleted")
    puts += await _scrubbed_turns(io, reader, erased)
    puts += await _summaries(io, reader, sessions)  # they may tell what was deleted
    return len(ids), await _erased(io, puts, versions)


def _with_twins(named: Sequence[MemoryRecord], known: Mapping[str, MemoryRecord]) -> list[MemoryRecord]:
    """The named records and the challengers they were made of: those say the same and were never believed."""
    twins = [
        known[i] for r in named for i in r.supersedes if i in known and known[i].invalidated_at == known[i].created_at
    ]
    return list({r.memory_id: r for r in [*named, *twins]}.values())


async def delete_all(io: IO, reader: Reader, threads: Threads | None = None) -> tuple[int, Place]:
    """How many records were erased, and what became of the bytes; turns and all else below the user go too."""
    mine = await _threads_of(io, reader)
    done = await retried(io, lambda: _delete_all_once(io, reader))
    await _checkpoints(io, mine, threads)
    return done


async def _delete_all_once(io: IO, reader: Reader) -> tuple[int, Place]:
    _, versions = await _spaces(io, reader.root)
    items = await items_under(io, reader.root)
    files = await _erased(io, [PutOp(i.namespace, i.key, None) for i in items], versions)
    return sum(i.namespace[-1] == "facts" for i in items), files


_OUT_OF_REACH = (Place(name="backups, exports, logs", state="out_of_reach"),)


async def _threads_of(io: IO, reader: Reader) -> set[str]:
    """The threads in which the user spoke: nobody else's are deleted."""
    items = await items_under(io, reader.space("turns"))
    return {i.value["session_id"] for i in items if i.value.get("session_id")}


async def _checkpoints(io: IO, mine: Collection[str], threads: Threads | None) -> Place:
    if threads is None:
        return Place(name="checkpoints", state="out_of_reach", note="pass Memory(checkpointer=…) to reach them")
    await io.ask_all(threads, sorted(mine))
    return Place(name="checkpoints", state="done", count=len(mine))


async def _erased(io: IO, puts: Sequence[PutOp], versions: Mapping[Namespace, int]) -> Place:
    """The commit of an erasure, and what became of the old bytes."""
    if not puts:
        return Place(name="files", state="done")
    done = await io.erase_with(puts, expect=versions)
    return Place(name="files", state=done.state, count=len(puts), note=done.note)


async def _spaces(io: IO, root: Namespace) -> tuple[list[Namespace], dict[Namespace, int]]:
    """All of the user's namespaces with their versions, read before the data they are to guard."""
    condition = MatchCondition("prefix", root)
    found: list[Namespace] = []
    while True:
        (page,), _ = await io.read([ListNamespacesOp((condition,), limit=1_000, offset=len(found))])
        found += [tuple(ns) for ns in page if tuple(ns[: len(root)]) == root]
        if len(page) < 1_000:
            break
    _, versions = await io.read([], versions=tuple(found))
    return found, versions


async def _items(io: IO, ns: Namespace) -> list[SearchItem]:
    return [i for i in await items_under(io, ns) if i.namespace == ns]


def _names(source_id: str) -> Names:
    return lambda found, message_id: source_id in (found, message_id)


def _change(reader: Reader, rules: Rules, versions: Mapping[Namespace, int], known: Iterable[MemoryRecord]) -> Change:
    turns = reader.space("turns")
    numbers = counter(versions.get(turns, 0), known)
    owner = Owner(reader.user_id, reader.app_name)
    return Change(owner, rules.clock(), rules.policy, numbers, exclusive=rules.exclusive)


def _flagged(record: MemoryRecord, change: Change) -> MemoryRecord:
    entry = HistoryEntry(at=change.now, action="FLAG", reason="source_forgotten")
    return record.change(needs_regeneration=True, updated_at=change.now, history=(*record.history, entry))


def _check_previous(gone: Sequence[MemoryRecord], previous: Previous) -> None:
    replaced = [r for r in gone if r.supersedes]
    if previous == "refuse" and replaced:
        raise InvalidInput(
            f"memory {replaced[0].memory_id!r} replaced {list(replaced[0].supersedes)}; "
            "delete with previous='stay' or previous='restore'"
        )


async def _turns(io: IO, reader: Reader) -> tuple[Namespace, list[Turn]]:
    ns = reader.space("turns")
    return ns, [Turn.model_validate(i.value) for i in await _items(io, ns)]


async def _turns_of(io: IO, reader: Reader, source_id: str) -> list[PutOp]:
    ns, turns = await _turns(io, reader)
    mine = [t for t in turns if source_id == t.source_id or source_id in {m.id for m in t.messages}]
    return [turn_put(ns, _tombstone(t)) for t in mine if t.digest]


def _tombstone(turn: Turn) -> Turn:
    """What is left of an erased turn: its id and times, so that delivering it again does not teach it again."""
    return Turn(
        turn_id=turn.turn_id,
        seq=turn.seq,
        user_id=turn.user_id,
        app_name=turn.app_name,
        scope=turn.scope,
        session_id=turn.session_id,
        agent_id=turn.agent_id,
        at=turn.at,
        digest="",
        anonymous=turn.anonymous,
        source_id=turn.source_id,
        status="done",
    )


async def _summaries(io: IO, reader: Reader, sessions: Collection[str]) -> list[PutOp]:
    """The deletion of these sessions' summaries."""
    found = await items_under(io, reader.root, {"kind": "summary"})
    return [PutOp(i.namespace, i.key, None) for i in found if i.value.get("session_id") in sessions]


async def _scrubbed_turns(io: IO, reader: Reader, gone: Collection[str]) -> list[PutOp]:
    """The turns that taught the gone records, without their words: texts, candidates and operations."""
    ns, turns = await _turns(io, reader)
    found: dict[str, list[int]] = defaultdict(list)
    for turn in turns:
        for i, operation in enumerate(turn.operations):
            if operation.memory_id in gone or operation.target_id in gone:
                found[turn.turn_id].append(i)
    return [turn_put(ns, _scrubbed(t, set(found[t.turn_id]))) for t in turns if t.turn_id in found]


def _scrubbed(turn: Turn, at: set[int]) -> Turn:
    # Candidates and operations pair up by position.
    return turn.change(
        messages=tuple(m.change(text="") for m in turn.messages),
        candidates=tuple(c for i, c in enumerate(turn.candidates) if i not in at),
        operations=tuple(o for i, o in enumerate(turn.operations) if i not in at),
    )
