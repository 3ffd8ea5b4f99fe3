"""The pipeline on PostgreSQL: the concierge's story, isolation, forgetting, and a graph whose database dies."""

from collections.abc import Iterator

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from stores.postgres_fixtures import *  # noqa: F403
from stores.postgres_server import server
from support import Model, config

from langmem_adapter.embeddings import HashEmbeddings
from langmem_adapter.langgraph import MemoryState, prompt_with_memories, recall_node, remember_node
from langmem_adapter.memory import Memory
from langmem_adapter.stores.postgres import PostgresMemoryStore

FISH, AISLE, ADA = "The user eats fish again.", "The user prefers aisle seating on flights.", "The user goes by Ada."


def open_memory(url: str, schema: str = "langmem_adapter") -> Memory:
    index = {"dims": 256, "embed": HashEmbeddings(), "fields": ["content"]}
    return Memory(PostgresMemoryStore(url, schema=schema, index=index))  # type: ignore[arg-type]


@pytest.fixture
def memory(database: str, schema: str) -> Iterator[Memory]:
    memory = open_memory(database, schema)
    yield memory
    memory.store.close()  # type: ignore[attr-defined]


@pytest.fixture
def story(memory: Memory) -> Memory:
    """What the user told the concierge in three sessions."""
    for session, kind, text in (
        ("s1", "user_implicit", "Hi! I'm a vegetarian. Please call me Ada, and I prefer the aisle seat."),
        ("s2", "user_implicit", "As I said, I'm vegetarian."),
        ("s3", "user_explicit", "I've started eating fish again."),
    ):
        memory.add(text, user_id="ada", session_id=session, source_type=kind)  # type: ignore[arg-type]
    return memory


def test_the_story_ends_with_fish_from_three_sources(story: Memory) -> None:
    records = {r.content: r for r in story.get_all(user_id="ada")}
    assert set(records) == {FISH, AISLE, ADA}
    assert (records[FISH].confidence, records[AISLE].confidence) == (0.90, 0.65)
    assert [(s.source_id, s.role) for s in records[FISH].sources] == [
        ("s1", "lineage"),
        ("s2", "lineage"),
        ("s3", "support"),
    ]
    assert [o.action for o in story.add("I've started eating fish again.", user_id="ada", session_id="s4")] == ["NOOP"]


@pytest.mark.parametrize(
    ("query", "scores"),
    [
        ("any dietary restrictions I should know about?", (0.473, 0.388, 0.370)),
        ("what seat should I book on the flight?", (0.392, 0.444, 0.370)),
        ("what should we order for lunch?", (0.370, 0.349, 0.370)),
    ],
)
def test_scores_by_vectors_are_the_reference_ones(story: Memory, query: str, scores: tuple[float, ...]) -> None:
    found = {h.record.content: h.score for h in story.search(query, user_id="ada", mode="vector")}
    assert tuple(round(found[content], 3) for content in (FISH, AISLE, ADA)) == pytest.approx(scores, abs=0.0011)


def test_another_user_sees_nothing(story: Memory) -> None:
    assert story.search("fish", user_id="eve") == []
    assert story.get_all(user_id="eve", status="all") == []
    [fish] = [r for r in story.get_all(user_id="ada") if r.content == FISH]
    assert story.get(fish.memory_id, user_id="eve") is None


def test_forgetting_a_source_erases_what_rests_on_it_alone(story: Memory) -> None:
    receipt = story.forget_source("s1", user_id="ada")
    assert {r.content for r in story.get_all(user_id="ada")} == {FISH}
    assert receipt.erased != ()
    assert [h.record.content for h in story.search("aisle seat", user_id="ada")] == [FISH]


def test_deleting_a_user_leaves_nothing(story: Memory) -> None:
    assert story.delete_all(user_id="ada") > 0
    assert story.get_all(user_id="ada", status="all") == []
    assert story.store.search(()) == []


def test_words_rank_as_they_do_in_sqlite(story: Memory, tmp_path) -> None:
    with Memory(tmp_path / "memory.db") as other:
        for record in story.get_all(user_id="ada", status="all"):
            other.store.put(("n",), record.memory_id, record.model_dump(mode="json"), index=["content"])
            story.store.put(("n",), record.memory_id, record.model_dump(mode="json"), index=["content"])
        for query in ("fish", "which aisle does the user prefer on flights?", "Ada eats"):
            ours, theirs = ([(i.key, i.score) for i in m.store.search(("n",), query=query)] for m in (story, other))
            assert [k for k, score in ours if score] == [k for k, score in theirs if score]
            assert [s for _, s in ours if s] == pytest.approx([s for _, s in theirs if s], abs=0.05)


def test_a_graph_answers_while_its_database_is_dead_and_remembers_again_afterwards() -> None:
    with server() as mortal:
        memory, model = open_memory(mortal.url()), Model()
        builder = StateGraph(MemoryState)
        builder.add_node("recall", recall_node(memory))
        builder.add_node("model", lambda s: {"messages": [model.invoke(prompt_with_memories(s, system="Concierge."))]})
        builder.add_node("remember", remember_node(memory))
        for a, b in ((START, "recall"), ("recall", "model"), ("model", "remember"), ("remember", END)):
            builder.add_edge(a, b)
        app = builder.compile(checkpointer=InMemorySaver())

        def say(text: str, thread: str) -> str:
            return app.invoke({"messages": [HumanMessage(text)]}, config(thread_id=thread))["messages"][-1].text

        assert say("I'm a vegetarian.", "t1") == "Understood."
        mortal.kill()
        assert say("Please call me Ada.", "t2") == "Understood."
        assert "vegetarian" not in model.system
        mortal.start()
        assert say("Which diet do I follow?", "t3") == "Understood."
        assert "The user follows a vegetarian diet." in model.system
        say("Please call me Ada.", "t4")
        assert {r.content for r in memory.get_all(user_id="u")} == {"The user follows a vegetarian diet.", ADA}
        memory.store.close()  # type: ignore[attr-defined]
