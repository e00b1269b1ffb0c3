"""Decisions of a review: accept, edit, reject, merge with another belief, and commit."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.responses import Response

from loki_memory.errors import InvalidRecord
from loki_memory.models import Memory
from loki_memory.models.text import shorten
from loki_memory.ui.page import Visit, page, render, write
from loki_memory.ui.pages.belief_edits import put_back, wrote

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace

_PAGE = "/review"
_SIMILAR = 8  # beliefs to merge with that are offered
_BELIEFS = ("pattern", "anti-pattern", "fact")
_LONGEST = 300  # characters of a title, and of a question
_QUOTED = 80  # characters of a title in the words about a decision


class SimilarBelief(NamedTuple):
    """A belief that may speak for another one too."""

    id: str
    title: str
    status: str
    confidence: float | None


class MergePage(NamedTuple):
    """The data of the page on which a belief to merge with is chosen."""

    id: str
    title: str
    q: str  # the words that were searched for instead of the title
    similar: list[SimilarBelief]


def merge_page(workspace: Workspace, record: Memory, question: str = "") -> MergePage:
    """Collect the beliefs of the same kind that are most similar to one."""
    kinds = (record.kind,) if record.kind in _BELIEFS else _BELIEFS
    asked = question or _title(record)
    found, _ = workspace.browse.search(asked, _SIMILAR + 1, kinds=kinds)
    similar = [
        SimilarBelief(hit.id, shorten(hit.title, _LONGEST), hit.status, hit.confidence)
        for hit in found
        if hit.id != record.id
    ]
    return MergePage(record.id, _title(record), question, similar[:_SIMILAR])


def _title(record: Memory) -> str:
    return shorten(record.title(), _LONGEST)


def choose_heir(visit: Visit) -> Response:
    """Show the beliefs with which a card can be merged."""
    return render(visit, "merge.html", merge_page(visit.workspace, _card(visit), visit.query("q")))


def _card(visit: Visit) -> Memory:
    return visit.workspace.get(visit.workspace.resolve(visit.parameter("id")))


def _named(record: Memory) -> str:
    return f"“{shorten(record.title(), _QUOTED)}”"


def _is_shared(workspace: Workspace, memory_id: str) -> bool:
    """Check if a memory is a file that others get too."""
    return workspace.browse.where(memory_id).is_relative_to(workspace.layout.memory)


def accept(visit: Visit) -> Response:
    """Let a belief stand; a candidate becomes a file of the shared memory."""
    record = _card(visit)
    undo = _undo_accept(visit.workspace, record)
    visit.workspace.history.approve(record.id)
    _publish(visit.workspace)
    return wrote(visit, f"Accepted {_named(record)}", _PAGE, undo)


def edit(visit: Visit) -> Response:
    """Change the words of a belief, and let it stand in that form."""
    record = _card(visit)
    text = visit.form.get("text", "").replace("\r\n", "\n").strip()
    if not text:
        raise InvalidRecord("a belief needs words", advice="Write a statement, or reject it.")
    undo = _undo_accept(visit.workspace, record)
    visit.workspace.history.reword(record.id, text)
    _publish(visit.workspace)
    return wrote(visit, f"Edited and accepted {_named(record)}", _PAGE, undo)


def _publish(workspace: Workspace) -> None:
    """Write accepted candidates as files, as `loki-mem review` does."""
    workspace.consolidate(learn=False, commit=False)


def _undo_accept(workspace: Workspace, record: Memory) -> partial[None]:
    if _is_shared(workspace, record.id):
        return partial(put_back, workspace, record)
    return partial(_withdraw, workspace, record.id)


def _withdraw(workspace: Workspace, memory_id: str) -> None:
    """Take a published candidate back: sessions of this machine make it a candidate again."""
    workspace.forget(memory_id)
    workspace.consolidate(reach="nothing", commit=False)
    workspace.flush()


def reject(visit: Visit) -> Response:
    record = _card(visit)
    visit.workspace.reject(record.id, visit.form.get("why", "").strip())
    undo = partial(visit.workspace.restore, record.id)
    return wrote(visit, f"Rejected {_named(record)}", _PAGE, undo)


def merge(visit: Visit) -> Response:
    """Let another belief speak for this one too."""
    record, other = _card(visit), visit.form.get("with", "").strip()
    if not other:
        raise InvalidRecord("no belief is named", advice="Choose the one that stays.")
    heir = visit.workspace.supersede(record.id, visit.workspace.resolve(other))
    undo = partial(put_back, visit.workspace, record)
    return wrote(visit, f"Merged {_named(record)} with {heir.id}", _PAGE, undo)


def commit(visit: Visit) -> Response:
    """Commit memory and nothing else, as `loki-mem commit` does."""
    done = visit.workspace.history.commit(subject=visit.form.get("subject", "").strip())
    return wrote(visit, " ".join(done.remarks()) or "Nothing to commit.", _PAGE)


routes = [
    *write("/review/commit", commit),
    *write("/review/{id}/accept", accept),
    *write("/review/{id}/edit", edit),
    *write("/review/{id}/reject", reject),
    *page("/review/{id}/merge", choose_heir),
    *write("/review/{id}/merge", merge),
]
shapes: dict[str, Any] = {"merge": MergePage}
