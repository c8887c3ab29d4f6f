PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LINT_STAMP := $(VENV)/.lint-installed

.PHONY: install demo test test-slow test-gpu test-matrix coverage release-check faults fuzz mutants audit lint format bench docs clean

# Python compiles what is installed on all cores, pip on one only.
PIP = --quiet --disable-pip-version-check --no-compile

install: $(STAMP)

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(PIP) --editable ".[dev]"
	$(BIN)/python -m compileall -q -j 0 $(VENV)/lib > /dev/null 2>&1 || true
	touch $(STAMP)

# What only the type checker needs; the quick tests skip what needs ASE.
$(LINT_STAMP): $(STAMP)
	$(BIN)/python -m pip install $(PIP) --editable ".[lint]"
	touch $(LINT_STAMP)

demo: install
	$(BIN)/python -m experiments dw4 --preset quick

# Tests compile more than they compute: they optimize less, but for statistics, and share
# what takes long to compile. To write down the rest takes as long as to compile it.
FLAGS = $$($(BIN)/python tests/xla_flags.py)
PYTEST = $(BIN)/python -m pytest -q -n 2 --dist worksteal -rs
# Tests run as users do, who see arguments checked at the public boundary alone. Coverage
# checks whatever has an annotation, too: it costs a seventh of the time.
TYPES = --jaxtyping-packages=equistein,beartype.beartype
QUICKLY = XLA_FLAGS="$${XLA_FLAGS-$(FLAGS)}" $(PYTEST)
test test-slow test-matrix coverage mutants: export EQUISTEIN_DATA ?= $(abspath $(wildcard ../shared/data))
test test-slow coverage mutants: export JAX_COMPILATION_CACHE_DIR ?= $(abspath $(VENV))/compiled
test test-slow coverage mutants: export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS ?= 0.3
# What Python compiles is shared too: 7 s of the 18 of a process that imports all.
demo bench test test-slow coverage mutants: export PYTHONDONTWRITEBYTECODE =
test: install
	$(QUICKLY) -m "not slow and not gpu"

test-slow: install
	$(BIN)/python -m pip install $(PIP) --editable ".[ase,pymc]"
	$(QUICKLY) -m "slow and not heavy"
	$(PYTEST) -m heavy

# The branches that the quick tests take, apart from plotting and texts; with
# MARKS="not gpu" those of all tests. What runs in other processes is not seen.
MARKS ?= not slow and not gpu
coverage: install
	$(BIN)/python -m pip install $(PIP) "pytest-cov>=6"
	$(QUICKLY) -m "$(MARKS)" $(TYPES) --cov --cov-report=term:skip-covered --cov-report=html

# Where JAX finds a GPU; elsewhere all of them are skipped.
test-gpu: install
	$(BIN)/python -m pytest -q -rs -m gpu

lint: $(LINT_STAMP)
	$(BIN)/ruff format --check src experiments tests benchmarks
	$(BIN)/ruff check src experiments tests benchmarks
	$(BIN)/pyright

format: install
	$(BIN)/ruff format src experiments tests benchmarks
	$(BIN)/ruff check --fix src experiments tests benchmarks

bench: install
	$(BIN)/python -m pip install --quiet --editable ".[bench]"
	$(BIN)/python -m benchmarks

docs: install
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# What is uploaded, as a user installs it: by itself, and with each extra alone.
release-check: install
	$(BIN)/python -m pip install --quiet build
	rm -rf dist && $(BIN)/python -m build --outdir dist > /dev/null
	$(BIN)/python tests/release_check.py dist

# Commands that are disturbed, and go on; ARGS="--num 2" is shorter. What is in
# faults.jsonl is not repeated.
faults: install
	$(BIN)/python tests/faults.py $(ARGS)

# Malformed files for every reader; ARGS="--number 300" is shorter.
fuzz: install
	$(BIN)/python tests/fuzz.py $(ARGS)

# Changes of the code that tests must notice; ARGS="--num 20" is shorter.
mutants: install
	$(BIN)/python -m pip install $(PIP) "cosmic-ray>=8.4" "pytest-cov>=6"
	XLA_FLAGS="$${XLA_FLAGS-$(FLAGS)}" $(BIN)/python tests/mutants.py $(ARGS)

# Known flaws of what is installed, where the package index tells of them.
audit: install
	$(BIN)/python -m pip install $(PIP) pip-audit
	$(BIN)/python -m pip_audit --local --skip-editable $(ARGS)

# The quick tests with each Python at hand, the newest packages and the oldest JAX.
test-matrix:
	$(PYTHON) tests/matrix.py $(ARGS)

clean:
	rm -rf $(VENV) build dist site .pytest_cache .ruff_cache
