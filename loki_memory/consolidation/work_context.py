"""The work context of an episode: its files, its steps and its circumstances."""

from __future__ import annotations

import re

from loki_memory.models import Action, Episode

_SHELLS = frozenset(
    ("bash", "sh", "shell", "run", "run_command", "command", "exec", "execute", "terminal")
)
_FLAG = re.compile(r"[-\d/.\"'$]")


def files(episode: Episode) -> frozenset[str]:
    """The names of an episode's files without their folders, and the endings of these."""
    names = (path.replace("\\", "/").rpartition("/")[2].lower() for path in episode.files())
    return frozenset(part for name in names for part in (name, extension(name)) if part)


def steps(episode: Episode) -> frozenset[str]:
    """The kinds of steps that an episode took."""
    return frozenset(head(action) for action in episode.action_log) - {""}


def circumstances(episode: Episode) -> frozenset[str]:
    """Under what an episode happened, in words."""
    files = (f"{ending} files" for path in episode.files() if (ending := extension(path)))
    run = (head(one) for one in episode.action_log if head(one) != one.action.strip().lower())
    tools = (f"with {command}" for command in run)  # that a file was read sets nothing apart
    phase = [f"phase {episode.context.phase}"] if episode.context.phase else []
    return frozenset((*files, *tools, *phase, *episode.context.constraints))


def extension(path: str) -> str:
    """The ending of a file's name with its dot; empty if it has none."""
    name, dot, ending = path.rpartition("/")[2].rpartition(".")
    return f".{ending.lower()}" if dot and name and ending.isalnum() else ""


def head(action: Action) -> str:
    """What kind of step this is: the tool, or for a shell the program and its subcommand."""
    tool, _, rest = action.action.strip().partition(" ")
    if tool.lower() not in _SHELLS:
        return tool.lower()
    line = (rest or action.target or "").split()[:2]
    return " ".join(word for word in line if not _FLAG.match(word)).lower() or tool.lower()
