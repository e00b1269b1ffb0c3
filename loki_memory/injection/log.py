"""Injections: the memories that a session got unasked, when, and on what occasion.

They come from the journal of this machine. It keeps the latest lines whole and folds older ones
into totals, so this goes back some hundred injections.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.index.queries import titles
from loki_memory.journal import name_of

if TYPE_CHECKING:
    from loki_memory.homes import OpenWorkspace

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
    for line in workspace.home.journal.recent():
        entry = _injection(line)
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
