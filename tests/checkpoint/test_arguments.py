"""What is no key, no list, no policy or no config is refused by name, before anything happens."""

from pathlib import Path
from typing import Any

import pytest
from checkpoint.making import config, put, talk, values
from langgraph.graph import MessagesState

from langmem_adapter.checkpoint.sqlite import SqliteCheckpointer
from langmem_adapter.errors import InvalidInput


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"encryption_key": 32}, "encryption_key"),
        ({"encryption_key": [0] * 16}, "encryption_key"),
        ({"keep_last": "3"}, "keep_last"),
        ({"keep_last": 1.5}, "keep_last"),
        ({"keep_last": True}, "keep_last"),
        ({"max_age": "1d"}, "max_age"),
        ({"max_age": True}, "max_age"),
        ({"max_age": float("nan")}, "max_age"),
        ({"allow": None}, "allow="),
        ({"allow": MessagesState}, "allow="),
        ({"allow": "name"}, "allow="),
    ],
    ids=str,
)
def test_wrong_arguments_are_named(path: Path, wrong: Any, named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        SqliteCheckpointer(path, **wrong)
    assert not path.exists()


def test_a_path_of_another_kind_is_refused(path: Path) -> None:
    with pytest.raises(InvalidInput, match="path"):
        SqliteCheckpointer(str(path).encode())  # type: ignore[arg-type]


def test_a_string_is_not_a_list_of_ids(saver: SqliteCheckpointer) -> None:
    for thread in "abc":
        put(saver, config(thread), x=1)
    for call in (
        lambda: saver.prune("abc", strategy="delete"),
        lambda: saver.prune("abc"),
        lambda: saver.delete_for_runs("abc"),
        lambda: saver.erase_messages("a", "abc"),
        lambda: saver.erase_messages("a", [None]),  # type: ignore[list-item]
        lambda: saver.erase_messages("a", [1]),  # type: ignore[list-item]
    ):
        with pytest.raises(InvalidInput, match="ids"):
            call()
    assert len(list(saver.list(None))) == 3


async def test_the_async_twins_refuse_it_too(saver: SqliteCheckpointer) -> None:
    put(saver, config("a"), x=1)
    with pytest.raises(InvalidInput, match="ids"):
        await saver.aprune("a", strategy="delete")
    with pytest.raises(InvalidInput, match="ids"):
        await saver.adelete_for_runs("a")
    assert len(list(saver.list(None))) == 1


@pytest.mark.parametrize("wrong", [None, {}, {"configurable": {"thread_id": "\ud800"}}], ids=["none", "empty", "half"])
def test_a_config_without_a_usable_thread_is_refused(saver: SqliteCheckpointer, wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="thread_id"):
        saver.get_tuple(wrong)


def test_an_array_that_cannot_be_stored_says_so(saver: SqliteCheckpointer) -> None:
    import numpy as np

    for array in (
        np.array([{"a": 1}], dtype=object),
        np.zeros(2, dtype=[("a", "i4"), ("b", "f8")]),
    ):
        with pytest.raises(InvalidInput, match="cannot be stored"):
            put(saver, messages=talk(1), x=array)
    assert list(saver.list(None)) == []


def test_arrays_of_times_are_stored(saver: SqliteCheckpointer) -> None:
    import numpy as np

    days = np.array(["2024-01-01", "2025-02-03"], dtype="datetime64[D]")
    stored = put(saver, x=days, y=days - days[0])
    assert values(saver, stored)["x"].tolist() == days.tolist()
    assert values(saver, stored)["y"].tolist() == (days - days[0]).tolist()


def test_forks_keep_apart_when_a_node_seeds_random(saver: SqliteCheckpointer) -> None:
    import random

    found = set()
    for _ in range(3):
        random.seed(42)
        found.add(saver.get_next_version("00000001.0", None))
    assert len(found) == 3
