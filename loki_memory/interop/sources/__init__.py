"""Sources of an import, and which of them a path belongs to."""

from __future__ import annotations

from pathlib import Path

from loki_memory.interop.sources.databases import CLAUDE_FLOW, CLAUDE_MEM, LORE, LYNKR
from loki_memory.interop.sources.json_files import BEADS, MCP_MEMORY, MEM0
from loki_memory.interop.sources.markdown import BASIC_MEMORY, CLAUDE_MEMORY, OKF, RULES, SERENA
from loki_memory.interop.sources.our_files import EXPORT, LOKI
from loki_memory.interop.sources.source import ImportSource

# The more particular first: a page of OKF is Markdown too.
_IN_ORDER = [EXPORT, OKF, LOKI, SERENA, BEADS, CLAUDE_MEMORY, CLAUDE_MEM, CLAUDE_FLOW]
_IN_ORDER += [LORE, LYNKR, MCP_MEMORY, MEM0, BASIC_MEMORY, RULES]
SOURCES: dict[str, ImportSource] = {source.name: source for source in _IN_ORDER}


def detected(path: Path) -> list[str]:
    """The names of the systems whose memory a file or folder holds."""
    return [name for name, source in SOURCES.items() if source.detects(path)]
