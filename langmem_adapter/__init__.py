"""Long-term memory for LangGraph and LangChain agents that can say why it believes something.

    from langmem_adapter import Memory

    memory = Memory("memory.db")
    memory.add("I'm a vegetarian.", user_id="ada")
    memory.search("what should we order?", user_id="ada")

The graph nodes are in `langmem_adapter.langgraph`, the agent middleware in `langmem_adapter.middleware`.
"""
