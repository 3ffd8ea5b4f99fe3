"""An erasure's way to its end: the receipt is written with the deletion, and closed when every place was reached.

What a crash interrupts in between is in the owner's `receipts` namespace, pending, and `complete` goes on with it.
"""

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import ListNamespacesOp, MatchCondition, PutOp, SearchOp

from langmem_adapter.namespaces import Namespace, Reader
from langmem_adapter.ports import IO, Ask
from langmem_adapter.records import Place, Receipt

Threads = Ask[str, None]
"""Deletes a thread's checkpoints, by its id."""

BEYOND = (
    Place(name="caches", state="done", note="every process asks the store's version before it uses what it has read"),
    Place(name="work in flight", state="done", note="checked again at its commit: it brings nothing back"),
    Place(name="logs, traces, exports, backups", state="out_of_reach", note="yours: delete them too"),
)


def deletes_threads(checkpointer: BaseCheckpointSaver[Any]) -> Threads:
    """The deletion of a checkpointer's threads, also by one that can do it only one way, sync or async."""

    async def native(thread_id: str) -> None:
        try:
            await checkpointer.adelete_thread(thread_id)
        except NotImplementedError:  # SqliteSaver and PostgresSaver have no async methods
            await asyncio.to_thread(checkpointer.delete_thread, thread_id)

    return Ask(checkpointer.delete_thread, native)


def new_receipt_id() -> str:
    """An id for a receipt."""
    return f"r_{secrets.token_hex(10)}"


async def carry_out(
    io: IO,
    reader: Reader,
    puts: Sequence[PutOp],
    versions: Mapping[Namespace, int],
    receipt: Receipt,
    threads: Threads | None,
) -> Receipt:
    """The receipt of a deletion that is committed with it, after all its places were reached or tried.

    Conflict, and nothing done, if another writer came first.
    """
    files = Place(name="files", state="pending", count=len(puts), note="their bytes are still to be searched for")
    begun = receipt.change(places=(*receipt.places, files, _checkpoints(receipt, threads, "pending"), *BEYOND))
    if not puts and not receipt.threads:
        return _settled(begun, "done", "", threads)
    done = await io.erase_with([*puts, _put(reader, begun)], expect=versions)
    return await _finish(io, reader, begun, done.state, done.note, threads)


async def complete(io: IO, reader: Reader, threads: Threads | None) -> list[Receipt]:
    """Go on with the owner's erasures that were interrupted; their receipts."""
    ns = reader.space("receipts")
    results, _ = await io.read([SearchOp(ns, {"status": "pending"}, 1_000, refresh_ttl=False)])
    open_ = [Receipt.model_validate(i.value["receipt"]) for i in results[0] if i.namespace == ns]
    finished = []
    for receipt in open_:
        done = await io.erase_with([], expect={})
        finished.append(await _finish(io, reader, receipt, done.state, done.note, threads))
    return finished


async def open_owners(io: IO) -> list[Reader]:
    """Everybody with receipts in the store."""
    conditions = (MatchCondition("prefix", ("memories",)), MatchCondition("suffix", ("receipts",)))
    found: list[Reader] = []
    offset = 0
    while True:
        (page,), _ = await io.read([ListNamespacesOp(conditions, limit=1_000, offset=offset)])
        found += [reader for ns in page if (reader := Reader.of(tuple(ns))) is not None]
        offset += len(page)
        if len(page) < 1_000:
            return found


async def kept(io: IO, reader: Reader) -> list[Receipt]:
    """The owner's receipts, oldest first."""
    ns = reader.space("receipts")
    results, _ = await io.read([SearchOp(ns, None, 1_000, refresh_ttl=False)])
    return sorted(
        (Receipt.model_validate(i.value["receipt"]) for i in results[0] if i.namespace == ns),
        key=lambda r: (r.at, r.receipt_id),
    )


async def _finish(io: IO, reader: Reader, receipt: Receipt, files: str, note: str, threads: Threads | None) -> Receipt:
    if threads is not None and receipt.threads:
        await io.ask_all(threads, sorted(receipt.threads))
    settled = _settled(receipt, files, note, threads)
    # An owner of whom everything is gone keeps no receipt either: it would be the last thing to tell of him.
    last = settled.state == "done" and settled.action == "delete_all"
    gone = PutOp(reader.space("receipts"), receipt.receipt_id, None)
    await io.commit([gone if last else _put(reader, settled)], expect={})
    return settled


def _settled(receipt: Receipt, files: str, note: str, threads: Threads | None) -> Receipt:
    reached = {"files": {"state": files, "note": note}}
    places = (p.change(**reached[p.name]) if p.name in reached else p for p in receipt.places)
    return receipt.change(
        places=tuple(_checkpoints(receipt, threads, "done") if p.name == "checkpoints" else p for p in places)
    )


def _checkpoints(receipt: Receipt, threads: Threads | None, state: str) -> Place:
    if threads is None:
        return Place(name="checkpoints", state="out_of_reach", note="pass Memory(checkpointer=…) to reach them")
    return Place(name="checkpoints", state="done", count=len(receipt.threads)).change(state=state)


def _put(reader: Reader, receipt: Receipt) -> PutOp:
    value = {"status": receipt.state, "receipt": receipt.model_dump(mode="json")}
    return PutOp(reader.space("receipts"), receipt.receipt_id, value, index=False)
