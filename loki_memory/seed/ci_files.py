"""Files of continuous integration: the commands that they run, and the versions that they test.

The YAML of GitHub, GitLab, CircleCI, Azure and Travis differs in its frame. A command stands in
all of them under `run`, `script`, `command` or `bash`, so only these keys are looked at.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from loki_memory.seed.project_files import ProjectFiles, Table, strings, texts
from loki_memory.seed.proposal import CI_STEP, Proposal, Task, convention, is_plain, of_command

WORKFLOWS = ".github/workflows"
_SINGLE = (".gitlab-ci.yml", ".circleci/config.yml", "azure-pipelines.yml", ".travis.yml")
_MOST = 20  # workflows
_COMMANDS = frozenset({"run", "script", "command", "bash"})
_ELSEWHERE = frozenset({"working-directory", "working_directory", "workingDirectory"})  # folders
_SETTING = re.compile(r"^(?:[A-Z_][A-Z0-9_]*=\S*\s+)+")
_CONTROL = re.compile(r"(?:if|then|else|elif|fi|for|while|do|done|case|esac|function|set)\b|[{}#]")
_NOT_PLAIN = re.compile(r"[$|<>`;\\]|&&|\|\|")
_PATH = re.compile(r"(?:\./)?[\w.-]+(?:/[\w.-]+)+/?")
_VERSION = re.compile(r"(3\.\d+)")
_MAJOR = re.compile(r"v?(0\.\d+|[1-9]\d*)(?:\.x|\.\d+)*")
_SHOWN = 6  # versions; of more, the oldest and the newest


class CiFile(NamedTuple):
    """A file of continuous integration, and what it runs in the project's own folder."""

    path: str
    content: Table
    commands: list[str]


def read(files: ProjectFiles) -> list[CiFile]:
    """Read the files of continuous integration; those that test come before those that publish."""
    flows = [f"{WORKFLOWS}/{name}" for name in files.names(WORKFLOWS)]
    named = [path for path in flows if path.endswith((".yml", ".yaml"))][:_MOST]
    found = []
    for path in sorted(named, key=_is_secondary) + [path for path in _SINGLE if files.has(path)]:
        content = files.yaml(path)
        if content:
            found.append(CiFile(path, content, list(_commands(files, content))))
    return found


def _is_secondary(path: str) -> bool:
    return bool(re.search(r"release|publish|deploy|docs?\b|pages|nightly|codeql|stale", path))


def _commands(files: ProjectFiles, content: Table) -> Iterator[str]:
    for script in strings(content, _COMMANDS, without=_ELSEWHERE):
        yield from (line for line in lines(script) if _is_here(files, line))


def lines(script: str) -> Iterator[str]:
    """The commands of a script that stand for themselves.

    A line that computes something is left out, and so is everything after a change of folder.

    >>> list(lines("pip install x\\nCI=1 pytest \\\\\\n  -n auto\\ncd docs\\nmake html"))
    ['pip install x', 'pytest -n auto']
    """
    for line in script.replace("\\\n", " ").splitlines():
        command = " ".join(_SETTING.sub("", line.strip(), count=1).split())
        if re.match(r"(?:cd|pushd)\b", command) or "<<" in command:
            return
        for part in re.split(r" && ", command):
            if part and not _CONTROL.match(part) and not _NOT_PLAIN.search(part):
                yield part


def _is_here(files: ProjectFiles, command: str) -> bool:
    """Check that the paths that a command names exist in the project."""
    words = (word for word in command.split() if not word.endswith("..."))  # a pattern of Go
    paths = [word for word in words if _PATH.fullmatch(word)]
    return all(files.has(path) or files.has_folder(path) for path in paths)


def tasks(ci: Iterable[CiFile], language: str) -> Iterator[Task]:
    """The commands of tools whose purpose is known, those that are run most often first.

    The language is the project's main one, as a tool alone does not tell it.
    """
    counted = Counter(command for file in ci for command in file.commands)
    first: dict[str, str] = {}
    for file in ci:
        for command in file.commands:
            first.setdefault(command, file.path)
    for command in sorted(first, key=lambda entry: -counted[entry]):
        purpose = of_command(command)
        if purpose and is_plain(command, 70):
            yield Task(purpose, command, first[command], CI_STEP, language)


def sources_of(ci: Iterable[CiFile], command: str, runs: str = "") -> list[str]:
    """The files that run a command, or what a script of that name stands for."""
    spellings = {command, runs} - {""}
    spellings |= {f"python -m {command}", f"python3 -m {command}", f"uv run {command}"}
    if command.startswith("npm test"):
        spellings |= {"npm t", "npm run test"}
    return [file.path for file in ci if not spellings.isdisjoint(map(_bare, file.commands))]


def _bare(command: str) -> str:
    """A command without the options that follow a script's name."""
    return command.partition(" -- ")[0].strip()


def facts(ci: Iterable[CiFile]) -> Iterator[Proposal]:
    """The versions of the language that are tested."""
    for file in ci:
        pythons = _numbers(file.content, ("python-version", "python", "python_version"), _VERSION)
        if len(pythons) > 1:
            yield convention(f"CI tests Python {pythons[0]} to {pythons[-1]}.", file.path, 70)
            return
        nodes = _numbers(file.content, ("node-version", "node", "node_version"), _MAJOR)
        if len(nodes) > 1:
            yield convention(f"CI tests Node.js {_listed(nodes)}.", file.path, 70)
            return


def _listed(versions: list[str]) -> str:
    if len(versions) > _SHOWN:
        return f"{versions[0]} to {versions[-1]}"
    return f"{', '.join(versions[:-1])} and {versions[-1]}"


def _numbers(content: Table, keys: Iterable[str], version: re.Pattern[str]) -> list[str]:
    """The versions that are tested, the oldest first: as far as compatibility depends on them."""
    found = (version.fullmatch(text) for text in texts(strings(content, frozenset(keys))))
    numbers = {tuple(map(int, match[1].split("."))) for match in found if match}
    return [".".join(map(str, number)) for number in sorted(numbers)]
