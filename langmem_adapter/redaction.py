"""Secrets are cut out of a text before anything else sees it: the queue, the store, a log, a chat model, an embedder.

`DEFAULT_SECRETS` is data: `Guard(secrets=[*DEFAULT_SECRETS, Secret("badge number", r"\\bB-\\d{6}\\b")])` adds to it. A
secret is known by its form (keys, tokens, cards, accounts) or by the word before it ("my PIN is …"). Spaces, dashes,
quotes and digits of other kinds, HTML entities for them and letters that look Latin are read as the plain ones, and cut
out as they were written.
"""

import html
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from langmem_adapter.errors import InvalidInput
from langmem_adapter.lookalikes import folded

logger = logging.getLogger("langmem_adapter")


def _luhn(written: str) -> bool:
    digits = [int(c) for c in reversed(written) if c.isdigit()]
    return sum(d if i % 2 == 0 else sum(divmod(2 * d, 10)) for i, d in enumerate(digits)) % 10 == 0


_DATED = re.compile(
    r"(?:19|20)\d\d-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])[ -]?(?:[01]\d|2[0-3])(?:[ -]?[0-5]\d){2}"
)


_DAYS = re.compile(
    r"(?<!\d)(?:(?:19|20)\d\d([-./])\d\d?\1\d\d?|\d\d?([-./])\d\d?\2(?:19|20)\d\d)(?!\d)|^(?:(?:19|20)\d\d\D*){3,}$"
)
_NO_LENGTH = re.compile(r"4(?:\d{13,14}|\d{16,17})|5[1-5](?:\d{11,13}|\d{15,17})|35\d{13}")
"""Digits that begin like a card of a kind that has another length: the numbers of goods and of phones do."""


def _card(written: str) -> bool:
    """Whether it passes the check of card numbers, and is neither one digit over and over nor days, years or a time."""
    digits = re.sub(r"\D", "", written)
    return (
        len(set(digits)) > 1
        and not _NO_LENGTH.fullmatch(digits)
        and not _DATED.match(written)
        and not _DAYS.search(written)
        and _luhn(digits)
    )


def _odd_card(written: str) -> bool:
    """Whether it is a card number of the usual length for its kind."""
    length = sum(c.isdigit() for c in written)
    return (length == 15 if written[0] == "3" else length == 16) and _card(written)


def _spaced_iban(written: str) -> bool:
    iban = re.sub(r"[\W_]", "", written).upper()
    return len(iban) == _IBAN_LENGTH.get(iban[:2]) and sum(c in _DIGITS for c in iban) >= 10 and _iban(iban)


def _iban(written: str) -> bool:
    iban = re.sub(r"[ .-]", "", written)
    if not iban.isascii():  # the long s is a letter to a pattern that ignores case
        return False
    if iban[:2] != iban[:2].upper() and len(iban) != _IBAN_LENGTH.get(iban[:2].upper()):
        return False  # of what is written small, hardly one in ten is an account
    return int("".join(str(int(c, 36)) for c in iban[4:] + iban[:4])) % 97 == 1


_IBAN_LENGTH = {
    code: length
    for length, codes in (
        (15, "NO"),
        (16, "BE"),
        (18, "DK FI FO GL NL"),
        (19, "MK SI"),
        (20, "AT BA EE KZ LT LU XK"),
        (21, "CH HR LI LV"),
        (22, "BG BH CR DE GB GE IE ME RS VA"),
        (23, "AE GI IL IQ TL"),
        (24, "AD CZ ES MD PK RO SA SE SK TN VG"),
        (25, "LY PT ST"),
        (26, "IS TR"),
        (27, "FR GR IT MC MR SM"),
        (28, "AL AZ BY CY DO GT HU LB PL SV"),
        (29, "BR EG PS QA UA"),
        (30, "JO KW MU"),
        (31, "MT SC"),
        (32, "LC"),
    )
    for code in codes.split()
}
"""Characters of an account number by country, from the IBAN registry."""

_PLAIN = {
    **{chr(c): " " for c in (0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)},
    **{chr(c): "-" for c in (*range(0x2010, 0x2016), 0x2043, 0x2212, 0xFE58, 0xFE63)},
    **{chr(c): "." for c in (0xB7, 0x2022, 0x2024, 0x2027, 0x3002)},
    **{chr(c): "'" for c in (0x2018, 0x2019, 0x201A, 0x201B, 0x2039, 0x203A)},
    **{chr(c): '"' for c in (0xAB, 0xBB, 0x201C, 0x201D, 0x201E, 0x201F)},
    **{chr(first + n): str(n) for first in (0x660, 0x6F0, 0x966, 0x9E6) for n in range(10)},
    **{chr(c): chr(c - 0xFEE0) for c in range(0xFF01, 0xFF5F)},
}
_ODD = re.compile(f"[{re.escape(''.join(_PLAIN))}]")
_ENTITY = re.compile(r"&(?:nbsp|quot|apos|lt|gt|#(?:32|34|39|60|62|160|x20|x22|x27|x3c|x3e|xa0));", re.IGNORECASE)


def _unescaped(entity: re.Match[str]) -> str:
    """The sign, and spaces to the same length on the side where no word is."""
    sign, length = html.unescape(entity[0].lower()), len(entity[0])
    opens = entity.string[entity.end() : entity.end() + 1].strip(" ,:;.!?)]}&</\n") != ""
    return sign.rjust(length) if opens or sign == "<" else sign.ljust(length)


def _plain(text: str) -> str:
    """The text with plain letters, spaces, dashes, quotes and digits; same length."""
    if "&" in text:
        text = _ENTITY.sub(_unescaped, text)
    return text if text.isascii() else folded(_ODD.sub(lambda m: _PLAIN[m[0]], text), mixed=True)


_FUNCTION = frozenset(
    "a about after again all also always an and any anymore are as at be because been before being but by can "
    "could did do does for from getting had has have he her here his how i if in into is it its just like made me "
    "my never no not of on one or our please pls probably quite really set she should since so some still thank "
    "thanks that the their them then there they this to too until us very was we were what when where which who "
    "why will with without would you your aber auch auf bitte das dass der die ein eine für ich ist mehr mein "
    "meine mit nicht noch oder schon sehr und von zu dans de des du est et je la le les mais mon ne pas plus pour "
    "que qui très un une con en es está mi muy para pero por een het ik maar met mijn niet van voor zeer".split()
)
"""Words that join others: "my password is in the safe" tells none, and it ends before "and my dog is Rex"."""
_WORDS = _FUNCTION | frozenset(
    "wrong weak strong expired lost gone forgotten stored saved different same long short secure insecure invalid "
    "incorrect required safe unsafe old new changed reset blocked locked missing hard easy going only used shared "
    "needed fine working broken stolen unknown known empty manager managers protected something nothing none null true "
    "false yes more less better bad good great case sensitive encrypted hashed complicated complex simple similar "
    "hidden private public valid ok okay due called hacked leaked guessed easily cracked compromised exposed printed "
    "written sent mailed emailed given made kept chosen created generated managed rotated under behind inside below "
    "above near next taped attached unique random "
    "annoying case-sensitive important something required optional mandatory season "
    "falsch weg vergessen gespeichert oublié perdu olvidada perdida vergeten".split()
)


def _phrase(value: str) -> bool:
    return _no_word(value.split()[0])


def _seed(value: str) -> bool:
    """Whether these are words in a row, and no sentence about them: a seed may begin with "about" or "can"."""
    words = value.casefold().split()
    few = len(words) >= 10 and 4 * sum(w in _FUNCTION for w in words) < len(words)
    return bool(words) and (few or _no_word(words[0]))


def _no_word(value: str) -> bool:
    return value.casefold() not in _WORDS


def _table(*classes: tuple[str, str]) -> bytes:
    marks = {ord(c): mark for members, mark in classes for c in members}
    return bytes(ord(marks.get(i, " ")) for i in range(256))


_DIGITS, _UPPER, _LOWER = "0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
_SHAPES: dict[str, tuple[bytes, bytes, bytes]] = {
    "long word": (_table((_DIGITS + _UPPER + _LOWER + "_-.+/=~", "a")), b"", b"a" * 16),
    "many digits": (_table((_DIGITS, "0"), (_UPPER + _LOWER, "a")), b" -./_\t\n\r,:|*()[]~#", b"0" * 13),
    "account": (_table((_DIGITS, "0"), (_UPPER + _LOWER, "A")), b"", b"AA00"),
    "spaced account": (_table((_DIGITS, "0"), (_UPPER + _LOWER, "A")), b" -./_\t\n\r,:|*", b"AA00"),
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
    Where it matches without that group, which it has, nothing is cut out, and what it matched is passed over.
    `check`: what else must hold of what is cut out; where it raises, this is taken to hold. `near`: words (in lower
    case) of which the text must have one for the pattern to be tried at all; none: it is always tried. InvalidInput
    for a name that is no line of text without brackets, a pattern that is no regular expression or is content with an
    empty text, a check that cannot be called, and words that are no tuple of texts in lower case.
    """

    name: str
    pattern: str
    check: Callable[[str], bool] | None = None
    near: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(r"[^\s\[\]](?:[^\n\r\[\]]*[^\s\[\]])?", self.name):
            raise InvalidInput(f"name of a secret is one line without brackets, e.g. 'badge', got {self.name!r:.80}")
        if not isinstance(self.pattern, str):
            raise InvalidInput(
                f"pattern of secret {self.name!r} must be a regular expression, got {self.pattern!r:.80}"
            )
        try:
            empty = re.compile(self.pattern, re.IGNORECASE).search("")
        except re.error as error:
            raise InvalidInput(f"pattern of secret {self.name!r} is no regular expression: {error}") from error
        if empty:
            raise InvalidInput(f"pattern of secret {self.name!r} matches an empty text, got {self.pattern!r:.80}")
        if self.check is not None and not callable(self.check):
            raise InvalidInput(f"check of secret {self.name!r} must be callable with a text, got {self.check!r:.80}")
        near = self.near if isinstance(self.near, tuple) else (None,)
        if not all(isinstance(n, str) and n and (n in _SHAPES or n == n.casefold()) for n in near):
            raise InvalidInput(f"near of secret {self.name!r} is a tuple of words in lower case, got {self.near!r:.80}")

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where these secrets stand in the text, in order."""
        pattern = re.compile(self.pattern, re.IGNORECASE)
        part = "secret" if "secret" in pattern.groupindex else 0
        found: list[tuple[int, int]] = []
        at = 0  # where none was found before: it grows with every match, also with one of nothing
        while at <= len(text) and (match := pattern.search(text, at)):
            start = match.start(part)
            if start < 0:
                at = max(match.end(), at + 1)
                continue
            ends = self._ends(pattern, match, part)
            end = next((e for e in ends if e > start and self._holds(text[start:e])), 0)
            if end:
                found.append((max(start, found[-1][1] if found else 0), end))
            # What is none may still begin with something else: the next one is looked for behind its first word.
            at = max(end or _FIRST.match(text, start).end(), match.start() + 1)  # type: ignore[union-attr]
        return found

    def _holds(self, found: str) -> bool:
        try:
            return self.check is None or self.check(found)
        except Exception as error:  # noqa: BLE001 - it has the form of a secret, and no turn must fail of it
            # Its own words may quote the secret.
            logger.warning("the check of secret %r failed: %s", self.name, type(error).__name__)
            return True

    @staticmethod
    def _ends(pattern: re.Pattern[str], match: re.Match[str], part: str | int) -> Iterator[int]:
        """Where what was matched may end: it may have run into digits or words that follow a secret."""
        yield match.end(part)
        for gap in reversed(list(_GAPS.finditer(match[part]))):
            if shorter := pattern.fullmatch(match.string, match.start(), match.start(part) + gap.start()):
                yield shorter.end(part)


_FIRST = re.compile(r"[^\W_]+|[\W_]|\Z")
_GAPS = re.compile(r"[\W_]+")


_IS = (
    r"(?:[\"'`]?\s+(?:is|was|are|lautet|ist|est|es)\s*:?\s+(?:now\s+|still\s+)?"
    r"|[\"'`]?(?:\s+lautet)?\s*(?:[=:]>?|->|>)\s*)"
)
_OF = r"(?:\s+(?:for|to|of|at|on)\s+[^\n.,;:=]{1,30}?)?"
_VALUE = (
    r"(?P<quote>[\"'`])?(?P<secret>(?!\[redacted)(?(quote)[^\n\"'`]{2,200}?(?=(?P=quote))|(?!))"
    r"|(?!\[redacted)[^\s\"'`,;]{2,200}?(?=[.!?)\]}]*(?:[\s\"'`,;]|</|$)))"
)
_NO_TICKET = "".join(
    f"(?<!{kind} )" for kind in "ski bus day rail train season month lift city gym boarding museum mountain".split()
)
_PASSWORD = (
    rf"(?:pass\s?words?|passwd|pwd|pw|{_NO_TICKET}pass(?=[\"'`]?\s*[=:])|pass\s?codes?|passphrase|passwort|kennwort"
    r"|mot\s+de\s+passe|contrase(?:ñ|n)a|wachtwoord|парол[ья]|hasło|şifre\w{0,3})"
)
_UNMEASURED = r"(?!\d+[ -](?:characters?|chars?|letters?|digits?|symbols?|words?|days?|weeks?|months?|years?)\b)"
_STOP = rf"(?:{'|'.join(sorted(_FUNCTION))})"
_MORE = r"[ \t]{1,3}" + rf"(?!{_STOP}\b)" + r"[^\W_][\w-]{0,23}(?![\w'])"
_PHRASE = rf"(?P<secret>(?!{_STOP}\b)(?:[^\W\d_]{{2,24}}|\d{{1,4}})(?![\w'-])(?:{_MORE}){{1,11}})"
"""Words up to one that is no part of a password: "correct horse battery staple, and …"."""
_DIGIT_WORD = r"(?:zero|one|two|three|four|five|six|seven|eight|nine)"
_GAP = r"(?:(?:[^\w,:;+=<>$€£%&]|_){1,3}|[,:])"
_SPACE = r"[ \t_|*()\[\]~#-]{0,3}"
_BITS = r"[\s./_|*:-]{0,3}"
_MIXED = (
    r"(?=[^\s\"'`,;|]{0,60}(?:\d|[!@#$%^&*+=~]\w))(?=[^\s\"'`,;|]{0,60}[^\W\d_])"
    r"(?!(?:sha-?\d|pbkdf2|oauth2|base64|argon2|md5|utf-?\d|1password|keepass|windows\d|iphone\d|office365)|\[redacted"
    r"|\d{1,4}[- ]?(?:char|letter|digit|symbol|word|bit|day|week|month|year|hour|min|sec|st\b|nd\b|rd\b|th\b|x\b))"
)
"""Before a value: it has letters, and digits or signs too, as a password has and a word of a sentence has not."""
_ODD_VALUE = _MIXED + r"[^\s\"'`,;|<]{5,200}?(?=[.!?)\]}*]*(?:[\s\"'`,;|<]|$))"
_NO_PASSWORD = r"(?!s?[ -]+(?:manager|generator|vault|app|tool|keeper|hint|policy|database|store)s?\b)"
_NO_NAME = r"(?:(?:page|url|link|site|screen|form|time|date|issue|error|problem|name|id|attempt)s?|https?|on|at)"
_NUMBERED = (
    r"(?:orders?|parcels?|packages?|shipments?|tracking|invoices?|receipts?|tickets?|bookings?"
    r"|reservations?|case|serial"
    r"|phone|telephone|tel|mobile|cell|fax|call|bestellung|bestellnummer|paket|rechnung|telefon|isbn|ean|imei|vin)"
)
_CARD = (
    r"(?:(?:credit|debit|bank|prepaid|fuel)?cards?|visa|mastercard|maestro|amex|uatp|troy|rupay"
    r"|(?:kredit|bank|debit)?karten?"
    r"|kreditkartennummer|cartes?|tarjetas?|cart(?:a|ão)|kaart|kart[aęąy]|kartı|карт[аыуе]|картк[аиу])"
)
_CODE_OF = (
    r"(?:one[- ]time|mfa|tan|auth(?:entication)?|two[- ]factor|garage|building|alarm|door|gate|entry"
    r"|access|unlock|verification|safe|lock|login|log-in|backup|security|sms"
    r"|confirmation|authenticator|2fa)"
)

_LINK = (
    r"(?:(?:'s(?=\s+(?:now\s+|still\s+)?\d[\d -]{1,12}(?:[^\w\s%]|\s*$|\s+(?:and|but|so|if|for|at)\b))"
    r"|[^\d\n.!?;]{0,40}?\b(?:is|was|are|be|to|as|lautet|ist|es|est)|[^\d\n.!?;]{0,30}?[:=>#-])"
    r"(?:\s+(?:now|still|just|actually|probably|currently|always|simply))?)?(?:,(?=\d)|[^\w\n,;]){0,4}"
)
"""Between the word for a code and its digits: nothing, or what ends in "is", "to" or a sign."""
_DOOR = (
    r"(?:door|gate|alarm|safe|garage|building|lock|house|flat|apartment|entrance|office|locker|bike"
    r"|suitcase|box|wi-?fi|phone"
    r"|card|bank|account|lift|elevator|shed|gym)"
)
_OTHER_CODE = (
    r"(?:\w+\s+){1,4}?(?:postal|post|zip|area|dial\w*|country|discount|promo\w*|coupon|booking|error"
    r"|product|source|status"
    r"|employee|course|class|tax|sort|colou?r|dress|qr|bar|city|airport|morse)\b"
)

DEFAULT_SECRETS: tuple[Secret, ...] = (
    Secret(
        "private key",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----|\Z)",
        near=("private key",),
    ),
    Secret(
        "key",
        r"\b(?:(?:AKIA|ASIA)[0-9A-Z]{12,}|(?:sk|pk|rk)[-_](?!learn|image)(?=[\w-]{0,200}(?:\d"
        r"|[a-z]{16}))[\w-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}"
        r"|gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt)-[\w-]{16,}|xox[abeoprs]-[\w-]{10,}|xapp-[\w-]{16,}"
        r"|AIza[\w-]{30,}|GOCSPX-[\w-]{20,}|ya29\.[\w-]{20,}|hf_\w{20,}|npm_\w{30,}|pypi-[\w-]{40,}|SK[0-9a-f]{32}"
        r"|SG\.[\w-]{16,100}\.[\w-]{16,}|whsec_[\w+/=]{20,}|gsk_\w{30,}|xai-\w{30,}|pplx-\w{30,}|r8_\w{30,}"
        r"|dop_v1_[0-9a-f]{40,}|dckr_(?:pat|oat)_[\w-]{20,}|hv[sb]\.[\w-]{24,}|shp(?:at|ca|pa|ss)_[0-9a-f]{32,}"
        r"|sq0(?:atp|csp)-[\w-]{20,}|lin_api_\w{30,}|ntn_\w{30,}|dapi[0-9a-f]{32}|key-[0-9a-f]{32}|gl(?:sa"
        r"|c)_[\w+/=]{30,}"
        r"|PMAK-[0-9a-f]{20,}-[0-9a-f]{20,}|NRAK-[0-9A-Z]{20,}|sntrys_[\w+/=-]{30,}|AGE-SECRET-KEY-1\w{40,}"
        r"|eyJ[\w-]{6,2000}\.[\w-]{6,4000}(?:\.[\w-]*)?|(?:bot)?\d{8,10}:(?:[\w-]{35}(?![\w-])|AA[\w-]{30,}))",
        near=("long word",),
    ),
    Secret("key", r"\bhooks\.slack\.com/(?:services|workflows)/(?P<secret>[\w/]{20,200})", near=("hooks.slack",)),
    Secret("password", r"\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@]{0,200}:(?P<secret>[^\s@/]{1,200})@", near=("://",)),
    Secret(
        "token",
        r"\b(?:bearer|basic)\s+(?P<secret>(?=[\w.~+/=-]{0,200}(?:\d|[~+/=]|(?-i:[a-z][A-Z])))[\w.~+/=-]{16,})",
        near=("long word",),
    ),
    Secret(
        "phrase",
        rf"\b(?:seed|recovery|backup)\s+phrase{_OF}{_IS}(?P<secret>[^\n.]{{1,250}})(?![^\W_])",
        _seed,
        ("phrase",),
    ),
    Secret(  # of several words: "correct horse battery staple"
        "password",
        rf"(?<![a-z]){_PASSWORD}(?![a-z]){_OF}{_IS}{_UNMEASURED}{_PHRASE}",
        _phrase,
        ("pass", "pwd", "pw", "kennwort", "contrase", "wachtw", "парол", "hasło", "şifre"),
    ),
    Secret(
        "password",
        rf"(?<![a-z]){_PASSWORD}(?![a-z]){_OF}{_IS}{_UNMEASURED}{_VALUE}",
        _no_word,
        ("pass", "pwd", "pw", "kennwort", "contrase", "wachtw", "парол", "hasło", "şifre"),
    ),
    Secret(
        "password",
        r"(?:парол[ья]\s*[-:=]?|(?:密[码碼]|パスワード|비밀번호)\s?[是はも은는]?\s?:?)\s?(?P<secret>(?=[!-~]{0,60}\d)[!-~]{4,200})",
        near=("парол", "密", "パスワード", "비밀번호"),
    ),
    Secret(
        "password",
        r"(?<!\S)(?P<secret>(?!\[redacted)(?=\S{0,60}\d)[^\s\"'`,;]{5,200})\s+is\s+(?:my|the|our)\s+(?:\w+\s+){0,2}"
        rf"{_PASSWORD}\b{_NO_PASSWORD}",
        near=("pass", "pwd", "kennwort"),
    ),
    Secret(
        "password",
        rf"(?<![a-z]){_PASSWORD}\s?[,(]\s?(?P<secret>(?=[^\s,;)]{{0,60}}\d)[^\s,;)\[]{{5,200}})",
        near=("pass", "pwd", "kennwort"),
    ),
    Secret(
        "password",
        rf"(?<!\S)(?:--?(?:password|passwd|pass|pwd|token|secret|api-?key)[ =]|-u\s+[^\s:]{{1,60}}:){_VALUE}",
        _no_word,
        ("-p", "-u ", "-token", "-secret", "-api"),
    ),
    Secret(  # in a sentence: only what looks like a password, as any word may stand there
        "password",
        rf"(?<![a-z])(?:{_PASSWORD}(?:{_OF}\s+(?:(?:will|would|shall|should|must|is\s+going\s+to)\s+be|now|became)|'s"
        rf"|\s+(?:reset|change|update|new|old)\s*[:=])?|(?:my|our|the)\s+(?:\w+\s+){{0,2}}pass\s+(?:is|was)"
        rf"|(?:wi-?fi|wlan|hotspot|router)\s+(?:code|key|pass)(?:\s+(?:is|was)|\s?[:=])?|passwords\s+(?:are|were))"
        rf"\s*[|:*]{{0,3}}\s+(?P<secret>{_ODD_VALUE})",
        near=("pass", "pwd", "kennwort", "wifi", "wi-fi", "wlan", "hotspot", "router"),
    ),
    Secret(
        "password",
        r"\b(?:chang(?:ed?|ing)|re-?set|set|updated?|made|make|switch(?:ed)?)\s+(?:my|our|the|your|his|her|an?)\s+"
        rf"(?:\w+\s+){{0,2}}{_PASSWORD}{_OF}\s+(?:to|into|as)\s+(?P<secret>{_ODD_VALUE}|\d{{5,30}}(?!\w))",
        near=("pass", "pwd"),
    ),
    Secret(
        "password",
        rf"(?<!\S)(?P<secret>(?!\w*(?:pass|warden|dashlane)){_MIXED}[^\s\"'`,;|]{{5,200}})\s+(?:as|for)\s+(?:all\s+)?"
        rf"(?:(?:of\s+)?(?:my|the|our)|an?)\s+(?:\w+\s+){{0,2}}{_PASSWORD}\b{_NO_PASSWORD}",
        near=("pass", "pwd"),
    ),
    Secret(  # "creds bob:hunter22", "my login is bob / hunter22"
        "password",
        rf"(?<![a-z])(?:creds?|credentials?|logins?|log-in){_OF}(?:{_IS}|\s+)(?!{_NO_NAME}\b)[\w.@+-]{{2,60}}\s?[:/|]\s?"
        rf"(?!/)(?P<secret>{_ODD_VALUE})",
        near=("cred", "login", "log-in"),
    ),
    Secret(  # "my password was … and now it's …"
        "password",
        r"\[redacted password\][\s,;.]{1,3}(?:and\s+|but\s+)?"
        rf"(?:(?:it(?:'s|\s+is)|is)\s+now|now(?:\s+(?:it's|it\s+is|is))?)\s*:?\s+(?P<secret>{_ODD_VALUE})",
        near=("pass", "pwd"),
    ),
    Secret(
        "password",
        r"(?<![a-z])passwords\b[^.\n\[]{0,20}\[redacted password\](?:\s*,\s*(?:and\s+)?|\s+(?:and|or)\s+)"
        rf"(?P<secret>{_ODD_VALUE}(?:(?:\s*,\s*(?:and\s+)?|\s+(?:and|or)\s+){_ODD_VALUE})*)",
        near=("passwords",),
    ),
    Secret(  # names of variables
        "password",
        r"(?:(?<![a-z])(?:password|passwd|pwd|pass)_(?!min|max|len|expir|polic|hash|hint|field|reset|age"
        r"|file|path|url|salt)"
        rf"\w{{1,30}}|(?<![a-z])[a-z]{{1,20}}(?:password|passwd|pwd))[\"'`]?\s?[:=]\s?{_VALUE}",
        _no_word,
        ("password", "passwd", "pwd", "pass_"),
    ),
    Secret(  # Italian, Portuguese, Polish, Turkish, Swedish, Danish, Norwegian, Czech
        "password",
        r"(?<!\w)(?:password\s+(?:è|é|era)|parola\s+d'ordine\s+è|(?:senha"
        r"|palavra-passe)(?:\s+[^\W\d_]+){0,3}?\s+(?:é|era)"
        r"|has[łl][oa](?:\s+do\s+[^\W\d]+)?\s+(?:to|jest|brzmi)(?:\s+teraz)?|(?:[şs]ifre|parola)\w{0,4}(?:\s+artık)?"
        r"|lösenord\w{0,2}\s+är|adgangskode\w{0,2}\s+er|passord\w{0,2}\s+er|heslo\s+je|парол[ьяе](?:\s+это)?)"
        rf"\s+(?P<secret>{_ODD_VALUE})",
        near=(
            "password",
            "parola",
            "senha",
            "palavra",
            "hasł",
            "hasl",
            "ifre",
            "lösen",
            "adgang",
            "passord",
            "heslo",
            "парол",
        ),
    ),
    Secret(
        "password",
        r"(?<!\w)(?:senha|palavra-passe|has[łl][oa]|[şs]ifre\w{0,3}|parola\w{0,2}|lösenord|adgangskode"
        r"|passord|heslo|salasana)"
        rf"\s?[:=]\s?{_VALUE}",
        _no_word,
        ("parola", "senha", "palavra", "hasł", "hasl", "ifre", "lösen", "adgang", "passord", "heslo", "salasana"),
    ),
    Secret(
        "token",
        r"(?<![a-z])(?:api[ _-]?(?:key|token)|(?:[a-z]+[_-])?(?:secret|token)(?:[_ -]?key)?"
        r"|(?:access|secret|private|account)[ _-]?key)"
        rf"{_OF}(?:[\"'`]?\s*(?:[=:]>?|->|>)\s*|\s+(?:is|was)\s+)(?:[\"'`]?(?P<secret>(?!\[redacted"
        r"|\d+\s+(?:per|tokens?|words?|requests?|chars?|characters?|each|max\w*)\b)"
        rf"(?=[^\s\"'`,;<]{{0,200}}\d)[^\s\"'`,;<]{{6,200}}))",
        near=("key", "token", "secret"),
    ),
    Secret(
        "token",
        r"\b(?:secret|key|token)\s+(?P<secret>(?=\S{0,200}\d)(?=\S{0,200}[a-z])[\w/+=-]{20,200})",
        near=("long word",),
    ),
    Secret(
        "code",
        r"\b(?:postal|post|zip|area|city)\s+(?:pin|code)\b[^\d\n.!?]{0,20}\d{3,9}"
        r"|\b(?:pin(?!\s+(?:collections?|boards?|badges?|cushions?|wheels?)\b)|pin[- ](?:code|number)|cvv2?|cvc2?|otp"
        rf"|{_CODE_OF}\s+(?:\w+\s+)?(?:code|pin|combination)|codes?\s+(?:for|to"
        rf"|of)\s+(?:\w+\s+){{0,3}}?{_DOOR}|(?:your|my)\s+code)"
        rf"\b{_LINK}(?P<secret>\d(?:[ -]?\d){{2,9}})(?!\d)(?!\s*\((?-i:[A-Z]))"
        r"(?!\s*(?:%|lines|[cmk]?m\b|kg\b|kr\b|euros?|dollars|percent|years|times|pins))",
        near=("pin", "cvv", "cvc", "otp", "code", "combination"),
    ),
    Secret(
        "code",
        rf"\b(?:pin"
        rf"|{_CODE_OF}\s+code)\b[^\d\n.!?]{{0,20}}?\b(?P<secret>{_DIGIT_WORD}(?:[\s,-]{{1,3}}{_DIGIT_WORD}){{2,9}})\b",
        near=("pin", "code"),
    ),
    Secret(
        "code",
        rf"(?<![\w.,/-])(?:[a-z]-)?(?P<secret>\d{{3}}[ -]?\d{{1,5}})\s+is\s+(?!{_OTHER_CODE})"
        rf"(?:(?:your|my|our)\s+(?:(?!{_STOP}\b)[\w-]+\s+){{0,3}}?|the\s+(?:{_CODE_OF}\s+)?)"
        r"(?:code|pin|otp|passcode|password)\b(?!\s+(?:freeze|base|review)\b)",
        near=("code", "pin", "otp", "password"),
    ),
    Secret(
        "social security number",
        r"(?<![\d-])(?P<secret>\d{3}[- ]?\d{2}[- ]?\d{4})\s+is\s+(?:my|his|her|our)\s+(?:ssn|social)\b",
        near=("ssn", "social"),
    ),
    Secret(
        "social security number",
        r"\b(?:ssn|my\s+social|social\s+security(?:\s+number)?)\b[^\d\n]{0,20}(?P<secret>\d{3}[- ]?\d{2}[- ]?\d{4})",
        near=("ssn", "social"),
    ),
    Secret(
        "card number",
        r"\b(?:imei|ean|gtin|isbn|upc|meid|barcode|serial)\b[^\d\n]{0,24}(?:\d[ -]?){12,14}\d(?![ -]?\d)"
        rf"|(?<![\d+])(?<!\d[-:])(?P<secret>[2-6]\d{{3}}(?:[ -]?\d){{9,15}}|[2-6]\d{{3}}(?:{_GAP}\d{{4}}){{3}}"
        rf"(?:{_GAP}\d{{1,3}})?|3\d{{3}}{_GAP}\d{{6}}{_GAP}\d{{4,5}})(?!:?\d)",
        _card,
        near=("many digits",),
    ),
    Secret(  # in other groups, or digit by digit
        "card number",
        rf"(?<![\w+])(?<!\d[ ./,:_|*-])[3-6](?:{_SPACE}\d){{14,15}}(?!{_SPACE}\d)",
        _odd_card,
        ("many digits",),
    ),
    Secret(  # Other first digits are rare: only as cards are printed, and not behind the name of another number …
        "card number",
        rf"\b{_NUMBERED}\b[^\d\n]{{0,24}}\d[\d ./_-]{{0,40}}"
        rf"|(?<![\d+])(?<!\d[-.:])(?P<secret>[01789]\d{{3}}(?:{_GAP}\d{{4}}){{3}}(?:{_GAP}\d{{1,3}})?"
        rf"|[01789]\d{{3}}{_GAP}(?:\d{{6}}{_GAP}\d{{4,5}}|\d{{5}}{_GAP}\d{{6}}))(?![-.]?\d)",
        _card,
        ("many digits",),
    ),
    Secret(  # … or behind the word.
        "card number",
        rf"(?:(?<![^\W\d_]){_CARD}(?![^\W\d_])|卡|カード|카드)(?:(?!\b{_NUMBERED}\b)[^\d\n]){{0,40}}"
        r"(?P<secret>\d(?:[ -]?\d){12,18})(?!\d)",
        _card,
        ("many digits",),
    ),
    Secret(
        "card number",
        r"(?<![\d+])(?<!\d[-.])(?P<secret>\d(?:[ -]?\d){12,18})(?!\d)"
        rf"(?=[^\w\n.,;](?:[^\d\n.,;]{{0,20}}[^\w\n.,;])?{_CARD}(?![^\W\d_]))",
        _card,
        ("many digits",),
    ),
    Secret(
        "account number",
        r"\b[a-z]{2}\d{2}(?:[ .-]?[a-z0-9]{4}){2,7}(?:[ .-]?[a-z0-9]{1,3})?\b",
        _iban,
        ("account",),
    ),
    Secret(  # in other groups, or sign by sign
        "account number",
        rf"(?<![a-z0-9])[a-z]{_BITS}[a-z]{_BITS}\d{_BITS}\d(?:{_BITS}[a-z0-9]){{11,30}}(?![a-z0-9])",
        _spaced_iban,
        ("spaced account",),
    ),
)


def redacted(text: str, secrets: Iterable[Secret] = DEFAULT_SECRETS) -> str:
    """The text with every secret replaced by a mark that says what stood there."""
    if not isinstance(text, str):
        raise InvalidInput(f"text must be a str, got {type(text).__name__}: {text!r:.80}")
    read = _plain(text)
    look = _Text(read)
    for secret in secrets:
        if (not secret.near or any(look.has(near) for near in secret.near)) and (spans := secret.spans(read)):
            mark = f"[redacted {secret.name}]"
            text, read = _replaced(text, spans, mark), _replaced(read, spans, mark)
    return text


def _replaced(text: str, spans: list[tuple[int, int]], mark: str) -> str:
    kept, at = [], 0
    for start, end in spans:
        kept += [text[at:start], mark]
        at = end
    return "".join([*kept, text[at:]])


def has_mark(text: str) -> bool:
    """Whether a secret was cut out of the text."""
    return "[redacted " in text
