"""Commands that put memory into git: commit, pull and push."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from loki_memory.cli.common import Session, command
from loki_memory.cli.output import note, one_line, plural, progress_bar, remarks, say

if TYPE_CHECKING:
    from loki_memory.history.branch_mode import Exchanged
    from loki_memory.history.inline_commit import Committed

_SHOWN = 40  # paths, about a screen; --json has all


@command("commit")
@click.option("-m", "message", metavar="TEXT", help="The subject; by default it says what changed.")
@click.option("--agent", metavar="NAME", help="Who commits, for the trailer Loki-Agent.")
@click.option("--dry-run", is_flag=True, help="Say what would be committed and write nothing.")
def commit_command(session: Session, message: str | None, agent: str | None, dry_run: bool) -> None:
    """Commit what changed in memory, and nothing else.

    Lessons that are due are published first, with the evidence of this machine. Staged and
    unstaged changes of other files stay as they are; no hook runs.

    \b
    Example:
      loki-mem commit --dry-run
    """
    workspace = session.open()
    if not dry_run:
        workspace.consolidate(learn=False, reach="all", commit=False)
    with progress_bar("committing") as workspace.home.progress:
        done = workspace.history.commit(agent or "", message or "", dry_run)
    session.show(done, lambda: _print(done, dry_run))
    for text in done.left_out():
        note(text)
    remarks(workspace)


def _print(done: Committed, dry_run: bool) -> None:
    if done.commit:
        say(f"{click.style(done.commit[:10], fg='cyan')}  {one_line(done.subject)}")
    elif not done.paths:
        say("nothing was committed" if done.reason else "nothing to commit")
    elif dry_run:
        say(one_line(done.subject))
        for path in done.paths[:_SHOWN]:
            say(f"  {one_line(path)}")
        if len(done.paths) > _SHOWN:
            say(f"… and {len(done.paths) - _SHOWN} more; --json has all")
        note("this is a plan; nothing was committed")


@command("pull")
@click.option("--remote", default="", help="Where to fetch from, if not from the usual place.")
def pull_command(session: Session, remote: str) -> None:
    """Fetch memory that others shared, and merge it.

    This is `git pull` for a worktree with uncommitted memory, which git might refuse: memory is set
    aside, git pulls with your settings, and memory is merged back field by field. Your other
    changes stay as they are. With memory on a branch of its own (git.mode branch) only that branch
    is fetched.

    \b
    Example:
      loki-mem pull
    """
    workspace = session.open()
    with progress_bar("pulling") as workspace.home.progress:
        done = workspace.history.pull(remote)
    session.show(done, lambda: _print_exchanged(done))
    remarks(workspace)


@command("push")
@click.option("--remote", default="origin", show_default=True, help="Where to push to.")
def push_command(session: Session, remote: str) -> None:
    """Share memory with others, after merging theirs.

    For memory on a branch of its own (git.mode branch). Never by force.

    \b
    Example:
      loki-mem push
    """
    workspace = session.open()
    with progress_bar("pushing") as workspace.home.progress:
        done = workspace.history.push(remote)
    session.show(done, lambda: _print_exchanged(done))
    remarks(workspace)


def _print_exchanged(done: Exchanged) -> None:
    say(f"{click.style(done.commit[:10], fg='cyan')}  {done.what}")
    if done.merged:
        say(f"{plural(len(done.merged), 'memory')} changed on both sides; both changes are in")
    for path in done.kept:
        note(f"{path} changed on both sides and cannot be merged; the other version is kept")
