# Every target starts from a bare checkout: Python 3.11 or newer, and make, are enough.

PYTHON ?= $(shell for candidate in python3.11 python3; do \
	$$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$candidate && break; done)
BIN := .venv/bin
READY := .venv/.ready
BENCH_READY := .venv/.bench-ready
DOCS_READY := .venv/.docs-ready

# Two workers share two cores, so each keeps its linear algebra to one thread. Each begins with one
# half of the files, so that what a file fits for all of its tests is fitted once; then they share.
PYTEST := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

# In the first folder all tests need the packages of benchmarks, in these files some do, which
# skip without them.
BENCH_TESTS := tests_bench tests/benchmarks/test_maps.py \
	tests/experiments/baselines/test_celerite.py tests/experiments/baselines/test_trees.py

.DEFAULT_GOAL := help
.PHONY: help demo test test-bench lint check bench reproduce docs format clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY)  ## fit RWF and RFF to a step function; print a table, draw a figure
	@$(BIN)/rwf demo

test: $(READY)  ## run the tests
	@$(PYTEST)

test-bench: $(BENCH_READY)  ## run the tests of what only benchmarks compare with; installs torch
	@$(PYTEST) $(BENCH_TESTS)

lint: $(READY)  ## format, lint and types, without the tests
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

check: lint  ## format, lint, types, tests and their coverage: what a change must pass
	@$(PYTEST) --cov

bench: $(BENCH_READY)  ## measure speed and memory, and compare with other libraries; installs torch
	@$(BIN)/python -m benchmarks latency --growth
	@$(BIN)/python -m benchmarks profile
	@$(BIN)/python -m benchmarks dense
	@$(BIN)/python -m benchmarks large --rows 1000000
	@$(BIN)/python -m experiments peers

reproduce: $(BENCH_READY)  ## run the paper's experiments, two hours at a time, and build their pages
	@$(BIN)/python -m experiments reproduce $(FLAGS)

docs: $(DOCS_READY)  ## build the documentation into site/; a warning is an error
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

format: $(READY)  ## rewrite the sources in the house format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

clean:  ## remove the environment and everything generated
	@rm -rf .venv build dist site rwf-demo htmlcov .coverage .hypothesis
	@rm -rf .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml requirements/dev.txt
	@test -n "$(PYTHON)" || { echo "Found no Python 3.11 or newer." \
		"Install one, or name it: make PYTHON=/path/to/python" >&2; exit 1; }
	@echo "Setting up .venv with $(PYTHON) (once; a few minutes with a slow network)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--requirement requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--no-deps --no-build-isolation --editable .
	@touch $@

$(BENCH_READY): $(READY) requirements/bench.txt
	@echo "Adding torch and its kin to .venv (once; some hundred megabytes)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--requirement requirements/bench.txt
	@touch $@

$(DOCS_READY): $(READY) requirements/docs.txt
	@echo "Adding MkDocs and its kin to .venv (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--requirement requirements/docs.txt
	@touch $@
