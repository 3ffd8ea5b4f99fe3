"""What the user, or the law, wants of the memory as a whole."""

from langmem_adapter import arguments, consent
from langmem_adapter import text as texts
from langmem_adapter.consent import Settings
from langmem_adapter.errors import InvalidInput
from langmem_adapter.methods.base import twins
from langmem_adapter.methods.erasing import Erasing
from langmem_adapter.methods.queue import Queue
from langmem_adapter.namespaces import Reader
from langmem_adapter.ports import IO


class Wishes(Erasing, Queue):
    """`hold`, `pause`, `forbid`, their ends, and `settings`."""

    async def _hold(self, io: IO, user_id: str, reason: str, *, app_name: str = "default") -> Settings:
        """Put the user's data under a legal hold: until `lift_hold`, erasing raises OnHold with the reason.

        Secrets are cut out of it, as of every text that is kept.
        """
        why = texts.content(reason, what="reason", redact=self._guard.redact)

        def held(settings: Settings) -> Settings:
            return settings.change(holds=tuple(dict.fromkeys((*settings.holds, why))))

        return await consent.change_settings(io, Reader(user_id, app_name), held)

    async def _lift_hold(
        self, io: IO, user_id: str, reason: str | None = None, *, app_name: str = "default"
    ) -> Settings:
        """End the hold of this reason, or (None) all; harmless without one."""
        named: tuple[str, ...] = ()
        arguments.instance(reason, str, "reason", "what hold() was given, or None for all")
        if reason is not None:
            given = texts.short(reason, what="reason")
            named = (texts.one_line(given), texts.one_line(self._bare(given, "reason")))
        return await consent.change_settings(
            io,
            Reader(user_id, app_name),
            lambda s: s.change(holds=tuple(r for r in s.holds if named and r not in named)),
        )

    async def _pause(self, io: IO, user_id: str, *, app_name: str = "default") -> Settings:
        """From now on nothing is learnt from the user or recalled, also in runs that have begun; see `resume`.

        What is queued stays queued. Memories can still be looked at, corrected and deleted.
        """
        return await consent.change_settings(io, Reader(user_id, app_name), lambda s: s.change(paused=True))

    async def _resume(self, io: IO, user_id: str, *, app_name: str = "default") -> Settings:
        """Learn and recall again, in the background also what was queued before the pause."""
        reader = Reader(user_id, app_name)
        settings = await consent.change_settings(io, reader, lambda s: s.change(paused=False))
        await self._woken(io, reader)
        return settings

    async def _forbid(
        self,
        io: IO,
        *,
        user_id: str,
        memory_id: str | None = None,
        topic: str | None = None,
        app_name: str = "default",
    ) -> Settings:
        """ "Don't remember this": erase a memory, or all on a topic, and never learn it again.

        A fact is recognised by a salted hash of what it is about and says, and of its words; its text is not kept.
        `allow` takes it back. MemoryNotFound for an id that is not the user's; OnHold if nothing may be erased.
        """
        reader = Reader(user_id, app_name)
        if (memory_id is None) == (topic is None):
            raise InvalidInput(f"name either memory_id or topic, got memory_id={memory_id!r}, topic={topic!r}")
        if memory_id is not None:
            _, record = await self._require(io, memory_id, reader, expired=True)
            settings = await consent.change_settings(io, reader, lambda s: s.forbidding(record), erasing=True)
            ids = [memory_id]
        else:
            name = self._rules.topics.get(str(topic)).name
            settings = await consent.change_settings(
                io, reader, lambda s: s.change(topics=tuple(dict.fromkeys((*s.topics, name)))), erasing=True
            )
            ids = [
                r.memory_id
                for r in await self._get_all(io, user_id=user_id, status="all", topic=name, app_name=app_name)
            ]
        if ids:
            await self._delete(io, ids, user_id=user_id, app_name=app_name)
        return settings

    async def _allow(self, io: IO, *, user_id: str, topic: str | None = None, app_name: str = "default") -> Settings:
        """Let a topic be learnt again; without one, everything that was forbidden."""

        def allowed(settings: Settings) -> Settings:
            if topic is None:
                return settings.change(topics=(), facts=(), salt="")
            return settings.change(topics=tuple(t for t in settings.topics if t != topic))

        return await consent.change_settings(io, Reader(user_id, app_name), allowed)

    async def _settings(self, io: IO, *, user_id: str, app_name: str = "default") -> Settings:
        """Whether the user has paused, is under a legal hold, and what is not to be remembered."""
        return await consent.settings_of(io, Reader(user_id, app_name))

    hold, ahold = twins(_hold)
    lift_hold, alift_hold = twins(_lift_hold)
    pause, apause = twins(_pause)
    resume, aresume = twins(_resume)
    forbid, aforbid = twins(_forbid)
    allow, aallow = twins(_allow)
    settings, asettings = twins(_settings)
