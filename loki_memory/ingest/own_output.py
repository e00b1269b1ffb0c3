"""Output of the repository's own files: which answers of tools show the project itself.

A tool that reads or changes files within the project shows its own words, and so do shell commands
that only print such files. A search is no such tool: nobody notes where it searched. Everything
else is output of somebody else's program or the text of somebody else's file: package managers,
test runs, web pages, subagents, other servers, dependencies that lie within the folder.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from loki_memory.ingest.turns import Turn
from loki_memory.models.error_signature import is_shell

_FILE_TOOLS = frozenset(
    {
        *("Read", "read_file", "NotebookRead", "view"),
        *("Edit", "MultiEdit", "Write", "NotebookEdit", "apply_patch", "edit", "write"),
    }
)
# Folders that hold what others wrote, wherever they lie.
_OTHERS = re.compile(
    r"(?:^|/)(?:node_modules|bower_components|vendor|third[_-]party|site-packages|dist-packages"
    r"|\.?venv|\.tox|\.nox|\.cargo|\.rustup|\.gradle|\.m2|\.npm|\.cache|\.bundle|\.pub-cache|gems"
    r"|go/pkg|Pods|Carthage|deps|external|downloads?|te?mp)(?:/|$)",
    re.IGNORECASE,
)
_PARTS = re.compile(r"&&|\|\||[;|\n]")
_CLONES = re.compile(r"\b(?:git|gh repo|hg|glab repo)\s(?:-\S+\s+)*clone\s+(.+)")
_SUBSTITUTES = re.compile(r"\$\(|`|<\(|\bxargs\b|-exec\b")
_PRINTS = frozenset(
    re.findall(
        r"\w+", "cat head tail sed awk grep egrep fgrep rg ag nl wc ls tree bat sort uniq cut jq"
    )
)
_SAYS_NOTHING = frozenset({"cd", "pwd", "true", "echo", "clear", "mkdir", "chmod", "touch"})
_OWN_GIT = re.compile(
    r"git\s+(?:--no-pager\s+)?(?:status|ls-files|grep|blame|add|diff)\b"
    r"(?:\s+(?:-\S+|HEAD\S*|[\"'].*?[\"']))*(?:\s+--(?:\s+\S+)*)?\s*$"
)


def fetched_folders(call: Turn) -> set[str]:
    """The folders into which a command puts a repository of others."""
    if not is_shell(call.tool) or "clone" not in call.text:
        return set()
    return {_whole(folder, call.cwd) for folder in map(_cloned_into, _PARTS.split(call.text))} - {
        _whole("", call.cwd)
    }


def _cloned_into(part: str) -> str:
    """The folder of a clone: the last word, or what the address ends with."""
    found = _CLONES.search(part)
    words = [word.strip("\"'") for word in found[1].split() if word[0] != "-"] if found else []
    return posixpath.basename(words[-1].rstrip("/")).removesuffix(".git") if words else ""


def is_own(call: Turn, home: str, fetched: Collection[str] = ()) -> bool:
    """Check whether the answer of a call shows files of the project that begins at `home`.

    `fetched` are folders within it that hold what others wrote.
    """
    place = _Project(home, call.cwd or home, fetched)
    if is_shell(call.tool):
        return _prints_own(call.text, place)
    if call.tool not in _FILE_TOOLS:
        return False
    return bool(call.files) and all(map(place.has, call.files))


class _Project(NamedTuple):
    """A project, and where in it a command runs."""

    home: str
    cwd: str
    fetched: Collection[str]

    def has(self, path: str) -> bool:
        """Check whether a path lies in the project and not in a folder of others."""
        plain = path.replace("\\", "/")
        if plain.startswith("~") or "://" in plain or "$" in plain:
            return False
        root, whole = _whole("", self.home), _whole(plain, self.cwd)
        is_inside = whole == root or whole.startswith(f"{root.rstrip('/')}/")
        is_fetched = any(whole == place or whole.startswith(f"{place}/") for place in self.fetched)
        return is_inside and not is_fetched and not _OTHERS.search(whole.removeprefix(root))


def _whole(path: str, cwd: str) -> str:
    return posixpath.normpath(posixpath.join(cwd.replace("\\", "/") or "/", path))


def _prints_own(command: str, place: _Project) -> bool:
    """Check whether all that a command line prints are files of the project."""
    if _SUBSTITUTES.search(command):
        return False
    for part in filter(None, map(str.strip, _PARTS.split(command))):
        words = [word.strip("\"'") for word in part.split()]
        if words[0] == "cd":
            place = place._replace(cwd=_whole(words[-1], place.cwd))
        if not _prints_file(part, words, place):
            return False
    return bool(command.strip())


def _prints_file(part: str, words: Sequence[str], place: _Project) -> bool:
    """Check whether one command prints nothing, or files of the project only."""
    if words[0] == "git":
        return place.has(place.cwd) and _OWN_GIT.match(part) is not None
    if words[0] not in _PRINTS and words[0] not in _SAYS_NOTHING:
        return False
    return all(place.has(word) for word in (".", *words[1:]) if not word.startswith("-"))
