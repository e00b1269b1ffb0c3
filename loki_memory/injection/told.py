"""Lines that are told: worded, without repetitions, journaled with their cost, and the log of them.

One lesson is told once. A routine that sessions follow and the rule that somebody stated about it
are two memories and one lesson: a line repeats another if all its content words are there too,
whatever their endings.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.index.queries import titles
from loki_memory.injection.line import (
    ASKED,
    ProgramAdvice,
    bullet,
    line,
    line_of_hit,
    program_advice,
    told_text,
)
from loki_memory.journal import name_of
from loki_memory.models.text import tokens
from loki_memory.recall.result import Recollection

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace
    from loki_memory.injection.gate import Gate


class ToldLine(NamedTuple):
    """A memory and the line that tells it."""

    id: str  # empty if it tells no memory: a gate that fails
    text: str
    others: tuple[str, ...] = ()  # further memories that the line tells


def told_lines(
    gate: Gate, hits: Iterable[Recollection], at_place: Container[str] = ()
) -> Iterator[ToldLine]:
    """The lines of memories that pass the gate; the others are left out."""
    for hit, record in gate.passed(hits, at_place):
        text = told_text(gate.workspace, hit, record)
        told = bullet(line(line_of_hit(hit, text)))
        if told:
            yield ToldLine(hit.id, told)


def note_told(
    workspace: OpenWorkspace, lines: Sequence[ToldLine], surface: str, why: str, session: str
) -> None:
    """Journal the memories that a session was told, with what reading them costs."""
    memories = [(told.id, tokens(told.text)) for told in lines if told.id]
    memories += [(other, 0) for told in lines for other in told.others]
    if memories:
        workspace.home.journal.shown(
            memories,
            surface=surface,
            query=why,
            session=session,
            now=workspace.now(),
        )


# -- one lesson is told once -----------------------------------------------------------------------


_MARK = re.compile(rf"^- \[[^\]]*\] (?:{ASKED})?|\((?:not confirmed|\d+ episodes?)(?:, [^()]*)?\)$")
_EMPHASIS = frozenset({"always", "please", "every", "each", "sure", "must", "should", "first"})
_NEGATION = re.compile(r"\b(?:never|not|no|without|avoid|instead)\b|n't\b", re.IGNORECASE)
_RUNS = re.compile(r"- \[[^\]]*\] Run `([^`]+)`")
_STEM = 6  # letters: commit, committing, committed
_LEAST = 3  # words of a line that can be compared


def repeats(line: str, earlier: str) -> bool:
    """Check if a line says nothing that an earlier line has not said.

    >>> routine = "- [fact-1] Before a commit, run `make lint` and `make test`."
    >>> repeats("- [fact-2] Please always run `make lint` before committing", routine)
    True
    >>> repeats("- [fact-4] Run `make lint && make test` to verify code style", routine)
    True
    >>> repeats("- [fact-3] Never run `make lint` before committing", routine)
    False
    """
    if (advised := _advised(line)) and advised == _advised(earlier):
        return True
    if (run := _RUNS.match(line)) and all(part in earlier for part in run[1].split(" && ")):
        return True
    said = _words(line)
    if len(said) < _LEAST or not said <= _words(earlier):
        return False
    return bool(_NEGATION.search(line)) == bool(_NEGATION.search(earlier))


def _advised(line: str) -> ProgramAdvice | None:
    return program_advice(_MARK.sub("", line).lstrip())


def distinct(lines: Iterable[ToldLine]) -> list[ToldLine]:
    """The lines without those of which another one says all, which stands for them."""
    kept: list[ToldLine] = []
    for told in lines:
        if not told.text:
            continue
        at = next((at for at, other in enumerate(kept) if _says_the_same(told, other)), None)
        if at is None:
            kept.append(told)
        else:
            kept[at] = _joined(kept[at], told)
    return kept


def distinct_texts(lines: Iterable[str]) -> list[str]:
    """The same for lines whose memories are not journaled."""
    return [told.text for told in distinct(ToldLine("", line) for line in lines)]


def _says_the_same(told: ToldLine, other: ToldLine) -> bool:
    if told.id and told.id in {other.id, *other.others}:
        return True
    return repeats(told.text, other.text) or repeats(other.text, told.text)


def _joined(kept: ToldLine, told: ToldLine) -> ToldLine:
    """The line of two that says all that both say."""
    first, second = (kept, told) if repeats(told.text, kept.text) else (told, kept)
    if kept.id and kept.id == told.id:
        first, second = kept, told
    others = {*first.others, second.id, *second.others} - {first.id, ""}
    return first._replace(others=tuple(sorted(others)))


def _words(line: str) -> set[str]:
    from loki_memory.recall.question import ask

    words = ask(_MARK.sub("", line)).words
    return {word[:_STEM] for word in words if word not in _EMPHASIS}


# -- the log of what was told ----------------------------------------------------------------------

# It comes from the journal of this machine, which keeps the latest lines whole and folds older ones
# into totals: so it goes back some hundred injections.

# Surfaces that inject memory into a session that did not ask for it in words of its own.
_SURFACES = ("hook:", "context", "continuity")


class Injected(NamedTuple):
    """One memory that was injected; the title is empty where it is gone."""

    id: str
    title: str


class Injection(NamedTuple):
    """The memories that were injected at one time."""

    at: str
    session: str
    occasion: str  # `hook:UserPromptSubmit`, `context`, `continuity`
    why: str  # the prompt, the goal or the error that was the occasion
    memories: list[Injected]
    tokens: int


def injections(workspace: OpenWorkspace, session: str | None = None) -> list[Injection]:
    """The latest injections, newest last; `session` may be the beginning of an id."""
    wanted = name_of(session)
    found = [entry for entry in _all(workspace) if entry.session.startswith(wanted)]
    titles = _titles(workspace, {memory.id for entry in found for memory in entry.memories})
    return [
        entry._replace(
            memories=[memory._replace(title=titles.get(memory.id, "")) for memory in entry.memories]
        )
        for entry in found
    ]


def _all(workspace: OpenWorkspace) -> Iterator[Injection]:
    for written in workspace.home.journal.recent():
        entry = _injection(written)
        if entry is not None and entry.memories:
            yield entry


def _injection(line: Any) -> Injection | None:
    """Parse a line of the journal; None if it is about something else, or not ours."""
    try:
        if line["act"] != "shown" or not str(line["surface"]).startswith(_SURFACES):
            return None
        return Injection(
            at=str(line["at"]),
            session=str(line["session"]),
            occasion=str(line["surface"]),
            why=str(line["query"]),
            memories=[Injected(str(name), "") for name, _ in line["ids"]],
            tokens=int(line["offered"]),
        )
    except (KeyError, TypeError, ValueError):
        return None


def _titles(workspace: OpenWorkspace, ids: set[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for home in workspace.homes:
        home.ensure("folders")
        found |= titles(home.index, sorted(ids))
    return found
