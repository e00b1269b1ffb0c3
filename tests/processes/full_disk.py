"""Record episodes on a small disk until it is full: `full_disk.py FOLDER KILOBYTES`.

Mounts a file system of that size on the folder, for this process alone (run it with `unshare -rm`).
Says a JSON object of what was acknowledged and of what can be read, on the full disk and after.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path

from loki_memory import LokiMemoryError, Workspace
from processes import leftovers, rebuilt_digest

_BALLAST = 4 << 20  # bytes that are thrown off in the end


def main(folder: str, kilobytes: str) -> None:
    size = int(kilobytes) * 1024
    command = ["mount", "-t", "tmpfs", "-o", f"size={size + _BALLAST}", "tmpfs", folder]
    subprocess.run(command, check=True)
    ballast = Path(folder, "ballast")
    ballast.write_bytes(b"x" * _BALLAST)
    workspace = Workspace.init(folder)
    workspace.sync()
    acknowledged, error = _fill(workspace)
    _take_what_is_left(ballast)
    said = {
        "acknowledged": acknowledged,
        "error": error,
        "leftovers": leftovers(workspace),
        "read when full": _ids(folder),
    }
    ballast.unlink()
    said["read after"] = _ids(folder)
    with Workspace.open(folder) as after:
        after.sync()
        said["problems"] = list(map(str, after.care.problems()))
        said["index"] = after.index.digest() == rebuilt_digest(after)
        said["again"] = after.record({"goal": "There is space again"}).goal
    print(json.dumps(said))


def _fill(workspace: Workspace) -> tuple[list[str], str]:
    """What was acknowledged, and what was said in the end."""
    acknowledged: list[str] = []
    for n in count():
        try:
            if n % 3:
                acknowledged.append(workspace.record({"goal": f"Goal {n}"}).id)
            else:
                many = [{"goal": f"Goal {n}.{k}"} for k in range(5)]
                acknowledged += [episode.id for episode in workspace.record(many)]
        except LokiMemoryError as error:
            return acknowledged, f"{type(error).__name__}: {error}"
    raise AssertionError


def _take_what_is_left(ballast: Path) -> None:
    with ballast.open("ab", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 512)


def _ids(folder: str) -> list[str] | str:
    with Workspace.open(folder) as workspace:
        try:
            return sorted(episode.id for episode in workspace.list(kind="episode"))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
            return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main(*sys.argv[1:])
