"""Rules that all doors share: which lines are worth telling, and what a session was told before.

`index.gate` decides by what a memory is: trusted, proven, not a raw prompt. Here are the rules that
need its words or the session: an extracted sentence must read as a lesson, nothing is told twice
in a session, and what is told is journaled with the tokens of the whole line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.injection.line import bullet, gist, line, line_of_hit, record_of, tellable
from loki_memory.models.lesson_text import USERS_WORDS, objection
from loki_memory.models.text import tokens
from loki_memory.recall.result import Recollection

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace

# A session that began, or lost its context, may be told everything again. What was told to its
# subagents does not count.
_BEGINNING = "hook:SessionStart"
_DOORS = (_BEGINNING, "hook:UserPromptSubmit", "hook:PreToolUse")


class ToldLine(NamedTuple):
    """A memory and the line that tells it."""

    id: str  # empty if it tells no memory: a gate that fails
    text: str


def told_lines(workspace: Workspace, hits: Iterable[Recollection]) -> Iterator[ToldLine]:
    """The lines of memories that are worth telling; the others are left out."""
    for hit in hits:
        record = record_of(workspace, hit.id)
        if not reads_as_lesson(hit.kind, record):
            continue
        text = tellable(hit.kind, record, gist(hit.kind, hit.title, record))
        told = bullet(line(line_of_hit(hit, text)))
        if told:
            yield ToldLine(hit.id, told)


def reads_as_lesson(kind: str, record: Mapping[str, Any]) -> bool:
    """Check if a memory says something to a reader who has not asked.

    What somebody put into words does. A sentence that was extracted from a session must read as a
    lesson.
    """
    key = record.get("key")
    if kind != "fact" or not isinstance(key, Mapping) or "statement" not in key:
        return True
    statement = str(record.get("statement") or "")
    return not objection(statement, is_stated=record.get("type") in USERS_WORDS)


def note_told(
    workspace: Workspace, lines: Sequence[ToldLine], surface: str, why: str, session: str
) -> None:
    """Journal the memories that a session was told, with what reading them costs."""
    memories = [(told.id, tokens(told.text)) for told in lines if told.id]
    if memories:
        workspace.journal.shown(
            memories,
            surface=surface,
            query=why,
            session=session,
            now=workspace.now(),
        )


def told_before(workspace: Workspace, session: str) -> set[str]:
    """The memories that a session was told since it began, or was compacted."""
    from loki_memory.journal import name_of

    known: set[str] = set()
    for surface, ids in _told(workspace, name_of(session)) if session else ():
        known = ids if surface == _BEGINNING else known | ids
    return known


def _told(workspace: Workspace, session: str) -> Iterator[tuple[str, set[str]]]:
    """The latest lines of the journal about a session, by door; foreign ones are skipped."""
    try:
        entries = workspace.journal.recent()
    except OSError:
        return
    for entry in entries:
        with suppress(KeyError, TypeError, ValueError):
            if entry["session"] == session and entry["surface"] in _DOORS:
                yield entry["surface"], {str(name) for name, _ in entry["ids"]}
