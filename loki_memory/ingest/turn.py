"""A turn: one thing that happened in a session, the same whichever agent's transcript told it.

Staged turns hold only what episodes are made of: what was asked, which tool was called on what, and
how it ended. What a tool answered is kept as far as it tells that; what an agent said is not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol, Self

from loki_memory.models.command import is_shell

PROMPT, CALL, RESULT, STOP, END = "prompt", "call", "result", "stop", "end"
_ORDER = {PROMPT: 1, CALL: 2, RESULT: 3, STOP: 4, END: 5}  # of what happened at one moment

_ASKED = 4000  # characters of a prompt: what comes after is pasted
_DONE = 2000  # of a command
_SAID = 300  # of a result that is no error: git says here what it committed
_HEAD, _TAIL = 1200, 800  # of an error: what went wrong stands at the top or at the bottom

_INSTANT = "%Y-%m-%dT%H:%M:%S.%f"
_PRIVATE = re.compile(r"<private>.*?(?:</private>|\Z)", re.DOTALL | re.IGNORECASE)
# What memory put into the session: the block of CONTINUITY.md, and what hooks inject.
_OURS = re.compile(
    r"<!-- loki-memory:begin.*?(?:<!-- loki-memory:end -->|\Z)"
    r"|<loki-memory\b.*?(?:</loki-memory>|\Z)",
    re.DOTALL,
)
_OUR_TOOL = re.compile(r"mcp__(?:plugin_)?loki[\w-]*__|memory_\w+$|handoff_\w+$")
_OUR_COMMAND = re.compile(r"(?:^|[;&|]\s*)(?:uvx? +(?:run +)?|python3? -m +)?loki[-_]mem(?:ory)?\b")
_FOREIGN = re.compile(r"mcp__|Web(?:Fetch|Search)$|web_search$")
_HALF = re.compile("[\ud800-\udfff]")  # of a surrogate pair: UTF-8 has no such thing


class Turn(NamedTuple):
    """One prompt, call, result or stop."""

    key: str  # its uuid in the transcript, and which part of that it is
    session: str
    at: str
    kind: str
    text: str = ""  # what was asked, what a tool was given, what it answered
    tool: str = ""
    call: str = ""  # joins a result to its call
    failed: bool = False
    files: tuple[str, ...] = ()  # that a call names
    cwd: str = ""
    branch: str = ""
    agent: str = ""

    def order(self) -> tuple[str, int, str]:
        """Turns in the order in which they happened, whatever order they were read in."""
        return (self.at, _ORDER.get(self.kind, 0), self.key)


class Dialect(Protocol):
    """How one agent writes its transcripts; there is one for each file that is read."""

    name: str

    @classmethod
    def reading(cls, first: Mapping[str, Any]) -> Self | None:
        """The dialect for a file; None if it is not written in it."""

    def turns(self, value: Mapping[str, Any]) -> list[Turn] | None:
        """The turns that a value tells, perhaps none; None if it is no value of this dialect."""


def instant(text: object) -> str:
    """A moment as turns are ordered by: UTC, to the millisecond; empty if it is none."""
    try:
        when = datetime.fromisoformat(text) if isinstance(text, str) else None
        if when is None:
            return ""
        when = when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return ""
    return f"{when.strftime(_INSTANT)[:-3]}Z"


def clean(text: str) -> str:
    """Text without what is private and without what memory itself said."""
    if "<" in text:
        text = _OURS.sub(" ", _PRIVATE.sub(" ", text))
    return _HALF.sub("\ufffd", text).strip()


def asked(text: str) -> str:
    return clean(text)[:_ASKED]


def given(text: str) -> str:
    return clean(text)[:_DONE]


def answered(text: str, *, failed: bool) -> str:
    """What of a tool's answer tells how it ended."""
    text = clean(text)
    if not failed:
        return text[:_SAID]
    if len(text) <= _HEAD + _TAIL:
        return text
    return f"{text[:_HEAD]}\n…\n{text[-_TAIL:]}"


def is_ours(tool: str, target: str) -> bool:
    """Whether a call asks memory itself: its answer is not remembered again."""
    if is_shell(tool):
        return _OUR_COMMAND.search(target) is not None
    return _OUR_TOOL.match(tool) is not None


def is_foreign(tool: str) -> bool:
    """Whether a tool answers with the words of third parties."""
    return _FOREIGN.match(tool) is not None
