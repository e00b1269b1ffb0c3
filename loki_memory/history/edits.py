"""The files of memory that a commit changed, against its first parent."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from loki_memory.history.repository import Commit, Repository

_NO_BLOB = "0" * 40  # or 64 of them


class Edit(NamedTuple):
    """A path below the memory folder, and its content before and after as blob ids."""

    path: str
    before: str | None
    after: str | None


def edits(repo: Repository, commit: Commit) -> list[Edit]:
    """What a commit changed in memory. A merge is told by what it brought to its branch."""
    parent = commit.parents[0] if commit.parents else empty_tree(repo)
    folder = f"{repo.memory}/"
    command = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev")
    found = repo.run(*command, parent, commit.id, "--", folder)
    return sorted(_parsed(os.fsdecode(found), folder))


def empty_tree(repo: Repository) -> str:
    """Git's id of a tree with nothing in it, which depends on the repository's hash."""
    return repo.run("hash-object", "-t", "tree", "--stdin", input=b"").decode().strip()


def _parsed(raw: str, folder: str) -> Iterator[Edit]:
    """`:100644 100644 <old> <new> M`, NUL, the path, NUL, and so on."""
    parts = raw.split("\0")
    for told, path in zip(parts[::2], parts[1::2], strict=False):
        _, _, before, after, _ = told.split(" ")
        if path.startswith(folder):
            yield Edit(path.removeprefix(folder), _blob(before), _blob(after))


def _blob(name: str) -> str | None:
    return None if name.startswith(_NO_BLOB) else name
