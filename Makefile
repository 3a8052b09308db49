# make run    starts everything: database, queue, API and worker
# make test   runs every test; PYTHON=python3.12 chooses another interpreter
# make faults   kills, freezes, floods and fills everything while the service works, and proves that nothing is lost
# make soak     the same by chance, under mixed load for five minutes; SECONDS=60 is shorter
# make test-clients   runs the released clients (Python, JavaScript, CLI, MCP, plug-ins) against the service
# make lint   format, lint, types, import floors
# make demo   tells a conversation to the running service (or starts one) and asks about it
# make lock   resolves the locked requirements anew
# make lock-clients   resolves those of the released clients anew
# make clean  removes the virtual environments

PYTHON ?= python3
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
RUN := .venv
DEV := .venv-dev-$(VERSION)
PIP_FLAGS := --quiet --disable-pip-version-check --no-input

.PHONY: run test faults soak test-clients lint format types demo openapi lock lock-clients clean help
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# //p' Makefile

# A virtual environment is ready when its stamp is newer than the lock that it was made from. Half-made ones start anew.
define make_venv
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
		|| { echo "memoryd needs Python 3.11, 3.12 or 3.13; '$(PYTHON)' is '$(VERSION)'. Choose one: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@echo "Making $(1) from $(2) (once, about half a minute) ..."
	@rm -rf $(1)
	@$(PYTHON) -m venv $(1) || { echo "Python's venv module does not work here; on Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@$(1)/bin/pip install $(PIP_FLAGS) --require-hashes --no-deps -r $(2)
	@$(1)/bin/pip install $(PIP_FLAGS) --no-build-isolation --no-deps --editable .
	@touch $@
endef

$(RUN)/.ready: requirements.lock pyproject.toml
	$(call make_venv,$(RUN),requirements.lock)

$(DEV)/.ready: requirements-dev.lock pyproject.toml
	$(call make_venv,$(DEV),requirements-dev.lock)

run: $(RUN)/.ready
	@exec $(RUN)/bin/memoryd up --stop-with-parent

demo: $(RUN)/.ready
	@exec $(RUN)/bin/memoryd demo $(if $(FILE),--file "$(FILE)")

test: $(DEV)/.ready
	@$(DEV)/bin/python -m pytest $(ARGS)

# MEMORYD_SEED=N replays the choices of a run.
faults: $(DEV)/.ready
	@$(DEV)/bin/python -m pytest -m "long or not long" $(or $(ARGS),tests/faults)

SECONDS := 300
soak: $(DEV)/.ready
	@$(DEV)/bin/python -m tests.faults.soak --seconds $(SECONDS)

# Each released client has an environment of its own, remade only when its lock changes; none shares the project's.
CLIENTS := python2 python1 python0 cli mcp
NODE := $(shell command -v node 2>/dev/null)

.clients/%-$(VERSION)/.ready: tests/clients/locks/%.lock | $(DEV)/.ready
	@echo "Making $(@D) from $< (once) ..."
	@rm -rf $(@D)
	@$(PYTHON) -m venv --without-pip $(@D)
	@$(DEV)/bin/pip --python $(@D)/bin/python install $(PIP_FLAGS) --require-hashes --no-deps -r $<
	@touch $@

.clients/npm/.ready: $(addprefix tests/clients/npm/,package.json package-lock.json .npmrc)
	@echo "Making $(@D) from tests/clients/npm/package-lock.json (once) ..."
	@rm -rf $(@D) && mkdir -p $(@D) && cp $^ $(@D)
	@cd $(@D) && npm ci --silent
	@touch $@

test-clients: $(DEV)/.ready $(CLIENTS:%=.clients/%-$(VERSION)/.ready) $(if $(NODE),.clients/npm/.ready)
	@$(DEV)/bin/python -m pytest -c tests/clients/pytest.ini $(or $(ARGS),tests/clients)
ifeq ($(NODE),)
	@echo "NOT TESTED: the JavaScript clients, for there is no node on this machine. Install Node.js 20 or newer."
endif

lint: $(DEV)/.ready
	@$(DEV)/bin/ruff format --check .
	@$(DEV)/bin/ruff check .
	@$(DEV)/bin/mypy
	@$(DEV)/bin/lint-imports

format: $(DEV)/.ready
	@$(DEV)/bin/ruff format .
	@$(DEV)/bin/ruff check --fix .

openapi: $(DEV)/.ready
	@$(DEV)/bin/python -m app openapi > openapi.yaml.new && mv openapi.yaml.new openapi.yaml

# Universal: one file serves every supported Python. Hashes, and no address of an index.
lock:
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate pyproject.toml -o requirements.lock
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --extra dev -c requirements.lock pyproject.toml -o requirements-dev.lock

lock-clients:
	for name in $(CLIENTS); do uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate tests/clients/locks/$$name.in -o tests/clients/locks/$$name.lock; done
	cd tests/clients/npm && npm install --package-lock-only

clean:
	rm -rf .venv .venv-dev-* .clients build *.egg-info
