"""The travel concierge tells its story, holds a conversation, and says plainly what it cannot use."""

import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from langmem_adapter import Memory

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def concierge(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The example as a module, on a screen of 80 columns."""
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.setenv("COLUMNS", "80")
    return importlib.import_module("travel_concierge")


@pytest.fixture
def story(concierge: Any, capsys: pytest.CaptureFixture[str]) -> str:
    """The story as it is printed."""
    assert concierge.main([]) == 0
    return capsys.readouterr().out


def chat(typed: str, *options: str) -> subprocess.CompletedProcess[str]:
    """The example with --chat, its input piped in."""
    return run(typed, "--chat", *options)


def run(typed: str, *options: str) -> subprocess.CompletedProcess[str]:
    """The example as a process of its own."""
    command = [sys.executable, str(EXAMPLES / "travel_concierge.py"), *options]
    environment = {**os.environ, "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        command, input=typed, capture_output=True, encoding="utf-8", env=environment, timeout=120, check=False
    )


def answers(screen: str) -> list[str]:
    return re.findall(r"^concierge: (.*)$", screen, re.MULTILINE)


def test_the_story_decides_as_the_design_says(story: str) -> None:
    """Three CREATE at 0.65, a NOOP to 0.70, an UPDATE at 0.90."""
    decisions = re.findall(r"^   (CREATE|NOOP|UPDATE) +([\d.]+(?: → [\d.]+)?) +(.*)$", story, re.MULTILINE)
    assert decisions == [
        ("CREATE", "0.65", "The user follows a vegetarian diet."),
        ("CREATE", "0.65", "The user goes by Ada."),
        ("CREATE", "0.65", "The user prefers aisle seating on flights."),
        ("NOOP", "0.65 → 0.70", "The user follows a vegetarian diet."),
        ("UPDATE", "0.90", "The user eats fish again."),
    ]


def test_the_tuna_is_recommended_only_once_the_diet_changed(story: str) -> None:
    """Every answer in order: three sessions, a stranger, and what forgetting leaves."""
    assert answers(story) == [
        "Noted. Shall I suggest a dish, or book a flight?",
        "Ada, I recommend the mushroom risotto: no meat and no fish in it.",
        "Ada, noted. Shall I suggest a dish, or book a flight?",
        "Ada, I recommend the mushroom risotto: no meat and no fish in it.",
        "Ada, noted. Shall I suggest a dish, or book a flight?",
        "Ada, I recommend the grilled tuna: you eat fish.",
        "Ada, I have booked the aisle seat.",
        "I recommend the mushroom risotto: I don't know yet what you eat.",
        "Window or aisle? I don't know which you prefer.",
        "I recommend the grilled tuna: you eat fish.",
    ]


def test_the_three_sessions_are_learnt_through_the_graph(
    concierge: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each thread is the source of what was said in it, as explicit as the run said it was; questions teach nothing."""
    assert concierge.main(["--db", str(tmp_path / "memory.db")]) == 0
    with Memory(tmp_path / "memory.db") as memory:
        [diet] = memory.get_all(user_id="ada")  # what the first and the third session taught was withdrawn
    assert [(s.source_id, s.source_type, s.role) for s in diet.sources] == [("s2", "user_implicit", "support")]


def test_the_retrieval_scores_are_the_reference_figures(story: str) -> None:
    """Nine scores to three decimals, best first."""
    scores = re.findall(r"^   (0\.\d{3})  (.*)$", story, re.MULTILINE)
    expected = "0.473 0.388 0.370  0.444 0.392 0.370  0.370 0.370 0.349"
    assert [score for score, _ in scores] == expected.split()
    assert [scores[0][1], scores[3][1]] == ["The user eats fish again.", "The user prefers aisle seating on flights."]


def test_the_story_shows_state_isolation_block_reasons_and_receipt(story: str) -> None:
    """One sign of each part, and no line wider than the screen."""
    for sign in (
        "superseded  0.70",
        "UPDATE     trusted_and_newer",
        "What a search finds for 'stranger': []",
        "│ <MEMORIES> ",
        "- [confidence: high, source: user_explicit] The user eats fish again.",
        "replaced: The user follows a vegetarian diet.",
        "2 erased, 2 decided again from other sources",
        "What the fish had replaced is believed again:",
        "1 erased, 1 decided again from other sources",
        "out_of_reach   1  checkpoints",
    ):
        assert sign in story
    assert max(map(len, story.splitlines())) <= 80


def test_a_second_run_on_the_same_file_tells_the_same_story(
    concierge: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first Ada's memories stay; a new guest lives through the same figures."""
    file = str(tmp_path / "memory.db")
    assert concierge.main(["--db", file]) == 0
    first = capsys.readouterr().out
    assert concierge.main(["--db", file]) == 0
    second = capsys.readouterr().out
    assert "she checks in as 'ada-2'" in second
    assert answers(second) == answers(first)
    assert "UPDATE  0.90         The user eats fish again." in second
    with Memory(file) as memory:
        left = [[r.content for r in memory.get_all(user_id=user)] for user in ("ada", "ada-2")]
    assert left == [["The user follows a vegetarian diet."]] * 2  # the third session was withdrawn too


def test_a_conversation_is_learnt_from_and_carried_over(tmp_path: Path) -> None:
    """Learning is on, each turn says what it taught, and the next conversation knows it."""
    file = str(tmp_path / "memory.db")
    typed = "I'm a vegetarian.\nPlease call me Ada.\nWhat should we order for lunch?\nI've started eating fish again.\n"
    first = chat(typed + "/quit\nnot read\n", "--db", file)
    assert (first.returncode, first.stderr) == (0, "")
    assert re.findall(r"^   ([A-Z]+ .*)$", first.stdout, re.MULTILINE) == [  # nothing from the question
        "CREATE  0.90         The user follows a vegetarian diet.",
        "CREATE  0.90         The user goes by Ada.",
        "UPDATE  0.90         The user eats fish again.",
    ]
    assert "not read" not in first.stdout
    assert answers(first.stdout)[2] == "Ada, I recommend the mushroom risotto: no meat and no fish in it."

    second = chat("lunch?\n", "--db", file)  # ends without /quit
    assert (second.returncode, second.stderr) == (0, "")
    assert answers(second.stdout) == ["Ada, I recommend the grilled tuna: you eat fish."]


def test_the_commands_of_a_conversation(tmp_path: Path) -> None:
    """/memories lists, /why explains, /forget erases, anything else shows the commands."""
    file = str(tmp_path / "memory.db")
    told = chat("Please call me Ada.\n/memories\n/unknown\n/why zz\n", "--db", file)
    [start] = re.findall(r"^(m_\w+) +active +0\.90", told.stdout, re.MULTILINE)
    assert told.stdout.count("/memories  /why ID  /forget SOURCE  /quit") == 2  # in the greeting, and here
    assert "0 memories have an id that begins with 'zz'" in told.stdout

    asked = chat(f"/why {start}\n/forget chat-1\n/memories\n", "--db", file)
    assert "from user_explicit chat-1" in asked.stdout
    assert "1 erased, 0 decided again from other sources" in asked.stdout
    assert "I remember nothing about you yet." in asked.stdout


def test_text_with_markup_or_broken_bytes_is_taken_as_text() -> None:
    """Brackets that rich would read as markup neither vanish nor crash."""
    told = chat("I live in [/bold] Paris [red]\n/memories\n/why [/x]\n/forget [/y]\n")
    assert (told.returncode, told.stderr) == (0, "")
    assert "you: I live in [/bold] Paris [red]" in told.stdout


def test_a_model_without_its_key_gives_one_line(
    concierge: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2 and a hint; nothing on the screen."""
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert concierge.main(["--model", "openai:gpt-4o-mini"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert "cannot use --model 'openai:gpt-4o-mini'" in err
    assert "OPENAI_API_KEY" in err


class ExpiringKey(BaseHTTPRequestHandler):
    """An OpenAI-like server that answers once, and then no longer accepts the key."""

    calls = 0

    def do_POST(self) -> None:
        type(self).calls += 1
        message = {"role": "assistant", "content": "Welcome, traveller!"}
        body = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [{"message": message}]}
        answer = body if self.calls == 1 else {"error": {"message": "Your key\nhas expired."}}
        data = json.dumps(answer).encode()
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200 if self.calls == 1 else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on the screen."""


@pytest.mark.parametrize("chatting", [False, True])
def test_a_model_that_fails_in_the_middle_gives_one_line(chatting: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the story and in a conversation: what was said stays on the screen, then exit code 2 and a hint."""
    monkeypatch.setattr(ExpiringKey, "calls", 0)
    with HTTPServer(("127.0.0.1", 0), ExpiringKey) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        told = run("I'm a vegetarian.\nlunch?\nnot read\n", "--model", "openai:m", *(["--chat"] if chatting else []))
        server.shutdown()
    assert answers(told.stdout) == ["Welcome, traveller!"]
    assert "CREATE" in told.stdout
    assert "not read" not in told.stdout
    assert told.returncode == 2
    assert len(told.stderr.splitlines()) == 1
    assert told.stderr.startswith("travel_concierge: cannot use --model 'openai:m' (")
    assert "Your key has expired." in told.stderr.replace("\\n", " ")


@pytest.mark.skipif(importlib.util.find_spec("langchain_cohere") is not None, reason="the package is installed")
def test_a_model_without_its_package_gives_one_line(concierge: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The hint names the package."""
    assert concierge.main(["--model", "cohere:command-r"]) == 2
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert "langchain-cohere" in err


def test_a_file_that_is_no_memory_gives_one_line(
    concierge: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file is left as it is."""
    file = tmp_path / "notes.txt"
    file.write_text("Buy milk, and bread, and everything else that is on the other list.")
    assert concierge.main(["--db", str(file)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert file.read_text().startswith("Buy milk")
