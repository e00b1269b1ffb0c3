"""Review: lessons that wait and changes that nobody has read, as cards to decide about."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.responses import Response

from loki_memory.errors import LokiMemoryError, NoHistory
from loki_memory.models.text import shorten
from loki_memory.ui.derived import derived
from loki_memory.ui.page import Visit, page, render
from loki_memory.ui.pages.belief import EDITABLE

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace

_MOST = 50  # cards of each group: more is no queue that a person works through
_PATCHES = 20  # files whose lines are shown
_LONGEST = 2000  # characters of one text
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


routes = page("/review", review)
shapes: dict[str, Any] = {"review": ReviewPage}
