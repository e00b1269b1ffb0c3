"""A Home: one opened `.loki` folder with its config, store, index and views."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from loki_memory.errors import StoreFailed
from loki_memory.files import workspace_trust, zones
from loki_memory.files.layout import Layout, git_home, may_be_tracked, view_kind
from loki_memory.home import lookup
from loki_memory.home.place import confirmed_settings, settings_of, user_home, user_layout
from loki_memory.home.upkeep import Fresh, Upkeep
from loki_memory.index.index import Index, ListFilter, Summary
from loki_memory.sync import Changes, Progress

if TYPE_CHECKING:  # pydantic costs 50 ms: only commands that read or write records pay for it
    from contextlib import AbstractContextManager

    from loki_memory.config import Config
    from loki_memory.embedding.sentence_model import ModelChoice
    from loki_memory.files.problem import Problem
    from loki_memory.files.store import Store
    from loki_memory.journal import Journal
    from loki_memory.models import Memory
    from loki_memory.recall.retriever import Retriever

T = TypeVar("T")


class Home:
    """One `.loki` folder: a project's, or the user's."""

    stands_alone = False  # True: the user's memory is not read beside it
    is_above = False  # True: it belongs to a workspace above the one that is used
    is_long_lived = False  # True in a process that answers many questions
    starts_git = True  # hooks must not: they run before every prompt and tool call

    def __init__(
        self, place: Layout, *, is_user: bool = False, is_in_background: bool = False
    ) -> None:
        """`is_in_background`: no file that git tracks is changed."""
        self.layout = place
        self.is_user = is_user
        self.is_in_background = is_in_background
        for zone in [place.loki] if is_user else [place.local, place.cache]:
            zones.close_to_others(zone)
        self.notices: list[str] = []
        self.progress: Progress | None = None  # called with the number of texts embedded
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

    # -- its parts -----------------------------------------------------------------------------

    def now(self) -> str:
        """The present moment. LOKI_NOW replaces it, for runs that must be repeatable."""
        from datetime import UTC, datetime

        given = os.environ.get("LOKI_NOW")
        return given or f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"

    @cached_property
    def config(self) -> Config:
        """The settings; reading them refuses a workspace of a newer format."""
        loaded = settings_of(self.layout, is_user=self.is_user)
        self.notices += [f"{key} is a setting that nothing reads" for key in loaded.unknown]
        self.notices += loaded.ignored
        return loaded

    @cached_property
    def store(self) -> Store:
        from loki_memory.files.store import Store

        seconds = self.config.get("store.lock_seconds")
        if not self.is_in_background:
            return Store(self.layout, seconds)
        from loki_memory.home.background_store import BackgroundStore

        return BackgroundStore(self.layout, seconds)

    @property
    def opened_store(self) -> Store | None:
        """The store, if it was used: a process that only reads opens none."""
        return self.__dict__.get("store")

    @cached_property
    def index(self) -> Index:
        return Index(self.layout.cache / "index.db")

    @cached_property
    def retriever(self) -> Retriever:
        from loki_memory.recall.retriever import Retriever

        choice = self.model_choice
        if choice.is_missing:
            from loki_memory.embedding.sentence_model import MISSING

            self.notices.append(MISSING)
        return Retriever(
            self.index, self.vectors_folder(), choice, self._report, self._may_load_model
        )

    @property
    def model_choice(self) -> ModelChoice:
        """The embedding models that the settings choose."""
        from loki_memory.embedding.sentence_model import ModelChoice

        config = self.config
        return ModelChoice(
            config.text("embedding.model"),
            config.text("embedding.hosted_model"),
            config.text("embedding.key"),
        )

    def _may_load_model(self) -> bool:
        """Tell whether a question may wait for the sentence model: 0.3 s, once in a process."""
        return self.is_long_lived or (self.model_choice.is_explicit and self.starts_git)

    def vectors_folder(self) -> Path | None:
        """The folder of the vectors; its name has the inode of `.loki`, so that no clone can
        bring one.
        """
        device, _, rest = self.index.note("home").partition(":")
        if self.index.path is None or not device:
            return None
        return self.layout.cache / f"vectors-{device}-{rest.partition(':')[0]}"

    def has_edited_views(self) -> bool:
        """Check if somebody edited a view since it was rendered."""
        from loki_memory.files.views import edited_views

        return bool(edited_views(self.store))

    def _report(self, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(done, total)

    @cached_property
    def journal(self) -> Journal:
        from loki_memory.journal import Journal

        return Journal(self.layout.local / "journal")

    def trust(self) -> workspace_trust.WorkspaceTrust:
        """Tell whether agents may be told of this memory unasked; the user's own is trusted."""
        if self.is_user or self.stands_alone:
            return workspace_trust.WorkspaceTrust(True, "by its user")
        return workspace_trust.trust_in(self.layout, self.config.text("trust.remotes"), os.environ)

    def note_trust(self, *, is_trusted: bool) -> None:
        """Write down whether the user trusts this workspace."""
        from loki_memory.files.store import failures_named

        with failures_named(self.layout.local):
            workspace_trust.note_trust(self.layout, is_trusted=is_trusted, now=self.now())

    def renew_review(self) -> None:
        """Ask git again which memory was reviewed, if git or memory moved since."""
        from loki_memory.integrity.reviewed_contents import renew

        renew(self)

    def brought_content(self, path: str, *, review_counts: bool) -> bytes | None:
        """The content of a file below `.loki` that git brought; None where git must be asked.

        A hook must not ask. Empty if nobody else can have a part in it.
        """
        from loki_memory.files.git_files import is_shared

        root = self.layout.root
        if not is_shared(root) or not may_be_tracked(root, [f".loki/{path}"]):
            return b""
        if not self.starts_git:
            return None
        from loki_memory.integrity.reviewed_contents import brought_content

        return brought_content(self, path, review_counts=review_counts)

    # -- its folder ----------------------------------------------------------------------------

    def settings_stamp(self) -> tuple[object, ...]:
        """Stamps of what a home reads once: its settings, the user's, and the user's memory."""
        user = user_home()
        files = (self.layout.loki / "config.toml", user / "config.toml")
        return (*map(_stamp, files), (user / "memory").is_dir())

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

    def settle_in(self) -> None:
        """Make the folders, the settings file and the .gitignore, unless they are there."""
        from loki_memory.home.setup import make_folders

        make_folders(self.layout, self.config)

    def set_config(self, name: str, value: str) -> None:
        """Set a key in the workspace's config.toml."""
        from loki_memory.home.setup import keep_gitignore, write_setting

        confirmed = confirmed_settings(self.layout, is_user=self.is_user)
        write_setting(self.layout, name, value, confirmed, by_user=self.is_user)
        self.__dict__.pop("config", None)
        if name == "continuity.track":
            keep_gitignore(self.layout, self.config)

    def _keep_gitignore(self) -> None:
        from loki_memory.home.setup import keep_gitignore

        try:
            keep_gitignore(self.layout, self.config)
        except StoreFailed as error:
            self.notices.append(str(error))

    def zone_problems(self) -> list[Problem]:
        """List links, and files that a clone put into the zones of this machine."""
        paths = [] if self.is_user else self.tracked(zones.NEVER_TRACKED)
        return zones.problems(self.layout, paths)

    def problems(self) -> list[Problem]:
        """List files that cannot be read or need a person: line, field, reason, what to do."""
        from loki_memory.files.problem import Problem

        self.ensure("read")
        return [*self.zone_problems(), *(Problem(*row) for row in self.index.problems())]

    def tracked(self, paths: Sequence[str]) -> list[str]:
        """The files below some paths of the project that git tracks."""
        if not may_be_tracked(self.layout.root, paths):
            return []
        from loki_memory.git_repository import tracked

        return [file.path for file in tracked(self.layout.root, paths)]

    def deleted(self, paths: Sequence[str]) -> set[str]:
        """The missing record files that somebody deleted.

        In a git repository a file can also be missing because another branch is checked out.
        """
        if git_home(self.layout.root) is None:
            return set(paths)
        from loki_memory.git_repository import deleted

        places = {f".loki/memory/{path}": path for path in paths}
        return {places[name] for name in deleted(self.layout.root, [*places]) if name in places}

    def note_in_log(self, name: str, text: str, *, may_hold_secret: bool = False) -> None:
        """Append a line to a log of this machine."""
        from loki_memory.files.log import append_line

        if may_hold_secret:  # the patterns for secrets take 3 ms to load
            from loki_memory.files.redaction import redact

            text = redact(text)
        append_line(self.layout.local / name, text)

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

    def record_path(self, memory_id: str) -> str | None:
        """The path of a record in the index, if it has a file of its own."""
        path = self.index.path_of(memory_id)
        return None if path is None or view_kind(path) else path

    def look_up(self, memory_id: str) -> tuple[str, str] | None:
        """The kind and JSON of a memory; None if a look at one file cannot tell."""
        return lookup.look_up(self, memory_id)

    def place_of(self, memory_id: str) -> str | None:
        """The file of a memory, if the index or the id itself leads there; None if a scan must."""
        return lookup.place_of(self, memory_id)

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


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
