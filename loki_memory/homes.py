"""An opened workspace: the homes that it reads and writes, the project's and the user's."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self

from loki_memory.errors import Ambiguous, LiesAbove, NotFound
from loki_memory.home import Fresh, Home, parsed, user_home
from loki_memory.home.place import layouts_above
from loki_memory.index.list_filter import ListFilter

if TYPE_CHECKING:
    from loki_memory.config import Config
    from loki_memory.files.layout import Layout
    from loki_memory.files.store import Change, Store
    from loki_memory.index.index import Index, Summary
    from loki_memory.models import Memory
    from loki_memory.sync import Changes, Progress


class Homes:
    """The home of a project, then the user's if there is one.

    In a monorepo the workspaces above the project's are read too, where the user trusts them: what
    they hold is found and opened, but neither told unasked nor changed from below.
    """

    def __init__(self, project: Home) -> None:
        self._project = project
        self._user: Home | None = None
        self._above: list[Home] | None = None

    def __iter__(self) -> Iterator[Home]:
        yield self._project
        if self.user is not None:
            yield self.user

    @property
    def above(self) -> list[Home]:
        """The homes above the project's in its repository that the user trusts, nearest first."""
        if self._above is None:
            alone = self._project.is_user or self._project.stands_alone
            layouts = [] if alone else layouts_above(self._project.layout.root)
            self._above = [home for home in map(Home, layouts) if home.trust().is_trusted]
            for home in self._above:
                home.is_above = True
        return self._above

    def readable(self) -> Iterator[Home]:
        """Each home whose memory can be read from here: the project's, those above, the user's."""
        yield self._project
        yield from self.above
        if self.user is not None:
            yield self.user

    @property
    def user(self) -> Home | None:
        """The user's home, if it was made, is wanted, and is not the project itself."""
        alone = self._project.is_user or self._project.stands_alone
        if alone or not self._project.config.get("memory.include_user"):
            return None
        if self._user is None and (user_home() / "memory").is_dir():
            self._user = Home.of_user()
            self._user.is_long_lived = self._project.is_long_lived
        return self._user

    def of_scope(self, scope: str) -> Home:
        """The home that records of a scope are written to; the user's is made where it must be."""
        if scope != "user" or self._project.is_user:
            return self._project
        if self.user is not None:
            return self.user
        self._user = Home.of_user()
        self._user.settle_in()
        return self._user

    def prepare(self, scope: str, path: str) -> Home:
        """Get the home of a scope ready for a new record at a path."""
        if scope == "user" and not self._project.is_user:
            self._project.before_write()
        home = self.of_scope(scope)
        home.before_write(path)
        return home

    def fresh(self, level: Fresh = "read") -> Iterator[Home]:
        """Each home, as fresh as a level says."""
        for home in self:
            home.ensure(level)
            yield home

    def find(self, memory_id: str) -> tuple[Home, str]:
        """Find the home and path of a memory by the cheapest sure look; raises NotFound."""
        for home in self.readable():
            path = home.place_of(memory_id)
            if path is not None:
                return home, path
        for home in self.readable():
            home.ensure("current")
            path = home.index.path_of(memory_id)
            if path is not None:
                return home, path
        raise NotFound(memory_id)

    def get(self, memory_id: str) -> Memory:
        """The memory with this id; raises NotFound."""
        for home in self.readable():
            if found := home.look_up(memory_id):
                return home.as_its_own(parsed(*found))
        home = self.up_to_date(memory_id)
        if found := home.index.body(memory_id):
            return home.as_its_own(parsed(*found))
        raise NotFound(memory_id)

    def resolve(self, start: str) -> str:
        """The only id that begins so; raises NotFound or Ambiguous."""
        for home in self.readable():
            home.ensure("read")
            if home.index.path_of(start):
                return start
        found = [name for home in self.readable() for name in home.index.ids_starting(start)]
        if len(found) > 1:
            raise Ambiguous(start, found)
        if not found:
            raise NotFound(start)
        return found[0]

    def memories(
        self,
        kind: str | None = None,
        status: str | None = None,
        since: str | None = None,
        scope: str | None = None,
    ) -> list[Memory]:
        """Memories of every home, newest first: live ones, or those with a status."""
        wanted = ListFilter(kind, status, since, scope)
        return [
            home.as_its_own(parsed(found, body))
            for home in self.fresh()
            for found, body in home.answer(partial(home.bodies, wanted))
        ]

    def summaries(
        self,
        kind: str | None = None,
        status: str | None = None,
        since: str | None = None,
        scope: str | None = None,
    ) -> list[Summary]:
        """The same memories, one line each, without reading the records."""
        wanted = ListFilter(kind, status, since, scope)
        return [
            summary for home in self.fresh() for summary in home.answer(partial(home.lines, wanted))
        ]

    def up_to_date(self, memory_id: str) -> Home:
        """The home of a memory, its whole index up to date: for what follows links."""
        home, _ = self.find(memory_id)
        home.ensure("current")
        return home

    def changing(self, memory_id: str) -> Changing:
        """Hold the store of a memory for a change of it."""
        self._project.before_write()
        home, path = self.find(memory_id)
        if home.is_above:
            raise LiesAbove(memory_id, home.layout.root)
        return Changing(home.store, memory_id, path)

    def flush(self) -> None:
        """Bring index and views of every home up to date with what was written here."""
        for home in filter(None, (self._project, self._user)):
            home.flush()

    def close(self) -> None:
        """Flush as far as that takes no waiting, and let go of every index that was opened."""
        for home in filter(None, (self._project, self._user)):
            home.flush(wait=False)
            home.index.close()
        for home in self._above or ():
            home.index.close()


class Changing:
    """Hold the store around a change of one memory that must still be where it was found."""

    def __init__(self, store: Store, memory_id: str, path: str) -> None:
        self._id, self._path = memory_id, path
        self._held = store.change()

    def __enter__(self) -> tuple[Change, str, Memory]:
        change = self._held.__enter__()
        try:
            return change, self._path, self._record(change)
        except BaseException as error:
            self._held.__exit__(type(error), error, error.__traceback__)
            raise

    def _record(self, change: Change) -> Memory:
        record = change.record(self._path)
        if record is not None and record.id != self._id:
            record = record.changed(id="")  # as it is shown where another file has its id
        if record is None or record.id != self._id:
            raise NotFound(f"{self._id} in {self._path}; it changed a moment ago")
        return record

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return self._held.__exit__(kind, error, trace)


class OpenWorkspace:
    """A workspace as features see it: its homes, and who uses it.

    `Workspace` adds every use of memory as a method; no feature needs to know of the others.
    """

    def __init__(self, home: Home, *, origin: str = "agent") -> None:
        self.home = home
        self.homes = Homes(home)
        self.notices = home.notices
        self.origin = origin

    @property
    def layout(self) -> Layout:
        """The paths of everything."""
        return self.home.layout

    @property
    def config(self) -> Config:
        """The settings that hold here."""
        return self.home.config

    @property
    def store(self) -> Store:
        """The memory files."""
        return self.home.store

    @property
    def index(self) -> Index:
        """The index of the memory files as it is, without a look at the files."""
        return self.home.index

    def now(self) -> str:
        """The present moment. LOKI_NOW replaces it, for runs that must be repeatable."""
        return self.home.now()

    def get(self, memory_id: str) -> Memory:
        """The memory with this id; raises NotFound."""
        return self.homes.get(memory_id)

    def resolve(self, start: str) -> str:
        """The only id that begins so; raises NotFound or Ambiguous."""
        return self.homes.resolve(start)

    def flush(self) -> None:
        """Bring index and views up to date with what was written here.

        A write is on disk when it returns, and reading sees it at once. Views are shared by many
        writes, so they are rendered here, when the workspace is closed, or when a command ends.
        """
        self.homes.flush()

    def close(self) -> None:
        """Flush as far as that takes no waiting, and close the index; a later use opens it."""
        self.homes.close()

    def sync(self, progress: Progress | None = None) -> Changes:
        """Bring the index and the views up to date with the files, and return what changed.

        Needed for files that other programs wrote, not for what was written here. `progress` is
        called with the number of files read and to be read.
        """
        return self.home.ensure("views", progress=progress)

    def rebuild(self, progress: Progress | None = None) -> Changes:
        """Read every file again and make the index from nothing; then as `sync`."""
        return self.home.rebuild(progress)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
