# Every target starts from a bare checkout: Python 3.11 or newer, and make, are enough.

PYTHON ?= $(shell for candidate in python3.11 python3; do \
	$$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$candidate && break; done)
BIN := .venv/bin
READY := .venv/.ready

# Two workers share two cores, so each keeps its linear algebra to one thread.
PYTEST := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

.DEFAULT_GOAL := help
.PHONY: help demo test check bench format clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY)  ## fit RWF and RFF to a step function; print a table, draw a figure
	@$(BIN)/rwf demo

test: $(READY)  ## run the tests
	@$(PYTEST)

check: $(READY)  ## format, lint, types, tests: what a change must pass
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(PYTEST)

bench: $(READY)  ## measure speed and memory
	@$(BIN)/python -m benchmarks dense

format: $(READY)  ## rewrite the sources in the house format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

clean:  ## remove the environment and everything generated
	@rm -rf .venv build dist rwf-demo htmlcov .coverage .hypothesis
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
