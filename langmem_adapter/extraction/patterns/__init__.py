"""The rules, one module per part of life; the order is the order in which they are tried on a clause."""

from langmem_adapter.extraction.patterns import (
    affairs,
    corrections,
    doings,
    events,
    food,
    identity,
    passing,
    people,
    plans,
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
    *doings.RULES,
    *plans.RULES,
    *passing.RULES,
    *affairs.RULES,
)
"""Every rule; the first that makes something of a clause wins."""

ASIDES: tuple[Rule, ...] = passing.ASIDES
"""What each may add to what a clause has taught."""
