"""What an import did, and what it could not map."""

from pydantic import Field

from langmem_adapter.records import Frozen

EXAMPLES = 5
"""Ids kept for each reason."""


class Unmapped(Frozen):
    """What was left out for one reason."""

    count: int
    ids: tuple[str, ...]
    """The first five, as the source names them."""


class Imported(Frozen):
    """The report of an import."""

    total: int
    """Facts, or for an export of ours items, that were read."""
    written: int
    """How many of them were written; in a dry run, how many would be."""
    already: int = 0
    """How many were there from an earlier run."""
    operations: dict[str, int] = Field(default_factory=dict)
    """What those written led to: CREATE, UPDATE, NOOP (known already: corroborated) …"""
    unmapped: dict[str, Unmapped] = Field(default_factory=dict)
    """Reason code → what was left out. `field:…`: the fact was taken, but not this field of it."""
    dry_run: bool = False


class Tally:
    """Counts reasons and keeps the first ids of each."""

    def __init__(self) -> None:
        self._ids: dict[str, list[str]] = {}

    def add(self, reason: str, id: str) -> None:
        """One more for this reason."""
        self._ids.setdefault(reason, []).append(id)

    def unmapped(self) -> dict[str, Unmapped]:
        """By reason, in order of appearance."""
        return {r: Unmapped(count=len(ids), ids=tuple(ids[:EXAMPLES])) for r, ids in self._ids.items()}
