"""Injections: what was put into which session unasked, when, and on what occasion.

The journal of this machine knows it. It keeps the latest lines whole and folds older ones into
totals, so this goes back some hundred injections.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.journal import name_of

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace

# Where memory is put before an agent that did not ask for it in words of its own.
_SURFACES = ("hook:", "context", "continuity")


class Injected(NamedTuple):
    """One memory that was told; the title is empty where it is gone."""

    id: str
    title: str


class Injection(NamedTuple):
    """What was told at one moment."""

    at: str
    session: str
    occasion: str  # `hook:UserPromptSubmit`, `context`, `continuity`
    why: str  # the prompt, the goal or the error that it was told for
    memories: list[Injected]
    tokens: int


def injections(workspace: Workspace, session: str | None = None) -> list[Injection]:
    """What was told lately, newest last; `session` may be the beginning of one's id."""
    wanted = name_of(session)
    found = [one for one in _all(workspace) if one.session.startswith(wanted)]
    titles = _titles(workspace, {told.id for one in found for told in one.memories})
    return [
        one._replace(
            memories=[told._replace(title=titles.get(told.id, "")) for told in one.memories]
        )
        for one in found
    ]


def _all(workspace: Workspace) -> Iterator[Injection]:
    for line in workspace.journal.recent():
        one = _injection(line)
        if one is not None and one.memories:
            yield one


def _injection(line: Any) -> Injection | None:
    """A line of the journal; None if it is of something else, or not ours."""
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


def _titles(workspace: Workspace, ids: set[str]) -> dict[str, str]:
    marks = ",".join("?" * len(ids))
    sql = f"SELECT id, title FROM memories WHERE id IN ({marks})"  # noqa: S608 - marks only
    titles: dict[str, str] = {}
    for home in workspace.homes():
        home.refresh()
        titles |= dict(home.index.ask(sql, *sorted(ids)))
    return titles
