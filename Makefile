# Two commands a newcomer needs: `make run` (or `make run DIR=~/notes`) and `make test`.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# A plain `torch` can resolve to a CUDA build of several gigabytes. This release is installed first; set TORCH to
# another requirement (or to the pip arguments that name a CPU wheel index) to choose yourself.
TORCH ?= torch==2.13.0
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
SOURCES := chunkers store daemon tests benchmarks

.PHONY: help run test test-fast lint types imports format config clean

help:
	@echo "make run              try ragd on the sample folder that comes with it"
	@echo "make run DIR=~/notes  index that folder and keep it true"
	@echo "make test             set up and run every check and test"
	@echo "make test-fast        only the fast tests"
	@echo "make format           format the code;  make config: write config.example.toml anew"

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "ragd needs Python 3.11 or newer; this is %s. Name another: make PYTHON=python3.12 ..." % sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.torch: $(VENV)/.python
	@echo "Installing PyTorch (the largest part of the set-up) ..."
	$(PIP) $(TORCH)
	@touch $@

$(VENV)/.ragd: $(VENV)/.torch pyproject.toml
	@echo "Installing ragd and its libraries ..."
	$(PIP) --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.ragd pyproject.toml
	$(PIP) --editable '.[dev]'
	@touch $@

run: $(VENV)/.ragd
	@$(BIN)/ragd run $(if $(DIR),"$(DIR)",--sample)

test: $(VENV)/.dev lint types imports
	$(BIN)/python -m pytest

test-fast: $(VENV)/.dev
	$(BIN)/python -m pytest -m 'not model and not chroma and not process'

lint: $(VENV)/.dev
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)

# Type checkers do not follow an editable install whose folders are mapped: give them the tree it stands for.
build/tree/ragd:
	@mkdir -p $@
	@ln -sfn ../../../chunkers ../../../store ../../../daemon $@/

types: $(VENV)/.dev build/tree/ragd
	cd build/tree && MYPYPATH=. "$(abspath $(BIN))/mypy" --config-file ../../pyproject.toml --cache-dir ../../.mypy_cache \
		--namespace-packages --explicit-package-bases -p ragd.chunkers -p ragd.store -p ragd.daemon

imports: $(VENV)/.dev
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

config: $(VENV)/.ragd
	$(BIN)/ragd config example > config.example.toml

clean:
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info
