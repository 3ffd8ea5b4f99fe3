"""Memories are counted against labels by the stated rule, for the rules and for a model."""

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from langmem_adapter.testing import ScriptedChatModel

EXAMPLES = Path(__file__).parents[2] / "examples"
LABELS = Path(__file__).parents[2] / "benchmarks" / "labels"

TALK = {
    "sample_id": "talk-1",
    "conversation": {
        "speaker_a": "Lena",
        "speaker_b": "Omar",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Lena", "dia_id": "D1:1", "text": "I live in Rome."},
            {"speaker": "Omar", "dia_id": "D1:2", "text": "I'm allergic to shrimps."},
            {"speaker": "Lena", "dia_id": "D1:3", "text": "I'm allergic to peanuts."},
            {"speaker": "Omar", "dia_id": "D1:4", "text": "Oh."},
            {"speaker": "Lena", "dia_id": "D1:5", "text": "Somehow the kite took all of yesterday."},
            {"speaker": "Lena", "dia_id": "D1:6", "text": "I'm a vegetarian."},
            {"speaker": "Lena", "dia_id": "D1:7", "text": "I moved to Oslo."},
        ],
    },
}
HEAD = {"sample": "talk-1", "user": "Lena", "first": "D1:2", "last": "D1:6"}
FACTS = [
    {"turns": ["D1:3"], "topic": "diet/allergy", "words": ["allerg", "nut|peanut"]},
    {"turns": ["D1:5"], "topic": "project", "words": ["kite"]},
    {"turns": ["D1:5"], "topic": "general", "words": ["yesterday"], "optional": True},
]


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    """Replay the talk and score it with these labels: exit code, screen, errors."""
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.setenv("COLUMNS", "1000")
    main = importlib.import_module("replay_conversation").main
    talk, labels = tmp_path / "talk.json", tmp_path / "labels.jsonl"
    talk.write_text(json.dumps([TALK]))

    def run(*lines: Any, user: str = "Lena", more: tuple[str, ...] = ()) -> tuple[int, str, str]:
        labels.write_text("\n".join(map(json.dumps, lines)))
        code = main([str(talk), "--user", user, "--score", str(labels), *more])
        return (code, *capsys.readouterr())

    return run


def test_only_the_labelled_stretch_counts_and_only_what_the_user_said(scored: Any) -> None:
    """Rome and Oslo are outside; the diet is remembered without a label; the kite is missed."""
    code, out, err = scored(HEAD, *FACTS)
    assert (code, err) == (0, "")
    assert "A memory matches a label if it rests on one of the label's turns and each of" in out
    assert "the offline rules: precision 0.50 (1 of 2), recall 0.50 (1 of 2)\n" in out
    assert "  missed D1:5 (project): kite\n" in out
    assert "  without a label: The user follows a vegetarian diet.\n" in out
    assert "Oslo" not in out


def test_words_of_another_turn_or_half_the_words_do_not_match(scored: Any) -> None:
    """The turn and all the words decide."""
    elsewhere = FACTS[0] | {"turns": ["D1:5"]}
    half = FACTS[0] | {"words": ["allerg", "shrimp"]}
    assert "precision 0.00 (0 of 2), recall 0.00 (0 of 2)" in scored(HEAD, elsewhere, half)[1]


def test_optional_labels_leave_both_figures_alone(scored: Any) -> None:
    """Neither found nor missed, and what matches them alone is neither right nor wrong."""
    diet = {"turns": ["D1:6"], "topic": "diet", "words": ["vegetarian"], "optional": True}
    assert "precision 1.00 (1 of 1), recall 0.50 (1 of 2)" in scored(HEAD, *FACTS, diet)[1]


def test_a_model_is_scored_in_the_same_way(scored: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It finds the kite and nothing else."""

    def answer(messages: Any) -> Any:
        lines = [json.loads(line) for line in messages[1].text.splitlines()]
        kite = {"content": "The user flew a kite yesterday.", "topic": "project", "slot": "kite", "value": "kite"}
        return {
            "facts": [
                kite | {"line": line["line"], "excerpt": line["text"]} for line in lines if "kite" in line["text"]
            ]
        }

    model = ScriptedChatModel(replies=[answer])
    for module in ("answers.chat_model", "memory.chat_model", "extraction.model.chat_model"):
        monkeypatch.setattr(f"langmem_adapter.{module}", lambda given: model)
    monkeypatch.setattr("langmem_adapter.consolidation.judge.chat_model", lambda given: model)
    code, out, _ = scored(HEAD, *FACTS, more=("--model", "scripted:kite"))
    assert code == 0
    assert "scripted:kite: precision 1.00 (1 of 1), recall 0.50 (1 of 2)" in out


def test_a_model_that_cannot_be_used_gives_one_line(scored: Any) -> None:
    """Its package is not there."""
    code, _, err = scored(HEAD, *FACTS, more=("--model", "cohere:command-r"))
    assert (code, len(err.splitlines())) == (2, 1)
    assert "cannot use --model 'cohere:command-r'" in err


@pytest.mark.parametrize(
    ("lines", "user", "problem"),
    [
        ([], "Lena", "there are no labels in it"),
        ([{"sample": "talk-1"}], "Lena", "line 1: not a label: 'user'"),
        ([HEAD, {"turns": ["D1:3"], "topic": "diet", "words": []}], "Lena", "line 2: not a label: a label needs words"),
        ([HEAD, FACTS[0] | {"turns": ["D9:9"]}], "Lena", "the labels name turn 'D9:9', which is not in 'talk-1'"),
        ([HEAD, FACTS[0]], "Omar", "the labels are of what 'Lena' said: pass --user Lena"),
        ([HEAD | {"sample": "talk-7"}, FACTS[0]], "Lena", "no sample 'talk-7'"),
    ],
)
def test_labels_that_do_not_fit_are_refused(scored: Any, lines: Any, user: str, problem: str) -> None:
    """One line on stderr."""
    code, _, err = scored(*lines, user=user)
    assert (code, len(err.splitlines())) == (2, 1)
    assert problem in err


@pytest.mark.parametrize("path", sorted(LABELS.glob("*.jsonl")), ids=lambda p: p.stem)
def test_the_labels_in_the_repository_can_be_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And are key words, not sentences of the conversations."""
    monkeypatch.syspath_prepend(EXAMPLES)
    labels = importlib.import_module("extraction_score").load(path)
    assert len(labels.facts) >= 20
    assert all(word.isalnum() for fact in labels.facts for words in fact.words for word in words.split("|"))
