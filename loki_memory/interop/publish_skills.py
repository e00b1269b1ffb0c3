"""Publish skills of this project to where agents look: `.claude/skills` and `.agents/skills`.

A published skill is a copy that says so in its last line. It follows the skill in memory: renewed
when that changes, removed when that is retired. A copy that was changed by hand stays.

Agents load these folders and carry out what they read, so a skill that a merge brought is not
published by itself. Published are skills that this machine learned (`consolidate` worded them
here), that this program added or reviewed here, or that a user accepted here by name. The local
zone, which no clone brings, notes that by the text: where a merge changes a skill, the new text
waits, and the copy of the old one stays. Skills that were imported, or that come from outside, are
never published.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from loki_memory.errors import InvalidRecord, LokiMemoryError
from loki_memory.files.layout import PRIVATE, kind_of, stem_in
from loki_memory.files.store import failures_named
from loki_memory.index.gate import UNTRUSTED
from loki_memory.ingest.discover import SKILL_FOLDERS
from loki_memory.install.edits import (
    PUBLISHED,
    Edit,
    InstallStep,
    carry_out,
    is_sealed,
    removed,
    written,
)
from loki_memory.install.site import Site
from loki_memory.integrity.accepted_skills import accept, acceptance, accepted, published_text

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace
    from loki_memory.models import Skill

_FILE = "SKILL.md"
_WITHHELD = "withheld, for this machine neither learned nor accepted it"


def publish(
    workspace: OpenWorkspace,
    target: str,
    *,
    names: Collection[str] = (),
    every: bool = False,
    plan_only: bool = False,
) -> list[InstallStep]:
    """Copy every accepted skill to a target, and remove copies of those that are not in use.

    `names`, or all skills in use with `every`, are accepted first. A step reports each skill that
    is withheld.

    >>> publish(ws, "claude", names=["run-tests"])  # doctest: +SKIP
    """
    folder = _folder(target)
    skills = {skill.name: skill for skill in _in_use(workspace)}
    chosen = (
        [*skills.values()] if every else [_skill_in_use(workspace, skills, name) for name in names]
    )
    new = {acceptance(skill) for skill in chosen}
    edits = _edits(workspace, folder, skills, accepted(workspace.layout) | new)
    steps = carry_out(edits, plan_only=plan_only)
    if not plan_only:
        accept(workspace.layout, *chosen)
    return steps


def withdraw(
    workspace: OpenWorkspace, target: str, *, plan_only: bool = False
) -> list[InstallStep]:
    """Remove all copies."""
    site, folder = Site.of(workspace), _folder(target)
    edits = [_gone(site, folder, name) for name in sorted(_published(site, folder))]
    return carry_out(edits, plan_only=plan_only)


def keep_in_step(workspace: OpenWorkspace) -> list[InstallStep]:
    """Publish again wherever a copy of ours lies; trouble there is a notice and no error.

    Each change is a notice too, and so is a skill that nobody has accepted here.
    """
    steps: list[InstallStep] = []
    for target, folder in SKILL_FOLDERS.items():
        try:
            if _published(Site.of(workspace), folder):
                steps += publish(workspace, target)
        except LokiMemoryError as error:
            workspace.notices.append(f"published skills are not in step: {error}")
    done = [step for step in steps if step.did]
    withheld = (step for step in steps if step.what.startswith(_WITHHELD))
    workspace.notices += [f"{step.where}: {step.what}" for step in (*done, *withheld)]
    return done


def _folder(target: str) -> str:
    if target not in SKILL_FOLDERS:
        known = ", ".join(SKILL_FOLDERS)
        raise InvalidRecord(
            f"skills cannot be published to {target!r}", advice=f"Use one of: {known}."
        )
    return SKILL_FOLDERS[target]


def _skill_in_use(workspace: OpenWorkspace, skills: Mapping[str, Skill], name: str) -> Skill:
    """Find a skill in use; raises NotFound, or InvalidRecord for one that may not be published."""
    name = name.removeprefix("skill-")
    if name not in skills:
        workspace.get(f"skill-{name}")
        why = "It is a candidate, private, imported or from outside."
        raise InvalidRecord(f"skill {name} is not published", advice=why)
    return skills[name]


def _edits(
    workspace: OpenWorkspace, folder: str, skills: Mapping[str, Skill], accepted: Collection[str]
) -> list[Edit]:
    site = Site.of(workspace)
    copies = [_copy(site, folder, skills[name], accepted) for name in sorted(skills)]
    retired = sorted(_published(site, folder) - skills.keys() - _unread(workspace))
    return [*copies, *(_gone(site, folder, name) for name in retired)]


def _unread(workspace: OpenWorkspace) -> set[str]:
    """Skills whose files cannot be read at the moment: they are not retired."""
    paths = (problem.path for problem in workspace.home.problems())
    return {stem_in(path) for path in paths if kind_of(path) == "skill"}


def _in_use(workspace: OpenWorkspace) -> Iterator[Skill]:
    """The skills of the project that may be published: active, shared and trusted."""
    from loki_memory.models import Skill

    for line in workspace.homes.summaries(kind="skill", scope="project"):
        skill = None if line.path.startswith(PRIVATE) else workspace.get(line.id)
        if isinstance(skill, Skill) and _holds(skill.metadata):
            yield skill


def _holds(metadata: Mapping[str, str]) -> bool:
    trusted = metadata.get("loki-origin") not in UNTRUSTED
    return trusted and metadata.get("loki-status", "active") == "active"


def _copy(site: Site, folder: str, skill: Skill, accepted: Collection[str]) -> Edit:
    place = _place(site, folder, skill.name)
    edit = written(site, place, published_text(skill), f"skill {skill.name}", PUBLISHED)
    if edit.before == edit.after or acceptance(skill) in accepted:
        return edit
    target = next(name for name, where in SKILL_FOLDERS.items() if where == folder)
    how = f"`loki-mem skills {skill.name} --publish {target}` accepts it"
    return edit._replace(what=f"{_WITHHELD}; {how}", after=edit.before)


def _gone(site: Site, folder: str, name: str) -> Edit:
    return removed(site, _place(site, folder, name), f"no skill {name}", PUBLISHED)


def _place(site: Site, folder: str, name: str) -> Path:
    return site.in_project(f"{folder}/{name}/{_FILE}")


def _published(site: Site, folder: str) -> set[str]:
    """The skills with an unchanged copy in the folder. Links belong to the user."""
    files = site.in_project(folder).glob(f"*/{_FILE}")
    own = (path for path in files if not (path.is_symlink() or path.parent.is_symlink()))
    with failures_named(folder):
        return {path.parent.name for path in own if _is_copy(path.read_bytes())}


def _is_copy(data: bytes) -> bool:
    return is_sealed(data.decode("utf-8", "replace"), PUBLISHED)
