"""Make a `.loki` folder complete, keep its .gitignore right, and change its settings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from loki_memory import config_file
from loki_memory.files import disk
from loki_memory.files.layout import FOLDERS, TOP_FOLDERS, Layout
from loki_memory.files.store import failures_named
from loki_memory.resources import template

if TYPE_CHECKING:
    from loki_memory.config import Config

# A line after ours that would let git track files that belong to one machine.
_SHOWS_ZONES = re.compile(rb"^!.*(?:local|cache|\*)", re.MULTILINE)


def make_folders(layout: Layout, config: Config) -> None:
    """Make the folders, the settings file and the .gitignore, unless they are there."""
    with failures_named(layout.loki):
        for name in (*TOP_FOLDERS, *FOLDERS):
            disk.make_folder(layout.memory / name)
        path = layout.loki / "config.toml"
        if not path.exists():
            disk.write_bytes(path, template("config.toml").encode())
        _write_gitignore(layout, config)


def keep_gitignore(layout: Layout, config: Config) -> None:
    """Put back our lines of `.loki/.gitignore` that a merge or an editor took out."""
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
    chosen = config_file.chosen(name, value, by_user=by_user)
    path = layout.loki / "config.toml"
    with failures_named(path):
        text = path.read_text(encoding="utf-8") if path.exists() else template("config.toml")
        disk.write_bytes(path, config_file.edited(text, name, chosen).encode())
        disk.make_folder(confirmed.parent)
        disk.write_bytes(confirmed, config_file.confirmed_with(confirmed, name, chosen))
