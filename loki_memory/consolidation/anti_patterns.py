"""Induce anti-patterns: what failed, and what helped, from every episode that met an error.

An error is the same error when command, masked line and named thing are the same (`Key`), and its
anti-pattern has an id that is made of them: so episodes in any order, in any batches, on any
branch, give one record. It cites the episodes that met the error; its words and remedies are
those of the newest of them, so that the thousandth occurrence costs what the hundredth did. What
it knows of episodes that are archived stays. What a day taught is a view over anti-patterns.

What was done in two episodes need not read alike to be the same remedy: whoever got over the error
by a name that a remedy brings in speaks for it, and who got over it by other names speaks against
it. Of the latter, those whose own remedy is not among the few that are kept are listed as
`otherwise`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from loki_memory.consolidation.failures import (
    BARE,
    EXAMPLE,
    RULE,
    SILENCE,
    Failure,
    brought_in,
    group,
)
from loki_memory.consolidation.features import EpisodeFeatures
from loki_memory.consolidation.provenance import extra, least_trusted, newest
from loki_memory.consolidation.similarity import LEFT_OUT, common, content
from loki_memory.consolidation.snapshot import (
    BeliefChange,
    PhaseChanges,
    Snapshot,
    Touched,
    in_time,
)
from loki_memory.models import AntiPattern, Resolution, parse, tombstone_id
from loki_memory.models.confidence import lower_bound, otherwise
from loki_memory.models.error_noise import is_usage
from loki_memory.models.links import Tombstone

_CODE = re.compile(r"`[^`]+`")
_ARROW = " \u2192 "  # between a line and what it became
_TELLING = 4  # words of content that the messages of a rule must share to be told by them
_COMMANDS = 2  # that report a rule most often
_NEWEST = 25  # episodes, of all that met an error


class Occurrence(NamedTuple):
    """A failure, and the episode that met it."""

    episode: EpisodeFeatures
    failure: Failure


class KnownAntiPatterns(NamedTuple):
    """An error: the touched episodes that met it, and what the newest of all met."""

    fresh: list[EpisodeFeatures]
    newest: list[Occurrence]
    old: AntiPattern | None


def antipatterns(snapshot: Snapshot, touched: Touched | None = None) -> PhaseChanges:
    """One anti-pattern per error."""
    put: list[AntiPattern] = []
    steps: list[BeliefChange] = []
    refused = {tombstone.rejected for tombstone in snapshot.of(Tombstone) if tombstone.rejected}
    for id_, known in sorted(_by_error(snapshot, touched).items()):
        if id_ in refused or _is_rejected(snapshot, known.newest):
            continue
        new = _anti_pattern(snapshot, id_, known)
        if new is not known.old:
            put.append(new)
            steps.append(_step(new, known.old))
    return PhaseChanges(put=tuple(put), steps=tuple(steps))


def _by_error(snapshot: Snapshot, touched: Touched | None) -> dict[str, KnownAntiPatterns]:
    """Return what is known of each error that a touched episode met."""
    found: dict[str, list[Occurrence]] = {}
    fresh = snapshot.episodes if touched is None else _episodes(snapshot, touched)
    for entry in (occurrence for episode in fresh for occurrence in _occurrences(episode)):
        found.setdefault(entry.failure.id, []).append(entry)
    return {id_: _known(snapshot, id_, met, touched) for id_, met in sorted(found.items())}


def _occurrences(episode: EpisodeFeatures) -> list[Occurrence]:
    return [Occurrence(episode, mishap) for mishap in episode.mishaps()]


def _known(
    snapshot: Snapshot, id_: str, met: list[Occurrence], touched: Touched | None
) -> KnownAntiPatterns:
    """The new episodes, and those that the record cites if they met the error too."""
    record = snapshot.records.get(id_)
    old = record if isinstance(record, AntiPattern) else None
    by_episode: dict[str, list[Occurrence]] = {}
    for occurrence in met:
        by_episode.setdefault(occurrence.episode.id, []).append(occurrence)
    fresh = _episodes(snapshot, by_episode)
    cited = old.evidence.for_ if old and touched is not None else []
    episodes = _episodes(snapshot, {*cited, *by_episode})

    last: list[list[Occurrence]] = []
    for episode in reversed(episodes):
        if episode.id not in by_episode:
            by_episode[episode.id] = [
                occurrence for occurrence in _occurrences(episode) if occurrence.failure.id == id_
            ]
        last += filter(None, [by_episode[episode.id]])
        if len(last) == _NEWEST:
            break
    newest = [occurrence for occurrences in last for occurrence in occurrences]
    return KnownAntiPatterns(fresh, newest, old)


def _episodes(snapshot: Snapshot, ids: Iterable[str]) -> list[EpisodeFeatures]:
    return in_time(filter(None, map(snapshot.episode, ids)))


def _anti_pattern(snapshot: Snapshot, id_: str, known: KnownAntiPatterns) -> AntiPattern:
    """The record as all that is known of the error makes it."""
    old, met = known.old, known.newest
    every, unlisted = _resolutions(met, _archived(snapshot, old)), _unlisted(snapshot, old)
    usual = [resolution for resolution in every if _is_usual(resolution, met)]
    resolutions = usual[: snapshot.thresholds.resolutions]
    others = (_overcame(every) | unlisted) - _overcame(resolutions)
    episodes = {episode.id for episode in known.fresh} | set(old.evidence.for_ if old else ())
    first, last = known.fresh[0], known.fresh[-1]
    fields: dict[str, Any] = {
        "id": id_,
        "what_fails": _line(met),
        "prevention": next((_told(r.do, met) for r in resolutions if r.for_), None),
        "resolutions": [
            resolution.model_dump(mode="json", exclude_unset=True) for resolution in resolutions
        ],
        "otherwise": sorted(others) or None,
        "status": "candidate",
        "scope": first.scope,
        "key": met[0].failure.key._asdict(),
        "usage": is_usage(met[0].failure.line) or None,
        "commands": _commands(met, old),
        "origin": least_trusted([*known.fresh, *filter(None, [old])]),
    }
    evidence = {"for": newest(episodes), "against": old.evidence.against if old else []}
    dates = {"valid_from": first.date, "at": last.timestamp}
    if old is None:
        given = {name: value for name, value in fields.items() if value is not None}
        return parse(AntiPattern, {**given, "evidence": evidence, **dates})
    fields.pop("status")
    if old.origin == "owner":  # the words are a person's, the evidence is ours
        fields = {name: fields[name] for name in ("resolutions", "otherwise")}
    dates["valid_from"] = min(filter(None, (old.valid_from, dates["valid_from"])))
    dates["at"] = max(filter(None, (old.at, dates["at"])))
    given = {name: value for name, value in fields.items() if value is not None}
    stated = old.document()
    rest = {name: value for name, value in stated.items() if name != "otherwise"}
    evidence = old.evidence.with_lists(evidence["for"], evidence["against"])
    document = {**rest, **given, "evidence": evidence, **dates}
    # Most are as they were: that is seen before another one is made of the same fields.
    new = old if document == stated else parse(AntiPattern, document)
    return old if new.document() == stated else new


def _is_usual(resolution: Resolution, met: list[Occurrence]) -> bool:
    """Leave out that a rule was silenced, unless half of the episodes that met it did so."""
    is_silenced = resolution.do.startswith(SILENCE)
    episodes = {occurrence.episode.id for occurrence in met}
    return not is_silenced or 2 * len(resolution.for_) >= len(episodes)


def _told(do: str, met: list[Occurrence]) -> str:
    """A remedy as it is told: of a linter's rule, nothing that is about the code of one place.

    The words hold without the example; words about one place do not, and only the change is left.
    """
    template = met[0].failure.key.template
    explained, example, change = do.partition(EXAMPLE)
    if not (example and template.startswith(RULE)):
        return do
    named = [name for name in _CODE.findall(explained) if template.removeprefix(RULE) not in name]
    return f"Change {change}" if named and _ARROW in change else explained


def _line(met: list[Occurrence]) -> str:
    """The line that names an error: of a linter's rule what its messages have in common."""
    lines = [occurrence.failure.line for occurrence in met]
    is_rule = met[0].failure.key.template.startswith(RULE)
    shared = common(lines).strip(f"{LEFT_OUT} ") if is_rule and len({*lines}) > 1 else ""
    return shared if len(content(shared.replace(LEFT_OUT, " "))) >= _TELLING else _commonest(lines)


def _commands(met: list[Occurrence], old: AntiPattern | None) -> list[str] | None:
    """The commands that report a linter's rule, which its key does not name."""
    if not met[0].failure.key.template.startswith(RULE):
        return None
    counts = Counter(occurrence.failure.command for occurrence in met)
    known = (extra(old, "commands") if old else None) or []
    ranked = sorted({*counts, *known} - {""}, key=lambda command: (-counts[command], command))
    return ranked[:_COMMANDS] or None


def _archived(snapshot: Snapshot, old: AntiPattern | None) -> list[Resolution]:
    """Return what a record says of remedies beyond the episodes at hand."""
    kept: list[Resolution] = []
    for resolution in old.resolutions if old else ():
        helped = [episode for episode in resolution.for_ if episode not in snapshot.records]
        failed = [episode for episode in resolution.against if episode not in snapshot.records]
        if helped or failed or not (resolution.for_ or resolution.against):
            kept.append(resolution.model_copy(update={"for_": helped, "against": failed}))
    return kept


def _unlisted(snapshot: Snapshot, old: AntiPattern | None) -> set[str]:
    """Return those that a record lists as `otherwise` beyond the episodes at hand."""
    return (
        {antipattern for antipattern in otherwise(old) if antipattern not in snapshot.records}
        if old
        else set()
    )


def _overcame(resolutions: Iterable[Resolution]) -> set[str]:
    return {episode for resolution in resolutions for episode in resolution.for_}


def _resolutions(met: list[Occurrence], archived: list[Resolution]) -> list[Resolution]:
    """The best by how surely they help; a later success of an episode outweighs its failures."""
    best: dict[str, Resolution] = {}
    known = [*archived, *(_tried(occurrence) for occurrence in met if occurrence.failure.do)]
    for resolution in known:
        same = best.get(group(resolution.do))
        best[group(resolution.do)] = _joined(same, resolution) if same else resolution
    ranked = [_supported(entry, met) for entry in best.values()]
    complained = _complained(met)
    overcame = _overcame(ranked)
    ranked.sort(
        key=lambda resolution: (len(brought_in(resolution.do)), resolution.do)
    )  # what is plain is told first
    ranked.sort(key=_newest, reverse=True)
    ranked.sort(key=lambda resolution: _is_off_topic(resolution, complained))
    ranked.sort(key=_names)
    ranked.sort(key=_wording, reverse=True)
    return sorted(ranked, key=lambda resolution: _worth(resolution, overcame), reverse=True)


def _complained(met: list[Occurrence]) -> frozenset[str]:
    """Words of what a linter's rule complains of; of other errors none."""
    of_rules = (at.failure for at in met if at.failure.key.template.startswith(RULE))
    return frozenset(word for failure in of_rules for word in content(failure.line))


def _tried(occurrence: Occurrence) -> Resolution:
    side = "for" if occurrence.failure.worked else "against"
    return Resolution.model_validate(
        {"do": occurrence.failure.do, "for": [], "against": [], side: [occurrence.episode.id]}
    )


def _joined(resolution: Resolution, other: Resolution) -> Resolution:
    helped = {*resolution.for_, *other.for_}
    failed = {*resolution.against, *other.against} - helped
    do = min((resolution.do, other.do), key=lambda text: (-len(text), text))
    extra = {**(other.model_extra or {}), **(resolution.model_extra or {})}
    return Resolution.model_validate(
        {"do": do, "for": sorted(helped), "against": sorted(failed), **extra}
    )


def _supported(resolution: Resolution, met: list[Occurrence]) -> Resolution:
    """With the episodes that got over the error by a name that it brings in."""
    names = brought_in(resolution.do)
    alike = {at.id for at, other in met if other.worked and names & other.names}
    helped = alike.union(resolution.for_)
    failed = [episode for episode in resolution.against if episode not in helped]
    return resolution.model_copy(update={"for_": sorted(helped), "against": failed})


def _newest(resolution: Resolution) -> str:
    """Of equals the one that was used last fits the code as it is; ids begin with their day."""
    return max((*resolution.for_, *resolution.against), default="")


def _wording(resolution: Resolution) -> int:
    """Return what explains comes before what only shows a change or a command."""
    is_bare = BARE.match(resolution.do) is not None
    return 0 if is_bare else 2 if EXAMPLE in resolution.do else 1


def _names(resolution: Resolution) -> int:
    """Count the names of code in an explanation: without any it holds in other places."""
    has_example = EXAMPLE in resolution.do
    return len(_CODE.findall(_explained(resolution))) if has_example else 0


def _is_off_topic(resolution: Resolution, complained: frozenset[str]) -> bool:
    """Check for an explanation of one example that shares no word with what a rule complains of."""
    has_example = EXAMPLE in resolution.do
    return has_example and complained.isdisjoint(content(_explained(resolution)))


def _explained(resolution: Resolution) -> str:
    """The words of a remedy, without its example."""
    return resolution.do.partition(EXAMPLE)[0]


def _worth(resolution: Resolution, overcame: set[str]) -> float:
    """By those that overcame the error, with it and without: a task can fail for other reasons."""
    return lower_bound(len(resolution.for_), len(overcame.difference(resolution.for_)))


def _is_rejected(snapshot: Snapshot, met: list[Occurrence]) -> bool:
    """One wording of an error that a person rejected rejects them all."""
    lines = {occurrence.failure.line for occurrence in met} if snapshot.rejected else ()
    return any(tombstone_id(line) in snapshot.rejected for line in lines)


def _commonest(texts: Iterable[str]) -> str:
    counts = Counter(texts)
    return min(counts, key=lambda text: (-counts[text], text))


def _step(new: AntiPattern, old: AntiPattern | None) -> BeliefChange:
    news = sorted({*new.evidence.for_} - {*(old.evidence.for_ if old else ())})
    what = "learned" if old is None else "strengthened"
    return BeliefChange(what, new.id, new.what_fails, tuple(news), new.prevention or "")
