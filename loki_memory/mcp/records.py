"""Memories as tools show them: in one line, in full, or just written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from loki_memory.errors import InvalidRecord, LokiMemoryError, NotFound
from loki_memory.mcp.answers import HitLine, LinkEnd, WholeRecord, WriteAnswer, fits, piece
from loki_memory.models.kinds import article
from loki_memory.models.text import printable_line
from loki_memory.models.worded_lesson import refuse_long

if TYPE_CHECKING:
    from loki_memory.models import Memory
    from loki_memory.recall.result import Recollection
    from loki_memory.workspace import Workspace

WIDTH = 200  # characters of a line; `memory_get` has the full text
_SAYS = {
    "fact": "statement",
    "pattern": "pattern",
    "anti-pattern": "what_fails",
    "learning": "lesson",
}


def in_a_line(found: Recollection) -> HitLine:
    """Return a hit with what an agent needs to decide about opening it."""
    marks = {
        found.status: found.status != "active",
        found.scope: found.scope != "project",
        "stale": found.stale,
        "unverified": found.unverified,
        "not reviewed": found.unreviewed,
        **{f"contradicts {other}": True for other in found.contradicts},
    }
    return HitLine(
        id=found.id,
        kind=found.kind,
        title=printable_line(found.title, WIDTH),
        remedy=printable_line(found.remedy, WIDTH),
        excerpt=printable_line(found.excerpt, WIDTH),
        why=[printable_line(reason, WIDTH) for reason in found.why],
        score=round(found.score, 3),
        confidence=found.confidence,
        evidence=found.evidence,
        age_days=found.age_days,
        marks=[mark for mark, holds in marks.items() if holds],
        tokens=found.tokens,
    )


def opened(
    workspace: Workspace, memory_id: str, cursor: str | None = None, session: str | None = None
) -> WholeRecord:
    """Return a memory in full, and note that as a use of it."""
    memory_id = workspace.resolve(memory_id)
    record = reached(workspace, memory_id, session)
    out, back = workspace.browse.edges(memory_id)
    whole = WholeRecord(
        id=record.id,
        kind=record.kind,
        title=printable_line(record.title(), WIDTH),
        path=str(workspace.browse.where(memory_id)),
        record=record.document(),
        links=[LinkEnd(relation=relation, id=other) for relation, other in out],
        referred_to_by=[LinkEnd(relation=relation, id=other) for relation, other in back],
        text="",
        next_cursor=None,
    )
    if cursor is None:
        workspace.browse.opened(memory_id, session)
        if workspace.history.is_unverified(memory_id):
            workspace.notices.append("this record was edited by hand and is not committed")
        if workspace.history.is_unreviewed(memory_id):
            workspace.notices.append("this record came with a branch that nobody reviewed")
        if fits(whole):
            return whole
    return _in_parts(whole, cursor)


def reached(workspace: Workspace, memory_id: str, session: str | None = None) -> Memory:
    """A memory that this caller may open: one of a session only from that session."""
    record = workspace.get(memory_id)
    own = getattr(record, "session", None) or (record.model_extra or {}).get("session")
    if getattr(record, "scope", "") == "session" and (not session or session != own):
        raise NotFound(memory_id)
    return record


def _in_parts(whole: WholeRecord, cursor: str | None) -> WholeRecord:
    """Return the record and links as JSON text that continues on the next page."""
    content = {name: whole[name] for name in ("record", "links", "referred_to_by")}
    text, following = piece(orjson.dumps(content).decode(), cursor, whole["id"])
    return {
        **whole,
        "record": None,
        "links": [],
        "referred_to_by": [],
        "text": text,
        "next_cursor": following,
    }


def stored(workspace: Workspace, record: Memory) -> WriteAnswer:
    """Describe a record that was written."""
    return WriteAnswer(
        id=record.id,
        kind=record.kind,
        title=printable_line(record.title(), WIDTH),
        path=_path(workspace, record.id),
        status=getattr(record, "status", None) or "",
    )


def _path(workspace: Workspace, memory_id: str) -> str:
    try:
        return str(workspace.browse.where(memory_id))
    except LokiMemoryError:  # its file cannot be read just now, which a notice says
        return ""


def reworded(workspace: Workspace, memory_id: str, text: str) -> WriteAnswer:
    """Change the text of a statement; its earlier text stays in its history."""
    refuse_long(statement=text)
    record = reached(workspace, workspace.resolve(memory_id))
    if record.kind not in _SAYS:
        raise InvalidRecord(
            f"{article(record.kind)} is not one statement",
            field=record.id,
            advice="Correct its fields: loki-mem correct, or the core tool memory_correct.",
        )
    return stored(workspace, workspace.correct(record.id, **{_SAYS[record.kind]: text}))


def forgotten(workspace: Workspace, memory_id: str) -> list[str]:
    """Forget a memory, and return all ids that went with it. `loki-mem restore` undoes it."""
    found = reached(workspace, workspace.resolve(memory_id))
    gone = workspace.forget(found.id, why="an agent asked for it")
    return gone.removed
