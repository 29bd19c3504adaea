# Every target makes a virtual environment first, in .venv, unless it is there.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
OUT ?= out
# An index of torch's CPU build (pytorch.org names it): for Linux the default one has GPU libraries of
# several GB.
TORCH_INDEX ?=
TESTS := $(VENV)/installed-test,examples

# Folders have the names of some.
.PHONY: help demo test test-slow fuzz test-tools test-oldest test-next coverage dist test-dist \
	lint bench-cost bench-tables bench-speed bench-gpu paper-panel bench-serving format docs clean

help:
	@echo "make demo    decide which payments to stop, and search alpha and depth:"
	@echo "             tables, and two figures in $(OUT)/"
	@echo "make test    lint, then run the tests of the package"
	@echo "make test-slow  run what takes longer: pages, scripts, clusters, several processes"
	@echo "make fuzz    try inputs, calls and kills at random, FUZZ=100 times as many as the tests"
	@echo "make test-tools   run the page on other tools: boosting, Optuna, MLflow, SHAP, FastAPI"
	@echo "make test-oldest  run the tests with the oldest supported releases"
	@echo "make paper-panel  repeat one panel of the paper's experiments in $(OUT)/;"
	@echo "             with WEIGHTS=FILE of SqueezeNet 1.1 one seed of the third experiment"
	@echo "make bench-gpu    time fits on a GPU, and on its CPU, in eight minutes"
	@echo "make test-next  run the tests with pre-releases of scikit-learn, skorch and torch"
	@echo "make format  apply ruff's formatter and fixes"
	@echo "make docs    build the documentation in docs/_build/html"
	@echo "make coverage   run all tests and write htmlcov/, line by line"
	@echo "make dist    build the sdist and the wheel in dist/, and check them"
	@echo "make test-dist  install the wheel and the sdist alone and try them"
	@echo "make clean   remove the virtual environment and what was built"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(if $(TORCH_INDEX),$@ -m pip install --quiet --no-deps --retries 1 \
		--constraint constraints.txt --index-url $(TORCH_INDEX) torch)

# One stamp per set of extras; an edit of the metadata or the pins installs anew.
$(VENV)/installed-%: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[$*]"
	touch $@

demo: $(VENV)/installed-plot
	$(BIN)/python examples/demo_payments.py --out $(OUT)
	$(BIN)/python examples/search_alpha_depth.py $(OUT)

test: lint
	$(BIN)/python -m pytest --numprocesses 2

test-slow: $(TESTS)
	$(BIN)/python -m pytest --numprocesses 2 -m slow

# Hours of it: FUZZ times as many inputs, calls, kills and fits as in the tests.
fuzz: $(TESTS)
	FUZZ=$(or $(FUZZ),100) $(BIN)/python -m pytest --numprocesses 2 tests/fuzz

# The page "With your tools", in an environment of its own. One thread for each of the libraries,
# which otherwise wait for each other on a busy machine.
test-tools:
	$(PYTHON) -m venv $(VENV)-tools
	$(VENV)-tools/bin/python -m pip install --quiet --constraint constraints.txt --editable ".[test,tools]"
	OMP_NUM_THREADS=1 $(VENV)-tools/bin/python -m pytest tests/tools

# Only on request: the oldest torch comes in one build, with several GB of GPU libraries.
test-oldest:
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet --constraint constraints-oldest.txt ".[test]"
	$(VENV)-oldest/bin/python -m pytest --numprocesses 2 -m ""

# Releases to come, beyond the bounds of pyproject.toml; may fail, but tells early.
test-next:
	$(PYTHON) -m venv $(VENV)-next
	$(VENV)-next/bin/python -m pip install --quiet --constraint constraints.txt ".[test]"
	$(VENV)-next/bin/python -m pip install --quiet --pre --upgrade scikit-learn skorch torch
	$(VENV)-next/bin/python -m pytest --numprocesses 2 -m ""

coverage: $(TESTS)
	$(BIN)/python -m pytest --numprocesses 2 -m "" --cov --cov-report=term --cov-report=html

# What a release publishes. `build` makes the wheel from the sdist, so that the sdist is complete.
dist:
	rm -rf build dist
	$(PYTHON) -m venv $(VENV)-dist
	$(VENV)-dist/bin/python -m pip install --quiet build twine
	$(VENV)-dist/bin/python -m build
	$(VENV)-dist/bin/python -m twine check --strict dist/*

# The wheel and the sdist in environments of their own, without extras and away from the checkout. Each takes
# several GB with torch's build for GPUs, so it goes afterwards.
test-dist: $(VENV)-wheel/tried $(VENV)-sdist/tried

.PHONY: $(VENV)-wheel/tried $(VENV)-sdist/tried
$(VENV)-wheel/tried: archive = $(wildcard dist/*.whl)
$(VENV)-sdist/tried: archive = $(wildcard dist/*.tar.gz)
$(VENV)-wheel/tried $(VENV)-sdist/tried:
	$(if $(archive),,$(error make dist comes first))
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --constraint constraints.txt $(archive)
	$(@D)/bin/python -I tests/try_wheel.py README.rst
	rm -rf $(@D)

lint: $(TESTS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest --quiet -m lint tests

bench-cost: $(VENV)/installed-bench
	$(BIN)/python -m benchmarks.cost.bench_cost

# TABLES names the folder of the four tables; benchmarks/README.rst describes them.
bench-tables: $(VENV)/installed-bench
	$(if $(TABLES),,$(error TABLES=FOLDER names the folder of the tables))
	$(BIN)/python -m benchmarks.cost.bench_tables --tables $(TABLES)

bench-speed: $(VENV)/installed-bench
	$(BIN)/python -m benchmarks.speed.bench_speed

# Needs a GPU, and torch's build for it; results go to benchmarks/results/gpu.json.
bench-gpu: $(VENV)/installed-bench $(VENV)/installed-test
	$(BIN)/python -m benchmarks.speed.bench_gpu

# One panel of docs/experiments.rst: MNIST, ReLU under SGD, or with WEIGHTS, a file of SqueezeNet's,
# one seed of the third experiment. DATA_HOME names the folder of MNIST, or of Caltech-101.
paper-panel: $(VENV)/installed-bench
ifdef WEIGHTS
	$(BIN)/python -m benchmarks.paper.fine_tuning --data-home $(or $(DATA_HOME),data) \
		--weights $(WEIGHTS) --learning-rates 1e-3 3e-3 --precision bf16 --seeds 0 --out $(OUT)
else
	$(BIN)/python -m benchmarks.paper.alpha_depth $(if $(DATA_HOME),--data-home $(DATA_HOME)) \
		--datasets mnist --width 128 --epochs 10 --depths 1 3 5 8 --alphas 0 0.2 0.5 1 \
		--seeds 0 --out $(OUT)
endif

bench-serving: $(VENV)/installed-bench
	$(BIN)/python -m benchmarks.speed.bench_serving

format: $(TESTS)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/installed-docs
	$(BIN)/sphinx-build -W -b html docs docs/_build/html

clean:
	rm -rf $(VENV) $(VENV)-tools $(VENV)-oldest $(VENV)-next $(VENV)-dist $(VENV)-wheel $(VENV)-sdist build dist htmlcov \
		docs/_build docs/gallery *.egg-info
