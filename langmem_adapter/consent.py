"""What was said about an owner's memory as a whole: paused, under a legal hold, never to be remembered.

One item in the owner's `settings` namespace. Consolidation and erasure commit against its version, so a pause or a
hold also stops what began before it.
"""

import secrets
from collections.abc import Callable
from hashlib import blake2b

from langgraph.store.base import GetOp, Item, PutOp

from langmem_adapter.errors import OnHold
from langmem_adapter.namespaces import Namespace, Reader
from langmem_adapter.ports import IO, retried
from langmem_adapter.records import Candidate, Frozen, MemoryRecord
from langmem_adapter.text import slot, stems

KEY = "owner"


class Settings(Frozen):
    """What holds for one owner (`Memory.settings`)."""

    paused: bool = False
    """Nothing is learnt or recalled."""
    holds: tuple[str, ...] = ()
    """Why nothing may be erased; each hold ends for itself."""
    topics: tuple[str, ...] = ()
    """Topics never to be learnt again, with what lies below them."""
    facts: tuple[str, ...] = ()
    """Salted hashes of facts never to be learnt again."""
    salt: str = ""
    alerted: int = 0
    """The number of memories whose passing was last told (see `maintenance`); 0 if it is not passed now."""

    @property
    def empty(self) -> bool:
        """Whether they say nothing."""
        return self.change(salt="") == Settings()

    def forbids(self, candidate: Candidate) -> bool:
        """Whether the candidate is something the owner does not want to be remembered."""
        if any(candidate.topic == t or candidate.topic.startswith(f"{t}/") for t in self.topics):
            return True
        return bool(self.facts) and not set(self.facts).isdisjoint(_hashes(candidate, self.salt))

    def forbidding(self, record: MemoryRecord) -> "Settings":
        """With the record's fact among those never to be learnt again, in whatever words of the same kind."""
        salt = self.salt or secrets.token_hex(8)
        return self.change(salt=salt, facts=tuple(dict.fromkeys((*self.facts, *_hashes(record, salt)))))


def _hashes(fact: Candidate | MemoryRecord, salt: str) -> list[str]:
    # By what it is about and says, and by its words: either is enough.
    said = "\x1f".join(("words", fact.subject, *sorted(stems(fact.content))))
    held = "\x1f".join(("value", fact.subject, fact.topic, slot(fact.slot), slot(fact.value)))
    return [blake2b(f"{salt}{text}".encode(), digest_size=12).hexdigest() for text in (said, held)]


def settings_op(reader: Reader) -> GetOp:
    """The read of an owner's settings; see `settings_in`."""
    return GetOp(reader.space("settings"), KEY, refresh_ttl=False)


def settings_in(item: Item | None) -> Settings:
    """The settings in the result of `settings_op`; StoreCorrupt also if they say nothing, as none are stored so."""
    if item is None:
        return Settings()
    found = Settings.stored(item)
    if found.empty:
        raise Settings.damaged(item, Settings.model_fields)
    return found


async def settings_of(io: IO, reader: Reader) -> Settings:
    """The owner's settings."""
    (item,), _ = await io.read([settings_op(reader)])
    return settings_in(item)


async def change_settings(
    io: IO, reader: Reader, change: Callable[[Settings], Settings], *, erasing: bool = False
) -> Settings:
    """The owner's settings after a change; OnHold if it is one that goes with an erasure, which a hold forbids."""
    return await retried(io, lambda: _changed(io, reader, change, erasing))


async def _changed(io: IO, reader: Reader, change: Callable[[Settings], Settings], erasing: bool) -> Settings:
    ns = reader.space("settings")
    (item,), versions = await io.read([settings_op(reader)], versions=(ns,))
    before = settings_in(item)
    if erasing:
        not_on_hold(before, reader)
    after = change(before)
    if after != before:
        await io.commit([settings_put(ns, after)], expect=versions)
    return after


def settings_put(ns: Namespace, settings: Settings) -> PutOp:
    """The write of an owner's settings; settings that say nothing are no item."""
    value = None if settings.empty else settings.model_dump(mode="json")
    return PutOp(ns, KEY, value, index=False)


def not_on_hold(settings: Settings, reader: Reader) -> None:
    """OnHold if nothing of the owner may be erased."""
    if settings.holds:
        whose = f"user {reader.user_id!r}" if reader.user_id else "the application"
        raise OnHold(
            f"memories of {whose} are under a legal hold ({'; '.join(settings.holds)}); nothing was erased. "
            "Call lift_hold() when it has ended"
        )
