"""`loki-mem demo`: the main job end to end, on a copy of the example workspace."""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import IO, NamedTuple, cast

import click

from loki_memory.cli.common import Session, command
from loki_memory.cli.output import fail, say
from loki_memory.errors import LokiMemoryError
from loki_memory.resources import resource, template
from loki_memory.workspace import Workspace


class TourStep(NamedTuple):
    """A command of the tour, and what it shows."""

    why: str
    command: str


class ShownStep(NamedTuple):
    """A step of the demonstration, and what it printed."""

    why: str
    command: str
    output: str


class DemoOutput(NamedTuple):
    """Printed by `demo`."""

    steps: list[ShownStep]
    folder: str  # empty if it is not kept


_BEFORE = (
    TourStep("Two weeks of work by four agents, as plain files. Is all well?", "status"),
    TourStep("What do they believe? One line each; details on request.", "list --kind pattern"),
    TourStep("A belief names the episodes it rests on, and what refers to it.", "show sem-001"),
    TourStep(
        "An agent records what happened, with the error it met and what resolved it.",
        'record --goal "Add paging to GET /api/todos" --outcome success --agent eng-001-backend '
        '--file src/routes/todos.ts --error "TS7030: Not all code paths return a value." '
        '--resolution "Added an explicit : void to the handler"',
    ),
    TourStep(
        "A person states a fact. Secrets never reach the disk.",
        'remember "The staging database is at postgres://app:hunter2x@db.internal/todos" --by mara',
    ),
)
_VIEW_STORY = (
    "An agent without any API appends to semantic/patterns.json, as the reference format has it; "
    "the next sync makes a record of its own out of it."
)
_AFTER = (
    TourStep("It is a memory like any other.", "list --kind pattern"),
    TourStep("A wrong belief is rejected, with the reason …", "reject {id} --why 'half the cases'"),
    TourStep("… and stays out, however it is spelled.", "remember --kind pattern '{shouted}'"),
    TourStep("Work is handed to the next role.", "handoff list"),
    TourStep("Delete the index; nothing is lost.", "rebuild"),
    TourStep("And all is checked.", "doctor --deep"),
)
_END = "\x1e"  # marks the end of a line's output
_PATTERN = "Paging parameters are validated in the middleware, not in each handler"


@command("demo")
@click.option("--team", is_flag=True, help="Two people, two branches: the tour of docs/tour.md.")
@click.option("--keep", is_flag=True, help="Keep the folder and print where it is.")
def demo_command(session: Session, team: bool, keep: bool) -> None:
    """Show the main workflow end to end, on a copy of the example.

    \b
    Example:
      loki-mem demo
    """
    folder = Path(tempfile.mkdtemp(prefix="loki-mem-demo-"))
    project = folder / ("shop" if team else "todo-api")
    try:
        if team:
            shown = list(_tour(project, session.json))
        else:
            shutil.copytree(resource("example_workspace"), project)
            Workspace.open(project).home.note_trust(is_trusted=True)
            shown = [_run(n, step, project, session.json) for n, step in _steps(project)]
        result = DemoOutput(shown, str(project) if keep else "")
        session.show(result, lambda: say(f"\nthe folder is {project}") if keep else None)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def _tour(folder: Path, captured: bool) -> Iterator[ShownStep]:
    """Type the tour into one shell, so that a line sees what earlier lines set."""
    if shutil.which("bash") is None or shutil.which("git") is None:
        raise click.ClickException("the tour needs git and bash; `loki-mem demo` needs neither.")
    (folder / "bin").mkdir(parents=True)
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
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as shell:
        why = ""
        for line in template("tour.txt").splitlines():
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


def _steps(project: Path) -> Iterator[tuple[int, TourStep]]:
    """Yield the steps in order; the edit of a view, which is no command, happens in between."""
    yield from enumerate(_BEFORE, 1)
    added = _append_to_view(project)
    yield len(_BEFORE) + 1, TourStep(_VIEW_STORY, "sync")
    for number, (why, text) in enumerate(_AFTER, len(_BEFORE) + 2):
        yield number, TourStep(why, text.format(id=added, shouted=_PATTERN.upper()))


def _run(number: int, step: TourStep, project: Path, captured: bool) -> ShownStep:
    """Run a step as a user would, and print or return what it prints."""
    output = ""
    arguments = ["-C", str(project), *shlex.split(step.command)]
    if captured:
        stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        with redirect_stdout(stream), redirect_stderr(stream):
            _invoke(arguments)
        output = stream.buffer.getvalue().decode()
    else:
        say(click.style(f"\n{number}. {step.why}", bold=True))
        say(click.style(f"   $ loki-mem {step.command}", fg="green"))
        _invoke(arguments)
    return ShownStep(step.why, f"loki-mem {step.command}", output)


def _invoke(arguments: list[str]) -> None:
    from loki_memory.cli.main import cli

    try:
        cli.main(arguments, prog_name="loki-mem", standalone_mode=False)
    except click.exceptions.Exit:
        pass  # the command has printed its error
    except LokiMemoryError as error:
        fail(type(error).__name__, str(error), error.exit_code)


def _append_to_view(project: Path) -> str:
    """Append a pattern to the view, as an agent does that knows only the file format."""
    view = project / ".loki/memory/semantic/patterns.json"
    document = json.loads(view.read_text(encoding="utf-8"))
    document["patterns"].append({"id": "sem-900", "pattern": _PATTERN, "category": "api"})
    view.write_text(json.dumps(document), encoding="utf-8")
    return "sem-900"
