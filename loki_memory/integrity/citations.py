"""Code that beliefs cite: whether it has changed since, and whether what they cite still stands."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from hashlib import sha1, sha256
from pathlib import Path
from textwrap import dedent
from typing import Any

_LONG = 64  # characters of an id in a repository with SHA-256
_CLOSING = re.compile(r"\s*(?:[)\]}]+[;,)]*|end|fi|done|esac)\s*")
_DEFINING = (
    r"\b(?:def|class|func|function|fn|const|let|var|interface|type|struct|enum|trait|impl|module)\b"
)


def blob_id(data: bytes, like: str = "") -> str:
    """Git's id of a content; `like` is an id of the repository, which may use the longer ones."""
    named = b"blob %d\0" % len(data) + data
    if len(like) == _LONG:
        return sha256(named).hexdigest()
    return sha1(named, usedforsecurity=False).hexdigest()


def is_blob(data: bytes, blob: str) -> bool:
    """Whether a content is the one that git's id names; git may have changed the line ends."""
    return blob in {blob_id(one, blob) for one in (data, data.replace(b"\r\n", b"\n"))}


def is_stale(root: Path, citations: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a file that a belief cites is gone or has changed since."""
    return any(has_changed(root, cited) for cited in citations)


def has_changed(root: Path, cited: object) -> bool:
    """Whether one citation no longer fits; one that does not say of which content never does."""
    if not isinstance(cited, Mapping) or not cited.get("path") or not cited.get("blob"):
        return False
    data = content(root, str(cited["path"]))
    return data is None or not is_blob(data, str(cited["blob"]))


def content(root: Path, path: str) -> bytes | None:
    """A file of the project as it is now; None if there is no such file in the project."""
    real = os.path.realpath(root / path)
    if not real.startswith(os.path.realpath(root) + os.sep):
        return None
    try:
        with open(real, "rb") as file:
            return file.read()
    except OSError:
        return None


def still_stands(symbol: str, then: bytes, now: bytes) -> bool:
    """Whether what was cited is in the file as it is now, wherever it moved.

    That is the passage that a symbol names, or all of the file if no symbol is named. Indentation
    of the whole passage and white space at line ends do not count.
    """
    before, after = _lines(then), _lines(now)
    if not symbol:
        return before == after
    passage = passage_of(symbol, before)
    if not passage:
        return False
    first, said = passage[0].lstrip(), dedent("\n".join(passage))
    places = (at for at, line in enumerate(after) if line.lstrip() == first)
    return any(dedent("\n".join(after[at : at + len(passage)])) == said for at in places)


def passage_of(symbol: str, lines: Sequence[str]) -> list[str]:
    """The lines that define a name, or else those where it first occurs, with what is in them."""
    name = rf"(?<!\w){re.escape(symbol.rpartition('.')[2])}(?!\w)"
    places = [at for at, line in enumerate(lines) if re.search(name, line)]
    if not places:
        return []
    start = next((at for at in places if re.search(f"{_DEFINING}.*{name}", lines[at])), places[0])
    return list(lines[start : _end(lines, start)])


def _end(lines: Sequence[str], start: int) -> int:
    """Where a passage ends: before the next line that is indented no deeper and closes nothing."""
    depth, end = _indent(lines[start]), start + 1
    for at in range(start + 1, len(lines)):
        line = lines[at]
        if line and _indent(line) <= depth:
            return at + 1 if _CLOSING.fullmatch(line) else end
        if line:
            end = at + 1
    return end


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _lines(data: bytes) -> list[str]:
    return [line.rstrip() for line in data.decode(errors="replace").splitlines()]
