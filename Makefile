PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: install demo test test-slow lint format bench docs clean

install: $(STAMP)

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $(STAMP)

demo: install
	$(BIN)/equistein run dw4 --preset quick

# Tests compile more than they compute: less optimization takes a third off.
test: export XLA_FLAGS ?= --xla_backend_optimization_level=0
test test-slow: export EQUISTEIN_DATA ?= $(abspath $(wildcard ../shared/data))
test: install
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow and not gpu" -rs

test-slow: install
	$(BIN)/python -m pytest -q -m slow -rs

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
