"""Link memories that belong together: met in the same episodes, or one says the other in full.

Only links that can be proven are written: `related_to` for two memories that rest on at least two
common episodes, `elaborates` for a statement that contains another one. Likeness is the index's
business. The strength of an association fades with the days since the two were last met together;
that is computed from the date in the link, never written, and a link that has faded is archived.
What says where a belief comes from (`derived_from`, `supersedes`, `example_of`) does not fade.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import combinations
from typing import Any, NamedTuple, TypeGuard

from loki_memory.consolidation.features import statement_features
from loki_memory.consolidation.provenance import (
    days_between,
    differs,
    extra,
    ids_in,
    is_live,
    least_trusted,
)
from loki_memory.consolidation.snapshot import BeliefChange, PhaseChanges, Snapshot, Touched
from loki_memory.models import AntiPattern, Belief, Link, Skill, parse

SOURCE = "consolidation"
FADED = 0.15  # below this an association is not shown, and no longer kept
_HALF_LIFE_DAYS = 45  # met twice and never again: gone after three and a half months
_TOGETHER = 2  # common episodes: one may be chance
_CITED = 5  # episodes that a link names, the latest
_CROWD = 24  # memories of one episode beyond which being met in it means nothing
_CONTAINED, _LONGER, _WORDS = 0.9, 1.3, 4
_ABOVE = frozenset({0, 1})  # topics and parents are met wherever their children are
_PRIVATE = frozenset({"local", "session"})

Node = Belief | Skill


class Tie(NamedTuple):
    """A link that ought to be there."""

    strength: float
    from_: str
    relation: str
    to: str
    episodes: Sequence[str] = ()  # in which the two were met, in the order of time
    at: str = ""

    def key(self) -> tuple[str, ...]:
        return (self.from_, self.relation, self.to)


def weight(strength: float, at: str, day: str, half_life: int) -> float:
    """Return what is left of an association's strength on a day.

    >>> weight(0.8, "2026-01-01", "2026-02-15", half_life=45)
    0.4
    """
    faded: float = strength * 0.5 ** (max(0, days_between(at, day)) / half_life)
    return round(faded, 4)


def relate(snapshot: Snapshot, touched: Touched | None = None) -> PhaseChanges:  # noqa: ARG001 - a new link may push out an old one
    """Links that are missing or have changed; links of ours that have faded are archived."""
    nodes = _nodes(snapshot)
    known = _asserted(snapshot)
    ties = [*_contained(nodes), *_met_together(nodes, snapshot)]
    ties = [entry for entry in ties if (entry.from_, entry.to) not in known]
    ours = {link.key(): link for link in snapshot.of(Link) if extra(link, "by") == SOURCE}
    wanted = {tie.key(): tie for tie in _strongest(ties, snapshot.thresholds.links)}
    new = [
        _link(tie, nodes) for at, tie in wanted.items() if not _is_told(tie, ours.get(at), nodes)
    ]
    put = [
        link for link in sorted(new, key=lambda link: link.id) if differs(link, snapshot.records)
    ]
    gone = tuple(sorted(our.id for at, our in ours.items() if at not in wanted))
    steps = [_step(link) for link in put if link.id not in snapshot.records]
    return PhaseChanges(tuple(put), gone, tuple(steps))


def _step(link: Link) -> BeliefChange:
    return BeliefChange("linked", link.id, link.title(), tuple(extra(link, "evidence") or ()))


def _nodes(snapshot: Snapshot) -> dict[str, Node]:
    """Return what can be linked, in the order of ids."""
    records: list[Node] = [*snapshot.of(Belief), *snapshot.of(Skill)]
    return {
        record.id: record
        for record in sorted(records, key=lambda record: record.id)
        if _is_linked(record)
    }


def _is_linked(record: Node) -> bool:
    if not is_live(record):
        return False
    if isinstance(record, Belief):
        return record.scope not in _PRIVATE and record.depth not in _ABOVE
    return extra(record, "scope") not in _PRIVATE and extra(record, "depth") not in _ABOVE


def _asserted(snapshot: Snapshot) -> set[tuple[str, str]]:
    """Pairs, either way round, that someone linked or that are parent and child."""
    pairs = [
        (relation.from_, relation.to)
        for relation in snapshot.of(Link)
        if extra(relation, "by") != SOURCE
    ]
    for belief in snapshot.of(Belief):
        pairs += [(belief.id, link.to) for link in belief.links]
        if belief.parent:
            pairs.append((belief.id, belief.parent))
    return {*pairs, *((to, from_) for from_, to in pairs)}


def _met_together(nodes: Mapping[str, Node], snapshot: Snapshot) -> Iterator[Tie]:
    """Pairs with enough common episodes whose association has not faded."""
    met = _by_episode(nodes)
    moments = {node: _moment(snapshot, node) for node in met}
    common: dict[tuple[str, str], list[str]] = defaultdict(list)
    for episode in sorted(met, key=lambda node: (moments[node], node)):
        for pair in combinations(met[episode], 2):
            common[pair].append(episode)
    strength = cache(partial(_strength, snapshot))  # of few numbers and days
    for (entry, other), episodes in common.items():
        if len(episodes) >= _TOGETHER:
            last = moments[episodes[-1]][:10]
            sure = strength(len(episodes), last)
            if sure:
                yield Tie(sure, entry, "related_to", other, episodes, last)


def _strength(snapshot: Snapshot, times: int, last: str) -> float:
    """The strength of an association that was met so many times; 0 if it has faded."""
    strength: float = round(1 - 0.5**times, 2)
    is_faded = last and weight(strength, last, snapshot.day, _HALF_LIFE_DAYS) < FADED
    return 0.0 if is_faded else strength


def _by_episode(nodes: Mapping[str, Node]) -> dict[str, list[str]]:
    """The memories that rest on each episode, where there are some and not too many."""
    met: dict[str, list[str]] = defaultdict(list)
    for name, record in nodes.items():
        for episode in _rests_on(record):
            met[episode].append(name)
    return {episode: names for episode, names in met.items() if 1 < len(names) <= _CROWD}


def _rests_on(record: Node) -> Iterable[str]:
    if isinstance(record, Belief):
        return record.rests_on()
    return ids_in(record, "loki-evidence")


def _moment(snapshot: Snapshot, episode: str) -> str:
    """When it happened; empty, and so before all others, if nobody knows it any more."""
    known = snapshot.records.get(episode)
    return known.when() if known else ""


def _contained(nodes: Mapping[str, Node]) -> Iterator[Tie]:
    """Statements that say all that a shorter one says, and more.

    The messages of errors are no statements: they contain each other without saying more.
    """
    statements = (node for node in nodes.values() if _is_statement(node))
    gists = {statement.id: statement_features(statement) for statement in statements}
    said = {name: frozenset(gist.words) for name, gist in gists.items()}
    places: dict[str, list[str]] = defaultdict(list)
    for name, gist in gists.items():
        for word in gist.words:
            places[word].append(name)
    for short, words in said.items():
        if len(words) < _WORDS:
            continue
        # One word in ten may be missing: of two rare words, a full statement has at least one.
        rare = sorted(gists[short].words, key=lambda word: len(places[word]))[:2]
        for long in sorted({name for word in rare for name in places[word]}):
            is_denied = gists[long].is_negated != gists[short].is_negated
            if not is_denied and _contains(said[long], words):
                yield Tie(round(len(words & said[long]) / len(words), 2), long, "elaborates", short)


def _is_statement(record: Node) -> TypeGuard[Belief]:
    is_error = isinstance(record, AntiPattern) and extra(record, "key")
    return isinstance(record, Belief) and not is_error


def _contains(many: frozenset[str], few: frozenset[str]) -> bool:
    return len(many) >= _LONGER * len(few) and len(few & many) >= _CONTAINED * len(few)


def _strongest(ties: Sequence[Tie], most: int) -> Iterator[Tie]:
    """The strongest links, so that no memory has more than it can use."""
    count: dict[str, int] = defaultdict(int)
    linked: set[tuple[str, str]] = set()
    for tie in sorted(
        ties, key=lambda entry: (entry.relation, -entry.strength, entry.from_, entry.to)
    ):
        ends = (tie.from_, tie.to)
        if ends not in linked and max(count[tie.from_], count[tie.to]) < most:
            linked |= {ends, ends[::-1]}
            count[tie.from_] += 1
            count[tie.to] += 1
            yield tie


def _is_told(tie: Tie, link: Link | None, nodes: Mapping[str, Node]) -> bool:
    """Check whether a link is there and says what the tie says, no less and no more."""
    if link is None:
        return False
    told = (link.strength, link.origin, link.note, link.model_extra)
    return told == (tie.strength, _origin(tie, nodes), None, _beside(tie))


def _origin(tie: Tie, nodes: Mapping[str, Node]) -> str:
    return least_trusted((nodes[tie.from_], nodes[tie.to]))


def _beside(tie: Tie) -> dict[str, Any]:
    """Return what a link of ours has besides the fields of every link."""
    dated = {"at": tie.at, "evidence": sorted(tie.episodes[-_CITED:])} if tie.at else {}
    return {"by": SOURCE, **dated}


def _link(tie: Tie, nodes: Mapping[str, Node]) -> Link:
    ends = {"from": tie.from_, "relation": tie.relation, "to": tie.to}
    sure = {"strength": tie.strength, "origin": _origin(tie, nodes)}
    return parse(Link, {**ends, **sure, **_beside(tie)})
