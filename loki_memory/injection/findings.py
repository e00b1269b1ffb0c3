"""The findings of `loki-mem verify`, as the last look at memory left them.

Verifying asks git, which a hook does not start: a process of its own looks after a session began,
and the next one is told what it found.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

from loki_memory.files import disk

if TYPE_CHECKING:
    from pathlib import Path

    from loki_memory.homes import OpenWorkspace
    from loki_memory.integrity.findings import IntegrityFinding

_NAME = "findings.json"
_STATE, _SAID = "state", "said"
_MOST = 3000  # records that are verified in the background


def is_look_due(workspace: OpenWorkspace) -> bool:
    """Check if memory changed since it was verified."""
    return _kept(workspace).get(_STATE) != workspace.index.note("changed_ns")


def take_findings(workspace: OpenWorkspace) -> str:
    """The sentence about the findings of the last look, once; empty if all was well."""
    kept = _kept(workspace)
    said = kept.get(_SAID, "")
    if said:
        _keep(workspace, kept.get(_STATE, ""), "")
    return said


def look(workspace: OpenWorkspace) -> None:
    """Verify what changed and keep a sentence about it."""
    from loki_memory.integrity.verify import verify_news

    found = verify_news(workspace, _MOST)
    said = _sentence(found.findings) if found else _kept(workspace).get(_SAID, "")
    _keep(workspace, workspace.index.note("changed_ns"), said)


def _sentence(findings: list[IntegrityFinding]) -> str:
    doubtful = [finding for finding in findings if not finding.is_by_hand]
    if not doubtful:
        return ""
    first = f"{doubtful[0].what}: {doubtful[0].id or doubtful[0].path}"
    count = "1 finding" if len(doubtful) == 1 else f"{len(doubtful)} findings"
    return f"{count} of `loki-mem verify` ({first})"


def _keep(workspace: OpenWorkspace, state: str, said: str) -> None:
    with suppress(OSError):  # then the next session looks again
        disk.write_bytes(_path(workspace), json.dumps({_STATE: state, _SAID: said}).encode())


def _kept(workspace: OpenWorkspace) -> dict[str, str]:
    try:
        found = json.loads(disk.read_bytes(_path(workspace)) or b"{}")
    except (OSError, ValueError):
        return {}
    texts = found.items() if isinstance(found, dict) else ()
    return {name: value for name, value in texts if isinstance(value, str)}


def _path(workspace: OpenWorkspace) -> Path:
    return workspace.layout.local / _NAME
