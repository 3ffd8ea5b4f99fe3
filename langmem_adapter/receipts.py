"""An erasure's way to its end: the receipt is written with the deletion, and closed when every place was reached.

What a crash interrupts in between is in the owner's `receipts` namespace, pending, and `complete` goes on with it.
"""

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import PutOp, SearchOp

from langmem_adapter.namespaces import Namespace, Reader
from langmem_adapter.paging import items_in, namespaces_under
from langmem_adapter.ports import IO, Ask
from langmem_adapter.records import Place, Receipt


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """What a checkpointer can erase."""

    thread: Ask[str, None]
    """A whole thread, by its id."""
    messages: Ask[tuple[str, tuple[str, ...]], Any] | None
    """Single messages, by the id of their thread and theirs."""


BEYOND = (
    Place(name="caches", state="done", note="every process asks the store's version before it uses what it has read"),
    Place(name="work in flight", state="done", note="checked again at its commit: it brings nothing back"),
    Place(name="logs, traces, exports, backups", state="out_of_reach", note="yours: delete them too"),
)


def checkpoints_of(checkpointer: BaseCheckpointSaver[Any]) -> Checkpoints:
    """What a checkpointer can erase, also if it can do so only one way, sync or async."""

    async def native(thread_id: str) -> None:
        try:
            await checkpointer.adelete_thread(thread_id)
        except NotImplementedError:  # SqliteSaver and PostgresSaver have no async methods
            await asyncio.to_thread(checkpointer.delete_thread, thread_id)

    keeper: Any = checkpointer
    messages: Ask[tuple[str, tuple[str, ...]], Any] | None = None
    if hasattr(keeper, "erase_messages"):  # a SqliteCheckpointer
        messages = Ask(lambda q: keeper.erase_messages(*q), lambda q: keeper.aerase_messages(*q))
    return Checkpoints(Ask(checkpointer.delete_thread, native), messages)


def new_receipt_id() -> str:
    """An id for a receipt."""
    return f"r_{secrets.token_hex(10)}"


async def carry_out(
    io: IO,
    reader: Reader,
    puts: Sequence[PutOp],
    versions: Mapping[Namespace, int],
    receipt: Receipt,
    checkpoints: Checkpoints | None,
) -> Receipt:
    """The receipt of a deletion that is committed with it, after all its places were reached or tried.

    Conflict, and nothing done, if another writer came first.
    """
    files = Place(name="files", state="pending", count=len(puts), note="their bytes are still to be searched for")
    begun = receipt.change(places=(*receipt.places, files, _threads(receipt, checkpoints, "pending"), *BEYOND))
    if not puts and not receipt.threads and not receipt.messages:
        return _settled(begun, "done", "", _threads(receipt, checkpoints, "done"))
    done = await io.erase_with([*puts, _put(reader, begun)], expect=versions)
    return await _finish(io, reader, begun, done.state, done.note, checkpoints)


async def complete(io: IO, reader: Reader, checkpoints: Checkpoints | None) -> list[Receipt]:
    """Go on with the owner's erasures that were interrupted; their receipts."""
    ns = reader.space("receipts")
    results, _ = await io.read([SearchOp(ns, {"status": "pending"}, 1_000, refresh_ttl=False)])
    open_ = [Receipt.stored(i, "receipt") for i in results[0] if i.namespace == ns]
    finished = []
    for receipt in open_:
        if checkpoints is None and all(p.name == "checkpoints" for p in receipt.places if p.state == "pending"):
            continue  # whoever opens it with the checkpointer goes on
        done = await io.erase_with([], expect={})
        finished.append(await _finish(io, reader, receipt, done.state, done.note, checkpoints))
    return finished


async def open_owners(io: IO) -> list[Reader]:
    """Everybody with receipts in the store."""
    found = await namespaces_under(io, ("memories",), suffix="receipts")
    return [reader for ns in found if (reader := Reader.of(ns)) is not None]


async def kept(io: IO, reader: Reader) -> list[Receipt]:
    """The owner's receipts, oldest first."""
    ns = reader.space("receipts")
    found = [Receipt.stored(i, "receipt") for i in await items_in(io, ns)]
    return sorted(found, key=lambda r: (r.at, r.receipt_id))


async def _finish(
    io: IO, reader: Reader, receipt: Receipt, files: str, note: str, checkpoints: Checkpoints | None
) -> Receipt:
    failed = [] if checkpoints is None else await _erased(io, receipt, checkpoints)
    place = _threads(receipt, checkpoints, "pending" if failed else "done", ", ".join(sorted(set(failed))))
    if checkpoints is None and any(p.name == "checkpoints" and p.state == "pending" for p in receipt.places):
        place = place.change(state="pending", note="begun with a checkpointer: open the memory with it to go on")
    settled = _settled(receipt, files, note, place)
    # An owner of whom everything is gone keeps no receipt either: it would be the last thing to tell of him.
    last = settled.state == "done" and settled.action == "delete_all"
    gone = PutOp(reader.space("receipts"), receipt.receipt_id, None)
    await io.commit([gone if last else _put(reader, settled)], expect={})
    return settled


async def _erased(io: IO, receipt: Receipt, checkpoints: Checkpoints) -> list[str]:
    """Erase a receipt's threads and messages; what went wrong with those that could not be."""
    jobs: list[tuple[Ask[Any, Any], Any]] = [(checkpoints.thread, thread) for thread in sorted(receipt.threads)]
    if checkpoints.messages is not None:
        jobs += [(checkpoints.messages, (thread, ids)) for thread, ids in sorted(receipt.messages.items())]
    failed = []
    for ask, question in jobs:
        try:
            done = await io.ask(ask, question)
        except Exception as error:  # noqa: BLE001 - somebody else's database; the receipt stays pending, which is told
            failed.append(type(error).__name__)
        else:
            failed += ["still legible"] if getattr(done, "state", "done") == "pending" else []
    return failed


def _settled(receipt: Receipt, files: str, note: str, threads: Place) -> Receipt:
    reached = {"files": {"state": files, "note": note}}
    places = (p.change(**reached[p.name]) if p.name in reached else p for p in receipt.places)
    return receipt.change(places=tuple(threads if p.name == "checkpoints" else p for p in places))


def _threads(receipt: Receipt, checkpoints: Checkpoints | None, state: str, failed: str = "") -> Place:
    place = Place(name="checkpoints", state="out_of_reach", count=len(receipt.threads) + len(receipt.messages))
    if checkpoints is None:
        return place.change(note="pass Memory(checkpointer=…) to reach them")
    if receipt.action in ("delete", "maintain"):
        return place.change(note="what was said is still in its thread: see forget_source")
    if receipt.messages and checkpoints.messages is None:
        return place.change(
            note="single messages, which only a SqliteCheckpointer can erase, are still in their threads"
        )
    return place.change(state=state, note=failed)


def _put(reader: Reader, receipt: Receipt) -> PutOp:
    value = {"status": receipt.state, "receipt": receipt.model_dump(mode="json")}
    return PutOp(reader.space("receipts"), receipt.receipt_id, value, index=False)
