"""Repairs: what mended an error, found in what was said and done after it.

The error of a command is mended by another command (`repair_command`), or explained in a sentence
(`repair_words`). The rule of a linter is met again in other places: told are words that say what to
do there, how the rule was silenced with a reason, and a change (`repair_change`) only as what it
was, an example of its place. A chain of tool names is no remedy, and neither is a command that only
reads.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from loki_memory.consolidation.failures import SILENCE
from loki_memory.consolidation.similarity import content
from loki_memory.ingest.repair_change import SILENCES, CodeChange, best_change
from loki_memory.ingest.repair_command import (
    Exchange,
    is_replaced,
    is_same_command,
    left_out,
    substitute,
    working_form,
)
from loki_memory.ingest.repair_words import explanation
from loki_memory.ingest.steps import Step
from loki_memory.models.diagnostics import Diagnostic, rule
from loki_memory.models.error_noise import (
    is_of_own_script,
    is_self_explaining,
    names_what_lacks,
)
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
    command: str = ""
    change: CodeChange | None = None
    refused: str = ""  # an option that the error names and the command that worked has not
    exchange: Exchange | None = None  # the program that failed, and the one that worked

    @property
    def hunk(self) -> str:
        """The change, with the name of its file."""
        return f"{self.change.text} ({self.change.file})" if self.change else ""

    def line(self) -> str:
        """The repair in one line; empty if nobody could act on it in another place."""
        if self.exchange:  # any command of the kind would show the same
            return f"Use `{self.exchange.right}` instead of `{self.exchange.wrong}`."
        if self.change and (self.change.silences or self.change.is_transferable):
            return self._with_change(self.change)
        told = self.explanation or (f"Leave out `{self.refused}`." if self.refused else "")
        if not told:
            return f"Run `{self.command}`" if self.command else ""
        is_shown = not self.command or self.command in told
        return told if is_shown else _with_example(told, f"`{self.command}`")

    def _with_change(self, change: CodeChange) -> str:
        told = self.explanation
        if told:
            is_example = bool(SILENCES.search(told)) == change.silences
            return _with_example(told, self.hunk) if is_example else told
        if change.silences:
            return f"{SILENCE}, e.g. {self.hunk}"
        return f"Mended before, e.g. in {change.file}: {change.text}"


def _with_example(told: str, example: str) -> str:
    return f"{told}{'' if told.endswith(('.', '!')) else '.'} E.g. {example}"


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
    between = steps[at + 1 : end or at + 1 + _WITHOUT]
    said = [steps[at], *between]
    if finding is None:
        is_own = is_of_own_script(error, steps[at].target)
        change = best_change(between, _named_place(steps[at].answer, error))
        change = change and change._replace(silences=False, is_transferable=False)
        found = Repair("" if is_own else explanation(said, error, None), change=change)
        return _with_command(found, steps, at, end)
    found = Repair(explanation(said, error, finding))
    change = best_change(between, finding)
    if change and change.is_transferable and is_self_explaining(error):
        change = change._replace(is_transferable=False)
    if end and _is_edited(between):
        return found._replace(change=change)
    return _with_command(found._replace(change=change), steps, at, end)


def _named_place(answer: str, error: str) -> Diagnostic:
    """The file, and perhaps the line, that an error names: of a traceback the last."""
    frames = _FRAME.findall(answer)
    if frames:
        path, line = frames[-1]
        return Diagnostic("", error, path, int(line))
    found = _PLACE.search(answer)
    return Diagnostic("", error, found[1], int(found[2] or 0)) if found else Diagnostic("", error)


def _is_edited(steps: Sequence[Step]) -> bool:
    """Check if files were changed by hand: then this mended a compiler's complaint."""
    return any(step.worked and step.hunks for step in steps)


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
