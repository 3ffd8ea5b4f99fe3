"""Facts from mem0: what its `get_all` returns, and its SQLite history of older texts.

Every text in mem0 was written by a model, from what the user or the assistant said, so none are the user's own words.
What it says of itself decides the rest:

    user_id                    whose memory it becomes
    run_id                     the source, so that `forget_source(run_id)` finds it; "mem0" without one
    id                         the message id of the source, so that `forget_source(id)` finds it
    created_at, updated_at     since when it is true
    expiration_date            the last day on which it is recalled
    agent_id                   the agent that learnt it
    attributed_to, role        "assistant", "system": it teaches nothing, as an assistant's words never do here
    history: ADD, UPDATE       older texts, each superseded by the next
    history: DELETE            stays deleted: nobody can tell whether the user or the model wanted it so
"""

import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from langmem_adapter.consolidation.rules import Rules
from langmem_adapter.errors import InvalidInput
from langmem_adapter.exchange.facts import Chain, Fact, learn, moment, name, owner, usable
from langmem_adapter.exchange.files import StrPath, json_of
from langmem_adapter.exchange.moving import Progress
from langmem_adapter.exchange.report import Imported, Tally
from langmem_adapter.ports import IO, Ask

MAPPED = frozenset(
    "id memory hash user_id run_id agent_id created_at updated_at expiration_date attributed_to role score".split()
)
"""Fields that are mapped, or say nothing beyond what is."""
NOT_THE_USER = ("assistant", "system", "tool")


class Event(NamedTuple):
    """One row of mem0's history."""

    memory_id: str
    old: str | None
    new: str | None
    event: str
    at: datetime | None


async def import_mem0(
    io: IO,
    memories: Any,
    history: StrPath | None,
    *,
    user_id: str | None,
    app_name: str,
    rules: Rules,
    progress: Progress | None,
    dry_run: bool,
) -> Imported:
    """See `Memory.import_mem0`."""
    left_out = Tally()
    whose = None if user_id is None else owner(user_id, "user_id")
    given = await json_of(io, memories)
    events: dict[str, list[Event]] = defaultdict(list)
    if history is not None:
        for event in await io.ask(_HISTORY, history):
            events[event.memory_id].append(event)

    def chains() -> list[Chain]:
        return _chains(given, events, whose, rules.clock(), left_out)

    return await learn(
        io,
        await io.ask(Ask(lambda _: chains()), None),
        source_type="user_implicit",
        app_name=app_name,
        rules=rules,
        left_out=left_out,
        progress=progress,
        dry_run=dry_run,
    )


def _chains(
    given: Any, events: dict[str, list[Event]], whose: str | None, now: datetime, left_out: Tally
) -> list[Chain]:
    """The texts that each memory had, as far as they can be used."""
    rows = _rows(given)
    for at, relation in enumerate((given.get("relations") or ()) if isinstance(given, Mapping) else ()):
        left_out.add("relations", f"relations[{at}]" if isinstance(relation, Mapping) else repr(relation)[:80])
    facts = [_fact(at, row, whose, now, left_out) for at, row in enumerate(rows)]
    chains = [_chain(fact, events.get(fact.label, []), left_out) for fact in facts if fact is not None]
    _gone(events, {str(row.get("id")) for row in rows}, left_out)
    usable_ones = [[fact for fact in chain if usable(fact, left_out)] for chain in chains]
    return [chain for chain in usable_ones if chain]


def _rows(given: Any) -> list[Mapping[str, Any]]:
    """The memories of a `get_all` result: `{"results": […]}`, or the bare list of older versions."""
    rows = given.get("results") if isinstance(given, Mapping) else given
    if not isinstance(rows, list):
        raise InvalidInput(f"memories must be what mem0's get_all returns, {{'results': […]}}, got {given!r:.80}")
    for at, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InvalidInput(f"results[{at}] must be an object, got {row!r:.80}")
    return rows


def _fact(at: int, row: Mapping[str, Any], user_id: str | None, now: datetime, left_out: Tally) -> Fact | None:
    """The memory as a fact of its user; None, told why, if it is nobody's or not the user's."""
    where = f"results[{at}]"
    label, text = name(row.get("id"), f"{where}.id"), row.get("memory")  # type: ignore[arg-type]
    if not isinstance(text, str):
        raise InvalidInput(f"{where}.memory must be a string, got {text!r:.80}")
    theirs = None if row.get("user_id") is None else owner(row["user_id"], f"{where}.user_id")
    run_id, agent_id = (
        None if row.get(field) in (None, "") else name(row[field], f"{where}.{field}")
        for field in ("run_id", "agent_id")
    )
    changed = moment(row.get("updated_at"), f"{where}.updated_at")
    created = moment(row.get("created_at"), f"{where}.created_at")
    expires = _expiry(row.get("expiration_date"), f"{where}.expiration_date")
    metadata = row.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise InvalidInput(f"{where}.metadata must be an object, got {metadata!r:.80}")
    whose = theirs if theirs is not None else user_id
    reason = None
    if whose is None:
        reason = "no_user"
    elif user_id is not None and whose != user_id:
        reason = "another_user"
    elif row.get("attributed_to") in NOT_THE_USER or row.get("role") in NOT_THE_USER:
        reason = "not_from_the_user"
    elif metadata.get("memory_type") == "procedural_memory":
        reason = "procedural"
    elif expires is not None and expires <= now:
        reason = "expired"
    if reason is not None or whose is None:
        left_out.add(reason or "no_user", label)
        return None
    for field in (f for f, value in row.items() if f not in MAPPED and value):
        left_out.add(f"field:{field}", label)
    return Fact(
        label=label,
        user_id=whose,
        text=text,
        source_id=run_id or "mem0",
        message_id=label,
        at=changed or created,
        expires_at=expires,
        agent_id=agent_id,
    )


def _expiry(value: object, what: str) -> datetime | None:
    # mem0 recalls a memory through this day, in UTC.
    day = moment(value, what)
    try:
        return None if day is None else datetime.combine(day.date(), time(), UTC) + timedelta(days=1)
    except OverflowError:
        return None


def _chain(fact: Fact, events: Iterable[Event], left_out: Tally) -> Chain:
    """The texts of one memory, oldest first; the last is the one that stands."""
    told: list[tuple[str, datetime | None]] = []
    for event in events:
        if event.event not in ("ADD", "UPDATE") or event.new is None:
            left_out.add(f"history:{event.event}", fact.label)
            continue
        if event.event == "UPDATE" and event.old is not None and not told:
            told.append((event.old, None))
        told.append((event.new, event.at))
    if told and told[-1][0] == fact.text:
        told.pop()
    texts = [*told, (fact.text, fact.at)]
    kept = [one for one, after in zip(texts, [*texts[1:], None], strict=True) if after is None or one[0] != after[0]]
    return [replace(fact, text=text, at=at) for text, at in kept]


def _gone(events: Mapping[str, list[Event]], there: set[str], left_out: Tally) -> None:
    for memory_id, happened in events.items():
        if memory_id not in there:
            left_out.add("deleted" if happened[-1].event == "DELETE" else "history_of_unknown", memory_id)


def _events(path: StrPath) -> list[Event]:
    """The rows of a history database, in the order they were written."""
    if not isinstance(path, str | os.PathLike):
        raise InvalidInput(f"history must be the name of mem0's history database, got {path!r:.80}")
    try:
        where = Path(path).resolve()
        there = where.is_file()
    except (OSError, ValueError):  # it cannot be the name of a file
        there = False
    if not there:
        raise InvalidInput(f"history must be mem0's history database; there is no file {os.fspath(path)!r:.120}")
    try:
        with closing(sqlite3.connect(f"{where.as_uri()}?mode=ro", uri=True)) as conn:
            conn.row_factory = sqlite3.Row
            rows = [dict(row) for row in conn.execute("SELECT * FROM history ORDER BY rowid")]
    except sqlite3.Error as error:
        raise InvalidInput(f"{os.fspath(path)} is not a history database of mem0: {error}") from error
    return [_event(n, row) for n, row in enumerate(rows, 1)]


def _event(n: int, row: Mapping[str, Any]) -> Event:
    missing = {"memory_id", "old_memory", "new_memory", "event"} - row.keys()
    if missing:
        raise InvalidInput(f"history has no column {sorted(missing)[0]}: it is not mem0's, or of an unknown version")
    memory_id, old, new, event = (row[column] for column in ("memory_id", "old_memory", "new_memory", "event"))
    texts = [value for value in (old, new) if value is not None]
    if not all(isinstance(value, str) for value in (memory_id, event, *texts)):
        raise InvalidInput(f"history row {n}: memory_id, event and the texts must be strings")
    when = row.get("updated_at") or row.get("created_at")
    return Event(memory_id, old, new, event, moment(when, f"history row {n}: time"))


_HISTORY: Ask[StrPath, list[Event]] = Ask(_events)
