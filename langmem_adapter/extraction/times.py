"""When a temporary state ends: "until Thursday", "this week", counted from the turn's time."""

import re
from datetime import datetime, timedelta

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = ("january february march april may june july august september october november december").split()
_DAY, _MONTH = "|".join(_DAYS), "|".join(_MONTHS)
_UNTIL = re.compile(
    rf"\b(?:until|till|til|through|up\s+to)\s+(?:the\s+|next\s+|this\s+)?(?:end\s+of\s+(?:the\s+|this\s+)?)?"
    rf"(?P<end>{_DAY}|tomorrow|tonight|today|next\s+week|next\s+month|weekend|week|month|year"
    rf"|(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:\s+of)?\s+(?P<month>{_MONTH})|(?P<month2>{_MONTH})\s+"
    rf"(?P<day2>\d{{1,2}}))\b",
    re.IGNORECASE,
)
_DURING = re.compile(
    r"\b(?P<span>today|tonight|this\s+(?:week|weekend|month|year|morning|afternoon|evening))\b", re.IGNORECASE
)
_FOR_NEXT = re.compile(
    r"\bfor\s+(?:the\s+next\s+|another\s+)(?:(?P<n>\d{1,3}|a|one|two|three|four|five|six|seven|ten)\s+"
    r")?(?P<unit>day|week|month)s?\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\b(?:until|till|for\s+now|temporarily|for\s+the\s+time\s+being|for\s+a\s+(?:few|couple)|for\s+"
    r"the\s+(?:weekend|week|day|night|summer|"
    r"winter|semester|term|holidays?)|right\s+this\s+minute|at\s+this\s+moment|for\s+lent|during\s+"
    r"(?:lent|ramadan)|last\s+night|yesterday)\b",
    re.IGNORECASE,
)
_COUNTS = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "ten": 10}


def is_temporary(words: str) -> bool:
    """Whether the words speak of a state that will end."""
    return any(p.search(words) for p in (_UNTIL, _DURING, _FOR_NEXT, _OPEN))


def end_of(words: str, at: datetime) -> datetime | None:
    """The end of the period the words name, as the midnight (in `at`'s zone) that closes it; None if unclear."""
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    if match := _UNTIL.search(words):
        return _until(match, day)
    if match := _FOR_NEXT.search(words):
        number = _COUNTS.get((match["n"] or "a").casefold()) or int(match["n"])
        return day + timedelta(days=1 + number * {"day": 1, "week": 7, "month": 30}[match["unit"].casefold()])
    if match := _DURING.search(words):
        return _during(match["span"].casefold().split()[-1], day)
    return None


def _until(match: re.Match[str], day: datetime) -> datetime | None:
    end = " ".join(match["end"].casefold().split())
    if end in _DAYS:
        ahead = (_DAYS.index(end) - day.weekday()) % 7 or 7
        return day + timedelta(days=ahead + 1)
    if end == "tomorrow":
        return day + timedelta(days=2)
    month, number = match["month"] or match["month2"], match["day"] or match["day2"]
    if month:
        return _date(day, _MONTHS.index(month.casefold()) + 1, int(number))
    if end.startswith("next "):
        return day + timedelta(days=14 if end.endswith("week") else 61)
    return _during(end, day)


def _during(span: str, day: datetime) -> datetime | None:
    if span in ("week", "weekend"):
        return day + timedelta(days=7 - day.weekday())
    if span == "month":
        return (day.replace(day=1) + timedelta(days=32)).replace(day=1)
    if span == "year":
        return day.replace(year=day.year + 1, month=1, day=1)
    return day + timedelta(days=1)


def _date(day: datetime, month: int, number: int) -> datetime | None:
    year = day.year + ((month, number) < (day.month, day.day))
    try:
        return day.replace(year=year, month=month, day=number) + timedelta(days=1)
    except ValueError:
        return None
