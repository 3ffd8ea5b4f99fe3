"""Facts from any LangGraph store, whoever wrote them: langmem, an agent's tools, your own code."""

from datetime import UTC
from typing import Any

from langgraph.store.base import BaseStore, Item, SearchOp

from langmem_adapter import arguments
from langmem_adapter import text as texts
from langmem_adapter.consolidation.rules import Rules
from langmem_adapter.errors import InvalidInput
from langmem_adapter.exchange.facts import Chain, Fact, learn, name, owner, usable
from langmem_adapter.exchange.moving import Progress
from langmem_adapter.exchange.report import Imported, Tally
from langmem_adapter.ports import IO, Ask
from langmem_adapter.records import SourceType

PAGE = 1_000
TEXT_FIELDS = ("content", "memory", "data", "text")
"""Where LangGraph's examples, langmem's tools and mem0's payloads keep what an item says."""


async def import_items(
    io: IO,
    store: BaseStore,
    namespace: tuple[str, ...],
    *,
    user_id: str,
    source_id: str | None,
    source_type: SourceType | None,
    app_name: str,
    rules: Rules,
    progress: Progress | None,
    dry_run: bool,
) -> Imported:
    """See `Memory.import_items`."""
    if not isinstance(store, BaseStore):
        raise InvalidInput(f"store must be a LangGraph store, got {store!r:.80}")
    if (
        not namespace
        or not isinstance(namespace, tuple | list)
        or not all(isinstance(label, str) for label in namespace)
    ):
        raise InvalidInput(f"namespace must be a tuple of strings that holds the user's items, got {namespace!r:.80}")
    whose, where = owner(user_id, "user_id"), name(source_id or "/".join(namespace), "source_id")
    kind = arguments.source_kind(source_type) or "user_implicit"
    left_out = Tally()
    items = await _items(io, store, tuple(namespace))

    def chains() -> list[Chain]:
        found = (_fact(item, whose, where, left_out) for item in items)
        return [[fact] for fact in found if fact is not None and usable(fact, left_out)]

    return await learn(
        io,
        await io.ask(Ask(lambda _: chains()), None),
        source_type=kind,
        app_name=app_name,
        rules=rules,
        left_out=left_out,
        progress=progress,
        dry_run=dry_run,
    )


async def _items(io: IO, store: BaseStore, namespace: tuple[str, ...]) -> list[Item]:
    ask: Ask[list[SearchOp], list[Any]] = Ask(store.batch, store.abatch)
    found: list[Item] = []
    while True:
        [page] = await io.ask(ask, [SearchOp(namespace, None, PAGE, len(found), refresh_ttl=False)])
        found += page
        if len(page) < PAGE:
            break
    return sorted(found, key=lambda item: (item.updated_at, item.namespace, item.key))


def _fact(item: Item, user_id: str, source_id: str, left_out: Tally) -> Fact | None:
    label = "/".join((*item.namespace, item.key))
    if "memory_id" in item.value and "sources" in item.value:
        left_out.add("own_record", label)  # ours: `export` and `migrate` move those whole
        return None
    text = text_of(item.value)
    if text is None:
        left_out.add("no_text", label)
        return None
    at = item.updated_at if item.updated_at.tzinfo else item.updated_at.replace(tzinfo=UTC)
    return Fact(label, user_id, text, source_id, texts.clean(label, what="key"), at=at)


def text_of(value: dict[str, Any]) -> str | None:
    """What an item says: a text field of it, or of langmem's `{"kind": …, "content": {…}}`; None if it is not text."""
    inner = value.get("content")
    fields = inner if isinstance(inner, dict) else value
    found = [fields[name] for name in TEXT_FIELDS if isinstance(fields.get(name), str)]
    return found[0] if found else None
