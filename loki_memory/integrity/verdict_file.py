"""The file of verdicts about memory that came from elsewhere, and where there is one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from loki_memory.files.git_files import is_shared
from loki_memory.files.layout import Layout, chain_path

if TYPE_CHECKING:
    from loki_memory.home import Home


def is_judged(home: Home) -> bool:
    """Check if others may have changed memory here: something came from a remote."""
    return not home.is_user and not home.stands_alone and is_shared(home.layout.root)


def verdicts_path(layout: Layout) -> str:
    """The verdicts of a memory folder: worktrees share a local zone, and have files each."""
    name = os.path.basename(chain_path(layout)).removesuffix(".jsonl")
    return f"{layout.local}/reviewed/{name}.json"


def stamp(path: str | os.PathLike[str]) -> str:
    """A value that changes with a file."""
    try:
        status = os.stat(path)
    except OSError:
        return "-"
    return f"{status.st_mtime_ns}:{status.st_size}"
