"""Memory files that `git pull` would refuse to touch, from what was fetched already.

Git refuses to pull over a file with an uncommitted change that the other side changed too, and over
an untracked file that the other side has. No network, no gitpython: `status` asks this.
"""

from __future__ import annotations

from pathlib import Path

from loki_memory.files.git_files import git_home, is_shared
from loki_memory.files.layout import view_kind
from loki_memory.git_repository import listing

_MEMORY = ".loki/memory"


def would_be_refused(root: Path) -> list[str]:
    """Uncommitted memory files that the fetched upstream changed too, from the workspace's root."""
    if not is_shared(root):
        return []
    span = ("diff", "--name-only", "-z", "--no-renames", "--relative", "HEAD...@{upstream}")
    theirs = {path for path in listing(root, *span, "--", _MEMORY) if path}
    return sorted(theirs & uncommitted(root).keys()) if theirs else []


def uncommitted(root: Path) -> dict[str, str]:
    """Memory files that differ from the last commit, with git's two letters for how.

    Views, and files whose name begins with a dot, belong to one machine.
    """
    asked = ("status", "--porcelain=v1", "-z", "-uall", "--no-renames", "--", _MEMORY)
    top = git_home(root)
    prefix = root.relative_to(top[0]).as_posix() if top else "."
    lead = "" if prefix == "." else f"{prefix}/"
    lines = [line for line in listing(root, *asked) if line]
    found = {line[3:].removeprefix(lead): line[:2] for line in lines}
    return {path: how for path, how in found.items() if _is_memory(path)}


def _is_memory(path: str) -> bool:
    inside = path.removeprefix(f"{_MEMORY}/")
    return not view_kind(inside) and not any(part[:1] == "." for part in inside.split("/"))
