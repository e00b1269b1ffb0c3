"""Merge what says the same, and nothing else: one phase of consolidation by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from loki_memory.consolidation.snapshot import BeliefChange
    from loki_memory.homes import OpenWorkspace


class Deduplicated(NamedTuple):
    """The beliefs that say the same as another one, each with the one that stays."""

    merged: list[BeliefChange]
    written: int  # files
    planned: bool


def dedupe(workspace: OpenWorkspace, *, plan_only: bool = False) -> Deduplicated:
    """Let one of the beliefs that say the same stand for all; the others are kept, superseded."""
    from loki_memory.consolidation import pipeline
    from loki_memory.consolidation.input import read_input
    from loki_memory.consolidation.merge import merge
    from loki_memory.consolidation.run import apply, follow, publishing

    workspace.home.ensure("edits")
    found = read_input(workspace, "")
    plan = pipeline.consolidate(found.snapshot, (("merge", merge),))
    placed = publishing(workspace, found.snapshot, found.files, "news").placed(plan)
    if not plan_only:
        changed = apply(workspace, plan, placed)
        workspace.home.wrote()
        follow(workspace, changed)
    merged = [step for step in plan.steps if step.id in placed.ids]
    return Deduplicated(merged, len(placed.writes), plan_only)
