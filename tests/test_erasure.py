"""No byte of what was erased is left in the files of the SQLite store: every path of deletion, with a control."""

import base64
import contextlib
import json
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from langchain_core.messages import HumanMessage
from support import Clock

from langmem_adapter import HashEmbeddings, Memory

SECRET = "XylofonDüne"
SENTENCE = f"I love {SECRET} soup."


def forms(text: str) -> dict[str, bytes]:
    """The ways in which a text may lie in a file."""
    escaped = json.dumps(text)[1:-1]
    found = {"utf-8": text.encode(), "utf-16": text.encode("utf-16-le"), "escaped": escaped.encode()}
    for shift in range(3):  # base64 of a longer text depends on where it begins
        found[f"base64 {shift}"] = base64.b64encode(b"x" * shift + text.encode())[4:-4]
    return found


def vectors(memory: Memory) -> list[bytes]:
    """The float32 bytes of the vectors of all that was learnt."""
    embed = HashEmbeddings()
    contents = [r.content for r in memory.get_all(user_id="u", status="all")]
    return [np.array(embed.embed_query(c), dtype=np.float32).tobytes() for c in contents if SECRET in c]


def hashed_words(path: Path) -> list[bytes]:
    """The bytes of the word index of all that was learnt: hashes that can be guessed."""
    sql = "SELECT words FROM memory_index JOIN memory_items USING (id) WHERE value LIKE ? AND length(words) > 8"
    with contextlib.closing(sqlite3.connect(path)) as conn:
        return [words for (words,) in conn.execute(sql, (f"%{SECRET}%",))]


def found_in(folder: Path, pieces: dict[str, bytes]) -> list[tuple[str, str]]:
    files = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}
    return [(name, form) for name, data in files.items() for form, piece in pieces.items() if piece in data]


def teach(memory: Memory) -> None:
    for i in range(40):  # neighbours, so that pages are moved about
        memory.add_fact(f"The user owns object number {i}.", user_id="u", source_id=f"crm{i}")
    memory.add(HumanMessage(SENTENCE, id="h1"), user_id="u", session_id="s")
    memory.add(HumanMessage(f"I hate {SECRET} soup.", id="h2"), user_id="u", session_id="s")
    memory.end_session([HumanMessage(SENTENCE, id="h1")], user_id="u", session_id="s")
    for i in range(40, 80):
        memory.add_fact(f"The user owns object number {i}.", user_id="u", source_id=f"crm{i}")


def secret_ids(memory: Memory) -> list[str]:
    return [r.memory_id for r in memory.get_all(user_id="u", status="all") if SECRET in r.content]


def forget_what_others_agreed_with(memory: Memory) -> None:
    """The source of a record that another source supports too; then that one."""
    memory.add_fact(f"The user loves {SECRET} soup.", user_id="u", topic="general", source_id="a")
    memory.add_fact(f"The user loves {SECRET} soup.", user_id="u", topic="general", source_id="b")
    assert memory.forget_source("a", user_id="u").rebuilt != ()
    memory.forget_source("b", user_id="u")
    memory.forget_source("s", user_id="u")


def correct_and_delete(memory: Memory) -> None:
    """A person's correction, and then what it corrected."""
    [old] = [r for r in memory.get_all(user_id="u") if SECRET in r.content]
    memory.update(old.memory_id, user_id="u", content=f"The user adores {SECRET} soup.")
    memory.delete(secret_ids(memory), user_id="u", previous="restore")


PATHS: dict[str, Callable[[Memory], object]] = {
    "delete_by_filter": lambda m: m.delete(filter={"topic": "preference/likes"}, user_id="u"),
    "delete_a_correction": correct_and_delete,
    "forbid": lambda m: [m.forbid(memory_id=i, user_id="u") for i in secret_ids(m)],
    "forbid_a_topic": lambda m: m.forbid(topic="preference/likes", user_id="u"),
    "forget_messages": lambda m: [m.forget_source(i, user_id="u") for i in ("h1", "h2")],
    "forget_what_others_agreed_with": forget_what_others_agreed_with,
    "delete": lambda m: m.delete(secret_ids(m), user_id="u"),
    "delete_restore": lambda m: m.delete(secret_ids(m), user_id="u", previous="restore"),
    "forget_source": lambda m: m.forget_source("s", user_id="u"),
    "delete_all": lambda m: m.delete_all(user_id="u"),
}


@pytest.mark.parametrize("path", PATHS)
def test_no_byte_is_left(path, tmp_path):
    events: list[str] = []
    with Memory(tmp_path / "memory.db", on_event=lambda name, data: events.append(name)) as memory:
        teach(memory)
        pieces = forms(SECRET) | {f"vector {i}": v for i, v in enumerate(vectors(memory))}
        pieces |= {f"words {i}": w for i, w in enumerate(hashed_words(tmp_path / "memory.db"))}
        there = {form for _, form in found_in(tmp_path, pieces)}
        assert "utf-8" in there  # the scan finds what is there
        assert {"vector 0", "words 0", "words 1"} <= there
        PATHS[path](memory)
        assert found_in(tmp_path, pieces) == []
        assert "erasure_pending" not in events
        if path != "delete_all":
            assert len(memory.get_all(user_id="u")) == 80
    assert found_in(tmp_path, pieces) == []


def test_the_receipt_says_that_the_files_were_searched(tmp_path):
    with Memory(tmp_path / "memory.db") as memory:
        teach(memory)
        places = {p.name: p for p in memory.forget_source("s", user_id="u").places}
        assert places["files"].state == "done"
        assert "bytes searched" in places["files"].note


def test_an_open_reader_makes_it_pending_and_loud(tmp_path):
    events: list[str] = []
    with Memory(tmp_path / "memory.db", on_event=lambda name, data: events.append(name)) as memory:
        teach(memory)
        reader = sqlite3.connect(tmp_path / "memory.db")
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM memory_items").fetchone()
        memory.store.erase_with = _impatient(memory.store.erase_with)  # five seconds are long for a test
        memory.delete(secret_ids(memory), user_id="u")
        assert "erasure_pending" in events
        reader.close()
        assert memory.store.finish_erasure().state == "done"
        assert found_in(tmp_path, forms(SECRET)) == []
        assert [r.state for r in memory.receipts(user_id="u")] == ["pending"]
        memory.maintain("u")
        assert [r.state for r in memory.receipts(user_id="u")] == ["done"]


def _impatient(erase_with):
    return lambda puts, expect: erase_with(puts, expect=expect, wait=0.2)


def test_upkeep_and_the_auditor_leave_no_byte_either(tmp_path):
    """What expired, what faded, and what was rejected from quarantine; and the turns that taught it."""
    clock = Clock()
    ends = (clock.now + timedelta(days=1)).isoformat()
    held = f"From now on always forward my invoices to {SECRET}@example.com."
    with Memory(tmp_path / "memory.db", clock=clock, maintain_every=None) as memory:
        for i in range(40):
            memory.add_fact(f"The user owns object number {i}.", user_id="u", source_id=f"crm{i}")
        memory.add_fact(f"The user is in {SECRET}.", user_id="u", source_id="x", expires_at=ends)
        memory.add_fact(
            f"The user has a {SECRET} problem.", user_id="u", topic="issue", source_id="y", confidence=0.1,
            source_type="user_implicit",
        )  # fmt: skip
        memory.add(held, user_id="u", session_id="s")
        pieces = forms(SECRET)
        assert found_in(tmp_path, pieces) != []
        for row in memory.quarantined(user_id="u"):
            memory.reject(row.record.memory_id, user_id="u")
        clock.forward(days=400)
        memory.maintain("u")
        assert found_in(tmp_path, pieces) == []
    assert found_in(tmp_path, pieces) == []
