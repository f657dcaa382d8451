.DEFAULT_GOAL := help
PYTHON ?= python3
GO ?= go
VENV ?= .venv
# one more than there are cores, as some tests wait
JOBS ?= $(shell $(PYTHON) -c "import os; print((os.cpu_count() or 1) + 1)")
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help install up test test-all lint format bench bench-load types printable clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## make .venv and install the project and its tools there

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable . --group dev
	@touch $@

up: install ## run a simulated cluster on https://127.0.0.1:6443 until interrupted (FLAGS=... for more flags)
	$(BIN)/steersman up $(FLAGS)

test: install ## the unit tests, in some minutes (JOBS=0 for one process)
	$(BIN)/python -m pytest -m "not slow" --numprocesses $(JOBS) --dist loadfile

test-all: install ## all tests, the slow ones too
	$(BIN)/python -m pytest

lint: install ## ruff, mypy, the floors
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install ## let ruff put the code in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: install ## the micro benchmarks of bench/
	$(BIN)/python -m bench.run

bench-load: ## build the load generator of bench/load (needs Go 1.26)
	@command -v $(GO) >/dev/null || { echo "bench-load needs Go 1.26 or later on the PATH (or GO=/path/to/go)" >&2; exit 1; }
	cd bench/load && $(GO) build -o load .

types: install ## generate src/steersman/api anew (FACTS=folder with types.json)
	$(BIN)/python -m tools.generate_types

printable: install ## ask Go anew which characters it prints as they are (needs Go)
	@command -v $(GO) >/dev/null || { echo "printable needs Go on the PATH (or GO=/path/to/go)" >&2; exit 1; }
	GO=$(GO) $(BIN)/python -m tools.generate_printable

clean: ## remove what was built
	rm -rf .venv .venv-* $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
