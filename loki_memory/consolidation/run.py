"""Consolidation as a workspace does it: read all, think, then write all or nothing.

Sessions that were captured on this machine, and the candidates that were learned from them, take
part; other private memories do not. `publish` decides which files a run writes.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.consolidation.publish import Rewritten
from loki_memory.editing.removal import archive, keep_copy
from loki_memory.errors import InvalidRecord, WouldLoseBeliefs
from loki_memory.index import queries
from loki_memory.language.wordings import OFF
from loki_memory.models import Memory, Skill
from loki_memory.team.ledgers import take_over_checkpoints

if TYPE_CHECKING:
    from loki_memory.consolidation.phases import Plan
    from loki_memory.consolidation.publish import Files, Placed, Publishing, Reach
    from loki_memory.consolidation.snapshot import BeliefChange, Snapshot, Touched
    from loki_memory.homes import OpenWorkspace
    from loki_memory.language.wording import LanguageReport

    Progress = Callable[[int, int], None]

_NAMED = 3  # files that cannot be read
_SPAN, _HOURS = re.compile(r"(\d{1,5})([hd])"), {"h": 1, "d": 24}


class Report(NamedTuple):
    """The result of a run, done or planned: one line per memory, and the counts."""

    day: str  # as of which memory was consolidated
    planned: bool  # whether nothing was written
    episodes: int  # that there are
    steps: list[BeliefChange]
    written: int
    archived: int
    private: tuple[str, ...] = ()  # ids of what stays on this machine
    language: LanguageReport | None = None  # what a language model was asked to word, if any

    def counts(self) -> dict[str, int]:
        """Return how often each thing was done."""
        found: dict[str, int] = {}
        for step in self.steps:
            found[step.what] = found.get(step.what, 0) + 1
        return dict(sorted(found.items()))


class RunOptions(NamedTuple):
    """Options of a run."""

    day: str | None = None  # as of which; that of the newest episode if there is none
    plan_only: bool = False
    since: str | None = None  # look only at what newer episodes touch
    progress: Progress | None = None
    reach: Reach = "news"  # which tracked files it may write
    learn: bool = True  # else only what was learned before is published


def consolidate(workspace: OpenWorkspace, asked: RunOptions) -> Report:
    """Consolidate all that the project's files hold."""
    since = _ago(asked.since or "", workspace.now()) or _checked("since", asked.since, "24h, 7d, ")
    asked = asked._replace(day=_checked("day", asked.day)[:10], since=since)
    if not asked.plan_only:
        take_over_checkpoints(workspace)
    with _no_collection():
        report = _consolidated(workspace, asked)
    if asked.learn:
        _name_unread(workspace)
    if not asked.plan_only:
        workspace.home.embed()
    return report


def _consolidated(workspace: OpenWorkspace, asked: RunOptions) -> Report:
    """One run, with the index up to date before and after; views are rendered once."""
    from loki_memory.consolidation.input import read_input

    workspace.home.ensure("edits")
    try:
        found = read_input(workspace, asked.day or "")
        plan = _planned(found.snapshot, found.touched, asked, is_known=found.is_known)
        placed = publishing(workspace, found.snapshot, found.files, asked.reach).placed(plan)
        changed = {} if asked.plan_only else apply(workspace, plan, placed)
    except BaseException:
        workspace.home.flush()  # the views of changes that were found before
        raise
    workspace.home.wrote()
    if asked.learn and not (asked.plan_only or asked.since):
        found.last_run.replace(changed, found.snapshot.day)
    elif not asked.learn:
        follow(workspace, changed)
    workspace.home.flush()
    counts = len(placed.writes), len(placed.archived)
    steps = [step for step in plan.steps if step.id in placed.ids or step.what == "refused"]
    steps += placed.published
    episodes, private = len(found.snapshot.episodes), tuple(sorted(placed.private))
    worded = _worded(workspace, found.snapshot, plan, asked)
    return Report(plan.day, asked.plan_only, episodes, steps, *counts, private, worded)


def _worded(
    workspace: OpenWorkspace, before: Snapshot, plan: Plan, asked: RunOptions
) -> LanguageReport | None:
    """Have the user's language model word what was learned, in the foreground only.

    All is written by then: nothing that is asked or answered changes a record.
    """
    is_asked = workspace.config.text("language.backend") != OFF
    if not is_asked or not asked.learn or asked.reach == "nothing":
        return None
    from loki_memory.consolidation.lint import is_platitude
    from loki_memory.language.wording import word

    after = {**before.records, **{memory.id: memory for memory in plan.put}}
    live = [after[name] for name in sorted(after.keys() - {*plan.archive})]
    records = [record for record in live if isinstance(record, Memory)]
    return word(workspace, records, is_platitude, plan_only=asked.plan_only)


def _planned(
    before: Snapshot, touched: Touched | None, asked: RunOptions, *, is_known: bool
) -> Plan:
    from loki_memory.consolidation import phases

    if not asked.learn or is_known:
        return phases.Plan((), (), (), (), (), before.day)
    new = _since(asked.since, before) if asked.since else touched
    plan = phases.consolidate(before, phases.all_phases(), new, asked.progress)
    if plan.lost:
        raise WouldLoseBeliefs(plan.lost)
    return plan


@contextmanager
def _no_collection() -> Iterator[None]:
    """Python looks through all values for garbage, again and again; here nearly all are needed.

    Of a large memory that took a fifth of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _name_unread(workspace: OpenWorkspace) -> None:
    """Say which files took no part: what they tell is not lost, and not learned from either."""
    from loki_memory.files.problem import Problem

    found: dict[str, Problem] = {}
    for row in queries.unread_problems(workspace.index):
        found.setdefault(row[0], Problem(*row))
    told = [f"took no part: {entry}" for entry in islice(found.values(), _NAMED)]
    if len(found) > _NAMED:
        told.append(f"{len(found) - _NAMED} more took no part; `loki-mem doctor` names them")
    workspace.notices += [entry for entry in told if entry not in workspace.notices]


def _since(moment: str, before: Snapshot) -> Touched:
    return frozenset(episode.id for episode in before.episodes if episode.timestamp >= moment)


def publishing(
    workspace: OpenWorkspace, snapshot: Snapshot, files: Files, reach: Reach
) -> Publishing:
    """The rules by which the records of a run are placed."""
    from loki_memory.consolidation.publish import Publishing

    return Publishing(snapshot, files, reach, workspace.config.get("publish.sessions"))


def apply(workspace: OpenWorkspace, plan: Plan, placed: Placed) -> dict[str, Rewritten]:
    """Write a plan: all of it, or none. What somebody changed meanwhile is not overwritten.

    Returns the files that were changed. The index is brought up to date later.
    """
    if not (placed.writes or placed.archived):
        return {}
    paths = [*placed.archived]
    learned: list[Skill] = []
    with workspace.store.change() as change:
        for path, record, etag in placed.writes:
            paths += [keep_copy(change, path)] if record.id in plan.whole else []
            stored = change.put(record, path, if_match=etag)
            paths.append(path)
            learned += [stored] if isinstance(stored, Skill) else []
        paths += [archive(change, path) for path in placed.archived]
        files = {path: (workspace.store.read(path), change.read(path)) for path in paths}
    if learned:
        from loki_memory.integrity.accepted_skills import accept

        accept(workspace.layout, *learned)
    return {
        path: Rewritten(*(stored.etag if stored else None for stored in both))
        for path, both in files.items()
    }


def follow(workspace: OpenWorkspace, changed: Mapping[str, Rewritten]) -> None:
    """Tell the next run that it knows these files, so that it looks only at what else is new."""
    if changed:
        with workspace.index.change() as change:
            for path, (before, after) in changed.items():
                change.follow(path, before, after or "")


def _ago(span: str, now: str) -> str:
    """The moment that was `24h` or `7d` ago; empty for anything else."""
    from datetime import datetime, timedelta

    found = _SPAN.fullmatch(span)
    if found is None:
        return ""
    then = datetime.fromisoformat(now) - timedelta(hours=int(found[1]) * _HOURS[found[2]])
    return f"{then:%Y-%m-%dT%H:%M:%SZ}"


def _checked(name: str, given: str | None, besides: str = "") -> str:
    """A moment as it is compared; empty if none is given."""
    from loki_memory.models.text import moment

    if given is None:
        return ""
    try:
        return moment(given)
    except ValueError as error:
        advice = f"Write {besides}2026-01-20 or 2026-01-20T09:00:00Z."
        raise InvalidRecord(str(error), field=name, advice=advice) from None


# -- One phase by itself -------------------------------------------------------------------------


class Deduplicated(NamedTuple):
    """The beliefs that say the same as another one, each with the one that stays."""

    merged: list[BeliefChange]
    written: int  # files
    planned: bool


def dedupe(workspace: OpenWorkspace, *, plan_only: bool = False) -> Deduplicated:
    """Let one of the beliefs that say the same stand for all; the others are kept, superseded."""
    from loki_memory.consolidation import phases
    from loki_memory.consolidation.input import read_input
    from loki_memory.consolidation.merge import merge

    workspace.home.ensure("edits")
    found = read_input(workspace, "")
    plan = phases.consolidate(found.snapshot, [merge])
    placed = publishing(workspace, found.snapshot, found.files, "news").placed(plan)
    if not plan_only:
        changed = apply(workspace, plan, placed)
        workspace.home.wrote()
        follow(workspace, changed)
    merged = [step for step in plan.steps if step.id in placed.ids]
    return Deduplicated(merged, len(placed.writes), plan_only)
