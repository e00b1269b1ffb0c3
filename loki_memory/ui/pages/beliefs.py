"""Beliefs: search with the reasons of each hit, or all of them by filters."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.responses import Response

from loki_memory.models.kinds import FACT_TYPES, SCOPES, STATUSES
from loki_memory.ui.page import Visit, page, render
from loki_memory.ui.site import derived

if TYPE_CHECKING:
    from loki_memory.workspace import Workspace

_PAGE = 50  # beliefs on one page
_HITS = 30  # of a search: what comes later is hardly about the question
_FAINT, _FAINTER = 0.05, 0.2  # a score, and a share of the best, as `loki-mem recall` has them
_KINDS = ("pattern", "anti-pattern", "fact")
_AGES = {"7": "a week", "30": "a month", "90": "three months", "365": "a year"}
_CONFIDENCES = ("0.5", "0.7", "0.8", "0.9")


class ScorePart(NamedTuple):
    """One part of a score."""

    name: str
    value: float
    share: float  # of the largest part of any hit, from 0 to 1


class ListedBelief(NamedTuple):
    """A belief in the list, with the reasons why a search found it."""

    id: str
    kind: str
    title: str
    status: str
    scope: str
    at: str
    confidence: float | None
    category: str = ""
    type: str = ""
    pinned: bool = False
    score: float | None = None
    why: tuple[str, ...] = ()
    remedy: str = ""
    parts: tuple[ScorePart, ...] = ()
    is_faint: bool = False  # hardly about the question
    marks: tuple[str, ...] = ()  # the cited code has changed, edited by hand, not reviewed


class BeliefQuery(NamedTuple):
    """The question and the filters, as the address has them."""

    q: str = ""
    kind: str = ""
    type: str = ""
    status: str = ""
    confidence: str = ""
    age: str = ""
    category: str = ""
    scope: str = ""
    start: int = 0

    def filters(self, now: str) -> dict[str, Any]:
        """The filters as `ws.browse.beliefs` takes them."""
        named = {name: getattr(self, name) for name in ("kind", "type", "category", "scope")}
        return {
            **named,
            "status": self.status,
            "since": _days_before(now, int(self.age)) if self.age else "",
            "least": float(self.confidence or 0),
        }

    def is_filtered(self) -> bool:
        return any(self[1:-1])


class BeliefsPage(NamedTuple):
    """The data of the page Beliefs."""

    query: BeliefQuery
    beliefs: list[ListedBelief]
    total: int  # of a list without a question
    withheld: int  # found, and not near enough to the question
    next: int | None  # where the next page begins
    categories: list[str]
    choices: dict[str, list[str]]


def beliefs_page(workspace: Workspace, query: BeliefQuery) -> BeliefsPage:
    """Collect the hits of a question, or a page of the list."""
    listing = partial(_listing, workspace, query)
    found = _search(workspace, query) if query.q else derived(workspace, f"{query}", listing)
    categories = derived(workspace, "categories", workspace.browse.categories)
    return found._replace(categories=categories)


def _search(workspace: Workspace, query: BeliefQuery) -> BeliefsPage:
    kinds = (query.kind,) if query.kind else None
    status = query.status if query.status in STATUSES else None
    options = {"kinds": kinds, "scope": query.scope or None, "status": status}
    found, parts = workspace.browse.search(query.q, _HITS, **options)
    largest = max((value for made_of in parts for value in made_of.values()), default=0.0) or 1.0
    least = min(_FAINT, _FAINTER * found[0].score) if found else 0.0
    allowed = _allowed(workspace, query)
    hits = [
        _hit(hit, made_of, largest)._replace(is_faint=hit.score < least)
        for hit, made_of in zip(found, parts, strict=False)
        if allowed is None or hit.id in allowed
    ]
    return BeliefsPage(query, hits, len(hits), found.filtered, None, [], _choices())


def _allowed(workspace: Workspace, query: BeliefQuery) -> set[str] | None:
    """The ids that the filters let through, where recall itself does not know the filter."""
    if not (query.type or query.category or query.age or query.confidence):
        return None
    filters = query.filters(workspace.now())
    return workspace.browse.belief_ids(**{**filters, "status": query.status or "all"})


def _hit(hit: Any, made_of: dict[str, float], largest: float) -> ListedBelief:
    parts = tuple(
        ScorePart(name, round(value, 3), max(0.0, min(1.0, value / largest)))
        for name, value in made_of.items()
        if value
    )
    marks = (
        ("the code it cites has changed", hit.stale),
        ("edited by hand", hit.unverified),
        ("not reviewed", hit.unreviewed),
    )
    return ListedBelief(
        hit.id,
        hit.kind,
        hit.title,
        hit.status,
        hit.scope,
        hit.at,
        hit.confidence,
        score=hit.score,
        why=tuple(hit.why),
        remedy=hit.remedy,
        parts=parts,
        marks=tuple(words for words, holds in marks if holds),
    )


def _listing(workspace: Workspace, query: BeliefQuery) -> BeliefsPage:
    end = query.start + _PAGE
    found = workspace.browse.beliefs(end, **query.filters(workspace.now()))
    lines = [
        ListedBelief(*line[:7], line.category, line.type, bool(line.pinned))
        for line in found.lines[query.start :]
    ]
    following = end if found.total > end else None
    return BeliefsPage(query, lines, found.total, 0, following, [], _choices())


def _choices() -> dict[str, list[str]]:
    """The values of the filters, in the order of the page."""
    return {
        "kind": list(_KINDS),
        "type": list(FACT_TYPES),
        "status": ["all", *STATUSES[:7]],
        "confidence": list(_CONFIDENCES),
        "age": list(_AGES),
        "scope": list(SCOPES),
    }


def _days_before(now: str, days: int) -> str:
    return (datetime.fromisoformat(now) - timedelta(days=days)).date().isoformat()


def beliefs(visit: Visit) -> Response:
    """Read the question from the address; a value that no filter has counts as none."""
    choices = _choices()
    given = {
        name: value
        for name in BeliefQuery._fields[:-1]
        if (value := visit.query(name)) and value in choices.get(name, [value])
    }
    start = visit.query("start")
    query = BeliefQuery(**given, start=int(start) if start.isdecimal() and len(start) < 9 else 0)  # noqa: PLR2004
    return render(visit, "beliefs.html", beliefs_page(visit.workspace, query))


routes = page("/beliefs", beliefs)
shapes: dict[str, Any] = {"beliefs": BeliefsPage}
