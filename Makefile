# make demo   install into .venv, track the bundled sample, say where the results are
# make test   install what the tests need, then all checks beside all tests
# make lint   the checks alone: style, format, types, import contracts
# make docs   the documentation site, in build/site; warnings are errors
# make screenshots  drive the real plugin and save pictures of it to docs/images
# make clean  remove everything that make made

VENV := .venv
BIN := $(VENV)/bin
# Modules are compiled when they are used; most of what is installed never is.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
PYTEST_ARGS ?= -n 3 --dist worksteal

# Solvers and arrays use one thread each: the tests run side by side.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
# Compiled modules are kept: many tests start a process of their own.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := demo
.PHONY: demo test pytest lint docs screenshots clean system

demo: system $(VENV)/.demo
	@$(BIN)/bridgetrack demo --out demo

# Checks and tests side by side: either leaves a core idle for a while.
test: system $(VENV)/.test
	@$(MAKE) --no-print-directory --jobs=2 pytest lint docs

pytest: $(VENV)/.test
	@$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: $(VENV)/.test
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

docs: $(VENV)/.test
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

screenshots: system $(VENV)/.test
	@if command -v xvfb-run >/dev/null; then \
	  xvfb-run -a -s "-screen 0 1400x900x24 +extension GLX" $(BIN)/python docs/make_screenshots.py; \
	else $(BIN)/python docs/make_screenshots.py; fi

system:
	@.ci/system-packages.sh

$(BIN)/python:
	@.ci/venv.sh $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	@$(PIP) --editable ".[evaluate]"
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	@$(PIP) --editable ".[test,all]"
	@touch $@

clean:
	rm -rf $(VENV) build dist demo .pytest_cache .mypy_cache .ruff_cache .hypothesis \
	  .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
