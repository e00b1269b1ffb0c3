"""The candidates that a team server has from this machine, and the lag behind it.

`status` asks this, so it reads two small files and the index, and loads no HTTP.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.files import disk
from loki_memory.index.queries import candidates
from loki_memory.models.ids import file_stem
from loki_memory.remote.servers import RemoteServer, cache_of, servers

if TYPE_CHECKING:
    from pathlib import Path

    from loki_memory.homes import OpenWorkspace

PULLED = "pulled.json"  # in the folder of each repository that was pulled


class SharedCandidates(NamedTuple):
    """The candidates of a workspace that a server has from here."""

    sent: Mapping[str, str]  # local id, and a hash of what was sent
    names: Mapping[str, str]  # local id, and the id that the server gave; empty if it refused
    synced: str = ""  # when the last exchange succeeded
    problem: str = ""  # why a later one failed


class RemoteStanding(NamedTuple):
    """The lag behind a team server, without asking it."""

    name: str
    repositories: int  # other repositories whose memory is kept here
    waiting: int  # candidates that would be pushed
    synced: str  # when the last exchange succeeded; empty if none did
    problem: str  # why a later one failed


def standing(workspace: OpenWorkspace) -> list[RemoteStanding]:
    """The lag behind each server, as of the last exchange."""
    return [standing_of(workspace, server) for server in servers()]


def standing_of(workspace: OpenWorkspace, server: RemoteServer) -> RemoteStanding:
    shared = shared_with(workspace, server)
    number = len(list(cache_of(server.name).glob(f"*/{PULLED}")))
    waiting = len(unsent(workspace, shared)) if server.share else 0
    return RemoteStanding(server.name, number, waiting, shared.synced, shared.problem)


def unsent(workspace: OpenWorkspace, shared: SharedCandidates) -> list[str]:
    """The candidates that a server does not have from here."""
    return [name for name in candidates(workspace.index) if name not in shared.sent]


def server_file(workspace: OpenWorkspace, name: str) -> Path:
    """The file that says what a server has from a workspace."""
    return workspace.layout.local / "remotes" / f"{file_stem(name)}.json"


def shared_with(workspace: OpenWorkspace, server: RemoteServer) -> SharedCandidates:
    """Read what a server has from here; without the file everything is sent again, once."""
    try:
        found = json.loads(disk.read_bytes(server_file(workspace, server.name)) or b"{}")
        return SharedCandidates(
            dict(found["sent"]), dict(found["names"]), str(found["synced"]), str(found["problem"])
        )
    except (ValueError, KeyError, TypeError):
        return SharedCandidates({}, {})


def note_shared(workspace: OpenWorkspace, server: RemoteServer, shared: SharedCandidates) -> None:
    data = json.dumps(shared._asdict()).encode()
    disk.write_bytes(server_file(workspace, server.name), data, private=True)
