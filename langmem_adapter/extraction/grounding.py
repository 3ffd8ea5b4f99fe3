"""Whether a proposed fact rests on the words it cites: the check every candidate passes, whoever proposed it."""

import re
import unicodedata
from collections.abc import Mapping

from langmem_adapter.records import Candidate, Message
from langmem_adapter.text import negated, numbers, one_line, words

_PLACEHOLDER = re.compile(
    r"\{\{?\s*[\w. ]{1,40}\}?\}"
    r"|<\s*(?:insert|your|name|city|company|enter|add|placeholder|user)\b[^<>]{0,40}>"
    r"|\[\s*(?:insert|your|name|city|company|enter|add|placeholder|user)\b[^\[\]]{0,40}\]"
    r"|\b(?:john|jane)\s+doe\b|\blorem ipsum\b|\b(?:foo|acme)\s*bar\b|\bxx+\b|\b_{3,}\b",
    re.IGNORECASE,
)
_CAPITALISED = re.compile(r"(?<!\w)[^\W\d_][\w'’.-]*")
_NOT_NAMES = frozenset("user the i a an".split())


def ground(candidate: Candidate, messages: Mapping[str, Message]) -> str | None:
    """None if the candidate rests on its excerpt, else a reason code.

    `no_excerpt`, `unknown_message`, `excerpt_not_in_message`, `placeholder`, `ungrounded_name`,
    `ungrounded_number`, `negation_differs`. `messages` is keyed by message id; a candidate that names no message
    may cite any of them.
    """
    if not candidate.excerpt.strip():
        return "no_excerpt"
    cited = _cited(candidate, messages)
    if cited is None:
        return "unknown_message"
    if not any(_holds(m.text, candidate.excerpt) for m in cited):
        return "excerpt_not_in_message"
    return unsupported(candidate)


def _holds(text: str, excerpt: str) -> bool:
    # Most excerpts are exact: a long message is folded only for those that are not.
    return excerpt in text or _folded(excerpt) in _folded(text)


def _cited(candidate: Candidate, messages: Mapping[str, Message]) -> list[Message] | None:
    if candidate.message_id is None:
        return list(messages.values())
    message = messages.get(candidate.message_id)
    return None if message is None else [message]


def unsupported(candidate: Candidate) -> str | None:
    """Why the content does not rest on the excerpt, wherever that stands; None if it does."""
    content, excerpt = candidate.content, candidate.excerpt
    if any(_PLACEHOLDER.search(part) for part in (content, candidate.value, candidate.slot)):
        return "placeholder"
    if not _names(content) <= _tokens(excerpt):
        return "ungrounded_name"
    if not numbers(content) <= numbers(excerpt):
        return "ungrounded_number"
    if negated(content) != negated(excerpt):
        return "negation_differs"
    return None


def _folded(text: str) -> str:
    return one_line(unicodedata.normalize("NFC", text)).casefold().replace("’", "'")


def _tokens(text: str) -> frozenset[str]:
    return frozenset(t for w in words(unicodedata.normalize("NFC", text)) for t in (w, w.removesuffix("'s")))


def _names(content: str) -> frozenset[str]:
    """Capitalised words that do not open a sentence, folded as `words` folds them."""
    found: set[str] = set()
    for match in _CAPITALISED.finditer(content):
        before = content[: match.start()].rstrip(" \"'(“‘")
        opens = not before or before[-1] in ".!?"
        if match[0][0].isupper() and not opens and match[0].casefold() not in _NOT_NAMES:
            found.update(t.removesuffix("'s") for t in words(match[0]))
    return frozenset(found) - _NOT_NAMES
