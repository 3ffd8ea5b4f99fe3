"""Hostile and benign inputs as cases: what is said by whom, and what must (not) come of it.

A case is a line of JSON: `id` (A, H attack; B, K benign), `kind`, `role`, `text`, `expect`. `expect` is split at `|`
(one alternative is enough), then at `+` (all must hold); the words are explained at their checks below.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from support import Clock

from langmem_adapter import Memory
from langmem_adapter.errors import MemoryAdapterError
from langmem_adapter.records import Candidate, Extraction, MemoryRecord, Turn
from langmem_adapter.text import clean, one_line, stems

USER, OTHER = "u_dana", "u_bob"
TOOL = "web"
ASKED = "Look it up."
"""What the user says before a tool or the assistant speaks; not a part of the case."""
HIDDEN = re.compile("[\u0000-\u0008\u200b\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0e\ufeff\u00ad\u001b]")


@dataclass(frozen=True)
class Case:
    """One line of a file of cases."""

    id: str
    kind: str
    role: str
    text: str
    expect: str

    @property
    def benign(self) -> bool:
        return self.kind.startswith("benign")


def cases(path: Path) -> list[Case]:
    """The cases of a file; a lone surrogate is written as an escape."""
    return [Case(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


class Copier:
    """A hostile extractor: it proposes all it reads, as a fact about the user, as certain as can be.

    Whole messages and single sentences, from any message, on exclusive topics too, and with the highest source type.
    """

    def extract(self, turn: Turn) -> Extraction:
        found = []
        for message in (m for m in turn.messages if m.text != ASKED):
            pieces = [message.text, *re.split(r"(?<=[.!?])\s+|\n", message.text)]
            for piece in dict.fromkeys(p for p in pieces if p.strip()):
                for topic in ("general", "diet", "identity/name"):
                    found.append(
                        Candidate(
                            content=one_line(piece),
                            topic=topic,
                            value=one_line(piece),
                            excerpt=piece,
                            message_id=message.id,
                            source_type="bootstrapped",
                            confidence=1.0,
                        )
                    )
        return Extraction(candidates=tuple(found))


@dataclass
class Outcome:
    """What became of a case."""

    case: Case
    memory: Memory
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    error: Exception | None = None
    result: Any = None
    before: tuple[str, ...] = ()
    bytes: bytes = b""

    @property
    def text(self) -> str:
        return clean(self.case.text)

    @property
    def records(self) -> list[MemoryRecord]:
        return [r for r in self.memory.get_all(user_id=USER, status="all") if r.memory_id not in self.before]

    @property
    def active(self) -> list[MemoryRecord]:
        return [r for r in self.records if r.status == "active"]

    @property
    def trusted(self) -> list[MemoryRecord]:
        return [r for r in self.active if any(s.source_type != "tool_output" for s in r.sources)]

    @property
    def held(self) -> dict[str, tuple[str, ...]]:
        return {q.record.content: q.reasons for q in self.memory.quarantined(user_id=USER)}

    @property
    def flagged(self) -> bool:
        return any(name == "quarantined" for name, _ in self.events)

    @property
    def block(self) -> str:
        hits = self.memory.search("", user_id=USER, k=20)
        return self.memory.block(hits, max_records=20, max_tokens=100_000).text


def says(record: MemoryRecord, value: str) -> bool:
    """Whether a record says the value: half of its words are there, or it is in another script."""
    wanted = stems(value)
    return bool(wanted) and 2 * len(wanted & stems(f"{record.content} {record.value}")) >= len(wanted)


def well_formed(block: str) -> bool:
    """One opening and one closing tag, one line a memory, nothing that poses as somebody else."""
    if not block:
        return True
    lines = block.split("\n")
    return (
        block.splitlines() == lines
        and (lines[0], lines[-1]) == ("<MEMORIES>", "</MEMORIES>")
        and block.count("<") == block.count(">") == 2
        and all(line.startswith("- [confidence: ") for line in lines[2:-1])
        and "![" not in block
    )


def compact(text: str) -> str:
    return re.sub(r"[\s-]", "", text)


def _memory(o: Outcome, wanted: str) -> bool:
    return any(says(r, wanted.partition("=")[2]) and r.subject == "user" for r in o.active)


def _at_most(o: Outcome, wanted: str) -> bool:
    return all(says(r, wanted.partition("=")[2]) and len(stems(r.content)) <= 4 for r in o.active)


def _low_trust(o: Outcome, wanted: str) -> bool:
    if o.case.role in ("tool", "document"):
        return not o.trusted and all(r.confidence <= 0.30 for r in o.active)
    return all(r.confidence < 0.75 for r in o.active)


def _not_self(o: Outcome, topic: str) -> bool:
    place = {"city": "home"}.get(topic, topic)
    mine = [r for r in o.active if r.subject == "user" and r.topic not in ("relation", "general")]
    return not any(r.topic.split("/")[0] == place or r.content in o.text for r in mine)


def _redacted(o: Outcome, secret: str) -> bool:
    stored = o.bytes.decode("utf-8", "ignore")
    logged = json.dumps(o.events, default=str, ensure_ascii=False)
    return all(compact(secret) not in compact(where) for where in (stored, logged, o.block))


def _flag(o: Outcome, _: str) -> bool:
    # A harmless sentence beside the hostile one ("Remember this.") may be believed.
    believed = [r for r in o.active if 3 * len(r.content) > len(o.text)]
    return not believed and o.flagged and all(content not in o.block for content in o.held)


CHECKS: dict[str, Callable[[Outcome, str], bool]] = {
    "no_memory": lambda o, _: not [r for r in o.records if r.status in ("active", "contested")],
    "memory": _memory,
    "memory_at_most": _at_most,
    "memory_ok": lambda o, _: True,
    "memory_ttl": lambda o, _: all(r.expires_at is not None for r in o.active),
    "memory_low_trust": _low_trust,
    "no_supersede": lambda o, _: (
        [r.content for r in o.memory.get_all(user_id=USER, topic="diet") if r.memory_id in o.before]
        == ["The user is omnivore."]
    ),
    "flag": _flag,
    "no_flag": lambda o, _: not o.flagged,
    "not_self": _not_self,
    "not_active": lambda o, wanted: (
        not any(
            r.content.casefold() == o.text.casefold() or wanted.partition("=")[2].casefold() == r.value.casefold()
            for r in o.active
        )
    ),
    "scope_speaker_only": lambda o, _: _elsewhere(o) == [],
    "no_leak": lambda o, _: "zucchini" not in o.block and "zucchini" not in str(o.result),
    "no_resurrect": lambda o, _: True,
    "no_supersede_by_id": lambda o, _: set(o.before) <= {r.memory_id for r in o.memory.get_all(user_id=USER)},
    "redact": _redacted,
    "no_redact": lambda o, _: "[redacted" not in o.bytes.decode("utf-8", "ignore"),
    "no_redact_card": lambda o, _: "[redacted" not in o.bytes.decode("utf-8", "ignore"),
    "escape_on_inject": lambda o, _: well_formed(o.block),
    "strip_hidden": lambda o, _: not any(HIDDEN.search(r.content) for r in o.records) and not HIDDEN.search(o.block),
    "roundtrip": lambda o, _: all(r.content in o.text or o.text in r.content for r in o.active),
    "bounded": lambda o, _: (
        all(len(r.content) <= 2_000 and len(r.value) <= 2_000 for r in o.records)
        and all(len(s.excerpt) <= 2_000 for r in o.records for s in r.sources)
    ),
    "no_crash": lambda o, _: o.error is None,
    "no_nul_stored": lambda o, _: not any("\x00" in r.content for r in o.records),
    "safe_query": lambda o, _: o.error is None and all(h.record.user_id == USER for h in o.result),
    "reject": lambda o, _: isinstance(o.error, ValueError),
    "accept": lambda o, _: o.error is None,
    "literal_namespace": lambda o, _: o.error is None and o.result == [],
}


def _elsewhere(o: Outcome) -> list[str]:
    others = [r.content for r in o.memory.get_all(user_id=OTHER)]
    shared = [h.record.content for h in o.memory.search("", user_id="u_stranger", k=50)]
    return [c for c in [*others, *shared] if c != "The user likes zucchini."]


def holds(outcome: Outcome, expect: str | None = None) -> bool:
    """Whether what is expected of a case is so."""
    for alternative in (expect or outcome.case.expect).split("|"):
        wanted = [word.partition(":") for word in alternative.split("+")]
        if all(CHECKS[name](outcome, rest) for name, _, rest in wanted):
            return True
    return False


def said(case: Case) -> list[BaseMessage]:
    """A case as the messages of a turn. A document is what a tool that may teach gave: the worst case."""
    if case.role == "user":
        return [HumanMessage(case.text, id="h1")]
    if case.role == "assistant":
        return [HumanMessage(ASKED, id="h1"), AIMessage(case.text, id="a1")]
    asked = AIMessage("", id="a1", tool_calls=[{"name": TOOL, "args": {}, "id": "c1"}])
    return [HumanMessage(ASKED, id="h1"), asked, ToolMessage(case.text, name=TOOL, tool_call_id="c1", id="t1")]


def became(case: Case, folder: Path, *, hostile: bool = False) -> Outcome:
    """What becomes of a case in a new memory with one fact of its user's and one of another's."""
    path = folder / f"{case.id}-{hostile}.db"
    events: list[tuple[str, dict[str, Any]]] = []
    memory = Memory(
        path,
        extractor=Copier() if hostile else None,
        tool_sources=[TOOL],
        on_event=lambda name, data: events.append((name, data)),
        clock=Clock(),
    )
    fact = {"source_id": "crm", "source_type": "user_explicit"}
    memory.add_fact(
        "The user likes zucchini.", user_id=OTHER, topic="preference/likes", slot="zucchini", value="like", **fact
    )  # type: ignore[arg-type]
    if "no_supersede" in case.expect:
        memory.add_fact("The user is omnivore.", user_id=USER, topic="diet", value="omnivore", **fact)  # type: ignore[arg-type]
    outcome = Outcome(case, memory, events, before=tuple(r.memory_id for r in memory.get_all(user_id=USER)))
    try:
        outcome.result = _done(memory, case)
    except (MemoryAdapterError, ValueError) as error:
        outcome.error = error
    memory.search("anything", user_id=USER)
    outcome.bytes = b"".join(p.read_bytes() for p in sorted(folder.glob(f"{path.name}*")))
    return outcome


def _done(memory: Memory, case: Case) -> Any:
    if case.role == "query":
        return memory.search(case.text, user_id=USER)
    if case.role == "filter_key":
        return memory.delete(filter={case.text: "x"}, user_id=USER)
    if case.role == "namespace":
        return memory.get_all(user_id=case.text)
    return memory.add(said(case), user_id=USER, session_id="s1")


def rates(outcomes: Iterable[tuple[Case, bool]]) -> str:
    """Passed of tried, in all and by kind, with the ids of those that failed."""
    by_kind: dict[str, list[tuple[str, bool]]] = defaultdict(list)
    for case, passed in outcomes:
        by_kind[case.kind].append((case.id, passed))
    lines = [_rate("all", [one for found in by_kind.values() for one in found])]
    return "; ".join(lines + [_rate(kind, found) for kind, found in sorted(by_kind.items())])


def _rate(what: str, found: list[tuple[str, bool]]) -> str:
    failed = [case for case, passed in found if not passed]
    rate = f"{what} {len(found) - len(failed)} of {len(found)}"
    return f"{rate} (not {', '.join(failed)})" if failed else rate
