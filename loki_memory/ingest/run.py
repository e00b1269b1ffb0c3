"""Ingest transcripts for a workspace: read them, stage their turns, and write episodes.

Named files are taken whatever they belong to, and their sessions count as ended. Otherwise only
sessions that began in this repository or a worktree of it are taken, for memory is pushed with the
code; and only once they rest. Episodes are new files. One that was told before and goes on is told
anew, unless somebody changed, archived or forgot it since. Nothing else of memory is touched:
`consolidate` learns from it.
"""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import (
    EverythingVanished,
    InvalidRecord,
    LokiMemoryError,
    NotFound,
    StoreBusy,
)
from loki_memory.files import disk
from loki_memory.files.layout import PRIVATE, archived_path, place
from loki_memory.files.lock import locked
from loki_memory.files.redaction import redact
from loki_memory.files.store import failures_named, sealed
from loki_memory.ingest.discover import belongs, places, tops, transcripts
from loki_memory.ingest.hook_turns import told_turns
from loki_memory.ingest.pause import why_off
from loki_memory.ingest.read_transcript import DIALECTS, Read, RefusedLine, read
from loki_memory.ingest.record import is_recorded
from loki_memory.ingest.seen_words import SeenWords
from loki_memory.ingest.staging import TELLER, Made, StagedSession, Staging, Watermarks
from loki_memory.ingest.turns import Dialect, instant
from loki_memory.ingest.utterances import utterances
from loki_memory.models import Episode, Memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from loki_memory.files.store import Change
    from loki_memory.homes import OpenWorkspace

    Progress = Callable[[int, int], None]

_REASONS = 100  # refused lines that a report names; it counts all
_AT_ONCE = 100  # episodes that are held in memory and written together
_WRITTEN = {"new": 1, "changed": 1, "known": 0, "left": 0}
_DUE = "`loki-mem ingest` tells it, or says why it cannot"
_LOCK_SECONDS = 60.0  # another process may be reading a gigabyte


class Ingested(NamedTuple):
    """The result of an ingestion: read + refused + waiting = lines."""

    files: int = 0
    lines: int = 0
    read: int = 0
    refused: int = 0
    waiting: int = 0  # lines that are not complete yet
    reasons: tuple[RefusedLine, ...] = ()
    unknown: dict[str, int] = {}  # noqa: RUF012 - never changed: types of lines, how often
    rewritten: tuple[str, ...] = ()  # files that were not what they had been
    episodes: int = 0  # new ones
    changed: int = 0  # episodes that went on
    errors: int = 0  # in new and changed episodes
    staged: int = 0  # sessions that wait
    failed: tuple[Failed, ...] = ()
    off: str = ""  # why nothing was captured


class Failed(NamedTuple):
    """A session that could not be told, and why; it waits, and the next run tries again."""

    session: str
    reason: str


class Waiting(NamedTuple):
    """A session, or a file, of which something waits, and for what."""

    what: str
    turns: int
    last: str
    why: str


class _EpisodeCounts(NamedTuple):
    """The result for one session."""

    new: int = 0
    changed: int = 0
    errors: int = 0
    failed: Failed | None = None


def ingest(
    workspace: OpenWorkspace,
    paths: Iterable[str | os.PathLike[str]] | None = None,
    source: str | None = None,
    *,
    only_add: bool = False,
    progress: Progress | None = None,
) -> Ingested:
    """Read transcripts and tell their sessions as episodes.

    `paths` are files or folders; without them, the sessions of this repository are looked for.
    `source` names the agent that wrote them, such as `codex`; without it, each file tells.
    `only_add` is for work in the background, which must not change files that git may track:
    episodes that went on wait for the next run without it.
    """
    off = why_off(workspace)
    if off:
        return Ingested(off=off)
    dialects = _dialects(source)
    workspace.home.before_write()
    named = None if paths is None else list(transcripts(map(Path, paths)))
    files = _found(workspace) if named is None else named
    folder = _folder(workspace)
    with failures_named(folder):
        disk.make_folder(folder)
        with locked(folder / ".lock", _LOCK_SECONDS):
            staging, marks = Staging(folder / "sessions"), Watermarks(folder / "marks")
            staging.redact_earlier()
            read_ = partial(read, staging=staging, marks=marks, dialects=dialects)
            reads = _read_all(files, partial(read_, in_background=only_add), progress)
            due = _due(workspace, staging, reads, is_named=named is not None, anew=not only_add)
            told = [_tried(workspace, staging, session, only_add=only_add) for session in due]
            return _report(reads, told, len(staging.sessions()))


def learn_session(workspace: OpenWorkspace, session: str) -> int:
    """Run the first phases of consolidation for the captured episodes of a session."""
    from loki_memory.consolidation.feedback import teaches
    from loki_memory.consolidation.learn_now import learn
    from loki_memory.home import parsed
    from loki_memory.index.queries import episodes_of_session

    workspace.home.ensure("files")
    bodies = episodes_of_session(workspace.index, session) if session else []
    found = [record for body in bodies if isinstance(record := parsed("episode", body), Episode)]
    new = [episode for episode in found if episode.captured and teaches(episode)]
    if new:
        learn(workspace, new, "nothing")
    return len(new)


def learn_new(workspace: OpenWorkspace, names: Sequence[str]) -> int:
    """Run the first phases of consolidation for each new episode; returns for how many."""
    from loki_memory.consolidation.feedback import teaches
    from loki_memory.consolidation.learn_now import learn
    from loki_memory.ingest.record import FEW

    new = [
        episode
        for episode in (_episodes(workspace, names) if len(names) <= FEW else ())
        if (episode.scope == "project" or episode.captured) and teaches(episode)
    ]
    for episode in new:
        learn(workspace, [episode], "nothing")
    return len(new)


def _episodes(workspace: OpenWorkspace, names: Iterable[str]) -> Iterator[Episode]:
    for name in names:
        with suppress(NotFound):  # it was removed a moment ago
            yield workspace.get(name)  # type: ignore[misc]


def staged(workspace: OpenWorkspace) -> list[Waiting]:
    """Return what was read and is no episode yet, and why."""
    folder = _folder(workspace)
    staging, marks = Staging(folder / "sessions"), Watermarks(folder / "marks")
    now, idle = workspace.now(), workspace.config.get("capture.idle_minutes")
    sessions = [
        Waiting(session.name, session.turns, session.last, _why(session, now, idle) or _DUE)
        for session in staging.sessions()
    ]
    files = [
        Waiting(entry.path, entry.waiting, "", "its last line is not complete")
        for entry in marks.all()
        if entry.waiting
    ]
    return [*sessions, *files]


def clear_told(
    workspace: OpenWorkspace, is_old: Callable[[Path], bool], *, dry_run: bool
) -> dict[Path, int]:
    """Clear old logs of sessions that were told; returns each with its size."""
    folder = _folder(workspace)
    if not folder.is_dir():
        return {}
    staging, seconds = Staging(folder / "sessions"), workspace.config.get("store.lock_seconds")
    with failures_named(folder), locked(folder / ".lock", seconds):
        found = {path: path.stat().st_size for path in staging.finished() if is_old(path)}
        if not dry_run:
            for path in found:
                staging.clear(path)
            staging.redact_earlier()
    return found


def to_be_taken(workspace: OpenWorkspace) -> list[Path]:
    """The transcripts that `ingest` without paths would read."""
    return _found(workspace)


def has_ingested(workspace: OpenWorkspace) -> bool:
    """Check whether anything was ever read."""
    return bool(Watermarks(_folder(workspace) / "marks").all())


def _folder(workspace: OpenWorkspace) -> Path:
    return workspace.layout.local / "ingest"


def _dialects(source: str | None) -> Sequence[type[Dialect]]:
    known = [entry for entry in DIALECTS if source in {None, entry.name}]
    if not known:
        names = ", ".join(entry.name for entry in DIALECTS)
        raise InvalidRecord(
            f"{source!r} is no agent whose transcripts are known", advice=f"Use one of: {names}."
        )
    return known


def _found(workspace: OpenWorkspace) -> list[Path]:
    folders = tops(workspace.layout.root)
    found: list[Path] = []
    for path in transcripts(kept for kept in places(os.environ) if kept.exists()):
        # What cannot be opened, or began in a folder that cannot be, is nobody's.
        with suppress(OSError, ValueError, EOFError, zlib.error):
            found += [path] if belongs(path, folders) else []
    return found


def _read_all(
    files: Sequence[Path], read_one: Callable[[Path], Read], progress: Progress | None
) -> list[Read]:
    """Read each file; one that cannot be read does not keep the others from it."""
    reads = []
    for number, path in enumerate(files, 1):
        try:
            reads.append(read_one(path))
        except (OSError, EOFError, zlib.error) as error:
            reads.append(Read(str(path), reasons=(RefusedLine(str(path), 0, _reason(error)),)))
        if progress is not None:
            progress(number, len(files))
    return reads


def _reason(error: Exception) -> str:
    said = error.strerror if isinstance(error, OSError) else ""
    return f"cannot be read ({said or error})"


# -- from turns to episodes ------------------------------------------------------------------------


def _due(
    workspace: OpenWorkspace,
    staging: Staging,
    reads: Iterable[Read],
    *,
    is_named: bool,
    anew: bool,
) -> list[str]:
    """The sessions to be told now: those that were named, or all that rest."""
    waiting = staging.sessions(anew=anew)
    if is_named:
        named = {session for entry in reads for session in entry.sessions}
        return [entry.name for entry in waiting if entry.name in named and entry.asked]
    now, idle = workspace.now(), workspace.config.get("capture.idle_minutes")
    return [entry.name for entry in waiting if not _why(entry, now, idle)]


def _why(session: StagedSession, now: str, idle: int) -> str:
    """Return what a session waits for; empty if for nothing."""
    if not session.asked:
        return "it holds no prompt, so nobody knows what the work was about"
    then, last = (datetime.fromisoformat(instant(entry)) for entry in (now, session.last))
    rests = (then - last).total_seconds()
    if session.ended or rests >= idle * 60:
        return ""
    return f"it is under way: its last turn is {max(0, int(rests // 60))} of {idle} minutes old"


def _tried(
    workspace: OpenWorkspace, staging: Staging, session: str, *, only_add: bool
) -> _EpisodeCounts:
    """Tell a session; one that cannot be told does not keep the others from it."""
    try:
        return _tell(workspace, staging, session, only_add=only_add)
    except StoreBusy:  # so it is for all of them
        raise
    except (LokiMemoryError, ValueError) as error:
        return _EpisodeCounts(failed=Failed(session, redact(str(error))))


def _tell(
    workspace: OpenWorkspace, staging: Staging, session: str, *, only_add: bool
) -> _EpisodeCounts:
    """Write the episodes of a session, as far as they are new or have gone on."""
    from loki_memory.ingest.episodes import episodes  # much to load for who only looks
    from loki_memory.ingest.statements import statements

    made, size = staging.made(session), staging.size(session)
    telling = _Telling(workspace, made.episodes, only_add=only_add)
    scope = workspace.config.text("capture.scope")
    seen = SeenWords()
    prose = utterances(seen.attributed(told_turns(staging, session)))
    stated = statements(*prose)
    turns = seen.applied(told_turns(staging, session))  # read again: it may be long
    records = episodes(turns, scope, stated)
    with suppress(EverythingVanished):  # then nobody knows what an agent recorded itself
        workspace.home.ensure("current")
    while some := list(islice(records, _AT_ONCE)):
        telling.write([record for record in some if not is_recorded(workspace, record)])
    telling.take_back()
    counts = telling.counts
    is_left = counts["left"] > 0
    told, teller = (made.size, made.teller) if is_left else (size, TELLER)
    staging.set_made(Made(session, told, telling.after, teller))
    return _EpisodeCounts(counts["new"], counts["changed"], counts["errors"])


class _Telling:
    """The episodes of one session on their way into the store."""

    def __init__(
        self, workspace: OpenWorkspace, before: dict[str, list[str]], *, only_add: bool
    ) -> None:
        self.workspace = workspace
        self.before = before  # what we wrote last time: id -> path, etag
        self.after: dict[str, list[str]] = {}
        self.only_add = only_add
        self.counts: Counter[str] = Counter()

    def write(self, records: Sequence[Episode]) -> None:
        """Write some episodes, all or none."""
        from loki_memory.consolidation.feedback import completed

        new = [record for record in records if record.id not in self.before]
        recalled = completed(self.workspace.home, new, self.workspace.now())  # what hooks noted
        with self.workspace.store.change() as change:
            for record in records:
                what = self._put(change, recalled.get(record.id, record))
                self.counts[what] += 1
                self.counts["errors"] += _WRITTEN[what] * len(record.errors_encountered)

    def _put(self, change: Change, episode: Episode) -> str:
        """Write an episode, unless what stands there is not as we wrote it."""
        path = place(episode)
        there = change.read(path)
        before = self.before.get(episode.id)
        self.after[episode.id] = before or [path, ""]
        if there is None:
            if before or change.read(archived_path(path)):  # somebody took it out
                return "known"
            change.create(episode)
            self._note(change, episode.id, path)
            return "new"
        whole = _with_recalled(episode, change.record(path))
        if sealed(whole)[1] == there.data:
            self._note(change, episode.id, path)
            return "known"
        if before is None or before[1] != there.etag:
            return "known"
        if self.only_add and not path.startswith(PRIVATE):
            return "left"
        change.put(whole, path)
        self._note(change, episode.id, path)
        return "changed"

    def _note(self, change: Change, name: str, path: str) -> None:
        written = change.read(path)
        self.after[name] = [path, written.etag if written else ""]

    def take_back(self) -> None:
        """Remove episodes that the session, now that more of it is known, does not have."""
        gone = {name: self.before[name] for name in sorted(self.before.keys() - self.after.keys())}
        if self.only_add:
            left = {name: entry for name, entry in gone.items() if not entry[0].startswith(PRIVATE)}
            self.after |= left
            self.counts["left"] += len(left)
            gone = {name: entry for name, entry in gone.items() if name not in left}
        if gone:
            with self.workspace.store.change() as change:
                for path, etag in gone.values():
                    there = change.read(path)
                    if there is not None and there.etag == etag:
                        change.remove(path)


def _with_recalled(episode: Episode, there: Memory | None) -> Episode:
    """Return what an episode was shown is noted when it is told first, and stays."""
    known = there.recalled if isinstance(there, Episode) else []
    return (
        episode.changed(recalled=[recalled.model_dump(exclude_unset=True) for recalled in known])
        if known
        else episode
    )


def _report(reads: Sequence[Read], told: Sequence[_EpisodeCounts], waiting: int) -> Ingested:
    unknown: Counter[str] = Counter()
    for entry in reads:
        unknown.update(dict(entry.unknown))
    reasons = [reason for entry in reads for reason in entry.reasons]
    return Ingested(
        files=len(reads),
        lines=sum(entry.lines for entry in reads),
        read=sum(entry.read for entry in reads),
        refused=sum(entry.refused for entry in reads),
        waiting=sum(entry.waiting for entry in reads),
        reasons=tuple(reasons[:_REASONS]),
        unknown=dict(sorted(unknown.items())),
        rewritten=tuple(entry.path for entry in reads if entry.was_rewritten),
        episodes=sum(entry.new for entry in told),
        changed=sum(entry.changed for entry in told),
        errors=sum(entry.errors for entry in told),
        staged=waiting,
        failed=tuple(entry.failed for entry in told if entry.failed),
    )
