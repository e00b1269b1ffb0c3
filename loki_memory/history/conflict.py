"""A file that git left with conflict markers, taken apart into the versions it was made of.

Markers stand at the beginning of a line and have seven characters; in a JSON string they cannot,
since a string is one line. The longer markers of a merge inside a merge are left where they are:
the version that they stand in cannot be read, and counts as missing.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_MARKER = re.compile(rb"(<{7}|\|{7}|={7}|>{7})(?: [^\r\n]*)?\r?\n?")
_NEXT = {b"<" * 7: "ours", b"|" * 7: "base", b"=" * 7: "theirs", b">" * 7: ""}


class Conflict(NamedTuple):
    """The versions of a file; no base where the markers show none (git's `merge` style)."""

    base: bytes | None
    ours: bytes
    theirs: bytes


def split(data: bytes) -> Conflict | None:
    """The versions in a file with conflict markers; None if it has none, or not whole ones."""
    versions: dict[str, list[bytes]] = {"base": [], "ours": [], "theirs": []}
    inside, seen = "", {""}
    for line in data.splitlines(keepends=True):
        found = _MARKER.fullmatch(line)
        turn = _NEXT[found[1]] if found else None
        if turn is not None and _follows(inside, turn):
            inside = turn
            seen.add(turn)
        else:
            for name in (inside,) if inside else versions:
                versions[name].append(line)
    if inside or len(seen) == 1:
        return None
    base, ours, theirs = (b"".join(versions[name]) for name in ("base", "ours", "theirs"))
    return Conflict(base if "base" in seen else None, ours, theirs)


def _follows(inside: str, turn: str) -> bool:
    """Whether a marker means what it looks like here: a row of `=` may underline a heading."""
    return turn in {"": {"ours"}, "ours": {"base", "theirs"}, "base": {"theirs"}}.get(inside, {""})
