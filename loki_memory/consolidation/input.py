"""Load the input of a consolidation run: memory as it is, episodes as their features.

The index keeps the features of each version of an episode's file. Only what is new is read whole
and extracted, and what is due for a summary, which is made from the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
from loki_memory.consolidation.run import Etags, thresholds
from loki_memory.consolidation.snapshot import Record, Snapshot
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


class RunInput(NamedTuple):
    """What a run goes out from, and the files that it was read from."""

    snapshot: Snapshot
    etags: Etags


class RecordRow(NamedTuple):
    """A record as the index lists it."""

    id: str
    path: str
    etag: str
    kind: str


def read_input(workspace: Workspace, day: str) -> RunInput:
    """Read the project's memory: the records of its files, and those that were archived."""
    rows = list(_rows(workspace))
    features = FeatureTable(workspace.index)
    old = list(_archived(workspace, features))
    live = list(_live(workspace, rows, features))
    features.save()
    limits = thresholds(workspace.config)
    stones = (row.id for row in rows if row.kind == "tombstone")
    snapshot = Snapshot(live, day, stones, limits, old)
    before = day_before(snapshot.day, limits.summarise_days)
    due = (one for one in live if isinstance(one, EpisodeFeatures) and one.timestamp < before)
    snapshot.whole.update(_whole(workspace, summarised(due)))
    return RunInput(snapshot, {row.id: (row.path, row.etag) for row in rows})


class FeatureTable:
    """The features of episodes by their files, as the index keeps them."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._kept = index.features(version())
        self._used: set[str] = set()
        self._new: list[FeatureRow] = []

    def known(self, path: str, etag: str) -> EpisodeFeatures | None:
        """The features of a file, if they were extracted from what it holds."""
        row = self._kept.get(path)
        if row is None or row.etag != etag:
            return None
        self._used.add(path)
        return decoded(row.body)

    def extracted(self, path: str, etag: str, record: Memory) -> Record:
        """A record as phases see it; the features of an episode are kept."""
        if not isinstance(record, Episode):
            return record
        found = episode_features(record)
        self._new.append(FeatureRow(path, etag, version(), encoded(found)))
        return found

    def save(self) -> None:
        """Keep what was extracted; drop what belongs to no file any more."""
        gone = self._kept.keys() - self._used
        if self._new or gone:
            with self._index.change() as change:
                change.keep_features(version(), self._new, gone)


def _live(
    workspace: Workspace, rows: Iterable[RecordRow], features: FeatureTable
) -> Iterator[Record]:
    """The records of the project's files."""
    left: dict[str, RecordRow] = {}
    for row in rows:
        known = features.known(row.path, row.etag) if row.kind == "episode" else None
        if known:
            yield known
        else:
            left[row.id] = row
    for name, record in _read(workspace, [*left]):
        yield features.extracted(left[name].path, left[name].etag, record)


def _archived(workspace: Workspace, features: FeatureTable) -> Iterator[Record]:
    """What was archived, as far as it can be read: evidence that beliefs still rest on."""
    shared = (path for path in archived(workspace.layout) if not path.startswith(PRIVATE))
    for path in shared:
        stored = workspace.store.read(path)
        if stored is None:
            continue
        known = features.known(path, stored.etag)
        if known:
            yield known
            continue
        with suppress(InvalidRecord):
            record = decode(path.removeprefix(ARCHIVE), stored.data)
            yield features.extracted(path, stored.etag, record)


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
