"""Takes one safeguard after the other out of a copy of the package, and shows which test notices.

    python tests/mutations.py

Prints a table; fails if a test does not fail without its safeguard, or does not pass with it.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent


class Mutation(NamedTuple):
    """What is taken out: each text, which stands once in the file, becomes another; and the test that must fail."""

    safeguard: str
    file: str
    changes: tuple[tuple[str, str], ...]
    test: str


MUTATIONS = (
    Mutation(
        "the transaction around a commit",
        "stores/connections.py",
        (
            ('conn.execute("BEGIN IMMEDIATE")', "pass"),
            ('conn.execute("COMMIT")', 'conn.in_transaction and conn.execute("COMMIT")'),
        ),
        "tests/faults/test_kill.py::test_a_process_that_dies_at_any_statement_has_made_the_whole_change_or_none_of_it",
    ),
    Mutation(
        "the version check of a commit",
        "stores/writing.py",
        (("        if found != version:\n", "        if False:\n"),),
        "tests/faults/test_writers.py::test_eight_processes_leave_one_row_a_fact_and_one_active_value",
    ),
    Mutation(
        "the escape of ids in namespaces",
        "namespaces.py",
        (('return "".join(chr(b) if', 'return value.lower() if value else "".join(chr(b) if'),),
        "tests/test_isolation.py::test_ids_that_nearly_collide_never_meet[sqlite]",
    ),
    Mutation(
        "that lineage does not count in the trust gate",
        "trust.py",
        (
            (
                'support = {s.source_type for s in record.sources if s.role == "support"}',
                "support = {s.source_type for s in record.sources}",
            ),
        ),
        "tests/test_trust.py",
    ),
    Mutation(
        "that a fact must rest on the words it cites",
        "extraction/grounding.py",
        (("    cited = _cited(candidate, messages)\n", "    return None\n    cited = _cited(candidate, messages)\n"),),
        "tests/extraction/test_grounding.py",
    ),
    Mutation(
        "that a turn erased while it was extracted stays erased",
        "consolidation/step.py",
        (("    if turn.outlived_by(", "    if False and turn.outlived_by("),),
        "tests/test_model.py::TestBackground::test_an_erasure_beats_an_extraction_in_flight[sqlite]",
    ),
    Mutation(
        "that the file is rebuilt where erased bytes are left",
        "stores/erasure.py",
        (('conn.execute("VACUUM")', "pass"),),
        "tests/stores/test_sqlite_erasure.py::test_copies_left_in_page_gaps_are_found_and_removed",
    ),
    Mutation(
        "the escape of brackets in a block",
        "injection.py",
        ((".translate(_BRACKETS)", ""),),
        "tests/test_injection.py::test_whatever_the_texts_the_block_has_one_frame_and_one_line_a_memory",
    ),
    Mutation(
        "that a memory is one line of a block",
        "injection.py",
        (("one_line(clean(text))", "clean(text)"),),
        "tests/test_fuzzing.py::test_a_block_has_one_opening_and_one_closing_tag_and_one_line_a_memory",
    ),
    Mutation(
        "that secrets are cut out before anything is stored",
        "guard.py",
        (("return redacted(text, self.secrets)", "return text"),),
        "tests/test_guard.py::test_a_secret_reaches_no_queue_no_store_no_model_no_embedder_and_no_log",
    ),
    Mutation(
        "the guard between extraction and consolidation",
        "learning.py",
        (
            (
                "self.guard.screen(turn, accept(turn, proposed, self.rules.topics, self.rules.policy))",
                "accept(turn, proposed, self.rules.topics, self.rules.policy)",
            ),
        ),
        "tests/test_guard.py::test_a_claim_of_power_waits_in_quarantine_with_its_reason[sqlite]",
    ),
    Mutation(
        "that a claim is read with its subject",
        "guard.py",
        (("[said_again(view) for view in read]", "[view for view in read]"),),
        "tests/test_guard_wordings.py::test_a_claim_is_held_wherever_its_subject_stands",
    ),
    Mutation(
        "the owner in a look-up by id",
        "retrieval.py",
        (('items_under(io, reader.root, {"memory_id": memory_id})', 'items_under(io, (), {"memory_id": memory_id})'),),
        "tests/test_memory.py::TestStory::test_another_user_sees_nothing[sqlite]",
    ),
    Mutation(
        "the owner in a list of memories",
        "methods/reading.py",
        (("Reader(user_id, app_name).root, wanted or None", "Reader(user_id, app_name).root[:3], wanted or None"),),
        "tests/test_memory.py::TestStory::test_another_user_sees_nothing[sqlite]",
    ),
    Mutation(
        "the namespace in the store's statement",
        "stores/reading.py",
        (("WHERE namespace = ? AND key = ? AND {_ALIVE}", "WHERE (namespace = ? OR 1) AND key = ? AND {_ALIVE}"),),
        "tests/test_memory.py::TestStory::test_another_user_sees_nothing[sqlite]",
    ),
    Mutation(
        "that a conversation is JSON in a model's prompt",
        "extraction/model.py",
        (
            (
                'json.dumps({"line": i, "role": m.role, "text": m.text}, ensure_ascii=False)',
                """f'{{"line": "{i}", "role": "{m.role}", "text": "{m.text}"}}'""",
            ),
        ),
        "tests/test_model.py::TestExtraction::test_the_conversation_is_data_in_the_prompt[sqlite]",
    ),
    Mutation(
        "that a claimed turn is nobody else's",
        "turnqueue.py",
        (("    if _waits(stored, now) and not (", "    if False and not ("),),
        "tests/test_queue.py::test_a_turn_that_is_being_learnt_is_not_asked_about_twice[sqlite]",
    ),
    Mutation(
        "that a learnt turn is not learnt again",
        "records.py",
        (("            return stored.knows(self) or ", "            return False and "),),
        "tests/faults/test_again.py::test_by_two_callers_of_whom_neither_was_done_when_both_had_extracted",
    ),
    Mutation(
        "the deadline of a recall",
        "methods/turns.py",
        (("await io.bounded(step, self._patience())", "await step(io)"),),
        "tests/test_deadline.py::test_the_turn_goes_on_and_what_was_said_is_learnt_later",
    ),
    Mutation(
        "that the past is decided again without a forgotten source",
        "consolidation/replay.py",
        (("parts = list(rebuild(known, steps_of(turns), names, rules, extracted))", "parts: list[Rebuilt] = []"),),
        "tests/test_replay.py::test_as_if_it_had_never_spoken[0]",
    ),
    Mutation(
        "that an edited message takes back its old words",
        "consolidation/step.py",
        (("    if replaces:\n        take_back", "    if False:\n        take_back"),),
        "tests/test_memory_again.py::TestEdits::test_what_stood_on_both_sides_of_it_is_linked[sqlite]",
    ),
)


def mutate(mutation: Mutation, package: Path) -> None:
    """Take the safeguard out of this copy of the package; LookupError if it is not there as written."""
    file = package / mutation.file
    text = file.read_text()
    for old, new in mutation.changes:
        if text.count(old) != 1:
            raise LookupError(f"{mutation.file} has {text.count(old)} times: {old.strip()!r}")
        text = text.replace(old, new)
    file.write_text(text)


def passes(folder: Path, test: str) -> bool:
    """Whether the test passes on the package in this folder; RuntimeError if it could not be run."""
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", test]
    env = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{test} could not be run:\n{done.stdout}{done.stderr}")
    return done.returncode == 0


def copy(folder: Path) -> Path:
    """The package and its tests, in this folder; where the package is."""
    for part in ("langmem_adapter", "tests"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder / "langmem_adapter"


def main() -> int:
    """How many safeguards nobody would miss."""
    missed = 0
    print(f"{'without':<60}{'with it':<10}{'without':<10}test")
    for mutation in MUTATIONS:
        with tempfile.TemporaryDirectory() as name:
            package = copy(Path(name))
            before = passes(Path(name), mutation.test)
            mutate(mutation, package)
            after = passes(Path(name), mutation.test)
        missed += not before or after
        told = ["passes" if found else "fails" for found in (before, after)]
        print(f"{mutation.safeguard:<60}{told[0]:<10}{told[1]:<10}{mutation.test}", flush=True)
    print(f"{len(MUTATIONS) - missed} of {len(MUTATIONS)} safeguards are missed by a test when they are gone")
    return missed


if __name__ == "__main__":
    sys.exit(main())
