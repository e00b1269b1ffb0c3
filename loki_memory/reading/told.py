"""One memory as it is put before an agent: what it says, how sure that is, and the line for it."""

from __future__ import annotations

import json  # not orjson, which takes longer to load: a line is told before every prompt
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.continuity.line import Line
from loki_memory.models.prompt_injection import gives_instructions, pipes_download
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
    status: str = "active"


def told_of(workspace: Workspace, hit: Recollection) -> Told:
    """What a memory comes to, read from its record; without text if it is not to be told."""
    for home in workspace.homes():
        body = home.index.body(hit.id)
        if body is not None:
            record = json.loads(body[1])
            return told_as(hit, tellable(hit.kind, record, gist(hit.kind, hit.title, record)))
    return told_as(hit, hit.title)


def told_as(hit: Recollection, text: str) -> Told:
    """A memory with the text that it is told by."""
    fields = (hit.kind, text, hit.confidence, hit.evidence, hit.score, hit.status)
    return Told(hit.id, *fields)


def tellable(kind: str, record: Mapping[str, Any], text: str) -> str:
    """The text of a memory; nothing if somebody may have planted it.

    A command that pipes a download into a shell is put before nobody. Words to the reader are
    nobody's lesson where a command printed them: in errors that consolidation made warnings and
    learnings of. What people and agents put into words may be addressed to whom they like.
    """
    if pipes_download(text) or (_was_printed(kind, record) and gives_instructions(text)):
        return ""
    return text


def _was_printed(kind: str, record: Mapping[str, Any]) -> bool:
    """Whether the words are a command's: consolidation writes a key, or both parts of a lesson."""
    if kind == "learning":
        return bool(record.get("error") and record.get("resolution"))
    return kind == "anti-pattern" and "key" in record


def line(told: Told) -> Line:
    """A memory as a line of Markdown that can be nothing else."""
    name = told.id.removeprefix("skill-") if told.kind == "skill" else told.id
    notes = ["candidate"] if told.status == "candidate" else []
    if told.confidence is not None:
        notes.append(f"confidence {told.confidence:g}")
    if told.evidence > 1:
        notes.append(f"{told.evidence} episodes")
    return Line(name, told.kind, told.text, ", ".join(notes))
