"""Edits of files that others own: planned at once, shown, and made all or none."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from difflib import unified_diff
from pathlib import Path
from typing import NamedTuple

from loki_memory.errors import FileChanged
from loki_memory.install.managed import (
    MARKDOWN,
    Comment,
    find,
    is_sealed,
    sealed,
    with_block,
    without_block,
)
from loki_memory.install.site import Site


class InstallStep(NamedTuple):
    """A change that was made or planned, or was there already; `diff` is how the file changes."""

    what: str
    where: str
    did: bool
    diff: str = ""


class InstallOptions(NamedTuple):
    """Options of an installation: the user's or the project's settings, and plan or do."""

    user: bool | None = None  # None: the target's default
    plan_only: bool = False
    workflow: bool = False
    allow: bool = False  # tools that only read, without asking


class Edit(NamedTuple):
    """The text of a file before and after; None means no file."""

    path: Path
    where: str
    what: str
    before: str | None
    after: str | None
    top: Path  # the folder that stays, even if removing the file leaves it empty

    def step(self) -> InstallStep:
        return InstallStep(self.what, self.where, self.before != self.after, self.diff())

    def diff(self) -> str:
        """The change as a unified diff; empty where there is none."""
        before, after = ((text or "").splitlines() for text in (self.before, self.after))
        old = "/dev/null" if self.before is None else self.where
        new = "/dev/null" if self.after is None else self.where
        return "\n".join(unified_diff(before, after, old, new, lineterm=""))


def changed(site: Site, path: Path, what: str, before: str | None, after: str | None) -> Edit:
    """Plan the change of a file."""
    return Edit(path, site.shown(path), what, before, after, site.top(path))


def written(site: Site, path: Path, text: str, what: str, comment: Comment = MARKDOWN) -> Edit:
    """Plan to write a file of ours; a file that was written or changed by hand is kept."""
    before = site.text(path)
    if before is not None and not is_sealed(before, comment):
        return changed(site, path, "kept, for it was written or changed by hand", before, before)
    return changed(site, path, what, before, sealed(text, comment))


def removed(site: Site, path: Path, what: str, comment: Comment = MARKDOWN) -> Edit:
    """Plan to remove a file of ours; a file that was written or changed by hand is kept."""
    before = site.text(path)
    if before is not None and not is_sealed(before, comment):
        return changed(site, path, "kept, for it was changed by hand", before, before)
    return changed(site, path, what, before, None)


def block_added(site: Site, path: Path, body: str, comment: Comment, what: str) -> Edit:
    """Plan to put our block into a file of others; a block that was changed by hand is kept."""
    before = site.text(path)
    after = with_block(before or "", body, comment, str(path))
    return changed(site, path, _kept(before, comment, path) or what, before, after)


def block_removed(site: Site, path: Path, comment: Comment, what: str) -> Edit:
    """Plan to remove our block, and the file with it if nothing else is in it."""
    before = site.text(path)
    after = without_block(before, comment, str(path)) or None if before else before
    return changed(site, path, _kept(before, comment, path) or what, before, after)


def _kept(text: str | None, comment: Comment, path: Path) -> str:
    found = find(text or "", comment, str(path))
    return "kept, for the block was changed by hand" if found and not found.untouched else ""


def carry_out(edits: Sequence[Edit], *, plan_only: bool = False) -> list[InstallStep]:
    """Make the changes, unless they are only planned, and report them."""
    if not plan_only:
        _make([edit for edit in edits if edit.before != edit.after])
    return [edit.step() for edit in edits]


def _make(edits: Iterable[Edit]) -> None:
    """Make all edits or, if the file system refuses one, none."""
    from loki_memory.files.store import failures_named

    done: list[Edit] = []
    try:
        for edit in edits:
            with failures_named(edit.path):
                _check_unchanged(edit)
                _write(edit, edit.after)
            done.append(edit)
    except BaseException:
        for edit in reversed(done):
            with suppress(OSError):
                _write(edit, edit.before)
        raise


def _check_unchanged(edit: Edit) -> None:
    from loki_memory.files import disk

    there = disk.read_bytes(edit.path)
    if there != (None if edit.before is None else edit.before.encode()):
        raise FileChanged(edit.path)


def _write(edit: Edit, text: str | None) -> None:
    from loki_memory.files import disk

    if text is not None:
        with _rights_of(edit.path):
            disk.write_bytes(edit.path, text.encode())
        return
    disk.remove(edit.path)
    folder = edit.path.parent
    with suppress(OSError):  # a folder that holds something else stays
        while folder != edit.top:
            os.rmdir(folder)
            folder = folder.parent


@contextmanager
def _rights_of(path: Path) -> Iterator[None]:
    """Keep a file's permissions while it is replaced: private settings are never readable by
    others, not for a moment.
    """
    try:
        rights = os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        yield
        return
    before = os.umask(0o777 & ~rights)
    try:
        yield
    finally:
        os.umask(before)
