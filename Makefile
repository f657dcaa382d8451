.DEFAULT_GOAL := help
PYTHON ?= python3
GO ?= go
VENV ?= .venv
# two more than there are cores, as some tests wait
JOBS ?= $(shell $(PYTHON) -c "import os; print((os.cpu_count() or 1) + 2)")
BIN := $(VENV)/bin
# modules are compiled once, not in each process of each test, whatever the shell says
unexport PYTHONDONTWRITEBYTECODE
STAMP := $(VENV)/.installed

.PHONY: help install up inspector test test-all lint format bench bench-load fuzz lock docs dist try-dist sbom audit etcd types printable clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## make .venv and install the project and its tools there

$(STAMP): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { \
	  echo "Steersman needs Python 3.11 or newer, and there is no $(PYTHON): name another, as in" \
	    "make install PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Steersman needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) --version 2>&1): name another, as in" \
	    "make install PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[all]" --group dev
	@touch $@

up: install ## run a simulated cluster on https://127.0.0.1:6443 until interrupted (FLAGS=... for more flags)
	$(BIN)/steersman up $(FLAGS)

inspector: install ## build the page of `steersman inspect` from inspector/ (needs Node.js 20.19 or later, with npm)
	@command -v npm >/dev/null || { echo "inspector needs Node.js 20.19 or later with npm on the PATH" >&2; exit 1; }
	cd inspector && npm ci --no-audit --no-fund --ignore-scripts && npm run build
	$(BIN)/python -m tools.inspector_page write

test: install ## the short tests, in a minute or two (TESTS=tests/net for all fast ones there, JOBS=1 for one process)
	$(BIN)/python -m tools.run_tests --jobs $(JOBS) -m "not slow" $(if $(TESTS),,--short) $(RUN) $(TESTS)

test-all: install ## all tests, the slow ones too
	$(BIN)/python -m pytest --override-ini faulthandler_timeout=900

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

fuzz: install ## fuzz what reads what clients send (SECONDS=300 for all; TARGETS=... for some; findings go to found/)
	$(BIN)/python -m tools.fuzz $(TARGETS) --seconds $(or $(SECONDS),300) --seed $$(date +%s) --keep found

DOCS := .venv-docs/bin
$(DOCS)/mkdocs: pyproject.toml
	$(PYTHON) -m venv .venv-docs
	$(DOCS)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(DOCS)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable . --group docs
	@touch $@

docs: $(DOCS)/mkdocs ## build the documentation site in site/ (open site/index.html)
	NO_MKDOCS_2_WARNING=1 $(DOCS)/python -m mkdocs build

# built by the pinned tools of the group `release`, with the time of the last commit, so that two builds are equal
RELEASE := .venv-release/bin
$(RELEASE)/pyproject-build: pyproject.toml
	$(PYTHON) -m venv .venv-release
	$(RELEASE)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(RELEASE)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --group release
	@touch $@

dist: $(RELEASE)/pyproject-build ## build the wheel and the sdist in dist/, with their checksums
	rm -f dist/steersman-*
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct 2>/dev/null || echo 1767225600) $(RELEASE)/pyproject-build --outdir dist .
	cd dist && sha256sum steersman-* > SHA256SUMS && cat SHA256SUMS

try-dist: dist ## install the wheel into clean environments and use it there (PYTHONS="python3.11 python3.13" for some)
	$(PYTHON) -m tools.try_wheel dist/steersman-*.whl $(foreach each,$(or $(PYTHONS),$(PYTHON)),--python $(each))

# what looks after the dependencies has an environment of its own, as it brings many packages
SUPPLY := .venv-supply/bin
$(SUPPLY)/pip-compile: pyproject.toml
	$(PYTHON) -m venv .venv-supply
	$(SUPPLY)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(SUPPLY)/python -m pip install --quiet --disable-pip-version-check --group supply
	@touch $@

lock: $(SUPPLY)/pip-compile ## write requirements.lock anew: what runs the server, by hashes, at the versions of constraints.txt
	$(SUPPLY)/pip-compile --quiet --generate-hashes --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
		--no-header --strip-extras --allow-unsafe --extra gzip --extra secretbox --constraint constraints.txt --output-file requirements.lock pyproject.toml

sbom: $(SUPPLY)/pip-compile ## write dist/steersman.cdx.json, the bill of materials (CycloneDX) of an installation of requirements.lock
	rm -rf .venv-locked && $(PYTHON) -m venv --without-pip .venv-locked && mkdir -p dist
	$(SUPPLY)/python -m pip --python .venv-locked/bin/python install --quiet --disable-pip-version-check \
		--require-hashes --requirement requirements.lock
	$(SUPPLY)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
		--output-file dist/steersman.cdx.json .venv-locked/bin/python

audit: $(SUPPLY)/pip-compile ## ask for known vulnerabilities of what is locked; says so where the data cannot be had
	$(SUPPLY)/python -m tools.vulnerabilities

etcd: install ## build etcd, etcdctl and etcdutl into .venv/bin, for the tests that are skipped without them (needs Go)
	@command -v $(GO) >/dev/null || { echo "etcd needs Go 1.26 or later on the PATH (or GO=/path/to/go)" >&2; exit 1; }
	cd tools/etcd && CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w" -o "$(abspath $(BIN))/" . go.etcd.io/etcd/etcdctl/v3 go.etcd.io/etcd/etcdutl/v3

types: install ## generate src/steersman/api anew (FACTS=folder with types.json)
	$(BIN)/python -m tools.generate_types

printable: install ## ask Go anew which characters it prints as they are (needs Go)
	@command -v $(GO) >/dev/null || { echo "printable needs Go on the PATH (or GO=/path/to/go)" >&2; exit 1; }
	GO=$(GO) $(BIN)/python -m tools.generate_printable

clean: ## remove what was built
	rm -rf .venv .venv-* $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
