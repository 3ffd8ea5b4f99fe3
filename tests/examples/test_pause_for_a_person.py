"""The agent stops for a person in one process and goes on in another."""

import importlib
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "pause_for_a_person.py"


def run(*arguments: str) -> str:
    """The example in a process of its own."""
    command = [sys.executable, str(EXAMPLE), *arguments]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The example as a module."""
    monkeypatch.syspath_prepend(EXAMPLE.parent)
    return importlib.import_module("pause_for_a_person")


def test_it_tells_the_whole_story() -> None:
    assert run().splitlines() == [
        "$ pause_for_a_person.py ask",
        "Book a flight to Lisbon, aisle seat?",
        "$ pause_for_a_person.py answer yes",
        "Booked: Lisbon, aisle seat.",
        "$ pause_for_a_person.py answer yes",
        "Nobody is waiting for an answer.",
    ]


def test_a_no_books_nothing(example: Any, tmp_path: Path) -> None:
    db = tmp_path / "trip.db"
    assert example.ask(db) == "Book a flight to Lisbon, aisle seat?"
    assert example.answer(db, "no") == "Nothing was booked."


def test_what_the_memory_said_is_in_no_checkpoint(example: Any, tmp_path: Path) -> None:
    db = tmp_path / "trip.db"
    example.ask(db)
    conn = sqlite3.connect(db)
    try:
        for table in ("checkpoints", "channels", "writes", "elements"):
            assert b"prefers aisle" not in repr(conn.execute(f"SELECT * FROM ckpt_{table}").fetchall()).encode()
        assert "aisle" in repr(conn.execute("SELECT value FROM memory_items").fetchall()), "control"
    finally:
        conn.close()


def test_a_file_must_be_named_for_a_single_step(example: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        example.main(["ask"])
    assert "--db" in capsys.readouterr().err
