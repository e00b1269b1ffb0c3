"""One memory as it is put before an agent: what it says, how sure that is, and the line for it."""

from __future__ import annotations

import json  # not orjson, which takes longer to load: a line is told before every prompt
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.continuity.line import Line
from loki_memory.reading.gist import gist
from loki_memory.recall.recollection import Recollection

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace


class Told(NamedTuple):
    """One memory as it is put before an agent."""

    id: str
    kind: str
    text: str
    confidence: float | None
    evidence: int
    score: float


def told_of(workspace: Workspace, hit: Recollection) -> Told:
    """What a memory comes to, read from its record."""
    for home in workspace.homes():
        body = home.index.body(hit.id)
        if body is not None:
            text = gist(hit.kind, hit.title, json.loads(body[1]))
            return Told(hit.id, hit.kind, text, hit.confidence, hit.evidence, hit.score)
    return Told(hit.id, hit.kind, hit.title, hit.confidence, hit.evidence, hit.score)


def line(told: Told) -> Line:
    """A memory as a line of Markdown that can be nothing else."""
    name = told.id.removeprefix("skill-") if told.kind == "skill" else told.id
    notes = []
    if told.confidence is not None:
        notes.append(f"confidence {told.confidence:g}")
    if told.evidence > 1:
        notes.append(f"{told.evidence} episodes")
    return Line(name, told.kind, told.text, ", ".join(notes))
