# The commands of CONTRIBUTING.md. Everything runs in .venv, which `make dev` makes.
BIN := .venv/bin

# Tests that start many processes, make many commits or try thousands of cases. All others are fast.
SLOW := browse_graph cli cli_odd_arguments concurrency consolidation consolidation_branches \
  consolidation_cost consolidation_feedback consolidation_input consolidation_machine \
  consolidation_publish continuity_block continuity_file continuity_harvest continuity_render \
  crash daemon daemon_watcher docs embedding embedding_hosted embedding_minilm example \
  files_redaction files_view_rendering files_views files_workspace_trust files_zones history_as_of \
  history_belief_diff history_blame history_branch_mode history_check history_commit history_merge \
  history_pull history_resolve history_review hooks hooks_team index index_gate ingest_dialects \
  ingest_hostile ingest_run injection_context injection_gate injection_signatures install_agents \
  install_json_text install_settings integrity_reviewed integrity_verify interop_publish_skills \
  journal language_backends language_wording links mcp_dialects mcp_http mcp_stdio mcp_tools \
  recall recall_field_filters schemas secrets seed_seeding server_cli server_exchange server_http \
  server_killed_database server_oauth server_pages server_projection server_remote server_webhook \
  state_machine sync sync_own_writes team team_cli transcripts ui_browser ui_cli ui_explore \
  ui_pages ui_rest workspace workspace_scopes
FAST := $(filter-out $(SLOW:%=tests/test_%.py),$(wildcard tests/test_*.py))

.PHONY: dev test test-fast lint bench docs

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

docs:
	$(BIN)/pip install -q --group docs
	$(BIN)/mkdocs build -q
