"""Commands that learn: consolidate, dedupe, feedback, skills."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from loki_memory.cli.common import Session, command, finish_writing, id_argument
from loki_memory.cli.output import (
    named,
    note,
    note_plan,
    one_line,
    say,
    say_first,
)
from loki_memory.models.text import plural

if TYPE_CHECKING:
    from loki_memory.consolidation.run import Deduplicated, Report
    from loki_memory.consolidation.snapshot import BeliefChange
    from loki_memory.install.edits import InstallStep
    from loki_memory.language.wording import LanguageReport
    from loki_memory.workspace import Workspace

_KEPT_QUIET = frozenset({"linked", "archived", "summarised"})  # counted, if on this machine
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
    with session.work("consolidating") as workspace:
        report = workspace.consolidate(day, plan, since, commit=commit or None)
    result = ConsolidateOutput(*report, report.counts())
    session.show(result, lambda: _print_report(report, is_committed=commit))
    if not plan:
        workspace.browse.refresh_continuity()


def _print_report(report: Report, *, is_committed: bool) -> None:
    here = [step for step in report.steps if step.id in report.private]
    steps = [step for step in report.steps if step.id not in report.private]
    say_first([_step(step) for step in steps])
    if steps and not (report.planned or is_committed):
        say("next: `loki-mem review` reads what is new, with its evidence")
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
        note_plan()


def _step(step: BeliefChange) -> str:
    evidence = f"  ({plural(len(step.evidence), 'episode')})" if step.evidence else ""
    why = f": {one_line(step.why, 100)}" if step.why else ""
    return f"{step.what.ljust(12)}  {named(step.id, step.title)}{evidence}{why}"


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
    """Merge patterns and facts that say almost the same.

    The best confirmed one stays as it is. The others are kept, superseded by it, and no longer
    recalled. Beliefs that differ in a value, a name or a negation are never merged.

    \b
    Example:
      loki-mem dedupe --plan
    """
    with session.work("comparing") as workspace:
        done = workspace.care.dedupe(plan_only=plan)
    session.show(done, lambda: _print_merged(done))
    if not plan:
        workspace.browse.refresh_continuity()


def _print_merged(done: Deduplicated) -> None:
    for step in done.merged:
        say(f"{step.what}  {named(step.id, step.title, 90)}: {step.why}")
    verb = "would change" if done.planned else "changed"
    count = plural(len(done.merged), "memory")
    say(f"{verb} {count}" if done.merged else "nothing says the same as something else")
    if done.planned:
        note_plan()


_PUBLISHED_TO = ("claude", "agents")


class PublishedSkills(NamedTuple):
    """Printed by `skills --publish` and `--withdraw`."""

    deeds: list[InstallStep]


class FeedbackOutput(NamedTuple):
    """Printed by `feedback`."""

    id: str
    helpful: bool
    episode: str | None


@command("feedback")
@id_argument
@click.option("--helpful", "answer", flag_value="helpful", help="It helped.")
@click.option("--unhelpful", "answer", flag_value="unhelpful", help="It did not.")
@click.option("--episode", metavar="EPISODE", help="The episode in question.")
def feedback_command(
    session: Session, memory: str, answer: str | None, episode: str | None
) -> None:
    """Say whether a memory helped.

    The answer is noted on this machine and counts at once: helpful memories rank higher, unhelpful
    ones lower, and agents are not told of these unasked. The next episode that is recorded notes it
    too (`recalled`), which makes it evidence for everybody.

    \b
    Example:
      loki-mem feedback sem-001 --helpful
    """
    if answer is None:
        raise click.UsageError("Say --helpful or --unhelpful.")
    workspace = session.open()
    memory = workspace.resolve(memory)
    workspace.feedback(memory, answer == "helpful", episode)
    result = FeedbackOutput(memory, answer == "helpful", episode)
    session.show(result, lambda: say(f"{click.style(memory, fg='cyan')}  noted as {answer}"))


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
        _print_published(session, steps)
    elif file is not None:
        finish_writing(session, workspace, [workspace.skills.add(_text_of(file))])
    else:
        _show_skills(session, workspace, name)


def _text_of(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"{file}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise click.UsageError(f"{file} is not UTF-8 text.") from None


def _show_skills(session: Session, workspace: Workspace, name: str | None) -> None:
    from loki_memory.cli.read import show_command, show_list

    if name is not None:
        skill = f"skill-{name.removeprefix('skill-')}"
        click.get_current_context().invoke(show_command, memory=skill, as_json=session.json)
        return
    empty = "none yet; `loki-mem skills --add FILE` adds one"
    show_list(session, workspace.browse.summaries(kind="skill"), None, empty)


def _print_published(session: Session, steps: Sequence[InstallStep]) -> None:
    from loki_memory.cli.install import print_steps

    shown = [step._replace(diff="") for step in steps]
    session.show(PublishedSkills(shown), lambda: print_steps(shown))
    if not shown:
        note("nothing to publish; candidates are published once evidence supports them")
