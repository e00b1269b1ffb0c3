"""The state of a workspace: status, statistics, and files that can be cleared away."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.files import disk, transaction
from loki_memory.files.layout import TEMPORARY, view_bases
from loki_memory.files.scan import scan
from loki_memory.history.refusals import would_be_refused
from loki_memory.index.queries import pending_views
from loki_memory.ingest.pause import why_off
from loki_memory.integrity.reviewed import known_unreviewed

if TYPE_CHECKING:
    from loki_memory.consolidation.retention import Pruned
    from loki_memory.homes import OpenWorkspace
    from loki_memory.remote.shared import RemoteStanding

_DAY_SECONDS = 86_400


class Status(NamedTuple):
    """One screen: is all well, and if not, what to do next."""

    well: bool  # there is nothing to do next
    workspace: str
    git: bool
    counts: dict[str, int]
    private: dict[str, int]  # of these, those that are on this machine only
    candidates: int  # of the private ones, those that wait for a decision
    problems: int
    open_handoffs: int
    pending_views: list[str]
    index_bytes: int
    local: str
    trusted: bool  # whether agents are told of it unasked on this machine
    unreviewed: int  # memories of a branch that nobody reviewed, which are not told
    above: str  # a folder above this one that has memory of its own; empty if there is none
    capture: str  # why sessions are not captured; empty if they are
    next: list[str]
    remotes: list[RemoteStanding] = []  # team servers of this user  # noqa: RUF012 - never changed


def status(workspace: OpenWorkspace) -> Status:
    place, index = workspace.layout, workspace.index
    problems = index.problem_count() + len(workspace.home.zone_problems())
    pending = pending_views(index)
    steps = [
        *_what_next(problems, pending),
        *([] if index.counts() else _beginning(place.loki)),
        *_about_trust(workspace),
        *_before_pull(workspace),
    ]
    return Status(
        well=not steps,
        workspace=str(place.root),
        git=_is_in_git(place.root),
        counts=index.counts(),
        private=index.private_counts(),
        candidates=index.candidate_count(),
        problems=problems,
        open_handoffs=index.open_handoff_count(),
        pending_views=pending,
        index_bytes=_size(index.path),
        local=str(place.local),
        trusted=workspace.home.trust().is_trusted,
        unreviewed=len(known_unreviewed(workspace.home)),
        above=_above(place.root),
        capture=why_off(workspace),
        next=steps,
        remotes=_remotes(workspace),
    )


def _remotes(workspace: OpenWorkspace) -> list[RemoteStanding]:
    """The lag behind team servers, if this user has any."""
    from loki_memory.remote.servers import any_server

    if not any_server():
        return []
    from loki_memory.remote.shared import standing

    return standing(workspace)


def _above(root: Path) -> str:
    """The workspace around this one, whose memory is not seen here: each project has its own."""
    from loki_memory.home.place import workspace_above

    found = workspace_above(root)
    return str(found) if found else ""


def _is_in_git(root: Path) -> bool:
    from loki_memory.files.git_files import git_home

    return git_home(root) is not None


def _beginning(loki: Path) -> list[str]:
    """Say how to begin; a CONTINUITY.md of another tool may hold the first notes."""
    from loki_memory.continuity.harvest import harvest

    notes = len(harvest(disk.read_bytes(loki / "CONTINUITY.md") or b""))
    if notes:
        they = "1 note that is" if notes == 1 else f"{notes} notes that are"
        return [f"CONTINUITY.md has {they} not memory yet: loki-mem continuity"]
    return ['nothing is remembered yet: loki-mem remember "…", or record an episode']


def _what_next(problems: int, pending: list[str]) -> list[str]:
    steps = []
    if problems:
        files = "1 problem needs" if problems == 1 else f"{problems} problems need"
        steps.append(f"{files} you: loki-mem doctor")
    if pending:
        say = "says" if len(pending) == 1 else "say"
        steps.append(f"{', '.join(pending)} {say} more than the records: loki-mem sync")
    return steps


def _before_pull(workspace: OpenWorkspace) -> list[str]:
    """Say what stands in the way of `git pull`, as far as is known without the network."""
    refused = len(would_be_refused(workspace.layout.root))
    if not refused:
        return []
    files = "an uncommitted memory" if refused == 1 else f"{refused} uncommitted memories"
    return [f"others changed {files} too, which `git pull` would refuse: loki-mem pull"]


def _about_trust(workspace: OpenWorkspace) -> list[str]:
    if workspace.home.trust().is_trusted:
        return []
    return ["agents are told nothing of this memory until you trust it: loki-mem trust"]


class Stats(NamedTuple):
    """The numbers of memories by several fields, and the size of memory."""

    kinds: dict[str, int]
    statuses: dict[str, int]
    scopes: dict[str, int]
    origins: dict[str, int]
    agents: dict[str, int]
    outcomes: dict[str, int]
    days: dict[str, int]
    edges: int
    words: int
    files: int
    memory_bytes: int
    index_bytes: int
    junk_rate: float | None  # as `audit` counts it; None if it was not asked for


def stats(workspace: OpenWorkspace, junk_rate: float | None) -> Stats:
    from loki_memory.index import queries
    from loki_memory.index.graph import edge_count

    index, count = workspace.index, partial(queries.counts_by, workspace.index)
    found = [stamp for _, folder in scan(workspace.layout) for stamp in folder.files.values()]
    return Stats(
        kinds=count("kind"),
        statuses=count("status"),
        scopes=count("scope"),
        origins=count("origin"),
        agents=count("agent"),
        outcomes=count("outcome"),
        days=queries.episodes_by_day(index),
        edges=edge_count(index),
        words=queries.words(index),
        files=len(found),
        memory_bytes=sum(stamp[2] for stamp in found),
        index_bytes=_size(index.path),
        junk_rate=junk_rate,
    )


def _size(path: Path | None) -> int:
    return path.stat().st_size if path is not None and path.exists() else 0


class Garbage(NamedTuple):
    """Files that were, or would be, cleared away."""

    files: list[str]
    bytes: int
    untracked: list[str] | None = None  # episodes that left git; None if that was not asked for
    completed: list[str] | None = None  # beliefs that say now what those episodes were
    summarised: Sequence[str] = ()  # tracked episodes of which a summary is left
    archived: Sequence[str] = ()  # tracked episodes that nothing rests on
    pruned: Sequence[Pruned] = ()  # facts that went to the archive
    index_bytes: int = 0  # that the index gave back to the disk


def collect_garbage(workspace: OpenWorkspace, *, dry_run: bool) -> Garbage:
    """Clear away files while the store is held: temporary files may belong to a living writer."""
    from loki_memory.editing.removal import forgotten_files
    from loki_memory.ingest.run import clear_told

    keep = workspace.config.get("gc.keep_days") * _DAY_SECONDS
    logs = clear_told(workspace, lambda path: _is_older(path, keep), dry_run=dry_run)
    with workspace.store.change():
        found = [*litter(workspace), *_set_aside(workspace)]
        found += [p for p in forgotten_files(workspace.layout) if _is_older(p, keep)]
        sizes = {**{path: path.stat().st_size for path in found}, **logs}
        garbage = Garbage([str(path) for path in sizes], sum(sizes.values()))
        if not dry_run:
            for path in found:
                disk.discard(path)
    return garbage


def vacuum(workspace: OpenWorkspace) -> int:
    """Vacuum the index unless another process is at it; returns the bytes that became free."""
    with suppress(sqlite3.OperationalError):
        return workspace.index.vacuum()
    return 0


def litter(workspace: OpenWorkspace) -> list[Path]:
    """Temporary files of killed writers."""
    place = workspace.layout
    found = [
        Path(folder) / name
        for top in (
            place.memory,
            Path(view_bases(place)),
            place.local / "memory",
            place.local / "journal",
        )
        for folder, _, names in os.walk(top)
        for name in names
        if name.startswith(TEMPORARY) or Path(folder).name.startswith(transaction.REFUSED)
    ]
    staged = transaction.staging(place)
    if staged.is_dir() and not staged.is_symlink() and not transaction.waiting(place):
        found += staged.iterdir()
    return sorted(found)


def _set_aside(workspace: OpenWorkspace) -> list[Path]:
    cache = workspace.layout.cache
    return sorted(cache.glob("index.db.aside*")) if cache.is_dir() else []


def _is_older(path: Path, seconds: int) -> bool:
    return time.time() - os.stat(path).st_mtime > seconds
