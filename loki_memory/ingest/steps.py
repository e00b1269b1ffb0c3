"""Steps: calls of tools together with how they ended and what was said after them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from loki_memory.files.redaction import clip
from loki_memory.ingest.turns import CALL, RESULT, SAY, Hunk, Turn
from loki_memory.models.error_signature import CHAIN, complaint, head, is_shell

_WORDS, _LABEL = 3, 40  # words and characters that tell a command from others
COMMANDS = re.compile(r"&&|\|\||[;|\n]")  # of a chain or a pipe
# Commands that judge the work: tests, linters, type checks and builds.
CHECKS = re.compile(
    r"\b(?:pytest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|unittest|playwright|"
    r"golangci-lint|eslint|ruff|mypy|pyright|flake8|clippy|tsc|"
    r"(?:go|cargo|npm|pnpm|yarn|bun|mvn|gradle|gradlew|dotnet|mix|swift|make|just|mise|task|rake)"
    r"\s+(?:run\s+)?[\w:-]*(?:test|check|lint|vet|build|verify|typecheck)[\w:-]*)"
)


class Step(NamedTuple):
    """One call of a tool."""

    at: str
    tool: str
    target: str
    files: tuple[str, ...] = ()
    cwd: str = ""
    answer: str = ""
    failed: bool = False
    ended: bool = False  # it was answered at all
    hunks: tuple[Hunk, ...] = ()
    said: tuple[str, ...] = ()  # messages between this call and the next
    is_dictated: bool = False  # the command stood in what a tool printed before

    @property
    def head(self) -> str:
        """`git commit` for a shell's command, else the tool."""
        return head(self.tool, self.target)

    @property
    def label(self) -> str:
        """The tool; of a shell's command line, how the command that the head names was begun."""
        if not self.is_shell:
            return self.tool
        parts = (part for part in CHAIN.split(self.target) if head(self.tool, part) == self.head)
        words = next(parts, self.target).split("|")[0].split()
        return clip(" ".join(words[:_WORDS]), _LABEL)

    @property
    def heads(self) -> list[str]:
        """The heads of all commands of a chain."""
        parts = CHAIN.split(self.target) if self.is_shell else [self.target]
        return [found for part in parts if (found := head(self.tool, part))]

    @property
    def is_shell(self) -> bool:
        return is_shell(self.tool)

    @property
    def worked(self) -> bool:
        return self.ended and not self.failed

    @property
    def met_error(self) -> bool:
        """Check whether it failed by itself: not because another call did, or a person said no."""
        first = self.answer.strip().partition("\n")[0]
        return self.failed and bool(complaint(self.answer) and complaint(first))


def steps(turns: Iterable[Turn]) -> list[Step]:
    """The calls among turns, in their order."""
    found: dict[str, Step] = {}
    last = ""
    for turn in turns:
        if turn.kind == CALL:
            last = turn.call or turn.key
            step = Step(turn.at, turn.tool, turn.text, turn.files, turn.cwd, hunks=turn.hunks)
            found[last] = step._replace(is_dictated=turn.is_dictated)
        elif turn.kind == RESULT and turn.call in found:
            step = found[turn.call]
            found[turn.call] = step._replace(
                answer=turn.text, failed=turn.failed, ended=True, hunks=turn.hunks or step.hunks
            )
        elif turn.kind == SAY and last:
            found[last] = found[last]._replace(said=(*found[last].said, turn.text))
    return list(found.values())


# -- files that steps read and changed, as paths within the project --------------------------------

_READERS = frozenset({"Read", "read_file", "NotebookRead", "view"})
# A worktree holds the project once more; it may lie below it, and its name may have slashes.
_WORKTREE = re.compile(r"(?:.*/)?\.?worktrees/[^/]+/?")
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
    for entry in COMMANDS.split(command):
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
