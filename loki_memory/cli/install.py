"""Commands that connect memory to agents and git, and let it speak: install, uninstall, trust."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

import click

from loki_memory.cli.common import Session, command
from loki_memory.cli.output import note, note_plan, one_line, safe, say, say_first
from loki_memory.models.text import plural

if TYPE_CHECKING:
    from loki_memory.browse.trust import BroughtMemories, BroughtMemory
    from loki_memory.install.edits import InstallOptions, InstallStep
    from loki_memory.install.targets import Target
    from loki_memory.workspace import Workspace

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_plan = click.option("--plan", is_flag=True, help="Show what would change and write nothing.")
_yes = click.option("-y", "--yes", is_flag=True, help="Do not ask.")
_user = click.option(
    "--user/--project",
    "user",
    default=None,
    help="Into the user's settings, or the project's. Default: project; codex and copilot user.",
)


class InstallOutput(NamedTuple):
    """Printed by `install` and `uninstall`."""

    target: str
    planned: bool
    deeds: list[InstallStep]


@command("install")
@click.argument("target")
@_user
@click.option("--workflow", is_flag=True, help="With git: also the workflow that reviews memory.")
@click.option(
    "--allow", is_flag=True, help="With claude-code: tools that only read need no consent."
)
@_plan
@_yes
def install_command(
    session: Session,
    target: str,
    user: bool | None,
    workflow: bool,
    allow: bool,
    plan: bool,
    yes: bool,
) -> None:
    """Install memory into TARGET: git or an agent.

    \b
    git          records are merged field by field in this clone
    claude-code  hooks, MCP server, commands and a skill
    codex        hooks, MCP server, a skill and the block in AGENTS.md
    gemini       MCP server and hooks; likewise qwen
    copilot      MCP server; likewise opencode, cursor and vscode
    all          every agent of these that is on this machine
    agents-md    a block in AGENTS.md that teaches any agent to use the files

    Other entries of these files stay as they are. On a terminal the changes are shown
    first; `uninstall` takes out what was added.

    \b
    Example:
      loki-mem install claude-code --plan
    """
    from loki_memory.install.edits import InstallOptions

    _change(session, target, InstallOptions(user, plan, workflow, allow), undo=False, yes=yes)


@command("uninstall")
@click.argument("target")
@_user
@_plan
@_yes
def uninstall_command(
    session: Session, target: str, user: bool | None, plan: bool, yes: bool
) -> None:
    """Remove what `install TARGET` added.

    Files that were changed by hand since are kept and named.

    \b
    Example:
      loki-mem uninstall git
    """
    from loki_memory.install.edits import InstallOptions

    _change(session, target, InstallOptions(user, plan), undo=True, yes=yes)


def _change(session: Session, name: str, options: InstallOptions, *, undo: bool, yes: bool) -> None:
    target = _target(name, options)
    workspace = session.open()
    do = target.uninstall if undo else target.install
    if not undo and not session.json:
        note_what_came(workspace)
    if not (options.plan_only or yes or session.json) and sys.stdin.isatty():
        _ask(do(workspace, options._replace(plan_only=True)))
    steps = do(workspace, options)
    if not undo and not options.plan_only:
        workspace.home.note_trust(is_trusted=True)
    shown = [step if options.plan_only else step._replace(diff="") for step in steps]
    result = InstallOutput(name, options.plan_only, shown)
    session.show(result, lambda: print_steps(shown, planned=options.plan_only))
    if target.has_scopes and not (undo or options.plan_only or session.json):
        say("next: begin a session in this folder; `loki-mem doctor` checks that hooks answer")
    if not undo:
        _warn(workspace, target)


def _target(name: str, options: InstallOptions) -> Target:
    from loki_memory.install.targets import TARGETS

    if name not in TARGETS:
        raise click.UsageError(f"{name!r} is not one of: {', '.join(TARGETS)}.")
    if options.user is not None and not TARGETS[name].has_scopes:
        raise click.UsageError(f"{name} takes neither --user nor --project.")
    if options.workflow and name != "git":
        raise click.UsageError(f"{name} has no --workflow; git has.")
    if options.allow and name != "claude-code":
        raise click.UsageError(f"{name} has no --allow; claude-code has.")
    return TARGETS[name]


def _ask(steps: list[InstallStep]) -> None:
    """Show what would change; go on only if the user agrees."""
    if any(step.did for step in steps):
        print_steps(steps, planned=True)
        click.confirm("Do this?", default=True, abort=True, err=True)


def _warn(workspace: Workspace, target: Target) -> None:
    """Say where agents and git will not find the program."""
    from loki_memory.install.site import is_found, is_temporary

    if is_temporary():
        workspace.notices.append(
            "this loki-mem runs in a temporary environment of uvx and will not be found later; "
            "`uv tool install loki-memory` installs it for good"
        )
    elif target.has_scopes and not is_found():
        workspace.notices.append("loki-mem is not on PATH, where agents look for it")


def print_steps(steps: list[InstallStep], *, planned: bool = False) -> None:
    """Print what was done, or would be, file by file."""
    for step in steps:
        done = "would do" if planned else "done"
        verb = click.style(done, fg="green") if step.did else "as it was"
        say(f"{verb}  {safe(step.where)}: {one_line(step.what)}")
        for line in step.diff.splitlines():
            say(click.style(f"  {safe(line)}", fg=_COLOURS.get(line[:1])))
    if planned:
        note_plan()


@command("trust")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--revoke", is_flag=True, help="Tell agents nothing of it any more.")
def trust_command(session: Session, yes: bool, revoke: bool) -> None:
    """Show what came with this clone, and let agents be told of it.

    Until you trust a workspace on this machine, hooks and CONTINUITY.md say nothing of its memory
    unasked; `recall` and `list` show all of it. `init` and `install` trust it too. The exit code
    is 1 if you do not trust it.

    \b
    Example:
      loki-mem trust --yes
    """
    workspace = session.open()
    workspace.home.ensure("current")
    found = workspace.browse.brought()
    if not session.json:
        print_brought(found)
    if revoke:
        workspace.home.note_trust(is_trusted=False)
    elif not found.trusted and (yes or (not session.json and _agrees())):
        workspace.home.note_trust(is_trusted=True)
        workspace.history.renew_review()
    found = workspace.browse.brought()
    session.show(found, lambda: _print_verdict(found))
    if not found.trusted and not revoke:
        raise click.exceptions.Exit(1)


def note_what_came(workspace: Workspace) -> None:
    """Say how many memories a command makes trusted that came with a clone."""
    if workspace.home.trust().is_trusted:
        return
    workspace.home.ensure("current")
    number = sum(workspace.browse.brought().counts.values())
    if number:
        them = "it" if number == 1 else "them"
        came = (
            f"{plural(number, 'memory')} came with this folder, and agents are told of {them} now"
        )
        note(f"{came}; `loki-mem trust --revoke` takes that back")


def _agrees() -> bool:
    """Ask on a terminal; elsewhere nobody can agree."""
    if not sys.stdin.isatty():
        note("this is no terminal: `loki-mem trust --yes` trusts it")
        return False
    return click.confirm("Shall agents be told of it?", default=False, err=True)


def _print_verdict(found: BroughtMemories) -> None:
    if found.trusted:
        say(click.style(f"trusted {one_line(found.why)}", fg="green"))
    else:
        say(click.style(f"not trusted: {one_line(found.why)}", fg="yellow"))


def print_brought(found: BroughtMemories) -> None:
    """Print what came with a clone: counts, some titles, and what is suspicious."""
    say(click.style(one_line(found.workspace), bold=True))
    if found.remote:
        say(f"  from      {one_line(found.remote)}")
    kinds = (plural(number, kind) for kind, number in found.counts.items())
    say(f"  memory    {', '.join(kinds) or 'none'}")
    for memory in found.titles:
        say(_brought_line("such as", memory))
    suspicious = [_brought_line("look at", memory) for memory in found.suspicious]
    say_first([click.style(line, fg="red") for line in suspicious])
    if found.unreviewed:
        are = "is" if found.unreviewed == 1 else "are"
        say(f"  review    {found.unreviewed} of these {are} not reviewed, and not told either way")


def _brought_line(label: str, memory: BroughtMemory) -> str:
    return f"  {label}   {memory.id}  {one_line(memory.text, 100)}"
