"""The command line: `loki-mem`."""

from __future__ import annotations

from loki_memory.cli.main import main

__all__ = ["main"]
