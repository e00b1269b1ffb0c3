"""Read a workspace over and over until stdin ends: `reader.py ROOT files|library`.

Says `ready`, and at the end one JSON list: how often it read, and what went wrong.
"""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Iterator
from pathlib import Path

from loki_memory import Workspace


def main(root: str, way: str) -> None:
    read = _files if way == "files" else _library
    wrong: list[str] = []
    rounds = 0
    workspace = Workspace.open(root)
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        rounds += 1
        wrong += read(workspace)
    print(json.dumps([rounds, wrong]), flush=True)


def _files(workspace: Workspace) -> Iterator[str]:
    """As an agent without the library does: every file that is there must be whole."""
    for folder, folders, names in os.walk(workspace.layout.memory):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if name.endswith(".json") and not name.startswith("."):
                yield from _torn(Path(folder, name))


def _torn(path: Path) -> Iterator[str]:
    try:
        json.loads(path.read_bytes())
    except FileNotFoundError:
        return  # removed since the folder was read
    except ValueError as error:
        yield f"{path}: {error}"


def _library(workspace: Workspace) -> Iterator[str]:
    """Every question of a reader gets an answer, with a fresh and with an old connection."""
    for reader in (workspace, Workspace.open(Path(workspace.layout.root))):
        ids: list[str] = []
        try:
            ids += [memory.id for memory in reader.list(status="all")]
            for memory_id in ids[:3]:
                reader.get(memory_id)
            yield from map(str, reader.care.problems())
            reader.status()
        except Exception as error:  # noqa: BLE001 - any error at all is a finding
            yield f"{type(error).__name__}: {error}"
        if len(ids) != len(set(ids)):
            yield "an id is listed twice"
    reader.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
