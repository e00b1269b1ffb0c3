"""Changed files below `.loki` that no record explains: settings, attributes, views, links, modes.

Together with the records (`field_changes`) this is all that a commit changes there, except for new
files of the write log: every commit of memory brings one, and nothing in it is ever told.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.files.redaction import redact
from loki_memory.history.tree import empty_tree

if TYPE_CHECKING:
    from loki_memory.files.layout import Layout
    from loki_memory.git_repository import Repository

PLAIN = "100644"  # git's modes
LINK = "120000"
_KINDS = {PLAIN: "file", "100755": "executable file", LINK: "symbolic link", "160000": "submodule"}
_NO_MODE = "000000"
_MOST_LINES = 2_000  # of one file; what is longer is said
_WITNESS = re.compile(r"\.loki/memory/witness/[\w-]+/[\w-]+\.jsonl")


class FileChange(NamedTuple):
    """A file that differs: what happened to it, and its lines, `-` those before, `+` those now."""

    path: str  # from the folder of the workspace
    what: str
    lines: list[str]


class _Version(NamedTuple):
    mode: str
    blob: str  # zeros for a file of the working tree

    @property
    def kind(self) -> str:
        return _KINDS.get(self.mode, f"file of mode {self.mode}")


class FileEdit(NamedTuple):
    """A path below `.loki`, from the folder of the workspace, in two states."""

    path: str
    before: _Version
    after: _Version

    @property
    def is_plain(self) -> bool:
        """Check for a regular file that is not executable, where there is a file."""
        return {self.before.mode, self.after.mode} <= {PLAIN, _NO_MODE}

    @property
    def is_new_witness(self) -> bool:
        is_new = (self.before.mode, self.after.mode) == (_NO_MODE, PLAIN)
        return is_new and _WITNESS.fullmatch(self.path) is not None


def file_edits(repo: Repository, before: str, after: str) -> list[FileEdit]:
    """The files below `.loki` that differ: from a commit (or nothing) to one, or to those here."""
    start = before or empty_tree(repo)
    shape = ("-r", "-z", "--raw", "--no-renames", "--no-abbrev", start)
    where = ("--", f"{repo.prefix}/")
    if after:
        return list(_parsed(repo, repo.run("diff-tree", *shape, after, *where)))
    found = list(_parsed(repo, repo.run("diff-index", *shape[1:], *where)))
    asked = ("ls-files", "--others", "--exclude-standard", "-z")
    others = os.fsdecode(repo.run(*asked, *where)).split("\0")
    return [*found, *(_untracked(repo, path) for path in others if path)]


def _untracked(repo: Repository, path: str) -> FileEdit:
    return FileEdit(_inside(repo, path), _Version(_NO_MODE, ""), _on_disk(repo, path))


def _inside(repo: Repository, path: str) -> str:
    return path.removeprefix(repo.prefix.removesuffix(".loki"))


def _on_disk(repo: Repository, path: str) -> _Version:
    try:
        mode = os.lstat(repo.root / path).st_mode
    except OSError:
        return _Version(_NO_MODE, "")
    if stat.S_ISLNK(mode):
        return _Version(LINK, "")
    return _Version("100755" if mode & stat.S_IXUSR else PLAIN, "")


def _parsed(repo: Repository, raw: bytes) -> Iterator[FileEdit]:
    """`:100644 100644 <old> <new> M`, NUL, the path, NUL, and so on."""
    parts = os.fsdecode(raw).split("\0")
    for fields, path in zip(parts[::2], parts[1::2], strict=False):
        old_mode, new_mode, old, new, _ = fields.removeprefix(":").split(" ")
        yield FileEdit(_inside(repo, path), _Version(old_mode, old), _Version(new_mode, new))


def file_change(repo: Repository, layout: Layout, edit: FileEdit) -> FileChange | None:
    """The change of one file; None if it has the same bytes in both states."""
    old = _content(repo, layout, edit.path, edit.before)
    new = _content(repo, layout, edit.path, edit.after)
    if old == new and edit.before.mode == edit.after.mode:
        return None
    lines = list(_lines(old, new))
    return FileChange(edit.path, _what(edit), lines[:_MOST_LINES] + _left_out(lines))


def _what(edit: FileEdit) -> str:
    if edit.before.mode == _NO_MODE:
        return f"added, {_article(edit.after.kind)}"
    if edit.after.mode == _NO_MODE:
        return f"removed, {_article(edit.before.kind)}"
    if edit.before.mode == edit.after.mode:
        return "changed" if edit.is_plain else f"changed, {_article(edit.after.kind)}"
    return f"was {_article(edit.before.kind)}, is {_article(edit.after.kind)}"


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _content(repo: Repository, layout: Layout, path: str, version: _Version) -> bytes:
    if version.mode in {_NO_MODE, "160000"}:
        return b""
    if version.blob.strip("0"):
        return next(data for _, data in repo.blobs([version.blob]))
    place = layout.root / path
    try:
        return os.fsencode(os.readlink(place)) if version.mode == LINK else place.read_bytes()
    except OSError:
        return b""


def _lines(old: bytes, new: bytes) -> Iterator[str]:
    before, after = _text(old), _text(new)
    for tag, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            yield from (f"- {line}" for line in before[i:j])
            yield from (f"+ {line}" for line in after[k:m])


def _text(data: bytes) -> list[str]:
    """The lines of a file, without secrets; of one that is no text, its size."""
    try:
        return redact(data.decode()).splitlines() if b"\0" not in data else [_size(data)]
    except UnicodeDecodeError:
        return [_size(data)]


def _size(data: bytes) -> str:
    return f"{len(data):,} bytes that are no text"


def _left_out(lines: list[str]) -> list[str]:
    more = len(lines) - _MOST_LINES
    return [f"and {more:,} more lines"] if more > 0 else []
