"""Words for what belongs to somebody's life: by them "I started a course" is told from "I started the server"."""

import re

from langmem_adapter.extraction.phrases import undated
from langmem_adapter.extraction.vocabulary import FIRMS


def words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


MATTERS_OF_NOW = words_of(
    "error errors bug bugs server servers file files folder page pages site settings menu form field step steps "
    "script scripts function functions method code docs documentation tutorial link links url account button tab "
    "window app update upgrade installation version repo repository branch commit pr merge issue issues ticket tickets "
    "email emails mail message messages call query table column row command terminal log logs process request response "
    "answer answers question questions option options order cart checkout payment invoice password pin database docker "
    "container api endpoint model prompt chat conversation list document tables draft paragraph section number mistake "
    "mistakes decision choice thing things stuff something anything everything nothing someone somebody lot lots bit "
    "tons ton time way idea ideas point sense difference look feeling thoughts result results picture pictures pic "
    "pics photo photos shot screenshot one ones minute second while few kind sort type side part rest end beginning "
    "same other others another trial demo waitlist instructions advice approach solution problem problems task tasks "
    "progress effort efforts shortcut risk chance opportunity turn turns place attention action note notes position"
)
"""What is done in and to the conversation itself, or says nothing without it."""


OCCASIONS = words_of(
    "class classes course courses lesson lessons workshop workshops seminar seminars conference convention retreat "
    "camp camps bootcamp trip vacation vacay holiday cruise tour safari honeymoon wedding ceremony engagement "
    "anniversary party birthday picnic barbecue bbq festival concert concerts recital musical opera ballet exhibition "
    "exhibit parade march rally fundraiser fair event meetup reunion tournament competition contest race marathon "
    "half-marathon triathlon 5k 10k championship audition gala auction sleepover date getaway walk hike ride game "
    "meeting meetings gig performance show screening premiere webinar hackathon funeral protest yoga cookout"
)


PLACES = words_of(
    "museum gallery zoo aquarium park beach lake mountains mountain forest woods castle countryside sea ocean island "
    "coast garden gardens cabin lighthouse waterfall village church temple mosque cathedral gym studio school college "
    "university shelter hospital theater theatre library planetarium farm vineyard winery reserve shop bakery town "
    "city hometown canyon desert volcano cave caves river valley falls market cafe restaurant bookstore bookshop"
)


PURSUITS = words_of(
    "yoga pilates karate judo taekwondo boxing ballet dance dancing salsa painting pottery ceramics drawing knitting "
    "crochet sewing quilting gardening running jogging swimming surfing hiking cycling biking climbing bouldering "
    "kayaking rowing sailing skiing snowboarding skating skateboarding snowshoeing rafting fishing archery fencing "
    "golf tennis squash badminton basketball football soccer baseball cricket rugby hockey volleyball chess poker "
    "meditation meditating cooking baking photography woodworking carpentry blogging vlogging streaming podcasting "
    "journaling writing reading volunteering coaching teaching tutoring mentoring singing acting improv guitar piano "
    "violin cello drums ukulele flute clarinet saxophone trumpet harp banjo bass spanish french german italian "
    "japanese korean chinese mandarin arabic portuguese russian dutch swedish polish turkish greek hindi latin "
    "programming coding beekeeping birdwatching astronomy origami calligraphy embroidery diving freediving paragliding "
    "crossfit zumba aerobics weightlifting parkour triathlons marathons therapy counselling counseling rehab diet keto "
    "freelancing modelling modeling horseback riding camping backpacking travelling traveling collecting djing"
)


CAREER = words_of(
    "job internship apprenticeship business company startup start-up shop store bakery cafe restaurant studio practice "
    "agency blog podcast channel newsletter band choir team club group league gym degree masters master's phd mba "
    "bachelor's bachelors school college university diploma residency sabbatical career charity nonprofit non-profit "
    "foundation training program programme routine regimen internships collection campaign hobby band class classes "
    "course courses lessons forum community brigade church organization organisation association society shelter"
)


HONOURS = words_of(
    "medal medals trophy award awards prize scholarship grant degree diploma certificate certification license "
    "licence promotion raise bonus permit visa citizenship residency contract deal endorsement sponsorship fellowship "
    "role part tournament competition contest race championship title match game lottery raffle election belt"
)


WORKS = words_of(
    "novel novels book books memoir poem poems song songs album ep screenplay play musical story stories article "
    "articles thesis dissertation painting paintings drawing drawings portrait mural sculpture sketch quilt scarf "
    "sweater jumper blanket puzzle garden treehouse shed deck table bookshelf cabin boat degree masters master's phd "
    "course marathon triathlon training series trilogy bowl vase mug pot film movie documentary comic blog podcast "
    "game website collection studio renovation internship residency semester game"
)


GOODS = words_of(
    "house flat apartment condo home cabin cottage farm land car van bike bicycle motorbike motorcycle scooter boat "
    "truck suv tesla guitar piano keyboard violin cello drums ukulele camera telescope lens tattoo piercing puppy "
    "kitten dog cat rabbit hamster turtle turtles parrot tortoise fish aquarium horse pony chickens goat snake lizard "
    "tank tent kayak surfboard skateboard skis snowboard treadmill console playstation xbox switch laptop computer pc "
    "phone iphone ipad kindle tablet headphones drone microscope loom kiln easel glasses braces pacemaker watch "
    "promotion raise job internship scholarship divorce haircut mortgage loan necklace ring tickets gear equipment"
)


HAPPENINGS = words_of(
    "surgery operation transplant c-section accident baby miscarriage stroke seizure picnic party wedding ceremony "
    "barbecue scare check-up checkup transplant twins exhibition honeymoon fight breakdown concussion showcase"
)


CHORES = words_of(
    "bed store supermarket office work loo bathroom toilet kitchen desk image images module modules library package "
    "packages service services cluster instance deployment feature features fix patch pipeline notebook spreadsheet "
    "report reports refund quote reply parcel delivery issue setback letdown blast fun day week night call calls bus "
    "train tram taxi shower nap breakfast lunch data dataset branch image plan plans deadline shift job website class "
    "laptop ideas help support news suggestion recommendation word words note doubt trouble cold headache dream "
    "dinner interview experience milestone accomplishment incident battle moment appointment conversation exam"
)
"""What is done on any day: that it was done on a certain one is not worth keeping."""
POSSESSIONS = words_of(
    "belt degree phd master's masters bachelor's bachelors mba diploma certificate certification licence license "
    "passport podcast blog channel garden allotment greenhouse boat motorcycle motorbike campervan caravan cabin "
    "cottage shop store bakery business restaurant cafe studio farm vineyard scholarship mortgage tattoo tattoos "
    "stutter pool piano sauna telescope car bike house flat apartment band fear phobia crush pacemaker stepfather "
    "stepmother wheelchair prosthesis visa"
)


ANYTHING = frozenset[str]()


ALL_OF_LIFE = (
    OCCASIONS | PLACES | PURSUITS | CAREER | HONOURS | WORKS | GOODS | HAPPENINGS | words_of("children kids baby")
)


_SPLIT = re.compile(
    r"\s+(?:about|for|with|from|of|in|at|on|by|as|and|or|to|into|near|called|named|because|against|during|after)\s+"
)


_BEHIND = words_of("together again myself alone once twice recently too also online")


def noun(part: str) -> str:
    """The word that a phrase is about: "a weekend yoga class" is a class."""
    words = re.findall(r"[\w'-]+", part.casefold())
    while words and words[-1] in _BEHIND:
        words.pop()
    return words[-1] if words else ""


def is_of_life(what: str, allowed: frozenset[str], *, farther: bool = False) -> bool:
    """Whether the phrase is about one of these things (in its second part: "my kids to a museum")."""
    parts = _SPLIT.split(undated(what))
    nouns = [noun(p) for p in parts[: 2 if farther else 1]]
    if not nouns or not nouns[0] or nouns[0] in MATTERS_OF_NOW:
        return False
    return not allowed or any(n in allowed for n in nouns)


def is_a_place(what: str) -> bool:
    first = _SPLIT.split(undated(what))[0]
    return (
        bool(re.match(r"(?:the\s+)?[A-Z]", first))
        and first.casefold() not in FIRMS
        and noun(first) not in MATTERS_OF_NOW
    )
