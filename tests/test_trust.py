"""The trust gate, its traps, and confidence as a pure function of sources."""

import pytest
from support import record, source

from langmem_adapter.trust import TRUST, TrustPolicy

policy = TrustPolicy()


@pytest.mark.parametrize("source_type", TRUST)
def test_one_source_gives_at_most_its_trust(source_type):
    assert policy.confidence([source(source_type, confidence=1.0)]) == TRUST[source_type]
    assert policy.confidence([source(source_type, confidence=0.1)]) == 0.1


def test_each_further_distinct_source_adds_a_twentieth():
    said = [source("user_implicit", f"s{i}") for i in range(3)]
    assert [policy.confidence(said[:n]) for n in (1, 2, 3)] == [0.65, 0.70, 0.75]
    assert policy.confidence([*said[:1], source("user_implicit", "s0", message_id="again")]) == 0.65


def test_confidence_never_exceeds_one():
    assert policy.confidence([source("bootstrapped", f"s{i}") for i in range(9)]) == 1.0


def test_confidence_does_not_depend_on_order():
    sources = [source("user_implicit", "a"), source("bootstrapped", "b"), source("tool_output", "c")]
    assert policy.confidence(sources) == policy.confidence(sources[::-1]) == 1.0


def test_tools_never_raise_confidence_above_a_tools_trust():
    tools = [source("tool_output", f"t{i}") for i in range(10)]
    assert policy.confidence(tools) == 0.30
    assert policy.confidence([source("user_implicit", "s1"), *tools]) == 0.65


def test_lineage_gives_no_confidence():
    assert policy.confidence([source("user_implicit", "s3"), source("bootstrapped", "s1", role="lineage")]) == 0.65


def test_as_trustworthy_as_the_weakest_supporter_is_enough():
    mixed = record(source("user_explicit", "a"), source("user_implicit", "b"))
    assert policy.may_overwrite("user_implicit", mixed)
    assert not policy.may_overwrite("user_implicit", record(source("user_explicit")))


def test_trap_1_lineage_does_not_lower_the_gate():
    corrected = record(source("user_implicit", "s1", role="lineage"), source("user_explicit", "s3"))
    assert not policy.may_overwrite("user_implicit", corrected)


def test_trap_2_tool_support_does_not_lower_the_gate():
    beside = record(source("user_explicit", "s1"), source("tool_output", "t"))
    assert not policy.may_overwrite("tool_output", beside)
    assert not policy.may_overwrite("user_implicit", beside)


def test_a_tool_may_replace_only_what_tools_alone_support():
    assert policy.may_overwrite("tool_output", record(source("tool_output", "t")))
    for source_type in ("user_implicit", "user_explicit", "bootstrapped"):
        assert not policy.may_overwrite("tool_output", record(source(source_type)))


def test_an_extractor_can_lower_trust_but_not_raise_it():
    assert policy.lower("user_implicit", "user_explicit") == "user_implicit"
    assert policy.lower("bootstrapped", "user_explicit") == "user_explicit"
