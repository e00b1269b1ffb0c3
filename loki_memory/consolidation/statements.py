"""Statements become facts: what sessions say in so many words, with the sessions as evidence.

Statements are taken in the order of time. One joins the fact that says the same, in the same words
or mostly in the same words of content, else it begins a fact of its own, whose id comes from its
text. A fact is active, and may be told unasked, from two sessions on, or from one if its score is
high; a user's preference from two, or if it says that it holds everywhere. A defect that the
session mended afterwards is `resolved`: it is kept as history and never told.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from loki_memory.consolidation.features import EpisodeFeatures, StatedSentence
from loki_memory.consolidation.provenance import (
    DEAD,
    SAME,
    differs,
    extra,
    given_back,
    least_trusted,
    newest,
    standing,
)
from loki_memory.consolidation.similarity import content, marks, opposed
from loki_memory.consolidation.snapshot import (
    BeliefChange,
    PhaseChanges,
    Record,
    Snapshot,
    Touched,
    in_time,
)
from loki_memory.models import Fact, parse, tombstone_id
from loki_memory.models.base import Evidence
from loki_memory.models.confidence import confidence
from loki_memory.models.ids import digest
from loki_memory.models.text import holds_everywhere, normal

TOLD_FROM_ONE = 0.6  # the score from which on one session suffices
_WORTH = 2.0  # observations that a score is worth
_UNSCORED = 0.5  # a statement that somebody wrote down without a score
_REPORTS = re.compile(  # what was done, was broken or is tested, not what holds
    r"(?:`[^`]+`\s*[:\u2013\u2014-]+\s*)?(?:bug:|test\w+ (?:verifies|tests|checks|ensures)\b"
    r"|(?:add(?:ed|s)?|updated?|removed?|fix(?:e[ds])?|replaced?|renamed?s?|changed?|moved?"
    r"|created?|implement(?:ed|s)?|refactor(?:ed|s)?|extract(?:ed|s)?|used"
    r"|the (?:fix|approach) (?:is|was))\b)",
    re.IGNORECASE,
)
_SHARED = 4  # words of content that two statements of one lesson have in common, at least
_COVER, _COVER_OF_LONGER = 0.75, 0.5  # the share of the shorter and of the longer one
_OURS = (
    "statement",
    "type",
    "confidence",
    "key",
    "score",
    "evidence",
    "valid_from",
    "at",
    "origin",
)


class Stated(NamedTuple):
    """One statement in one episode."""

    episode: EpisodeFeatures
    statement: StatedSentence

    @property
    def id(self) -> str:
        return f"fact-{digest('fact', self.episode.scope, normal(self.statement.text))}"


def facts(snapshot: Snapshot, touched: Touched | None = None) -> PhaseChanges:
    """One fact per statement of the touched episodes, as all episodes make it."""
    shelf = _Shelf() if touched is None else _Shelf(filter(_is_live, snapshot.of(Fact)))
    names = snapshot.records if touched is None else touched
    found: defaultdict[str, dict[str, Stated]] = defaultdict(dict)
    twins: dict[str, str] = {}
    for stated in _stated(_episodes(snapshot, names)):
        id_ = shelf.joined(stated)
        found[id_].setdefault(stated.episode.id, stated)
        if id_ != stated.id and stated.id in snapshot.records:
            twins[stated.id] = id_
    put: list[Fact] = []
    for id_, by_episode in sorted(found.items()):
        put += _renewed(snapshot, id_, by_episode, is_partial=touched is not None)
    put += [_replaced(snapshot.records[name], heir) for name, heir in sorted(twins.items())]
    news = [one for one in put if differs(one, snapshot.records)]
    return PhaseChanges(put=tuple(news), steps=tuple(_step(one, snapshot) for one in news))


class _Shelf:
    """Facts by the stems of their words, in which those that say the same are found."""

    def __init__(self, known: Iterable[Fact] = ()) -> None:
        self._texts: dict[str, str] = {}
        self._having: defaultdict[str, list[str]] = defaultdict(list)
        for fact in sorted(known, key=lambda one: (one.valid_from or "", one.id)):
            self._add(fact.id, extra(fact, "key")["statement"])

    def joined(self, stated: Stated) -> str:
        """The id of the fact that a statement joins, or begins."""
        text = stated.statement.text
        if stated.id in self._texts:
            return stated.id
        words = set(content(text))
        shared = Counter(chain.from_iterable(self._having[word] for word in words))
        for id_, count in sorted(shared.items(), key=lambda one: (-one[1], one[0])):
            if count < _SHARED:
                break
            if _is_same(text, self._texts[id_], count):
                return id_
        self._add(stated.id, text)
        return stated.id

    def _add(self, id_: str, text: str) -> None:
        self._texts[id_] = text
        for word in set(content(text)):
            self._having[word].append(id_)


def _is_same(one: str, other: str, shared: int) -> bool:
    """Whether most words of content of either text stand in the other, and none is denied."""
    sizes = sorted((len(set(content(one))), len(set(content(other)))))
    if shared < _COVER * sizes[0] or shared < _COVER_OF_LONGER * sizes[1]:
        return False
    return marks(one).is_negated == marks(other).is_negated and not opposed(one, other)


def _is_live(fact: Fact) -> bool:
    return "statement" in (extra(fact, "key") or ()) and fact.status not in DEAD


def _renewed(
    snapshot: Snapshot, id_: str, by_episode: dict[str, Stated], *, is_partial: bool
) -> Iterator[Fact]:
    """A fact as its statements make it; nothing if a person rejected or wrote it."""
    old = snapshot.records.get(id_)
    if _is_refused(snapshot, by_episode, old):
        return
    fact = old if isinstance(old, Fact) else None
    yield _fact(snapshot, id_, list(by_episode.values()), fact, is_partial=is_partial)


def _replaced(twin: Record | None, heir: str) -> Fact:
    """A fact that another one says too."""
    fact = parse(Fact, given_back(twin, {SAME})) if isinstance(twin, Fact) else None
    assert fact is not None  # noqa: S101 - its id says so
    link = {"to": heir, "relation": "superseded_by", "why": SAME, **standing(fact, {SAME})}
    links = [*(one.model_dump(exclude_unset=True) for one in fact.links), link]
    return fact.changed(status="superseded", links=links)


def _episodes(snapshot: Snapshot, ids: Iterable[str]) -> list[EpisodeFeatures]:
    records = (snapshot.records.get(name) for name in ids)
    return in_time(record for record in records if isinstance(record, EpisodeFeatures))


def _stated(episodes: Iterable[EpisodeFeatures]) -> Iterator[Stated]:
    for episode in episodes:
        yield from (Stated(episode, statement) for statement in episode.statements())


def _is_refused(snapshot: Snapshot, stated: Mapping[str, Stated], old: object) -> bool:
    """A person rejected it, or wrote it: then the words and what follows from them are theirs."""
    texts = {one.statement.text for one in stated.values()}
    if any(tombstone_id(text) in snapshot.rejected for text in texts):
        return True
    return isinstance(old, Fact) and not extra(old, "key")


def _fact(
    snapshot: Snapshot, id_: str, stated: list[Stated], old: Fact | None, *, is_partial: bool
) -> Fact:
    first, last = stated[0].episode, stated[-1].episode
    known = _known(snapshot, old, is_partial=is_partial)
    episodes = {*(one.episode.id for one in stated), *known}
    score = max([*(_score(one) for one in stated), *([old.score or 0.0] if old and known else [])])
    is_owned = old is not None and old.origin == "owner"
    support = len({*map(snapshot.session_of, episodes)})
    best = max(stated, key=_score)
    is_better = not (old and known) or _score(best) > (old.score or 0.0)
    text, type_ = (best.statement.text, best.statement.type) if is_better else _said(old)
    begun = extra(old, "key")["statement"] if old and known else stated[0].statement.text
    dates = [first.date, *filter(None, [old.valid_from if old and known else None])]
    moments = [last.timestamp, *filter(None, [old.at if old and known else None])]
    fields: dict[str, Any] = {
        "id": id_,
        "statement": text,
        "type": type_,
        "confidence": confidence(support, 0, (_WORTH * score, _WORTH * (1 - score))),
        "status": "active" if is_owned else _status(stated, text, score, support),
        "scope": first.scope,
        "key": {"statement": begun},
        "score": score,
        "evidence": (old.evidence if old else Evidence()).with_lists(newest(episodes), []),
        "valid_from": min(dates),
        "at": max(moments),
        "origin": least_trusted(
            [*(one.episode for one in stated), *([old] if old and known else [])]
        ),
    }
    return parse(Fact, {**fields, **(_kept(old) if old else {})})


def _said(old: Fact | None) -> tuple[str, str | None]:
    return (old.statement, old.type) if old else ("", None)


def _known(snapshot: Snapshot, old: Fact | None, *, is_partial: bool) -> set[str]:
    """Evidence of a fact beyond the episodes at hand."""
    cited = set(old.evidence.for_) if old else set()
    return cited if is_partial else {name for name in cited if name not in snapshot.records}


def _score(stated: Stated) -> float:
    return _UNSCORED if stated.statement.score is None else stated.statement.score


def _kept(old: Fact) -> dict[str, Any]:
    """Fields of a fact that other phases and people wrote, which its statements do not decide."""
    ours = {*_OURS, *(() if old.status in DEAD else ("status",))}
    if old.origin == "owner":  # the words are a person's, the evidence is ours
        ours -= {"statement", "type", "origin"}
    return {name: value for name, value in old.document().items() if name not in ours}


def _status(stated: list[Stated], text: str, score: float, support: int) -> str:
    if all(one.statement.resolved for one in stated):
        return "resolved"
    if _REPORTS.match(text):
        return "candidate"
    if support > 1:
        return "active"
    if stated[-1].statement.type == "preference":
        return "active" if holds_everywhere(text) else "candidate"
    return "active" if score >= TOLD_FROM_ONE else "candidate"


def _step(new: Fact, snapshot: Snapshot) -> BeliefChange:
    old = snapshot.records.get(new.id)
    if new.status == "superseded":
        return BeliefChange("merged", new.id, new.statement, why=SAME)
    what = "learned" if old is None else "strengthened"
    return BeliefChange(what, new.id, new.statement, tuple(new.evidence.for_))
