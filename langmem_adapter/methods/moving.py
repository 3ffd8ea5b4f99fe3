"""Taking memories along, and taking over those of other systems."""

import os
from collections.abc import Iterable
from typing import Any

from langgraph.store.base import BaseStore

from langmem_adapter.exchange import moving
from langmem_adapter.exchange.archive import Export, unpack
from langmem_adapter.exchange.files import lines_of
from langmem_adapter.exchange.items import import_items
from langmem_adapter.exchange.lines import import_lines
from langmem_adapter.exchange.mem0 import import_mem0
from langmem_adapter.exchange.moving import Progress
from langmem_adapter.exchange.report import Imported
from langmem_adapter.methods.base import twins
from langmem_adapter.methods.queue import Queue
from langmem_adapter.namespaces import Reader
from langmem_adapter.ports import IO, worked
from langmem_adapter.records import SourceType


class Moving(Queue):
    """`export`, `import_`, `import_mem0`, `import_items`, `import_lines`."""

    async def _export(self, io: IO, *, user_id: str, app_name: str = "default") -> Export:
        """Everything that is stored under the user's name: `save(path)` writes it as JSON Lines, a manifest first.

        Facts of every scope and status with their history, turns (queued ones too), summaries, receipts and settings,
        as of one moment. Not in it: what belongs to the application, and the checkpointer's threads.
        """
        return await moving.export(io, Reader(user_id, app_name), self._rules.clock())

    async def _import_(
        self,
        io: IO,
        source: Export | str | os.PathLike[str] | Iterable[str],
        *,
        user_id: str | None = None,
        app_name: str | None = None,
        progress: Progress | None = None,
        dry_run: bool = False,
    ) -> Imported:
        """Restore an export (its file, its lines, or itself) as it was: ids, order, times, links, history.

        `user_id`, `app_name`: whose it becomes (default: whose it was). All in one commit; doing it twice changes
        nothing. InvalidInput, and nothing written, if it is damaged, from a newer version, on a topic without consent,
        or if the user has other data here. `progress(done, total)`.
        """
        lines = source.lines if isinstance(source, Export) else await lines_of(io, source)
        manifest, items = await worked(io, lambda: unpack(lines), sum(map(len, lines)))
        target = Reader(manifest.user_id if user_id is None else user_id, app_name or manifest.app_name)
        rules = self._rules
        done = await moving.restore(io, manifest, items, target, rules.topics, rules.clock(), progress, dry_run)
        await self._woken(io, target)
        return done

    async def _import_mem0(
        self,
        io: IO,
        memories: Any,
        *,
        history: str | os.PathLike[str] | None = None,
        user_id: str | None = None,
        app_name: str = "default",
        progress: Progress | None = None,
        dry_run: bool = False,
    ) -> Imported:
        """Take over what mem0's `get_all` returned, or the JSON file it is in; each memory goes to its own user.

        `history`: mem0's history database, for earlier texts. `user_id`: the owner of memories that name none; those
        of others are then left out. All are read and checked first (InvalidInput); then each is consolidated as
        `user_implicit`, so one that is interrupted can be done again. The report says what was left out, and why.
        """
        return await import_mem0(
            io,
            memories,
            history,
            user_id=user_id,
            app_name=app_name,
            rules=self._rules,
            progress=progress,
            dry_run=dry_run,
        )

    async def _import_items(
        self,
        io: IO,
        store: BaseStore,
        namespace: tuple[str, ...],
        *,
        user_id: str,
        source_id: str | None = None,
        source_type: SourceType = "user_implicit",
        app_name: str = "default",
        progress: Progress | None = None,
        dry_run: bool = False,
    ) -> Imported:
        """Take over the items below a namespace of a LangGraph store as facts about the user; see `import_mem0`.

        An item's text is langmem's `{"kind": …, "content": {"content": …}}`, or its field `content`, `memory`, `data`
        or `text`. `source_id`: what `forget_source` is given (default: the namespace, joined by "/").
        """
        return await import_items(
            io,
            store,
            namespace,
            user_id=user_id,
            source_id=self._source(source_id),
            source_type=source_type,
            app_name=app_name,
            rules=self._rules,
            progress=progress,
            dry_run=dry_run,
        )

    async def _import_lines(
        self,
        io: IO,
        source: str | os.PathLike[str] | Iterable[str],
        *,
        user_id: str,
        source_id: str,
        source_type: SourceType = "user_implicit",
        app_name: str = "default",
        progress: Progress | None = None,
        dry_run: bool = False,
    ) -> Imported:
        """Take over plain text, one fact a line (a file's name, or the lines), as facts about the user.

        `source_id`: what `forget_source` is given. See `import_mem0`.
        """
        return await import_lines(
            io,
            source,
            user_id=user_id,
            source_id=self._source(source_id, required=True) or "",
            source_type=source_type,
            app_name=app_name,
            rules=self._rules,
            progress=progress,
            dry_run=dry_run,
        )

    export, aexport = twins(_export)
    import_, aimport_ = twins(_import_)
    import_mem0, aimport_mem0 = twins(_import_mem0)
    import_items, aimport_items = twins(_import_items)
    import_lines, aimport_lines = twins(_import_lines)
