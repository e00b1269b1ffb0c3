"""Files that steps read and changed, as paths within the project.

What a shell's command changes is told by the command, where it names files: `mv`, `rm`, `sed -i`,
what stands behind `>`. A path outside the folder in which the session began is no file of the
project and is left out.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from loki_memory.ingest.step import Step

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


class Touched(NamedTuple):
    """Paths within the project, each once, in the order in which they came."""

    read: list[str]
    changed: list[str]

    def all(self) -> list[str]:
        return list(dict.fromkeys([*self.read, *self.changed]))


def touched(steps: Sequence[Step], home: str) -> Touched:
    """What the steps that worked read and changed; `home` is where the session began."""
    read: dict[str, None] = {}
    changed: dict[str, None] = {}
    roots = _roots(steps, home)
    for step in steps:
        if step.worked:
            names = _written(step.target) if step.is_shell else step.files
            paths = filter(None, (_inside(name, step.cwd or home, roots) for name in names))
            (read if step.tool in _READERS else changed).update(dict.fromkeys(paths))
    return Touched(list(read), list(changed))


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
    outer = {one for one in folders if not any(one.startswith(f"{other}/") for other in folders)}
    return sorted({_plain(home), *outer} - {""}, key=lambda one: (-len(one), one))


def _plain(folder: str) -> str:
    return folder.replace("\\", "/").rstrip("/")


def _written(command: str) -> Iterator[str]:
    """Names of files that a command line writes, moves, removes, or gives to git."""
    for one in _COMMANDS.split(command):
        if _WRITES.match(one.strip()):
            words = (word.strip(_QUOTES) for word in one.split()[1:])
            yield from (word for word in words if _PATH.fullmatch(word))
        yield from (name.strip(_QUOTES) for name in _INTO.findall(one) if _PATH.fullmatch(name))


def _inside(name: str, cwd: str, roots: Sequence[str]) -> str:
    """A path relative to the project; empty if it lies elsewhere."""
    whole = posixpath.normpath(posixpath.join(_plain(cwd), name.replace("\\", "/")))
    for root in roots:
        if whole.startswith(f"{root}/"):
            return _WORKTREE.sub("", whole.removeprefix(f"{root}/"))
    return ""
