"""The README's code runs as it stands, and the names it tells exist."""

import re
import sys
import types
from pathlib import Path

import pytest

import langmem_adapter

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
STORES = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "stores.md").read_text(), re.DOTALL)
GUARANTEES = (ROOT / "docs" / "guarantees.md").read_text()
GUIDES = ["exchange", "forgetting"]
"""Documents whose code runs from top to bottom."""


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_every_python_block_of_the_readme_runs(block, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    exec(compile(block, "README.md", "exec"), namespace)
    for value in [v for v in namespace.values() if isinstance(v, langmem_adapter.Memory)]:
        assert value.get_all(user_id="u1")
        value.close()


@pytest.mark.parametrize("name", GUIDES)
def test_the_python_blocks_of_a_guide_run_in_order(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", (ROOT / "docs" / f"{name}.md").read_text(), re.DOTALL):
        exec(compile(block, f"{name}.md", "exec"), namespace)
    for value in [v for v in namespace.values() if isinstance(v, langmem_adapter.Memory)]:
        value.close()


def test_the_checkpointer_s_guide_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "guide", guide := types.ModuleType("guide"))  # its types need a module
    for block in re.findall(r"```python\n(.*?)```", (ROOT / "docs/checkpoints.md").read_text(), re.DOTALL):
        exec(compile(block, "checkpoints.md", "exec"), vars(guide))
    assert capsys.readouterr().out == "Trip(to='Ghent')\ndone\n"


def test_the_blocks_about_the_sqlite_store_run_one_after_another(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for block in STORES:
        exec(compile(block, "stores.md", "exec"), namespace)
    told = capsys.readouterr().out.splitlines()
    assert 0 < float(told[0]) <= 1
    assert told[1] == "0 items had expired"
    assert "vectors were made of ['text']" in told[2]
    assert told[3:5] == ["1 of 1", "1"]
    assert told[5].startswith("done 2 ")
    assert told[6].startswith("0 ")
    assert told[6].endswith("hash-64 () ()")
    assert (tmp_path / "copy.db").exists()


def test_the_first_block_shows_what_it_promises(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(BLOCKS[0], "README.md", "exec"), {})
    told = capsys.readouterr().out
    assert "- [confidence: high, source: user_explicit] The user eats fish again." in told
    assert "replaced: The user follows a vegetarian diet." in told


def test_methods_named_in_the_readme_exist():
    table = README.split("| method | gives |")[1].split("\n\n")[0]
    for name in re.findall(r"`(\w+)(?:\(|`)", table):
        assert hasattr(langmem_adapter.Memory, name), name


def test_links_lead_somewhere():
    for document in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\((?!http)([^)#]+)", document.read_text()):
            assert (document.parent / link).exists(), f"{document.name}: {link}"


def test_promises_are_held_by_tests_that_exist():
    tables = re.findall(r"^\|[^\n]* test \|\n\|[- |]+\|\n((?:\|.*\n)+)", GUARANTEES, re.MULTILINE)
    assert len(tables) == 3
    for row in [row for table in tables for row in table.splitlines()]:
        named = re.findall(r"`(tests/[\w/.:]+)`", row)
        assert named, row
        for path, _, name in (each.partition("::") for each in named):
            assert (ROOT / path).exists(), row
            assert not name or f"def {name}(" in (ROOT / path).read_text(), row
