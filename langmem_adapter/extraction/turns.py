"""From messages to turns: one for each message a person typed, with the tool messages that follow it."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b

from langchain_core.messages import BaseMessage, HumanMessage

from langmem_adapter.extraction.origin import message_of
from langmem_adapter.namespaces import Reader
from langmem_adapter.records import Message, SourceType, Turn


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
) -> list[Turn]:
    """The turns among `messages[start:]`, oldest first.

    A message belongs to the speaker, or to whom `people` maps its name; tool messages count if their tool is in
    `tools`. The turn's id is that of its message, within its thread.
    """
    speaker.facts()  # every id is checked before anything is read
    groups: list[tuple[str, list[Message]]] = []
    for index, message in enumerate(messages[start:], start):
        said = message_of(message, index=index, session_id=speaker.session_id, people=people, user_id=speaker.user_id)
        if said.owner is not None:
            groups.append((said.owner, [said.message]))
        elif groups and said.message.role == "tool" and said.message.name in tools:
            groups[-1][1].append(said.message)
    turns = []
    for owner, parts in groups:
        turn_id = parts[0].id if speaker.session_id is None else f"{speaker.session_id}/{parts[0].id}"
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
                source_type=source_type,
                source_id=source_id or speaker.session_id or turn_id,
            )
        )
    return turns


def news(turn: Turn, stored: Turn | None) -> Turn | None:
    """The turn if it teaches something new: None if it was learnt before; an edit names what its old text taught."""
    if stored is None:
        return turn
    if stored.digest == turn.digest:
        return None if stored.status == "done" else turn.change(seq=stored.seq, taught=stored.taught)
    taught = (*stored.taught, *(o.memory_id for o in stored.operations if o.memory_id))
    return turn.change(seq=stored.seq, taught=tuple(dict.fromkeys(taught)))


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
