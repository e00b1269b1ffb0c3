"""The targets of `install`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.install import agents_md, claude_code, codex, git
from loki_memory.install.edits import InstallOptions, InstallStep

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace


class Target(NamedTuple):
    """Something that memory can be installed into, and taken out of again."""

    install: Callable[[Workspace, InstallOptions], list[InstallStep]]
    uninstall: Callable[[Workspace, InstallOptions], list[InstallStep]]
    has_scopes: bool  # has settings of the user beside those of the project


TARGETS = {
    "git": Target(git.install_git, git.uninstall_git, has_scopes=False),
    "claude-code": Target(claude_code.install, claude_code.uninstall, has_scopes=True),
    "codex": Target(codex.install, codex.uninstall, has_scopes=True),
    "agents-md": Target(agents_md.install, agents_md.uninstall, has_scopes=False),
}
