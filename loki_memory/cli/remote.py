"""The command that exchanges memory with team servers: remote."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from loki_memory.cli.common import Session, command, input_bytes, is_terminal, standard_input
from loki_memory.cli.output import note, one_line, say
from loki_memory.errors import RemoteFailed
from loki_memory.models.text import plural

if TYPE_CHECKING:
    from loki_memory.remote.servers import RemoteServer
    from loki_memory.remote.sync import RemoteLag, RemoteSynced

_ACTIONS = ("add", "list", "remove", "sync", "show")


class RemoteAdded(NamedTuple):
    """Printed by `remote add`."""

    name: str
    url: str
    project: str  # the repository that this workspace is taken for
    repositories: list[str]  # that the token reaches; empty if the server did not answer
    share: bool


class RemoteList(NamedTuple):
    """Printed by `remote list`."""

    remotes: list[RemoteLag]


class RemoteSyncs(NamedTuple):
    """Printed by `remote sync`."""

    remotes: list[RemoteSynced]


class RemoteRecord(NamedTuple):
    """Printed by `remote show`."""

    repository: str
    id: str
    kind: str
    title: str
    record: dict[str, Any]


@command("remote")
@click.argument("action", type=click.Choice(_ACTIONS))
@click.argument("name", required=False)
@click.argument("url", required=False)
@click.option("--project", metavar="REPO", help="What the server calls this repository.")
@click.option("--token-file", metavar="FILE", help="Where the token is; - for standard input.")
@click.option("--share", is_flag=True, help="Push candidates too: now (sync), or always (add).")
def remote_command(
    session: Session,
    action: str,
    name: str | None,
    url: str | None,
    project: str | None,
    token_file: str | None,
    share: bool,
) -> None:
    """Exchange memory with a team server: add, list, remove, sync, show.

    `sync` pulls what the token may read, for `recall --everywhere`, and takes back what was shared
    and is no candidate any more. Candidates are pushed only with --share. The token comes from
    LOKI_TOKEN, a file or standard input, and stays in a file that only you may read. `show` prints
    a memory of another repository.

    \b
    Example:
      loki-mem remote add team https://memory.example --token-file token.txt
      loki-mem remote sync
    """
    if action == "add":
        _add(session, name, url, project, _token(token_file), share=share)
    elif action == "list":
        _list(session)
    elif action == "sync":
        _sync(session, name, share=share)
    elif not name:
        raise click.UsageError(f"Name it: loki-mem remote {action} NAME.")
    elif action == "remove":
        _remove(session, name)
    else:
        _show(session, name)


def _token(file: str | None) -> str:
    """The token; never an argument, which every user of the machine could list."""
    given = os.environ.get("LOKI_TOKEN", "")
    if file is not None:
        given = input_bytes(file).decode(errors="replace")
    elif not given and not is_terminal():
        given = standard_input().decode(errors="replace")
    return given.strip()


def _add(
    session: Session,
    name: str | None,
    url: str | None,
    project: str | None,
    token: str,
    *,
    share: bool,
) -> None:
    from loki_memory.remote import client
    from loki_memory.remote.servers import RemoteServer, keep, stated_projects

    if not name or not url:
        raise click.UsageError("Give a name and an address: loki-mem remote add NAME URL.")
    workspace = session.open()
    projects = stated_projects(name, workspace.layout, project)
    added = RemoteServer(name, url, token, share, projects).checked()
    repositories: list[str] = []
    try:
        answer = client.get(added, "/status", client.StatusAnswer, patience=0)
        repositories = [repository.name for repository in answer.repositories]
    except RemoteFailed as error:
        note(f"{error}")
    keep(added)
    own = added.project(workspace.layout)
    done = RemoteAdded(name, added.url, own, repositories, share)
    session.show(done, lambda: _print_added(done))


def _print_added(done: RemoteAdded) -> None:
    say(f"{done.name} is added, with {plural(len(done.repositories), 'repository')}.")
    if done.repositories and done.project not in done.repositories:
        names = ", ".join(map(one_line, done.repositories))
        note(f"none is called {one_line(done.project)}; name this one with --project: {names}")
    sharing = "are pushed by every sync" if done.share else "stay here unless you say --share"
    say(f"Candidates {sharing}. Next: loki-mem remote sync")


def _list(session: Session) -> None:
    from loki_memory.remote.servers import servers
    from loki_memory.remote.sync import lag

    workspace = session.open()
    workspace.home.ensure("read")
    found = RemoteList([lag(workspace, server) for server in servers()])
    session.show(found, lambda: _print_list(found))


def _print_list(found: RemoteList) -> None:
    for remote in found.remotes:
        where = f"this repository is {one_line(remote.project)}" if remote.project else "not there"
        say(f"{remote.name}  {one_line(remote.url)}  ({where})")
        waits = f"; {plural(remote.waiting, 'candidate')} to push" if remote.share else ""
        behind = plural(remote.behind, "change") if remote.behind else "nothing"
        say(f"    synced {remote.synced or 'never'}; {behind} to pull{waits}")
        if remote.problem:
            note(remote.problem)
    if not found.remotes:
        note("no team server: loki-mem remote add NAME URL")


def _remove(session: Session, name: str) -> None:
    import shutil

    from loki_memory.remote.servers import cache_of, drop
    from loki_memory.remote.shared import server_file

    workspace = session.open()
    drop(name)
    shutil.rmtree(cache_of(name), ignore_errors=True)
    server_file(workspace, name).unlink(missing_ok=True)
    say(f"{name} is removed, with its token and what was pulled. What was pushed stays there.")


def _sync(session: Session, name: str | None, *, share: bool) -> None:
    from loki_memory.remote.servers import server, servers
    from loki_memory.remote.sync import sync

    wanted = [server(name)] if name else servers()
    if not wanted:
        raise click.UsageError("There is no team server yet: loki-mem remote add NAME URL.")
    workspace = session.open()
    done = RemoteSyncs([sync(workspace, remote, share=share) for remote in wanted])
    session.show(done, lambda: _print_synced(done, wanted))
    codes = [remote.exit_code for remote in done.remotes if remote.problem]
    if codes:
        raise click.exceptions.Exit(max(codes))


def _print_synced(done: RemoteSyncs, wanted: list[RemoteServer]) -> None:
    for remote, server in zip(done.remotes, wanted, strict=True):
        if remote.problem:
            note(remote.problem)
            continue
        said = [f"{plural(remote.pulled, 'change')} of {plural(remote.repositories, 'repository')}"]
        said += [f"{plural(len(remote.pushed), 'candidate')} pushed"] if remote.pushed else []
        said += [f"{len(remote.withdrawn)} taken back"] if remote.withdrawn else []
        say(f"{remote.name}: {', '.join(said)}")
        for reason in remote.refused:
            note(f"not taken: {one_line(reason)}")
        if remote.waiting and not server.share:
            note(f"{plural(remote.waiting, 'candidate')} only here; --share pushes them")


def _show(session: Session, start: str) -> None:
    from loki_memory.remote.everywhere import find

    repository, record = find(session.open(), start)
    document = record.document()
    shown = RemoteRecord(repository, record.id, record.kind, record.title(), document)
    session.show(shown, lambda: _print_record(shown))


def _print_record(shown: RemoteRecord) -> None:
    say(f"{click.style(shown.id, fg='cyan')}  {shown.kind} of {one_line(shown.repository)}")
    for name, value in shown.record.items():
        if isinstance(value, str) and name != "id":
            say(f"  {name}: {one_line(value)}")
