"""Patterns: what episodes of one kind have taught, with the condition under which it holds.

A pattern is its cluster's: its id comes from the earliest episode. When clusters join, the one
with the later beginning is superseded by the other; when a cluster no longer teaches what was
learned from it, the pattern is retired. A cluster that teaches nothing specific gives none.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from loki_memory.consolidation.clustering import clusters_of_goals
from loki_memory.consolidation.failures import BARE
from loki_memory.consolidation.features import EpisodeFeatures
from loki_memory.consolidation.lessons import Lesson, Surroundings, lessons
from loki_memory.consolidation.lint import LONGEST, is_platitude
from loki_memory.consolidation.provenance import (
    SAME,
    differs,
    extra,
    given_back,
    is_refuted,
    least_trusted,
    newest,
    replaced_because,
)
from loki_memory.consolidation.similarity import common
from loki_memory.consolidation.snapshot import BeliefChange, PhaseChanges, Snapshot, Touched
from loki_memory.models import LinkTo, Pattern, parse, tombstone_id
from loki_memory.models.ids import digest

_SETTLED = {"superseded", "rejected", "retired"}
_REPLACED_BY = "superseded_by"
_JOINED = "clusters joined"  # unlike a merge of two texts, this ends when they part again


class Scene(NamedTuple):
    """The background against which clusters are looked at."""

    snapshot: Snapshot
    touched: Touched | None
    surroundings: Surroundings
    judges: Mapping[str, frozenset[str]]  # pattern -> episodes that say whether it helped


class FoundPattern(NamedTuple):
    """Lessons of clusters, and under which pattern each of their episodes is found now."""

    taught: list[Pattern]
    refused: list[Pattern]
    home: dict[str, str]  # empty where a cluster teaches nothing

    def live(self) -> set[str]:
        return {pattern.id for pattern in self.taught}


def patterns(snapshot: Snapshot, touched: Touched | None = None) -> PhaseChanges:
    """The patterns of all clusters; a cluster that is as it was teaches what it taught."""
    found = _found(Scene(snapshot, touched, Surroundings(snapshot.episodes), _judges(snapshot)))
    current = [_revived(pattern, found, snapshot, touched) for pattern in found.taught]
    current += _left_over(found, snapshot)
    put = [pattern for pattern in current if _is_news(pattern, snapshot)]
    steps = [_reported(pattern, snapshot) for pattern in put]
    steps += [
        BeliefChange("refused", entry.id, entry.title(), why="a person rejected it")
        for entry in found.refused
    ]
    return PhaseChanges(put=tuple(sorted(put, key=lambda pattern: pattern.id)), steps=tuple(steps))


def pattern_id(earliest: str, category: str) -> str:
    """The id of the pattern of a cluster that begins with an episode."""
    return f"{Pattern.prefix}-{digest(Pattern.kind, earliest, category)}"


def _judges(snapshot: Snapshot) -> dict[str, frozenset[str]]:
    judges: dict[str, set[str]] = defaultdict(set)
    for episode in snapshot.episodes:
        for name, _ in episode.verdicts:
            judges[name].add(episode.id)
    return {judged: frozenset(episodes) for judged, episodes in judges.items()}


def _cluster(pattern: Pattern) -> str:
    """The earliest episode of the cluster that taught a pattern; empty if it was not induced."""
    earliest = str((extra(pattern, "key") or {}).get("cluster", ""))
    return earliest if pattern.id == pattern_id(earliest, pattern.category or "") else ""


def _found(scene: Scene) -> FoundPattern:
    found = FoundPattern([], [], {})
    snapshot = scene.snapshot
    for cluster in clusters_of_goals(snapshot):
        if all(episode.captured for episode in cluster):
            continue  # their goals are prompts, word for word; statements and errors teach instead
        learned = _again(cluster, scene) or _learned(cluster, scene)
        if learned and snapshot.rejected and tombstone_id(learned.value()) in snapshot.rejected:
            found.refused.append(learned)
            learned = None
        if learned:
            found.taught.append(learned)
        found.home.update(
            dict.fromkeys((entry.id for entry in cluster), learned.id if learned else "")
        )
    return found


def _again(cluster: Sequence[EpisodeFeatures], scene: Scene) -> Pattern | None:
    """The pattern of a cluster that is as the last run saw it: it cites these very episodes.

    What sets the cluster apart depends on all the others.
    """
    known = scene.snapshot.records.get(pattern_id(cluster[0].id, cluster[0].category))
    ids = [episode.id for episode in cluster]
    if scene.touched is None or not scene.touched.isdisjoint(ids) or not isinstance(known, Pattern):
        return None
    if known.source_episodes != sorted(ids) or known.id in scene.touched or _is_over(known):
        return None
    conditions = scene.surroundings.conditions(cluster)
    is_same = known.origin == "owner" or conditions == known.conditions
    return known if is_same else known.changed(conditions=conditions)


def _is_over(pattern: Pattern) -> bool:
    """Check whether no cluster taught a pattern any more when it was last asked."""
    is_retired = pattern.status == "retired" and not is_refuted(pattern)
    return is_retired or _JOINED in replaced_because(pattern)


def _learned(cluster: Sequence[EpisodeFeatures], scene: Scene) -> Pattern | None:
    taught = lessons(cluster, scene.snapshot.thresholds.pattern_episodes)
    if all(BARE.match(lesson.remedy) for lesson in taught):
        return None  # the anti-pattern of the error shows the command or the change
    fields = _fields(cluster, taught, scene.surroundings)
    return None if is_platitude(fields["pattern"]) else _record(cluster, fields, scene)


def _fields(
    cluster: Sequence[EpisodeFeatures], taught: list[Lesson], surroundings: Surroundings
) -> dict[str, Any]:
    goal = common(episode.goal for episode in cluster).rstrip(".:")
    said = [f"{goal}: " + "; ".join(_told(lesson) for lesson in taught[:many]) for many in (2, 1)]
    return {
        "pattern": next((text for text in said if len(text) <= LONGEST), said[-1]),
        "conditions": surroundings.conditions(cluster),
        "correct_approach": taught[0].remedy,
        "incorrect_approach": taught[0].wrong or taught[0].trouble,
    }


def _told(lesson: Lesson) -> str:
    return f"{lesson.trouble} - {lesson.remedy}"


def _record(cluster: Sequence[EpisodeFeatures], fields: dict[str, Any], scene: Scene) -> Pattern:
    """The pattern as it is now. Where a person put their name to it, only its evidence moves."""
    category = cluster[0].category
    identity = pattern_id(cluster[0].id, category)
    known = scene.snapshot.records.get(identity)
    if not isinstance(known, Pattern):
        key = {"cluster": cluster[0].id}
        start = {"id": identity, "category": category, "scope": cluster[0].scope, "key": key}
        given = {**start, **fields, **_provenance(cluster), "status": "candidate"}
        return parse(Pattern, given)
    sources = _provenance(cluster)
    sources["evidence"] = known.evidence.with_lists(*_with_verdicts(sources, known, scene).values())
    new = {**fields, **sources}
    if known.origin == "owner":
        new = {name: sources[name] for name in ("source_episodes", "evidence")}
    return known if new.items() <= known.document().items() else known.changed(**new)


def _provenance(cluster: Sequence[EpisodeFeatures]) -> dict[str, Any]:
    """The episodes behind a pattern, and what follows from them: dates, and how far to trust it."""
    outcomes = {episode.id: episode.outcome for episode in cluster}
    cited = newest(outcomes)
    return {
        "source_episodes": cited,
        "evidence": {
            "for": [name for name in cited if outcomes[name] == "success"],
            "against": [name for name in cited if outcomes[name] == "failure"],
        },
        "valid_from": cluster[0].date,
        "at": cluster[-1].timestamp,
        "origin": least_trusted(cluster),
    }


def _with_verdicts(sources: dict[str, Any], known: Pattern, scene: Scene) -> dict[str, list[str]]:
    """The evidence of a cluster, and what episodes said that had the pattern before them."""
    judges = scene.judges.get(known.id, frozenset()).difference(sources["source_episodes"])
    said = {"for": known.evidence.for_, "against": known.evidence.against}
    return {
        side: sorted({*ids, *judges.intersection(said[side])})
        for side, ids in sources["evidence"].items()
    }


def _revived(
    taught: Pattern, found: FoundPattern, snapshot: Snapshot, touched: Touched | None
) -> Pattern:
    """A pattern that is taught again when nothing that replaced it is left.

    One that evidence retired speaks until evidence is weighed again, where it will be.
    """
    if taught.status == "retired" and taught.origin != "owner":
        is_weighed = touched is None or not touched.isdisjoint(taught.source_episodes)
        return taught.changed(status="candidate") if is_weighed else taught
    if taught.status != "superseded":
        return taught
    links = [link for link in taught.links if not _is_void(link, found, snapshot)]
    if any(link.relation == _REPLACED_BY for link in links):
        return taught
    document = {**taught.document(), "status": "candidate"}
    document["links"] = [link.model_dump(mode="json", exclude_unset=True) for link in links]
    if not links:
        del document["links"]  # as it was before: equal content is equal bytes
    return parse(Pattern, document)


def _is_void(link: LinkTo, found: FoundPattern, snapshot: Snapshot) -> bool:
    """Check that a replacement no longer holds: clusters parted again, or it is gone."""
    if link.relation != _REPLACED_BY:
        return False
    extra = link.model_extra or {}
    return extra.get("why") == _JOINED or not _is_live(link.to, found, snapshot)


def _is_live(identity: str, found: FoundPattern, snapshot: Snapshot) -> bool:
    """Check that a pattern still stands: it was taught, or its cluster is not at hand."""
    known = snapshot.records.get(identity)
    if not isinstance(known, Pattern) or known.status in {"superseded", "rejected"}:
        return False
    return identity in found.live() or not _speaks_of(found, known)


def _speaks_of(found: FoundPattern, pattern: Pattern) -> bool:
    """Check whether a pattern was induced from a cluster that was looked at now."""
    return _cluster(pattern) in found.home


def _left_over(found: FoundPattern, snapshot: Snapshot) -> Iterator[Pattern]:
    """Patterns whose cluster is now another's, or teaches nothing any more."""
    live = found.live()
    for known in snapshot.of(Pattern):
        is_replaced = known.status == "superseded" and replaced_because(known) != {SAME}
        is_settled = is_replaced or known.status == "rejected"
        if known.id in live or is_settled or not _speaks_of(found, known):
            continue
        heirs = Counter(
            found.home.get(source_episode, "") for source_episode in known.source_episodes
        )
        del heirs[""]
        if heirs:
            yield _superseded(known, min(heirs, key=lambda heir: (-heirs[heir], heir)))
        elif known.status != "retired":
            yield parse(Pattern, {**given_back(known, {SAME}), "status": "retired"})


def _superseded(known: Pattern, heir: str) -> Pattern:
    free = given_back(known, {SAME})  # a twin of what is no longer taught is nobody's twin
    link = {"to": heir, "relation": _REPLACED_BY, "why": _JOINED}
    return known.changed(status="superseded", links=[*free.get("links", ()), link])


def _is_news(pattern: Pattern, snapshot: Snapshot) -> bool:
    known = snapshot.records.get(pattern.id)
    return pattern is not known and differs(pattern, snapshot.records)


def _reported(pattern: Pattern, snapshot: Snapshot) -> BeliefChange:
    known = snapshot.records.get(pattern.id)
    before = known.status if isinstance(known, Pattern) else ""
    what = "updated" if known else "learned"
    if pattern.status != before and pattern.status in _SETTLED:
        what = pattern.status
    return BeliefChange(what, pattern.id, pattern.title(), tuple(pattern.source_episodes))
