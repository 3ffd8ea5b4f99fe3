"""Reasons why words are not a statement of fact: questions, hypotheses, fiction, sarcasm, the past, hearsay."""

import re

SOMETIMES = "conditional"
"""It holds at times: no lasting state of the speaker."""

DISOWNED = "disowned"
"""The speaker does not like it: others' name for them is no name to use."""

AHEAD = "ahead"
"""It is told of a time to come: "next year I'm a student"."""

STICKY = frozenset({"hypothetical", "reported"})
"""Flags that hold for the rest of the sentence, not only for the clause that shows them."""


def _any(*parts: str) -> re.Pattern[str]:
    return re.compile("|".join(parts), re.IGNORECASE)


_TEXTS = (
    r"(?:draft|letter|e-?mail|message|text|essay|bio|biography|post|tweet|cv|resume|résumé|transcript|chat"
    r"|chat\s+log|conversation|log|article|paragraph"
    r"|intro|introduction|speech|story|poem|abstract|quote|excerpt|snippet|prompt|example|thread|comment"
    r"|caption|blurb|reply|response|ad"
    r"|listing|dialog(?:ue)?|diary|screenplay|script|review|passage|original|source\s+text|testimonial"
    r"|reference\s+letter|minutes|interview|headline"
    r"|profile\s+text|personal\s+statement|memo|document|input|output|sample|copy)s?"
)
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
    r"\b(?:reply|respond|answer|react)\s+to\s+(?:this|these|the|an?|that|my|his|her|their|it)\b[^.!?]{0,60}:",
    r"\b(?:improve|fix|polish|shorten|simplify|check|grade|review|critique|expand|format|reformat|convert"
    r"|explain|evaluate|annotate|parse"
    r"|redact|humani[sz]e|tidy\s+up|clean\s+up|proof-?read|translate|summari[sz]e|rewrite|rate|spellcheck|tldr"
    r"|tl;dr)\s+(?:this|these|the\s+following|my\s+\w+"
    r"|it|the\s+\w+)\b[^.!?]{0,60}:",
    rf"\b(?:here(?:'s|\s+is|\s+are|\s+comes)|this\s+is|below(?:\s+is)?|attached(?:\s+is)?|pasting|pasted"
    rf"|i\s+(?:got|received|wrote|drafted|found)"
    rf"|look\s+at|see|feedback\s+on|thoughts\s+on|what\s+do\s+you\s+think\s+of|help\s+(?:me\s+)?with"
    rf"|from)\b[^.!?]{{0,60}}\b{_TEXTS}\b[^.!?]{{0,40}}:",
    rf"^\W*(?:[\w-]+\s+){{0,3}}{_TEXTS}\s*(?:\(.{{0,30}}\)\s*)?:",
    r"^\W*(?:q|a|question\s*\d+|answer)\s*:|\?\s*a:",
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
_TAKEN_BACK = _any(
    r"(?:[,;(–—-]|\.\.|\bbut|\band|\bthat's|\bwhich\s+is|\bit's|\bthat\s+is)\s*(?:honestly|actually|well"
    r"|obviously|of\s+course|all|just|ok)?,?\s*"
    r"an?\s+(?:\w+\s+)?(?:lie|joke)\b",
    r"[,;(–—.-]\s*(?:lol|haha|well|ok|and|but|i'm|im|just|only|hah)*,?\s*(?:just\s+|only\s+)?(?:kidding|joking"
    r"|jk|j/k|psych|sike|not\s+really|or\s+not|lol\s+no"
    r"|haha\s+no|nope|not\s+true|no\s+i'm\s+not|in\s+my\s+dreams|i\s+wish|you\s+wish)\s*[^\w\s]*\s*$",
    r"\blol\s+no(?:pe|t)?\b|\b(?:jk|j/k)\b|\b(?:just|only)\s+(?:kidding|joking)\b|\bpsych!|\b(?:that's|it's"
    r"|this\s+is)\s+(?:not\s+true|a\s+lie|false|sarcasm)\b",
    r"\bor\s+not(?:\s+lol|\s+haha)?\W*$|\((?:not|joke|joking|kidding|sarcasm|irony|ironic|lies?)\W*\)",
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
    r"\baccording\s+to\b|^\W*as\s+(?:my|our|the|they)\b[^,]{0,30}\b(?:say|says|said|puts?|goes)\b",
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
_SOMETIMES = _any(
    r"\b(?:when(?:ever)?|while|whilst)\s+(?:i|i'm|im|we|we're|she|he|they|my|our|it's|at|in|on|out|around|with"
    r"|possible|convenient|there|the|you|you're|someone"
    r"|eating|cooking|travell?ing|dining|visiting|working|abroad|needed|necessary)\b",
    r"\bcomes\s+to\s+(?:breakfast|lunch|dinner)\b|\bfor\s+(?:breakfast|lunch|dinner)\b",
    r"\bonly\s+(?:on|at|in|when|during|before|after|for\s+(?:lent|breakfast|lunch|dinner))\b",
    r"\b(?:on|at|during|over)\s+(?:the\s+)?(?:week\s*ends?|week\s*days?|weeks?|week|mon|tues?|wednes|thurs|fri"
    r"|satur|sun)(?:days?)?\b",
    r"\bat\s+(?:parties|restaurants|times|lunch|dinner|breakfast|school)\b",
    r"\b(?:around|in\s+front\s+of|with)\s+(?:my|her|him|them|his|other|certain|the)\s*(?:friends?|family"
    r"|parents|in-laws|girlfriend|boyfriend|wife|husband"
    r"|partner|kids|mum|mom|dad|colleagues|people)?\b(?=$|[,.!])",
    r"\bexcept\s+(?:on|at|in|when|for|during)\b|\b(?:some|most)\s+(?:days|of\s+the\s+(?:time|week|year))\b"
    r"|\bhalf\s+(?:of\s+)?(?:the|my)\s+(?:time|week|year)\b"
    r"|\bpart\s+of\s+the\s+(?:time|year|week)\b|\bevery\s+other\s+\w+|\bsometimes\b|\boccasionally\b"
    r"|\bin\s+(?:the\s+)?(?:winter|summer|spring|autumn|january|public)\b(?!\s+\d)"
    r"|\bon\s+and\s+off\b|\bbefore\s+(?:six|6)\b|\bper\s+week\b|\b(?:one|two|three|four|\d)\s+days?\s+a\s+week\b",
)
_LIVES_WITH = re.compile(
    r"(\b(?:(?:live|living|based)\s+in|(?:moved|relocated)\s+to)\s+[^,]{1,40}?)\s+with\s+(?:my|our)\b.*", re.IGNORECASE
)
_GOES_ON = re.compile(r"\s*,?\s*(?:while|whilst|when|whenever|except|only|but\s+only|at\s+least)\b", re.IGNORECASE)
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
    r"(?:(?:haha\w*|lol|lmao|hehe|nah|no|oh|ok|okay|well|wait|but|and|sorry)[\s,.!]+)*"
    r"(?:not|not\s+really|(?:just|only|i'm|im|i\s+am|i\s+was|totally)?\s*(?:just\s+|only\s+)?(?:kidding"
    r"|joking)(?:\s+.{0,20})?|jk|j/k|psych|sike|psyche"
    r"|(?:lol|haha\w*|hell|um+|err?|oh)[\s,]+no|no+pe|nah|as\s+if|yeah,?\s+right|i\s+wish|in\s+my\s+dreams"
    r"|you\s+wish|gotcha"
    r"|april\s+fools?|(?:(?:but|well|honestly|actually|ok|okay)\s+)?(?:that's|that\s+was|that\s+is|it's"
    r"|it\s+was|this\s+is)\s+"
    r"(?:\w+\s+)?(?:an?\s+)?(?:\w+\s+)?(?:lie|joke|not\s+true|untrue|false|bullshit|nonsense|made\s+up|sarcasm|irony)"
    r"|not\s+true|a\s+joke|i\s+lied|i'm\s+lying|i\s+made\s+(?:that|it)\s+up|no,?\s+i'm\s+not|no,?\s+i\s+don't"
    r"|or\s+not|ignore\s+that|forget\s+(?:that|it|i\s+said\s+that)"
    r"|never\s*mind\s+that|don't\s+believe\s+me|take\s+that\s+back|i\s+take\s+(?:that|it)\s+back|strike\s+that"
    r"|scratch\s+that)",
    re.IGNORECASE,
)
_LAUGH = re.compile(r"\W*(?:(?:lo+l|haha\w*|hehe\w*|lmao|rofl|ha)\W*)*", re.IGNORECASE)
_DISOWNED = re.compile(
    r"(?:i|and\s+i|but\s+i)\s+(?:(?:really|absolutely|kinda|do)\s+)*(?:hate|can't\s+stand|dislike|detest"
    r"|loathe|don't\s+like|despise)\s+"
    r"(?:it|that|this|being|the\s+name|when)\b|(?:please\s+)?(?:don't|never|do\s+not)(?:\s+you)?$|please\s+don't\b",
    re.IGNORECASE,
)


def of_answer(following: list[str]) -> frozenset[str]:
    """What the next sentences say about the one before: that it was not meant ("Not!"), or is not liked."""
    for sentence in following:
        words = sentence.strip(" \t\n.!?…,;:()*~-\"'")
        words = "".join(c for c in words if c.isascii()).strip(" .!?,;:()")
        if not words or _LAUGH.fullmatch(words):
            continue
        if len(words) > 60:
            break
        if _NOT_MEANT.fullmatch(words):
            return frozenset({"sarcasm"})
        return frozenset({"disowned"}) if disowns(words) else frozenset()
    return frozenset()


def disowns(words: str) -> bool:
    """Whether the words say that what was told before is not liked ("and I hate it")."""
    return bool(_DISOWNED.match(words.strip(" ,.;:()-!")))


def of_sentence(sentence: str) -> frozenset[str]:
    """Flags of a whole sentence, whichever clause shows them."""
    found = set()
    if _SARCASM.search(sentence) or _TAKEN_BACK.search(sentence):
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
    told = _LIVES_WITH.sub(r"\1", said)
    if _SOMETIMES.search(f"{told} {rest}" if _GOES_ON.match(rest) else told):
        found.add(SOMETIMES)
    if disowns(rest):
        found.add(DISOWNED)
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
