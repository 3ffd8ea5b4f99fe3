"""Of a very long message only the ends are read: whole sentences, no half secret, and it is said what was left out."""

import pytest
from langchain_core.messages import HumanMessage, ToolMessage

from langmem_adapter import Memory
from langmem_adapter.extraction.ends import EDGE, LEFT_OUT, MARGIN, beginning, redacted_ends
from langmem_adapter.redaction import redacted

MUCH = "The quick brown fox saw a bird. " * 10_000
KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "Mii3EpAhX9sQ0zLbCw8TqNdVuYkRfGj1\n" * 100 + "-----END RSA PRIVATE KEY-----"
SECRETS = [
    KEY,
    "my password is hunter2hunter2",
    "sk-" + "q7Zp" * 12,
    "card 4111 1111 1111 1111",
    "eyJhbGciOi." + "Zp3q" * 1_000 + ".Qw8t" * 2,
]


def test_both_ends_stay_and_whole_sentences():
    """Between them stands how much was left out."""
    text = redacted_ends(f"I'm vegan. {MUCH}Call me Ada.", redacted)
    begin, end = LEFT_OUT.split(text)
    assert begin.startswith("I'm vegan. The quick")
    assert end.endswith("bird. Call me Ada.")
    assert begin.endswith("bird. ")
    assert end.startswith("The quick")
    assert EDGE - 2_000 < len(begin) <= EDGE
    assert EDGE - 2_000 < len(end) <= EDGE
    assert str(len(MUCH) + 23 - 2 * EDGE) in text
    assert beginning(text) == begin + "\n"


@pytest.mark.parametrize("length", [0, 1, EDGE, 2 * EDGE])
def test_a_text_of_both_ends_is_all_read(length):
    """Nothing is cut, and nothing said."""
    assert redacted_ends("a" * length, redacted) == "a" * length
    assert beginning("a" * length) == "a" * length


@pytest.mark.parametrize("unit", ["a", " ", "\n", "。", "é ", "my pin is 1234. ", "AKIAABCDEFGHIJKLMNOP "])
def test_what_has_no_border_is_cut_all_the_same(unit):
    """The two ends are no longer than they may be, or than marks for secrets make them."""
    text = redacted_ends(unit * (1_000_000 // len(unit)), redacted)
    assert LEFT_OUT.search(text)
    assert len(text) < (2 if "[redacted" not in text else 4) * EDGE + 100


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("many", [1, 8])
def test_no_part_of_a_secret_slips_through_a_cut(secret, many):
    """Wherever it stands across the edges, of the margin too; however many there are."""
    said = f"so {secret} and "
    step = max(1, len(said) // 7)
    pieces = {secret[at : at + 12] for at in range(len(secret) - 12, 0, -7)} - {"-----BEGIN R"}
    pieces = {p for p in pieces if not any(word in p for word in ("password", "PRIVATE", "card", "---"))}
    for edge in (EDGE, EDGE + MARGIN):
        for shift in range(0, len(said), step):
            pad = "lorem " * 30_000
            begin = (pad[: edge - shift - (many - 1) * len(said)] + said * many + pad)[: 2 * EDGE]
            end = (pad + said * many + pad[: edge - shift - (many - 1) * len(said)])[-2 * EDGE :]
            text = redacted_ends(begin + pad + end, redacted)
            assert LEFT_OUT.search(text)
            assert not any(p in text for p in pieces), (edge, shift)


def test_rules_stop_at_the_gap_and_the_turn_says_so():
    """Whose words stand behind it, the gap may have said."""
    told = []
    with Memory(":memory:", on_event=lambda name, data: told.append((name, data))) as memory:
        memory.add(
            HumanMessage(f"I'm vegan. {MUCH}System: {MUCH}\nI live in Bonn.", id="h"), user_id="u", session_id="s"
        )
        assert [r.content for r in memory.get_all(user_id="u")] == ["The user follows a vegan diet."]
    assert [d["dropped"]["left_out"] for n, d in told if n == "learnt"] == [1]


@pytest.mark.parametrize("wish", ["Don't remember this. {}", "{} Don't remember this."])
def test_a_wish_not_to_be_remembered_is_heard_at_either_end(wish):
    """Also in ten times what is read."""
    with Memory(":memory:") as memory:
        memory.add(wish.format(f"I'm vegan. {MUCH * 4}"), user_id="u")
        assert memory.get_all(user_id="u") == []


def test_the_queue_keeps_no_more_than_the_ends(tmp_path):
    """Of what the user typed and of what tools said."""

    class Fails:
        def extract(self, turn):
            raise ValueError

    with Memory(tmp_path / "m.db", extractor=Fails(), tool_sources=["crm"]) as memory:
        with pytest.raises(ValueError):
            memory.add([HumanMessage(MUCH, id="h"), ToolMessage(MUCH, name="crm", tool_call_id="c")], user_id="u")
        (turn,) = memory.pending(user_id="u")
    assert [len(m.text) < 2 * EDGE + 100 and bool(LEFT_OUT.search(m.text)) for m in turn.messages] == [True, True]
