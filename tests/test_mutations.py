"""The safeguards that `make soak` takes out are in the code as they are written there, and so are their tests."""

import re
import shutil
from pathlib import Path

import pytest
from mutations import MUTATIONS, ROOT, Mutation, mutate


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[m.safeguard for m in MUTATIONS])
def test_what_is_to_be_taken_out_is_there(mutation: Mutation, tmp_path: Path) -> None:
    (tmp_path / mutation.file).parent.mkdir(exist_ok=True)
    shutil.copy(ROOT / "langmem_adapter" / mutation.file, tmp_path / mutation.file)
    mutate(mutation, tmp_path)
    compile((tmp_path / mutation.file).read_text(), mutation.file, "exec")
    file, *names = mutation.test.partition("[")[0].split("::")
    assert all(re.search(rf"(?:def|class) {name}\b", (ROOT / file).read_text()) for name in names)
