"""Files that steps read and changed, as paths within the project."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from loki_memory.ingest.steps import Step

_READERS = frozenset({"Read", "read_file", "NotebookRead", "view"})
# A worktree holds the project once more; it may lie below it, and its name may have slashes.
_WORKTREE = re.compile(r"(?:.*/)?\.?worktrees/[^/]+/?")
_COMMANDS = re.compile(r"&&|\|\||[;|\n]")
_WRITES = re.compile(
    r"(?:git\s+)?(?:mv|rm)\s|git\s+add\s|(?:cp|touch|tee)\s|sed\s+(?:-\w+\s+)*-i|\S+fmt\s.*-w"
)
_INTO = re.compile(r"(?<![0-9&>])>{1,2}\s*([^\s&|;<>]+)")
_PATH = re.compile(r"[\w@./+-]*[\w@+-]\.[A-Za-z]\w{0,9}")  # a name with an ending
_QUOTES = "'\""


class TouchedFiles(NamedTuple):
    """Paths within the project, each once, in the order in which they came."""

    read: list[str]
    changed: list[str]

    def all(self) -> list[str]:
        return list(dict.fromkeys([*self.read, *self.changed]))


def touched(steps: Sequence[Step], home: str) -> TouchedFiles:
    """Return what the steps that worked read and changed; `home` is where the session began."""
    read: dict[str, None] = {}
    changed: dict[str, None] = {}
    roots = _roots(steps, home)
    for step in steps:
        if step.worked:
            names = _written(step.target) if step.is_shell else step.files
            paths = filter(None, (_inside(name, step.cwd or home, roots) for name in names))
            (read if step.tool in _READERS else changed).update(dict.fromkeys(paths))
    return TouchedFiles(list(read), list(changed))


def localised(steps: Sequence[Step], home: str) -> list[Step]:
    """Steps on files of the project, named as everybody who works on it names them."""
    roots = _roots(steps, home)
    return [
        step._replace(target=_inside(step.target, step.cwd or home, roots) or step.target)
        if step.target in step.files
        else step
        for step in steps
    ]


def _roots(steps: Iterable[Step], home: str) -> list[str]:
    """Folders that hold the project, the innermost first: where the session began, worktrees."""
    folders = {_plain(step.cwd) for step in steps if _WORKTREE.match(_plain(step.cwd))}
    outer = {
        folder for folder in folders if not any(folder.startswith(f"{other}/") for other in folders)
    }
    return sorted({_plain(home), *outer} - {""}, key=lambda folder: (-len(folder), folder))


def _plain(folder: str) -> str:
    return folder.replace("\\", "/").rstrip("/")


def _written(command: str) -> Iterator[str]:
    """Names of files that a command line writes, moves, removes, or gives to git."""
    for entry in _COMMANDS.split(command):
        if _WRITES.match(entry.strip()):
            words = (word.strip(_QUOTES) for word in entry.split()[1:])
            yield from (word for word in words if _PATH.fullmatch(word))
        yield from (name.strip(_QUOTES) for name in _INTO.findall(entry) if _PATH.fullmatch(name))


def _inside(name: str, cwd: str, roots: Sequence[str]) -> str:
    """A path relative to the project; empty if it lies elsewhere.

    A transcript may tell its folders relative to one that it does not name, and files likewise.
    """
    plain = posixpath.normpath(name.replace("\\", "/"))
    whole = posixpath.normpath(posixpath.join(_plain(cwd), plain))
    for root in map(posixpath.normpath, roots):
        found = next((path for path in (plain, whole) if path.startswith(f"{root}/")), "")
        if found:
            return _WORKTREE.sub("", found.removeprefix(f"{root}/"))
    return ""
