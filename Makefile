# Everything a newcomer needs: `make demo` and `make test` set themselves up on a machine with only python3 >= 3.11.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export MPLCONFIGDIR ?= $(CURDIR)/.cache/matplotlib
export NUMBA_CACHE_DIR ?= $(CURDIR)/.cache/numba
UV := $(shell command -v uv 2>/dev/null)

.PHONY: install demo test check test-statistical bench lock clean

install: $(STAMP)

# The lock file serves uv and plain pip alike; the stamp makes the second call instant.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Keyhole needs Python 3.11 or later, found " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
ifneq ($(UV),)
	$(UV) venv --quiet --clear --python "$$(command -v $(PYTHON))" $(VENV)
	$(UV) pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r requirements.lock
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
else
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
endif
	@touch $@

demo: install
	$(BIN)/keyhole demo

# A file's tests stay together: two processes that need the same compiled loops would each compile them.
test: install
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: install
	$(BIN)/ruff check src tests scripts benchmarks
	$(BIN)/ruff format --check src tests scripts benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports

test-statistical: install
	$(BIN)/python -m pytest -n 2 -m statistical

bench: install
	for question in benchmarks/*.py; do $(BIN)/python $$question || exit 1; done

# Re-resolve the lock file (needs uv); hashes pin every file, markers serve every Python from 3.11 on.
lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --extra dev -o requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) .cache build dist
