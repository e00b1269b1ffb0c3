"""Statements become facts: what sessions say in so many words, with the sessions as evidence.

Statements are taken in the order of time. One joins the fact that says the same, in the same words
or mostly in the same words of content, or that leaves nothing surprising in it. Else it begins a
fact of its own, whose id comes from its text, and which keeps how surprising it was. A fact is
active, and may be told unasked, from two sessions on; a user's preference from two, or if it says
that it holds everywhere. One session suffices for what an agent wrote into the project and says
what to do, and for what is likely enough to matter. A defect that the session mended
afterwards, or a later one (`statement_matching.py`), is `resolved`: it is kept as history and never
told, until a session tells of it again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from loki_memory.consolidation.features import EpisodeFeatures
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
from loki_memory.consolidation.snapshot import (
    BeliefChange,
    PhaseChanges,
    Record,
    Snapshot,
    Touched,
    in_time,
)
from loki_memory.consolidation.statement_matching import (
    Shelf,
    Stated,
    mendings,
)
from loki_memory.models import Fact, parse, tombstone_id
from loki_memory.models.base import Evidence
from loki_memory.models.belief import Surprise
from loki_memory.models.confidence import confidence
from loki_memory.models.kinds import USERS_WORDS
from loki_memory.models.lesson_text import is_report, names_code, objection, prescribes, worth
from loki_memory.models.text import holds_everywhere

WORTH_TELLING = 0.3  # the score of a statement that others may be told
_SURE = 0.6  # the score from which on one session suffices
_TOLD_FROM_ONE = 0.405  # of worth, which counts more than the score: a chance of .6
_WORTH = 2.0  # observations that a score is worth
_UNSCORED = 0.5  # a statement that somebody wrote down without a score
_OURS = (
    "statement",
    "type",
    "confidence",
    "key",
    "score",
    "quoted",
    "evidence",
    "valid_from",
    "at",
    "origin",
)


def facts(snapshot: Snapshot, touched: Touched | None = None) -> PhaseChanges:
    """One fact per statement of the touched episodes, as all episodes make it."""
    shelf = Shelf(snapshot.thresholds.surprise)
    if touched is not None:
        shelf.put(filter(_is_live, snapshot.of(Fact)))
    names = snapshot.records if touched is None else touched
    found: defaultdict[str, dict[str, Stated]] = defaultdict(dict)
    twins: dict[str, str] = {}
    for stated in _stated(_episodes(snapshot, names)):
        id_ = shelf.joined(stated)
        if not id_:
            continue
        found[id_].setdefault(stated.episode.id, stated)
        if id_ != stated.id and stated.id in snapshot.records:
            twins[stated.id] = id_
    put: list[Fact] = []
    for id_, by_episode in sorted(found.items()):
        told = shelf.surprises.get(id_)
        put += _renewed(snapshot, id_, by_episode, told, is_partial=touched is not None)
    put += [_replaced(snapshot.records[name], heir) for name, heir in sorted(twins.items())]
    if touched is not None:
        put += _mended(snapshot, {fact.id for fact in put})
    news = [fact for fact in put if differs(fact, snapshot.records)]
    return PhaseChanges(put=tuple(news), steps=tuple(_steps(news, snapshot)))


def _mended(snapshot: Snapshot, renewed: Container[str]) -> Iterator[Fact]:
    """Yield the facts besides those renewed that tell of a defect which was mended since."""
    found = mendings(snapshot)
    for fact in filter(_is_live, snapshot.of(Fact)):
        is_open = fact.id not in renewed and fact.origin != "owner" and fact.status != "resolved"
        if is_open and found.mend(
            fact.statement, fact.type or "", fact.at or "", fact.evidence.for_
        ):
            yield fact.changed(status="resolved")


def _is_live(fact: Fact) -> bool:
    return "statement" in (extra(fact, "key") or ()) and fact.status not in DEAD


def _renewed(
    snapshot: Snapshot,
    id_: str,
    by_episode: dict[str, Stated],
    told: Surprise | None,
    *,
    is_partial: bool,
) -> Iterator[Fact]:
    """A fact as its statements make it; nothing if a person rejected or wrote it."""
    old = snapshot.records.get(id_)
    if _is_refused(snapshot, by_episode, old):
        return
    fact = old if isinstance(old, Fact) else None
    new = _fact(snapshot, id_, list(by_episode.values()), fact, is_partial=is_partial)
    if min(_known(snapshot, fact, is_partial=is_partial), default="~") < min(by_episode):
        told = None  # it began in an episode that is not at hand
    yield _with_surprise(new, told, fact)


def _with_surprise(new: Fact, told: Surprise | None, old: Fact | None) -> Fact:
    """A fact with the surprise of the statement that began it; its importance follows.

    An importance that is not what its surprise was is a person's, and stays.
    """
    if told is None or new.origin == "owner":
        return new
    before = old.surprise.score if old and old.surprise else None
    is_set = new.importance is not None and new.importance != before
    fields: dict[str, Any] = {"surprise": told.model_dump()}
    return new.changed(**fields, **({} if is_set else {"importance": told.score}))


def _replaced(twin: Record | None, heir: str) -> Fact:
    """A fact that another one says too."""
    fact = parse(Fact, given_back(twin, {SAME})) if isinstance(twin, Fact) else None
    assert fact is not None  # noqa: S101 - its id says so
    link = {"to": heir, "relation": "superseded_by", "why": SAME, **standing(fact, {SAME})}
    links = [*(relation.model_dump(exclude_unset=True) for relation in fact.links), link]
    return fact.changed(status="superseded", links=links)


def _episodes(snapshot: Snapshot, ids: Iterable[str]) -> list[EpisodeFeatures]:
    records = (snapshot.records.get(name) for name in ids)
    return in_time(record for record in records if isinstance(record, EpisodeFeatures))


def _stated(episodes: Iterable[EpisodeFeatures]) -> Iterator[Stated]:
    for episode in episodes:
        before = episode.goal
        for statement in episode.statements():
            yield Stated(episode, statement, before)
            before = statement.text


def _is_refused(snapshot: Snapshot, stated: Mapping[str, Stated], old: object) -> bool:
    """A person rejected it, or wrote it: then the words and what follows from them are theirs."""
    texts = {entry.statement.text for entry in stated.values()}
    if any(tombstone_id(text) in snapshot.rejected for text in texts):
        return True
    return isinstance(old, Fact) and not extra(old, "key")


def _fact(
    snapshot: Snapshot, id_: str, stated: list[Stated], old: Fact | None, *, is_partial: bool
) -> Fact:
    first, last = stated[0].episode, stated[-1].episode
    known = _known(snapshot, old, is_partial=is_partial)
    episodes = {*(entry.episode.id for entry in stated), *known}
    is_owned = old is not None and old.origin == "owner"
    support = len({*snapshot.sessions(episodes).values()})
    told = max(_wordings(stated, old if known else None))
    text, score = told.text, told.score
    begun = extra(old, "key")["statement"] if old and known else stated[0].statement.text
    dates = [first.date, *filter(None, [old.valid_from if old and known else None])]
    at = max([last.timestamp, *filter(None, [old.at if old and known else None])])
    is_mended = not is_owned and mendings(snapshot).mend(text, told.type, at, episodes)
    fields: dict[str, Any] = {
        "id": id_,
        "statement": text,
        "type": told.type or None,
        "confidence": confidence(support, 0, (_WORTH * score, _WORTH * (1 - score))),
        "status": "active" if is_owned else _status(snapshot, stated, told, episodes),
        **({"status": "resolved"} if is_mended else {}),
        "scope": first.scope,
        "key": {"statement": begun},
        "score": score,
        "quoted": told.is_quoted or None,
        "evidence": (old.evidence if old else Evidence()).with_lists(newest(episodes), []),
        "valid_from": min(dates),
        "at": at,
        "origin": least_trusted(
            [*(entry.episode for entry in stated), *([old] if old and known else [])]
        ),
    }
    given = {name: value for name, value in fields.items() if value is not None}
    return parse(Fact, {**given, **(_kept(old) if old else {})})


class _Wording(NamedTuple):
    """One of several wordings of a fact; the greatest is told."""

    is_lesson: bool
    score: float
    text: str
    type: str
    is_quoted: bool


def _wording(text: str, type_: str, score: float, *, is_quoted: bool) -> _Wording:
    is_lesson = score >= WORTH_TELLING and not objection(text, is_stated=type_ in USERS_WORDS)
    return _Wording(is_lesson, score, text, type_, is_quoted)


def _wordings(stated: Iterable[Stated], old: Fact | None) -> Iterator[_Wording]:
    """The wordings of a fact: those of its statements, and the one that the last run left."""
    for entry in stated:
        said = entry.statement
        yield _wording(said.text, said.type, _score(entry), is_quoted=said.quoted)
    if old:
        is_quoted = bool(extra(old, "quoted"))
        yield _wording(old.statement, old.type or "", old.score or 0.0, is_quoted=is_quoted)


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


def _status(snapshot: Snapshot, stated: list[Stated], told: _Wording, episodes: set[str]) -> str:
    if all(entry.statement.resolved for entry in stated):
        return "resolved"
    if is_report(told.text):
        return "candidate"
    if len({*snapshot.sessions(episodes).values()}) > 1:
        return "active"
    if stated[-1].statement.type == "preference":
        is_rule = holds_everywhere(told.text) and not objection(told.text, is_stated=True)
        is_rule = is_rule and not names_code(told.text)  # which one place may have meant
        return "active" if is_rule else "candidate"
    return "active" if _is_told_from_one(stated, told) else "candidate"


def _is_told_from_one(stated: list[Stated], told: _Wording) -> bool:
    """Check whether what one session said may be told unasked."""
    is_written = any(entry.statement.written for entry in stated)
    if is_written and told.is_lesson and prescribes(told.text):
        return True
    is_likely = worth(told.text, told.type, told.score, 1) >= _TOLD_FROM_ONE
    return told.score >= _SURE or (told.score >= WORTH_TELLING and is_likely)


def _steps(news: Iterable[Fact], snapshot: Snapshot) -> Iterator[BeliefChange]:
    """Yield what is told of new facts: nothing of one that is only more or less of a surprise."""
    for new in news:
        old = snapshot.records.get(new.id)
        if not isinstance(old, Fact) or _said_of(old) != _said_of(new):
            yield _step(new, snapshot)


def _said_of(fact: Fact) -> dict[str, Any]:
    document = fact.document()
    return {name: document[name] for name in document.keys() - {"surprise", "importance"}}


def _step(new: Fact, snapshot: Snapshot) -> BeliefChange:
    old = snapshot.records.get(new.id)
    if new.status == "superseded":
        return BeliefChange("merged", new.id, new.statement, why=SAME)
    what = "learned" if old is None else "strengthened"
    if isinstance(old, Fact) and old.status != new.status == "resolved":
        return BeliefChange("resolved", new.id, new.statement, why="a later session mended it")
    return BeliefChange(what, new.id, new.statement, tuple(new.evidence.for_))
