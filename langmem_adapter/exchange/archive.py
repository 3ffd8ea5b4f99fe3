"""An export: a manifest and one JSON line for each thing that is stored under a user's name. Pure.

    {"format": "langmem_adapter", "schema": 1, "app_name": …, "user_id": …, "at": …, "counts": {…}, "hashes": {…}}
    {"kind": "facts", "place": [], "key": "m_…", "value": {…}}
    {"kind": "facts", "place": ["session", "t1"], "key": "m_…", "value": {…}}

`place` is where below the user it lies. A hash is the SHA-256 of the lines of one kind, each with its line feed: it
finds damage, it is no signature.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import Field, ValidationError

from langmem_adapter.consent import KEY as SETTINGS_KEY
from langmem_adapter.consent import Settings
from langmem_adapter.errors import InvalidInput
from langmem_adapter.namespaces import Kind, Namespace, Reader, escape, unescape
from langmem_adapter.records import Frozen, MemoryRecord, Receipt, Turn, Utc

FORMAT = "langmem_adapter"
SCHEMA = 1
"""Grows when an older version of this package could not read what a newer one writes."""

Items = dict[tuple[Namespace, str], dict[str, Any]]
"""Values by namespace and key."""
F = TypeVar("F", bound=Frozen)


class Manifest(Frozen):
    """What an export holds."""

    format: str = FORMAT
    schema_version: int = Field(alias="schema")
    app_name: str
    user_id: str
    at: Utc
    counts: dict[str, int]
    """Lines by kind: facts (of every scope and status), turns, summaries, receipts, settings."""
    hashes: dict[str, str]


class Export(Frozen):
    """Everything stored under a user's name (`Memory.export`)."""

    manifest: Manifest
    lines: tuple[str, ...]
    """The manifest's first; each without its line feed."""

    @property
    def text(self) -> str:
        """The content of a file of it."""
        return "".join(f"{line}\n" for line in self.lines)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file that only its owner may read; what was there is replaced."""
        target = Path(path)
        part = target.with_name(f"{target.name}.part")
        part.unlink(missing_ok=True)
        with open(part, "x", encoding="utf-8", newline="\n", opener=lambda p, flags: os.open(p, flags, 0o600)) as file:
            file.write(self.text)
        part.replace(target)


def pack(reader: Reader, items: Items, at: datetime) -> Export:
    """The export of these items of a user."""
    kinds: dict[str, list[str]] = {kind: [] for kind in CHECKS}
    for (ns, key), value in sorted(items.items()):
        place = [unescape(label) for label in ns[len(reader.root) : -1]]
        line = _dump({"kind": ns[-1], "place": place, "key": key, "value": value})
        kinds.setdefault(ns[-1], []).append(line)
    manifest = Manifest(
        schema=SCHEMA,
        app_name=reader.app_name,
        user_id=reader.user_id,
        at=at,
        counts={kind: len(lines) for kind, lines in kinds.items()},
        hashes={kind: _hash(lines) for kind, lines in kinds.items()},
    )
    first = _dump(manifest.model_dump(mode="json", by_alias=True))
    return Export(manifest=manifest, lines=(first, *(line for lines in kinds.values() for line in lines)))


def unpack(lines: Iterable[str]) -> tuple[Manifest, Items]:
    """The manifest and the items of an export, checked: InvalidInput, naming the line, for what is not whole."""
    numbered = [(n, line.rstrip("\r\n")) for n, line in enumerate(lines, 1) if line.strip()]
    if not numbered:
        raise InvalidInput("the export is empty: its first line must be the manifest")
    manifest = _manifest(*numbered[0])
    reader = Reader(manifest.user_id, manifest.app_name)
    found: dict[str, list[str]] = {kind: [] for kind in manifest.counts}
    items: Items = {}
    for n, line in numbered[1:]:
        parsed = _parsed(n, line)
        at = _at(n, parsed, reader)
        if at in items:
            raise InvalidInput(f"line {n}: {parsed.kind} {parsed.key!r} is there twice")
        items[at] = parsed.value
        found.setdefault(parsed.kind, []).append(line)
    for kind, theirs in found.items():
        if len(theirs) != manifest.counts.get(kind, 0):
            raise InvalidInput(f"{len(theirs)} {kind} in the export, {manifest.counts.get(kind, 0)} in its manifest")
        if _hash(theirs) != manifest.hashes.get(kind):
            raise InvalidInput(f"the {kind} of the export are not those its manifest names: the hashes differ")
    return manifest, items


class _Line(NamedTuple):
    kind: str
    place: tuple[str, ...]
    key: str
    value: dict[str, Any]


def _manifest(n: int, line: str) -> Manifest:
    raw = _load(n, line)
    if raw.get("format") != FORMAT:
        raise InvalidInput(f"line {n}: not the manifest of an export (format {raw.get('format')!r:.40})")
    schema = raw.get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        raise InvalidInput(f"line {n}: schema {schema} is newer than {SCHEMA}, which this package knows; upgrade it")
    return _model(Manifest, raw, f"line {n}: manifest")


def _parsed(n: int, line: str) -> _Line:
    raw = _load(n, line)
    kind, place, key, value = (raw.get(name) for name in ("kind", "place", "key", "value"))
    if not (isinstance(kind, str) and isinstance(key, str) and isinstance(value, dict) and isinstance(place, list)):
        raise InvalidInput(f"line {n}: kind and key must be strings, place a list, value an object")
    if not all(isinstance(label, str) for label in place):
        raise InvalidInput(f"line {n}: place must be a list of strings, got {place!r:.80}")
    if kind not in CHECKS:
        raise InvalidInput(f"line {n}: kind {kind!r:.40} is not known; known are {', '.join(CHECKS)}")
    return _Line(kind, tuple(place), key, value)


def _at(n: int, line: _Line, reader: Reader) -> tuple[Namespace, str]:
    """Where the item lies; InvalidInput if it is not this user's, or lies where it does not belong."""
    try:
        found = (*reader.root, *(escape(label) for label in line.place), line.kind)
        expected = CHECKS[line.kind](line, reader)  # type: ignore[index]
    except InvalidInput as error:
        raise InvalidInput(f"line {n}: {error}") from error
    if (found, line.key) != expected:
        raise InvalidInput(f"line {n}: {line.kind} {line.key!r} is not at its place, or not of {reader.user_id!r}")
    return expected


def _fact(line: _Line, reader: Reader) -> tuple[Namespace, str]:
    record = _model(MemoryRecord, line.value, "value")
    _owned(record.user_id, record.app_name, reader)
    ids = Reader(reader.user_id, reader.app_name, record.session_id, record.agent_id)
    if record.scope not in ("user", "session", "agent"):
        raise InvalidInput(f"a fact of scope {record.scope!r} is not a user's")
    return ids.space("facts", record.scope), record.memory_id


def _summary(line: _Line, reader: Reader) -> tuple[Namespace, str]:
    record = _model(MemoryRecord, line.value, "value")
    _owned(record.user_id, record.app_name, reader)
    return Reader(reader.user_id, reader.app_name, record.session_id).space("summaries", "session"), line.key


def _turn(line: _Line, reader: Reader) -> tuple[Namespace, str]:
    turn = _model(Turn, line.value, "value")
    _owned(turn.user_id, turn.app_name, reader)
    return reader.space("turns"), turn.turn_id


def _receipt(line: _Line, reader: Reader) -> tuple[Namespace, str]:
    receipt = _model(Receipt, line.value.get("receipt"), "receipt")
    _owned(receipt.user_id, reader.app_name, reader)
    return reader.space("receipts"), receipt.receipt_id


def _settings(line: _Line, reader: Reader) -> tuple[Namespace, str]:
    if _model(Settings, line.value, "value").empty:
        raise InvalidInput("value: settings that say nothing are no line")
    return reader.space("settings"), SETTINGS_KEY


CHECKS: Mapping[Kind, Callable[[_Line, Reader], tuple[Namespace, str]]] = {
    "facts": _fact,
    "turns": _turn,
    "summaries": _summary,
    "receipts": _receipt,
    "settings": _settings,
}
"""Where an item of each kind belongs, by what it says; InvalidInput if it says nothing we know."""


def _owned(user_id: str | None, app_name: str, reader: Reader) -> None:
    if (user_id, app_name) != (reader.user_id, reader.app_name):
        raise InvalidInput(f"it belongs to user {user_id!r:.80} of {app_name!r:.80}, the manifest says otherwise")


def renamed(items: Items, old: Reader, new: Reader) -> Items:
    """The items as those of another user or application."""
    if old == new:
        return items
    moved: Items = {}
    for (ns, key), value in items.items():
        inner = {"receipt": _named(value["receipt"], new)} if ns[-1] == "receipts" else {}
        moved[(*new.root, *ns[len(old.root) :]), key] = _named(value, new) | inner
    return moved


def _named(value: Mapping[str, Any], owner: Reader) -> dict[str, Any]:
    names = {"user_id": owner.user_id, "app_name": owner.app_name}
    return {k: names.get(k, v) for k, v in value.items()}


def _model(model: type[F], value: object, what: str) -> F:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, (what, *first["loc"])))
        raise InvalidInput(f"{where}: {first['msg']}") from error


def _load(n: int, line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"line {n} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise InvalidInput(f"line {n} is not a JSON object: {line!r:.40}")
    return found


def _dump(value: Mapping[str, Any]) -> str:
    line = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        line.encode()
    except UnicodeEncodeError:  # half a surrogate pair, from a store that takes such a thing
        return json.dumps(value, separators=(",", ":"))
    return line


def _hash(lines: Iterable[str]) -> str:
    digest = sha256()
    for line in lines:
        digest.update(f"{line}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
