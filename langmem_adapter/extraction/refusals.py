"""Sentences from which nothing may be learnt: instructions, permission claims, other users, secrets.

Deterministic wording rules, tried on the text as it reads: look-alike letters are folded first (see `lookalikes`).
"""

import re

from langmem_adapter.extraction.subjects import reported, said_again
from langmem_adapter.lookalikes import folded
from langmem_adapter.needles import Sieve


def _any(*parts: str) -> re.Pattern[str]:
    return re.compile("|".join(parts), re.IGNORECASE)


_POWER = (
    r"(?:approve|authori[sz]e|access|see|view|read|edit|delete|export|override|bypass|transfer"
    r"|withdraw|refund|issue|sign\s+off|grant|revoke|change|skip|use)"
)
_MONEY = r"(?:payments?|refunds?|payouts?|transfers?|transactions?|withdrawals?|purchases?|wires?|invoices?)"
_LEAVE = r"(?:approv\w+|confirm\w+|verif\w+|authori[sz]ation|sign-?off|checks?|second\s+look)"
_KIN = (
    r"(?:mother|father|mum|mom|dad|parents?|brother|sister|son|daughter|kids?|child(?:ren)?|wife|husband|partner"
    r"|spouse|girlfriend|boyfriend|fianc\w+|aunt|uncle|grand\w+|friends?|boss|colleagues?|neighbou?rs?)"
)
# What doctors, landlords, employers and states allow: no power over this system.
_DOING = (
    r"(?:eat|drink|drive|walk|run|exercise|fly|swim|have|travel|work(?!\s+(?:around|on\s+(?:all|any|other)))|vote|study"
    r"|marry|adopt|donate|dive|sail|hunt|fish|return\s+to|go\s+(?:home|back|out|to)|play|stay|live|train|keep\s+(?:an?|my)\s"
    r"|lift\s+(?:weights|heavy)|use\s+(?:the|their|his|her)\s+(?:\w+\s+)?(?:gym|pool|garden|kitchen|garage|library|car|sauna))"
)
_LIFE = (
    rf"\s+to\s+{_DOING}\b"
    r"|\s+to\s+(?:an?\s+)?(?:\w+\s+)?(?:pension|holidays?|vacation|leave|benefits?|childcare)\b"
    r"|\s+to\s+\d+\s+(?:\w+\s+)?(?:days?|weeks?|months?)\b|\s+by\s+my\s+(?:doctor|gp|surgeon|physio\w*)\s+to\s"
    r"|\s+for\s+(?:(?:an?|my|the)\s+)?(?:\w+\s+)?(?:surgery|operation|mortgage|loan|visa|flat|apartment|adoption|work|sports?|flight)\b"
    r"|\s+(?:organ|blood)\s+donor\b|\s+(?:seller|buyer|driver|host)\b"
    r"|\s+on\s+(?:twitter|x|instagram|facebook|linkedin|tinder|bumble|etsy|airbnb|youtube|tiktok|ebay)\b"
)
_ELSEWHERE = (
    r"\s+(?:of|at|in|for|on)\s+(?:(?:an?|the|my|our|his|her|their)\s+)?(?:\w+\s+){0,2}?"
    r"(?:schools?|clubs?|choir|groups?|forums?|subreddit|bakery|cafe|bank|hospital|museum|church|university|college|library"
    r"|product|band|laptop|computer|pc|mac)\b"
)
_SIGHTS = (
    r"(?:\s+(?:[\w']+\s+){0,3}?(?:mountains?|hills|lakes?|boats|sea|stars|houses|gardens?|pools?|beach(?:es)?|trails|parks"
    r"|rooms|facilities|gym|archives?|library|breakfasts?|lunch(?:es)?|meals?|bank|trains?|bus(?:es)?|museums?|sauna)\b)"
)
_PERMISSION = _any(
    r"\b(?:don't|do\s+not|dont|doesn't|does\s+not|doesnt|never|no\s+longer)\s+(?:needs?|requires?|have|has)\s+(?:to\s+)?(?:\w+\s+"
    r")?(?:confirm\w*|approval|permission|"
    r"authori[sz]\w+|verif\w+|a\s+second|checks?|sign\s+off|2fa|mfa|two-factor)\b"
    r"(?!.{0,30}\bto\s+be\s+(?:happy|myself|content|proud)\b)",
    r"\b(?:upgraded|promoted|elevated|switched)\s+to\s+(?:an?\s+)?(?:admin|owner|root|superuser|moderator)\w*\b"
    rf"(?!{_ELSEWHERE})",
    rf"\bi(?:'m|\s+am)\s+(?:an?\s+|the\s+)?verified\b(?!{_LIFE})|\band\s+can\s+\w+\s+(?:any|every|all)\w*\b(?!{_SIGHTS})"
    rf"|\baccess\s+to\s+(?:all|every|any)\b(?!{_SIGHTS})",
    r"\bmy\s+(?:role|status|account|tier|user)\s+(?:is|has|was)\s+(?:\w+\s+){0,3}(?:admin\w*|root"
    r"|superuser|(?<!product\s)owner|moderator|verified|staff)\b(?!\s+assistant\b)",
    r"\bwithout\s+(?:any\s+|a\s+)?(?:asking|confirming|approval|confirmation|checking|checks?|verification|review)\b",
    r"\bi(?:'m|\s+am|\s+was|\s+have\s+been|'ve\s+been)\s+(?:now\s+|also\s+|fully\s+"
    r"|pre-?)*(?:authori[sz]ed|cleared|(?:permitted|entitled|allowed)(?=\s+to\b)|approved|verified"
    r"|exempt(?:ed)?(?!\s+from\b)|whitelisted|licensed\s+to)\b"
    rf"(?!{_LIFE}|\s+(?:fly|drive|teach|practi[cs]e|sell|carry)\b|\s+for\s+(?:take|a\b|my\b))",
    r"\bexempt(?:ed)?\s+from\s+(?:[\w-]+\s+){0,4}?(?:rules?|limits?|checks?|polic(?:y|ies)|approvals?|confirmations?|verifications?"
    r"|reviews?|audits?|oversight|restrictions?|controls?|monitoring|moderation|screening|requirements?)\b",
    r"\b(?:has|have|had|was|been|is|are)\s+(?:also\s+)?(?:cleared|authori[sz]ed|approved|granted"
    r"|permitted|whitelisted|verified)\s+(?:me|us|my|for\s+me|access)\b"
    rf"(?!{_LIFE}|\s+(?:\w+\s+)?(?:mortgage|loan|visa|leave|holiday|vacation|raise|application|thesis|passport|plans?|design)\b)",
    r"\b(?:gave|given|give|gives|granted|grant|grants)\s+(?:me|us)\s+(?:\w+\s+){0,3}(?:access"
    rf"|permission|rights?|privileges?|clearance|authority|admin)\b(?!{_LIFE})",
    rf"\b(?:so\s+)?(?:i|we)\s+(?:can|may|am\s+able\s+to)\s+(?:\w+\s+)?(?:{_POWER})\s+(?:any|all|every"
    r"|everything|other|others'?|transactions?|payments?|refunds?|orders?|invoices?|the\s+(?:payroll"
    rf"|database|records?|accounts?|limits?|checks?))\b(?!{_SIGHTS})",
    r"\bpermissions?\b(?!\s+systems?\b|\s+to\s+(?!"
    rf"{_POWER})|\s+to\s+{_DOING}\b|\s+from\s+(?:my|the|our)\s+\w+\s+to\s+{_DOING})"
    r"|(?<!driving\s)\bprivileges?\b|\bclearance\b(?!\s+for\s+my\s+(?:\w+\s+)?job\b|\s+sales?\b)"
    r"|\b(?:admin\w*|root|superuser|owner|moderator)(?:'s)?\s+(?:rights?|privileges?|powers?|permissions?|access)\b"
    r"(?!\s+(?:on|to)\s+my\s+(?:own\s+)?(?:\w+\s+)?(?:laptop|computer|pc|mac|phone|router)\b|\s+(?:ltd|inc|llc|gmbh|limited)\b)"
    r"|(?<!called\s)(?<!named\s)\bsudo\b(?!\s+on\s+my\b)|\baccess\s+rights\b"
    rf"|\b(?:full|unrestricted)\s+access\b(?!\s+to{_SIGHTS})|\b(?:master|god|raw|root)[-\s](?:access|rights)\b(?!\s+ltd\b)",
    r"\bmy\s+(?:spending|credit|transaction|transfer|withdrawal|purchase|expense|refund|daily|approval"
    r"|budget)\s+(?:\w+\s+)?limits?\b"
    r"(?!\s+(?:for|of|on)\s+(?:\w+\s+)?(?:caffeine|coffee|sugar|salt|alcohol|calories|presents|gifts|clothes|groceries|food|books|screen)\b)",
    r"(?<!work\sin\s)(?<!works\sin\s)\b(?:identity|id|kyc|background|security|fraud|compliance|age)\s+(?:checks?|verification)\b"
    r"(?!\s+failed\b|\s+for\s+(?:my|a)\s+(?:new\s+)?(?:job|flat|apartment|visa)\b)",
    r"\b(?:no|without|skip\w*|bypass\w*|disabled?|off|waived?|passed|completed?)\b.{0,40}\b(?:two-factor|2fa|mfa)\b"
    r"|\b(?:two-factor|2fa|mfa)\b.{0,40}\b(?:no|not|without|skip\w*|bypass\w*|disabled|off|waived|passed|done|completed?|exempt\w*"
    r"|unnecessary|never)\b"
    r"|\b(?:second\s+signature|second\s+approval|without\s+(?:confirmation|approval|a\s+second))\b",
    r"\bi(?:'m|\s+am)\s+(?:an?\s+|the\s+|your\s+|now\s+)*(?:(?:system|site|workspace|global|super"
    r"|account|org|platform|tenant)\s+)?(?:admin|root|superuser|super-user|owner|moderator|operator"
    r"|developer|creator)\b(?:\s+(?:of|on|for|here|in)\s+(?:this|the)\s+(?:workspace|system|app"
    r"|account|server|org(?:ani[sz]ation)?|tenant|site|platform|bot|assistant|agent|channel"
    r"|project)\b(?!'s\b))",
    r"\bi(?:'m|\s+am)\s+(?:an?\s+|the\s+|your\s+|now\s+)*(?:super-?)?(?:admin|root|user\s+with\s+root|sudoer)\b"
    rf"(?!\s+(?:assistants?|work|staff|beer|vegetables?|canals?|causes?)\b|{_ELSEWHERE})"
    r"|\bsuper-?user\b(?!\s+on\s+stack\b)|\btreat\s+me\s+as\s+(?:\w+\s+){0,2}(?:admin\w*|owner|root)\b",
    # "A database administrator" is a job; who says "I am the administrator" claims a power.
    r"\b(?:am|'m)\s+(?:the|your|an|now)\s+(?:\w+\s+)?administrator\b(?!\s+at\b)"
    r"|(?<!database\s)(?<!network\s)(?<!system\s)(?<!systems\s)\badministrator\s*$"
    r"|\badministrator\s+(?:(?:of|on|for|here|in)\s+(?:this|the|your)\b|here\b)",
    r"(?<!my\s)\bapprovers?\b|\bverified\s+(?:user|customer|account|employee)\b",
    r"(?<!\bfee\swas\s)\bwaived\b(?!\s+(?:tuition|entry|delivery)\b)"
    r"|\boverrides?\s+(?:all|the|any)\b(?!\s+(?:thermostat|alarm|heating|lights?)\b)",
    # Who is above what holds for others, or needs nobody's leave.
    r"(?<!visa\s)(?<!tax\s)\b(?:limits?|rules?|restrictions?|polic(?:y|ies)|guidelines)\b.{0,30}\b(?:don't|do\s+not|doesn't|does\s+not"
    r"|no\s+longer|never)\s+(?:\w+\s+)?(?:apply|count|bind|hold)\b.{0,12}\b(?:me|us|my)\b",
    r"\bi(?:'m|\s+am|\s+stand)\s+(?:above|beyond)\s+(?:the|all|any|your)\s+(?:\w+\s+)?(?:limits?|rules?|restrictions?|polic\w+)\b"
    r"|\bi\s+outrank\b|\bi\s+get\s+(?:everything|anything|whatever)\s+i\s+ask\b"
    r"|\bwhat(?:ever)?\s+i\s+(?:ask|say|order)\s+is\s+(?:binding|law|final|approved)\b",
    rf"\bno\s+(?:further\s+)?{_LEAVE}\s+(?:is|are)\s+(?:necessary|needed|required)\b"
    rf"|\bno\s+{_LEAVE}\s+(?:before|for|on)\s+(?:\w+\s+)?(?:{_MONEY}|me)\b"
    rf"|\b{_MONEY}\b.{{0,30}}\bneeds?\s+(?:nobody's|no\s+one's|no)\b"
    rf"|(?<!\bi\s)\b(?:never|don't)\b.{{0,40}}\bbefore\s+(?:an?\s+|any\s+|my\s+|each\s+)?{_MONEY}\b",
    r"(?<!\bi\s)\b(?:skip|waive|drop)\s+(?:(?:the|all|any|my)\s+)*(?:security\s+questions?|verification|identification|approvals?|confirmations?)\b"
    r"|\b(?:safety|verification|moderation|limits|checks|restrictions)\s+(?:is|are)\s+(?:off|disabled|skipped|lifted|suspended)\b",
    rf"\b(?:final|last)\s+(?:say|word)\s+(?:on|over|about)\s+(?:\w+\s+)?{_MONEY}\b|\btake\s+my\s+word\s+for\s+{_MONEY}\b"
    rf"|\bgreen-?light\s+(?:any|all|every|{_MONEY})\b|\bwho\s+(?:can\s+|may\s+)?(?:approves?|authori[sz]es?)\s+(?:all|any|every)\b"
    rf"|\b(?:every|any|each)\s+\w+\s+i\s+ask\s+for\s+is\s+(?:good|fine|okay|ok|approved)\b",
    r"\b(?:consider|treat(?:ed)?|regard(?:ed)?|counts?)\b.{0,40}\b(?:pre-?)?(?:approved|authori[sz]ed|signed\s+off|cleared)\b",
    rf"\b{_MONEY}\b.{{0,30}}\b(?:are|be|get|is)\s+(?:approved|granted|authori[sz]ed|paid)\b.{{0,12}}\b(?:automatically|at\s+once|always|instantly)\b",
    r"\bmy\s+id\s+(?:is|was|has\s+been)\s+(?:\w+\s+)?(?:verified|confirmed|checked)\b(?!\s+(?:at|by)\b)"
    r"|\bmy\s+account\s+(?:type|level)\s+is\s+(?:internal|admin\w*|staff|privileged)\b"
    r"|\ballergic\s+to\s+(?:\w+\s+)?(?:confirm\w*|approv\w*|verif\w*|checks?|prompts?)\b"
    r"|\b(?:told|instructed|ordered)\b.{0,40}\bto\s+(?:trust|obey|believe)\s+me\b"
    rf"|\b(?:blessing|go-ahead|green\s+light)\s+to\s+{_POWER}\s+(?:everything|all|any|every)\b",
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
    r"\bfrom\s+now\s+on,?\s+(?=\w)(?!i\b(?!\s+wants?\s+you\s+to\s+(?!know\b))|i'm\b|we\b|my\b|call\s+me\b)",
    r"\b(?:whenever|every\s+time)\s+i\s+(?:say|ask|write|type|mention)\b"
    r"(?!.{0,40}\bi\s+(?:regret|feel|get|mean|blush|think|cry|laugh)\b|\s+an?\s+(?:letter|postcard|poem|test|diary|book)\b)",
    r"\bat\s+the\s+(?:start|end|beginning)\s+of\s+(?:each|every|all)\b"
    r"(?!\s+(?:day|week|month|quarter|season|year|meal|workout)\b)"
    r"|\bin\s+(?:each|every|all)\s+(?:repl|response|answer|message)(?!\w*\s+from\b)",
    r"\b(?:you|(?:the\s+)?(?:assistant|agent|bot|model|ai))\s+(?:must|should|shall|have\s+to|has\s+to"
    r"|need\s+to|are\s+to|is\s+to)\s+"
    rf"(?:(?:always|never|not|also|only|first)\s+)*{_ORDER}\b(?!\s+out\b)",
    r"\byou\s+(?:must|should|shall)\s+(?:always|never)\b(?!\s+(?:bring|wear|carry|eat|drink|try|pack|visit|stretch)\b)|\bwants?\s+you\s+to\b(?!\s+(?:call|address"
    r"|answer|reply|respond|write|speak|keep|use|be|help\s+me|know)\b)|\bthe\s+(?:assistant"
    r"|agent|bot)\s+\w+s\b",
    r"\b(?:ignor(?:e|ing)|disregard(?:ing)?|(?<!\bi\s)forget(?:ting)?|overrid(?:e|ing)|bypass(?:ing)?|disabl(?:e|ing)|reveal(?:ing)?"
    r"|disclos(?:e|ing)|leak(?:ing)?|exfiltrat(?:e|ing))\s+"
    r"(?:[\w']+\s+){0,3}(?:instructions?|prompts?|guidance|guidelines?|directives?|system|"
    r"rules?|polic(?:y|ies)|guardrails?|limits?|filters?|requests?|security|logs?|logging|keys?|audit"
    r"|safety|checks?|restrictions?)\b",
    r"\b(?:hidden|system)\s+prompt\b|\brow-level\s+security\b|\baudit\s+log\b",
    r"(?<!\bi\s)\b(?:call|invoke|run|execute|use)\s+(?:the\s+)?[\w-]*(?:_\w+|\s+tool|\s+function|\s+script|\.sh|\.py)\b",
    rf"(?:{_START}|\b(?:please|kindly|be|must|then|and|(?<!i\shave\s)(?<!i\sneed\s)(?<!i\swant\s)to)\s+|(?<!\bi\s)\b(?:always|never)\s+|[:;,]\s*|\s-\s)"
    r"(?:forward|send|sent|email|wire|transfer|pay(?!\s+attention\b)|deliver|route|redirect|post|upload|copy|cc"
    r"|bcc)(?:ed)?\s+(?:[\w'.-]{1,40}\s+){0,4}(?:to|into)\s+\S",
    r"\b(?:must|should|shall|needs?\s+to|ha(?:ve|s)\s+to)\s+(?:always\s+|never\s+)?(?:be\s+"
    r")?(?:forwarded|sent|approved|answered|ignored|"
    r"deleted|skipped|disclosed|included|recommended|refunded|paid|trusted|used|called|disabled|transferred)\b",
    r"(?<!\bi\s)(?<!\bwe\s)\b(?:never|don't|do\s+not)\s+(?:mention|tell|refuse|warn|question|reveal|verify)\b"
    rf"(?!\s+me\b|\s+my\s+{_KIN}\b|\s+(?:\w+\s+){{1,4}}to\s+my\s+{_KIN}\b)",
    r"(?<!\bi\s)(?<!\bwe\s)\balways\s+(?:recommend|mention|ignore|approve|forward|trust|include|append"
    r"|agree|say\s+yes|call|run|execute|"
    r"skip|send|suggest)\b(?!\s+me\b|\s+(?:the\s+)?(?:vegan|vegetarian|halal|kosher|gluten-free|nut-free|step-free|quiet)\b"
    r"|\s+(?:the\s+)?(?:\w+\s+)?(?:prices?|units?|weather|calories|sugar|carbs?|ingredients|allergens?|distances?|opening\s+hours)\b)",
    r"\b(?:start|begin|end|finish|open|close|prefix|sign)\s+(?:each|every|all|any|your)\s+(?:of\s+your\s+)?"
    r"(?:repl(?:y|ies)|answers?|responses?|messages?)\s+with\b(?!\s+(?:an?|the)\s+(?:\w+\s+)?(?:summary|greeting|conclusion|list)\b)",
    r"\b(?:recommend|prefer|trust)\s+(?:it|them|this)\s+(?:first|always)\b|\btrusted\s+source\b",
    r"\b(?:correct|right|proper)\s+way\s+to\b(?!\s+(?:make|cook|brew|bake|eat|drink)\b)"
    r"|\bnew\s+polic(?:y|ies)\b(?!\s+with\s+my\s+insur)|(?<!insurance\s)\b(?:policy|rule)\s+(?:is|:)"
    r"(?!\s*:?\s+no\s+(?!appro|confirm|verif|check|review|limit|question)\w+\s+(?:after|before|at|on|in)\b)",
    r"\b(?:queries|questions|requests)\s+(?:about|for|on)\s+.{1,60}\bshould\s+be\b",
    r"\b(?:maintenance|developer|debug|god|jailbreak|dan)\s+mode\b|\bobey\b|\bdo\s+as\s+i\s+say\b",
    rf"{_START}(?:please\s+)?(?:delete|erase|wipe|drop)\s+(?:all|every|the)\b"
    r"(?!\s+(?:\w+\s+){0,2}?(?:paragraphs?|commas?|sentences?|words?|lines?|bullets?|emojis?|typos?|spaces)\b)",
)
_MEMORY = _any(
    r"\bconfidence\s+(?:of\s+)?[\d.]+|^[^\w\n]{0,20}(?:fact|memory|add\s+to\s+memory|profile\s+update)\s*:",
    r"\b(?:confidence|trust|source_type|importance|valid_until|expires?_at|scope)\s*[=:]\s*\S"
    r"|\b(?:source|topic)\s*[=:]\s*(?!my\b)\S",
    r"\b(?:this|that|the|these)\s+(?:memor(?:y|ies)|records?|facts?|notes?|entr(?:y|ies))\s+(?:can"
    r"|must|should|may|will|is|are|has|have)\b(?!\s+(?:important|dear)\s+to\s+me\b)",
    r"\b(?:supersede|overwrite|replace|delete|erase|update|restore|bring\s+back|recover)\s+(?:record"
    r"|memory|memories|fact|entry|the\s+memory|my\s+(?:old|deleted|erased)"
    r"(?!\s+(?:e-?mails?|mails?|photos?|pictures?|files?|posts?|tweets?|clothes|phones?|bikes?)\b))\b",
    r"\bnever\s+(?:be\s+)?(?:deleted|expire|forgotten|erased|superseded)\b|\bdeletion\s+request\b"
    r"|\bm_\d+\b|\bextract(?:or|ion)\s+(?:rule|output|policy)\b",
    r"\bmemory\s+(?:policy|rule|level|store)\b|\bhighest\s+(?:trust|confidence|priority)\b",
)
_OTHERS = _any(
    r"\b(?:all|every|other|others'?)\s+(?:profiles?|accounts?|records?|users?'?|memories)\b"
    r"(?!\s+of\s+(?:my|an?)\b|\s+of\s+the\s+(?:bathroom|kitchen|gym|pool|library)\b)|\bmy\s+user_?\s?id\b",
    r"\b(?:for|to)\s+(?:all|every|any|each)\s+(?:users?|customers?|tenants?|accounts?|sessions?"
    r"|conversations?|agents?)\b(?!\s+of\s+an?\b)",
    r"\b(?:all|every|other|another|any)\s+(?:users?|customers?|tenants?)\b"
    r"(?!\s+of\s+(?:my|an?)\b|\s+of\s+the\s+(?:bathroom|kitchen|gym|pool|library)\b)",
    r"\b(?:application|app|global|tenant|system|org|organi[sz]ation)[- ](?:level|wide|scope)\b"
    r"|\b(?:everyone|everybody|anyone|anybody|people)\s+(?:using|who\s+uses?|on|in)\s+this\s+(?:app|workspace|system|chat|bot"
    r"|assistant|service|site)\b"
    r"|\b(?:show|give|send|tell)\s+me\s+(?:the\s+)?(?:other\s+(?:people|users|customers|guests|clients)'?s?|everyone(?:\s+else)?'s)\b"
    r"|\bgive\s+me\s+(?:all\s+)?(?:the\s+)?(?:logs?|database)\b",
    r"\bnamespaces?\b|\bu_\w+|\busers/\S+|\b(?:user|account|customer)\s*(?:id|#|no\.?"
    r"|number)?\s*\d{3,}\b|\buser\s+id\b",
    r"\bpatient\s+[a-z]\b|\bon\s+behalf\s+of\s+(?:user|customer|account)\b",
)
_TRIGGER = _any(
    r"\bif\s+(?:the\s+user|i|they|he|she)\s+(?:later\s+|ever\s+|next\s+)?(?:says?|asks?|repl(?:y|ies)"
    r"|types?|mentions?)\b(?!.{0,60},\s*i\s+(?:usually\s+)?(?:prefer|like|love|hate|mean)\b)",
    rf"\bif\s+(?:anyone|anybody|someone|somebody)\s+(?:says?|asks?|mentions?)\b.{{0,40}},\s*(?:please\s+)?{_ORDER}\b"
    rf"|\bshould\s+(?:the\s+)?(?:topic|subject|question)\b.{{0,40}}\bcomes?\s+up\b,?\s*(?:please\s+)?{_ORDER}\b"
    rf"|\bon\s+the\s+(?:word|signal|phrase)\b.{{0,40}}\b{_ORDER}\b",
    r"\b(?:after|in)\s+(?:\w+\s+)?(?:more\s+)?(?:messages|turns|replies|minutes)\b(?!\s+i\s+\w+ed\b).{0,40}\b(?:update"
    r"|set|store|remember|change|call)\b",
    r"\bthe\s+next\s+time\s+i\b(?!\s+(?:visit|travel|fly|go|come|stay|eat|cook)\b.{0,60}\bi(?:'d|'ll)?\s+(?:want|like|need|prefer|would)\s+(?!you\b))"
    r"|(?<!call\sme\s)\b(?:when|once)\s+i\s+(?:say|type|write|ask)\b"
    r"(?!.{0,40}\b(?:i\s+(?:mean|drink|eat|prefer)|it\s+(?:means|is\s+usually))\b)",
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
_SIEVE = Sieve(pattern for _, pattern in KINDS)


def refusal(sentence: str) -> str | None:
    """Why nothing may be learnt from the sentence, as a reason code; None if nothing forbids it."""
    read = folded(sentence)
    if any(_luhn(m[0]) for m in _DIGITS.finditer(read)) or any(_iban(m[0]) for m in _IBAN.finditer(read)):
        return "secret"
    views = dict.fromkeys((read, reported(said_again(read))))
    left = _SIEVE.among(views)
    found = (KINDS[n] for view in views for n in left(view) if KINDS[n][1].search(view))
    return next((reason for reason, _ in found), None)


SAFETY = ("diet", "diet/allergy")
"""Topics of which a fact is believed though the rest of its sentence is not: not to know it may harm the user."""
_OWN = re.compile(r"(?:i|i'm|im|i've|ive|my)\b", re.IGNORECASE)
_JOINED = re.compile(r"\s*(?:[;–—]|,?\s*(?:so|and|but|therefore|also|plus|which\s+is\s+why)\b)", re.IGNORECASE)
_JOINS = re.compile(r"(?:[;–—]|\b(?:so|and|but|also|plus))[,\s]*$", re.IGNORECASE)
_DEPENDS = re.compile(
    r"\b(?:if|when|whenever|once|unless|until|till|after|before|should|(?:every|next|any)\s?time|as\s+soon)\b",
    re.IGNORECASE,
)


def beside(sentence: str, words: str) -> str | None:
    """What a sentence says besides these words, if they are a clause of it about the speaker that stands alone.

    None if they are all of it, or no such clause: "I'm vegan" stands alone before ", so …", not behind "When I ask, ".
    """
    at = sentence.find(words)
    if at < 0 or not _OWN.match(words) or _DEPENDS.search(words):
        return None
    before, after = sentence[:at], sentence[at + len(words) :]
    if before.strip() and (not _JOINS.search(before) or _DEPENDS.search(before)):
        return None
    if not re.fullmatch(r"[\s.!]*", after) and not _JOINED.match(after):
        return None
    rest = f"{_JOINS.sub('', before)}. {_JOINED.sub('', after, count=1)}".strip(" .!")
    return rest or None


def _luhn(number: str) -> bool:
    digits = [int(c) for c in reversed(number) if c.isdigit()]
    return sum(d if i % 2 == 0 else sum(divmod(2 * d, 10)) for i, d in enumerate(digits)) % 10 == 0


def _iban(written: str) -> bool:
    iban = written.replace(" ", "")
    return any(_mod97(iban[:n]) for n in range(15, min(len(iban), 34) + 1))


def _mod97(iban: str) -> bool:
    return int("".join(str(int(c, 36)) for c in iban[4:] + iban[:4])) % 97 == 1
