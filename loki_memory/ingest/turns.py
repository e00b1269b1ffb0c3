"""A turn: one thing that happened in a session, the same whichever agent's transcript told it.

Staged turns hold only what episodes are made of: what was asked, what the agent said and wrote in
prose, which tool was called on what, which lines of files it changed, and how it ended. Answers of
tools are kept as far as they tell that; the agent's thinking is not kept.

This is the edge at which a transcript's values become text. Secrets and halves of characters are
replaced here, before anything is cut, and what is no text where text belongs is refused: whatever
is staged can be turned into an episode.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple, Protocol, Self

from loki_memory.errors import InvalidRecord
from loki_memory.files.redaction import clip, clip_end, find_secrets, redact
from loki_memory.models.error_signature import is_shell, without_startup

PROMPT, CALL, RESULT, STOP, END = "prompt", "call", "result", "stop", "end"
SAY, COMPACT = "say", "compact"  # prose of the agent; the summary with which it goes on
# The order of what happened at one moment: an agent announces a call before it makes it.
_ORDER = {COMPACT: 0, PROMPT: 1, SAY: 1.5, CALL: 2, RESULT: 3, STOP: 4, END: 5}

_ASKED = 16_000  # characters of a prompt: what comes after is pasted
_PROSE = 4000  # of what an agent said or wrote in one turn
_SUMMARY = 16_000  # of the summary that replaces a whole conversation
_HUNKS, _LINES, _LINE = 8, 10, 200  # of a change: hunks, lines of each side, characters of a line
_DONE = 2000  # of a command
_SAID = 300  # of a result that is no error: git says here what it committed
_HEAD, _TAIL = 1200, 800  # of an error: what went wrong stands at the top or at the bottom

_LONGEST_NAME = 4096  # characters of an id or a folder, as long as a path may be
_FIRST_YEAR = 1000  # before it, dates are not written with four digits everywhere
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
# Halves of surrogate pairs, which UTF-8 does not have, and NUL, which no record may hold.
_UNWRITABLE = re.compile("[\0\ud800-\udfff]")


class Hunk(NamedTuple):
    """Lines of a file that a call replaced by others."""

    path: str
    line: int  # the first that changed; 0 if it is unknown
    removed: str
    added: str


class Turn(NamedTuple):
    """One prompt, message, call, result or stop."""

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
    written: str = ""  # prose that a call puts down: a commit's message, comments, a document
    hunks: tuple[Hunk, ...] = ()  # that a call changed
    seen: str = ""  # marks of all words of a result: see `seen_words`
    # What `seen_words` finds out; never staged.
    repeated: str = ""  # sentences that repeat what a tool printed, taken out of `text`, `written`
    is_dictated: bool = False  # the command stood in what a tool printed

    def order(self) -> tuple[str, float, str]:
        """Turns in the order in which they happened, whatever order they were read in."""
        return (self.at, _ORDER.get(self.kind, 0), self.key)


_NAMES = ("key", "session", "tool", "call", "cwd", "branch", "agent")  # fields that are short
_NAMED = attrgetter(*_NAMES)


class Dialect(Protocol):
    """A dialect: how one agent writes its transcripts; there is one for each file that is read."""

    name: str

    @classmethod
    def reading(cls, first: Mapping[str, Any]) -> Self | None:
        """The dialect for a file; None if it is not written in it."""

    def turns(self, value: Mapping[str, Any]) -> list[Turn] | None:
        """The turns that a value tells, perhaps none; None if it is no value of this dialect.

        Raises InvalidRecord for one that should tell a turn and cannot.
        """


# -- fields of a transcript's values ---------------------------------------------------------------


def text_in(value: Mapping[str, Any], name: str) -> str:
    """A field that holds text; empty if it is absent. Raises InvalidRecord for anything else."""
    found = value.get(name)
    if found is None or isinstance(found, str):
        return found or ""
    raise InvalidRecord(f"is {_shape(found)}, not text", field=name)


def name_in(value: Mapping[str, Any], name: str) -> str:
    """Like `text_in`, for a name, an id or a folder: what is too long to be one is refused."""
    found = text_in(value, name)
    if len(found) > _LONGEST_NAME:
        raise InvalidRecord(f"is longer than {_LONGEST_NAME:,} characters", field=name)
    return found


def id_in(value: Mapping[str, Any], name: str) -> str:
    """Like `name_in`, for what must be there."""
    found = name_in(value, name)
    if not found:
        raise InvalidRecord("is missing", field=name)
    return found


def flag_in(value: Mapping[str, Any], name: str) -> bool:
    """A field that is true or false; false if it is absent. Raises InvalidRecord otherwise."""
    found = value.get(name)
    if found is None or isinstance(found, bool):
        return bool(found)
    raise InvalidRecord(f"is {_shape(found)}, not true or false", field=name)


def objects_in(found: Any, name: str) -> list[Mapping[str, Any]]:
    """Objects of a list, none if there is no list. Raises InvalidRecord for anything else."""
    listed = [] if found is None else found
    if not isinstance(listed, list) or not all(isinstance(each, Mapping) for each in listed):
        raise InvalidRecord("is no list of objects", field=name)
    return listed


def instant_in(value: Mapping[str, Any], name: str) -> str:
    """A field that holds a moment, as turns are ordered by. Raises InvalidRecord for others."""
    found = instant(id_in(value, name))
    if not found:
        raise InvalidRecord("is no moment", field=name)
    return found


def _shape(value: object) -> str:
    kinds = {bool: "true or false", dict: "an object", list: "a list", str: "text"}
    return kinds.get(type(value), "a number")


def instant(text: object) -> str:
    """A moment as turns are ordered by: UTC, to the millisecond; empty if it is none."""
    try:
        when = datetime.fromisoformat(text) if isinstance(text, str) else None
        if when is None:
            return ""
        when = when.astimezone(UTC) if when.tzinfo else when
    except (ValueError, OverflowError):
        return ""
    if when.year < _FIRST_YEAR:
        return ""
    return f"{when.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def checked(turn: Turn) -> Turn:
    """A turn as it may be staged, without secrets. Raises InvalidRecord if it is none.

    Whichever way a text came here, this is the last door before the disk.
    """
    if not is_sound(turn):
        raise InvalidRecord("no episode can be made of it")
    texts = "\n".join(_texts(turn))
    if not (_UNWRITABLE.search(texts) or find_secrets(texts)):
        return turn
    names = (*_NAMES, "text", "written")
    fields: dict[str, Any] = {name: _safe(getattr(turn, name)) for name in names}
    hunks = tuple(
        Hunk(_safe(path), line, _safe(removed), _safe(added))
        for path, line, removed, added in turn.hunks
    )
    return turn._replace(**fields, files=tuple(map(_safe, turn.files)), hunks=hunks)


def _texts(turn: Turn) -> list[str]:
    """All texts of a turn, those of `_NAMES` first."""
    texts = [*_NAMED(turn), turn.text, turn.written, *turn.files]
    for hunk in turn.hunks:
        texts += (hunk.path, hunk.removed, hunk.added)
    return texts


def _safe(text: str) -> str:
    return redact(writable(text))


def is_sound(turn: Turn) -> bool:
    """Check whether an episode can be made of a turn: its fields are what they should be."""
    texts = _texts(turn)
    if not (_are(texts, str) and _are([hunk.line for hunk in turn.hunks], int)):
        return False
    if (turn.failed is not True and turn.failed is not False) or type(turn.seen) is not str:
        return False
    too_long = max(map(len, texts[: len(_NAMES)])) > _LONGEST_NAME
    return not too_long and turn.kind in _ORDER and _is_instant(turn.at)


def _are(values: Iterable[object], kind: type) -> bool:
    return set(map(type, values)) <= {kind}


def _is_instant(at: object) -> bool:
    """Check whether a moment is written as `instant` writes it."""
    return isinstance(at, str) and instant(at) == at


def writable(text: str) -> str:
    """Text with U+FFFD in place of each character that no record may hold."""
    return text if text.isprintable() else _UNWRITABLE.sub("\ufffd", text)


# -- what is kept of a text ------------------------------------------------------------------------


def clean(text: str) -> str:
    """Text without what is private and without what memory itself said."""
    if "<" in text:
        text = _OURS.sub(" ", _PRIVATE.sub(" ", text))
    return writable(text).strip()


def prompt_text(text: str) -> str:
    return clip(clean(text), _ASKED)


def argument_text(text: str) -> str:
    return clip(clean(text), _DONE)


def prose_text(text: str) -> str:
    return clip(clean(text), _PROSE)


def summary_text(text: str) -> str:
    return clip(clean(text), _SUMMARY)


def hunk(path: str, line: int, removed: Iterable[str], added: Iterable[str]) -> Hunk:
    """A hunk whose text is cut to what a reader needs to recognise the change."""
    return Hunk(path, max(0, line), _side(removed), _side(added))


def _side(lines: Iterable[str]) -> str:
    """The first lines, each cut; secrets are replaced before, for one may go over several lines."""
    whole = redact(clean("\n".join(islice(lines, _LINES * 4))))
    lines = whole.split("\n")[:_LINES]
    return "\n".join(each if len(each) <= _LINE else clip(each, _LINE) for each in lines)


def first_hunks(hunks: Iterable[Hunk]) -> tuple[Hunk, ...]:
    return tuple(islice(hunks, _HUNKS))


def result_text(text: str, *, failed: bool) -> str:
    """Return what of a tool's answer tells how it ended."""
    text = without_startup(clean(text))
    if not failed:
        return clip(text, _SAID)
    text = redact(text)
    if len(text) <= _HEAD + _TAIL:
        return text
    return f"{clip(text, _HEAD)}\n…\n{clip_end(text, _TAIL)}"


def is_ours(tool: str, target: str) -> bool:
    """Check whether a call asks memory itself: its answer is not remembered again."""
    if is_shell(tool):
        return _OUR_COMMAND.search(target) is not None
    return _OUR_TOOL.match(tool) is not None


def is_foreign(tool: str) -> bool:
    """Check whether a tool answers with the words of third parties."""
    return _FOREIGN.match(tool) is not None
