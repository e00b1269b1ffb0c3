"""Install what lies outside `.loki/memory`, when asked, and remove exactly that again.

`git`: a merge driver in this clone's git configuration, and attributes in `.loki/` that name it.
The attributes are tracked and reach every clone; the driver is this clone's own, and where it is
missing git merges as text and `loki-mem resolve` mends what is left.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import GitFailed

if TYPE_CHECKING:
    from loki_memory.history.repository import Repository
    from loki_memory.workspace import Workspace

_ATTRIBUTES = """\
# Written by `loki-mem install git`: records are merged field by field.
/memory/**/*.json merge=loki -text
/memory/skills/**/*.md merge=loki -text
/memory/archive/**/*.md merge=loki -text
"""
_NAME = "merge.loki.name"
_DRIVER = "merge.loki.driver"
_SAYS = "loki-mem merges memory field by field"
_CONFIG = ".git/config"


class Deed(NamedTuple):
    """One thing that was done, or was found done."""

    what: str
    where: str
    did: bool


class Target(NamedTuple):
    """Something that memory can be installed into."""

    about: str
    install: Callable[[Workspace], list[Deed]]
    uninstall: Callable[[Workspace], list[Deed]]


def install_git(workspace: Workspace) -> list[Deed]:
    """Name the merge driver in this clone's configuration and in `.loki/.gitattributes`."""
    repository = _repository(workspace)
    if repository is None:
        told = "no git repository here; run this again once there is one"
        return [Deed(told, _CONFIG, False), _add_attributes(workspace)]
    wanted = {_NAME: _SAYS, _DRIVER: f"{_program()} merge-driver %O %A %B %P"}
    deeds = [_set(repository, name, value) for name, value in wanted.items()]
    return [*deeds, _add_attributes(workspace)]


def _set(repository: Repository, name: str, value: str) -> Deed:
    did = _setting(repository, name) != value
    if did:
        repository.run("config", "--local", name, value)
    return Deed(f"{name} = {value}", _CONFIG, did)


def uninstall_git(workspace: Workspace) -> list[Deed]:
    """Take out what `install_git` put in; a driver that somebody else named stays."""
    repository = _repository(workspace)
    deeds = [_unset(repository, name) for name in (_NAME, _DRIVER)] if repository else []
    return [*deeds, _remove_attributes(workspace)]


def _unset(repository: Repository, name: str) -> Deed:
    value = _setting(repository, name)
    did = value == _SAYS or " merge-driver " in value
    if did:
        repository.run("config", "--local", "--unset", name)
    return Deed(f"no {name}", _CONFIG, did)


TARGETS: dict[str, Target] = {
    "git": Target("merge memory field by field in this clone", install_git, uninstall_git)
}


def _repository(workspace: Workspace) -> Repository | None:
    from loki_memory.history.repository import Repository

    return Repository.find(workspace.layout.root, workspace.layout.loki.name)


def _program() -> str:
    """How git starts us: by name where a shell finds us, else by the place we lie in."""
    if shutil.which("loki-mem"):
        return "loki-mem"
    beside = Path(sys.executable).with_name("loki-mem")
    return shlex.quote(str(beside)) if beside.exists() else "loki-mem"


def _setting(repository: Repository, name: str) -> str:
    try:
        return repository.run("config", "--local", "--get", name).decode().rstrip("\n")
    except GitFailed:  # there is none
        return ""


def _add_attributes(workspace: Workspace) -> Deed:
    from loki_memory.files import disk
    from loki_memory.files.store import failures_named

    path = workspace.layout.loki / ".gitattributes"
    with failures_named(path):
        there = disk.read_bytes(path) or b""
        did = _ATTRIBUTES.encode() not in there
        if did:
            gap = b"\n" if there and not there.endswith(b"\n") else b""
            disk.write_bytes(path, there + gap + _ATTRIBUTES.encode())
    return Deed("records name the merge driver", ".loki/.gitattributes", did)


def _remove_attributes(workspace: Workspace) -> Deed:
    from loki_memory.files import disk
    from loki_memory.files.store import failures_named

    path = workspace.layout.loki / ".gitattributes"
    with failures_named(path):
        there = disk.read_bytes(path) or b""
        left = there.replace(_ATTRIBUTES.encode(), b"")
        if left != there:
            if left:
                disk.write_bytes(path, left)
            else:
                disk.remove(path)
    return Deed("records name no merge driver", ".loki/.gitattributes", left != there)
