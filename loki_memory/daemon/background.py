"""Work on memory in the background, which changes no file that git tracks.

While a person works in a git repository, files that git tracks must not change: `git pull
--rebase` would refuse. What is learned there is written to the local zone, as candidates, until a
command publishes it: `loki-mem consolidate`.

One round of work looks at what is new, and does nothing if nothing is. The files that a round
writes cause another round, which finds nothing new.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import LokiMemoryError
from loki_memory.workspace import Workspace

if TYPE_CHECKING:
    from loki_memory.consolidation.publish import Reach
    from loki_memory.ingest.run import Failed

_REACH: Reach = "nothing"  # no file that others read: publishing is for commands
_PASSES = 3  # over new files in one round; later changes cause another round
_QUIET_SECONDS = 5.0  # without changes, before views are rendered
_BREATH_SECONDS = 0.05  # between two rounds of embedding, for commands that wait for their turn
_TRANSCRIPTS_SECONDS = 30.0  # between looks at the transcripts: a session rests for minutes


class BackgroundState(NamedTuple):
    """Counters of background work, and of work that waits."""

    rounds: int = 0  # rounds with something to do
    learned: int = 0  # episodes
    ingested: int = 0  # episodes
    trouble: str = ""  # the last error; empty once a round succeeded
    doing: str = "idle"  # idle, ingesting, consolidating


class _Look(NamedTuple):
    """The state of the index and of CONTINUITY.md, compared to see if anything is new."""

    memory: str
    continuity: tuple[int, int, int]


class Background:
    """The work for one workspace that no command waits for."""

    def __init__(
        self, workspace: Workspace, log: Callable[[str], None], quiet_since: float
    ) -> None:
        """`log` takes lines; `quiet_since` is the time from which memory counts as unchanged."""
        self.workspace = workspace
        self.standing = BackgroundState()
        self._log = log
        self._known: set[str] | None = None  # episodes; None before the first round
        self._settings = workspace.home.settings_stamp()
        self._last: _Look | None = None
        self._transcripts: set[tuple[str, int, int]] = set()
        self._looked_for_transcripts = float("-inf")
        self._failed: set[Failed] = set()  # sessions that could not be recorded
        self._views_wait = True
        self._texts_wait = False  # for a vector of the sentence model
        self._fresh = 0  # episodes since the last consolidation, or its plan
        self._changed = quiet_since  # when memory last changed

    def round(self, clock: float, stopping: Callable[[], bool] = lambda: False) -> None:
        """Look for changes, and do the work they cause. `clock` is in seconds."""
        steps = (
            self._take_in,
            self._ingest,
            self._review,
            self._work_on_news,
            self._consolidate,
            self._embed,
        )
        troubles = [
            trouble for step in steps if not stopping() and (trouble := self._tried(step, clock))
        ]
        self._note(trouble="; ".join(troubles))

    def pause(self, longest: float) -> float:
        """The seconds until there is something to do, if nothing changes."""
        if self._texts_wait:
            return _BREATH_SECONDS
        return min(longest, _QUIET_SECONDS) if self._views_wait else longest

    def _tried(self, step: Callable[[float], None], clock: float) -> str:
        """Do one step; an error in it is logged once, and stops no other step."""
        try:
            step(clock)
        except (LokiMemoryError, OSError, sqlite3.DatabaseError) as error:
            if str(error) not in self.standing.trouble:
                self._log(f"trouble: {error}")
            return str(error)
        finally:
            self._note(doing="idle")
            self._say_notices()
        return ""

    def _say_notices(self) -> None:
        for notice in dict.fromkeys(self.workspace.notices):
            self._log(notice)
        self.workspace.notices.clear()

    def _note(self, **counts: int | str) -> None:
        self.standing = self.standing._replace(**counts)  # type: ignore[arg-type]

    # -- the steps ---------------------------------------------------------------------------------

    def _take_in(self, clock: float) -> None:
        """Bring the index up to date; take over views at once, and render them when it is quiet:
        thousands of records take seconds.
        """
        self._read_settings()
        changes = self.workspace.home.ensure("files")
        if changes:
            counts = zip(("new", "changed", "removed"), changes[:3], strict=True)
            self._log("files: " + ", ".join(f"{len(paths)} {kind}" for kind, paths in counts))
            self._changed = clock
        self._views_wait = self._views_wait or bool(changes)
        is_quiet = clock - self._changed >= _QUIET_SECONDS
        if self.workspace.home.has_edited_views() or (self._views_wait and is_quiet):
            self._views_wait = False
            self.workspace.sync()
            self._texts_wait = True

    def _embed(self, _: float) -> None:
        """Embed some of what has no vector yet; commands are answered between two rounds."""
        if self._texts_wait:
            self._note(doing="embedding")
            self._texts_wait = not self.workspace.home.embed()

    def _read_settings(self) -> None:
        """Apply settings that were changed since they were read."""
        stamps = self.workspace.home.settings_stamp()
        if stamps != self._settings:
            self.workspace.home.__dict__.pop("config", None)
        self._settings = stamps

    def _ingest(self, clock: float) -> None:
        """Record sessions that rest as episodes, if transcripts grew or sessions wait."""
        if clock - self._looked_for_transcripts < _TRANSCRIPTS_SECONDS:
            return
        self._looked_for_transcripts = clock
        there = set(self._transcripts_there())
        if there == self._transcripts and not self.workspace.sessions.staged():
            return
        self._note(doing="ingesting")
        done = self.workspace.sessions.ingest_new()
        self._transcripts = there
        for failed in sorted(set(done.failed) - self._failed):
            self._log(f"session {failed.session} could not be recorded: {failed.reason}")
        self._failed = set(done.failed)
        if done.episodes:
            self._log(f"ingested {_counted(done.episodes, 'episode')}")
            self._note(ingested=self.standing.ingested + done.episodes)
            self._settle(clock)

    def _transcripts_there(self) -> Iterator[tuple[str, int, int]]:
        """The transcripts that agents keep on this machine, each with its size and time."""
        for path in self.workspace.sessions.transcripts():
            with suppress(OSError):
                status = os.stat(path)
                yield str(path), status.st_size, status.st_mtime_ns

    def _review(self, _: float) -> None:
        """Find out who answers for memory that is new, so that hooks need not ask git."""
        self.workspace.history.renew_review()

    def _work_on_news(self, clock: float) -> None:
        """Learn from new episodes, and bring working memory up to date.

        Repeat if that changed something, for an agent may have written meanwhile. The last pass
        only finds that nothing is new.
        """
        for number in range(_PASSES):
            look = self._look()
            if look == self._last:
                return
            self._last = look
            self._learn()
            self._refresh()
            self._settle(clock)
            self._note(rounds=self.standing.rounds + (number == 0))

    def _settle(self, clock: float) -> None:
        """Take in what was just written, so that its file event finds nothing new."""
        if self.workspace.home.ensure("files"):
            self._changed, self._views_wait = clock, True

    def _look(self) -> _Look:
        path = self.workspace.layout.loki / "CONTINUITY.md"
        try:
            status = os.stat(path)
        except FileNotFoundError:
            return _Look(self.workspace.index.note("changed_ns"), (0, 0, 0))
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        return _Look(self.workspace.index.note("changed_ns"), stamp)

    def _learn(self) -> None:
        """Run the first phases for each new episode."""
        learned = self.workspace.sessions.learn_new(self._new_episodes())
        if learned:
            self._log(f"learned from {_counted(learned, 'episode')}")
        self._note(learned=self.standing.learned + learned)

    def _new_episodes(self) -> list[str]:
        """The ids of new episodes since the last look."""
        there = [name for name, _ in self.workspace.index.places("episode")]
        new = [] if self._known is None else [name for name in there if name not in self._known]
        # What was there at the start may have been consolidated: that is found out once it is idle.
        self._fresh += min(1, len(there)) if self._known is None else len(new)
        self._known = set(there)
        return new

    def _refresh(self) -> None:
        """Render CONTINUITY.md for the last goal, if it is in use and git does not track it."""
        is_tracked = self.workspace.config.get("continuity.track")
        if not is_tracked and self.workspace.browse.refresh_continuity():
            self._log("rendered CONTINUITY.md")

    def _consolidate(self, clock: float) -> None:
        """Consolidate once there is enough that is new, or once memory is quiet.

        It makes and renews candidates; publishing is left to commands, with git or without.
        """
        if not self._is_consolidation_due(clock):
            return
        self._fresh = 0
        self._note(doing="consolidating")
        report = self.workspace.consolidate(reach=_REACH, commit=False)
        found = report.written + report.archived
        if found:
            self._work_on_news(clock)
            self._log(f"consolidated: {_counted(found, 'change')}")

    def _is_consolidation_due(self, clock: float) -> bool:
        config = self.workspace.config
        if not self._fresh:
            return False
        is_idle = clock - self._changed >= config.get("watch.idle_seconds")
        return is_idle or self._fresh >= config.get("watch.episodes")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
