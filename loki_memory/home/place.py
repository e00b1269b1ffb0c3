"""The place of a home: the user's folder, the layout of a project with its local zone, and what
lies there from the start: folders, settings and .gitignore.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from loki_memory import config_file
from loki_memory.errors import LokiMemoryError, NotAFolder, NotAProject, NotAWorkspace
from loki_memory.files import disk, workspace_trust, zones
from loki_memory.files.git_files import git_home
from loki_memory.files.layout import (
    FOLDERS,
    LOCAL,
    TOP_FOLDERS,
    Layout,
    find_workspace,
    is_made_here,
    layout,
    local_zone,
    user_folder,
)
from loki_memory.index.database import noted_home
from loki_memory.resources import template
from loki_memory.sync import home_of

if TYPE_CHECKING:
    from loki_memory.config import Config

# A line after ours that would let git track files that belong to one machine.
_SHOWS_ZONES = re.compile(rb"^!.*(?:local|cache|\*)", re.MULTILINE)


def user_home() -> Path:
    """The folder of the user scope; a link in its place is followed."""
    return user_folder()


def user_layout() -> Layout:
    """The layout of the user's own folder: `~/.loki`, or the one that LOKI_HOME names."""
    top = user_home()
    return Layout(top.parent, top, top / "memory", top / "local", top / "cache")


def settings_of(place: Layout, *, is_user: bool) -> Config:
    """The settings of a home, with those of its user."""
    user, confirmed = user_home() / "config.toml", confirmed_settings(place, is_user=is_user)
    return config_file.load(place.loki / "config.toml", user, confirmed=confirmed)


def confirmed_settings(place: Layout, *, is_user: bool) -> Path:
    """The file of settings that the user confirmed; it stays with the clone, wherever its local
    zone lies.
    """
    return (place.local if is_user else local_zone(place.root, place.loki)) / zones.CONFIRMED


def found_layout(path: str | os.PathLike[str] | None) -> Layout:
    """The layout of the nearest workspace from `path` upwards.

    Without a path, LOKI_WORKSPACE or the working directory is the start.
    """
    try:
        start = Path(path or os.environ.get("LOKI_WORKSPACE") or Path.cwd())
    except FileNotFoundError:
        raise NotAFolder("the working directory") from None
    if not start.is_dir():
        raise NotAFolder(start)
    return opened_layout(find_workspace(start, (user_home().parent, Path.home())))


def workspace_above(root: Path) -> Path | None:
    """The next workspace above a workspace; None if there is none."""
    with suppress(NotAWorkspace):
        return find_workspace(root.parent, (user_home().parent, Path.home()))
    return None


def layouts_above(root: Path) -> list[Layout]:
    """The layouts of the workspaces above one in the same git repository, nearest first.

    What lies above the repository is somebody else's: a folder of downloads may hold anything.
    """
    repository = git_home(root)
    found: list[Layout] = []
    above = workspace_above(root) if repository else None
    while above is not None and repository and above.is_relative_to(repository[0]):
        found.append(opened_layout(above))
        above = workspace_above(above)
    return found


def new_layout(path: str | os.PathLike[str], *, adopt_local: bool) -> Layout:
    """The layout of a workspace in a folder; a home folder is refused.

    `adopt_local` takes a `.loki/local` into use that another machine made.
    """
    root = Path(os.path.abspath(path))
    if os.path.realpath(root) in {os.path.realpath(h) for h in (user_home().parent, Path.home())}:
        raise NotAProject(root)
    place = opened_layout(root)
    return zones.adopt(place) if adopt_local else place


def opened_layout(root: Path) -> Layout:
    """The layout of a workspace. A local zone of this machine from before `git init` moves in, and
    moves to the user's folder or back as `local.place` says.
    """
    place = _adopted(root)
    with suppress(LokiMemoryError):  # a file that cannot be read or moved is reported elsewhere
        config = settings_of(place, is_user=False)
        place = zones.settle(place, in_home=config.text("local.place") == "home")
    _trust_if_used(place)
    return place


def _trust_if_used(place: Layout) -> None:
    """Decide for a workspace that was in use before anybody was asked to trust it, or copied."""
    if not workspace_trust.is_decided(place) and workspace_trust.was_used(place):
        is_ours = noted_home(place.cache / "index.db") == home_of(place)
        with suppress(OSError):
            workspace_trust.note_trust(place, is_trusted=is_ours, now="")


def _adopted(root: Path) -> Layout:
    place = layout(root)
    beside = zones.stray(place)
    if beside is None or place.local.exists() or not is_made_here(beside):
        return place
    if git_home(root) is not None:
        from loki_memory.git_repository import tracked

        if tracked(root, [f".loki/{LOCAL}"]):
            return place
    return zones.adopt(place)


# -- what lies there from the start ----------------------------------------------------------------


def make_folders(layout: Layout, config: Config) -> None:
    """Make the folders, the settings file and the .gitignore, unless they are there."""
    from loki_memory.files.store import failures_named

    with failures_named(layout.loki):
        for name in (*TOP_FOLDERS, *FOLDERS):
            disk.make_folder(layout.memory / name)
        path = layout.loki / "config.toml"
        if not path.exists():
            disk.write_bytes(path, template("config.toml").encode())
        _write_gitignore(layout, config)


def keep_gitignore(layout: Layout, config: Config) -> None:
    """Put back our lines of `.loki/.gitignore` that a merge or an editor took out."""
    from loki_memory.files.store import failures_named

    with failures_named(layout.loki):
        _write_gitignore(layout, config)


def _write_gitignore(layout: Layout, config: Config) -> None:
    path = layout.loki / ".gitignore"
    is_tracked = bool(config.get("continuity.track"))
    ours = _ignored(continuity=not is_tracked)
    other = _ignored(continuity=is_tracked)
    there = disk.read_derived(path) or b""
    if other in there and (len(other) > len(ours) or ours not in there):
        disk.write_bytes(path, there.replace(other, ours))
    elif ours not in there or _SHOWS_ZONES.search(there.rpartition(ours)[2]):
        rest = there.replace(ours, b"")
        gap = b"\n" if rest and not rest.endswith(b"\n") else b""
        disk.write_bytes(path, rest + gap + ours)


def _ignored(*, continuity: bool) -> bytes:
    """Our lines of .gitignore; a setting decides if CONTINUITY.md is among them."""
    lines = template("gitignore").splitlines(keepends=True)
    if not continuity:
        lines = [line for line in lines if "continuity" not in line.lower()]
    return "".join(lines).encode()


def write_setting(layout: Layout, name: str, value: str, confirmed: Path, *, by_user: bool) -> None:
    """Set a key in the config.toml of a home; `confirmed` notes what was set on this machine."""
    from loki_memory.files.store import failures_named

    chosen = config_file.chosen(name, value, by_user=by_user)
    path = layout.loki / "config.toml"
    with failures_named(path):
        text = path.read_text(encoding="utf-8") if path.exists() else template("config.toml")
        disk.write_bytes(path, config_file.edited(text, name, chosen).encode())
        disk.make_folder(confirmed.parent)
        disk.write_bytes(confirmed, config_file.confirmed_with(confirmed, name, chosen))
