"""Transcripts of agents' sessions -> staged turns -> episodes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace
    from loki_memory.ingest.hook_notes import SeenClient
    from loki_memory.ingest.local_archive import Exported, Merged
    from loki_memory.ingest.pause import Pause
    from loki_memory.ingest.replay import Replay
    from loki_memory.ingest.run import Ingested, Waiting
    from loki_memory.ingest.session_events import Draft
    from loki_memory.ingest.turns import Turn
    from loki_memory.models import Episode


class Sessions:
    """Sessions of agents, as `ws.sessions`: what waits, verdicts of gates, and a pause."""

    def __init__(self, workspace: OpenWorkspace) -> None:
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
        from loki_memory.ingest.hook_notes import clients_seen

        return clients_seen(self._workspace)

    def episodes_in(self, data: bytes) -> Iterator[tuple[int, Any]]:
        """Yield the episodes of a file (one object, a list, or JSONL), each with its line."""
        from loki_memory.ingest.record import episodes_in

        return episodes_in(data)

    def valid_episode(self, given: Episode | Mapping[str, Any]) -> Episode:
        """The episode as it would be recorded; raises InvalidRecord."""
        from loki_memory.ingest.record import valid_episode

        return valid_episode(self._workspace, given)

    # -- a session that is running --------------------------------------------------------------

    def why_off(self) -> str:
        """The reason why nothing is captured or injected now; empty if there is none."""
        from loki_memory.ingest.pause import why_off

        return why_off(self._workspace)

    def stage_transcript(self, path: str) -> bool:
        """Read a transcript up to where it is; False if its session is not of this repository."""
        from loki_memory.ingest.hook_turns import stage_transcript

        return stage_transcript(self._workspace, path)

    def began_here(self, transcript: str) -> bool:
        """Check that a transcript tells of a session that began in this repository."""
        from loki_memory.ingest.hook_turns import is_of

        return is_of(self._workspace, transcript)

    def left_behind(self, transcript: str) -> list[Path]:
        """Transcripts beside this one that were written since the last look, the newest first."""
        from loki_memory.ingest.hook_notes import left_behind

        return left_behind(self._workspace, transcript)

    def note_look(self) -> None:
        """Note that sessions which ended silently were looked for now."""
        from loki_memory.ingest.hook_notes import note_look

        note_look(self._workspace)

    def note_prompt(self, session: str, folder: str, prompt: str) -> None:
        """Note what was asked for in a session that has no transcript."""
        from loki_memory.ingest.hook_turns import note_prompt

        note_prompt(self._workspace, session, folder, prompt)

    def note_call(
        self,
        session: str,
        folder: str,
        call: str,
        tool: dict[str, Any],
        answer: str,
        *,
        failed: bool,
    ) -> None:
        """Note a call of a tool, with its answer, in a session that has no transcript."""
        from loki_memory.ingest.hook_turns import note_call

        note_call(self._workspace, session, folder, call, tool, answer, failed=failed)

    def note_end(self, session: str, folder: str) -> None:
        """Note that a session is over, so that it is told without waiting."""
        from loki_memory.ingest.hook_turns import note_end

        note_end(self._workspace, session, folder)

    def note_client(self, environment: Mapping[str, str], transcript: str) -> None:
        """Note which client runs the session."""
        from loki_memory.ingest.hook_notes import note_client

        note_client(self._workspace, environment, transcript)

    def note_gates(self, session: str) -> None:
        """Note which tests, linters and builds of a session refuse the work, or pass again."""
        from loki_memory.ingest.gate_runs import note_gates

        note_gates(self._workspace, self.staged_turns(session))

    def note_gate_run(self, tool: str, command: str, answer: str, *, failed: bool) -> None:
        """Note how a command ended, if it is a test, a linter or a build."""
        from loki_memory.ingest.steps import CHECKS, Step

        if not CHECKS.search(command):
            return
        from loki_memory.ingest.gate_runs import gate_runs, note_runs
        from loki_memory.ingest.turns import instant

        at = instant(self._workspace.now())
        step = Step(at, tool, command, answer=answer, failed=failed, ended=True)
        note_runs(self._workspace, gate_runs([step]))

    def staged_turns(self, session: str) -> list[Turn]:
        """The turns of a session, as far as they are staged."""
        from loki_memory.ingest.hook_turns import staged_turns

        return staged_turns(self._workspace, session)

    def last_prompt(self, session: str) -> str:
        """The last prompt of a session, as far as it is staged."""
        from loki_memory.ingest.hook_turns import last_prompt

        return last_prompt(self._workspace, session)

    def last_files(self, session: str) -> list[str]:
        """The files of the project that a session changed or read, the newest first."""
        from loki_memory.ingest.steps import steps, touched

        done = steps(self.staged_turns(session))
        found = touched(done, str(self._workspace.layout.root))
        return [*dict.fromkeys([*reversed(found.changed), *reversed(found.read)])]

    def drafts(self, session: str) -> list[Draft] | None:
        """Drafts of what the last piece of work taught; None if nothing was done in the session."""
        from loki_memory.ingest.seen_words import SeenWords
        from loki_memory.ingest.session_events import last_events
        from loki_memory.ingest.turns import CALL

        turns = list(SeenWords().attributed(self.staged_turns(session)))
        return last_events(turns) if any(turn.kind == CALL for turn in turns) else None

    def was_asked(self, session: str) -> bool:
        """Check if the agent of a session was asked for lessons."""
        from loki_memory.ingest.hook_notes import was_asked

        return was_asked(self._workspace, session)

    def note_asked(self, session: str) -> bool:
        """Note that an agent is asked for lessons; False if another hook did so meanwhile."""
        from loki_memory.ingest.hook_notes import note_asked

        return note_asked(self._workspace, session)

    # -- episodes and their files ---------------------------------------------------------------

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
