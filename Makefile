# Everything a newcomer or CI needs: only Python (3.11 or newer), pip and make are assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help demo test check lint types bench soak clean

help:
	@echo "make demo   run the travel concierge (ARGS=\"--model openai:gpt-4o-mini\" for a real model)"
	@echo "make test   run the tests"
	@echo "make check  ruff, mypy --strict and the tests: what CI runs"
	@echo "make soak   the long forms of the fault tests, and the mutations (about half an hour)"
	@echo "make bench  our store and a turn against LangGraph's stores, Chroma and langmem"

# Reinstalled only when pyproject.toml changed.
$(STAMP): pyproject.toml
	@test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) (once; about a minute)"
	@$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $(STAMP)

demo: $(STAMP)
	@$(BIN)/python examples/travel_concierge.py $(ARGS)

test: $(STAMP)
	@$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(STAMP)
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: $(STAMP)
	@$(BIN)/mypy

check: lint types test

soak: $(STAMP)
	@SOAK=1 $(BIN)/python -m pytest -n 2 --dist worksteal tests/faults tests/test_state_machine.py tests/test_fuzzing.py tests/test_killed.py tests/checkpoint/test_many.py
	@$(BIN)/python tests/mutations.py

# SqliteStore loads an extension, which not every build of Python can.
bench: $(STAMP)
	@$(BIN)/python -c 'import sqlite3; sqlite3.Connection.enable_load_extension' 2>/dev/null \
		|| $(BIN)/pip install --quiet --disable-pip-version-check pysqlite3-binary
	@$(BIN)/python benchmarks/store.py
	@$(BIN)/python benchmarks/turn.py
	@$(BIN)/python benchmarks/checkpoint.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
