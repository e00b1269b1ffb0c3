"""Interoperation: imports, published skills, and memory of other systems."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace
    from loki_memory.install.edits import InstallStep
    from loki_memory.interop.export_memory import ClearedMemory, ExportedMemory
    from loki_memory.interop.import_memory import Imported
    from loki_memory.interop.shared_memory import SharedMemory
    from loki_memory.interop.transfer import Transferred
    from loki_memory.models import Memory, Skill
    from loki_memory.seed.seeding import SeedPlan


class Skills:
    """Skills, as `ws.skills`: those of this memory, and their copies where agents look."""

    def __init__(self, workspace: OpenWorkspace) -> None:
        self._workspace = workspace

    def add(self, skill: Skill | str) -> Skill:
        """Write a skill, given as a Skill, as the text of a SKILL.md, or as Loki Mode's JSON."""
        from loki_memory.editing.edits import complete_skill
        from loki_memory.integrity.accepted_skills import accept

        if isinstance(skill, str) and skill.lstrip().startswith("{"):
            from loki_memory.files.codec import read_json
            from loki_memory.interop.sources.our_files import skill_in_json

            skill = skill_in_json("skill", read_json(skill.encode()))
        record = complete_skill(skill, self._workspace.origin)
        self._workspace.home.before_write("skills/")
        path = self._workspace.home.place_of(record.id) or ""
        stored: Skill = self._workspace.store.write(record, path)  # type: ignore[assignment]
        accept(self._workspace.layout, stored)
        return stored

    def accept(self, *skills: Skill) -> None:
        """Allow skills to be published in their present text."""
        from loki_memory.integrity.accepted_skills import accept

        accept(self._workspace.layout, *skills)

    def keep_accepted(self, before: Memory, after: Memory) -> Memory:
        """Keep a skill accepted that somebody here changed; returns the record as it is now."""
        from loki_memory.integrity.accepted_skills import keep_accepted

        return keep_accepted(self._workspace.layout, before, after)

    def publish(
        self,
        target: str,
        plan_only: bool = False,
        names: Collection[str] = (),
        every: bool = False,
    ) -> list[InstallStep]:
        """Copy the skills to where agents look: `claude` (.claude/skills) or `agents`.

        Those that were learned or accepted on this machine. `names` accepts some, `every` all.

        >>> ws.skills.publish("claude", names=["run-tests"])  # doctest: +SKIP
        """
        from loki_memory.interop.publish_skills import publish

        return publish(self._workspace, target, names=names, every=every, plan_only=plan_only)

    def withdraw(self, target: str, plan_only: bool = False) -> list[InstallStep]:
        """Take the copies of skills away again; those that somebody changed stay."""
        from loki_memory.interop.publish_skills import withdraw

        return withdraw(self._workspace, target, plan_only=plan_only)

    def keep_in_step(self) -> list[InstallStep]:
        """Publish again where skills are published; says what changed."""
        from loki_memory.ingest.discover import SKILL_FOLDERS

        root = self._workspace.layout.root
        if not any((root / folder).is_dir() for folder in SKILL_FOLDERS.values()):
            return []
        from loki_memory.interop.publish_skills import keep_in_step

        return keep_in_step(self._workspace)


class Interop:
    """Memory of other systems, as `ws.interop`."""

    def __init__(self, workspace: OpenWorkspace) -> None:
        self._workspace = workspace

    def import_memory(
        self,
        source: str = "",
        path: str | os.PathLike[str] | None = None,
        *,
        scope: str = "",
        plan_only: bool = False,
        every_project: bool = False,
        as_is: bool = False,
    ) -> Imported:
        """Import the memory of another system, with the origin `import`.

        Without a source, the path says which system it is. `scope` is that of all records;
        without it, facts and the like are shared, and episodes are private. `every_project` takes
        all of a database that several projects share; `as_is` is for an export of one's own,
        whose origins and rejections count.

        >>> ws.interop.import_memory("claude-memory").known  # doctest: +SKIP
        """
        from loki_memory.interop.import_memory import ImportOptions, import_memory

        place = None if path is None else Path(path)
        options = ImportOptions(scope, plan_only, every_project, as_is)
        return import_memory(self._workspace, source, place, options)

    def export_memory(self, path: str | os.PathLike[str], format_: str = "jsonl") -> ExportedMemory:
        """Write the shared memory as `jsonl`, `markdown` or `okf` to a new file or folder.

        >>> ws.interop.export_memory("memory.jsonl").records  # doctest: +SKIP
        """
        from loki_memory.interop.export_memory import export_memory

        return export_memory(self._workspace, Path(path), format_)

    def shared_memory(self) -> SharedMemory:
        """Collect the shared beliefs with evidence, history and links, for a page to pass on."""
        from loki_memory.interop.shared_memory import shared_memory

        return shared_memory(self._workspace)

    def write_page(self, path: str | os.PathLike[str], html: bytes) -> None:
        """Write a page of shared memory to a new file, and note it for `purge`."""
        from loki_memory.interop.export_memory import write_page

        write_page(self._workspace, Path(path), html)

    def clear_memory(
        self, backup: str | os.PathLike[str] | None = None, plan_only: bool = False
    ) -> ClearedMemory:
        """Remove every record of the project after a backup of all of them was written."""
        from loki_memory.interop.export_memory import clear_memory

        to = None if backup is None else Path(backup)
        return clear_memory(self._workspace, to, plan_only=plan_only)

    def transfer(
        self, memory_id: str, target: OpenWorkspace, scope: str = "", *, move: bool = False
    ) -> Transferred:
        """Copy or move a memory to another workspace or scope, with its evidence.

        >>> ws.interop.transfer("sem-001", ws, scope="user").path  # doctest: +SKIP
        """
        from loki_memory.interop.transfer import transfer

        return transfer(self._workspace, memory_id, target, scope, move=move)

    def write_back(
        self,
        source: str,
        path: str | os.PathLike[str] | None = None,
        plan_only: bool = False,
    ) -> InstallStep:
        """List this project's memories in a block of another system's index."""
        from loki_memory.interop.import_memory import write_back

        place = None if path is None else Path(path)
        return write_back(self._workspace, source, place, plan_only=plan_only)

    def keep_in_step(self) -> list[InstallStep]:
        """Write the list of `write_back` anew wherever one stands; says what changed."""
        from loki_memory.ingest.discover import CLAUDE_INDEX, claude_folders

        folders = claude_folders(self._workspace.layout.root)
        if not any((folder / CLAUDE_INDEX).is_file() for folder in folders):
            return []
        from loki_memory.interop.claude_memory import keep_in_step

        return keep_in_step(self._workspace)

    def seed(self, plan_only: bool = False) -> SeedPlan:
        """Propose facts about the project from its files and its history, as candidates.

        >>> [line.text for line in ws.interop.seed(plan_only=True).lines]  # doctest: +SKIP
        """
        from loki_memory.seed.seeding import seed

        return seed(self._workspace, plan_only=plan_only)

    def accept_seed(self, ids: Collection[str]) -> list[str]:
        """Publish facts that `seed` proposed; returns the ids of those that it still proposes."""
        from loki_memory.seed.seeding import accept

        return accept(self._workspace, ids)


def seed_plan(root: Path) -> SeedPlan:
    """The facts that a folder without a memory would be seeded with; writes nothing."""
    from loki_memory.seed.seeding import unopened

    return unopened(root)


def import_sources() -> list[str]:
    """The names of the systems whose memory can be imported."""
    from loki_memory.interop.sources import SOURCES

    return sorted(SOURCES)
