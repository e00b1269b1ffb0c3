"""The command `skills`: list, show, add, publish and withdraw."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from loki_memory.cli.common import Session, command, finish_writing
from loki_memory.cli.output import note, remarks

if TYPE_CHECKING:
    from loki_memory.install.edits import InstallStep
    from loki_memory.workspace import Workspace

_PUBLISHED_TO = ("claude", "agents")


class PublishedSkills(NamedTuple):
    """Printed by `skills --publish` and `--withdraw`."""

    deeds: list[InstallStep]


@command("skills")
@click.argument("name", required=False)
@click.option(
    "--add",
    "file",
    metavar="FILE",
    type=click.Path(),
    help="Add the skill in this Markdown file.",
)
@click.option(
    "--publish", type=click.Choice(_PUBLISHED_TO), help="Copy them to where agents look for skills."
)
@click.option("--all", "every", is_flag=True, help="With --publish: accept all of them.")
@click.option("--withdraw", type=click.Choice(_PUBLISHED_TO), help="Remove those copies.")
def skills_command(
    session: Session,
    name: str | None,
    file: str | None,
    publish: str | None,
    every: bool,
    withdraw: str | None,
) -> None:
    """List the skills, show one by NAME, add or publish them.

    Published skills are in .claude/skills or .agents/skills; `consolidate` updates them.
    Agents follow the skills they find there, so only a skill that was learned or added on this
    machine is published; one that came with a clone or a merge waits until NAME, or --all,
    accepts it.

    \b
    Example:
      loki-mem skills api-endpoint-implementation
      loki-mem skills api-endpoint-implementation --publish claude
    """
    if every and not publish:
        raise click.UsageError("--all is for --publish.")
    workspace = session.open()
    if publish or withdraw:
        steps = workspace.skills.withdraw(withdraw) if withdraw else []
        if publish:
            names = [name] if name else []
            steps += workspace.skills.publish(publish, names=names, every=every)
        _print_published(session, workspace, steps)
    elif file is not None:
        finish_writing(session, workspace, [workspace.skills.add(_text_of(file))])
    else:
        _show(session, workspace, name)


def _text_of(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"{file}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise click.UsageError(f"{file} is not UTF-8 text.") from None


def _show(session: Session, workspace: Workspace, name: str | None) -> None:
    from loki_memory.cli.read import show_command, show_list

    if name is not None:
        skill = f"skill-{name.removeprefix('skill-')}"
        click.get_current_context().invoke(show_command, memory=skill, as_json=session.json)
        return
    empty = "none yet; `loki-mem skills --add FILE` adds one"
    show_list(session, workspace.browse.summaries(kind="skill"), None, empty)
    remarks(workspace)


def _print_published(session: Session, workspace: Workspace, steps: Sequence[InstallStep]) -> None:
    from loki_memory.cli.install import print_steps

    shown = [step._replace(diff="") for step in steps]
    session.show(PublishedSkills(shown), lambda: print_steps(shown))
    if not shown:
        note("nothing to publish; candidates are published once evidence supports them")
    remarks(workspace)
