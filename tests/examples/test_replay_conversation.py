"""Conversation files are replayed through the graph; what cannot be replayed is said with its line."""

import importlib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from langmem_adapter import Memory

EXAMPLES = Path(__file__).parents[2] / "examples"
LOCOMO = os.environ.get("LOCOMO")

CHAT = [
    {"role": "system", "content": "You are helpful. The user lives in Rome."},
    {"role": "user", "content": "I live in Oslo."},
    {"role": "assistant", "content": "I live in Paris, and I'm a vegetarian."},
    {"role": "user", "content": [{"type": "text", "text": "I'm allergic to peanuts."}]},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
    {"role": "tool", "tool_call_id": "1", "content": "The user lives in Madrid."},
    {"role": "assistant", "content": "Noted."},
    {"role": "user", "content": "I moved to Bergen."},
]
NAMED = [
    {"role": "user", "name": "Mia", "content": "I'm a vegetarian.", "timestamp": "2024-03-01T09:00:00"},
    {"role": "assistant", "name": "Tom", "content": "I live in Lisbon."},
    {"role": "user", "name": "Mia", "content": "I've started eating fish again.", "timestamp": 1717200000},
]
SAMPLE = {
    "sample_id": "talk-1",
    "conversation": {
        "speaker_a": "Lena",
        "speaker_b": "Omar",
        "session_2_date_time": "12:09 am on 3 June, 2023",
        "session_2": [
            {"speaker": "Omar", "dia_id": "D2:1", "text": "I moved to Cairo."},
            {"speaker": "Lena", "dia_id": "D2:2", "text": "Great!"},
        ],
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Lena", "dia_id": "D1:1", "text": "I'm allergic to peanuts."},
            {"speaker": "Omar", "dia_id": "D1:2", "text": "I live in Tunis."},
        ],
    },
}
OTHER = {
    "sample_id": "talk-2",
    "conversation": {"session_1": [{"speaker": "Zoe", "dia_id": "D1:1", "text": "I live in Rome."}]},
}


@pytest.fixture
def replay(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run the example: exit code, screen, errors."""
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.setenv("COLUMNS", "80")
    main = importlib.import_module("replay_conversation").main

    def run(*argv: object) -> tuple[int, str, str]:
        code = main([str(a) for a in argv])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def remembered(db: Path, user: str) -> dict[str, tuple[str, str]]:
    """Content → status and the day it was last confirmed."""
    with Memory(db) as memory:
        records = memory.get_all(user_id=user, status="all")
    return {r.content: (r.status, f"{r.confirmed_at:%Y-%m-%d}") for r in records}


@pytest.mark.parametrize("layout", ["array", "pretty", "lines", "object", "lines with mark and blank lines"])
def test_message_lists_of_every_layout_teach_the_same(replay: Any, tmp_path: Path, layout: str) -> None:
    """Only what the user said counts: not the system, the assistant, or a tool."""
    lines = "\n".join(map(json.dumps, CHAT))
    text = {
        "array": json.dumps(CHAT),
        "pretty": json.dumps(CHAT, indent=2),
        "lines": lines,
        "object": json.dumps({"messages": CHAT}, indent=2),
        "lines with mark and blank lines": "\ufeff" + lines.replace("\n", "\r\n\r\n"),
    }[layout]
    file = tmp_path / ("chat.jsonl" if "lines" in layout else "chat.json")
    file.write_text(text, encoding="utf-8", newline="")
    code, out, err = replay(file, "--user", "nora", "--db", tmp_path / "m.db", "--ask", "where does she live?")
    assert (code, err) == (0, "")
    assert {content: status for content, (status, _) in remembered(tmp_path / "m.db", "nora").items()} == {
        "The user lives in Oslo.": "superseded",
        "The user is allergic to peanuts.": "active",
        "The user lives in Bergen.": "active",
    }
    assert "chat: messages by nora: 3; sessions: 1; undated: said now." in out
    assert "On the way: 2 CREATE, 1 UPDATE.\n" in out
    assert re.search(r"superseded The user lives in Oslo\.\n  since [\d-]+: The user lives in Bergen\.", out)
    assert re.search(r"\? where does she live\?\n  0\.\d{3} \(relevance 0\.\d\d\)  The user lives in Bergen\.", out)
    assert max(map(len, out.splitlines())) <= 80


def test_named_speakers_and_dates_are_kept_apart(replay: Any, tmp_path: Path) -> None:
    """Each speaker may be the user, and what they said is remembered at its time."""
    file = tmp_path / "chat.json"
    file.write_text(json.dumps(NAMED))
    for user in ("Mia", "Tom"):
        assert replay(file, "--user", user, "--db", tmp_path / "m.db")[0] == 0
    assert remembered(tmp_path / "m.db", "Mia") == {
        "The user follows a vegetarian diet.": ("superseded", "2024-03-01"),
        "The user eats fish again.": ("active", "2024-06-01"),
    }
    assert list(remembered(tmp_path / "m.db", "Tom")) == ["The user lives in Lisbon."]


def test_a_locomo_sample_runs_for_both_speakers(replay: Any, tmp_path: Path) -> None:
    """Sessions go by number and date, and each speaker remembers their own facts only."""
    file = tmp_path / "talks.json"
    file.write_text(json.dumps([OTHER, SAMPLE], indent=1))
    for user in ("Lena", "Omar"):
        code, out, _ = replay(file, "--user", user, "--db", tmp_path / "m.db")
        assert code == 0
        assert f"messages by {user}: 2; sessions: 2; said between 2023-05-08 and" in out
    assert remembered(tmp_path / "m.db", "Lena") == {"The user is allergic to peanuts.": ("active", "2023-05-08")}
    assert remembered(tmp_path / "m.db", "Omar") == {
        "The user lives in Tunis.": ("superseded", "2023-05-08"),
        "The user lives in Cairo.": ("active", "2023-06-03"),
    }


def test_replaying_a_file_again_changes_nothing(replay: Any, tmp_path: Path) -> None:
    """The same messages are recognised, whatever the format."""
    for name, user, data in (("chat.json", "nora", CHAT), ("talks.json", "Omar", SAMPLE)):
        file, db = tmp_path / name, tmp_path / f"{user}.db"
        file.write_text(json.dumps(data))
        stored = []
        for _ in range(2):
            assert replay(file, "--user", user, "--db", db)[0] == 0
            with Memory(db) as memory:
                stored.append(memory.get_all(user_id=user, status="all"))
        assert stored[0] == stored[1] != []


def test_a_sample_is_chosen_by_number_or_id(replay: Any, tmp_path: Path) -> None:
    """Counted from 0; an unknown one lists those there are."""
    file = tmp_path / "talks.json"
    file.write_text(json.dumps([OTHER, SAMPLE]))
    assert replay(file, "--user", "Zoe", "--sample", "0")[0] == 0
    assert replay(file, "--user", "Omar", "--sample", "talk-1")[0] == 0
    assert replay(file, "--user", "Omar", "--sample", "7")[::2] == (
        2,
        f"{file}: no sample '7'; there are: 0 talk-2, 1 talk-1\n",
    )


def test_an_unknown_speaker_is_answered_with_those_there_are(replay: Any, tmp_path: Path) -> None:
    """In both formats."""
    for data, there in ((NAMED, "Mia, Tom (data)"), ([OTHER, SAMPLE], "Zoe (talk-2); Lena, Omar (talk-1)")):
        file = tmp_path / "data.json"
        file.write_text(json.dumps(data))
        code, out, err = replay(file, "--user", "Nobody")
        assert (code, out) == (2, "")
        assert err == f"{file}: nobody called 'Nobody' speaks in it; the speakers are: {there}\n"


GOOD = '{"role": "user", "content": "Hi"}'

MALFORMED = {
    "empty": ("a.json", b" \n", "the file is empty"),
    "no messages": ("a.json", b"[]", "line 1: there are no messages in it"),
    "not UTF-8": ("a.json", b'[\n{"role": "user", "content": "caf\xe9"}]', "line 2: not UTF-8 text (byte 0xe9)"),
    "cut off": ("a.json", f"[\n{GOOD},\n".encode(), "line 3: not valid JSON: "),
    "missing comma": ("a.json", f"[\n{GOOD}\n{GOOD}]".encode(), "line 3: not valid JSON: Expecting ',' delimiter"),
    "not JSON": ("a.txt", b"Hello there", "line 1: not valid JSON: Expecting value (column 1)"),
    "line not JSON": ("a.jsonl", f"{GOOD}\n\n{{oops}}\n".encode(), "line 3: not valid JSON: Expecting property name"),
    "JSONL by content": ("a.txt", f"{GOOD}\n{GOOD[:-1]}\n".encode(), "line 2: not valid JSON: "),
    "no role": ("a.json", f'[{GOOD},\n{{"content": "x"}}]'.encode(), 'line 2: a message needs a "role"; this one has'),
    "no content": ("a.jsonl", f'{GOOD}\n{{"role": "user"}}'.encode(), 'line 2: a message needs a "content"'),
    "unknown role": ("a.json", b'[{"content": "x",\n"role":\n "human"}]', "line 3: unknown role 'human'"),
    "content a number": ("a.json", b'[{"role": "user",\n"content": 3}]', 'line 2: "content" must be text or a list'),
    "content null": ("a.json", b'[{"role": "user",\n"content": null}]', "not null"),
    "part a number": ("a.json", b'[{"role": "user", "content": ["a",\n\n7]}]', "line 3: a part of a content must be"),
    "text a list": ("a.json", b'[{"role":"user","content":[{"text":\n["x"]}]}]', 'line 2: "text" must be text, not a'),
    "a list in a list": ("a.json", f"[{GOOD},\n[1]]".encode(), 'line 2: a message needs a "role", but this is a list'),
    "a number": ("a.json", b"\n3", 'line 2: a message needs a "role", but this is a number'),
    "name a number": (
        "a.json",
        b'[{"role": "user", "content": "x",\n"name": 3}]',
        'line 2: "name" must be a non-empty',
    ),
    "bad time": (
        "a.json",
        b'[{"role":"user","content":"x",\n"timestamp":"noon"}]',
        'line 2: "timestamp" must be an ISO',
    ),
    "messages no list": ("a.json", b'{\n"messages": 3}', 'line 2: "messages" must be a list, not a number'),
    "deep": ("a.json", b"[" * 200_000, "line 1: not usable JSON: "),
    "long number": ("a.json", b"[" + b"1" * 5_000 + b"]", "line 1: not usable JSON: "),
    "conversation no object": ("a.json", b'[{\n"conversation": []}]', 'line 2: "conversation" must be an object'),
    "no session": ("a.json", b'[{\n"conversation": {}}]', 'line 2: there is no "session_1"'),
    "session no list": ("a.json", b'{"conversation": {\n"session_1": 3}}', "line 2: a session must be a list of turns"),
    "turn without text": (
        "a.json",
        b'{"conversation": {"session_1": [\n{"speaker": "A",\n"dia_id": "D1:1"}]}}',
        "line 2: a turn needs a \"text\"; this one has 'speaker', 'dia_id'",
    ),
    "speaker no text": (
        "a.json",
        b'{"conversation": {"session_1": [{"dia_id": "D1:1",\n"speaker": 1, "text": ""}]}}',
        'line 2: "speaker" must be text, not a number',
    ),
    "bad date": (
        "a.json",
        b'{"conversation": {"session_1": [],\n"session_1_date_time": "yesterday"}}',
        'line 2: a time must read like "1:56 pm on 8 May, 2023"',
    ),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_file_is_refused_with_its_line(replay: Any, tmp_path: Path, case: str) -> None:
    """Exit code 2 and one line on stderr, before anything is replayed."""
    name, data, problem = MALFORMED[case]
    file = tmp_path / name
    file.write_bytes(data)
    code, out, err = replay(file, "--user", "user")
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert err.startswith(f"{file}: ")
    assert problem in err


def test_a_missing_file_is_refused(replay: Any, tmp_path: Path) -> None:
    """So is a folder."""
    assert replay(tmp_path / "none.json", "--user", "x")[::2] == (
        2,
        f"{tmp_path / 'none.json'}: No such file or directory\n",
    )
    assert replay(tmp_path, "--user", "x")[0] == 2


def test_odd_text_is_replayed_as_text(replay: Any, tmp_path: Path) -> None:
    """Half an emoji, markup, line separators, and an id-less message said twice."""
    odd = "I live in [/bold] \ud83d\u2028 Rome."
    file = tmp_path / "odd.jsonl"
    file.write_text("\n".join(json.dumps({"role": "user", "content": text}) for text in (odd, "Hi", "Hi")))
    code, _, err = replay(file, "--user", "[/red]", "--ask", "[/x] where?")
    assert (code, err) == (0, "")


@pytest.mark.skipif(LOCOMO is None, reason="set LOCOMO to the path of locomo10.json")
def test_both_speakers_of_a_real_sample_remember_their_own_facts_only(replay: Any, tmp_path: Path) -> None:
    """Every source of every memory is a message of that speaker."""
    assert LOCOMO is not None
    sample = json.loads(Path(LOCOMO).read_text(encoding="utf-8"))[3]
    turns = [t for key, said in sample["conversation"].items() if re.fullmatch(r"session_\d+", key) for t in said]
    db = tmp_path / "m.db"
    for user in (sample["conversation"]["speaker_a"], sample["conversation"]["speaker_b"]):
        code, out, err = replay(LOCOMO, "--user", user, "--sample", sample["sample_id"], "--db", db)
        assert (code, err) == (0, "")
        assert "_failed" not in out
        with Memory(db) as memory:
            records = memory.get_all(user_id=user, status="all")
        said = {t["dia_id"] for t in turns if t["speaker"] == user}
        assert records
        assert {s.message_id for r in records for s in r.sources} <= said
