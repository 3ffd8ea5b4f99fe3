"""Ids → namespace labels and back: the one place that decides where an owner's data lies.

    ("memories", app, "user", <user>, "facts")                        what is known about a user
    ("memories", app, "user", <user>, "session", <thread>, "facts")   … within one thread
    ("memories", app, "user", <user>, "agent", <agent>, "facts")      … by one agent
    ("memories", app, "team", <team>, "facts")                        explicit shares
    ("memories", app, "app", "facts")                                 deliberately global

and beside `facts` the closing labels `turns`, `summaries`, `receipts`, `settings`. An id becomes a label of
`[a-z0-9-]`: letters a–z and digits stay, every other byte of its UTF-8 becomes `-` and two hex digits. That is
reversible and collision-free even where a database compares without case (`A` → `-41`) or takes wildcards (`u%` →
`u-25`).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from langmem_adapter.errors import InvalidInput, MissingUser
from langmem_adapter.records import Scope

Namespace = tuple[str, ...]
Kind = Literal["facts", "turns", "summaries", "receipts", "settings"]

MAX_ID_BYTES = 512
_PLAIN = re.compile(r"[a-z0-9]+\Z")


def escape(value: str, *, what: str = "id") -> str:
    """The label of an id. Empty, blank, overlong or non-string ids raise InvalidInput (MissingUser for users)."""
    error = MissingUser if what == "user_id" else InvalidInput
    if not isinstance(value, str):
        raise error(f"{what} must be a str, got {type(value).__name__}: {value!r:.80}")
    if not value.strip():
        raise error(f"{what} is empty ({value!r}); an empty id never means everybody, pass the real one")
    if _PLAIN.match(value) and len(value) <= MAX_ID_BYTES:
        return value
    try:
        raw = value.encode()
    except UnicodeEncodeError as e:
        raise error(f"{what} is not valid Unicode: {value!r:.80}") from e
    if len(raw) > MAX_ID_BYTES:
        raise error(f"{what} has {len(raw)} bytes, at most {MAX_ID_BYTES} are allowed")
    return "".join(chr(b) if chr(b) in "abcdefghijklmnopqrstuvwxyz0123456789" else f"-{b:02x}" for b in raw)


def unescape(label: str) -> str:
    """The id of a label made by `escape`."""
    return re.sub(rb"-([0-9a-f]{2})", lambda m: bytes([int(m[1], 16)]), label.encode()).decode()


def user_root(app_name: str, user_id: str) -> Namespace:
    """The prefix of everything that belongs to one user."""
    return ("memories", escape(app_name, what="app_name"), "user", escape(user_id, what="user_id"))


def namespace(
    kind: Kind,
    *,
    app_name: str,
    user_id: str | None = None,
    scope: Scope = "user",
    session_id: str | None = None,
    agent_id: str | None = None,
    team_id: str | None = None,
) -> Namespace:
    """The namespace of one kind of item in one scope; the ids that the scope needs must be given."""
    if scope == "app":
        return ("memories", escape(app_name, what="app_name"), "app", kind)
    if scope == "team":
        return (
            "memories",
            escape(app_name, what="app_name"),
            "team",
            escape(team_id or "", what="team_id"),
            kind,
        )
    root = user_root(app_name, user_id if user_id is not None else "")
    if scope == "user":
        return (*root, kind)
    if scope == "session":
        return (*root, "session", escape(session_id or "", what="session_id"), kind)
    if scope == "agent":
        return (*root, "agent", escape(agent_id or "", what="agent_id"), kind)
    raise InvalidInput(f"scope must be user, session, agent, team or app, got {scope!r}")


@dataclass(frozen=True, slots=True)
class Reader:
    """Who is asking: what he may read follows from it."""

    user_id: str
    app_name: str = "default"
    session_id: str | None = None
    agent_id: str | None = None
    application: bool = False
    """An administrator, for the facts of the application itself; `user_id` is "" then."""

    @classmethod
    def of(cls, found: Namespace) -> "Reader | None":
        """The owner in whose part of the store a namespace lies; None for a team's, and for what is not ours."""
        if found[:1] != ("memories",) or len(found) < 4:
            return None
        if found[2] == "app":
            return cls("", unescape(found[1]), application=True)
        return cls(unescape(found[3]), unescape(found[1])) if found[2] == "user" and len(found) > 4 else None

    def facts(self, scopes: Iterable[Scope] | None = None) -> tuple[Namespace, ...]:
        """The fact namespaces of these scopes; by default user and app, and those whose id is given."""
        if scopes is None:
            scopes = ["app"] if self.application else ["user", "app"]
            scopes += ["session"] if self.session_id is not None else []
            scopes += ["agent"] if self.agent_id is not None else []
        return tuple(dict.fromkeys(self.space("facts", scope) for scope in scopes))

    def space(self, kind: Kind, scope: Scope | None = None) -> Namespace:
        """One namespace; by default that of the reader himself."""
        return namespace(
            kind,
            app_name=self.app_name,
            user_id=self.user_id,
            scope=scope or ("app" if self.application else "user"),
            session_id=self.session_id,
            agent_id=self.agent_id,
        )

    @property
    def root(self) -> Namespace:
        """The prefix of all that belongs to the reader."""
        if self.application:
            return ("memories", escape(self.app_name, what="app_name"), "app")
        return user_root(self.app_name, self.user_id)
