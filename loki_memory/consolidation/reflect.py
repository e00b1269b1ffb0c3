"""Reflect: what several beliefs say together that none of them says alone.

Two things become memory: an error that comes with ever other names (one parent above its examples),
and a category or theme with many beliefs (a topic that quotes the most central of them). Trends are
noticed and not written: they are true of a fortnight, not of the project.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, takewhile
from typing import Any

from loki_memory.consolidation.features import EpisodeFeatures
from loki_memory.consolidation.lint import lint
from loki_memory.consolidation.provenance import (
    at_least,
    days_between,
    differs,
    extra,
    is_live,
    is_touched,
    least_trusted,
    oldest,
)
from loki_memory.consolidation.snapshot import (
    BeliefChange,
    PhaseChanges,
    Snapshot,
    Touched,
)
from loki_memory.consolidation.topics import ANY, summary, themes
from loki_memory.consolidation.weigh import feedback, weigh
from loki_memory.models import (
    AntiPattern,
    Belief,
    Fact,
    parse,
    tombstone_id,
)
from loki_memory.models.confidence import otherwise
from loki_memory.models.ids import digest
from loki_memory.models.text import normal

_MOSTLY = 0.5  # of the remedies of an error with many names: one helps whatever the name is
_NAMES = 5
_ERROR_NAMES = 3  # with which an error has come before it is one error; two may be chance


def reflect(snapshot: Snapshot, touched: Touched | None = None) -> PhaseChanges:
    """Parents and topics that are new or have changed, and what was noticed."""
    new = {belief.id for belief in snapshot.of(Belief) if is_touched(belief, touched)}
    wanted = _by_id(_generalised(snapshot, new))
    wanted |= _withdrawn(_due(snapshot, new), wanted, snapshot)
    wanted |= _by_id(_weighed(_changed(wanted, snapshot), snapshot))  # topics quote the surest
    wanted |= _by_id(_topics(snapshot, wanted))
    wanted |= _withdrawn(_reflections(snapshot.of(Fact)), wanted, snapshot)
    put = tuple(_changed(wanted, snapshot))
    learned = [belief for belief in put if belief.id not in snapshot.records]
    steps = [
        BeliefChange("learned", belief.id, belief.title(), tuple(belief.episodes_for()))
        for belief in learned
    ]
    return PhaseChanges(put, (), (*steps, *gathering(snapshot), *trends(snapshot)))


def _changed(wanted: Mapping[str, Belief], snapshot: Snapshot) -> list[Belief]:
    known = snapshot.records
    made = (entry for name, entry in sorted(wanted.items()) if entry is not known.get(name))
    return [entry for entry in made if differs(entry, known)]


def _by_id(beliefs: Iterable[Belief]) -> dict[str, Belief]:
    return {belief.id: belief for belief in beliefs}


def _withdrawn(
    due: Iterable[Belief], wanted: Mapping[str, Belief], snapshot: Snapshot
) -> dict[str, Belief]:
    """Earlier reflections that no longer follow, and their members, freed.

    So memory is the same whatever was known first: to somebody who saw it all, it never followed.
    """
    gone = {belief.id: belief for belief in due if belief.id not in wanted}
    if not gone:
        return {}
    now = {**_by_id(snapshot.of(Belief)), **wanted}
    under = (entry for name, entry in now.items() if name not in gone and _is_under(entry, gone))
    retired = (entry.changed(status="retired") for entry in gone.values())
    return _by_id([*retired, *(_freed(entry, gone) for entry in under)])


def _reflections(beliefs: Iterable[Belief]) -> list[Belief]:
    """Return what this phase made and may withdraw, by the key that it wrote."""
    made = (belief for belief in beliefs if _is_reflection(extra(belief, "key")))
    return [
        belief
        for belief in made
        if is_live(belief) and not belief.pinned and belief.origin != "owner"
    ]


def _is_reflection(key: Any) -> bool:
    """Check whether it is the key of an error with any name, or of a topic."""
    return isinstance(key, dict) and (key.get("param") == ANY or "topic" in key)


def _due(snapshot: Snapshot, new: AbstractSet[str]) -> list[Belief]:
    """Return the parents of errors that are new, and those that are new themselves."""
    links = (link for belief in snapshot.of(Belief) if belief.id in new for link in belief.links)
    above = {link.to for link in links if link.relation == "example_of"}
    return [it for it in _reflections(snapshot.of(AntiPattern)) if it.id in new or it.id in above]


def _is_under(belief: Belief, gone: Collection[str]) -> bool:
    return belief.parent in gone or any(link.to in gone for link in belief.links)


def _freed(child: Belief, gone: Collection[str]) -> Belief:
    """A belief that no longer stands under what is gone."""
    document = child.document()
    if child.parent in gone:
        del document["parent"]
    links = [entry for entry in document.pop("links", []) if entry["to"] not in gone]
    return parse(type(child), {**document, **({"links": links} if links else {})})


def _weighed(changed: Sequence[Belief], snapshot: Snapshot) -> list[Belief]:
    """As weighing will find them: so that the next run has nothing to add."""
    told = feedback(snapshot)
    names = {
        name for belief in changed for name in _spoken_for(belief).union(*told.get(belief.id, ()))
    }
    episodes = filter(None, map(snapshot.episode, sorted(names)))
    alone = Snapshot([*changed, *episodes], snapshot.day, snapshot.rejected, snapshot.thresholds)
    heavier = {memory.id: memory for memory in weigh(alone).put if isinstance(memory, Belief)}
    return [heavier.get(belief.id, belief) for belief in changed]


def _spoken_for(belief: Belief) -> set[str]:
    """The episodes that have a say in how sure a belief is."""
    named = {*belief.rests_on(), *belief.episodes_against()}
    return named | otherwise(belief) if isinstance(belief, AntiPattern) else named


def _updated(record: Belief, snapshot: Snapshot) -> Belief | None:
    """The record over what is known of it; None if it was rejected or says nothing specific.

    Asked here and not later: its children must not name a parent that is not written.
    """
    is_rejected = snapshot.rejected and tombstone_id(record.value()) in snapshot.rejected
    if is_rejected or lint(record):
        return None
    old = snapshot.records.get(record.id)
    if not isinstance(old, type(record)):
        return record
    if old.status == "retired":  # it follows again
        return old.changed(**record.document())
    if not is_live(old):
        return None
    fields = {name: value for name, value in record.document().items() if name != "status"}
    return old.changed(**fields)


# An error with many names


def _generalised(snapshot: Snapshot, new: AbstractSet[str]) -> Iterator[Belief]:
    """Parents of errors that differ only in the name of the thing, and the children under them."""
    kinds: dict[tuple[str, str, str], list[AntiPattern]] = defaultdict(list)
    for antipattern in snapshot.of(AntiPattern):
        of = extra(antipattern, "key")
        if is_live(antipattern) and isinstance(of, dict) and of.get("param", "") not in {"", ANY}:
            kinds[antipattern.scope, str(of.get("head", "")), str(of.get("template", ""))].append(
                antipattern
            )
    for (scope, head, template), children in sorted(kinds.items()):
        if len(children) < _ERROR_NAMES or new.isdisjoint(entry.id for entry in children):
            continue
        lesson = _lesson(children)
        parent = lesson and _updated(_parent(scope, head, template, children, lesson), snapshot)
        if parent:
            yield parent
            yield from (_example(entry, parent.id) for entry in children)


def _parent(
    scope: str, head: str, template: str, children: list[AntiPattern], lesson: str
) -> AntiPattern:
    often = sorted(children, key=lambda antipattern: (-len(antipattern.rests_on()), antipattern.id))
    said = f"{template} ({_listed([_name(antipattern) for antipattern in often])})"
    given = {
        "id": f"anti-{digest('anti-pattern', scope, head, template, ANY)}",
        "what_fails": said if not head or said.startswith(head) else f"{head}: {said}",
        "prevention": lesson,
        "depth": 1,
        "status": "candidate",
        "key": {"head": head, "template": template, "param": ANY},
        **_from_sources(children, scope),
    }
    return parse(AntiPattern, given)


def _lesson(children: list[AntiPattern]) -> str:
    """Return what helps whatever the name is; empty if each name needs its own remedy."""
    remedies = Counter(antipattern.prevention for antipattern in children if antipattern.prevention)
    remedy = min(remedies, key=lambda text: (-remedies[text], text), default="")
    if remedies[remedy] >= max(_ERROR_NAMES, _MOSTLY * remedies.total()):
        return remedy
    return ""


def _name(child: AntiPattern) -> str:
    return str(extra(child, "key")["param"])


def _listed(names: Sequence[str]) -> str:
    """The first few; how many more there are would change what every skill says that quotes it."""
    return ", ".join(names[:_NAMES]) + (" and others" if len(names) > _NAMES else "")


def _example(child: AntiPattern, parent: str) -> AntiPattern:
    is_linked = any(link.to == parent for link in child.links)
    if is_linked and child.parent:
        return child
    links = [link.model_dump(mode="json", exclude_unset=True) for link in child.links]
    if not is_linked:
        links.append({"to": parent, "relation": "example_of"})
    return child.changed(parent=child.parent or parent, links=links)


def _from_sources(sources: Sequence[Belief], scope: str) -> dict[str, Any]:
    """Evidence, dates and trust of what is derived from beliefs."""
    episodes = oldest(chain.from_iterable(source.rests_on() for source in sources))
    begun = min((source.valid_from for source in sources if source.valid_from), default=None)
    last = max((source.at for source in sources if source.at), default=None)
    return {
        "scope": scope,
        "evidence": {"for": episodes, "against": []},
        "origin": least_trusted(sources),
        **({"valid_from": begun} if begun else {}),
        **({"at": last} if last else {}),
    }


# Topics


def _topics(snapshot: Snapshot, wanted: Mapping[str, Belief]) -> Iterator[Belief]:
    """A topic for each category or theme with enough beliefs, and those beliefs below it.

    Beliefs are taken as this phase leaves them; what has a parent already stays there.
    """
    known = {belief.id: belief for belief in snapshot.of(Belief)} | dict(wanted)
    filed: dict[tuple[str, str], list[Belief]] = defaultdict(list)
    named = _themes(known.values(), snapshot.thresholds.topic_members)
    for _, entry in sorted(known.items()):
        category = entry.category or named.get(entry.id)
        if category and entry.depth != 0 and is_live(entry):
            filed[entry.scope, normal(category)].append(entry)
    for (scope, category), members in sorted(filed.items()):
        id_ = f"fact-{digest('topic', scope, category)}"
        mine = [member for member in members if member.parent in {None, id_}]
        if len(mine) < snapshot.thresholds.topic_members:
            continue
        topic = _updated(_topic(id_, scope, category, mine), snapshot)
        if topic is not None:
            yield topic
            yield from (member.changed(parent=id_) for member in mine if member.parent is None)


def _themes(beliefs: Iterable[Belief], least: int) -> dict[str, str]:
    """The themes of facts that somebody wrote down without a category, in each scope."""
    texts: dict[str, dict[str, str]] = defaultdict(dict)
    for belief in beliefs:
        is_plain = isinstance(belief, Fact) and not (belief.category or belief.session)
        if is_plain and is_live(belief) and not extra(belief, "key"):
            texts[belief.scope][belief.id] = belief.value()
    return {id_: name for said in texts.values() for id_, name in themes(said, least).items()}


def _topic(id_: str, scope: str, category: str, members: Sequence[Belief]) -> Fact:
    sources = _from_sources(members, scope)
    statement = f"{category.capitalize()}: {summary([*members])}"
    given = {"id": id_, "statement": statement, "category": category, "depth": 0}
    return parse(Fact, {**given, "key": {"topic": category}, **sources})


# -- Trends that are noticed and not written ------------------------------------------------------

_WEEK, _FORTNIGHT = 7, 14
_GATHERED, _CHANCE = 0.5, 0.01  # a file in half of a week's errors, and not by chance
_ENOUGH = 4  # errors of a week, below which nothing gathers


def gathering(snapshot: Snapshot) -> Iterator[BeliefChange]:
    """Files that are in at least half of the week's errors, far more often than in all work."""
    recent = {episode.id: episode for episode in _recent(snapshot, 0, _WEEK)}
    met = (
        antipattern
        for antipattern in snapshot.of(AntiPattern)
        if is_live(antipattern) and extra(antipattern, "key")
    )
    told = (antipattern.evidence.for_ for antipattern in met)
    touching = [
        _files(recent, told_files)
        for told_files in told
        if not recent.keys().isdisjoint(told_files)
    ]
    touching = [files for files in touching if files]
    if len(touching) < _ENOUGH:
        return
    counts = Counter(path for files in touching for path in files)
    often = {path: n for path, n in sorted(counts.items()) if n >= _GATHERED * len(touching)}
    worked = [episode.paths for episode in snapshot.episodes] if often else []
    for path, count in often.items():
        usual = sum(path in files for files in worked) / len(worked)
        if at_least(count, len(touching), usual) < _CHANCE:
            why = f"in {count} of {len(touching)} kinds of errors of the last {_WEEK} days"
            yield BeliefChange("noticed", f"file:{path}", f"errors gather around {path}", (), why)


def _files(recent: Mapping[str, EpisodeFeatures], episodes: Iterable[str]) -> set[str]:
    return {path for episode in episodes if episode in recent for path in recent[episode].paths}


def _recent(snapshot: Snapshot, first: int, last: int) -> list[EpisodeFeatures]:
    """Episodes that are at least `first` and fewer than `last` days old."""
    ages = (
        (days_between(episode.date, snapshot.day), episode)
        for episode in reversed(snapshot.episodes)
    )
    young = takewhile(lambda aged: aged[0] < last, ages)  # all that come then are older
    return [entry for age, entry in young if age >= first]


def trends(snapshot: Snapshot) -> Iterator[BeliefChange]:
    """Errors that came much more or much less often in a fortnight than in the one before."""
    now = {episode.id for episode in _recent(snapshot, 0, _FORTNIGHT)}
    before = {episode.id for episode in _recent(snapshot, _FORTNIGHT, 2 * _FORTNIGHT)}
    if not before:
        return
    both = now | before
    for antipattern in snapshot.of(AntiPattern):
        episodes = antipattern.evidence.for_
        if both.isdisjoint(episodes) or not is_live(antipattern) or not extra(antipattern, "key"):
            continue
        new, old = len(now.intersection(episodes)), len(before.intersection(episodes))
        if at_least(max(new, old), new + old, 0.5) < _CHANCE:
            how = "more" if new > old else "less"
            why = f"{new} times in {_FORTNIGHT} days, {old} times in those before"
            yield BeliefChange(
                "noticed", antipattern.id, f"{how} often: {antipattern.title()}", (), why
            )
