"""Namespaces: fixed layout, reversible and collision-free labels."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langmem_adapter.errors import InvalidInput, MissingUser
from langmem_adapter.namespaces import MAX_ID_BYTES, escape, namespace, unescape

ids = st.text(min_size=1, max_size=40).filter(lambda s: s.strip() and not any("\ud800" <= c <= "\udfff" for c in s))


@given(ids)
def test_an_id_comes_back_from_its_label(value):
    label = escape(value)
    assert re.fullmatch("[a-z0-9-]+", label)
    assert unescape(label) == value


@given(ids, ids)
def test_different_ids_have_different_labels_also_without_case(a, b):
    if a != b:
        assert escape(a).casefold() != escape(b).casefold()


@pytest.mark.parametrize(
    ("a", "b"), [("A", "a"), ("a.b", "a/b"), ("john-doe", "john_doe"), ("u%", "u_"), ("é", "e\u0301")]
)
def test_ids_that_nearly_collide_do_not(a, b):
    assert escape(a) != escape(b)


def test_the_layout_is_fixed():
    assert namespace("facts", app_name="default", user_id="u1") == ("memories", "default", "user", "u1", "facts")
    assert namespace("facts", app_name="d", user_id="a@b.c", scope="session", session_id="T 1") == (
        "memories", "d", "user", "a-40b-2ec", "session", "-54-201", "facts",
    )  # fmt: skip
    assert namespace("turns", app_name="d", user_id="u", scope="agent", agent_id="x") == (
        "memories", "d", "user", "u", "agent", "x", "turns",
    )  # fmt: skip
    assert namespace("facts", app_name="d", scope="team", team_id="t") == ("memories", "d", "team", "t", "facts")
    assert namespace("facts", app_name="d", scope="app") == ("memories", "d", "app", "facts")


@pytest.mark.parametrize("bad", ["", "  ", "\t\n", None, 7, b"u", "u\ud800"])
def test_an_id_that_is_no_id_raises(bad):
    with pytest.raises(MissingUser, match="user_id"):
        namespace("facts", app_name="d", user_id=bad)


def test_an_overlong_id_raises():
    with pytest.raises(InvalidInput, match="513 bytes"):
        escape("x" * (MAX_ID_BYTES + 1))
