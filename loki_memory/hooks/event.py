"""An event: the JSON object that a harness writes to a hook's standard input.

The harness is not trusted: a field that is not text counts as absent, and input that is not an
event is None.
"""

from __future__ import annotations

import json  # orjson takes three times as long to load, and this is read before every prompt
from collections.abc import Mapping
from typing import Any, NamedTuple

# Tools about which something may be known before they are used, as Claude Code and Codex name them;
# the last command is that of Gemini CLI and Qwen Code, which are told of its errors only.
COMMAND_TOOLS = frozenset({"Bash", "shell", "local_shell", "exec_command", "run_shell_command"})
FILE_TOOLS = frozenset({"Edit", "MultiEdit", "Write", "Read", "NotebookEdit", "apply_patch"})


class Event(NamedTuple):
    """One event of a session."""

    name: str
    fields: Mapping[str, Any]

    def text(self, *names: str) -> str:
        """Return the first of these fields that holds text; empty if none does."""
        found = (self.fields.get(name) for name in names)
        return next((value for value in found if isinstance(value, str) and value), "")

    def is_set(self, name: str) -> bool:
        return self.fields.get(name) is True

    @property
    def session(self) -> str:
        return self.text("session_id")

    @property
    def transcript(self) -> str:
        """The file in which the harness records the session; empty if it keeps none."""
        return self.text("transcript_path")

    @property
    def folder(self) -> str:
        return self.text("cwd")

    @property
    def agent(self) -> str:
        """The name of the agent, if it has one: a subagent, or a member of a team."""
        return self.text("teammate_name", "agent_type")


def parsed(name: str, data: bytes) -> Event | None:
    """Parse an event; None if the bytes are not one."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return Event(name, found) if isinstance(found, dict) else None
