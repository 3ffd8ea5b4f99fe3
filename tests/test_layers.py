"""Imports point downward only, importing does nothing, and the public names are pinned."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import langmem_adapter

PACKAGE = Path(langmem_adapter.__file__).parent

# From the bottom up. A module may import from lower layers and from its own folder, nothing else.
LAYERS = [
    {"errors", "languages", "lookalikes", "stemming", "wordings"},
    {"text", "redaction", "needles"},
    {"records"},
    {"topics", "trust", "embeddings", "namespaces", "toolcalls"},
    {"scoring", "ports", "worker", "backlog"},
    {"answers", "arguments", "consent", "paging"},
    {"stores"},
    {"extraction", "consolidation", "retrieval", "injection", "checkpoint"},
    {"guard", "receipts", "turnqueue"},
    {"auditing", "exchange", "forgetting", "learning", "migrate", "quarantine", "sessions"},
    {"maintenance"},
    {"methods"},
    {"memory"},
    {"langgraph"},
    {"middleware"},
]
TESTING = {"testing"}


def layer(module: str) -> int:
    found = [i for i, names in enumerate(LAYERS) if module in names]
    assert found, f"{module} is in no layer: add it to LAYERS and to docs/architecture.md"
    return found[0]


def imported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("langmem_adapter"):
            parts = (node.module or "").split(".")
            found |= {parts[1]} if len(parts) > 1 else {a.name for a in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("langmem_adapter.")}
    return found


MODULES = sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_downward(path):
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if own in TESTING:
        return
    for other in imported(path) - {own}:
        assert other not in TESTING, "no runtime module imports the testing helpers"
        assert layer(other) < layer(own), f"{own} imports {other}, which is not below it"


def test_the_steps_do_not_import_each_other():
    for step in ("extraction", "retrieval", "injection"):
        for path in MODULES:
            if path.relative_to(PACKAGE).parts[0].removesuffix(".py") == step:
                assert not imported(path) & ({"extraction", "consolidation", "retrieval", "injection"} - {step})


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_loads_no_chroma_langchain_or_web_framework():
    loaded = run_python("import langmem_adapter, sys; print(*sys.modules)").split()
    heavy = {"chromadb", "langchain", "psycopg", "starlette", "fastapi", "typer", "rich", "langgraph.graph"}
    assert "langmem_adapter.memory" in loaded
    assert heavy & set(loaded) == set()


def test_importing_touches_no_file_and_no_network(tmp_path):
    code = """
import os, sys
sys.dont_write_bytecode = True
bad = []
def watch(event, args):
    if event.startswith(("socket.connect", "os.mkdir")) or event == "open" and args[1] and "w" in str(args[1]):
        bad.append((event, args))
sys.addaudithook(watch)
import langmem_adapter
print(os.listdir("."), bad)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert (done.stdout.strip(), done.returncode) == ("[] []", 0), done.stderr


def test_the_public_names_are_these():
    assert sorted(langmem_adapter.__all__) == [
        "Block",
        "Conflict",
        "DEFAULT_RULES",
        "DEFAULT_TOPICS",
        "Guard",
        "HashEmbeddings",
        "Memory",
        "MemoryAdapterError",
        "MemoryNotFound",
        "MemoryRecord",
        "MissingUser",
        "Operation",
        "Recalled",
        "Rule",
        "SqliteMemoryStore",
        "Topic",
        "TrustPolicy",
    ]


def test_every_public_name_has_a_docstring():
    from langmem_adapter import langgraph, middleware

    public = [
        getattr(langmem_adapter, n) for n in langmem_adapter.__all__ if n not in ("DEFAULT_RULES", "DEFAULT_TOPICS")
    ]
    public += [
        v
        for k, v in vars(langgraph).items()
        if inspect.isfunction(v) and v.__module__ == langgraph.__name__ and k[0] != "_"
    ]
    public += [middleware.MemoryMiddleware]
    missing = [p.__qualname__ for p in public if not p.__doc__]
    for cls in (langmem_adapter.Memory, langmem_adapter.SqliteMemoryStore, langmem_adapter.TrustPolicy):
        missing += [
            f"{cls.__name__}.{name}"
            for name, member in inspect.getmembers(cls, callable)
            if not name.startswith("_") and not inspect.getdoc(member)
        ]
    assert missing == []


def test_every_method_with_an_async_twin_has_the_same_arguments():
    methods = dict(inspect.getmembers(langmem_adapter.Memory, callable))
    twins = [n for n in methods if not n.startswith("_") and f"a{n}" in methods]
    assert {"add", "add_fact", "search", "get", "get_all", "history", "why", "update", "delete", "delete_all"} <= set(
        twins
    )
    for name in twins:
        assert inspect.signature(methods[name]) == inspect.signature(methods[f"a{name}"])
        assert inspect.iscoroutinefunction(methods[f"a{name}"])
