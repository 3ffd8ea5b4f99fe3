"""What people tell about themselves in passing, what only looks like it, and the times they tell with it."""

from datetime import UTC, datetime

import pytest

from langmem_adapter.extraction.grounding import ground
from langmem_adapter.extraction.patterns import ASIDES, RULES
from langmem_adapter.extraction.phrases import OPENINGS, opening, rule
from langmem_adapter.extraction.times import moment, timed
from langmem_adapter.records import Candidate, Message

AT = datetime(2026, 5, 4, 9, 30, tzinfo=UTC)
"""A Monday, as in `conftest`."""

TOLD = [
    ("I've been rowing for six years.", ["general: The user has been rowing for six years."]),
    ("I've been learning the cello since 2021.", ["general: The user has been learning the cello since 2021."]),
    ("I've been taking a ceramics class.", ["project: The user has been taking a ceramics class."]),
    ("I've been reading Middlemarch.", ["project: The user has been reading Middlemarch."]),
    ("I'm doing a master's in botany.", ["project: The user is doing a master's in botany."]),
    ("I'm volunteering at the animal shelter.", ["project: The user is volunteering at the animal shelter."]),
    ("I'm renovating our cottage.", ["project: The user is renovating their cottage."]),
    ("I recently took up archery.", ["general: The user took up archery."]),
    ("I finally finished my quilt.", ["general: The user finished their quilt."]),
    ("I just signed up for a half marathon.", ["general: The user signed up for a half marathon."]),
    ("Last Saturday I ran a half marathon.", ["general: The user ran a half marathon on 2026-05-02."]),
    ("Yesterday, we adopted two rabbits.", ["general: The user adopted two rabbits on 2026-05-03."]),
    (
        "We went kayaking on the river two weeks ago.",
        ["general: The user went kayaking on the river in the week of 2026-04-20."],
    ),
    (
        "I took my kids to the aquarium last weekend.",
        ["general: The user took their kids to the aquarium on the weekend of 2026-05-02."],
    ),
    ("I sold my motorbike in March.", ["general: The user sold their motorbike in March 2026."]),
    ("I passed my driving test yesterday.", ["general: The user passed their driving test on 2026-05-03."]),
    ("I twisted my ankle on Friday.", ["general: The user twisted their ankle on 2026-05-01."]),
    (
        "Last Tuesday I met two beekeepers from Slovenia.",
        ["general: The user met two beekeepers from Slovenia on 2026-04-28."],
    ),
    ("Twisted my knee yesterday.", ["general: The user twisted their knee on 2026-05-03."]),
    (
        "Next month, I'm off to Ireland for a semester.",
        ["general: The user is off to Ireland for a semester in 2026-06."],
    ),
    ("I'm looking for a new job.", ["project: The user is looking for a new job."]),
    ("I signed up for a weaving course next month.", ["general: The user signed up for a weaving course."]),
    ("Lost my job last month.", ["general: The user lost their job in 2026-04."]),
    ("I studied botany at Uppsala University.", ["general: The user studied botany at Uppsala University."]),
    ("I was diagnosed with asthma last year.", ["general: The user was diagnosed with asthma in 2025."]),
    ("I've never been to Africa.", ["general: The user has never been to Africa."]),
    ("I've been to Peru.", ["general: The user has been to Peru."]),
    ("My aunt passed away last week.", ["relation: The user's aunt passed away in the week of 2026-04-27."]),
    ("My son broke his arm yesterday.", ["relation: The user's son broke his arm on 2026-05-03."]),
    ("I'm planning to run a marathon next year.", ["project: The user is planning to run a marathon in 2027."]),
    ("We're thinking of adopting a greyhound.", ["project: The user is thinking of adopting a greyhound."]),
    ("I'm trying to cut down on sugar.", ["project: The user is trying to cut down on sugar."]),
    (
        "I'm looking forward to visiting my grandparents.",
        ["project: The user is looking forward to visiting their grandparents."],
    ),
    ("My goal is to lose 4 kg.", ["project: The user's goal is to lose 4 kg."]),
    ("My dream is to open a bakery.", ["project: The user's dream is to open a bakery."]),
    ("I'd love to visit Patagonia one day.", ["project: The user would like to visit Patagonia some day."]),
    ("I've always wanted to learn Greek.", ["project: The user has always wanted to learn Greek."]),
    ("Tomorrow I'm flying to Lisbon.", ["general: The user is flying to Lisbon on 2026-05-05."]),
    ("We're getting married in September.", ["general: The user is getting married in September 2026."]),
    (
        "I have an appointment with my dentist on Thursday at 10.",
        ["general: The user has an appointment with their dentist on 2026-05-07 at 10."],
    ),
    ("My surgery is next Monday.", ["general: The user's surgery is on 2026-05-11."]),
    ("I'm expecting a baby in August.", ["project: The user is expecting a baby in August 2026."]),
    (
        "My daughter is starting school in September.",
        ["relation: The user's daughter is starting school in September 2026."],
    ),
    ("I'm terrified of spiders.", ["general: The user is terrified of spiders."]),
    ("I have a diploma in nursing.", ["general: The user has a diploma in nursing."]),
    ("I need a step-free entrance.", ["general: The user needs a step-free entrance."]),
    ("I read a lot of poetry.", ["general: The user reads a lot of poetry."]),
    ("Origami is one of my favourites.", ["preference/likes: Origami is a favourite of the user."]),
    ("Gardening is my passion.", ["preference/likes: The user's passion is Gardening."]),
    (
        "As a single dad, I cook every evening.",
        ["general: The user is a single dad.", "general: The user cooks every evening."],
    ),
    ("I grew up in Galway.", ["general: The user grew up in Galway."]),
    ("I'm a member of a rowing club.", ["general: The user is a member of a rowing club."]),
    ("We've been married for eleven years.", ["general: The user has been married for eleven years."]),
    ("I've had my cello for ten years.", ["general: The user has had their cello for ten years."]),
    ("I'm interested in astronomy.", ["preference/likes: The user is interested in astronomy."]),
    ("Knitting helps me unwind.", ["general: Knitting helps the user unwind."]),
    ("I find gardening relaxing.", ["general: The user finds gardening relaxing."]),
    ("I swim three times a week.", ["general: The user swims three times a week."]),
    ("Our new puppy, Biscuit, chewed the sofa.", ["relation: The user has a new puppy called Biscuit."]),
    ("I walked home with my neighbour Priya.", ["relation: The user has a neighbour called Priya."]),
    ("I made soup for my three kids.", ["relation: The user has three kids."]),
    ("My trip to Morocco was wonderful.", ["general: The user went on a trip to Morocco."]),
    ("I have three kids, Ada, Ben and Cleo.", ["relation: The user has three kids, Ada, Ben and Cleo."]),
    ("I was born in 1971.", ["general: The user was born in 1971."]),
    ("Our budget for the kitchen is 8000 euros.", ["general: The user's budget for the kitchen is 8000 euros."]),
    (
        "I live in Ghent with my parents.",
        ["home/location: The user lives in Ghent.", "general: The user lives with their parents."],
    ),
    ("My bike is a blue Gazelle.", ["preference/tool: The user's bike is a blue Gazelle."]),
    ("My mobile number is 0470 12 34 56.", ["general: The user's mobile number is 0470 12 34 56."]),
    ("My train leaves at 7 tomorrow.", ["general: The user's train leaves at 7 on 2026-05-05."]),
    ("We have twins.", ["relation: The user has twins."]),
    ("I'm flying to Boston on Thursday.", ["general: The user is flying to Boston on 2026-05-07."]),
    ("I'm hosting a barbecue on Saturday.", ["general: The user is hosting a barbecue on 2026-05-09."]),
    ("I've got tickets for the opera on Friday.", ["general: The user has tickets for the opera on 2026-05-08."]),
    ("We're getting a puppy next month.", ["general: The user is getting a puppy in 2026-06."]),
    ("I want to learn to sail some day.", ["project: The user would like to learn to sail some day."]),
    ("I've worked as a midwife for nine years.", ["general: The user has worked as a midwife for nine years."]),
    ("I can't swim.", ["general: The user cannot swim."]),
    ("I'm taking antibiotics until Friday.", ["general: The user is taking antibiotics."]),
    ("I'm in the middle of a divorce.", ["project: The user is in the middle of a divorce."]),
    ("I live near the harbour.", ["general: The user lives near the harbour."]),
    ("I usually have breakfast at six.", ["general: The user usually has breakfast at six."]),
    ("My kids are 6 and 9.", ["relation: The user's kids are 6 and 9."]),
    ("My mother is 81.", ["relation: The user's mother is 81."]),
    ("My daughter plays the oboe.", ["relation: The user's daughter plays the oboe."]),
    ("My grandfather was born in Lviv.", ["relation: The user's grandfather was born in Lviv."]),
    ("Our anniversary is on 12 June.", ["general: The user's anniversary is 12 June."]),
    (
        "I've just moved to Lyon with my sister.",
        ["home/location: The user lives in Lyon.", "general: The user lives with their sister."],
    ),
    ("I go swimming every Tuesday.", ["general: The user goes swimming every Tuesday."]),
]


@pytest.mark.parametrize(("said", "learnt"), TOLD)
def test_what_is_told_in_passing_is_learnt(said, learnt, facts):
    """Topic and content of every fact in the sentence, and nothing else."""
    assert [f"{c.topic}: {c.content}" for c in facts(said)] == learnt


LONGER = [
    (
        "Hey Rosa, last Friday I went to a poetry workshop and it was wonderful, you should come.",
        ["The user went to a poetry workshop on 2026-05-01."],
    ),
    (
        "Between work and the choir I hardly sleep, but I finally finished my novel.",
        ["The user finished their novel."],
    ),
    (
        "My wife and I hosted a small party last night, and our new kitten Luna hid under the bed.",
        ["The user hosted a small party on 2026-05-03.", "The user has a new kitten called Luna."],
    ),
    (
        "I joined a choir two weeks ago because my flatmate Jonas sings there.",
        ["The user joined a choir in the week of 2026-04-20.", "The user has a flatmate called Jonas."],
    ),
    (
        "Since I lost my job last month, I've been taking a welding course.",
        ["The user lost their job in 2026-04.", "The user has been taking a welding course."],
    ),
]


@pytest.mark.parametrize(("said", "learnt"), LONGER)
def test_a_clause_of_a_longer_sentence_is_learnt(said, learnt, facts):
    """Whatever stands around it."""
    assert [c.content for c in facts(said)] == learnt


QUESTIONS = [
    "Have I ever been to Africa?",
    "Did I tell you I've been rowing for six years?",
    "Should I be planning to run a marathon?",
    "What did you think of my trip to Morocco?",
    "Is it odd that I'm terrified of spiders?",
]
HYPOTHESES = [
    "If I had a diploma in nursing, I'd work abroad.",
    "I wish I had a black belt in judo.",
    "Suppose I studied botany at Uppsala University.",
    "I would have gone to Peru last year.",
    "I was supposed to go camping last week.",
    "Tomorrow I might fly to Lisbon.",
    "Maybe next week I'm flying to Lisbon.",
    "If my sister is getting married in June, what should I wear?",
    "I'm thinking of switching banks.",
    "I almost bought a house last month.",
    "I nearly broke my arm.",
    "Next year I'm a student.",
]
OTHERS = [
    "My neighbour has been playing the drums for ten years.",
    "She broke her leg last week.",
    "Yesterday he bought a house.",
    "Last week, she started a cooking class.",
    "You adopted two rabbits yesterday.",
    "Their trip to Morocco was wonderful.",
    "My friend's new kitten is called Luna.",
    "They have been married for eleven years.",
    "He visits us every week.",
    "Next week is my mum's birthday.",
    "The user went to Lisbon last week.",
]
QUOTES = [
    'She said "I bought a house last month".',
    '"I\'m reading Middlemarch" is what the parrot says.',
    "My brother says he broke his arm.",
    "I told him that I'm expecting a baby in June.",
    "As my grandfather used to say, I have a tattoo.",
]
NEGATIONS = [
    "I didn't buy a house last month.",
    "I haven't started my course.",
    "I never finished my novel.",
    "I won't get a dog.",
    "My goal is not to run a marathon.",
    "Monday is not my favourite day.",
    "I don't have my new car yet.",
]
JESTS_AND_IDIOMS = [
    "I'm dying to visit Iceland.",
    "I could eat a horse.",
    "I'd kill for a coffee.",
    "I'm scared to death.",
    "I'm afraid not.",
    "I'm afraid that won't work.",
    "I'm afraid of what comes next.",
    "I have butterflies in my stomach.",
    "I have a bone to pick with you.",
    "I've been to hell and back.",
    "I've been married to my job for ten years.",
    "I broke my word.",
    "I broke my neck trying to finish it.",
    "I lost my patience.",
    "I got my wires crossed.",
    "I have a date with destiny.",
    "I was born ready.",
    "I'm flying blind.",
    "I'm playing devil's advocate.",
    "I'm reading you loud and clear.",
    "I was diagnosed with a bad case of Mondays.",
    "I'm part of the problem.",
    "I can't swim in money.",
    "I'm getting a headache tomorrow.",
    "My brother plays a big role here.",
    "I've worked like a dog for ten years.",
    "I live near enough.",
    "I've been there.",
]
PLAYED = [
    "Write that I broke my leg last week.",
    "Write a cover letter: I studied physics at MIT.",
    "Say that I have a black belt in judo.",
    'Translate "I\'m reading Middlemarch" into French.',
    "Let's role-play: I'm a knight. I won a tournament last week.",
    "In my novel, I have a black belt in judo.",
    "My character went to Lisbon last week.",
    "Pretend I just adopted a puppy.",
    "As a customer, I want to save my basket.",
    "As a parent, I want to block sites so that my kids are safe.",
]
AT_HAND = [
    "I started the server.",
    "I broke the build.",
    "I just finished the form.",
    "I joined the tables on id.",
    "I built a docker image yesterday.",
    "I wrote a function for that.",
    "I got an email from my bank last week.",
    "I took a look at the documentation.",
    "I took a screenshot yesterday.",
    "I visited the page last week.",
    "I went to Settings yesterday.",
    "I signed up for a trial last week.",
    "I ran the script yesterday.",
    "I opened a ticket last month.",
    "I get this error every day.",
    "I've been waiting for two weeks for this parcel.",
    "I've been trying to log in for two days.",
    "I'm trying to connect to the database.",
    "I'm planning to restart the router.",
    "I'm hoping to get an answer.",
    "I'm reading the docs.",
    "I'm interested in your offer.",
    "I'm interested in a flight to Lisbon.",
    "I'd like to visit the settings page.",
    "I'm visiting your site tomorrow.",
    "I'm going to the next page.",
    "I need a hotel room.",
    "My budget is tight.",
    "My goal is to make it work.",
    "I'm expecting a parcel in June.",
    "I went to bed at ten yesterday.",
    "I made a mistake last week.",
    "I had lunch yesterday.",
    "I took the bus this morning.",
    "I read the report yesterday.",
    "I met the deadline last week.",
    "I started a few days ago.",
    "I try to swim every day.",
]
OF_NO_DAY = ["I have a meeting at 4.", "My flight leaves at 9.", "I have a flight to catch.", "My flight was delayed."]


@pytest.mark.parametrize(
    "said",
    QUESTIONS + HYPOTHESES + OTHERS + QUOTES + NEGATIONS + JESTS_AND_IDIOMS + PLAYED + AT_HAND + OF_NO_DAY,
)
def test_what_only_looks_like_it_is_not_learnt(said, extract):
    """Nor what is of the conversation's moment, nor an appointment of which nobody can tell the day."""
    assert [c.content for c in extract(said).candidates] == []


@pytest.mark.parametrize(
    ("said", "ahead", "means"),
    [
        ("yesterday", False, ("2026-05-03", "2026-05-04", "on 2026-05-03")),
        ("last night", False, ("2026-05-03", "2026-05-04", "on 2026-05-03")),
        ("tomorrow evening", True, ("2026-05-05", "2026-05-06", "on 2026-05-05")),
        ("on Friday", False, ("2026-05-01", "2026-05-02", "on 2026-05-01")),
        ("on Friday", True, ("2026-05-08", "2026-05-09", "on 2026-05-08")),
        ("last Monday", False, ("2026-04-27", "2026-04-28", "on 2026-04-27")),
        ("last Fri", False, ("2026-05-01", "2026-05-02", "on 2026-05-01")),
        ("last week", False, ("2026-04-27", "2026-05-04", "in the week of 2026-04-27")),
        ("last weekend", False, ("2026-05-02", "2026-05-04", "on the weekend of 2026-05-02")),
        ("next month", True, ("2026-06-01", "2026-07-01", "in 2026-06")),
        ("last year", False, ("2025-01-01", "2026-01-01", "in 2025")),
        ("in March", False, ("2026-03-01", "2026-04-01", "in March 2026")),
        ("in March", True, ("2027-03-01", "2027-04-01", "in March 2027")),
        ("in November", False, ("2025-11-01", "2025-12-01", "in November 2025")),
        ("last summer", False, ("2025-06-01", "2025-09-01", "in the summer of 2025")),
        ("next summer", True, ("2026-06-01", "2026-09-01", "in the summer of 2026")),
        ("three weeks ago", False, ("2026-04-13", "2026-04-20", "in the week of 2026-04-13")),
        ("two months ago", False, ("2026-03-01", "2026-04-01", "in 2026-03")),
        ("about five years ago", False, ("2021-01-01", "2022-01-01", "around 2021")),
        ("in two weeks", True, ("2026-05-18", "2026-05-25", "in the week of 2026-05-18")),
        ("on 3 April", False, ("2026-04-03", "2026-04-04", "on 2026-04-03")),
        ("on 3 June", False, ("2025-06-03", "2025-06-04", "on 2025-06-03")),
        ("on June 3rd", True, ("2026-06-03", "2026-06-04", "on 2026-06-03")),
    ],
)
def test_a_time_is_told_so_that_it_can_be_read_later(said, ahead, means):
    """Counted from the day it was said; first day, day after the last, and the words for it."""
    assert timed(f"I did it {said} with friends")[0] == said
    found = moment(said, AT, ahead=ahead)
    assert (f"{found.start:%Y-%m-%d}", f"{found.end:%Y-%m-%d}", found.said) == means


@pytest.mark.parametrize("said", ["a few years ago", "the other day", "in 2019", "in June 2023", "in two weeks"])
def test_a_time_that_is_clear_already_or_never_stays_as_it_was_said(said):
    """ "In two weeks" is how long it took, of something that happened."""
    assert moment(said, AT) is None


def test_an_event_stays_true_and_a_plan_ends_with_its_day(facts):
    """An event begins when it happened; what is due is forgotten behind its day."""
    (past,) = facts("I adopted a rabbit last Saturday.")
    assert (past.kind, past.valid_from, past.valid_to, past.expires_at) == (
        "event",
        datetime(2026, 5, 2, tzinfo=UTC),
        None,
        None,
    )
    (due,) = facts("I have an appointment at the dentist tomorrow.")
    end = datetime(2026, 5, 6, tzinfo=UTC)
    assert (due.kind, due.valid_from, due.valid_to, due.expires_at) == (
        "plan",
        datetime(2026, 5, 5, tzinfo=UTC),
        end,
        end,
    )


def test_what_happened_on_two_days_is_two_events(facts):
    """Said in one message."""
    assert [c.content for c in facts("I ran a marathon yesterday. I ran a marathon last month, too.")] == [
        "The user ran a marathon on 2026-05-03.",
        "The user ran a marathon in 2026-04.",
    ]


def test_a_date_rests_on_the_candidates_own_times_only():
    """A number that is no date of the fact's, or no date at all, must be said."""
    message = Message(id="m1", role="human", text="I bought a house last month.")

    def told(content: str, since: datetime | None, excerpt: str = "I bought a house last month") -> str | None:
        return ground(Candidate(content=content, excerpt=excerpt, message_id="m1", valid_from=since), {"m1": message})

    april = datetime(2026, 4, 1, tzinfo=UTC)
    assert told("The user bought a house in 2026-04.", april) is None
    assert told("The user bought a house on 2026-04-01.", april) is None
    assert told("The user bought a house in 2026-04.", None) == "ungrounded_number"
    assert told("The user bought a house in 2026-05.", april) == "ungrounded_number"
    assert told("The user bought a house for 2026 euros.", april) == "ungrounded_number"
    assert told("The user bought a house in 2026-04.", april, "I bought a house") == "ungrounded_number"  # no time told


def test_the_excerpt_has_the_words_that_tell_the_time(facts):
    """They open the sentence, and belong to what it says."""
    (found,) = facts("Well, last Friday, I adopted a rabbit!")
    assert found.excerpt == "last Friday, I adopted a rabbit"


def test_a_rule_is_tried_on_every_clause_that_it_matches():
    """The letters by which rules are picked are no bar to a match."""
    said = [s for s, _ in TOLD] + [s.lower() for s, _ in TOLD]
    matches = [(r, s) for r in (*RULES, *ASIDES) for s in said if r.pattern.match(s)]
    assert len(matches) > len(TOLD)
    assert [(r.pattern.pattern, s) for r, s in matches if opening(s) not in r.opens] == []


@pytest.mark.parametrize(
    ("pattern", "opens"),
    [
        (r"i\s+like", "i"),
        (r"(?:my|our)\s+dog", "mo"),
        (r"(?P<who>i|we)\s+ran", "iw"),
        (r"(?:(?:i|we)\s+)?ran", OPENINGS),
        (r"(?:i|[a-z]+)\s+ran", OPENINGS),
        (r"i?\s*ran", OPENINGS),
        (r"my dog|the cat", "m*"),
        (r"(?!my)\w+", OPENINGS),
        (r"(?:my[)|]|our)", "mo"),
    ],
)
def test_the_openings_of_a_pattern_are_read_from_it(pattern, opens):
    """All of them where they cannot be told."""
    assert set(rule(pattern, lambda m, c: ()).opens) == set(opens)
