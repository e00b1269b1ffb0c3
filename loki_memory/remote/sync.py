"""Exchange memory with a team server: pull what others know, push what this user shares.

The queue of what waits to be pushed is the local memory itself: candidates that were not sent, or
say something else now. One that is no candidate any more (it was published, rejected, forgotten or
purged) is withdrawn, whether or not anything is shared now. Before a candidate leaves this
machine, what only this machine has is taken out, as when it is published.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.errors import InvalidRecord, LokiMemoryError, NotFound, RemoteFailed, RemoteRefused
from loki_memory.files.store import sealed
from loki_memory.index.queries import candidates
from loki_memory.models import Belief, Fact
from loki_memory.remote import client
from loki_memory.remote.cached import CachedRepository, PulledFiles, cached, is_record
from loki_memory.remote.client import PullAnswer, StatusAnswer
from loki_memory.remote.servers import RemoteServer
from loki_memory.remote.shared import (
    SharedCandidates,
    note_shared,
    shared_with,
    standing_of,
    unsent,
)

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace

_AT_ONCE = 500  # records of one push; the server takes a thousand
_QUICK = 2.0  # seconds for an answer about the lag
# What a candidate says of this machine: other memories of it, and its former wordings.
_LOCAL_FIELDS = ("id", "links", "parent", "depth", "history", "published", "scope")


class RemoteSynced(NamedTuple):
    """The result of an exchange with one server."""

    name: str
    repositories: int
    pulled: int  # record files that changed
    pushed: list[str]  # ids of candidates that the server did not have so
    withdrawn: list[str]
    refused: list[str]  # why candidates were not taken
    waiting: int  # candidates that are not shared, since nobody asked for it
    problem: str  # why it failed; empty if it did not
    exit_code: int = 0  # for that


class RemoteLag(NamedTuple):
    """A server, as it is asked now."""

    name: str
    url: str
    project: str  # the repository that this workspace is there; empty if the server has none
    share: bool
    behind: int  # changes of all repositories that were not pulled
    waiting: int
    synced: str
    problem: str


def sync(workspace: OpenWorkspace, server: RemoteServer, *, share: bool) -> RemoteSynced:
    """Pull from a server, and push to it what is shared; a failure is part of the result."""
    workspace.home.ensure("read")
    shared = shared_with(workspace, server)
    result = RemoteSynced(server.name, 0, 0, [], [], [], 0, "")
    try:
        result, shared = _exchange(workspace, server, shared, share=share or server.share)
        shared = shared._replace(synced=workspace.now(), problem="")
    except (RemoteFailed, RemoteRefused) as error:
        shared = shared_with(workspace, server)  # with what was acknowledged before
        waiting = len(unsent(workspace, shared))
        result = result._replace(problem=str(error), waiting=waiting, exit_code=error.exit_code)
        shared = shared._replace(problem=str(error))
    note_shared(workspace, server, shared)
    return result


def _exchange(
    workspace: OpenWorkspace, server: RemoteServer, shared: SharedCandidates, *, share: bool
) -> tuple[RemoteSynced, SharedCandidates]:
    names = _repositories(client.get(server, "/status", StatusAnswer))
    own = server.project(workspace.layout)
    refused: list[str] = []
    pushed: list[str] = []
    withdrawn: list[str] = []
    if own in names:
        if _epoch(names[own]) != _epoch(CachedRepository(server.name, own).pulled.cursor):
            shared = shared._replace(sent={})  # its database was made anew: all is sent again
        gone = sorted(shared.names.keys() - set(candidates(workspace.index)))
        withdrawn = _withdraw(server, own, [shared.names[name] for name in gone])
        shared = _without(shared, gone)
        note_shared(workspace, server, shared)
        if share:
            shared, pushed, refused = _push(workspace, server, own, shared)
    pulled = _pull_all(server, names, set(shared.names.values()))
    waiting = len(unsent(workspace, shared))
    done = (server.name, len(names), pulled, pushed, withdrawn, refused, waiting, "")
    return RemoteSynced(*done), shared


def _repositories(answer: StatusAnswer) -> dict[str, str]:
    """The repositories that the token reaches, each with the cursor of one who has all of it."""
    return {repository.name: repository.cursor for repository in answer.repositories}


# -- pull ------------------------------------------------------------------------------------------


def _pull_all(server: RemoteServer, names: Mapping[str, str], own: set[str]) -> int:
    """Pull every repository that moved on; drop those that the token does not reach any more."""
    for repository in cached(server):
        if repository.name not in names:
            shutil.rmtree(repository.folder, ignore_errors=True)
    moved = (
        name for name in names if CachedRepository(server.name, name).pulled.cursor != names[name]
    )
    return sum(_pull(server, name, own) for name in moved)


def _pull(server: RemoteServer, name: str, own: set[str]) -> int:
    repository = CachedRepository(server.name, name)
    cursor = repository.pulled.cursor
    trusted, pushed = dict(repository.pulled.trusted), dict(repository.pulled.pushed)
    number, more = 0, True
    while more:
        given = {"project": name, "since": cursor}
        answer = client.get(server, "/pull", PullAnswer, given)
        if _epoch(answer.cursor) != _epoch(cursor):
            trusted, pushed = {}, {}  # the database was made anew, and everything comes again
        cursor, more = answer.cursor, answer.more
        for record in answer.records:
            trusted.pop(record.path, None)
            pushed.pop(record.path, None)
            is_wanted = not record.gone and record.id not in own
            if is_wanted and is_record(record.path, pushed=record.pushed):
                (pushed if record.pushed else trusted)[record.path] = record.content
        number += len(answer.records)
    repository.keep(PulledFiles(cursor, trusted, pushed))
    return number


def _epoch(cursor: str) -> str:
    return cursor.partition(":")[0]


# -- push ------------------------------------------------------------------------------------------


def _push(
    workspace: OpenWorkspace, server: RemoteServer, project: str, shared: SharedCandidates
) -> tuple[SharedCandidates, list[str], list[str]]:
    """Push the candidates that the server does not have as they are now."""
    sent, names = dict(shared.sent), dict(shared.names)
    pushed, refused = list[str](), list[str]()
    waiting = [
        (name, document, mark)
        for name, document in _documents(workspace)
        if sent.get(name) != (mark := _mark(document))
    ]
    for start in range(0, len(waiting), _AT_ONCE):
        some = waiting[start : start + _AT_ONCE]
        body = {"project": project, "records": [document for _, document, _ in some]}
        answer = client.push(server, body)
        for (name, _, mark), given in zip(some, answer.ids, strict=True):
            old = names.get(name)
            if old and old != given:  # it says something else now
                _withdraw(server, project, [old])
            sent[name], names[name] = mark, given
        pushed += answer.changed
        refused += [refusal.reason for refusal in answer.refused]
        shared = shared._replace(sent=dict(sent), names=dict(names))
        note_shared(workspace, server, shared)
    return shared, pushed, refused


def _documents(workspace: OpenWorkspace) -> Iterator[tuple[str, dict[str, Any]]]:
    """The candidates of this machine, as they may leave it."""
    for name in candidates(workspace.index):
        with suppress(NotFound):
            record = workspace.get(name)
            if isinstance(record, Belief):
                with suppress(InvalidRecord):
                    yield name, {"kind": record.kind, "record": shareable(record)}


def shareable(record: Belief) -> dict[str, Any]:
    """A candidate without what only this machine has, secrets, and personal data."""
    document = record.document()
    for field in _LOCAL_FIELDS:
        document.pop(field, None)
    if isinstance(record, Fact) and "statement" in (document.get("key") or ()):
        document["key"] = {"statement": record.statement}
    public = type(record).model_validate({**document, "scope": "project"})
    return sealed(public)[0].document()


def _mark(document: Mapping[str, Any]) -> str:
    return sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]


def _withdraw(server: RemoteServer, project: str, names: Sequence[str]) -> list[str]:
    given = [name for name in names if name]
    if not given:
        return []
    return client.push(server, {"project": project, "withdraw": given}).withdrawn


def _without(shared: SharedCandidates, gone: Sequence[str]) -> SharedCandidates:
    sent = {name: mark for name, mark in shared.sent.items() if name not in gone}
    names = {name: given for name, given in shared.names.items() if name not in gone}
    return shared._replace(sent=sent, names=names)


# -- how far this machine is -----------------------------------------------------------------------


def lag(workspace: OpenWorkspace, server: RemoteServer) -> RemoteLag:
    """Ask a server how much was not pulled yet; what it cannot say is a problem."""
    known = standing_of(workspace, server)
    own = server.project(workspace.layout)
    behind, problem = 0, ""
    try:
        answer = client.get(server, "/status", StatusAnswer, patience=0, timeout=_QUICK)
        names = _repositories(answer)
        behind = sum(_behind(server, name, cursor) for name, cursor in names.items())
        own = own if own in names else ""
    except LokiMemoryError as error:
        problem = str(error)
    share, waiting = server.share, known.waiting
    return RemoteLag(server.name, server.url, own, share, behind, waiting, known.synced, problem)


def _behind(server: RemoteServer, name: str, cursor: str) -> int:
    """The changes of a repository since the last pull; at least one if there are any."""
    known = CachedRepository(server.name, name).pulled.cursor
    if known == cursor:
        return 0
    return max(1, _version(cursor) - _version(known))


def _version(cursor: str) -> int:
    version = cursor.split(":")[1:2]
    return int(version[0]) if version and version[0].isdecimal() else 0
