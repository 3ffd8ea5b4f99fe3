"""When a temporary state ends ("until Thursday") and when something was ("last week"), by the turn's time."""

import re
from dataclasses import dataclass
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


_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_PERIOD = rf"(?:weekend|week|month|year|spring|summer|autumn|fall|winter|{_DAY}|{_MONTH}|fri|sat|sun|mon)"
WHEN = (
    rf"(?:(?:(?:the\s+)?day\s+(?:before|after)\s+)?(?:yesterday|tomorrow)(?:\s+(?:morning|afternoon|evening|night))?"
    rf"|today|tonight|last\s+night|this\s+(?:morning|afternoon|evening)|(?:just\s+)?the\s+other\s+day"
    rf"|(?:earlier\s+|later\s+)?(?:(?:on\s+|in\s+|over\s+)?(?:last|next|this(?:\s+past)?|the\s+past)\s+{_PERIOD}"
    rf"|(?:on\s+)(?:{_DAY})|in\s+(?:{_MONTH})(?:\s+\d{{4}})?|in\s+(?:19|20)\d\d"
    rf"|on\s+(?:the\s+)?\d{{1,2}}(?:st|nd|rd|th)?(?:\s+of)?\s+(?:{_MONTH})"
    rf"|on\s+(?:{_MONTH})\s+\d{{1,2}}(?:st|nd|rd|th)?)"
    r"|(?:about\s+|around\s+)?(?:an?|one|two|three|four|five|six|seven|eight|nine|ten|\d{1,2}|a\s+few|a\s+couple\s+of"
    r"|some)\s+(?:days?|weekends?|weeks?|months?|years?)\s+(?:ago|back)|in\s+(?:two|three|four|five|six|\d{1,2})\s+"
    r"(?:days|weeks|months)|in\s+a\s+(?:week|month))"
)
"""Words that tell when something was or will be."""
_WHEN = re.compile(rf"\b{WHEN}\b", re.IGNORECASE)
_COMING = re.compile(r"\b(?:next|tomorrow|tonight|later|in\s+(?:a|\w+)\s+(?:days|weeks?|months?))\b", re.IGNORECASE)
_AGO = re.compile(r"(?:about |around )?(?P<n>an?|\w+) (?P<unit>day|week|month|year)s? (?:ago|back)")
_AHEAD = re.compile(r"in (?P<n>a|\w+) (?P<unit>day|week|month)s?")
_DATED = re.compile(
    rf"on (?:the )?(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<month>{_MONTH})"
    rf"|(?P<month2>{_MONTH}) (?P<day2>\d{{1,2}})(?:st|nd|rd|th)?)"
)
_NUMBERS = _COUNTS | {"an": 1, "eight": 8, "nine": 9}


@dataclass(frozen=True)
class Moment:
    """A time that words name: from `start` up to `end`, and the words as they read on any other day."""

    start: datetime
    end: datetime
    said: str


def timed(words: str) -> re.Match[str] | None:
    """The first words in the text that tell when something was or will be."""
    return _WHEN.search(words)


def is_ahead(words: str) -> bool:
    """Whether the words name a time that is still to come."""
    return bool(_COMING.search(words))


def moment(words: str, at: datetime, *, ahead: bool = False) -> Moment | None:
    """What the words ("last Friday", "next month") mean on the day `at`; None if it is not clear.

    `ahead`: they speak of the future, so that "on Friday" is the next one.
    """
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    said = " ".join(words.casefold().split())
    said = re.sub(r"^(?:earlier|later) |^(?:on|in|over) (?=last|next|this|the past)", "", said)
    said = re.sub(r"^the past |^this past ", "last ", said)
    for name, offset in (
        ("day before yesterday", -2),
        ("yesterday", -1),
        ("last night", -1),
        ("day after tomorrow", 2),
    ):
        if name in said:
            return _day(day + timedelta(days=offset))
    if "tomorrow" in said:
        return _day(day + timedelta(days=1))
    if re.fullmatch(r"today|tonight|this (?:morning|afternoon|evening)", said):
        return _day(day)
    if match := _AGO.fullmatch(said):
        found = _counted(day, match, -1)
        about = found and re.match(r"about |around ", said)
        return Moment(found.start, found.end, re.sub("^in ", "around ", found.said)) if found and about else found
    if match := _AHEAD.fullmatch(said) if ahead else None:
        return _counted(day, match, 1)
    if match := _DATED.fullmatch(said):
        return _on_date(day, match, ahead)
    which, _, what = said.rpartition(" ")
    which = which or "on"
    short = next((d for d in _DAYS if len(what) == 3 and d.startswith(what)), what)
    if short in _DAYS:
        return _day(_weekday(day, short, which, ahead))
    if what in _MONTHS and which in ("in", "last", "next", "this"):
        found = _named_month(day, what, which, ahead)
        return Moment(found.start, found.end, f"in {what.capitalize()} {found.start:%Y}")
    return _period(day, what, which) if which in ("last", "this", "next") else None


def _day(start: datetime) -> Moment:
    return Moment(start, start + timedelta(days=1), f"on {start:%Y-%m-%d}")


def _week(day: datetime) -> Moment:
    start = day - timedelta(days=day.weekday())
    return Moment(start, start + timedelta(days=7), f"in the week of {start:%Y-%m-%d}")


def _month(day: datetime, months: int = 0) -> Moment:
    years, month = divmod(day.month - 1 + months, 12)
    start = day.replace(year=day.year + years, month=month + 1, day=1)
    return Moment(start, (start + timedelta(days=32)).replace(day=1), f"in {start:%Y-%m}")


def _year(day: datetime) -> Moment:
    start = day.replace(month=1, day=1)
    return Moment(start, start.replace(year=day.year + 1), f"in {start:%Y}")


def _counted(day: datetime, match: re.Match[str], sign: int) -> Moment | None:
    count = int(match["n"]) if match["n"].isdecimal() else _NUMBERS.get(match["n"])
    if not count:
        return None
    unit, count = match["unit"], sign * count
    if unit == "day":
        return _day(day + timedelta(days=count))
    if unit == "week":
        return _week(day + timedelta(days=7 * count))
    return _month(day, count) if unit == "month" else _year(day.replace(year=day.year + count, day=1))


def _on_date(day: datetime, match: re.Match[str], ahead: bool) -> Moment | None:
    month, number = match["month"] or match["month2"], int(match["day"] or match["day2"])
    end = _date(day, _MONTHS.index(month) + 1, number)
    if end is None:
        return None
    start = end - timedelta(days=1)
    past = not ahead and start > day and (start.month, start.day) != (2, 29)
    return _day(start.replace(year=start.year - 1) if past else start)


def _weekday(day: datetime, name: str, which: str, ahead: bool) -> datetime:
    ago = (day.weekday() - _DAYS.index(name)) % 7
    if which == "last":
        return day - timedelta(days=ago or 7)
    if which == "next" or ahead:
        return day + timedelta(days=7 - ago)
    return day - timedelta(days=ago)


def _named_month(day: datetime, name: str, which: str, ahead: bool) -> Moment:
    away = _MONTHS.index(name) + 1 - day.month
    if (which == "last" and away >= 0) or (which == "in" and not ahead and away > 0):
        away -= 12
    elif (which == "next" and away <= 0) or (which in ("in", "this") and ahead and away < 0):
        away += 12
    return _month(day, away)


def _period(day: datetime, what: str, which: str) -> Moment | None:
    step = {"last": -1, "this": 0, "next": 1}[which]
    if what == "week":
        return _week(day + timedelta(days=7 * step))
    if what == "weekend":
        week = _week(day + timedelta(days=7 * step))
        start = week.start + timedelta(days=5)
        return Moment(start, week.end, f"on the weekend of {start:%Y-%m-%d}")
    if what == "month":
        return _month(day, step)
    if what == "year":
        return _year(day.replace(year=day.year + step, day=1))
    if what not in _SEASONS:
        return None
    begins = day.replace(month=_SEASONS[what], day=1)
    # "Last summer" is over, "next summer" has not begun.
    year = day.year + (step if step * (begins - day).days <= 0 else 0)
    if which == "last" and year == day.year and (day - begins).days < 92:
        year -= 1
    start = begins.replace(year=year)
    return Moment(start, start + timedelta(days=92), f"in the {what} of {start:%Y}")
