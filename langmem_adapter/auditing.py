"""What a person who answers for the memory should look at first: believed firmly, weighty, and resting on little."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from langmem_adapter.consolidation.apply import supports
from langmem_adapter.records import MemoryRecord, Review

WEIGHTY = 0.7
"""Importance from which a wrong memory does harm."""
RECENT = timedelta(days=30)


def reviewed(records: Iterable[MemoryRecord], now: datetime, min_confidence: float) -> list[Review]:
    """The active records with a reason to be looked at, the most reasons first, then the most important."""
    found = [Review(record=r, reasons=_reasons(r, now, min_confidence)) for r in records if r.is_active(now)]
    return sorted(
        (f for f in found if f.reasons),
        key=lambda f: (-len(f.reasons), -f.record.importance, -f.record.confidence, f.record.seq),
    )


def _reasons(record: MemoryRecord, now: datetime, min_confidence: float) -> tuple[str, ...]:
    weighty = record.confidence >= min_confidence and record.importance >= WEIGHTY
    reasons = {
        "important": weighty,
        # Every fact has a first source: one alone is a reason only where much hangs on it.
        "single_source": weighty and len({s.source_id for s in supports(record)}) == 1,
        "contested": bool(record.contested_by),
        "recently_contested": any(h.action == "CONTEST" and now - h.at <= RECENT for h in record.history),
        "needs_regeneration": record.needs_regeneration,
    }
    return tuple(name for name, holds in reasons.items() if holds)
