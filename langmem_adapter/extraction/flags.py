"""Reasons why words are not a statement of fact: questions, hypotheses, fiction, sarcasm, the past, hearsay."""

import re

STICKY = frozenset({"hypothetical", "reported"})
"""Flags that hold for the rest of the sentence, not only for the clause that shows them."""


def _any(*parts: str) -> re.Pattern[str]:
    return re.compile("|".join(parts), re.IGNORECASE)


_FICTION = _any(
    r"\b(?:write|draft|compose|continue|finish|tell)\s+(?:me\s+|us\s+)?(?:a|an|the|another|some|this"
    r"|my)\s+(?:\w+\s+){0,3}?"
    r"(?:scene|story|poem|song|dialog(?:ue)?|script|novel|play|joke|limerick|haiku|monologue|letter"
    r"|speech|chapter|essay|bio|tweet|caption)\b",
    r"\brole[- ]?play\b",
    r"\bplay\s+the\s+(?:role|part)\b",
    r"\bact\s+(?:as|like)\b",
    r"\b(?:proofread|translate|paraphrase|rephrase|rewrite|reword|summari[sz]e|spell-?check|edit"
    r"|correct|transcribe|analy[sz]e|classify)\b[^.!?]{0,60}(?::|\bthis\b|\bthe\s+following\b|\x00)",
    r"^\W*(?:proofread|translate|paraphrase|rephrase|rewrite|reword|summari[sz]e)\b",
    r"\b(?:for|in)\s+(?:this|the|my|our)\s+(?:story|game|scene|novel|play|campaign|rpg|script|sketch"
    r"|book|role|film|movie|series|joke|example|scenario|dream|picture|photo|song|video)\b",
    r"^\W*(?:forwarded\s+message|begin\s+forwarded|from\s+the\s+(?:article|book|e-?mail|paper|website"
    r"|docs|interview|report|news)|on\s+.{3,40}\bwrote|"
    r"quote|excerpt|example|input|text|lyrics|transcript|caption|headline|prompt)\s*:",
    r"\b(?:my|the)\s+character\b",
)
_SUPPOSE = _any(
    r"^\W*(?:ok(?:ay)?,?\s+|so,?\s+|now,?\s+|just\s+|please\s+|let's\s+|let\s+us\s+|say,?\s+)*"
    r"(?:imagine|suppose|supposing|pretend|assume|assuming|picture\s+this|let's\s+say|let\s+us\s+say"
    r"|let's\s+pretend|let's\s+assume|"
    r"let's\s+imagine|say\s+(?:that\s+)?i\b|say\s+i'm\b|hypothetically|what\s+if)\b",
    r"\bhypothetical(?:ly)?\b",
    r"\bfor\s+(?:the\s+sake\s+of\s+argument|argument's\s+sake)\b",
)
_SARCASM = _any(
    r"\boh,?\s+(?:sure|great|joy|yes|yay|wonderful|fantastic|lovely|brilliant|good|of\s+course)\b",
    r"\byeah,?\s+right\b",
    r"\bas\s+if\b",
    r"\bapparently\b",
    r"\bsupposedly\b",
    r"\bsays\s+(?:my|the|his|her|your|this)\b",
    r"\bfavou?rite\s+(?:\w+\s+){1,3}ever\b",
    r"(?:^|\s)/s\b",
    r"[🙄🙃😒]",
    r"\blucky\s+me\b",
    r"\bjust\s+what\s+i\s+(?:needed|wanted)\b",
    r"\bsaid\s+no\s*(?:one|body)\b",
    r"\bwhat\s+(?:fun|joy|a\s+(?:joy|treat|surprise))\b",
    r"\b(?:fantastic|great|wonderful|brilliant|lovely|perfect|marvellous|marvelous|super|awesome),\s+"
    r"(?:another|more|now|yet|just)\b",
    r"\bwho\s+doesn't\b",
    r"\bnot!|\bnot$",
    r"\b(?:just|so|absolutely|totally|really)\s+(?:love|adore|enjoy)\s+(?:it\s+when|how|when|being"
    r"|having\s+to|waiting|getting|paying|"
    r"sitting\s+in|standing\s+in|losing|repeating)\b",
    r"\b(?:love|adore|enjoy)\s+(?:it\s+when|being\s+(?:ignored|late|stuck|told|woken|put|kept)|waiting"
    r"|paying\s+\w+|having\s+to)\b",
)
_SAID = (
    r"(?:(?:always|just|once|also|still|even|then|often|only)\s+)*(?:(?:keeps?|kept)\s+(?:saying"
    r"|telling|claiming)|says|said|wrote|writes|"
    r"claims|claimed|thinks|thought|believes|believed|told|tells|insists|insisted|reckons|reckoned"
    r"|argues|argued|jokes|joked|shouted|"
    r"texted|texts|tweeted|posted|assumes|assumed|suggested|asked|asks|swears|yelled|replied|announced)\b"
)
_REPORTED = _any(
    rf"\b(?:he|she|they|who|someone|somebody|nobody|everyone|everybody)\s+{_SAID}",
    r"\b(?:they|people|folks|some|others|everyone|friends|doctors|(?:my|his|her|the)\s+\w+s)\s+"
    r"(?:all\s+|always\s+|often\s+)?"
    r"(?:say|think|claim|believe|tell\s+me|insist|assume|reckon)\b",
    r"\b(?:my|the|his|her|their|our|your|this|that|a)\s+(?:(?!(?:and|i|to|or|but|that|which"
    rf"|so)\b)[\w'-]+\s+){{1,3}}(?<!\band\s)(?<!\bi\s){_SAID}",
    rf"(?<![.!?]\s)(?<!^)\b(?-i:[A-Z])[a-z]+\s+{_SAID}|^\W*(?-i:[A-Z])[a-z]+\s+(?:says|said|claims"
    r"|claimed|thinks|told|wrote|insists)\b",
    r"\baccording\s+to\b",
    r"\b(?:lyrics?|the\s+quote|the\s+line|reads|goes\s+like|titled|entitled|the\s+song|quote[ds]?)\b",
    r"\bi\s+(?:told|lied\s+to|convinced)\s+(?!you\b)\w+",
    r"\bi\s+(?:lied|joked|was\s+joking|am\s+joking|'m\s+joking|'m\s+kidding)\b|\bjust\s+kidding\b|\bjk\b",
)
_PAST = _any(
    r"\bused\s+to\s+(?!it\b|that\b|this\b)",
    r"\bwhen\s+(?:i|we)\s+(?:was|were|lived|worked|had)\b",
    r"\bas\s+(?:a|an)\s+(?:\w+\s+)?(?:kid|child|boy|girl|teen|teenager|student|toddler|youngster|baby)\b",
    r"\bback\s+(?:then|in\s+(?:the|my|\d)|when)\b",
    r"\bgrowing\s+up\b",
    r"\bin\s+my\s+(?:youth|twenties|thirties|teens|childhood|student\s+days|20s|30s)\b",
    r"\b(?:formerly|previously)\b",
    r"\bin\s+those\s+days\b",
)
_NOW = _any(r"^\W*(?:but\s+|and\s+)?(?:now|these\s+days|nowadays|today|currently|at\s+the\s+moment|but\s+now)\b")
_CONDITION = _any(
    r"(?:^|\s)(?:if|unless|provided\s+that|as\s+long\s+as|whether|in\s+case|otherwise)\b",
    r"\bwere\s+i\b",
    r"\bi\s+wish\b",
    r"\bif\s+only\b",
    r"\bas\s+though\b",
    r"\bin\s+(?:a|another|my\s+next|my\s+previous)\s+(?:dream|parallel|alternate|life|universe)\b",
    r"\bin\s+my\s+dreams?\b",
    r"\bi\s+dream(?:ed|t)?\b",
)
_MODAL = _any(
    r"\bi(?:'d|\s+(?:would|could|might|may|should|shall|will))\b(?!\s+(?:rather|prefer)\b)",
    r"\bi'll\b",
    r"\b(?:i'm|i\s+am|im|we're|we\s+are)\s+(?:going\s+to|gonna|about\s+to|thinking\s+(?:of|about)"
    r"|considering|hoping|planning\s+to|tempted|trying\s+to)\b",
)
_UNCERTAIN = _any(
    r"\b(?:maybe|perhaps|possibly|probably|presumably|allegedly)\b",
    r"\bi\s+(?:think|guess|suppose|suspect|believe|assume|reckon|doubt|wonder|feel\s+like)\b",
    r"\bi'm\s+(?:not\s+(?:really\s+)?sure|unsure|guessing|wondering)\b",
    r"\b(?:not\s+sure|no\s+idea|can't\s+(?:decide|remember|tell))\b",
    r"\b(?:sort|kind)\s+of\b|\bkinda\b|\bsorta\b",
    r"\b(?:might|may)\s+be\b|\bit\s+depends\b|\bdepends\s+on\b|\bdepending\b",
)
_ASKS = _any(
    r"^\W*(?:and\s+|but\s+|so\s+|or\s+|hey,?\s+|hi,?\s+)*(?:am|is|are|was|were|do|does|did|can|could"
    r"|would|will|should|shall|may|might|have|has|"
    r"what|what's|who|who's|whom|whose|how|how's|where|where's|when|why|which|isn't|aren't|don't\s+"
    r"(?:you|i|we|they)|doesn't|didn't|won't|wouldn't|couldn't|any)\s",
    r"\b(?:do|don't)\s+you\s+(?:think|know|remember|believe|recall|feel)\b",
    r"\b(?:can|could|would|will)\s+you\b",
    r"\b(?:tell|ask|asking|asked|wondering|wonder|guess|know|check|see|confirm|explain|show)\s+"
    r"(?:me\s+|us\s+)?(?:whether|if|what|who|why|how|where|when|which)\b",
    r"\bis\s+it\s+(?:true|ok|okay|possible|normal|weird|bad)\b",
    r"\baccording\s+to\s+you\b",
    r"\bwhat\s+do\s+you\b",
)
_WHEN_OPENS = _any(r"^\W*when\s+(?:i|we|it|the|my|he|she|they|there)\b")
_TAG = _any(
    r"(?:,|\s)(?:right|correct|yes|no|yeah|huh|eh|innit|isn't\s+it|aren't\s+i|don't\s+i|am\s+i|do\s+i"
    r"|won't\s+i|haven't\s+i|didn't\s+i)\s*\?+\W*$"
)
_BECAUSE = frozenset({"because", "since", "given that", "given", "seeing as", "as", "so", "but"})
_STATES = _any(r"^\W*(?:since|because|given\s+that|as)?\s*(?:i|i'm|im|i've|we|my)\b")


def opens(sentence: str) -> frozenset[str]:
    """Flags that hold from this sentence to the end of the message: a story told, a supposition made."""
    found = set()
    if _FICTION.search(sentence):
        found.add("fiction")
    if _SUPPOSE.search(sentence):
        found.add("hypothetical")
    return frozenset(found)


_NOT_MEANT = re.compile(
    r"\W*(?:not|just\s+kidding|kidding|jk|lol\s+no|as\s+if|yeah\s+right|i\s+wish)\W*", re.IGNORECASE
)


def takes_back(sentence: str) -> bool:
    """Whether the sentence says that the one before was not meant ("Not!")."""
    return bool(_NOT_MEANT.fullmatch(sentence))


def of_sentence(sentence: str) -> frozenset[str]:
    """Flags of a whole sentence, whichever clause shows them."""
    found = set()
    if _SARCASM.search(sentence):
        found.add("sarcasm")
    if _REPORTED.search(sentence):
        found.add("reported")
    if _TAG.search(sentence):
        found.add("question")
    return frozenset(found)


def of_clause(piece: str, said: str, joined: str, rest: str) -> frozenset[str]:
    """Flags of one clause: as written, without lead-in words, the word joining it, the rest of its sentence."""
    found = set()
    if _is_question(piece, joined, rest):
        found.add("question")
    if _CONDITION.search(piece) or rest.lstrip(" ,").casefold().startswith(("if ", "unless ", "provided ")):
        found.add("hypothetical")
    if _MODAL.search(said):
        found.add("modal")
    if _UNCERTAIN.search(said):
        found.add("uncertain")
    if _PAST.search(piece):
        found.add("past")
    return frozenset(found)


def _is_question(piece: str, joined: str, rest: str) -> bool:
    asks = bool(_ASKS.search(piece)) and not _WHEN_OPENS.search(piece)
    ends = piece.rstrip(" \"')").endswith("?")
    if not ends and not asks:
        return False
    # "Is this safe, since I'm allergic to nuts?" asks about the first clause and states the second.
    return not (joined in _BECAUSE and _STATES.search(piece) and not asks and bool(joined) and joined != "so")


def carried(tainted: frozenset[str], piece: str, joined: str) -> frozenset[str]:
    """What of an earlier clause's flags still holds in this one: a turn to the present ends the past."""
    if _NOW.search(piece) or joined.startswith(("but now", "because", "since")):
        return frozenset()
    return tainted
