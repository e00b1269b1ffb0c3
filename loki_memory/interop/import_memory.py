"""Memory that another system kept, taken in as facts of the origin `import`.

What comes in waits for a review before anything of it is put before an agent unasked. Taking it in
again adds only what is new: a fact that is known, or that somebody corrected, archived, forgot or
rejected since, stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.editing.removal import archived, forgotten_files
from loki_memory.errors import InvalidConfig, InvalidRecord, RejectedValue
from loki_memory.files.layout import place
from loki_memory.install.edits import InstallStep, carry_out
from loki_memory.interop import claude_memory
from loki_memory.interop.claude_memory import MemoryLine

if TYPE_CHECKING:
    from loki_memory.files.store import Change
    from loki_memory.models import Fact
    from loki_memory.workspace import Workspace

SCOPES = ("project", "local")


class ImportSource(NamedTuple):
    """Another system: which files it keeps, what one of them says, and where it reads ours."""

    files: Callable[[Workspace, Path | None], list[Path]]
    statements: Callable[[Path], list[MemoryLine]]
    told_in: Callable[[Workspace, Path | None], Path]


SOURCES = {
    "claude-memory": ImportSource(
        claude_memory.files, claude_memory.statements, claude_memory.index_of
    ),
}


class RefusedMemory(NamedTuple):
    """Something that was not taken in, and why."""

    where: str
    what: str
    why: str


class Imported(NamedTuple):
    """What was found and what became of it."""

    source: str
    planned: bool
    files: list[str]
    facts: list[Fact]  # that are new
    known: int
    refused: list[RefusedMemory]


def import_memory(
    workspace: Workspace,
    source: str,
    path: Path | None = None,
    *,
    scope: str = "project",
    plan_only: bool = False,
) -> Imported:
    """Take in what another system remembers; `path` is its file or folder.

    >>> import_memory(ws, "claude-memory").facts  # doctest: +SKIP
    """
    chosen = _source(source)
    if scope not in SCOPES:
        raise InvalidRecord(f"{scope!r} is not a scope", advice=f"Use: {', '.join(SCOPES)}.")
    files = chosen.files(workspace, path)
    said, refused = _read(chosen, files)
    workspace.before_write()
    workspace.refresh(wait=True)
    taking = _Taking(workspace, scope)
    taking.take(said, plan_only=plan_only)
    names = [str(file) for file in files]
    return Imported(
        source, plan_only, names, taking.facts, taking.known, [*refused, *taking.refused]
    )


def write_back(
    workspace: Workspace, source: str, path: Path | None = None, *, plan_only: bool = False
) -> InstallStep:
    """Tell another system what this project remembers, in a block of our own in its index."""
    index = _source(source).told_in(workspace, path)
    return carry_out([claude_memory.write_back_edit(workspace, index)], plan_only=plan_only)[0]


def _source(name: str) -> ImportSource:
    if name not in SOURCES:
        raise InvalidRecord(
            f"{name!r} is not a source of memory", advice=f"Use one of: {', '.join(SOURCES)}."
        )
    return SOURCES[name]


def _read(
    source: ImportSource, files: Iterable[Path]
) -> tuple[list[MemoryLine], list[RefusedMemory]]:
    """What all files say; one that cannot be read does not keep the others out."""
    said: list[MemoryLine] = []
    refused: list[RefusedMemory] = []
    for file in files:
        try:
            said += source.statements(file)
        except (InvalidRecord, InvalidConfig) as error:
            refused.append(RefusedMemory(file.name, "the file", str(error)))
        except OSError as error:
            refused.append(RefusedMemory(file.name, "the file", error.strerror or str(error)))
    return said, refused


class _Taking:
    """Statements on their way into the store."""

    def __init__(self, workspace: Workspace, scope: str) -> None:
        self.workspace, self.scope = workspace, scope
        self.facts: list[Fact] = []
        self.known = 0
        self.refused: list[RefusedMemory] = []
        layout = workspace.layout
        self._taken_out = {Path(path).stem for path in archived(layout)}
        self._taken_out |= {path.stem for path in forgotten_files(layout)}

    def take(self, said: Iterable[MemoryLine], *, plan_only: bool) -> None:
        """Write what is new, all of it or nothing."""
        from loki_memory.files.store import Change

        facts = [(fact, one) for one in said if (fact := self._fact(one))]
        if plan_only:
            self._put_all(Change(self.workspace.store), facts)
            return
        with self.workspace.store.change() as change:
            self._put_all(change, facts)

    def _put_all(self, change: Change, facts: Iterable[tuple[Fact, MemoryLine]]) -> None:
        for fact, said in facts:
            if self._is_known(change, fact):
                self.known += 1
                continue
            try:
                self.facts.append(change.create(fact))  # type: ignore[arg-type]
            except RejectedValue as error:
                self.refused.append(RefusedMemory(said.where, said.text, str(error)))

    def _is_known(self, change: Change, fact: Fact) -> bool:
        """Whether it stands there, in whatever file, or somebody took it out."""
        from loki_memory.models import tombstone_id

        if fact.id in self._taken_out or change.read(place(fact)):
            return True
        return bool(self.workspace.index.paths_saying("fact", tombstone_id(fact.value())))

    def _fact(self, said: MemoryLine) -> Fact | None:
        from loki_memory.models import Fact, parse

        scope = "local" if said.private else self.scope
        given = {
            "statement": said.text,
            "category": said.category,
            "tags": list(said.tags),
            "scope": "" if scope == "project" else scope,
            "valid_from": (said.since or self.workspace.now())[:10],
            "origin": "import",
        }
        try:
            return parse(Fact, {name: value for name, value in given.items() if value})
        except InvalidRecord as error:
            self.refused.append(RefusedMemory(said.where, said.text, str(error)))
            return None
