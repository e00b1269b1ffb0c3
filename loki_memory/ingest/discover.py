"""Where agents keep their transcripts, and which of them belong to a repository."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from loki_memory.files.layout import git_home
from loki_memory.ingest.read_transcript import first_folder

_ENDINGS = (".jsonl", ".jsonl.gz")


def places(environment: Mapping[str, str]) -> list[Path]:
    """The folders in which agents keep their transcripts."""
    home = Path.home()
    claude = Path(environment.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    codex = Path(environment.get("CODEX_HOME") or home / ".codex")
    return [claude / "projects", codex / "sessions"]


def transcripts(paths: Iterable[Path]) -> Iterator[Path]:
    """Files as they are named; of folders, all transcripts in them."""
    for path in paths:
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*") if p.name.endswith(_ENDINGS))
        else:
            yield path


def tops(root: Path) -> list[str]:
    """The folder of a project: of its repository, and of every worktree of that."""
    home = git_home(root)
    if home is None:
        return [os.path.realpath(root)]
    top, common = home
    found = {os.path.realpath(top)}
    if common.name == ".git":
        found.add(os.path.realpath(common.parent))
    for pointer in common.glob("worktrees/*/gitdir"):
        found.add(os.path.realpath(Path(pointer.read_text(encoding="utf-8").strip()).parent))
    return sorted(found)


def belongs(path: Path, folders: Iterable[str]) -> bool:
    """Whether the session of a transcript began in one of these folders, or below it."""
    began = first_folder(path)
    return bool(began) and any(_is_below(os.path.realpath(began), top) for top in folders)


def _is_below(folder: str, top: str) -> bool:
    return folder == top or folder.startswith(top.rstrip(os.sep) + os.sep)
