"""What may not be believed, whoever proposed it: between extraction and consolidation, each candidate passes here.

Where a text came from was decided before (`extraction.origin`, `extraction.accept`), and no wording changes that. What
is left is what people and tools may not teach in any words: powers and permissions, orders to the agent, other users'
facts, facts for everybody, delayed triggers, hidden text. It goes into quarantine with the reasons, and an auditor
decides (`Memory.quarantined`, `release`, `reject`). A sentence that would be held is put there too where no candidate
came of it, so that an attempt is seen. Text filters are no security boundary: see SECURITY.md.
"""

import base64
import binascii
import html
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeVar, get_args
from urllib.parse import unquote

from langmem_adapter import wordings
from langmem_adapter.errors import InvalidInput
from langmem_adapter.extraction import refusals
from langmem_adapter.extraction.clauses import own
from langmem_adapter.extraction.masking import FAKE_ROLE, MASK, straight, unquoted
from langmem_adapter.extraction.patterns import style
from langmem_adapter.extraction.subjects import reported, said_again
from langmem_adapter.extraction.unsaid import unsaid
from langmem_adapter.lookalikes import folded
from langmem_adapter.needles import Sieve
from langmem_adapter.records import Candidate, Extraction, Message, Turn
from langmem_adapter.redaction import DEFAULT_SECRETS, Secret, has_mark, redacted
from langmem_adapter.text import MAX_CONTENT, one_line

Origin = Literal["human", "tool"]

MAX_READ = 20_000
"""Characters of a message in which sentences are looked for that nobody proposed."""
MAX_SHORT = 500
"""A message of one line and so many characters is read as a whole, also what looks pasted in it."""
MAX_HELD = 5
"""Sentences of one turn that are kept for the auditor without having been proposed; more are counted."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What puts a sentence into quarantine.

    `reason`: the code an auditor is shown. `pattern`: a regular expression, tried without regard to case on one
    sentence, quoted speech left out, look-alike letters folded. `origins`: whose words it judges. `spares`: topics in
    which it does not apply; a rule that spares some judges candidates only. InvalidInput for a reason that is no
    code, a pattern that is empty or no regular expression, an origin that there is not.
    """

    reason: str
    pattern: str
    origins: tuple[Origin, ...] = ("human", "tool")
    spares: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.reason, str) or not re.fullmatch(r"[\w-]+", self.reason):
            raise InvalidInput(f"reason is a code of letters, digits, '_' and '-', got {self.reason!r}")
        if not isinstance(self.pattern, str) or not self.pattern:
            raise InvalidInput(f"pattern of rule {self.reason!r} must be a regular expression, got {self.pattern!r}")
        try:
            _compiled(self.pattern)
        except re.error as error:
            raise InvalidInput(f"pattern of rule {self.reason!r} is no regular expression: {error}") from error
        if not isinstance(self.origins, tuple) or not self.origins or not set(self.origins) <= set(get_args(Origin)):
            raise InvalidInput(f"origins of rule {self.reason!r} are of {get_args(Origin)}, got {self.origins!r}")
        if not isinstance(self.spares, tuple) or not all(isinstance(topic, str) and topic for topic in self.spares):
            raise InvalidInput(f"spares of rule {self.reason!r} is a tuple of topics, got {self.spares!r}")

    def holds(self, text: str) -> bool:
        """Whether the text is to be held."""
        return _compiled(self.pattern).search(text) is not None


@lru_cache(maxsize=1_000)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE)


_KIN = (
    r"(?:mother|father|mum|mom|dad|parents?|brother|sister|siblings?|son|daughter|kids?|child|children|wife|husband"
    r"|partner|spouse|girlfriend|boyfriend|fianc[eé]e?|aunt|uncle|cousin|nephew|niece|grand\w+|friend|mate|flatmate"
    r"|roommate|neighbou?r|boss|manager|colleague|coworker|co-worker|client|customer|teacher|doctor|assistant)"
)

DEFAULT_RULES: tuple[Rule, ...] = (
    *(Rule(reason, pattern.pattern) for reason, pattern in refusals.KINDS if reason != "secret"),
    Rule("fake_role", FAKE_ROLE.pattern),
    Rule(
        "fake_role",
        r"^[^\w\n]{0,20}(?:system|developer)\s+(?:message|prompt|instructions?)\s?:|^\s{0,20}\(\s?(?:system|developer|assistant)\s?\)"
        r"|\\[nr]\s{0,20}(?:system|developer|assistant|human|user)\s?:",
    ),
    Rule("hidden_text", r"<!--|(?<!\w)(?:[^\W\d][ .\-_*]){8,64}[^\W\d](?!\w)"),
    Rule(
        "permission_claim",
        r"\b(?:exempt|excused)\s+from\b.{0,40}\b(?:rules?|limits?|checks?|polic\w+|approval|verification)\b"
        r"|\bnever\s+(?:need|have)\s+to\s+(?:ask|confirm|check|verify)\b|\b(?:don't|doesn't|do\s+not|does\s+not)\s+require\s+(?:\w+\s+){0,2}?(?:approval|confirm\w+|verif\w+|two-factor|2fa|mfa|permission|review)\b"
        r"|\b(?:may|can|could|should)\s+(?:always\s+)?skip\s+(?:the\s+|all\s+)?(?:approval|confirmation|verification|checks?"
        r"|review)\b|\b(?:needs?|requires?)\s+no\s+(?:approval|confirmation|verification|permission)\b"
        r"|\bi\s+may\s+(?:always\s+)?(?:approve|authori[sz]e|override|bypass|grant|revoke|export|withdraw|issue|sign\s+off)\b"
        r"|\bi\s+may\s+(?:see|view|read|edit)\b.{0,40}\b(?:everyone|everybody|other\s+people|others)\b"
        r"|\b(?:payments?|refunds?|payouts?|transfers?|invoices?|orders?)\b.{0,40}\b(?:pre-?approved|okayed|nobody's\s+(?:approval|sign-?off))\b"
        r"|\b(?:pre-?approved|okayed)\s+(?:my|all|any|every)\b|\bmy\s+word\s+is\s+final\b"
        r"|\bmy\s+identity\s+(?:is|was|has\s+been)\s+(?:\w+\s+)?(?:verified|confirmed|checked)\b"
        r"|\btrust\s+(?:every|any|all)\s+(?:payment|transfer|refund|order|request)s?\b"
        r"|^[^\w\n]{0,20}(?:my\s+)?(?:role|access(?:\s+level)?|rights?)\s*[:=]\s*(?:\w+\s+){0,2}(?:admin\w*|root|superuser|owner|moderator)\b(?!\s+assistant\b|\s+of\s+the\s+product\b)"
        r"|\b(?:user|account)\s+to\s+(?:export|access|see|delete)\s+(?:all|any|every)\b",
    ),
    *(Rule("permission_claim", pattern) for pattern in wordings.POWERS.values()),
    *(Rule("instruction", pattern) for pattern in wordings.ORDERS.values()),
    *(Rule("exfiltration", pattern) for pattern in wordings.SENDING.values()),
    Rule(
        "instruction",
        r"\b(?:revoke|lift|remove|raise)\s+(?:(?:all|the|any|my)\s+)*(?:limits?|restrictions?|checks?)\b"
        r"|\b(?:whenever|every\s+time)\s+(?:you|the\s+(?:assistant|agent|model|bot))\s+(?:read|see|load|recall|open|find)s?\b"
        r"|[?&](?:q|prompt|text|message)=\S{0,200}\bremember\b|\b(?:your|safety|all)\s+(?:safety\s+)?(?:rules|guidelines)\b",
    ),
    Rule(
        "exfiltration",
        r"!\[[^\]\n]{0,200}\]\s?\([^)?&=\n]{0,300}[?&=]|\b(?:javascript|vbscript)\s*:|\bdata:text/html\b"
        r"|\b(?:every|each|all|your)\s+(?:answers?|repl(?:y|ies)|responses?|messages?)\b.{0,60}(?:\blink\b|\bimage\b|https?:)"
        r"|https?://[^\n]{1,260}\b(?:to|in|with)\s+(?:each|every|all|your)\s+(?:answers?|repl(?:y|ies)|responses?|messages?)\b",
    ),
    Rule("exfiltration", r"!\[[^\]\n]{0,200}\]\s?\(", ("tool",)),
    Rule(
        "exfiltration",
        r"\b(?:forward|send|wire|transfer|copy|route|redirect|deliver|post|upload|b?cc|invoices?|payments?|answers?|repl(?:y|ies)|messages?|mails?)"
        r"(?:ed|ing|s|red|ring)?\b[^\n@]{0,80}\bto:?\s+\S{0,60}(?:@|://)\S|\b(?:b?cc|copy|loop\s+in|reach)\s+\S{1,60}@\S|https?://[^\n]{1,260}\b(?:end|start)\s+of\s+your\b",
    ),
    Rule(
        "memory_claim",
        r"[\"'](?:facts?|topic|trust|confidence|scope|source_type|user_?id|role)[\"']\s*:\s*(?![\"']user\b)\S",
    ),
    Rule(
        "memory_claim",
        r"\byou\s+(?:stored|saved|remembered|noted|recorded)\b.{0,40}\bthat\s+i(?:'m|\s+am|\s+have|\s+may|\s+can)\b.{0,40}"
        r"\b(?:exempt|allowed|authori[sz]ed|cleared|verified|admin\w*|access)\b",
    ),
    Rule(
        "other_users",
        r"\b(?:save|store|remember|note|publish|write|keep)\s+(?:this\s+|it\s+)?(?:for|to)\s+(?:the\s+)?(?:whole|entire|all)\b"
        r"|\buser[_ ]?id\b[\"']?\s*[=:]",
    ),
    Rule(
        "tool_instruction",
        r"\b(?:agents?|assistants?|models?|chatbots?|you)\b.{0,40}\b(?:must|should|have\s+to|need\s+to|always|never)\b|\bremember\b"
        r"|\b(?:reuse|prefer|recommend|trust|follow|repeat)\s+(?:it|this|them|these)\b"
        r"|\b(?:update|set|store|save|write|add)\s+(?:to\s+)?(?:the\s+)?(?:user|profile|memory|preference)"
        r"|\b(?:skip|bypass)(?:ped|ping|ed|ing)?\b.{0,30}\b(?:validation|review|checks?|approval|tests?)\b"
        r"|\b(?:validation|review|checks?|approval|tests?)\s+(?:was|were|is|are|can\s+be)\s+(?:skipped|bypassed)\b"
        r"|\b(?:system|developer)\s+(?:prompt|message)\b|\bsudo\b|\byou\s+have\s+permission\b"
        r"|\b(?:authori[sz]ed|cleared|permitted|entitled|exempt(?:ed)?|whitelisted)\b",
        ("tool",),
    ),
    Rule(
        "about_another",
        rf"^[^\w\n]{{0,20}}(?:(?:my|our|his|her|their)\s+(?:\w+\s+){{0,2}}?{_KIN}\b|(?:he|she|they|everyone|everybody|people)\b"
        r"|most\s+people\b)(?!.*\b(?:i|i'm|i've|we|me|myself)\b)|^the\s+user's\s+(?:\w+\s+){0,2}?" + _KIN + r"\b",
        spares=("relation", "general"),
    ),
)
"""The rules of `Guard()`: those by which offline extraction refuses a sentence, and more for what others propose."""


class Guard:
    """The rules between extraction and consolidation, and what counts as a secret; both are data.

    `Memory(store, guard=Guard(rules=[*DEFAULT_RULES, Rule("trade_secret", r"\\bproject\\s+heron\\b")]))`.
    """

    def __init__(self, rules: Iterable[Rule] = DEFAULT_RULES, secrets: Iterable[Secret] = DEFAULT_SECRETS) -> None:
        self.rules = _all(Rule, rules, "rules")
        self.secrets = _all(Secret, secrets, "secrets")
        self._sieve = Sieve(_compiled(r.pattern) for r in self.rules)

    def redact(self, text: str) -> str:
        """The text without secrets."""
        return redacted(text, self.secrets)

    def reasons(self, text: str, origin: Origin = "human", *, topic: str | None = None) -> tuple[str, ...]:
        """Why a sentence, or the words of a candidate on this topic, must not be believed; () if nothing forbids it."""
        if origin not in get_args(Origin):
            raise InvalidInput(f"origin is one of {get_args(Origin)}, got {origin!r}")
        return self._reasons([text], origin, topic)

    def _reasons(self, texts: Iterable[str], origin: Origin, topic: str | None = None) -> tuple[str, ...]:
        read = [list(_views(_unstyled(text) if origin == "human" else text)) for text in texts]
        left = self._sieve.among(view for views in read for view in views)
        found: dict[str, None] = {}
        for views in read:
            held = {n for view in views for n in left(view) if self._holds(n, view, origin, topic)}
            found |= dict.fromkeys(self.rules[n].reason for n in sorted(held))
        return tuple(found)

    def _holds(self, number: int, view: str, origin: Origin, topic: str | None) -> bool:
        rule = self.rules[number]
        spared = bool(rule.spares) and (topic is None or topic in rule.spares)
        return origin in rule.origins and not spared and rule.holds(view)

    def screen(self, turn: Turn, found: Extraction) -> Extraction:
        """The candidates, with the reasons (`held`) of those that must not be believed.

        Those about a secret are dropped. Sentences that would be held, and of which no candidate came, are added, also
        with a secret in them: a mark stands for it.
        """
        messages = {m.id: m for m in turn.messages}
        dropped = Counter(found.dropped)
        kept = []
        for candidate in found.candidates:
            if has_mark(candidate.content) or has_mark(candidate.value):
                dropped["secret"] += 1
            else:
                kept.append(candidate.change(held=self._why(candidate, messages.get(candidate.message_id or ""))))
        excerpts = [one_line(c.excerpt) for c in kept if c.held]
        unproposed = [c for c in self._attempts(turn) if not any(e in c.content or c.content in e for e in excerpts)]
        if len(unproposed) > MAX_HELD:
            dropped["held"] += len(unproposed) - MAX_HELD
        return found.change(candidates=(*kept, *unproposed[:MAX_HELD]), dropped=dict(dropped))

    def vet(self, turn: Turn) -> Turn:
        """A turn whose candidates came with it (from `add_fact`, an import), with the reasons of those to be held.

        A system of record ("bootstrapped") speaks for whoever administers it: it is not judged. Nobody else may tell
        something to all users of an application.
        """
        app = ("app_scope",) if turn.scope == "app" else ()
        held = [() if c.source_type == "bootstrapped" else (*app, *self._why(c, None)) for c in turn.candidates]
        return turn.change(candidates=tuple(c.change(held=h) for c, h in zip(turn.candidates, held, strict=True)))

    def _why(self, candidate: Candidate, message: Message | None) -> tuple[str, ...]:
        origin: Origin = "tool" if candidate.source_type == "tool_output" else "human"
        said = candidate.excerpt if message is None else _around(message.text, candidate.excerpt)
        # What is labelled with somebody else's name may tell of him.
        topic = candidate.topic if candidate.subject == "user" else "relation"
        fields = (candidate.value, candidate.slot, candidate.subject, candidate.replaces or "", *candidate.entities)
        told = dict.fromkeys(_own(text, origin) for text in (said, candidate.content, *fields) if text)
        reasons = self._reasons(told, origin, topic)
        if not reasons or topic not in refusals.SAFETY or (rest := refusals.beside(said, candidate.excerpt)) is None:
            return reasons
        told = dict.fromkeys(_own(text, origin) for text in (candidate.excerpt, candidate.content, *fields) if text)
        alone = not self._reasons(told, origin, topic) and set(reasons) <= set(self._reasons([rest], origin, topic))
        return () if alone else reasons

    def _attempts(self, turn: Turn) -> Iterator[Candidate]:
        for message in turn.messages:
            if message.role not in ("human", "tool") or (message.role == "human" and unsaid(message.text[:MAX_READ])):
                continue
            origin: Origin = "tool" if message.role == "tool" else "human"
            seen: list[str] = []
            for read, said in {read: said for said, read in _said(message, origin)}.items():
                reasons = self.reasons(read, origin)
                content = one_line(said)[:MAX_CONTENT]
                again = any(content in s or s in content for s in seen)
                if reasons and content and not again:
                    seen.append(content)
                    yield Candidate(
                        content=content,
                        value=content,
                        source_type="tool_output" if origin == "tool" else turn.source_type or "user_explicit",
                        excerpt=said[:MAX_CONTENT],
                        message_id=message.id,
                        held=reasons,
                    )


_T = TypeVar("_T")


def _all(kind: type[_T], given: Iterable[_T], what: str) -> tuple[_T, ...]:
    found = tuple(given) if isinstance(given, Iterable) else ()
    if not isinstance(given, Iterable) or not all(isinstance(one, kind) for one in found):
        raise InvalidInput(f"{what} are a list of {kind.__name__}, got {given!r:.80}")
    return found


def _said(message: Message, origin: Origin) -> Iterator[tuple[str, str]]:
    """The sentences of a message that its author says: as written, and as the rules read them."""
    text = message.text[:MAX_READ]
    if origin == "tool":
        for line in re.split(r"(?<=[.!?])\s+|\n", text):
            yield line, line
        return
    for start, words in own(text):
        yield text[start : start + len(words)], one_line(words.replace(MASK, " "))
    if len(text) <= MAX_SHORT and "\n" not in text.strip():  # too short to be pasted for the agent to work on
        yield text, _unquoted(text).replace(MASK, " ")
    if fake := FAKE_ROLE.search(text):
        yield text[fake.start() :], text[fake.start() : fake.start() + MAX_CONTENT]


def _around(text: str, excerpt: str) -> str:
    """The sentence or sentences in which an excerpt stands; the excerpt itself if it is not there letter by letter."""
    at = text.find(excerpt)
    if at < 0:
        return excerpt
    before = [m.end() for m in re.finditer(r"[.!?](?=\s)|\n", text[max(0, at - MAX_CONTENT) : at])]
    start = max(0, at - MAX_CONTENT) + (before[-1] if before else 0)
    behind = re.compile(r"[.!?](?=\s)|\n").search(text, at + len(excerpt), at + len(excerpt) + MAX_CONTENT)
    return text[start : behind.start() if behind else at + len(excerpt) + MAX_CONTENT]


def _own(text: str, origin: Origin) -> str:
    """The text without what it quotes; as it is where that is most of it, and where a tool wrote it."""
    if origin == "tool":
        return text
    own = _unquoted(text)
    return own.replace(MASK, " ") if 2 * own.count(MASK) < len(own) else text


_DATA = re.compile(r"(?:^|[{\[,])\s{0,9}[\"']\w{1,40}[\"']\s{0,9}:", re.MULTILINE)


def _unquoted(text: str) -> str:
    """The text with quoted speech masked; the quotation marks of data ('{"role": …') are no speech, from there on."""
    text = straight(text)
    data = _DATA.search(text)
    at = data.start() if data else len(text)
    return unquoted(text[:at]) + text[at:]


_BREAKS = re.compile(r"((?<=[.!?])\s+|\n)")


def _unstyled(text: str) -> str:
    """The text without sentences that only say how the user wants to be answered: preferences, not orders."""
    return "".join(part for part in _BREAKS.split(text) if not style.asks(part))


_LEET = str.maketrans("013457@$", "oieastas")
_SPELT = re.compile(r"\b(?=\w*\d)(?=\w*[a-z])[\w@$]{3,}")
_ENCODED = re.compile(r"(?<![\w+/])[A-Za-z0-9+/]{24,}={0,2}(?![\w+/])")
_PARTED = re.compile(
    r"(?<![^\W_])(?:(?P<letters>[^\W\d_](?:[ .\-_*][^\W\d_]){2,63}(?![^\W_]))|[^\W_]{1,40}(?:[._][^\W_]{1,40}){3,40})"
)
"""Letters each by itself ("a d m i n"), and words with something else than a space between them ("I.am.the.admin")."""
_MARKS = re.compile("[\u0300-\u036f\u0640\u064b-\u0652]+")
"""Accents that no letter took up, and signs that Arabic is mostly written without."""


def _views(text: str) -> Iterator[str]:
    """The text as a reader might read it: entities and base64 decoded, look-alikes folded, in the first person …"""
    whole = _MARKS.sub("", unicodedata.normalize("NFKC", text)).replace("’", "'")
    read = dict.fromkeys((whole, _unescaped(whole)))
    read |= dict.fromkeys([folded(view) for view in read])
    read |= dict.fromkeys([said_again(view) for view in read])
    read |= dict.fromkeys([reported(view) for view in read])
    yield from read
    if (spelt := _SPELT.sub(lambda m: m[0].translate(_LEET), folded(whole))) not in read:
        yield spelt
    if (joined := _PARTED.sub(_joined, whole)) != whole:
        yield joined
    if "%" in whole:
        yield unquote(whole)
    for match in _ENCODED.finditer(text):
        try:
            said = base64.b64decode(match[0] + "=" * (-len(match[0]) % 4)).decode("ascii")
        except (binascii.Error, UnicodeDecodeError):
            continue
        if said.isprintable():
            yield said


def _joined(parted: re.Match[str]) -> str:
    return re.sub(r"[\W_]", "" if parted["letters"] else " ", parted[0])


def _unescaped(text: str) -> str:
    for _ in range(3):  # "&amp;lt;": escaped twice
        if "&" not in text:
            break
        text = html.unescape(text)
    return text.replace("\xa0", " ")
