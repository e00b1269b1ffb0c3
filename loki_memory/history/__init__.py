"""Memory in git: commits, trees of the past, and branches; gitpython is imported only here."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from loki_memory.git_repository import Commit
    from loki_memory.history.belief_diff import Shift
    from loki_memory.history.bisect import BisectTurn
    from loki_memory.history.blame import Blame, BlameStep
    from loki_memory.history.branch_mode import Exchanged
    from loki_memory.history.check import Fault
    from loki_memory.history.file_changes import FieldChange
    from loki_memory.history.inline_commit import Committed
    from loki_memory.history.report import Review
    from loki_memory.history.resolve import Resolved
    from loki_memory.history.revert import Reverted
    from loki_memory.history.review import FilePatch
    from loki_memory.history.worktree_rescue import Salvaged
    from loki_memory.homes import OpenWorkspace
    from loki_memory.integrity.verify import Verified
    from loki_memory.models import Memory

W = TypeVar("W", bound="OpenWorkspace")


class History(Generic[W]):
    """Memory in git, as `ws.history`: commits, what they changed, and where a belief comes from."""

    def __init__(self, workspace: W) -> None:
        self._workspace = workspace

    def commit(self, agent: str = "", subject: str = "", dry_run: bool = False) -> Committed:
        """Commit what changed in memory and nothing else. Never fails because of git.

        >>> ws.history.commit().subject  # doctest: +SKIP
        """
        from loki_memory.history.commit import commit
        from loki_memory.team.ledgers import take_over_checkpoints

        if not dry_run:
            take_over_checkpoints(self._workspace)
        self._workspace.sync()
        return commit(self._workspace, agent, subject=subject, dry_run=dry_run)

    def is_automatic(self) -> bool:
        """Check if memory is committed without being asked: by a setting, or on its own branch."""
        config = self._workspace.config
        return config.text("git.commit") == "auto" or config.text("git.mode") == "branch"

    def pull(self, remote: str = "") -> Exchanged:
        """Fetch memory that others shared, and merge it.

        Where memory travels with the code, that is `git pull`, with uncommitted memory set aside
        and merged back. Without a `remote`, it is the branch's own, or origin.

        >>> ws.history.pull().what  # doctest: +SKIP
        """
        from loki_memory.history import branch_mode, pull

        if self._workspace.config.text("git.mode") == "inline":
            return pull.pull(self._workspace, remote)
        return branch_mode.pull(self._workspace, remote or "origin")

    def push(self, remote: str = "origin") -> Exchanged:
        """Share memory with others, after merging theirs; where it has a branch of its own.

        >>> ws.history.push().what  # doctest: +SKIP
        """
        from loki_memory.history.branch_mode import push

        return push(self._workspace, remote)

    def diff(self, span: str | None = None) -> Review:
        """Compare memory at two points in terms of belief; None: since HEAD.

        >>> ws.history.diff("main...HEAD").counts()  # doctest: +SKIP
        """
        from loki_memory.history.review import diff

        return diff(self._workspace, span)

    def review(self, since: str | None = None) -> tuple[Review, list[Shift]]:
        """The same up to the working tree, and of that the beliefs that nobody has reviewed."""
        from loki_memory.history.review import open_questions

        return open_questions(self._workspace, since)

    def candidates(self, most: int = 20) -> Review:
        """List lessons of this machine that are not published, the surest first.

        >>> [lesson.title for lesson in ws.history.candidates().shifts]  # doctest: +SKIP
        """
        from loki_memory.history.review import candidates

        self._workspace.home.ensure("read")
        return candidates(self._workspace, most)

    def approve(self, memory_id: str) -> Memory:
        """Let a belief stand, as somebody who has read it."""
        from loki_memory.history.review import accept

        return accept(self._workspace, self._workspace.resolve(memory_id))

    def reword(self, memory_id: str, text: str) -> Memory:
        """Change the words of a belief, and let it stand in that form."""
        from loki_memory.history.review import reword

        return reword(self._workspace, self._workspace.resolve(memory_id), text)

    def patch(self) -> list[FilePatch]:
        """The memory files that differ from the last commit, line by line."""
        from loki_memory.history.review import patch

        return patch(self._workspace)

    def check(
        self, span: str | None = None, *, continuity_budget: int | None = None
    ) -> list[Fault]:
        """List what should not be merged, the gravest first."""
        from loki_memory.history.check import check

        return check(self._workspace, span, continuity_budget=continuity_budget)

    def verify(self, *, adopt: Collection[str] | None = None, fix: bool = False) -> Verified:
        """Compare every record with the chain of writes, and citations with the code.

        `adopt` takes for good what was found: of these ids, or all of it if none is named.
        """
        from loki_memory.integrity.verify import verify

        return verify(self._workspace, adopt=adopt, fix=fix)

    def resolve(self, *, plan_only: bool = False) -> list[Resolved]:
        """Merge both sides of every memory file that a merge left with a conflict."""
        from loki_memory.history.resolve import resolve

        return resolve(self._workspace, plan_only=plan_only)

    def blame(self, memory_id: str) -> Blame:
        """Trace a memory to its episodes, their agents, and each commit that changed it.

        >>> [source.agent for source in ws.history.blame("sem-001").sources]  # doctest: +SKIP
        """
        from loki_memory.history.blame import blame

        return blame(self._workspace, self._workspace.resolve(memory_id))

    def log(self, memory_id: str | None = None, limit: int | None = None) -> list[BlameStep]:
        """The commits that changed memory, or one memory, newest first, in belief terms."""
        from loki_memory.history.blame import log

        return log(self._workspace, memory_id and self._workspace.resolve(memory_id), limit)

    def commits(self, limit: int | None = None) -> list[Commit]:
        """List the commits that changed memory, newest first, without what they changed.

        >>> [commit.subject for commit in ws.history.commits()]  # doctest: +SKIP
        """
        from loki_memory.git_repository import repository
        from loki_memory.history.blame import MEMORY

        return repository(self._workspace.layout, self._workspace.config).commits(None, MEMORY)[
            :limit
        ]

    def bisect(
        self,
        query: str,
        expect: str | None = None,
        reject: str | None = None,
        between: str | None = None,
        k: int = 5,
    ) -> BisectTurn:
        """The commit at which a recall began to miss a memory, or to bring one up.

        >>> ws.history.bisect("flaky tests", expect="sem-001").step.subject  # doctest: +SKIP
        """
        from loki_memory.history.bisect import bisect

        return bisect(self._workspace, query, expect or reject or "", bool(expect), between, k)

    def revert(self, name: str) -> Reverted:
        """Undo what one run or commit did to beliefs, and commit that; later changes stay."""
        from loki_memory.history.revert import revert

        return revert(self._workspace, name)

    def as_of(self, rev: str) -> W:
        """The memory of a commit, or of the last one until a date: to be read, not written.

        >>> ws.history.as_of("2026-01-20").list(kind="pattern")  # doctest: +SKIP
        """
        from loki_memory.history.as_of import workspace_as_of

        return workspace_as_of(self._workspace, rev)

    def is_unverified(self, memory_id: str) -> bool:
        """Tell whether the last `verify` found that nobody vouches for this memory."""
        from loki_memory.integrity.reviewed import doubts

        home, path = self._workspace.homes.find(memory_id)
        doubted = doubts(home.layout).get(path)
        found = home.store.read(path) if doubted else None
        return found is not None and found.etag == doubted

    def is_review_due(self) -> bool:
        """Check if memory or git moved since it was found out who answers for what memory says."""
        from loki_memory.integrity.reviewed import is_due

        return is_due(self._workspace.home)

    def renew_review(self) -> None:
        """Find out from git who answers for what memory says: see docs/trust.md."""
        from loki_memory.integrity.reviewed_contents import renew

        renew(self._workspace.home)

    def salvage(self, worktree: str) -> Salvaged:
        """Copy the uncommitted records of a worktree; nothing if it is no worktree of this one."""
        from loki_memory.history.worktree_rescue import salvage

        return salvage(self._workspace, worktree)

    def keep_copies(self, worktree: str) -> int:
        """Copy the uncommitted records of a worktree that may be removed; returns how many."""
        from loki_memory.history.worktree_rescue import keep_copies

        return keep_copies(self._workspace, worktree)

    def bring_back(self) -> Salvaged:
        """Copy what is left of worktrees that are gone into the main worktree."""
        from loki_memory.history.worktree_rescue import bring_back

        return bring_back(self._workspace)

    def is_unreviewed(self, memory_id: str) -> bool:
        """Check if nobody here answers for what a record says, so that it is not told unasked."""
        from loki_memory.integrity.reviewed import known_unreviewed

        return memory_id in known_unreviewed(self._workspace.home)


def statement(record: Memory) -> str:
    """The statement of a belief, which a person can edit."""
    from loki_memory.history.review import statement

    return statement(record)


def bookkeeping(field: FieldChange, shift: Shift) -> bool:
    """Check for a field of something new that only the tool reads, or that another line says."""
    from loki_memory.history.file_changes import bookkeeping

    return bookkeeping(field, shift)


def exit_code(faults: Iterable[Fault]) -> int:
    """The exit code of the gravest fault that `check` found; 0 if there is none."""
    from loki_memory.history.check import exit_code

    return exit_code(faults)


def merge_versions(base: str, ours: str, theirs: str, path: str) -> bool:
    """Merge three versions of a memory file, as git's merge driver; False if markers are left."""
    from loki_memory.history.resolve import drive

    return drive(base, ours, theirs, path)
