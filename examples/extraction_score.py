"""How much of what is worth remembering was remembered: memories against labels made by hand.

A label file is JSONL. Its first line says what was labelled: `{"sample": …, "user": …, "first": TURN, "last": TURN}`,
all turns from `first` to `last`. Each further line is a fact: the `turns` that say it, its `topic`, `words` that a
memory of it has, and `optional` where one may doubt that it is worth keeping.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from conversations import Conversation, Malformed, Session

from langmem_adapter.records import MemoryRecord

RULE = (
    "A memory matches a label if it rests on one of the label's turns and each of the label's words (or one of its "
    "alternatives, a|b) begins a word of the memory's content. Precision: memories that match a label, of all "
    "memories. Recall: labels that a memory matches, of all labels. Optional labels, and memories that match only "
    "such, are left out of both. Superseded memories count too; topics are not compared."
)


@dataclass(frozen=True)
class Label:
    """A fact worth remembering."""

    turns: tuple[str, ...]
    topic: str
    words: tuple[str, ...]
    optional: bool = False

    def matches(self, memory: MemoryRecord) -> bool:
        """Whether the memory is of this fact."""
        said = re.findall(r"\w+", memory.content.casefold())
        return any(s.message_id in self.turns for s in memory.sources) and all(
            any(word.startswith(begin) for word in said for begin in alternatives.split("|"))
            for alternatives in self.words
        )


@dataclass(frozen=True)
class Labels:
    """The facts of a stretch of a conversation."""

    sample: str
    user: str
    first: str
    last: str
    facts: tuple[Label, ...]

    def stretch(self, conversation: Conversation) -> Conversation:
        """What was labelled of the conversation; Malformed if it does not have these turns in this order."""
        ids = [said.id for session in conversation.sessions for said in session.said]
        if conversation.id != self.sample:
            raise Malformed(f"the labels are of sample {self.sample!r}, not of {conversation.id!r}")
        strange = [t for t in (self.first, self.last, *(t for f in self.facts for t in f.turns)) if t not in ids]
        if strange:
            raise Malformed(f"the labels name turn {strange[0]!r}, which is not in {conversation.id!r}")
        kept = set(ids[ids.index(self.first) : ids.index(self.last) + 1])
        cut = (Session(s.id, tuple(said for said in s.said if said.id in kept)) for s in conversation.sessions)
        return Conversation(conversation.id, tuple(s for s in cut if s.said), conversation.speakers)


@dataclass(frozen=True)
class Score:
    """Counts; `missed` are labels without a memory, `strange` memories without a label."""

    labels: int
    found: int
    memories: int
    right: int
    missed: tuple[Label, ...]
    strange: tuple[MemoryRecord, ...]

    def lines(self, name: str) -> list[str]:
        """The figures, for people."""
        return [
            f"{name}: precision {_share(self.right, self.memories)}, recall {_share(self.found, self.labels)}",
            *(f"  missed {' '.join(f.turns)} ({f.topic}): {' '.join(f.words)}" for f in self.missed),
            *(f"  without a label: {m.content}" for m in self.strange),
        ]


def load(path: Path) -> Labels:
    """The labels in a file. Malformed, with the line, if it is not one."""
    facts: list[Label] = []
    head: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            given = json.loads(line)
            if number == 1:
                head = {key: str(given[key]) for key in ("sample", "user", "first", "last")}
            else:
                words, turns = tuple(given["words"]), tuple(given["turns"])
                if not words or not turns:
                    raise ValueError("a label needs words and turns")
                facts.append(Label(turns, given["topic"], words, given.get("optional", False)))
        except (ValueError, KeyError, TypeError) as error:
            raise Malformed(f"{path}, line {number}: not a label: {error}") from error
    if not head:
        raise Malformed(f"{path}: there are no labels in it")
    return Labels(**head, facts=tuple(facts))


def score(labels: Labels, memories: Sequence[MemoryRecord]) -> Score:
    """What was found of the labels, and what else is remembered. See `RULE`."""
    wanted = [f for f in labels.facts if not f.optional]
    missed = tuple(f for f in wanted if not any(f.matches(m) for m in memories))
    strange = tuple(m for m in memories if not any(f.matches(m) for f in labels.facts))
    # What matches optional labels alone says nothing about precision either way.
    counted = [m for m in memories if m in strange or any(f.matches(m) for f in wanted)]
    return Score(
        labels=len(wanted),
        found=len(wanted) - len(missed),
        memories=len(counted),
        right=len(counted) - len(strange),
        missed=missed,
        strange=strange,
    )


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.2f} ({part} of {whole})" if whole else "undefined (0 of 0)"
