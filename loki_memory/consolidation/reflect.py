"""Reflect: what several beliefs say together that none of them says alone.

Three things become memory: an error that comes with ever other names (one parent above its
examples), a remedy that has never failed (a pattern), and a category or theme with many beliefs (a
topic that quotes the most central of them).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from heapq import nlargest
from itertools import chain
from typing import Any

from loki_memory.consolidation.features import EpisodeFeatures
from loki_memory.consolidation.lint import lint
from loki_memory.consolidation.noticed import gathering, trends
from loki_memory.consolidation.provenance import (
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
    cached_by_episodes,
)
from loki_memory.consolidation.step_sequences import Move
from loki_memory.consolidation.themes import themes
from loki_memory.consolidation.topic_summary import ANY, cut, summary
from loki_memory.consolidation.weigh import feedback, weigh
from loki_memory.models import (
    AntiPattern,
    Belief,
    Fact,
    Pattern,
    parse,
    tombstone_id,
)
from loki_memory.models.confidence import lower_bound, otherwise, overcame
from loki_memory.models.ids import digest
from loki_memory.models.text import normal

_MOSTLY, _LIFT = 0.5, 1.2  # share of successes with a remedy, and how much rarer in failures
_SURE = 0.8  # of a remedy that always works: seven trials, and none that failed
_SOLVED = 3  # successes after a move: fewer may be luck
_TRIED = 60  # episodes in which moves after an error are counted
_NAMES = 5


def reflect(snapshot: Snapshot, touched: Touched | None = None) -> PhaseChanges:
    """Parents, sure remedies and topics that are new or have changed, and what was noticed."""
    new = {belief.id for belief in snapshot.of(Belief) if is_touched(belief, touched)}
    wanted = _by_id([*_generalised(snapshot, new), *_sure_remedies(snapshot, new)])
    made = [*_reflections(snapshot.of(AntiPattern)), *_reflections(snapshot.of(Pattern))]
    due = _due(made, new, snapshot)
    wanted |= _withdrawn(due, wanted, snapshot)
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
    """Check whether it is the key of an error with any name, of a sure remedy or of a topic."""
    return isinstance(key, dict) and (key.get("param") == ANY or "remedy" in key or "topic" in key)


def _due(made: Iterable[Belief], new: AbstractSet[str], snapshot: Snapshot) -> list[Belief]:
    """Return what is new, the parents of errors that are, and the sure remedies for these."""
    links = (link for belief in snapshot.of(Belief) if belief.id in new for link in belief.links)
    above = {link.to for link in links if link.relation == "example_of"}
    keyed = ((extra(belief, "key").get("remedy"), belief) for belief in made)
    return [entry for error, entry in keyed if error in new or entry.id in new or entry.id in above]


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
    least = snapshot.thresholds.error_names
    for (scope, head, template), children in sorted(kinds.items()):
        if len(children) < least or new.isdisjoint(entry.id for entry in children):
            continue
        lesson = _lesson(head, template, children, snapshot)
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


def _lesson(head: str, template: str, children: list[AntiPattern], snapshot: Snapshot) -> str:
    """Return what helps whatever the name is; empty if each name needs its own remedy."""
    remedies = Counter(antipattern.prevention for antipattern in children if antipattern.prevention)
    remedy = min(remedies, key=lambda text: (-remedies[text], text), default="")
    if remedies[remedy] >= max(snapshot.thresholds.error_names, _MOSTLY * remedies.total()):
        return remedy
    return _next_move(head, template, _newest(children, snapshot))


def _newest(children: list[AntiPattern], snapshot: Snapshot) -> list[EpisodeFeatures]:
    """The newest episodes that met an error: what helped of late fits the code as it is."""
    place = _places(snapshot)
    met = place.keys() & chain.from_iterable(antipattern.rests_on() for antipattern in children)
    return [snapshot.episodes[at] for at in nlargest(_TRIED, map(place.__getitem__, met))]


@cached_by_episodes
def _places(snapshot: Snapshot) -> dict[str, int]:
    """Return where each episode stands in the order of time."""
    return {episode.id: at for at, episode in enumerate(snapshot.episodes)}


def _next_move(head: str, template: str, episodes: Sequence[EpisodeFeatures]) -> str:
    """The move that most successes made right after the error, and failures did not."""
    solved = _tried(
        head, template, (episode for episode in episodes if episode.outcome == "success")
    )
    made = (episode for episode in solved if episode.head)
    usual = min(made, key=lambda episode: (-solved[episode], episode), default=None)
    if usual is None or solved[usual] < max(_SOLVED, _MOSTLY * solved.total()):
        return ""
    failed = _tried(
        head, template, (episode for episode in episodes if episode.outcome == "failure")
    )
    elsewhere = (failed[usual] + 0.5) / (failed.total() + 1)
    if solved[usual] / solved.total() < _LIFT * elsewhere:
        return ""
    return f"`{usual.head}`{f' on a {usual.place} file' if usual.place else ''} before trying again"


def _tried(head: str, template: str, episodes: Iterable[EpisodeFeatures]) -> Counter[Move]:
    """Return how often each move was made right after an error."""
    return Counter(made for episode in episodes for made in _after(episode, head, template))


def _after(episode: EpisodeFeatures, head: str, template: str) -> Iterator[Move]:
    """Yield what was done after each occurrence of an error."""
    for failure_response in episode.failure_responses():
        # What a tool writes before the message is left out where an agent quotes it.
        if failure_response.head == head and failure_response.template.endswith(template):
            yield failure_response.move()


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


# A remedy that always works


def _sure_remedies(snapshot: Snapshot, new: AbstractSet[str]) -> Iterator[Pattern]:
    for antipattern in snapshot.of(AntiPattern):
        if antipattern.id not in new or not is_live(antipattern) or not extra(antipattern, "key"):
            continue
        for remedy in antipattern.resolutions[:1]:
            helped, others = overcame(antipattern)
            failed = others.union(remedy.against) - helped
            if lower_bound(len(helped), len(failed)) >= _SURE:
                made = _remedy(antipattern, remedy.do, sorted(helped), sorted(failed))
                pattern = _updated(made, snapshot)
                if isinstance(pattern, Pattern):
                    yield pattern


def _remedy(error: AntiPattern, do: str, helped: list[str], failed: list[str]) -> Pattern:
    given = {
        "id": f"sem-{digest('pattern', 'remedy', error.id, normal(do))}",
        "pattern": f"{cut(error.what_fails)}: {do}",
        "category": error.category or "remedy",
        "conditions": [cut(error.what_fails)],
        "correct_approach": do,
        "status": "candidate",
        "key": {"remedy": error.id},
        **_from_sources([error], error.scope),
        "evidence": {"for": helped, "against": failed},
        "links": [{"to": error.id, "relation": "elaborates"}],
    }
    return parse(Pattern, given)


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
