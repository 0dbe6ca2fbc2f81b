# Every command sets up what it needs: a virtual environment with the pinned versions of what running
# needs, or also of what development needs. The first is a part of the second: one folder holds both.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CAN_RUN := $(VENV)/.ready-run
# Tests wait for processes more than they compute, so that four share two cores well. Each worker
# begins at another place, so that those that wait run beside those that compute.
WORKERS ?= 4
TESTS ?= tests
# Tests start hundreds of processes, each of which would compile the code again.
export PYTHONDONTWRITEBYTECODE :=
# Options of the fault bench, such as --only 3,55 or --seed 7.
FAULTS ?=
# The generated code of the example with pages.
TRACKERS := examples/export_users/frontend/src/lib/forge --app examples.export_users.app:app
COMPILE := $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-header -q
BENCHMARKS ?= benchmarks $(addprefix benchmarks.,live schedules dead_letters reprocess bulk \
	telemetry hostile testing_kit dashboard large_table)

.DEFAULT_GOAL := help
.PHONY: help run feeds firm images trackers test check django faults bench format docs dist lock clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(CAN_RUN) ## start PostgreSQL, run the example jobs before your eyes
	@$(BIN)/python examples/tour/run.py

feeds: $(CAN_RUN) ## run the feeds example: schedules, subscriptions, backoff, WebSub
	@$(BIN)/python -m examples.feeds

images: $(READY) ## run the images example: SQS, S3 and CloudFront as moto plays them
	@$(BIN)/python -m examples.images

firm: $(CAN_RUN) ## run the firm example: tenants, payload rules, error classes, dead letters
	@$(BIN)/python -m examples.firm

trackers: $(READY) ## run the pages of the export example, with Svelte and React
	@$(BIN)/python -m examples.export_users

test: $(READY) ## run every test
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow" $(TESTS)

check: $(READY) ## format, lint, types, import contracts, generated files
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -p no:cacheprovider tests/typing tests/clients/typescript/test_checks.py \
		tests/clients/dashboard/test_checks.py
	$(BIN)/lint-imports
	$(BIN)/python -m tools.generate --check
	$(BIN)/forge generate typescript $(TRACKERS) --check

django: $(READY) ## run the Django tests on 4.2, 5.2, 6.0 and 6.1, where Python 3.12 is installed
	$(BIN)/python -m tools.django_versions

faults: $(READY) ## every fault of the fault bench as a table, and the long chaos run
	@status=0; $(BIN)/python -m faultbench $(FAULTS) || status=1; \
		$(BIN)/python -m pytest -m slow tests/faults tests/faultbench tests/deploy || status=1; exit $$status

bench: $(READY) ## measure against the limit of raw SQL on this machine, and every other bound
	@status=0; for part in $(BENCHMARKS); do \
		echo "python -m $$part"; $(BIN)/python -m $$part || status=1; done; exit $$status

format: $(READY) ## format the code and write the generated files
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/python -m tools.generate
	$(BIN)/python -m tools.node npm run format
	$(BIN)/python -m tools.dashboard biome check --write .
	$(BIN)/forge generate typescript $(TRACKERS)

docs: $(READY) ## build the documentation site into site/; warnings are errors
	$(BIN)/python -m tools.docs_site

dist: $(READY) ## build the wheel and the sdist into dist/, check and install them
	$(BIN)/python -m tools.dist

lock: $(READY) ## choose the newest versions and pin them
	$(COMPILE) --all-extras pyproject.toml requirements/run.in requirements/dev.in -o requirements/dev.lock
	$(COMPILE) --extra embedded --extra server --constraints requirements/dev.lock --no-annotate \
		pyproject.toml requirements/run.in -o requirements/run.lock
	$(subst 3.11,3.12,$(COMPILE)) --extra embedded --extra server --extra django --no-annotate \
		pyproject.toml requirements/django.in -o requirements/django.lock

clean: ## remove what the other commands made
	rm -rf $(VENV) dist site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .faults \
		clients/typescript/node_modules clients/typescript/dist dashboard/node_modules

$(READY): requirements/dev.lock $(CAN_RUN)
	$(BIN)/python -m pip install -q --require-hashes -r requirements/dev.lock
	@touch $@

$(CAN_RUN): requirements/run.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Forge needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 …"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --require-hashes -r requirements/run.lock
	$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	@touch $@
