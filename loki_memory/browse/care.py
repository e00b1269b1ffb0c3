"""The care of a workspace: its problems, the doctor, and clearing what is no longer needed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from loki_memory.browse.audit import Audit
    from loki_memory.browse.doctor import Diagnosis, Verdict
    from loki_memory.browse.purge import Purged, Tainted
    from loki_memory.browse.status import Garbage
    from loki_memory.consolidation.run import Deduplicated
    from loki_memory.editing.quarantine import QuarantineCase
    from loki_memory.files.problem import Problem
    from loki_memory.homes import OpenWorkspace
    from loki_memory.models import Memory


class Care:
    """The care of a workspace, as `ws.care`."""

    def __init__(self, workspace: OpenWorkspace) -> None:
        self._workspace = workspace

    def problems(self) -> list[Problem]:
        """List files that cannot be read or need a person: line, field, reason, what to do."""
        return self._workspace.home.problems()

    def doctor(
        self,
        *,
        deep: bool = False,
        fix: bool = False,
        besides: Iterable[tuple[str, Verdict, str]] = (),
    ) -> Diagnosis:
        """Examine the workspace; with `fix`, mend what can be mended without loss.

        `besides` are findings of the caller: the check, its verdict, and a sentence.
        """
        from loki_memory.browse.doctor import Finding, examine

        found = examine(self._workspace, deep=deep, fix=fix)
        added = [Finding(*finding) for finding in besides]
        well = found.well and all(finding.verdict == "ok" for finding in added)
        return found._replace(well=well, findings=[*found.findings, *added])

    def audit(self, *, of: Path | None = None, repeats: int = 0) -> Audit:
        """Count the memories that are junk or contradict each other, by class, with examples.

        `of` is where the memory of another system lies that was imported here; `repeats` counts
        the entries that were exact copies of others.

        >>> ws.care.audit().rate  # doctest: +SKIP
        """
        from loki_memory.browse.audit import audit, project_around

        root = project_around(of) if of else self._workspace.layout.root
        return audit(self._workspace, root, repeats=repeats)

    def put_back(self, record: Memory) -> Memory:
        """Undo a change: give a memory the content that it had when it was read."""
        from loki_memory.editing.edits import put_back

        return put_back(self._workspace, record)

    def dedupe(self, *, plan_only: bool = False) -> Deduplicated:
        """Merge patterns and facts that say the same; the others are kept, superseded."""
        from loki_memory.consolidation.run import dedupe

        return dedupe(self._workspace, plan_only=plan_only)

    def purge(self, given: str) -> Purged:
        """Remove a memory by its id, or a text, from all that was ever written here."""
        from loki_memory.browse.purge import purge

        return purge(self._workspace, given)

    def taint(self, source: str, why: str = "", *, dry_run: bool = False) -> Tainted:
        """Quarantine everything derived from an episode, session, commit, author or file."""
        from loki_memory.browse.purge import taint

        return taint(self._workspace, source, why, dry_run=dry_run)

    def quarantine(self) -> list[QuarantineCase]:
        """The cases in quarantine, the oldest first."""
        from loki_memory.browse.purge import cases

        return cases(self._workspace)

    def release(self, case: str) -> QuarantineCase:
        """Bring the memories of a case back."""
        from loki_memory.browse.purge import release

        return release(self._workspace, case)

    def drop(self, case: str) -> QuarantineCase:
        """Delete the memories of a case for good."""
        from loki_memory.browse.purge import drop

        return drop(self._workspace, case)

    def gc(
        self,
        *,
        dry_run: bool = False,
        untrack_sessions: bool = False,
        prune: bool = False,
        day: str = "",
    ) -> Garbage:
        """Clear litter of killed writers, old indexes, and memories that were forgotten long ago.

        Old episodes that git tracks are summarised, and those that nothing rests on archived, as
        of `day` or of the newest episode. `untrack_sessions` moves the episodes of captured
        sessions out of git to this machine; `prune` archives the facts that the settings `prune.*`
        call dispensable. The index gives unused pages back to the disk.
        """
        from loki_memory.browse.status import collect_garbage, vacuum
        from loki_memory.consolidation.retention import prune as prune_facts
        from loki_memory.consolidation.retention import retain
        from loki_memory.consolidation.retention import untrack_sessions as untrack

        workspace = self._workspace
        garbage = collect_garbage(workspace, dry_run=dry_run)
        if untrack_sessions:
            done = untrack(workspace, dry_run=dry_run)
            garbage = garbage._replace(untracked=done.episodes, completed=done.completed)
        old = retain(workspace, day=day, dry_run=dry_run)
        pruned = prune_facts(workspace, dry_run=dry_run) if prune else ()
        freed = 0 if dry_run else vacuum(workspace)
        changed = garbage._replace(summarised=old.summarised, archived=old.archived)
        return changed._replace(pruned=pruned, index_bytes=freed)
