"""The place of a home: the user's folder, and the layout of a project with its local zone."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from loki_memory.config import Config
from loki_memory.config_file import load
from loki_memory.errors import LokiMemoryError, NotAFolder, NotAProject, NotAWorkspace
from loki_memory.files import workspace_trust, zones
from loki_memory.files.git_files import git_home
from loki_memory.files.layout import (
    LOCAL,
    Layout,
    find_workspace,
    is_made_here,
    layout,
    local_zone,
    user_folder,
)
from loki_memory.index.database import noted_home
from loki_memory.sync import home_of


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
    return load(place.loki / "config.toml", user, confirmed=confirmed)


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
