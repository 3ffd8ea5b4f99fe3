"""What is stored once, what comes back, and what is collected."""

import copy
import os
from collections import deque
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from checkpoint.making import config, ids, put, rows, talk, values
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Command, Interrupt, Overwrite, Send

from langmem_adapter.checkpoint.sqlite import SqliteCheckpointer
from langmem_adapter.errors import InvalidInput, StoreTooNew


def test_a_message_in_many_checkpoints_is_stored_once(saver: SqliteCheckpointer) -> None:
    said = talk(40)
    where = [put(saver, messages=said[: i + 1]) for i in range(40)]
    assert rows(saver, "ckpt_elements") == 40
    for i, place in enumerate(where):
        assert values(saver, place)["messages"] == said[: i + 1]


def test_threads_share_nothing(saver: SqliteCheckpointer) -> None:
    for thread in ("a", "b"):
        put(saver, config(thread), messages=talk(5))
    assert rows(saver, "ckpt_elements") == 10


def test_inputs_writes_and_tasks_refer_to_the_same_messages(saver: SqliteCheckpointer) -> None:
    said = talk(3, "words " * 100)
    where = put(saver, messages=said, __start__={"messages": said[2:]}, __pregel_tasks=[Send("n", {"m": said[:2]})])
    saver.put_writes(where, [("messages", said), ("other", {"deep": [{"er": said[1]}]})], "task")
    assert rows(saver, "ckpt_elements") == 3
    found = saver.get_tuple(where)
    assert found is not None
    assert found.checkpoint["channel_values"]["__pregel_tasks"] == [Send("n", {"m": said[:2]})]
    assert found.pending_writes == [("task", "messages", said), ("task", "other", {"deep": [{"er": said[1]}]})]


def test_edits_removals_and_reorderings_cost_only_what_is_new(saver: SqliteCheckpointer) -> None:
    said = talk(20)
    edited = [*said[:7], HumanMessage("edited", id="m7"), *said[8:]]
    removed = [*said[:3], *said[5:]]
    turned = said[::-1]
    places = [put(saver, messages=m) for m in (said, edited, removed, turned)]
    assert rows(saver, "ckpt_elements") == 21
    assert [values(saver, p)["messages"] for p in places] == [said, edited, removed, turned]


def test_a_message_changed_in_place_is_another_message(saver: SqliteCheckpointer) -> None:
    said = talk(3)
    before = copy.deepcopy(said)
    first = put(saver, messages=said)
    said[1].content = "other words"
    said[2].additional_kwargs["mark"] = [1]
    second = put(saver, messages=said)
    assert values(saver, first)["messages"] == before
    assert values(saver, second)["messages"] == said
    assert rows(saver, "ckpt_elements") == 5


def test_what_was_loaded_shares_nothing_with_other_checkpoints(saver: SqliteCheckpointer) -> None:
    said = [AIMessage("x", id="a", additional_kwargs={"list": [1]}, tool_calls=[{"name": "n", "args": {}, "id": "c"}])]
    put(saver, messages=said)
    put(saver, messages=said)
    one, other = list(saver.list(config()))
    one.checkpoint["channel_values"]["messages"][0].additional_kwargs["list"].append(2)
    one.checkpoint["channel_values"]["messages"][0].tool_calls[0]["args"]["changed"] = 1
    assert other.checkpoint["channel_values"]["messages"] == said


ODD: dict[str, Any] = {
    "none": None,
    "text": "naïve ☃ \U0001f600",
    "bytes": b"\0\xff",
    "bytearray": bytearray(b"abc"),
    "numbers": [0, -1, 2**63, 1.5, float("inf"), True],
    "nested": {"a": [{"b": {"c": [1, {"d": None}]}}], 5: "five", (1, 2): "pair"},
    "sets": [{1, 2}, frozenset((3,)), deque([4])],
    "times": [datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=2, seconds=3)],
    "leaves": [UUID(int=7), Decimal("1.50"), Path("a/b")],
    "array": np.arange(6, dtype=np.float32).reshape(2, 3),
    "document": Document("page", metadata={"k": "v"}),
    "control": [Command(goto="n", update={"a": 1}), Send("n", {"x": 1}), Interrupt("v", id="i"), Overwrite([1])],
    "mixed": [HumanMessage("h", id="1"), "text", ToolMessage("r", tool_call_id="c", id="2")],
    "empty": [],
    "big": "y" * 100_000,
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("key", [None, b"k" * 32], ids=["plain", "encrypted"])
def test_every_kind_of_value_comes_back(path: Path, name: str, key: bytes | None) -> None:
    value = ODD[name]
    with SqliteCheckpointer(path, encryption_key=key) as saver:
        where = put(saver, value=value, again=[value])
        saver.put_writes(where, [("value", value)], "task")
    with SqliteCheckpointer(path, encryption_key=key) as saver:
        found = saver.get_tuple(where)
        assert found is not None
        assert found.pending_writes is not None
        for back in (
            found.checkpoint["channel_values"]["value"],
            found.checkpoint["channel_values"]["again"][0],
            found.pending_writes[0][2],
        ):
            if name == "array":
                assert (back == value).all()
                assert back.dtype == value.dtype
            elif name == "nested":
                assert back == {"a": [{"b": {"c": [1, {"d": None}]}}], 5: "five", (1, 2): "pair"}
            elif name != "bytearray" or isinstance(back, bytearray):
                assert back == value
                assert type(back) is type(value)


def test_snapshots_of_delta_channels_share_their_messages(saver: SqliteCheckpointer) -> None:
    said = talk(30)
    first = put(saver, messages=_DeltaSnapshot(said[:20]))
    second = put(saver, messages=_DeltaSnapshot(said))
    assert values(saver, first)["messages"] == _DeltaSnapshot(said[:20])
    assert values(saver, second)["messages"] == _DeltaSnapshot(said)
    assert rows(saver, "ckpt_elements") == 30


def test_five_megabytes_are_stored_once_and_collected(saver: SqliteCheckpointer, path: Path) -> None:
    blob = os.urandom(5 << 20)
    first = put(saver, blob=blob)
    saver.put_writes(first, [("blob", blob)], "task")
    second = put(saver, first, blob=blob, messages=[HumanMessage("z" * (5 << 20), id="m")])
    assert values(saver, second)["blob"] == blob
    assert path.stat().st_size + Path(f"{path}-wal").stat().st_size < 25 << 20
    assert rows(saver, "ckpt_elements") == 2
    put(saver, second, small=1)
    saver.prune(["t1"])
    assert rows(saver, "ckpt_elements") == 0


def test_collection_keeps_what_others_need(saver: SqliteCheckpointer) -> None:
    said = talk(10)
    put(saver, config(), {"run_id": "r1"}, messages=said[:6], large="l" * 1000)
    kept = put(saver, config(), {"run_id": "r2"}, messages=[*said[:3], *said[8:]])
    saver.put_writes(kept, [("x", {"m": said[4], "pad": "p" * 500})], "task")
    saver.delete_for_runs(["r1"])
    assert ids(list(saver.list(config()))) == [kept["configurable"]["checkpoint_id"]]
    assert values(saver, kept)["messages"] == [*said[:3], *said[8:]]
    assert rows(saver, "ckpt_elements") == 7
    after = put(saver, kept, messages=said)
    assert values(saver, after)["messages"] == said


def test_a_thread_emptied_by_its_runs_leaves_no_row(saver: SqliteCheckpointer) -> None:
    put(saver, config(), {"run_id": "r1"}, messages=talk(3))
    saver.delete_for_runs(["r1"])
    assert [rows(saver, f"ckpt_{t}") for t in ("threads", "spaces", "elements", "channels", "writes")] == [0] * 5


def test_a_copy_lives_on_its_own(saver: SqliteCheckpointer) -> None:
    first = put(saver, messages=talk(4))
    second = put(saver, first, messages=talk(8))
    saver.put_writes(second, [("x", talk(9))], "task")
    saver.copy_thread("t1", "t2")
    original = [t._replace(config={}, parent_config=None) for t in saver.list(config("t1"))]
    saver.delete_thread("t1")
    assert [t._replace(config={}, parent_config=None) for t in saver.list(config("t2"))] == original
    with pytest.raises(InvalidInput, match="'t2' exists"):
        saver.copy_thread("t2", "t2")


def test_put_while_listing_works(saver: SqliteCheckpointer) -> None:
    for i in range(30):
        put(saver, messages=talk(i + 1))
    for item in saver.list(config()):
        put(saver, item.config, messages=talk(3))
    assert len(list(saver.list(config()))) == 60


async def test_put_while_listing_works_asynchronously(saver: SqliteCheckpointer) -> None:
    for i in range(30):
        put(saver, messages=talk(i + 1))
    async for item in saver.alist(config()):
        await saver.aput_writes(item.config, [("x", 1)], "task")
    assert rows(saver, "ckpt_writes") == 30


def test_lists_filter_page_and_span_threads(saver: SqliteCheckpointer) -> None:
    made = [put(saver, config(f"t{i % 3}", ns="" if i % 2 else "sub:1"), {"step": i}, x=i) for i in range(12)]
    everything = list(saver.list(None))
    assert ids(everything) == sorted(ids(everything), reverse=True)
    assert len(everything) == 12
    assert [t.metadata["step"] for t in saver.list({"configurable": {"thread_id": "t1"}})] == [10, 7, 4, 1]
    assert [t.metadata["step"] for t in saver.list(config("t1"))] == [7, 1]
    assert [t.metadata["step"] for t in saver.list(None, filter={"step": 5})] == [5]
    assert [t.metadata["step"] for t in saver.list(None, before=made[5], limit=2)] == [4, 3]
    assert list(saver.list(None, limit=0)) == []


def test_values_without_versions_are_kept(saver: SqliteCheckpointer) -> None:
    from langgraph.checkpoint.base import empty_checkpoint

    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"key": "value", "messages": talk(2)}
    where = saver.put({"configurable": {"thread_id": "t1"}}, checkpoint, {}, {})
    put(saver, where, other=1)
    saver.delete_for_runs(["none"])
    assert values(saver, where) == {"key": "value", "messages": talk(2)}


def test_a_list_that_only_grew_is_three_bytes(saver: SqliteCheckpointer) -> None:
    said = talk(450)
    for count in (1, 20, 449, 450):
        put(saver, messages=said[:count])
    with saver._connections.reading() as conn:
        sizes = [n for (n,) in conn.execute("SELECT length(data) FROM ckpt_channels ORDER BY version")]
    assert sizes == [3, 3, 5, 5]


def test_a_list_changed_while_it_is_stored_is_stored_as_it_is_at_some_moment(saver: SqliteCheckpointer) -> None:
    from langmem_adapter.checkpoint import values as stored_values
    from langmem_adapter.checkpoint.messages import Drafter

    said = talk(6)
    put(saver, messages=said[:4])
    prepare, original = stored_values.prepare, copy.deepcopy(said)

    def meddling(value: Any, codec: Any, drafter: Drafter) -> Any:
        prepared = prepare(value, codec, drafter)
        said[5].content = "changed between packing and storing"
        return prepared

    stored_values.prepare = meddling
    try:
        place = put(saver, messages=said)
    finally:
        stored_values.prepare = prepare
    assert values(saver, place)["messages"] == said
    said[5].content = original[5].content
    assert values(saver, put(saver, messages=said))["messages"] == original


def test_versions_grow_also_from_those_of_other_savers(saver: SqliteCheckpointer) -> None:
    version = None
    for _ in range(20):
        following = saver.get_next_version(version, None)
        assert version is None or following > version
        version = following
    other = f"{123:032}.{0.5:016}"
    assert saver.get_next_version(other, None) > other
    assert saver.get_next_version(other, None).startswith(f"{124:08x}.")


def test_a_newer_file_is_refused_untouched(path: Path) -> None:
    with SqliteCheckpointer(path) as saver, saver._connections.writing() as conn:
        conn.execute("UPDATE ckpt_meta SET value = '99' WHERE key = 'schema'")
    before = path.read_bytes()
    with pytest.raises(StoreTooNew, match="schema 99"):
        SqliteCheckpointer(path)
    assert path.read_bytes() == before


def test_a_config_without_thread_is_refused(saver: SqliteCheckpointer) -> None:
    with pytest.raises(InvalidInput, match="thread_id"):
        saver.get_tuple({"configurable": {}})
