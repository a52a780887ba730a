# Two commands matter on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
export PYTHONUTF8 = 1

.PHONY: demo test test-long lint format bench setup setup-test clean
.DEFAULT_GOAL := help

help:  ## Show the targets.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/created:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || { \
	  echo "hybrid-rag needs Python 3.11, 3.12 or 3.13; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/ready: $(VENV)/created pyproject.toml constraints.txt
	$(PIP) install --quiet --constraint constraints.txt --editable .
	@touch $@

$(VENV)/ready-test: $(VENV)/ready
	$(PIP) install --quiet --constraint constraints.txt --editable '.[test]'
	-@$(BIN)/python scripts/fetch_test_model.py  # without it the tests with a real language model are skipped
	@touch $@

setup: $(VENV)/ready  ## Create the virtual environment and install the pinned packages.

setup-test: $(VENV)/ready-test  ## The same, with what the tests need.

demo: $(VENV)/ready  ## Index data/ and answer questions with citations.
	@$(BIN)/python scripts/run_demo.py $(QUESTIONS)

test: $(VENV)/ready-test  ## Lint and run the test suite.
	$(BIN)/ruff check src tests scripts benchmarks
	$(BIN)/python -m pytest -n 2 --dist loadscope -m "not slow"

test-long: $(VENV)/ready-test  ## Everything, with the long crash, freshness and load tests.
	$(BIN)/python -m pytest -n 2 --dist loadscope

lint: $(VENV)/ready-test  ## Check the style.
	$(BIN)/ruff check src tests scripts benchmarks
	$(BIN)/ruff format --check --line-length 140 src tests scripts benchmarks

format: $(VENV)/ready-test  ## Format the code.
	$(BIN)/ruff check --fix src tests scripts benchmarks
	$(BIN)/ruff format --line-length 140 src tests scripts benchmarks

bench: $(VENV)/ready-test  ## Measure everything, beside other systems, and write docs/benchmarks.md (25 minutes).
	$(PIP) install --quiet --constraint constraints.txt --editable '.[bench]'
	$(BIN)/python benchmarks/run.py

clean:  ## Remove the virtual environment and the sample index.
	rm -rf $(VENV) chroma_db build dist
