"""Load the input of a consolidation run: memory as it is, episodes as their features.

The index keeps the files as the last run left them, with the features of episodes. Only episodes
that are new are read whole, and those that are due for a summary, which is made from the whole. If
nothing but additions happened since, the run looks at what is new; else, and without the index, it
looks at everything, with the same result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.consolidation.archive import summarised
from loki_memory.consolidation.features import (
    EpisodeFeatures,
    decoded,
    encoded,
    episode_features,
    version,
)
from loki_memory.consolidation.provenance import day_before, extra
from loki_memory.consolidation.publish import Files, Rewritten, candidate, joined
from loki_memory.consolidation.snapshot import Record, Snapshot, Thresholds, Touched
from loki_memory.errors import InvalidRecord
from loki_memory.files.codec import decode
from loki_memory.files.layout import ARCHIVE, PRIVATE, view_kind
from loki_memory.files.scan import archived
from loki_memory.home import parsed
from loki_memory.index import queries
from loki_memory.index.gate import rejected_values
from loki_memory.index.revision import FeatureRow
from loki_memory.models import Belief, Episode, Memory
from loki_memory.models.kinds import KINDS

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace
    from loki_memory.index.index import Index

_READ = tuple(kind for kind in KINDS if kind not in {"ledger", "handoff"})


# What may be added without touching what was there: all else is looked at with everything.
_ADDED = frozenset({"episode", "fact", "link", "learning"})
_LAST_RUN = "last run"  # the note with its version and its day


class RunInput(NamedTuple):
    """The input of a run: memory, its files, and what is new since the last run."""

    snapshot: Snapshot
    files: Files
    touched: Touched | None
    last_run: LastRun

    @property
    def is_known(self) -> bool:
        """Check whether the last run saw all of this, so that another one finds nothing."""
        return self.touched == frozenset() and self.last_run.was_of(self.snapshot.day)


class RecordRow(NamedTuple):
    """A record as the index lists it; of an archived one nobody has looked at the kind yet."""

    id: str
    path: str
    etag: str
    kind: str


def read_input(workspace: OpenWorkspace, day: str, *, leave_tracked: bool = True) -> RunInput:
    """Read the project's memory, with what was captured and learned on this machine.

    Tracked episodes grow old in `gc` only: with `leave_tracked` they are left alone.
    """
    limits = Thresholds.of(workspace.config)
    last_run = LastRun(workspace.index, version(repr(limits)))
    rows = list(_rows(workspace))
    files = Files({}, {}, frozenset(_private(rows)), {}, {})
    live = {record.id: record for record in _live(workspace, rows, last_run, files)}
    _join_shadowed(workspace, live, last_run, files)
    old, private = _archived(workspace, last_run)
    files = files._replace(
        private=files.private.union(private), declined=frozenset(_declined(workspace, files))
    )
    stones = rejected_values(workspace.index)
    episodes = [record for record in live.values() if isinstance(record, EpisodeFeatures)]
    shared = [episode.id for episode in episodes if episode.id in files.shared]
    tracked = shared if leave_tracked else []
    snapshot = Snapshot(live.values(), day, stones, limits, old, tracked=tracked)
    before = day_before(snapshot.day, limits.summarise_days)
    thinned = (episode for episode in episodes if episode.id not in snapshot.tracked)
    due = (episode for episode in thinned if episode.timestamp < before)
    snapshot.whole.update(_whole(workspace, summarised(due)))
    return RunInput(snapshot, files, last_run.touched(), last_run)


class LastRun:
    """The files as the last run left them, and the features of the episodes among them."""

    def __init__(self, index: Index, version: str) -> None:
        self._index = index
        self._version = version
        self._kept = index.features(version)
        self._rows: list[RecordRow] = []
        self._bodies: dict[tuple[str, str], str] = {}  # a file keeps its date in the archive

    def features(self, row: RecordRow) -> EpisodeFeatures | None:
        """The features of a file, if they were extracted from what it holds."""
        self._rows.append(row)
        kept = self._kept.get(row.path)
        if kept is None or kept.etag != row.etag or not kept.body:
            return None
        self._bodies[_content(row.path, row.etag)] = kept.body
        return decoded(kept.body)

    def extracted(self, row: RecordRow, record: Memory) -> Record:
        """A record as phases see it."""
        if not isinstance(record, Episode):
            return record
        found = episode_features(record)
        self._bodies[_content(row.path, row.etag)] = encoded(found)
        return found

    def touched(self) -> Touched | None:
        """The ids of what was added since, if nothing else has changed."""
        new = [row for row in self._rows if not self._has(row)]
        is_added = all(row.path not in self._kept and row.kind in _ADDED for row in new)
        is_whole = bool(self._kept) and len(self._rows) - len(new) == len(self._kept)
        return frozenset(row.id for row in new) if is_added and is_whole else None

    def _has(self, row: RecordRow) -> bool:
        kept = self._kept.get(row.path)
        return kept is not None and kept.etag == row.etag

    def was_of(self, day: str) -> bool:
        """Check whether the last run was of this version, and worked as of this day."""
        return self._index.note(_LAST_RUN) == f"{self._version} {day}"

    def replace(self, changed: Mapping[str, Rewritten], day: str) -> None:
        """Keep the files that this run has read, as it has changed them."""
        etags: dict[str, str | None] = {row.path: row.etag for row in self._rows}
        etags |= {path: entry.after for path, entry in changed.items()}
        after = {path: self._row(path, etag) for path, etag in etags.items() if etag}
        new = [row for path, row in after.items() if self._kept.get(path) != row]
        gone = self._kept.keys() - after.keys()
        if new or gone or not self.was_of(day):
            with self._index.change() as change:
                change.keep_features(self._version, new, gone)
                change.set_note(_LAST_RUN, f"{self._version} {day}")

    def _row(self, path: str, etag: str) -> FeatureRow:
        return FeatureRow(path, etag, self._version, self._bodies.get(_content(path, etag), ""))


def _content(path: str, etag: str) -> tuple[str, str]:
    """Return what a record follows from: the bytes of its file, and the date of its folder."""
    return path.replace(ARCHIVE, "", 1), etag


def _private(rows: Iterable[RecordRow]) -> Iterator[str]:
    """The episodes that only this machine has."""
    return (row.id for row in rows if row.kind == "episode" and row.path.startswith(PRIVATE))


def _live(
    workspace: OpenWorkspace, rows: Iterable[RecordRow], last_run: LastRun, files: Files
) -> Iterator[Record]:
    """The records of the project's files, and candidates as they would be published."""
    left: dict[str, RecordRow] = {}
    for row in rows:
        is_here = row.path.startswith(PRIVATE)
        (files.local if is_here else files.shared)[row.id] = (row.path, row.etag)
        known = last_run.features(row)
        if known:
            yield known
        else:
            left[row.id] = row
    for name, record in _read(workspace, [*left]):
        row, seen = left[name], record
        if row.path.startswith(PRIVATE) and not isinstance(record, Episode):
            seen, files.once[name] = candidate(record)
        yield last_run.extracted(row, seen)


def _join_shadowed(
    workspace: OpenWorkspace, live: dict[str, Record], last_run: LastRun, files: Files
) -> None:
    """Add the evidence of candidates to what was published of them."""
    for path, etag in queries.shadowed(workspace.index):
        stored = workspace.store.read(path)
        if stored is None or stored.etag != etag:
            continue
        with suppress(InvalidRecord):
            here, day = candidate(decode(path, stored.data))
            last_run.features(RecordRow(here.id, path, etag, here.kind))
            files.local[here.id], files.once[here.id] = (path, etag), day
            shared = live.get(here.id)
            if isinstance(shared, Belief) and isinstance(here, Belief):
                files.published[here.id] = shared
                live[here.id] = joined(shared, here)


def _archived(workspace: OpenWorkspace, last_run: LastRun) -> tuple[list[Record], set[str]]:
    """Return what was archived, as far as it can be read: evidence that beliefs still rest on.

    Returned with the ids of those that only this machine has.
    """
    found: list[Record] = []
    private: set[str] = set()
    for path in archived(workspace.layout):
        stored = workspace.store.read(path)
        if stored is None:
            continue
        is_private = path.startswith(PRIVATE)
        row = RecordRow("", path, stored.etag, "archived")
        known: Record | None = last_run.features(row)
        with suppress(InvalidRecord):
            record = None if known else decode(path.replace(ARCHIVE, "", 1), stored.data)
            if record and (not is_private or _is_learned_here(record)):
                known = last_run.extracted(row, record)
        if known:
            found.append(known)
            private.update([known.id] if is_private else [])
    return found, private


def _declined(workspace: OpenWorkspace, files: Files) -> Iterator[str]:
    """Candidates that were published and whose file somebody deleted."""
    gone = {
        files.local[name][0].removeprefix(PRIVATE): name
        for name, day in files.once.items()
        if day and name not in files.shared
    }
    if gone:
        yield from (gone[path] for path in workspace.home.deleted([*gone]))


def _is_learned_here(record: Memory) -> bool:
    """Check whether a private record was captured or learned: notes of a person take no part."""
    return record.captured if isinstance(record, Episode) else bool(extra(record, "key"))


def _whole(workspace: OpenWorkspace, episodes: Iterable[EpisodeFeatures]) -> dict[str, Episode]:
    names = [episode.id for episode in episodes]
    found = (record for _, record in _read(workspace, names))
    return {entry.id: entry for entry in found if isinstance(entry, Episode)}


def _read(workspace: OpenWorkspace, names: Sequence[str]) -> Iterator[tuple[str, Memory]]:
    for name, kind, body in queries.named_bodies(workspace.index, names):
        yield name, parsed(kind, body)


def _rows(workspace: OpenWorkspace) -> Iterator[RecordRow]:
    """The records in the project's files, and those that were captured or learned here."""
    here = queries.learned_here(workspace.index)
    for row in map(RecordRow._make, queries.records(workspace.index, _READ)):
        takes_part = row.id in here if row.path.startswith(PRIVATE) else not view_kind(row.path)
        if takes_part:
            yield row
