"""Whose an item is: the part of a namespace that row-level security and partitions go by.

("memories", app, "user" | "team", <id>, …)   memories.app.user.<id>
("memories", app, "app", …)                   memories.app.app
any other namespace                           its first two labels
"""

from collections.abc import Iterable, Sequence

from langmem_adapter.stores.values import path

EVERYBODY = "."
"""Instead of an owner, for what concerns all of them: sweeping, listing. No owner is called so."""


def owner_of(namespace: Sequence[str]) -> str:
    """The owner of what lies in this namespace."""
    return path(namespace[: _depth(namespace)])


def owner_under(prefix: Sequence[str]) -> str | None:
    """The one owner of all that may lie under this prefix; None if there can be several."""
    if len(prefix) < 2 or len(prefix) < _depth(prefix):
        return None
    if prefix[0] == "memories" and len(prefix) == 2:
        return None
    return owner_of(prefix)


def distinct(owners: Iterable[str]) -> list[str]:
    """Each of them once, in an order of their own."""
    return sorted(set(owners))


def _depth(namespace: Sequence[str]) -> int:
    if namespace[0] == "memories" and len(namespace) > 2:
        return {"user": 4, "team": 4, "app": 3}.get(namespace[2], 2)
    return 2


def setting(owners: Iterable[str]) -> str:
    """The value of `lm.owner` that lets a transaction see these owners and no others."""
    names = set(owners)
    # No label is empty or has a dot, so two dots stand in no owner.
    return EVERYBODY if EVERYBODY in names else "..".join(sorted(names))
