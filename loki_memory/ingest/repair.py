"""Repairs: what an agent did about an error, found in the steps that followed it.

The first later success of the same command, or of the same tool (on the same file, if it changes
files), tells it: in another form, the form that worked is the remedy; in the same form, what was
done in between.
"""

from __future__ import annotations

from collections.abc import Sequence

from loki_memory.files.redaction import clip
from loki_memory.ingest.step import Step

_WITHIN = 25  # steps: what succeeds later belongs to something else
_BETWEEN = 3  # of the steps that led to it
_SHOWN = 200  # characters of a command
_CHANGE_FILES = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit", "apply_patch"})


def resolution(steps: Sequence[Step], at: int) -> str:
    """What resolved the error of the step `at`; empty if nothing did."""
    failed = steps[at]
    for end in range(at + 1, min(len(steps), at + 1 + _WITHIN)):
        if steps[end].worked and _is_same(failed, steps[end]):
            return _told(steps[at + 1 : end], failed, steps[end])
    return ""


def _is_same(failed: Step, later: Step) -> bool:
    if failed.tool != later.tool:
        return False
    if failed.is_shell:  # of a chain, what failed stands first or last
        heads = failed.heads
        return not {*heads[:1], *heads[-1:]}.isdisjoint(later.heads)
    return failed.tool not in _CHANGE_FILES or failed.files == later.files


def _told(between: Sequence[Step], failed: Step, later: Step) -> str:
    done = [step.head for step in between if step.worked and step.head != later.head]
    names = list(dict.fromkeys(reversed(done)))[:_BETWEEN][::-1]
    if not failed.is_shell:
        return ", then ".join([*names, later.tool]) if names else ""
    if later.target != failed.target:
        return clip(" ".join(later.target.split()), _SHOWN)
    return ", then ".join([*names, "the same command"]) if names else ""
