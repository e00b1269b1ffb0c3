"""`loki-mem demo`: a script of commands, typed into a shell in a temporary folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple, cast

import click

from loki_memory.cli.common import Session, command
from loki_memory.cli.output import say
from loki_memory.resources import resource, template


class ShownStep(NamedTuple):
    """A step of the demonstration, and what it printed."""

    why: str
    command: str
    output: str


class DemoOutput(NamedTuple):
    """Printed by `demo`."""

    steps: list[ShownStep]
    folder: str  # empty if it is not kept


_END = "\x1e"  # marks the end of a line's output


@command("demo")
@click.option("--team", is_flag=True, help="Two people, two branches: the tour of docs/tour.md.")
@click.option("--keep", is_flag=True, help="Keep the folder and print where it is.")
def demo_command(session: Session, team: bool, keep: bool) -> None:
    """Show the main job: sessions go in, lessons come out, and are told in time.

    \b
    Example:
      loki-mem demo
    """
    if shutil.which("bash") is None or shutil.which("git") is None:
        raise click.ClickException("the demonstration needs git and bash.")
    folder = Path(tempfile.mkdtemp(prefix="loki-mem-demo-"))
    project = folder / ("shop" if team else "todo-api")
    project.mkdir()
    if not team:
        shutil.copytree(resource("example_workspace") / "sessions", project / "sessions")
    try:
        shown = list(_play("tour.txt" if team else "demo.txt", project, session.json))
        result = DemoOutput(shown, str(project) if keep else "")
        session.show(result, lambda: say(f"\nthe folder is {project}") if keep else None)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def _play(script: str, project: Path, captured: bool) -> Iterator[ShownStep]:
    """Type a script into one shell, so that a line sees what earlier lines set."""
    folder = project.parent
    (folder / "bin").mkdir()
    program = folder / "bin" / "loki-mem"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m loki_memory "$@"\n')
    program.chmod(0o755)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        "PATH": f"{program.parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "LOKI_HOME": str(folder / "home"),
        "LOKI_NOW": "2026-01-20T09:00:00Z",
    }
    with subprocess.Popen(
        ["bash"],  # noqa: S607
        cwd=project,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as shell:
        why = ""
        for line in template(script).splitlines():
            if line.startswith("# "):
                why = line.removeprefix("# ")
                _announce(why, captured)
            else:
                yield ShownStep(why, line, _typed(shell, line, captured))


def _announce(why: str, captured: bool) -> None:
    if not captured:
        say(click.style(f"\n{why}", bold=True))


def _typed(shell: subprocess.Popen[str], line: str, captured: bool) -> str:
    """Type a line into a shell, and show or return what it prints."""
    keyboard, screen = cast("IO[str]", shell.stdin), cast("IO[str]", shell.stdout)
    if not captured:
        say(click.style(f"$ {line}", fg="green"))
    keyboard.write(f"{line}\necho {_END}\n")
    keyboard.flush()
    printed = []
    for text in screen:
        if text.rstrip("\n") == _END:
            break
        printed.append(text)
        if not captured:
            say(text.rstrip("\n"))
    return "".join(printed)
