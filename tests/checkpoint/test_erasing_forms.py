"""Whatever a state holds, its messages can be erased; and what they said is gone in whatever form it stood."""

from typing import Any

import pytest
from checkpoint.making import put, values
from langchain_core.messages import AIMessage, HumanMessage

from langmem_adapter.checkpoint.sqlite import SqliteCheckpointer
from langmem_adapter.checkpoint.tombstones import ERASED

NEEDLE = "Zanzibar-Quoll lives at 7 Elm Row"

PAIRS = [
    [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:x"}}],
    [["a", "b"], ["c", "d"]],
    [None, "x"],
    [1, 2],
    [b"x", "y"],
]


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_pairs_of_anything_can_stand_beside_an_erased_message(saver: SqliteCheckpointer, pair: Any) -> None:
    blocks = [AIMessage(pair, id="blocks")] if isinstance(pair[0], dict) else []
    place = put(saver, messages=[HumanMessage(NEEDLE, id="v"), *blocks], rows=pair)
    saver.erase_messages("t1", ["v"])
    kept = {"messages": [HumanMessage(ERASED, id="v"), *blocks], "rows": pair}
    assert values(saver, place) == kept
    saver.put_writes(place, [("rows", pair)], "task")
    assert values(saver, put(saver, place, **kept)) == kept
