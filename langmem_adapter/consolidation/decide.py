"""What becomes of a candidate, given what is known: pure, the same with and without a model.

What the guard holds back goes into quarantine and touches nothing. For the rest three questions, in order. Is it the
same fact as a record? Then nothing new, but one more source. Does it stand on an occupied exclusive slot? Then it
replaces the record, if the trust gate lets it, or is kept as a challenger. Otherwise it is new.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from langmem_adapter.records import Action, Candidate, Judgement, MemoryRecord
from langmem_adapter.text import negated, numbers, saying, says_the_same, stems
from langmem_adapter.text import slot as normal
from langmem_adapter.topics import Topics
from langmem_adapter.trust import TrustPolicy

HUMAN = ("user_explicit", "user_implicit")
TAKEN_BACK = "turn_edited"
"""Why a record ended whose message does not say it any more."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One operation before it is applied."""

    action: Action
    reason: str
    target: MemoryRecord | None = None
    """The record it is done to: replaced, corroborated, contested, retracted."""
    absorbed: tuple[MemoryRecord, ...] = ()
    """Records that assert the same as the new one: their support joins it and they close."""
    displaced: tuple[MemoryRecord, ...] = ()
    """What else the new record replaces: it was moved to their slot."""
    closed: tuple[MemoryRecord, ...] = ()
    """Challengers that lost."""
    behind: MemoryRecord | None = None
    """A record said later: the new one is kept as what it superseded."""


def decide(
    candidate: Candidate,
    known: Iterable[MemoryRecord],
    *,
    source_id: str,
    topics: Topics,
    policy: TrustPolicy,
    now: datetime,
    judgement: Judgement | None = None,
    later: Callable[[MemoryRecord], bool] = lambda record: False,
) -> Decision:
    """The decision about one candidate.

    `known`: at least every active and contested record on its (topic, slot). `source_id`: where it comes from.
    `judgement`: what a judge proposes; it decides what is the same and what contradicts, never who may overwrite whom.
    `later`: whether a record was said after the candidate; then it is not replaced, nor taken back.
    """
    if candidate.held:
        return Decision("QUARANTINE", ", ".join(candidate.held))
    records = sorted(
        (r for r in known if r.subject == candidate.subject and not taken_back(r)), key=lambda r: (r.seq, r.memory_id)
    )
    topic = topics.get(candidate.topic)
    slot = topics.slot_of(candidate.topic, candidate.slot, candidate.value)
    on_topic = [r for r in records if r.topic == candidate.topic]
    here = [r for r in on_topic if not topic.exclusive or r.slot == slot]
    active = [r for r in here if r.is_active(now)]
    challengers = [r for r in here if r.status == "contested"]
    if judgement is not None:
        judged = _judged(candidate, judgement, records, active if topic.exclusive else [], policy, now, later)
        if judged is not None:
            return judged
    if candidate.intent == "retract":
        return _retract(candidate, active, policy, later)
    replaced = _replaced(candidate, on_topic, now)
    if replaced is not None:
        if later(replaced):
            return _earlier(replaced)
        return _replace(candidate, replaced, active, challengers, policy)
    if not topic.exclusive:
        return _free(candidate, [r for r in active if not _apart(candidate, r, now)], policy)
    if not active:  # somebody else may have named the slot otherwise: "peanut", "the user is allergic to peanuts"
        same_words = saying(candidate.content)
        said = [r for r in on_topic if r.is_active(now) and same_words(r.content)]
        active = [r for r in said if not _apart(candidate, r, now)][-1:]
    if not active:
        same = tuple(c for c in challengers if same_fact(c, candidate))
        return Decision("CREATE", "new", absorbed=same)
    return _occupied(candidate, active[-1], challengers, here, source_id, policy, now, later)


def taken_back(record: MemoryRecord) -> bool:
    """Whether its message was edited, so that nothing is decided as if it had been said."""
    ends = [h.reason for h in record.history if h.action == "RETRACT"]
    return record.status == "retracted" and ends[-1:] == [TAKEN_BACK]


def same_fact(record: MemoryRecord, candidate: Candidate | MemoryRecord) -> bool:
    """Whether the record already asserts what the candidate (or another record) does: equal values or wording."""
    value, other = normal(candidate.value), normal(record.value)
    if value and value == other:
        return negated(record.content) == negated(candidate.content)
    return says_the_same(record.content, candidate.content)


def _over(record: MemoryRecord, candidate: Candidate, now: datetime) -> bool:
    # What was true once, and is true again, is two facts with an interval each.
    return record.valid_to is not None and record.valid_to <= (candidate.valid_from or now)


def _apart(candidate: Candidate, record: MemoryRecord, now: datetime) -> bool:
    begins = record.valid_from
    before = candidate.valid_to is not None and begins is not None and candidate.valid_to <= begins
    return before or _over(record, candidate, now)


def extends(longer: str, shorter: str) -> bool:
    """Whether a value adds detail to another: "berlin, germany" to "berlin"."""
    longer, shorter = normal(longer), normal(shorter)
    return bool(shorter) and longer.startswith((f"{shorter} ", f"{shorter},"))


def _richer(candidate: Candidate, record: MemoryRecord) -> bool:
    if negated(candidate.content) != negated(record.content):
        return False
    if normal(candidate.value) != normal(record.value):
        return extends(candidate.value, record.value)
    more, less = stems(candidate.content), stems(record.content)
    return more > less and numbers(candidate.content) >= numbers(record.content)


def _poorer(candidate: Candidate, record: MemoryRecord) -> bool:
    return extends(record.value, candidate.value) and negated(candidate.content) == negated(record.content)


def _earlier(record: MemoryRecord) -> Decision:
    return Decision("CREATE", "said_earlier", behind=record)


def _retract(
    candidate: Candidate,
    active: Sequence[MemoryRecord],
    policy: TrustPolicy,
    later: Callable[[MemoryRecord], bool],
) -> Decision:
    ended = [
        r
        for r in active
        if not candidate.value or normal(r.value) == normal(candidate.value) or extends(r.value, candidate.value)
    ]
    if not ended:
        return Decision("NOOP", "nothing_to_retract")
    if later(ended[-1]):
        return Decision("NOOP", "said_earlier", ended[-1])
    if not policy.may_overwrite(candidate.source_type, ended[-1]):
        return Decision("NOOP", "retract_below_trust", ended[-1])
    return Decision("RETRACT", "no_longer_holds", ended[-1])


def _replaced(candidate: Candidate, on_topic: Sequence[MemoryRecord], now: datetime) -> MemoryRecord | None:
    if candidate.replaces is None:
        return None
    wanted = normal(candidate.replaces)
    matches = [r for r in on_topic if r.is_active(now) and wanted in (normal(r.value), r.slot)]
    return matches[-1] if matches else None


def _replace(
    candidate: Candidate,
    replaced: MemoryRecord,
    active: Sequence[MemoryRecord],
    challengers: Sequence[MemoryRecord],
    policy: TrustPolicy,
) -> Decision:
    if not policy.may_overwrite(candidate.source_type, replaced):
        return Decision("CONTEST", "below_trust", replaced)
    already = tuple(r for r in active if r is not replaced and same_fact(r, candidate))
    same = tuple(c for c in challengers if same_fact(c, candidate))
    return Decision("UPDATE", "replaced_by_name", replaced, absorbed=already + same)


def _free(candidate: Candidate, active: Sequence[MemoryRecord], policy: TrustPolicy) -> Decision:
    same_words = saying(candidate.content)
    for record in reversed(active):
        if same_words(record.content):
            return Decision("NOOP", "corroborated", record)
    for record in reversed(active):
        if extends(candidate.value, record.value) and negated(candidate.content) == negated(record.content):
            if policy.may_overwrite(candidate.source_type, record):
                return Decision("MERGE", "more_detail", record)
            return Decision("NOOP", "corroborated", record)
    return Decision("CREATE", "new")


def _occupied(
    candidate: Candidate,
    incumbent: MemoryRecord,
    challengers: Sequence[MemoryRecord],
    here: Sequence[MemoryRecord],
    source_id: str,
    policy: TrustPolicy,
    now: datetime,
    later: Callable[[MemoryRecord], bool],
) -> Decision:
    human = candidate.source_type in HUMAN
    may = policy.may_overwrite(candidate.source_type, incumbent)
    same_here = same_fact(incumbent, candidate) or _richer(candidate, incumbent) or _poorer(candidate, incumbent)
    if same_here and not _over(incumbent, candidate, now):
        # A person who restates one side of a contest settles it; a machine does not.
        closed = tuple(challengers) if human else ()
        if _richer(candidate, incumbent) and may:
            return Decision("MERGE", "more_detail", incumbent, closed=closed)
        return Decision("NOOP", "settled_for_incumbent" if closed else "corroborated", incumbent, closed=closed)
    if candidate.source_type == "bootstrapped" and _unchanged(candidate, here, source_id):
        return Decision("NOOP", "unchanged_resync", incumbent)
    if later(incumbent):
        return _earlier(incumbent)
    same = tuple(c for c in challengers if same_fact(c, candidate))
    others = tuple(c for c in challengers if c not in same)
    if may:
        return Decision("UPDATE", "trusted_and_newer", incumbent, absorbed=same, closed=others)
    if same and human and candidate.message_id not in {s.message_id for c in same for s in c.sources}:
        return Decision("UPDATE", "settled_for_challenger", incumbent, absorbed=same, closed=others)
    if same:
        return Decision("NOOP", "contest_repeated", same[-1])
    return Decision("CONTEST", "below_trust", incumbent)


def _judged(
    candidate: Candidate,
    judgement: Judgement,
    records: Sequence[MemoryRecord],
    occupying: Sequence[MemoryRecord],
    policy: TrustPolicy,
    now: datetime,
    later: Callable[[MemoryRecord], bool],
) -> Decision | None:
    """The decision that a judge's proposal leads to; None where the offline rules decide.

    `occupying`: the active records of the candidate's exclusive slot, which no judge can talk away.
    """
    verdict = judgement.verdict
    if verdict == "new":
        return None if occupying or candidate.intent == "retract" else Decision("CREATE", "judged_new")
    target = next((r for r in records if r.memory_id == judgement.target_id), None)
    if target is None or (target not in occupying and occupying) or not _comparable(verdict, candidate, target):
        return None
    if target.status == "contested":
        return None if verdict != "duplicate" else _about_challenger(candidate, target, records, policy, now)
    if not target.is_active(now):
        return None
    if verdict in ("duplicate", "merge") and target in occupying and _another_value(candidate, target):
        return None
    may = policy.may_overwrite(candidate.source_type, target)
    if verdict == "retract" and candidate.intent == "assert":
        verdict = "contradict"  # it ends the known fact, and says something of its own
    if verdict in ("retract", "contradict") and later(target):
        return Decision("NOOP", "said_earlier", target) if verdict == "retract" else _earlier(target)
    if verdict == "retract":
        action: Action = "RETRACT" if may else "NOOP"
        return Decision(action, "judged_over" if may else "retract_below_trust", target)
    if verdict == "contradict":
        return Decision("UPDATE", "judged_contradiction", target) if may else Decision("CONTEST", "below_trust", target)
    mine = tuple(r for r in records if r.status == "contested" and r.contests == target.memory_id)
    closed = mine if candidate.source_type in HUMAN else ()
    if verdict == "merge" and may:
        return Decision("MERGE", "judged_merge", target, closed=closed)
    return Decision("NOOP", "settled_for_incumbent" if closed else "judged_duplicate", target, closed=closed)


def _comparable(verdict: str, candidate: Candidate, record: MemoryRecord) -> bool:
    # "3 bullets" and "5 bullets" are one fact to many a model; so are a fact and its denial.
    if verdict not in ("duplicate", "merge"):
        return True
    if negated(candidate.content) != negated(record.content):
        return False
    return not numbers(record.content) or numbers(candidate.content) >= numbers(record.content)


def _another_value(candidate: Candidate, record: MemoryRecord) -> bool:
    # A slot with room for one has no two values: no judge can call "Oslo" the same as "Rome".
    new, old = stems(candidate.value), stems(record.value)
    return bool(new and old) and not new & old


def _about_challenger(
    candidate: Candidate,
    challenger: MemoryRecord,
    records: Sequence[MemoryRecord],
    policy: TrustPolicy,
    now: datetime,
) -> Decision | None:
    incumbent = next((r for r in records if r.memory_id == challenger.contests and r.is_active(now)), None)
    if incumbent is None:
        return None
    repeated = candidate.message_id in {s.message_id for s in challenger.sources}
    if policy.may_overwrite(candidate.source_type, incumbent) or (candidate.source_type in HUMAN and not repeated):
        return Decision("UPDATE", "settled_for_challenger", incumbent, absorbed=(challenger,))
    return Decision("NOOP", "contest_repeated", challenger)


def _unchanged(candidate: Candidate, here: Sequence[MemoryRecord], source_id: str) -> bool:
    # A sync that repeats what this very source said last brings no news; a person has decided since.
    said = [r for r in here if any(s.source_id == source_id and s.role == "support" for s in r.sources)]
    return bool(said) and said[-1].status == "superseded" and same_fact(said[-1], candidate)
