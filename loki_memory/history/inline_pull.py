"""Pull where memory travels with the code: `git pull`, with uncommitted memory out of its way.

Git itself pulls, with the user's settings, hooks and credentials. The user's other changes are
git's business: where it refuses because of them, memory is put back and git's reason is told.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from loki_memory.errors import GitFailed, PullStopped
from loki_memory.git_repository import elsewhere
from loki_memory.history.branch_mode import Exchanged
from loki_memory.history.inline_commit import one_at_a_time, opened
from loki_memory.history.resolve import resolve
from loki_memory.history.review import diff
from loki_memory.history.set_aside import MergedBack, merge_back, set_aside, waiting
from loki_memory.index.queries import problem_paths

if TYPE_CHECKING:
    from loki_memory.git_repository import Repository
    from loki_memory.homes import OpenWorkspace


_NAMED = 3  # files that a notice names


def pull(workspace: OpenWorkspace, remote: str = "") -> Exchanged:
    """Set uncommitted memory aside, pull, and merge it back; raises GitFailed."""
    repository = opened(workspace)
    workspace.home.ensure("edits")  # what somebody edited in a view is in files now
    known = set(problem_paths(workspace.index))
    with one_at_a_time(workspace):
        if waiting(workspace.layout.local):
            workspace.notices.append("memory that an earlier pull had set aside is back")
            merge_back(workspace, repository)
        _refuse_if_busy(repository)
        before = repository.head() or ""
        set_aside(workspace, repository)
        said = ""
        try:
            said = _git_pull(repository, remote)
        finally:
            back = _put_back(workspace, repository)
    workspace.sync()
    if said:
        raise PullStopped(said)
    after = repository.head() or ""
    _tell_of_problems(workspace, known)
    return Exchanged(
        after, _summary(workspace, before, after), *map(tuple, (back.joined, back.kept))
    )


def _refuse_if_busy(repository: Repository) -> None:
    busy = repository.under_way()
    if busy:
        raise GitFailed(("pull",), f"{busy} is under way" if busy.startswith("a ") else busy)


def _git_pull(repository: Repository, remote: str) -> str:
    """Run git as the user would; returns its complaint, empty if all went well."""
    command = ["git", "pull", *(["--", remote] if remote else [])]
    done = subprocess.run(  # noqa: S603 - git
        command, cwd=repository.root, env=elsewhere(), capture_output=True, text=True, check=False
    )
    complaint = done.stderr.strip() or done.stdout.strip() or "it gave no reason"
    return f"{done.stdout}\n{complaint}".strip() if done.returncode else ""


def _put_back(workspace: OpenWorkspace, repository: Repository) -> MergedBack:
    """Merge memory back, after conflicts among memory files are resolved by our own rules."""
    if repository.under_way():
        resolve(workspace)
    if not waiting(workspace.layout.local):
        return MergedBack([], [], "")
    done = merge_back(workspace, repository)
    workspace.notices += [
        f"{path} changed on both sides and cannot be merged; your version is in {done.folder}"
        for path in done.kept
    ]
    return done


def _tell_of_problems(workspace: OpenWorkspace, known: set[str]) -> None:
    """Say what came and is no memory: a link, a name or a content that is refused."""
    new = sorted(set(problem_paths(workspace.index)) - known)
    if new:
        some = ", ".join(new[:_NAMED]) + (", …" if len(new) > _NAMED else "")
        workspace.notices.append(
            f"what came holds {some}, which cannot be used as memory and is left alone; "
            "`loki-mem doctor` says why"
        )


def _summary(workspace: OpenWorkspace, before: str, after: str) -> str:
    if before == after:
        return "up to date"
    news = diff(workspace, f"{before}..{after}").summary() if before else ""
    return f"pulled: {news or 'nothing new in memory'}"
