"""Processes that tests start beside themselves, and what they check afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import loki_memory
from loki_memory import Workspace
from loki_memory.files import transaction
from loki_memory.files.codec import decode
from loki_memory.files.layout import kind_of
from loki_memory.files.scan import scan
from loki_memory.index.index import Index
from loki_memory.sync import rebuild

LONG = os.environ.get("LOKI_TEST_LONG") == "1"  # read before the fixture clears LOKI_* variables
_SCRIPTS = Path(__file__).resolve().parent
_PACKAGE = Path(loki_memory.__file__).parents[1]


def start(script: str, *arguments: object, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """Run a script of this folder with pipes at all three ends; `before` is a command to run it."""
    paths = [str(_PACKAGE), str(_SCRIPTS.parent), os.environ.get("PYTHONPATH", "")]
    return subprocess.Popen(
        [*before, sys.executable, str(_SCRIPTS / script), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )


def tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def hear(process: subprocess.Popen[str]) -> str:
    """The next line that a process says; what it complained about if it says no more."""
    assert process.stdout is not None
    line = process.stdout.readline().rstrip("\n")
    if not line:
        assert process.stderr is not None
        raise AssertionError(f"the process ended: {process.stderr.read()}")
    return line


def rebuilt_digest(workspace: Workspace) -> str:
    """The digest of an index that is made from nothing but the files."""
    index = Index(None)
    rebuild(workspace.layout, index, 0)
    digest = index.digest()
    index.close()
    return digest


def record_files(workspace: Workspace) -> dict[str, bytes]:
    """Every record file by its path."""
    paths = (f"{path}/{name}" for path, folder in scan(workspace.layout) for name in folder.files)
    return {p: workspace.layout.resolve(p).read_bytes() for p in paths if kind_of(p)}


def ids(workspace: Workspace) -> list[str]:
    """The ids that stand in JSON record files, in order, repetitions too."""
    files = record_files(workspace)
    return sorted(json.loads(data)["id"] for p, data in files.items() if p.endswith(".json"))


def leftovers(workspace: Workspace) -> list[str]:
    """Temporary files and staged changes that somebody left behind."""
    found = [
        *workspace.layout.memory.rglob(".tmp-*"),
        *transaction.staging(workspace.layout).glob("*"),
    ]
    return sorted({str(path.relative_to(workspace.layout.memory)) for path in found})


def crash(workspace: Workspace, change: Mapping[str, bytes | None], renames: int) -> None:
    """Change several files in a process that dies after some renames, as if killed.

    The first rename decides: before it nothing has happened, after it all of it will.
    """
    child = os.fork()
    if not child:
        _die(workspace, change, renames)
    os.waitpid(child, 0)


def _die(workspace: Workspace, change: Mapping[str, bytes | None], renames: int) -> NoReturn:
    left, replace = iter(range(renames)), os.replace

    def replace_or_die(*names: Any, **folders: Any) -> None:
        if next(left, None) is None:
            os._exit(1)
        replace(*names, **folders)

    os.replace = replace_or_die
    try:
        with workspace.store.change() as asked:
            for path, data in change.items():
                if data is None:
                    asked.remove(path)
                else:
                    asked.put(decode(path, data), path)
    finally:
        os._exit(1)
