"""Who stands for a content of memory: a commit that is signed, or that somebody reviewed.

A content counts as vouched for if a commit brought it to its path that an allowed SSH key signed,
or whose message has a `Reviewed-by` line. A merge stands for all that it brings in. A signature
cannot be forged; a line in a message is worth what the right to push is worth.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from loki_memory.history.repository import Repository
from loki_memory.history.signing import is_signed

_REVIEWED = "Reviewed-by"
_BEGIN = "\x01"
_FORMAT = f"%x01%H%x00%(trailers:key={_REVIEWED},valueonly)"


class _Brought(NamedTuple):
    """A commit, whether somebody reviewed it, and the contents that it brought to which paths."""

    commit: str
    is_reviewed: bool
    contents: set[tuple[str, str]]


def vouched(repository: Repository) -> dict[str, str]:
    """Of the files of memory in the last commit, those that are vouched for: path -> blob id."""
    tip = repository.tip()
    if tip is None:
        return {}
    open_ones = set(repository.tree(tip).items())
    found: dict[str, str] = {}
    for one in _history(repository, tip):
        contents = one.contents & open_ones
        if contents and (one.is_reviewed or is_signed(repository, one.commit)):
            found |= dict(contents)
            open_ones -= contents
        if not open_ones:
            break
    return found


def _history(repository: Repository, tip: str) -> Iterator[_Brought]:
    """The commits that changed memory, newest first; of a merge, what it has from either side.

    Git says `<id>`, the reviewers, and then `:100644 100644 OLD NEW M` and a path, again and again.
    Each is read in its turn: a path may look like anything.
    """
    asked = ("log", "-z", "--raw", "-m", "--no-renames", "--no-abbrev", "--no-color", "--no-notes")
    where = ("--end-of-options", tip, "--", repository.memory)
    told = iter(os.fsdecode(repository.run(*asked, f"--format={_FORMAT}", *where)).split("\0"))
    last: _Brought | None = None
    for word in told:
        if word.startswith(_BEGIN):
            if last:
                yield last
            last = _Brought(word.removeprefix(_BEGIN), bool(next(told, "").strip()), set())
        elif last and word.strip():
            path = next(told, "").removeprefix(f"{repository.memory}/")
            last.contents.add((path, word.split()[3]))
    if last:
        yield last
