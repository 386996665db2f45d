# What can be done with a checkout; `make` alone lists it.

SHELL := /bin/bash
VENV := .venv
RUN := $(VENV)/bin
PYTEST := $(RUN)/python -m pytest
# Workers that run tests at once: most of them wait for systemd most of the time.
WORKERS ?= 3
PREFIX ?= /usr/local
DESTDIR ?=

.PHONY: help
help: ## list the targets
	@sed -nE 's/^([a-z]+):.* ## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

# --- setting up -----------------------------------------------------------------------------------

.PHONY: dev
dev: $(VENV)/.installed $(VENV)/.hooks ## set up: .venv with the locked dependencies and the project, hooks

$(VENV)/.made: .ci/python
	.ci/python -m venv --clear $(VENV)
	touch $@

$(VENV)/.locked: requirements.txt requirements-dev.txt | $(VENV)/.made
	$(RUN)/python -m pip install --quiet --disable-pip-version-check --require-hashes \
		--requirement requirements-dev.txt
	touch $@

$(VENV)/.installed: pyproject.toml $(VENV)/.locked
	$(RUN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
		--no-build-isolation --editable .
	$(RUN)/python -m compileall -q sdqueue
	touch $@

$(VENV)/.hooks: .pre-commit-config.yaml $(VENV)/.locked
	.ci/hooks
	touch $@

.PHONY: lock
lock: $(VENV)/.locked ## write the lock files anew from pyproject.toml, with newer versions
	.ci/lock

.PHONY: packages
packages: ## install, or as non-root name, the Debian packages that the tests want
	.ci/packages

$(VENV)/.pystemd: requirements-pystemd.txt $(VENV)/.installed
	.ci/pystemd
	touch $@

# --- using it -------------------------------------------------------------------------------------

.PHONY: try
try: dev ## a real queue, brought up, watched and taken down again, in under a minute
	$(RUN)/python -m tests.tryout

# --- checking -------------------------------------------------------------------------------------

.PHONY: lint
lint: dev
	$(RUN)/ruff check
	$(RUN)/ruff format --check
	$(RUN)/mypy

.PHONY: check
check: lint ## seconds: ruff, mypy, our own units, and the tests that need nothing from outside
	$(RUN)/sdqueue lint-units --base debian-12 units/
	$(RUN)/sdqueue --user lint-units --base debian-12 units/
	$(PYTEST) -q -n $(WORKERS) tests/unit tests/cases

.PHONY: test
test: packages lint $(VENV)/.pystemd ## everything that can run here, within 15 minutes on two cores
	$(PYTEST) -q -n $(WORKERS) --dist loadgroup tests

.PHONY: booted
booted: dev ## only the tests that boot systemd 252, 257 and 262
	$(PYTEST) -q -n $(WORKERS) --dist loadgroup tests/booted

.PHONY: soak
soak: dev ## hours: the random parts at full length; what came out is kept in benchmarks/*.log
	WORKERS=$(WORKERS) .ci/soak

.PHONY: bench
bench: dev ## the figures: ratios against peers, printed
	set -e; for file in benchmarks/[a-z]*.py; do \
		$(RUN)/python -m "benchmarks.$$(basename "$$file" .py)"; done

.PHONY: man
man: ## check the manual's pages as mandoc and man see them
	mandoc -T lint -W warning man/*.[1-8]

# --- installing -----------------------------------------------------------------------------------

.PHONY: deb
deb: dev ## build the Debian package, dist/sdqueue_*_all.deb; needs no network
	.ci/deb/build dist

.PHONY: install
install: dev ## put program, units, generators and manual under DESTDIR and PREFIX
	.ci/install '$(DESTDIR)' '$(PREFIX)'
