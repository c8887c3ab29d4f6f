PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: install demo test test-slow lint format bench docs clean

# Python compiles what is installed on all cores, pip on one only.
PIP = --quiet --disable-pip-version-check --no-compile

install: $(STAMP)

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(PIP) --editable ".[dev]"
	$(BIN)/python -m compileall -q -j 0 $(VENV)/lib > /dev/null 2>&1 || true
	touch $(STAMP)

demo: install
	$(BIN)/equistein run dw4 --preset quick

# Tests compile more than they compute: what two workers compile is shared, and
# optimized less, but for statistics.
FLAGS = $$($(BIN)/python tests/xla_flags.py)
PYTEST = $(BIN)/python -m pytest -q -n 2 --dist worksteal -rs
QUICKLY = XLA_FLAGS="$${XLA_FLAGS-$(FLAGS)}" $(PYTEST)
test test-slow: export EQUISTEIN_DATA ?= $(abspath $(wildcard ../shared/data))
test test-slow: export JAX_COMPILATION_CACHE_DIR ?= $(abspath $(VENV))/compiled
test test-slow: export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS ?= 0
test: install
	$(QUICKLY) -m "not slow and not gpu"

test-slow: install
	$(BIN)/python -m pip install $(PIP) --editable ".[pymc]"
	$(QUICKLY) -m slow --ignore=tests/statistics
	$(PYTEST) -m slow tests/statistics

lint: install
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/pyright

format: install
	$(BIN)/ruff format src tests benchmarks
	$(BIN)/ruff check --fix src tests benchmarks

bench: install
	$(BIN)/python -m pip install --quiet --editable ".[bench]"
	$(BIN)/python -m benchmarks

docs: install
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) build dist site .pytest_cache .ruff_cache
