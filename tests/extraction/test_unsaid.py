"""What a person asks not to be remembered teaches nothing, whoever extracts."""

import pytest
from support import Scripted, fact

from langmem_adapter.extraction.unsaid import unsaid
from langmem_adapter.memory import Memory


@pytest.mark.parametrize(
    "text",
    [
        "Please don't remember that I love karaoke.",
        "Don't remember this: I live in Rome.",
        "Forget that I'm vegan.",
        "forget what I said about fish",
        "I love karaoke, but please don't store that.",
        "Off the record, I hate my boss.",
        "Never save my address: 5 Main Street",
        "I'm ill. Do not record this!",
        "Merk dir das bitte nicht: ich bin krank",
        "Bitte speichere das nicht, aber ich bin schwanger.",
        "Vergiss, dass ich vegan bin",
        "Ne retiens pas ça : je suis malade",
        "Oublie que je suis végétarien",
        "No guardes esto: vivo en Roma",
        "Non memorizzare questo: vivo a Roma",
        "Não guarde isso: moro em Roma",
        "Onthoud dit niet: ik woon in Gent",
        "Sla dat niet op, ik ben ziek",
    ],
)
def test_asked_not_to(text):
    assert unsaid(text)


@pytest.mark.parametrize(
    "text",
    [
        "I don't remember that film.",
        "Don't forget that I'm vegan.",
        "Please don't forget my birthday is in May.",
        "I never save any money.",
        "I can't remember what I ate.",
        "Forget it, I live in Rome now.",
        "Remember that I love jazz.",
        "I never learn the names of my neighbours",
        "We never store the wine at home",
        "Ich merke mir das nicht leicht",
        "I don't remember people's names; call me Ada",
    ],
)
def test_not_asked_not_to(text):
    assert not unsaid(text)


def test_nothing_is_learnt_from_it_whatever_the_extractor_finds(tmp_path):
    said = "Don't remember this: I live in Rome."
    script = {said: [fact("The user lives in Rome.", "home/location", "Rome")]}
    with Memory(tmp_path / "m.db", extractor=Scripted(script)) as memory:
        assert memory.add(said, user_id="u") == []
        assert memory.get_all(user_id="u", status="all") == []
        assert b"Rome" not in (tmp_path / "m.db").read_bytes() + (tmp_path / "m.db-wal").read_bytes()


def test_it_is_linear():
    assert not unsaid("please, " * 50_000 + "-" * 50_000 + " " * 50_000)
    assert not unsaid("please save, but " * 50_000)
