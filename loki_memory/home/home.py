"""A Home: one opened `.loki` folder, whose index and views are kept up to date with its files.

Callers say how fresh they need it, by one of the levels of `Fresh`; from `read` on, each includes
the ones before it. A hook compares folders, a command compares the stamps of all files, and a
consolidation also takes over what somebody edited in a view.

    shown     the files that are named, before they are shown
    folders   the folders, and every file once in a while: for one of many questions in a row
    read      as the settings `sync.*` say; if another process is updating the index, the answer
              comes from the index as it is, and a notice says so
    current   the same, but wait for that process
    files     every file
    edits     edited views are taken over
    views     the views are rendered

A process that wrote says so with `wrote`, or leaves it to `flush` when its command ends.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Literal, Self, TypeVar

from loki_memory.errors import InvalidRecord, LokiMemoryError, StoreBusy, StoreFailed
from loki_memory.files import transaction
from loki_memory.home import views
from loki_memory.home.folder import HomeFolder
from loki_memory.home.place import user_layout
from loki_memory.index.database import BUSY_SECONDS
from loki_memory.sync import Changes, Freshness, Look, Progress, check, rebuild, sync, take_in

if TYPE_CHECKING:
    from loki_memory.files.layout import Layout
    from loki_memory.files.problem import Problem

Fresh = Literal["shown", "folders", "read", "current", "files", "edits", "views"]
T = TypeVar("T")
_AT_ONCE = 64  # texts of the sentence model between two questions: about a second

_READING = ("folders", "read", "current")  # levels that change no memory

# A process that asks again and again compares every file this often, and in between folders and
# the files that it is about to show. An edit in place of a file that is not shown has to wait.
_FULL_SCAN_SECONDS = 2.0
# A folder of thousands is not listed for every write while other processes write there too.
_LIST_AGAIN_SECONDS = 0.1
_TOLD = 3  # new problems that a command names; the doctor names all


class Home(HomeFolder):
    """One `.loki` folder, a project's or the user's, as fresh as its callers ask for.

    Its threads take turns.
    """

    def __init__(
        self, place: Layout, *, is_user: bool = False, is_in_background: bool = False
    ) -> None:
        super().__init__(place, is_user=is_user, is_in_background=is_in_background)
        self._lock = RLock()
        self._scanned = -_FULL_SCAN_SECONDS  # when every file was compared last
        # folders: their mtime, when they were listed
        self._listed: dict[str, tuple[int, float]] = {}
        self._views_are_due = False
        self._looks_once = self._looks_at_folders = False
        self._looked: Changes | None = None  # what the one look at the files found

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

    def renew_review(self) -> None:
        """Ask git again which memory was reviewed, if git or memory moved since."""
        from loki_memory.integrity.reviewed_contents import renew

        renew(self)

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

    # -- before reading ------------------------------------------------------------------------

    def ensure(
        self, level: Fresh, paths: Iterable[str] = (), progress: Progress | None = None
    ) -> Changes:
        """Make the index and the views as fresh as a level says; returns what changed.

        `paths` are the files of the level `shown`. `progress` is called with the number of files
        that were read and the number of all that must be read.
        """
        with self._lock:
            if level == "shown":
                return check(self.layout, self.index, paths, time.time_ns())
            if level in _READING and self._looks_once:
                return self._look_once(level)
            if level == "folders":
                return self._scan_sometimes()
            if level in _READING:
                return self._scan_to_read(wait=level == "current")
            self._heal()
            changes = self._sync(full=True, progress=progress)
            self._looked = Changes([], [], [], is_complete=True)
            if level != "files" and not views.are_current(self):
                changes = _joined(changes, self._take_over_edits())
                if level == "views":
                    self._render_views()
            return changes

    def assume_scanned(self) -> None:
        """Take for granted that every file was compared just now, until the next scan is due.

        For a caller behind a watcher, which has just compared every file, and for a hook, whose
        question is one of many.
        """
        self._scanned = time.monotonic()

    @contextmanager
    def one_look(self, *, folders_only: bool = False) -> Iterator[None]:
        """Look at the folders once at most while this lasts, and at every file once at most.

        With `folders_only`, every reader is content with the folders, and with the full scan of a
        moment ago: for a process that also listens to changes of the files.
        """
        self._looks_once, self._looks_at_folders, self._looked = True, folders_only, None
        try:
            yield
        finally:
            self._looks_once = False

    def _look_once(self, level: Fresh) -> Changes:
        looked = self._looked
        is_light = level == "folders" or self._looks_at_folders
        is_current = looked is not None and looked.is_complete and not looked.stale
        if looked is not None and (is_current or is_light):
            return looked
        found = self._scan_sometimes() if is_light else self._scan_all(wait=level == "current")
        self._looked = Changes([], [], [], found.stale, found.is_complete)
        return found

    def _scan_sometimes(self) -> Changes:
        if time.monotonic() - self._scanned >= _FULL_SCAN_SECONDS:
            return self._scan_all(wait=False)
        if transaction.waiting(self.layout):
            return self._scan_to_read(wait=False)
        return self._with_notice(self._sync(full=False, wait=False, folders_only=True))

    def _scan_all(self, *, wait: bool) -> Changes:
        now = time.monotonic()
        changes = self._scan_to_read(wait=wait)
        self._scanned = now
        return changes._replace(is_complete=True)

    def _scan_to_read(self, *, wait: bool) -> Changes:
        """Compare files with the index without ever changing memory."""
        try:
            self._heal()
        except StoreBusy:  # half of its change is visible: the index has the state before it
            self.notices.append(f"another process is writing; this is {self._age()} old")
            return Changes([], [], [], stale=True)
        except StoreFailed as error:
            self.notices.append(str(error))
        return self._with_notice(self._sync(full=False, wait=wait))

    def _with_notice(self, changes: Changes) -> Changes:
        if changes.stale:
            notice = f"another process is updating the index; it is {self._age()} old"
            self.notices.append(notice)
        return changes

    def _age(self) -> str:
        changed = int(self.index.note("changed_ns") or 0)
        return f"{max(0, time.time_ns() - changed) / 1e9:.0f} s"

    def answer(self, question: Callable[[], T]) -> T:
        """Ask the index; if it turns out to be damaged, build it again and repeat the question."""
        with self._lock:
            try:
                return question()
            except (sqlite3.DatabaseError, ValueError, LookupError, InvalidRecord) as error:
                if "locked" in str(error):
                    raise
                why = str(error)
            self._guarded(lambda: self._replaced(why))
            return question()

    # -- around writing ------------------------------------------------------------------------

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
        self._take_over_before(paths)

    def _take_over_before(self, paths: Collection[str]) -> None:
        """Take over edited views, and find records in other files than those to be written.

        A write of a record notices an older one by the name of its file. One that somebody put
        into a file with another name only the index can find: so a folder with such names that
        the index does not know is scanned. A path that ends with a slash is a folder.
        """
        from loki_memory.files.views import edited_views

        learns = any(path.startswith("learnings/") for path in paths)
        if edited_views(self.store, days=learns):
            self.ensure("views")
        for path in paths:
            folder, _, name = path.rpartition("/")
            if self._has_unknown_names(folder, name):
                self.ensure("current")

    def _has_unknown_names(self, folder: str, ours: str) -> bool:
        """Check if a folder has files that the index does not know, other than those named as
        `ours` is, by our own scheme.
        """
        path = self.layout.file(folder)
        if not os.path.isdir(path):
            return False
        mtime, now = os.stat(path).st_mtime_ns, time.monotonic()
        listed_mtime, listed = self._listed.get(folder, (0, -_LIST_AGAIN_SECONDS))
        if listed_mtime == mtime or now - listed < _LIST_AGAIN_SECONDS:
            return False
        self._listed[folder] = (mtime, now)
        prefix, length = ours.partition("-")[0] + "-", len(ours)
        others = [
            name
            for name in os.listdir(path)
            if name[0] != "." and not (len(name) == length and name.startswith(prefix))
        ]
        known = self.index.folder(folder)[1] if others else {}
        return any(name not in known for name in others)

    def wrote(self, paths: Collection[str] | None = None) -> Changes:
        """Index files that this process wrote or removed; by default all since the last time.

        Other files are not looked at, and views are rendered by the next `flush`.
        """
        with self._lock:
            store = self.store
            taken = sorted(self._written) if paths is None else paths
            self._written.difference_update(taken)
            self._views_are_due = True
            now = time.time_ns()
            return self._guarded(lambda: take_in(self.layout, self.index, taken, now, store))

    def flush(self, *, wait: bool = True) -> None:
        """Bring index and views up to date, if this process wrote anything since they were.

        The files are on disk already, and the next scan finds them: an error becomes a notice.
        Without `wait`, all is left to that scan if another process is at work on the index, or if
        there is no index yet.
        """
        try:
            if self._written:
                if wait or self._is_free():
                    self.ensure("views")
            elif self._views_are_due:
                self._render_views()
        except LokiMemoryError as error:
            self._written.clear()
            self.notices.append(f"stored, but index and views are not up to date: {error}")

    @property
    def _written(self) -> set[str]:
        """The files that this process wrote and has not indexed yet."""
        store = self.opened_store
        return store.written if store else set()

    def _is_free(self) -> bool:
        """Check if there is an index that no other process is updating; updates it if so."""
        path = self.index.path
        there = path is not None and path.exists()
        return there and not self._sync(full=True, wait=False).stale

    # -- the index -----------------------------------------------------------------------------

    def rebuild(self, progress: Progress | None = None) -> Changes:
        """Read every file again and make the index from nothing; then render the views."""
        _ = self.config  # a workspace of a newer format is left alone
        with self._lock:
            self._heal()
            changes = self._guarded(
                lambda: rebuild(self.layout, self.index, time.time_ns(), progress)
            )
            self.ensure("views")
            self.embed()
            return changes

    def embed(self) -> bool:
        """Embed texts without a vector; the next recall reports a model that cannot be read.

        A process that answers questions too embeds some at a time; False if more are left.
        """
        from loki_memory.errors import InvalidConfig

        with self._lock, suppress(InvalidConfig):
            left = self.retriever.embed(_AT_ONCE if self.is_long_lived else None)
            self.notices += self.retriever.notices
            self.retriever.notices.clear()
            return not left
        return True

    def _heal(self) -> None:
        """Complete a transaction that a crash interrupted; restore memory that was cleaned away."""
        if not self.is_user and not self.layout.memory.is_dir() and self._is_on_a_branch():
            from loki_memory.history.memory_branch import restore

            restore(self)
        if transaction.waiting(self.layout):
            with self.store.change(seconds=1):
                pass

    def _is_on_a_branch(self) -> bool:
        return self.config.text("git.mode") == "branch"

    def _sync(
        self,
        *,
        full: bool,
        wait: bool = True,
        progress: Progress | None = None,
        folders_only: bool = False,
    ) -> Changes:
        if full:
            self._written.clear()
        scan_limit = 0 if folders_only else self.config.get("sync.scan_limit")
        freshness = Freshness(scan_limit, self.config.get("sync.full_scan_seconds"))
        look = Look(full, wait, freshness, progress)
        return self._guarded(
            lambda: self._telling(lambda: sync(self.layout, self.index, time.time_ns(), look))
        )

    def _telling(self, work: Callable[[], Changes]) -> Changes:
        """Update the index, and say which problems are new: whoever wrote the file is here now."""
        index = self.index
        before = set(index.problems())
        changes = work()
        new = [row for row in index.problems() if row not in before]
        if new:
            from loki_memory.files.problem import Problem

            told = (str(Problem(*row)) for row in new[:_TOLD])
            self.notices += [said for said in told if said not in self.notices]
        if len(new) > _TOLD:
            self.notices.append(f"and {len(new) - _TOLD} more of them: loki-mem doctor")
        return changes

    def _guarded(self, work: Callable[[], Changes]) -> Changes:
        """Do work on the index.

        A damaged database is replaced. If it cannot be written, an index in memory takes its
        place, so that reading goes on.
        """
        index = self.index
        try:
            changes = work()
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise StoreBusy(index.path, BUSY_SECONDS) from error
            changes = self._in_memory(str(error))
        except (sqlite3.DatabaseError, ValueError, EOFError, TypeError) as error:
            try:
                changes = self._replaced(str(error))
            except sqlite3.OperationalError as again:
                changes = self._in_memory(str(again))
        self.notices += index.notices
        index.notices = []
        return changes

    def _replaced(self, why: str) -> Changes:
        self.index.replace(f"the index was damaged ({why})")
        return rebuild(self.layout, self.index, time.time_ns())

    def _in_memory(self, why: str) -> Changes:
        self.index.keep_in_memory(why)
        return rebuild(self.layout, self.index, time.time_ns())

    # -- the views -----------------------------------------------------------------------------

    def _take_over_edits(self) -> Changes:
        """Write what somebody edited in views into records; other views are rendered later."""
        from loki_memory.files.views import edited_views, take_over

        self._views_are_due = True
        edited = edited_views(self.store)
        if not edited:
            return Changes([], [], [])
        with self.store.change() as change:
            brought = partial(views.brought, self)
            done = take_over(self.store, change, edited, self.record_path, brought)
        self.notices += [str(problem) for problem in done.told]
        changes = self._sync(full=True)
        self._render_views()  # else these views would look edited once their records change
        return changes

    def _render_views(self) -> None:
        self._views_are_due = False
        records = frozenset(self._written)
        views.render_views(self)
        self._written.intersection_update(records)  # views are not indexed


def _joined(first: Changes, second: Changes) -> Changes:
    added, modified, removed = (
        list(dict.fromkeys([*a, *b])) for a, b in zip(first[:3], second[:3], strict=True)
    )
    return Changes(added, modified, removed, first.stale or second.stale)
