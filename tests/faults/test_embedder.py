"""A memory that is opened with another embedder: refused, naming both; without one, and after `reindex`, it works."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faults.concierge import KNOWN, Concierge, taught

from langmem_adapter.embeddings import HashEmbeddings
from langmem_adapter.errors import EmbedderMismatch
from langmem_adapter.memory import Memory
from langmem_adapter.stores.sqlite import SqliteMemoryStore

OTHER: Any = {"dims": 64, "embed": HashEmbeddings(64), "fields": ["content"]}


def test_it_is_refused_at_open_and_both_are_named(tmp_path: Path, tried: Callable[[str], None]) -> None:
    taught(tmp_path / "m.db")
    with pytest.raises(EmbedderMismatch, match=r"m\.db.*hash-256 \(256 numbers\).*hash-64 \(64 numbers\)"):
        Memory(tmp_path / "m.db", embeddings=HashEmbeddings(64))
    with Memory(tmp_path / "m.db") as memory:
        assert [h.record.content for h in memory.search("vegetarian", user_id="u")] == [KNOWN]
    tried("64 numbers on a file of 256")


def test_without_an_embedder_memories_are_read_found_by_words_and_recalled(
    tmp_path: Path, tried: Callable[[str], None]
) -> None:
    taught(tmp_path / "m.db")
    with SqliteMemoryStore(tmp_path / "m.db") as store, Concierge(store) as concierge:
        memory = concierge.memory
        [record] = memory.get_all(user_id="u")
        assert memory.get(record.memory_id, user_id="u") == record
        [hit] = memory.search("vegetarian", user_id="u", mode="text")
        assert hit.parts.relevance > 0
        assert KNOWN in concierge.say("Am I a vegetarian?")
        assert concierge.told() == ["learnt"]
    tried("a get, a word search and a turn on a file of 256 numbers")


def test_another_one_takes_over_by_reindexing(tmp_path: Path, tried: Callable[[str], None]) -> None:
    taught(tmp_path / "m.db")
    with SqliteMemoryStore(tmp_path / "m.db", index=OTHER, replace_embedder=True) as store:
        with Concierge(store) as concierge:
            assert KNOWN in concierge.say("Am I a vegetarian?")  # by its words
        assert store.reindex() == 1
        [hit] = Memory(store).search(KNOWN, user_id="u", mode="vector")
        assert hit.parts.relevance == pytest.approx(1.0, abs=0.01)
    with Memory(tmp_path / "m.db", embeddings=HashEmbeddings(64)) as memory:
        assert [h.record.content for h in memory.search("vegetarian", user_id="u")] == [KNOWN]
    tried("from 256 numbers to 64, a turn before and a search after")


def test_one_that_fails_costs_no_turn_and_no_fact(tmp_path: Path, tried: Callable[[str], None]) -> None:
    class Away(HashEmbeddings):
        away = False

        def embed_query(self, text: str) -> list[float]:
            if self.away:
                raise ConnectionError("the provider is away")
            return super().embed_query(text)

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            if self.away:
                raise ConnectionError("the provider is away")
            return super().embed_documents(texts)

    embedder = Away()
    with Concierge(tmp_path / "m.db", embeddings=embedder) as concierge:
        embedder.away = True
        concierge.say("I'm a vegetarian.", id="h1")
        assert concierge.told() == ["recall_failed", "remember_failed", "remember_queued"]
        [waiting] = concierge.memory.pending(user_id="u")
        assert waiting.messages[0].text == "I'm a vegetarian."
        embedder.away = False
        concierge.memory.retry(user_id="u")
        assert KNOWN in concierge.say("Am I a vegetarian?", id="h2")
    tried("1 turn without it, learnt when it was back")
