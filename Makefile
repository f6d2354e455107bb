# The commands a person types.  Each target is a thin wrapper over `python -m tools`;
# a line `target: ## text` appears in `make help`, in the order of this file.  What only
# contributors need is `python -m host_tests`: see CONTRIBUTING.md.

$(if $(wildcard tools/setup),,$(error this Makefile runs in its own folder only: make -C FOLDER))

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
TOOLS := $(RUN) -m tools
# More processes than cores: many tests wait for a broker, a board or a clock.
PYTEST_ARGS ?= -q -n 4 --dist loadgroup
TESTS ?=
LAYER ?= all
CLIENT_TESTS := host_tests/client/dialogues host_tests/client/test_scripts.py \
	host_tests/client/test_on_micropython.py \
	host_tests/client/test_locked.py host_tests/client/test_session.py
BOARD_TESTS := host_tests/boards host_tests/firmware host_tests/virtual host_tests/journal

# $(call opt,NAME,name): --name "value" if NAME= was given.
opt = $(if $($(1)),--$(2) "$($(1))")
# $(call layer,NAME): install what the layer lacks.
layer = @$(PYTHON) -m tools.setup $(1)

.DEFAULT_GOAL := help
.PHONY: $(shell sed -n 's/^\([a-z][a-z-]*\):.*/\1/p' Makefile)

help:
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

demo: ## run the sensor node, break everything around it, show what arrived
	$(call layer,demo)
	@$(TOOLS) demo $(DEMO_ARGS)

build: ## compile library and firmware: BOARD= [DEBUG=1: names and lines stay]
	$(call layer,boards)
	@$(TOOLS) boards build $(call opt,BOARD,board) $(call opt,DEBUG,debug)

image: ## one flashable file: BOARD= FIRMWARE=file CONFIG=device.toml
	$(call layer,boards)
	@$(TOOLS) boards image $(call opt,BOARD,board) $(call opt,DEBUG,debug) $(call opt,FIRMWARE,firmware) $(call opt,CONFIG,config) $(call opt,OUT,out)

provision: ## images for a batch: BOARD= FIRMWARE= BATCH=devices.csv [CONFIG= OUT=]
	$(call layer,boards)
	@$(TOOLS) boards provision $(call opt,BOARD,board) $(call opt,DEBUG,debug) $(call opt,FIRMWARE,firmware) $(call opt,BATCH,batch) $(call opt,CONFIG,config) $(call opt,OUT,out)

flash: ## write an image to a board: BOARD= PORT= [IMAGE=] (RP2: [DRIVE=])
	$(call layer,boards)
	@$(TOOLS) boards flash $(call opt,BOARD,board) $(call opt,IMAGE,image) $(call opt,PORT,port) $(call opt,DRIVE,drive)

deploy: ## copy changed files to a board and check it: BOARD= PORT= [CONFIG=]
	$(call layer,boards)
	@$(TOOLS) boards deploy $(call opt,BOARD,board) $(call opt,DEBUG,debug) $(call opt,PORT,port) $(call opt,CONFIG,config)

monitor: ## show what a board prints: PORT=
	$(call layer,boards)
	@$(TOOLS) boards monitor $(call opt,PORT,port) $(ARGS)

watch: ## readings and health of a fleet as they come: SERVER= [ARGS=--json]
	$(call layer,boards)
	@$(TOOLS) boards watch $(call opt,SERVER,server) $(ARGS)

release: ## signed bundle for updates over the air: BOARD= KEY=file [BASE=]
	$(call layer,boards)
	@$(TOOLS) boards release $(call opt,BOARD,board) $(call opt,DEBUG,debug) $(call opt,KEY,key) $(call opt,BASE,base) $(call opt,OUT,out)

rollout: ## bring a bundle to many devices: BUNDLE= FLEET=devices.csv SERVER= KEY=file
	$(call layer,boards)
	@$(TOOLS) boards rollout $(call opt,BUNDLE,bundle) $(call opt,FLEET,fleet) $(call opt,SERVER,server) $(call opt,KEY,key) $(ARGS)

journal: ## read a board's journal back and show it: PORT=
	$(call layer,boards)
	@$(TOOLS) boards journal $(call opt,PORT,port) $(call opt,OUT,out)

audit: ## judge recorded traffic of a fleet: CAPTURES=folder OUT=folder
	$(call layer,fleet)
	@$(TOOLS) fleet audit $(if $(CAPTURES),"$(CAPTURES)") $(call opt,OUT,out) $(ARGS)

docs: ## build the documentation as a site: build/site/index.html
	$(call layer,docs)
	@$(TOOLS) docs build $(call opt,OUT,out)

setup: ## install a layer: LAYER=client, boards, demo, fleet, docs or all
	$(call layer,$(LAYER))

test-client: ## the client's tests, in a minute: needs nothing but Python
	$(call layer,client)
	@$(RUN) -m pytest $(PYTEST_ARGS) $(CLIENT_TESTS)

test-boards: ## the tests of sensor node, journal and board tools
	$(call layer,all)
	@$(RUN) -m pytest $(PYTEST_ARGS) $(BOARD_TESTS)

test-fleet: ## the tests of the audit
	$(call layer,all)
	@$(RUN) -m pytest $(PYTEST_ARGS) host_tests/fleet

test: ## all tests, or those of TESTS=host_tests/folder
	$(call layer,all)
	@$(RUN) -m pytest $(PYTEST_ARGS) $(TESTS)

lint: ## check style, spelling, types, and that boards can compile and run it
	$(call layer,all)
	@$(RUN) -m host_tests lint all

dist: ## all that others install, into dist/: mip index, ROMFS, sdist, wheel
	$(call layer,all)
	@$(TOOLS) dist $(call opt,OUT,out)

bench:
	$(call layer,all)
	@$(RUN) -m host_tests bench $(call opt,PEERS,peers) $(ARGS)

bench-fleet:
	$(call layer,all)
	@$(RUN) -m host_tests.fleet.bench $(ARGS)

clean:
	@rm -rf build dist .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
