"""Find the commit at which a recall changed, by asking the memory of the commits in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import NoChange, UnknownRevision
from loki_memory.git_repository import repository
from loki_memory.history.as_of import workspace_as_of
from loki_memory.history.blame import MEMORY, BlameStep, step
from loki_memory.recall.recall import RecallOptions, recall

if TYPE_CHECKING:
    from loki_memory.git_repository import Commit, Repository
    from loki_memory.homes import OpenWorkspace


class BisectTurn(NamedTuple):
    """The commit at which a recall changed."""

    step: BlameStep
    before: list[str]  # ids that were recalled
    after: list[str]
    tried: int


def bisect(
    workspace: OpenWorkspace,
    query: str,
    memory_id: str,
    expected: bool,
    between: str | None = None,
    k: int = 5,
) -> BisectTurn:
    """Find the commit at which a recall began to miss a memory, or to return it.

    A merge counts as one commit at first. If it is the turn, and its side branch was right at the
    start and wrong at the end, the search goes on in that branch.
    """
    repo = repository(workspace.layout, workspace.config)
    good, bad = _ends(repo, between)
    recalled: dict[str, list[str]] = {}

    def is_good(commit: Commit) -> bool:
        if commit.id not in recalled:
            past = workspace_as_of(workspace, commit.id)
            asked = RecallOptions(query, k).as_query(past.now())
            recalled[commit.id] = [hit.id for hit in recall(past, asked)[0]]
        return (memory_id in recalled[commit.id]) == expected

    line = _line(repo, good, bad)
    is_right_now = is_good(line[-1])
    first = None if is_right_now else _first_good(is_good, line, given=bool(good))
    if first is None:
        raise NoChange(memory_id, expected=expected, is_right_now=is_right_now)
    last_good, turn = _narrowed(is_good, line[first:])
    while side := _merged_line(repo, turn):
        if not is_good(side[0]) or is_good(side[-1]):
            break
        last_good, turn = _narrowed(is_good, side)
    before = recalled.get(last_good.id, [])
    return BisectTurn(step(repo, turn), before, recalled[turn.id], len(recalled))


def _ends(repo: Repository, between: str | None) -> tuple[str, str]:
    good, _, bad = (between or "").partition("..")
    return (repo.commit_of(good) if good else ""), repo.commit_of(bad or "HEAD")


def _line(repo: Repository, good: str, bad: str) -> list[Commit]:
    """The commits of memory from good to bad, oldest first, with both ends; merges as one."""
    span = f"{good}..{bad}" if good else bad
    found = repo.commits(span, MEMORY, whole_merges=True)[::-1]
    if good:
        found = [*repo.commits(f"{good}^!", ()), *found]
    if not found:
        raise UnknownRevision(span)
    return found


def _merged_line(repo: Repository, merge: Commit) -> list[Commit]:
    """The commits that a merge brought in, from where they branched off; none if it has no two
    parents.
    """
    if len(merge.parents) != 2:  # noqa: PLR2004 - an octopus merge does not say which side
        return []
    base = repo.base(*merge.parents)
    return _line(repo, base, merge.parents[1]) if base else []


def _narrowed(is_good: Callable[[Commit], bool], line: Sequence[Commit]) -> tuple[Commit, Commit]:
    """Bisect a line that is right at its start and wrong at its end: the commits at the turn."""
    low, high = 0, len(line) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_good(line[middle]) else (low, middle)
    return line[low], line[high]


def _first_good(
    is_good: Callable[[Commit], bool], line: Sequence[Commit], *, given: bool
) -> int | None:
    """Choose the start: the end that was given, else the first good one 1, 2, 4, … commits back.

    Before the first commit there was no memory, so nothing was recalled.
    """
    back = 1
    while back < len(line) and not given:
        if is_good(line[-1 - back]):
            return len(line) - 1 - back
        back *= 2
    return 0 if is_good(line[0]) else None
