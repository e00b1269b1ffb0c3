"""Code that beliefs cite: find out if it changed, and if the cited passage is still there."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from hashlib import sha1, sha256
from pathlib import Path
from textwrap import dedent
from typing import Any

from loki_memory.files import disk

_LONG = 64  # characters of an id in a repository with SHA-256
_CLOSING = re.compile(r"\s*(?:[)\]}]+[;,)]*|end|fi|done|esac)\s*")
_DEFINING = (
    r"\b(?:def|class|func|function|fn|const|let|var|interface|type|struct|enum|trait|impl|module)\b"
)


def blob_id(data: bytes, like: str = "") -> str:
    """Git's id of a content; `like` is an id of the same repository, which gives the length."""
    named = b"blob %d\0" % len(data) + data
    if len(like) == _LONG:
        return sha256(named).hexdigest()
    return sha1(named, usedforsecurity=False).hexdigest()


def is_blob(data: bytes, blob: str) -> bool:
    """Check if a content has this id; git may have changed the line ends."""
    return blob in {blob_id(variant, blob) for variant in (data, data.replace(b"\r\n", b"\n"))}


def is_stale(root: Path, citations: Sequence[Mapping[str, Any]]) -> bool:
    """Check if a file that a belief cites is gone or has changed since."""
    return any(has_changed(root, cited) for cited in citations)


def has_changed(root: Path, cited: object) -> bool:
    """Check if a citation is stale; one without a blob id never is."""
    if not isinstance(cited, Mapping) or not cited.get("path") or not cited.get("blob"):
        return False
    data = content(root, str(cited["path"]))
    return data is None or not is_blob(data, str(cited["blob"]))


def content(root: Path, path: str) -> bytes | None:
    """Read a file of the project; None if there is no such file in the project."""
    try:
        real = os.path.realpath(root / path)
        is_inside = real.startswith(os.path.realpath(root) + os.sep)
        if not is_inside or not os.path.isfile(real):  # opening a pipe waits for its writer
            return None
        return disk.read_bytes(real)
    except (OSError, ValueError):  # no file, or no name that a file could have
        return None


def still_stands(symbol: str, then: bytes, now: bytes) -> bool:
    """Check if the cited passage is in the present file, wherever it moved.

    The passage is the one that a symbol names, or the whole file without a symbol. Indentation
    of the whole passage and white space at line ends do not count.
    """
    before, after = _lines(then), _lines(now)
    if not symbol:
        return before == after
    passage = passage_of(symbol, before)
    if not passage:
        return False
    first, cited = passage[0].lstrip(), dedent("\n".join(passage))
    places = (at for at, line in enumerate(after) if line.lstrip() == first)
    return any(dedent("\n".join(after[at : at + len(passage)])) == cited for at in places)


def passage_of(symbol: str, lines: Sequence[str]) -> list[str]:
    """The lines that define a name, or else its first occurrence, with the block below."""
    name = rf"(?<!\w){re.escape(symbol.rpartition('.')[2])}(?!\w)"
    places = [at for at, line in enumerate(lines) if re.search(name, line)]
    if not places:
        return []
    start = next((at for at in places if re.search(f"{_DEFINING}.*{name}", lines[at])), places[0])
    return list(lines[start : _end(lines, start)])


def _end(lines: Sequence[str], start: int) -> int:
    """The end of a passage: the next line that is indented no deeper and closes nothing."""
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
