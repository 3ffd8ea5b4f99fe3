"""The blended score and the bands, in pure numpy: one formula for every store.

    score = 0.6 relevance + 0.25 recency + 0.15 importance (+ 0 confidence)
    recency = 0.5 ** (age in days since `confirmed_at` / half-life in days)

`Columns` holds what the formula and the filters need of many records as arrays, so that all of an owner's
records are ranked exactly without parsing them; a store may keep it beside its vectors.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from langmem_adapter.records import Band, Frozen, Parts

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

STATUSES = ("active", "contested", "quarantined", "superseded", "retracted")
_ONCE_BELIEVED = ("active", "superseded", "retracted")
HIGH, MEDIUM = 0.75, 0.5


class Weights(Frozen):
    """What each part of the score counts; any non-negative numbers."""

    relevance: float = 0.6
    recency: float = 0.25
    importance: float = 0.15
    confidence: float = 0.0


@dataclass(frozen=True, slots=True)
class Where:
    """Which records of a namespace may be ranked. Times are seconds since the epoch.

    Without `as_of` a record must have one of the `statuses` and not be expired at `now`; with it, it must have been
    believed at that moment (created, not yet invalidated, not expired). `valid_at`: it held in the world then, whether
    or not it has been replaced or has ended since.
    """

    now: float
    statuses: tuple[str, ...] = ("active",)
    topics: tuple[str, ...] | None = None
    kinds: tuple[str, ...] | None = None
    as_of: float | None = None
    valid_at: float | None = None


@dataclass(frozen=True, slots=True)
class Columns:
    """The ranked fields of n records, one array each; times are epoch seconds, ±inf where open."""

    status: npt.NDArray[np.int8]
    topic: tuple[str, ...]
    kind: tuple[str, ...]
    importance: Floats
    half_life: Floats
    confidence: Floats
    created: Floats
    confirmed: Floats
    invalidated: Floats
    expires: Floats
    valid_from: Floats
    valid_to: Floats

    @classmethod
    def of(cls, values: Iterable[Mapping[str, Any]]) -> "Columns":
        """Columns of stored record values (`MemoryRecord.model_dump(mode="json")`), in order."""
        rows = [row(v) for v in values]
        status, topic, kind, *numbers = zip(*rows, strict=True) if rows else [()] * 12
        return cls(np.array(status, dtype=np.int8), topic, kind, *(np.array(n, dtype=np.float64) for n in numbers))

    def mask(self, where: Where) -> Bools:
        """True for each record that `where` admits."""
        at = where.now if where.as_of is None else where.as_of
        keep: Bools = self.expires > at
        if where.as_of is None and where.valid_at is None:
            keep &= self._has(where.statuses)
        elif where.as_of is None:
            # Also what was replaced or ended since, or learnt when something newer was known, which says until when it
            # held; but a challenger that lost was never believed.
            late = self._has(("superseded",)) & np.isfinite(self.valid_to)
            keep &= self._has(_ONCE_BELIEVED) & ((self.invalidated > self.created) | late)
        else:
            keep &= self._has(_ONCE_BELIEVED) & (self.created <= at) & (self.invalidated > at)
        if where.topics is not None:
            topics = where.topics
            keep &= _each(self.topic, lambda topic: _within(topic, topics))
        if where.kinds is not None:
            keep &= _each(self.kind, where.kinds.__contains__)
        if where.valid_at is not None:
            keep &= (self.valid_from <= where.valid_at) & (self.valid_to > where.valid_at)
        return keep

    def _has(self, statuses: Iterable[str]) -> Bools:
        admitted = np.zeros(256, dtype=bool)  # of every int8: a damaged one is no status
        admitted[[STATUSES.index(s) for s in statuses]] = True
        return admitted[self.status]

    def parts(self, relevance: Floats, now: float) -> Floats:
        """An (n, 4) array: relevance, recency, importance, decayed confidence; each in [0, 1]."""
        recency = 0.5 ** (np.maximum(0.0, now - self.confirmed) / 86_400.0 / self.half_life)
        return np.stack([relevance, recency, self.importance, self.confidence * recency], axis=1)


def row(value: Mapping[str, Any]) -> tuple[Any, ...]:
    """One record's fields in the order of `Columns`. Items that are not records get neutral ones."""
    created = epoch(value.get("created_at"), 0.0)
    return (
        STATUSES.index(value["status"]) if value.get("status") in STATUSES else 0,
        str(value.get("topic") or "general"),
        str(value.get("kind") or "fact"),
        float(value.get("importance", 0.5)),
        float(value.get("half_life_days", 180.0)),
        float(value.get("confidence", 0.0)),
        created,
        epoch(value.get("confirmed_at"), created),
        epoch(value.get("invalidated_at"), np.inf),
        epoch(value.get("expires_at"), np.inf),
        epoch(value.get("valid_from"), -np.inf),
        epoch(value.get("valid_to"), np.inf),
    )


def epoch(value: str | None, default: float) -> float:
    """Seconds since the epoch of an ISO time, or the default for None."""
    return default if value is None else datetime.fromisoformat(value).timestamp()


def blend(parts: Floats, weights: Weights) -> Floats:
    """The weighted sum of an (n, 4) array of parts."""
    w = np.array([weights.relevance, weights.recency, weights.importance, weights.confidence])
    return np.asarray(parts @ w, dtype=np.float64)


def best(scores: Floats, keep: Bools, floor: float, limit: int) -> npt.NDArray[np.intp]:
    """Positions of the `limit` highest kept scores ≥ floor, best first; of equals the later (newer) one first."""
    at = np.flatnonzero(keep & (scores >= floor))
    if len(at) > 4 * limit:
        cut = np.partition(scores[at], len(at) - limit)[len(at) - limit]
        at = at[scores[at] >= cut]
    return at[np.lexsort((-at, -scores[at]))][:limit]


def as_parts(row: Sequence[float]) -> Parts:
    """The `Parts` of one row of `Columns.parts`."""
    relevance, recency, importance, confidence = (float(x) for x in row)
    return Parts(relevance=relevance, recency=recency, importance=importance, confidence=confidence)


def band(confidence: float) -> Band:
    """high ≥ 0.75, medium ≥ 0.5, else low; of a decayed confidence."""
    return "high" if confidence >= HIGH else "medium" if confidence >= MEDIUM else "low"


def _each(labels: Sequence[str], test: Callable[[str], bool]) -> Bools:
    """The test of each label, made once for equal ones: there are few different topics and kinds."""
    met = {label: test(label) for label in set(labels)}
    return np.fromiter(map(met.__getitem__, labels), dtype=bool, count=len(labels))


def _within(topic: str, topics: Iterable[str]) -> bool:
    return any(topic == t or topic.startswith(f"{t}/") for t in topics)
