"""At an error: what mended the same error before, in a line or a few.

What resolved this very error in an earlier session, what is known of the rules that a linter names
in the output, or the program that works in place of the one that failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from loki_memory.files.redaction import redact
from loki_memory.index import gate
from loki_memory.injection.before_tool import advice, applies
from loki_memory.injection.gate import Gate, as_hit, is_silent
from loki_memory.injection.line import record_of
from loki_memory.injection.told import note_told, told_lines
from loki_memory.models.diagnostics import findings
from loki_memory.models.error_noise import teaches
from loki_memory.models.error_signature import head, key, signature
from loki_memory.recall.result import Recollection

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace

_LESSONS = 2  # after a failure
_RULES = 4  # of a linter's output that are looked up: one line each


def lesson(
    workspace: OpenWorkspace, error: str, tool: str, target: str, session: str, surface: str
) -> str:
    """The remedies of this very error or of the rules that it names; empty if none is known."""
    error = redact(error)  # as it was stored, and as it may be journaled
    found = signature(error)
    if found is None or is_silent(workspace):
        return ""
    by = head(tool, target, error)
    lessons = known_remedies(workspace, error, f"error:{found.exact}", by)
    lessons = lessons or _exchanges(workspace, error, tool, target)
    known = list(islice(told_lines(Gate(workspace), lessons), _RULES))
    note_told(workspace, known, surface, found.exact, session)
    return "".join(f"{told.text}\n" for told in known)


def known_remedies(workspace: OpenWorkspace, error: str, mark: str, by: str) -> list[Recollection]:
    """Warnings that know an error and its remedy, those first that say in words what to do. One
    about another command counts only where there is no other; then come those about rules of
    linters that the output names. A candidate counts if it knows what mended the error.
    """
    workspace.home.ensure("folders")
    known = [as_hit("anti-pattern", row) for row in gate.lessons(workspace.index, mark, by)]
    own = [hit for hit in known if _is_about(hit.title, by)] or known
    ids = {hit.id for hit in own}
    ruled = [hit for hit in _ruled(workspace, error) if hit.id not in ids]
    return [*own[:_LESSONS], *ruled]


def _exchanges(workspace: OpenWorkspace, error: str, tool: str, command: str) -> list[Recollection]:
    """The warning that another program works in place of the one that failed, if the same message
    was met before, or two sessions needed it.
    """
    met = key(error, tool, command)
    if met is None:
        return []
    for row in gate.command_lessons(workspace.index, met.head):
        hit = as_hit("anti-pattern", row)
        record = record_of(workspace, hit.id)
        is_same = record.get("key", {}).get("template") == met.template
        is_known = hit.evidence > 1 and teaches(error, tool, command)
        advised = advice(record)
        if advised and (is_same or is_known) and applies(advised, command):
            return [hit]
    return []


def _is_about(title: str, command: str) -> bool:
    """Check if a warning names this command, or none."""
    return not title.endswith(")") or "(running " not in title or title.endswith(f" {command})")


def _ruled(workspace: OpenWorkspace, error: str) -> Iterator[Recollection]:
    """Warnings about the rules that an output names, in its order."""
    kinds = dict.fromkeys(finding.kind for finding in findings(error))
    for kind in list(kinds)[:_RULES]:
        for row in gate.rule_lessons(workspace.index, kind):
            yield as_hit("anti-pattern", row)
