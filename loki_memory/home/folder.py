"""The folder of a home with its settings, store, index, journal and logs."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from loki_memory.errors import StoreFailed
from loki_memory.files import disk, transaction, workspace_trust, zones
from loki_memory.files.git_files import git_home, may_be_tracked
from loki_memory.files.layout import Layout, likely_places, view_kind
from loki_memory.home.place import confirmed_settings, settings_of, user_home
from loki_memory.index.index import Index, Summary
from loki_memory.index.list_filter import ListFilter
from loki_memory.models.ids import ID
from loki_memory.sync import Progress, check

if TYPE_CHECKING:  # pydantic costs 50 ms: only commands that read or write records pay for it
    from loki_memory.config import Config
    from loki_memory.embedding.sentence_model import ModelChoice
    from loki_memory.files.problem import Problem
    from loki_memory.files.store import Store
    from loki_memory.journal import Journal
    from loki_memory.models import Memory
    from loki_memory.recall.retriever import Retriever


T = TypeVar("T")


class HomeFolder:
    """A `.loki` folder, and the parts that are opened of it when they are used first."""

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

    def settings_stamp(self) -> tuple[object, ...]:
        """Stamps of what a home reads once: its settings, the user's, and the user's memory."""
        user = user_home()
        files = (self.layout.loki / "config.toml", user / "config.toml")
        return (*map(_stamp, files), (user / "memory").is_dir())

    def settle_in(self) -> None:
        """Make the folders, the settings file and the .gitignore, unless they are there."""
        from loki_memory.home.place import make_folders

        make_folders(self.layout, self.config)

    def set_config(self, name: str, value: str) -> None:
        """Set a key in the workspace's config.toml."""
        from loki_memory.home.place import keep_gitignore, write_setting

        confirmed = confirmed_settings(self.layout, is_user=self.is_user)
        write_setting(self.layout, name, value, confirmed, by_user=self.is_user)
        self.__dict__.pop("config", None)
        if name == "continuity.track":
            keep_gitignore(self.layout, self.config)

    def _keep_gitignore(self) -> None:
        from loki_memory.home.place import keep_gitignore

        try:
            keep_gitignore(self.layout, self.config)
        except StoreFailed as error:
            self.notices.append(str(error))

    def zone_problems(self) -> list[Problem]:
        """List links, and files that a clone put into the zones of this machine."""
        paths = [] if self.is_user else self.tracked(zones.NEVER_TRACKED)
        return zones.problems(self.layout, paths)

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
        if may_hold_secret:  # the patterns for secrets take 3 ms to load
            from loki_memory.files.redaction import redact

            text = redact(text)
        append_line(self.layout.local / name, text)

    def record_path(self, memory_id: str) -> str | None:
        """The path of a record in the index, if it has a file of its own."""
        path = self.index.path_of(memory_id)
        return None if path is None or view_kind(path) else path

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

    # -- one memory, by a look at its own file ---------------------------------------------------

    def look_up(self, memory_id: str) -> tuple[str, str] | None:
        """The kind and JSON of a memory; None if a look at one file cannot tell."""
        path = self.place_of(memory_id)
        if path is None:
            return None
        try:
            changes = check(self.layout, self.index, [path], time.time_ns())
            return self._in_file(memory_id, path) if changes.stale else self.index.body(memory_id)
        except sqlite3.DatabaseError:
            return None  # the full scan that follows replaces the index

    def place_of(self, memory_id: str) -> str | None:
        """The file of a memory, if the index or the id itself leads there; None if a scan must."""
        if transaction.waiting(self.layout) or not ID.fullmatch(memory_id):
            return None
        try:
            known = self.index.path_of(memory_id)
        except sqlite3.DatabaseError:
            return None
        places = [known] if known else [*likely_places(memory_id), *self._of_its_day(memory_id)]
        return next((path for path in places if self._in_file(memory_id, path)), None)

    def _of_its_day(self, memory_id: str) -> list[str]:
        """The likely files of an episode that is not indexed: its id has the day and the end."""
        day, _, end = memory_id.removeprefix("ep-").rpartition("-")
        folder = f"episodic/{day}"
        try:
            names = os.listdir(self.layout.file(folder)) if memory_id.startswith("ep-") else []
        except OSError:
            return []
        return [f"{folder}/{name}" for name in sorted(names) if name.endswith(f"-{end}.json")]

    def _in_file(self, memory_id: str, path: str) -> tuple[str, str] | None:
        """The kind and JSON of a memory from the file itself; None if another memory is there."""
        from loki_memory.sync.apply import entry_in

        found = None if view_kind(path) else self.store.read(path)
        entry = entry_in(path, found)[0] if found else None
        if entry is None or entry.row.id != memory_id:
            return None
        return entry.row.kind, entry.row.body


def parsed(kind: str, body: str) -> Memory:
    """The record of an index row."""
    import orjson

    from loki_memory.models import MODELS, parse

    return parse(MODELS[kind], orjson.loads(body))  # type: ignore[index]


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


# A log in the local zone: one line for each event or failure.
#
# A full log becomes the old one and begins anew, so that both together stay small. A log that
# cannot be written is ignored.

_FULL_BYTES = 256_000  # some 2,000 events: weeks of work
_LINE = 500


def append_line(path: Path, text: str) -> None:
    """Append a line in one write: several processes may write at the same time."""
    line = " ".join(text.split())[:_LINE] + "\n"
    with suppress(OSError):
        disk.make_folder(path.parent)
        fd = disk.open_to_change(path, append=True)
        try:
            os.write(fd, line.encode("utf-8", "replace"))
            is_full = os.fstat(fd).st_size > _FULL_BYTES
        finally:
            os.close(fd)
        if is_full:
            disk.move(path, path.with_suffix(".log.1"))
