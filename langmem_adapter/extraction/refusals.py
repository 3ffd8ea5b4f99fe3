"""Sentences from which nothing may be learnt: instructions, permission claims, other users, secrets.

Deterministic wording rules, tried on the text as it reads: look-alike letters are folded first (see `lookalikes`).
"""

import re

from langmem_adapter.lookalikes import folded


def _any(*parts: str) -> re.Pattern[str]:
    return re.compile("|".join(parts), re.IGNORECASE)


_POWER = (
    r"(?:approve|authori[sz]e|access|see|view|read|edit|delete|export|override|bypass|transfer"
    r"|withdraw|refund|issue|sign\s+off|grant|revoke|change|skip|use)"
)
_PERMISSION = _any(
    r"\b(?:don't|do\s+not|dont|doesn't|does\s+not|doesnt|never|no\s+longer)\s+(?:needs?|requires?|have|has)\s+(?:to\s+)?(?:\w+\s+"
    r")?(?:confirm\w*|approval|permission|"
    r"authori[sz]\w+|verif\w+|a\s+second|checks?|sign\s+off)\b",
    r"\b(?:upgraded|promoted|elevated|switched)\s+to\s+(?:an?\s+)?(?:admin|owner|root|superuser|moderator)\w*\b",
    r"\bi(?:'m|\s+am)\s+(?:an?\s+|the\s+)?verified\b|\band\s+can\s+\w+\s+(?:any|every|all)\w*\b"
    r"|\baccess\s+to\s+(?:all|every|any)\b",
    r"\bmy\s+(?:role|status|account|tier|user)\s+(?:is|has|was)\s+(?:\w+\s+){0,3}(?:admin\w*|root"
    r"|superuser|(?<!product\s)owner|moderator|verified|staff)\b",
    r"\bwithout\s+(?:asking|confirming|approval|confirmation|checking)\b",
    r"\bi(?:'m|\s+am|\s+was|\s+have\s+been|'ve\s+been)\s+(?:now\s+|also\s+|fully\s+"
    r"|pre-?)*(?:authori[sz]ed|cleared|(?:permitted|entitled|allowed)(?=\s+to\b)|approved|verified"
    r"|exempt(?:ed)?(?!\s+from\b)|whitelisted|licensed\s+to)\b(?!\s+to\s+(?:eat|drink|drive|walk|run|exercise|fly|work\s+from"
    r"|swim|have)\b|\s+(?:fly|drive|teach|practi[cs]e)\b|\s+for\s+(?:take|a\b|my\b))",
    r"\bexempt(?:ed)?\s+from\s+(?:[\w-]+\s+){0,4}?(?:rules?|limits?|checks?|polic(?:y|ies)|approvals?|confirmations?|verifications?"
    r"|reviews?|audits?|oversight|restrictions?|controls?|monitoring|moderation|screening|requirements?)\b",
    r"\b(?:has|have|had|was|been|is|are)\s+(?:also\s+)?(?:cleared|authori[sz]ed|approved|granted"
    r"|permitted|whitelisted|verified)\s+(?:me|us|my|for\s+me|access)\b",
    r"\b(?:gave|given|give|gives|granted|grant|grants)\s+(?:me|us)\s+(?:\w+\s+){0,3}(?:access"
    r"|permission|rights?|privileges?|clearance|authority|admin)\b",
    rf"\b(?:so\s+)?(?:i|we)\s+(?:can|may|am\s+able\s+to)\s+(?:\w+\s+)?(?:{_POWER})\s+(?:any|all|every"
    r"|everything|other|others'?|transactions?|payments?|refunds?|orders?|invoices?|the\s+(?:payroll"
    r"|database|records?|accounts?|limits?|checks?))\b",
    r"\bpermissions?\b(?!\s+systems?\b|\s+to\s+(?!"
    rf"{_POWER}))|\b(?:privileges?|clearance|admin\s+rights|root\s+access|superuser|sudo(?!\s+on\s+my\b)|access\s+"
    r"rights|full\s+access|unrestricted\s+access|admin\s+access)\b",
    r"\bmy\s+(?:spending|credit|transaction|transfer|withdrawal|purchase|expense|refund|daily|approval"
    r"|budget)\s+(?:\w+\s+)?limits?\b",
    r"\b(?:identity|id|kyc|background|security|fraud|compliance|age)\s+(?:checks?|verification)\b",
    r"\b(?:two-factor|2fa|mfa|second\s+signature|second\s+approval|without\s+(?:confirmation|approval|a\s+second))\b",
    r"\bi(?:'m|\s+am)\s+(?:an?\s+|the\s+|your\s+|now\s+)*(?:(?:system|site|workspace|global|super"
    r"|account|org|platform|tenant)\s+)?(?:admin|root|superuser|super-user|owner|moderator|operator"
    r"|developer|creator)\b(?:\s+(?:of|on|for|here|in)\s+(?:this|the)\s+(?:workspace|system|app"
    r"|account|server|org(?:ani[sz]ation)?|tenant|site|platform|bot|assistant|agent|channel"
    r"|project)\b)",
    r"\bi(?:'m|\s+am)\s+(?:an?\s+|the\s+|your\s+|now\s+)*(?:super-?)?(?:admin|root|user\s+with\s+root|sudoer)\b"
    r"(?!\s+(?:assistants?|work|staff|beer|vegetables?)\b)|\bsuper-?user\b|\btreat\s+me\s+as\s+(?:\w+\s+){0,2}(?:admin\w*|owner|root)\b",
    # "A database administrator" is a job; who says "I am the administrator" claims a power.
    r"\b(?:am|'m)\s+(?:the|your|an|now)\s+(?:\w+\s+)?administrator\b(?!\s+at\b)"
    r"|(?<!database\s)(?<!network\s)(?<!system\s)(?<!systems\s)\badministrator\s*$"
    r"|\badministrator\s+(?:(?:of|on|for|here|in)\s+(?:this|the|your)\b|here\b)",
    r"\bapprovers?\b|\bverified\s+(?:user|customer|account|employee)\b",
    r"\bwaived\b|\boverrides?\s+(?:all|the|any)\b",
)
_START = r"^[^\w\n]{0,20}"
"""Where a line begins; a longer run of marks is not searched from each of them."""
_ORDER = (
    r"(?:answer|reply|respond|ignore|forward|send|tell|mention|recommend|approve|skip|call|run|execute"
    r"|use|include|append|treat|trust|obey|"
    r"act|pretend|delete|disclose|reveal|give|grant|allow|let|follow|comply|say|refuse|warn|ask|share"
    r"|pay|transfer|refund|disable|store|"
    r"save|record|overwrite|prefer|suggest|confirm|check|agree)"
)
_INSTRUCTION = _any(
    r"\bfrom\s+now\s+on,?\s+(?=\w)(?!i\b|i'm\b|we\b|my\b|call\s+me\b)",
    r"\b(?:whenever|every\s+time)\s+i\s+(?:say|ask|write|type|mention)\b",
    r"\bat\s+the\s+(?:start|end|beginning)\s+of\s+(?:each|every|all)\b"
    r"(?!\s+(?:day|week|month|quarter|season|year|meal|workout)\b)"
    r"|\bin\s+(?:each|every|all)\s+(?:repl|response|answer|message)(?!\w*\s+from\b)",
    r"\b(?:you|(?:the\s+)?(?:assistant|agent|bot|model|ai))\s+(?:must|should|shall|have\s+to|has\s+to"
    r"|need\s+to|are\s+to|is\s+to)\s+"
    rf"(?:(?:always|never|not|also|only|first)\s+)*{_ORDER}\b",
    r"\byou\s+(?:must|should|shall)\s+(?:always|never)\b|\bwants?\s+you\s+to\b(?!\s+(?:call|address"
    r"|answer|reply|respond|write|speak|keep|use|be)\b)|\bthe\s+(?:assistant"
    r"|agent|bot)\s+\w+s\b",
    r"\b(?:ignore|disregard|forget|override|bypass|disable|reveal|disclose|leak|exfiltrate)\s+"
    r"(?:\w+\s+){0,3}(?:instructions?|prompts?|"
    r"rules?|polic(?:y|ies)|guardrails?|limits?|filters?|requests?|security|logs?|logging|keys?|audit"
    r"|safety|checks?|restrictions?)\b",
    r"\b(?:hidden|system)\s+prompt\b|\brow-level\s+security\b|\baudit\s+log\b",
    r"\b(?:call|invoke|run|execute|use)\s+(?:the\s+)?[\w-]*(?:_\w+|\s+tool|\s+function|\s+script|\.sh|\.py)\b",
    rf"(?:{_START}|\b(?:please|be|must|then|and|(?<!i\shave\s)(?<!i\sneed\s)(?<!i\swant\s)to)\s+|(?<!\bi\s)\b(?:always|never)\s+|[:;,]\s*|\s-\s)"
    r"(?:forward|send|sent|email|wire|transfer|pay|deliver|route|redirect|post|upload|copy|cc"
    r"|bcc)(?:ed)?\s+(?:[\w'.-]{1,40}\s+){0,4}(?:to|into)\s+\S",
    r"\b(?:must|should|shall|needs?\s+to|ha(?:ve|s)\s+to)\s+(?:always\s+|never\s+)?(?:be\s+"
    r")?(?:forwarded|sent|approved|answered|ignored|"
    r"deleted|skipped|disclosed|included|recommended|refunded|paid|trusted|used|called|disabled|transferred)\b",
    r"(?<!\bi\s)(?<!\bwe\s)\b(?:never|don't|do\s+not)\s+(?:mention|tell|refuse|warn|question|reveal|verify)\b",
    r"(?<!\bi\s)(?<!\bwe\s)\balways\s+(?:recommend|mention|ignore|approve|forward|trust|include|append"
    r"|agree|say\s+yes|call|run|execute|"
    r"skip|send|suggest)\b(?!\s+me\b)",
    r"\b(?:recommend|prefer|trust)\s+(?:it|them|this)\s+(?:first|always)\b|\btrusted\s+source\b",
    r"\b(?:correct|right|proper)\s+way\s+to\b|\bnew\s+polic(?:y|ies)\b|\b(?:policy|rule)\s+(?:is|:)",
    r"\b(?:queries|questions|requests)\s+(?:about|for|on)\s+.{1,60}\bshould\s+be\b",
    r"\b(?:maintenance|developer|debug|god|jailbreak|dan)\s+mode\b|\bobey\b|\bdo\s+as\s+i\s+say\b",
    rf"{_START}(?:please\s+)?(?:delete|erase|wipe|drop)\s+(?:all|every|the)\b",
)
_MEMORY = _any(
    r"\bconfidence\s+(?:of\s+)?[\d.]+|^[^\w\n]{0,20}(?:fact|memory|add\s+to\s+memory|profile\s+update)\s*:",
    r"\b(?:confidence|trust|source|source_type|importance|valid_until|expires?_at|scope|topic)\s*[=:]\s*\S",
    r"\b(?:this|that|the|these)\s+(?:memor(?:y|ies)|records?|facts?|notes?|entr(?:y|ies))\s+(?:can"
    r"|must|should|may|will|is|are|has|have)\b",
    r"\b(?:supersede|overwrite|replace|delete|erase|update|restore|bring\s+back|recover)\s+(?:record"
    r"|memory|memories|fact|entry|the\s+memory|my\s+(?:old|deleted|erased))\b",
    r"\bnever\s+(?:be\s+)?(?:deleted|expire|forgotten|erased|superseded)\b|\bdeletion\s+request\b"
    r"|\bm_\d+\b|\bextract(?:or|ion)\s+(?:rule|output|policy)\b",
    r"\bmemory\s+(?:policy|rule|level|store)\b|\bhighest\s+(?:trust|confidence|priority)\b",
)
_OTHERS = _any(
    r"\b(?:all|every|other|others'?)\s+(?:profiles?|accounts?|records?|users?'?|memories)\b|\bmy\s+user_?\s?id\b",
    r"\b(?:for|to)\s+(?:all|every|any|each)\s+(?:users?|customers?|tenants?|accounts?|sessions?"
    r"|conversations?|agents?)\b",
    r"\b(?:all|every|other|another|any)\s+(?:users?|customers?|tenants?)\b(?!\s+of\s+my\b)",
    r"\b(?:application|app|global|tenant|system|org|organi[sz]ation)[- ](?:level|wide|scope)\b"
    r"|\b(?:everyone|anyone|people)\s+(?:using|who\s+uses?|on|in)\s+this\s+(?:app|workspace|system|chat)\b",
    r"\bnamespaces?\b|\bu_\w+|\busers/\S+|\b(?:user|account|customer)\s*(?:id|#|no\.?"
    r"|number)?\s*\d{3,}\b|\buser\s+id\b",
    r"\bpatient\s+[a-z]\b|\bon\s+behalf\s+of\s+(?:user|customer|account)\b",
)
_TRIGGER = _any(
    r"\bif\s+(?:the\s+user|i|they|he|she)\s+(?:later\s+|ever\s+|next\s+)?(?:says?|asks?|repl(?:y|ies)"
    r"|types?|mentions?)\b",
    r"\b(?:after|in)\s+(?:\w+\s+)?(?:more\s+)?(?:messages|turns|replies|minutes)\b.{0,40}\b(?:update"
    r"|set|store|remember|change|call)\b",
    r"\bthe\s+next\s+time\s+i\b|\b(?:when|once)\s+i\s+(?:say|type|write|ask)\b(?!.{0,40}\bi\s+mean\b)",
    r"\b(?:once|as\s+soon\s+as|when|after|on\s+\w{3,7}day|tomorrow)\b.{0,40},\s*(?:please\s+)?(?:approve|wipe|delete|transfer|refund|execute"
    r"|forward|export)\b",
)
_SECRET = _any(
    r"\b(?:AKIA|ASIA)[0-9A-Z]{12,}\b|\b(?:sk|pk|rk)[-_](?:live|test|proj|ant)?[-_]?\w{16,}"
    r"|\bgh[pousr]_\w{20,}|\bxox[abprs]-[\w-]{10,}|\beyJ[\w-]{10,}\.[\w-]{10,}",
    r"-----BEGIN\b|\bPRIVATE\s+KEY\b",
    r"\b(?:pass\s?words?|pass\s?codes?|passphrase|pin(?:\s+(?:code|number))?|cvv|cvc|otp|api[- _]?key"
    r"|secret(?:\s+key)?|access\s+key|token|security\s+code|recovery\s+(?:code|phrase)|seed\s+phrase"
    r"|credentials?|ssn|social\s+security(?:\s+number)?)\b\s*(?:number\s+|for\s+[\w ]{1,30}\s*|to\s+"
    r"[\w ]{1,30}\s*|at\s+[\w ]{1,30}\s*)?(?:is|are|=|:|was|now)",
    r"\b(?:one-time|alarm|door|gate|entry|access|unlock|verification|safe|lock|login|backup|security"
    r"|sms|confirmation)\s+(?:\w+\s+)?(?:code|pin|combination)\b",
    r"\bcode\s+(?:is|=|:)\s*[\d ]{3,}|\b(?:cvv|cvc)\s*\d{3,4}\b|\baws\s+key\b",
)
_DIGITS = re.compile(r"(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}\b")

KINDS = (
    ("secret", _SECRET),
    ("memory_claim", _MEMORY),
    ("other_users", _OTHERS),
    ("delayed_trigger", _TRIGGER),
    ("permission_claim", _PERMISSION),
    ("instruction", _INSTRUCTION),
)


def refusal(sentence: str) -> str | None:
    """Why nothing may be learnt from the sentence, as a reason code; None if nothing forbids it."""
    read = folded(sentence)
    if any(_luhn(m[0]) for m in _DIGITS.finditer(read)) or any(_iban(m[0]) for m in _IBAN.finditer(read)):
        return "secret"
    return next((reason for reason, pattern in KINDS if pattern.search(read)), None)


def _luhn(number: str) -> bool:
    digits = [int(c) for c in reversed(number) if c.isdigit()]
    return sum(d if i % 2 == 0 else sum(divmod(2 * d, 10)) for i, d in enumerate(digits)) % 10 == 0


def _iban(written: str) -> bool:
    iban = written.replace(" ", "")
    return any(_mod97(iban[:n]) for n in range(15, min(len(iban), 34) + 1))


def _mod97(iban: str) -> bool:
    return int("".join(str(int(c, 36)) for c in iban[4:] + iban[:4])) % 97 == 1
