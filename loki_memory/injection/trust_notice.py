"""The line about trust with which a session begins: what came with a clone, or with a branch.

It counts memories and quotes none. A session in a workspace that nobody trusts is told only this
line; memories of a branch that nobody reviewed are mentioned once.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from loki_memory.files import disk
from loki_memory.files.git_files import git_home
from loki_memory.models.ids import digest

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace

_SAID = "unreviewed-said"  # a file in the local zone: the memories that a session was told to wait


def clone_line(workspace: OpenWorkspace) -> str:
    """One line about memories that came with an untrusted clone; empty if none did."""
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
    path, name = workspace.layout.local / _SAID, digest("unreviewed", *sorted(ids)).encode()
    if disk.read_bytes(path) == name:
        return ""
    with suppress(OSError):
        disk.write_bytes(path, name)
    if len(ids) == 1:
        return "1 memory of this branch is not reviewed and not told: `loki-mem review`.\n"
    return f"{len(ids)} memories of this branch are not reviewed and not told: `loki-mem review`.\n"
