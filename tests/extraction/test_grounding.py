"""A candidate rests on its words or is refused with a reason."""

import pytest

from langmem_adapter.extraction.grounding import ground
from langmem_adapter.records import Candidate, Message

MESSAGES = {
    "m1": Message(id="m1", role="human", text="I’m  vegan,\nand I live in Ghent with 2 cats. My name isn't Bob."),
    "m2": Message(id="m2", role="human", text="Cafe\u0301 au lait is fine."),
}


def _reason(content: str, excerpt: str, message_id: str | None = "m1", **fields: str) -> str | None:
    return ground(Candidate(content=content, excerpt=excerpt, message_id=message_id, **fields), MESSAGES)


@pytest.mark.parametrize(
    ("content", "excerpt", "message_id"),
    [
        ("The user follows a vegan diet.", "I'm vegan", "m1"),
        ("The user lives in Ghent.", "i live in ghent", "m1"),
        ("The user has 2 cats.", "with 2 cats", "m1"),
        ("The user's name is not Bob.", "My name isn't Bob", "m1"),
        ("The user lives in Ghent.", "vegan, and I live in Ghent", None),
        ("The user drinks café au lait.", "Café au lait", "m2"),
    ],
)
def test_a_fact_with_its_words_is_grounded(content, excerpt, message_id):
    """Up to Unicode form, case, apostrophes and white space."""
    assert _reason(content, excerpt, message_id) is None


@pytest.mark.parametrize(
    ("reason", "content", "excerpt", "message_id"),
    [
        ("no_excerpt", "The user is vegan.", "  ", "m1"),
        ("unknown_message", "The user is vegan.", "I'm vegan", "m9"),
        ("excerpt_not_in_message", "The user is vegan.", "I am so vegan", "m1"),
        ("excerpt_not_in_message", "The user is vegan.", "I'm vegan", "m2"),
        ("ungrounded_name", "The user lives in Bruges.", "I live in Ghent", "m1"),
        ("ungrounded_number", "The user has 3 cats.", "with 2 cats", "m1"),
        ("negation_differs", "The user's name is Bob.", "My name isn't Bob", "m1"),
        ("negation_differs", "The user is not vegan.", "I'm vegan", "m1"),
        ("placeholder", "The user is called {name}.", "I'm vegan", "m1"),
        ("placeholder", "The user is called John Doe.", "I'm vegan", "m1"),
        ("placeholder", "The user lives in <insert city>.", "I'm vegan", "m1"),
        ("placeholder", "The user is [your name].", "I'm vegan", "m1"),
    ],
)
def test_a_fact_without_its_words_is_refused(reason, content, excerpt, message_id):
    """Each reason by its code."""
    assert _reason(content, excerpt, message_id) == reason


@pytest.mark.parametrize("mark", ["'", "’"])
@pytest.mark.parametrize(
    ("said", "content", "fields"),
    [
        ("My name is O'Brien.", "The user is called O'Brien.", {"topic": "identity/name", "value": "O'Brien"}),
        ("I work at L'Oréal.", "The user works at L'Oréal.", {"topic": "work/employer", "value": "L'Oréal"}),
        ("My friend D'Arcy is deaf.", "The user's friend D'Arcy is deaf.", {"subject": "friend D'Arcy"}),
        ("My boss O'Hara's dog bites.", "O'Hara's dog bites.", {}),
        ("I like D'Angelo's voice.", "The user likes the voice of D'Angelo.", {}),
        ("Je travaille chez L'Oréal.", "L'utilisateur travaille chez Oréal.", {"value": "Oréal"}),
        ("I'm vegan.", "I'm vegan.", {}),
        ("I am moving to Oslo.", "I'm moving to Oslo.", {}),
        ("I'd like an aisle seat.", "I'd like an aisle seat.", {}),
        ("We've two cats.", "We've two cats.", {}),
        ("I don't eat meat.", "Doesn't eat meat.", {}),
    ],
)
def test_a_name_with_an_apostrophe_is_one_name(said, content, fields, mark):
    """In either writing; what is contracted, elided or the user's is no part of it, and "I'm" is no name."""
    said, content = said.replace("'", mark), content.replace("'", "’" if mark == "'" else "'")
    held = {"m": Message(id="m", role="human", text=said)}
    assert ground(Candidate(content=content, excerpt=said, message_id="m", **fields), held) is None


@pytest.mark.parametrize(
    ("said", "content"),
    [
        ("My name is O'Brien.", "The user is called O'Hara."),
        ("My name is Brien.", "The user is called O'Brien."),
        ("My friend D'Arcy is deaf.", "The user's friend D'Angelo is deaf."),
        ("I'm vegan.", "Paul's vegan."),
        ("I work at L'Oréal.", "The user works at L'Occitane."),
    ],
)
def test_another_name_with_an_apostrophe_is_refused(said, content):
    """Half of a name is not the name."""
    held = {"m": Message(id="m", role="human", text=said)}
    assert ground(Candidate(content=content, excerpt=said, message_id="m"), held) == "ungrounded_name"


def test_a_placeholder_in_the_value_is_refused():
    """Also where the content does not show it."""
    assert _reason("The user follows a vegan diet.", "I'm vegan", value="{diet}") == "placeholder"


def _said(said: str, content: str, excerpt: str | None = None, **fields: object) -> str | None:
    message = Message(id="m", role="human", text=said)
    return ground(Candidate(content=content, excerpt=excerpt or said, message_id="m", **fields), {"m": message})


@pytest.mark.parametrize(
    ("said", "content"),
    [
        ("Ich bin vegan", "Der Nutzer ist vegan."),
        ("Ich wohne in Bonn", "Der Benutzer wohnt in Bonn."),
        ("Ich habe zwei Katzen", "Die Person hat 2 Katzen."),
        ("Ich habe eine Katze", "Die Nutzerin hat eine Katze."),
        ("Ich esse kein Fleisch", "Der Nutzer isst kein Fleisch."),
        ("Je ne mange pas de viande", "L'utilisateur ne mange pas de viande."),
        ("Je ne mange plus de viande", "L'utilisatrice ne mange plus de viande."),
        ("Vivo en Madrid", "El usuario vive en Madrid."),
        ("No como carne", "La usuaria no come carne."),
        ("Non mangio carne", "L'utente non mangia carne."),
        ("Ho due gatti", "L'utente ha 2 gatti."),
        ("Não como carne", "O usuário não come carne."),
        ("Ik eet geen vlees", "De gebruiker eet geen vlees."),
        ("我住在上海", "用户住在上海"),
        ("我有3只猫", "用户有三只猫"),
        ("我不吃肉", "用户不吃肉"),
        ("私は肉を食べません", "ユーザーは肉を食べない"),
        ("I have twenty-five cats", "The user has 25 cats."),
        ("My baby is expected in May", "The user's baby is due in May."),
        ("Bonn ist meine Heimat", "Bonn ist die Heimat des Nutzers."),
        ("I don't smoke and I love fish", "The user does not smoke."),
    ],
)
def test_good_facts_in_other_languages_are_grounded(said, content):
    """Words for the user, nouns with capitals, negation and numbers in words."""
    assert _said(said, content) is None


@pytest.mark.parametrize(
    ("reason", "said", "excerpt", "content", "fields"),
    [
        ("negation_differs", "I am not a vegetarian.", "a vegetarian", "The user is a vegetarian.", {}),
        ("negation_differs", "Ich esse kein Fleisch", None, "Der Nutzer isst Fleisch.", {}),
        ("negation_differs", "Ich esse kein Fleisch", None, "The user eats meat.", {}),
        ("negation_differs", "Ich mag Fisch nicht", "Ich mag Fisch", "Der Nutzer mag Fisch.", {}),
        ("negation_differs", "Je ne mange pas de viande", None, "L'utilisateur mange de la viande.", {}),
        ("negation_differs", "No como carne", None, "El usuario come carne.", {}),
        ("negation_differs", "Non mangio carne", None, "L'utente mangia carne.", {}),
        ("negation_differs", "Não como carne", None, "O usuário come carne.", {}),
        ("negation_differs", "Ik eet geen vlees", None, "De gebruiker eet vlees.", {}),
        ("negation_differs", "我不吃肉", None, "用户吃肉", {}),
        ("negation_differs", "我不吃肉", "吃肉", "用户吃肉", {}),
        ("negation_differs", "私は肉を食べません", "私は肉を食べ", "ユーザーは肉を食べる", {}),
        ("ungrounded_value", "我住在上海", None, "用户住在北京", {"topic": "home/location", "value": "北京"}),
        ("ungrounded_number", "我有3只猫", None, "用户有五只猫", {}),
        ("ungrounded_number", "I have two cats", None, "The user has seven cats.", {}),
        ("ungrounded_number", "Ich habe zwei Katzen", None, "Der Nutzer hat fünfundzwanzig Katzen.", {}),
        ("ungrounded_name", "I live in Rome", None, "Paris is the user's home.", {}),
        ("ungrounded_value", "i live in rome", None, "The user lives in paris.",
         {"topic": "home/location", "value": "paris"}),
        ("no_excerpt", "I went to the bank today", "I", "The user robbed a bank.", {}),
        ("ungrounded_value", "I live in Rome", None, "The user lives in Rome.",
         {"topic": "home/location", "value": "Paris"}),
        ("ungrounded_value", "I have a daughter", None, "The user has a daughter.",
         {"topic": "relation", "subject": "Bob Smith, the lawyer"}),
        ("ungrounded_number", "I like tea", None, "The user likes tea.", {"slot": "7 teas"}),
    ],
)  # fmt: skip
def test_what_was_not_said_is_refused_in_any_of_these_languages(reason, said, excerpt, content, fields):
    """False content under a true excerpt, also where the excerpt was cut, and in value, slot and subject."""
    assert _said(said, content, excerpt, **fields) == reason


@pytest.mark.parametrize(
    ("said", "excerpt", "content"),
    [
        ("I don't eat meat but I love fish", "I love fish", "The user loves fish."),
        ("I don't smoke and I love fish", "I love fish", "The user loves fish."),
        ("I'm vegan and not religious", "I'm vegan", "The user is vegan."),
        ("Not today, thanks. I live in Ghent.", "I live in Ghent", "The user lives in Ghent."),
        ("I live in Rome with no pets", "I live in Rome", "The user lives in Rome."),
    ],
)
def test_a_negation_elsewhere_in_the_message_denies_nothing(said, excerpt, content):
    """Only the clause of the excerpt counts."""
    assert _said(said, content, excerpt) is None


@pytest.mark.parametrize(
    ("reason", "said", "excerpt", "content", "fields"),
    [
        ("ungrounded_content", "I like tea", None, "The user may approve payments", {}),
        ("ungrounded_content", "What is the weather?", "weather", "The user is a chess player", {}),
        ("ungrounded_content", "yes", None, "The user wants suites", {}),
        ("ungrounded_content", "I like tea and cake", None, "The user likes tea, runs servers and trades stocks", {}),
        ("ungrounded_value", "I like tea", None, "The user likes tea", {"value": "approve payments"}),
        ("ungrounded_content", "Ich mag Tee", None, "Der Nutzer ist reich und klug", {}),
        ("ungrounded_content", "J'aime le thé", None, "L'utilisateur est médecin", {}),
        ("ungrounded_content", "Me gusta el té", None, "El usuario es médico", {}),
        ("ungrounded_content", "Mi piace il tè", None, "L'utente è medico", {}),
        ("ungrounded_content", "Gosto de chá", None, "O usuário é médico", {}),
        ("ungrounded_content", "Ik hou van thee", None, "De gebruiker is arts", {}),
        ("ungrounded_content", "我喜欢茶", None, "用户是医生", {}),
        ("ungrounded_content", "お茶が好きです", None, "ユーザーは医者", {}),
        ("about_another", "Bob is allergic to nuts.", "allergic to nuts", "The user is allergic to nuts", {}),
        ("about_another", "Bob is allergic to nuts.", None, "The user is allergic to nuts", {}),
        ("about_another", "He lives by the sea.", None, "The user lives by the sea", {}),
        ("about_another", "Hola. Ella es alérgica al polen.", "alérgica al polen", "El usuario es alérgico al polen.",
         {}),
    ],
)  # fmt: skip
def test_a_fact_that_shares_nothing_with_its_words_is_refused(reason, said, excerpt, content, fields):
    """True words beside it prove nothing: half of what it says must be there, and said of the user."""
    assert _said(said, content, excerpt, **fields) == reason


@pytest.mark.parametrize(
    ("said", "excerpt", "content", "fields"),
    [
        ("I'm vegan", None, "The user follows a vegan diet.", {"value": "vegan"}),
        ("Aisle, always.", None, "The user prefers aisle seating on flights.", {"value": "aisle"}),
        ("Bob is my brother", None, "The user has a brother, Bob.", {}),
        ("Vegan food is what I eat", "Vegan food", "The user eats vegan food.", {}),
        ("Tea is great", None, "The user likes tea.", {}),
        ("My brother lives here. He is a cook.", "He is a cook", "The user's brother is a cook.", {}),
        ("Bob is allergic to nuts", None, "Bob is allergic to nuts.", {"subject": "Bob"}),
        ("Soy vegetariano", None, "El usuario es vegetariano.", {}),
        ("Je préfère les réponses courtes", None, "L'utilisatrice préfère des réponses courtes.", {}),
        ("Ich bevorzuge kurze Antworten", None, "Die Nutzerin bevorzugt kurze Antworten.", {}),
        ("我喜欢喝茶", None, "用户爱喝茶", {}),
    ],
)
def test_a_fact_told_in_other_words_about_the_same_is_grounded(said, excerpt, content, fields):
    """The frame of a fact is nobody's words."""
    assert _said(said, content, excerpt, **fields) is None
