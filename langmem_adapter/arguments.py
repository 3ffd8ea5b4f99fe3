"""What callers pass, checked once at the door: each error names the argument and its value."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import ValidationError

from langmem_adapter.errors import InvalidInput
from langmem_adapter.namespaces import Reader, escape
from langmem_adapter.records import Candidate, Recalled, SourceType
from langmem_adapter.scoring import Weights
from langmem_adapter.trust import TRUST


def source_kind(value: SourceType | None) -> SourceType | None:
    """The source type, if it is one."""
    if value is not None and (not isinstance(value, str) or value not in TRUST):
        raise InvalidInput(f"source_type must be one of {', '.join(TRUST)}, got {value!r}")
    return value


def moment(value: datetime | str | None, what: str) -> datetime | None:
    """An aware UTC time from a `datetime` or an ISO 8601 string."""
    if value is None:
        return None
    if isinstance(value, str):
        value = value[:80]  # an error quotes all of it
    try:
        parsed = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError as error:
        raise InvalidInput(f"{what} is not an ISO 8601 time: {value!r}") from error
    if not isinstance(parsed, datetime):
        raise InvalidInput(f"{what} must be a datetime or an ISO 8601 string, got {value!r:.80}")
    if parsed.tzinfo is None:
        raise InvalidInput(f"{what} needs a time zone, got {value!r}; e.g. datetime.now(timezone.utc)")
    try:
        return parsed.astimezone(UTC)
    except OverflowError as error:
        raise InvalidInput(f"{what} is out of range: {value!r}") from error


def timestamp(value: datetime | str | None, what: str) -> float | None:
    """Seconds since the epoch of a time as `moment` takes it."""
    parsed = moment(value, what)
    return None if parsed is None else parsed.timestamp()


def period(begins: datetime | str | None, ends: datetime | str | None) -> tuple[datetime | None, datetime | None]:
    """The two ends of a time in which something holds, each as `moment` takes it; it does not end before it begins."""
    valid_from, valid_to = moment(begins, "valid_from"), moment(ends, "valid_to")
    if valid_from is not None and valid_to is not None and valid_to < valid_from:
        raise InvalidInput(f"valid_to is before valid_from, got {valid_from} and {valid_to}: exchange them")
    return valid_from, valid_to


def candidate(**fields: Any) -> Candidate:
    """The candidate with these fields, or InvalidInput for the first that is out of range."""
    try:
        return Candidate(**fields)
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidInput(f"{'.'.join(map(str, first['loc']))}: {first['msg']}, got {first['input']!r:.80}") from error


def strings(value: str | Iterable[str], what: str) -> list[str]:
    """The strings; one string is a list of one. InvalidInput for anything else."""
    found = [value] if isinstance(value, str) else list(value) if isinstance(value, Iterable) else None
    if found is None or not all(isinstance(v, str) for v in found):
        raise InvalidInput(f"{what} must be strings, got {value!r:.120}")
    return found


def number(value: float, what: str) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidInput(f"{what} must be a finite number, got {value!r:.80}")
    return float(value)


def share(value: float, what: str) -> float:
    """A number from 0 to 1."""
    if not 0 <= number(value, what) <= 1:
        raise InvalidInput(f"{what} must be a number from 0 to 1, got {value!r:.80}")
    return float(value)


def count(value: int, what: str, *, least: int = 1) -> int:
    """A whole number, at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidInput(f"{what} must be a whole number ≥ {least}, got {value!r:.80}")
    return value


def flag(value: bool, what: str) -> bool:
    """True or False: "no" is not taken for a yes."""
    if not isinstance(value, bool):
        raise InvalidInput(f"{what} must be True or False, got {value!r:.80}")
    return value


def days(value: float, what: str) -> timedelta:
    """So many days, not negative."""
    if number(value, what) < 0:
        raise InvalidInput(f"{what} must not be negative, got {value!r}")
    return timedelta(days=value)


def instance(value: Any, kind: type, what: str, give: str) -> None:
    """InvalidInput unless the value is None or of this kind."""
    if value is not None and not isinstance(value, kind):
        raise InvalidInput(f"{what} must be {give}, got {value!r:.80}")


def able(value: Any, method: str, what: str, give: str) -> None:
    """InvalidInput unless the value is None or an object (no class) with this method."""
    if value is not None and (isinstance(value, type) or not callable(getattr(value, method, None))):
        raise InvalidInput(f"{what} must be {give}, got {value!r:.80}")


def function(value: Any, what: str, give: str) -> None:
    """InvalidInput unless the value is None or can be called."""
    if value is not None and not callable(value):
        raise InvalidInput(f"{what} must be {give}, got {value!r:.80}")


def hits(value: Sequence[Recalled]) -> Sequence[Recalled]:
    """The hits, if all are what `search` returns."""
    if not isinstance(value, Sequence) or not all(isinstance(hit, Recalled) for hit in value):
        raise InvalidInput(f"hits must be what search() returned, a list of Recalled, got {value!r:.80}")
    return value


def people(value: Mapping[str, str] | None) -> dict[str, str]:
    """Message name → user id."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(
        isinstance(text, str) and text.strip() for pair in value.items() for text in pair
    ):
        raise InvalidInput(f"people must be a mapping of message names to user ids, got {value!r:.120}")
    return dict(value)


def weights(value: Weights | None) -> Weights | None:
    """The weights, if they are some."""
    if value is not None and not isinstance(value, Weights):
        raise InvalidInput(f"weights must be Weights(relevance=…, recency=…, importance=…), got {value!r:.80}")
    return value


def source_id(value: str | None, *, required: bool = False) -> str | None:
    """The name of a source, not blank."""
    if value is None and not required:
        return None
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"source_id must name where it comes from, got {value!r:.80}")
    return value


def owner(user_id: str | None, app_name: str, scope: str) -> Reader:
    """Whose memories are meant: a user's, or (`scope="app"`, no user id) the application's."""
    if scope not in ("user", "app"):
        raise InvalidInput(f"scope must be 'user' or 'app' here, got {scope!r}")
    if scope == "app" and user_id is not None:
        raise InvalidInput(f"scope='app' belongs to no user, but user_id={user_id!r} was given")
    if scope == "app":
        return Reader("", app_name, application=True)
    escape(user_id, what="user_id")  # type: ignore[arg-type]  # it complains of None
    return Reader(str(user_id), app_name)
