"""How the user wants to be answered: language, length, form. Closed wording, so that no other instruction passes."""

import re
from collections.abc import Iterator

from langmem_adapter.extraction.clauses import Clause
from langmem_adapter.extraction.masking import straight
from langmem_adapter.extraction.patterns.identity import LANGUAGES, language_name
from langmem_adapter.extraction.phrases import fact, rule
from langmem_adapter.records import Candidate
from langmem_adapter.text import negated

_ANSWER = r"(?:answers?|repl(?:y|ies)|responses?|respond|messages?|explanations?|writing|texts?|emails?)"
_LENGTH = (
    r"(?:shorter|short|brief|concise|terse|longer|long|detailed|thorough|simple|formal|informal|casual"
    r"|direct|friendly|polite|"
    r"succinct|crisp|to\s+the\s+point|step[- ]by[- ]step|technical|non-technical|plain|clear|honest|blunt)"
)
_FORM = (
    r"(?:emojis?|emoticons|smileys|bullet\s+points|bullets|bulleted\s+lists|numbered\s+lists|lists"
    r"|tables|headings|headers|markdown|jargon|"
    r"slang|exclamation\s+(?:marks|points)|swear\s+words|abbreviations|acronyms|code\s+comments"
    r"|small\s+talk|puns|jokes|footnotes|"
    r"metric(?:\s+units)?|imperial(?:\s+units)?|celsius|fahrenheit|(?:24|12)-hour\s+(?:times?|clock|format)|"
    r"(?:british|american|uk|us)\s+spellings?|em[- ]dashes|apologies|filler(?:\s+words)?|long\s+"
    r"paragraphs|first\s+names?|plain\s+text)"
)
_TO_ME = r"(?:\s+(?:to|for|with)\s+me|\s+me)?"
_WHEN = (
    r"(?:\s+(?:when(?:ever)?\s+(?:you\s+)?(?:write|writing|talk|talking|speak|speaking|answer"
    r"|answering|reply|replying|respond|responding)"
    r"(?:\s+to\s+me|\s+me)?|with\s+me|in\s+(?:your\s+|any\s+|the\s+)?(?:answers|replies|responses"
    r"|messages)|from\s+now\s+on|please|always|at\s+all|"
    r"in\s+the\s+future|going\s+forward|thanks|ok|by\s+default))*"
)
_PLEASE = (
    r"(?:(?:please|from\s+now\s+on|going\s+forward|in\s+future|in\s+the\s+future|could\s+you|can\s+you"
    r"|always|just|also|do|i(?:'d|\s+would)?\s+(?:like|prefer|want|love)\s+(?:it\s+if\s+)?you\s+"
    r"(?:to\s+)?(?:always\s+)?),?\s+)*"
)
_STATE = frozenset({"modal"})


def _language(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    language = language_name(match["language"])
    if language.split()[0] in ("plain", "simple"):  # how, not in which language
        yield fact(f"The user wants answers in {language}.", "preference/style", "answers", language, kind="preference")
        return
    yield fact(f"The user wants to be answered in {language}.", "identity/language", value=language, kind="preference")


def _style(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = " ".join(match["how"].casefold().split())
    yield fact(f"The user wants {what} answers.", "preference/style", "answers", what, kind="preference")


def _no(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = _upright(match["form"])
    # The content denies only if the words do: grounding compares the two.
    wanted = f"no {what} in answers" if negated(match[0]) else f"answers free of {what}"
    yield fact(f"The user wants {wanted}.", "preference/style", _singular(what), "none", kind="preference")


def _with(match: re.Match[str], _: Clause) -> Iterator[Candidate]:
    what = _upright(match["form"])
    yield fact(f"The user wants {what} in answers.", "preference/style", _singular(what), "wanted", kind="preference")


def _upright(words: str) -> str:
    folded = " ".join(words.casefold().split())
    return re.sub(r"\b(?:british|american|celsius|fahrenheit)\b", lambda m: m[0].capitalize(), folded)


def _singular(what: str) -> str:
    return "emoji" if what in ("emojis", "emoticons", "smileys") else what


_SAY = r"(?:answer|reply|respond|write|talk|speak|chat|communicate|explain\s+(?:things|everything))"
RULES = (
    rule(
        rf"{_PLEASE}{_SAY}{_TO_ME}\s+(?:always\s+|only\s+)?(?:in\s+)?(?P<language>{LANGUAGES})(?:\s+only)?{_WHEN}$",
        _language,
        tolerates=_STATE,
        closed=True,
    ),
    rule(
        r"i(?:'d)?\s+(?:prefer|like|want|would\s+like|would\s+prefer)\s+(?:to\s+(?:communicate|chat|talk"
        rf"|be\s+answered|write)\s+in\s+|{_ANSWER}\s+in\s+|your\s+{_ANSWER}\s+in\s+"
        rf")(?P<language>{LANGUAGES}){_WHEN}$",
        _language,
        tolerates=_STATE,
        closed=True,
    ),
    rule(
        rf"{_PLEASE}(?:always\s+)?(?:use|write)\s+(?:in\s+)?(?P<language>(?:british|american|us|uk|plain"
        rf"|simple)\s+english){_WHEN}$",
        _language,
        tolerates=_STATE,
        closed=True,
    ),
    rule(
        rf"{_PLEASE}(?:keep|make)\s+(?:(?:all\s+)?(?:your|the|my|all)\s+)?(?:{_ANSWER}|it|things)\s+"
        rf"(?:as\s+)?(?P<how>{_LENGTH})(?:\s+as\s+possible)?{_WHEN}$",
        _style,
        tolerates=_STATE,
        closed=True,
    ),
    rule(
        rf"{_PLEASE}(?:be|stay|keep\s+it)\s+(?:more\s+)?(?P<how>{_LENGTH})(?:\s+(?:and\s+to\s+the\s+point"
        rf"|in\s+your\s+{_ANSWER}))?{_WHEN}$",
        _style,
        tolerates=_STATE,
        closed=True,
    ),
    rule(
        rf"{_PLEASE}(?:give|send)\s+me\s+(?:only\s+)?(?P<how>{_LENGTH})\s+{_ANSWER}{_WHEN}$",
        _style,
        tolerates=_STATE,
        closed=True,
    ),
    rule(
        r"i\s+(?:really\s+|much\s+|always\s+|generally\s+)*(?:prefer|like|want|love)\s+(?:your\s+"
        rf")?(?P<how>{_LENGTH})\s+{_ANSWER}{_WHEN}$",
        _style,
        closed=True,
    ),
    rule(
        rf"i\s+(?:really\s+|much\s+)*(?:prefer|like|want)\s+(?:your|my)\s+{_ANSWER}\s+(?:to\s+be\s+"
        rf")?(?P<how>{_LENGTH}){_WHEN}$",
        _style,
        closed=True,
    ),
    rule(
        rf"{_PLEASE}(?:never|don't|do\s+not|dont|stop|avoid)\s+(?:ever\s+)?(?:use|using|include|including"
        rf"|add|adding|send|sending|put|putting)?\s*(?:any\s+|me\s+|so\s+many\s+)?(?P<form>{_FORM}){_WHEN}$",
        _no,
        tolerates=_STATE,
        closed=True,
    ),
    rule(
        rf"{_PLEASE}(?:no|without|skip|leave\s+out)\s+(?:the\s+|any\s+|more\s+)?(?P<form>{_FORM}){_WHEN}$",
        _no,
        tolerates=_STATE,
        closed=True,
    ),
    rule(rf"i\s+(?:don't|do\s+not|dont)\s+(?:want|like|need)\s+(?:any\s+)?(?P<form>{_FORM}){_WHEN}$", _no, closed=True),
    rule(
        rf"{_PLEASE}(?:always\s+)?(?:use|answer\s+(?:me\s+)?(?:in|with)|write\s+in|give\s+me)\s+"
        rf"(?P<form>{_FORM}){_WHEN}$",
        _with,
        tolerates=_STATE,
        closed=True,
    ),
)


def asks(sentence: str) -> bool:
    """Whether a sentence says how the user wants to be answered, and nothing else."""
    said = straight(sentence).strip(" .!\n")
    return len(said) <= 200 and any(r.pattern.match(said) for r in RULES if r.closed)
