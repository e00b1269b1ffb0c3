"""Skills of this project where agents look for skills: `.claude/skills` and `.agents/skills`.

A published skill is a copy that says so in its last line. It follows the skill in memory: renewed
when that changes, removed when that is retired. A copy that somebody changed is theirs and stays.
Only skills that the project's own people and agents vouch for are published.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from loki_memory.errors import InvalidRecord, LokiMemoryError
from loki_memory.files.layout import PRIVATE
from loki_memory.files.store import failures_named
from loki_memory.installing.edits import Deed, Edit, carry_out, removed, written
from loki_memory.installing.managed import PUBLISHED, is_sealed
from loki_memory.installing.site import Site

if TYPE_CHECKING:
    from loki_memory.models import Skill
    from loki_memory.workspace import Workspace

FOLDERS = {"claude": ".claude/skills", "agents": ".agents/skills"}
_FILE = "SKILL.md"
_UNTRUSTED = {"import", "external"}


def publish(workspace: Workspace, target: str, *, plan_only: bool = False) -> list[Deed]:
    """Copy every skill in use to a target, and take away copies of those that are not any more.

    >>> publish(ws, "claude")  # doctest: +SKIP
    """
    return carry_out(_edits(workspace, _folder(target)), plan_only=plan_only)


def withdraw(workspace: Workspace, target: str, *, plan_only: bool = False) -> list[Deed]:
    """Take all copies away again."""
    site, folder = Site.of(workspace), _folder(target)
    edits = [_gone(site, folder, name) for name in sorted(_published(site, folder))]
    return carry_out(edits, plan_only=plan_only)


def keep_in_step(workspace: Workspace) -> list[Deed]:
    """Publish again wherever a copy of ours lies; trouble there is a remark and no error."""
    deeds: list[Deed] = []
    for target, folder in FOLDERS.items():
        try:
            if _published(Site.of(workspace), folder):
                deeds += publish(workspace, target)
        except LokiMemoryError as error:
            workspace.notices.append(f"published skills are not in step: {error}")
    return [deed for deed in deeds if deed.did]


def _folder(target: str) -> str:
    if target not in FOLDERS:
        known = ", ".join(FOLDERS)
        raise InvalidRecord(
            f"skills cannot be published to {target!r}", advice=f"Use one of: {known}."
        )
    return FOLDERS[target]


def _edits(workspace: Workspace, folder: str) -> list[Edit]:
    site = Site.of(workspace)
    skills = {skill.name: skill for skill in _in_use(workspace)}
    copies = [_copy(site, folder, skills[name]) for name in sorted(skills)]
    retired = sorted(_published(site, folder) - skills.keys())
    return [*copies, *(_gone(site, folder, name) for name in retired)]


def _in_use(workspace: Workspace) -> Iterator[Skill]:
    """The skills of the project that hold: neither doubtful nor private nor from elsewhere."""
    from loki_memory.models import Skill

    for line in workspace.summaries(kind="skill", scope="project"):
        skill = None if line.path.startswith(PRIVATE) else workspace.get(line.id)
        if isinstance(skill, Skill) and _holds(skill.metadata):
            yield skill


def _holds(metadata: Mapping[str, str]) -> bool:
    trusted = metadata.get("loki-origin") not in _UNTRUSTED
    return trusted and metadata.get("loki-status", "active") == "active"


def _copy(site: Site, folder: str, skill: Skill) -> Edit:
    from loki_memory.files.codec import encode

    described = skill.changed(description=skill.description or skill.title()[:1024])
    text = encode(described).decode()
    return written(site, _place(site, folder, skill.name), text, f"skill {skill.name}", PUBLISHED)


def _gone(site: Site, folder: str, name: str) -> Edit:
    return removed(site, _place(site, folder, name), f"no skill {name}", PUBLISHED)


def _place(site: Site, folder: str, name: str) -> Path:
    return site.in_project(f"{folder}/{name}/{_FILE}")


def _published(site: Site, folder: str) -> set[str]:
    """The skills of which a copy lies there that nobody has changed. Links are somebody's own."""
    files = site.in_project(folder).glob(f"*/{_FILE}")
    own = (path for path in files if not (path.is_symlink() or path.parent.is_symlink()))
    with failures_named(folder):
        return {path.parent.name for path in own if _is_copy(path.read_bytes())}


def _is_copy(data: bytes) -> bool:
    return is_sealed(data.decode("utf-8", "replace"), PUBLISHED)
