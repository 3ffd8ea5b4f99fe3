"""The registry of topics: what a fact can be about, and what follows for exclusivity, decay and weight."""

from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import Field

from langmem_adapter.errors import InvalidInput, UnknownTopic
from langmem_adapter.records import Frozen, Unit
from langmem_adapter.redaction import redacted
from langmem_adapter.text import slot as normal


class Topic(Frozen):
    """A `/` path and its rules.

    `exclusive`: True — a user has one value ("diet"); "by slot" — one value per slot ("likes": one opinion per
    dish); False — facts stand side by side. `purpose` and `legal_basis` are noted on every fact learnt under it.
    `consent=False`: nothing on the topic, or below it, is written.
    """

    name: str
    exclusive: bool | Literal["by slot"] = False
    half_life_days: float = Field(default=180.0, gt=0)
    ttl_days: float | None = Field(default=None, gt=0)
    importance: Unit = 0.5
    description: str = ""
    sensitive: bool = False
    purpose: str | None = None
    legal_basis: str | None = None
    consent: bool = True


def _t(
    name: str,
    exclusive: bool | Literal["by slot"],
    half_life: float,
    ttl: float | None,
    importance: float,
    description: str,
    sensitive: bool = False,
) -> Topic:
    return Topic(
        name=name,
        exclusive=exclusive,
        half_life_days=half_life,
        ttl_days=ttl,
        importance=importance,
        description=description,
        sensitive=sensitive,
    )


DEFAULT_TOPICS: tuple[Topic, ...] = (
    _t("diet", True, 365, None, 0.8, "what the user eats or does not eat, as a whole", sensitive=True),
    _t("diet/allergy", "by slot", 3650, None, 0.9, "an allergy or intolerance", sensitive=True),
    _t("travel/seat", True, 365, None, 0.5, "where the user likes to sit"),
    _t("identity/name", True, 3650, None, 0.8, "what to call the user"),
    _t("identity/language", True, 3650, None, 0.7, "the language to answer in"),
    _t("home/location", True, 730, None, 0.7, "where the user lives"),
    _t("work/employer", True, 365, 365, 0.6, "whom the user works for"),
    _t("work/role", True, 365, 365, 0.6, "what the user does for a living"),
    _t("preference/likes", "by slot", 365, None, 0.5, "what the user likes or dislikes"),
    _t("preference/tool", "by slot", 365, None, 0.5, "a tool or product the user uses"),
    _t("preference/style", "by slot", 365, None, 0.5, "how the user wants to be answered"),
    _t("relation", "by slot", 1825, None, 0.6, "people and pets in the user's life"),
    _t("project", "by slot", 90, 90, 0.5, "what the user is working on"),
    _t("issue", False, 30, 90, 0.5, "an open problem"),
    _t("decision", False, 365, None, 0.7, "something that was decided"),
    _t("general", False, 180, None, 0.5, "anything else worth keeping"),
)


class Topics:
    """The topics one Memory knows, by name. `Topics([*DEFAULT_TOPICS, Topic(name="hobby")])`."""

    def __init__(self, topics: Iterable[Topic] = DEFAULT_TOPICS) -> None:
        known = tuple(topics) if isinstance(topics, Iterable) else ()
        if not known or not all(isinstance(t, Topic) for t in known):
            raise InvalidInput(
                f"topics must be Topics, e.g. [*DEFAULT_TOPICS, Topic(name='hobby')], got {topics!r:.80}"
            )
        self._by_name: Mapping[str, Topic] = {t.name: t for t in known}
        if "general" not in self._by_name:
            raise InvalidInput("topics must include 'general': it takes what fits nowhere else")
        self._refused = tuple(t.name for t in self if not t.consent)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self._by_name.values())

    def get(self, name: str) -> Topic:
        """The topic of this name; UnknownTopic (naming those that exist) if nobody registered it."""
        try:
            return self._by_name[name]
        except (KeyError, TypeError):  # what cannot be a key
            known, name = ", ".join(sorted(self._by_name)), redacted(str(name)[:1_000])[:80]
            raise UnknownTopic(
                f"topic {name!r} is not registered; use one of {known}, or pass Memory(topics=[*DEFAULT_TOPICS, "
                f"Topic(name={name!r})])"
            ) from None

    def consents(self, name: str) -> bool:
        """Whether facts on the topic may be written: False for one with `consent=False`, and for what lies below."""
        return not any(name == refused or name.startswith(f"{refused}/") for refused in self._refused)

    def slot_of(self, name: str, slot: str, value: str) -> str:
        """The slot a fact is judged on: one constant per exclusive topic, else the given one, else its value."""
        return "" if self.get(name).exclusive is True else normal(slot) or normal(value)
