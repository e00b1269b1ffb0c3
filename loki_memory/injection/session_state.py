"""State that is kept between sessions: the last goal, what `loki-mem verify` found, and
whether the user was told that memories wait for trust or review.
"""

from __future__ import annotations

import json  # not orjson, which takes longer to load: a session begins with this
from contextlib import suppress
from typing import TYPE_CHECKING

from loki_memory.files import disk
from loki_memory.files.git_files import git_home
from loki_memory.files.redaction import redact
from loki_memory.models.ids import digest

if TYPE_CHECKING:
    from pathlib import Path

    from loki_memory.homes import OpenWorkspace
    from loki_memory.integrity.findings import IntegrityFinding


def last_goal(workspace: OpenWorkspace, agent: str) -> str:
    """Read the last goal of an agent; empty if there was none."""
    return redact(_goals(workspace).get(agent, ""))


def note_goal(workspace: OpenWorkspace, agent: str, goal: str) -> None:
    """Keep the goal of an agent."""
    goals = _goals(workspace)
    if goals.get(agent, "") == goal or not goal:
        return
    from loki_memory.files.store import failures_named  # brings the models, 100 ms

    path = workspace.layout.local / "goals.json"
    with failures_named(path):
        disk.write_bytes(path, json.dumps({**goals, agent: goal}, sort_keys=True).encode())


def _goals(workspace: OpenWorkspace) -> dict[str, str]:
    data = disk.read_bytes(workspace.layout.local / "goals.json")
    try:
        found = json.loads(data) if data else {}
    except ValueError:
        return {}
    return {k: v for k, v in found.items() if isinstance(v, str)} if isinstance(found, dict) else {}


# -- what `loki-mem verify` found ------------------------------------------------------------------

# Verifying asks git, which a hook does not start: a process of its own looks after a session began,
# and the next one is told what it found.

_FINDINGS = "findings.json"
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
    return workspace.layout.local / _FINDINGS


# -- what came with a clone, or with a branch ------------------------------------------------------

# These lines count memories and quote none. A session in a workspace that nobody trusts is told
# only the first; memories of a branch that nobody reviewed are mentioned once.

_WAITING = "unreviewed-said"  # a file in the local zone: the memories that a session was told of


def clone_line(workspace: OpenWorkspace) -> str:
    """One line about memories that came with an untrusted clone; empty if none did."""
    workspace.home.ensure("files")
    counts, private = workspace.index.counts(), workspace.index.private_counts()
    number = sum(counts.values()) - sum(private.values())
    if not number:
        return ""
    came = "1 memory" if number == 1 else f"{number} memories"
    told = "It is not told" if number == 1 else "None is told"
    place = "clone" if git_home(workspace.layout.root) else "folder"
    return (
        f"{came} came with this {place}. {told} until the user has trusted it on this machine: "
        "`loki-mem trust` shows what came, and asks.\n"
    )


def branch_line(workspace: OpenWorkspace) -> str:
    """One line about memories that nobody reviewed; empty if it was said before."""
    from loki_memory.integrity.reviewed import known_unreviewed

    ids = known_unreviewed(workspace.home)
    if not ids:
        return ""
    path, name = (
        workspace.layout.local / _WAITING,
        digest("unreviewed", *sorted(ids)).encode(),
    )
    if disk.read_bytes(path) == name:
        return ""
    with suppress(OSError):
        disk.write_bytes(path, name)
    if len(ids) == 1:
        return "1 memory of this branch is not reviewed and not told: `loki-mem review`.\n"
    return f"{len(ids)} memories of this branch are not reviewed and not told: `loki-mem review`.\n"
