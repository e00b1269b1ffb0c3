"""A Home: one opened `.loki` folder with its config, store, index and views."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Self, TypeVar

from loki_memory.files.layout import Layout
from loki_memory.home import views
from loki_memory.home.folder import HomeFolder
from loki_memory.home.place import user_layout
from loki_memory.home.upkeep import Fresh, Upkeep
from loki_memory.index.index import ListFilter, Summary
from loki_memory.sync import Changes, Progress

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from loki_memory.files.problem import Problem
    from loki_memory.models import Memory


T = TypeVar("T")


class Home(HomeFolder):
    """One `.loki` folder: a project's, or the user's."""

    def __init__(
        self, place: Layout, *, is_user: bool = False, is_in_background: bool = False
    ) -> None:
        super().__init__(place, is_user=is_user, is_in_background=is_in_background)
        self._upkeep = Upkeep(self)

    @classmethod
    def of_user(cls) -> Self:
        """The user's own folder: `~/.loki`, or the one that LOKI_HOME names."""
        return cls(user_layout(), is_user=True)

    def opened_anew(self) -> Home:
        """The same folder, without anything that this process keeps of it."""
        return Home(self.layout, is_user=self.is_user)

    def in_background(self) -> Home:
        """The same folder, for work that changes no file that git tracks."""
        return Home(self.layout, is_in_background=True)

    # -- its review ----------------------------------------------------------------------------

    def renew_review(self) -> None:
        """Ask git again which memory was reviewed, if git or memory moved since."""
        from loki_memory.integrity.reviewed_contents import renew

        renew(self)

    def brought_content(self, path: str, *, review_counts: bool) -> bytes | None:
        """The content of a file below `.loki` that git brought; None where git must be asked.

        A hook must not ask. Empty if nobody else can have a part in it.
        """
        return views.brought_content(self, path, review_counts=review_counts)

    def stamp(self) -> tuple[object, ...]:
        """A value that changes with memory as it was read, its uses, settings, trust, and git."""
        from loki_memory.files.git_files import git_folders, moves
        from loki_memory.integrity.reviewed import stamp, verdicts_path

        folders = git_folders(self.layout.root)
        return (
            self.index.note("changed_ns"),
            self.journal.stamp(),
            *self.settings_stamp(),
            self.trust().is_trusted,
            stamp(verdicts_path(self.layout)),
            moves(folders, "") if folders else "",
        )

    def problems(self) -> list[Problem]:
        """List files that cannot be read or need a person: line, field, reason, what to do."""
        from loki_memory.files.problem import Problem

        self.ensure("read")
        return [*self.zone_problems(), *(Problem(*row) for row in self.index.problems())]

    # -- freshness -----------------------------------------------------------------------------

    def ensure(
        self, level: Fresh, paths: Iterable[str] = (), progress: Progress | None = None
    ) -> Changes:
        """Make the index and the views as fresh as a level of `upkeep.Fresh` says."""
        return self._upkeep.ensure(level, paths, progress)

    def assume_scanned(self) -> None:
        """Take for granted that every file was compared just now, until the next scan is due.

        For a caller behind a watcher, which has just compared every file, and for a hook, whose
        question is one of many.
        """
        self._upkeep.assume_scanned()

    def one_look(self, *, folders_only: bool = False) -> AbstractContextManager[None]:
        """Answer from one look at the files while this lasts, however many parts ask for one.

        `folders_only` for a process that listens to changes of the files as well.
        """
        return self._upkeep.one_look(folders_only=folders_only)

    def before_write(self, *paths: str) -> None:
        """Get ready for a write, so that it overtakes no edit of a view.

        `paths` are the files, or the folders with a slash at the end, in which a record will be
        written that somebody may have put into a file with another name.
        """
        _ = self.config  # a workspace of a newer format is not written to
        if not os.path.lexists(self.layout.loki / ".gitignore"):
            self.settle_in()
        if not self.is_in_background:
            self._keep_gitignore()
        self._upkeep.take_over_before(paths)

    def wrote(self, paths: Collection[str] | None = None) -> Changes:
        """Index files that this process wrote or removed; by default all since the last time."""
        return self._upkeep.wrote(paths)

    def flush(self, *, wait: bool = True) -> None:
        """Bring index and views up to date, if this process wrote anything since they were."""
        self._upkeep.flush(wait=wait)

    def rebuild(self, progress: Progress | None = None) -> Changes:
        """Read every file again and make the index from nothing; then render the views."""
        _ = self.config  # a workspace of a newer format is left alone
        return self._upkeep.rebuild(progress)

    def embed(self) -> bool:
        """Embed texts without a vector; the next recall reports a model that cannot be read.

        A process that answers questions too embeds some at a time; False if more are left.
        """
        return self._upkeep.embed()

    def answer(self, question: Callable[[], T]) -> T:
        """Ask the index; if it turns out to be damaged, build it again and repeat the question."""
        return self._upkeep.answer(question)

    # -- its memories --------------------------------------------------------------------------

    def lines(self, wanted: ListFilter) -> list[Summary]:
        """Memories of this folder, one line each."""
        if not self.is_user:
            return self.index.summaries(wanted)
        if not self.has_scope(wanted.scope):
            return []
        found = self.index.summaries(wanted._replace(scope=None))
        return [line._replace(scope="user") for line in found]

    def bodies(self, wanted: ListFilter) -> list[tuple[str, str]]:
        """The same as (kind, JSON)."""
        if not self.has_scope(wanted.scope):
            return []
        return self.index.bodies(wanted._replace(scope=None) if self.is_user else wanted)

    def has_scope(self, scope: str | None) -> bool:
        """Check if memories of a scope can be here."""
        return not self.is_user or scope in {None, "", "user"}

    def paths_of(self, ids: Iterable[str]) -> list[str]:
        """The files of those memories that are here."""
        return self.index.paths_of(list(ids))

    def as_its_own(self, record: Memory) -> Memory:
        """A record as it counts here: one in the user's folder has the scope `user`."""
        if self.is_user and getattr(record, "scope", "user") != "user":
            return record.changed(scope="user")
        return record
