"""Memory of another system, imported as facts of the origin `import`.

Imported facts are not injected until they are reviewed. A second import adds only what is new: a
fact that is known, or that was corrected, archived, forgotten or rejected since, stays as it is.
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
    """Another system: its files, the statements of a file, and the file that lists our memories."""

    files: Callable[[Workspace, Path | None], list[Path]]
    statements: Callable[[Path], list[MemoryLine]]
    index_file: Callable[[Workspace, Path | None], Path]


SOURCES = {
    "claude-memory": ImportSource(
        claude_memory.files, claude_memory.statements, claude_memory.index_of
    ),
}


class RefusedMemory(NamedTuple):
    """A statement or file that was not imported, and why."""

    where: str
    what: str
    why: str


class Imported(NamedTuple):
    """The result of an import."""

    source: str
    planned: bool
    files: list[str]
    facts: list[Fact]  # new ones
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
    """Import the memory of another system; `path` is its file or folder.

    >>> import_memory(ws, "claude-memory").facts  # doctest: +SKIP
    """
    chosen = _source(source)
    if scope not in SCOPES:
        raise InvalidRecord(f"{scope!r} is not a scope", advice=f"Use: {', '.join(SCOPES)}.")
    files = chosen.files(workspace, path)
    statements, refused = _read(chosen, files)
    workspace.home.before_write()
    workspace.home.ensure("current")
    taking = _Taking(workspace, scope)
    taking.take(statements, plan_only=plan_only)
    names = [str(file) for file in files]
    return Imported(
        source, plan_only, names, taking.facts, taking.known, [*refused, *taking.refused]
    )


def write_back(
    workspace: Workspace, source: str, path: Path | None = None, *, plan_only: bool = False
) -> InstallStep:
    """List the memories of this project in the index of another system, in a block of our own."""
    index = _source(source).index_file(workspace, path)
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
    """Read the statements of all files; an unreadable file does not stop the others."""
    statements: list[MemoryLine] = []
    refused: list[RefusedMemory] = []
    for file in files:
        try:
            statements += source.statements(file)
        except (InvalidRecord, InvalidConfig) as error:
            refused.append(RefusedMemory(file.name, "the file", str(error)))
        except OSError as error:
            refused.append(RefusedMemory(file.name, "the file", error.strerror or str(error)))
    return statements, refused


class _Taking:
    """An import in progress."""

    def __init__(self, workspace: Workspace, scope: str) -> None:
        self.workspace, self.scope = workspace, scope
        self.facts: list[Fact] = []
        self.known = 0
        self.refused: list[RefusedMemory] = []
        layout = workspace.layout
        self._taken_out = {Path(path).stem for path in archived(layout)}
        self._taken_out |= {path.stem for path in forgotten_files(layout)}

    def take(self, statements: Iterable[MemoryLine], *, plan_only: bool) -> None:
        """Write the new facts, all or none."""
        from loki_memory.files.store import Change

        facts = [(fact, note) for note in statements if (fact := self._fact(note))]
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
        """Check if a fact is stored already, in any file, or was removed."""
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
