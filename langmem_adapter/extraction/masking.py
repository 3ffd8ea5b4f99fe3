"""What in a message is not the speaker's own words: quotes, code, links, markup. Masked, not removed, so that
every character keeps its place.
"""

import re
from collections import deque

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
    r"|\[/?inst\]|<</?sys>>|<\|[a-z_]{1,20}\|>|</?\s*(?:memories|session_summary|system|tool_result|function|assistant|developer)\b"
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


_LABEL = (
    r"(?:notes?|update|correction|reminder|p\.?s|fyi|edit|btw|diet|allerg\w+|about|me|my|i|home|job|work|role"
    r"|employer|name|hi|hello"
    r"|hey|dear|tl;?dr|summary|important|also|warning|remember|info|fact|facts|context|background|first|second"
    r"|third|finally"
    r"|next|question|hobb\w+|likes?|dislikes?|age|city|location|preferences?|profile|today|now|yes|no|ok|okay"
    r"|well|so|plus|and"
    r"|but|one|two|three|four|thing|heads|quick|just|side|small|preference|details|status|request|goal|goals"
    r"|plan|seats?"
    r"|seating|food|travel|music|language|lunch|dinner|breakfast|reason|reasons|bonus|disclaimer|confession"
    r"|clarification"
    r"|remark|extra|general|personal|basics|people|family|pets?|kids|tools?|style|answers?|please|memo|news|https?)"
)
_STAMP = (
    r"(?:[\[(]?(?:\d{1,4}[-./]\d{1,2}[-./]\d{1,4},?[ ]+)?\d{1,2}[:.]\d{2}(?:[:.]\d{2})?"
    r"[ ]?(?:[ap]\.?m\.?)?[\])]?[ ]*[-–—]?[ ]*)"
)
_HANDLE = rf"(?!(?i:{_LABEL})\b)(?:[A-Z][\w'.-]{{0,24}}(?:[ ][A-Z][\w'.-]{{0,24}}){{0,2}}|@[\w.-]{{2,30}})"
_TURN = re.compile(
    rf"(?:^[ ]{{0,12}}(?:[-*•][ ]+)?|(?<=[.!?:])[ ]+)[*_]{{0,2}}(?:{_STAMP}[*_]{{0,2}}(?-i:{_HANDLE}|\w+)"
    rf"|(?-i:{_HANDLE}))"
    rf"(?:[ ]?[(\[][^()\[\]\n]{{1,24}}[)\]])?[*_]{{0,2}}[ ]?:[*_]{{0,2}}(?=\s|$)"
    rf"|^[ ]{{0,12}}<[@+]?[\w-]{{2,24}}>[ ]+|^[ ]{{0,12}}\[[^\]\n]{{0,12}}\d[:.]\d\d[^\]\n]{{0,12}}\]"
    rf"|^[ ]{{0,12}}(?-i:[A-Z])[\w'.-]+(?:[ ](?-i:[A-Z])[\w'.-]+)?[ ]{{1,4}}"
    r"[\[(]?\d{1,2}:\d\d(?:[ ]?[ap]m)?[\])]?[ ]*$",
    re.IGNORECASE | re.MULTILINE,
)
"""Where a speaker's turn begins in a pasted conversation: "Bob: …", "[10:02] Sam: …", "<sam> …"."""
_SMALL_TURN = re.compile(rf"^[ ]{{0,12}}(?:[-*•][ ]+)?(?!{_LABEL}\b)([a-z][\w.-]{{0,19}})[ ]?:[ ]", re.MULTILINE)
_MAIL_HEAD = re.compile(
    r"^[ ]{0,12}(?:from|to|sent|cc|reply-to|subject|betreff|von)[ ]?:[ ]\S[^\n]*$"
    r"|^[ ]{0,12}(?:dear|to\s+whom)\s+[^\n]{1,40},[ ]*$"
    r"|^[ ]{0,12}-{3,}[ ]*(?:original|forwarded)\b[^\n]*$|^[^\n]{0,80}\bwrote:[ ]*$",
    re.IGNORECASE | re.MULTILINE,
)
_MAIL_END = re.compile(
    r"^[ ]{0,12}(?:best|(?:(?:kind|best|warm|warmest|many)\s+)?regards|best\s+wishes|all\s+the\s+best|cheers"
    r"|sincerely"
    r"|yours(?:\s+\w+){0,2}|warmly|respectfully|with\s+love|love)[ ]?,[ ]*(?:\n[ ]*)?"
    r"(?-i:[A-Z])[\w'.-]+(?:[ ](?-i:[A-Z])[\w'.-]+){0,2}[ ]*\.?[ ]*(?:$|\n)"
    r"|(?<=[.!?])[ ]+(?:best|regards|sincerely|kind\s+regards|best\s+regards),[ ]*(?:\n[ ]*)?(?-i:[A-Z])\w+[ ]*$",
    re.IGNORECASE | re.MULTILINE,
)
_MAIL_START = re.compile(
    r"^[ ]{0,12}(?:hi|hello|hey|dear)[ ]+(?-i:[A-Z])[^\n]{0,40},[ ]*$", re.IGNORECASE | re.MULTILINE
)


def pasted(text: str) -> str:
    """The text with pasted conversations and e-mails masked; same length."""
    spans = []
    turns = list(_TURN.finditer(text)) if any(mark in text for mark in ":<[") else []
    small = list(_SMALL_TURN.finditer(text))
    if len(small) > 1 and len({m[1] for m in small}) > 1:
        turns += small
    end = 0
    for turn in sorted(turns, key=re.Match.start):
        if turn.end() > end:  # else the blank line that ends it is known: it is not looked for from every turn
            end = text.find("\n\n", turn.end())
            end = len(text) if end < 0 else end
        spans.append((turn.start(), end))
    if head := _MAIL_HEAD.search(text):
        spans.append((head.start(), len(text)))
    if end_ := _MAIL_END.search(text):
        start = _MAIL_START.search(text, 0, end_.start())
        spans.append((start.start() if start else 0, end_.end()))
    return _blanked(text, spans)


def _blanked(text: str, spans: list[tuple[int, int]]) -> str:
    kept, at = [], 0
    for start, end in sorted(spans):
        if end > at:
            kept.append(text[at : max(at, start)])
            kept.append(re.sub(r"[^\n]", MASK, text[max(at, start) : end]))
            at = end
    return "".join([*kept, text[at:]])


def straight(text: str) -> str:
    """The text with plain apostrophes, quotes, spaces and hyphens; same length."""
    return text.translate(_STRAIGHT)


def mask(text: str) -> str:
    """The text, straightened, with everything that is not the speaker's own statement masked; same length."""
    masked = pasted(_FENCE.sub(_blank, text))
    masked = _INLINE_CODE.sub(_blank, masked)
    masked = straight(masked)
    for pattern in (_QUOTED_LINE, _URL):
        masked = pattern.sub(_blank, masked)
    # What stands before pasted data ends there.
    masked = _JSON.sub(lambda match: "\n" + _blank(match)[1:], masked)
    masked = _DOUBLE.sub(_blank_speech, masked)
    return _SINGLE.sub(_blank_speech, masked)


def unquoted(text: str) -> str:
    """The text, straightened, with only quoted speech masked; same length."""
    return _SINGLE.sub(_blank_speech, _DOUBLE.sub(_blank_speech, straight(text)))


def open_fence(text: str) -> str:
    """The mark of a code fence that the text opens and does not close, else an empty string."""
    last = deque(_FENCE.finditer(text), maxlen=1)
    if not last or last[0].end() < len(text):
        return ""
    fenced = last[0][0]
    return "" if len(fenced) > 3 and fenced.endswith(fenced[:3]) else fenced[:3]


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", MASK, match[0])


def _blank_speech(match: re.Match[str]) -> str:
    inner = match[0].strip("\"'")
    closed = len(match[0]) > 1 and match[0][-1] == match[0][0]
    if closed and len(inner) <= 60 and len(inner.split()) <= 4 and not _SAYS.search(inner):
        return " " + match[0][1:-1] + " "
    return MASK * len(match[0]) if closed or match[0][0] == '"' else match[0]
