"""Steps: calls of tools together with how they ended and what was said after them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from loki_memory.files.redaction import clip
from loki_memory.ingest.turns import CALL, RESULT, SAY, Hunk, Turn
from loki_memory.models.error_signature import complaint, head, is_shell

_WORDS, _LABEL = 3, 40  # words and characters that tell a command from others
_CHAIN = re.compile(r"&&|\|\||[;\n]")
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
        parts = (part for part in _CHAIN.split(self.target) if head(self.tool, part) == self.head)
        words = next(parts, self.target).split("|")[0].split()
        return clip(" ".join(words[:_WORDS]), _LABEL)

    @property
    def heads(self) -> list[str]:
        """The heads of all commands of a chain."""
        parts = _CHAIN.split(self.target) if self.is_shell else [self.target]
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
