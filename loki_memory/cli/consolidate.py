"""Commands that learn: consolidate, and dedupe, which only merges what says the same."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import click

from loki_memory.cli.common import Session, command
from loki_memory.cli.output import note, one_line, plural, progress_bar, remarks, say

if TYPE_CHECKING:
    from loki_memory.consolidation.run import Deduplicated, Report
    from loki_memory.consolidation.snapshot import BeliefChange
    from loki_memory.language.wording import LanguageReport


_KEPT_QUIET = frozenset({"linked", "archived", "summarised"})  # counted, if on this machine
_SHOWN = 40  # lines, about a screen; --json has all
_NAMED = 6  # memories that a language model would be asked to word


class ConsolidateOutput(NamedTuple):
    """Printed by `consolidate`: the report of a run, and its counts."""

    day: str  # as of which memory was consolidated
    planned: bool  # nothing was written
    episodes: int  # all that there are
    steps: list[BeliefChange]
    written: int
    archived: int
    private: tuple[str, ...]  # ids of what stays on this machine
    language: LanguageReport | None  # what a language model was asked to word; none without one
    counts: dict[str, int]  # how often each thing was done


@command("consolidate")
@click.option("--plan", is_flag=True, help="Say what would be done and write nothing.")
@click.option(
    "--since", metavar="WHEN", help="Only lessons of episodes since then: 24h, 7d, a date."
)
@click.option("--day", metavar="DATE", help="Work as of this day, not of the newest episode's.")
@click.option("--commit", is_flag=True, help="Commit memory afterwards, and nothing else.")
def consolidate_command(
    session: Session, plan: bool, since: str | None, day: str | None, commit: bool
) -> None:
    """Learn from the episodes: mistakes, patterns, skills and links.

    Needs no language model; one that you turn on (language.backend) only words what
    was found. A second run changes nothing. Lessons that several sessions confirm
    become files in .loki/memory; others wait on this machine as candidates.

    \b
    Example:
      loki-mem consolidate --plan
    """
    workspace = session.open()
    with progress_bar("consolidating") as workspace.home.progress:
        report = workspace.consolidate(day, plan, since, commit=commit or None)
    session.show(ConsolidateOutput(*report, report.counts()), lambda: _print(report))
    if not plan:
        workspace.browse.refresh_continuity()
    remarks(workspace)


def _print(report: Report) -> None:
    here = [step for step in report.steps if step.id in report.private]
    steps = [step for step in report.steps if step.id not in report.private]
    for step in steps[:_SHOWN]:
        evidence = f"  ({plural(len(step.evidence), 'episode')})" if step.evidence else ""
        line = f"{one_line(step.title, 100)}{evidence}"
        if step.why:
            line += f": {one_line(step.why, 100)}"
        say(f"{step.what.ljust(12)}  {click.style(step.id, fg='cyan')}  {line}")
    if len(steps) > _SHOWN:
        say(f"… and {len(steps) - _SHOWN} more; --json has all")
    candidates = {step.id for step in here if step.what not in _KEPT_QUIET}
    if candidates:
        news = plural(len(candidates), "candidate")
        say(f"{news} on this machine; `loki-mem review --candidates` shows the surest")
    others = Counter(step.what for step in here if step.what in _KEPT_QUIET)
    if others:
        say("also on this machine: " + ", ".join(f"{n:,} {what}" for what, n in others.items()))
    if not report.episodes and not report.steps:
        say("there are no episodes to learn from yet: loki-mem ingest, or loki-mem record")
    elif not report.steps:
        say(f"nothing new in {plural(report.episodes, 'episode')}")
    if report.language and report.language.memories:
        _print_language(report.language, is_planned=report.planned)
    if report.steps and report.planned:
        note("this is a plan; nothing was written")


def _print_language(asked: LanguageReport, *, is_planned: bool) -> None:
    """Say what a language model was asked, what came of it and what that cost."""
    memories, calls = plural(len(asked.memories), "memory"), plural(asked.calls, "call")
    if is_planned:
        say(
            f"{asked.backend} would be asked to word {memories}: {calls}, about "
            f"{asked.input_tokens:,} tokens"
        )
        say(f"  {', '.join(asked.memories[:_NAMED])}" + " …" * (len(asked.memories) > _NAMED))
        return
    cost = f", ${asked.cost:.4f}" if asked.cost else ""
    spent = f"{calls}, {asked.input_tokens + asked.output_tokens:,} tokens{cost}"
    kept = f"; {asked.refused} did not pass the gates" if asked.refused else ""
    say(f"{asked.worded} of {memories} worded by {asked.backend} ({spent}){kept}")


@command("dedupe")
@click.option("--plan", is_flag=True, help="List what says the same and write nothing.")
def dedupe_command(session: Session, plan: bool) -> None:
    """Merge patterns and facts that say the same in almost the same words.

    The best confirmed one stays as it is. The others are kept, superseded by it, and no longer
    recalled. Beliefs that differ in a value, a name or a negation are never merged.

    \b
    Example:
      loki-mem dedupe --plan
    """
    workspace = session.open()
    with progress_bar("comparing") as workspace.home.progress:
        done = workspace.care.dedupe(plan_only=plan)
    session.show(done, lambda: _print_merged(done))
    if not plan:
        workspace.browse.refresh_continuity()
    remarks(workspace)


def _print_merged(done: Deduplicated) -> None:
    for step in done.merged:
        line = f"{one_line(step.title, 90)}: {step.why}"
        say(f"{step.what}  {click.style(step.id, fg='cyan')}  {line}")
    verb = "would change" if done.planned else "changed"
    count = plural(len(done.merged), "memory")
    say(f"{verb} {count}" if done.merged else "nothing says the same as something else")
    if done.planned:
        note("this is a plan; nothing was written")
