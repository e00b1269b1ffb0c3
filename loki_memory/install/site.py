"""Where a target lies: in the project's folder, or among the user's own settings.

What lies in a project may come with a clone. So a link there is followed only if it stays inside
the project; the user's own links are followed as they are.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import InvalidConfig, SymlinkedRoot

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace


class Site(NamedTuple):
    """A project, and whether its user's settings are meant instead of its own."""

    root: Path
    user: bool = False

    @classmethod
    def of(cls, workspace: Workspace, *, user: bool = False) -> Site:
        return cls(Path(os.path.realpath(workspace.layout.root)), user)

    def in_project(self, name: str) -> Path:
        """A file of the project, by its real place; raises SymlinkedRoot if that is elsewhere."""
        named = self.root / name
        real = Path(os.path.realpath(named))
        if not real.is_relative_to(self.root):
            raise SymlinkedRoot(named, real)
        return real

    def in_home(self, name: str, variable: str, default: str) -> Path:
        """A file among the settings of an agent: in the folder that a variable names, or `~`."""
        folder = os.environ.get(variable) or Path.home() / default
        return Path(os.path.realpath(Path(folder) / name))

    def shown(self, path: Path) -> str:
        """A path as it is told to people."""
        if path.is_relative_to(self.root):
            return path.relative_to(self.root).as_posix()
        home = Path(os.path.realpath(Path.home()))
        return f"~/{path.relative_to(home).as_posix()}" if path.is_relative_to(home) else str(path)

    def top(self, path: Path) -> Path:
        """The folder above a file that is not ours to remove, empty or not."""
        home = Path(os.path.realpath(Path.home()))
        return next((top for top in (self.root, home) if path.is_relative_to(top)), path.parent)

    def text(self, path: Path) -> str | None:
        """What stands in a file; None if there is none."""
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
        """How an agent starts us. A file that others share names no place of this machine."""
        return program() if self.user else "loki-mem"


def is_found() -> bool:
    """Whether a shell finds us by our name."""
    return shutil.which("loki-mem") is not None


def program() -> str:
    """Our name where a shell finds it, else the place that we lie in."""
    if is_found():
        return "loki-mem"
    beside = Path(sys.executable).with_name("loki-mem")
    return str(beside) if beside.exists() else "loki-mem"
