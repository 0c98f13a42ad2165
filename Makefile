# Two commands do all the set-up: `make reproduce` runs the main job, `make test` the tests.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# A file's tests share what they have made. The order of files is that of tests/conftest.py.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile \
  --no-loadscope-reorder

.PHONY: reproduce verify compare models test test-slow docs harnesses lint style types quick-tests clean
reproduce: .venv/core.stamp
	$(BIN)/wgp-gym reproduce

verify: .venv/core.stamp
	$(BIN)/wgp-gym verify

compare: .venv/rl.stamp
	$(BIN)/wgp-gym compare

models: .venv/rl.stamp
	$(BIN)/python -m scripts.train_models

# mypy has one process, and the tests one for each core: side by side, none waits for another.
test: style .venv/postgres.stamp
	$(MAKE) --no-print-directory --jobs=2 types quick-tests

quick-tests: .venv/postgres.stamp
	$(PYTEST)

# What takes over half a second; then all other tests with every index in a compiled loop checked.
test-slow: .venv/browser.stamp
	$(PYTEST) -m slow
	NUMBA_BOUNDSCHECK=1 $(PYTEST)

# The site, in site/. A warning, as of a link that leads nowhere, is an error.
docs: .venv/dev.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict

harnesses: .venv-harnesses/stamp
	.venv-harnesses/bin/python -m pytest -m "slow or not slow" tests/test_harness_examples.py tests/test_benchmark_cluster.py

lint: style types

style: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/dev.stamp
	$(BIN)/mypy

.venv/core.stamp: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) -e .
	touch $@

.venv/rl.stamp: .venv/core.stamp
	$(PIP) torch
	$(PIP) -e '.[rl]'
	touch $@

.venv/dev.stamp: .venv/rl.stamp
	$(PIP) -e '.[rl,tables,dask,live,postgres,docs,dev]'
	touch $@

# Live bandits are tested in a real PostgreSQL, which the tests start and stop themselves. The
# continuous integration gets one; elsewhere, those tests are skipped where there is none.
.venv/postgres.stamp: .venv/dev.stamp
	if [ "$$CI" = true ] && ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then \
	  { apt-get -qq update && apt-get -qq -y install postgresql >/dev/null; } || \
	  echo "There is no PostgreSQL: the tests of live bandits in it are skipped."; fi
	touch $@

# So are pages in a real browser.
.venv/browser.stamp: .venv/postgres.stamp
	if [ "$$CI" = true ] && ! command -v chromedriver >/dev/null; then \
	  { apt-get -qq update && apt-get -qq -y install chromium chromium-driver >/dev/null; } || \
	  echo "There is no Chromium: the tests of pages in a browser are skipped."; fi
	touch $@

# A place of its own: RLlib asks for an older gymnasium.
.venv-harnesses/stamp: pyproject.toml constraints.txt
	test -x .venv-harnesses/bin/python || $(PYTHON) -m venv .venv-harnesses
	$(PIP:$(BIN)%=.venv-harnesses/bin%) torch
	$(PIP:$(BIN)%=.venv-harnesses/bin%) -e '.[rl,tables,dask,dev,harnesses]'
	touch $@

clean:
	rm -rf .venv .venv-harnesses .mypy_cache .ruff_cache .pytest_cache results site
