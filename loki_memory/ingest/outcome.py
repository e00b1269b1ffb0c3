"""The outcome of an episode, judged from what was seen: nobody's word is taken for it but the
user's.

What the user says next decides; then whether the last run of the tests (or linter, or build)
passed; then whether the work was committed. Where none of these speaks, the outcome is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from loki_memory.ingest.step import Step

CHECKS = re.compile(
    r"\b(?:pytest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|unittest|playwright|"
    r"golangci-lint|eslint|ruff|mypy|pyright|flake8|clippy|tsc|"
    r"(?:go|cargo|npm|pnpm|yarn|bun|mvn|gradle|gradlew|dotnet|mix|swift|make|just|mise|task|rake)"
    r"\s+(?:run\s+)?[\w:-]*(?:test|check|lint|vet|build|verify|typecheck)[\w:-]*)"
)
_COMMIT = re.compile(r"\bgit\b[^|;&\n]*\bcommit\b")
_COMMITTED = re.compile(r"\[[\w./+-]+(?: \([\w -]+\))? ([0-9a-f]{7,40})\]")
_GOOD = re.compile(
    r"\W*(?:(?:ok(?:ay)?|yes|yeah)\W+)?"
    r"(?:thanks?\b|thank you|perfect|great|awesome|excellent|lgtm|nice\b|well done|works\b"
    r"|looks? (?:good|great)|(?:that|this|it)(?:'s| is)? (?:works|worked|good|great|perfect)"
    r"|(?:please )?commit\b|(?:let'?s |please |can you )(?:now )?commit|ship it"
    r"|(?:create|open|make) (?:a |the )?(?:pr|pull request)\b)",
    re.IGNORECASE,
)
_NOT = r"(?:still|(?:still )?(?:does ?n[o']t|did ?n[o']t|is ?n[o']t|not))"
_BAD = re.compile(
    r"\W*(?:(?:no|nope|hmm+|wrong|undo|revert)\b"
    rf"|(?:(?:it|that|this|the [\w ]{{1,30}}?) )?(?:is |are )?{_NOT} "
    r"(?:fail|work|broken|right|correct|pass|what|the same|see|get|help)"
    r"|(?:i'?m |i )?(?:still )?(?:get|getting|see|seeing) (?:an?|the|this) (?:same )?"
    r"(?:error|issue)"
    r"|that broke|you broke|(?:the |that )?(?:tests?|lint|build|ci)\b[\w ]{0,20}\bfail)",
    re.IGNORECASE,
)


def judged(steps: Sequence[Step], following: str, *, stopped: bool) -> str:
    """success, failure, partial or unknown."""
    said = _said(following)
    if said:
        return said
    checks = [step for step in steps if step.is_shell and step.ended and _is_check(step)]
    passed = checks[-1].worked if checks else None
    if stopped:
        return "partial" if passed is not False else "failure"
    if passed is False:
        return "partial" if commit(steps) else "failure"
    return "success" if passed or commit(steps) else "unknown"


def commit(steps: Sequence[Step]) -> str:
    """The last commit that the steps made; empty if they made none."""
    for step in reversed(steps):
        if step.worked and step.is_shell and _COMMIT.search(step.target):
            found = _COMMITTED.search(step.answer)
            if found:
                return found[1]
    return ""


def _said(following: str) -> str:
    if _BAD.match(following):
        return "failure"
    return "success" if _GOOD.match(following) else ""


def _is_check(step: Step) -> bool:
    return CHECKS.search(step.target) is not None
