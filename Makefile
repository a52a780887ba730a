# Two commands matter on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSPECTOR := 2.12.0
export PYTHONUTF8 = 1

.PHONY: browser demo test test-long lint format bench bench-growth setup setup-test clean
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

browser:  ## Install Chromium for the tests of the page, where that can be done (Debian, as root); else they are skipped.
	@command -v chromium >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core) >/dev/null 2>&1 \
	      || echo "Chromium could not be installed; the tests of the page in a browser are skipped." >&2; \
	  else echo "There is no chromium; the tests of the page in a browser are skipped. On Debian: apt-get install chromium" >&2; fi; }

setup: $(VENV)/ready  ## Create the virtual environment and install the pinned packages.

setup-test: $(VENV)/ready-test $(VENV)/ready-inspector-$(INSPECTOR) browser  ## The same, with what the tests need.

$(VENV)/ready-inspector-$(INSPECTOR): $(VENV)/created
	@if command -v npm >/dev/null 2>&1; then \
	  npm install --prefix $(VENV)/inspector --no-audit --no-fund --no-package-lock --ignore-scripts --loglevel=error \
	    @modelcontextprotocol/inspector@$(INSPECTOR) >/dev/null && touch $@ \
	    || echo "The MCP Inspector could not be installed: its tests are skipped." >&2; \
	else echo "npm is not there: the tests with the MCP Inspector are skipped." >&2; fi

demo: $(VENV)/ready  ## Index data/ and answer questions with citations.
	@$(BIN)/python scripts/run_demo.py $(QUESTIONS)

test: $(VENV)/ready-test $(VENV)/ready-inspector-$(INSPECTOR) browser  ## Lint and run the test suite.
	$(BIN)/ruff check src tests scripts benchmarks
	$(BIN)/python -m pytest -n 2 --dist loadscope -m "not slow"

test-long: $(VENV)/ready-test $(VENV)/ready-inspector-$(INSPECTOR) browser  ## Everything, with the long crash, freshness and load tests.
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

bench-growth: $(VENV)/ready-test  ## Measure every system from 4,000 to 440,000 chunks, and write docs/growth.md (hours).
	$(PIP) install --quiet --constraint constraints.txt --editable '.[bench]'
	$(BIN)/python benchmarks/peers.py --parts growth --sizes 4000 44000 440000 --job-seconds 3600 --minutes 600 --growth-page docs/growth.md

clean:  ## Remove the virtual environment and the sample index.
	rm -rf $(VENV) chroma_db build dist
