"""Recall for a workspace: search the project and the user scope and merge the results."""

from __future__ import annotations

import os
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import InvalidRecord
from loki_memory.index.gate import rejected_values
from loki_memory.index.search import HitDetails, contradicting, details
from loki_memory.integrity.reviewed import doubts, known_unreviewed
from loki_memory.models.kinds import KINDS, SCOPES, STATUSES
from loki_memory.models.text import tokens
from loki_memory.recall.rerank import TASKS, UNHELPFUL, UNHELPFUL_TILT, within
from loki_memory.recall.result import Query, Recollection, Recollections, chances

if TYPE_CHECKING:
    from pathlib import Path

    from loki_memory.home import Home
    from loki_memory.homes import OpenWorkspace
    from loki_memory.recall.rerank import Hit
    from loki_memory.recall.retriever import RetrieverAnswer

_WIDTH = 240  # characters of a line about a hit
_LOOKS = 3  # at files that change while they are about to be shown
_USER = 0.95  # what a memory of the user counts against one of the project
_BELIEFS = ("pattern", "anti-pattern", "fact")  # whose citations are citations


class _RankedLine(NamedTuple):
    """A recollection with what is needed to compare it with others."""

    hit: Recollection
    said: str  # all of its title
    slot: str  # what a fact is about: two with one slot contradict each other
    parts: dict[str, float]


class _Found(NamedTuple):
    told: list[_RankedLine]
    filtered: int
    certainty: float
    task: str
    took: float
    counts: str
    in_few: bool


class RecallOptions(NamedTuple):
    """A question as a caller words it."""

    query: str
    k: int = 5
    kinds: Iterable[str] | None = None
    task: str | None = None
    files: Iterable[str] | None = None
    error: str | None = None
    deep: bool | None = None
    scope: str | None = None
    session: str | None = None
    status: str | None = None
    under: str | None = None

    def as_query(self, now: str, *, injected: bool = False, unasked: bool = False) -> Query:
        """The question as it is put; raises InvalidRecord for what could never fit anything."""
        kinds = tuple(self.kinds or ())
        _check("kind", kinds, KINDS)
        _check("task", (self.task,), TASKS)
        _check("scope", (self.scope,), SCOPES)
        _check("status", (self.status,), STATUSES)
        if self.k < 1:
            raise InvalidRecord(f"{self.k} is too few", field="k", advice="Ask for 1 or more.")
        return Query(
            query=_readable(self.query),
            k=self.k,
            kinds=kinds,
            task=self.task or "",
            files=tuple(_readable(path) for path in self.files or ()),
            error=_readable(self.error or ""),
            deep=bool(self.deep),
            scope=self.scope or "",
            session=self.session or "",
            status=self.status or "",
            under=self.under or "",
            now=now,
            injected=injected,
            unasked=unasked,
        )


def _readable(text: str) -> str:
    """Bytes that are no text reach us as halves of characters, which SQLite does not take."""
    return text.encode("utf-8", "replace").decode()


def _check(name: str, values: Iterable[str | None], known: Iterable[str]) -> None:
    for value in values:
        if value is not None and value not in known:
            raise InvalidRecord(
                f"{value!r} is not a {name}", advice=f"Use one of: {', '.join(known)}."
            )


def recall(
    workspace: OpenWorkspace, asked: Query, *, budget: int | None = None, phase: str = ""
) -> tuple[Recollections, list[dict[str, float]]]:
    """Recall from the project and the user; with each hit, the parts of its score."""
    homes = _homes(workspace, asked)
    root = f"{workspace.layout.root}{os.sep}"
    asked = asked._replace(files=tuple(path.removeprefix(root) for path in asked.files))
    to_check = [home for home in homes if not home.ensure("folders").is_complete]
    floor = workspace.config.get("recall.floor") / 100
    found = _found(homes, asked, floor, phase)
    ids = [line.hit.id for line in found.told]
    for _ in range(_LOOKS):
        if not any([home.ensure("shown", home.paths_of(ids)) for home in to_check]):  # noqa: C419 - all of them
            break
        found = _found(homes, asked, floor, phase)
        ids = [line.hit.id for line in found.told]
    for home in homes:
        workspace.notices += home.retriever.notices
        home.retriever.notices.clear()
    told = found.told
    if budget is not None:
        told = told[: within([shown(line.hit) for line in told], budget)]
    hits = Recollections(
        (line.hit for line in told),
        filtered=found.filtered,
        certainty=round(found.certainty, 4),
        task=found.task,
        took=found.took,
        counts=found.counts,
        in_few=found.in_few,
        cut=len(found.told) - len(told),
    )
    return hits, [line.parts for line in told]


def _homes(workspace: OpenWorkspace, asked: Query) -> list[Home]:
    """The homes to search: those above the project's only for somebody who asks."""
    is_asked = not (asked.injected or asked.unasked or asked.scope)
    homes = workspace.homes.readable() if is_asked else workspace.homes
    return [home for home in homes if home.has_scope(asked.scope)]


def _found(homes: Sequence[Home], asked: Query, floor: float, phase: str) -> _Found:
    began = time.perf_counter()
    answers = [home.answer(partial(_answer, home, asked, phase)) for home in homes]
    certainty = max((answer.certainty for answer, _ in answers), default=0.0)
    told: list[_RankedLine] = []
    filtered = 0
    for answer, lines in answers:
        if floor and answer.certainty < floor and not (answer.exact or answer.in_few):
            filtered += answer.found
        else:
            nearer = {line.hit.id for line in told}
            told += [line for line in lines if line.hit.id not in nearer]
    told.sort(key=lambda line: -line.hit.score)
    told = _in_dispute(told[: asked.k])
    task = next((answer.task for answer, _ in answers if answer.task), "")
    counts = next((answer.counts for answer, _ in answers if answer.counts), "")
    took = time.perf_counter() - began
    few = [answer.in_few for answer, lines in answers if lines]
    in_few = bool(few) and all(few)
    return _Found(told, filtered, certainty, task, took, counts, in_few)


def _answer(home: Home, asked: Query, phase: str) -> tuple[RetrieverAnswer, list[_RankedLine]]:
    """One state of the index answers, and tells of the memories that it names.

    What is injected does not depend on what this machine has read before; what somebody found
    unhelpful here ranks lower everywhere.
    """
    strengths = {} if asked.injected else home.journal.strengths(asked.now)
    unhelpful = home.journal.unhelpful()
    strengths |= dict.fromkeys(unhelpful, UNHELPFUL)
    alien = known_unreviewed(home)  # may note it in the index: outside of the snapshot
    if home.is_user:
        asked = asked._replace(scope="")  # all of it is the user's
    while True:
        home.retriever.prepare()  # may write: outside
        with home.index.snapshot():
            if home.retriever.is_current():
                answer = home.retriever.answer(asked, phase, strengths)
                told = _told(home, answer, asked, alien)
                return answer, [
                    _lowered(line) if line.hit.id in unhelpful else line for line in told
                ]


def _lowered(told: _RankedLine) -> _RankedLine:
    hit = told.hit
    score = round(hit.score * UNHELPFUL_TILT, 4)
    return told._replace(hit=hit._replace(score=score, why=(*hit.why, "did not help here")))


def _told(
    home: Home, answer: RetrieverAnswer, asked: Query, alien: Container[str]
) -> list[_RankedLine]:
    if not answer.hits:
        return []
    known = details(home.index, [hit.row for hit in answer.hits])
    doubted = doubts(home.layout)
    found = [(hit, known[hit.row]) for hit in answer.hits if hit.row in known]
    share = _USER if home.is_user else 1.0
    scores = [share * chance for chance in chances(hit.nearness for hit, _ in found)]
    return [
        _one(home, hit, score, memory, asked.now, doubted, alien)
        for (hit, memory), score in zip(found, scores, strict=True)
    ]


def _one(
    home: Home,
    hit: Hit,
    score: float,
    memory: HitDetails,
    now: str,
    doubted: Mapping[str, str],
    alien: Container[str],
) -> _RankedLine:
    cited = memory.citations if memory.kind in _BELIEFS else None
    recollection = Recollection(
        id=memory.id,
        kind=memory.kind,
        title=_line(memory.title),
        score=round(score, 4),
        why=(*hit.why, f"from {home.layout.root.name}, above") if home.is_above else tuple(hit.why),
        confidence=memory.confidence,
        at=memory.at,
        age_days=_days_between(memory.at, now),
        evidence=memory.evidence,
        status=memory.status,
        scope="user" if home.is_user else memory.scope,
        stale=_is_stale(home.layout.root, cited) if cited else False,
        unverified=doubted.get(memory.path) == memory.etag,
        unreviewed=memory.id in alien,
        contradicts=contradicting(home.index, memory.id),
        tokens=(memory.size + 3) // 4,
        remedy=_remedy(memory),
        excerpt="" if _is_rejected(home, hit.excerpt) else _line(hit.excerpt),
    )
    return _RankedLine(recollection, memory.title, memory.slot or "", hit.parts)


def _remedy(memory: HitDetails) -> str:
    """The advice of a memory, unless its title gives it."""
    remedy = memory.remedy if isinstance(memory.remedy, str) else ""
    return "" if remedy in memory.title else _line(" ".join(remedy.split()))


def _is_rejected(home: Home, text: str) -> bool:
    """Check if a text says what a person rejected."""
    rejected = rejected_values(home.index) if text else frozenset()
    if not rejected:
        return False
    from loki_memory.models.rejected import parts, value_id

    return any(value_id(part) in rejected for part in parts(text))


def _line(title: str) -> str:
    """A line is a line: the whole of a long statement is for `show`."""
    return title if len(title) <= _WIDTH else title[: _WIDTH - 1].rsplit(" ", 1)[0] + "…"


def _days_between(at: str, now: str) -> int | None:
    if not at or not now:
        return None
    from datetime import date

    try:
        return max(0, (date.fromisoformat(now[:10]) - date.fromisoformat(at[:10])).days)
    except ValueError:
        return None


def _in_dispute(told: list[_RankedLine]) -> list[_RankedLine]:
    """Mark hits that contradict each other, and put the newer one first."""
    hits = [line.hit for line in told]
    shown = {hit.id for hit in hits}
    against: dict[str, set[str]] = {hit.id: shown & set(hit.contradicts) for hit in hits}
    for a, b in combinations(told, 2):
        if a.slot and a.slot == b.slot and a.said != b.said:
            against[a.hit.id].add(b.hit.id)
            against[b.hit.id].add(a.hit.id)
    marked = [
        line._replace(hit=_disputed(line.hit, tuple(sorted(against[line.hit.id])))) for line in told
    ]
    placed: list[_RankedLine] = []
    for line in marked:
        _place(line, marked, placed)
    return placed


def _place(line: _RankedLine, among: Sequence[_RankedLine], placed: list[_RankedLine]) -> None:
    """Append a hit, after those that contradict it and are newer."""
    if line in placed:
        return
    newer = [other for other in among if other.hit.id in line.hit.contradicts]
    for other in sorted(newer, key=lambda other: other.hit.at, reverse=True):
        if other.hit.at > line.hit.at:
            _place(other, among, placed)
    placed.append(line)


def _disputed(hit: Recollection, others: tuple[str, ...]) -> Recollection:
    why = (*hit.why, *(f"contradicts {other}" for other in others))
    return hit._replace(contradicts=others, why=why)


def _is_stale(root: Path, cited: str) -> bool:
    """Check if code that a memory cites has changed since."""
    import orjson  # 4 ms, for the few memories that cite code

    from loki_memory.integrity.citations import is_stale

    found = orjson.loads(cited)
    return isinstance(found, list) and is_stale(root, found)


def shown(hit: Recollection) -> str:
    """The line about a hit, and the reasons below it."""
    return "\n".join((f"{hit.id} {hit.title}", hit.excerpt, "; ".join(hit.why)))


def note_shown(
    workspace: OpenWorkspace,
    surface: str,
    query: str,
    hits: Iterable[Recollection],
    session: str | None = None,
) -> None:
    """Journal what was offered, and what it cost to read."""
    workspace.home.journal.shown(
        [(hit.id, tokens(shown(hit))) for hit in hits],
        surface=surface,
        query=query,
        session=session,
        now=workspace.now(),
        available=workspace.home.answer(workspace.home.retriever.tokens_available),
    )
