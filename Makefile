# Two commands do all the set-up: `make reproduce` runs the main job, `make test` the tests.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: reproduce verify test lint clean
reproduce: .venv/core.stamp
	$(BIN)/wgp-gym reproduce

verify: .venv/core.stamp
	$(BIN)/wgp-gym verify

test: lint
	$(BIN)/python -m pytest

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.venv/core.stamp: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) -e .
	touch $@

.venv/dev.stamp: .venv/core.stamp
	$(PIP) torch
	$(PIP) -e '.[rl,dev]'
	touch $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache results
