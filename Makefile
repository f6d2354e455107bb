# The commands a person types.  Each target is a thin wrapper over `python -m tools`
# or, for contributors, `python -m host_tests`;
# a line `target: ## text` appears in `make help`, in the order of this file.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
TOOLS := $(RUN) -m tools
PROOF := $(RUN) -m host_tests
PYTEST_ARGS ?= -q -n 2 --dist loadgroup
TESTS ?=

# $(call opt,NAME,name): --name "value" if NAME= was given.
opt = $(if $($(1)),--$(2) "$($(1))")

.DEFAULT_GOAL := help
.PHONY: $(shell sed -n 's/^\([a-z][a-z-]*\):.*/\1/p' Makefile)

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

setup: ## install what is missing; does nothing when all is there
	@$(PYTHON) -m tools.setup

setup-boards: ## only what commands with BOARD= or PORT= need: about 72 MB
	@$(PYTHON) -m tools.setup boards

setup-fleet: ## only what `make audit` needs: Spark, and Java
	@$(PYTHON) -m tools.setup fleet

demo: setup ## run the sensor node, break everything around it, show what arrived
	@$(TOOLS) demo $(DEMO_ARGS)

test: setup ## run all tests, or those of TESTS=host_tests/folder
	@$(RUN) -m pytest $(PYTEST_ARGS) $(TESTS)

test-cluster: setup ## run the pipeline on a Spark cluster on this computer
	@$(RUN) -m pytest -q -m cluster host_tests/fleet

test-brokers: setup ## all broker tests: RabbitMQ 3 and 4, ejabberd, too (fetches them)
	@$(TOOLS) setup brokers
	@$(RUN) -m pytest $(PYTEST_ARGS) -m "broker or not broker" host_tests/brokers

lint: setup ## check style, spelling, types, and that boards can compile and run it
	@$(PROOF) lint all

powercut: setup ## cut the journal's power at all pairs of flash operations; ARGS=--help
	@$(PROOF) powercut $(ARGS)

bench: setup ## measure speed and size; ARGS=heap for one; PEERS=folder beside other clients
	@$(PROOF) bench $(call opt,PEERS,peers) $(ARGS)

baseline: setup ## sizes and instruction counts beside those recorded; ARGS=--accept takes them
	@$(PROOF) baseline $(ARGS)

fuzz: setup ## hunt for five minutes (or SECONDS=…) for bytes that upset the client
	@$(PROOF) fuzz run --seconds $(or $(SECONDS),300)

coverage: setup ## branch coverage of the library; fails below 97 %
	@$(PROOF) proof coverage

mutants: setup ## how many small mistakes in session and journal the tests notice; ARGS=--survivors
	@$(PROOF) proof mutants $(ARGS)

conformance: setup ## write docs/reasons/conformance.md: which test shows which statement
	@$(PROOF) conformance

docs: setup ## build this documentation as a site: build/site/index.html
	@$(TOOLS) docs build $(call opt,OUT,out)

docs-serve: setup ## show the site while you write it: PORT=8000
	@$(TOOLS) docs serve $(call opt,PORT,port)

size: setup ## bytes of bytecode per module, budgets, heap after import
	@$(TOOLS) boards size $(ARGS)

build: setup-boards ## compile library and firmware: BOARD= [DEBUG=1: names and lines stay]
	@$(TOOLS) boards build $(call opt,BOARD,board) $(call opt,DEBUG,debug)

romfs: setup-boards ## the same as a ROMFS image: BOARD= [PORT=]
	@$(TOOLS) boards romfs $(call opt,BOARD,board) $(call opt,DEBUG,debug) $(call opt,PORT,port)

image: setup-boards ## one flashable file: BOARD= FIRMWARE=file CONFIG=device.toml
	@$(TOOLS) boards image $(call opt,BOARD,board) $(call opt,DEBUG,debug) $(call opt,FIRMWARE,firmware) $(call opt,CONFIG,config) $(call opt,OUT,out)

provision: setup-boards ## images for a batch: BOARD= FIRMWARE= BATCH=devices.csv [CONFIG= OUT=]
	@$(TOOLS) boards provision $(call opt,BOARD,board) $(call opt,DEBUG,debug) $(call opt,FIRMWARE,firmware) $(call opt,BATCH,batch) $(call opt,CONFIG,config) $(call opt,OUT,out)

flash: setup-boards ## write an image to a board: BOARD= PORT= [IMAGE=] (RP2: [DRIVE=])
	@$(TOOLS) boards flash $(call opt,BOARD,board) $(call opt,IMAGE,image) $(call opt,PORT,port) $(call opt,DRIVE,drive)

deploy: setup-boards ## copy changed files to a board and check it: BOARD= PORT= [CONFIG=]
	@$(TOOLS) boards deploy $(call opt,BOARD,board) $(call opt,DEBUG,debug) $(call opt,PORT,port) $(call opt,CONFIG,config)

monitor: setup-boards ## show what a board prints: PORT=
	@$(TOOLS) boards monitor $(call opt,PORT,port) $(ARGS)

traceback: setup-boards ## give a board's traceback its names back: [TEXT=file MAP=file]
	@$(TOOLS) boards traceback $(call opt,MAP,map) $(call opt,TEXT,text)

watch: setup-boards ## readings and health of a fleet as they come: SERVER= [ARGS=--json]
	@$(TOOLS) boards watch $(call opt,SERVER,server) $(ARGS)

clock: setup-boards ## tell boards without NTP the time, over their broker: SERVER= [TOPIC=]
	@$(TOOLS) boards clock $(call opt,SERVER,server) $(call opt,TOPIC,topic) $(ARGS)

release: setup-boards ## signed bundle for updates over the air: BOARD= KEY=file [BASE=]
	@$(TOOLS) boards release $(call opt,BOARD,board) $(call opt,DEBUG,debug) $(call opt,KEY,key) $(call opt,BASE,base) $(call opt,OUT,out)

rollout: setup-boards ## bring a bundle to many devices: BUNDLE= FLEET=devices.csv SERVER=
	@$(TOOLS) boards rollout $(call opt,BUNDLE,bundle) $(call opt,FLEET,fleet) $(call opt,SERVER,server) $(ARGS)

journal: setup-boards ## read a board's journal back and show it: PORT=
	@$(TOOLS) boards journal $(call opt,PORT,port) $(call opt,OUT,out)

advise: setup-boards ## which order receivers can count on: BOARD= [CONFIG=]
	@$(TOOLS) boards advise $(call opt,BOARD,board) $(call opt,CONFIG,config) $(ARGS)

sim: setup ## break the client in simulation, deterministically: SECONDS=600
	@$(PROOF) sim run $(call opt,SECONDS,seconds)

soak: setup ## run sensor nodes for long while everything breaks: MINUTES=30 [LEVEL=5]
	@$(PROOF) soak $(call opt,MINUTES,minutes) $(call opt,LEVEL,level)

audit: setup-fleet ## judge recorded traffic of a fleet: CAPTURES=folder OUT=folder
	@$(TOOLS) fleet audit $(CAPTURES) $(call opt,OUT,out) $(ARGS)

bench-fleet: setup ## measure the pipeline beside tshark and budgets; ARGS=decode for one
	@$(TOOLS) fleet bench $(ARGS)

dist: setup ## all that others install, into dist/: mip index, ROMFS, sdist, wheel
	@$(TOOLS) dist $(call opt,OUT,out)

clean: ## remove everything that was built; keeps .venv and .tools
	@rm -rf build dist .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
