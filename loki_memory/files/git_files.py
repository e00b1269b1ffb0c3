"""Git's own files, read without a process: folders, what is tracked, remotes, what moved.

Hooks run before every prompt and every tool call, and a process of git would cost them more than
all of their own work.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

REPOSITORY = ".git"  # in the top folder of a repository, and of a submodule
_ORIGIN = "origin"
_MOST_BYTES = 1 << 20  # of a configuration


class GitFolders(NamedTuple):
    """The folders of a repository, as one of its worktrees sees it."""

    top: Path  # of the worktree
    own: Path  # HEAD and the operations under way of this worktree
    common: Path  # what all worktrees share


class Remote(NamedTuple):
    """A remote repository: its name here, and its address without scheme, user and ending."""

    name: str
    address: str


def git_home(root: Path) -> tuple[Path, Path] | None:
    """The top of the worktree of `root`, and the git directory that all its worktrees share."""
    for folder in (root, *root.parents):
        entry = folder / ".git"
        if entry.is_dir():
            return folder, entry
        if entry.is_file():
            return _linked(folder, entry)
    return None


def _linked(folder: Path, entry: Path) -> tuple[Path, Path] | None:
    """Follow the `.git` file of a worktree or submodule to its directory and the common one."""
    try:
        directory = named_by(entry)
        pointer = directory / "commondir"
        if pointer.is_file():
            directory = (directory / pointer.read_text(encoding="utf-8").strip()).resolve()
    except (OSError, UnicodeDecodeError):
        return None
    return (folder, directory) if directory.is_dir() else None


def named_by(entry: Path) -> Path:
    """The git directory that the `.git` file of a worktree or submodule names."""
    named = entry.read_text(encoding="utf-8").strip().removeprefix("gitdir:").strip()
    return (entry.parent / named).resolve()


def may_be_tracked(root: Path, folders: Iterable[str]) -> bool:
    """Check if git may track files in folders of a workspace, without starting git."""
    found = git_home(root)
    if found is None:
        return False
    top, common = found
    if common.parent != top:
        return True
    return any(_is_in_index(common / "index", root, top, folder) for folder in folders)


def is_tracked(root: Path, folder: str) -> bool:
    """The same for one folder, in a linked worktree too: each has an index of its own."""
    found = git_folders(root)
    if found is None:
        return False
    return _is_in_index(found.own / "index", root, found.top, folder)


def _is_in_index(index: Path, root: Path, top: Path, folder: str) -> bool:
    """Look for a path in git's index, which has all of them in full, up to its version 3.

    An index of another version says nothing; then a path counts as tracked.
    """
    try:
        data = index.read_bytes()
    except FileNotFoundError:  # nothing was ever added
        return False
    except OSError:
        return True
    inside = root.relative_to(top).as_posix()
    prefix = "" if inside == "." else f"{inside}/"
    is_plain = data[:7] == b"DIRC\0\0\0" and data[7] in {2, 3}
    return not is_plain or os.fsencode(f"{prefix}{folder}") in data


def git_folders(root: Path) -> GitFolders | None:
    """The folders of the repository that holds a workspace; None if there is none."""
    found = git_home(root)
    if found is None:
        return None
    top, common = found
    entry = top / REPOSITORY
    return GitFolders(top, entry if entry.is_dir() else named_by(entry), common)


def remote_of(folders: GitFolders) -> Remote | None:
    """The remote that a clone came from: `origin`, else the first by name; None without one."""
    urls = dict(reversed(list(_urls(folders.common / "config"))))
    name = _ORIGIN if _ORIGIN in urls else min(urls, default="")
    return Remote(name, address(urls[name])) if name else None


def _urls(path: Path) -> Iterator[tuple[str, str]]:
    """The names and addresses of remotes in a configuration of git."""
    name = ""
    for line in _text(path).splitlines():
        entry = line.strip()
        if entry.startswith("["):
            section, _, entry = entry[1:].partition("]")
            kind, _, rest = section.strip().partition(" ")
            name = rest.strip().strip('"') if kind.lower() == "remote" else ""
        key, _, value = entry.partition("=")
        if name and key.strip().lower() == "url":
            yield name, value.strip().strip('"')


def address(url: str) -> str:
    """The address of a remote, the same for every way to reach it.

    >>> address("git@example.org:shop/app.git")
    'example.org/shop/app'
    >>> address("https://ana@example.org/shop/app")
    'example.org/shop/app'
    """
    _, has_scheme, rest = url.partition("://")
    host, _, path = rest.partition("/") if has_scheme else url.partition(":")
    is_here = not has_scheme and (not path or "/" in host or len(host) == 1)  # a path; C:/path
    if is_here:
        return url.rstrip("/").removesuffix(".git")
    named = host.rpartition("@")[2].partition(":")[0].lower()
    return f"{named}/{path.strip('/').removesuffix('.git')}"


def is_shared(root: Path) -> bool:
    """Check if others may have a part in a workspace: something was fetched from a remote."""
    folders = git_folders(root)
    return folders is not None and remote_of(folders) is not None and _has_branches(folders.common)


def _has_branches(common: Path) -> bool:
    """Check for branches of remotes."""
    if (common / "reftable").is_dir():  # which only git reads
        return True
    with suppress(OSError):
        if any(os.scandir(common / "refs" / "remotes")):
            return True
    return " refs/remotes/" in _text(common / "packed-refs")


def moves(folders: GitFolders, branch: str) -> str:
    """A value that changes whenever HEAD or a branch, by its full name, may have moved."""
    head = _text(folders.own / "HEAD").strip()
    current = head.removeprefix("ref:").strip()
    places = [folders.own / "HEAD", folders.own / "logs" / "HEAD", folders.common / "packed-refs"]
    places += [folders.common / name for name in (current, branch, "FETCH_HEAD") if name]
    places += [folders.common / "logs" / branch, folders.common / "config"]
    return " ".join([head, *map(_stamp, places)])


def _stamp(path: Path) -> str:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return "-"
    return f"{status.st_mtime_ns}:{status.st_size}"


def _text(path: Path) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MOST_BYTES)
    except OSError:
        return ""
