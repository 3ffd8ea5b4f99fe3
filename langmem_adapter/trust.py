"""What a source may assert, overwrite and contest; and confidence as a pure function of sources.

Trust comes from where a text came from (`SourceType`), never from what an extractor claims.
"""

from collections.abc import Iterable, Mapping

from langmem_adapter.records import MemoryRecord, Source, SourceType

TRUST: Mapping[SourceType, float] = {
    "bootstrapped": 0.95,  # a system of record
    "user_explicit": 0.90,  # the user said it
    "user_implicit": 0.65,  # it follows from what the user said
    "tool_output": 0.30,  # a tool, a document, a web page said it
}
"""Trust per source type: the most confidence one such source can give."""

CORROBORATION = 0.05
"""What each further distinct source adds to the confidence."""


class TrustPolicy:
    """The trust gate. Subclass and pass `Memory(policy=…)` to change who may overwrite whom."""

    def __init__(self, trust: Mapping[SourceType, float] = TRUST) -> None:
        self.trust = dict(trust)

    def lower(self, claimed: SourceType, origin: SourceType) -> SourceType:
        """The less trusted of what an extractor claims and what the message's origin allows."""
        return min(claimed, origin, key=lambda t: self.trust[t])

    def may_overwrite(self, source_type: SourceType, record: MemoryRecord) -> bool:
        """Whether new information of this type wins against the record.

        It must be at least as trustworthy as the weakest source *supporting* the record. Lineage does not count,
        nor do tools beside other support; so no number of tools outranks a person or a system of record.
        """
        support = {s.source_type for s in record.sources if s.role == "support"}
        weakest = min((self.trust[t] for t in support - {"tool_output"}), default=self.trust["tool_output"])
        return self.trust[source_type] >= weakest

    def confidence(self, sources: Iterable[Source]) -> float:
        """Confidence of a record with these sources, in [0, 1].

        The best of min(asserted, TRUST[type]) over its support, plus 0.05 for each further distinct source that
        is not a tool; records that only tools support stay at a tool's trust.
        """
        support = [s for s in sources if s.role == "support"]
        best = max((min(s.confidence, self.trust[s.source_type]) for s in support), default=0.0)
        people = {s.source_id for s in support if s.source_type != "tool_output"}
        if not people:
            return min(best, self.trust["tool_output"])
        # Rounded so that 0.65 + 0.05 is 0.7 whatever the order of addition.
        return round(min(1.0, best + CORROBORATION * (len(people) - 1)), 6)
