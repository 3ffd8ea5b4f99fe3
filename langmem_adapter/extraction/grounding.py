"""Whether a proposed fact rests on the words it cites: the check every candidate passes, whoever proposed it."""

import re
import unicodedata
from collections.abc import Callable, Mapping

from langmem_adapter.extraction.times import timed
from langmem_adapter.languages import (
    CJK,
    FIRST,
    FRAME,
    GERMAN,
    GERMAN_NOUNS,
    JOINS,
    ME,
    NEGATING,
    NEGATIONS,
    NUMBER,
    OPENERS,
    OTHERS,
    REMINDERS,
    TELLS,
    TRAILING,
    USER,
)
from langmem_adapter.records import Candidate, Message
from langmem_adapter.text import negated, numbers, one_line, stem, stems, words

_PLACEHOLDER = re.compile(
    r"\{\{?\s*[\w. ]{1,40}\}?\}"
    r"|<\s*(?:insert|your|name|city|company|enter|add|placeholder|user)\b[^<>]{0,40}>"
    r"|\[\s*(?:insert|your|name|city|company|enter|add|placeholder|user)\b[^\[\]]{0,40}\]"
    r"|\b(?:john|jane)\s+doe\b|\blorem ipsum\b|\b(?:foo|acme)\s*bar\b|\bxx+\b|\b_{3,}\b",
    re.IGNORECASE,
)
_CAPITALISED = re.compile(r"(?<!\w)[^\W\d_][\w'’.-]*")
_END = re.compile(r"[.!?\n]")
_BREAK = re.compile(r"[.,;:!?\n。，！？；、]")
_USER = frozenset(w for line in USER.values() for w in line.split())
_NOT_NAMES = frozenset("i a an the".split()) | _USER
_USER_CJK = [w for w in _USER if CJK.match(w)]
_FRAME = _USER | frozenset(w for lines in (FRAME, NEGATIONS) for line in lines.values() for w in line.split())
_CODES = frozenset("like likes dislike dislikes love hate yes no true false never always".split())
"""What values are called whatever the words were."""
_ELIDED = frozenset("l d j m n s t c qu un dell all nell dall sull".split())
_CONTRACTED = frozenset("m d ll re s ve".split())
"""What is written in one with the word behind it ("L'Oréal", "d'Oslo"), and with the one before ("I'm", "Paul's")."""
NAMED = frozenset(["home/location", "work/employer", "identity/name"])
"""Topics whose value is a name, which the user must have said."""


def ground(candidate: Candidate, messages: Mapping[str, Message]) -> str | None:
    """None if the candidate rests on its excerpt, else a reason code.

    `no_excerpt` (also one that says nothing), `unknown_message`, `excerpt_not_in_message`, `placeholder`,
    `ungrounded_name`, `ungrounded_number`, `ungrounded_value`, `ungrounded_content`, `negation_differs`,
    `about_another`. `messages` is keyed by message id; a
    candidate that names no message may cite any of them.
    """
    if not stems(candidate.excerpt):
        return "no_excerpt"
    cited = _cited(candidate, messages)
    if cited is None:
        return "unknown_message"
    holding = next((m for m in cited if _holds(m.text, candidate.excerpt)), None)
    if holding is None:
        return "excerpt_not_in_message"
    if reason := unsupported(candidate, holding.text):
        return reason
    of_another = holding.role == "human" and candidate.subject == "user" and _of_another(candidate, holding.text)
    return "about_another" if of_another else None


def _holds(text: str, excerpt: str) -> bool:
    # Most excerpts are exact: a long message is folded only for those that are not.
    return excerpt in text or _folded(excerpt) in _folded(text)


def _cited(candidate: Candidate, messages: Mapping[str, Message]) -> list[Message] | None:
    if candidate.message_id is None:
        return list(messages.values())
    message = messages.get(candidate.message_id)
    return None if message is None else [message]


def unsupported(candidate: Candidate, message: str = "") -> str | None:
    """Why the content does not rest on the excerpt (and the clause it stands in, of this message); None if it does."""
    content, excerpt = candidate.content, candidate.excerpt
    fields = (candidate.value, candidate.slot, "" if candidate.subject == "user" else candidate.subject)
    if any(_PLACEHOLDER.search(part) for part in (content, candidate.value, candidate.slot)):
        return "placeholder"
    said = _Said(excerpt)
    if not said.all(_names(content, german=not GERMAN.isdisjoint(words(content)))):
        return "ungrounded_name"
    named = frozenset[str]().union(*(_names(field, opening=True) for field in fields)) - _CODES
    value = _meaning(candidate.value)
    if named or len(value) > 1:  # one word may be a code
        both = _Said(f"{excerpt}\n{content}")
        if not both.all(named) or not (len(value) < 2 or both.most(value)):
            return "ungrounded_value"
    if candidate.topic in NAMED and not said.all(frozenset(words(candidate.value)) - _NOT_NAMES):
        return "ungrounded_value"
    if not numbers(" ".join((_undated(candidate), *fields))) <= numbers(excerpt):
        return "ungrounded_number"
    if negated(content) != (negated(excerpt) or _denied(message, excerpt)):
        return "negation_differs"
    if not said.most(_meaning(content)):
        return "ungrounded_content"
    return None


def _undated(candidate: Candidate) -> str:
    """The content without the days, months and years of its own times: "last Friday" may be told as a date."""
    content = candidate.content
    if not timed(candidate.excerpt):
        return content
    for time in (candidate.valid_from, candidate.valid_to):
        for form in ("%Y-%m-%d", "%Y-%m", "%Y") if time else ():
            content = re.sub(rf"\b(on|in|of|around|[A-Z][a-z]+) {time:{form}}(?![\w-])", r"\1", content)
    return content


def mentions(text: str) -> Callable[[str], bool]:
    """Whether each word of a name (at least one) stands in the text, in whatever form; the text is read once."""
    said = _Said(text)
    return lambda name: bool(words(name)) and said.all(frozenset(words(name)))


class _Said:
    """The words of a text, found again also inflected."""

    def __init__(self, text: str) -> None:
        self._text = _folded(text)
        self._words = _tokens(text)
        self._words |= {_bare(w) for w in self._words if "'" in w}
        self._stems = frozenset(stem(w) for w in self._words)

    def all(self, names: frozenset[str]) -> bool:
        return all(self._has(name) for name in names)

    def most(self, meant: frozenset[str]) -> bool:
        """Whether it has at least half of these words; of a script without spaces, of their characters."""
        signs = frozenset(c for w in meant for c in w if CJK.match(c))
        if signs:
            return 2 * len(signs & frozenset(self._text)) >= len(signs)
        short = tuple(w for w in self._words if len(w) >= 3)  # "veg" for "vegetarian"
        return 2 * sum(self._has(w) or w.startswith(short) for w in meant) >= len(meant)

    def _has(self, name: str) -> bool:
        if name in self._words or stem(name) in self._stems or _bare(name) in self._words:
            return True
        if CJK.search(name):
            return name in self._text
        # "Katze" in "Katzen", "Vegetarierin" in "Vegetarier"
        return any(min(len(name), len(w)) >= 4 and (name.startswith(w) or w.startswith(name)) for w in self._words)


def _of_another(candidate: Candidate, message: str) -> bool:
    """Whether the sentence cited tells of somebody else, and the fact of the user: "Bob is allergic"."""
    at = max(0, message.find(candidate.excerpt))
    start = max(message.rfind(mark, 0, at) for mark in ".!?\n") + 1
    told = _END.split(message[start:].lstrip(), maxsplit=1)[0].split()
    said = words(" ".join(told))
    if len(said) < 2 or not ME.isdisjoint(said) or "user's" in words(candidate.content):
        return False
    named = told[0][0].isupper() and said[0] not in OPENERS and not _Said(candidate.content).all(frozenset(said[:1]))
    return said[1] in TELLS and (said[0] in OTHERS or named)


def _meaning(content: str) -> frozenset[str]:
    """The words of a fact that say what it is about: not those with which any fact is told, and no numbers."""
    told = content
    for name in _USER_CJK:
        told = told.replace(name, "")
    return frozenset(w for w in _tokens(told) if w not in _FRAME and w not in NUMBER and not w.isdecimal())


def _denied(message: str, excerpt: str) -> bool:
    """Whether the clause of the message denies what was cut out of it: "I am not a vegetarian", "a vegetarian"."""
    text, part = _folded(message), _folded(excerpt)
    at = text.find(part)
    if at < 0:
        return False
    before = REMINDERS.sub("", _BREAK.split(text[max(0, at - 200) : at])[-1]).split()
    own = part.split()[0] in FIRST and (not before or before[-1] in JOINS)
    if not own:
        start = max(
            (n + 1 for n, word in enumerate(before) if word in JOINS - {"and", "or", "y", "e", "et", "und"}), default=0
        )
        if negated(" ".join(before[start:])):
            return True
    after: list[str] = []
    end = at + len(part)
    rest = "" if part[-1:] and _BREAK.match(part[-1]) else _BREAK.split(text[end : end + 200])[0]
    for word in rest.split():
        if word in JOINS:
            break
        after.append(word)
    return not TRAILING.isdisjoint(after) or bool(CJK.search(rest) and NEGATING.search(rest))


def _folded(text: str) -> str:
    return one_line(unicodedata.normalize("NFC", text)).casefold().replace("’", "'")


def _tokens(text: str) -> frozenset[str]:
    said = words(unicodedata.normalize("NFC", text))
    return frozenset(said).union([w.removesuffix("'s") for w in said if w.endswith("'s")])


def _names(content: str, *, opening: bool = False, german: bool = False) -> frozenset[str]:
    """Capitalised words, folded as `words` folds them; of those that open a sentence, what is no usual opener."""
    found: set[str] = set()
    for match in _CAPITALISED.finditer(content):
        before = content[: match.start()].rstrip(" \"'(“‘")
        opens = not opening and (not before or before[-1] in ".!?")
        if match[0][0].isupper() and not (opens and _bare(_folded(match[0]).rstrip(".")) in OPENERS):
            found.update(t.removesuffix("'s") for t in words(match[0]))
    no_names = _NOT_NAMES | (GERMAN_NOUNS if german else frozenset())
    # "L'utilisateur", "I'm", "Don't"
    return frozenset(t for t in found if t not in no_names and _bare(t) not in no_names and not t.endswith("n't"))


def _bare(word: str) -> str:
    """The word without what is written in one with it; "o'brien" is all one name."""
    head, _, tail = word.rpartition("'")
    if head and tail in _CONTRACTED:
        return head
    head, _, tail = word.partition("'")
    return tail if tail and head in _ELIDED else word
