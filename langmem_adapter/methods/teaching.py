"""Learning: from messages, from a system of record, from a person who corrects."""

import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from langmem_adapter import arguments, consent, learning
from langmem_adapter import text as texts
from langmem_adapter.consolidation.correct import correct, corrected_to
from langmem_adapter.consolidation.rules import reader_of
from langmem_adapter.consolidation.step import consolidate
from langmem_adapter.errors import InvalidInput, MemoryNotFound
from langmem_adapter.extraction.origin import coerce
from langmem_adapter.extraction.turns import digest
from langmem_adapter.methods.base import twins
from langmem_adapter.methods.queue import Queue
from langmem_adapter.namespaces import Reader, namespace
from langmem_adapter.ports import IO, Ask, worked
from langmem_adapter.records import Operation, Scope, SourceType, Turn


class Teaching(Queue):
    """`add`, `add_fact`, `update`."""

    async def _add(
        self,
        io: IO,
        messages: Any,
        *,
        user_id: str,
        session_id: str | None = None,
        app_name: str = "default",
        agent_id: str | None = None,
        source_type: SourceType | None = None,
        source_id: str | None = None,
        at: datetime | str | None = None,
    ) -> list[Operation]:
        """Learn from messages; what was decided about each fact found, in order.

        `messages`: a string, a LangChain message, an OpenAI-style dict, or a list of those. Only what the user typed
        teaches (and tools named in `tool_sources`). `source_type` overrides what the words amount to; `source_id`
        names the source for `forget_source` (default: the session, else the turn). `at`: when it was said (default:
        now); it does not replace what was said later. A message that was learnt from before changes nothing; the same
        id with new text replaces what it taught. InvalidInput for what cannot be used; Conflict if other writers won
        fifty times.
        """
        spoken = await self._spoken(
            io,
            coerce(messages),
            Reader(user_id, app_name, session_id, agent_id),
            at=arguments.moment(at, "at") or self._rules.clock(),
            source_type=arguments.source_kind(source_type),
            source_id=self._source(source_id),
        )
        if at is not None:
            spoken = [t.change(dated=True) for t in spoken]
        return await self._learn(io, spoken)

    async def _add_fact(
        self,
        io: IO,
        content: str,
        *,
        user_id: str | None = None,
        scope: Scope = "user",
        session_id: str | None = None,
        agent_id: str | None = None,
        app_name: str = "default",
        topic: str = "general",
        slot: str | None = None,
        value: str | None = None,
        kind: str = "fact",
        subject: str = "user",
        source_type: SourceType = "bootstrapped",
        source_id: str | None = None,
        confidence: float = 1.0,
        importance: float | None = None,
        at: datetime | str | None = None,
        valid_from: datetime | str | None = None,
        valid_to: datetime | str | None = None,
        expires_at: datetime | str | None = None,
        entities: Sequence[str] = (),
        purpose: str | None = None,
        legal_basis: str | None = None,
    ) -> Operation:
        """Put in one fact from a system of record, or by an administrator; it passes the trust gate like any other.

        `source_id` says where it comes from, and is what `forget_source` is given; it must be named, without a secret.

        While the user has paused, or if the fact is one never to be remembered or on a topic without consent, the
        operation is a NOOP that says so. `purpose` and `legal_basis` are kept with it (default: the topic's).

        The only way to write `scope="app"` (no `user_id`), read by all users. `value` is what the (topic, slot)
        holds, by which equal facts are recognised (default: the content). Secrets are cut out of every text.
        UnknownTopic for a topic not registered.

        `valid_from`, `valid_to`: when it held, for `search(valid_at=…)`; only `expires_at` takes it out of recall.
        """
        entities = arguments.strings(entities, "entities")
        named = {"slot": slot, "value": value, "kind": kind, "subject": subject, "source_id": source_id}
        named |= {"purpose": purpose, "legal_basis": legal_basis}
        for what, given in (*named.items(), *(("entities", e) for e in entities)):
            texts.short(given or "", what=what)
        self._source(source_id, required=True)
        text = await self._content(io, content)
        self._rules.topics.get(topic)
        namespace(  # complains of a bad scope or id
            "facts", app_name=app_name, user_id=user_id, scope=scope, session_id=session_id, agent_id=agent_id
        )
        if scope == "app" and user_id is not None:
            raise InvalidInput(f"scope='app' belongs to no user, but user_id={user_id!r} was given")
        if scope == "team":
            raise InvalidInput("scope='team' cannot be written yet; use 'user', 'session', 'agent' or 'app'")
        turn_id = f"fact-{secrets.token_hex(8)}"
        kind_of_source = arguments.source_kind(source_type)
        if kind_of_source is None:
            raise InvalidInput("source_type must say what kind of source the fact comes from, got None")
        since, until = arguments.period(valid_from, valid_to)
        candidate = arguments.candidate(
            content=text,
            topic=topic,
            slot=self._bare(slot or "", "slot"),
            value=self._bare(value, "value") if value is not None else texts.slot(text),
            kind=self._bare(kind, "kind"),
            subject=self._bare(subject, "subject"),
            source_type=kind_of_source,
            excerpt=text,
            message_id=turn_id,
            confidence=confidence,
            importance=importance,
            valid_from=since,
            valid_to=until,
            expires_at=arguments.moment(expires_at, "expires_at"),
            entities=tuple(self._bare(e, "entities") for e in entities),
            purpose=None if purpose is None else self._bare(purpose, "purpose"),
            legal_basis=None if legal_basis is None else self._bare(legal_basis, "legal_basis"),
        )
        if not self._rules.topics.consents(topic):
            return Operation(action="NOOP", memory_id=None, content=text, reason="no_consent")
        turn = Turn(
            turn_id=turn_id,
            user_id=user_id,
            app_name=app_name,
            scope=scope,
            session_id=session_id,
            agent_id=agent_id,
            at=arguments.moment(at, "at") or self._rules.clock(),
            dated=at is not None,
            digest=digest(text),
            source_type=kind_of_source,
            source_id=str(source_id),
            candidates=(candidate,),
        )
        turn = await io.ask(Ask(self._rules.vet), turn)  # many rules read every field
        operations = await consolidate(io, turn, self._rules)
        await self._keep_up(io)
        learning.tell_held(turn, operations, self._tell)
        if operations:
            return operations[0]
        paused = (await consent.settings_of(io, reader_of(turn))).paused
        return Operation(action="NOOP", memory_id=None, content=text, reason="paused" if paused else "forbidden")

    async def _update(
        self,
        io: IO,
        memory_id: str,
        *,
        user_id: str | None = None,
        content: str,
        app_name: str = "default",
        scope: Literal["user", "app"] = "user",
    ) -> Operation:
        """Correct a memory in the user's name: a new version, `user_explicit`, that the trust gate does not judge.

        `scope="app"` (without `user_id`): an administrator corrects an application fact. MemoryNotFound for an id that
        is not the user's; InvalidInput if the memory is no longer believed, or if the guard would hold the new words.
        """
        text = await self._content(io, content)
        if scope == "user" and (reasons := await io.ask(Ask(self._guard.reasons), text)):
            raise InvalidInput(
                f"content reads as {', '.join(reasons)}; that is no memory of a user's, in no one's words"
            )
        owner = arguments.owner(user_id, app_name, scope)
        _, record = await self._require(io, memory_id, owner)
        if not self._rules.topics.consents(record.topic):
            raise InvalidInput(f"topic {record.topic!r} is one without consent: its memories can only be deleted")
        if (await consent.settings_of(io, owner)).forbids(corrected_to(record, text)):
            raise InvalidInput("this is never to be remembered, as the user wished; call allow() first")
        turn = Turn(
            turn_id=f"update-{secrets.token_hex(8)}",
            user_id=record.user_id,
            app_name=app_name,
            scope=record.scope,
            session_id=record.session_id,
            agent_id=record.agent_id,
            at=self._rules.clock(),
            digest=digest(text),
            source_type="user_explicit",
            source_id="correction",
        )
        if record.scope == "app" and scope != "app":
            raise MemoryNotFound(f"no memory {memory_id!r} of user {user_id!r}; application facts are read-only")
        return await correct(io, memory_id, text, turn, self._rules)

    async def _content(self, io: IO, content: str) -> str:
        """The content of a record, without secrets."""
        size = len(content) if isinstance(content, str) else 0
        return await worked(io, lambda: texts.content(content, redact=self._guard.redact), size)

    add, aadd = twins(_add)
    add_fact, aadd_fact = twins(_add_fact)
    update, aupdate = twins(_update)
