"""The team servers of this user: address, token, and which repository a workspace is there.

They stand in one file of the user's own folder that only its user may read. Neither an address nor
a token is ever read from a repository: a clone must not decide where memory is sent.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from loki_memory.errors import InvalidRecord, NoRemote
from loki_memory.files import disk
from loki_memory.files.workspace_trust import address_of
from loki_memory.home.place import user_layout
from loki_memory.models.ids import file_stem

if TYPE_CHECKING:
    from loki_memory.files.layout import Layout

URL_VARIABLE, TOKEN_VARIABLE = "LOKI_REMOTE", "LOKI_TOKEN"
OF_ENVIRONMENT = "environment"  # the name of the server that these variables give
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class RemoteServer(NamedTuple):
    """A team server, and what this user does with it."""

    name: str
    url: str
    token: str
    share: bool = False  # whether `sync` pushes candidates without being asked to
    projects: Mapping[str, str] = {}  # folders of workspaces, and their repositories there

    def project(self, place: Layout) -> str:
        """The repository that a workspace is there: as stated, or as its git remote is called."""
        stated = self.projects.get(str(place.root))
        address = address_of(place).rstrip("/").removesuffix(".git")
        return stated or re.split(r"[/:\\]", address)[-1] or place.root.name

    def checked(self) -> RemoteServer:
        """The server, if its token may be sent to it; raises InvalidRecord."""
        checked = _checked(self.name, self.url, self.token)
        return checked._replace(share=self.share, projects=self.projects)


def servers() -> list[RemoteServer]:
    """The servers of this user, by name; that of the environment first."""
    kept = [_parsed(name, entry) for name, entry in sorted(_read().items())]
    url = os.environ.get(URL_VARIABLE, "")
    given = [_checked(OF_ENVIRONMENT, url, os.environ.get(TOKEN_VARIABLE, ""))] if url else []
    return [*given, *kept]


def any_server() -> bool:
    """Check if there is a server to ask, without reading who it is."""
    return bool(os.environ.get(URL_VARIABLE)) or os.path.exists(_file())


def server(name: str) -> RemoteServer:
    """The server with this name; raises NoRemote."""
    found = next((known for known in servers() if known.name == name), None)
    if found is None:
        raise NoRemote(name)
    return found


def keep(added: RemoteServer) -> RemoteServer:
    """Add a server, or replace the one that has its name; raises InvalidRecord."""
    if not _NAME.fullmatch(added.name) or added.name == OF_ENVIRONMENT:
        advice = "Use small letters, digits, dots and dashes."
        raise InvalidRecord("is no name", field=added.name, advice=advice)
    checked = added.checked()
    _write({**_read(), added.name: _entry(checked)})
    return checked


def stated_projects(name: str, place: Layout, project: str | None) -> Mapping[str, str]:
    """The repositories that workspaces are on a server, with one that is stated now."""
    known = next((server.projects for server in servers() if server.name == name), {})
    return {**known, str(place.root): project} if project else known


def drop(name: str) -> None:
    """Forget a server and its token; raises NoRemote."""
    kept = _read()
    if kept.pop(name, None) is None:
        raise NoRemote(name)
    _write(kept)


def cache_of(name: str) -> Path:
    """The folder for what is pulled from a server; it may be deleted."""
    return user_layout().cache / "remotes" / file_stem(name)


def _checked(name: str, url: str, token: str) -> RemoteServer:
    """A server that a token may be sent to: over TLS, or on this machine."""
    parts = urlsplit(url)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    if not is_safe or not parts.hostname or parts.username or parts.query:
        advice = "Give https://HOST: a token is sent over TLS only, except on this machine."
        raise InvalidRecord("is no address of a server", field=url, advice=advice)
    if not token or not token.isascii() or not token.isprintable():
        advice = f"Pass it in {TOKEN_VARIABLE}, by --token-file, or on standard input."
        raise InvalidRecord("is missing", field="token", advice=advice)
    return RemoteServer(name, url.rstrip("/"), token)


def _file() -> Path:
    return user_layout().local / "remotes.json"


def _read() -> dict[str, Any]:
    data = disk.read_bytes(_file())
    try:
        found = json.loads(data) if data else {}
    except ValueError:
        found = None
    if not isinstance(found, dict):
        advice = "Delete it, and add the servers again."
        raise InvalidRecord("is not JSON", field=str(_file()), advice=advice)
    return found


def _write(entries: Mapping[str, Any]) -> None:
    disk.write_bytes(_file(), json.dumps(entries, indent=2).encode(), private=True)


def _entry(server: RemoteServer) -> dict[str, Any]:
    return {name: value for name, value in server._asdict().items() if name != "name"}


def _parsed(name: str, entry: Any) -> RemoteServer:
    given = entry if isinstance(entry, dict) else {}
    projects = given.get("projects")
    return _checked(name, str(given.get("url", "")), str(given.get("token", "")))._replace(
        share=given.get("share") is True,
        projects=projects if isinstance(projects, dict) else {},
    )
