"""A turn: one thing that happened in a session, the same whichever agent's transcript told it.

Staged turns hold only what episodes are made of: what was asked, which tool was called on what, and
how it ended. What a tool answered is kept as far as it tells that; what an agent said is not.

This is the edge at which a transcript's values become text. Secrets and halves of characters are
replaced here, before anything is cut, and what is no text where text belongs is refused: whatever
is staged can be turned into an episode.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol, Self

from loki_memory.errors import InvalidRecord
from loki_memory.files.redaction import clip, clip_end, find_secrets, redact
from loki_memory.models.error_signature import complaint, head, is_shell

PROMPT, CALL, RESULT, STOP, END = "prompt", "call", "result", "stop", "end"
_ORDER = {PROMPT: 1, CALL: 2, RESULT: 3, STOP: 4, END: 5}  # of what happened at one moment

_ASKED = 4000  # characters of a prompt: what comes after is pasted
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


_NAMES = ("key", "session", "tool", "call", "cwd", "branch", "agent")  # fields that are short


class Dialect(Protocol):
    """How one agent writes its transcripts; there is one for each file that is read."""

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
    texts = "\n".join((*(getattr(turn, name) for name in _NAMES), turn.text, *turn.files))
    if not (_UNWRITABLE.search(texts) or find_secrets(texts)):
        return turn
    fields: dict[str, Any] = {name: _safe(getattr(turn, name)) for name in (*_NAMES, "text")}
    return turn._replace(**fields, files=tuple(map(_safe, turn.files)))


def _safe(text: str) -> str:
    return redact(writable(text))


def is_sound(turn: Turn) -> bool:
    """Whether an episode can be made of a turn: its fields are what they should be."""
    texts = (*(getattr(turn, name) for name in _NAMES), turn.text, *turn.files)
    if not all(isinstance(text, str) for text in texts) or not isinstance(turn.failed, bool):
        return False
    too_long = any(len(getattr(turn, name)) > _LONGEST_NAME for name in _NAMES)
    return not too_long and turn.kind in _ORDER and instant(turn.at) == turn.at


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


def result_text(text: str, *, failed: bool) -> str:
    """What of a tool's answer tells how it ended."""
    text = clean(text)
    if not failed:
        return clip(text, _SAID)
    text = redact(text)
    if len(text) <= _HEAD + _TAIL:
        return text
    return f"{clip(text, _HEAD)}\n…\n{clip_end(text, _TAIL)}"


def is_ours(tool: str, target: str) -> bool:
    """Whether a call asks memory itself: its answer is not remembered again."""
    if is_shell(tool):
        return _OUR_COMMAND.search(target) is not None
    return _OUR_TOOL.match(tool) is not None


def is_foreign(tool: str) -> bool:
    """Whether a tool answers with the words of third parties."""
    return _FOREIGN.match(tool) is not None


# -- Steps: calls of tools together with how they ended -------------------------------------------


_WORDS, _LABEL = 3, 40  # words and characters that tell a command from others
_CHAIN = re.compile(r"&&|\|\||[;\n]")


class Step(NamedTuple):
    """One call of a tool."""

    at: str
    tool: str
    target: str
    files: tuple[str, ...] = ()
    cwd: str = ""
    answer: str = ""
    failed: bool = False
    ended: bool = False  # it was answered at all

    @property
    def head(self) -> str:
        """`git commit` for a shell's command, else the tool."""
        return head(self.tool, self.target)

    @property
    def label(self) -> str:
        """The tool; of a shell's command line, how the command that the head names was begun."""
        if not self.is_shell:
            return self.tool
        parts = (part for part in _CHAIN.split(self.target) if head(self.tool, part) == self.head)
        words = next(parts, self.target).split("|")[0].split()
        return clip(" ".join(words[:_WORDS]), _LABEL)

    @property
    def heads(self) -> list[str]:
        """Those of all commands of a chain."""
        parts = _CHAIN.split(self.target) if self.is_shell else [self.target]
        return [found for part in parts if (found := head(self.tool, part))]

    @property
    def is_shell(self) -> bool:
        return is_shell(self.tool)

    @property
    def worked(self) -> bool:
        return self.ended and not self.failed

    @property
    def met_error(self) -> bool:
        """Whether it failed by itself: not because another call did, or a person said no."""
        first = self.answer.strip().partition("\n")[0]
        return self.failed and bool(complaint(self.answer) and complaint(first))


def steps(turns: Iterable[Turn]) -> list[Step]:
    """The calls among turns, in their order."""
    found: dict[str, Step] = {}
    for turn in turns:
        if turn.kind == CALL:
            found[turn.call or turn.key] = Step(turn.at, turn.tool, turn.text, turn.files, turn.cwd)
        elif turn.kind == RESULT and turn.call in found:
            found[turn.call] = found[turn.call]._replace(
                answer=turn.text, failed=turn.failed, ended=True
            )
    return list(found.values())


# -- Repairs: what an agent did about an error, found in the steps that followed it ---------------


_WITHIN = 25  # steps: what succeeds later belongs to something else
_BETWEEN = 3  # of the steps that led to it
_SHOWN = 200  # characters of a command
_CHANGE_FILES = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit", "apply_patch"})


def resolution(steps: Sequence[Step], at: int) -> str:
    """What resolved the error of the step `at`; empty if nothing did."""
    failed = steps[at]
    for end in range(at + 1, min(len(steps), at + 1 + _WITHIN)):
        if steps[end].worked and _is_same(failed, steps[end]):
            return _told(steps[at + 1 : end], failed, steps[end])
    return ""


def _is_same(failed: Step, later: Step) -> bool:
    if failed.tool != later.tool:
        return False
    if failed.is_shell:  # of a chain, what failed stands first or last
        heads = failed.heads
        return not {*heads[:1], *heads[-1:]}.isdisjoint(later.heads)
    return failed.tool not in _CHANGE_FILES or failed.files == later.files


def _told(between: Sequence[Step], failed: Step, later: Step) -> str:
    done = [step.head for step in between if step.worked and step.head != later.head]
    names = list(dict.fromkeys(reversed(done)))[:_BETWEEN][::-1]
    if not failed.is_shell:
        return ", then ".join([*names, later.tool]) if names else ""
    if later.target != failed.target:
        return clip(" ".join(later.target.split()), _SHOWN)
    return ", then ".join([*names, "the same command"]) if names else ""
