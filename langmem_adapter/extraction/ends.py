"""A very long message is read at its ends, where orders, names and questions stand; a mark says what was left out.

So nothing behind this door (secrets, queue, rules, chat model, guard) has more than `2 * EDGE` characters to work on.
"""

import re
from collections.abc import Callable

from langmem_adapter.text import clean

EDGE = 65_536
"""Characters that are read at each end of a message that has more than both ends together."""
MARGIN = 16_384
"""Characters beyond an edge in which secrets are looked for too: none may be cut in two and so go unseen."""
MAX_TORN = 2_000
"""Most characters that are given up at a cut to end with a whole line or sentence."""

LEFT_OUT = re.compile(r"\n\[left out about \d+ characters\]\n")
"""What stands between the two ends."""

_BORDER = re.compile(r"\n|[.!?…。！？]\s|(?<=[。！？])")


def redacted_ends(text: str, redact: Callable[[str], str], *, what: str = "content") -> str:
    """The text clean and without secrets; of a very long one the two ends, whole sentences, with `LEFT_OUT` between."""
    if not isinstance(text, str) or len(text) <= 2 * EDGE:
        return redact(clean(text, what=what))
    # What is cut off is counted from the cut: marks for secrets are shorter or longer than the secrets.
    begin = redact(clean(text[: EDGE + MARGIN]))[:-MARGIN]
    end = redact(clean(text[-EDGE - MARGIN :]))[MARGIN:]
    return f"{_whole_begin(begin)}\n[left out about {len(text) - 2 * EDGE} characters]\n{_whole_end(end)}"


def beginning(text: str) -> str:
    """A message up to where something was left out; all of it, mostly."""
    left_out = LEFT_OUT.search(text)
    return text[: left_out.start() + 1] if left_out else text


def _whole_begin(text: str) -> str:
    near = text[-MAX_TORN:]
    borders = [m.end() for m in _BORDER.finditer(near)]
    cut = borders[-1] if borders else near.rfind(" ") + 1
    return text[: len(text) - len(near) + cut] if cut else text


def _whole_end(text: str) -> str:
    border = _BORDER.search(text, 0, MAX_TORN)
    return text[border.end() if border else text.find(" ", 0, MAX_TORN) + 1 :]
