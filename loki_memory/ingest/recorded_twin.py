"""An episode that the agent recorded itself: the same work is not told a second time.

Tools and instructions ask agents to record what they did, and hooks capture the session too. What
was recorded while a piece of work went on is that work if it names its session, or if it has a file
or an error in common with it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from loki_memory.home import parsed
from loki_memory.index.queries import episodes_recorded
from loki_memory.models import Episode
from loki_memory.models.error_signature import signature

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace

_RULE = re.compile(r"\b[A-Z]{1,4}\d{3,5}\b")  # TS7030, E0308: of a linter or a compiler
_AFTERWARDS = 120  # seconds after the last turn, in which a call that recorded it may have ended


def is_recorded(workspace: OpenWorkspace, episode: Episode) -> bool:
    """Check if the agent recorded the work of a captured episode itself."""
    if episode.origin != "agent":
        return False
    begun = datetime.fromisoformat(episode.timestamp)
    lasted = timedelta(seconds=(episode.duration_seconds or 0) + _AFTERWARDS)
    until = f"{(begun + lasted).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    bodies = episodes_recorded(workspace.index, episode.timestamp, until)
    found = (parsed("episode", body) for body in bodies)
    return any(isinstance(other, Episode) and _is_same(episode, other) for other in found)


def _is_same(captured: Episode, recorded: Episode) -> bool:
    if recorded.session:
        return recorded.session == captured.session
    return bool(_files(captured) & _files(recorded) or _errors(captured) & _errors(recorded))


def _files(episode: Episode) -> set[str]:
    return {*episode.files_modified, *episode.context.files_involved}


def _errors(episode: Episode) -> set[str]:
    """The errors of an episode, each by its form, and the rules that they name."""
    messages = [error.message for error in episode.errors_encountered]
    found = (signature(message) for message in messages)
    rules = (rule for message in messages for rule in _RULE.findall(message))
    return {*(known.broad for known in found if known), *rules}
