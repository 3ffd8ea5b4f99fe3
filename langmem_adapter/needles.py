"""What a text must contain for a regular expression to match it, told before the expression is tried.

Many rules read every text, and next to none of them match. Looking for a few hundred short strings takes a small part
of the time that trying the rules takes. The strings are read off the parsed expressions; one of which nothing can be
told is always tried, so that no answer changes.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

try:  # no public module parses expressions; where Python keeps this one elsewhere, every rule is always tried
    from re import _casefix  # type: ignore[attr-defined]
    from re import _constants as ops  # type: ignore[attr-defined]
    from re import _parser as parser  # type: ignore[attr-defined]
except ImportError:
    _casefix = ops = parser = None

Needs = tuple[frozenset[str], ...]
"""Sets of strings; the text has at least one string of each."""

_REPEATS = (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT) if ops else ()
_WIDTHLESS = (ops.AT, ops.ASSERT, ops.ASSERT_NOT) if ops else ()
# What matches a letter if case is ignored, beside what `lower` makes that letter.
_ALSO = str.maketrans("İıſK\u1c80\u1c81\u1c82\u1c83\u1c84\u1c85\u1c86\u1c87", "iiskвдосттъѣ")
_KNOWN = frozenset("iskвдостъѣ")


def folded(text: str) -> str:
    """The text as needles are looked for in it."""
    return (text if text.isascii() else text.translate(_ALSO)).lower()


@lru_cache(maxsize=1_000)
def needs(pattern: str, flags: int = 0) -> tuple[Needs, ...]:
    """The ways in which the pattern may match a text: by what the folded text has then, at least."""
    if parser is None:
        return ((),)
    return tuple(tuple(sorted(way, key=_chance)) for way in _ways(parser.parse(pattern, flags)))


class Sieve:
    """Of many patterns, those that may match a text."""

    def __init__(self, patterns: Iterable[re.Pattern[str]]) -> None:
        ways = [(n, way) for n, pattern in enumerate(patterns) for way in needs(pattern.pattern, pattern.flags)]
        self._always = [way for way in ways if not way[1]]
        self._by_needle: dict[str, list[tuple[int, Needs]]] = {}
        for number, way in ways:
            for needle in way[0] if way else ():
                self._by_needle.setdefault(needle, []).append((number, way))
        self._needles = list(dict.fromkeys(needle for _, way in ways for one in way for needle in one))
        self._ascii = [needle for needle in self._needles if needle.isascii()]

    def among(self, texts: Iterable[str]) -> Callable[[str], list[int]]:
        """What gives, for each of these texts, the numbers of the patterns that may match it, in order."""
        everything = "\n".join([folded(text) for text in texts])
        needles = self._ascii if everything.isascii() else self._needles
        present = [needle for needle in needles if needle in everything]
        known = frozenset(present)
        found = [way for needle in present for way in self._by_needle.get(needle, ())]
        ways = [*self._always, *(way for way in found if _met(way[1], known))]

        def left(text: str) -> list[int]:
            read = folded(text)
            here = frozenset([needle for needle in present if needle in read])
            return sorted({number for number, way in ways if _met(way, here)})

        return left


def _met(way: Needs, present: frozenset[str]) -> bool:
    return not any(map(present.isdisjoint, way))


def _ways(parsed: Iterable[tuple[Any, Any]]) -> list[list[frozenset[str]]]:
    parts = [part for part in parsed if part[0] not in _WIDTHLESS]
    if len(parts) == 1 and parts[0][0] is ops.BRANCH:
        return [way for branch in parts[0][1][1] for way in _ways(branch)]
    if len(parts) == 1 and parts[0][0] is ops.SUBPATTERN:
        return _ways(parts[0][1][3])
    return [_needed(parts)]


def _needed(parts: Iterable[tuple[Any, Any]]) -> list[frozenset[str]]:
    """What each part of a sequence needs; what has no width is left out of it, and may ask for more."""
    found: list[frozenset[str]] = []
    run = ""
    for op, what in parts:
        if op is ops.LITERAL and _plain(chr(what)):
            run += chr(what).lower()
        elif op not in _WIDTHLESS:
            found += [frozenset([run])] if run else []
            found += _part(op, what)
            run = ""
    return [*found, frozenset([run])] if run else found


def _part(op: Any, what: Any) -> list[frozenset[str]]:
    if op is ops.SUBPATTERN:
        return _needed(what[3])
    if op is ops.ATOMIC_GROUP:
        return _needed(what)
    if op in _REPEATS and what[0] > 0:
        return _needed(what[2])
    if op is ops.BRANCH:
        ways = [_needed(way) for way in what[1]]
        if all(ways):
            every = frozenset[str]().union(*(min(way, key=_chance) for way in ways))
            return [frozenset(s for s in every if not any(part in s for part in every - {s}))]
    return []


def _plain(char: str) -> bool:
    """Whether all that the letter matches if case is ignored is the same letter in a `folded` text."""
    lower = char.lower()
    return len(lower) == 1 and (lower in _KNOWN or ord(lower) not in _casefix._EXTRA_CASES)


def _chance(found: frozenset[str]) -> float:
    """Roughly, how often a text has one of these by chance."""
    return sum(8.0 ** -len(needle) for needle in found)
