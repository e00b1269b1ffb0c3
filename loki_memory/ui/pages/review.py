"""Review: lessons that wait and changes that nobody has read, as cards to decide about.

A decision accepts, edits or rejects a belief, merges it with another one, or commits.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.responses import Response

from loki_memory.errors import InvalidRecord, LokiMemoryError, NoHistory
from loki_memory.models import Memory
from loki_memory.models.text import shorten
from loki_memory.ui.page import Visit, page, render, write, wrote
from loki_memory.ui.pages.belief import EDITABLE, put_back, quoted_title
from loki_memory.ui.site import derived

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace

_MOST = 50  # cards of each group: more is no queue that a person works through
_PATCHES = 20  # files whose lines are shown
_LONGEST = 2000  # characters of one text
_PAGE = "/review"
_SIMILAR = 8  # beliefs to merge with that are offered
_BELIEFS = ("pattern", "anti-pattern", "fact")
_TITLE = 300  # characters of a title, and of a question
_REMEDIES = ("prevention", "correct_approach")


class CardEvidence(NamedTuple):
    """An episode behind a card."""

    id: str
    goal: str
    outcome: str
    agent: str


class ReviewCard(NamedTuple):
    """A belief to decide about."""

    id: str
    what: str  # candidate, learned, added, …
    kind: str
    type: str
    title: str
    remedy: str
    confidence: str
    statement: str  # the text that can be edited; empty if the kind has none
    details: list[str]
    evidence: list[CardEvidence]
    lesson: str  # the key that cards of one lesson share


class LessonGroup(NamedTuple):
    """The cards of one lesson: a pattern and its anti-pattern belong together."""

    lesson: str
    cards: list[ReviewCard]


class ShownPatch(NamedTuple):
    """A memory file that differs from the last commit."""

    path: str
    what: str
    lines: list[str]


class ReviewPage(NamedTuple):
    """The data of the page Review."""

    candidates: list[LessonGroup]
    changes: list[LessonGroup]
    has_git: bool
    compared: str  # the states that were compared
    patches: list[ShownPatch]
    more_patches: int
    comment: str  # the text for a pull request


def review_page(workspace: Workspace) -> ReviewPage:
    """Collect what waits for a decision, and what is not committed."""
    waiting = workspace.history.candidates(_MOST)
    candidates = _grouped(_card(workspace, waiting, shift) for shift in waiting.shifts)
    try:
        found, asked = workspace.history.review()
        patches = workspace.history.patch()
    except NoHistory:
        return ReviewPage(candidates, [], has_git=False, **_NO_CHANGES)
    return ReviewPage(
        candidates=candidates,
        changes=_grouped(_card(workspace, found, shift) for shift in asked[:_MOST]),
        has_git=True,
        compared=f"{found.before} → {found.after}",
        patches=[ShownPatch(*patch) for patch in patches[:_PATCHES]],
        more_patches=max(0, len(patches) - _PATCHES),
        comment="" if found.is_empty else found.markdown(),
    )


_NO_CHANGES: dict[str, Any] = {"compared": "", "patches": [], "more_patches": 0, "comment": ""}


def _card(workspace: Workspace, review: Any, shift: Any) -> ReviewCard:
    document = _document(workspace, shift.id)
    remedy = next((document[name] for name in _REMEDIES if document.get(name)), "")
    causes = (review.evidence.get(name) for name in shift.caused_by[:5])
    words = [*shift.details, *(field.words() for field in review.fields(shift))]
    return ReviewCard(
        id=shift.id,
        what=shift.what,
        kind=shift.kind,
        type=str(document.get("type") or ""),
        title=shorten(shift.title, _LONGEST),
        remedy=shorten(str(remedy), _LONGEST),
        confidence=shift.weight(),
        statement=shorten(_statement(shift.kind, document), _LONGEST),
        details=[shorten(detail, 300) for detail in words],
        evidence=[CardEvidence(*cause) for cause in causes if cause],
        lesson=_lesson(document) or shift.id,
    )


def _document(workspace: Workspace, memory_id: str) -> dict[str, Any]:
    try:
        return workspace.get(memory_id).document()
    except LokiMemoryError:  # it is gone from the working tree
        return {}


def _statement(kind: str, document: dict[str, Any]) -> str:
    name = next(iter(EDITABLE.get(kind, {})), "")
    return str(document.get(name) or "")


def _lesson(document: dict[str, Any]) -> str:
    key = document.get("key")
    return json.dumps(key, sort_keys=True) if key else ""


def _grouped(cards: Iterable[ReviewCard]) -> list[LessonGroup]:
    """Group cards by their lesson, in the order of their first card."""
    groups: dict[str, list[ReviewCard]] = {}
    for card in cards:
        groups.setdefault(card.lesson, []).append(card)
    return [LessonGroup(lesson, members) for lesson, members in groups.items()]


def review(visit: Visit) -> Response:
    found = derived(visit.workspace, "review", lambda: review_page(visit.workspace))
    return render(visit, "review.html", found)


# -- decisions ------------------------------------------------------------------------------------


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
        SimilarBelief(hit.id, shorten(hit.title, _TITLE), hit.status, hit.confidence)
        for hit in found
        if hit.id != record.id
    ]
    return MergePage(record.id, _title(record), question, similar[:_SIMILAR])


def _title(record: Memory) -> str:
    return shorten(record.title(), _TITLE)


def choose_heir(visit: Visit) -> Response:
    """Show the beliefs with which a card can be merged."""
    return render(
        visit, "merge.html", merge_page(visit.workspace, _record(visit), visit.query("q"))
    )


def _record(visit: Visit) -> Memory:
    return visit.workspace.get(visit.workspace.resolve(visit.parameter("id")))


def _is_shared(workspace: Workspace, memory_id: str) -> bool:
    """Check if a memory is a file that others get too."""
    return workspace.browse.where(memory_id).is_relative_to(workspace.layout.memory)


def accept(visit: Visit) -> Response:
    """Let a belief stand; a candidate becomes a file of the shared memory."""
    record = _record(visit)
    undo = _undo_accept(visit.workspace, record)
    visit.workspace.history.approve(record.id)
    _publish(visit.workspace)
    return wrote(visit, f"Accepted {quoted_title(record)}", _PAGE, undo)


def edit(visit: Visit) -> Response:
    """Change the words of a belief, and let it stand in that form."""
    record = _record(visit)
    text = visit.form.get("text", "").replace("\r\n", "\n").strip()
    if not text:
        raise InvalidRecord("a belief needs words", advice="Write a statement, or reject it.")
    undo = _undo_accept(visit.workspace, record)
    visit.workspace.history.reword(record.id, text)
    _publish(visit.workspace)
    return wrote(visit, f"Edited and accepted {quoted_title(record)}", _PAGE, undo)


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
    record = _record(visit)
    visit.workspace.reject(record.id, visit.form.get("why", "").strip())
    undo = partial(visit.workspace.restore, record.id)
    return wrote(visit, f"Rejected {quoted_title(record)}", _PAGE, undo)


def merge(visit: Visit) -> Response:
    """Let another belief speak for this one too."""
    record, other = _record(visit), visit.form.get("with", "").strip()
    if not other:
        raise InvalidRecord("no belief is named", advice="Choose the one that stays.")
    heir = visit.workspace.supersede(record.id, visit.workspace.resolve(other))
    undo = partial(put_back, visit.workspace, record)
    return wrote(visit, f"Merged {quoted_title(record)} with {heir.id}", _PAGE, undo)


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
    *page("/review", review),
]
shapes: dict[str, Any] = {"merge": MergePage, "review": ReviewPage}
