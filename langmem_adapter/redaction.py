"""Secrets are cut out of a text before anything else sees it: the queue, the store, a log, a chat model, an embedder.

`DEFAULT_SECRETS` is data: `Guard(secrets=[*DEFAULT_SECRETS, Secret("badge number", r"\\bB-\\d{6}\\b")])` adds to it. A
secret is known by its form (keys, tokens, cards, accounts) or by the word before it ("my PIN is …").
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from langmem_adapter.errors import InvalidInput


def _luhn(written: str) -> bool:
    digits = [int(c) for c in reversed(written) if c.isdigit()]
    return sum(d if i % 2 == 0 else sum(divmod(2 * d, 10)) for i, d in enumerate(digits)) % 10 == 0


def _iban(written: str) -> bool:
    iban = written.replace(" ", "").upper()
    return int("".join(str(int(c, 36)) for c in iban[4:] + iban[:4])) % 97 == 1


_WORDS = frozenset(
    "wrong weak strong too not the a an in on of at to expired lost gone forgotten stored saved different same long "
    "short secure insecure invalid incorrect required safe unsafe old new changed reset blocked locked missing hard "
    "easy very always never being going still only just what my your his her our their it that this also used shared "
    "needed fine working broken stolen unknown known empty manager managers protected and or for with something "
    "nothing none no yes more less better bad good great".split()
)


def _no_word(value: str) -> bool:
    return value.casefold() not in _WORDS


def _table(*classes: tuple[str, str]) -> bytes:
    marks = {ord(c): mark for members, mark in classes for c in members}
    return bytes(ord(marks.get(i, " ")) for i in range(256))


_DIGITS, _UPPER, _LOWER = "0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
_SHAPES: dict[str, tuple[bytes, bytes, bytes]] = {
    "long word": (_table((_DIGITS + _UPPER + _LOWER + "_-.+/=~", "a")), b"", b"a" * 16),
    "many digits": (_table((_DIGITS, "0"), (_UPPER + _LOWER + ".,\n", "a")), b" -", b"0" * 13),
    "account": (_table((_DIGITS, "0"), (_UPPER, "A")), b"", b"AA00"),
}


class _Text:
    """A text, and what can quickly be told of it: a long message must not be searched for each kind of secret."""

    def __init__(self, text: str) -> None:
        self._bytes = text.encode("utf-8", "replace")
        self._folded = text.casefold()
        self._shapes: dict[str, bool] = {}

    def has(self, near: str) -> bool:
        """Whether it has this word, or (see `_SHAPES`) this shape."""
        if near not in _SHAPES:
            return near in self._folded
        if near not in self._shapes:
            table, without, found = _SHAPES[near]
            kept = self._bytes.translate(None, without) if without else self._bytes
            self._shapes[near] = found in kept.translate(table)
        return self._shapes[near]


@dataclass(frozen=True, slots=True)
class Secret:
    """One kind of secret: what stands for it is `[redacted <name>]`.

    `pattern`: a regular expression, tried without regard to case; its group `secret` is cut out, or the whole match.
    `check`: what else must hold of what is cut out. `near`: words (in lower case) of which the text must have one for
    the pattern to be tried at all; none: it is always tried. InvalidInput for a pattern that is no regular expression.
    """

    name: str
    pattern: str
    check: Callable[[str], bool] | None = None
    near: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        try:
            re.compile(self.pattern, re.IGNORECASE)
        except (re.error, TypeError) as error:
            raise InvalidInput(f"pattern of secret {self.name!r} is no regular expression: {error}") from error

    def cut(self, text: str) -> str:
        """The text without these secrets."""
        return re.sub(self.pattern, self._mark, text, flags=re.IGNORECASE)

    def _mark(self, match: re.Match[str]) -> str:
        group = "secret" if "secret" in match.re.groupindex else 0
        if self.check is not None and not self.check(match[group]):
            return match[0]
        start, end = match.start(group) - match.start(), match.end(group) - match.start()
        return f"{match[0][:start]}[redacted {self.name}]{match[0][end:]}"


_IS = r"(?:\s+(?:is|was|are|lautet|ist|est|es)\s+(?:now\s+|still\s+)?|(?:\s+lautet)?\s*[=:]\s*)"
_OF = r"(?:\s+(?:for|to|of|at|on)\s+[^\n.,;:=]{1,30}?)?"
_VALUE = r"[\"'`]?(?P<secret>(?!\[redacted)[^\s\"'`,;]{2,200}?)(?=[.!?)\]}]*(?:[\s\"'`,;]|$))"
_CODE_OF = (
    r"(?:one[- ]time|alarm|door|gate|entry|access|unlock|verification|safe|lock|login|log-in|backup|security|sms"
    r"|confirmation|authenticator|2fa)"
)

DEFAULT_SECRETS: tuple[Secret, ...] = (
    Secret(
        "private key",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----|\Z)",
        near=("private key",),
    ),
    Secret(
        "key",
        r"\b(?:(?:AKIA|ASIA)[0-9A-Z]{12,}|(?:sk|pk|rk)[-_](?:[a-z]+[-_])*[\w-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}"
        r"|glpat-[\w-]{16,}|xox[abeoprs]-[\w-]{10,}|AIza[\w-]{30,}|hf_\w{20,}|npm_\w{30,}|SG\.[\w-]{16,100}\.[\w-]{16,}"
        r"|ya29\.[\w-]{20,}|eyJ[\w-]{6,2000}\.[\w-]{6,4000}(?:\.[\w-]*)?)",
        near=("long word",),
    ),
    Secret("password", r"\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@]{0,200}:(?P<secret>[^\s@/]{1,200})@", near=("://",)),
    Secret("token", r"\b(?:bearer|basic)\s+(?P<secret>[\w.~+/=-]{16,})", near=("long word",)),
    Secret(
        "phrase",
        rf"\b(?:seed|recovery|backup)\s+phrase{_OF}{_IS}(?P<secret>[^\n.]+)",
        near=("phrase",),
    ),
    Secret(
        "password",
        r"(?<![a-z])(?:pass\s?words?|passwd|pwd|pass\s?codes?|passphrase|passwort|kennwort|mot\s+de\s+passe"
        rf"|contrase(?:ñ|n)a|wachtwoord){_OF}{_IS}{_VALUE}",
        _no_word,
        ("pass", "pwd", "kennwort", "contrase", "wachtw"),
    ),
    Secret(
        "token",
        r"(?<![a-z])(?:api[ _-]?(?:key|token)|(?:[a-z]+[_-])?(?:secret|token)(?:[_ -]?key)?"
        r"|(?:access|secret|private)[ _-]key)"
        rf"{_OF}(?:\s*[=:]\s*|\s+(?:is|was)\s+)(?:[\"'`]?(?P<secret>(?=[^\s\"'`,;]{{0,200}}\d)[^\s\"'`,;]{{6,200}}))",
        near=("key", "token", "secret"),
    ),
    Secret(
        "token",
        r"\b(?:secret|key|token)\s+(?P<secret>(?=\S{0,200}\d)(?=\S{0,200}[a-z])[\w/+=-]{20,200})",
        near=("long word",),
    ),
    Secret(
        "code",
        rf"\b(?:pin|pin[- ](?:code|number)|cvv2?|cvc2?|otp|{_CODE_OF}\s+(?:\w+\s+)?(?:code|pin|combination))\b"
        r"[^\d\n.!?]{0,40}?(?P<secret>\d(?:[ -]?\d){2,9})(?!\d)",
        near=("pin", "cvv", "cvc", "otp", "code", "combination"),
    ),
    Secret(
        "social security number",
        r"\b(?:ssn|social\s+security(?:\s+number)?)\b[^\d\n]{0,20}(?P<secret>\d{3}[- ]?\d{2}[- ]?\d{4})",
        near=("ssn", "social"),
    ),
    Secret("card number", r"(?<![\d-])[2-6]\d{3}(?:[ -]?\d){9,15}(?![\d-])", _luhn, near=("many digits",)),
    Secret("account number", r"(?-i:\b[A-Z]{2})\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b", _iban, ("account",)),
)


def redacted(text: str, secrets: Iterable[Secret] = DEFAULT_SECRETS) -> str:
    """The text with every secret replaced by a mark that says what stood there."""
    look = _Text(text)
    for secret in secrets:
        if not secret.near or any(look.has(near) for near in secret.near):
            text = secret.cut(text)
    return text


def has_mark(text: str) -> bool:
    """Whether a secret was cut out of the text."""
    return "[redacted " in text
