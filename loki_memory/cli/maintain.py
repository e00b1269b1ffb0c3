"""Commands that maintain: sync, rebuild, doctor, audit, gc, config, completion, version."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from loki_memory.cli.common import Session, command, plan_option
from loki_memory.cli.output import (
    note,
    one_line,
    progress_bar,
    safe,
    say,
    say_first,
    size,
    table,
)
from loki_memory.config import Config
from loki_memory.errors import InvalidConfig
from loki_memory.models.field_slips import nearest
from loki_memory.models.text import plural
from loki_memory.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loki_memory.browse.audit import Audit, AuditClass
    from loki_memory.browse.doctor import Diagnosis, Verdict
    from loki_memory.browse.status import Garbage
    from loki_memory.sync import Changes

_VERDICTS = {"ok": "green", "mended": "cyan", "warning": "yellow", "problem": "red"}


class VersionOutput(NamedTuple):
    """Printed by `version`."""

    version: str


class ChangedFiles(NamedTuple):
    """Printed by `sync` and `rebuild`: paths relative to memory/."""

    added: list[str]
    modified: list[str]
    removed: list[str]


class PrintedSetting(NamedTuple):
    """A setting and its present value."""

    name: str
    value: int | str
    default: int | str
    source: str
    variable: str  # of the environment
    meaning: str
    basis: str


class ConfigOutput(NamedTuple):
    """Printed by `config`."""

    settings: list[PrintedSetting]


class CompletionScript(NamedTuple):
    """Printed by `completion`."""

    shell: str
    script: str


@command("sync")
def sync_command(session: Session) -> None:
    """Take over edited views, update the index, render the views.

    \b
    Example:
      loki-mem sync
    """
    workspace = session.open()
    with progress_bar("reading") as progress:
        changes = workspace.sync(progress)
    session.show(_changed(changes), lambda: _print_changes(changes))


@command("rebuild")
def rebuild_command(session: Session) -> None:
    """Rebuild the index from scratch by reading every file.

    \b
    Example:
      loki-mem rebuild
    """
    workspace = session.open()
    with progress_bar("rebuilding") as progress:
        workspace.home.progress = progress
        changes = workspace.rebuild(progress)
    say_read = f"{plural(len(changes.added), 'file')} read"
    session.show(_changed(changes), lambda: say(say_read))


def _changed(changes: Changes) -> ChangedFiles:
    return ChangedFiles(changes.added, changes.modified, changes.removed)


def _print_changes(changes: Changes) -> None:
    for name, paths in _changed(changes)._asdict().items():
        say_first([f"{name.ljust(8)}  {safe(path)}" for path in paths])
    if not changes:
        say("nothing changed")


@command("doctor")
@click.option("--deep", is_flag=True, help="Read every file again and compare every row.")
@click.option("--fix", is_flag=True, help="Mend what can be mended without loss.")
def doctor_command(session: Session, deep: bool, fix: bool) -> None:
    """Examine the workspace, and mend it with --fix.

    Looks at files, index, versions and links. Runs each registered hook as its client would, with
    an event of which nothing is noted, and says which clients were seen last and whether Codex
    trusts our hooks. The exit code is 1 if something is wrong.

    \b
    Example:
      loki-mem doctor --deep
    """
    from loki_memory.install.codex import trust_remarks

    workspace = session.open()
    workspace.notices += trust_remarks(workspace)
    with progress_bar("examining") as workspace.home.progress:
        found = workspace.care.doctor(deep=deep, fix=fix, besides=_client_findings(workspace))
    session.show(found, lambda: _print_diagnosis(found))
    workspace.notices.clear()  # they are among the findings
    if not found.well:
        raise click.exceptions.Exit(1)


def _client_findings(workspace: Workspace) -> Iterator[tuple[str, Verdict, str]]:
    """Yield which hooks answer, and which clients were seen."""
    from loki_memory.install.hook_check import check_hooks

    for checked in check_hooks(workspace):
        yield "hooks", "warning" if checked.failures else "ok", checked.sentence()
    clients = workspace.sessions.clients_seen()
    seen = [f"{client.name} {client.version} on {client.at}" for client in clients]
    if seen:
        yield "clients", "ok", f"seen last: {', '.join(seen)}"


def _print_diagnosis(found: Diagnosis) -> None:
    for check, verdict, text in found.findings:
        colour = click.style(verdict.ljust(8), fg=_VERDICTS[verdict])
        say(f"{colour}{check.ljust(8)}  {one_line(text)}")
    for problem in found.problems:
        say(f"{click.style('problem ', fg='red')}{one_line(str(problem))}")
    if found.well:
        say(click.style("all is well", fg="green"))
    else:
        say("mend these and run `loki-mem doctor` again")


@command("gc")
@plan_option("Only say what would be cleared.")
@click.option("--untrack-sessions", is_flag=True, help="Move captured sessions out of git.")
@click.option("--prune", is_flag=True, help="Archive the facts that prune.* calls dispensable.")
def gc_command(session: Session, dry_run: bool, untrack_sessions: bool, prune: bool) -> None:
    """Clear away files that are no longer needed.

    That is: temporary files of killed writers, indexes that were set aside, and, after
    gc.keep_days, forgotten memories and the turns of sessions that have become episodes. An index
    with many unused pages gives them back to the disk.

    Episodes under .loki/memory grow old here and nowhere else: after consolidation.summarise_days
    a summary is left of them, after consolidation.archive_days those that nothing rests on are
    archived. The archive keeps them whole, and `loki-mem restore` brings them back.

    With --prune, facts go to the archive that were neither said nor used for prune.days, whose
    relevance (importance, halved every 90 days without a use) is below prune.relevance, or that are
    the least relevant of more than prune.facts. All three are off by default. Pinned and important
    facts stay.

    With --untrack-sessions the episodes of captured sessions move from .loki/memory to this
    machine, and what was learned from them stays. Commit the result when you have looked at it.

    \b
    Example:
      loki-mem gc --plan
    """
    workspace = session.open()
    limits = ("prune.days", "prune.relevance", "prune.facts")
    if prune and not any(map(workspace.config.get, limits)):
        advice = "for example `loki-mem config prune.days 365`."
        raise InvalidConfig(
            "prune", f"no limit is set, so that nothing would go: set one, {advice}"
        )
    with progress_bar("tidying") as workspace.home.progress:
        found = workspace.care.gc(dry_run=dry_run, untrack_sessions=untrack_sessions, prune=prune)
    session.show(found, lambda: _print_garbage(found, dry_run))


def _print_garbage(found: Garbage, dry_run: bool) -> None:
    if found.untracked is not None:
        _print_untracked(found, dry_run)
    _print_retained(found, dry_run)
    verb = "would clear" if dry_run else "cleared"
    for path in found.files:
        say(f"{verb}  {safe(path)}")
    if found.files:
        say(f"{plural(len(found.files), 'file')}, {size(found.bytes)}")
    if found.index_bytes:
        say(f"made the index smaller by {size(found.index_bytes)}")
    elif not (found.files or found.summarised or found.archived or found.pruned):
        say("nothing to clear")


def _print_retained(found: Garbage, dry_run: bool) -> None:
    for what, ids in (("summarise", found.summarised), ("archive", found.archived)):
        verb = f"would {what}" if dry_run else f"{what}d"
        if ids:
            say(f"{verb} {plural(len(ids), 'old episode')} under .loki/memory")
    for fact in found.pruned:
        name = click.style(fact.id, fg="cyan")
        say(f"{verb}  {name}  {one_line(fact.title, 80)}: {fact.why}")


def _print_untracked(found: Garbage, dry_run: bool) -> None:
    episodes, beliefs = len(found.untracked or ()), len(found.completed or ())
    if not episodes:
        say("git tracks no captured session")
        return
    verb = "would move" if dry_run else "moved"
    say(f"{verb} {plural(episodes, 'episode')} of captured sessions to this machine")
    say(f"their day, agent and outcome are kept in {plural(beliefs, 'belief')}")
    note("git's history still has them, and pulling this change deletes other people's copies")


@command("config")
@click.argument("key", required=False)
@click.argument("value", required=False)
def config_command(session: Session, key: str | None, value: str | None) -> None:
    """List the settings, show KEY, or set it to VALUE.

    The first word of a key, such as `recall`, shows all of its settings.

    \b
    Example:
      loki-mem config sync.scan_limit 20000
    """
    workspace = session.open()
    if key is not None and value is not None:
        workspace.home.set_config(key, value)
    config = workspace.config
    names = [name for name in config.values if key in {None, name} or name.startswith(f"{key}.")]
    if not names:
        known = nearest(str(key), tuple(config.values))
        meant = f"did you mean {known}?" if known else "`loki-mem config` lists them."
        raise InvalidConfig(str(key), f"is not a setting; {meant}")
    result = ConfigOutput([_setting(config, name) for name in names])
    session.show(result, lambda: _print_settings(result))


def _setting(config: Config, name: str) -> PrintedSetting:
    setting, value, source = config.values[name]
    return PrintedSetting(
        name=name,
        value=setting.written(value) if setting.is_secret else value,
        default=setting.default,
        source=source,
        variable=setting.variable,
        meaning=setting.meaning,
        basis=setting.basis,
    )


def _print_settings(found: ConfigOutput) -> None:
    settings = found.settings
    table([[s.name, str(s.value), s.source, s.meaning] for s in settings], {0: "cyan"})


@command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(session: Session, shell: str) -> None:
    """Print the completion script for your shell.

    \b
    Example:
      eval "$(loki-mem completion bash)"
    """
    from click.shell_completion import get_completion_class

    root = click.get_current_context().find_root().command
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"there is no completion for {shell}.")
    script = found(root, {}, "loki-mem", "_LOKI_MEM_COMPLETE").source()
    session.show(CompletionScript(shell, script), lambda: say(script))


@command("version")
def version_command(session: Session) -> None:
    """Print the version.

    \b
    Example:
      loki-mem version
    """
    from loki_memory import __version__

    session.show(VersionOutput(__version__), lambda: say(f"loki-mem {__version__}"))


_WORST = 3  # examples of each class


@command("audit")
@click.argument("path", required=False, type=click.Path(exists=True, path_type=Path))
@click.option("--from", "source", metavar="NAME", help="The system, where PATH does not tell.")
@click.option("--all", "everything", is_flag=True, help="Name every memory, not the worst three.")
def audit_command(
    session: Session, path: Path | None, source: str | None, everything: bool
) -> None:
    """Find the memories that are not worth their place, by class.

    The classes are duplicate, echo (repeats a document of the project, a prompt or memory's own
    output), report (tells of the work of one session), vacuous, stale (cites code that is gone),
    orphan (learned from episodes of which nothing is left) and contradiction. Each says what to do
    about it. Contradictions need a person and do not count as junk.

    PATH is the memory of another system, as `import` reads it: nothing of it is imported, and
    nothing is written.

    \b
    Example:
      loki-mem audit
    """
    found = audit_of(path, source or "") if path else _own_audit(session)
    session.show(found, lambda: _print_audit(found, None if everything else _WORST))
    if path and found.junk and not session.json:
        note("the ids are those that its memories would have after `loki-mem import`")


def _own_audit(session: Session) -> Audit:
    with session.work("auditing") as workspace:
        return workspace.care.audit()


def audit_of(path: Path, source: str) -> Audit:
    """Audit the memory of another system: import it into a folder that is then deleted."""
    from loki_memory.workspace import Workspace

    path = path.resolve()
    with tempfile.TemporaryDirectory() as folder, Workspace.init(Path(folder)) as aside:
        taken = aside.interop.import_memory(source, path, every_project=True)
        return aside.care.audit(of=path, repeats=taken.known)


def _print_audit(found: Audit, most: int | None) -> None:
    share = f"{found.junk:,} of them junk ({found.rate:.1%})" if found.junk else "none of them junk"
    say(f"{plural(found.memories, 'memory')}, {share}")
    for kind in found.classes:
        if kind.memories:
            _print_class(kind, most)
    for reason in found.unchecked:
        note(f"not checked: {reason}")


def _print_class(kind: AuditClass, most: int | None) -> None:
    heading = click.style(f"\n{kind.name}", bold=True)
    say(f"{heading}: {kind.memories:,} ({kind.rate:.1%}), {kind.meaning}")
    for finding in kind.findings[:most]:
        line = f"{one_line(finding.text, 90)}: {one_line(finding.why)}"
        say(f"  {click.style(finding.id, fg='cyan')}  {line}")
    left = kind.memories - len(kind.findings[:most])
    if left:
        say(click.style(f"  and {left:,} more", dim=True))
    say(f"  what to do: {kind.advice}")
