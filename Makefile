# What one does with the code; `make help` lists it. Everything lands in .venv, nothing outside.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# --no-deps: the lock is the whole tree, and a package that is not in it is an error, not a guess.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-dev
INSTALLED_BENCH := $(VENV)/.installed-bench
# A module or a package with a __main__ is a benchmark; the soak is long and runs when asked for.
BENCHES := $(patsubst benchmarks/%,bench-%,$(filter-out benchmarks/soak, \
	$(patsubst %/__main__.py,%,$(wildcard benchmarks/*/__main__.py)) \
	$(basename $(wildcard benchmarks/*.py))))
LOCK := CUSTOM_COMPILE_COMMAND='make lock' $(BIN)/pip-compile --quiet --generate-hashes \
	--allow-unsafe --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-trusted-host

.PHONY: help install dev run test check format lint types imports templates bench lock clean

help:
	@echo 'make run      install, then serve on http://127.0.0.1:8080 (Ctrl-C stops it)'
	@echo 'make install  install into .venv only; gives .venv/bin/pisar'
	@echo 'make test     install what the tests need and run all of them'
	@echo 'make check    format, lint, types, import rules, templates, tests: what .ci/run runs'
	@echo 'make bench    print the figures of every benchmark: $(BENCHES)'
	@echo '             one of them: make bench-queue ARGS=--quick; the long one: make bench-soak'
	@echo 'make lock     pin the package tree anew after a change in pyproject.toml'
	@echo 'make clean    remove .venv and the caches; the data directory stays'

install: $(INSTALLED)

dev: $(INSTALLED_DEV)

run: install
	@exec $(BIN)/pisar up

test: dev
	$(BIN)/pytest

check: format lint types imports templates test

format: dev
	$(BIN)/ruff format --check

lint: dev
	$(BIN)/ruff check

types: dev
	$(BIN)/mypy

imports: dev
	$(BIN)/lint-imports

templates: dev
	$(BIN)/djlint --quiet --lint templates

bench: $(BENCHES)

bench-queue: $(INSTALLED_BENCH)
	$(BIN)/python -m benchmarks.queue $(ARGS)

bench-%: dev
	$(BIN)/python -m benchmarks.$* $(ARGS)

lock: dev
	$(LOCK) --build-deps-for editable --output-file requirements.lock pyproject.toml
	$(LOCK) --build-deps-for editable --extra dev --constraint requirements.lock \
		--output-file requirements-dev.lock pyproject.toml
	$(LOCK) --build-deps-for editable --extra bench --constraint requirements-dev.lock \
		--output-file requirements-bench.lock pyproject.toml

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

$(INSTALLED): requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || \
		{ echo 'Python is missing. Install it: sudo apt install python3 python3-venv' >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'Pisar needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 …' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "Python's venv module is missing. Install it: sudo apt install python3-venv" >&2; exit 1; }
	@test -x $(BIN)/python || { echo 'Installing into $(VENV), about 700 MB …'; \
		$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }; }
	@$(PIP_INSTALL) --require-hashes -r requirements.lock
	@$(PIP_INSTALL) --no-build-isolation -e .
	@touch $@

$(INSTALLED_DEV): $(INSTALLED) requirements-dev.lock
	@echo 'Installing what the tests need …'
	@$(PIP_INSTALL) --require-hashes -r requirements-dev.lock
	@touch $@

$(INSTALLED_BENCH): $(INSTALLED_DEV) requirements-bench.lock
	@echo 'Installing the queues that ours is measured beside …'
	@$(PIP_INSTALL) --require-hashes -r requirements-bench.lock
	@touch $@
