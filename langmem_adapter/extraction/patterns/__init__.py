"""The rules, one module per part of life; the order is the order in which they are tried on a clause."""

from langmem_adapter.extraction.patterns import (
    affairs,
    corrections,
    events,
    food,
    identity,
    people,
    style,
    tastes,
    work,
)
from langmem_adapter.extraction.phrases import Rule

RULES: tuple[Rule, ...] = (
    *style.RULES,
    *corrections.RULES,
    *food.RULES,
    *identity.RULES,
    *people.RULES,
    *work.RULES,
    *tastes.RULES,
    *events.RULES,
    *affairs.RULES,
)
"""Every rule; the first that makes something of a clause wins."""
