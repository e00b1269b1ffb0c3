"""Positions of a graph's nodes, the same at every run.

A community is a disc; discs are packed along a spiral, the largest in the middle. Within a disc a
force-directed layout (Fruchterman and Reingold 1991) starts from positions that follow from the
names of the nodes. One more memory moves its own disc, hardly the map. Nodes without edges share
the last disc.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import cos, pi, sin, sqrt
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import numpy as np

from loki_memory.index.graph import names_of_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from loki_memory.home import Home
    from loki_memory.index.overview import MapRow

_GOLDEN = pi * (3 - sqrt(5))  # the angle of a sunflower: no two seeds line up
_ROUNDS = 60
_PAIRS = 20_000_000  # forces that one disc may cost: half a second
_ROOM = 1.15  # between discs
_STEP = 0.8  # of the spiral, in units


class Point(NamedTuple):
    """A position; a node takes about one unit."""

    x: float
    y: float


def place(groups: Sequence[Sequence[str]], edges: Iterable[tuple[str, str]]) -> dict[str, Point]:
    """The position of every node of some communities."""
    linked = [group for group in groups if len(group) > 1]
    alone = sorted(group[0] for group in groups if len(group) == 1)
    inner = _edges_within(linked, edges)
    discs = [_disc(group, inner[number]) for number, group in enumerate(linked)]
    discs += [_sunflower(alone)] if alone else []
    centres = _packed([_radius(len(disc)) for disc in discs])
    return {
        name: Point(round(centre.x + point.x, 3), round(centre.y + point.y, 3))
        for centre, disc in zip(centres, discs, strict=True)
        for name, point in disc.items()
    }


def rings(root: str, distances: Mapping[str, int]) -> dict[str, Point]:
    """A neighbourhood: the root in the middle, what is one or two links away on rings around."""
    found = {root: Point(0.0, 0.0)}
    for distance in sorted(set(distances.values()) - {0}):
        names = [name for name, far in distances.items() if far == distance]
        radius = max(4.0 * distance, 2 * len(names) / pi)
        for number, name in enumerate(names):
            angle = 2 * pi * number / len(names) - pi / 2 + 0.4 * (distance - 1)
            found[name] = Point(round(radius * cos(angle), 3), round(radius * sin(angle), 3))
    return found


def _edges_within(
    groups: Sequence[Sequence[str]], edges: Iterable[tuple[str, str]]
) -> list[list[tuple[str, str]]]:
    home = {name: number for number, group in enumerate(groups) for name in group}
    found: list[list[tuple[str, str]]] = [[] for _ in groups]
    for source, target in edges:
        if source in home and home[source] == home.get(target, -1):
            found[home[source]].append((source, target))
    return found


def _radius(number: int) -> float:
    return sqrt(number) * _ROOM


def _sunflower(names: Sequence[str]) -> dict[str, Point]:
    """Seeds on a disc, evenly."""
    return {
        name: Point(sqrt(at + 0.5) * cos(at * _GOLDEN), sqrt(at + 0.5) * sin(at * _GOLDEN))
        for at, name in enumerate(names)
    }


def _disc(names: Sequence[str], edges: Sequence[tuple[str, str]]) -> dict[str, Point]:
    """A force-directed layout, scaled to the disc of so many nodes."""
    number = {name: at for at, name in enumerate(names)}
    ends = np.array([(number[source], number[target]) for source, target in edges], np.intp)
    at = _start(names)
    rounds = max(4, min(_ROUNDS, _PAIRS // len(names) ** 2))
    for turn in range(rounds):
        _push(at, ends.reshape(-1, 2), heat=1 - turn / rounds)
    at -= at.mean(axis=0)
    at *= sqrt(len(names)) / max(float(np.abs(at).max()), 1e-9)
    return {name: Point(float(x), float(y)) for name, (x, y) in zip(names, at, strict=True)}


def _start(names: Sequence[str]) -> NDArray[np.float64]:
    """Positions that follow from the names: no node has to wait for another to have its own."""
    hashes = np.array([crc32(name.encode()) for name in names], np.float64)
    angles, radii = hashes % 6283 / 1000, np.sqrt((hashes % 1009 + 1) / 1009 * len(names))
    return np.stack([np.cos(angles) * radii, np.sin(angles) * radii], axis=1)


def _push(at: NDArray[np.float64], ends: NDArray[np.intp], heat: float) -> None:
    """One round of forces: all nodes repel each other, linked ones attract."""
    size = (at**2).sum(axis=1)
    near = 1 / np.maximum(size[:, None] + size[None, :] - 2 * (at @ at.T), 1e-2)
    np.fill_diagonal(near, 0)
    force = at * near.sum(axis=1, keepdims=True) - near @ at
    along = at[ends[:, 0]] - at[ends[:, 1]]
    pull = along * np.sqrt((along**2).sum(axis=1, keepdims=True))
    np.add.at(force, ends[:, 0], -pull)
    np.add.at(force, ends[:, 1], pull)
    length = np.maximum(np.sqrt((force**2).sum(axis=1, keepdims=True)), 1e-9)
    at += force / length * np.minimum(length, heat)


def _packed(radii: Sequence[float]) -> list[Point]:
    """The centres of discs: each as far inside a spiral as it does not meet those before."""
    sizes, centres = np.array(radii), np.zeros((len(radii), 2))
    step = 0
    for number, radius in enumerate(radii):
        room = (radius + sizes[:number]) ** 2
        while (((centres[:number] - _on_spiral(step)) ** 2).sum(axis=1) < room).any():
            step += 1
        centres[number] = _on_spiral(step)
    return [Point(float(x), float(y)) for x, y in centres]


def _on_spiral(step: int) -> Point:
    angle, radius = step * _GOLDEN, _STEP * sqrt(step)
    return Point(radius * cos(angle), radius * sin(angle))


# -- by meaning: memories near each other say similar things ---------------------------------------

_AXES = 2


def positions(home: Home, rows: Sequence[MapRow]) -> dict[str, Point]:
    """Positions of the memories that have a vector; embeds those that were never embedded.

    The two directions in which all vectors differ most (PCA) are the axes. scikit-learn fixes
    their signs, so a map does not flip.
    """
    found = _vectors(home)
    known = [row for row in rows if row.row in found]
    if len(known) <= _AXES:
        return {row.id: Point(float(number), 0.0) for number, row in enumerate(known)}
    placed = projected(np.stack([found[row.row] for row in known]))
    return {
        row.id: Point(round(float(x), 3), round(float(y), 3))
        for row, (x, y) in zip(known, placed, strict=True)
    }


def projected(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """Vectors on a plane, so large that each has about one unit of room."""
    from sklearn.decomposition import PCA

    placed = PCA(_AXES, svd_solver="covariance_eigh").fit_transform(vectors.astype(np.float64))
    widest = max(float(np.abs(placed).max()), 1e-9)
    return np.asarray(placed * (sqrt(len(vectors)) * 1.5 / widest), np.float64)


def _vectors(home: Home) -> dict[int, NDArray[np.float32]]:
    """The mean vector of each memory, by its row in the index."""
    catalogue = home.retriever.prepare()
    corpus, matrix = catalogue.corpus, home.retriever.vectors.matrix
    found = {}
    for number, row in enumerate(corpus.row):
        entries = catalogue.entry[corpus.first[number] : corpus.first[number + 1]]
        entries = entries[entries >= 0]
        if len(entries):
            found[int(row)] = matrix[entries].mean(axis=0)
    return found


def most_similar(home: Home, memory_id: str, most: int) -> list[tuple[str, float]]:
    """The live memories that are nearest in meaning to one, with the cosines; none if it has no
    vector.
    """
    names = names_of_rows(home.index, list(found := _vectors(home)))
    vectors = {names[row]: vector for row, vector in found.items() if row in names}
    if memory_id not in vectors:
        return []
    own = vectors.pop(memory_id)
    near = ((name, _cosine(own, vector)) for name, vector in vectors.items())
    return sorted(near, key=lambda entry: (-entry[1], entry[0]))[:most]


def _cosine(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / lengths if lengths else 0.0
