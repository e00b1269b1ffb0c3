"""Notes that hooks keep on this machine: sessions asked for lessons, the last look, clients."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import orjson

from loki_memory.files import disk
from loki_memory.models.ids import file_stem

if TYPE_CHECKING:
    from pathlib import Path

    from loki_memory.homes import OpenWorkspace

_KEPT = 100  # notes; a session that went on after so many others may be asked again


def was_asked(workspace: OpenWorkspace, session: str) -> bool:
    """Check if the agent of a session was asked."""
    return _note(workspace, session).exists()


def note_asked(workspace: OpenWorkspace, session: str) -> bool:
    """Note that the agent of a session is asked; False if another process was faster."""
    note = _note(workspace, session)
    disk.make_folder(note.parent)
    try:
        disk.write_new(note, b"", durable=False, private=True)
    except FileExistsError:
        return False
    notes = sorted(note.parent.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    for old in notes[:-_KEPT]:
        disk.remove(old)
    return True


def _note(workspace: OpenWorkspace, session: str) -> Path:
    return workspace.layout.local / "asked" / file_stem(session)


# -- sessions that ended without a word (killed, or run by a script), by their transcripts' times --

_CAUGHT_UP = "caught-up"  # a file whose time is that of the last look
_SESSIONS = 20  # that are looked at


def left_behind(workspace: OpenWorkspace, transcript: str) -> list[Path]:
    """Transcripts beside this one that were written since the last look, the newest first.

    One that was still going on then is looked at again: it may have ended since.
    """
    if not transcript:
        return []
    try:
        seen = (workspace.layout.local / _CAUGHT_UP).stat().st_mtime
    except OSError:
        seen = 0.0
    seen -= 60 * workspace.config.get("capture.idle_minutes")
    try:
        beside = {
            path: path.stat().st_mtime
            for path in Path(transcript).parent.glob("*.jsonl")
            if path.name != Path(transcript).name
        }
    except OSError:
        return []
    news = sorted((path for path in beside if beside[path] >= seen), key=lambda p: -beside[p])
    return news[:_SESSIONS]


def note_look(workspace: OpenWorkspace) -> None:
    """Note that sessions which ended silently were looked for now."""
    disk.write_bytes(workspace.layout.local / _CAUGHT_UP, workspace.now().encode())


# -- the clients that hooks heard of: which version, and when it was seen last ---------------------

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
