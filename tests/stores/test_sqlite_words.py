"""Word search, in many languages, and its fusion with vectors."""

from typing import Any

import pytest
from langgraph.store.base import PutOp

from langmem_adapter.embeddings import HashEmbeddings
from langmem_adapter.errors import InvalidInput
from langmem_adapter.stores import tokens
from langmem_adapter.stores.sqlite import SqliteMemoryStore

N = ("n",)


def hits(store: SqliteMemoryStore, query: str) -> list[str]:
    return [i.key for i in store.search(N, query=query, limit=50) if i.score is not None]


@pytest.fixture
def words() -> Any:
    with SqliteMemoryStore(":memory:") as store:
        texts = {
            "en": "Backups run nightly on the server",
            "en2": "the user's résumé is in the café",
            "de": "Wir haben die Häuser der Familie verkauft",
            "fr": "Elle a mangé des pommes avec les enfants",
            "es": "Los gatos comen pescado en la cocina",
            "ru": "Мы читаем новые книги",
            "el": "Μένω στην Αθήνα",
            "ja": "猫が好きです",
            "zh": "我喜欢吃苹果",
            "th": "ผมชอบกินปลา",
            "hi": "मुझे हिन्दी पसंद है",
        }
        store.batch([PutOp(N, key, {"text": text}) for key, text in texts.items()])
        yield store


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("backup", "en"),
        ("running a BACKUP", "en"),
        ("cafe", "en2"),
        ("CAFÉ", "en2"),
        ("resume", "en2"),
        ("Haus", "de"),
        ("pomme", "fr"),
        ("gato", "es"),
        ("книга", "ru"),
        ("αθηνα", "el"),
        ("猫", "ja"),
        ("好き", "ja"),
        ("苹果", "zh"),
        ("ปลา", "th"),
        ("हिन्दी", "hi"),
    ],
)
def test_a_word_finds_its_other_forms(words: SqliteMemoryStore, query: str, key: str) -> None:
    assert hits(words, query)[:1] == [key]


@pytest.mark.parametrize("query", ["the", "is in the", "die der", "zebra", "!!! ???", "\x00", "user"])
def test_weak_and_unknown_words_are_no_hits(words: SqliteMemoryStore, query: str) -> None:
    assert hits(words, query) == []


def test_a_query_ranks_and_hides_nothing(words: SqliteMemoryStore) -> None:
    found = words.search(N, query="backup", limit=50)
    assert (found[0].key, len(found)) == ("en", 11)
    assert all(i.score is None for i in found[1:])


@pytest.mark.parametrize(
    "query", ['"backup', "backup AND", "backup*", "-backup", "NEAR(backup)", "text:backup", "(", "'"]
)
def test_query_syntax_is_plain_text(words: SqliteMemoryStore, query: str) -> None:
    assert hits(words, query) == (["en"] if "backup" in query else [])


def test_marks_stay_where_they_are_letters() -> None:
    def hashes(text: str) -> list[int]:
        return tokens.index([text]).hashes.tolist()  # type: ignore[no-any-return]

    assert hashes("й") != hashes("и")
    assert hashes("が") != hashes("か")
    assert hashes("café") == hashes("cafe\u0301") == hashes("CAFE")


def test_hashes_are_fixed_for_ever() -> None:
    """If this fails, files written before it find nothing: raise TOKENIZER."""
    found = tokens.index(["Backups, and the user's 2 naïve cats; 猫が好き; книги"])
    assert tokens.TOKENIZER == 1
    assert found.language == 0
    assert found.hashes.tolist() == [
        450215437,
        588929033,
        919096516,
        969753078,
        1072746924,
        2245964304,
        2656977832,
        3131151709,
        3203529436,
        3281178104,
    ]


def test_keys_of_the_value_are_not_its_words(words: SqliteMemoryStore) -> None:
    assert hits(words, "text") == []


def test_more_words_in_common_score_higher(words: SqliteMemoryStore) -> None:
    words.batch([PutOp(("m",), "both", {"t": "red fish"}), PutOp(("m",), "one", {"t": "red car"})])
    found = words.search(("m",), query="red fish")
    assert [i.key for i in found] == ["both", "one"]
    assert 1 > found[0].score > found[1].score > 0  # type: ignore[operator]


def test_a_rare_word_outweighs_a_common_one(words: SqliteMemoryStore) -> None:
    words.batch([PutOp(("m",), f"k{i}", {"t": "common thing"}) for i in range(9)])
    words.put(("m",), "rare", {"t": "rare thing"})
    assert words.search(("m",), query="common rare")[0].key == "rare"


def test_statistics_are_those_of_the_items_searched(words: SqliteMemoryStore) -> None:
    words.put(("u", "1"), "a", {"t": "red fish"})
    before = words.search(("u", "1"), query="red")[0].score
    words.batch([PutOp(("u", "2"), f"k{i}", {"t": "red"}) for i in range(50)])
    assert words.search(("u", "1"), query="red")[0].score == before


def test_words_of_a_field_may_be_searched_without_an_embedder() -> None:
    with SqliteMemoryStore(":memory:", index={"fields": ["title"]}) as store:
        store.put(N, "a", {"title": "apples", "body": "banana"})
        store.put(N, "b", {"title": "x", "body": "banana"}, index=["body"])
        assert hits(store, "apple") == ["a"]
        assert hits(store, "banana") == ["b"]


def test_hybrid_weighs_words_more_and_falls_back_to_vectors() -> None:
    vectors = {"red fish": [1.0, 0.0], "azure sky": [0.6, 0.8], "fish": [0.6, 0.8], "firmament": [0.6, 0.8]}
    index: Any = {"dims": 2, "embed": lambda texts: [vectors[t] for t in texts], "fields": ["t"]}
    with SqliteMemoryStore(":memory:", index=index) as store:
        store.batch([PutOp(N, "fish", {"t": "red fish"}), PutOp(N, "sky", {"t": "azure sky"})])
        assert [(i.key, round(i.score or 0, 2)) for i in store.search(N, query="firmament")] == [
            ("sky", 1.0),
            ("fish", 0.6),
        ]
        found = {i.key: i.score for i in store.search(N, query="fish")}
        text = 1 / 2.2  # one word of one, once, in a text of average length
        assert found["fish"] == pytest.approx(0.75 * text + 0.25 * 0.6)
        assert found["sky"] == pytest.approx(0.25 * 1.0)


@pytest.mark.parametrize(("mode", "first"), [("text", "word"), ("vector", "near"), ("hybrid", "word")])
def test_the_mode_decides_what_counts(mode: Any, first: str) -> None:
    vectors = {"q": [1.0, 0.0], "q word": [0.0, 1.0], "near": [1.0, 0.0]}
    index: Any = {"dims": 2, "embed": lambda texts: [vectors[t] for t in texts], "fields": ["t"]}
    with SqliteMemoryStore(":memory:", index=index, mode=mode) as store:
        store.batch([PutOp(N, "word", {"t": "q word"}), PutOp(N, "near", {"t": "near"})])
        assert store.search(N, query="q")[0].key == first


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(InvalidInput, match="mode"):
        SqliteMemoryStore(":memory:", mode="bm25")  # type: ignore[arg-type]


def test_a_very_long_text_is_indexed_and_found() -> None:
    with SqliteMemoryStore(":memory:", index={"dims": 256, "embed": HashEmbeddings(), "fields": ["none"]}) as store:
        store.put(N, "long", {"t": "lorem ipsum " * 50_000 + "needle"}, index=["t"])
        store.put(N, "short", {"t": "other"}, index=["t"])
        store.mode = "text"
        assert hits(store, "needles") == ["long"]
