"""The targets of `install`, and which of the agents among them are on this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from loki_memory.install import agents_md, claude_code, codex, git
from loki_memory.install.edits import InstallOptions, InstallStep
from loki_memory.install.json_clients import COPILOT, CURSOR, GEMINI, OPENCODE, QWEN, VSCODE

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace

_Do = Callable[["OpenWorkspace", InstallOptions], list[InstallStep]]


class Signs(NamedTuple):
    """Signs that an agent is there: a program on PATH, or the folder of its user's settings."""

    programs: tuple[str, ...]
    folder: str  # below the home folder
    variable: str = ""  # names another folder

    def are_there(self) -> bool:
        named = os.environ.get(self.variable) if self.variable else ""
        folder = Path(named) if named else Path.home() / self.folder
        return any(map(shutil.which, self.programs)) or folder.is_dir()


class Target(NamedTuple):
    """Something that memory can be installed into, and taken out of again."""

    install: _Do
    uninstall: _Do
    has_scopes: bool  # has settings of the user beside those of the project
    signs: Signs | None = None  # of an agent


def install_all(workspace: OpenWorkspace, options: InstallOptions) -> list[InstallStep]:
    """Install into every agent that is there, and into nothing else.

    All is planned first, so that settings which cannot be read stop it before anything is written.
    """
    agents = {name: target for name, target in _agents(options).items() if _is_there(target)}
    found = f"found: {', '.join(agents)}" if agents else "no agent was found that `install` knows"
    if found not in workspace.notices:
        workspace.notices.append(found)
    for target in agents.values():
        target.install(workspace, options._replace(plan_only=True))
    return [step for target in agents.values() for step in target.install(workspace, options)]


def uninstall_all(workspace: OpenWorkspace, options: InstallOptions) -> list[InstallStep]:
    """Take what was added out of every agent, whether it is still there or not."""
    targets = _agents(options).values()
    steps = [step for target in targets for step in target.uninstall(workspace, options)]
    return [step for step in steps if step.did]


def _agents(options: InstallOptions) -> dict[str, Target]:
    """The agents; if the user's settings are meant, those that have such."""
    return {
        name: target
        for name, target in TARGETS.items()
        if target.signs and (target.has_scopes or not options.user)
    }


def _is_there(target: Target) -> bool:
    return target.signs is not None and target.signs.are_there()


class _Client(Protocol):
    """A client of `json_clients`, or a module with these two functions."""

    @property
    def install(self) -> _Do: ...

    @property
    def uninstall(self) -> _Do: ...


def _agent(
    client: _Client, programs: str, folder: str, variable: str = "", *, user: bool = True
) -> Target:
    signs = Signs(tuple(programs.split()), folder, variable)
    return Target(client.install, client.uninstall, has_scopes=user, signs=signs)


TARGETS = {
    "git": Target(git.install_git, git.uninstall_git, has_scopes=False),
    "claude-code": _agent(claude_code, "claude", ".claude", "CLAUDE_CONFIG_DIR"),
    "codex": _agent(codex, "codex", ".codex", "CODEX_HOME"),
    "copilot": _agent(COPILOT, "copilot", ".copilot", "COPILOT_HOME"),
    "cursor": _agent(CURSOR, "cursor-agent cursor", ".cursor", "CURSOR_CONFIG_DIR"),
    "gemini": _agent(GEMINI, "gemini", ".gemini"),
    "opencode": _agent(OPENCODE, "opencode", ".config/opencode"),
    "qwen": _agent(QWEN, "qwen", ".qwen", "QWEN_HOME"),
    "vscode": _agent(VSCODE, "code", ".vscode", user=False),
    "agents-md": Target(agents_md.install, agents_md.uninstall, has_scopes=False),
    "all": Target(install_all, uninstall_all, has_scopes=True),
}
