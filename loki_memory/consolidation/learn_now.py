"""Learn from an episode at the moment it is recorded, so that the next task has its lesson."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from loki_memory.consolidation.run import Etags, Rewritten, apply, thresholds
from loki_memory.errors import FileChanged
from loki_memory.files.codec import decode
from loki_memory.files.layout import PRIVATE
from loki_memory.index.graph import superseded_by
from loki_memory.models import Belief, Episode, Memory

if TYPE_CHECKING:
    from loki_memory.consolidation.snapshot import Record
    from loki_memory.workspace import Workspace


def learn(workspace: Workspace, new: Sequence[Episode]) -> None:
    """The first phases for episodes that were just recorded: a lesson for the next task.

    Only the beliefs that these episodes speak of are read: what evidence a belief has stands in its
    own file. The features of what it rests on are looked up in the index. Whoever writes meanwhile
    goes first; the next consolidation finds the same.
    """
    from loki_memory.consolidation.features import version
    from loki_memory.consolidation.first_phases import EARLY
    from loki_memory.consolidation.pipeline import consolidate as run
    from loki_memory.consolidation.snapshot import Snapshot

    known = _Known(workspace)
    limits = thresholds(workspace.config)
    ids = frozenset(one.id for one in new)
    first = run(Snapshot(new, thresholds=limits), EARLY, ids)
    beliefs = known.all(sorted({one.id for one in first.put} | _named(new)))
    beliefs += known.all(known.merged_into(one.id for one in beliefs))
    cited = {name for one in beliefs for name in _sources(one)} - ids
    sources = known.episodes(sorted(cited), version(repr(limits)))
    plan = run(Snapshot([*new, *beliefs, *sources], thresholds=limits), EARLY, ids)
    with suppress(FileChanged):
        changed = apply(workspace, plan._replace(archive=()), known.etags)
        _follow(workspace, changed)


def _follow(workspace: Workspace, changed: Mapping[str, Rewritten]) -> None:
    """Tell the next run that it knows these files: the episodes alone are new to it."""
    if changed:
        with workspace.index.change() as change:
            for path, (before, after) in changed.items():
                change.follow(path, before, after or "")


class _Known:
    """Records by id, read from their files, with the etags of these."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._read: dict[str, Memory] = {}
        self.etags: Etags = {}

    def all(self, names: Iterable[str]) -> list[Memory]:
        """Those that there are and that were not read yet."""
        return [one for name in names if name not in self._read and (one := self._one(name))]

    def merged_into(self, names: Iterable[str]) -> list[str]:
        """What was superseded by beliefs, step by step back: its evidence counts for them."""
        found: dict[str, None] = {}
        waiting = list(names)
        while waiting:
            new = superseded_by(self._workspace.index, waiting.pop())
            waiting += [one for one in new if one not in found]
            found |= dict.fromkeys(new)
        return list(found)

    def episodes(self, names: Sequence[str], version: str) -> list[Record]:
        """Episodes as the last run extracted them, and whole where it has not."""
        from loki_memory.consolidation.features import decoded

        kept = dict(self._workspace.index.features_of(names, version))
        left = (name for name in names if name not in kept)
        return [*map(decoded, kept.values()), *self.all(left)]

    def _one(self, name: str) -> Memory | None:
        path = self._workspace.home.place_of(name)
        stored = self._workspace.store.read(path) if path else None
        if path is None or stored is None or path.startswith(PRIVATE):
            return None
        record = decode(path, stored.data)
        self.etags[name] = (path, stored.etag)
        self._read[name] = record
        return record


def _named(episodes: Iterable[Episode]) -> set[str]:
    """The memories that episodes say helped them or not."""
    return {told.id for one in episodes for told in one.recalled if told.helpful is not None}


def _sources(record: Memory) -> list[str]:
    if not isinstance(record, Belief):
        return []
    return [*record.episodes_for(), *record.episodes_against()]
