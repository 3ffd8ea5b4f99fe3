"""A user's data out of one store and as it was into another; and facts from other memories."""

import asyncio
import json
import os
import sqlite3
import stat
from datetime import UTC, datetime
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore
from support import START, Clock, Scripted, fact

from langmem_adapter import DEFAULT_TOPICS, Memory, MemoryNotFound, Topic
from langmem_adapter.errors import InvalidInput
from langmem_adapter.exchange.archive import CHECKS, SCHEMA, _dump, _hash
from langmem_adapter.namespaces import Kind, Reader, escape
from langmem_adapter.paging import items_under
from langmem_adapter.ports import run

USER = "Ada@example.org"


def stored(memory: Memory, user_id: str = USER) -> dict[Any, Any]:
    """Everything below a user's root in the store."""
    root = Reader(user_id).root
    return {(i.namespace[len(root) :], i.key): i.value for i in run(items_under(memory.io, root))}


def fill(memory: Memory) -> Memory:
    """A user with something of every kind: a supersession, a contest, scopes, a queue, a summary, a receipt."""
    for n, city in enumerate(["Rome", "Oslo", "Bonn"]):
        memory.add(f"I live in {city}.", user_id=USER, session_id=f"s{n}")
    memory.add("I'm a vegetarian.\nI love 寿司 and crème brûlée.", user_id=USER, session_id="s1")
    memory.add_fact("The user eats meat.", user_id=USER, topic="diet", value="meat", source_id="x",
                    source_type="tool_output")  # fmt: skip
    memory.add_fact("The user asked for a window.", user_id=USER, scope="session", session_id="t.1/A", source_id="crm")
    memory.add_fact("The user likes short answers.", user_id=USER, scope="agent", agent_id="helper", source_id="crm")
    memory.add_fact("The user is a member.", user_id=USER, source_id="gone")
    memory.forget_source("gone", user_id=USER)
    memory.end_session(user_id=USER, session_id="s1")
    memory.recall([("user", "Please remember the milk.")], user_id=USER, session_id="s9")  # queued
    memory.forbid(user_id=USER, topic="work/role")
    memory.add("I live in Lima.", user_id="another", session_id="s1")
    return memory


@pytest.fixture
def other():
    """A second memory, empty, on another kind of store."""
    memory = Memory(InMemoryStore(), clock=Clock())
    yield memory
    memory.close()


# ---------------------------------------------------------------- export


def test_an_export_holds_everything_under_the_users_name(make):
    memory = fill(make(clock=Clock()))
    export = memory.export(user_id=USER)
    lines = [json.loads(line) for line in export.lines[1:]]
    there = {((*(escape(p) for p in r["place"]), r["kind"]), r["key"]): r["value"] for r in lines}
    assert there == stored(memory)
    assert set(export.manifest.counts) == set(get_args(Kind)), "a kind of item is not exported"
    assert all(export.manifest.counts.values()), "the test has no item of a kind: add one"
    assert export.manifest.counts == {"facts": 9, "turns": 9, "summaries": 1, "receipts": 1, "settings": 1}
    assert (export.manifest.user_id, export.manifest.app_name, export.manifest.at) == (USER, "default", START)
    assert "寿司" in export.text
    assert "Lima" not in export.text


def test_every_kind_of_item_can_be_exported_and_checked():
    assert set(CHECKS) == set(get_args(Kind)), "tell exchange.archive where an item of the new kind belongs"


def test_every_table_of_the_sqlite_store_is_exported_or_made_anew(tmp_path):
    with Memory(tmp_path / "memory.db") as memory:
        memory.add_fact("The user is a member.", user_id=USER, source_id="crm")
    with sqlite3.connect(tmp_path / "memory.db") as conn:
        found = {row[0] for row in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    conn.close()
    assert {t for t in found if not t.startswith("sqlite_")} == {
        "memory_items",  # exported
        "memory_namespaces",  # paths are exported; versions are raised by the import
        "memory_index",  # words and vectors: made anew from the items
        "memory_meta",  # of the file, not of a user
    }


def test_an_item_of_an_unknown_kind_is_exported_too(make):
    memory = make()
    memory.store.put((*Reader(USER).root, "novelties"), "k", {"any": 1})
    export = memory.export(user_id=USER)
    assert export.manifest.counts["novelties"] == 1
    with pytest.raises(InvalidInput, match="line 2: kind 'novelties' is not known"):
        memory.import_(export, user_id="u2")


def test_a_saved_export_is_json_lines_that_only_its_owner_may_read(make, tmp_path):
    memory = fill(make(clock=Clock()))
    export = memory.export(user_id=USER)
    export.save(tmp_path / "ada.jsonl")
    export.save(tmp_path / "ada.jsonl")  # replaced
    assert (tmp_path / "ada.jsonl").read_text(encoding="utf-8").split("\n") == [*export.lines, ""]
    assert os.name == "nt" or stat.S_IMODE((tmp_path / "ada.jsonl").stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.glob("ada*")] == ["ada.jsonl"]


def test_a_user_of_whom_nothing_is_known_has_an_empty_export(make):
    export = make().export(user_id="nobody")
    assert set(export.manifest.counts.values()) == {0}
    assert len(export.lines) == 1


# ---------------------------------------------------------------- restore


def test_an_import_restores_everything_as_it_was(make, other, tmp_path):
    source, target = fill(other), make(clock=Clock())
    export = source.export(user_id=USER)
    export.save(tmp_path / "ada.jsonl")
    seen = []
    report = target.import_(tmp_path / "ada.jsonl", progress=lambda done, total: seen.append((done, total)))
    assert (report.total, report.written, report.already) == (21, 21, 0)
    assert seen == [(0, 21), (21, 21)]
    assert stored(target) == stored(source)
    assert target.export(user_id=USER).lines[1:] == export.lines[1:]
    assert target.get_all(user_id=USER, status="all") == source.get_all(user_id=USER, status="all")
    home = next(r for r in target.get_all(user_id=USER) if r.topic == "home/location")
    assert str(target.why(home.memory_id, user_id=USER)) == str(source.why(home.memory_id, user_id=USER))
    assert [h.record.content for h in target.search("where is home", user_id=USER, topics="home")] == [home.content]
    assert target.pending(user_id=USER) == source.pending(user_id=USER)
    assert target.get_summary(user_id=USER, session_id="s1") == source.get_summary(user_id=USER, session_id="s1")
    assert target.settings(user_id=USER).topics == ("work/role",)
    assert target.get_all(user_id="another") == []


def test_what_was_restored_goes_on_as_if_it_had_never_moved(make, other):
    source, target = fill(other), make(clock=Clock())
    for n in range(20):  # much happened that is not in the export any more
        source.add_fact(f"The user saw film {n}.", user_id=USER, source_id="films")
    source.delete(user_id=USER, filter={"topic": "general"})
    target.import_(source.export(user_id=USER))
    last = max(r.seq for r in target.get_all(user_id=USER, status="all"))
    for memory in (source, target):
        memory.add_fact("The user plays chess.", user_id=USER, source_id="club")
        memory.add("I live in Cairo.", user_id=USER, session_id="s20")
        memory.forget_source("s20", user_id=USER)
        memory.forget_source("s2", user_id=USER)
        told = [(r.content, r.status) for r in memory.get_all(user_id=USER, status="all")]
        assert ("The user lives in Oslo.", "active") in told
        assert ("The user lives in Bonn.", "active") not in told
    assert next(r.seq for r in target.get_all(user_id=USER) if "chess" in r.content) > last


def test_the_order_of_what_is_learnt_later_is_behind_what_was_restored(make, tmp_path):
    with Memory(tmp_path / "source.db") as source:
        for n in range(20):
            source.add_fact(f"The user saw film {n}.", user_id=USER, source_id=f"film{n}")
        turns = [at for at in stored(source) if at[0] == ("turns",)][:19]
        for _, key in turns:  # as if they had been collected
            source.store.delete((*Reader(USER).root, "turns"), key)
        export = source.export(user_id=USER)
    target = make()
    target.import_(export)
    assert len([at for at in stored(target) if at[0] == ("turns",)]) == 1, "no filler is left"
    target.add_fact("The user plays chess.", user_id=USER, source_id="club")
    assert [r.content for r in target.get_all(user_id=USER)][-1] == "The user plays chess."
    applied = {i: v["applied"] for (ns, i), v in stored(target).items() if ns == ("turns",)}
    assert len(set(applied.values())) == 2


def test_importing_twice_changes_nothing(make):
    memory = fill(make(clock=Clock()))
    export = memory.export(user_id=USER)
    report = memory.import_(export)
    assert (report.written, report.already) == (0, 21)
    assert memory.export(user_id=USER).lines == export.lines


def test_an_import_that_was_interrupted_goes_on(make, other):
    export = fill(other).export(user_id=USER)
    target = make(clock=Clock())
    target.import_(export)
    for (ns, key), _ in list(stored(target).items())[:7]:  # as a store without transactions may leave it
        target.store.delete((*Reader(USER).root, *ns), key)
    report = target.import_(export)
    assert (report.written, report.already) == (7, 14)
    assert stored(target) == stored(other)


def test_a_dry_run_checks_and_writes_nothing(make, other):
    target = make(clock=Clock())
    report = target.import_(fill(other).export(user_id=USER), dry_run=True)
    assert (report.total, report.written, report.dry_run) == (21, 21, True)
    assert stored(target) == {}


def test_an_export_can_become_another_users_in_another_application(make):
    memory = fill(make(clock=Clock()))
    export = memory.export(user_id=USER)
    memory.import_(export.lines, user_id="u/2", app_name="copy")
    moved = memory.get_all(user_id="u/2", app_name="copy", status="all")
    mine = memory.get_all(user_id=USER, status="all")
    assert [(r.memory_id, r.content, r.seq) for r in moved] == [(r.memory_id, r.content, r.seq) for r in mine]
    assert {(r.user_id, r.app_name) for r in moved} == {("u/2", "copy")}
    again = memory.export(user_id="u/2", app_name="copy")
    assert USER not in again.text
    assert again.manifest.counts == export.manifest.counts
    assert memory.forget_source("s2", user_id="u/2", app_name="copy").erased


def test_a_user_who_has_other_data_is_refused(make, other):
    target = make(clock=Clock())
    target.add_fact("The user is a member.", user_id=USER, source_id="crm")
    before = stored(target)
    with pytest.raises(InvalidInput, match="already has 2 other items here"):
        target.import_(fill(other).export(user_id=USER))
    assert stored(target) == before


def test_a_pause_here_stays(make, other):
    target, source = make(), fill(other)
    target.pause(USER)
    exported = source.export(user_id=USER)
    target.import_(exported)
    assert target.settings(user_id=USER).paused
    assert len(target.get_all(user_id=USER)) == len(source.get_all(user_id=USER))
    assert target.import_(exported).written == 0


def manifest(lines: tuple[str, ...] | list[str], **fields: Any) -> list[str]:
    return [json.dumps(json.loads(lines[0]) | fields), *lines[1:]]


def signed(lines: list[dict[str, Any]], **fields: Any) -> list[str]:
    """An export of these lines whose hashes are right."""
    kinds = {kind: [_dump(r) for r in lines if r["kind"] == kind] for kind in CHECKS}
    first = {
        "format": "langmem_adapter",
        "schema": SCHEMA,
        "app_name": "default",
        "user_id": USER,
        "at": START.isoformat(),
        "counts": {kind: len(them) for kind, them in kinds.items()},
        "hashes": {kind: _hash(them) for kind, them in kinds.items()},
    }
    return [json.dumps(first | fields), *(line for them in kinds.values() for line in them)]


def test_a_damaged_export_is_refused_and_nothing_is_written(other, tmp_path):
    lines = list(fill(other).export(user_id=USER).lines)
    target = Memory(tmp_path / "memory.db")
    broken: list[tuple[list[str], str]] = [
        ([], "the export is empty"),
        (["\n"], "the export is empty"),
        (lines[1:], "line 1: not the manifest"),
        (["[]", *lines[1:]], "line 1 is not a JSON object"),
        (["{", *lines[1:]], "line 1 is not JSON"),
        (manifest(lines, schema=SCHEMA + 1), "line 1: schema 2 is newer than 1"),
        (manifest(lines, schema="1.x"), "line 1: manifest.schema"),
        (manifest(lines, counts={}), "9 facts in the export, 0 in its manifest"),
        (manifest(lines, surprise=1), "line 1: manifest.surprise"),
        (manifest(lines, user_id=""), "line 2: user_id is empty"),
        (manifest(lines, user_id="u2"), "line 2: it belongs to user 'Ada@example.org'"),
        (lines[:-1], "0 settings in the export, 1 in its manifest"),
        ([*lines, lines[1]], "line 23: facts 'm_.*' is there twice"),
        ([line.replace("Bonn", "Kiel") for line in lines], "the facts of the export are not those"),
        ([*lines[:5], lines[5][:-9], *lines[6:]], "line 6 is not JSON"),
        ([*lines[:5], "[" * 100_000, *lines[6:]], "line 6 is not JSON"),
        ([*lines[:5], '{"kind": "facts"}', *lines[6:]], "line 6: kind and key must be strings"),
        ([lines[0], lines[1].replace('["agent","helper"]', '["agent","x"]', 1)], "line 2: facts .* is not at its"),
        ([lines[0], lines[1].replace('"seq":', '"sequel":', 1)], r"line 2: value.seq"),
    ]
    for damaged, message in broken:
        with pytest.raises(InvalidInput, match=message):
            target.import_(damaged)
        assert stored(target) == {}
    target.close()


def test_a_fact_cannot_be_smuggled_to_others(make):
    memory = fill(make(clock=Clock()))
    rows = [json.loads(line) for line in memory.export(user_id=USER).lines[1:]]
    one = next(r for r in rows if r["kind"] == "facts" and r["place"] == [])
    for change in ({"user_id": "u2"}, {"app_name": "x"}, {"scope": "app", "user_id": None}, {"scope": "session"}):
        bad = one | {"value": one["value"] | change}
        with pytest.raises(InvalidInput, match="line 2"):
            memory.import_(signed([bad]), user_id="fresh")
    for place in (["..", "u2"], ["session"], ["session", "*"], [""], [1]):
        with pytest.raises(InvalidInput, match="line 2"):
            memory.import_(signed([one | {"place": place}]), user_id="fresh")
    assert stored(memory, "fresh") == {}
    assert memory.import_(signed([one]), user_id="fresh").written == 1


async def test_the_async_twins_do_the_same(make, other):
    target = make(clock=Clock())
    export = await fill(other).aexport(user_id=USER)
    await target.aimport_(export)
    assert await asyncio.to_thread(stored, target) == stored(other)
    report = await target.aimport_lines(["The user owns a boat."], user_id="u2", source_id="notes")
    assert report.operations == {"CREATE": 1}


# ---------------------------------------------------------------- purpose, legal basis, consent


TOPICS = [
    *(t for t in DEFAULT_TOPICS if t.name != "diet"),
    Topic(name="diet", exclusive=True, purpose="to order lunch", legal_basis="consent", consent=False),
    Topic(name="travel", purpose="to book journeys", legal_basis="contract"),
]


def test_a_fact_keeps_the_purpose_and_legal_basis_of_its_topic_or_its_own(make):
    memory = make(topics=TOPICS)
    memory.add_fact("The user flies to Rome.", user_id=USER, topic="travel", source_id="crm")
    memory.add_fact("The user flies home by train.", user_id=USER, topic="travel", source_id="crm",
                    purpose="to settle a complaint", legal_basis="legal claim")  # fmt: skip
    memory.add_fact("The user owns a boat.", user_id=USER, source_id="crm")
    told = {r.content: (r.purpose, r.legal_basis) for r in memory.get_all(user_id=USER)}
    assert told == {
        "The user flies to Rome.": ("to book journeys", "contract"),
        "The user flies home by train.": ("to settle a complaint", "legal claim"),
        "The user owns a boat.": (None, None),
    }
    assert memory.export(user_id=USER).text.count('"purpose":"to settle a complaint"') >= 1
    complaint = next(r for r in memory.get_all(user_id=USER) if "train" in r.content)
    memory.update(complaint.memory_id, user_id=USER, content="The user flew home by train.")
    [corrected] = [r for r in memory.get_all(user_id=USER) if "train" in r.content]
    assert (corrected.purpose, corrected.legal_basis) == ("to settle a complaint", "legal claim")


def test_nothing_is_written_on_a_topic_without_consent(make):
    said = "I'm vegan, allergic to nuts, and live in Rome."
    script = {
        said: [
            fact("The user is vegan.", "diet", "vegan", excerpt="I'm vegan"),
            fact("The user is allergic to nuts.", "diet/allergy", "allergic", slot="nuts", excerpt="allergic to nuts"),
            fact("The user lives in Rome.", "home/location", "Rome", excerpt="live in Rome"),
        ]
    }
    memory = make(topics=TOPICS, extractor=Scripted(script), keep_turns="excerpts")
    assert [o.content for o in memory.add(said, user_id=USER, session_id="s")] == ["The user lives in Rome."]
    refused = memory.add_fact("The user is vegan.", user_id=USER, topic="diet", source_id="crm")
    assert (refused.action, refused.memory_id, refused.reason) == ("NOOP", None, "no_consent")
    below = memory.add_fact("The user is allergic to figs.", user_id=USER, topic="diet/allergy", source_id="crm")
    assert below.reason == "no_consent"
    assert not any("vegan" in json.dumps(v) or "allergic" in json.dumps(v) for k, v in stored(memory).items())


def test_an_import_on_a_topic_without_consent_is_refused(make, other):
    target = make(topics=TOPICS)
    with pytest.raises(InvalidInput, match="on topic 'diet', to which there is no consent here"):
        target.import_(fill(other).export(user_id=USER))
    assert stored(target) == {}


# ---------------------------------------------------------------- mem0


def mem0(id: str, memory: Any, **fields: Any) -> dict[str, Any]:
    """A memory as mem0's get_all returns it."""
    return {
        "id": id,
        "memory": memory,
        "hash": "0cc175b9c0f1b6a831c399e269772661",
        "created_at": "2026-01-05T10:00:00.123456-08:00",
        "updated_at": None,
        "user_id": "ada",
    } | fields


def history(path: Any, *events: tuple[Any, ...]) -> Any:
    """A history database as mem0's SQLiteManager makes it: (memory_id, old, new, event, time)."""
    conn = sqlite3.connect(path)
    conn.execute(
        "CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT, "
        "created_at DATETIME, updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT)"
    )
    for n, (memory_id, old, new, event, at) in enumerate(events):
        first, then = (at, None) if event == "ADD" else ("2026-01-01T00:00:00+00:00", at)
        conn.execute(
            "INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)",
            (f"h{n}", memory_id, old, new, event, first, then, int(event == "DELETE")),
        )
    conn.commit()
    conn.close()
    return path


def test_memories_of_mem0_keep_owner_time_and_source(make):
    memory = make(clock=Clock())
    found = {
        "results": [
            mem0("a1", "Likes hiking", run_id="chat-7", agent_id="coach", metadata={"category": "hobby"}),
            mem0("b1", "Has a dog called Rex", user_id="bob", updated_at="2026-02-01 08:00:00"),
            mem0("a2", "Visits Lyon until April", expiration_date="2026-04-01"),
        ]
    }
    report = memory.import_mem0(found)
    assert (report.total, report.written, report.operations) == (3, 3, {"CREATE": 3})
    assert {k: (v.count, v.ids) for k, v in report.unmapped.items()} == {"field:metadata": (1, ("a1",))}
    [hiking, lyon] = sorted(memory.get_all(user_id="ada"), key=lambda r: r.content)
    [source] = hiking.sources
    assert (source.source_type, source.source_id, source.message_id) == ("user_implicit", "chat-7", "a1")
    assert source.at == datetime(2026, 1, 5, 18, 0, 0, 123456, UTC) == hiking.valid_from
    assert (hiking.agent_id, hiking.confidence, hiking.created_at) == ("coach", 0.65, START)
    assert lyon.expires_at == datetime(2026, 4, 2, tzinfo=UTC)
    [rex] = memory.get_all(user_id="bob")
    assert rex.valid_from == datetime(2026, 2, 1, 8, tzinfo=UTC)
    memory.forget_source("chat-7", user_id="ada")
    memory.forget_source("a2", user_id="ada")
    assert memory.get_all(user_id="ada", status="all") == []
    assert memory.import_mem0(found).already == 3, "what was erased does not come back"
    assert memory.get_all(user_id="ada", status="all") == []


def test_what_mem0_cannot_tell_is_reported(make):
    memory = make(clock=Clock())
    rows = [
        mem0("1", "  \u200b "),
        mem0("2", "x" * 2_001),
        mem0("3", "Was told to try yoga", attributed_to="assistant"),
        mem0("4", "Hello, how can I help?", role="assistant"),
        mem0("5", "## Steps taken", metadata={"memory_type": "procedural_memory"}),
        mem0("6", "Is in Rome", expiration_date="2026-02-28"),
        mem0("7", "Likes tea", user_id="bob"),
        mem0("8", "Likes tea", user_id=None),
        mem0("9", "Likes rye bread", role="user", categories=["food"]),
    ]
    report = memory.import_mem0(rows, user_id="ada")
    assert {reason: u.ids for reason, u in report.unmapped.items()} == {
        "empty": ("1",),
        "too_long": ("2",),
        "not_from_the_user": ("3", "4"),
        "procedural": ("5",),
        "expired": ("6",),
        "another_user": ("7",),
        "field:categories": ("9",),
    }
    assert [r.content for r in memory.get_all(user_id="ada")] == ["Likes tea", "Likes rye bread"]
    assert memory.import_mem0([mem0("8", "Likes tea", user_id=None)]).unmapped["no_user"].ids == ("8",)


def test_history_of_mem0_becomes_supersession(make, tmp_path):
    memory = make(clock=Clock())
    db = history(
        tmp_path / "history.db",
        ("a", None, "Lives in Rome", "ADD", "2026-01-01T00:00:00+00:00"),
        ("gone", None, "Is married", "ADD", "2026-01-02T00:00:00+00:00"),
        ("a", "Lives in Rome", "Lives in Oslo", "UPDATE", "2026-01-10T00:00:00+00:00"),
        ("b", None, "Lives in Rome", "ADD", "2026-01-11T00:00:00+00:00"),
        ("gone", "Is married", None, "DELETE", "2026-01-12T00:00:00+00:00"),
        ("a", "Lives in Oslo", "Lives in Bonn", "UPDATE", "2026-02-01T00:00:00+00:00"),
        ("c", None, "Lives in Bonn", "ADD", "2026-02-02T00:00:00+00:00"),
        ("c", "Lives in Bonn", "Owns a boat", "UPDATE", "2026-02-03T00:00:00+00:00"),
        ("stranger", None, "Likes cats", "ADD", "2026-02-02T00:00:00+00:00"),
    )
    rows = [
        mem0("b", "Lives in Rome", created_at="2026-01-11T00:00:00+00:00"),
        mem0("a", "Lives in Bonn", updated_at="2026-02-01T00:00:00+00:00"),
        mem0("c", "Owns a boat", updated_at="2026-02-03T00:00:00+00:00"),
    ]
    (tmp_path / "mem0.json").write_text(json.dumps({"results": rows}))
    seen: list[tuple[int, int]] = []
    report = memory.import_mem0(tmp_path / "mem0.json", history=db, progress=lambda n, total: seen.append((n, total)))
    assert (report.total, report.written) == (6, 6)
    assert seen == [(n, 6) for n in range(7)]
    assert {r: u.ids for r, u in report.unmapped.items()} == {"deleted": ("gone",), "history_of_unknown": ("stranger",)}
    records = memory.get_all(user_id="ada", status="all")
    assert [(r.content, r.status) for r in records] == [
        ("Lives in Rome", "superseded"),
        ("Lives in Oslo", "superseded"),
        ("Lives in Bonn", "active"),  # also what c said first, and it stands
        ("Owns a boat", "active"),
        ("Lives in Rome", "active"),
    ]
    rome, oslo, bonn, *_ = records
    assert (rome.superseded_by, oslo.superseded_by, bonn.supersedes) == (
        oslo.memory_id,
        bonn.memory_id,
        (oslo.memory_id,),
    )
    assert [r.valid_from for r in (rome, oslo, bonn)] == [
        datetime(2026, 1, 1, tzinfo=UTC),
        datetime(2026, 1, 10, tzinfo=UTC),
        datetime(2026, 2, 1, tzinfo=UTC),
    ]
    assert (rome.valid_to, oslo.valid_to) == (oslo.valid_from, bonn.valid_from)
    again = memory.import_mem0(rows, history=db)
    assert (again.written, again.already) == (0, 6)
    assert memory.get_all(user_id="ada", status="all") == records


def test_a_dry_run_of_mem0_says_what_would_happen(make):
    memory = make(topics=[*DEFAULT_TOPICS])
    memory.pause("bob")
    rows = [mem0("1", "Likes tea"), mem0("2", "Likes cake", user_id="bob")]
    report = memory.import_mem0(rows, dry_run=True)
    assert (report.total, report.written, report.operations, report.dry_run) == (2, 1, {}, True)
    assert report.unmapped["paused"].ids == ("2",)
    assert stored(memory, "ada") == {}
    assert memory.import_mem0(rows).written == 1
    assert stored(memory, "bob").keys() == {(("settings",), "owner")}


def test_a_forbidden_fact_is_not_imported(make):
    memory = make()
    [op] = memory.import_lines(["Likes tea"], user_id="ada", source_id="a").operations
    assert op == "CREATE"
    [tea] = memory.get_all(user_id="ada")
    memory.forbid(user_id="ada", memory_id=tea.memory_id)
    report = memory.import_mem0([mem0("1", "Likes tea")])
    assert (report.written, report.unmapped["forbidden"].ids) == (0, ("1",))


BROKEN: list[tuple[Any, str]] = [
    (None, "memories must be what mem0's get_all returns"),
    ({"memories": []}, "memories must be what mem0's get_all returns"),
    ([mem0("1", "Likes tea"), 7], r"results\[1\] must be an object"),
    ([mem0("1", "Likes tea"), mem0("", "x")], r"results\[1\].id must be a non-empty"),
    ([mem0("1", "Likes tea"), mem0("2", None)], r"results\[1\].memory must be a string"),
    ([mem0("1", "Likes tea"), mem0("2", "x", user_id=7)], r"results\[1\].user_id must be"),
    ([mem0("1", "Likes tea"), mem0("2", "x", user_id="a" * 600)], "has 600 bytes"),
    ([mem0("1", "Likes tea"), mem0("2", "x", run_id="\ud800")], r"results\[1\].run_id must be"),
    ([mem0("1", "Likes tea"), mem0("2", "x", created_at="yesterday")], r"results\[1\].created_at is not an ISO"),
    ([mem0("1", "Likes tea"), mem0("2", "x", updated_at="0001-01-01T00:00:00+14:00")], "out of range"),
    ([mem0("1", "Likes tea"), mem0("2", "x", metadata=[1])], r"results\[1\].metadata must be an object"),
]


@pytest.mark.parametrize(("rows", "message"), BROKEN, ids=range(len(BROKEN)))
def test_what_is_not_of_mem0_is_refused_whole(rows, message):
    memory = Memory(InMemoryStore())
    with pytest.raises(InvalidInput, match=message):
        memory.import_mem0(rows)
    assert stored(memory, "ada") == {}


def test_files_that_are_not_mem0s_are_refused(tmp_path):
    memory = Memory(InMemoryStore())
    rows = [mem0("1", "Likes tea")]
    (tmp_path / "text").write_text("{")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match="text is not JSON"):
        memory.import_mem0(tmp_path / "text")
    with pytest.raises(InvalidInput, match="bytes is not UTF-8"):
        memory.import_mem0(str(tmp_path / "bytes"))
    with pytest.raises(InvalidInput, match="there is no file"):
        memory.import_mem0(rows, history=tmp_path / "none")
    assert not (tmp_path / "none").exists()
    with pytest.raises(InvalidInput, match="text is not a history database"):
        memory.import_mem0(rows, history=tmp_path / "text")
    conn = sqlite3.connect(tmp_path / "else.db")
    conn.execute("CREATE TABLE history (memory_id, event)")
    conn.execute("INSERT INTO history VALUES ('a', 'ADD')")
    conn.commit()
    conn.close()
    with pytest.raises(InvalidInput, match="history has no column new_memory"):
        memory.import_mem0(rows, history=tmp_path / "else.db")
    wrong = history(tmp_path / "wrong.db", ("a", None, b"bytes", "ADD", "2026-01-01"))
    with pytest.raises(InvalidInput, match="history row 1"):
        memory.import_mem0(rows, history=wrong)
    assert stored(memory, "ada") == {}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = ["id", "memory", "user_id", "run_id", "agent_id", "created_at", "updated_at", "metadata", "role",
          "expiration_date", "attributed_to", "hash"]  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(odd=JSON | st.dictionaries(st.sampled_from(FIELDS), JSON | st.text(max_size=40), max_size=6))
def test_odd_memories_are_refused_or_taken_but_never_by_half(odd):
    memory = Memory(InMemoryStore())
    row = {"id": "2", "memory": "Likes cake", "user_id": "ada", **odd} if isinstance(odd, dict) else odd
    message = None
    try:
        report = memory.import_mem0([mem0("1", "Likes tea"), row])
    except InvalidInput as error:
        message = str(error)
    if message is not None:
        assert "results[1]" in message
        assert stored(memory, "ada") == {}
    else:
        owners = {"ada", *([row["user_id"]] if row.get("user_id") else [])}
        contents = sum(len(memory.get_all(user_id=u, status="all")) for u in owners)
        assert 1 <= contents <= report.written <= 2
    memory.close()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_an_export_with_one_line_changed_is_refused_or_the_same(data):
    lines = list(EXPORTED)
    at = data.draw(st.integers(0, len(lines) - 1))
    odd = data.draw(JSON.map(json.dumps) | st.text(max_size=30))
    if data.draw(st.booleans()):
        value = json.loads(lines[at])
        value[data.draw(st.sampled_from(sorted(value)))] = json.loads(json.dumps(data.draw(JSON)))
        odd = json.dumps(value)
    memory = Memory(InMemoryStore())
    try:
        memory.import_([*lines[:at], odd, *lines[at + 1 :]], user_id="u2")
    except InvalidInput:
        assert stored(memory, "u2") == {}
    else:  # only what no hash covers, such as the time in the manifest, may be another
        assert at == 0 or odd.strip("\r\n") == lines[at]
        assert len(stored(memory, "u2")) == len(lines) - 1
    memory.close()


def _exported() -> tuple[str, ...]:
    with Memory(InMemoryStore()) as memory:
        memory.add("I live in Rome.", user_id="u1", session_id="s1")
        memory.add("I live in Oslo.", user_id="u1", session_id="s2")
        memory.pause("u1")
        return memory.export(user_id="u1").lines


EXPORTED = _exported()


# ---------------------------------------------------------------- LangGraph stores


def test_items_of_a_langgraph_store_become_facts(make):
    theirs = InMemoryStore()
    put = theirs.put
    put(("memories", "ada"), "1", {"kind": "Memory", "content": {"content": "Prefers dark mode"}})
    put(("memories", "ada"), "2", {"content": "Works with Rust"})
    put(("memories", "ada", "old"), "1", {"data": "Owns a boat"})
    put(("memories", "ada"), "3", {"kind": "Triple", "content": {"subject": "Ada", "object": "Rex"}})
    put(("memories", "ada"), "4", {"content": ["a", "list"]})
    put(("memories", "ada"), "5", {"content": ""})
    put(("memories", "bob"), "6", {"content": "Is Bob"})
    memory = make(clock=Clock())
    report = memory.import_items(theirs, ("memories", "ada"), user_id="ada")
    assert (report.total, report.operations) == (3, {"CREATE": 3})
    assert {r: sorted(u.ids) for r, u in report.unmapped.items()} == {
        "no_text": ["memories/ada/3", "memories/ada/4"],
        "empty": ["memories/ada/5"],
    }
    assert sorted(r.content for r in memory.get_all(user_id="ada")) == [
        "Owns a boat",
        "Prefers dark mode",
        "Works with Rust",
    ]
    boat = next(r for r in memory.get_all(user_id="ada") if "boat" in r.content)
    [source] = boat.sources
    assert (source.source_type, source.source_id) == ("user_implicit", "memories/ada")
    assert source.message_id == "memories/ada/old/1"
    assert boat.valid_from == theirs.get(("memories", "ada", "old"), "1").updated_at
    assert memory.import_items(theirs, ("memories", "ada"), user_id="ada").already == 3
    memory.forget_source("memories/ada", user_id="ada")
    assert memory.get_all(user_id="ada", status="all") == []


def test_our_own_records_are_not_taken_for_somebody_elses_items(make):
    memory = make()
    memory.add("I live in Rome.", user_id="ada", session_id="s")
    report = memory.import_items(memory.store, (*Reader("ada").root, "facts"), user_id="ada")
    assert (report.total, report.unmapped["own_record"].count) == (0, 1)


def test_a_namespace_of_everybody_is_refused():
    memory = Memory(InMemoryStore())
    for namespace in ((), "memories", ("memories", 1)):
        with pytest.raises(InvalidInput, match="namespace must be a tuple"):
            memory.import_items(InMemoryStore(), namespace, user_id="ada")
    with pytest.raises(InvalidInput, match="store must be a LangGraph store"):
        memory.import_items({}, ("m",), user_id="ada")


@settings(max_examples=40, deadline=None)
@given(values=st.lists(st.dictionaries(st.sampled_from(["kind", "content", "data", "memory_id"]), JSON), max_size=4))
def test_odd_items_are_taken_or_reported(values):
    theirs = InMemoryStore()
    for n, value in enumerate(values):
        theirs.put(("m",), str(n), value)
    with Memory(InMemoryStore()) as memory:
        report = memory.import_items(theirs, ("m",), user_id="ada")
    assert report.total + sum(u.count for u in report.unmapped.values()) == len(values)


# ---------------------------------------------------------------- lines


def test_lines_become_facts_and_a_second_time_nothing(make, tmp_path):
    memory = make(clock=Clock())
    memory.add_fact("The user owns a boat.", user_id="ada", source_id="crm", source_type="user_explicit")
    path = tmp_path / "notes.txt"
    path.write_text(
        "The user owns a boat.\r\n\r\n  The user plays\tchess. \n" + "x" * 3_000 + "\nThe user plays chess.\n"
    )
    report = memory.import_lines(path, user_id="ada", source_id="notes")
    assert (report.total, report.written, report.already) == (3, 2, 1)
    assert report.operations == {"NOOP": 1, "CREATE": 1}
    assert report.unmapped["too_long"].ids == ("line 4",)
    boat, chess = memory.get_all(user_id="ada")
    assert [s.source_id for s in boat.sources] == ["crm", "notes"]
    assert (chess.content, chess.confidence) == ("The user plays chess.", 0.65)
    assert memory.import_lines(str(path), user_id="ada", source_id="notes").already == 3
    memory.forget_source("notes", user_id="ada")
    assert [r.content for r in memory.get_all(user_id="ada")] == ["The user owns a boat."]


def test_the_caller_may_say_what_kind_of_source_lines_are(make):
    memory = make()
    memory.import_lines(["The user is a member."], user_id="ada", source_id="crm", source_type="bootstrapped")
    assert memory.get_all(user_id="ada")[0].confidence == 0.95
    for wrong in ({"source_id": " "}, {"source_id": "crm", "source_type": "hearsay"}):
        with pytest.raises(InvalidInput, match="source"):
            memory.import_lines(["x"], user_id="ada", **wrong)
    with pytest.raises(InvalidInput, match="line 2 must be a str"):
        memory.import_lines(["x", 7], user_id="ada", source_id="crm")
    with pytest.raises(InvalidInput, match="'no such file' cannot be read as a file"):
        memory.import_lines("no such file", user_id="ada", source_id="crm")
    with pytest.raises(MemoryNotFound):
        memory.why("m_1", user_id="ada")
