"""The work context of an episode: its files, steps, checks and circumstances."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from loki_memory.consolidation.step_sequences import is_command, move
from loki_memory.models import Action, Episode
from loki_memory.models.error_signature import SHELLS

_FLAG = re.compile(r"[-\d/.\"'$]")
_CHECK = re.compile(
    r"\b(?:tests?|lint|build|check|verify|tsc|mypy|ruff|pytest|vitest|jest|eslint)\b"
)
# What a file is written in says what a lesson is about; other files say less than the phase.
_CATEGORIES = {
    **dict.fromkeys((".ts", ".tsx"), "typescript"),
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs"), "javascript"),
    **dict.fromkeys((".c", ".h"), "c"),
    **dict.fromkeys((".cc", ".cpp", ".hpp"), "cpp"),
    **dict.fromkeys((".sh", ".bash"), "shell"),
    **dict.fromkeys((".yml", ".yaml", ".toml", ".ini"), "configuration"),
    **dict.fromkeys((".md", ".rst"), "documentation"),
    **dict.fromkeys((".css", ".scss", ".html"), "web"),
    ".py": "python",
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
    ".kt": "kotlin",
    ".rb": "ruby",
    ".php": "php",
    ".cs": "csharp",
    ".swift": "swift",
    ".sql": "sql",
    ".db": "sql",
}

_CHAIN = re.compile(r"&&|\|\||[;\n]")
_EDITS = ("edit", "write", "multiedit", "notebookedit", "create", "apply_patch")
# Programs that look or move things about, in any project.
_PLAIN = frozenset(
    (
        *("awk", "basename", "cat", "cd", "chmod", "cp", "curl", "cut", "date", "diff", "dirname"),
        *("du", "echo", "env", "export", "false", "find", "for", "gh", "git", "grep", "head", "hg"),
        *("if", "jq", "kill", "ls", "mkdir", "mv", "ps", "pwd", "read", "rg", "rm", "sed", "set"),
        *("sleep", "sort", "source", "sudo", "svn", "tail", "tee", "test", "then", "time", "touch"),
        *("timeout", "tr", "tree", "true", "uniq", "unset", "wait", "wc", "which", "while"),
        *("xargs",),
    )
)


def steps(episode: Episode) -> frozenset[str]:
    """The kinds of steps that an episode took."""
    return frozenset(step_kind(action) for action in episode.action_log) - {""}


def circumstances(episode: Episode) -> frozenset[str]:
    """Under what an episode happened, in words."""
    files = (f"{ending} files" for path in episode.files() if (ending := extension(path)))
    kinds = ((step_kind(action), action.action) for action in episode.action_log)
    run = (kind for kind, tool in kinds if kind != tool.strip().lower())
    tools = (f"with {command}" for command in run)  # that a file was read sets nothing apart
    phase = [f"phase {episode.context.phase}"] if episode.context.phase else []
    return frozenset((*files, *tools, *phase, *episode.context.constraints))


def extension(path: str) -> str:
    """The ending of a file's name with its dot; empty if it has none."""
    name, dot, ending = path.rpartition("/")[2].rpartition(".")
    return f".{ending.lower()}" if dot and name and ending.isalnum() else ""


def step_kind(action: Action) -> str:
    """The kind of a step: the tool, or for a shell the program and its subcommand."""
    tool, _, rest = action.action.strip().partition(" ")
    if tool.lower() not in SHELLS:
        return tool.lower()
    line = (rest or action.target or "").split()[:2]
    return " ".join(word for word in line if not _FLAG.match(word)).lower() or tool.lower()


def category_of(episode: Episode) -> str:
    """Return what an episode is about: the language of most of its files, else its phase."""
    endings = (_CATEGORIES.get(extension(path)) for path in sorted(episode.files()))
    counted = Counter(filter(None, endings))
    if counted:
        return min(counted, key=lambda name: (-counted[name], name))
    return (episode.context.phase or "general").lower()


def files_needed(episode: Episode) -> set[str]:
    """The files that an episode started from: it named or read them, and did not make them."""
    given = {*episode.files_read, *episode.context.files_involved, *_read_files(episode)}
    return given - {*episode.artifacts_produced, *episode.files_modified, *_made_files(episode)}


def _read_files(episode: Episode) -> set[str]:
    return {
        action.target
        for action in episode.action_log
        if action.target and action.action.lower().startswith("read") and move(action).place
    }


def _made_files(episode: Episode) -> set[str]:
    """Files that an episode wrote before it did anything else with them."""
    first: dict[str, str] = {}
    for entry in episode.action_log:
        first.setdefault(entry.target or "", entry.action.lower())
    return {path for path, action in first.items() if action.startswith(("write", "create"))}


def checks(episode: Episode) -> set[str]:
    """The tests, linters and builds that an episode ran."""
    heads = (move(action).head for action in episode.action_log if is_command(action))
    return {head for head in heads if _CHECK.search(head)}


def before_commits(episode: Episode) -> list[list[str]]:
    """The commands between the last edit and each commit of an episode, each list in its order.

    >>> from loki_memory.models import Action, Episode
    >>> log = ["Edit a.py", "make lint && make test | tail", "git commit -m x"]
    >>> actions = [Action(action="Edit", target="a.py")]
    >>> actions += [Action(action="Bash", target=line) for line in log[1:]]
    >>> before_commits(Episode(goal="x", timestamp="2026-01-01", action_log=actions))
    [['make lint', 'make test']]
    """
    found: list[list[str]] = []
    run: list[str] = []
    for action in episode.action_log:
        if action.action.lower().startswith(_EDITS):
            run = []
        for command in _commands(action):
            if command == "git commit":
                found.append([*dict.fromkeys(run)])
                run = []
            elif command.partition(" ")[0] not in _PLAIN:
                run.append(command)
    return found


def _commands(action: Action) -> Iterator[str]:
    if not is_command(action):
        return
    for part in _CHAIN.split(action.target or action.action):
        made = move(Action(action="bash", target=part.strip()))
        if made.head and made.head != "bash" and not made.place:
            yield made.head
