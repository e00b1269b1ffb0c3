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
from loki_memory.consolidation.provenance import day_before
from loki_memory.consolidation.run import Etags, Rewritten, thresholds
from loki_memory.consolidation.snapshot import Record, Snapshot, Touched
from loki_memory.editing.removal import archived
from loki_memory.errors import InvalidRecord
from loki_memory.files.codec import decode
from loki_memory.files.layout import ARCHIVE, PRIVATE, view_kind
from loki_memory.home import parsed
from loki_memory.index import queries
from loki_memory.index.revision import FeatureRow
from loki_memory.models import Episode, Memory
from loki_memory.models.kinds import KINDS

if TYPE_CHECKING:
    from loki_memory.index.index import Index
    from loki_memory.workspace import Workspace

_READ = tuple(kind for kind in KINDS if kind not in {"ledger", "handoff"})


# What may be added without touching what was there: all else is looked at with everything.
_ADDED = frozenset({"episode", "fact", "link", "learning"})


class RunInput(NamedTuple):
    """What a run goes out from: memory, its files, and what is new since the last run."""

    snapshot: Snapshot
    etags: Etags
    touched: Touched | None
    last_run: LastRun


class RecordRow(NamedTuple):
    """A record as the index lists it; of an archived one nobody has looked at the kind yet."""

    id: str
    path: str
    etag: str
    kind: str


def read_input(workspace: Workspace, day: str) -> RunInput:
    """Read the project's memory: the records of its files, and those that were archived."""
    limits = thresholds(workspace.config)
    last_run = LastRun(workspace.index, version(repr(limits)))
    rows = list(_rows(workspace))
    live = list(_live(workspace, rows, last_run))
    old = list(_archived(workspace, last_run))
    stones = (row.id for row in rows if row.kind == "tombstone")
    snapshot = Snapshot(live, day, stones, limits, old)
    before = day_before(snapshot.day, limits.summarise_days)
    due = (one for one in live if isinstance(one, EpisodeFeatures) and one.timestamp < before)
    snapshot.whole.update(_whole(workspace, summarised(due)))
    etags: Etags = {row.id: (row.path, row.etag) for row in rows}
    return RunInput(snapshot, etags, last_run.touched(), last_run)


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

    def replace(self, changed: Mapping[str, Rewritten]) -> None:
        """Keep the files that this run has read, as it has changed them."""
        etags: dict[str, str | None] = {row.path: row.etag for row in self._rows}
        etags |= {path: one.after for path, one in changed.items()}
        after = {path: self._row(path, etag) for path, etag in etags.items() if etag}
        new = [row for path, row in after.items() if self._kept.get(path) != row]
        gone = self._kept.keys() - after.keys()
        if new or gone:
            with self._index.change() as change:
                change.keep_features(self._version, new, gone)

    def _row(self, path: str, etag: str) -> FeatureRow:
        return FeatureRow(path, etag, self._version, self._bodies.get(_content(path, etag), ""))


def _content(path: str, etag: str) -> tuple[str, str]:
    """What a record follows from: the bytes of its file, and the date of its folder."""
    return path.removeprefix(ARCHIVE), etag


def _live(workspace: Workspace, rows: Iterable[RecordRow], last_run: LastRun) -> Iterator[Record]:
    """The records of the project's files."""
    left: dict[str, RecordRow] = {}
    for row in rows:
        known = last_run.features(row)
        if known:
            yield known
        else:
            left[row.id] = row
    for name, record in _read(workspace, [*left]):
        yield last_run.extracted(left[name], record)


def _archived(workspace: Workspace, last_run: LastRun) -> Iterator[Record]:
    """What was archived, as far as it can be read: evidence that beliefs still rest on."""
    shared = (path for path in archived(workspace.layout) if not path.startswith(PRIVATE))
    for path in shared:
        stored = workspace.store.read(path)
        if stored is None:
            continue
        row = RecordRow("", path, stored.etag, "archived")
        known = last_run.features(row)
        if known:
            yield known
            continue
        with suppress(InvalidRecord):
            yield last_run.extracted(row, decode(path.removeprefix(ARCHIVE), stored.data))


def _whole(workspace: Workspace, episodes: Iterable[EpisodeFeatures]) -> dict[str, Episode]:
    names = [one.id for one in episodes]
    found = (record for _, record in _read(workspace, names))
    return {one.id: one for one in found if isinstance(one, Episode)}


def _read(workspace: Workspace, names: Sequence[str]) -> Iterator[tuple[str, Memory]]:
    for name, kind, body in queries.named_bodies(workspace.index, names):
        yield name, parsed(kind, body)


def _rows(workspace: Workspace) -> Iterator[RecordRow]:
    """The records in the project's files."""
    for row in map(RecordRow._make, queries.records(workspace.index, _READ)):
        if not row.path.startswith(PRIVATE) and not view_kind(row.path):
            yield row
