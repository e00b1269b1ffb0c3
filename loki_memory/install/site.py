"""The place of a target: the project's folder, or the user's own settings.

A project's files may come with a clone. So a link there is followed only if it stays inside
the project; the user's own links are followed as they are.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import InvalidConfig, SymlinkedRoot

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace

_BUCKET = re.compile(r"(?:archive|builds|environments)-v\d+")  # folders of uv's cache


class Site(NamedTuple):
    """A project, and whether its settings or the user's are meant."""

    root: Path
    user: bool = False

    @classmethod
    def of(cls, workspace: OpenWorkspace, *, user: bool = False) -> Site:
        return cls(Path(os.path.realpath(workspace.layout.root)), user)

    def in_project(self, name: str) -> Path:
        """The real path of a project's file; raises SymlinkedRoot if that is elsewhere."""
        named = self.root / name
        real = Path(os.path.realpath(named))
        if not real.is_relative_to(self.root):
            raise SymlinkedRoot(named, real)
        return real

    def in_home(self, name: str, variable: str, default: str) -> Path:
        """The path of an agent's settings file: in the folder that a variable names, or `~`."""
        folder = os.environ.get(variable) or Path.home() / default
        return Path(os.path.realpath(Path(folder) / name))

    def shown(self, path: Path) -> str:
        """Shorten a path for people."""
        if path.is_relative_to(self.root):
            return path.relative_to(self.root).as_posix()
        home = Path(os.path.realpath(Path.home()))
        return f"~/{path.relative_to(home).as_posix()}" if path.is_relative_to(home) else str(path)

    def top(self, path: Path) -> Path:
        """The folder above a file that is never removed, even if it is empty."""
        home = Path(os.path.realpath(Path.home()))
        return next((top for top in (self.root, home) if path.is_relative_to(top)), path.parent)

    def text(self, path: Path) -> str | None:
        """The text of a file; None if there is none."""
        from loki_memory.files import disk
        from loki_memory.files.store import failures_named

        with failures_named(path):
            data = disk.read_bytes(path)
        try:
            return None if data is None else data.decode()
        except UnicodeDecodeError as error:
            raise InvalidConfig(
                path, f"byte {error.start} is not UTF-8. Nothing was written; mend it and repeat."
            ) from None

    def program(self) -> str:
        """The command that starts our program. A shared file names no path of this machine."""
        return program() if self.user else "loki-mem"


def is_found() -> bool:
    """Check if a shell finds our program by its name."""
    return shutil.which("loki-mem") is not None


def is_temporary() -> bool:
    """Check if our program lies only where uvx keeps environments, which it may clear any time."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    lasting = [folder for folder in folders if not _is_cached(Path(folder))]
    if shutil.which("loki-mem", path=os.pathsep.join(lasting)) is not None:
        return False
    return is_found() or _is_cached(Path(sys.executable))


def _is_cached(path: Path) -> bool:
    """Check if a path lies in uv's cache; tools that uv has installed lie elsewhere."""
    cache = os.environ.get("UV_CACHE_DIR")
    if cache and path.is_relative_to(cache):
        return True
    return any(_BUCKET.fullmatch(part) for part in path.parts)


def program() -> str:
    """Our name where a shell finds it or will find it, else the path of the program."""
    if is_found() or is_temporary():
        return "loki-mem"
    beside = Path(sys.executable).with_name("loki-mem")
    return str(beside) if beside.exists() else "loki-mem"
