"""Sources of an import: one module for each system, and which of them a path belongs to."""

from __future__ import annotations

from pathlib import Path

from loki_memory.interop.sources import (
    basic_memory,
    beads,
    claude_auto_memory,
    claude_flow,
    claude_mem_database,
    exported,
    loki_folder,
    lore_database,
    lynkr_database,
    mcp_memory,
    mem0,
    okf,
    rules,
    serena,
)
from loki_memory.interop.sources.source import ImportSource

# The more particular first: a page of OKF is Markdown too.
_MODULES: tuple[ImportSource, ...] = (
    exported,
    okf,
    loki_folder,
    serena,
    beads,
    claude_auto_memory,
    claude_mem_database,
    claude_flow,
    lore_database,
    lynkr_database,
    mcp_memory,
    mem0,
    basic_memory,
    rules,
)
SOURCES: dict[str, ImportSource] = {module.NAME: module for module in _MODULES}


def detected(path: Path) -> list[str]:
    """The names of the systems whose memory a file or folder holds."""
    return [name for name, source in SOURCES.items() if source.detects(path)]
