"""Whatever happens to two people's memories, in any order, against a dictionary of what should be believed."""

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from invariants import whole
from langchain_core.messages import HumanMessage
from support import SOAK, Clock

from langmem_adapter.consolidation.decide import taken_back
from langmem_adapter.errors import InvalidInput
from langmem_adapter.memory import Memory
from langmem_adapter.records import MemoryRecord
from langmem_adapter.trust import TRUST

USERS = ("Ann", "ann")
SOURCES = ("s1", "s2", "s3")
HOME, EMPLOYER = "home/location", "work/employer"
SAYING = {HOME: "I live in {}.", EMPLOYER: "I work at {}."}
WORDING = {HOME: "The user lives in {}.", EMPLOYER: "The user works at {}."}
HUMAN = ("user_explicit", "user_implicit")
FAST = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where a write waits for no disk: how much is tried depends on it."""

users = st.sampled_from(USERS)
words = st.integers(0, 4)
sources = st.sampled_from(SOURCES)
said = st.tuples(st.sampled_from([HOME, EMPLOYER]), words, sources, st.sampled_from(HUMAN))
edited = st.tuples(st.integers(0, 9), st.sampled_from([HOME, EMPLOYER]), st.one_of(st.none(), words))
reported = st.tuples(words, sources, st.sampled_from(["bootstrapped", "tool_output", "user_implicit"]))


def token(user: str, n: int) -> str:
    """A word that only this user ever says; it can be looked for in a file."""
    return f"Zq{'ULlu'[USERS.index(user) :: 2]}vexham{'abcdefgh'[n]}"


@dataclass
class Fact:
    """What the dictionary knows of one record on an exclusive topic."""

    value: str
    status: str
    support: list[tuple[str, str]]
    """Type and name of its sources."""
    expires: Any = None


@dataclass
class Believed:
    """One user's part of the dictionary."""

    facts: dict[str, list[Fact]] = field(default_factory=lambda: {HOME: [], EMPLOYER: []})
    """By topic, in the order in which they were learnt."""
    forbidden: set[tuple[str, str]] = field(default_factory=set)
    """Topic and value."""
    closed: set[str] = field(default_factory=set)
    """Topics."""
    paused: bool = False


@dataclass(frozen=True)
class Said:
    """One thing that was said, and when."""

    value: str
    kind: str
    source: str
    at: Any
    number: int | None = None
    """Of its message, if it was one."""


@dataclass
class Lately:
    """What was said on a topic since something else happened to it: so much can be taken back by an edit."""

    before: list[Fact]
    said: list[Said] = field(default_factory=list)


def decide(facts: list[Fact], value: str, kind: str, source: str, now: Any) -> str:
    """What one more fact on an exclusive topic leads to, done to the list: the rules of docs/architecture.md."""
    new = Fact(value, "active", [(kind, source)])
    active = next((f for f in reversed(facts) if f.status == "active" and (f.expires is None or f.expires > now)), None)
    rivals = [f for f in facts if f.status == "contested"]
    same = [f for f in rivals if f.value == value]
    if active is None:
        for f in same:
            f.status = "superseded"
            new.support = f.support + new.support
        facts.append(new)
        return "CREATE"
    if active.value == value:
        active.support.append((kind, source))
        if kind in HUMAN:
            for f in rivals:
                f.status = "retracted"
        return "NOOP"
    mine = [f for f in facts if any(s == source for _, s in f.support)]
    if kind == "bootstrapped" and mine and mine[-1].status == "superseded" and mine[-1].value == value:
        return "NOOP"
    weakest = min((TRUST[k] for k, _ in active.support if k != "tool_output"), default=TRUST["tool_output"])
    if TRUST[kind] >= weakest or (same and kind in HUMAN):
        for f in rivals:
            f.status = "superseded" if f in same else "retracted"
        active.status = "superseded"
        new.support = [s for f in same for s in f.support] + new.support
        facts.append(new)
        return "UPDATE"
    if same:
        same[-1].support.append((kind, source))
        return "NOOP"
    facts.append(Fact(value, "contested", [(kind, source)]))
    return "CONTEST"


class Memories(RuleBasedStateMachine):
    """Two users whose ids differ only in case, one file, a clock that is moved by hand."""

    actions: ClassVar[Counter[str]] = Counter()
    """What was done, over all examples."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(dir=FAST))
        self.opened: list[Memory] = []
        self.clock = Clock()
        self.open(self.folder / "m0.db")
        self.model = {user: Believed() for user in USERS}
        self.number = 0
        self.gone: set[str] = set()
        """Ids of erased records."""
        self.erased: set[str] = set()
        """Words that nothing says any more."""
        self.saved: Any = None
        self.lately: dict[tuple[str, str], Lately] = {}

    def open(self, path: Path) -> None:
        self.path = path
        self.memory = Memory(path, clock=self.clock, maintain_every=None)  # upkeep is a rule here
        self.opened.append(self.memory)

    def teardown(self) -> None:
        for memory in getattr(self, "opened", []):
            memory.close()
        shutil.rmtree(getattr(self, "folder", "nowhere"), ignore_errors=True)

    # what is said

    @rule(user=users, facts=st.lists(said, min_size=1, max_size=5), days=st.sampled_from([0, 0, 1, 400]))
    def say(self, user: str, facts: list[tuple[str, int, str, str]], days: int) -> None:
        for topic, word, source, meant in facts:
            # What expires is always stated outright: the dictionary knows no contest with something that expires.
            kind = "user_explicit" if topic == EMPLOYER else meant
            value = token(user, word)
            self.number += 1
            message = HumanMessage(SAYING[topic].format(value), id=f"h{self.number}")
            told: dict[str, Any] = {"user_id": user, "session_id": source, "source_type": kind}
            actions = [o.action for o in self.memory.add(message, **told)]
            assert actions == self.expected(user, topic, Said(value, kind, source, self.clock(), self.number))
        before = self.records(user)
        assert self.memory.add(message, **told) == []  # delivered again
        assert self.records(user) == before
        self.clock.forward(days=days)

    @rule(user=users, facts=st.lists(reported, min_size=1, max_size=5))
    def report(self, user: str, facts: list[tuple[int, str, Any]]) -> None:
        for word, source, kind in facts:
            value = token(user, word)
            op = self.memory.add_fact(
                WORDING[HOME].format(value), topic=HOME, value=value, user_id=user, source_id=source, source_type=kind
            )
            assert [op.action] == (self.expected(user, HOME, Said(value, kind, source, self.clock())) or ["NOOP"])

    @rule(user=users, facts=st.lists(said, min_size=1, max_size=3), edits=st.lists(edited, min_size=1, max_size=3))
    def edit(self, user: str, facts: list[tuple[str, int, str, str]], edits: list[tuple[int, str, int | None]]) -> None:
        """Messages are given other words under their ids: what they had said was never said."""
        self.say(user, facts, days=1)
        for which, topic, word in edits:
            latest = [(on, s) for (who, on), lately in self.lately.items() if who == user for s in lately.said]
            messages = [(on, s) for on, s in latest if s.number is not None]
            value = "" if word is None else token(user, word)
            if not messages:
                return
            was, one = messages[which % len(messages)]
            kind = "user_explicit" if topic == EMPLOYER else one.kind
            text = "It is raining." if word is None else SAYING[topic].format(value)
            told: dict[str, Any] = {"user_id": user, "session_id": one.source, "source_type": kind}
            actions = [o.action for o in self.memory.add(HumanMessage(text, id=f"h{one.number}"), **told)]
            if self.model[user].paused or (topic, value) == (was, one.value):
                assert actions == []
                continue
            lately = self.lately[user, was]
            lately.said.remove(one)
            self.model[user].facts[was] = [_copy(f) for f in lately.before]
            for other in lately.said:
                self.hear(self.model[user].facts[was], was, other)
            self.actions["edited"] += 1
            said = Said(value, kind, one.source, self.clock(), one.number)
            assert actions == ([] if word is None else self.expected(user, topic, said))

    def expected(self, user: str, topic: str, said: Said) -> list[str]:
        mine = self.model[user]
        if mine.paused or topic in mine.closed or (topic, said.value) in mine.forbidden:
            return []
        facts = mine.facts[topic]
        lately = self.lately.setdefault((user, topic), Lately([_copy(f) for f in facts]))
        lately.said.append(said)
        action = self.hear(facts, topic, said)
        self.actions[action] += 1
        self.erased.discard(said.value)
        return [action]

    def hear(self, facts: list[Fact], topic: str, said: Said) -> str:
        action = decide(facts, said.value, said.kind, said.source, said.at)
        if topic == EMPLOYER:  # it expires a year after it was last confirmed
            active = [f for f in facts if f.status == "active"]
            if active[-1].value == said.value:  # and not by what contests it
                active[-1].expires = said.at + timedelta(days=365)
        return action

    @rule(user=users, word=words)
    def correct(self, user: str, word: int) -> None:
        facts = self.model[user].facts[HOME]
        home = self.memory.get_all(user_id=user, topic=HOME)
        if not home:
            return
        value = token(user, word)
        if (HOME, value) in self.model[user].forbidden:
            with pytest.raises(InvalidInput, match="never to be remembered"):
                self.memory.update(home[0].memory_id, user_id=user, content=WORDING[HOME].format(value))
            return
        op = self.memory.update(home[0].memory_id, user_id=user, content=WORDING[HOME].format(value))
        self.lately.pop((user, HOME), None)
        [active] = [f for f in facts if f.status == "active"]
        if active.value == value:
            assert op.action == "NOOP"
            active.support.append(("user_explicit", "correction"))
            return
        assert op.action == "UPDATE"
        active.status = "superseded"
        same = [f for f in facts if f.status == "contested" and f.value == value]
        for f in facts:
            if f.status == "contested":
                f.status = "superseded" if f in same else "retracted"
        facts.append(Fact(value, "active", [*(s for f in same for s in f.support), ("user_explicit", "correction")]))
        self.erased.discard(value)

    # what is taken back

    @rule(user=users, source=sources)
    def revoke(self, user: str, source: str) -> None:
        before = self.records(user)
        receipt = self.memory.forget_source(source, user_id=user)
        assert receipt.state == "done"
        self.look(user, before)
        assert not any(s.source_id == source for r in self.records(user) for s in r.sources)

    @rule(user=users, which=st.integers(0, 9), previous=st.sampled_from(["stay", "restore"]))
    def erase(self, user: str, which: int, previous: Any) -> None:
        before = self.records(user)
        if before:
            one = before[which % len(before)]
            self.memory.delete(one.memory_id, user_id=user, previous=previous)
            self.look(user, before)
            assert self.memory.get(one.memory_id, user_id=user) is None

    @rule(user=users)
    def erase_all(self, user: str) -> None:
        before = self.records(user)
        if len(before) < 3:  # or nobody ever knows much
            return
        self.memory.delete_all(user_id=user)
        self.look(user, before)
        assert self.records(user) == []

    @rule(user=users)
    def keep_up(self, user: str) -> None:
        """What expired 30 days ago goes, and what faded; all else is believed as before."""
        before = self.records(user)
        report = self.memory.maintain(user)
        assert report.failed == {}
        assert {one.action for one in report.done} <= {"expire", "prune", "collect", "rescore"}
        now = self.clock()
        erased = {one.id for one in report.done if one.action in ("expire", "prune")}
        self.actions["kept up"] += len(report.done)
        self.look(user, before)
        left = {r.memory_id: r for r in self.records(user)}
        assert {r.memory_id for r in before} - left.keys() == erased
        faded = {one.id for one in report.done if one.action != "expire"}
        for r in before:
            if r.is_active(now) and r.memory_id not in faded:
                assert left[r.memory_id].is_active(now)

    def look(self, user: str, before: list[MemoryRecord]) -> None:
        """Take from the store what is left after an erasure; remember what must not come back."""
        left = self.records(user)
        self.gone |= {r.memory_id for r in before} - {r.memory_id for r in left}
        gone = {r.value for r in before} - {r.value for r in left}
        self.actions["erased"] += len(before) - len(left)
        self.erased |= {v for v in gone if v}
        for topic in (HOME, EMPLOYER):
            self.lately.pop((user, topic), None)
            self.model[user].facts[topic] = [
                Fact(r.value, r.status, [(s.source_type, s.source_id) for s in r.sources if s.role == "support"],
                     r.expires_at) for r in left if r.topic == topic and not taken_back(r)
            ]  # fmt: skip

    # what the user wants

    @rule(user=users, on=st.sampled_from([True, False, False]))
    def pause(self, user: str, on: bool) -> None:
        (self.memory.pause if on else self.memory.resume)(user)
        self.model[user].paused = on

    @rule(user=users, which=st.integers(0, 9))
    def forbid(self, user: str, which: int) -> None:
        before = self.records(user)
        if before:
            one = before[which % len(before)]
            self.memory.forbid(user_id=user, memory_id=one.memory_id)
            self.model[user].forbidden.add((one.topic, one.value))
            self.look(user, before)

    @rule(user=users, topic=st.just(EMPLOYER))
    def forbid_topic(self, user: str, topic: str) -> None:
        before = self.records(user)
        self.memory.forbid(user_id=user, topic=topic)
        self.model[user].closed.add(topic)
        self.look(user, before)
        assert [r for r in self.records(user) if r.topic == topic] == []

    @rule(user=users)
    def allow(self, user: str) -> None:
        self.memory.allow(user_id=user)
        self.model[user].closed, self.model[user].forbidden = set(), set()

    # what happens to the process and the file

    @rule(moved=st.booleans())
    def reopen(self, moved: bool) -> None:
        """`moved`: both users are exported, and go on in another file."""
        exports = [self.memory.export(user_id=user) for user in USERS] if moved else []
        self.lately = {} if moved else self.lately
        self.memory.close()
        if moved:
            self.path.unlink()
            self.number += 1
            self.path = self.folder / f"m{self.number}.db"
        self.open(self.path)
        for export in exports:
            self.memory.import_(export)

    @rule()
    def crash(self) -> None:
        """The process is gone, its files are as they were: the log was not moved into the file."""
        self.number += 1
        path = self.folder / f"m{self.number}.db"
        for end in ("", "-wal"):
            if Path(f"{self.path}{end}").exists():
                shutil.copy(f"{self.path}{end}", f"{path}{end}")
        self.memory.close()
        self.path.unlink()
        self.open(path)

    @rule()
    def back_up(self) -> None:
        self.number += 1
        path = self.folder / f"saved{self.number}"
        self.memory.store.backup(path)  # type: ignore[attr-defined]
        self.saved = (path, _copied(self.model), set(self.gone), set(self.erased))

    @precondition(lambda self: self.saved is not None)
    @rule()
    def restore(self) -> None:
        """What was erased since the backup is back: the receipt says that backups are out of reach."""
        saved, model, gone, erased = self.saved
        self.lately = {}
        self.model, self.gone, self.erased = _copied(model), set(gone), set(erased)
        self.memory.close()
        self.path.unlink()
        self.number += 1
        shutil.copy(saved, self.folder / f"m{self.number}.db")
        self.open(self.folder / f"m{self.number}.db")

    # what always holds

    def records(self, user: str) -> list[MemoryRecord]:
        return self.memory.get_all(user_id=user, status="all")

    @invariant()
    def all_is_as_the_dictionary_says(self) -> None:
        now = self.clock()
        for user in USERS:
            records = whole(self.memory, user)
            other = token(USERS[1 - USERS.index(user)], 0)[:-1]
            assert not any(other in r.content for r in records), "the other user's words"
            assert not self.gone & {r.memory_id for r in records}, "an erased id is back"
            for topic, facts in self.model[user].facts.items():
                for status in ("active", "contested"):
                    found = sorted(r.value for r in records if (r.topic, r.status) == (topic, status))
                    assert found == sorted(f.value for f in facts if f.status == status)
            alive = {r.memory_id for r in records if r.is_active(now)}
            searched = [h.record for q in ("", f"lives in {token(user, 1)}") for h in self.memory.search(
                q, user_id=user, k=100)]  # fmt: skip
            assert {r.memory_id for r in searched} == (set() if self.model[user].paused else alive)
            assert {r.memory_id for r in self.memory.get_all(user_id=user)} == alive
            self.actions["expired"] += sum(r.status == "active" for r in records) - len(alive)
        self.actions["steps"] += 1

    @invariant()
    def no_erased_byte_is_in_the_files(self) -> None:
        files = [p for p in (self.path, Path(f"{self.path}-wal")) if p.exists()]
        data = b"".join(p.read_bytes() for p in files).lower()
        assert [word for word in self.erased if word.lower().encode() in data] == []


def _copy(fact: Fact) -> Fact:
    return Fact(fact.value, fact.status, list(fact.support), fact.expires)


def _copied(model: dict[str, Believed]) -> dict[str, Believed]:
    return {
        user: Believed(
            {topic: [_copy(f) for f in facts] for topic, facts in b.facts.items()},
            set(b.forbidden), set(b.closed), b.paused,
        )
        for user, b in model.items()
    }  # fmt: skip


@pytest.mark.parametrize("part", range(4 if SOAK else 1))
def test_any_order_of_events_leaves_what_the_dictionary_says(part: int, tried: Callable[[str], None]) -> None:
    Memories.actions.clear()
    run_state_machine_as_test(
        Memories,
        settings=settings(
            max_examples=750 if SOAK else 120,
            stateful_step_count=50 if SOAK else 20,
            derandomize=not SOAK,  # the long form is there to find what is new
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )
    assert min(Memories.actions[a] for a in ("CREATE", "UPDATE", "NOOP", "erased", "edited")) > 0
    tried(str(dict(Memories.actions)))
