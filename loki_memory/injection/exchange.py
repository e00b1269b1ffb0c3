"""Advice to use one program in place of another, and whether a command needs it.

`ingest` words it: "Use `python3` instead of `python`." Such a lesson helps whatever error the wrong
program meets next, and only where a command runs the wrong program.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_EXCHANGE = re.compile(r"Use `([^`]+)` instead of `([^`]+)`")


def advice(record: Mapping[str, Any]) -> str:
    """The advice that a warning gives to use another program; empty if it gives none."""
    found = _EXCHANGE.match(str(record.get("prevention") or ""))
    return found[0] if found else ""


def applies(advised: str, command: str) -> bool:
    """Check if a command runs the program that the advice is against.

    >>> applies("Use `python3` instead of `python`", "cd x && python a.py")
    True
    >>> applies("Use `python3` instead of `python`", "python3 a.py")
    False
    """
    found = _EXCHANGE.match(advised)
    return found is not None and _runs(command, found[2]) and not _runs(command, found[1])


def _runs(command: str, program: str) -> bool:
    return re.search(rf"(?<![\w./-]){re.escape(program)}(?![\w./-])", command) is not None
