"""The homes that a workspace reads and writes: the project's, and beside it the user's."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING

from loki_memory.errors import Ambiguous, NotFound
from loki_memory.home import Fresh, Home, parsed, user_home

if TYPE_CHECKING:
    from loki_memory.files.store import Change, Store
    from loki_memory.models import Memory


class Homes:
    """The home of a project, then the user's if there is one."""

    def __init__(self, project: Home) -> None:
        self._project = project
        self._user: Home | None = None

    def __iter__(self) -> Iterator[Home]:
        yield self._project
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
        for home in self:
            path = home.place_of(memory_id)
            if path is not None:
                return home, path
        for home in self.fresh("current"):
            path = home.index.path_of(memory_id)
            if path is not None:
                return home, path
        raise NotFound(memory_id)

    def get(self, memory_id: str) -> Memory:
        """The memory with this id; raises NotFound."""
        for home in self:
            if found := home.look_up(memory_id):
                return home.as_its_own(parsed(*found))
        home = self.up_to_date(memory_id)
        if found := home.index.body(memory_id):
            return home.as_its_own(parsed(*found))
        raise NotFound(memory_id)

    def resolve(self, start: str) -> str:
        """The only id that begins so; raises NotFound or Ambiguous."""
        for home in self.fresh():
            if home.index.path_of(start):
                return start
        found = [name for home in self.fresh() for name in home.index.ids_starting(start)]
        if len(found) > 1:
            raise Ambiguous(start, found)
        if not found:
            raise NotFound(start)
        return found[0]

    def up_to_date(self, memory_id: str) -> Home:
        """The home of a memory, its whole index up to date: for what follows links."""
        home, _ = self.find(memory_id)
        home.ensure("current")
        return home

    def changing(self, memory_id: str) -> Changing:
        """Hold the store of a memory for a change of it."""
        self._project.before_write()
        home, path = self.find(memory_id)
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


class Changing:
    """Hold the store around a change of one memory that must still be where it was found."""

    def __init__(self, store: Store, memory_id: str, path: str) -> None:
        self._id, self._path = memory_id, path
        self._held = store.change()

    def __enter__(self) -> tuple[Change, str, Memory]:
        change = self._held.__enter__()
        try:
            return change, self._path, self._found(change)
        except BaseException as error:
            self._held.__exit__(type(error), error, error.__traceback__)
            raise

    def _found(self, change: Change) -> Memory:
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
