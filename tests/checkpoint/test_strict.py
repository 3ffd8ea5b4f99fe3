"""Only allowed types are written and loaded; with a key, nothing else is legible or accepted."""

import enum
import sys
import types
from collections import OrderedDict, namedtuple
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import ormsgpack
import pytest
from checkpoint.making import config, put, talk, values
from checkpoint.scanning import where
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.func import entrypoint
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field, RootModel, field_serializer

from langmem_adapter.checkpoint.errors import UnlistedType, WrongKey
from langmem_adapter.checkpoint.sqlite import SqliteCheckpointer, state_types
from langmem_adapter.errors import InvalidInput, StoreCorrupt

KEY = b"0123456789abcdef0123456789abcdef"


class Mood(enum.Enum):
    GOOD = "good"


class Inner(BaseModel):
    mood: Mood = Mood.GOOD


class Order(BaseModel):
    item: str
    inner: Inner = Inner()


@dataclass
class Trip:
    to: str
    orders: list[Order] = field(default_factory=list)


class Pair(NamedTuple):
    left: int
    right: str


class State(TypedDict):
    trip: Trip
    pairs: Annotated[list[Pair] | None, lambda a, b: b]


HERE = __name__
ALL = frozenset((HERE, c.__name__) for c in (Mood, Inner, Order, Trip, Pair))
VALUE = Trip("Bonn", [Order(item="fish")])


def graph_of() -> StateGraph[Any, Any, Any, Any]:
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("go", lambda state: {"trip": VALUE, "pairs": [Pair(1, "a")]})
    graph.add_edge(START, "go")
    graph.add_edge("go", END)
    return graph


@pytest.mark.parametrize("value", [VALUE, Order(item="x"), Pair(1, "a"), Mood.GOOD, [{"deep": Mood.GOOD}]])
def test_an_unlisted_type_raises_on_write_and_is_named(saver: SqliteCheckpointer, value: Any) -> None:
    named = type(value).__name__ if not isinstance(value, list) else "Mood"
    with pytest.raises(UnlistedType, match=rf"{HERE}\.{named} cannot be stored.*allow="):
        put(saver, value=value)
    assert saver.get_tuple(config()) is None
    stored = put(saver, other=1)
    with pytest.raises(UnlistedType, match=named):
        saver.put_writes(stored, [("value", value)], "task")


def test_a_type_inside_a_message_is_not_overlooked(saver: SqliteCheckpointer) -> None:
    with pytest.raises(UnlistedType, match="Order cannot be stored"):
        put(saver, messages=[ToolMessage("done", tool_call_id="c", artifact=Order(item="x"))])


def test_what_cannot_be_packed_says_so(saver: SqliteCheckpointer) -> None:
    with pytest.raises(UnlistedType, match=r"builtins\.function"):
        put(saver, value=lambda: 1)
    with pytest.raises(InvalidInput, match="cannot be stored"):
        put(saver, value=2**70)


def test_a_class_that_cannot_be_found_again_is_refused(path: Path) -> None:
    class Local(BaseModel):
        x: int = 1

    with SqliteCheckpointer(path, allow=[Local]) as saver, pytest.raises(UnlistedType, match="top level"):
        put(saver, value=Local())


@pytest.mark.parametrize("allow", [ALL, [Trip, Order, Inner, Mood, Pair]], ids=["names", "types"])
def test_listed_types_come_back_as_they_were(path: Path, allow: Any) -> None:
    with SqliteCheckpointer(path, allow=allow) as saver:
        stored = put(saver, trip=VALUE, pairs=[Pair(1, "a")])
    with SqliteCheckpointer(path, allow=allow) as saver:
        assert values(saver, stored) == {"trip": VALUE, "pairs": [Pair(1, "a")]}
    with SqliteCheckpointer(path) as saver, pytest.raises(UnlistedType, match="is named by a stored value"):
        saver.get_tuple(stored)


def test_state_types_collects_what_a_graph_declares(saver: SqliteCheckpointer) -> None:
    assert state_types(graph_of()) == ALL
    assert state_types(graph_of().compile()) == ALL
    outer: StateGraph[Any, Any, Any, Any] = StateGraph(dict)
    outer.add_node("inner", graph_of().compile())
    outer.add_edge(START, "inner")
    assert state_types(outer) == ALL

    @entrypoint(checkpointer=saver)
    def work(order: Order, *, previous: Pair | None = None) -> entrypoint.final[Trip, Pair]:
        raise NotImplementedError

    assert {(HERE, "Trip"), (HERE, "Order")} <= state_types(work)
    with pytest.raises(InvalidInput, match="state_types takes"):
        state_types("a string")


def test_a_graph_runs_with_its_own_types_and_fails_without(path: Path) -> None:
    with SqliteCheckpointer(path, allow=state_types(graph_of())) as saver:
        graph = graph_of().compile(checkpointer=saver)
        graph.invoke({}, config())
        assert graph.get_state(config()).values["trip"] == VALUE
    with SqliteCheckpointer(path) as saver, pytest.raises(UnlistedType, match="Trip"):
        graph_of().compile(checkpointer=saver).invoke({}, config("t2"))


def test_with_allowlist_extends_a_clone_on_the_same_file(saver: SqliteCheckpointer) -> None:
    clone = saver.with_allowlist(ALL)
    stored = put(clone, trip=VALUE)
    assert values(clone, stored) == {"trip": VALUE}
    with pytest.raises(UnlistedType):
        saver.get_tuple(stored)
    assert clone.with_allowlist(ALL) is clone
    assert saver.with_allowlist([("langchain_core.messages.human", "HumanMessage")]) is saver


RAN: list[str] = []


def trap(*args: Any, **kwargs: Any) -> str:
    RAN.append("trap")
    return "sprung"


def hostile() -> list[bytes]:
    """Payloads that name a callable, in every way LangGraph's format knows."""
    names = (HERE, "trap")
    made = [
        ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb((*names, payload, *rest))))
        for code, payload, rest in (
            (0, "x", ()),
            (1, ("x",), ()),
            (2, {"a": 1}, ()),
            (3, "x", ("__call__",)),
            (4, {"a": 1}, ()),
            (5, {"a": 1}, ("model_validate_json",)),
        )
    ]
    return [*made, ormsgpack.packb({"deep": [ormsgpack.Ext(7, made[0])]})]


@pytest.mark.parametrize("payload", hostile(), ids=[*map(str, range(6)), "deep"])
def test_a_stored_payload_naming_a_callable_has_no_side_effect(saver: SqliteCheckpointer, payload: bytes) -> None:
    RAN.clear()
    JsonPlusSerializer().loads_typed(("msgpack", payload))
    control = RAN.copy()
    RAN.clear()
    stored = put(saver, value="harmless")
    with saver._connections.writing() as conn:
        conn.execute("UPDATE ckpt_channels SET data = ? WHERE channel = 'value'", (payload,))
    for load in (lambda: saver.get_tuple(stored), lambda: list(saver.list(config()))):
        with pytest.raises(UnlistedType, match="trap"):
            load()
    with pytest.raises(UnlistedType):
        saver.serde.loads_typed(("msgpack", payload))
    assert RAN == []
    assert control == ["trap"] or payload == hostile()[3], "control: the default serializer springs the trap"


@pytest.mark.parametrize("tag", ["pickle", "json"])
def test_formats_that_can_name_anything_are_not_loaded(saver: SqliteCheckpointer, tag: str) -> None:
    with pytest.raises(UnlistedType, match=tag):
        saver.serde.loads_typed((tag, b"{}"))
    assert saver.serde.loads_typed(saver.serde.dumps_typed([HumanMessage("x")])) == [HumanMessage("x")]


def test_with_a_key_no_value_and_no_metadata_is_legible(path: Path) -> None:
    with SqliteCheckpointer(path, encryption_key=KEY) as saver:
        stored = put(saver, None, {"note": "Metadata-Needle"}, messages=talk(3, "Message-Needle"), v="Value-Needle")
        saver.put_writes(stored, [("v", "Write-Needle")], "task")
        for needle in ("Metadata-Needle", "Message-Needle", "Value-Needle", "Write-Needle"):
            assert where(path, needle) == []
        assert values(saver, stored) == {"messages": talk(3, "Message-Needle"), "v": "Value-Needle"}
        assert [t.metadata["note"] for t in saver.list(None, filter={"note": "Metadata-Needle"})] == ["Metadata-Needle"]
    with SqliteCheckpointer(path.with_name("plain.db")) as plain:
        put(plain, v="Value-Needle")
        assert where(path.with_name("plain.db"), "Value-Needle"), "control"


def test_messages_are_stored_once_under_encryption_too(path: Path) -> None:
    with SqliteCheckpointer(path, encryption_key=KEY) as saver:
        for i in range(10):
            put(saver, messages=talk(i + 1))
    with SqliteCheckpointer(path, encryption_key=KEY) as saver:
        put(saver, messages=talk(10))
        with saver._connections.reading() as conn:
            assert conn.execute("SELECT count(*) FROM ckpt_elements").fetchone() == (10,)


def test_another_key_or_none_is_refused_at_open(path: Path, tmp_path: Path) -> None:
    SqliteCheckpointer(path, encryption_key=KEY).close()
    plain = tmp_path / "plain.db"
    SqliteCheckpointer(plain).close()
    for file, key, says in (
        (path, None, "are encrypted; pass"),
        (path, b"x" * 32, "another key"),
        (plain, KEY, "are not encrypted"),
    ):
        with pytest.raises(WrongKey, match=says):
            SqliteCheckpointer(file, encryption_key=key)
    with pytest.raises(InvalidInput, match="5 bytes"):
        SqliteCheckpointer(path, encryption_key="short")


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("channels", "data"),
        ("elements", "data"),
        ("writes", "data"),
        ("checkpoints", "body"),
        ("checkpoints", "metadata"),
    ],
)
def test_plaintext_put_into_an_encrypted_file_is_refused(path: Path, table: str, column: str) -> None:
    with SqliteCheckpointer(path, encryption_key=KEY) as saver:
        stored = put(saver, messages=talk(2))
        saver.put_writes(stored, [("v", "w")], "task")
        with saver._connections.writing() as conn:
            conn.execute(f"UPDATE ckpt_{table} SET {column} = ?", (ormsgpack.packb({"plain": 1}),))
        with pytest.raises(WrongKey, match="not encrypted with this key"):
            saver.get_tuple(stored)
        with pytest.raises(WrongKey, match="not encrypted"):
            saver.serde.loads_typed(("msgpack", ormsgpack.packb(1)))


def test_the_serde_encrypts_as_the_checkpointer_does(path: Path) -> None:
    with SqliteCheckpointer(path, encryption_key=KEY) as saver:
        tag, sealed = saver.serde.dumps_typed("Needle")
        assert (tag, b"Needle" in sealed) == ("msgpack+aes-gcm", False)
        assert saver.serde.loads_typed((tag, sealed)) == "Needle"


# ------------------------------------------------------------------ no loss on the way


class Base(BaseModel):
    name: str = "x"


class Cat(Base):
    lives: int = 9


class Holder(BaseModel):
    pet: Base = Base()
    anything: Any = None
    client: Any = Field(default=None, exclude=True)


class Shout(BaseModel):
    text: str

    @field_serializer("text")
    def loud(self, text: str) -> str:
        return text.upper()


class Words(RootModel[list[str]]):
    pass


class OwnDict(dict[str, int]):
    pass


class OwnStr(str):
    pass


class OwnList(list[int]):
    pass


@dataclass
class Job:
    name: str
    tries: int = field(default=0, init=False)


class Ordered(namedtuple("Ordered", "a b")):
    def __new__(cls, a: int) -> "Ordered":
        return super().__new__(cls, a, 2 * a)


KEPT = [
    Holder(pet=Cat(lives=3), anything=Cat()),
    Holder(anything=[Pair(1, "a"), {"x": Mood.GOOD}]),
    Words(["a", "b"]),
    OwnDict(a=1),
    OwnStr("x"),
    OwnList([1]),
    Ordered(3),
]


@pytest.mark.parametrize("value", KEPT, ids=lambda v: type(v).__name__)
def test_listed_values_keep_their_types_inside(path: Path, value: Any) -> None:
    allow = [Base, Cat, Holder, Words, OwnDict, OwnStr, OwnList, Ordered, Pair, Mood]
    with SqliteCheckpointer(path, allow=allow) as saver:
        found = values(saver, put(saver, value=value))["value"]
    assert (found, type(found)) == (value, type(value))
    if isinstance(value, Holder):
        assert (type(found.pet), type(found.anything)) == (type(value.pet), type(value.anything))


def test_a_field_that_is_not_set_by_the_constructor_comes_back(path: Path) -> None:
    job = Job("x")
    job.tries = 3
    with SqliteCheckpointer(path, allow=[Job]) as saver:
        assert values(saver, put(saver, job=job)) == {"job": job}


@pytest.mark.parametrize("value", [Holder(anything=Cat()), Holder(pet=Cat()), OwnDict(a=1), OwnList([1])])
def test_an_unlisted_type_inside_a_model_or_over_a_builtin_is_named(path: Path, value: Any) -> None:
    named = "Cat" if isinstance(value, Holder) else type(value).__name__
    with SqliteCheckpointer(path, allow=[Holder, Base]) as saver, pytest.raises(UnlistedType, match=named):
        put(saver, value=value)


def test_plain_relatives_of_builtins_need_no_listing(saver: SqliteCheckpointer) -> None:
    import numpy as np

    given = {"a": HumanMessage("x").text, "b": np.float64(0.5), "c": OwnStr("s"), "d": OrderedDict(x=1)}
    assert values(saver, put(saver, **given)) == {"a": "x", "b": 0.5, "c": "s", "d": {"x": 1}}


def test_what_a_model_hides_or_writes_itself_stays_so(path: Path) -> None:
    with SqliteCheckpointer(path, allow=[Holder, Base, Shout]) as saver:
        stored = put(saver, held=Holder(client=object()), said=Shout(text="a"))
        assert values(saver, stored) == {"held": Holder(), "said": Shout(text="A")}


def test_after_a_deploy_values_of_changed_classes_come_back_as_data(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    allow = [Trip, Order, Inner, Mood, Job, Pair, ("gone_module", "Gone")]
    with SqliteCheckpointer(path, allow=allow) as saver:
        put(saver, trip=Trip("Bonn"), order=Order(item="fish"), mood=Mood.GOOD, job=Job("x"), pair=Pair(1, "a"))
        put(saver, other="fine")
        module = types.ModuleType("gone_module")
        module.Gone = type("Gone", (Base,), {"__module__": "gone_module"})  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "gone_module", module)
        put(saver, config("t2"), gone=module.Gone())
    here = sys.modules[HERE]
    monkeypatch.delitem(sys.modules, "gone_module")
    for name in ("Trip", "Order"):
        monkeypatch.delattr(here, name)
    monkeypatch.setattr(here, "Mood", enum.Enum("Mood", {"BAD": "bad"}))
    monkeypatch.setattr(here, "Job", make_dataclass("Job", ["name", ("owner", str, "nobody")]))
    monkeypatch.setattr(here, "Pair", namedtuple("Pair", "left"))
    names = [(HERE, n) for n in ("Trip", "Order", "Inner", "Mood", "Job", "Pair")]
    with SqliteCheckpointer(path, allow=[*names, ("gone_module", "Gone")]) as saver:
        newest, oldest = saver.list(config())
        assert newest.checkpoint["channel_values"] == {"other": "fine"}
        found = oldest.checkpoint["channel_values"]
        assert (found["job"].name, found["job"].owner) == ("x", "nobody")
        assert found["trip"] == {"to": "Bonn", "orders": []}
        assert found["order"]["item"] == "fish"
        assert (found["mood"], found["pair"]) == ("good", {"left": 1, "right": "a"})
        assert values(saver, config("t2")) == {"gone": {"name": "x"}}
    assert "Trip could not be rebuilt" in caplog.text
    assert "Bonn" not in caplog.text


def test_a_type_named_by_no_text_is_not_loaded(saver: SqliteCheckpointer) -> None:
    stored = put(saver, value="x")
    payload = ormsgpack.packb(ormsgpack.Ext(1, ormsgpack.packb((["a"], "b", ()))))
    with saver._connections.writing() as conn:
        conn.execute("UPDATE ckpt_channels SET data = ? WHERE channel = 'value'", (payload,))
    with pytest.raises(StoreCorrupt, match="names a type"):
        saver.get_tuple(stored)


def test_the_member_of_an_enum_in_a_literal_is_collected() -> None:
    class Felt(TypedDict):
        mood: Literal[Mood.GOOD] | None

    assert state_types(StateGraph(Felt)) == {(HERE, "Mood")}


def test_the_advice_for_an_unlisted_type_helps_where_it_is_not_declared(saver: SqliteCheckpointer) -> None:
    with pytest.raises(UnlistedType, match=r"Order.*allow=\[\('.*', 'Order'\), …\].*declares"):
        put(saver, value=Order(item="x"))
