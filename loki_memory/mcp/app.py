"""The page of memory as an MCP App: clients that show apps render it beside an answer.

The page is made when a client reads it. Other clients never ask for it, and the tool that names it
answers in text as before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace

PAGE = "ui://loki-memory/memory.html"
PAGE_TYPE = "text/html;profile=mcp-app"  # clients show a page of no other type


def memory_page(workspace: Workspace) -> str:
    """The shared memory as one HTML file, as `loki-mem export --html` writes it."""
    from loki_memory.ui.export_page import export_page

    return export_page(workspace).html.decode()
