"""Git: a merge driver in this clone's configuration, and attributes in `.loki/` that name it.

The attributes are tracked and reach every clone; the driver is this clone's own, and where it is
missing git merges as text and `loki-mem resolve` mends what is left. On request also the workflow
that reviews memory in pull requests.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from loki_memory.errors import GitFailed
from loki_memory.install.edits import (
    HASH,
    Edit,
    InstallOptions,
    InstallStep,
    carry_out,
    changed,
    removed,
    written,
)
from loki_memory.install.site import Site, program
from loki_memory.resources import resource

if TYPE_CHECKING:
    from loki_memory.git_repository import Repository
    from loki_memory.homes import OpenWorkspace

_ATTRIBUTES = """\
# Written by `loki-mem install git`: records are merged field by field.
/memory/**/*.json merge=loki -text
/memory/skills/**/*.md merge=loki -text
/memory/archive/**/*.md merge=loki -text
"""
# What a reviewer reads as beliefs, in `loki-mem diff`: forges show these closed.
_FOLDED = """\
/memory/archive/** linguist-generated
/memory/episodic/** linguist-generated
/memory/witness/** linguist-generated
"""
_NAME = "merge.loki.name"
_DRIVER = "merge.loki.driver"
_SAYS = "loki-mem merges memory field by field"
_CONFIG = ".git/config"
_WORKFLOW = ".github/workflows/memory.yml"
_AS_USUAL = InstallOptions()


def install_git(workspace: OpenWorkspace, options: InstallOptions = _AS_USUAL) -> list[InstallStep]:
    """Name the merge driver in this clone's configuration and in `.loki/.gitattributes`."""
    edits = [_with_attributes(workspace)]
    if options.workflow:
        edits.append(_with_workflow(workspace))
    repository = _repository(workspace)
    if repository is None:
        note = "no git repository here; run this again once there is one"
        return [
            InstallStep(note, _CONFIG, did=False),
            *carry_out(edits, plan_only=options.plan_only),
        ]
    wanted = {_NAME: _SAYS, _DRIVER: f"{shlex.quote(program())} merge-driver %O %A %B %P"}
    deeds = [_set(repository, name, value, options) for name, value in wanted.items()]
    return [*deeds, *carry_out(edits, plan_only=options.plan_only)]


def _set(repository: Repository, name: str, value: str, options: InstallOptions) -> InstallStep:
    did = _setting(repository, name) != value
    if did and not options.plan_only:
        repository.run("config", "--local", name, value)
    return InstallStep(f"{name} = {value}", _CONFIG, did)


def uninstall_git(
    workspace: OpenWorkspace, options: InstallOptions = _AS_USUAL
) -> list[InstallStep]:
    """Remove what `install_git` added; a driver of another name stays."""
    repository = _repository(workspace)
    names = (_NAME, _DRIVER) if repository else ()
    steps = [_unset(repository, name, options) for name in names if repository]
    edits = [_without_attributes(workspace), *_without_workflow(workspace)]
    return [*steps, *carry_out(edits, plan_only=options.plan_only)]


def _unset(repository: Repository, name: str, options: InstallOptions) -> InstallStep:
    value = _setting(repository, name)
    did = value == _SAYS or " merge-driver " in value
    if did and not options.plan_only:
        repository.run("config", "--local", "--unset", name)
    return InstallStep(f"no {name}", _CONFIG, did)


def _repository(workspace: OpenWorkspace) -> Repository | None:
    from loki_memory.git_repository import Repository

    return Repository.find(workspace.layout.root, workspace.layout.loki.name)


def _setting(repository: Repository, name: str) -> str:
    try:
        return repository.run("config", "--local", "--get", name).decode().rstrip("\n")
    except GitFailed:  # there is none
        return ""


def _with_attributes(workspace: OpenWorkspace) -> Edit:
    site = Site.of(workspace)
    path = site.in_project(".loki/.gitattributes")
    before = site.text(path)
    after = _with(_with(before or "", _ATTRIBUTES), _FOLDED)
    return changed(site, path, "records name the merge driver", before, after)


def _with(text: str, lines: str) -> str:
    gap = "\n" if text and not text.endswith("\n") else ""
    return text if lines in text else text + gap + lines


def _without_attributes(workspace: OpenWorkspace) -> Edit:
    site = Site.of(workspace)
    path = site.in_project(".loki/.gitattributes")
    before = site.text(path)
    after = (before or "").replace(_FOLDED, "").replace(_ATTRIBUTES, "") or None
    return changed(site, path, "records name no merge driver", before, after)


def _with_workflow(workspace: OpenWorkspace) -> Edit:
    site = Site.of(workspace)
    text = resource("docs/workflows/memory.yml").read_text(encoding="utf-8")
    return written(site, site.in_project(_WORKFLOW), text, "memory is reviewed", HASH)


def _without_workflow(workspace: OpenWorkspace) -> Iterator[Edit]:
    """Plan to remove the workflow; silent where there is none."""
    site = Site.of(workspace)
    path = site.in_project(_WORKFLOW)
    if path.exists():
        yield removed(site, path, "memory is not reviewed", HASH)
