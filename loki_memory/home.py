"""A Home: one opened `.loki` folder, which keeps its config, store, index and views in step."""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Self, TypeVar

from loki_memory import config as settings
from loki_memory.errors import (
    FileChanged,
    InvalidConfig,
    InvalidRecord,
    LinkRefused,
    LokiMemoryError,
    StoreBusy,
    StoreFailed,
)
from loki_memory.files import transaction, zones
from loki_memory.files.layout import (
    FOLDERS,
    LOCAL,
    MADE_HERE,
    PRIVATE,
    TOP_FOLDERS,
    Layout,
    git_home,
    is_made_here,
    layout,
    likely_places,
    may_be_tracked,
    view_kind,
)
from loki_memory.index.database import BUSY_SECONDS
from loki_memory.index.index import Index, Summary
from loki_memory.models.ids import ID
from loki_memory.models.kinds import Kind
from loki_memory.resources import template
from loki_memory.sync import (
    Changes,
    Freshness,
    Look,
    Progress,
    check,
    home_of,
    rebuild,
    sync,
    take_in,
)

if TYPE_CHECKING:  # pydantic costs 50 ms: only what reads or writes records pays for it
    from loki_memory.files.problem import Problem
    from loki_memory.files.store import Store
    from loki_memory.files.view_rendering import Listed
    from loki_memory.journal import Journal
    from loki_memory.models import Memory
    from loki_memory.recall.retriever import Retriever


# A folder of thousands is not listed for every write while others write into it too.
_LOOK_AGAIN_SECONDS = 0.1
# A process that asks again and again compares every file this often; in between, folders and the
# files that it is about to show. Only an edit in place of a file that is not shown waits for it.
_FULL_LOOK_SECONDS = 2.0
# A line behind ours that would let git track what belongs to one machine.
_SHOWS_ZONES = re.compile(rb"^!.*(?:local|cache|\*)", re.MULTILINE)
_CONFIRMED = "confirmed-settings"  # in the local zone: settings that the user set in this clone
T = TypeVar("T")


class Home:
    """One `.loki` folder: a project's, or the user's."""

    stands_alone = False  # whether the user's memory takes no part beside it

    def __init__(self, place: Layout, *, is_user: bool = False) -> None:
        self.layout = place
        self.is_user = is_user
        zones.close_to_others(place.local)
        zones.close_to_others(place.cache)
        self.notices: list[str] = []
        self.progress: Progress | None = None  # told how many texts are embedded
        self._lock = RLock()
        # Folders as of when every stranger in them was known, and when we last looked.
        self._familiar: dict[str, tuple[int, float]] = {}
        self._looked_at_all = -_FULL_LOOK_SECONDS

    @classmethod
    def of_user(cls) -> Self:
        """The user's own folder: `~/.loki`, or the one that LOKI_HOME names."""
        top = user_home()
        place = Layout(top.parent, top, top / "memory", top / "local", top / "cache")
        return cls(place, is_user=True)

    def now(self) -> str:
        """The present moment. LOKI_NOW replaces it, for runs that shall be repeatable."""
        from datetime import UTC, datetime

        given = os.environ.get("LOKI_NOW")
        return given or f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"

    @cached_property
    def config(self) -> settings.Config:
        user = user_home() / "config.toml"
        confirmed = self.layout.local / _CONFIRMED
        loaded = settings.load(self.layout.loki / "config.toml", user, confirmed=confirmed)
        self.notices += [f"{key} is a setting that nothing reads" for key in loaded.unknown]
        self.notices += loaded.ignored
        return loaded

    @cached_property
    def store(self) -> Store:
        from loki_memory.files.store import Store

        return Store(self.layout, self.config.get("store.lock_seconds"))

    @property
    def _written(self) -> set[str]:
        """The files that this process wrote and nobody has taken in yet."""
        store: Store | None = self.__dict__.get("store")  # who only reads has none
        return store.written if store else set()

    @cached_property
    def index(self) -> Index:
        return Index(self.layout.cache / "index.db")

    @cached_property
    def retriever(self) -> Retriever:
        from loki_memory.recall.retriever import Retriever

        model = self.config.text("embedding.model")
        return Retriever(self.index, self.vectors_folder(), model, self._report)

    def vectors_folder(self) -> Path | None:
        """Where vectors lie. It carries the mark of this very folder: none comes with a clone."""
        device, _, rest = self.index.note("home").partition(":")
        if self.index.path is None or not device:
            return None
        return self.layout.cache / f"vectors-{device}-{rest.partition(':')[0]}"

    def _report(self, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(done, total)

    @cached_property
    def journal(self) -> Journal:
        from loki_memory.journal import Journal

        return Journal(self.layout.local / "journal")

    def settle_in(self) -> None:
        from loki_memory.files import disk
        from loki_memory.files.store import failures_named

        _ = self.config  # a workspace of a newer format is not written to
        with failures_named(self.layout.loki):
            for name in (*TOP_FOLDERS, *FOLDERS):
                disk.make_folder(self.layout.memory / name)
            config = self.layout.loki / "config.toml"
            if not config.exists():
                disk.write_bytes(config, template("config.toml").encode())
            self._ignore_what_is_derived()

    def _ignore_what_is_derived(self) -> None:
        from loki_memory.files import disk

        path = self.layout.loki / ".gitignore"
        ours, other = self._ignored(), self._ignored(otherwise=True)
        there = disk.read_derived(path) or b""
        if other in there and (len(other) > len(ours) or ours not in there):
            disk.write_bytes(path, there.replace(other, ours))
        elif ours not in there or _SHOWS_ZONES.search(there.rpartition(ours)[2]):
            rest = there.replace(ours, b"")
            gap = b"\n" if rest and not rest.endswith(b"\n") else b""
            disk.write_bytes(path, rest + gap + ours)

    def _ignored(self, *, otherwise: bool = False) -> bytes:
        """What git shall not track; CONTINUITY.md is a matter of taste."""
        lines = template("gitignore").splitlines(keepends=True)
        if bool(self.config.get("continuity.track")) != otherwise:
            lines = [line for line in lines if "continuity" not in line.lower()]
        return "".join(lines).encode()

    def set_config(self, name: str, value: str) -> None:
        """Set a key in the workspace's config.toml."""
        from loki_memory.files import disk
        from loki_memory.files.store import failures_named

        chosen = settings.chosen(name, value, by_user=self.is_user)
        path = self.layout.loki / "config.toml"
        with failures_named(path):
            text = path.read_text(encoding="utf-8") if path.exists() else template("config.toml")
            disk.write_bytes(path, settings.edited(text, name, chosen).encode())
            confirmed = self.layout.local / _CONFIRMED
            disk.make_folder(confirmed.parent)
            disk.write_bytes(confirmed, settings.confirmed_with(confirmed, name, chosen))
        self.__dict__.pop("config", None)
        if name == "continuity.track":
            with failures_named(self.layout.loki):
                self._ignore_what_is_derived()

    def zone_problems(self) -> list[Problem]:
        """List links, and what others put into the zones of this machine."""
        paths: list[str] = []
        if not self.is_user and may_be_tracked(self.layout.root, zones.NEVER_TRACKED):
            from loki_memory.history.repository import tracked

            paths = [file.path for file in tracked(self.layout.root, zones.NEVER_TRACKED)]
        return zones.problems(self.layout, paths)

    def deleted(self, paths: Sequence[str]) -> set[str]:
        """Those of some record files, which are not there, that somebody deleted.

        In a git repository a file can also be missing because another branch is checked out.
        """
        if git_home(self.layout.root) is None:
            return set(paths)
        from loki_memory.history.repository import deleted

        places = {f".loki/memory/{path}": path for path in paths}
        return {places[name] for name in deleted(self.layout.root, [*places]) if name in places}

    def note_in_log(self, name: str, text: str, *, may_hold_secret: bool = False) -> None:
        """Append a line to a log of this machine."""
        from loki_memory.files.log import append_line

        if may_hold_secret:  # the patterns for secrets take 3 ms to load
            from loki_memory.files.redaction import redact

            text = redact(text)
        append_line(self.layout.local / name, text)

    def sync(self, progress: Progress | None = None) -> Changes:
        """Take over edited views, bring the index up to date with the files, render the views.

        `progress` is called with the number of files read and to be read.
        """
        with self._lock:
            changes = self.catch_up(progress)
            self.render_views()
            return changes

    def catch_up(self, progress: Progress | None = None) -> Changes:
        """Take over edited views and bring the index up to date; the views are rendered later."""
        from loki_memory.files import views

        with self._lock:
            self._heal()
            changes = self._sync(full=True, progress=progress)
            edited = views.edited_views(self.store)
            if edited:
                with self.store.change() as change:
                    done = views.take_over(self.store, change, edited, self.record_path)
                self.notices += [str(problem) for problem in done.told]
                changes = _joined(changes, self._sync(full=True))
                self.render_views()  # what was taken over must not look edited once records change
            return changes

    def take_in(self, paths: Collection[str] | None = None) -> Changes:
        """Bring the index up to date with every file, and leave the views for later.

        `paths` are those that this process has just written or removed: only they are looked at.
        """
        with self._lock:
            self._heal()
            if paths is None:
                return self._sync(full=True)
            self._written.difference_update(paths)
            now, store = time.time_ns(), self.store
            return self._guarded(lambda: take_in(self.layout, self.index, paths, now, store=store))

    def flush(self, *, wait: bool = True) -> None:
        """Bring index and views up to date, if this process wrote anything since they were.

        What was written is on disk already, and the next look finds it: trouble is a notice.
        Without `wait`, it is left to that look where another process is at the index, or there
        is no index yet.
        """
        if not self._written:
            return
        try:
            if wait or self._is_free():
                self.sync()
        except LokiMemoryError as error:
            self._written.clear()
            self.notices.append(f"stored, but index and views are not up to date: {error}")

    def _is_free(self) -> bool:
        """Whether there is an index that nobody else is at; then it is up to date."""
        there = self.index.path is not None and self.index.path.exists()
        return there and not self._sync(full=True, wait=False).stale

    def rebuild(self, progress: Progress | None = None) -> Changes:
        """Read every file again and make the index from nothing; then as `sync`."""
        _ = self.config
        with self._lock:
            self._heal()
            changes = self._guarded(
                lambda: rebuild(self.layout, self.index, time.time_ns(), progress)
            )
            self.sync()
            self.embed()
            return changes

    def embed(self) -> None:
        """Embed what has no vector yet; a model that cannot be read is named by the next recall."""
        with self._lock, suppress(InvalidConfig):
            self.retriever.embed()

    def record_path(self, memory_id: str) -> str | None:
        """Where a record stands, if that is a file of its own."""
        path = self.index.path_of(memory_id)
        return None if path is None or view_kind(path) else path

    def before_write(self, *, learning: bool = False) -> None:
        """Take over what somebody edited in a view, so that no writer overtakes another."""
        from loki_memory.files import views

        _ = self.config  # a workspace of a newer format is not written to
        if not os.path.lexists(self.layout.loki / ".gitignore"):
            self.settle_in()
        self.keep_zones_ignored()
        if views.edited_views(self.store, days=learning):
            self.sync()

    def keep_zones_ignored(self) -> None:
        """Put back what `.loki/.gitignore` must say, whatever a merge made of it."""
        from loki_memory.files.store import failures_named

        try:
            with failures_named(self.layout.loki):
                self._ignore_what_is_derived()
        except StoreFailed as error:
            self.notices.append(str(error))

    def look_up(self, memory_id: str) -> tuple[str, str] | None:
        """A memory's kind and JSON by a look at its one file; None where that does not suffice."""
        path = self.place_of(memory_id)
        if path is None:
            return None
        try:
            changes = check(self.layout, self.index, [path], time.time_ns())
            return self._in_file(memory_id, path) if changes.stale else self.index.body(memory_id)
        except sqlite3.DatabaseError:
            return None  # the full look that follows mends it

    def place_of(self, memory_id: str) -> str | None:
        """The file that holds a memory, if the index or the id itself leads there right away."""
        if transaction.waiting(self.layout) or not ID.fullmatch(memory_id):
            return None
        try:
            known = self.index.path_of(memory_id)
        except sqlite3.DatabaseError:
            return None
        places = [known] if known else [*likely_places(memory_id), *self._of_its_day(memory_id)]
        return next((path for path in places if self._in_file(memory_id, path)), None)

    def _of_its_day(self, memory_id: str) -> list[str]:
        """The file of an episode that the index does not know yet: the id has its day and end."""
        day, _, end = memory_id.removeprefix("ep-").rpartition("-")
        folder = f"episodic/{day}"
        try:
            names = os.listdir(self.layout.file(folder)) if memory_id.startswith("ep-") else []
        except OSError:
            return []
        return [f"{folder}/{name}" for name in sorted(names) if name.endswith(f"-{end}.json")]

    def _in_file(self, memory_id: str, path: str) -> tuple[str, str] | None:
        """A memory's kind and JSON from the file itself, if it stands there."""
        from loki_memory.sync.parse_files import entry_in

        found = None if view_kind(path) else self.store.read(path)
        entry = entry_in(path, found)[0] if found else None
        if entry is None or entry.row.id != memory_id:
            return None
        return entry.row.kind, entry.row.body

    def refresh(self, *, wait: bool = False) -> None:
        """Make the index fresh enough to answer from, without ever changing memory.

        If another process is updating the index, the answer comes from what it says now and the
        reader is told so; `wait` waits instead.
        """
        with self._lock:
            try:
                self._heal()
            except StoreBusy:  # half of its change is visible: the index shows what was before it
                self.notices.append(f"another process is writing; this is {self._age()} old")
                return
            except StoreFailed as error:
                self.notices.append(str(error))
            if self._sync(full=False, wait=wait).stale:
                self.notices.append(
                    f"another process is updating the index; it is {self._age()} old"
                )

    def look_again(self) -> bool:
        """Make the index fresh enough for one of many questions in a row.

        Says whether every file was compared just now.
        """
        now = time.monotonic()
        if now - self._looked_at_all >= _FULL_LOOK_SECONDS:
            self.refresh()
            self._looked_at_all = now
            return True
        with self._lock:
            if transaction.waiting(self.layout):
                self.refresh()
            elif self._sync(full=False, wait=False, folders_only=True).stale:
                self.notices.append(
                    f"another process is updating the index; it is {self._age()} old"
                )
        return False

    def skip_full_scan(self) -> None:
        """Compare folders, and the files that are shown, until the next full scan is due.

        For a caller behind a watcher, which has just compared every file, and for a prompt hook,
        which is one of many questions.
        """
        self._looked_at_all = time.monotonic()

    def is_as_shown(self, paths: Iterable[str]) -> bool:
        """Whether files are as the index knows them; brings it up to date where not."""
        with self._lock:
            return not check(self.layout, self.index, paths, time.time_ns())

    def lines(
        self, kind: str | None, status: str | None, since: str | None, scope: str | None
    ) -> list[Summary]:
        """Memories of this folder, one line each."""
        if not self.has_scope(scope):
            return []
        found = self.index.summaries(kind, status, since, None if self.is_user else scope)
        return [line._replace(scope="user") for line in found] if self.is_user else found

    def bodies(
        self, kind: str | None, status: str | None, since: str | None, scope: str | None
    ) -> list[tuple[str, str]]:
        """The same as (kind, JSON)."""
        if not self.has_scope(scope):
            return []
        found = self.index.bodies(kind, status, since, None if self.is_user else scope)
        return [(kind_, body) for _, kind_, body in found]

    def has_scope(self, scope: str | None) -> bool:
        return not self.is_user or scope in {None, "", "user"}

    def paths_of(self, ids: Iterable[str]) -> list[str]:
        """The files of some memories, of those that stand here."""
        return self.index.paths_of(list(ids))

    def as_its_own(self, record: Memory) -> Memory:
        """A record that stands in the user's folder is the user's, also if it does not say so."""
        if self.is_user and getattr(record, "scope", "user") != "user":
            return record.changed(scope="user")
        return record

    def took_out(self) -> None:
        """Bring the index up to date after memories were taken out on purpose, all even."""
        with self._lock:
            self._sync(full=False, may_be_empty=True)

    def answer(self, question: Callable[[], T]) -> T:
        """Ask the index; if it turns out to be damaged, ask again once it is made anew."""
        with self._lock:
            try:
                return question()
            except (sqlite3.DatabaseError, ValueError, InvalidRecord) as error:
                if "locked" in str(error):
                    raise
                why = str(error)
            self._guarded(lambda: self._anew(why))
            return question()

    def _anew(self, why: str) -> Changes:
        self.index.replace(f"the index was damaged ({why})")
        return rebuild(self.layout, self.index, time.time_ns())

    def know_strangers(self, folder: str, ours: str = "") -> None:
        """Bring the index up to date if a folder holds files that others named and it knows not.

        Where we write, a record of the same name is noticed by its name; one that somebody put
        into a file of another name only the index can find. `ours` is a name as we give them
        there: files named alike need no look.
        """
        path = self.layout.file(folder)
        if not os.path.isdir(path):
            return
        mtime, now = os.stat(path).st_mtime_ns, time.monotonic()
        known_mtime, looked = self._familiar.get(folder, (0, -_LOOK_AGAIN_SECONDS))
        if known_mtime == mtime or now - looked < _LOOK_AGAIN_SECONDS:
            return
        prefix, length = ours.partition("-")[0] + "-", len(ours)
        strangers = [
            name
            for name in os.listdir(path)
            if name[0] != "." and not (len(name) == length and name.startswith(prefix))
        ]
        if strangers:
            known = self.index.folder(folder)[1]
            if any(name not in known for name in strangers):
                self.refresh(wait=True)
        self._familiar[folder] = (mtime, now)

    def wrote_in(self, folder: str) -> None:
        """Note that the latest change of a folder was ours."""
        with suppress(OSError):
            looked = self._familiar.get(folder, (0, 0.0))[1]
            self._familiar[folder] = (os.stat(self.layout.file(folder)).st_mtime_ns, looked)

    def _age(self) -> str:
        changed = int(self.index.note("changed_ns") or 0)
        return f"{max(0, time.time_ns() - changed) / 1e9:.0f} s"

    def _heal(self) -> None:
        """Complete a change that was decided before a crash; bring back what was cleaned away."""
        if not self.is_user and not self.layout.memory.is_dir() and self._is_on_a_branch():
            from loki_memory.history.branch_mode import restore

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
        may_be_empty: bool = False,
        folders_only: bool = False,
    ) -> Changes:
        if full:
            self._written.clear()
        scan_limit = 0 if folders_only else self.config.get("sync.scan_limit")
        freshness = Freshness(scan_limit, self.config.get("sync.full_scan_seconds"))
        look = Look(full, wait, freshness, progress, may_be_empty)
        return self._guarded(lambda: sync(self.layout, self.index, time.time_ns(), look))

    def _guarded(self, work: Callable[[], Changes]) -> Changes:
        """Do index work.

        A damaged database is replaced; one that cannot be written gives way to an index in memory,
        so that reading goes on.
        """
        try:
            changes = work()
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise StoreBusy(self.index.path, BUSY_SECONDS) from error
            changes = self._in_memory(str(error))
        except (sqlite3.DatabaseError, ValueError, EOFError, TypeError) as error:
            self.index.replace(f"the index was damaged ({error})")
            try:
                changes = rebuild(self.layout, self.index, time.time_ns())
            except sqlite3.OperationalError as again:
                changes = self._in_memory(str(again))
        self.notices += self.index.notices
        self.index.notices = []
        return changes

    def _in_memory(self, why: str) -> Changes:
        self.index.keep_in_memory(why)
        return rebuild(self.layout, self.index, time.time_ns())

    def render_views(self) -> None:
        """Render the views of the kinds that changed since they were rendered last."""
        from loki_memory.files import views
        from loki_memory.files.view_rendering import render

        rejected = self.index.fingerprint("tombstone")  # what it names leaves the views
        prints = {kind: self.index.fingerprint(kind) ^ rejected for kind in views.SHOWN}
        written: list[str] = []
        records = frozenset(self._written)
        try:
            for kind in views.to_render(self.store, prints):
                with suppress(FileChanged):  # an edit of this moment: the next sync takes it over
                    written += render(self.store, kind, self._for_view(kind), self._record)
            views.note_state(self.store, prints, written)
        except LinkRefused as error:  # memory is all there without its views
            self.notices.append(str(error))
        self._written.intersection_update(records)  # views are nothing to take in

    def _for_view(self, kind: Kind) -> Iterator[Listed]:
        """Everything of a kind that stands in tracked files and was not rejected."""
        from loki_memory.index.queries import listed

        for record in listed(self.index, kind):
            if not record.path.startswith(PRIVATE) and not view_kind(record.path):
                yield record

    def _record(self, memory_id: str) -> Memory | None:
        found = self.index.body(memory_id)
        return parsed(*found) if found else None


def user_home() -> Path:
    """The folder of the user scope; its user may have put it elsewhere and left a link."""
    home = Path(os.environ.get("LOKI_HOME") or Path.home() / ".loki")
    return home.resolve() if home.is_symlink() else home


def opened_layout(root: Path) -> Layout:
    """The layout of a workspace. A local zone of this machine from before `git init` moves in."""
    place = layout(root)
    beside = zones.stray(place)
    if beside is None or place.local.exists() or not _is_of_this_machine(place, beside):
        return place
    if git_home(root) is not None:
        from loki_memory.history.repository import tracked

        if tracked(root, [f".loki/{LOCAL}"]):
            return place
    return zones.adopt(place)


def _is_of_this_machine(place: Layout, beside: Path) -> bool:
    """Whether this machine made a local zone, or had an index here before zones had a mark."""
    if is_made_here(beside):
        return True
    path = place.cache / "index.db"
    if beside.is_symlink() or (beside / MADE_HERE).exists() or not path.is_file():
        return False
    index = Index(path)
    try:
        return index.note("home") == home_of(place)
    finally:
        index.close()


def parsed(kind: str, body: str) -> Memory:
    import orjson

    from loki_memory.models import MODELS, parse

    return parse(MODELS[kind], orjson.loads(body))  # type: ignore[index]


def _joined(first: Changes, second: Changes) -> Changes:
    added, modified, removed = (
        list(dict.fromkeys([*a, *b])) for a, b in zip(first[:3], second[:3], strict=True)
    )
    return Changes(added, modified, removed, first.stale or second.stale)
