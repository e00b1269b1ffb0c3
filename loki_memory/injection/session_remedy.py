"""An error that comes again in one session: what mended it before, though nothing is learned yet.

A session becomes an episode once it has ended. Until then its turns are staged, and say what mended
an error an hour ago. Only an error that was mended since it was last met is told: to an agent that
goes in circles nothing new would be said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from loki_memory.ingest.repair import repair
from loki_memory.ingest.steps import Step, steps
from loki_memory.injection.line import BulletLine, bullet, tellable
from loki_memory.models.diagnostics import findings
from loki_memory.models.error_signature import complaint, signature
from loki_memory.models.prompt_injection import without_instructions

if TYPE_CHECKING:
    from loki_memory.ingest.turns import Turn
    from loki_memory.models.diagnostics import Diagnostic

_NOTE = "met and mended earlier in this session"


def session_remedy(turns: Iterable[Turn], error: str) -> str:
    """The line that says what mended an error earlier; empty if it is new, or was not mended."""
    done = steps(turns)
    rules = {finding.kind: finding for finding in findings(error)}
    known = signature(error)
    for at in range(len(done) - 1, -1, -1):
        if done[at].met_error and _is_same(done[at], known and known.broad, rules):
            return _line(done, at, error)
    return ""


def _is_same(step: Step, broad: str | None, rules: dict[str, Diagnostic]) -> bool:
    if any(finding.kind in rules for finding in findings(step.answer)):
        return True
    known = signature(step.answer)
    return not rules and known is not None and known.broad == broad


def _line(done: Sequence[Step], at: int, error: str) -> str:
    if not any(later.worked and later.head == done[at].head for later in done[at + 1 :]):
        return ""
    kinds = {finding.kind for finding in findings(error)}
    met = next((each for each in findings(done[at].answer) if each.kind in kinds), None)
    mended = repair(done, at, met).line() or repair(done, at).line()
    said = without_instructions(complaint(error))
    text = tellable("error", {}, f"{said} -> {mended}") if said and mended else ""
    told = bullet(BulletLine("", "error", text, _NOTE)) if text else ""
    return f"{told}\n" if told else ""
