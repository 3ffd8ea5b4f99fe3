"""A file that is full, read-only or damaged: the turn answers, errors are typed and name it, what was there stays."""

import random
import shutil
import subprocess
import sys
import textwrap
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from faults.concierge import KNOWN, Concierge, taught
from invariants import whole
from langchain_core.messages import HumanMessage
from support import SOAK

from langmem_adapter.errors import StoreCorrupt, StoreError, StoreFull, StoreReadOnly
from langmem_adapter.memory import Memory
from langmem_adapter.namespaces import Reader

# full


def test_a_full_file_fails_no_turn_and_what_was_said_is_learnt_when_there_is_room(
    tmp_path: Path, tried: Callable[[str], None]
) -> None:
    taught(tmp_path / "m.db")
    with Concierge(tmp_path / "m.db") as concierge:
        memory = concierge.memory
        _limit(memory, 2)
        lost = 0
        for n in range(30):
            before = whole(memory)
            concierge.say(f"I love dish{n}. {'And much more. ' * 100}", id=f"h{n}")
            told = concierge.told()
            lost += "remember_failed" in told or "recall_failed" in told
            if "learnt" not in told:
                assert whole(memory) == before  # no partial facts
        assert lost > 0
        with pytest.raises(StoreFull, match=r"m\.db") as caught:
            memory.add(HumanMessage(f"I live in Rome. {'And more. ' * 9_000}", id="big"), user_id="u", session_id="s")
        assert isinstance(caught.value, OSError)
        assert [h.record.content for h in memory.search("diet", user_id="u", topics="diet")] == [KNOWN]
        _limit(memory, 1_000_000)
        concierge.say("I live in Oslo.", id="later")
        memory.drain(60)
        memory.retry(user_id="u")  # those that had got as far as the queue wait for a minute
        assert memory.drain(60)
        assert "turns_lost" not in concierge.told()
        known = [r.content for r in whole(memory)]
        assert "The user lives in Oslo." in known
        assert [n for n in range(30) if not any(f"dish{n}." in content for content in known)] == []
        assert memory.store.doctor(deep=True).problems == ()  # type: ignore[attr-defined]
        tried(f"30 turns on a full file, {lost} of them reported a failure, all were answered, and learnt at last")


def _limit(memory: Memory, more: int) -> None:
    with memory.store._connections.alone() as conn:  # type: ignore[attr-defined]
        pages = conn.execute("PRAGMA page_count").fetchone()[0]
        conn.execute(f"PRAGMA max_page_count = {pages + more}")


SMALL_DISK = """
    import subprocess, sys
    from pathlib import Path
    folder = Path(sys.argv[1])
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True, text=True)
    if done.returncode:
        print("no tmpfs:", done.stderr.strip())
        sys.exit()
    from langmem_adapter.errors import StoreFull
    from langmem_adapter.memory import Memory
    with Memory(folder / "m.db") as memory:
        memory.add("I'm a vegetarian.", user_id="u", session_id="s")
        known, full = 1, 0
        for n in range(400):
            try:
                memory.add(f"I love dish{n}. " + "And more. " * 200, user_id="u", session_id="s")
                known += 1
            except StoreFull as error:
                assert "m.db" in str(error), error
                full += 1
            if full == 3:
                break
        assert full == 3, "the disk was never full"
        assert len(memory.get_all(user_id="u")) == known
        assert memory.search("vegetarian diet", user_id="u", k=1)[0].record.topic == "diet"
        subprocess.run(["mount", "-o", "remount,size=16m", folder], check=True)
        memory.add("I live in Oslo.", user_id="u", session_id="s")
        assert memory.get_all(user_id="u")[-1].content == "The user lives in Oslo."
        assert memory.store.doctor(deep=True).problems == ()
    print("full after", known)
"""


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare to mount a small disk")
def test_a_full_disk_costs_the_new_fact_only_until_there_is_room(tmp_path: Path, tried: Callable[[str], None]) -> None:
    command = ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-c", textwrap.dedent(SMALL_DISK)]
    done = subprocess.run([*command, tmp_path], capture_output=True, text=True, timeout=120)
    if "no tmpfs" in done.stdout or "unshare" in done.stderr:
        pytest.skip(f"no small disk can be mounted here ({done.stdout}{done.stderr:.200})")
    assert (done.returncode, done.stderr) == (0, "")
    tried(f"a disk of 1 MB, {done.stdout.strip()} facts")


# read-only


def test_a_read_only_file_is_read_and_the_turn_answers(tmp_path: Path, tried: Callable[[str], None]) -> None:
    taught(tmp_path / "m.db")
    with Concierge(f"file:{tmp_path / 'm.db'}?mode=ro") as concierge:
        concierge.say("Which diet do I follow? I live in Rome.", id="h")
        assert set(concierge.told()) == {"remember_failed"}
        memory = concierge.memory
        assert [h.record.content for h in memory.search("diet", user_id="u")] == [KNOWN]
        [record] = whole(memory)
        writes: list[Callable[[], object]] = [
            lambda: memory.add("I live in Rome.", user_id="u"),
            lambda: memory.add_fact("The user lives in Rome.", user_id="u", source_id="crm"),
            lambda: memory.update(record.memory_id, user_id="u", content="The user is vegan."),
            lambda: memory.delete(record.memory_id, user_id="u"),
            lambda: memory.forget_source("s0", user_id="u"),
            lambda: memory.delete_all(user_id="u"),
            lambda: memory.pause("u"),
            lambda: memory.forbid(topic="diet", user_id="u"),
        ]
        for write in writes:
            with pytest.raises(StoreReadOnly, match=r"m\.db") as caught:
                write()
            assert isinstance(caught.value, PermissionError)
        assert whole(memory) == [record]
    tried(f"{len(writes)} kinds of writes refused, 1 turn answered")


def test_a_read_only_file_is_recalled_from(tmp_path: Path, tried: Callable[[str], None]) -> None:
    taught(tmp_path / "m.db")
    with Concierge(f"file:{tmp_path / 'm.db'}?mode=ro") as concierge:
        assert KNOWN in concierge.say("Which diet do I follow?", id="h")
    tried("1 turn")


# damaged


def _many(path: Path) -> None:
    with Memory(path) as memory:
        for n in range(120):
            memory.add_fact(
                f"The user owns object number {n}. {'It is large. ' * 20}", user_id=f"u{n % 3}", source_id=f"crm{n}"
            )


@pytest.mark.parametrize("damage", ["pages", "header", "cut", "empty page"])
def test_a_damaged_file_is_a_typed_error_and_left_as_it_is(
    damage: str, tmp_path: Path, tried: Callable[[str], None]
) -> None:
    _many(tmp_path / "good.db")
    good = (tmp_path / "good.db").read_bytes()
    pages = len(good) // 8192
    assert pages > 21
    errors = answered = 0
    seeds = range(100 if SOAK else 4)
    for seed in seeds:
        rng = random.Random(seed)
        data = bytearray(good)
        if damage == "header":
            data[:100] = rng.randbytes(100)
        elif damage == "cut":
            del data[rng.randrange(100, len(data)) :]
        elif damage == "empty page":
            page = rng.randrange(1, pages)
            data[page * 8192 : (page + 1) * 8192] = bytes(8192)
        else:
            for page in rng.sample(range(1, pages), 20):
                for _ in range(100):
                    data[page * 8192 + rng.randrange(8192)] ^= rng.randrange(1, 256)
        path = tmp_path / f"m{seed}.db"
        path.write_bytes(data)
        attempts: list[Callable[[Memory], object]] = [
            lambda m: [m.search("object", user_id=f"u{i}", k=50) for i in range(3)],
            lambda m: [m.get_all(user_id=f"u{i}", status="all") for i in range(3)],
            lambda m: m.receipts(user_id="u1"),
            lambda m: m.store.doctor(deep=True),  # type: ignore[attr-defined]
        ]
        told: list[str] = []
        for attempt in attempts:
            try:
                with Memory(path) as memory:
                    attempt(memory)
            except StoreError as error:
                told.append(str(error))
        errors += len(told)
        assert all(path.name in text for text in told)
        assert told or damage == "empty page"  # which may have been a free one
        assert path.read_bytes() == data, "reading a damaged file changed it"
        answered += _answers(path)
        assert path.stat().st_size >= len(data), "it was made anew"
    tried(f"{len(seeds)} files, {errors} typed errors, {answered} turns answered")


def _answers(path: Path) -> int:
    """A turn on the damaged file, if it can be opened at all."""
    try:
        with Concierge(path) as concierge:
            concierge.say("Which objects do I own? I live in Rome.", user="u1")
    except StoreCorrupt:  # when it was opened: there is no turn yet
        return 0
    return 1


def test_a_file_that_is_damaged_while_it_is_open_fails_no_turn(tmp_path: Path, tried: Callable[[str], None]) -> None:
    _many(tmp_path / "m.db")
    with Concierge(tmp_path / "m.db") as concierge:
        assert "object" in concierge.say("Which object do I own?", user="u1")
        with (tmp_path / "m.db").open("r+b") as file:  # under SQLite's feet
            file.seek(8192)
            file.write(random.Random(1).randbytes(30 * 8192))
        for n in range(3):
            concierge.say(f"I live in Rome{n}.", user=f"new{n}")
        told = concierge.told()
        assert "recall_failed" in told or "remember_failed" in told or told.count("learnt") == 4
        with pytest.raises(StoreError, match=r"m\.db"):
            concierge.memory.store.search(("memories",), limit=1_000)
        tried("30 pages overwritten, 3 turns answered")


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("facts", {"sources": "my secret words"}),
        ("facts", {"my secret words": 1}),
        ("turns", {"at": "my secret words"}),
        ("settings", {"paused": "my secret words"}),
    ],
    ids=["a field", "an unknown field", "a turn", "the settings"],
)
def test_a_damaged_value_is_a_typed_error_that_tells_nothing_of_it(
    tmp_path: Path, kind: str, fields: dict[str, object]
) -> None:
    taught(tmp_path / "m.db")
    with Concierge(tmp_path / "m.db") as concierge:
        memory = concierge.memory
        namespace = Reader("u").space(kind)
        if kind == "settings":
            memory.pause("u")
        items = memory.store.search(namespace)
        for item in items:
            memory.store.put(namespace, item.key, item.value | fields)
        with pytest.raises(StoreCorrupt, match="is damaged") as caught:  # noqa: PT012 - either
            memory.search("diet", user_id="u")
            memory.forget_source("t", user_id="u", dry_run=True)
        assert any(repr(item.key) in str(caught.value) for item in items)
        assert "secret" not in str(caught.value)
        assert "secret" not in "".join(traceback.format_exception(caught.value))
        assert concierge.say("Hello", id="h9")
        for item in items:  # it was left as it was
            assert memory.store.get(namespace, item.key).value == item.value | fields


@pytest.mark.parametrize(
    ("kind", "value", "asked"),
    [
        ("receipts", {}, lambda m: m.receipts(user_id="u")),
        ("receipts", {"receipt": {"receipt_id": "r_other"}}, lambda m: m.receipts(user_id="u")),
        ("facts", {"memory_id": "m_other"}, lambda m: m.maintain("u")),
        ("facts", {"memory_id": "m_other"}, lambda m: m.get_all(user_id="u")),
        ("turns", {"turn_id": "other"}, lambda m: m.forget_source("s0", user_id="u", dry_run=True)),
        ("settings", {}, lambda m: m.settings(user_id="u")),
        ("settings", {}, lambda m: m.delete_all(user_id="u")),
        ("settings", {}, lambda m: m.add("I like tea.", user_id="u", session_id="t")),
    ],
)
def test_a_value_that_lost_its_fields_or_has_anothers_id_is_a_typed_error(
    tmp_path: Path, kind: str, value: dict[str, object], asked: Callable[[Memory], object]
) -> None:
    """So nobody's pause or legal hold ends because what tells of it is damaged."""
    taught(tmp_path / "m.db")
    with Memory(tmp_path / "m.db") as memory:
        memory.add("I like tea.", user_id="u", session_id="s9")
        memory.forget_source("s9", user_id="u")
        if kind == "settings":
            memory.hold("u", "audit")
            memory.pause("u")
        namespace = Reader("u").space(kind)
        for item in memory.store.search(namespace):
            memory.store.put(namespace, item.key, item.value | value if value else {})
        with pytest.raises(StoreCorrupt, match="is damaged"):
            asked(memory)
        assert len(memory.store.search(Reader("u").space("facts"))) == 1


def test_a_cut_log_loses_the_last_turns_and_no_part_of_one(tmp_path: Path, tried: Callable[[str], None]) -> None:
    with Memory(tmp_path / "m.db") as memory:
        for n in range(12):
            memory.add(HumanMessage(f"I live in City{n}.", id=f"h{n}"), user_id="u", session_id="s")
        shutil.copy(tmp_path / "m.db", tmp_path / "main")
        log = (tmp_path / "m.db-wal").read_bytes()
    rng = random.Random(3)
    kept = set()
    for n in range(40 if SOAK else 8):
        path = tmp_path / f"cut{n}.db"
        shutil.copy(tmp_path / "main", path)
        (tmp_path / f"cut{n}.db-wal").write_bytes(log[: rng.randrange(len(log))])
        with Memory(path) as memory:
            records = whole(memory)
            assert [r.content for r in records] == [f"The user lives in City{i}." for i in range(len(records))]
            assert sum(r.status == "active" for r in records) == min(1, len(records))
            assert memory.store.doctor(deep=True).problems == ()  # type: ignore[attr-defined]
            kept.add(len(records))
    assert len(kept) > 2
    tried(f"{40 if SOAK else 8} cuts, {min(kept)} to {max(kept)} of 12 turns left, none in part")
