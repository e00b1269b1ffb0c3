"""Pausing: whether sessions are captured and told what is remembered, and how somebody pauses that.

The setting `memory.enabled` turns it off for a project, and so do the switches of other systems. A
pause is a file in this machine's own zone: it holds for whoever works here, until it is over or
somebody resumes. What cannot be understood means no: who asked not to be recorded is not recorded.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import InvalidConfig, InvalidRecord, NewerFormat
from loki_memory.files.off_switches import switched_off

if TYPE_CHECKING:
    from loki_memory.home import Home
    from loki_memory.homes import OpenWorkspace

_NAME = "paused"
_FOREVER = "until somebody resumes"
_SPAN = re.compile(r"(\d{1,4})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class Pause(NamedTuple):
    """Since when nothing is captured, and until when; empty if until somebody resumes."""

    since: str
    until: str


def why_off(workspace: OpenWorkspace) -> str:
    """Why nothing may be captured or injected; empty if it may."""
    try:
        if not workspace.config.get("memory.enabled"):
            return "capture is off: memory.enabled is false"
    except (InvalidConfig, NewerFormat) as error:
        return f"capture is off, because the settings cannot be read: {error}"
    if switch := switched_off(workspace.layout.loki, os.environ):
        return f"capture is off: {switch}"
    pause = paused(workspace.home, workspace.now())
    return f"capture is paused {ends(pause)}" if pause else ""


def ends(pause: Pause) -> str:
    return f"until {pause.until}" if pause.until else _FOREVER


def paused(workspace: Home, now: str) -> Pause | None:
    """The pause that is going on; None if there is none, or none any more."""
    from loki_memory.files import disk

    try:
        data = disk.read_bytes(workspace.layout.local / _NAME)
    except OSError:
        return Pause("", "")
    if data is None:
        return None
    since, _, until = data.decode("utf-8", "replace").strip().partition(" ")
    if not until:
        return Pause(since, "")
    try:
        is_over = datetime.fromisoformat(until) <= datetime.fromisoformat(now)
    except (ValueError, TypeError):  # no moment, or one without its zone
        return Pause(since, "")
    return None if is_over else Pause(since, until)


def pause(workspace: OpenWorkspace, span: str | None) -> Pause:
    """Capture and inject nothing from now on; `span` (`2h`, `30m`, `1d`) says how long."""
    from loki_memory.files import disk
    from loki_memory.files.store import failures_named

    now = workspace.now()
    found = Pause(now, _later(now, span) if span else "")
    path = workspace.layout.local / _NAME
    with failures_named(path):
        disk.write_bytes(path, f"{' '.join(filter(None, found))}\n".encode())
    return found


def resume(workspace: OpenWorkspace) -> bool:
    """Capture and inject again; whether it was paused."""
    from loki_memory.files import disk
    from loki_memory.files.store import failures_named

    was_paused = paused(workspace.home, workspace.now()) is not None
    path = workspace.layout.local / _NAME
    with failures_named(path):
        if path.parent.is_dir():
            disk.remove(path)
    return was_paused


def _later(now: str, span: str) -> str:
    found = _SPAN.fullmatch(span.strip().lower())
    if found is None or not int(found[1]):
        raise InvalidRecord(
            f"{span!r} is not a time span", field="for", advice="Write 30m, 2h or 1d."
        )
    seconds = int(found[1]) * _SECONDS[found[2]]
    then = datetime.fromisoformat(now) + timedelta(seconds=seconds)
    return f"{then.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
