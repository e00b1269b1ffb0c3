"""Find the commit at which a recall changed: the memory of the commits in between is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import NoChange, UnknownRevision
from loki_memory.versioning.past import as_of
from loki_memory.versioning.tracing import MEMORY, Step, step
from loki_memory.versioning.versioned import repository

if TYPE_CHECKING:
    from loki_memory.history.repository import Commit, Repository
    from loki_memory.workspace import Workspace


class Turn(NamedTuple):
    """The commit at which a recall changed."""

    step: Step
    before: list[str]  # ids that were recalled
    after: list[str]
    tried: int


def bisect(
    workspace: Workspace,
    query: str,
    memory_id: str,
    expected: bool,
    between: str | None = None,
    k: int = 5,
) -> Turn:
    """The commit of memory at which a recall began to miss a memory, or to bring it up."""
    repo = repository(workspace)
    good, bad = _ends(repo, between)
    line = _line(repo, good, bad)
    recalled: dict[int, list[str]] = {}

    def is_good(at: int) -> bool:
        if at not in recalled:
            recalled[at] = [hit.id for hit in as_of(workspace, line[at].id).recall(query, k)]
        return (memory_id in recalled[at]) == expected

    high = len(line) - 1
    is_right_now = is_good(high)
    low = None if is_right_now else _first_good(is_good, len(line), given=bool(good))
    if low is None:
        raise NoChange(memory_id, expected=expected, is_right_now=is_right_now)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_good(middle) else (low, middle)
    return Turn(step(repo, line[high]), recalled.get(low, []), recalled[high], len(recalled))


def _ends(repo: Repository, between: str | None) -> tuple[str, str]:
    good, _, bad = (between or "").partition("..")
    return (repo.commit_of(good) if good else ""), repo.commit_of(bad or "HEAD")


def _line(repo: Repository, good: str, bad: str) -> list[Commit]:
    """The commits of memory from good to bad, oldest first, with both ends."""
    span = f"{good}..{bad}" if good else bad
    found = repo.commits(span, MEMORY)[::-1]
    if good:
        found = [*repo.commits(f"{good}^!", ()), *found]
    if not found:
        raise UnknownRevision(span)
    return found


def _first_good(is_good: Callable[[int], bool], count: int, *, given: bool) -> int | None:
    """Where to start: at the end that was given, else where steps back of 1, 2, 4, … find it right.

    Before the first commit there was no memory: then nothing was recalled.
    """
    if given:
        return 0 if is_good(0) else None
    back = 1
    while back < count:
        if is_good(count - 1 - back):
            return count - 1 - back
        back *= 2
    return 0 if is_good(0) else None
