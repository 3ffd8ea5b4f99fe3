"""What callers pass, checked once at the door: each error names the argument and its value."""

from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from langmem_adapter.errors import InvalidInput
from langmem_adapter.records import Candidate, SourceType
from langmem_adapter.trust import TRUST


def source_kind(value: SourceType | None) -> SourceType | None:
    """The source type, if it is one."""
    if value is not None and value not in TRUST:
        raise InvalidInput(f"source_type must be one of {', '.join(TRUST)}, got {value!r}")
    return value


def moment(value: datetime | str | None, what: str) -> datetime | None:
    """An aware UTC time from a `datetime` or an ISO 8601 string."""
    if value is None:
        return None
    try:
        parsed = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError as error:
        raise InvalidInput(f"{what} is not an ISO 8601 time: {value!r}") from error
    if not isinstance(parsed, datetime):
        raise InvalidInput(f"{what} must be a datetime or an ISO 8601 string, got {value!r:.80}")
    if parsed.tzinfo is None:
        raise InvalidInput(f"{what} needs a time zone, got {value!r}; e.g. datetime.now(timezone.utc)")
    return parsed.astimezone(UTC)


def timestamp(value: datetime | str | None, what: str) -> float | None:
    """Seconds since the epoch of a time as `moment` takes it."""
    parsed = moment(value, what)
    return None if parsed is None else parsed.timestamp()


def candidate(**fields: Any) -> Candidate:
    """The candidate with these fields, or InvalidInput for the first that is out of range."""
    try:
        return Candidate(**fields)
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidInput(f"{'.'.join(map(str, first['loc']))}: {first['msg']}, got {first['input']!r:.80}") from error
