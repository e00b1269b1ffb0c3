"""Learn from an episode at the moment it is recorded, so that the next task has its lesson."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from loki_memory.consolidation.publish import Files, Reach, candidate, joined
from loki_memory.consolidation.run import apply, follow, publishing
from loki_memory.consolidation.snapshot import Thresholds
from loki_memory.errors import FileChanged
from loki_memory.files.codec import decode
from loki_memory.files.layout import PRIVATE
from loki_memory.index.graph import superseded_by
from loki_memory.models import Belief, Episode, Memory

if TYPE_CHECKING:
    from loki_memory.consolidation.snapshot import Record
    from loki_memory.homes import OpenWorkspace


def learn(workspace: OpenWorkspace, new: Sequence[Episode], reach: Reach = "news") -> None:
    """The first phases for episodes that were just recorded: a lesson for the next task.

    Only the beliefs that these episodes speak of are read: what evidence a belief has stands in its
    own file. The features of what it rests on are looked up in the index. Whoever writes meanwhile
    goes first; the next consolidation finds the same.
    """
    from loki_memory.consolidation.features import version
    from loki_memory.consolidation.phases import consolidate as run
    from loki_memory.consolidation.phases import first_phases
    from loki_memory.consolidation.snapshot import Snapshot
    from loki_memory.index.gate import rejected_values

    known = _KnownBeliefs(workspace)
    limits = Thresholds.of(workspace.config)
    ids = frozenset(episode.id for episode in new)
    rejected = rejected_values(workspace.index)
    first = run(Snapshot(new, rejected=rejected, thresholds=limits), first_phases(), ids)
    beliefs = known.all(sorted({memory.id for memory in first.put} | _named(new)))
    beliefs += known.all(known.merged_into(belief.id for belief in beliefs))
    cited = {name for belief in beliefs for name in _sources(belief)} - ids
    sources = known.episodes(sorted(cited), version(repr(limits)))
    records = [*new, *beliefs, *sources]
    snapshot = Snapshot(records, rejected=rejected, thresholds=limits)
    plan = run(snapshot, first_phases(), ids)._replace(archive=())
    private = frozenset(episode.id for episode in (*new, *sources) if known.is_private(episode))
    files = known.files._replace(private=private)
    with suppress(FileChanged):
        placed = publishing(workspace, snapshot, files, reach).placed(plan)
        changed = apply(workspace, plan, placed)
        follow(workspace, changed)


class _KnownBeliefs:
    """Records by id, read from their files, with the etags of these."""

    def __init__(self, workspace: OpenWorkspace) -> None:
        self._workspace = workspace
        self._read: dict[str, Memory] = {}
        self.files = Files({}, {}, frozenset(), {}, {})

    def all(self, names: Iterable[str]) -> list[Memory]:
        """Return those that there are and that were not read yet."""
        return [entry for name in names if name not in self._read and (entry := self._one(name))]

    def merged_into(self, names: Iterable[str]) -> list[str]:
        """Beliefs that these superseded, step by step back: their evidence counts."""
        found: dict[str, None] = {}
        waiting = list(names)
        while waiting:
            new = superseded_by(self._workspace.index, waiting.pop())
            waiting += [name for name in new if name not in found]
            found |= dict.fromkeys(new)
        return list(found)

    def episodes(self, names: Sequence[str], version: str) -> list[Record]:
        """Episodes as the last run extracted them, and whole where it has not."""
        from loki_memory.consolidation.features import decoded

        kept = dict(self._workspace.index.features_of(names, version))
        left = (name for name in names if name not in kept)
        return [*map(decoded, kept.values()), *self.all(left)]

    def is_private(self, episode: Episode | Record) -> bool:
        """Check whether an episode is on this machine only."""
        if isinstance(episode, Episode):
            return episode.scope == "local"
        return (self._workspace.index.path_of(episode.id) or "").startswith(PRIVATE)

    def _one(self, name: str) -> Memory | None:
        path = self._workspace.home.place_of(name)
        record = self._in_file(path) if path else None
        if path and record and isinstance(record, Belief) and not path.startswith(PRIVATE):
            here = self._in_file(PRIVATE + path)
            if isinstance(here, Belief):
                self.files.published[name] = record
                record = joined(record, here)
        if record:
            self._read[name] = record
        return record

    def _in_file(self, path: str) -> Memory | None:
        """A record as phases see it; nothing if it is a private note, which takes no part."""
        stored = self._workspace.store.read(path)
        if stored is None:
            return None
        record = decode(path, stored.data)
        if not path.startswith(PRIVATE):
            self.files.shared[record.id] = (path, stored.etag)
            return record
        if isinstance(record, Episode):
            return record if record.captured else None
        if "key" not in (record.model_extra or {}):
            return None
        record, self.files.once[record.id] = candidate(record)
        self.files.local[record.id] = (path, stored.etag)
        return record


def _named(episodes: Iterable[Episode]) -> set[str]:
    """The memories that episodes say helped them or not."""
    return {
        told.id for episode in episodes for told in episode.recalled if told.helpful is not None
    }


def _sources(record: Memory) -> list[str]:
    if not isinstance(record, Belief):
        return []
    return [*record.episodes_for(), *record.episodes_against()]
