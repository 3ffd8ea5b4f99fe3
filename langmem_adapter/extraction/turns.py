"""From messages to turns: one for each message a person typed, with the tool messages that follow it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b

from langchain_core.messages import BaseMessage, FunctionMessage, HumanMessage, ToolMessage

from langmem_adapter.extraction.origin import message_of, typed_by
from langmem_adapter.namespaces import Reader, escape
from langmem_adapter.records import Message, SourceType, Turn
from langmem_adapter.redaction import redacted


def turns_of(
    messages: Sequence[BaseMessage],
    speaker: Reader,
    *,
    at: datetime,
    people: Mapping[str, str],
    tools: Collection[str] = (),
    source_type: SourceType | None = None,
    source_id: str | None = None,
    start: int = 0,
    redact: Callable[[str], str] = redacted,
) -> list[Turn]:
    """The turns among `messages[start:]`, oldest first.

    A message belongs to the speaker, or to whom `people` maps its name; tool messages count if their tool is in
    `tools`. The turn's id is that of its message, within its thread. `redact` cuts secrets out of every text.
    """
    speaker.facts()  # every id is checked before anything is read
    groups: list[tuple[str, list[Message], bool]] = []
    for index, message in enumerate(messages[start:], start):
        if not _may_teach(message, tools):
            continue
        said = message_of(
            message,
            index=index,
            session_id=speaker.session_id,
            people=people,
            user_id=speaker.user_id,
            redact=redact,
        )
        if said.owner is not None:
            groups.append((said.owner, [said.message], message.id is None))
        elif groups and said.message.role == "tool":
            groups[-1][1].append(said.message)
    turns = []
    for owner, parts, anonymous in groups:
        turn_id = parts[0].id if speaker.session_id is None else f"{escape(speaker.session_id)}/{parts[0].id}"
        turns.append(
            Turn(
                turn_id=turn_id,
                user_id=owner,
                app_name=speaker.app_name,
                session_id=speaker.session_id,
                agent_id=speaker.agent_id,
                at=at,
                messages=tuple(parts),
                digest=digest(parts[0].text),
                anonymous=anonymous,
                source_type=source_type,
                source_id=source_id or speaker.session_id or turn_id,
            )
        )
    return turns


def news(turn: Turn, stored: Turn | None) -> Turn | None:
    """The turn if it teaches something new, None if it was learnt before.

    If its message was edited, or a tool answered otherwise than when it was learnt, it names what is taken back.
    """
    if stored is None:
        return turn
    if stored.digest == "":  # erased
        return None
    edited, learnt, known = stored.digest != turn.digest, stored.status == "done", stored.knows(turn)
    if not edited and learnt and known:
        return None
    erased = {i for i, words in stored.answers if not words}
    replaced = _said_in(turn, stored) if edited else [] if known else _left_behind(turn, stored)
    taught = [*stored.taught, *(o.memory_id for o in stored.operations if o.memory_id)]
    return turn.change(
        messages=tuple(m for m in turn.messages if m.id not in erased),
        seq=stored.seq,
        erased=stored.erased and not edited,
        attempts=0 if edited or learnt else stored.attempts,
        taught=tuple(dict.fromkeys(taught)) if replaced else stored.taught,
        unsaid=tuple(dict.fromkeys((*stored.unsaid, *replaced))),
        # Until this is learnt, what it led to before stands, and may be decided again when others go.
        answers=stored.answers,
        candidates=stored.candidates,
        operations=stored.operations,
        judged=stored.judged,
        applied=stored.applied,
        applied_at=stored.applied_at,
        note=stored.note,
    )


def _said_in(turn: Turn, stored: Turn) -> list[str]:
    """Ids of all messages that a turn was learnt with."""
    told = [c.message_id for c in stored.candidates if c.message_id is not None]
    return [turn.messages[0].id, *(m.id for m in stored.messages), *told, *(i for i, _ in stored.answers)]


def _left_behind(turn: Turn, stored: Turn) -> list[str]:
    """Ids of the tool messages that a turn was learnt with, behind the last that is there still.

    Those before it may have been cut out of a long thread.
    """
    said = {words for _, words in turn.answered()}
    there = [at for at, (_, words) in enumerate(stored.answers) if words in said]
    return [i for i, _ in stored.answers[max(there, default=-1) + 1 :]]


def said_again(turn: Turn, earlier: Sequence[Turn]) -> Turn:
    """An anonymous turn as a new one, if its text was said before and something else since; else as it is.

    The same text twice in a row is taken for one message delivered twice. `earlier`: the turns of its session.
    """
    base = turn.turn_id
    same = [t for t in earlier if t.turn_id == base or t.turn_id.startswith(f"{base}#")]
    last = max(earlier, key=lambda t: (t.seq, t.turn_id), default=None)
    if not same or (last in same and last is not None and last.digest != ""):
        return turn if not same else turn.change(turn_id=max(same, key=lambda t: t.seq).turn_id)
    turn_id = f"{base}#{len(same) + 1}"
    messages = tuple(m.change(id=f"{m.id}#{len(same) + 1}") for m in turn.messages)
    return turn.change(turn_id=turn_id, messages=messages)


def last_id(
    messages: Sequence[BaseMessage], speaker: Reader, *, people: Mapping[str, str], redact: Callable[[str], str]
) -> str | None:
    """The id of the last message that a person typed since the last answer; None if there is none.

    No text is looked at but that of a message without an id.
    """
    speaker.facts()
    for index in range(len(messages) - 1, last_said(messages) - 1, -1):
        message = messages[index]
        if typed_by(message, people, speaker.user_id) is not None:
            return named(message, index, speaker, people, redact)[0]
    return None


def named(
    message: BaseMessage, index: int, speaker: Reader, people: Mapping[str, str], redact: Callable[[str], str]
) -> tuple[str, str | None]:
    """The id of a message at this position, and None; if it has none, what stands for it, and its text."""
    if message.id:  # its text is not looked at
        return message.id, None
    session_id, user_id = speaker.session_id, speaker.user_id
    said = message_of(message, index=index, session_id=session_id, people=people, user_id=user_id, redact=redact)
    return said.message.id, said.message.text


def _may_teach(message: BaseMessage, tools: Collection[str]) -> bool:
    if isinstance(message, (ToolMessage, FunctionMessage)):
        return message.name in tools
    return isinstance(message, HumanMessage)


def last_said(messages: Sequence[BaseMessage]) -> int:
    """Where the human messages since the last answer begin; the end of the list if there are none."""
    at = len(messages)
    for i in range(len(messages) - 1, -1, -1):
        if isinstance(messages[i], HumanMessage):
            at = i
        elif at < len(messages):
            break
    return at


def digest(text: str) -> str:
    """A short hash by which two texts of one turn are told apart."""
    return blake2b(text.encode(), digest_size=16).hexdigest()
