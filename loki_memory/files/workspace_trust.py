"""Trust in a workspace: whether its user let agents be told what a clone brought.

A clone, an archive and a pulled branch bring memory that others wrote. Agents are told nothing of
it unasked until the user has run `loki-mem init`, `install` or `trust` here. The decision is a file
in the local zone, which no clone brings and all worktrees share. It names the inode of the zone,
so that it does not travel in an archive, and the remote that was trusted.

A workspace in use before there was such a decision is trusted: it has records of this machine in
its local zone, and an index that was made here. So that later work in an untrusted clone does not
look the same, the store writes down that there was no decision before its first change.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import NamedTuple

from loki_memory.files import disk
from loki_memory.files.git_files import git_folders, remote_of
from loki_memory.files.layout import Layout

VARIABLE = "LOKI_TRUST"
_NAME = "trust"
_USED = ("witness", "memory")  # folders of the local zone that only work here makes


class WorkspaceTrust(NamedTuple):
    """The trust in a workspace on this machine, and the reason for it or against it."""

    is_trusted: bool
    why: str


def trust_in(layout: Layout, remotes: str, environment: Mapping[str, str]) -> WorkspaceTrust:
    """Look up the decision; `remotes` are patterns of the user's config, apart by blanks."""
    if environment.get(VARIABLE) == "1":
        return WorkspaceTrust(True, f"by {VARIABLE} in the environment")
    remote = address_of(layout)
    listed = [pattern for pattern in remotes.replace(",", " ").split() if remote]
    if any(fnmatchcase(remote, pattern) for pattern in listed):
        return WorkspaceTrust(True, f"by trust.remotes, which lists {remote}")
    return _decided(_read(layout), layout, remote)


def _decided(mark: Mapping[str, str], layout: Layout, remote: str) -> WorkspaceTrust:
    day = mark.get("at", "")[:10]
    if mark.get("trusted") != "yes":
        why = f"its user took trust back on {day}" if day else "nobody has trusted it here"
        return WorkspaceTrust(False, why)
    if mark.get("zone") != _inode(layout):
        return WorkspaceTrust(False, "it was trusted in another place, from which it was copied")
    if mark.get("remote", "") not in {"", remote}:
        return WorkspaceTrust(False, f"it was trusted as {mark.get('remote')}, and is {remote} now")
    return WorkspaceTrust(True, f"by its user on {day}" if day else "by its use here before")


def address_of(layout: Layout) -> str:
    """The address of the remote that a workspace came from; empty without one."""
    folders = git_folders(layout.root)
    remote = remote_of(folders) if folders else None
    return remote.address if remote else ""


def note_trust(layout: Layout, *, is_trusted: bool, now: str) -> None:
    """Write down the decision of the user."""
    disk.make_folder(layout.local)
    mark = {
        "trusted": "yes" if is_trusted else "no",
        "zone": _inode(layout),
        "remote": address_of(layout),
        "at": now,
    }
    lines = (f"{name} {value}\n" for name, value in mark.items())
    disk.write_bytes(layout.local / _NAME, "".join(lines).encode())


def note_undecided(layout: Layout) -> None:
    """Before the first change in a workspace: write down that nobody has trusted it yet."""
    if not is_decided(layout) and not was_used(layout):
        with suppress(OSError):  # the change itself will fail too, and name its file
            note_trust(layout, is_trusted=False, now="")


def is_decided(layout: Layout) -> bool:
    """Check if there is a decision, of the user or of the store."""
    return os.path.lexists(layout.local / _NAME)


def was_used(layout: Layout) -> bool:
    """Check if work in this workspace left records in the local zone."""
    return any(os.path.isdir(layout.local / name) for name in _USED)


def _read(layout: Layout) -> Mapping[str, str]:
    try:
        data = disk.read_bytes(layout.local / _NAME) or b""
    except OSError:
        return {}
    pairs = (line.partition(" ") for line in data.decode("utf-8", "replace").splitlines())
    return {name: value for name, _, value in pairs}


def _inode(layout: Layout) -> str:
    try:
        return str(os.lstat(layout.local).st_ino)
    except OSError:
        return ""
