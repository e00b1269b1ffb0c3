"""Transcripts of agents' sessions -> staged turns -> episodes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loki_memory.consolidation.untrack_sessions import Untracked
    from loki_memory.ingest.clients_seen import SeenClient
    from loki_memory.ingest.local_archive import Exported, Merged
    from loki_memory.ingest.pause import Pause
    from loki_memory.ingest.replay import Replay
    from loki_memory.ingest.run import Ingested, Waiting
    from loki_memory.models import Episode
    from loki_memory.workspace import Workspace


class Sessions:
    """Sessions of agents, as `ws.sessions`: what waits, verdicts of gates, and a pause."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def staged(self) -> list[Waiting]:
        """Return what was read of sessions and is not told as episodes yet, and why."""
        from loki_memory.ingest.run import staged

        return staged(self._workspace)

    def ingest_new(self, paths: Iterable[str | os.PathLike[str]] | None = None) -> Ingested:
        """As `ws.ingest`, for work in the background: episodes are only added."""
        from loki_memory.ingest.run import ingest

        return ingest(self._workspace, paths, only_add=True)

    def to_be_taken(self) -> list[Path]:
        """The transcripts that `ws.ingest` without paths would read."""
        from loki_memory.ingest.run import to_be_taken

        return to_be_taken(self._workspace)

    def has_ingested(self) -> bool:
        """Check whether anything was ever read."""
        from loki_memory.ingest.run import has_ingested

        return has_ingested(self._workspace)

    def transcripts(self) -> Iterator[Path]:
        """Yield the transcripts of all projects that agents keep on this machine."""
        from loki_memory.ingest.discover import places, transcripts

        return transcripts(place for place in places(os.environ) if place.is_dir())

    def clients_seen(self) -> list[SeenClient]:
        """The clients whose sessions were read here, with the last day of each."""
        from loki_memory.ingest.clients_seen import clients_seen

        return clients_seen(self._workspace)

    def episodes_in(self, data: bytes) -> Iterator[tuple[int, Any]]:
        """Yield the episodes of a file (one object, a list, or JSONL), each with its line."""
        from loki_memory.ingest.record import episodes_in

        return episodes_in(data)

    def valid_episode(self, given: Episode | Mapping[str, Any]) -> Episode:
        """The episode as it would be recorded; raises InvalidRecord."""
        from loki_memory.ingest.record import valid_episode

        return valid_episode(self._workspace, given)

    def untrack(self, *, dry_run: bool = False) -> Untracked:
        """Move the episodes of captured sessions out of git to this machine."""
        from loki_memory.consolidation.untrack_sessions import untrack_sessions

        return untrack_sessions(self._workspace, dry_run=dry_run)

    def learn(self, session: str) -> int:
        """Learn from the episodes of a session, as candidates; returns how many there are.

        The next session that meets one of its errors is told what mended it. What takes comparing
        all episodes waits for `consolidate`.

        >>> ws.sessions.learn("3f2a")  # doctest: +SKIP
        """
        from loki_memory.ingest.run import learn_session

        return learn_session(self._workspace, session)

    def learn_new(self, episodes: Sequence[str]) -> int:
        """Learn from new episodes, one by one, as candidates; returns how many taught something.

        So many that they must be an import teach nothing here: `consolidate` learns from them.
        """
        from loki_memory.ingest.run import learn_new

        return learn_new(self._workspace, episodes)

    def pause(self, span: str | None = None) -> Pause:
        """Capture nothing and inject nothing on this machine, for a while or until `resume`.

        >>> ws.sessions.pause("2h").until  # doctest: +SKIP
        """
        from loki_memory.ingest.pause import pause

        return pause(self._workspace, span)

    def resume(self) -> bool:
        """Capture and inject again; says whether it was paused."""
        from loki_memory.ingest.pause import resume

        return resume(self._workspace)

    def replay(self, episode: str) -> Replay:
        """An episode step by step, and what became of each file that it touched."""
        from loki_memory.ingest.replay import replay

        return replay(self._workspace, episode)

    def export_local(self, path: str | os.PathLike[str]) -> Exported:
        """Write what exists only on this machine to a file: sessions, candidates, private notes.

        >>> ws.sessions.export_local("shop.jsonl").records  # doctest: +SKIP
        """
        from loki_memory.ingest.local_archive import export_local

        return export_local(self._workspace, Path(path))

    def is_local_archive(self, path: Path) -> bool:
        """Check if a file was made by `export_local`."""
        from loki_memory.ingest.local_archive import is_archive

        return path.is_file() and is_archive(path)

    def import_local(
        self, path: str | os.PathLike[str], other_project: bool = False, plan_only: bool = False
    ) -> Merged:
        """Merge such a file of another machine or another clone; what is here stays.

        >>> ws.sessions.import_local("shop.jsonl").added  # doctest: +SKIP
        """
        from loki_memory.ingest.local_archive import import_local

        return import_local(
            self._workspace, Path(path), other_project=other_project, plan_only=plan_only
        )

    def record_verdict(
        self,
        report: bytes,
        gate: str = "",
        goal: str = "",
        outcome: str = "",
        agent: str = "",
        task: str = "",
    ) -> Episode:
        """Record the verdict of a gate (tests, a linter, a review) from its report.

        JUnit XML, the JSON of ESLint and ruff, SARIF, or a small form of our own. What is given
        besides wins over what the report says.

        >>> ws.sessions.record_verdict(Path("junit.xml").read_bytes()).outcome  # doctest: +SKIP
        """
        from loki_memory.ingest.gate import GateOptions, record_verdict

        return record_verdict(
            self._workspace, report, GateOptions(gate, goal, outcome, agent, task)
        )
