"""Undo what should never have been kept: purge a text or a memory, taint a source.

A purge goes through everything that this program ever wrote. Memory files first, so that nothing
can be derived from them again; then what lies in the local zone, CONTINUITY.md, published skills
and exports; then the cache, which is deleted and made anew (a database keeps deleted rows on its
free pages); then git. At the end everything is searched once more, and whatever still holds the
text is named. To taint a source puts everything that came from it into quarantine.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.browse import Browse
from loki_memory.continuity.file import refresh
from loki_memory.editing import purge as records
from loki_memory.editing import quarantine
from loki_memory.editing.purge import files_below, is_traced, purge_file, spellings
from loki_memory.editing.quarantine import QuarantineCase, QuarantinedMemory
from loki_memory.errors import NotFound
from loki_memory.files import disk
from loki_memory.files.layout import PRIVATE
from loki_memory.files.lock import locked
from loki_memory.files.redaction import redact
from loki_memory.files.store import failures_named
from loki_memory.files.zones import exported_paths
from loki_memory.history.purge_history import files_from, purge_history
from loki_memory.home import parsed
from loki_memory.index import queries
from loki_memory.index.list_filter import ListFilter
from loki_memory.ingest.staging import Watermarks
from loki_memory.interop.claude_memory import listed_in
from loki_memory.interop.publish_skills import keep_in_step
from loki_memory.models.ids import ID, file_stem

if TYPE_CHECKING:
    from loki_memory.home import Home
    from loki_memory.homes import OpenWorkspace

_SKILLS = (".claude/skills", ".agents/skills")
_CHAINS = "witness"  # hashes and paths only, chained: a changed line would break them
_LOCK_SECONDS = 30.0
_UNREACHED = (
    "clones and forks of others, and what a forge keeps of pull requests and pushed commits",
    "transcripts that agents keep themselves, such as those below ~/.claude and ~/.codex",
    "backups, and copies of exports that were moved",
)


class Purged(NamedTuple):
    """The result of a purge."""

    removed: list[str]  # ids of memories, or paths of files
    changed: list[str]  # files in which the text was replaced
    commits: list[str]  # of git that still hold it, the newest first
    rewritten: int  # commits of memory's own branch
    commands: list[str]  # that take it out of git's history
    unreached: list[str]  # where it may still be, and this program cannot look
    left: list[str]  # files of ours that still hold it


def purge(workspace: OpenWorkspace, given: str) -> Purged:
    """Remove a memory by its id, or a text, from all that was ever written here."""
    workspace.home.before_write()
    homes = list(workspace.homes.fresh("current"))
    found = _home_of(workspace, given)
    if found is None:
        texts, removed, paths = [records.check_length(given)], list[str](), list[str]()
    else:
        texts = records.texts_of(found, given)
        paths = records.shared_paths_of(found, given)
        sessions = _sessions(workspace, given)
        removed = records.purge_memory(found, given, workspace.now()[:10])
        _clear_staged(workspace, sessions)
    wanted = spellings(texts)
    changed: list[str] = []
    for home in homes:
        done = records.purge_text(home, texts, wanted)
        removed += done.removed
        changed += done.changed
    workspace.flush()
    keep_in_step(workspace)
    changed += [str(path) for path in _others(workspace) if purge_file(path, wanted)]
    changed += _purge_zones(homes, wanted)
    refresh(workspace)
    for home in homes:
        _renew_cache(home)
    history = purge_history(workspace.home, wanted, paths)
    left = [str(path) for path in _all_files(workspace, homes) if _holds(path, wanted)]
    return Purged(
        sorted({*removed}),
        sorted({*changed}),
        history.commits,
        history.rewritten,
        history.commands,
        list(_UNREACHED),
        left,
    )


def _home_of(workspace: OpenWorkspace, given: str) -> Home | None:
    """The home of a memory; None if no memory has this id."""
    if not ID.fullmatch(given):
        return None
    try:
        return workspace.homes.up_to_date(given)
    except NotFound:
        return None


def _sessions(workspace: OpenWorkspace, memory_id: str) -> list[str]:
    """The session that an episode tells of: its staged turns hold the words of it."""
    session = getattr(workspace.get(memory_id), "session", None)
    return [session] if isinstance(session, str) and session else []


def _clear_staged(workspace: OpenWorkspace, sessions: Sequence[str]) -> None:
    for session in sessions:
        for path in (workspace.layout.local / "ingest" / "sessions").glob(
            f"{file_stem(session)}.jsonl"
        ):
            disk.remove(path)


# -- files beside memory ---------------------------------------------------------------------------


def _others(workspace: OpenWorkspace) -> Iterator[Path]:
    """Files outside the zones that this program wrote or writes into, as far as it knows them."""
    layout = workspace.layout
    yield from (path for path in layout.loki.glob("*.md") if not path.is_symlink())
    yield from files_below(layout.loki / "continuity")
    for folder in _SKILLS:
        yield from files_below(layout.root / folder)
    yield from listed_in(workspace)
    yield from (path for path in exported_paths(layout) if path.is_file() and not path.is_symlink())


def _purge_zones(homes: Sequence[Home], wanted: Sequence[bytes]) -> list[str]:
    """Take the text out of journals, logs, staged turns and goals."""
    done: list[str] = []
    for home in homes:
        ingest = home.layout.local / "ingest"
        with failures_named(home.layout.local):
            disk.make_folder(ingest)
            with locked(ingest / ".lock", _LOCK_SECONDS):
                paths = _zone_files(home)
                done += [str(path) for path in paths if purge_file(path, wanted)]
    return done


def _zone_files(home: Home) -> Iterator[Path]:
    """The files of a local zone that are no memory files."""
    for entry in sorted(os.scandir(home.layout.local), key=lambda found: found.name):
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            yield from files_below(path) if entry.name not in {"memory", _CHAINS} else ()
        elif entry.is_file(follow_symlinks=False):
            yield path


def _renew_cache(home: Home) -> None:
    home.index.close()
    if home.layout.cache.is_dir() and not home.layout.cache.is_symlink():
        shutil.rmtree(home.layout.cache)
    home.rebuild()


def _all_files(workspace: OpenWorkspace, homes: Sequence[Home]) -> Iterator[Path]:
    for home in homes:
        yield from files_below(home.layout.loki)
        if not home.layout.local.is_relative_to(home.layout.loki):
            yield from files_below(home.layout.local)
    yield from _others(workspace)


def _holds(path: Path, wanted: Sequence[bytes]) -> bool:
    return is_traced(path.read_bytes(), wanted)


_AUTHORS = ("by", "agent", "author", "from")  # fields that say who wrote a record
_SESSIONS = ("session", "session_id")


class Tainted(NamedTuple):
    """The memories that came from a source."""

    source: str
    case: str  # of the quarantine; empty if nothing was set aside
    memories: list[QuarantinedMemory]


def taint(workspace: OpenWorkspace, source: str, why: str, *, dry_run: bool) -> Tainted:
    """Quarantine everything derived from an episode, session, commit, author or file."""
    workspace.home.before_write()
    workspace.home.ensure("current")
    home, clean = workspace.home, redact(source)
    seeds = {*_seeds(workspace, source)}
    chosen = quarantine.memories(home.index, quarantine.derived(home.index, seeds))
    if not chosen:
        raise NotFound(f"that came from {clean!r}")
    if dry_run:
        return Tainted(clean, "", chosen)
    case = quarantine.set_aside(home, chosen, clean, redact(why), workspace.now()[:10])
    Browse(workspace).tell_again()
    return Tainted(clean, case.case, chosen)


def release(workspace: OpenWorkspace, name: str) -> QuarantineCase:
    """Bring the memories of a case back."""
    workspace.home.before_write()
    case = quarantine.release(workspace.home, name)
    Browse(workspace).tell_again()
    return case


def drop(workspace: OpenWorkspace, name: str) -> QuarantineCase:
    """Delete the memories of a case for good."""
    workspace.home.before_write()
    return quarantine.drop(workspace.home, name)


def cases(workspace: OpenWorkspace) -> list[QuarantineCase]:
    """All cases, the oldest first."""
    return quarantine.cases(workspace.store)


def _seeds(workspace: OpenWorkspace, source: str) -> Iterator[str]:
    """The memories that come from a source at first hand."""
    home = workspace.home
    if home.index.path_of(source):
        yield source
        return
    sessions = {source, *_sessions_in(workspace, source)}
    for session in sorted(sessions):
        bodies = queries.episodes_of_session(home.index, session)
        yield from (parsed("episode", body).id for body in bodies)
    paths = {*files_from(workspace.home, source), *_own_path(workspace, source)}
    yield from _at_paths(home, paths)
    yield from _said_by(home, source, sessions)


def _sessions_in(workspace: OpenWorkspace, source: str) -> list[str]:
    """The sessions of a transcript that was read."""
    marks = Watermarks(workspace.layout.local / "ingest" / "marks")
    return marks.of(Path(source)).sessions


def _own_path(workspace: OpenWorkspace, source: str) -> list[str]:
    """The path of a record, if the source is a memory file."""
    path = Path(source).absolute()
    for prefix, top in (
        ("", workspace.layout.memory),
        (PRIVATE, workspace.layout.local / "memory"),
    ):
        if path.is_relative_to(top):
            return [prefix + path.relative_to(top).as_posix()]
    return []


def _at_paths(home: Home, paths: set[str]) -> Iterator[str]:
    places = {path: name for kind in home.index.counts() for name, path in home.index.places(kind)}
    yield from (places[path] for path in sorted(paths) if path in places)


def _said_by(home: Home, source: str, sessions: set[str]) -> Iterator[str]:
    for kind, body in home.bodies(ListFilter(status="all")):
        record = json.loads(body)
        authors = {str(record.get(name) or "").lower() for name in _AUTHORS}
        told_in = {str(record.get(name) or "") for name in _SESSIONS}
        if source.lower() in authors or told_in & sessions:
            yield parsed(kind, body).id
