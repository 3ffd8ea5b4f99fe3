"""All that a store has below a prefix, however much it is: asked for page by page."""

from langgraph.store.base import ListNamespacesOp, MatchCondition, SearchItem, SearchOp

from langmem_adapter.namespaces import Namespace
from langmem_adapter.ports import IO

PAGE = 1_000
"""Items, or namespaces, that are asked for at once."""


async def items_under(io: IO, prefix: Namespace, filter: dict[str, object] | None = None) -> list[SearchItem]:
    """All items below a prefix, page by page."""
    found: list[SearchItem] = []
    while True:
        results, _ = await io.read([SearchOp(prefix, filter, PAGE, len(found), refresh_ttl=False)])
        found += [item for item in results[0] if item.namespace[: len(prefix)] == prefix]
        if len(results[0]) < PAGE:
            return found


async def items_in(io: IO, namespace: Namespace, filter: dict[str, object] | None = None) -> list[SearchItem]:
    """All items of a namespace, without those below it."""
    return [item for item in await items_under(io, namespace, filter) if item.namespace == namespace]


async def namespaces_under(
    io: IO, prefix: Namespace, *, suffix: str | None = None, max_depth: int | None = None
) -> list[Namespace]:
    """All namespaces below a prefix (those that end with `suffix`; cut at `max_depth` labels), page by page."""
    conditions = [MatchCondition("prefix", prefix)]
    conditions += [] if suffix is None else [MatchCondition("suffix", (suffix,))]
    found: list[Namespace] = []
    offset = 0
    while True:
        ops = [ListNamespacesOp(tuple(conditions), max_depth=max_depth, limit=PAGE, offset=offset)]
        (page,), _ = await io.read(ops)
        found += [tuple(ns) for ns in page if tuple(ns[: len(prefix)]) == prefix]
        offset += len(page)
        if len(page) < PAGE:
            return found
