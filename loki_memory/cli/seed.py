"""The command that fills an empty memory: seed, also as `init --seed`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loki_memory.cli.common import Session, command
from loki_memory.cli.output import note, one_line, plural, progress_bar, remarks, say
from loki_memory.errors import NotAFolder, NotAWorkspace
from loki_memory.workspace import Workspace

if TYPE_CHECKING:
    from loki_memory.seed.seeding import SeedLine, SeedPlan

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
    remarks(workspace)


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
        note("this is a plan; nothing was written")
        return found
    left = [line for line in found.lines if line.standing in _OPEN]
    chosen = left if yes else [] if session.json else _asked(workspace, left)
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
        say(f"accepted {plural(len(accepted), 'fact')}; commit .loki/memory with your code")
    waiting = [line for line in found.lines if line.standing in _OPEN]
    if waiting:
        say(f"{plural(len(waiting), 'candidate')} on this machine, not told and not shared yet")
        say("next: `loki-mem review --candidates -i` decides one by one, `loki-mem seed --yes` all")
    elif found.lines and not accepted:
        say("nothing new: every line was decided before")


# -- asking ----------------------------------------------------------------------------------------


def _asked(workspace: Workspace, lines: list[SeedLine]) -> list[SeedLine]:
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
