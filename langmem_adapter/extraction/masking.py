"""What in a message is not the speaker's own words: quotes, code, links, markup. Masked, not removed, so that
every character keeps its place.
"""

import re

MASK = "\x00"
"""Stands for one character of somebody else's words; `text.clean` leaves no such character in a message."""

_STRAIGHT = str.maketrans(
    {
        "’": "'",
        "‘": "'",
        "‛": "'",
        "ʼ": "'",
        "`": "'",
        "´": "'",
        "“": '"',
        "”": '"',
        "„": '"',
        "‟": '"',
        "«": '"',
        "»": '"',
        "\u00a0": " ",
        "\u202f": " ",
        "\t": " ",
        "‐": "-",
        "‑": "-",
        "＜": "<",
        "＞": ">",
    }
)

FAKE_ROLE = re.compile(
    r"^[ \t]*(?:system|assistant|developer|user|human|ai|bot|tool|customer|agent)\s?:"
    r"|^[ \t]*\#{1,6}[ \t]*(?:system|developer|assistant|instruction|new instruction|admin)"
    r"|\[/?inst\]|<</?sys>>|<\|[a-z_]{1,20}\|>|</?\s*(?:memories|system|tool_result|function|assistant|developer)\b"
    r"|^[ \t]*-{3,}\s*(?:begin|end)\b|\bend of (?:the )?(?:conversation|transcript|user (?:input|message))\b",
    re.IGNORECASE | re.MULTILINE,
)
"""Text posing as another author, or as the end of the user's words: from here on nothing is the user's."""

_FENCE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_QUOTED_LINE = re.compile(r"^[ ]*>[^\n]*", re.MULTILINE)
_INLINE_CODE = re.compile(r"`[^`\n]{1,300}`")
_URL = re.compile(r"(?:https?|ftp)://\S+|\bwww\.\S+")
_JSON = re.compile(r"[\"'\]}]{2,}[^\n]*|[{\[]{1,3}\s*\"[^\n]*")
_DOUBLE = re.compile(r'"[^"\n]*(?:"|(?=\n)|\Z)')
# An opening single quote stands behind a space or bracket, a closing one before a space or mark.
_SINGLE = re.compile(r"(?<![\w'])'(?=\S)(?:[^'\n]|(?<=\w)'(?=\w))*(?:'(?!\w)|(?=\n)|\Z)")
# "Rex", 'The Wire': a few words that say nothing themselves are a name or a title.
_SAYS = re.compile(
    r"\b(?:i|i'm|im|i've|me|my|we|our|you|your|am|is|are|was|will|always|never|remember|ignore|please|do|don't)\b",
    re.IGNORECASE,
)


def straight(text: str) -> str:
    """The text with plain apostrophes, quotes, spaces and hyphens; same length."""
    return text.translate(_STRAIGHT)


def mask(text: str) -> str:
    """The text, straightened, with everything that is not the speaker's own statement masked; same length."""
    masked = _FENCE.sub(_blank, text)
    masked = _INLINE_CODE.sub(_blank, masked)
    masked = straight(masked)
    for pattern in (_QUOTED_LINE, _URL):
        masked = pattern.sub(_blank, masked)
    # What stands before pasted data ends there.
    masked = _JSON.sub(lambda match: "\n" + _blank(match)[1:], masked)
    masked = _DOUBLE.sub(_blank_speech, masked)
    return _SINGLE.sub(_blank_speech, masked)


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", MASK, match[0])


def _blank_speech(match: re.Match[str]) -> str:
    inner = match[0].strip("\"'")
    closed = len(match[0]) > 1 and match[0][-1] == match[0][0]
    if closed and len(inner) <= 60 and len(inner.split()) <= 4 and not _SAYS.search(inner):
        return " " + match[0][1:-1] + " "
    return MASK * len(match[0]) if closed or match[0][0] == '"' else match[0]
