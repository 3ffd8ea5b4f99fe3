"""The reference figures of the blended score, and what Chroma makes of the same vectors."""

import numpy as np
import pytest
from support import START, record

from langmem_adapter.embeddings import HashEmbeddings
from langmem_adapter.scoring import Columns, Weights, Where, band, best, blend

FISH, AISLE, ADA = RECORDS = (
    ("The user eats fish again.", 0.8),
    ("The user prefers aisle seating on flights.", 0.5),
    ("The user goes by Ada.", 0.8),
)
QUERIES = {
    "any dietary restrictions I should know about?": (0.473, 0.388, 0.370),
    "what seat should I book on the flight?": (0.392, 0.444, 0.370),
    "what should we order for lunch?": (0.370, 0.349, 0.370),
}


def similarity(query: str) -> np.ndarray:
    embed = HashEmbeddings()
    return np.maximum(
        0.0, np.array(embed.embed_documents([t for t, _ in RECORDS])) @ np.array(embed.embed_query(query))
    )


@pytest.mark.parametrize("query", QUERIES)
def test_reference_scores_to_three_decimals(query):
    columns = Columns.of(record(content=c, importance=i).model_dump(mode="json") for c, i in RECORDS)
    scores = blend(columns.parts(similarity(query), START.timestamp()), Weights())
    assert tuple(round(float(s), 3) for s in scores) == QUERIES[query]


def test_reference_distances_in_a_real_chroma(tmp_path):
    import chromadb
    from stores.chroma_clients import quiet

    embed = HashEmbeddings()
    client = chromadb.PersistentClient(tmp_path, settings=quiet())  # one in memory would be shared by the process
    collection = client.create_collection("reference", embedding_function=None)
    collection.add(ids=["fish", "aisle", "ada"], embeddings=embed.embed_documents([t for t, _ in RECORDS]))
    found = collection.query(query_embeddings=[embed.embed_query(next(iter(QUERIES)))], n_results=3)
    assert dict(zip(found["ids"][0], np.round(found["distances"][0], 3).tolist(), strict=True)) == {
        "fish": pytest.approx(1.655), "aisle": pytest.approx(1.789), "ada": pytest.approx(2.0),
    }  # fmt: skip


def test_bands_begin_at_their_bounds():
    assert [band(c) for c in (1.0, 0.75, 0.749, 0.5, 0.499, 0.0)] == ["high", "high", "medium", "medium", "low", "low"]


def test_recency_halves_every_half_life():
    columns = Columns.of([record(half_life_days=10).model_dump(mode="json")])
    parts = columns.parts(np.zeros(1), START.timestamp() + 20 * 86_400)
    assert parts[0].tolist() == pytest.approx([0.0, 0.25, 0.5, 0.225])


def test_a_clock_behind_the_record_does_not_raise_recency():
    columns = Columns.of([record().model_dump(mode="json")])
    assert columns.parts(np.zeros(1), START.timestamp() - 9e6)[0, 1] == 1.0


def test_best_breaks_ties_by_the_newest():
    scores, keep = np.array([0.5, 0.7, 0.7, 0.1]), np.ones(4, dtype=bool)
    assert best(scores, keep, 0.2, 10).tolist() == [2, 1, 0]
    assert best(np.zeros(100), np.ones(100, dtype=bool), 0.0, 2).tolist() == [99, 98]


def test_only_believed_records_pass():
    rows = [record(status=s).model_dump(mode="json") for s in ("active", "contested", "superseded", "retracted")]
    assert Columns.of(rows).mask(Where(now=START.timestamp())).tolist() == [True, False, False, False]


def test_expired_records_do_not():
    rows = [record(expires_at=START).model_dump(mode="json"), record().model_dump(mode="json")]
    assert Columns.of(rows).mask(Where(now=START.timestamp())).tolist() == [False, True]


def test_topics_include_what_lies_below_them():
    rows = [record(topic=t).model_dump(mode="json") for t in ("diet", "diet/allergy", "dietary")]
    mask = Columns.of(rows).mask(Where(now=START.timestamp(), topics=("diet",)))
    assert mask.tolist() == [True, True, False]


def test_hash_vectors_have_unit_length_or_none():
    embed = HashEmbeddings()
    assert np.linalg.norm(embed.embed_query("vegetarian food")) == pytest.approx(1.0)
    assert not np.any(embed.embed_query("the user is a to of"))
