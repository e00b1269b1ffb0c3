"""Weigh beliefs: how sure the evidence makes us, and what follows from it.

Confidence is the mean of a Beta(2, 1) distribution over distinct sessions: two that confirm and
none that contradicts make 0.80. What happens ten times in one session is one observation. Being
found or read is no observation at all; an episode that says that a memory helped or misled is.

A confidence that somebody stated is where theirs starts, worth two observations. It is kept as
`asserted` beside what evidence made of it, `weighed`, so that weighing again starts from it again.
A confidence that is not what was weighed was written by somebody since: it is the new assertion,
made in view of the evidence that was there (`asserted_knowing`), and moved only by what is new.

A belief that was merged into one that says the same keeps its evidence; it counts for that one too,
each episode once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeGuard

from loki_memory.consolidation.failures import RULE
from loki_memory.consolidation.features import EpisodeFeatures
from loki_memory.consolidation.provenance import SAME, extra, is_touched, why
from loki_memory.consolidation.snapshot import (
    BeliefChange,
    PhaseChanges,
    Snapshot,
    Thresholds,
    Touched,
    cached_by_episodes,
)
from loki_memory.models import AntiPattern, Belief, Fact, Pattern
from loki_memory.models.confidence import (
    SETTLED,
    UNSURE,
    Claim,
    cited,
    claim,
    confidence,
    is_produced,
    is_weighed,
    overcame,
)
from loki_memory.models.confidence import status as counted_as

_SUPPOSED = 0.80  # what recall takes a belief for that was told without a confidence


class Feedback(NamedTuple):
    """The episodes that say of one memory that it helped, and that it misled."""

    helped: frozenset[str] = frozenset()
    misled: frozenset[str] = frozenset()


class Case(NamedTuple):
    """The episodes that speak for and against a belief; `sure` are those that saw it help.

    Of an error, those that overcame it otherwise than advised make the advice less sure, and not
    the error less true; those that merely met it say nothing about the advice.
    """

    for_: frozenset[str]
    against: frozenset[str]
    sources: frozenset[str]
    sure: frozenset[str]
    otherwise: frozenset[str]
    silent: frozenset[str]

    def with_(self, other: Case) -> Case:
        return Case(*(mine | theirs for mine, theirs in zip(self, other, strict=True)))

    def supporting(self) -> frozenset[str]:
        """Return what speaks against a belief does not support it, though it may have led to it."""
        return (self.for_ | self.sources) - self.against - self.otherwise - self.silent

    def episodes(self) -> frozenset[str]:
        return self.for_ | self.against | self.sources


def weigh(snapshot: Snapshot, touched: Touched | None = None) -> PhaseChanges:
    """Confidence and status of every belief with evidence."""
    told = feedback(snapshot, touched)
    twins = _merged_into(snapshot)
    put: list[Belief] = []
    steps: list[BeliefChange] = []
    for old in _weighable(snapshot):
        same = [old, *twins.get(old.id, ())]
        if not any(twin.id in told or is_touched(twin, touched) for twin in same):
            continue
        own = _case(snapshot, old, told.get(old.id, Feedback()))
        united = own
        for twin in twins.get(old.id, ()):
            united = united.with_(_case(snapshot, twin, told.get(twin.id, Feedback())))
        new = _weighed(snapshot, old, own, united)
        if new is not old:
            put.append(new)
            steps.append(_step(old, new))
    return PhaseChanges(put=tuple(put), steps=tuple(steps))


def _weighable(snapshot: Snapshot) -> Iterator[Belief]:
    """Patterns, anti-patterns, and the facts that somebody told: a topic sums up its members."""
    yield from snapshot.of(AntiPattern)
    yield from snapshot.of(Pattern)
    yield from (fact for fact in snapshot.of(Fact) if not is_produced(fact))


def status(
    support: float,
    against: float,
    sure: float,
    limits: Thresholds = Thresholds(),  # noqa: B008 - a value
) -> str:
    """Return what a belief with so much evidence counts as."""
    return counted_as(support, against, sure, limits.confident, limits.support)


def feedback(snapshot: Snapshot, touched: Touched | None = None) -> dict[str, Feedback]:
    """Return what episodes, or new ones alone, say about the memories that they were shown."""
    if touched is None:
        return _said_by_all(snapshot)
    return _said(filter(None, map(snapshot.episode, sorted(touched))))


@cached_by_episodes
def _said_by_all(snapshot: Snapshot) -> dict[str, Feedback]:
    return _said(snapshot.episodes)


def _said(episodes: Iterable[EpisodeFeatures]) -> dict[str, Feedback]:
    helped: dict[str, set[str]] = {}
    misled: dict[str, set[str]] = {}
    for episode in episodes:
        for name, is_helpful in episode.verdicts:
            (helped if is_helpful else misled).setdefault(name, set()).add(episode.id)
    return {
        id_: Feedback(frozenset(helped.get(id_, ())), frozenset(misled.get(id_, ())))
        for id_ in {**helped, **misled}
    }


def _merged_into(snapshot: Snapshot) -> dict[str, list[Belief]]:
    """By id: the beliefs that were merged into this one, and those that had been into them."""
    direct: dict[str, list[Belief]] = {}
    for belief in snapshot.of(Belief):
        for link in belief.links:
            if link.relation == "superseded_by" and why(link) == SAME:
                direct.setdefault(link.to, []).append(belief)
    return {name: _line_of(name, direct) for name in direct}


def _line_of(heir: str, direct: Mapping[str, list[Belief]]) -> list[Belief]:
    """All that lead to an heir; two branches can have made each the other's."""
    found: dict[str, Belief] = {}
    waiting = [heir]
    while waiting:
        for entry in direct.get(waiting.pop(), ()):
            if entry.id not in found and entry.id != heir:
                found[entry.id] = entry
                waiting.append(entry.id)
    return list(found.values())


def _case(snapshot: Snapshot, belief: Belief, told: Feedback) -> Case:
    """Return what a record says of its evidence, and what episodes now say of the record.

    Where a fact was taken from shows that somebody said it, not that it holds.
    """
    helped, misled = told
    for_, against = frozenset(belief.evidence.for_), frozenset(belief.evidence.against)
    sources = frozenset(() if isinstance(belief, Fact) else belief.source_episodes)
    met = for_ if isinstance(belief, AntiPattern) and is_produced(belief) else frozenset()
    for_ = (for_ | helped) - (misled - sources - met)  # induction brings those back
    told_so = _helped(snapshot, belief.id, for_)
    advised, others = overcame(belief) if _advises(belief) else (frozenset(), frozenset())
    return Case(
        for_=for_,
        against=(against | misled) - (helped - sources),
        sources=sources,
        sure=advised | told_so,
        otherwise=others - told_so,
        silent=met - advised - others - told_so if _advises(belief) else frozenset(),
    )


def _helped(snapshot: Snapshot, name: str, episodes: frozenset[str]) -> frozenset[str]:
    """The episodes that say that a memory helped, whenever they said it."""
    known = filter(None, map(snapshot.episode, episodes))
    return frozenset(
        episode.id for episode in known if (name, True) in map(tuple, episode.verdicts)
    )


def _weighed(snapshot: Snapshot, old: Belief, own: Case, united: Case) -> Belief:
    """A belief with its own evidence, as sure as all evidence makes it."""
    if not united.episodes() and "weighed" not in (old.model_extra or {}):
        return old
    stated = _claim(old)
    support, contradicted = _observations(snapshot, united, stated.knowing)
    instead = _sum(snapshot, dict.fromkeys(sorted(united.otherwise - stated.knowing), 1.0))
    sure = confidence(support, contradicted + instead, stated.prior())
    fields: dict[str, Any] = {"confidence": sure, **_lists(old, own)}
    if not is_produced(old):
        fields |= stated.fields(sure)
    if old.status not in SETTLED:
        counted = status(support, contradicted, sure, snapshot.thresholds)
        if counted == "candidate" and _is_solved_usage(old):
            counted = "active"
        fields["status"] = counted if stated.stated is None else _kept(old, counted)
    # Most are as they were: that is seen before another one is made of the same fields.
    return old if fields.items() <= old.document().items() else old.changed(**fields)


def _is_solved_usage(belief: Belief) -> bool:
    """Check that it tells the right call of a command: one session that found out is enough."""
    return (
        isinstance(belief, AntiPattern)
        and bool(extra(belief, "usage"))
        and any(resolution.for_ for resolution in belief.resolutions)
    )


def _observations(snapshot: Snapshot, case: Case, known: frozenset[str]) -> tuple[float, float]:
    """Return how much of a case is new to who asserted the belief: for it, and against it."""
    for_ = sorted(case.supporting() - known)
    return (
        _sum(snapshot, {entry: _weight(snapshot, entry, case.sure) for entry in for_}),
        _sum(snapshot, dict.fromkeys(sorted(case.against - known), 1.0)),
    )


def _lists(old: Belief, own: Case) -> dict[str, Any]:
    """The evidence as it is written; where it is the same, as it was written."""
    for_, against = sorted(own.for_), sorted(own.against)
    if (for_, against) == (old.evidence.for_, old.evidence.against):
        return {}
    return {"evidence": old.evidence.with_lists(for_, against)}


def _kept(belief: Belief, counted: str) -> str:
    """Return what somebody asserted stands until evidence disputes it, and again when it does not.

    What contradicts another belief is in dispute whatever its evidence.
    """
    if counted in {"disputed", "retired"}:
        return "disputed"
    is_contradicted = any(link.relation == "contradicts" for link in belief.links)
    stands = belief.status
    return "active" if stands == "disputed" and not is_contradicted else stands


def _claim(belief: Belief) -> Claim:
    """Return what somebody asserted of a belief, if only by telling it."""
    stated = claim(belief)
    if is_produced(belief) or is_weighed(belief):
        return stated
    return stated._replace(stated=_first_stated(belief))


def _first_stated(belief: Belief) -> float | None:
    """The confidence that a belief came with.

    Told without one, and not from episodes, it starts where recall took it to be: else the first
    episode that it helped would push it back.
    """
    is_told = isinstance(belief, Fact) or not cited(belief)
    return _SUPPOSED if belief.confidence is None and is_told else belief.confidence


def _advises(belief: Belief) -> TypeGuard[AntiPattern]:
    """Check whether it says what to do, so that who did something else speaks against it.

    A linter's rule is obeyed in as many ways as there are places that break it.
    """
    if not isinstance(belief, AntiPattern) or not belief.resolutions:
        return False
    return not str((extra(belief, "key") or {}).get("template", "")).startswith(RULE)


def _weight(snapshot: Snapshot, id_: str, sure_ones: frozenset[str]) -> float:
    """One whole observation where it was followed by success; an archived one counts as it did."""
    outcome = snapshot.outcome_of(id_)
    return 1.0 if id_ in sure_ones or outcome in {"", "success"} else UNSURE


def _sum(snapshot: Snapshot, weights: Mapping[str, float]) -> float:
    """At most one observation per session."""
    sessions: dict[str, float] = {}
    session_of = snapshot.sessions(weights)
    for id_, weight in sorted(weights.items()):
        session = session_of[id_]
        sessions[session] = min(1.0, sessions.get(session, 0.0) + weight)
    return sum(sessions.values())


def _step(old: Belief, new: Belief) -> BeliefChange:
    before, after = old.confidence, new.confidence or 0.0
    what = "weakened" if after < (before or _claim(old).stated or 0.0) else "strengthened"
    news = sorted(cited(new) - cited(old))
    shown = "" if before is None else f"{before:.2f} -> "
    return BeliefChange(
        what, new.id, new.title(), tuple(news), f"confidence {shown}{after:.2f}, {new.status}"
    )
