"""Load the input of a consolidation run: all records, and which of them are new.

Episodes that the last run cached are loaded as features; their files are read on demand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING

from loki_memory.consolidation import run_cache
from loki_memory.consolidation.failures import NONE, setbacks
from loki_memory.consolidation.features import (
    EpisodeFeatures,
    LazyEpisode,
    StatementFeatures,
    episode_features,
    known_gist,
    with_gist,
)
from loki_memory.consolidation.phases import looked_at
from loki_memory.consolidation.run import Etags, Written, episode, thresholds
from loki_memory.consolidation.run_cache import Archived, CacheRow, Quiet, RunCache, Stamp
from loki_memory.consolidation.snapshot import Snapshot, Touched
from loki_memory.errors import InvalidRecord, NotFound
from loki_memory.files.codec import decode
from loki_memory.files.layout import ARCHIVE, PRIVATE, view_kind
from loki_memory.home import parsed
from loki_memory.index import queries
from loki_memory.models import Belief, Episode, Memory
from loki_memory.models.kinds import KINDS

if TYPE_CHECKING:
    from loki_memory.consolidation.pipeline import Plan
    from loki_memory.workspace import Workspace

_READ = tuple(kind for kind in KINDS if kind not in {"ledger", "handoff"})


class RunInput:
    """The records of the project's files, and those that were archived."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._limits = thresholds(workspace.config)
        self._known = run_cache.read(workspace.layout, self._limits)
        self._rows = list(_rows(workspace))
        self._stamps = run_cache.archive_stamps(workspace.layout)
        self._archive: dict[str, Memory] = {}

    def quiet(self, day: str) -> Quiet | None:
        """The last run, if it had nothing to do, and one that is asked for this day has not."""
        last = self._known.quiet
        is_same = last is not None and last.asked == day
        return last if is_same and self._known.is_as_it_was(self._rows, self._stamps) else None

    def etags(self) -> Etags:
        return {one.id: (one.path, one.etag) for one in self._rows}

    @cached_property
    def touched(self) -> Touched | None:
        """What is new; None if everything is to be looked at."""
        return self._known.touched(self._rows, self._stamps) if self._known.program else None

    @cached_property
    def _new(self) -> frozenset[str]:
        """The ids of records that are not as the last run left them."""
        known = self._known.records
        return frozenset(one.id for one in self._rows if known.get(one.id) != one.etag)

    def snapshot(self, day: str) -> Snapshot:
        """Memory as it is."""
        self._archive = dict(self._archived())
        stones = (one.id for one in self._rows if one.kind == "tombstone")
        records = [*self._outlines(), *self._whole()]
        return Snapshot(records, day, stones, self._limits, self._archive.values())

    @cached_property
    def _seen(self) -> dict[str, EpisodeFeatures]:
        """The episodes that are known at a glance, as they are now."""
        known, glances = self._known.records, self._known.glances
        those = (row for row in self._rows if row.id in glances)
        return {row.id: glances[row.id] for row in those if known.get(row.id) == row.etag}

    def _outlines(self) -> Iterator[LazyEpisode]:
        for name, seen in self._seen.items():
            read = partial(episode, self._workspace, name)
            yield LazyEpisode.at(seen, name, read, self._known.setbacks.get(name, NONE))

    def _whole(self) -> Iterator[Memory]:
        """What is not known at a glance."""
        names = [row.id for row in self._rows if row.id not in self._seen]
        for kind, body in queries.bodies(self._workspace.index, names):
            yield self._with_gist(parsed(kind, body))

    def _with_gist(self, record: Memory) -> Memory:
        """A record with what the last run took from its words, if they are the same."""
        known = self._known.gists.get(record.id)
        if known and isinstance(record, Belief) and record.id not in self._new:
            with_gist(record, known)
        return record

    def _archived(self) -> Iterator[tuple[str, Memory]]:
        """What was archived, as far as it can be read: evidence that beliefs still rest on."""
        for path, stamp in self._stamps.items():
            known = self._known.archive.get(path)
            if known and known.seen and known.stamp == stamp:
                read = partial(_from_archive, self._workspace, path)
                yield path, LazyEpisode.at(known.seen, known.id, read, known.wrong)
            else:
                with suppress(InvalidRecord, NotFound):
                    yield path, _from_archive(self._workspace, path)

    def settle(self, before: Snapshot, plan: Plan, written: Written, day: str) -> None:
        """Keep for the next run what this one left behind."""
        changed = {one.id: one for one in plan.put}
        looked = looked_at(before, changed)
        records = {one.id: one.etag for one in self._rows}
        records |= {one.id: one.after for one in written.records}
        for name in plan.archive:
            records.pop(name, None)
        live = {name: changed.get(name) or before.records.get(name) for name in records}
        episodes = [one for one in live.values() if isinstance(one, Episode)]
        is_quiet = not (plan.put or plan.archive or plan.steps)
        after = RunCache(
            program=run_cache.program_of(self._limits),
            records=records,
            glances={one.id: episode_features(one) for one in episodes},
            setbacks={one.id: wrong for one in episodes if (wrong := setbacks(one)) != NONE},
            gists=dict(_gists(live)),
            archive=self._archive_after(before, written),
            clusters=looked.clusters or frozenset(),
            strangers=looked.strangers,
            chance=looked.chance,
            found=looked.found,
            quiet=Quiet(day, plan.day, len(before.episodes)) if is_quiet else None,
        )
        run_cache.write(self._workspace.layout, after)

    def _archive_after(self, before: Snapshot, written: Written) -> dict[str, Archived]:
        stamps = run_cache.stamps_of(self._workspace.layout, written.archived)
        new = {path: before.records[name] for path, name in written.archived.items()}
        found = {**self._archive, **new}
        return {
            path: _archive_entry(stamp, found[path])
            for path, stamp in {**self._stamps, **stamps}.items()
            if path in found
        }


def _gists(records: Mapping[str, Memory | None]) -> Iterator[tuple[str, StatementFeatures]]:
    """What was taken from words by this run or those before."""
    for name, one in records.items():
        known = known_gist(one) if isinstance(one, Belief) else None
        if known:
            yield name, known


def _archive_entry(stamp: Stamp, record: Memory) -> Archived:
    if isinstance(record, Episode):
        return Archived(stamp, record.id, episode_features(record), setbacks(record))
    return Archived(stamp, record.id, None, NONE)


def _rows(workspace: Workspace) -> Iterator[CacheRow]:
    """The records in the project's files."""
    for row in map(CacheRow._make, queries.records(workspace.index, _READ)):
        if not row.path.startswith(PRIVATE) and not view_kind(row.path):
            yield row


def _from_archive(workspace: Workspace, path: str) -> Memory:
    stored = workspace.store.read(path)
    if stored is None:
        raise NotFound(path)
    return decode(path.removeprefix(ARCHIVE), stored.data)
