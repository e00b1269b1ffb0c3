"""The command that says how much of a store is junk."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loki_memory.cli.common import Session, command
from loki_memory.cli.output import note, one_line, plural, progress_bar, remarks, say

if TYPE_CHECKING:
    from loki_memory.browse.audit import Audit, AuditClass

_WORST = 3  # examples of each class


@command("audit")
@click.argument("path", required=False, type=click.Path(exists=True, path_type=Path))
@click.option("--from", "source", metavar="NAME", help="The system, where PATH does not tell.")
@click.option("--all", "everything", is_flag=True, help="Name every memory, not the worst three.")
def audit_command(
    session: Session, path: Path | None, source: str | None, everything: bool
) -> None:
    """Count the memories that are not worth their place, by class, and name the worst.

    The classes are duplicate, echo (repeats a document of the project, a prompt or memory's own
    output), report (tells of the work of one session), vacuous, stale (cites code that is gone),
    orphan (learned from episodes of which nothing is left) and contradiction. Each says what to do
    about it. Contradictions need a person and do not count as junk.

    PATH is the memory of another system, as `import` reads it: nothing of it is imported, and
    nothing is written.

    \b
    Example:
      loki-mem audit
    """
    found = audit_of(path, source or "") if path else _own(session)
    session.show(found, lambda: _print(found, None if everything else _WORST))
    if path and found.junk and not session.json:
        note("the ids are those that its memories would have after `loki-mem import`")


def _own(session: Session) -> Audit:
    workspace = session.open()
    with progress_bar("auditing") as workspace.home.progress:
        found = workspace.care.audit()
    remarks(workspace)
    return found


def audit_of(path: Path, source: str) -> Audit:
    """Audit the memory of another system: import it into a folder that is then deleted."""
    from loki_memory.workspace import Workspace

    path = path.resolve()
    with tempfile.TemporaryDirectory() as folder, Workspace.init(Path(folder)) as aside:
        taken = aside.interop.import_memory(source, path, every_project=True)
        return aside.care.audit(of=path, repeats=taken.known)


def _print(found: Audit, most: int | None) -> None:
    share = f"{found.junk:,} of them junk ({found.rate:.1%})" if found.junk else "none of them junk"
    say(f"{plural(found.memories, 'memory')}, {share}")
    for kind in found.classes:
        if kind.memories:
            _print_class(kind, most)
    for reason in found.unchecked:
        note(f"not checked: {reason}")


def _print_class(kind: AuditClass, most: int | None) -> None:
    heading = click.style(f"\n{kind.name}", bold=True)
    say(f"{heading}: {kind.memories:,} ({kind.rate:.1%}), {kind.meaning}")
    for finding in kind.findings[:most]:
        line = f"{one_line(finding.text, 90)}: {one_line(finding.why)}"
        say(f"  {click.style(finding.id, fg='cyan')}  {line}")
    left = kind.memories - len(kind.findings[:most])
    if left:
        say(click.style(f"  and {left:,} more", dim=True))
    say(f"  what to do: {kind.advice}")
