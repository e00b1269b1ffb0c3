"""The zones of a workspace that belong to this machine, and files that a clone put into them.

Only their user may read the local zone and the cache. A local zone in the workspace that another
machine made, or that git tracks, and symbolic links below `.loki` are left alone and reported as
problems.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from loki_memory.errors import StoreFailed
from loki_memory.files import disk
from loki_memory.files.git_files import git_folders, remote_of
from loki_memory.files.layout import (
    FOLDERS,
    IN_HOME,
    LOCAL,
    MADE_HERE,
    TEMPORARY,
    TOP_FOLDERS,
    Layout,
    home_zone,
    is_lost_record,
    key_in_home,
    layout,
    local_zone,
    made_here,
)
from loki_memory.models.ids import digest, slug

if TYPE_CHECKING:
    from loki_memory.files.problem import Problem


NEVER_TRACKED = (f".loki/{LOCAL}/", ".loki/cache/")
CONFIRMED = "confirmed-settings"  # settings that the user set in this clone
# What stays where the clone is when its local zone moves: marks, consent, and a watcher's socket.
_STAYS = frozenset({MADE_HERE, IN_HOME, CONFIRMED, "watch"})
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OWN = stat.S_IRWXU
_SHOWN = 20  # links that are named in a report
_ZONES = frozenset({"cache", "continuity", LOCAL})
_DEEP = 6  # down to the vectors of a past state in the cache; nothing of ours lies deeper


def close_to_others(zone: Path) -> None:
    """Remove every permission of others; done once, because the zone itself comes last."""
    with suppress(OSError):
        status = os.lstat(zone)
        is_ours = os.name == "posix" and status.st_uid == os.geteuid()
        if is_ours and stat.S_ISDIR(status.st_mode) and status.st_mode & _OTHERS:
            _close(zone)
            os.chmod(zone, status.st_mode & _OWN)


def _close(zone: Path) -> None:
    for _, folders, files, fd in os.fwalk(zone, topdown=False):
        for name in (*folders, *files):
            with suppress(OSError):
                mode = os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode
                if not stat.S_ISLNK(mode):
                    os.chmod(name, mode & _OWN, dir_fd=fd)


# -- a local zone in the workspace -----------------------------------------------------------------


def stray(place: Layout) -> Path | None:
    """A `.loki/local` that is not this machine's local zone; None if there is none."""
    beside = place.loki / LOCAL
    is_used = place.local == beside or (
        key_in_home(beside) != "" and home_zone(key_in_home(beside)) == place.local
    )
    return None if is_used or not os.path.lexists(beside) else beside


def adopt(place: Layout) -> Layout:
    """Use a `.loki/local` that belongs to the user, such as one of a copied project."""
    from loki_memory.files.store import failures_named

    beside = stray(place)
    if beside is None:
        return place
    if beside.is_symlink() or not beside.is_dir():
        raise StoreFailed(beside, "is not a folder")
    with failures_named(beside):
        disk.write_bytes(beside / MADE_HERE, made_here(os.lstat(beside)))
        adopted = layout(place.root)
        if adopted.local == beside:
            _take_along(place.local, beside)
        else:
            _move(beside, adopted.local)
    return adopted


def _move(beside: Path, zone: Path) -> None:
    """Move a local zone to git's directory, where it belongs."""
    import shutil

    if zone.exists():
        raise StoreFailed(zone, f"exists already; move what you need from {beside} there")
    disk.make_folder(zone.parent)
    shutil.move(beside, zone)


def _take_along(old: Path, new: Path) -> None:
    """Move the private records of the zone that was used meanwhile."""
    for path in sorted((old / "memory").rglob("*.*")):
        target = new / path.relative_to(old)
        if path.is_file() and not target.exists():
            disk.make_folder(target.parent)
            disk.move(path, target)


# -- a local zone in the user's folder -------------------------------------------------------------


def settle(place: Layout, *, in_home: bool) -> Layout:
    """Keep the local zone in the user's folder, or where it is by default, and move what is there.

    Everything is copied and flushed before the mark switches, and removed after it: whenever this
    is interrupted, the next call completes it. No file is overwritten. On the way back the user's
    folder keeps its copy, because other clones of the project may use it.
    """
    default = local_zone(place.root, place.loki)
    key, wanted = key_in_home(default), project_key(place.root) if in_home else ""
    if key == wanted and not (key and _left(default)):
        return place
    from loki_memory.files.store import failures_named

    with failures_named(default):
        disk.make_folder(default)
        target = home_zone(wanted) if wanted else default
        for source in (default, home_zone(key) if key else default):
            if source != target:
                _copy_zone(source, target)
        _switch(default, wanted)
        if wanted:
            for name in _left(default):
                _discard(default / name)
    return layout(place.root)


def _left(zone: Path) -> list[str]:
    """List what a zone holds besides what stays where the clone is."""
    return [name for name in _listed(zone) if name not in _STAYS and not name.endswith(".lock")]


def _copy_zone(source: Path, target: Path) -> None:
    """Copy the files of a zone; one that differs from the target's goes beside it."""
    disk.make_folder(target)
    for name in _left(source):
        paths = [source / name]
        for path in paths:
            if path.is_symlink():
                continue
            if path.is_dir():
                paths += sorted(path.iterdir())
            elif not path.name.startswith(TEMPORARY):
                _copy_file(path, target, path.relative_to(source))
    disk.flush_folder(target)


def _copy_file(path: Path, target: Path, inside: Path) -> None:
    data = disk.read_bytes(path)
    there = disk.read_bytes(target / inside)
    if data is None or there == data:
        return
    beside = target / "salvaged" / f"local-{digest('zone', str(path))}" / inside
    disk.write_bytes(target / inside if there is None else beside, data)


def _switch(zone: Path, key: str) -> None:
    """Mark a zone as moved to the user's folder, or take the mark away."""
    if key:
        inode = made_here(os.lstat(zone)).decode().strip()
        disk.write_bytes(zone / IN_HOME, f"{inode}\n{key}\n".encode())
    else:
        disk.remove(zone / IN_HOME)


def _discard(path: Path) -> None:
    import shutil

    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        disk.discard(path)


# -- problems --------------------------------------------------------------------------------------


def problems(place: Layout, tracked: Iterable[str]) -> list[Problem]:
    """Find everything in a workspace's zones that this machine did not put there."""
    return [*map(tracked_problem, tracked), *_stray(place), *_links(place), *_lost(place)]


def tracked_problem(path: str) -> Problem:
    """The problem of a file that git tracks in a zone of one machine."""
    from loki_memory.files.problem import Problem

    advice = f"Take it out with `git rm --cached '{path}'`, and look at who added it."
    return Problem(path, "is tracked by git, and belongs to one machine only", advice=advice)


def link_problem(path: str) -> Problem:
    from loki_memory.files.problem import Problem

    advice = "Delete the link, with `git rm` if git tracks it."
    return Problem(path, disk.LINKED, advice=advice)


def _stray(place: Layout) -> Iterator[Problem]:
    from loki_memory.files.problem import Problem

    if stray(place) is not None and not (place.loki / LOCAL).is_symlink():
        yield Problem(
            f".loki/{LOCAL}",
            "was not made by this machine and is not read",
            advice="Delete it; if it is yours, `loki-mem init --adopt-local` takes it into use.",
        )


def _lost(place: Layout) -> Iterator[Problem]:
    for name in filter(is_lost_record, _listed(place.memory)):
        from loki_memory.files.problem import misplaced

        yield misplaced(name)


def _links(place: Layout) -> Iterator[Problem]:
    found = [name for name in _names(place) if (place.loki / name).is_symlink()]
    return (link_problem(f".loki/{name}") for name in found[:_SHOWN])


def _names(place: Layout) -> Iterator[str]:
    """Paths that may be links and are no records: links among records are reported on reading."""
    yield from (name for name in _listed(place.loki) if name != "memory")
    yield from (f"memory/{name}" for name in sorted({*TOP_FOLDERS, *FOLDERS}))
    for name in _listed(place.loki / "memory"):
        if name[0] == "." or name in TOP_FOLDERS:
            yield from _below(place.loki, f"memory/{name}", depth=1)
    zones = (name for name in _listed(place.loki) if name.partition("-")[0] in _ZONES)
    for name in zones:
        yield from _below(place.loki, name, depth=_DEEP)


def _below(loki: Path, folder: str, depth: int) -> Iterator[str]:
    """A folder and what is in it, down to a depth; no link is entered."""
    yield folder
    for name in _listed(loki / folder):
        inside = f"{folder}/{name}"
        if depth > 1 and os.path.isdir(loki / inside):
            yield from _below(loki, inside, depth - 1)
        else:
            yield inside


def _listed(folder: Path) -> list[str]:
    if folder.is_symlink():
        return []
    with suppress(OSError):
        return sorted(os.listdir(folder))
    return []


# The key of a project on this machine: its remote, else its path.
#
# Two clones of one remote have one key, whichever protocol they use.


def project_key(root: Path) -> str:
    """A folder name for a project: readable, then the hash of its remote or its path."""
    found = git_folders(root)
    remote = remote_of(found) if found else None
    inside = root.relative_to(found.top).as_posix() if found and remote else "."
    named = remote.address if remote else str(root)
    name = slug(Path(named).stem) or "project"
    return f"{name}-{digest('project', named, inside)}"


def has_remote(root: Path) -> bool:
    """Check if the key of a project follows from its remote: another clone has the same."""
    found = git_folders(root)
    return found is not None and remote_of(found) is not None


# -- exports ---------------------------------------------------------------------------------------

# The list of files to which memory was exported from this machine, so that `purge` finds them.

_EXPORTS = "exports.json"  # in the local zone


def note_exports(layout: Layout, paths: Iterable[Path]) -> None:
    """Add files to the list."""
    import json

    known = {*map(str, exported_paths(layout)), *map(os.path.abspath, paths)}
    disk.write_bytes(layout.local / _EXPORTS, f"{json.dumps(sorted(known))}\n".encode())


def exported_paths(layout: Layout) -> list[Path]:
    """The files of the list; some may be gone by now."""
    import json

    data = disk.read_bytes(layout.local / _EXPORTS)
    try:
        found = json.loads(data) if data else []
    except ValueError:
        return []
    names = found if isinstance(found, list) else []
    return [Path(name) for name in names if isinstance(name, str)]
