"""Link memories that belong together: met in the same episodes, or one says the other in full.

Only links that can be proven are written: `related_to` for two memories that rest on at least two
common episodes, `elaborates` for a statement that contains another one. Likeness is the index's
business. The strength of an association fades with the days since the two were last met together;
that is computed from the date in the link, never written, and a link that has faded is archived.
What says where a belief comes from (`derived_from`, `supersedes`, `example_of`) does not fade.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from loki_memory.consolidation.likeness import content, marks
from loki_memory.consolidation.snapshot import Changes, Snapshot, Step, Touched
from loki_memory.consolidation.sources import (
    days_between,
    differs,
    episodes_of,
    extra,
    is_live,
    least_trusted,
)
from loki_memory.models import AntiPattern, Belief, Link, Memory, Skill, parse

SOURCE = "consolidation"
FADED = 0.15  # below this an association is not shown, and no longer kept
_TOGETHER = 2  # common episodes: one may be chance
_CITED = 5  # episodes that a link names, the latest
_CROWD = 24  # memories of one episode beyond which being met in it means nothing
_CONTAINED, _LONGER, _WORDS = 0.9, 1.3, 4
_ABOVE = frozenset({0, 1})  # topics and parents are met wherever their children are
_PRIVATE = frozenset({"local", "session"})


class Tie(NamedTuple):
    """A link that ought to be there."""

    strength: float
    from_: str
    relation: str
    to: str
    evidence: tuple[str, ...] = ()
    at: str = ""

    def key(self) -> tuple[str, ...]:
        return (self.from_, self.relation, self.to)


def weight(strength: float, at: str, day: str, half_life: int) -> float:
    """What is left of an association's strength on a day.

    >>> weight(0.8, "2026-01-01", "2026-02-15")
    0.4
    """
    faded: float = strength * 0.5 ** (max(0, days_between(at, day)) / half_life)
    return round(faded, 4)


def relate(snapshot: Snapshot, touched: Touched | None = None) -> Changes:  # noqa: ARG001 - a new link may push out an old one
    """Links that are missing or have changed; links of ours that have faded are archived."""
    nodes = {
        name: one
        for name, one in snapshot.records.items()
        if _is_linked(one) and name not in snapshot.archived
    }
    ties = [*_contained(nodes), *_met_together(nodes, snapshot)]
    known = _asserted(snapshot)
    ties = [one for one in ties if frozenset((one.from_, one.to)) not in known]
    ours = {one.key(): one for one in snapshot.of(Link) if extra(one, "by") == SOURCE}
    wanted = {tie.key(): tie for tie in _strongest(ties, snapshot.thresholds.links)}
    new = [
        _link(tie, nodes) for at, tie in wanted.items() if not _is_told(tie, ours.get(at), nodes)
    ]
    put = [one for one in sorted(new, key=lambda one: one.id) if differs(one, snapshot.records)]
    gone = tuple(sorted(one.id for at, one in ours.items() if at not in wanted))
    steps = [_step(one) for one in put if one.id not in snapshot.records]
    return Changes(tuple(put), gone, tuple(steps))


def _step(link: Link) -> Step:
    return Step("linked", link.id, link.title(), tuple(extra(link, "evidence") or ()))


def _is_linked(record: Memory) -> bool:
    is_node = isinstance(record, Belief | Skill) and is_live(record)
    is_shared = getattr(record, "scope", "project") not in _PRIVATE
    return is_node and is_shared and getattr(record, "depth", None) not in _ABOVE


def _asserted(snapshot: Snapshot) -> set[frozenset[str]]:
    """Pairs that are linked already, by someone or as parent and child: nothing to add there."""
    pairs = {
        frozenset((one.from_, one.to)) for one in snapshot.of(Link) if extra(one, "by") != SOURCE
    }
    for one in snapshot.of(Belief):
        pairs |= {frozenset((one.id, link.to)) for link in one.links}
        if one.parent:
            pairs.add(frozenset((one.id, one.parent)))
    return pairs


def _met_together(nodes: Mapping[str, Memory], snapshot: Snapshot) -> Iterator[Tie]:
    """Pairs with enough common episodes whose association has not faded."""
    common: dict[tuple[str, str], list[str]] = defaultdict(list)
    for episode, met in _by_episode(nodes):
        for pair in combinations(met, 2):
            common[pair].append(episode)
    for (one, other), episodes in common.items():
        if len(episodes) >= _TOGETHER:
            tie = _association(one, other, episodes, snapshot)
            half_life = snapshot.thresholds.link_half_life_days
            if not tie.at or weight(tie.strength, tie.at, snapshot.day, half_life) >= FADED:
                yield tie


def _by_episode(nodes: Mapping[str, Memory]) -> Iterator[tuple[str, list[str]]]:
    met: dict[str, list[str]] = defaultdict(list)
    for name, record in sorted(nodes.items()):
        for episode in episodes_of(record):
            met[episode].append(name)
    yield from ((episode, names) for episode, names in met.items() if len(names) <= _CROWD)


def _association(one: str, other: str, episodes: list[str], snapshot: Snapshot) -> Tie:
    moments = {e: snapshot.records[e].when() for e in episodes if e in snapshot.records}
    latest = sorted(episodes, key=lambda e: (moments.get(e, ""), e))[-_CITED:]
    last = max(moments.values(), default="")
    strength = round(1 - 0.5 ** len(episodes), 2)
    return Tie(strength, one, "related_to", other, tuple(sorted(latest)), last[:10])


def _contained(nodes: Mapping[str, Memory]) -> Iterator[Tie]:
    """Statements that say all that a shorter one says, and more.

    The messages of errors are no statements: they contain each other without saying more.
    """
    beliefs = {name: one for name, one in nodes.items() if _is_statement(one)}
    said = {name: frozenset(content(one.value())) for name, one in beliefs.items()}
    rarity = Counter(word for words in said.values() for word in words)
    places: dict[str, list[str]] = defaultdict(list)
    for name in sorted(said):
        for word in said[name]:
            places[word].append(name)
    for short, words in sorted(said.items()):
        if len(words) < _WORDS:
            continue
        # One word in ten may be missing: of two rare words, a full statement has at least one.
        rare = sorted(words, key=lambda word: (rarity[word], word))[:2]
        for long in sorted({name for word in rare for name in places[word]}):
            if _elaborates(nodes[long], said[long], nodes[short], words):
                yield Tie(round(len(words & said[long]) / len(words), 2), long, "elaborates", short)


def _is_statement(record: Memory) -> bool:
    is_error = isinstance(record, AntiPattern) and extra(record, "key")
    return isinstance(record, Belief) and not is_error


def _elaborates(long: Memory, many: frozenset[str], short: Memory, few: frozenset[str]) -> bool:
    if len(many) < _LONGER * len(few) or len(few & many) < _CONTAINED * len(few):
        return False
    return marks(long.value()).is_negated == marks(short.value()).is_negated


def _strongest(ties: Sequence[Tie], most: int) -> Iterator[Tie]:
    """The strongest links, so that no memory has more than it can use."""
    count: Counter[str] = Counter()
    linked: set[frozenset[str]] = set()
    for tie in sorted(ties, key=lambda one: (one.relation, -one.strength, one.from_, one.to)):
        pair = frozenset((tie.from_, tie.to))
        if pair not in linked and max(count[tie.from_], count[tie.to]) < most:
            linked.add(pair)
            count.update(pair)
            yield tie


def _is_told(tie: Tie, link: Link | None, nodes: Mapping[str, Memory]) -> bool:
    """Whether a link is there and says what the tie says, no less and no more."""
    if link is None:
        return False
    told = (link.strength, link.origin, link.note, link.model_extra)
    return told == (tie.strength, _origin(tie, nodes), None, _beside(tie))


def _origin(tie: Tie, nodes: Mapping[str, Memory]) -> str:
    return least_trusted((nodes[tie.from_], nodes[tie.to]))


def _beside(tie: Tie) -> dict[str, Any]:
    """What a link of ours has besides the fields of every link."""
    dated = {"at": tie.at, "evidence": [*tie.evidence]} if tie.at else {}
    return {"by": SOURCE, **dated}


def _link(tie: Tie, nodes: Mapping[str, Memory]) -> Link:
    ends = {"from": tie.from_, "relation": tie.relation, "to": tie.to}
    sure = {"strength": tie.strength, "origin": _origin(tie, nodes)}
    return parse(Link, {**ends, **sure, **_beside(tie)})
