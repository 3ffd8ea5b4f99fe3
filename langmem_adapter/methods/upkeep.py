"""Keeping memories up, on demand and every so many new ones."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from pydantic import ValidationError

from langmem_adapter import arguments, maintenance
from langmem_adapter.errors import MemoryAdapterError
from langmem_adapter.methods.base import Base, twins
from langmem_adapter.namespaces import Reader
from langmem_adapter.ports import IO, Ask
from langmem_adapter.records import Maintenance


class Upkeep(Base):
    """`maintain`."""

    _every: int | None
    _due: set[Reader]
    _retention: timedelta
    _checkpoints: Ask[None, Any] | None

    async def _maintain(
        self,
        io: IO,
        user_id: str | None = None,
        *,
        app_name: str = "default",
        retention_days: float | None = None,
        floor: float = maintenance.FLOOR,
        alert_at: int = maintenance.ALERT_AT,
        progress: Callable[[int, int], None] | None = None,
    ) -> Maintenance:
        """Keep memories up: what was done, by record, and why. Of one user, or (None) of all of an application.

        Memories that expired `retention_days` ago (default: the Memory's) or whose decayed confidence is below
        `floor` are erased, but never what a person or a system of record said on a sensitive topic; near-
        identical ones become one; inferred ones give way to newer explicit ones; what a crash left half done is
        completed, erasures too; the texts of turns go that no memory needs. Event "size" when an owner passes
        `alert_at` records, once until there were fewer again. With all users a `SqliteCheckpointer` is
        maintained too, if nobody is under a hold. Safe beside live traffic, and again after an interruption.
        `progress(done, total)` counts owners. Under a legal hold nothing is deleted. Conflict if other writers
        won fifty times; with all users that one is named in `failed`, and the others go on.
        """
        arguments.function(progress, "progress", "a function of (done, total)")
        retention = self._retention if retention_days is None else arguments.days(retention_days, "retention_days")
        limits = maintenance.Limits(retention, arguments.number(floor, "floor"), arguments.count(alert_at, "alert_at"))
        alone = user_id is not None
        readers = [Reader(user_id, app_name)] if user_id is not None else await maintenance.owners(io, app_name)
        report = Maintenance(at=self._rules.clock(), owners=len(readers))
        for done, reader in enumerate(readers):
            if progress is not None:
                progress(done, len(readers))
            try:
                report = maintenance.with_owner(report, reader, await self._kept_up(io, reader, limits))
            except (MemoryAdapterError, ValidationError) as error:
                if alone:
                    raise
                self.report("maintenance_failed", user_id=reader.user_id, error=type(error).__name__)
                report = report.change(failed={**report.failed, reader.user_id: type(error).__name__})
        if progress is not None:
            progress(len(readers), len(readers))
        if self._checkpoints is not None and not alone and not report.held:  # it does not know whose threads are whose
            removed = await io.ask(self._checkpoints, None)
            report = report.change(checkpoints=removed.threads + removed.checkpoints)
        return report

    async def _kept_up(self, io: IO, reader: Reader, limits: maintenance.Limits) -> maintenance.Kept:
        kept = await self._apart(io, lambda io: maintenance.keep_up(io, reader, self._rules, limits, self._threads))
        if kept.pending:
            self.report("erasure_pending", user_id=reader.user_id)
        if any(u.action == "alert" for u in kept.done):
            self.report("size", user_id=reader.user_id, records=kept.size, alert_at=limits.alert_at)
        return kept

    def _count_written(self, owner: Reader, version: int, count: int) -> None:
        """Note that an owner's upkeep is due: its records' version, which counts what is written, passed a multiple."""
        if self._every is not None:
            # All of an owner's records are read: of thousands the less often, so that a turn's share stays the same.
            every = self._every << (version // (20 * self._every)).bit_length()
            if (version + count) // every > version // every:
                self._due.add(owner)

    async def _keep_up(self, io: IO) -> None:
        """The upkeep that is due; a failure is told, and does not concern the turn that it came after."""
        while self._due:
            reader = self._due.pop()
            limits = maintenance.Limits(self._retention, maintenance.FLOOR, maintenance.ALERT_AT)
            try:
                kept = await self._kept_up(io, reader, limits)
            except Exception as error:  # noqa: BLE001 - see above
                self.report("maintenance_failed", user_id=reader.user_id, error=type(error).__name__)
            else:
                self._tell("maintained", {"user_id": reader.user_id, "done": kept.done})

    maintain, amaintain = twins(_maintain)
