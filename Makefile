# Everything a user or developer runs. `make` alone lists it.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
# Else each process of the tests, and each command that a test starts, would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
ENGINE ?= local
CODE := lib tests tools jobs setup.py
PURE := tests/core tests/decode tests/vectors
RULES := $(PURE) tests/oracles tests/evidence tests/decisions tests/findings
# Percent of the lines and branches of core and decode.
COVERAGE := 95
COVERED := --cov=mqreplay.core --cov=mqreplay.decode --cov-branch --cov-report=term:skip-covered --cov-fail-under=$(COVERAGE)
# A run of its own: a run with coverage takes half as long again, also for tests that coverage does not watch.
COVERAGE_RUN = $(BIN)/python -m pytest -q -m "not long and not alone" -n 2 $(COVERED) $(PURE)

# The first Python of the right version that has venv, and Java's major version: looked for once, when first needed.
USABLE := import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))
FIND_PYTHON = for p in python3.11 python3.12 python3.13 python3 python; do \
  if $$p -c '$(USABLE)' >/dev/null 2>&1; then command -v $$p; break; fi; done
ASK_JAVA = "$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | sed -n 1p
ifndef PYTHON
PYTHON = $(eval PYTHON := $$(shell $(value FIND_PYTHON)))$(PYTHON)
endif
JAVA = $(eval JAVA := $$(shell $(value ASK_JAVA)))$(JAVA)

# $(error) and not a failing command: it is the one line that make then prints.
NO_PYTHON = Python 3.11, 3.12 or 3.13 with its venv module (Debian: apt-get install python3.11-venv; or PYTHON=/path/to/it)
NO_JAVA = Java 17 or newer, not $(if $(JAVA),$(JAVA),none) (Debian: apt-get install openjdk-17-jre-headless; or JAVA_HOME=/path/to/it)
NO_BROWSER = the tests of the report need a browser: install chromium and chromium-driver (Debian: apt-get install chromium chromium-driver)
LACKS_PYTHON = $(if $(shell $(or $(PYTHON),false) -c '$(USABLE)' >/dev/null 2>&1 && echo yes),,$(NO_PYTHON))
LACKS_JAVA = $(if $(shell test 0$(JAVA) -ge 17 && echo yes),,$(NO_JAVA))
HAS_BROWSER = $(and $(shell command -v chromium),$(shell command -v chromedriver))
NO_COMPILER = the tests of interrupted runs need a C compiler: install gcc and libc6-dev (Debian: apt-get install gcc libc6-dev)
HAS_COMPILER = $(shell command -v cc)
NO_PROMETHEUS = the tests of the metrics need prometheus and promtool in the PATH (Debian: apt-get install prometheus)
HAS_PROMETHEUS = $(or $(wildcard $(VENV)/prometheus/usr/bin/promtool),$(shell command -v promtool))

.PHONY: help machine python setup setup-dev browser-install browser compiler-install compiler prometheus-install prometheus demo lint test test-rules test-changed test-long test-versions bench bench-check mutate audit lock accuracy changelog coverage docs environment clean

help: ## This list
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | while IFS=$$'\t' read -r name what; do printf '  make %-13s %s\n' "$$name" "$$what"; done

machine: python
	$(if $(LACKS_JAVA),$(error Spark needs $(LACKS_JAVA); `make demo` and --engine local do without Java))

python:
	$(if $(LACKS_PYTHON),$(error mqreplay needs $(LACKS_PYTHON)))

setup: $(VENV)/.runtime ## Install into .venv what mqreplay needs

setup-dev: $(VENV)/.dev ## The same, and what its tests need

# The set-up prints a line for each step, and counts the packages as pip fetches them.
STEP = @printf '%s\n' "$(1)" >&2
locked = $(shell grep -c '==' $(1))
# Not awk: some of them read their input in large parts, and would print all lines at the end.
COUNTED = n=0; while IFS= read -r line; do case "$$line" in \
  Collecting\ *) n=$$((n + 1)); (( n % 15 )) || echo "    $$n of $(1) packages" ;; \
  Building\ wheels*) echo "    $$line" ;; \
  Installing\ collected*) echo "    all fetched; unpacking them" ;; esac; done >&2
LOUD_PIP = set -o pipefail; $(BIN)/python -m pip --disable-pip-version-check

# No build isolation: what comes as source (pyspark) is built with the locked tools, and nothing unpinned is fetched.
$(VENV)/.runtime: requirements/build.txt requirements/runtime.txt pyproject.toml setup.py | python
	$(call STEP,setting up $(VENV): once; it takes about 2 minutes and 1.6 GB of disk)
	@$(BIN)/python -c '$(USABLE)' 2>/dev/null || { echo "1 of 5: creating $(VENV) with $(PYTHON)" >&2; $(PYTHON) -m venv --clear $(VENV); }
	$(call STEP,2 of 5: installing $(call locked,requirements/runtime.txt) packages from PyPI; pyspark alone has 430 MB)
	@$(PIP) install --require-hashes -r requirements/build.txt
	@$(LOUD_PIP) install --require-hashes --no-build-isolation -r requirements/runtime.txt | { $(call COUNTED,$(call locked,requirements/runtime.txt)); }
	$(call STEP,3 of 5: installing mqreplay)
	@$(PIP) install --no-deps --no-build-isolation -e .
	$(call STEP,4 of 5: fetching Delta's JARs from Maven)
	@$(BIN)/python -m mqreplay.lake.jars
	$(call STEP,5 of 5: archiving Java classes so that Spark starts faster)
	@$(BIN)/python -m mqreplay.lake.class_archive || true
	$(call STEP,$(VENV) is ready)
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements/dev.txt
	$(call STEP,for tests: installing $(call locked,requirements/dev.txt) packages)
	@$(LOUD_PIP) install --require-hashes --no-build-isolation -r requirements/dev.txt | { $(call COUNTED,$(call locked,requirements/dev.txt)); }
	$(call STEP,for tests: fetching RocketMQ from Maven)
	@PYTHONPATH=tests $(BIN)/python -m cluster.artefacts
	$(call STEP,for tests: fetching servers of object stores and HDFS from Maven)
	@PYTHONPATH=tests $(BIN)/python -m storage.artefacts
	@touch $@

APT_INSTALL = as=; test "$$(id -u)" = 0 || as="sudo -n"; \
  { $$as apt-get update && $$as env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $(1); } >/dev/null 2>&1 || true

# Two rules: make works out all of a rule's lines before it runs the first.
browser-install:
	@$(if $(HAS_BROWSER),,$(call APT_INSTALL,chromium chromium-driver))

browser: browser-install
	$(if $(HAS_BROWSER),,$(error $(NO_BROWSER)))

compiler-install:
	@$(if $(HAS_COMPILER),,$(call APT_INSTALL,gcc libc6-dev))

compiler: compiler-install
	$(if $(HAS_COMPILER),,$(error $(NO_COMPILER)))

# Unpacked and not installed: the package would start a server.
prometheus-install:
	@$(if $(HAS_PROMETHEUS),,as=; test "$$(id -u)" = 0 || as="sudo -n"; { $$as apt-get update; folder=$$(mktemp -d) && (cd $$folder && apt-get download prometheus) && \
	  dpkg -x $$folder/prometheus_*.deb $(VENV)/prometheus; rm -rf $$folder; } >/dev/null 2>&1 || true)

prometheus: prometheus-install
	$(if $(HAS_PROMETHEUS),,$(error $(NO_PROMETHEUS)))

demo: $(if $(filter spark,$(ENGINE)),machine) setup ## The nightly run on the sample: findings, and a report to open (ENGINE=spark: on Spark)
	@$(BIN)/mqreplay demo --engine $(ENGINE)

lint: setup-dev ## Style, types, and the arrows of the design
	@$(BIN)/ruff check $(CODE)
	@$(BIN)/ruff format --check $(CODE)
	@$(BIN)/mypy
	@$(BIN)/lint-imports

test: machine setup-dev browser compiler prometheus lint ## All tests that CI runs, and how much of core and decode the pure ones cover
	@$(BIN)/python -m pytest -q -m alone $$(grep -rl --include='test_*.py' mark.alone tests)
	@$(COVERAGE_RUN)
	@$(BIN)/python -m pytest -m "not long and not alone" -n 3 --dist loadfile --no-loadscope-reorder $(PURE:%=--ignore=%)

coverage: setup-dev ## The pure tests, and how much of core and decode they cover, with a floor
	@$(COVERAGE_RUN)

test-rules: setup-dev ## The tests of rules: no Spark, a minute
	@$(BIN)/python -m pytest -q -m "not long and not spark and not alone" -n 2 $(RULES)

test-changed: setup-dev ## The tests whose imports reach what changed; ARGS=origin/main (default: since HEAD)
	@files=$$($(BIN)/python tools/changed_tests.py $(ARGS)) && { test -z "$$files" || $(BIN)/python -m pytest -q -m "not long" -n 2 --dist loadfile $$files; }

# Airflow's packages do not fit those of mqreplay: they have a virtual environment of their own.
$(VENV)/.airflow: $(VENV)/.dev requirements/airflow.txt
	@$(BIN)/python -m venv --clear $(VENV)/airflow
	@$(VENV)/airflow/bin/python -m pip --disable-pip-version-check --quiet install --require-hashes -r requirements/airflow.txt
	@touch $@

test-long: machine setup-dev browser compiler prometheus $(VENV)/.airflow ## The tests that take minutes: faults, large inputs
	@$(BIN)/python -m pytest -m long
	@$(BIN)/python -m pytest -q -m "hypothesis and not long" --hypothesis-profile=whole

test-versions: machine setup-dev ## Both sample nights on Spark 3.5, 4.0 and the locked one: equal tables; ARGS=3.5
	@$(BIN)/python tools/versions/run.py $(ARGS)

$(VENV)/.bench: $(VENV)/.dev requirements/bench.txt
	@$(PIP) install --require-hashes -r requirements/bench.txt
	@touch $@

bench: machine $(VENV)/.bench ## Measure: a made-up estate's night beside polars and DuckDB; ARGS="--size M --full --runs 5"
	@$(BIN)/python tools/bench/bind_faces.py
	@$(BIN)/python tools/bench/nights.py $(ARGS)

bench-check: setup-dev ## CPU seconds of sample and S beside those of the last tag; ARGS="COMMIT --nights sample"
	@$(BIN)/python tools/bench/check.py $(ARGS)

mutate: setup-dev ## Mutation tests of core: docs/development/mutation.md (half an hour; ARGS="--jobs 4")
	@$(BIN)/python tools/mutation/run.py $(ARGS)

audit: setup-dev ## Licences of all packages and JARs, a bill of materials, known vulnerabilities (where a database is)
	@PYTHONPATH=tests $(BIN)/python -m audit.run

LOCK := $(BIN)/pip-compile --quiet --generate-hashes --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --allow-unsafe --no-strip-extras

lock: setup-dev ## Make the lock files anew; ARGS=--upgrade for newer versions
	@unset PIP_FIND_LINKS PIP_INDEX_URL PIP_EXTRA_INDEX_URL; export CUSTOM_COMPILE_COMMAND="make lock"; set -e; \
	  $(LOCK) $(ARGS) -o requirements/build.txt requirements/build.in; \
	  $(LOCK) $(ARGS) --extra spark --extra notify -o requirements/runtime.txt pyproject.toml; \
	  $(LOCK) $(ARGS) -o requirements/spark-3.5.txt requirements/spark-3.5.in; \
	  $(LOCK) $(ARGS) -o requirements/spark-4.0.txt requirements/spark-4.0.in; \
	  $(LOCK) $(ARGS) -o requirements/dev.txt requirements/dev.in; \
	  $(LOCK) $(ARGS) -o requirements/bench.txt requirements/bench.in; \
	  $(LOCK) $(ARGS) -o requirements/airflow.txt requirements/airflow.in

accuracy: setup-dev ## Count right and wrong findings of the recorded nights: docs/development/accuracy.md
	@PYTHONPATH=tests $(BIN)/python -m night.accuracy

changelog: setup-dev ## Show the changelog of the next version; ARGS=--yes writes it, and removes the fragments
	@$(BIN)/towncrier build $(or $(ARGS),--draft)

docs: setup-dev ## Generate the pages of docs/ that have a source (tools/docs/pages.py)
	@$(BIN)/python tools/docs/pages.py

.PHONY: docs-site
docs-site: setup-dev ## The pages of docs/ as a site with search: build/site/index.html
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# Without pyspark: workers have Spark, and it gives its own to Python. Workers need the Python of $(PYTHON) at its path.
BUILD := build
ENVIRONMENT := $(BUILD)/environment
environment: machine setup ## An archive for workers without mqreplay: build/environment.tar.gz (docs/clusters.md)
	@rm -rf $(ENVIRONMENT) && mkdir -p $(BUILD)
	@awk '/^[^ #]/ { skip = /^pyspark==/ } !skip' requirements/runtime.txt >$(BUILD)/environment.txt
	@$(PIP) wheel --no-deps --no-build-isolation --wheel-dir $(BUILD) .
	@$(PYTHON) -m venv --without-pip $(ENVIRONMENT)
	@$(PIP) --python $(ENVIRONMENT)/bin/python install --require-hashes --no-deps -r $(BUILD)/environment.txt
	@$(PIP) --python $(ENVIRONMENT)/bin/python install --no-deps $(BUILD)/mqreplay-*.whl
	@tar --create --gzip --file $(ENVIRONMENT).tar.gz --directory $(ENVIRONMENT) .

clean: ## Remove what was built and the demo's tables, but not .venv
	@rm -rf build dist warehouse/demo spark-warehouse .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache lib/*.egg-info
	@find lib tests tools jobs -name __pycache__ -prune -exec rm -rf {} +
