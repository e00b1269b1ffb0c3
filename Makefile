# The commands of CONTRIBUTING.md. Everything runs in .venv, which `make dev` makes.
BIN := .venv/bin

# Tests that start many processes, make many commits or try thousands of cases. All others are fast.
SLOW := cli concurrency consolidation consolidation_branches consolidation_cost \
  consolidation_machine consolidation_settled continuity_harvest crash daemon docs embedding \
  example faults feedback files_redaction files_views files_zones gate history_branch \
  history_commit history_difference history_merging hooks index ingest_hostile install_settings \
  journal links mcp_dialects mcp_http mcp_stdio mcp_tools past publishing recall resolving \
  reviewing schemas secrets state_machine sync sync_own_writes team team_cli tracing transcripts \
  verifying watcher withholding working_memory workspace
FAST := $(filter-out $(SLOW:%=tests/test_%.py),$(wildcard tests/test_*.py))

.PHONY: dev test test-fast lint bench

dev:
	python3 -m venv .venv
	$(BIN)/pip install -qU pip
	$(BIN)/pip install -qe . --group dev

test:
	$(BIN)/pytest -n auto --dist loadfile

test-fast:
	$(BIN)/pytest -n auto --dist loadfile $(FAST)

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench:
	$(BIN)/python benchmarks/foundation.py
