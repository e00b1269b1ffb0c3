"""Discovery: where agents keep transcripts, notes and skills, and which belong to a repository.

What reads transcripts is imported where one is read: `consolidate` looks for the others only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from loki_memory.files.git_files import git_home

_ENDINGS = (".jsonl", ".jsonl.gz")
CLAUDE_INDEX = "MEMORY.md"  # of Claude Code's own memory
SKILL_FOLDERS = {"claude": ".claude/skills", "agents": ".agents/skills"}


def places(environment: Mapping[str, str]) -> list[Path]:
    """The folders and databases in which agents keep their transcripts."""
    home = Path.home()

    def place(default: str, *variables: str) -> Path:
        named = (environment.get(name) for name in variables)
        return Path(next(filter(None, named), home / default))

    return [
        place(".claude", "CLAUDE_CONFIG_DIR") / "projects",
        place(".codex", "CODEX_HOME") / "sessions",
        place(".copilot", "COPILOT_HOME") / "session-state",
        place("", "GEMINI_CLI_HOME") / ".gemini" / "tmp",
        place(".qwen", "QWEN_RUNTIME_DIR", "QWEN_HOME") / "projects",
        *sorted((place(".local/share", "XDG_DATA_HOME") / "opencode").glob("opencode*.db")),
    ]


def claude_folders(root: Path) -> list[Path]:
    """The folders of Claude Code's memory: one for each folder that it is started in."""
    projects = places(os.environ)[0]
    return [projects / re.sub(r"[^A-Za-z0-9]", "-", top) / "memory" for top in tops(root)]


def transcripts(paths: Iterable[Path]) -> Iterator[Path]:
    """Files as they are named; of folders and databases, all transcripts in them."""
    from loki_memory.ingest.opencode import is_database

    for path in paths:
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*") if p.name.endswith(_ENDINGS))
        elif is_database(path):
            yield from _in_database(path)
        else:
            yield path


def _in_database(path: Path) -> list[Path]:
    """The sessions of a database; one that cannot be read has one, of which that is said later."""
    from loki_memory.ingest.opencode import sessions

    try:
        return sessions(path)
    except OSError:
        return [path / "sessions"]


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
    """Check whether the session of a transcript began in one of these folders, or below it."""
    from loki_memory.ingest.read_transcript import first_folder

    began = first_folder(path)
    return bool(began) and any(_is_below(os.path.realpath(began), top) for top in folders)


def _is_below(folder: str, top: str) -> bool:
    return folder == top or folder.startswith(top.rstrip(os.sep) + os.sep)
