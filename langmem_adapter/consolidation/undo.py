"""Takes a source back out of records: what rested only on it goes, what it had displaced comes back. Pure.

Used when a message is edited and when a source is forgotten; what "goes" means is the caller's choice.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from langmem_adapter.consolidation.apply import Change, Key, key, stands_on, succession, supports
from langmem_adapter.records import HistoryEntry, MemoryRecord, Source


@dataclass(frozen=True, slots=True)
class Undone:
    """Records by what happened to them."""

    gone: tuple[MemoryRecord, ...]
    """Those that nothing else supports, as they were."""
    blended: tuple[MemoryRecord, ...]
    """Those that rest on other sources too, without the source."""
    changed: tuple[MemoryRecord, ...]
    """All records to write: blended, restored, relinked and newly promoted ones."""


Names = Callable[[str | None, str | None], bool]
"""Whether a (source id, message id) is what is taken back."""


def undo(records: Iterable[MemoryRecord], names: Names, change: Change) -> Undone:
    """What the owner's records are without the sources that `names` names.

    `records`: all that name such a source, and all that are linked to those.
    """

    def is_source(source: Source) -> bool:
        return names(source.source_id, source.message_id)

    known = {r.memory_id: r for r in records}
    gone = [r for r in known.values() if any(map(is_source, r.sources)) and all(map(is_source, supports(r)))]
    going = {r.memory_id for r in gone}
    blended = []
    for record in known.values():
        rest = tuple(s for s in record.sources if not is_source(s))
        if len(rest) < len(record.sources) and record.memory_id not in going:
            blended.append(record.change(sources=rest, confidence=change.policy.confidence(rest)))
    after = known | {r.memory_id: r for r in blended}
    changed = {r.memory_id: r for r in blended} | unlink(after, gone, change, restore=True)
    view = {i: r for i, r in (after | changed).items() if i not in going}
    for record in sorted(view.values(), key=lambda r: -r.seq):  # what the source had declared over
        if record.status == "retracted" and any(names(h.source_id, h.message_id) for h in _endings(record)):
            view[record.memory_id] = _revived(record, view, change)
    changed |= {i: r for i, r in view.items() if (after | changed).get(i) is not r}
    return Undone(tuple(gone), tuple(blended), tuple(changed.values()))


def _endings(record: MemoryRecord) -> list[HistoryEntry]:
    return [h for h in record.history if h.action == "RETRACT"][-1:]


def unlink(
    known: Mapping[str, MemoryRecord], gone: Iterable[MemoryRecord], change: Change, *, restore: bool
) -> dict[str, MemoryRecord]:
    """The records that change when others go, by id: no pointer dangles, a freed slot finds its heir.

    With `restore` the record that a gone one had replaced is active again, if the slot is free; then the
    challengers of a gone record, if any, contest it or succeed.
    """
    going = {r.memory_id: r for r in gone}
    view = {i: r for i, r in known.items() if i not in going}
    freed: list[str] = []
    for i, other in list(view.items()):
        last = _last(other, going)
        if last is not None:
            view[i] = other.change(superseded_by=last.superseded_by)
            if last.status == "active" and other.status == "superseded":
                freed.append(i)
    for record in sorted(going.values(), key=lambda r: -r.seq):  # newest first: chains collapse from their end
        view |= {i: _relinked(other, record) for i, other in view.items()}
    if restore:
        for i in sorted(freed, key=lambda i: -view[i].seq):
            if view[i].superseded_by is None:
                view[i] = _revived(view[i], view, change)
    for record in going.values():
        _succeed(view, record, change)
    left = {(key(s), s.excerpt) for r in view.values() for s in supports(r)}
    silent = {key(s) for r in going.values() for s in supports(r)}
    for i, record in view.items():
        view[i] = _unquoted(record, silent, left)
    return {i: r for i, r in view.items() if known.get(i) is not r}


def _unquoted(record: MemoryRecord, gone: Collection[Key], left: Collection[tuple[Key, str]]) -> MemoryRecord:
    """The record without the words that it quotes of records that are gone: its lineage still says who had spoken.

    `gone`: whom those rested on; `left`: what others that rest on them quote. Words are not enough to tell: in a record
    that was decided again, those of an erased candidate are blank, and in one that quotes it they may stand still.
    """

    def quoted(s: Source) -> bool:
        return s.role == "lineage" and s.excerpt != "" and key(s) in gone and (key(s), s.excerpt) not in left

    if not any(map(quoted, record.sources)):
        return record
    return record.change(sources=tuple(s.change(excerpt="") if quoted(s) else s for s in record.sources))


def _revived(record: MemoryRecord, view: dict[str, MemoryRecord], change: Change) -> MemoryRecord:
    """The record, believed again if its slot is free; else replaced by who holds it."""
    if record.contests is not None and record.contests in view:
        return record.change(superseded_by=None, status="contested", invalidated_at=None)
    holder = _holder(record, view) if change.exclusive(record) else None
    if holder is None:
        return record.change(superseded_by=None, status="active", invalidated_at=None, valid_to=None, contests=None)
    view[holder.memory_id] = holder.change(supersedes=(*holder.supersedes, record.memory_id))
    # It was believed until then, as nothing had ended it before.
    until = max(record.created_at, holder.created_at)
    return change.superseded(record.change(valid_to=None), holder, "slot_taken").change(invalidated_at=until)


def _holder(record: MemoryRecord, view: Mapping[str, MemoryRecord]) -> MemoryRecord | None:
    held = [
        r
        for r in view.values()
        if r.status == "active" and r.memory_id != record.memory_id and stands_on(r) == stands_on(record)
    ]
    return max(held, key=lambda r: r.seq, default=None)


def _relinked(other: MemoryRecord, gone: MemoryRecord) -> MemoryRecord:
    out = other
    if gone.memory_id in out.contested_by:
        out = out.change(contested_by=tuple(i for i in out.contested_by if i != gone.memory_id))
    if gone.memory_id in out.supersedes:
        at = out.supersedes.index(gone.memory_id)
        links = (*out.supersedes[:at], *gone.supersedes, *out.supersedes[at + 1 :])
        out = out.change(supersedes=tuple(dict.fromkeys(links)))
    return out


def _last(record: MemoryRecord, going: Mapping[str, MemoryRecord]) -> MemoryRecord | None:
    """The last of the records that go with which its line of successors begins; None if it begins with none."""
    last = None
    while record.superseded_by is not None and record.superseded_by in going:
        record = last = going[record.superseded_by]
    return last


def _succeed(view: dict[str, MemoryRecord], gone: MemoryRecord, change: Change) -> None:
    heirs = [r for r in view.values() if r.contests == gone.memory_id]
    open_ = [r for r in heirs if r.status == "contested"]
    for settled in (r for r in heirs if r.status != "contested"):
        view[settled.memory_id] = settled.change(contests=None)
    if not open_:
        return
    heir = _holder(gone, view)
    if heir is not None:  # it was restored: the contest goes on against it
        view[heir.memory_id] = heir.change(contested_by=tuple(r.memory_id for r in open_))
        view |= {r.memory_id: r.change(contests=heir.memory_id) for r in open_}
    else:
        view |= {r.memory_id: r for r in succession(open_, change)}
