"""The run cache: what one consolidation run keeps so that the next one reads only what is new.

The cache lists every record that the run left, with its etag, and the features of each episode. If
anything but an addition happened since (an edited belief, a removed episode, other settings,
another version of the program), the next run reads everything. Without the cache it does so too,
with the same result.

The cache is signed with a key that depends on the place of the workspace: a file that came with a
clone is neither believed nor parsed.
"""

from __future__ import annotations

import marshal
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.consolidation.failures import EpisodeFailures
from loki_memory.consolidation.features import EpisodeFeatures, StatementFeatures
from loki_memory.consolidation.run import NO_FILE, Rewritten
from loki_memory.consolidation.snapshot import Thresholds, Touched
from loki_memory.editing.removal import archived
from loki_memory.files import disk
from loki_memory.files.layout import PRIVATE
from loki_memory.sync import home_of

if TYPE_CHECKING:
    from loki_memory.files.layout import Layout

_KEPT, _LEARNED = "consolidated", "learned"
_TOLD_OFTEN = frozenset({str, tuple})
_CHECK = 16  # bytes of a hash in front of what is kept
# What may be added without touching what was there: everything else is looked at with all the rest.
_ADDED = frozenset({"episode", "fact", "link", "learning"})

Stamp = tuple[int, int]  # of a file: when it was modified, and its size


class CacheRow(NamedTuple):
    """A record as the index lists it."""

    id: str
    path: str
    etag: str
    kind: str


class Archived(NamedTuple):
    """A file in the archive; of an episode, what is known at a glance, and what went wrong."""

    stamp: Stamp
    id: str
    seen: EpisodeFeatures | None
    wrong: EpisodeFailures


class Quiet(NamedTuple):
    """A run that had nothing to do."""

    asked: str  # the day that somebody asked for
    day: str  # as of which memory was consolidated
    episodes: int


class RunCache(NamedTuple):
    """What a run left behind."""

    program: str  # what decided: the code, and where it draws its lines
    records: dict[str, str]  # etags by id
    glances: dict[str, EpisodeFeatures]  # of the episodes among them
    setbacks: dict[str, EpisodeFailures]  # of those of the episodes that had some
    gists: dict[str, StatementFeatures]  # of the statements among them
    archive: dict[str, Archived]  # by path
    clusters: frozenset[str]
    strangers: str
    chance: tuple[tuple[int, float], ...]
    found: Mapping[str, Any]
    quiet: Quiet | None  # if it changed nothing
    learned: frozenset[str] = frozenset()  # ids of episodes for which the first phases ran since

    def touched(self, rows: Iterable[CacheRow], archive: Mapping[str, Stamp]) -> Touched | None:
        """What is new since, if nothing else has changed."""
        new = [one for one in rows if self.records.get(one.id) != one.etag]
        is_added = all(one.id not in self.records and one.kind in _ADDED for one in new)
        there = {one.id for one in rows}
        if not is_added or self.records.keys() - there or self.stamps() != archive:
            return None
        ids = frozenset(one.id for one in new)
        since = ids & self.learned
        return Touched(ids, self.clusters, self.strangers, self.chance, self.found, since)

    def stamps(self) -> dict[str, Stamp]:
        return {path: one.stamp for path, one in self.archive.items()}

    def is_as_it_was(self, rows: Iterable[CacheRow], archive: Mapping[str, Stamp]) -> bool:
        return self.records == {one.id: one.etag for one in rows} and self.stamps() == archive


NOTHING = RunCache("", {}, {}, {}, {}, {}, frozenset(), "", (), {}, None)


def read(layout: Layout, limits: Thresholds) -> RunCache:
    """What the last run left behind, and what was learned since; nothing if it does not fit."""
    data = _bytes(layout.cache / _KEPT)
    if not data or data[:_CHECK] != _hash(data[_CHECK:], layout):
        return NOTHING
    plain = marshal.loads(data[_CHECK:])  # noqa: S302 - our own cache
    if plain[0] != program_of(limits):  # another one keeps other things
        return NOTHING
    kept = RunCache(*plain)
    learned = [*_learned(layout)]
    return kept._replace(
        records=_with_learned(kept.records, learned),
        glances={name: EpisodeFeatures._make(one) for name, one in kept.glances.items()},
        setbacks={name: EpisodeFailures._make(one) for name, one in kept.setbacks.items()},
        gists=_gists(kept.gists, learned),
        archive={path: _archived(*one) for path, one in kept.archive.items()},
        quiet=Quiet._make(kept.quiet) if kept.quiet else None,
        learned=frozenset(name for name, *rewritten in learned if not rewritten),
    )


def _gists(
    kept: Mapping[str, StatementFeatures], learned: Iterable[Sequence[str]]
) -> dict[str, StatementFeatures]:
    """Those of beliefs that nobody has rewritten since."""
    rewritten = {name for name, *_ in learned}
    return {
        name: StatementFeatures._make(one) for name, one in kept.items() if name not in rewritten
    }


def _archived(
    stamp: Stamp, name: str, seen: EpisodeFeatures | None, wrong: EpisodeFailures
) -> Archived:
    return Archived(
        stamp, name, EpisodeFeatures._make(seen) if seen else None, EpisodeFailures._make(wrong)
    )


def write(layout: Layout, known: RunCache) -> None:
    """Keep what a run left behind; where nothing can be written, the next one looks again.

    Without the names of fields, which `marshal` does not know.
    """
    one_of = _Shared()
    plain: tuple[Any, ...] = (
        known.program,
        {one_of(name): etag for name, etag in known.records.items()},
        {one_of(name): one_of.each(one) for name, one in known.glances.items()},
        {one_of(name): one_of.each(one) for name, one in known.setbacks.items()},
        {one_of(name): one_of.each(one) for name, one in known.gists.items()},
        {
            path: (one.stamp, one.id, one.seen and one_of.each(one.seen), one_of.each(one.wrong))
            for path, one in known.archive.items()
        },
        known.clusters,
        known.strangers,
        known.chance,
        dict(known.found),
        known.quiet and tuple(known.quiet),
    )
    data = marshal.dumps(plain)
    with suppress(OSError):
        disk.replace_plainly(layout.cache / _KEPT, _hash(data, layout) + data)
        disk.discard(layout.cache / _LEARNED)


class _Shared:
    """Equal texts, and equal tuples, as one and the same: so they are written and read once.

    Episodes speak of the same files, steps and circumstances all the time.
    """

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def __call__(self, value: Any) -> Any:
        known = self._known.get(value)
        if known is None:
            known = self.each(value) if type(value) is tuple else value
            self._known[known] = known
        return known

    def each(self, values: Iterable[Any]) -> tuple[Any, ...]:
        """The same values, each as it is known."""
        return tuple([self(one) if type(one) in _TOLD_OFTEN else one for one in values])


def learn(layout: Layout, episodes: Iterable[str], beliefs: Iterable[Rewritten]) -> None:
    """Note for which new episodes the first phases ran, and the beliefs that they changed.

    The episodes stay new to the others; the beliefs do not.
    """
    lines = "".join(_line(words, layout) for words in (*beliefs, *((one,) for one in episodes)))
    with suppress(OSError):
        fd = disk.open_to_change(layout.cache / _LEARNED, append=True)
        with open(fd, "ab") as file:
            file.write(lines.encode())


def _line(words: Iterable[str], layout: Layout) -> str:
    said = " ".join(words)
    return f"{said} {_hash(said.encode(), layout).hex()}\n"


def _learned(layout: Layout) -> Iterator[list[str]]:
    """What was noted since the last run: episodes, and beliefs as they were rewritten."""
    for line in _bytes(layout.cache / _LEARNED).decode(errors="replace").splitlines(keepends=True):
        words = line.split()[:-1]
        if words and line == _line(words, layout):
            yield words


def _with_learned(records: dict[str, str], learned: Iterable[Sequence[str]]) -> dict[str, str]:
    """The records as they are known, if what was learned went out from what was known.

    Where somebody else came in between (an anti-pattern that was forgotten is learned anew from one
    episode) the belief counts as changed.
    """
    known = dict(records)
    for name, before, after in (one for one in learned if len(one) == len(Rewritten._fields)):
        known[name] = after if known.get(name, NO_FILE) == before else ""
    return known


def archive_stamps(layout: Layout) -> dict[str, Stamp]:
    """The archived files that all machines have."""
    shared = (path for path in archived(layout) if not path.startswith(PRIVATE))
    return stamps_of(layout, shared)


def stamps_of(layout: Layout, paths: Iterable[str]) -> dict[str, Stamp]:
    found: dict[str, Stamp] = {}
    for path in paths:
        with suppress(FileNotFoundError):
            status = os.stat(layout.file(path))
            found[path] = (status.st_mtime_ns, status.st_size)
    return found


def program_of(limits: Thresholds) -> str:
    """A hash of the code that decides and of its settings: others may come to something else."""
    package = Path(__file__).parents[1]
    sources = sorted([*package.glob("consolidation/*.py"), *package.glob("models/*.py")])
    parts = [repr(limits).encode(), *(one.read_bytes() for one in sources)]
    return blake2b(b"".join(parts), digest_size=_CHECK).hexdigest()


def _hash(data: bytes, layout: Layout) -> bytes:
    """A hash that nobody makes who does not know where on which disk this workspace lies."""
    key = blake2b(home_of(layout).encode(), digest_size=_CHECK).digest()
    return blake2b(data, digest_size=_CHECK, key=key).digest()


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
