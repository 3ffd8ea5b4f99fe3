"""Session summaries: made at the end or after a silence, seen only in their session, gone with it."""

from datetime import timedelta

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from support import Clock, Model, config

from langmem_adapter.middleware import MemoryMiddleware
from langmem_adapter.testing import ScriptedChatModel

THREAD = [HumanMessage("I'm a vegetarian.", id="h1"), AIMessage("Noted.", id="a1"),
          HumanMessage("Book Lima for May.", id="h2"), AIMessage("Done.", id="a2")]  # fmt: skip


def test_offline_it_tells_what_was_taught_and_said_last(memory):
    memory.add(THREAD, user_id="u", session_id="t")
    summary = memory.end_session(THREAD, user_id="u", session_id="t")
    assert summary.content == (
        'Learnt in this session: The user follows a vegetarian diet. The user last said: "I\'m a vegetarian." / '
        '"Book Lima for May."'
    )
    assert (summary.kind, summary.metadata["through"]) == ("summary", "a2")
    assert memory.get_summary(user_id="u", session_id="t") == summary


def test_a_model_writes_it_from_the_earlier_one_and_what_came_since(make):
    model = ScriptedChatModel(replies=["The user plans a trip.", "The user booked Lima."])
    memory = make(model=model)
    memory.end_session(THREAD[:2], user_id="u", session_id="t")
    assert memory.end_session(THREAD, user_id="u", session_id="t").content == "The user booked Lima."
    asked = model.prompts[1][1].text
    assert "Summary so far: The user plans a trip." in asked
    assert "vegetarian" not in asked
    assert "user: Book Lima for May." in asked


def test_it_is_seen_only_in_its_session_and_is_no_memory(memory):
    memory.end_session(THREAD, user_id="u", session_id="t")
    assert memory.get_summary(user_id="u", session_id="other") is None
    assert memory.get_summary(user_id="other", session_id="t") is None
    assert memory.search("Lima", user_id="u", session_id="t") == []
    assert memory.get_all(user_id="u", status="all") == []


def test_erasure_reaches_it(memory):
    ops = memory.add(THREAD, user_id="u", session_id="t")
    for erase in (
        lambda: memory.delete(ops[0].memory_id, user_id="u"),
        lambda: memory.forget_source("t", user_id="u"),
        lambda: memory.delete_all(user_id="u"),
    ):
        memory.end_session(THREAD, user_id="u", session_id="t")
        erase()
        assert memory.get_summary(user_id="u", session_id="t") is None


def test_after_a_silence_it_stands_in_for_the_transcript(make):
    clock = Clock()
    memory, model = make(clock=clock), Model()
    middleware = MemoryMiddleware(memory, session_summary=True, idle=timedelta(hours=1))
    agent = create_agent(model, [], middleware=[middleware], checkpointer=InMemorySaver(), system_prompt="Be brief.")

    def say(text: str) -> str:
        agent.invoke({"messages": [HumanMessage(text)]}, config())
        return "\n".join(m.text for m in model.prompts[-1])

    say("My zebra is called Zoltan.")
    clock.forward(minutes=5)
    assert "SESSION_SUMMARY" not in say("And it is striped.")
    clock.forward(hours=2)
    told = say("What was I saying?")
    assert "<SESSION_SUMMARY>" in model.system
    assert "zebra" in model.system
    assert [m.text for m in model.prompts[-1][1:]] == ["What was I saying?"]
    assert told.count("striped") == 1
    state = agent.get_state(config()).values
    assert "SESSION_SUMMARY" not in str(state)
    assert len(state["messages"]) == 6


async def test_async_too(make):
    clock = Clock()
    memory, model = make(clock=clock), Model()
    middleware = MemoryMiddleware(memory, session_summary=True)
    agent = create_agent(model, [], middleware=[middleware], checkpointer=InMemorySaver())
    await agent.ainvoke({"messages": [HumanMessage("My zebra is called Zoltan.")]}, config())
    clock.forward(hours=2)
    await agent.ainvoke({"messages": [HumanMessage("Go on.")]}, config())
    assert "zebra" in model.system
