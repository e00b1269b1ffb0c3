"""Communities of a graph by Louvain's method (Blondel et al. 2008).

Each node moves to the neighbouring community with the largest gain of modularity until none moves;
then communities become the nodes of a smaller graph, and the same begins again. Nodes are taken in
the order of their names, and of equal gains the first community wins, so the same graph always
gives the same communities.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

Weights = Mapping[str, Mapping[str, float]]  # node -> neighbour -> weight, in both directions

_ROUNDS = 20  # of moves at one level; a graph of memories settles in three or four
_LEVELS = 10
_GAIN = 1e-12  # less is rounding


def communities(names: Iterable[str], edges: Iterable[tuple[str, str]]) -> list[list[str]]:
    """The communities, largest first, each in the order of names; a node without edges is one."""
    nodes = sorted(set(names))
    weights = _weights(nodes, edges)
    groups = {name: [name] for name in nodes}
    for _ in range(_LEVELS):
        moved = _moved(weights)
        if len(set(moved.values())) == len(weights):
            break
        groups = _merged(groups, moved)
        weights = _contracted(weights, moved)
    found = [sorted(group) for group in groups.values()]
    return sorted(found, key=lambda group: (-len(group), group))


def _weights(nodes: Sequence[str], edges: Iterable[tuple[str, str]]) -> Weights:
    found: dict[str, dict[str, float]] = {name: {} for name in nodes}
    for source, target in sorted(edges):
        if source != target and source in found and target in found:
            found[source][target] = found[source].get(target, 0.0) + 1.0
            found[target][source] = found[target].get(source, 0.0) + 1.0
    return found


def _moved(weights: Weights) -> dict[str, str]:
    """The community of each node after moves at one level, named after one of its nodes."""
    degree = {name: sum(near.values()) for name, near in weights.items()}
    total = sum(degree.values()) or 1.0
    home, inside = {name: name for name in weights}, dict(degree)
    for _ in range(_ROUNDS):
        moves = 0
        for name in weights:
            inside[home[name]] -= degree[name]
            best = _best(name, weights[name], home, inside, degree[name] / total)
            moves += best != home[name]
            home[name] = best
            inside[best] += degree[name]
        if not moves:
            break
    return home


def _best(
    name: str,
    near: Mapping[str, float],
    home: Mapping[str, str],
    inside: Mapping[str, float],
    share: float,
) -> str:
    """The community that gains most by a node that has left its own."""
    links: dict[str, float] = {home[name]: 0.0}
    for other, weight in near.items():
        if other != name:
            links[home[other]] = links.get(home[other], 0.0) + weight
    best, gain = home[name], links[home[name]] - inside[home[name]] * share
    for community in sorted(links):
        gained = links[community] - inside[community] * share
        if gained > gain + _GAIN:
            best, gain = community, gained
    return best


def _merged(groups: Mapping[str, list[str]], moved: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, members in groups.items():
        found.setdefault(moved[name], []).extend(members)
    return found


def _contracted(weights: Weights, moved: Mapping[str, str]) -> Weights:
    """The graph of communities; a weight to itself keeps what lies inside one."""
    found: dict[str, dict[str, float]] = {name: {} for name in sorted(set(moved.values()))}
    for name, near in weights.items():
        for other, weight in near.items():
            into = found[moved[name]]
            into[moved[other]] = into.get(moved[other], 0.0) + weight
    return found
