"""What of a few languages the checks of facts must know: negations, numbers, words for "the user". Data only.

English, German, French, Spanish, Italian, Portuguese, Dutch, Chinese, Japanese. Words that mean something else in
English are `shy`: they count only in a text that is not English.
"""

import re

ENGLISH = frozenset("the user my is i'm are was have has and with".split())
"""Words by which a text is taken for English."""
SHY = frozenset("due mai sei once sin mica".split())

USER = {
    "en": "user speaker human person",
    "de": "nutzer nutzers nutzerin benutzer benutzers benutzerin anwender anwenderin person",
    "fr": "utilisateur utilisatrice usager personne",
    "es": "usuario usuaria persona",
    "it": "utente persona",
    "pt": "usuário usuária utilizador utilizadora pessoa",
    "nl": "gebruiker gebruikster persoon",
    "zh": "用户 用戶 使用者",
    "ja": "ユーザー ユーザ 利用者",
}

NEGATIONS = {
    "en": "not no never none nothing without cannot neither nor dislike dislikes disliked hate hates avoid avoids "
    "quit quits stopped anymore except unless refuses allergic intolerant "
    "dont doesnt didnt cant wont isnt arent wasnt havent hasnt couldnt wouldnt shouldnt aint",
    "de": "nicht kein keine keinen keinem keiner keines nie niemals nichts niemand ohne weder hasse hasst hassen "
    "vermeide vermeidet verabscheue verabscheut allergisch",
    "fr": "pas jamais rien aucun aucune sans ni déteste évite allergique",
    "es": "nunca jamás nada nadie ningún ninguno ninguna sin tampoco ni odio odia detesto detesta evito evita alérgico "
    "alérgica",
    "it": "non mai niente nulla nessun nessuno nessuna senza né mica odio odia detesto detesta evito evita allergico "
    "allergica",
    "pt": "não nao nunca jamais nada ninguém nenhum nenhuma sem nem odeio odeia detesto detesta evito evita alérgico "
    "alérgica",
    "nl": "niet geen nooit niets niemand zonder haat vermijd vermijdt allergisch",
}
"""Words that deny, dislike, avoid or end something."""
NEGATING = re.compile(
    r"\bn(?:e |['’])\w+(?: \w+)? plus\b"
    r"|不(?![错錯仅僅但过過管久少])|[没沒](?![错錯])|[无無](?![锡錫论論])|讨厌|討厭|过敏|過敏"
    r"|(?<!すみ)ません|ない|なかった|嫌い|苦手|アレルギー",
    re.IGNORECASE,
)
"""Negations that are no words of their own."""
REMINDERS = re.compile(
    r"\b(?:don['’]t forget|vergiss nicht|n['’]oubliez? pas|no olvides|non dimenticare|não esqueça|vergeet niet)\b"
)
"""What denies by its words, and asserts what follows."""
TRAILING = frozenset("nicht kein keine keinen nie niet geen nooit pas jamais rien".split())
"""Negations that may follow what they deny, as those of `NEGATING` do."""

NUMBERS = {
    "en": "zero _ two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred",
    "de": "null _ zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn "
    "siebzehn achtzehn neunzehn zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig hundert",
    "fr": "zéro _ deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize _ "
    "_ _ vingt trente quarante cinquante soixante _ _ _ cent",
    "es": "cero _ dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete "
    "dieciocho diecinueve veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa cien",
    "it": "zero _ due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici "
    "diciassette diciotto diciannove venti trenta quaranta cinquanta sessanta settanta ottanta novanta cento",
    "pt": "zero _ dois três quatro cinco seis sete oito nove dez onze doze treze catorze quinze dezesseis dezessete "
    "dezoito dezenove vinte trinta quarenta cinquenta sessenta setenta oitenta noventa cem",
    "nl": "nul _ twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien zestien zeventien "
    "achttien negentien twintig dertig veertig vijftig zestig zeventig tachtig negentig honderd",
}
"""0 to 20, 30 to 100 by tens. One is an article in most languages, and left out."""
_VALUES = [*range(21), *range(30, 101, 10)]
NUMBER = {
    word: value for line in NUMBERS.values() for value, word in zip(_VALUES, line.split(), strict=True) if word != "_"
} | {"duas": 2}
AND = frozenset("y e et and".split())
"""What may stand between tens and units."""
COMPOUND = re.compile(r"(\w{3,7})(?:und|en)(\w{4,8})\Z")
"""Units and tens in one word, as German and Dutch write them."""
HAN = dict(zip("零一二两兩三四五六七八九", (0, 1, 2, 2, 2, 3, 4, 5, 6, 7, 8, 9), strict=True))
HAN_UNITS = {"十": 10, "百": 100, "千": 1_000, "万": 10_000, "萬": 10_000}
HAN_RUN = re.compile(f"[{''.join((*HAN, *HAN_UNITS))}]+")
CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
"""Scripts without spaces between words."""

GERMAN = frozenset("der die das den dem ein eine ist hat mag nutzer nutzerin benutzer benutzerin und im".split())
GERMAN_NOUNS = frozenset(
    "ernährung vorliebe vorlieben name namen beruf arbeit arbeitgeber wohnort wohnsitz stadt allergie sprache antwort "
    "antworten hobby haustier familie kind kinder jahr jahre jahren geburtstag essen diät ziel".split()
)
"""Nouns that German writes like names, and that say nothing by themselves."""

OPENERS = frozenset(
    "the a an he she they it his her their its this that these those my there "
    "likes loves enjoys prefers hates dislikes has had is was works worked lives lived wants needs owns uses plays "
    "speaks eats drinks plans avoids follows knows studies moved named called born does always never no not when in "
    "at on for since until from as please answers answer "
    "der die das er sie es ihr ihre sein seine ein eine le la les il elle un une son sa el los las su sus una lo gli "
    "lui lei suo sua o os as ele ela seu um uma de het een hij zij ze hun zijn".split()
)
"""Words that open a sentence and are no names."""

FIRST = frozenset("i i'm i've i'd i'll my ich mein meine je j'ai j'aime yo mi io mio eu meu ik mijn we".split())
"""First words of a clause that is about the speaker."""
ME = FIRST | frozenset(
    "me mine myself our ours us mich mir uns unser unsere moi ma mes nous notre nos mí conmigo nosotros mia "
    "miei noi ci "
    "mim minha meus nós mij ons onze".split()
)
"""Words by which the speaker is a part of what is said."""
OTHERS = frozenset("he she they er il elle lui lei hij zij él ella ele ela".split())
TELLS = frozenset(
    "is was has had isn't hasn't doesn't can't likes loves hates eats drinks lives works prefers wants needs "
    "plays speaks "
    "are have ist hat mag wohnt isst est a aime habite es tiene vive come è ha ama mangia é tem heeft houdt "
    "woont eet".split()
)
"""Words that tell something of the person named before them."""
JOINS = frozenset("and or but und oder aber sondern et ou mais y o pero e ed ma mas en maar though because".split())
"""Words that join clauses."""

FRAME = {
    "en": "the user user's a an and or of in on at to for by with from as that this it its their his her they "
    "she he who "
    "is are was be been being has have had do does did will would can could also no not never always very really more "
    "most some any all about than like likes liked love loves loved enjoy enjoys prefer prefers preferred want wants "
    "wanted need needs hate hates dislike dislikes live lives lived work works worked name named called own owns "
    "follow follows use uses speak speaks eat eats drink drinks avoid avoids get gets go goes take takes keep keeps "
    "currently now anymore longer favourite favorite diet seat seats flight flights answer answers answered "
    "replies reply",
    "de": "der die das den dem des ein eine einen einem einer und oder in im am an auf zu zum zur von vom mit "
    "für aus als "
    "bei ist sind war hat haben hatte mag möchte will wohnt lebt arbeitet heißt isst trinkt spricht liebt bevorzugt "
    "besitzt kann auch sein seine seinen ihr ihre gern gerne lieber sehr mehr es er sie sich",
    "fr": "le la les l un une des du de d et ou à au aux en dans sur pour avec par est a ont était avait aime "
    "adore préfère "
    "veut vit habite travaille s'appelle mange boit parle possède son sa ses il elle aussi très plus ne n que qui se",
    "es": "el la los las un una unos unas y o de del al a en con por para es está son tiene ha era le gusta "
    "gustan encanta "
    "prefiere quiere vive trabaja llama come bebe habla posee su sus él ella también muy más que se",
    "it": "il lo la i gli le l un uno una e o di del della dei delle a al alla in nel con per da su è ha era piace "
    "piacciono ama preferisce vuole vive abita lavora chiama mangia beve parla possiede suo sua suoi anche "
    "molto più che "
    "si",
    "pt": "o a os as um uma e ou de do da dos das em no na com por para é está tem era gosta adora prefere quer "
    "vive mora "
    "trabalha chama come bebe fala possui seu sua ele ela também muito mais que se",
    "nl": "de het een en of van in op aan te voor met uit als bij is zijn was heeft had houdt wil woont leeft "
    "werkt heet "
    "eet drinkt spreekt bezit kan ook haar hij zij graag liever erg meer die dat zich",
}
"""Words with which a fact about the user is told, whatever it is."""
