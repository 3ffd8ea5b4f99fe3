"""What sounds like a fact about the user and is none."""

import pytest

NEGATION = [
    "I'm not a vegetarian.",
    "I am not allergic to anything weird.",
    "I'm not a doctor.",
    "I don't live in Paris.",
    "My name isn't Bob.",
    "I don't have a dog.",
    "It's not that I hate cilantro.",
    "I wouldn't say I love jazz.",
    "Don't call me Bob.",
    "I never said I was vegan.",
]
HYPOTHESIS = [
    "If I were vegan, could I eat here?",
    "Suppose I'm allergic to nuts.",
    "Let's say I live in Rome. What would my tax be?",
    "Imagine I'm a pilot and I work at Lufthansa.",
    "What if I'm lactose intolerant?",
    "Pretend you are my dentist and I am afraid.",
    "I might move to Oslo.",
    "I could be vegan one day.",
    "I'd love a dog called Rex.",
    "I wish I lived in Rome.",
    "I'm thinking of switching from Vim to Emacs.",
    "Assuming I'm a student, do I get a discount?",
    "Hypothetically, I'm diabetic.",
    "I'd move to Spain if I could.",
    "In a parallel universe I'm a chef.",
    "I would be a nurse if I liked blood.",
    "Unless I'm allergic to it, I'll try the soup.",
    "I'm going to move to Madrid.",
    "I want to be a pilot.",
]
QUOTATION = [
    "My friend said 'I'm vegan' and left.",
    'She wrote "I live in Rome" on the form.',
    "The sign read: “I love New York”.",
    "> I'm allergic to nuts\nwhat does he mean?",
    "He told me I'm a genius.",
    "My sister says I'm lactose intolerant.",
    "The song goes I love rock and roll.",
    "According to my mum I hate fish.",
    "Bob claims I work at Shell.",
    "`I am a nurse` is a string literal.",
    "```\nI live in Berlin\n```",
    "The line «I am a spy» is from a film.",
    "I'm vegan, she said.",
    "My boss texted: I am the best manager.",
    "“I have two kids",
    "Her status says I'm vegan now.",
]
QUESTIONS = [
    "Am I allergic to nuts?",
    "Do I live in Berlin?",
    "Do you think I'm vegan?",
    "Is it normal that I hate Mondays?",
    "What if my name is Bob?",
    "Do you remember whether I'm vegetarian?",
    "I'm vegan, right?",
    "I work at Shell, don't I?",
    "Tell me if I'm allergic to kiwi.",
    "I wonder if I'm lactose intolerant.",
    "Should I switch from Vim to Emacs?",
    "What do people say when I'm late?",
    "do i like jazz",
    "Can you guess where I live?",
    "Why do I love cheese so much?",
    "how can i say i live in rome in italian",
]
SARCASM = [
    "Oh great, I just love being ignored.",
    "Yeah right, I'm a morning person.",
    "I just love waiting in line.",
    "Apparently I'm a vegan now.",
    "I love paying taxes, said no one ever.",
    "Oh sure, I'm a millionaire.",
    "Fantastic, more rain, my favourite weather ever.",
    "I so love it when the train is late.",
    "I love Mondays 🙄",
    "I'm a huge fan of delays. Not!",
]
PAST = [
    "When I was a student I lived in Graz.",
    "I used to be vegan.",
    "As a kid I hated olives.",
    "I had a dog named Rex.",
    "I worked at Nokia for ten years.",
    "Back then I was a smoker.",
    "Growing up I loved ponies.",
    "I was a teacher once.",
    "I used to like jazz.",
    "In my twenties I lived on pizza.",
    "I once had a cat called Tom.",
    "I previously worked for Siemens.",
]
FICTION = [
    "Write a short story: I am a dragon and I live in Wales.",
    "Let's role-play. My name is Captain Ahab.",
    "Translate to Spanish: I am allergic to nuts.",
    "Proofread this: I work at Siemens.",
    "Act as my therapist. I'm a lawyer in this scenario.",
    "Rewrite the following: I love cats.",
    "In this game I'm a wizard.",
    "My character is called Thorin and I love gold.",
    "Write a poem about a man who says I love Rome.",
    "Summarise: I moved to Oslo in May.",
]
UNCERTAIN = [
    "I guess I sort of like it.",
    "Maybe I'm a cat person.",
    "I think I might prefer the aisle, not sure.",
    "Perhaps I'm allergic, who knows.",
    "I kind of like opera.",
    "I'm not sure if I like sushi.",
    "I suppose I'm a manager of sorts.",
    "It depends, I like both.",
]
NOT_NAMES = [
    "Call me later.",
    "Call me a taxi.",
    "call me crazy but it works",
    "Call me when you're done.",
    "Call me at 5.",
    "call me back please",
    "Call me tomorrow.",
    "Call me old-fashioned.",
    "I'm Tired.",
    "I'm sorry.",
    "I'm happy.",
    "Hi, I'm back.",
    "Hello, I'm lost!",
]
SMALL_TALK = [
    "I love it!",
    "I like that.",
    "I like your idea.",
    "I love you.",
    "I hate this.",
    "I'm fine.",
    "I'm here.",
    "I work hard.",
    "I live for this.",
    "I use it a lot.",
    "I have a question.",
    "I have a meeting at 3.",
    "I'm in a hurry.",
    "I'm at home.",
    "I'm in trouble.",
    "I like how you explained it.",
    "I live in hope.",
    "I work at night.",
    "I am from another planet, haha.",
    "I'm a mess.",
    "I'm a bit tired.",
    "I'm working on it.",
    "I'm making dinner.",
    "I need a hotel in Rome.",
    "I want pizza tonight.",
    "I'm looking for a flight to Oslo.",
    "Thanks, I love the new design.",
    "I'm writing an email to my boss.",
    "I love what you did.",
    "My bad.",
    "My guess is as good as yours.",
    "I feel like pizza.",
    "I'm in.",
    "Me too, I love that one.",
    "I'm with you.",
]
OTHERS = [
    "The client wants everything in blue.",
    "He is vegan.",
    "They live in Rome.",
    "People love jazz.",
    "Most vegans I know hate honey.",
    "Everyone in my office is vegetarian except me.",
    "She works at Siemens and loves it.",
    "You are a great assistant.",
    "Our customers love us.",
    "A friend of a friend is allergic to water.",
]
OTHER_LANGUAGES = [
    "Je m'appelle Chloé.",
    "Ich bin Vegetarier und wohne in Köln.",
    "Me llamo Ana y soy vegana.",
    "我住在上海。",
    "私はベジタリアンです。",
]


@pytest.mark.parametrize(
    "said",
    NEGATION
    + HYPOTHESIS
    + QUOTATION
    + QUESTIONS
    + SARCASM
    + PAST
    + FICTION
    + UNCERTAIN
    + NOT_NAMES
    + SMALL_TALK
    + OTHERS
    + OTHER_LANGUAGES,
)
def test_nothing_is_learnt(said, brief):
    """Negation, hypotheses, quotation, questions, sarcasm, the past, fiction, hedges, small talk, other people."""
    assert brief(said) == []


ABOUT_OTHERS = [
    "My brother is lactose intolerant.",
    "My daughter Ines is vegan.",
    "My colleague Bob's diet is strictly kosher.",
    "My wife works at Siemens.",
    "My dad lives in Rome.",
    "My boss loves the aisle seat.",
    "My friend Ana is a nurse.",
]


@pytest.mark.parametrize("said", ABOUT_OTHERS)
def test_a_fact_about_somebody_else_is_never_the_users_own(said, facts):
    """It may be kept under that person's name, on no topic of the user's own."""
    found = facts(said)
    assert found
    assert {c.topic for c in found} == {"relation"}
    assert any(c.subject != "user" for c in found)
