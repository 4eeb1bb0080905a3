# Requires only Python 3.11 or later and make; everything else is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOWEST := .venv-lowest
# Tests run in random order, whose seed pytest prints; -rs shows why tests are skipped.
PYTEST := --numprocesses=2 -rs $(if $(SEED),--randomly-seed=$(SEED))

# Tests that `make coverage` runs, and packages it measures: the mathematics, whose tests are fast. Measuring all tests would slow them down by a tenth to a third.
COVERED := tests/core tests/solvers tests/states tests/selection
MEASURED := --cov=plstream.pls --cov=plstream.solvers --cov=plstream.states --cov=plstream.selection

.PHONY: help run example test test-slow test-lowest coverage lint audit package fuzz kill bench docs clean
help:
	@echo "make run          reproduce the experiments of the CIPLS paper; writes tables, figures and a report to reproduced/"
	@echo "make example      fit a file larger than the memory limit, and compare the result with an exact one"
	@echo "make test         run all tests except slow ones, in random order (SEED=N repeats an order)"
	@echo "make test-slow    run the slow tests"
	@echo "make test-lowest  run the tests with the lowest supported releases (Python 3.11 or 3.12)"
	@echo "make coverage     run the tests of the mathematics, and list the lines they do not cover"
	@echo "make lint         check style and types"
	@echo "make audit        check the installed packages for known vulnerabilities"
	@echo "make package      build the wheel and the source distribution in dist/, and test the wheel without extras"
	@echo "make fuzz         read model files, data files and checkpoints with random damage, and test new random examples"
	@echo "make kill         kill 400 fits at random moments, and check that they resume to the same model"
	@echo "make bench        measure time, memory and accuracy, compared with scikit-learn, ikpls and NumPy"
	@echo "make docs         build the documentation"

%/pip:
	$(PYTHON) -c 'import sys; sys.exit("plstream requires Python 3.11 or later" if sys.version_info < (3, 11) else 0)'
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
	@echo "Open build/docs/index.html in a browser."

clean:
	rm -rf $(VENV) $(LOWEST) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
