"""Learn from an episode at the moment it is recorded, so that the next task has its lesson."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from loki_memory.consolidation import run_cache
from loki_memory.consolidation.run import Etags, apply, episode, thresholds
from loki_memory.errors import FileChanged
from loki_memory.files.codec import decode
from loki_memory.files.layout import PRIVATE
from loki_memory.index.graph import superseded_by
from loki_memory.index.queries import episode_outlines
from loki_memory.models import Belief, Episode, Memory

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace


def learn(workspace: Workspace, new: Sequence[Episode]) -> None:
    """The first phases for episodes that were just recorded: a lesson for the next task.

    Only the beliefs that these episodes speak of are read: what evidence a belief has stands in its
    own file. What it rests on is looked up in the index, and read where the words matter: of
    thousands of episodes, the newest few. Whoever writes meanwhile goes first; the next
    consolidation finds the same.
    """
    from loki_memory.consolidation.first_phases import EARLY
    from loki_memory.consolidation.pipeline import consolidate as run
    from loki_memory.consolidation.snapshot import Snapshot, Touched

    known = _Known(workspace)
    limits = thresholds(workspace.config)
    ids = frozenset(one.id for one in new)
    first = run(Snapshot(new, thresholds=limits), EARLY, Touched(ids))
    beliefs = known.all(sorted({one.id for one in first.put} | _named(new)))
    beliefs += known.all(known.merged_into(one.id for one in beliefs))
    cited = {name for one in beliefs for name in _sources(one)} - ids
    sources = [*known.outlines(cited)]
    plan = run(Snapshot([*new, *beliefs, *sources], thresholds=limits), EARLY, Touched(ids))
    with suppress(FileChanged):
        written = apply(workspace, plan._replace(archive=()), known.etags)
        # Who was archived has a say too, and consolidation hears it.
        done = ids if len(sources) == len(cited) else ()
        run_cache.learn(workspace.layout, sorted(done), written.records)


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

    def outlines(self, names: Iterable[str]) -> Iterator[Memory]:
        """Episodes as the index knows them, and whole where it does not know them yet."""
        from loki_memory.consolidation.features import LazyEpisode

        left = set(names)
        for id_, path, at, session, outcome, has_recalled in episode_outlines(
            self._workspace.index, sorted(left)
        ):
            if path.startswith(PRIVATE):
                continue
            left.discard(id_)
            known = {"id": id_, "timestamp": at, "session": session or None, "outcome": outcome}
            nothing: dict[str, list[str]] = {} if has_recalled else {"recalled": []}
            yield LazyEpisode.of(partial(episode, self._workspace, id_), **known, **nothing)
        yield from self.all(sorted(left))

    def _one(self, name: str) -> Memory | None:
        path = self._workspace.place_of(name)
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
