# Everything on a fresh machine with Python 3.11 to 3.13: `make run`, `make test`.
BIN := .venv/bin
SUITABLE := import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c '$(SUITABLE)' 2>/dev/null && echo $$p && break; done)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: setup run test check bench mutants chaos

setup: .venv/.dev
	$(BIN)/python manage.py compilemessages
	$(BIN)/python manage.py collectstatic --noinput --verbosity 0

run: .venv/.run
	$(BIN)/python manage.py serve --migrate $(ARGS)

test: .venv/.dev
	$(BIN)/pytest $(ARGS)

check: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy gateway_app hermes_site sessions_app
	$(BIN)/lint-imports
	$(BIN)/python manage.py makemigrations --check --dry-run

bench: .venv/.dev
	$(BIN)/python -m bench $(ARGS)

chaos: .venv/.dev
	$(BIN)/python -m tests.chaos $(ARGS)

mutants: .venv/.dev
	$(BIN)/python -m tests.mutants $(ARGS)

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11, 3.12 or 3.13 is needed; set PYTHON to it." >&2; exit 1; }
	$(PYTHON) -m venv .venv

.venv/.run: .venv/bin/python requirements.txt requirements-local.txt
	$(PIP) -r requirements.txt
	$(PIP) --no-deps -r requirements-local.txt
	@touch $@

.venv/.dev: .venv/.run requirements-dev.txt
	$(PIP) -r requirements-dev.txt
	@touch $@
