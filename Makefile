# Everything a user or developer runs. `make` alone lists it.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PURE := tests/core tests/decode tests/vectors

.PHONY: help setup setup-dev check-machine browser demo test test-fast test-spark test-long bench lint lock docs clean

help: ## This list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk 'BEGIN {FS = ":.*## "} {printf "  make %-12s %s\n", $$1, $$2}'

check-machine:
	@test -n "$(PYTHON)" && $(PYTHON) -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 13))' 2>/dev/null \
	  || { echo "mqreplay needs Python 3.11 or 3.12 with venv: install it (Debian: apt-get install python3.11 python3.11-venv), or give PYTHON=/path/to/python3.11" >&2; exit 2; }
	@java=$${JAVA_HOME:+$$JAVA_HOME/bin/}java; \
	 major=$$($$java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -1); \
	 test "$${major:-0}" -ge 17 \
	  || { echo "mqreplay needs Java 17 or newer, found $${major:-none}: install it (Debian: apt-get install openjdk-17-jre-headless), or set JAVA_HOME" >&2; exit 2; }

$(VENV)/.runtime: requirements/build.txt requirements/runtime.txt pyproject.toml setup.py
	@$(MAKE) --no-print-directory check-machine
	@echo "setting up $(VENV) (once; a minute or two)" >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install --require-hashes -r requirements/build.txt
	@$(PIP) install --require-hashes -r requirements/runtime.txt
	@$(PIP) install --no-deps --no-build-isolation -e .
	@$(BIN)/python -m mqreplay.lake.jars >&2
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements/dev.txt
	@$(PIP) install --require-hashes -r requirements/dev.txt
	@touch $@

setup: check-machine $(VENV)/.runtime ## Install into .venv what mqreplay needs

setup-dev: check-machine $(VENV)/.dev ## The same, and what its tests need

browser:
	@{ command -v chromium && command -v chromedriver; } >/dev/null || { \
	  as=; test "$$(id -u)" = 0 || as="sudo -n"; \
	  { $$as apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$as apt-get install -y -qq --no-install-recommends chromium chromium-driver; } >/dev/null 2>&1 \
	  || { echo "the tests of the report need a browser: install chromium and chromium-driver (Debian: apt-get install chromium chromium-driver)" >&2; exit 2; }; }

demo: setup ## The nightly run on the sample recording: findings, and a report to open
	@$(BIN)/mqreplay demo

lint: setup-dev ## Style, types and the arrows of the design
	@$(BIN)/ruff check lib tests jobs setup.py
	@$(BIN)/ruff format --check lib tests jobs setup.py
	@$(BIN)/mypy
	@$(BIN)/lint-imports

test: setup-dev browser lint ## All tests that CI runs
	@$(BIN)/python -m pytest -m "not long" tests

test-fast: setup-dev ## The pure tests: no Spark, no Java, seconds
	@$(BIN)/python -m pytest $(PURE)

test-long: setup-dev browser ## Long campaigns: faults, large inputs
	@$(BIN)/python -m pytest -m long tests

bench: setup-dev ## Benchmarks, as tables
	@for f in tests/bench/*.py; do echo "== $$f"; $(BIN)/python $$f; done

lock: setup-dev ## Make the lock files anew
	@for f in build runtime dev; do \
	  in=requirements/$$f.in; test $$f = runtime && in=pyproject.toml; \
	  env -u PIP_FIND_LINKS -u PIP_INDEX_URL $(BIN)/pip-compile --quiet --generate-hashes --no-emit-index-url --no-emit-find-links \
	    --no-emit-trusted-host --allow-unsafe --strip-extras -o requirements/$$f.txt $$in; done

docs: setup-dev ## Make the generated pages anew
	@$(BIN)/python -m mqreplay.lake.table_docs > docs/tables.md

clean: ## Remove what was built, but not .venv
	@rm -rf build dist warehouse spark-warehouse .pytest_cache .mypy_cache .ruff_cache .hypothesis lib/*.egg-info
	@find lib tests jobs -name __pycache__ -prune -exec rm -rf {} +
