"""What a trusted tool's plain output teaches: a few settings written as `"key": "value"` or `Key: value`."""

import re
from collections.abc import Iterator

from langmem_adapter.extraction.phrases import fact
from langmem_adapter.records import Candidate

_SETTING = re.compile(
    r"""(?P<quote>["']?)\b(?P<key>time[ _-]?zone|tz|locale|currency|"""
    r"""preferred[ _-]language|language)\b(?P=quote)\s*[:=]\s*"""
    r"""(?P<q>["']?)(?P<value>[A-Za-z][\w+/ .-]{1,40}?)(?P=q)(?=\s*(?:[,}\]\n\r;]|$))""",
    re.IGNORECASE,
)


def settings(text: str) -> Iterator[tuple[Candidate, int, int]]:
    """(candidate, start, end) of each setting in a tool's text."""
    for match in _SETTING.finditer(text):
        key = re.sub(r"[ _-]", " ", match["key"].casefold()).replace("time zone", "timezone").replace("tz", "timezone")
        value = match["value"].strip()
        topic, slot = ("identity/language", "") if "language" in key else ("general", key)
        yield (
            fact(f"The user's {key} is {value}.", topic, slot, value, source_type="tool_output", confidence=0.3),
            match.start(),
            match.end(),
        )
