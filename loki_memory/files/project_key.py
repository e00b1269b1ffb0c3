"""The key of a project on this machine: its remote, else its path.

Two clones of one remote have one key, whichever protocol they use. The remote is read from git's
own configuration, which no clone brings, without starting git.
"""

from __future__ import annotations

import re
from pathlib import Path

from loki_memory.files.layout import git_home
from loki_memory.models.ids import digest, slug

_ORIGIN = re.compile(r'^\s*\[remote "origin"\][^\[]*?^\s*url\s*=\s*(\S+)', re.MULTILINE)
_LEAD = re.compile(r"^(?:[a-z+]+://)?(?:[^/@]+@)?", re.IGNORECASE)
_MOST_BYTES = 1_000_000  # of git's configuration


def project_key(root: Path) -> str:
    """A folder name for a project: readable, then the hash of its remote or its path."""
    found = git_home(root)
    top, common = found or (root, root)
    remote = _remote(common / "config") if found else ""
    inside = root.relative_to(top).as_posix()
    name = slug(Path(remote or str(root)).stem) or "project"
    return f"{name}-{digest('project', remote or str(root), inside if remote else '.')}"


def has_remote(root: Path) -> bool:
    """Check if the key of a project follows from its remote: another clone has the same."""
    found = git_home(root)
    return found is not None and bool(_remote(found[1] / "config"))


def _remote(config: Path) -> str:
    """The address of origin without protocol, user and `.git`: `example.org/ana/shop`."""
    try:
        with open(config, encoding="utf-8", errors="replace") as file:
            url = _ORIGIN.search(file.read(_MOST_BYTES))
    except OSError:
        return ""
    if url is None:
        return ""
    plain = _LEAD.sub("", url[1], count=1).rstrip("/").removesuffix(".git")
    host, colon, path = plain.partition(":")
    return f"{host.lower()}/{path.lstrip('/')}" if colon and "/" not in host else plain
