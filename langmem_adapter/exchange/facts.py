"""Facts from elsewhere, on their way into consolidation: one turn each, as `add_fact` makes them.

The turn's id is made from where the fact comes from, so an import that is interrupted goes on where it was, one that
is done twice changes nothing, and what was erased since does not come back.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b

from langgraph.store.base import GetOp

from langmem_adapter import arguments
from langmem_adapter import text as texts
from langmem_adapter.consent import settings_in, settings_op
from langmem_adapter.consolidation.rules import Rules, reader_of, spaces
from langmem_adapter.consolidation.step import consolidate
from langmem_adapter.errors import InvalidInput
from langmem_adapter.exchange.moving import Progress
from langmem_adapter.exchange.report import Imported, Tally
from langmem_adapter.extraction.turns import digest
from langmem_adapter.namespaces import escape
from langmem_adapter.ports import IO
from langmem_adapter.records import SourceType, Turn


@dataclass(frozen=True, slots=True)
class Fact:
    """One text that another memory held, or holds, of a user."""

    label: str
    """What the report calls it."""
    user_id: str
    text: str
    source_id: str
    """The thread it was learnt in, where that is known; else the memory it comes from."""
    message_id: str | None = None
    """Its id there. `forget_source` takes either."""
    at: datetime | None = None
    """Since when; None: not known."""
    expires_at: datetime | None = None
    agent_id: str | None = None


Chain = list[Fact]
"""The texts that one memory had, oldest first: each replaced the one before."""


_UNKEEPABLE = re.compile("[\0\ud800-\udfff]")


def name(value: str, what: str) -> str:
    """An id from outside; InvalidInput unless it is one that a store can keep."""
    if not isinstance(value, str) or not value.strip() or _UNKEEPABLE.search(value):
        raise InvalidInput(f"{what} must be a non-empty string without NUL and half characters, got {value!r:.80}")
    return value


def owner(value: str, what: str) -> str:
    """A user id from outside."""
    escape(name(value, what), what="user_id")
    return value


def moment(value: object, what: str) -> datetime | None:
    """A time from outside: ISO 8601, taken as UTC where it names no zone."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be an ISO 8601 string, got {value!r:.80}")
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError as error:
        raise InvalidInput(f"{what} is not an ISO 8601 time: {value!r:.80}") from error
    return arguments.moment(parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC), what)


def usable(fact: Fact, left_out: Tally) -> bool:
    """Whether the text can become a record; told why, if not."""
    text = fact.text if len(fact.text) > texts.MAX_RAW else texts.one_line(texts.clean(fact.text))
    if not text:
        left_out.add("empty", fact.label)
    elif len(text) > texts.MAX_CONTENT:
        left_out.add("too_long", fact.label)
    return 0 < len(text) <= texts.MAX_CONTENT


async def learn(
    io: IO,
    chains: Sequence[Chain],
    *,
    source_type: SourceType,
    app_name: str,
    rules: Rules,
    left_out: Tally,
    progress: Progress | None,
    dry_run: bool,
) -> Imported:
    """Consolidate the facts, each in a commit of its own; the report. All of them were found usable before.

    Memories of several texts come first: a text that was replaced must not be mistaken for the same text that stands.
    No judge is asked: an import must not cost a model call a fact.
    """
    arguments.function(progress, "progress", "a function of (done, total)")
    arguments.flag(dry_run, "dry_run")
    escape(app_name, what="app_name")
    rules = replace(rules, judge=None)
    ordered = sorted(chains, key=lambda chain: len(chain) == 1)
    total = sum(len(chain) for chain in ordered)
    outcomes: Counter[str] = Counter()
    operations: Counter[str] = Counter()
    seen: set[tuple[str, str]] = set()
    for chain in ordered:
        before: Turn | None = None
        for fact in chain:
            if progress is not None:
                progress(outcomes.total(), total)
            turn = _turn(fact, source_type, app_name, rules)
            stored, earlier, refusal = await _known(io, turn, before, rules)
            again = stored or (fact.user_id, turn.turn_id) in seen
            outcomes["already" if again else "refused" if refusal else "written"] += 1
            if refusal and not again:
                left_out.add(refusal, fact.label)
            elif not again and not dry_run:
                done = await consolidate(io, _replacing(turn, before, earlier), rules)
                operations.update(o.action for o in done)
            seen.add((fact.user_id, turn.turn_id))
            before = turn
    if progress is not None:
        progress(total, total)
    return Imported(
        total=total,
        written=outcomes["written"],
        already=outcomes["already"],
        operations=dict(operations),
        unmapped=left_out.unmapped(),
        dry_run=dry_run,
    )


def _turn(fact: Fact, source_type: SourceType, app_name: str, rules: Rules) -> Turn:
    text = texts.content(fact.text, redact=rules.redact)
    since = "" if fact.at is None else fact.at.isoformat()
    told = "\x1f".join((fact.source_id, fact.message_id or "", text, since))
    turn_id = f"import-{blake2b(told.encode(), digest_size=10).hexdigest()}"
    candidate = arguments.candidate(
        content=text,
        value=texts.slot(text),
        source_type=source_type,
        excerpt=text,
        message_id=fact.message_id or turn_id,
        expires_at=fact.expires_at,
    )
    turn = Turn(
        turn_id=turn_id,
        user_id=fact.user_id,
        app_name=app_name,
        agent_id=fact.agent_id,
        at=fact.at or rules.clock(),
        dated=fact.at is not None,
        digest=digest(text),
        source_type=source_type,
        source_id=fact.source_id,
        candidates=(candidate,),
    )
    return rules.vet(turn)


async def _known(io: IO, turn: Turn, before: Turn | None, rules: Rules) -> tuple[bool, Turn | None, str | None]:
    """Whether the turn was learnt already, what is stored of the one before, and why it may not be learnt."""
    _, ns = spaces(turn)
    ids = [turn.turn_id, *([] if before is None else [before.turn_id])]
    (said, *items), _ = await io.read([settings_op(reader_of(turn)), *(GetOp(ns, i, refresh_ttl=False) for i in ids)])
    stored = [None if item is None else Turn.stored(item) for item in items]
    settings = settings_in(said)
    refusal = None
    if settings.paused:
        refusal = "paused"
    elif not rules.topics.consents(turn.candidates[0].topic):
        refusal = "no_consent"
    elif settings.forbids(turn.candidates[0]):
        refusal = "forbidden"
    return stored[0] is not None, stored[1] if before else None, refusal


def _replacing(turn: Turn, before: Turn | None, earlier: Turn | None) -> Turn:
    """The turn, as replacing what the one before led to, if that has a record of its own."""
    if before is None or earlier is None or not earlier.operations:
        return turn
    if earlier.operations[0].action not in ("CREATE", "UPDATE"):  # it joined another memory, which stands
        return turn
    return turn.change(candidates=(turn.candidates[0].change(replaces=before.candidates[0].value),))
