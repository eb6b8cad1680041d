# Everything runs in the project's own virtual environment; nothing has to be installed by hand.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python

.DEFAULT_GOAL := help
.PHONY: help setup java demo unit test slow lint bench docs clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: java $(READY)  ## make the virtual environment and install everything into it

java:
	@sh scripts/ensure-java.sh

$(READY): pyproject.toml scripts/make-venv.sh
	@PYTHON="$(PYTHON)" sh scripts/make-venv.sh $(VENV)
	@touch $@

demo: setup  ## a tour on an embedded local Spark, in about a minute
	@$(BIN)/eddyline demo

unit: $(READY)  ## the tests that need no Spark, on all cores, in under a minute
	@$(BIN)/python -m pytest -m "not spark and not slow" -n auto --dist loadfile

test: setup lint unit  ## lint, types, layers, unit and Spark tests, doctests
	@$(BIN)/python -m pytest -m "spark and not slow"

slow: setup  ## the long rounds that `make test` leaves out
	@$(BIN)/python -m pytest -m slow

lint: $(READY)  ## style, types, and the layers of the package
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: setup  ## run every benchmark and write its numbers under artifacts/ (DATA=folder of real data)
	@mkdir -p artifacts
	@$(BIN)/eddyline bench agreedy --json artifacts/agreedy.json
	@$(BIN)/eddyline bench where --json artifacts/where.json $(if $(DATA),--data $(DATA))
	@$(BIN)/eddyline bench cbr --json artifacts/cbr.json $(if $(DATA),--data $(DATA))
	@$(BIN)/eddyline bench mesh --json artifacts/mesh.json $(if $(DATA),--data $(DATA))
	@$(BIN)/eddyline bench native --json artifacts/native.json $(if $(DATA),--data $(DATA))
	@$(BIN)/eddyline bench cacq --json artifacts/cacq.json
	@$(BIN)/eddyline bench joins --json artifacts/joins.json $(if $(DATA),--data $(DATA)) $(if $(FLINK),--flink $(FLINK))
	@$(BIN)/eddyline bench amri --json artifacts/amri.json $(if $(DATA),--data $(DATA))

docs: setup  ## write the measured numbers under artifacts/ into docs/benchmarks.md and the README
	@$(BIN)/python scripts/benchmarks_page.py artifacts docs/benchmarks.md README.md

clean:  ## remove the virtual environment and everything built
	rm -rf $(VENV) artifacts build dist spark-warehouse
