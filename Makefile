# Everything on a machine that has Python (3.11 or newer) with pip, and make.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: demo test lint lowest clean bench-smoke bench-paper

demo: $(VENV)/.installed          ## the whole job on a built-in synthetic city
	$(BIN)/cbdp demo

test: $(VENV)/.installed-test     ## lint, types, doctests, tests with coverage
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n auto --dist worksteal --cov --cov-report=term

lint: $(VENV)/.installed-test     ## mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lowest:                           ## the suite with the oldest supported versions
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/pip install --quiet --upgrade pip
	.venv-lowest/bin/pip install --quiet -e '.[test]' -c requirements/lowest.txt
	.venv-lowest/bin/python -m pytest -q -W default  # old packages warn about newer ones

bench-smoke: $(VENV)/.installed-test  ## the paper's page, small, in about a minute
	$(BIN)/python -m benchmarks paper --smoke --out build/paper

bench-paper: $(VENV)/.installed-test  ## docs/benchmarks.md and its figures, 50 runs: a quarter of an hour
	$(BIN)/python -m benchmarks paper --runs 50 --out docs

bench-%: $(VENV)/.installed-test  ## one benchmark: bench-solvers, bench-scaling, bench-noise, …
	$(BIN)/python -m benchmarks $*

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -e .
	touch $@

$(VENV)/.installed-test: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -e '.[test]'
	touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) .venv-lowest .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage dist build
