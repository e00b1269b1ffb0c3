"""The clients that hooks heard of on this machine: which version, and when it was seen last."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import orjson

from loki_memory.files import disk

if TYPE_CHECKING:
    from pathlib import Path

    from loki_memory.homes import OpenWorkspace

_BEGINNING = 16_384  # bytes of a transcript: its first lines name the client's version
_SAID = re.compile(r"(claude-code)_(\d+-\d+-\d+)")  # AI_AGENT of Claude Code
_CODEX = re.compile(rb'"cli_version":\s*"([\w.-]{1,40})"')
_CLAUDE = re.compile(rb'"version":\s*"(\d+\.\d+\.\d+)"')


class SeenClient(NamedTuple):
    """A client, its version, and when it was seen last."""

    name: str
    version: str
    at: str


def note_client(workspace: OpenWorkspace, environment: Mapping[str, str], transcript: str) -> None:
    """Take note of the client that runs a session, as far as it says what it is."""
    found = _named(environment.get("AI_AGENT", "")) or _of_transcript(transcript)
    if found is None:
        return
    name, version = found
    known = {client.name: client for client in clients_seen(workspace)}
    known[name] = SeenClient(name, version, workspace.now())
    disk.write_bytes(_path(workspace), orjson.dumps([list(client) for client in known.values()]))


def clients_seen(workspace: OpenWorkspace) -> list[SeenClient]:
    """The clients that were seen; none if nothing can be read."""
    with suppress(ValueError, TypeError, OSError):
        data = disk.read_bytes(_path(workspace))
        return [SeenClient(*map(str, client)) for client in orjson.loads(data or b"[]")]
    return []


def _named(agent: str) -> tuple[str, str] | None:
    found = _SAID.match(agent)
    return (found[1], found[2].replace("-", ".")) if found else None


def _of_transcript(transcript: str) -> tuple[str, str] | None:
    with suppress(OSError, ValueError), open(transcript, "rb") as file:
        first = file.read(_BEGINNING)
        for name, pattern in (("codex", _CODEX), ("claude-code", _CLAUDE)):
            found = pattern.search(first)
            if found:
                return name, found[1].decode()
    return None


def _path(workspace: OpenWorkspace) -> Path:
    return workspace.layout.local / "clients.json"
