"""The process of a workspace's watcher: its lock, its log, and how it is started.

One process per workspace watches, the one that holds the lock; a kernel lock dies with its
holder, so there are no stale locks to judge. A session that begins starts a watcher where none
runs, so that later hooks of the session only ask it; such a one ends by itself.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from loki_memory.daemon import protocol
from loki_memory.errors import AlreadyWatched, StoreBusy
from loki_memory.files import disk
from loki_memory.files.layout import Layout
from loki_memory.files.lock import locked

if TYPE_CHECKING:
    import subprocess

    from loki_memory.workspace import Workspace

UNTIL_IDLE = "--until-idle"  # the option of `watch` for a watcher that a session started
# Variables that a watcher needs. It outlives the session, whose keys and tokens it must not hold.
_NEEDED = (
    *("PATH", "HOME", "USER", "LANG", "LC_", "TMPDIR", "TZ", "XDG_", "LOKI_", "PYTHON", "GIT_"),
    *("CLAUDE_CONFIG_DIR", "CODEX_HOME", "VIRTUAL_ENV", "MEMORY_ENABLED"),
)


def place(layout: Layout, ending: str) -> Path:
    """The path of a file of the watcher. Worktrees share a local zone, but have a watcher each."""
    return layout.local / "watch" / f"{protocol.name_of(layout.loki)}.{ending}"


@contextmanager
def leading(layout: Layout) -> Iterator[None]:
    """Hold the watcher's lock; raises AlreadyWatched if another process does."""
    path = place(layout, "lock")
    disk.make_folder(path.parent)
    with ExitStack() as held:
        try:
            held.enter_context(locked(path, 0))
        except StoreBusy:
            raise AlreadyWatched(layout.root) from None
        yield


def is_watched(layout: Layout) -> bool:
    """Check if a process watches the workspace."""
    try:
        with locked(place(layout, "lock"), 0):
            return False
    except FileNotFoundError:
        return False
    except StoreBusy:
        return True


def start_for_session(workspace: Workspace, environment: Mapping[str, str]) -> bool:
    """Start a watcher for a session that begins, if none runs; False if none was started.

    It ends by itself when nobody asks any more. None is started in continuous integration, where it
    would outlive the job.
    """
    wanted = workspace.config.get("daemon.autostart") and not environment.get("CI")
    if not (wanted and protocol.CAN_LISTEN) or is_watched(workspace.layout):
        return False
    needed = {name: value for name, value in environment.items() if name.startswith(_NEEDED)}
    detached(workspace.layout, needed, UNTIL_IDLE)
    return True


def detached(
    layout: Layout, environment: Mapping[str, str], *options: str
) -> subprocess.Popen[bytes]:
    """Start a watcher that outlives this process and holds none of its files."""
    import subprocess

    log = place(layout, "log")
    disk.make_folder(log.parent)
    program = [sys.executable, "-P", "-m", "loki_memory", "-C", str(layout.root), "watch", "--log"]
    with open(disk.open_to_change(log, append=True), "ab") as output:
        return subprocess.Popen(  # noqa: S603 - this very program
            [*program, *options],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            env=dict(environment),
            start_new_session=True,
        )
