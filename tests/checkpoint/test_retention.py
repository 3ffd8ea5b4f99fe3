"""Retention bounds what a thread holds, subgraphs and orphaned writes included."""

import time
from pathlib import Path
from typing import Any

from checkpoint.making import config, put, rows
from checkpoint.scanning import where
from langchain_core.messages import AIMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from langmem_adapter.checkpoint.sqlite import SqliteCheckpointer


def asking(saver: SqliteCheckpointer) -> Any:
    inner: StateGraph[Any, Any, Any, Any] = StateGraph(MessagesState)
    inner.add_node("ask", lambda state: {"messages": [AIMessage(interrupt("ok?"))]})
    inner.add_edge(START, "ask")
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(MessagesState)
    graph.add_node("inner", inner.compile())
    graph.add_edge(START, "inner")
    return graph.compile(checkpointer=saver)


def test_a_graph_with_a_subgraph_stays_bounded(path: Path) -> None:
    with SqliteCheckpointer(path, keep_last=1) as saver:
        graph = asking(saver)
        for n in range(5):
            graph.invoke({"messages": [("user", "hi")]}, config())
            saver.maintain()
            assert rows(saver, "ckpt_checkpoints") == 2  # the graph's and that of the call under way
            graph.invoke(Command(resume="yes"), config())
            assert graph.get_state(config()).values["messages"][-1].text == "yes"
            saver.maintain()
            assert rows(saver, "ckpt_checkpoints") == 1, n


def test_writes_without_a_checkpoint_grow_old_too(path: Path) -> None:
    with SqliteCheckpointer(path, max_age=3600) as saver:
        put(saver, config("other"), x=1)
        saver.put_writes(config(checkpoint_id=empty_checkpoint()["id"]), [("x", "Zanzibar-Quoll")], "task")
        assert saver.maintain().threads == 0
        assert where(path, "Zanzibar-Quoll"), "control"
        assert saver.maintain(now=time.time() + 7200).threads == 2
        assert where(path, "Zanzibar-Quoll") == []
