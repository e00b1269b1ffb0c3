"""An event: the JSON object that a harness writes to a hook's standard input.

Whoever writes it, nothing in it is taken for granted: what is no text where a text belongs counts
as absent, and what is no event at all is None.
"""

from __future__ import annotations

import json  # orjson takes three times as long to load, and this is read before every prompt
from collections.abc import Mapping
from typing import IO, Any, NamedTuple

MOST_BYTES = 4_000_000  # a tool may answer with a whole file; more than this no hook needs
_BLOCK = 1 << 20


class Event(NamedTuple):
    """One event of a session."""

    name: str
    fields: Mapping[str, Any]

    def text(self, *names: str) -> str:
        """The first of these fields that holds a text; empty if none does."""
        found = (self.fields.get(name) for name in names)
        return next((value for value in found if isinstance(value, str) and value), "")

    def is_set(self, name: str) -> bool:
        return self.fields.get(name) is True

    @property
    def session(self) -> str:
        return self.text("session_id")

    @property
    def transcript(self) -> str:
        """The file in which the harness tells the session itself; empty if it keeps none."""
        return self.text("transcript_path")

    @property
    def folder(self) -> str:
        return self.text("cwd")

    @property
    def agent(self) -> str:
        """Who works, if it has a name: a subagent, or a member of a team."""
        return self.text("teammate_name", "agent_type")


def read(stream: IO[bytes]) -> bytes:
    """What a harness wrote, all of it taken so that it is not left writing; empty if too much."""
    data = stream.read(MOST_BYTES + 1)
    if len(data) <= MOST_BYTES:
        return data
    while stream.read(_BLOCK):
        pass
    return b""


def parsed(name: str, data: bytes) -> Event | None:
    """The event, None if the bytes tell none."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return Event(name, found) if isinstance(found, dict) else None
