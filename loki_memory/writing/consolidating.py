"""Consolidation as a workspace does it: read all, think, then write all or nothing.

What lies in the local zone of this machine takes no part: on another machine the same episodes give
the same beliefs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from pathlib import Path
from sqlite3 import OperationalError
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import FileChanged, InvalidRecord, NotFound, WouldLoseBeliefs
from loki_memory.files.codec import decode
from loki_memory.files.layout import ARCHIVE, PRIVATE, view_kind
from loki_memory.models import Belief, Episode, Memory
from loki_memory.parts import parsed
from loki_memory.writing.checkpoints import take_over_checkpoints
from loki_memory.writing.removal import archive, archived, keep_copy

if TYPE_CHECKING:
    from loki_memory.config import Config
    from loki_memory.consolidation.pipeline import Plan
    from loki_memory.consolidation.snapshot import Snapshot, Step, Thresholds
    from loki_memory.workspace import Workspace

    Progress = Callable[[int, int], None]

Etags = dict[str, tuple[str, str | None]]  # by id: the file, and what it was when it was read
_NOT_READ = ("ledger", "handoff")
_SETTLED = "settled"
_AT_ONCE = 500  # ids in one question


class Report(NamedTuple):
    """What a run did, or would do: one line per memory, and the counts."""

    day: str  # as of which memory was consolidated
    planned: bool  # whether nothing was written
    episodes: int  # that there are
    steps: list[Step]
    written: int
    archived: int

    def counts(self) -> dict[str, int]:
        """How often each thing was done."""
        found: dict[str, int] = {}
        for step in self.steps:
            found[step.what] = found.get(step.what, 0) + 1
        return dict(sorted(found.items()))


def consolidate(
    workspace: Workspace,
    day: str | None = None,
    *,
    plan_only: bool = False,
    since: str | None = None,
    progress: Progress | None = None,
) -> Report:
    """Consolidate all that the project's files hold."""
    from loki_memory.consolidation import pipeline

    if not plan_only:
        take_over_checkpoints(workspace)
    workspace.sync()
    as_of, first = _checked("day", day)[:10], _checked("since", since)
    settled = Settled(workspace, as_of)
    known = None if first else settled.report()
    if known:
        return known._replace(planned=plan_only)
    before, etags = snapshot(workspace, as_of)
    touched = frozenset(one.id for one in before.episodes if one.timestamp >= first)
    plan = pipeline.consolidate(before, touched if first else None, progress=progress)
    if plan.lost:
        raise WouldLoseBeliefs(plan.lost)
    if not plan_only:
        apply(workspace, plan, etags)
    episodes, written, gone = len(before.episodes), len(plan.put), len(plan.archive)
    report = Report(plan.day, plan_only, episodes, list(plan.steps), written, gone)
    if not (first or plan.put or plan.archive or plan.steps):
        settled.note(etags, report)
    return report


class Settled:
    """Memory that is known to stay as it is.

    What one run left alone, the next one leaves alone too. So a note in the index keeps what that
    memory was, to the byte, and a run that finds the same has nothing to do. Without the note, a
    run does its work and comes to the same. What it depends on besides the records is looked at
    before they are read: whatever changes in between makes the next run look again.
    """

    def __init__(self, workspace: Workspace, day: str) -> None:
        self._index = workspace.index
        self._records = partial(_rows, workspace, "id, path, etag")
        limits = repr(thresholds(workspace.config))
        self._beside = "\n".join([day, limits, *_archive_stamps(workspace), _program()])

    def report(self) -> Report | None:
        """The report of a run that has nothing to do, if that is known."""
        known, _, told = self._index.note(_SETTLED).partition("; ")
        if known != self._state((name, etag) for name, _, etag in self._records()):
            return None
        day, _, episodes = told.partition(" ")
        return Report(day, planned=False, episodes=int(episodes), steps=[], written=0, archived=0)

    def note(self, etags: Etags, report: Report) -> None:
        """Keep that a run over these records changed nothing."""
        state = self._state((name, etag or "") for name, (_, etag) in etags.items())
        with suppress(OperationalError), self._index.change(wait=False) as revision:
            revision.set_note(_SETTLED, f"{state}; {report.day} {report.episodes}")

    def _state(self, records: Iterable[tuple[str, str]]) -> str:
        found = blake2b(self._beside.encode(), digest_size=16)
        for name, etag in records:
            found.update(f"\n{name} {etag}".encode())
        return found.hexdigest()


def _archive_stamps(workspace: Workspace) -> Iterator[str]:
    for path in archived(workspace.layout):
        with suppress(FileNotFoundError):
            status = os.stat(workspace.layout.file(path))
            yield f"{path} {status.st_mtime_ns} {status.st_size}"


def _program() -> str:
    """A hash of the code that decides: another version may come to something else."""
    package = Path(__file__).parents[1]
    sources = sorted([*package.glob("consolidation/*.py"), *package.glob("models/*.py")])
    return blake2b(b"".join(one.read_bytes() for one in sources), digest_size=16).hexdigest()


def learn(workspace: Workspace, new: Sequence[Episode]) -> None:
    """The first phases for episodes that were just recorded: a lesson for the next task.

    Only the beliefs that these episodes speak of are read: what evidence a belief has stands in its
    own file. What it rests on is looked up in the index, and read where the words matter: of
    thousands of episodes, the newest few. Whoever writes meanwhile goes first; the next
    consolidation finds the same.
    """
    from loki_memory.consolidation.pipeline import EARLY
    from loki_memory.consolidation.pipeline import consolidate as run
    from loki_memory.consolidation.snapshot import Snapshot

    known = _Known(workspace)
    limits = thresholds(workspace.config)
    ids = frozenset(one.id for one in new)
    first = run(Snapshot(new, thresholds=limits), ids, EARLY)
    beliefs = known.all(sorted({one.id for one in first.put} | _named(new)))
    beliefs += known.all(known.merged_into(one.id for one in beliefs))
    sources = known.outlines({name for one in beliefs for name in _sources(one)} - ids)
    plan = run(Snapshot([*new, *beliefs, *sources], thresholds=limits), ids, EARLY)
    with suppress(FileChanged):
        apply(workspace, plan._replace(archive=()), known.etags, sync=False)


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
        sql = "SELECT source FROM edges WHERE target = ? AND relation = 'superseded_by' ORDER BY 1"
        found: dict[str, None] = {}
        waiting = list(names)
        while waiting:
            new = [row[0] for row in self._workspace.index.ask(sql, waiting.pop())]
            waiting += [one for one in new if one not in found]
            found |= dict.fromkeys(new)
        return list(found)

    def outlines(self, names: Iterable[str]) -> Iterator[Memory]:
        """Episodes as the index knows them, and whole where it does not know them yet."""
        from loki_memory.consolidation.snapshot import Outline

        left = set(names)
        for id_, at, session, outcome, has_recalled in self._rows(sorted(left)):
            left.discard(id_)
            known = {"id": id_, "timestamp": at, "session": session or None, "outcome": outcome}
            nothing: dict[str, list[str]] = {} if has_recalled else {"recalled": []}
            yield Outline.of(partial(self._whole, id_), **known, **nothing)
        yield from self.all(sorted(left))

    def _rows(self, names: Sequence[str]) -> Iterator[tuple[str, str, str, str, int]]:
        for start in range(0, len(names), _AT_ONCE):
            some = names[start : start + _AT_ONCE]
            marks = ",".join("?" * len(some))
            sql = (
                "SELECT id, at, session, outcome, EXISTS (SELECT 1 FROM edges WHERE source = id "  # noqa: S608
                "AND relation = 'recalled') FROM memories "
                f"WHERE id IN ({marks}) AND kind = 'episode' AND path NOT LIKE ? ORDER BY id"
            )
            yield from self._workspace.index.ask(sql, *some, f"{PRIVATE}%")

    def _whole(self, name: str) -> Episode:
        found = self._workspace.index.body(name)
        record = parsed(*found) if found else None
        if not isinstance(record, Episode):  # somebody removed it a moment ago
            raise NotFound(name)
        return record

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


def snapshot(workspace: Workspace, day: str) -> tuple[Snapshot, Etags]:
    """All records of the project's files as they are, and the etags of their files."""
    from loki_memory.consolidation.snapshot import Snapshot

    rejected = workspace.index.ask("SELECT id FROM memories WHERE kind = 'tombstone'")
    rows = list(_rows(workspace, "id, path, etag, kind, body"))
    records = (parsed(kind, body) for _, _, _, kind, body in rows)
    etags: Etags = {name: (path, etag) for name, path, etag, _, _ in rows}
    stones = (row[0] for row in rejected)
    limits = thresholds(workspace.config)
    return Snapshot(records, day, stones, limits, _archived(workspace)), etags


def thresholds(config: Config) -> Thresholds:
    """Where the workspace's own settings draw the lines."""
    from loki_memory.consolidation.snapshot import Thresholds

    return Thresholds(
        cluster=config.get("consolidation.cluster") / 100,
        merge=config.get("consolidation.merge") / 100,
        confident=config.get("consolidation.confident") / 100,
        support=config.get("consolidation.support"),
        pattern_episodes=config.get("consolidation.pattern_episodes"),
        skill_successes=config.get("consolidation.skill_successes"),
        resolutions=config.get("consolidation.resolutions"),
        error_names=config.get("consolidation.error_names"),
        topic_members=config.get("consolidation.topic_members"),
        links=config.get("consolidation.links"),
        link_half_life_days=config.get("consolidation.link_half_life_days"),
        summarise_days=config.get("consolidation.summarise_days"),
        archive_days=config.get("consolidation.archive_days"),
        superseded_days=config.get("consolidation.superseded_days"),
    )


def _archived(workspace: Workspace) -> Iterator[Memory]:
    """What was archived, as far as it can be read: evidence that beliefs still rest on."""
    for path in archived(workspace.layout):
        stored = None if path.startswith(PRIVATE) else workspace.store.read(path)
        if stored is not None:
            with suppress(InvalidRecord):
                yield decode(path.removeprefix(ARCHIVE), stored.data)


def _rows(workspace: Workspace, columns: str) -> Iterator[tuple[str, ...]]:
    """Of every record in the project's files some columns; the second is its path."""
    marks = ",".join("?" * len(_NOT_READ))
    sql = f"SELECT {columns} FROM memories WHERE kind NOT IN ({marks}) ORDER BY id"  # noqa: S608
    for row in workspace.index.ask(sql, *_NOT_READ):
        if not row[1].startswith(PRIVATE) and not view_kind(row[1]):
            yield row


def apply(workspace: Workspace, plan: Plan, etags: Etags, *, sync: bool = True) -> None:
    """Write a plan: all of it, or none. What somebody changed meanwhile is not overwritten."""
    if not (plan.put or plan.archive):
        return
    with workspace.store.change() as change:
        for record in plan.put:
            path, etag = etags.get(record.id, ("", None))
            if record.id in plan.whole:
                keep_copy(change, path)
            change.put(record, path, if_match=etag)
        for name in plan.archive:
            archive(change, etags[name][0])
    if sync:
        workspace.sync()


def _checked(name: str, given: str | None) -> str:
    """A moment as it is compared; empty if none is given."""
    from loki_memory.models.normal import moment

    if given is None:
        return ""
    try:
        return moment(given)
    except ValueError as error:
        advice = "Write 2026-01-20 or 2026-01-20T09:00:00Z."
        raise InvalidRecord(str(error), field=name, advice=advice) from None
