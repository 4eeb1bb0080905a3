# Needs nothing but Python >= 3.11 and make; everything else goes into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOWEST := .venv-lowest
# The order is random, and pytest prints its seed; -rs says why tests are skipped.
PYTEST := --numprocesses=2 -rs $(if $(SEED),--randomly-seed=$(SEED))

# What `make coverage` runs, and measures: the mathematics, whose tests are fast and run in one process. To measure all tests would take a tenth to a third of their time more.
COVERED := tests/core tests/solvers tests/states tests/selection
MEASURED := --cov=plstream.pls --cov=plstream.solvers --cov=plstream.states --cov=plstream.selection

.PHONY: help run example test test-slow test-lowest coverage lint audit package fuzz kill bench docs clean
help:
	@echo "make run          run the experiments of the CIPLS paper again: tables, figures and a page in reproduced/"
	@echo "make example      fit a file larger than the memory allowed, and see that the result is exact"
	@echo "make test         run all tests but the slow ones, in random order (SEED=N repeats an order)"
	@echo "make test-slow    run the slow ones"
	@echo "make test-lowest  run the tests with the lowest supported releases (Python 3.11 or 3.12)"
	@echo "make coverage     run the tests of the mathematics, and list the lines that none of them ran"
	@echo "make lint         check style and types"
	@echo "make audit        look up the installed packages in the database of known vulnerabilities"
	@echo "make package      build the wheel and the source distribution in dist/, and try the wheel without extras"
	@echo "make fuzz         read 20,000 model files, 20,000 data files and 3,000 checkpoints with random changes, some of counts and sizes that still agree, and try new random examples"
	@echo "make kill         kill 400 fits at random moments, and see that they end with the same model"
	@echo "make bench        time, memory and accuracy beside scikit-learn, ikpls and NumPy"
	@echo "make docs         build the documentation"

%/pip:
	$(PYTHON) -c 'import sys; sys.exit("plstream needs Python 3.11 or later" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $*
	$*/bin/python -m pip install --quiet --upgrade pip
	@touch $@

$(VENV)/base: $(VENV)/pip pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/dev: $(VENV)/base
	$(BIN)/python -m pip install --quiet --editable '.[all]' --group dev
	@touch $@

$(LOWEST)/ready: $(LOWEST)/pip pyproject.toml .ci/lowest.txt
	$(LOWEST)/bin/python -m pip install --quiet --constraint .ci/lowest.txt --editable . pytest pytest-xdist pytest-randomly hypothesis
	@touch $@

$(VENV)/run: $(VENV)/base
	$(BIN)/python -m pip install --quiet --editable '.[cli,plot]'
	@touch $@

run: $(VENV)/run
	$(BIN)/plstream reproduce --folds 5 --output reproduced
	@echo "Open reproduced/report.html in a browser."

example: $(VENV)/base
	$(BIN)/python examples/out_of_core.py

test: $(VENV)/dev
	$(BIN)/python -m pytest $(PYTEST) -m "not slow"

test-slow: $(VENV)/dev
	$(BIN)/python -m pytest $(PYTEST) -m slow

test-lowest: $(LOWEST)/ready
	$(LOWEST)/bin/python -m pytest $(PYTEST) -m "not slow"

coverage: $(VENV)/dev
	$(BIN)/python -m pytest $(PYTEST) -m "not slow" $(MEASURED) --cov-report=term-missing:skip-covered --cov-fail-under=80 $(COVERED)

lint: $(VENV)/dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

audit: $(VENV)/dev
	$(BIN)/python .ci/audit.py

package: $(VENV)/dev
	$(BIN)/python .ci/package.py

fuzz: $(VENV)/dev
	$(BIN)/python -m tests.files.fuzz 20000 $(or $(SEED),0)
	$(BIN)/python -m tests.files.fuzz_checkpoints 3000 $(or $(SEED),0)
	$(BIN)/python -m tests.data.fuzz 20000 $(or $(SEED),0)
	$(BIN)/python -m pytest --numprocesses=2 -m hypothesis --hypothesis-profile=new

kill: $(VENV)/dev
	$(BIN)/python -m tests.files.kills 50 $(or $(SEED),0)

bench: $(VENV)/dev
	$(BIN)/python benchmarks/exact.py
	$(BIN)/python benchmarks/everyday.py
	$(BIN)/python benchmarks/sketch_speed.py
	$(BIN)/python benchmarks/sketch_accuracy.py
	$(BIN)/python benchmarks/few_reads.py --tables 1
	$(BIN)/python benchmarks/online_speed.py
	$(BIN)/python benchmarks/online_accuracy.py
	$(BIN)/python benchmarks/selection.py
	$(BIN)/python benchmarks/classes.py
	$(BIN)/python benchmarks/sources.py
	$(BIN)/python benchmarks/cross_validation.py
	$(BIN)/python benchmarks/scaling.py
	$(BIN)/python benchmarks/dask_memory.py

docs: $(VENV)/dev
	$(BIN)/python -m pip install --quiet --group docs
	$(BIN)/sphinx-build -W -q docs build/docs
	@echo "The pages are in build/docs/index.html"

clean:
	rm -rf $(VENV) $(LOWEST) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
