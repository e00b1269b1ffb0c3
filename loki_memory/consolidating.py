"""Consolidation as a workspace does it: read all, think, then write all or nothing.

What lies in the local zone of this machine takes no part: on another machine the same episodes give
the same beliefs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import FileChanged, InvalidRecord, WouldLoseBeliefs
from loki_memory.files.codec import decode
from loki_memory.files.layout import ARCHIVE, PRIVATE, view_kind
from loki_memory.models import Belief, Episode, Memory
from loki_memory.parts import parsed
from loki_memory.removal import archive, archived

if TYPE_CHECKING:
    from loki_memory.consolidation.pipeline import Plan
    from loki_memory.consolidation.snapshot import Snapshot, Step
    from loki_memory.workspace import Workspace

    Progress = Callable[[int, int], None]

Etags = dict[str, tuple[str, str | None]]  # by id: the file, and what it was when it was read
_NOT_READ = ("ledger", "handoff")


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
    from loki_memory.consolidation.pipeline import consolidate as run

    workspace.sync()
    before, etags = snapshot(workspace, _checked("day", day)[:10])
    first = _checked("since", since)
    touched = frozenset(one.id for one in before.episodes if one.timestamp >= first)
    plan = run(before, touched if first else None, progress=progress)
    if plan.lost:
        raise WouldLoseBeliefs(plan.lost)
    if not plan_only:
        apply(workspace, plan, etags)
    return Report(
        plan.day,
        plan_only,
        len(before.episodes),
        list(plan.steps),
        len(plan.put),
        len(plan.archive),
    )


def learn(workspace: Workspace, new: Sequence[Episode]) -> None:
    """The first phases for episodes that were just recorded: a lesson for the next task.

    Only the beliefs that these episodes speak of, and what those rest on, are read: what evidence
    a belief has stands in its own file. Whoever writes meanwhile goes first; the next
    consolidation finds the same.
    """
    from loki_memory.consolidation.pipeline import EARLY
    from loki_memory.consolidation.pipeline import consolidate as run
    from loki_memory.consolidation.snapshot import Snapshot

    known = _Known(workspace)
    ids = frozenset(one.id for one in new)
    first = run(Snapshot(new), ids, EARLY)
    beliefs = known.all(sorted({one.id for one in first.put} | _named(new)))
    sources = known.all(sorted({name for one in beliefs for name in _sources(one)} - ids))
    plan = run(Snapshot([*new, *beliefs, *sources]), ids, EARLY)
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
    return {told.id for one in episodes for told in one.recalled}


def _sources(record: Memory) -> list[str]:
    return record.episodes_for() if isinstance(record, Belief) else []


def snapshot(workspace: Workspace, day: str) -> tuple[Snapshot, Etags]:
    """All records of the project's files as they are, and the etags of their files."""
    from loki_memory.consolidation.snapshot import Snapshot, Thresholds

    rejected = workspace.index.ask("SELECT id FROM memories WHERE kind = 'tombstone'")
    rows = list(_rows(workspace))
    records = (parsed(kind, body) for _, _, _, kind, body in rows)
    etags: Etags = {name: (path, etag) for name, path, etag, _, _ in rows}
    stones = (row[0] for row in rejected)
    return Snapshot(records, day, stones, Thresholds(), _archived(workspace)), etags


def _archived(workspace: Workspace) -> Iterator[Memory]:
    """What was archived, as far as it can be read: evidence that beliefs still rest on."""
    for path in archived(workspace.layout):
        stored = None if path.startswith(PRIVATE) else workspace.store.read(path)
        if stored is not None:
            with suppress(InvalidRecord):
                yield decode(path.removeprefix(ARCHIVE), stored.data)


def _rows(workspace: Workspace) -> Iterator[tuple[str, str, str, str, str]]:
    marks = ",".join("?" * len(_NOT_READ))
    sql = (
        "SELECT id, path, etag, kind, body FROM memories "  # noqa: S608
        f"WHERE kind NOT IN ({marks}) ORDER BY id"
    )
    for row in workspace.index.ask(sql, *_NOT_READ):
        if not row[1].startswith(PRIVATE) and not view_kind(row[1]):
            yield tuple(row)


def apply(workspace: Workspace, plan: Plan, etags: Etags, *, sync: bool = True) -> None:
    """Write a plan: all of it, or none. What somebody changed meanwhile is not overwritten."""
    if not (plan.put or plan.archive):
        return
    with workspace.store.change() as change:
        for record in plan.put:
            path, etag = etags.get(record.id, ("", None))
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
