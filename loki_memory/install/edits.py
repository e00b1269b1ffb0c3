"""Edits of files that others own: planned at once, shown, and made all or none.

Text of ours is marked, so that it can be found, renewed and removed. A block is enclosed by two
marks, and a file of our own ends with one. Either carries a digest of our text. While the digest
matches, the text may be renewed or removed, in any clone and by any later version. Where it does
not match, somebody changed the text, and it is theirs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from difflib import unified_diff
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from loki_memory.errors import FileChanged, InvalidConfig
from loki_memory.install.site import Site

_DIGITS = 16


class Comment(NamedTuple):
    """The syntax of a one-line comment, and the word that a seal begins with."""

    opens: str
    closes: str
    word: str = "written"

    def says(self, words: str) -> str:
        return f"{self.opens}loki-mem:{words}{self.closes}"


MARKDOWN = Comment("<!-- ", " -->")
HASH = Comment("# ", "")
PUBLISHED = Comment("<!-- ", " -->", "published")


class Block(NamedTuple):
    """Our block in a text, the text around it, and whether the block is unchanged."""

    before: str
    body: str
    after: str
    untouched: bool


def sealed(text: str, comment: Comment = MARKDOWN) -> str:
    """Seal a text: append the line that says it is ours."""
    return f"{text.rstrip()}\n\n{_seal(text, comment)}\n"


def is_sealed(text: str, comment: Comment = MARKDOWN) -> bool:
    """Check if a text is ours and unchanged."""
    body, _, seal = text.rstrip().rpartition("\n")
    return seal == _seal(body, comment)


def _seal(text: str, comment: Comment) -> str:
    digest = sha256(text.replace("\r\n", "\n").strip().encode()).hexdigest()[:_DIGITS]
    return comment.says(f"{comment.word} {digest}")


def find(text: str, comment: Comment, where: str) -> Block | None:
    """Find our block in a text; raises InvalidConfig where the marks are not one pair."""
    begin, end = comment.says("begin"), comment.says("end")
    begins, ends = _lines(text, begin), _lines(text, end)
    if not begins and not ends:
        return None
    if len(begins) != 1 or len(ends) != 1 or begins[0].start() > ends[0].start():
        odd = (begins or ends)[-1]
        line = text.count("\n", 0, odd.start()) + 1
        raise InvalidConfig(
            f"{where}:{line}",
            f"`{begin}` and `{end}` must stand there once each, in this order. Nothing was "
            "written; mend the marks and repeat.",
        )
    body = text[begins[0].end() : ends[0].start()].strip("\r\n")
    return Block(
        text[: begins[0].start()], body, text[ends[0].end() :], is_sealed(body + "\n", comment)
    )


def _lines(text: str, mark: str) -> list[re.Match[str]]:
    return list(re.finditer(rf"^{re.escape(mark)}[ \t]*(?=\r?$)", text, re.MULTILINE))


def with_block(text: str, body: str, comment: Comment, where: str) -> str:
    """Return the text with our block: renewed in its place, else at the end.

    A block that was changed by hand stays as it is.
    """
    found = find(text, comment, where)
    if found is not None and not found.untouched:
        return text
    line = _line_break(text)
    block = f"{comment.says('begin')}\n{sealed(body, comment)}{comment.says('end')}"
    block = block.replace("\n", line)
    if found is not None:
        return found.before + block + found.after
    if not text:
        return block + line
    # The block ends with a line break if the text did: so its removal restores the text.
    return text + line + block + line if text.endswith(line) else text + line + line + block


def without_block(text: str, comment: Comment, where: str) -> str:
    """Return the text without our block; a block that was changed by hand stays."""
    found = find(text, comment, where)
    if found is None or not found.untouched:
        return text
    line = _line_break(text)
    if not found.after:
        return found.before.removesuffix(line + line)
    before = found.before
    if before.endswith(line + line):
        before = before.removesuffix(line)
    return before + found.after.removeprefix(line)


def _line_break(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


# -- planned edits ---------------------------------------------------------------------------------


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
