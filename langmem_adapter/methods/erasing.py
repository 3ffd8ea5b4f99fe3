"""Erasing, and what the guard held back."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from langmem_adapter import arguments, forgetting, quarantine, receipts
from langmem_adapter.backlog import Backlog
from langmem_adapter.consent import not_on_hold, settings_of
from langmem_adapter.consolidation.rules import reader_of
from langmem_adapter.errors import InvalidInput
from langmem_adapter.forgetting import Previous
from langmem_adapter.learning import Learner
from langmem_adapter.methods.base import twins
from langmem_adapter.methods.reading import Reading
from langmem_adapter.methods.upkeep import Upkeep
from langmem_adapter.namespaces import Reader
from langmem_adapter.paging import items_under
from langmem_adapter.ports import IO, Ask
from langmem_adapter.records import MemoryRecord, Operation, Quarantined, Receipt, Turn

ERASING = 2.0
"""Seconds that `delete` by a filter waits for what was said during an outage."""


class Erasing(Reading, Upkeep):
    """`delete`, `delete_all`, `forget_source`, `receipts`, `quarantined`, `release`, `reject`."""

    _learner: Learner
    _backlog: Backlog

    async def _delete(
        self,
        io: IO,
        memory_ids: str | Sequence[str] | None = None,
        *,
        user_id: str | None = None,
        filter: Mapping[str, Any] | None = None,
        previous: Previous = "stay",
        app_name: str = "default",
        scope: Literal["user", "app"] = "user",
    ) -> int:
        """Erase one memory or several; how many. All, or (MemoryNotFound) none.

        `memory_ids`: an id or a list of them; or `filter`: all whose fields match, as in a LangGraph store's search
        (`{"topic": "diet"}`, `{"confidence": {"$lt": 0.5}}`). `scope="app"` (without `user_id`): an administrator
        erases application facts. OnHold if nothing may be erased.
        `previous`: what becomes of the memory that an erased one had replaced: "stay" history, "restore" it if its
        slot is free, or "refuse" (InvalidInput) to erase one that replaced another.
        """
        owner = arguments.owner(user_id, app_name, scope)
        if (memory_ids is None) == (not filter):
            raise InvalidInput(
                f"name either memory_ids or a filter, got {memory_ids!r:.80} and {filter!r:.80}; see delete_all"
            )
        arguments.instance(filter, Mapping, "filter", "a mapping of a memory's fields, such as {'topic': 'diet'}")
        if filter:
            # What waits for the store is to be found too, if the store takes it now.
            await io.ask(Ask(lambda _: self._backlog.settled({owner}, ERASING)), None)
            found = await items_under(io, owner.root, dict(filter))
            ids = [i.key for i in found if i.namespace[-1] == "facts"]
            if not ids:
                return 0
        else:
            ids = arguments.strings(memory_ids or "", "memory_ids")
        if not all(ids):
            raise InvalidInput(f"memory ids must be non-empty strings, got {memory_ids!r:.120}")
        if previous not in ("stay", "restore", "refuse"):
            raise InvalidInput(f"previous must be 'stay', 'restore' or 'refuse', got {previous!r}")
        self._erased(
            await self._apart(io, lambda io: forgetting.delete(io, owner, ids, previous, self._rules, self._threads))
        )
        return len(set(ids))

    async def _delete_all(self, io: IO, *, user_id: str, app_name: str = "default") -> int:
        """Erase everything of one user: memories of every scope and status, turns; how many memories.

        An empty or blank id raises MissingUser; `%` and `*` are ids like any other.
        """
        owner = Reader(user_id, app_name)
        await self._unsay(io, owner, lambda turn: None)
        receipt = await self._apart(io, lambda io: forgetting.delete_all(io, owner, self._rules, self._threads))
        return len(self._erased(receipt).erased)

    async def _forget_source(
        self,
        io: IO,
        source_id: str,
        *,
        user_id: str | None = None,
        app_name: str = "default",
        scope: Literal["user", "app"] = "user",
        reextract: bool = False,
        dry_run: bool = False,
    ) -> Receipt:
        """Erase what rests only on a source (a thread, record, tool or message id); decide again what it had a part in.

        Afterwards all is as if the source had never spoken: what it had replaced is believed again, its support is
        taken back, its contests are over. What a person corrected or deleted stays so. Memories that it had no part in
        keep every byte. No model is asked: facts and verdicts were recorded; with `reextract` the extractor reads the
        remaining turns again. `scope="app"` (without `user_id`): of application facts. `dry_run`: only say what would
        be done. The receipt says what was erased, rebuilt, and what is out of reach. OnHold if nothing may be erased.
        """
        arguments.source_id(source_id, required=True)
        arguments.flag(dry_run, "dry_run")
        arguments.flag(reextract, "reextract")
        owner = arguments.owner(user_id, app_name, scope)
        if not dry_run:
            await self._unsay(io, owner, lambda turn: forgetting.unsaid_by(turn, source_id))
        extract = self._learner.candidates if reextract else None
        receipt = await self._apart(
            io,
            lambda io: forgetting.forget_source(
                io, owner, source_id, self._rules, self._threads, dry_run=dry_run, extract=extract
            ),
        )
        return receipt if dry_run else self._erased(receipt)

    async def _receipts(self, io: IO, *, user_id: str, app_name: str = "default") -> list[Receipt]:
        """The receipts of the user's erasures, oldest first: ids, counts and times."""
        return await receipts.kept(io, Reader(user_id, app_name))

    async def _quarantined(
        self,
        io: IO,
        *,
        user_id: str | None = None,
        app_name: str = "default",
        scope: Literal["user", "app"] = "user",
    ) -> list[Quarantined]:
        """What the guard held back of a user's memories, with the reasons, in order of arrival.

        Nothing of it is recalled, injected, compared or shown to a model. `scope="app"`: of application facts.
        """
        owner = arguments.owner(user_id, app_name, scope)
        items = await items_under(io, owner.root, {"status": "quarantined"})
        records = [MemoryRecord.stored(i) for i in items if i.namespace[-1] == "facts"]
        return [quarantine.quarantined(r) for r in sorted(records, key=lambda r: (r.seq, r.memory_id))]

    async def _release(
        self,
        io: IO,
        memory_id: str,
        *,
        user_id: str | None = None,
        app_name: str = "default",
        scope: Literal["user", "app"] = "user",
    ) -> Operation:
        """Let a memory out of quarantine: it is consolidated like the original statement, with its source and trust.

        The operation says what became of it; the quarantined record is gone then. NOOP, and it stays, while the user
        has paused, if its topic is one without consent or if it is never to be remembered. MemoryNotFound for an id
        that is not the user's; InvalidInput if it is not in quarantine.
        """
        _, record = await self._require(io, memory_id, arguments.owner(user_id, app_name, scope), expired=True)
        reasons = quarantine.quarantined(record).reasons
        operation = await quarantine.release(io, record, self._rules)
        if operation.reason not in quarantine.STAYS:
            became = {"became": operation.memory_id, "action": operation.action}
            self._tell("released", {"user_id": user_id, "memory_id": memory_id, "reasons": reasons, **became})
        await self._keep_up(io)
        return operation

    async def _reject(
        self,
        io: IO,
        memory_id: str,
        *,
        user_id: str | None = None,
        app_name: str = "default",
        scope: Literal["user", "app"] = "user",
    ) -> None:
        """Erase a memory that is in quarantine, with its words in the turn that it came from.

        MemoryNotFound for an id that is not the user's; InvalidInput if it is not in quarantine; OnHold if nothing may
        be erased.
        """
        _, record = await self._require(io, memory_id, arguments.owner(user_id, app_name, scope), expired=True)
        quarantine.quarantined(record)
        await self._delete(io, memory_id, user_id=user_id, app_name=app_name, scope=scope)

    async def _unsay(self, io: IO, owner: Reader, change: Callable[[Turn], Turn | None]) -> None:
        """Change (None: drop) the owner's turns that wait for the store in this process; OnHold if that may not be."""
        not_on_hold(await settings_of(io, owner), owner)

        def left(turn: Turn) -> Turn | None:
            return change(turn) if reader_of(turn) == owner else turn

        # Asked, not called: what is being written at this moment is waited for.
        await io.ask(Ask(lambda _: self._backlog.forget(left)), None)

    def _erased(self, receipt: Receipt) -> Receipt:
        for place in receipt.places:
            if place.state == "pending":  # an erasure that is not finished must be loud
                self.report("erasure_pending", place=place.name, note=place.note, receipt_id=receipt.receipt_id)
        self._tell("erased", {"receipt": receipt})
        return receipt

    delete, adelete = twins(_delete)
    delete_all, adelete_all = twins(_delete_all)
    forget_source, aforget_source = twins(_forget_source)
    receipts, areceipts = twins(_receipts)
    quarantined, aquarantined = twins(_quarantined)
    release, arelease = twins(_release)
    reject, areject = twins(_reject)
