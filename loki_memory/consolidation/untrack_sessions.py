"""Take captured sessions out of git: their episodes move to the local zone of this machine.

For workspaces from the time when sessions were tracked, and for those that change their mind.
Beliefs that rest on these episodes are completed, so that other clones can still weigh them.
Episodes that a person or an agent recorded on purpose stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.consolidation.features import episode_features
from loki_memory.consolidation.publish import mark
from loki_memory.errors import InvalidRecord
from loki_memory.files.codec import decode
from loki_memory.files.layout import ARCHIVE, PRIVATE, archived_path, place
from loki_memory.files.scan import archived
from loki_memory.index import queries
from loki_memory.models import Belief, Episode

if TYPE_CHECKING:
    from loki_memory.files.store import Change
    from loki_memory.homes import OpenWorkspace


class Untracked(NamedTuple):
    """The episodes that left git, and the beliefs that were completed."""

    episodes: list[str]  # ids
    completed: list[str]  # ids


def untrack_sessions(workspace: OpenWorkspace, *, dry_run: bool) -> Untracked:
    """Move every captured episode that git may track to the local zone."""
    workspace.home.before_write()
    workspace.home.ensure("edits")
    with workspace.store.change() as change:
        moved = {episode.id: episode for episode in _moved(workspace, change, dry_run=dry_run)}
        completed = [*_completed(workspace, change, moved, dry_run=dry_run)]
    return Untracked(sorted(moved), sorted(completed))


def _moved(workspace: OpenWorkspace, change: Change, *, dry_run: bool) -> Iterator[Episode]:
    shared = [path for _, path in workspace.index.places("episode")]
    shared += list(archived(workspace.layout))
    for path in shared:
        if path.startswith(PRIVATE):
            continue
        original = path.removeprefix(ARCHIVE)
        stored = change.read(path)
        with suppress(InvalidRecord):
            record = decode(original, stored.data) if stored else None
            if isinstance(record, Episode) and record.captured:
                if not dry_run:
                    private = record.changed(scope="local")
                    target = place(private)
                    change.put(private, target if path == original else archived_path(target))
                    change.remove(path)
                yield record


def _completed(
    workspace: OpenWorkspace, change: Change, moved: dict[str, Episode], *, dry_run: bool
) -> Iterator[str]:
    """Say in each tracked belief what others must know of episodes that they will not have."""
    kinds = ("pattern", "anti-pattern", "fact")
    for name, path, _, _ in queries.records(workspace.index, kinds):
        belief = None if path.startswith(PRIVATE) else change.record(path)
        if not isinstance(belief, Belief):
            continue
        gone = {*belief.rests_on(), *belief.episodes_against()} & moved.keys()
        if gone:
            marks = {entry: mark(episode_features(moved[entry])) for entry in sorted(gone)}
            evidence = belief.evidence.model_dump(mode="json", exclude_unset=True)
            known = evidence.get("episodes", {})
            if not dry_run:
                both = dict(sorted({**known, **marks}.items()))
                change.put(belief.changed(evidence={**evidence, "episodes": both}), path)
            yield name
