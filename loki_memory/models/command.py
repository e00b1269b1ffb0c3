"""The head of an action: which program and subcommand a shell was given, or which tool ran."""

from __future__ import annotations

import re
from itertools import takewhile


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SHELLS = _words(
    "bash sh zsh shell terminal cmd command run exec execute execute_bash run_command "
    "run_shell run_terminal_cmd run_shell_command run_in_terminal powershell bashtool"
)
# They say where or how, not what.
_SETTING = _words(
    "cd pushd popd export set unset source . echo printf sleep true : mkdir ls pwd which test "
    "[ if then fi for do done while { } ( )"
)
_PREFIXES = _words(
    "sudo env time timeout nohup nice stdbuf exec command npx bunx pnpx uvx xargs then do"
)
_RUNNERS = _words("uv poetry pipenv hatch pdm rye")  # `uv run pytest` is pytest
_WITH_SUBCOMMAND = _words(
    "git go npm pnpm yarn bun pip cargo docker docker-compose podman kubectl helm terraform "
    "apt apt-get apk brew dnf yum conda uv poetry mise make gh aws gcloud az dotnet gradle "
    "mvn bundle gem rails mix composer php-artisan systemctl rustup alembic django-admin"
)
_SCRIPTS = _words("run exec")  # what follows names the script: `npm run build`
_VALUED = _words("-C -u -f -p -w --prefix --cwd --filter")  # options that a value follows
_OTHER_NAMES = {"apt-get": "apt", "python3": "python", "pip3": "pip", "nodejs": "node"}
_BETWEEN = re.compile(r"&&|\|\||[;|\n]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_VERSION = re.compile(r"(?<=[a-z])\d+(?:\.\d+)*$")  # `python3.11`, `pip3`
_SUBCOMMAND = re.compile(r"[a-z][\w:.-]*")
_NAME = re.compile(r"[\w.+-]+")
_TOOL = re.compile(r"[\w.:-]{1,60}")
# Errors that belong to one program, whatever chain of commands they came out of.
_OWNERS = ((re.compile(r"externally-managed-environment"), "pip install"),)


def head(action: str, target: str = "", error: str = "") -> str:
    """`git commit` for a shell's command, the name of any other tool; empty if neither is told.

    Of a chain of commands it is the one that the error names, else the first that does something.
    """
    owner = next((name for pattern, name in _OWNERS if pattern.search(error)), "")
    if owner:
        return owner
    action = action.strip()
    if action.lower() in _SHELLS:
        return _of_commands(target, error)
    if _TOOL.fullmatch(action):
        return action
    first = _of_commands(action, error)
    return first if _is_command(first, action) else ""


def is_shell(action: str) -> bool:
    """Whether the action is a shell's, so that its head is a command."""
    return action.strip().lower() in _SHELLS or not _TOOL.fullmatch(action.strip())


def _is_command(first: str, text: str) -> bool:
    """A command line, not a sentence such as `Add the route`."""
    program = first.partition(" ")[0]
    return program in _WITH_SUBCOMMAND or (
        text[:1].islower() and re.search(r"\s--?\w|[/|&]|\.\w+\b", text) is not None
    )


def _of_commands(line: str, error: str) -> str:
    heads = [found for found in map(_of_command, _BETWEEN.split(line[:2000])) if found]
    said = set(re.findall(r"[\w.-]+", error.lower()))
    named = error.partition(":")[0].strip()
    for found in heads:
        program, *subs = found.split()
        if program == named or said.intersection(subs[:1]):
            return found
    return heads[0] if heads else ""


def _of_command(line: str) -> str:
    words = _without_values(line.replace("(", " ").split())
    while words and (
        words[0] in _PREFIXES or _ASSIGNMENT.match(words[0]) or words[0][0] in "-0123456789"
    ):
        words.pop(0)
    if words[:1] and words[0] in _RUNNERS and words[1:2] == ["run"]:
        words = [word for word in words[2:] if not word.startswith("-")]
    if len(words) > 2 and _program(words[0]) == "python" and words[1] == "-m":  # noqa: PLR2004
        words = words[2:]
    if not words or words[0] in _SETTING:
        return ""
    program = _program(words[0])
    if program not in _WITH_SUBCOMMAND:
        return program
    given = [word for word in words[1:] if not word.startswith("-")]
    named = given[: 2 if given[:1] and given[0] in _SCRIPTS else 1]
    return " ".join([program, *takewhile(_SUBCOMMAND.fullmatch, named)])


def _without_values(words: list[str]) -> list[str]:
    return [
        word
        for at, word in enumerate(words)
        if word not in _VALUED and (at == 0 or words[at - 1] not in _VALUED)
    ]


def _program(word: str) -> str:
    name = re.split(r"[/\\]", word.strip("'\"`"))[-1]
    if not _NAME.fullmatch(name):
        return ""
    bare = _VERSION.sub("", name)
    name = bare if bare in {"python", "pip"} else name
    return _OTHER_NAMES.get(name, name)
