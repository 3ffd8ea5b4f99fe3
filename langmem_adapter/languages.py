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
JOINS = frozenset("and or but und oder aber sondern et ou mais y o pero e ed ma mas en maar though because".split())
"""Words that join clauses."""
