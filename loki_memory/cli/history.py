"""Commands of git: commit, pull, push; log, blame, bisect, revert; verify, resolve."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import click

from loki_memory.cli.common import Session, command, plan_option
from loki_memory.cli.output import (
    coloured_status,
    named,
    note,
    note_plan,
    one_line,
    progress_bar,
    safe,
    say,
    say_first,
)
from loki_memory.models.text import plural

if TYPE_CHECKING:
    from loki_memory.history.bisect import BisectTurn
    from loki_memory.history.blame import Blame, BlameSource, BlameStep
    from loki_memory.history.branch_mode import Exchanged
    from loki_memory.history.inline_commit import Committed
    from loki_memory.history.resolve import Resolved
    from loki_memory.history.revert import Reverted
    from loki_memory.integrity.findings import IntegrityFinding
    from loki_memory.integrity.verify import Stale, Verified


@command("commit")
@click.option("-m", "message", metavar="TEXT", help="The subject; by default it says what changed.")
@click.option("--agent", metavar="NAME", help="Who commits, for the trailer Loki-Agent.")
@plan_option("Say what would be committed and write nothing.")
def commit_command(session: Session, message: str | None, agent: str | None, dry_run: bool) -> None:
    """Commit what changed in memory, and nothing else.

    Lessons that are due are published first, with the evidence of this machine. Staged and
    unstaged changes of other files stay as they are; no hook runs.

    \b
    Example:
      loki-mem commit --plan
    """
    workspace = session.open()
    if not dry_run:
        workspace.consolidate(learn=False, reach="all", commit=False)
    with progress_bar("committing") as workspace.home.progress:
        done = workspace.history.commit(agent or "", message or "", dry_run)
    session.show(done, lambda: _print_committed(done, dry_run))
    for text in done.left_out():
        note(text)


def _print_committed(done: Committed, dry_run: bool) -> None:
    if done.commit:
        say(named(done.commit[:_SHORT], done.subject, 0))
    elif not done.paths:
        say("nothing was committed" if done.reason else "nothing to commit")
    elif dry_run:
        say(one_line(done.subject))
        say_first([f"  {one_line(path)}" for path in done.paths])
        note_plan()


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
    with session.work("pulling") as workspace:
        done = workspace.history.pull(remote)
    session.show(done, lambda: _print_exchanged(done))


@command("push")
@click.option("--remote", default="origin", show_default=True, help="Where to push to.")
def push_command(session: Session, remote: str) -> None:
    """Share memory with others, after merging theirs.

    For memory on a branch of its own (git.mode branch). Never by force.

    \b
    Example:
      loki-mem push
    """
    with session.work("pushing") as workspace:
        done = workspace.history.push(remote)
    session.show(done, lambda: _print_exchanged(done))


def _print_exchanged(done: Exchanged) -> None:
    say(f"{click.style(done.commit[:10], fg='cyan')}  {done.what}")
    if done.merged:
        say(f"{plural(len(done.merged), 'memory')} changed on both sides; both changes are in")
    for path in done.kept:
        note(f"{path} changed on both sides and cannot be merged; the other version is kept")


_SHORT = 10  # digits of a commit
_LOG = 20


class LogOutput(NamedTuple):
    """Printed by `log`."""

    commits: list[BlameStep]  # newest first


@command("log")
@click.argument("memory_id", metavar="[ID]", required=False)
@click.option(
    "-n", "limit", default=_LOG, show_default=True, type=click.IntRange(1), help="How many commits."
)
def log_command(session: Session, memory_id: str | None, limit: int) -> None:
    """Show the history of memory, or of one belief, by commit.

    \b
    Example:
      loki-mem log sem-001
    """
    with session.work("reading") as workspace:
        steps = workspace.history.log(memory_id, limit)
    session.show(LogOutput(steps), lambda: _print_log(steps, memory_id))


def _print_log(steps: Iterable[BlameStep], memory_id: str | None) -> None:
    found = list(steps)
    for step in found:
        _print_step(step, listed=memory_id is not None)
    if not found:
        note(f"no commit has {memory_id or 'any memory'} yet: loki-mem commit")


def _print_step(step: BlameStep, *, listed: bool) -> None:
    """Print a commit in one line, then its changes, unless its subject says them already."""
    name = click.style(step.commit[:_SHORT], fg="yellow")
    who = step.agent or step.author
    say(f"{name}  {step.at[:10]}  {one_line(step.subject, 80)}  {click.style(who, dim=True)}")
    if listed or not step.subject.startswith("memory: "):
        for line, details in step.lines():
            say(f"    {one_line(line, 140)}")
            for detail in details:
                say(click.style(f"        {one_line(detail, 130)}", dim=True))


@command("blame")
@click.argument("memory_id", metavar="ID")
def blame_command(session: Session, memory_id: str) -> None:
    """Show where a belief comes from: its episodes, and each commit.

    \b
    Example:
      loki-mem blame sem-001
    """
    with session.work("reading") as workspace:
        found = workspace.history.blame(memory_id)
    session.show(found, lambda: _print_blame(found))


def _print_blame(found: Blame) -> None:
    state = coloured_status(found.status) if found.status else ""
    sure = "" if found.confidence is None else f"confidence {found.confidence:g}"
    say(f"{click.style(found.id, fg='cyan')}  {one_line(found.title, 120)}")
    say(f"    {'  '.join(filter(None, (found.kind, state, sure)))}")
    if found.stated_by:
        say(f"\nStated by {found.stated_by}")
    for speaks, title in (("for", "Rests on"), ("against", "Against it")):
        sources = [source for source in found.sources if source.speaks == speaks]
        if sources:
            say(f"\n{title}")
            for source in sources:
                _print_source(source)
    if found.reviewed:
        say("\nReviewed")
        for review in found.reviewed:
            say(f"    {one_line(' '.join(str(value) for value in review.values()), 100)}")
    if found.steps:
        say("\nCommits")
        for step in found.steps:
            _print_step(step, listed=True)
    else:
        note("no commit has it yet: loki-mem commit")


def _print_source(source: BlameSource) -> None:
    where = f"code {source.commit[:_SHORT]}" if source.commit else ""
    kept = "" if source.kept == "live" else source.kept
    known = (source.outcome, source.agent, source.session, where, kept)
    say(f"    {click.style(source.id, fg='cyan')}  {one_line(source.goal, 100)}")
    say(click.style(f"        {one_line('; '.join(filter(None, known)), 120)}", dim=True))


@command("bisect")
@click.argument("between", metavar="[GOOD..BAD]", required=False)
@click.option("--query", required=True, metavar="TEXT", help="The question to recall.")
@click.option("--expect", metavar="ID", help="A memory that should be recalled and is not.")
@click.option("--reject", "unwanted", metavar="ID", help="One that is recalled and should not be.")
@click.option("-k", default=5, show_default=True, type=click.IntRange(1), help="Hits to look at.")
def bisect_command(
    session: Session, query: str, expect: str | None, unwanted: str | None, **options: object
) -> None:
    """Find the commit at which a recall changed, and what it did.

    \b
    Example:
      loki-mem bisect --query "logs of staging" --reject fact-2f61dyj12e
    """
    if bool(expect) == bool(unwanted):
        raise click.UsageError("Give either --expect ID or --reject ID.")
    with session.work("embedding") as workspace:
        turn = workspace.history.bisect(query, expect=expect, reject=unwanted, **options)  # type: ignore[arg-type]
    session.show(turn, lambda: _print_turn(turn))


def _print_turn(turn: BisectTurn) -> None:
    _print_step(turn.step, listed=True)
    say(f"recalled before: {', '.join(turn.before) or 'nothing'}")
    say(f"recalled since:  {', '.join(turn.after) or 'nothing'}")
    note(f"{plural(turn.tried, 'commit')} tried")


@command("revert")
@click.argument("name", metavar="RUN|COMMIT")
def revert_command(session: Session, name: str) -> None:
    """Undo what one commit did to memory, and commit the result.

    Episodes and later changes stay. The next consolidate may learn the same beliefs from the same
    episodes again; `reject` is permanent.

    \b
    Example:
      loki-mem revert HEAD
    """
    with session.work("reverting") as workspace:
        done = workspace.history.revert(name)
    session.show(done, lambda: _print_reverted(done))
    for text in done.committed.remarks():
        note(text)


def _print_reverted(done: Reverted) -> None:
    for verb, names in (
        ("removed", done.removed),
        ("restored", done.written),
        ("kept", done.kept),
    ):
        for name in names:
            since = "  changed since" if verb == "kept" else ""
            say(f"{verb.ljust(10)}  {click.style(name, fg='cyan')}{since}")
    if not (done.removed or done.written or done.kept):
        note(f"{done.commit[:_SHORT]} changed no belief")


@command("verify")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--adopt", is_flag=True, help="Accept records as they are: these IDs, or all.")
@click.option("--fix", is_flag=True, help="Renew citations whose code still says the same.")
def verify_command(session: Session, ids: tuple[str, ...], adopt: bool, fix: bool) -> None:
    """Find what is lost, damaged, edited by hand, or cites changed code.

    Compares every record with the chain of writes, the chain with the anchors in commits, and
    citations with the code. The exit code is 1 while something is missing or damaged; edits by
    hand stay in use, and a commit adopts them.

    \b
    Example:
      loki-mem verify --adopt
    """
    if ids and not adopt:
        raise click.UsageError("ids are for --adopt; without it everything is verified.")
    with session.work("verifying") as workspace:
        found = workspace.history.verify(adopt=ids if adopt else None, fix=fix)
    session.show(found, lambda: _print_verified(found))
    if not found.well:
        raise click.exceptions.Exit(1)


def _print_verified(found: Verified) -> None:
    say_first([f"{click.style('adopted', fg='cyan')}  {one_line(path)}" for path in found.adopted])
    by_hand = [finding for finding in found.findings if finding.is_by_hand]
    others = [finding for finding in found.findings if not finding.is_by_hand]
    say_first([_finding_line(finding) for finding in others])
    _print_by_hand(by_hand)
    say_first([_stale_line(stale) for stale in found.stale])
    chain = f"{plural(found.lines, 'line')} by {plural(found.writers, 'writer')}"
    say(f"{plural(found.records, 'record')}, {chain}, {plural(found.anchors, 'anchor')}")
    if not found.findings:
        say(click.style("every record is as it was written", fg="green"))
    elif others:
        note("restore the files, or accept them as they are: loki-mem verify --adopt ID")


def _finding_line(found: IntegrityFinding) -> str:
    last = f"; last good: {found.writer}, line {found.seq}" if found.seq else ""
    named = f"{found.id}  " if found.id else ""
    line = f"{named}{found.path}: {found.said}{last}"
    return f"{click.style(found.what, fg='red')}  {one_line(line)}"


def _print_by_hand(found: list[IntegrityFinding]) -> None:
    """Print one line for all records that were written or edited by hand: that is no alarm."""
    if not found:
        return
    examples = ", ".join(finding.id or finding.path for finding in found[:3])
    more = ", …" if len(found) > 3 else ""  # noqa: PLR2004 - as many as are named
    line = f"{plural(len(found), 'record')} ({examples}{more}); a commit adopts them"
    say(f"{click.style('by hand', fg='yellow')}  {one_line(line)}")


def _stale_line(stale: Stale) -> str:
    what = click.style("renewed" if stale.renewed else "stale", fg="yellow")
    cited = f"{stale.id}  cites {', '.join(stale.cites)}, changed since"
    return f"{what}  {one_line(cited)}"


_RESOLVED = {"left": "red", "removed": "yellow", "told apart": "yellow"}


class ResolveOutput(NamedTuple):
    """Printed by `resolve`."""

    planned: bool
    resolved: list[Resolved]


@command("resolve")
@click.option("--plan", is_flag=True, help="Say what would be done and write nothing.")
def resolve_command(session: Session, plan: bool) -> None:
    """Mend memory files that a merge left with conflicts.

    Works where the merge driver is not installed, and after merges on a forge. Files that git
    holds as unmerged are marked as resolved; nothing is committed. The exit code is 1 if a file
    is left to you.

    \b
    Example:
      loki-mem resolve --plan
    """
    workspace = session.open()
    found = workspace.history.resolve(plan_only=plan)
    session.show(ResolveOutput(plan, found), lambda: _print_resolved(found, plan))
    if any(file.how == "left" for file in found):
        raise click.exceptions.Exit(1)


def _print_resolved(found: list[Resolved], planned: bool) -> None:
    for file in found:
        how = click.style(file.how.ljust(10), fg=_RESOLVED.get(file.how, "green"))
        remark = f": {one_line(file.note)}" if file.note else ""
        say(f"{how}  {safe(file.path)}{remark}")
    if not found:
        say("no memory file has a conflict")
    staged = sum(file.staged for file in found)
    if planned and found:
        note_plan()
    elif staged:
        note(
            f"{plural(staged, 'file')} marked as resolved in git's index; commit when you are done"
        )
