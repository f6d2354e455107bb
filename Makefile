# The commands a person types.  Each target is a thin wrapper over `python -m tools`;
# a line `target: ## text` appears in `make help`, in the order of this file.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
TOOLS := $(RUN) -m tools
PYTEST_ARGS ?= -q -n 2 --dist loadgroup
TESTS ?=

.DEFAULT_GOAL := help
.PHONY: $(shell sed -n 's/^\([a-z][a-z-]*\):.*/\1/p' Makefile)

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

setup: ## install what is missing; does nothing when all is there
	@$(PYTHON) -m tools.setup

demo: setup ## run the sensor node, break everything around it, show what arrived
	@$(TOOLS) demo $(DEMO_ARGS)

test: setup ## run all tests, or those of TESTS=host_tests/folder
	@$(RUN) -m pytest $(PYTEST_ARGS) $(TESTS)

lint: setup ## check style, spelling, types, and that boards can compile and run it
	@$(TOOLS) lint all

powercut: setup ## cut the journal's power at all pairs of flash operations; ARGS=--help
	@$(TOOLS) powercut $(ARGS)

bench: setup ## measure speed and size beside budgets; ARGS=heap for one measure
	@$(TOOLS) bench $(ARGS)

fuzz: setup ## hunt for five minutes (or SECONDS=…) for bytes that upset the client
	@$(TOOLS) fuzz run --seconds $(or $(SECONDS),300)

conformance: setup ## write docs/conformance.md: which test shows which statement
	@$(TOOLS) conformance

clean: ## remove everything that was built; keeps .venv and .tools
	@rm -rf build dist .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
