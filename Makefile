# Everything runs in local virtual environments that these targets create.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := --quiet --disable-pip-version-check --no-input
DOCS_VENV := .venv-docs
DOCS_READY := $(DOCS_VENV)/.ready

PEERS := .venv-peers
PEERS_READY := $(PEERS)/.ready
NODE_READY := tests/typescript/node_modules/.package-lock.json
SERVERS := .venv-servers
SERVERS_READY := $(SERVERS)/.ready
CLIENTS := .venv-clients
CLIENTS_READY := $(CLIENTS)/.ready
OFFICIAL_READY := tests/official/node_modules/.package-lock.json

.PHONY: help demo test check lint bench bench-smoke docs package lock clean

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: $(READY)  ## Show what Pegboard does, in one screen
	@$(BIN)/pegboard demo

# Tests and benchmarks start many processes, which start twice as fast with cached byte code. The files of
# tests are divided among as many processes as there are cores; the tests of one file stay together.
test: $(READY) $(NODE_READY) $(OFFICIAL_READY) $(SERVERS_READY) $(CLIENTS_READY)  ## Run all tests, except those whose software is missing here
	@PYTHONDONTWRITEBYTECODE= PEGBOARD_PYTHON_SERVERS="$(CURDIR)/$(SERVERS)/bin" $(BIN)/python -m pytest -n auto --dist loadfile

check: lint test  ## Run every check and all tests

lint: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright
	@$(BIN)/lint-imports

bench: $(READY) $(PEERS_READY)  ## Measure Pegboard and its peers, and write BENCHMARKS.md
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m benchmarks $(BENCH)

bench-smoke: $(READY)  ## Check the most important ratios, in under a minute
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m benchmarks.smoke

docs: $(DOCS_READY)  ## Build the documentation into site/
	@$(DOCS_VENV)/bin/zensical build --clean --strict

package: $(READY)  ## Build wheel, sdist and bundle into dist/, and test what was built
	@$(BIN)/python scripts/package.py

lock: $(READY)  ## Update the locked versions of the dependencies
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-strip-extras --group dev --extra all \
		--python-version 3.11 --exclude-newer "$$(date -u -d '7 days ago' +%Y-%m-%dT00:00:00Z)" \
		pyproject.toml -o requirements.lock
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-strip-extras --group docs \
		--python-version 3.11 --exclude-newer "$$(date -u -d '7 days ago' +%Y-%m-%dT00:00:00Z)" \
		-o requirements-docs.lock
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-strip-extras \
		--python-version 3.11 --exclude-newer "$$(date -u -d '7 days ago' +%Y-%m-%dT00:00:00Z)" \
		examples/requirements-*.txt -o tests/examples/clients.lock

clean:  ## Remove everything that was built
	@rm -rf $(VENV) $(SERVERS) $(CLIENTS) $(DOCS_VENV) $(PEERS) dist build site .pytest_cache .ruff_cache .hypothesis tests/*/node_modules

$(READY): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Pegboard needs Python 3.11 or later; try make PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV) ..."
	@$(BIN)/python -m pip install $(PIP) --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install $(PIP) --no-deps --no-build-isolation -e .
	@touch $@

# A separate environment, so that the site generator does not constrain the versions used in tests.
$(DOCS_READY): requirements-docs.lock
	@$(PYTHON) -m venv $(DOCS_VENV)
	@$(DOCS_VENV)/bin/python -m pip install $(PIP) --require-hashes -r requirements-docs.lock
	@touch $@

# The peers have their own environment, because nothing of ours depends on them. If one cannot be
# installed, the tables say that it is missing.
$(PEERS_READY): benchmarks/requirements-peers.txt
	@test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	@echo "Installing the peers into $(PEERS) ..."
	@if $(PEERS)/bin/python -m pip install $(PIP) -r $<; then touch $@; else \
		echo "Not all peers could be installed; measuring without them."; fi

# Third-party servers, which need a different version of the SDK.
$(SERVERS_READY): tests/e2e/servers.lock
	@test -x $(SERVERS)/bin/python || $(PYTHON) -m venv $(SERVERS)
	@echo "Installing other people's servers into $(SERVERS) ..."
	@$(SERVERS)/bin/python -m pip install $(PIP) --no-deps --require-hashes -r tests/e2e/servers.lock
	@touch $@

# The frameworks of the example clients, which also need a different version of the SDK. Installed by
# uv, because pip takes a minute for so many packages.
$(CLIENTS_READY): tests/examples/clients.lock $(READY)
	@test -x $(CLIENTS)/bin/python || $(PYTHON) -m venv --without-pip $(CLIENTS)
	@echo "Installing the frameworks of the example clients into $(CLIENTS) ..."
	@$(BIN)/uv pip install --quiet --python $(CLIENTS)/bin/python --no-deps --require-hashes -r $<
	@touch $@

# The TypeScript clients and the official conformance suite need npm. Without it, the other tests run.
$(NODE_READY) $(OFFICIAL_READY): tests/%/node_modules/.package-lock.json: tests/%/package.json tests/%/package-lock.json
	@if command -v npm >/dev/null 2>&1; then \
		echo "Installing the npm packages of tests/$* ..."; \
		cd tests/$* && npm ci --silent --no-audit --no-fund; \
	fi
