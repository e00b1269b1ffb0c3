"""Lines that are told: what passed the gate, worded, and journaled with its cost."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.injection.line import bullet, line, line_of_hit, told_text
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
