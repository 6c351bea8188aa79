# `make` alone lists what there is. Everything runs in `.venv`, which the first command makes;
# it needs Python 3.11 or later (with venv and pip), make and git.

BIN := .venv/bin
ARGS ?=
WORKERS ?= 2
SOURCES := pyproject.toml constraints.txt tools/setup.sh

.PHONY: help demo test prove check lint format-check types layers docs docs-check bench format coverage hooks lock clean
.DEFAULT_GOAL := help

help: ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | while IFS="$$(printf '\t')" read -r name what; do \
		printf '%-14s %s\n' "$$name" "$$what"; done

demo: .venv/.ready ## watch an agent be held for a person; `make demo ARGS=--silent` needs nobody
	@$(BIN)/sayso demo $(ARGS)

test: .venv/.ready-dev ## run the tests; `make test ARGS="-k audit" WORKERS=0` runs some, in one process
	$(BIN)/pytest -q -rfEs -n $(WORKERS) $(ARGS)

prove: .venv/.ready-dev ## run the long randomised proofs
	$(BIN)/pytest -q -rfEs -n $(WORKERS) -m prove --hypothesis-profile=prove $(ARGS)

check: lint format-check types layers docs-check ## everything but the tests: style, types, layers, generated pages

lint: .venv/.ready-dev
	$(BIN)/ruff check

format-check: .venv/.ready-dev
	$(BIN)/ruff format --check

types: .venv/.ready-dev
	$(BIN)/pyright --project pyproject.toml

layers: .venv/.ready-dev
	$(BIN)/lint-imports --no-logo

docs-check: .venv/.ready-dev
	$(BIN)/python -m tools.docs --check

docs: .venv/.ready-dev ## write the generated pages of docs/ anew
	$(BIN)/python -m tools.docs

bench: .venv/.ready-bench ## measure against floors and peers; `make bench ARGS="--rows judge"`
	$(BIN)/python -m bench $(ARGS)

format: .venv/.ready-dev ## put the code in order
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

coverage: .venv/.ready-dev ## run the tests and name the lines that none of them reached
	$(BIN)/pytest -q -n $(WORKERS) --cov --cov-report=term-missing $(ARGS)

hooks: .venv/.ready-dev ## check every commit before it is made
	$(BIN)/prek install

lock: .venv/.ready-dev ## write constraints.txt anew, with the newest versions that fit
	$(BIN)/uv pip compile --quiet --universal --upgrade --python-version 3.11 --no-header --no-annotate \
		--no-emit-index-url --no-emit-find-links --extra langchain --group dev --group bench pyproject.toml \
		--output-file constraints.txt

clean: ## remove everything that these commands made, `.venv` too
	rm -rf .venv .coverage* .hypothesis .import_linter_cache .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.ready: $(SOURCES)
	@tools/setup.sh
	@touch $@

.venv/.ready-dev: $(SOURCES)
	@tools/setup.sh dev
	@touch $@ .venv/.ready

.venv/.ready-bench: $(SOURCES)
	@tools/setup.sh bench
	@touch $@ .venv/.ready
