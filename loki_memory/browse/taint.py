"""Taint a source: find everything that came from it, and put that into quarantine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.editing import quarantine
from loki_memory.editing.quarantine import QuarantineCase, QuarantinedMemory
from loki_memory.errors import NotFound
from loki_memory.files.layout import PRIVATE
from loki_memory.files.redaction import redact
from loki_memory.history.purge_history import files_from
from loki_memory.home import parsed
from loki_memory.index import queries
from loki_memory.index.index import ListFilter
from loki_memory.ingest.staging import Watermarks

if TYPE_CHECKING:
    from loki_memory.home import Home
    from loki_memory.homes import OpenWorkspace

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
    tell_again(workspace)
    return Tainted(clean, case.case, chosen)


def tell_again(workspace: OpenWorkspace) -> None:
    """Bring what agents are told in step with memory: views, skills, CONTINUITY.md."""
    from loki_memory.continuity.file import refresh
    from loki_memory.interop.publish_skills import keep_in_step

    workspace.flush()
    keep_in_step(workspace)
    refresh(workspace)


def release(workspace: OpenWorkspace, name: str) -> QuarantineCase:
    """Bring the memories of a case back."""
    workspace.home.before_write()
    case = quarantine.release(workspace.home, name)
    tell_again(workspace)
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
