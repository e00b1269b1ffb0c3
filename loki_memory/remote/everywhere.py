"""Recall from other repositories: from what was pulled, so that it needs no network.

What holds in another repository need not hold here. So these hits come after all local ones, each
with the name of its repository, and nobody is told of them who did not ask.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import Ambiguous, NotFound
from loki_memory.homes import OpenWorkspace
from loki_memory.recall.recall import RecallOptions, recall
from loki_memory.remote.cached import CachedHome, cached
from loki_memory.remote.servers import servers

if TYPE_CHECKING:
    from loki_memory.models import Memory

_KINDS = ("fact", "pattern", "anti-pattern", "learning", "skill")  # not what happened elsewhere


class ElsewhereHit(NamedTuple):
    """A memory of another repository, or one that a teammate pushed to this one's."""

    repository: str
    server: str
    pushed: bool  # a teammate's candidate, which nobody reviewed
    id: str
    kind: str
    title: str
    remedy: str
    score: float  # the chance that it is relevant
    why: tuple[str, ...]
    at: str


class _Source(NamedTuple):
    server: str
    repository: str
    pushed: bool
    home: CachedHome


def everywhere(
    workspace: OpenWorkspace,
    query: str,
    known: Collection[str] = (),
    *,
    k: int = 5,
    kinds: Iterable[str] | None = None,
    task: str | None = None,
    error: str | None = None,
) -> list[ElsewhereHit]:
    """The best memories of other repositories; `known` are ids that are found here already."""
    wanted = [kind for kind in kinds or _KINDS if kind in _KINDS]
    if not wanted:
        return []
    asked = RecallOptions(query, k, wanted, task, error=error).as_query(workspace.now())
    best: dict[str, ElsewhereHit] = {}
    for source in _sources(workspace):
        found, _ = recall(OpenWorkspace(source.home), asked)
        source.home.index.close()
        for hit in found:
            told = ElsewhereHit(
                source.repository,
                source.server,
                source.pushed,
                *(hit.id, hit.kind, hit.title, hit.remedy, hit.score, hit.why, hit.at),
            )
            if hit.id not in known and (hit.id not in best or best[hit.id].score < hit.score):
                best[hit.id] = told
    ordered = sorted(best.values(), key=lambda hit: (-hit.score, hit.repository, hit.id))
    return ordered[:k]


def find(workspace: OpenWorkspace, start: str) -> tuple[str, Memory]:
    """The repository and the record whose id begins so; raises NotFound or Ambiguous."""
    for source in _sources(workspace):
        names = source.home.index.ids_starting(start)
        if len(names) > 1 and start not in names:
            raise Ambiguous(start, names)
        if names:
            name = start if start in names else names[0]
            return source.repository, OpenWorkspace(source.home).get(name)
    raise NotFound(start)


def _sources(workspace: OpenWorkspace) -> Iterator[_Source]:
    """Trusted memory of other repositories; of this one's, which git brings, what others pushed."""
    for server in servers():
        own = server.project(workspace.layout)
        for repository in cached(server):
            is_own = repository.name == own
            home = repository.home("pushed" if is_own else "trusted")
            if home is not None:
                yield _Source(server.name, repository.name, is_own, home)
