"""docs/migrating.md leaves out no key of the four systems, and names only what we have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from loki_memory.cli.main import COMMANDS
from loki_memory.interop.sources import SOURCES
from loki_memory.settings import SETTINGS

PAGE = (Path(__file__).parent.parent / "docs" / "migrating.md").read_text(encoding="utf-8")
THEIRS = {
    "Loki Mode": """
        LOKI_MEMORY_CAPTURE_DISABLED LOKI_SKIP_MEMORY LOKI_SKIP_CROSS_PROJECT LOKI_FAILURE_MEMORY
        LOKI_AUTO_LEARNINGS LOKI_MEMORY_HOOK_DISABLED list show search stats export dedupe clear
        compound index timeline consolidate economics retrieve episode pattern skill vectors
        namespace ingest replay crossproject graph enable-hook disable-hook loki_memory_retrieve
        loki_memory_store_pattern loki_memory_capture_session_summary loki_consolidate_memory
        loki_learnings loki_memory_redact loki://state/continuity loki://memory/index
        loki://queue/pending .loki/config.json token_economics.json
    """,
    "Lore": """
        LORE_DB_PATH poll_interval_secs batch_size claude_model interval_secs similarity_threshold
        prune_age_days min_relevance_prune path api_key_env extraction_model compression_model url
        client_id sync_interval start daemonize stop status logs ingest consolidate roots query
        explore staged sync search read list_roots store update delete query_memory explore_memory
        traverse_memory store_memory list_topics /recall /remember
    """,
    "claude-flow": """
        memory.backend memory.enableHNSW memory.cacheSize memory.learningBridge.enabled sonaMode
        confidenceDecayRate accessBoostAmount consolidationThreshold memory.memoryGraph.enabled
        pageRankDamping maxNodes similarityThreshold memory.agentScopes.enabled defaultScope
        vectorBackend enableLearning learningPositiveThreshold learningNegativeThreshold
        learningBatchSize learningTickInterval neural.enabled neural.modelPath memory_store
        memory_search memory_retrieve memory_delete memory_list hooks_intelligence_pattern_store
        hooks_intelligence_pattern_search recordFeedback verifyWitnessChain getWitnessChain
    """,
    "Lynkr": """
        MEMORY_ENABLED MEMORY_RETRIEVAL_LIMIT MEMORY_SURPRISE_THRESHOLD MEMORY_MAX_AGE_DAYS
        MEMORY_MAX_COUNT MEMORY_DECAY_ENABLED MEMORY_DECAY_HALF_LIFE MEMORY_INCLUDE_GLOBAL
        MEMORY_INJECTION_FORMAT MEMORY_EXTRACTION_ENABLED MEMORY_FORMAT MEMORY_DEDUP_ENABLED
        MEMORY_DEDUP_LOOKBACK memory_search memory_add memory_forget memory_stats
    """,
}


@pytest.mark.parametrize("system", THEIRS)
def test_every_key_of_a_system_is_named(system: str) -> None:
    section = PAGE.split(f"\n## {system}\n")[1].split("\n## ")[0]
    rows = [row.split(" | ")[0] for row in section.splitlines() if row.startswith("| ")]
    left = "\n".join(rows)
    missing = [key for key in THEIRS[system].split() if not is_named(key, left)]
    assert missing == []


def is_named(key: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(key)}(?!\w)", text) is not None


def test_every_command_that_is_named_exists() -> None:
    assert set(re.findall(r"`loki-mem ([a-z-]+)", PAGE)) <= set(COMMANDS)


def test_every_setting_that_is_named_exists() -> None:
    groups = {setting.name.split(".")[0] for setting in SETTINGS}
    ours = "\n".join(row.split(" | ")[-1] for row in PAGE.splitlines())
    named = set(re.findall(r"`([a-z]+\.[a-z_]+)`", ours))
    named = {name for name in named if name.split(".")[0] in groups}
    theirs = {"memory.disabled"}
    assert named - theirs <= {setting.name for setting in SETTINGS}


def test_every_source_of_an_import_has_its_row() -> None:
    assert set(SOURCES) - {"loki-export"} <= set(
        re.findall(r"^\| `([\w-]+)` \|", PAGE, re.MULTILINE)
    )
