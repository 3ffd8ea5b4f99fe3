"""Words that tell a place, a firm or a first name written in any case from an ordinary word."""

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(part.strip() for part in text.split(",") if part.strip())


PLACES = _words(
    "amsterdam, athens, auckland, austin, baltimore, bangalore, bangkok, barcelona, basel, beijing, beirut, "
    "belfast, belgrade, bergen, berlin, bern, birmingham, bogota, bologna, bonn, bordeaux, boston, bratislava, "
    "brighton, brisbane, bristol, brooklyn, brussels, bucharest, budapest, buenos aires, cairo, calgary, cambridge, "
    "cape town, cardiff, casablanca, chennai, chicago, cologne, copenhagen, cork, dallas, delhi, denver, detroit, "
    "dhaka, doha, dresden, dubai, dublin, dusseldorf, edinburgh, eindhoven, florence, frankfurt, galway, gdansk, "
    "geneva, genoa, ghent, glasgow, gothenburg, graz, hamburg, hanoi, hanover, havana, helsinki, hong kong, "
    "houston, hyderabad, istanbul, jakarta, jerusalem, johannesburg, karachi, kathmandu, kiev, kyiv, krakow, kuala "
    "lumpur, kyoto, lagos, las vegas, leeds, leicester, leipzig, lima, limerick, lisbon, liverpool, ljubljana, "
    "london, los angeles, lyon, madrid, malaga, malmo, malmö, manchester, manila, marrakech, marseille, melbourne, "
    "memphis, mexico city, miami, milan, minneapolis, minsk, montevideo, montreal, moscow, mumbai, munich, nairobi, "
    "naples, nashville, new delhi, new orleans, new york, new york city, newcastle, nice, norwich, nottingham, "
    "nuremberg, oakland, osaka, oslo, ottawa, oxford, palermo, paris, perth, philadelphia, phoenix, pittsburgh, "
    "plymouth, porto, portland, prague, pune, quebec, reykjavik, riga, rio, rio de janeiro, rome, rotterdam, "
    "sacramento, salzburg, san diego, san francisco, san jose, santiago, sao paulo, são paulo, sarajevo, seattle, "
    "seoul, seville, shanghai, sheffield, shenzhen, singapore, skopje, sofia, southampton, stockholm, stuttgart, "
    "sydney, taipei, tallinn, tampa, tehran, tel aviv, the hague, tokyo, toronto, trondheim, tucson, tunis, turin, "
    "utrecht, valencia, vancouver, venice, verona, vienna, vilnius, warsaw, washington, wellington, winnipeg, york, "
    "zagreb, zurich, albania, algeria, argentina, armenia, australia, austria, bangladesh, belgium, bolivia, "
    "bosnia, brazil, bulgaria, california, cambodia, canada, catalonia, chile, china, colombia, costa rica, "
    "croatia, cuba, cyprus, czechia, denmark, ecuador, egypt, england, estonia, ethiopia, finland, florida, france, "
    "georgia, germany, ghana, greece, guatemala, hawaii, hungary, iceland, india, indonesia, iran, iraq, ireland, "
    "israel, italy, jamaica, japan, jordan, kenya, korea, latvia, lebanon, lithuania, luxembourg, malaysia, malta, "
    "mexico, morocco, nepal, netherlands, new zealand, nigeria, norway, ohio, ontario, pakistan, panama, peru, "
    "philippines, poland, portugal, romania, russia, scotland, senegal, serbia, sicily, slovakia, slovenia, south "
    "africa, south korea, spain, sweden, switzerland, syria, taiwan, tanzania, texas, thailand, tunisia, turkey, "
    "uganda, uk, ukraine, uruguay, us, usa, venezuela, vietnam, wales, zambia, zimbabwe, crete, bali, tenerife, "
    "mallorca, ibiza, maui, corsica, sardinia, rhodes, brittany, tuscany, bavaria, flanders, manhattan, queens, "
    "colorado, arizona, oregon, utah, nevada, montana, alaska, the netherlands, the uk, the us, the usa, the "
    "philippines, braga, bath, belem, tartu, aarhus, uppsala, lund, lille, nantes, bilbao, granada, brno, poznan, "
    "wroclaw, lodz, gdynia, split, zadar, leuven, antwerp, bruges, delft, leiden, haarlem, groningen"
)
"""Lower-case names of well-known cities, countries and regions: "i live in berlin" but not "i live in meetings"."""

NOT_PLACES = _words(
    "management, sales, marketing, finance, engineering, hr, human resources, legal, operations, support, product, "
    "design, research, accounting, procurement, logistics, consulting, retail, freelance, freelancing, academia, "
    "teaching, it, ops, devops, qa, customer success, customer service, customer support, development, "
    "administration, compliance, data, data science, security, strategy, monday, tuesday, wednesday, thursday, "
    "friday, saturday, sunday, january, february, march, april, may, june, july, august, september, october, "
    "november, december, excel, jira, powerpoint, zoom, teams, plan b, team lead, business, business development, "
    "plan, phase, step, section, chapter, level, page, team, tier, first, second, god, christ, jesus, heaven, hell, "
    "purgatory, oblivion, limbo, narnia, hogwarts, mordor, wonderland, la la land, cloud nine, pyjamas, pajamas, "
    "sin"
)
"""Capitalised words behind "moved to" or "live in" that are no places."""

FIRMS = _words(
    "google, apple, amazon, microsoft, meta, facebook, netflix, ibm, oracle, intel, nvidia, amd, siemens, shell, "
    "bp, ikea, tesco, walmart, starbucks, mcdonalds, mcdonald's, nike, adidas, sony, samsung, toyota, tesla, ford, "
    "bmw, boeing, airbus, nasa, nhs, the nhs, mit, harvard, stanford, oxford university, uber, airbnb, spotify, "
    "stripe, accenture, deloitte, pwc, kpmg, mckinsey, lidl, aldi, sainsbury's, costco, target, disney, pixar, "
    "adobe, cisco, dell, hp, sap, bosch, philips, ericsson, nokia, vodafone, twitter, linkedin, salesforce, "
    "zalando, booking, shopify, paypal, ebay, ubs, hsbc, barclays, jp morgan, goldman sachs, cern, esa, bbc, the "
    "bbc, unicef, pfizer, bayer, novartis, roche, nestle, nestlé, unilever, dhl, ups, fedex, openai, anthropic, "
    "deepmind, github, gitlab, valve, ubisoft, nintendo, lego, volvo, audi, porsche, renault"
)
"""Lower-case names of well-known employers: "i work at google" but not "i work for peanuts"."""

WORKPLACE = re.compile(
    r"\b(?:hospital|school|bank|company|start-?up|shop|store|caf[eé]|restaurant|bakery|bar|pub|hotel|hostel"
    r"|clinic|library"
    r"|university|college|museum|agency|firm|factory|warehouse|lab|laboratory|non-?profit|charity|ngo|studio"
    r"|post\s+office"
    r"|council|government|city|ministry|embassy|consulate|airport|airline|gym|farm|consultancy|newspaper"
    r"|magazine|publisher|brewery|garage"
    r"|nursery|kindergarten|pharmacy|supermarket|theatre|theater|call\s+cent(?:re|er)|refinery|plant|shipyard"
    r"|foundation|institute"
    r"|hospice|zoo|salon|surgery|practice|dealership|bookshop|bookstore|boutique|workshop|mine|mill|office"
    r"|police|army|navy|state"
    r"|church|orchestra|opera|gallery|winery|vineyard|mall|station|cinema|casino|spa|resort|corporation"
    r"|business|manufacturer"
    r"|retailer|insurer|utility|contractor|provider|union|federation|court|prison|care\s+home|nursing\s+home"
    r"|cent(?:re|er)|department"
    r"|academy|observatory|chain|broker|fund|club|team|family|bureau|association|society|organi[sz]ation"
    r"|cooperative|co-op|railway)s?\b",
    re.IGNORECASE,
)
"""Nouns for places where people work: "a small hospital" but not "a snail's pace"."""

DWELLING = re.compile(
    r"\b(?:house|flat|apartment|studio|cottage|bungalow|village|town|city|suburbs?|farm|farmhouse|houseboat"
    r"|boat|van|caravan|trailer|dorm(?:itory)?"
    r"|hostel|campus|floor|countryside|mountains?|coast|island|centre|center|building|loft|condo|duplex|castle"
    r"|room|neighbou?rhood"
    r"|district|street|villa|mansion|tower|block|basement|attic|chalet|cabin|ranch|commune|estate|outskirts"
    r"|hills?|valley|forest|sea|lake"
    r"|river|beach|desert|parents?|wife|husband|partner|girlfriend|boyfriend|flatmates?|room-?mates?"
    r"|housemates?|family|dogs?|cats?|kids"
    r"|children|sons?|daughters?|brothers?|sisters?|mum|mom|dad|mother|father|gran\w*|friends?|fianc[eé]e?"
    r"|aunt|uncle|cousins?|others"
    r"|people|students|northern?|southern?|eastern?|western?|south|north|east|west|tiny\s+home|mobile\s+home|home)\b",
    re.IGNORECASE,
)

FIRST_NAMES = _words(
    "ada, adam, adele, adrian, agnes, ahmed, aisha, akira, alan, albert, alejandro, alex, alexander, alexandra, "
    "alexis, alfred, ali, alice, alicia, alina, alison, amal, amanda, amelia, amina, amir, amy, ana, anders, andre, "
    "andrea, andreas, andrew, andy, angela, anita, anja, ann, anna, anne, annie, anton, antonio, arjun, arthur, "
    "ash, astrid, aya, barbara, beatrice, ben, benjamin, beth, bill, billy, bo, bob, brandon, brenda, brent, brian, "
    "bruno, camille, carl, carla, carlos, carly, carmen, caroline, carol, catherine, cecilia, celeste, charles, "
    "charlie, charlotte, chen, chidi, chloe, chloé, chris, christian, christina, christine, claire, clara, claudia, "
    "clement, clive, colin, craig, crystal, dan, dana, daniel, daniela, danny, dave, david, deborah, denise, "
    "dennis, derek, diana, diego, dmitri, dominic, don, donna, dorothy, doug, ed, eddie, edward, elena, eli, elias, "
    "elif, elisa, elizabeth, ella, ellen, emily, emma, eric, erik, erin, ernest, eva, eve, fabian, farah, fatima, "
    "felix, fiona, frances, francesca, francis, frank, fred, frida, gabriel, gareth, gary, george, georgia, gerald, "
    "gillian, giulia, giovanni, gloria, grace, graham, grant, greg, greta, hana, hannah, hans, harold, harry, "
    "hassan, heather, heidi, helen, helena, henrik, henry, hiro, holly, hugo, ian, ibrahim, ida, igor, ines, inga, "
    "ingrid, irene, iris, isaac, isabel, isabella, ivan, jack, jackie, jacob, jakob, james, jamie, jan, jane, "
    "janet, jared, jason, jean, jeff, jen, jennifer, jenny, jens, jeremy, jess, jessica, jill, jim, jin, joan, "
    "joanna, joao, joe, joel, johan, john, johnny, jon, jonas, jonathan, jordan, jorge, jose, josé, joseph, josh, "
    "joshua, juan, judith, julia, julian, julie, june, justin, kai, karen, karim, karin, karl, kate, katherine, "
    "kathy, katie, keith, kelly, ken, kenji, kenneth, kevin, kim, kirsten, klaus, kofi, kyle, lars, laura, lauren, "
    "laurent, lea, leila, lena, leo, leon, leonard, li, liam, lily, linda, lisa, liz, lorenzo, louis, louise, "
    "lucas, lucia, lucy, luis, luke, magnus, maja, malik, marc, marco, margaret, maria, marie, marina, mario, "
    "marisol, mark, marta, martha, martin, mary, mateo, matt, matteo, matthew, max, maya, megan, mei, mehmet, "
    "melissa, mia, michael, michal, michelle, miguel, mike, mila, milan, ming, miriam, mohamed, mohammed, molly, "
    "monica, nadia, nancy, naomi, natalia, natalie, nathan, neal, neil, nia, nick, nicola, nicolas, nicole, nina, "
    "noah, noor, nora, olga, oliver, olivia, omar, oscar, owen, pablo, paola, patricia, patrick, paul, paula, "
    "pedro, peggy, penny, peter, petra, phil, philip, pierre, piotr, polly, priya, rachel, rafael, raj, ralph, "
    "ravi, ray, rebecca, renata, rene, ricardo, richard, rita, rob, robert, roberto, robin, rosa, rose, ruth, ryan, "
    "sally, sam, samantha, samir, samuel, sandra, sara, sarah, scott, sean, sebastian, selma, sergei, seth, "
    "shannon, sharon, silvia, simon, sofia, sonia, sophia, sophie, stefan, stella, stephanie, stephen, steve, "
    "steven, sue, susan, susanna, sven, sylvia, tanya, tara, ted, teresa, terry, theo, theresa, thomas, tim, tina, "
    "tobias, todd, tom, tomas, tommy, tony, tracy, trent, ursula, valentina, vera, veronica, victor, victoria, "
    "vidal, vincent, violet, vivian, walter, wei, wendy, will, william, xavier, yan, yasmin, yuki, yusuf, yvonne, "
    "zara, zoe, zoltan"
)
"""First names in lower case: "I'm Ada." says a name, "I'm Tired." a state."""
