"""Puts and deletes in PostgreSQL: prepared before the transaction, applied inside it."""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

from langgraph.store.base import PutOp

from langmem_adapter.errors import Conflict, InvalidInput
from langmem_adapter.namespaces import Namespace
from langmem_adapter.stores.facets import row_of, stored
from langmem_adapter.stores.postgres_owners import distinct, owner_of
from langmem_adapter.stores.postgres_schema import Connection, run
from langmem_adapter.stores.postgres_words import Text, text_of
from langmem_adapter.stores.values import encode, namespace, path
from langmem_adapter.stores.vectors import Matrix
from langmem_adapter.stores.writing import texts_at, words_at


def digest(key: str) -> bytes:
    """What an item is found by within its namespace."""
    return blake2b(key.encode(), digest_size=16).digest()


NO_TEXT = Text("simple", "")


@dataclass(slots=True)
class Prepared:
    """One put or (`value` None) delete, with all that could be computed without the database."""

    path: str
    owner: str
    key: str
    digest: bytes
    value: str | None = None
    row: tuple[Any, ...] = ()
    text: Text = NO_TEXT
    texts: tuple[str, ...] = ()
    """What is to be embedded."""
    vectors: Matrix | None = None
    fields: str | None = None
    topic: str | None = None
    status: str | None = None
    ttl: float | None = None
    times: tuple[int, int, int | None] | None = None
    """When it was created, updated and expires, if it comes from elsewhere."""


class Locked(NamedTuple):
    """The row of a namespace that nobody else can change until the transaction ends."""

    id: int
    version: int
    latest: int


def prepare(puts: Iterable[PutOp], fields: Sequence[str], language: str, known: Collection[str]) -> list[Prepared]:
    """The puts, last write of each key only. Raises for values that cannot be stored."""
    last: dict[tuple[str, str], PutOp] = {}
    for op in puts:
        at = (path(op.namespace), op.key)
        last.pop(at, None)
        last[at] = op
    return [_prepared(op, fields, language, known) for op in last.values()]


def _prepared(op: PutOp, fields: Sequence[str], language: str, known: Collection[str]) -> Prepared:
    done = Prepared(path(op.namespace), owner_of(op.namespace), op.key, digest(op.key))
    if op.value is None:
        return done
    done.value = encode(op.value)
    if "\\u0000" in done.value and has_nul(op.value):
        raise InvalidInput(f"the value of {op.key!r:.80} has a NUL character, which PostgreSQL cannot store")
    paths = fields if op.index is None else () if op.index is False else tuple(op.index)
    done.texts = texts_at(op.value, paths)
    done.text = text_of(words_at(op.value, paths) if "$" in paths else done.texts, language, known)
    done.row = row_of(op.value)
    done.fields = None if op.index is None else json.dumps(list(paths))
    topic, status = op.value.get("topic"), op.value.get("status")
    done.topic = topic if isinstance(topic, str) else None
    done.status = status if isinstance(status, str) else None
    done.ttl = op.ttl
    return done


def has_nul(value: Any) -> bool:
    """Whether a string in it, or a key, has a NUL."""
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, Mapping):
        return any(has_nul(k) or has_nul(v) for k, v in value.items())
    return isinstance(value, list | tuple) and any(map(has_nul, value))


def lock(conn: Connection, s: str, paths: Collection[str]) -> dict[str, Locked]:
    """Lock the rows of these namespaces, those that exist, always in the same order."""
    names = sorted(paths)
    owners = [owner_of(namespace(p)) for p in names]
    rows = run(
        conn,
        f"SELECT n.path, n.id, n.version, n.latest FROM {s}.namespaces n JOIN unnest(%s::text[], %s::text[]) "
        "AS w(owner, path) ON n.owner = w.owner AND n.path = w.path WHERE n.owner = ANY(%s::text[]) "
        "ORDER BY n.path FOR UPDATE OF n",
        (owners, names, distinct(owners)),
    )
    return {where: Locked(*rest) for where, *rest in rows}


def create(conn: Connection, s: str, paths: Collection[str]) -> None:
    """Give these namespaces rows, at version 0. Not within a transaction that holds locks: they might cross."""
    names = sorted(paths)
    run(
        conn,
        f"INSERT INTO {s}.namespaces (owner, path) SELECT * FROM unnest(%s::text[], %s::text[]) ON CONFLICT DO NOTHING",
        ([owner_of(namespace(p)) for p in names], names),
    )


def check_versions(locked: Mapping[str, Locked], expect: Mapping[Namespace, int]) -> None:
    """Conflict unless every namespace is still at the version expected."""
    for wanted, version in expect.items():
        row = locked.get(path(wanted))
        found = 0 if row is None else row.version
        if found != version:
            raise Conflict(f"{wanted} is at version {found}, not {version}: another writer changed it; read it again")


def write(
    conn: Connection,
    s: str,
    prepared: Sequence[Prepared],
    locked: Mapping[str, Locked],
    embedder: int | None,
    now: int,
) -> None:
    """Apply the puts and raise the versions, in statements that do not wait for one another's replies."""
    prepared = [p for p in prepared if p.path in locked]
    if not prepared:
        return
    puts = [p for p in prepared if p.value is not None]
    gone = [p for p in prepared if p.value is None]
    latest = {where: row.latest for where, row in locked.items()}
    rows = [_row(p, locked[p.path].id, latest, now) for p in puts]
    owners = distinct(p.owner for p in prepared)
    with conn.pipeline():
        conn.execute(_UNEMBED.format(s=s).encode(), [*_places(prepared, locked), owners, owners])
        if rows:
            conn.execute(_PUT.format(s=s).encode(), [*map(list, zip(*rows, strict=True)), now])
        vectors = [] if embedder is None else [v for p in puts for v in _vectors(p, locked[p.path].id, embedder)]
        if vectors:
            columns = [list(column) for column in zip(*vectors, strict=True)]
            conn.execute(_EMBED.format(s=s).encode(), [*columns, owners])
        counts = Counter(p.path for p in puts)
        touched = list(dict.fromkeys(p.path for p in prepared))
        conn.execute(
            _COUNT.format(s=s).encode(),
            [
                *_places(gone, locked),
                owners,
                [owner_of(namespace(where)) for where in touched],
                touched,
                [locked[where].id for where in touched],
                [counts[where] for where in touched],
                [latest[where] for where in touched],
                owners,
            ],
        )


# Each table's owners are also named by value: a join does not tell the planner which partitions it can leave out.
_PLACES = "unnest(%s::text[], %s::bigint[], %s::bytea[]) AS w(owner, namespace, digest)"

# MATERIALIZED: first the few items by their keys. In one join the planner compares all of an owner's vectors and items.
_UNEMBED = (
    f"WITH old AS MATERIALIZED (SELECT i.owner, i.namespace, i.id FROM {{s}}.items i JOIN {_PLACES} "
    "ON i.owner = w.owner AND i.namespace = w.namespace AND i.digest = w.digest WHERE i.owner = ANY(%s::text[])) "
    "DELETE FROM {s}.vectors v USING old WHERE v.owner = old.owner AND v.namespace = old.namespace "
    "AND v.item = old.id AND v.owner = ANY(%s::text[])"
)

_COLUMNS = {
    "owner": "text",
    "namespace": "bigint",
    "digest": "bytea",
    "key": "text",
    "value": "json",
    "created_at": "bigint",
    "updated_at": "bigint",
    "expires_at": "bigint",
    "ttl": "float8",
    "fields": "text",
    "topic": "text",
    "status": "text",
    "state": "smallint",
    "kind": "text",
    "numbers": "bytea",
    "language": "text",
    "words": "text",
}

# An item that has expired is replaced by a new one.
_PUT = (
    f"INSERT INTO {{s}}.items AS i ({', '.join(_COLUMNS)}) "
    f"SELECT {', '.join(list(_COLUMNS)[:-1])}, to_tsvector(language::regconfig, words) "
    f"FROM unnest({', '.join(f'%s::{kind}[]' for kind in _COLUMNS.values())}) AS t({', '.join(_COLUMNS)}) "
    "ON CONFLICT (owner, namespace, digest) DO UPDATE SET "
    "created_at = CASE WHEN i.expires_at <= %s THEN excluded.created_at ELSE i.created_at END, "
    + ", ".join(f"{c} = excluded.{c}" for c in list(_COLUMNS)[4:] if c != "created_at")
)

_EMBED = (
    "INSERT INTO {s}.vectors (owner, namespace, item, n, embedder, vector) "
    "SELECT i.owner, i.namespace, i.id, t.n, t.embedder, t.vector::real[] FROM unnest(%s::text[], %s::bigint[], "
    "%s::bytea[], %s::integer[], %s::integer[], %s::text[]) AS t(owner, namespace, digest, n, embedder, vector) "
    "JOIN {s}.items i ON i.owner = t.owner AND i.namespace = t.namespace AND i.digest = t.digest "
    "WHERE i.owner = ANY(%s::text[])"
)

# A namespace in which nothing changed, because what was to be deleted is not there, keeps its version.
_COUNT = (
    f"WITH gone AS (DELETE FROM {{s}}.items i USING {_PLACES} WHERE i.owner = w.owner AND i.namespace = w.namespace "
    "AND i.digest = w.digest AND i.owner = ANY(%s::text[]) RETURNING i.namespace), "
    "done AS (SELECT t.owner, t.path, t.latest, t.puts + (SELECT count(*) FROM gone g WHERE g.namespace = t.id) AS n "
    "FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[]) "
    "AS t(owner, path, id, puts, latest)) "
    "UPDATE {s}.namespaces n SET version = n.version + done.n, latest = done.latest FROM done "
    "WHERE n.owner = done.owner AND n.path = done.path AND done.n > 0 AND n.owner = ANY(%s::text[])"
)


def _places(prepared: Sequence[Prepared], locked: Mapping[str, Locked]) -> list[Any]:
    return [[p.owner for p in prepared], [locked[p.path].id for p in prepared], [p.digest for p in prepared]]


def _row(p: Prepared, id: int, latest: dict[str, int], now: int) -> tuple[Any, ...]:
    # Strictly growing in a namespace, so that "newest first" survives a clock that steps back.
    created = updated = max(now, latest[p.path] + 1)
    expires = None if p.ttl is None else now + round(p.ttl * 60e6)
    if p.times is not None:
        created, updated, expires = p.times
    latest[p.path] = max(latest[p.path], updated)
    state, _, kind, numbers = stored(p.row)
    times = (created, updated, expires, p.ttl)
    return (p.owner, id, p.digest, p.key, p.value, *times, p.fields, p.topic, p.status, state, kind, numbers, *p.text)


def _vectors(p: Prepared, id: int, embedder: int) -> list[tuple[Any, ...]]:
    vectors = [] if p.vectors is None else p.vectors.tolist()
    return [(p.owner, id, p.digest, n, embedder, _literal(v)) for n, v in enumerate(vectors)]


def _literal(vector: Sequence[float]) -> str:
    return "{" + ",".join(map(repr, vector)) + "}"


def refresh(conn: Connection, s: str, moved: Mapping[tuple[str, int, int], int], now: int) -> None:
    """Set the deadlines of these items, (owner, namespace, id) → when, unless they have expired meanwhile."""
    at = [*zip(*moved, strict=True), moved.values()]
    owners = distinct(owner for owner, _, _ in moved)
    # One that is locked is being written just now, which sets its deadline too.
    run(
        conn,
        f"UPDATE {s}.items i SET expires_at = t.at FROM (SELECT i.owner, i.namespace, i.id, w.at FROM {s}.items i JOIN "
        "unnest(%s::text[], %s::bigint[], %s::bigint[], %s::bigint[]) AS w(owner, namespace, id, at) ON "
        "i.owner = w.owner AND i.namespace = w.namespace AND i.id = w.id AND i.expires_at > %s "
        "WHERE i.owner = ANY(%s::text[]) FOR UPDATE OF i SKIP LOCKED) t "
        "WHERE i.owner = t.owner AND i.namespace = t.namespace AND i.id = t.id AND i.owner = ANY(%s::text[])",
        (*map(list, at), now, owners, owners),
    )
