"""Embedding again what was embedded by another embedder, or not at all, a batch at a time."""

import json
import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from langmem_adapter.stores.keeping import NOT_EMBEDDED, TO_EMBED
from langmem_adapter.stores.schema import NAMESPACE_SHIFT, meta, number, set_meta
from langmem_adapter.stores.tokens import TOKENIZER, index
from langmem_adapter.stores.vectors import Matrix
from langmem_adapter.stores.writing import texts_at, words_at

BATCH = 100


class Stale(NamedTuple):
    """An item to index again."""

    id: int
    value: str
    """Its JSON text, by which a change in between is noticed."""
    texts: tuple[str, ...]
    words: tuple[str, ...]


def remaining(conn: sqlite3.Connection, embedder: int | None, refielded: bool) -> int:
    """How many items are to be indexed again; if `refielded`, all that have no fields of their own."""
    where, params = _condition(conn, embedder, refielded)
    return int(conn.execute(f"SELECT count(*) {where}", params).fetchone()[0])


def next_batch(
    conn: sqlite3.Connection, embedder: int | None, refielded: bool, fields: Sequence[str], after: int
) -> list[Stale]:
    """The next items to index again, ids above `after`."""
    where, params = _condition(conn, embedder, refielded)
    sql = f"SELECT i.id, i.value, i.fields {where} AND i.id > ? ORDER BY i.id LIMIT {BATCH}"
    return [_stale(id, value, own, fields) for id, value, own in conn.execute(sql, (*params, after))]


def _condition(conn: sqlite3.Connection, embedder: int | None, refielded: bool) -> tuple[str, tuple[int, ...]]:
    if meta(conn, "tokenizer") != str(TOKENIZER):
        return "FROM memory_items i WHERE (i.fields IS NULL OR i.fields != '[]')", ()
    if refielded:
        return f"{TO_EMBED} AND (i.fields IS NULL OR x.embedder IS NOT ?)", (embedder or 0,)
    return (f"{NOT_EMBEDDED}", (embedder,)) if embedder is not None else ("FROM memory_items i WHERE 0", ())


def _stale(id: int, value: str, own: str | None, fields: Sequence[str]) -> Stale:
    paths = fields if own is None else json.loads(own)
    parsed = json.loads(value)
    return Stale(id, value, texts_at(parsed, paths), tuple(words_at(parsed, paths)))


def restore(conn: sqlite3.Connection, batch: Sequence[Stale], vectors: Matrix | None, embedder: int | None) -> None:
    """Write vectors (in the order of all texts; None: words only) and words of items that did not change meanwhile."""
    start, touched = 0, set()
    lost: set[int] = set()
    for stale in batch:
        end = start + len(stale.texts)
        found = conn.execute("SELECT value FROM memory_items WHERE id = ?", (stale.id,)).fetchone()
        if found is not None and found[0] == stale.value:
            if vectors is not None:
                sql = "SELECT 1 FROM memory_index WHERE id = ? AND length(vectors)"
                if conn.execute(sql, (stale.id,)).fetchone():
                    lost.add(stale.id >> NAMESPACE_SHIFT)
                sql = "UPDATE memory_index SET embedder = ?, vectors = ? WHERE id = ?"
                conn.execute(sql, (embedder, vectors[start:end].tobytes(), stale.id))
            words = index(stale.words)
            sql = "UPDATE memory_index SET words = ?, language = ? WHERE id = ?"
            conn.execute(sql, (words.hashes.tobytes(), words.language, stale.id))
            touched.add(stale.id >> NAMESPACE_SHIFT)
        start = end
    # Only the stamp: no item changed, so no commit in flight is in conflict, but caches must be loaded again.
    conn.executemany("UPDATE memory_namespaces SET stamp = stamp + 1 WHERE id = ?", [(n,) for n in touched])
    # Copies of the former vectors may stay in the file: see `writing.write`.
    sql = "UPDATE memory_namespaces SET removed = ? WHERE id = ?"
    conn.executemany(sql, [(number(conn, "epoch"), n) for n in lost])


def finish(conn: sqlite3.Connection) -> None:
    """Note that all words are this tokenizer's."""
    set_meta(conn, "tokenizer", str(TOKENIZER))
