"""Retention of tracked episodes: the work of `gc`, by the days that `forget` knows.

Consolidation thins the episodes of this machine as they grow old. Those that git tracks it leaves
alone, because a feature branch that learns something should change no old files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from loki_memory.consolidation import pipeline
from loki_memory.consolidation.archive import forget
from loki_memory.consolidation.features import EpisodeFeatures
from loki_memory.consolidation.input import read_input
from loki_memory.consolidation.publish import Placed, RecordWrite
from loki_memory.consolidation.run import apply, follow

if TYPE_CHECKING:
    from loki_memory.consolidation.input import RunInput
    from loki_memory.homes import OpenWorkspace


class Retained(NamedTuple):
    """The tracked episodes that were summarised, and those that went to the archive."""

    summarised: list[str]  # ids
    archived: list[str]  # ids


def retain(workspace: OpenWorkspace, *, day: str = "", dry_run: bool = False) -> Retained:
    """Summarise and archive old tracked episodes, as of a day or of the newest episode."""
    workspace.home.before_write()
    workspace.home.ensure("edits")
    found = read_input(workspace, day, leave_tracked=False)
    plan = pipeline.consolidate(found.snapshot, (("forget", forget),))
    placed = _placed(plan, found)
    if placed.ids and not dry_run:
        changed = apply(workspace, plan, placed)
        workspace.home.wrote()
        follow(workspace, changed)
        workspace.home.flush()
    summarised = sorted(write.record.id for write in placed.writes)
    return Retained(summarised, sorted(placed.ids.difference(summarised)))


def _placed(plan: pipeline.Plan, found: RunInput) -> Placed:
    """The files of tracked episodes that a plan changes."""
    before, files = found.snapshot.records, found.files.shared

    def is_tracked(name: str) -> bool:
        return name in files and isinstance(before.get(name), EpisodeFeatures)

    gone = [name for name in plan.archive if is_tracked(name)]
    writes = [
        RecordWrite(files[record.id][0], record, files[record.id][1])
        for record in plan.put
        if is_tracked(record.id) and record.id not in gone
    ]
    ids = frozenset((*gone, *(write.record.id for write in writes)))
    return Placed(writes, [files[name][0] for name in gone], ids, [], frozenset())
