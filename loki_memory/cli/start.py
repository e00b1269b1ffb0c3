"""Commands of a first day: init, seed, demo."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, cast

import click

from loki_memory.cli.common import Session, command, is_terminal
from loki_memory.cli.install import note_what_came
from loki_memory.cli.output import (
    note,
    note_plan,
    one_line,
    progress_bar,
    say,
)
from loki_memory.config import GIT_MODES
from loki_memory.errors import NotAFolder, NotAWorkspace
from loki_memory.models.text import plural
from loki_memory.resources import resource, template
from loki_memory.workspace import Workspace

if TYPE_CHECKING:
    from loki_memory.seed.seeding import SeedLine, SeedPlan


class InitOutput(NamedTuple):
    """Printed by `init`: paths."""

    workspace: str
    memory: str
    local: str
    seed: SeedPlan | None  # with --seed


@command("init")
@click.argument("folder", default="", required=False, type=click.Path())
@click.option("--git", "mode", type=click.Choice(GIT_MODES), help="How git keeps memory here.")
@click.option(
    "--adopt-local", is_flag=True, help="Use a .loki/local of your own that was made elsewhere."
)
@click.option("--seed", is_flag=True, help="Propose first facts, as `loki-mem seed` does.")
@click.option("--yes", is_flag=True, help="With --seed, accept every line.")
def init_command(
    session: Session, folder: str, mode: str | None, adopt_local: bool, seed: bool, yes: bool
) -> None:
    """Create .loki/ in FOLDER (by default here), or complete it.

    Nothing outside .loki/ is touched. With --seed, the project's manifests, CI files, instruction
    files and git history propose the first facts: see `loki-mem seed --help`.

    \b
    Example:
      loki-mem init
    """
    where = folder or session.directory or "."
    if os.path.isdir(os.path.join(where, ".loki", "memory")) and not session.json:
        note_what_came(Workspace.open(where))
    origin = "owner" if seed and not yes and is_terminal() else "agent"
    workspace = Workspace.init(where, origin=origin, adopt_local=adopt_local)
    if mode:
        workspace.home.set_config("git.mode", mode)
    with progress_bar("reading") as workspace.home.progress:
        workspace.sync()
    place = workspace.layout
    say_where = f"memory lives in {click.style(str(place.memory), bold=True)}"
    if seed and not session.json:
        say(say_where)
    planted = run_seed(session, workspace, yes=yes) if seed else None
    result = InitOutput(str(place.root), str(place.memory), str(place.local), planted)

    def show() -> None:
        if not seed:
            say(say_where)
        connects = "`loki-mem install claude-code` connects an agent (or codex, gemini, all, …)"
        say(f"{'then' if seed else 'next'}: {connects}")
        say("      `loki-mem ingest` learns from the sessions that you had so far")
        if place.local != place.loki / "local":  # in a git repository
            say("with git: `loki-mem install git` merges memory field by field in this clone")

    session.show(result, show)
    if above := workspace.status().above:
        note(f"{one_line(above)} has memory of its own; what is remembered here stays apart")


_OPEN = ("new", "candidate")  # how a line stands that nobody has decided about
_DECISIONS = {"a": "accept", "s": "skip", "r": "reject", "q": "quit"}


@command("seed")
@click.option("--plan", "plan_only", is_flag=True, help="Show the plan and write nothing.")
@click.option("--yes", is_flag=True, help="Accept every line of the plan.")
@click.option("--sessions", is_flag=True, help="Read old sessions of agents in this project too.")
def seed_command(session: Session, plan_only: bool, yes: bool, sessions: bool) -> None:
    """Fill an empty memory from the project's own files and history.

    Proposes how the project is built, tested and linted (manifests, CI files), what was reverted
    or mended and why (git), and the rules of CLAUDE.md, AGENTS.md and the like. No model is asked.
    Proposals are candidates on this machine until you accept them: here, one by one or all, or
    later with `loki-mem review --candidates --interactive`. Doing it twice adds nothing.

    \b
    Example:
      loki-mem seed --plan
    """
    try:
        workspace = session.open(reviews=not yes)
    except NotAWorkspace as error:
        if not plan_only or isinstance(error, NotAFolder):
            raise
        _show_unopened(session)
        return
    if sessions and not plan_only:
        read_sessions(session, workspace)
    found = run_seed(session, workspace, plan_only=plan_only, yes=yes)
    session.show(found, lambda: None)


def _show_unopened(session: Session) -> None:
    from loki_memory.interop import seed_plan

    found = seed_plan(Path(session.directory or "."))
    session.show(found, lambda: print_plan(found))
    makes = "makes one with these lines" if found.lines else "makes one"
    note(f"there is no memory here yet; `loki-mem init --seed` {makes}")


def run_seed(
    session: Session, workspace: Workspace, *, plan_only: bool = False, yes: bool = False
) -> SeedPlan:
    """Propose, show, and accept what the user accepts; prints nothing if JSON is asked for."""
    found = workspace.interop.seed(plan_only)
    if not session.json:
        print_plan(found)
    if plan_only:
        note_plan()
        return found
    left = [line for line in found.lines if line.standing in _OPEN]
    chosen = left if yes else [] if session.json else _accepted_at_a_terminal(workspace, left)
    accepted = workspace.interop.accept_seed([line.id for line in chosen]) if chosen else []
    found = found._replace(lines=[_after(line, accepted) for line in found.lines])
    if not session.json:
        _print_end(found, accepted)
    return found


def _after(line: SeedLine, accepted: Iterable[str]) -> SeedLine:
    return line._replace(standing="accepted") if line.id in accepted else line


def read_sessions(session: Session, workspace: Workspace) -> None:
    """Read the old sessions of agents, and learn from them as candidates."""
    with progress_bar("reading") as workspace.home.progress:
        done = workspace.ingest()
        workspace.consolidate(reach="nothing")
    if not session.json:
        say(f"read {plural(done.episodes, 'episode')} from old sessions of agents")


# -- showing ---------------------------------------------------------------------------------------


def print_plan(found: SeedPlan) -> None:
    """Print the lines by group, each with the files that it comes from."""
    group = ""
    for line in found.lines:
        if line.group != group:
            group = line.group
            say(click.style(group, bold=True))
        say(f"  {_sentence(line)}{_mark(line)}")
    if not found.lines:
        say("nothing to propose: no manifest, CI file, rule or commit says how to work here")
        say('next: `loki-mem remember "…"` notes what you know')
    for problem in found.problems:
        note(problem)
    if found.sessions:
        sessions = plural(found.sessions, "session")
        say(f"{sessions} of agents in this project can be read: `loki-mem seed --sessions`")


def _sentence(line: SeedLine) -> str:
    """The text with its sources before the full stop."""
    return f"{one_line(line.text).removesuffix('.')} ({', '.join(map(one_line, line.sources))})."


def _mark(line: SeedLine) -> str:
    return "" if line.standing == "new" else click.style(f"  [{line.standing}]", dim=True)


def _print_end(found: SeedPlan, accepted: list[str]) -> None:
    if accepted:
        say(f"accepted {plural(len(accepted), 'fact')}; `loki-mem commit` shares them")
    waiting = [line for line in found.lines if line.standing in _OPEN]
    if waiting:
        say(f"{plural(len(waiting), 'candidate')} on this machine, not told and not shared yet")
        say("next: `loki-mem review --candidates -i` decides one by one, `loki-mem seed --yes` all")
    elif found.lines and not accepted:
        say("nothing new: every line was decided before")


# -- asking ----------------------------------------------------------------------------------------


def _accepted_at_a_terminal(workspace: Workspace, lines: list[SeedLine]) -> list[SeedLine]:
    """The lines that the user accepts; none if there is no terminal to ask on."""
    if not lines or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return []
    choices = {"a": lines, "l": []}
    answer = click.prompt(
        "[a]ccept all, decide [o]ne by one, or [l]ater",
        type=click.Choice(["a", "o", "l"]),
        default="l",
        show_choices=False,
    )
    return choices[answer] if answer in choices else _one_by_one(workspace, lines)


def _one_by_one(workspace: Workspace, lines: list[SeedLine]) -> list[SeedLine]:
    asked = ", ".join(f"[{key}]{word[1:]}" for key, word in _DECISIONS.items())
    accepted = []
    for number, line in enumerate(lines, 1):
        say(f"\n{number} of {len(lines)}  {_sentence(line)}")
        key = click.prompt(asked, type=click.Choice(list(_DECISIONS)), show_choices=False)
        if key == "q":
            break
        if key == "a":
            accepted.append(line)
        if key == "r":
            workspace.reject(line.id, "declined when the memory was seeded")
    return accepted


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
    """Show the main job: sessions go in, lessons are told in time.

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
        shown = list(_played("tour.txt" if team else "demo.txt", project, session.json))
        result = DemoOutput(shown, str(project) if keep else "")
        session.show(result, lambda: say(f"\nthe folder is {project}") if keep else None)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def _played(script: str, project: Path, captured: bool) -> Iterator[ShownStep]:
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
