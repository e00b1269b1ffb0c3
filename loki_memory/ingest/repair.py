"""Repairs: what mended an error, found in what was said and done after it.

A remedy has up to three parts, in this order of worth: a sentence that explains the error or tells
what to do (`repair_words`), the change of a file next to the place that the error names
(`repair_change`), and the command that worked in the end (`repair_command`). A chain of tool names
is no remedy, and neither is a command that only reads.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import NamedTuple

from loki_memory.consolidation.similarity import content
from loki_memory.ingest.repair_change import best_change
from loki_memory.ingest.repair_command import (
    Exchange,
    is_replaced,
    is_same_command,
    left_out,
    substitute,
    working_form,
)
from loki_memory.ingest.repair_words import explains, explanation, tells
from loki_memory.ingest.steps import Step
from loki_memory.models.diagnostics import Diagnostic, rule
from loki_memory.models.error_noise import is_self_explaining, names_what_lacks
from loki_memory.models.error_signature import complaint, states_fault
from loki_memory.models.prompt_injection import dictates

_WITHIN = 40  # steps to the success that ends an error
_WITHOUT = 8  # steps that may explain an error that nothing ended
_COMPLAINT_WORDS = 2  # a message without two words of content complains of nothing in particular
_FRAME = re.compile(r"File \"([^\"\n]+)\", line (\d+)")  # of a Python traceback
_PLACE = re.compile(r"([\w@./+-]*[\w-]\.[a-z]{1,5})(?::(\d+)|\b)")
_PIPE = re.compile(r"(?<!\|)\|(?!\|)")


class Repair(NamedTuple):
    """The remedy of an error; each part is empty if it is unknown."""

    explanation: str = ""
    hunk: str = ""
    command: str = ""
    refused: str = ""  # an option that the error names and the command that worked has not
    exchange: Exchange | None = None  # the program that failed, and the one that worked
    silences: bool = False  # the hunk tells the linter that the code is meant so, and why
    is_general: bool = False  # the hunk can be done in other places too

    def line(self) -> str:
        """The repair in one line; empty if nobody could act on it in another place."""
        example = self.hunk or (f"`{self.command}`" if self.command else "")
        told = self._advice() if self._is_shown_best() else self.explanation
        told = told or self._advice()
        if self.exchange and told == self._advice():
            return told  # any command of the kind would show the same
        if told and example and example not in told:
            end = "" if told.endswith((".", "!", ":")) else "."
            return f"{told}{end} {'' if told.endswith(':') else 'E.g. '}{example}"
        return told or self._bare()

    def _bare(self) -> str:
        """The command that worked, or a change that explains itself."""
        if self.command:
            return f"Run `{self.command}`"
        if not self.hunk or not self.is_general:
            return ""
        line = self.hunk if self.hunk[:1].isalpha() else f"Change {self.hunk}"
        return f"{line[:1].upper()}{line[1:]}"

    def _is_shown_best(self) -> bool:
        """Check if the parts say what to do and the explanation does not."""
        return bool(self.silences or self.exchange) and not tells(self.explanation)

    def _advice(self) -> str:
        """Words for what the parts show."""
        if self.exchange:
            return f"Use `{self.exchange.right}` instead of `{self.exchange.wrong}`."
        if self.refused:
            return f"Leave out `{self.refused}`."
        return "Where the code is meant so, silence the rule and say why:" if self.silences else ""


def repair(steps: Sequence[Step], at: int, finding: Diagnostic | None = None) -> Repair:
    """The repair of the error of the step `at`; `finding` is the part of it that is meant."""
    if not steps[at].is_shell:  # the client's own tools
        return Repair()
    error = finding.message if finding else complaint(steps[at].answer)
    named = rule(error) if finding is None else ""
    finding = Diagnostic(named, error) if named else finding
    if len(content(error)) < _COMPLAINT_WORDS:
        return Repair()
    end = _success(steps, at, error, is_finding=finding is not None)
    last = end or at + 1 + _WITHOUT
    found = Repair(explanation(steps[at:last], error, finding, _after(steps, end, finding)))
    found = _with_change(found, steps, at, last, finding)
    if finding is None or not _is_edited(steps[at + 1 : end]):
        found = _with_command(found, steps, at, end)
    words = found.explanation
    has_shown = found.hunk or found.command or (tells(words) and explains(words, error))
    is_idle = finding is not None and not has_shown
    return Repair() if is_idle else found  # a rule is met again, where only what to do helps


def _is_edited(steps: Sequence[Step]) -> bool:
    """Check if files were changed by hand: then this mended a compiler's complaint."""
    return any(step.worked and step.hunks for step in steps)


def _with_change(
    found: Repair, steps: Sequence[Step], at: int, last: int, finding: Diagnostic | None
) -> Repair:
    error = finding.message if finding else complaint(steps[at].answer)
    place = finding or _named_file(steps[at])
    if place and not place.rule and _is_own_script(steps[:at], place):
        return found  # a slip in a file that was written a moment ago
    change = best_change(steps[at + 1 : last], error, place)
    if change is None:
        return found
    is_general = change.is_general and finding is not None and not is_self_explaining(error)
    return found._replace(hunk=change.text, silences=change.silences, is_general=is_general)


def _is_own_script(before: Sequence[Step], place: Diagnostic) -> bool:
    """Check if a file was written whole before its error was met."""
    name = posixpath.basename(place.path)
    written = (path for step in before if step.tool == "Write" for path in step.files)
    return any(posixpath.basename(path) == name for path in written)


def _with_command(found: Repair, steps: Sequence[Step], at: int, end: int) -> Repair:
    """The repair with the command that worked: in another form, or another one for the same."""
    failed, error = steps[at], complaint(steps[at].answer)
    later = [step for step in steps[at + 1 : at + 1 + _WITHIN] if has_worked(step)]
    form = working_form(failed, steps[at + 1 : end], steps[end], error) if end else None
    form = form or substitute(failed, later, error)
    if form is None or _is_dictated(form.command, failed, steps[at + 1 : at + 1 + _WITHIN]):
        return found
    if names_what_lacks(error) and form.exchange is None:
        return found  # the command gave it, as the error says
    refused = left_out(error, failed.target, form.command)
    if refused and not is_replaced(refused, failed.target, form.command):
        return found  # that an unknown option has to go is what the error says
    return found._replace(command=form.command, exchange=form.exchange, refused=refused)


def _is_dictated(command: str, failed: Step, later: Sequence[Step]) -> bool:
    """Check if what a tool printed chose a command, or what the command brings in."""
    if dictates(failed.answer, failed.target, command):
        return True
    is_other = command.split()[:1] != failed.target.split()[:1]
    return is_other and any(step.is_dictated and command in step.target for step in later)


def _after(steps: Sequence[Step], end: int, finding: Diagnostic | None) -> Sequence[str]:
    """The message right after the success; of a report with several findings it tells too much."""
    return steps[end].said[:1] if end and finding else ()


def _named_file(step: Step) -> Diagnostic | None:
    """The file, and perhaps the line, that an error names: of a traceback the last."""
    frames = _FRAME.findall(step.answer)
    if frames:
        path, line = frames[-1]
        return Diagnostic("", "", path, int(line))
    found = _PLACE.search(step.answer)
    return Diagnostic("", "", found[1], int(found[2] or 0)) if found else None


def _success(steps: Sequence[Step], at: int, error: str, *, is_finding: bool) -> int:
    """The first later step that does the same and no longer complains; 0 if there is none."""
    for end in range(at + 1, min(len(steps), at + 1 + _WITHIN)):
        later = steps[end]
        has_ended = has_worked(later) or (is_finding and later.ended)
        if has_ended and _is_same(steps[at], later) and error not in later.answer:
            return end
    return 0


def has_worked(step: Step) -> bool:
    """Check that a step succeeded; of a pipe, the last program's status says nothing."""
    is_hidden = step.is_shell and _PIPE.search(step.target) and states_fault(step.answer)
    return step.worked and not is_hidden


def _is_same(failed: Step, later: Step) -> bool:
    return failed.tool == later.tool and is_same_command(failed, later)
