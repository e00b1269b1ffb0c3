"""Actions of an episode: its moves, its files and checks, and a summary of its log.

An action is abstracted to a move: its head (the program and subcommand of a command, else the
tool) and the place that it went to (a test, a config file, a source, with the extension). Repeated
moves count once.

A summary keeps the goal, the outcome, every error with its repair, and the moves that were made,
so that everything that is learned from an episode can be learned from its summary too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from loki_memory.models import Action, Episode
from loki_memory.models.error_signature import CHAIN, SHELLS, head

_READ = 40  # moves of an episode that are looked at: a procedure shows early or not at all

_RUNS = re.compile(r"^(?:run|exec|bash|shell|sh|cmd|command|terminal|test|lint|build|sql|query)")
_SQL = re.compile(
    r"^\s*(select|insert|update|delete|desc(?:ribe)?|explain|show\s+\w+|(?:create|drop|alter)\s+\w+)\b",
    re.IGNORECASE,
)
_SCRIPT = re.compile(r"\brun\s+([a-z][\w:.-]*)")  # of `npm run lint`
_TEST = re.compile(r"(?:^|[/_.-])(?:tests?|specs?|__tests__)(?:[/_.-]|$)", re.IGNORECASE)
_CONFIG = re.compile(
    r"(?:\.(?:toml|ya?ml|ini|cfg|conf|env|lock)|(?:^|/)(?:[\w.-]*config[\w.-]*|package\.json|"
    r"package-lock\.json|Dockerfile|Makefile|\.\w+rc[\w.]*))$"
)
_DOCUMENT = re.compile(r"\.(?:md|rst|txt|adoc)$", re.IGNORECASE)
_EXTENSION = re.compile(r"\.\w{1,8}$")


class Move(NamedTuple):
    """An action from afar."""

    head: str
    place: str = ""


def move(action: Action) -> Move:
    """The abstraction of one action.

    >>> move(Action(action="run_command", target="cd web && npm run lint -- --fix"))
    Move(head='npm run lint', place='')
    >>> move(Action(action="edit_file", target="src/routes/todos.test.ts"))
    Move(head='edit_file', place='test .ts')
    """
    return _move(action.action.strip(), (action.target or "").strip())


@lru_cache(maxsize=65536)
def _move(name: str, target: str) -> Move:
    if " " in name and not target:
        return Move(_command(name) or name)
    place = _place(target)
    if target and not place and _RUNS.match(name.lower()):
        return Move(_command(target) or name)
    return Move(name, place)


def is_command(action: Action) -> bool:
    """Check whether an action ran a program rather than opened a file."""
    return not move(action).place and move(action).head != action.action.strip()


def _command(text: str) -> str:
    """Program and subcommand: `git commit`, `npm run lint`, `select`, `show tables`."""
    query = _SQL.match(text)
    if query:
        return " ".join(query[1].lower().split()).replace("describe", "desc")
    found = head("bash", text)
    script = _SCRIPT.search(text) if found.endswith(" run") else None
    return f"{found} {script[1]}" if script else found


def _place(target: str) -> str:
    """Return what kind of file a target is, with its extension; empty if it is no path."""
    if not target or any(mark.isspace() for mark in target):
        return ""
    extension = _EXTENSION.search(target)
    if not extension and "/" not in target:
        return ""
    return f"{_file_class(target)} {extension[0].lower() if extension else ''}".strip()


def _file_class(path: str) -> str:
    if _TEST.search(path):
        return "test"
    if _CONFIG.search(path):
        return "config"
    return "document" if _DOCUMENT.search(path) else "source"


def runs(actions: Sequence[Action]) -> Iterator[tuple[Move, list[Action]]]:
    """Actions in the stretches in which they made the same move."""
    for action, stretch in groupby(actions, key=move):
        if action.head:
            yield action, list(stretch)


def moves(episode: Episode) -> tuple[Move, ...]:
    """Return what an episode's log looks like from afar: repeated moves once."""
    found = [run for run, _ in runs(episode.action_log)]
    return tuple(entry for entry, _ in groupby(found))[:_READ]


# -- Files, steps, checks and circumstances --

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
    for part in CHAIN.split(action.target or action.action):
        made = move(Action(action="bash", target=part.strip()))
        if made.head and made.head != "bash" and not made.place:
            yield made.head


# -- What is left of an episode when its details no longer matter --

SUMMARY = "summary"
_REPAIR = 25  # actions after a failure among which its repair is looked for
_FAILED = frozenset({"fail", "failed", "failure", "error", "errored"})
_LONG = 200  # characters of a target that a summary keeps


def is_terse(episode: Episode) -> bool:
    """Check whether an episode is a summary already, or a summary would not be shorter."""
    return (episode.model_extra or {}).get("detail") == SUMMARY or summary(episode) is None


def summary(episode: Episode) -> Episode | None:
    """The episode with a log that has each move once, whole where it failed or was repaired.

    None if that says as much in as many words.
    """
    essence = _essence(episode.action_log)
    if essence == episode.action_log:
        return None
    kept = [action.model_dump(mode="json", exclude_unset=True) for action in essence]
    counts = Counter(move(action).head for action in episode.action_log if action.action)
    repeated = {name: n for name, n in sorted(counts.items()) if n > 1}
    short = episode.changed(
        action_log=kept, detail=SUMMARY, **({"action_counts": repeated} if repeated else {})
    )
    return short if _size(short) < _size(episode) else None


def _size(episode: Episode) -> int:
    return len(episode.model_dump_json(exclude_unset=True))


def _essence(actions: Sequence[Action]) -> list[Action]:
    """The first action of each stretch and kind, slim; the first, the last, failures and repairs
    whole; and every step after a failure: how many there were says what belongs to its repair.
    """
    whole = {0, len(actions) - 1, *_failures(actions), *_repairs(actions)}
    whole |= {at for at, action in enumerate(actions) if not action.action}  # who knows what it was
    after = {at for failed in _failures(actions) for at in _soon(actions, failed)}
    numbers = {id(action): at for at, action in enumerate(actions)}
    first = {numbers[id(stretch[0])] for _, stretch in runs(actions)}
    first |= _first_of_kind(actions)
    return [
        action if at in whole else _slim(action, is_short=at not in after)
        for at, action in enumerate(actions)
        if at in whole or at in after or at in first
    ]


def _first_of_kind(actions: Sequence[Action]) -> set[int]:
    """Return where each kind of step, by which episodes are found to be alike, is taken first."""
    return set({step_kind(action): at for at, action in reversed([*enumerate(actions)])}.values())


def _failures(actions: Sequence[Action]) -> Iterator[int]:
    for at, action in enumerate(actions):
        if action.error or (action.result or "").lower() in _FAILED:
            yield at


def _soon(actions: Sequence[Action], failed: int) -> range:
    return range(failed + 1, min(failed + 1 + _REPAIR, len(actions)))


def _repairs(actions: Sequence[Action]) -> Iterator[int]:
    """From each failure to the last time soon after that the same was tried.

    What was done in between is the remedy.
    """
    made = [move(action) for action in actions]
    for failed in _failures(actions):
        again = [at for at in _soon(actions, failed) if made[at] == made[failed]]
        yield from range(failed + 1, again[-1] + 1 if again else failed + 1)


def _slim(action: Action, *, is_short: bool) -> Action:
    """An action without its payload, and with a long target cut."""
    target = action.target
    if target and is_short and len(target) > _LONG:
        cut = Action(action=action.action, target=target[:_LONG])
        is_same = (move(cut), step_kind(cut)) == (move(action), step_kind(action))
        target = cut.target if is_same else target
    return Action(action=action.action, **({"target": target} if target else {}))
