# Everything on a machine that has Python (3.11 or newer) with pip, and make.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
export PYTHONDONTWRITEBYTECODE :=  # what is compiled once need not be compiled by every process

.PHONY: demo test coverage quick docs lint house layout schema wheel lowest clean bench-smoke bench-paper

demo: $(VENV)/.installed          ## the whole job on a built-in synthetic city
	$(BIN)/cbdp demo

# a process for each core: threads of linear algebra would only wait for each other
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal
# tests that fork have processes to themselves: a fork copies the locks and sockets that other tests' threads hold
FORKS  := -m forks $(shell grep -rl --include='*.py' 'mark[.]forks' tests)

test: $(VENV)/.installed-test     ## lint, types, doctests, all tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PYTEST) $(FORKS)
	$(PYTEST) -m 'not forks'

coverage: $(VENV)/.installed-test ## all tests, and which lines they run
	$(PYTEST) $(FORKS) --cov --cov-report=
	$(PYTEST) -m 'not forks' --cov --cov-append --cov-report=term

quick: $(VENV)/.installed-test    ## all but the slow tests
	$(PYTEST) -q -m 'not slow and not forks'

docs: $(VENV)/.installed-test     ## the documentation, strictly: build/site/index.html opens offline
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

lint: $(VENV)/.installed-test     ## mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

house:                            ## modules and lines in each folder, the longest modules and functions, names used twice
	@PYTHONPATH=tests $(PYTHON) -m house.measure

layout:                           ## write the layout on the page of the architecture, from the folders
	PYTHONPATH=tests $(PYTHON) -m house.tree

schema:                           ## write the JSON Schemas of configuration and manifest anew, from their types
	PYTHONPATH=tests $(PYTHON) -m house.schemas

wheel: $(VENV)/.installed-test    ## build the package, install it in a fresh environment, and use it there
	rm -rf build/wheel
	$(BIN)/python -m hatchling build -d build/wheel/dist
	PYTHONPATH=tests $(BIN)/python -m house.wheel build/wheel/dist
	$(BIN)/python -m twine check --strict build/wheel/dist/*
	$(PYTHON) -m venv build/wheel/venv
	build/wheel/venv/bin/pip install --quiet --upgrade pip
	build/wheel/venv/bin/pip install --quiet build/wheel/dist/*.whl
	mkdir build/wheel/elsewhere
	cd build/wheel/elsewhere && ../venv/bin/cbdp demo --quick

lowest:                           ## the suite with the oldest supported versions
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/pip install --quiet --upgrade pip
	.venv-lowest/bin/pip install --quiet -e '.[test]' -c requirements/lowest.txt
	.venv-lowest/bin/python -m pytest -q -W default  # old packages warn about newer ones

bench-smoke: $(VENV)/.installed-test  ## the paper's page, small, in about a minute
	$(BIN)/python -m benchmarks paper --smoke --out build/paper

bench-paper: $(VENV)/.installed-test  ## docs/results/benchmarks.md and its figures, 50 runs: a quarter of an hour
	$(BIN)/python -m benchmarks paper --runs 50 --out docs/results

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
