"""Facts from plain text: one a line."""

from collections.abc import Iterable

from langmem_adapter import arguments
from langmem_adapter.consolidation.rules import Rules
from langmem_adapter.exchange.facts import Chain, Fact, learn, name, owner, usable
from langmem_adapter.exchange.files import StrPath, lines_of
from langmem_adapter.exchange.moving import Progress
from langmem_adapter.exchange.report import Imported, Tally
from langmem_adapter.ports import IO, worked
from langmem_adapter.records import SourceType


async def import_lines(
    io: IO,
    source: StrPath | Iterable[str],
    *,
    user_id: str,
    source_id: str,
    source_type: SourceType | None,
    app_name: str,
    rules: Rules,
    progress: Progress | None,
    dry_run: bool,
) -> Imported:
    """See `Memory.import_lines`."""
    whose, where = owner(user_id, "user_id"), name(source_id, "source_id")
    kind = arguments.source_kind(source_type) or "user_implicit"
    left_out = Tally()
    lines = await lines_of(io, source)

    def chains() -> list[Chain]:
        found = (Fact(f"line {n}", whose, line, where) for n, line in enumerate(lines, 1) if line.strip())
        return [[fact] for fact in found if usable(fact, left_out)]

    return await learn(
        io,
        await worked(io, chains, sum(map(len, lines))),
        source_type=kind,
        app_name=app_name,
        rules=rules,
        left_out=left_out,
        progress=progress,
        dry_run=dry_run,
    )
