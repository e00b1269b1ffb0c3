"""Replicas: the memory of a repository as an index on this machine.

Recall ranks over the whole of a project: its words, vectors, links and dates. So each process of
the server keeps for each repository that it is asked about what a clone would have in its cache,
and brings it up to date from the rows of the database whenever their version moved on. The code
that answers in a clone reads it, and gives the same answers. A replica may be deleted at any time.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import NoAccess
from loki_memory.files.layout import view_kind
from loki_memory.files.lock import locked
from loki_memory.history.as_of import Past, follow, lay_out, lay_out_cited, past_layout
from loki_memory.journal import Journal
from loki_memory.models.ids import file_stem
from loki_memory.server import records
from loki_memory.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path

    from loki_memory.files.layout import Layout
    from loki_memory.server.database import Connection
    from loki_memory.server.projection import Mirror

_LOCK = ".lock"  # in the folder of a replica
_SERVED = "served"  # the note in its index that says which version of the rows it has
MOST_OPEN = 100  # replicas; each has five open files, of the 1,024 that a process may have
_PATIENCE = 60.0  # seconds for another process that builds the same replica


class Standing(NamedTuple):
    """A repository as the database has it."""

    id: int
    name: str
    epoch: str
    version: int
    commit: str
    settings: bytes


class NothingNoted(Journal):
    """A journal of a server that answers many: what one of them read changes no other's answer.

    What was shown is kept for the audit of the request.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.act = ""  # the tool that reads
        self.ids: list[str] = []

    def shown(self, ids_and_tokens: Iterable[tuple[str, int]], **_: object) -> bool:
        self.ids += [memory_id for memory_id, _ in ids_and_tokens]
        return True

    def opened(self, memory_id: str, tokens: int, **_: object) -> bool:  # noqa: ARG002
        self.ids.append(memory_id)
        return True


class Replica(Past):
    """The memory of a repository, up to date with one version of its rows."""

    name = ""  # of the repository, as clients know it
    is_long_lived = True
    starts_git = False

    @cached_property
    def journal(self) -> NothingNoted:
        return NothingNoted(self.layout.local)


class Served(NamedTuple):
    """The state of the rows of a repository that a replica says."""

    version: int  # 0 before it was built
    commit: str


class HeldReplica(NamedTuple):
    """An open replica, and the lock under which it is used."""

    workspace: Workspace
    turn: Lock

    def served(self) -> Served:
        """The state of the rows that it says."""
        version, _, commit = self.workspace.index.note(_SERVED).partition(" ")
        return Served(int(version or 0), commit)

    def is_at(self, standing: Standing) -> bool:
        """Check if it is up to date with a version of its rows."""
        return self.served().version == standing.version


class Replicas:
    """The replicas of this process, in one folder."""

    def __init__(self, folder: Path, mirrors: Iterable[Mirror] = ()) -> None:
        self._folder = folder
        self._mirrors: dict[str, Mirror] = {}
        self._held: dict[tuple[int, str], HeldReplica] = {}
        self._lock = Lock()
        for mirror in mirrors:
            self.follow(mirror)

    def follow(self, mirror: Mirror) -> None:
        """Take the code that memories cite from a mirror."""
        self._mirrors[mirror.source.name] = mirror

    def held(self, standing: Standing) -> HeldReplica:
        """The workspace of a repository, and the lock under which it is used."""
        key = (standing.id, standing.epoch)
        with self._lock:
            held = self._held.pop(key, None) or self._opened(standing)
            self._held[key] = held  # the last one: those before were used less lately
            self._close_idle()
            return held

    def _opened(self, standing: Standing) -> HeldReplica:
        folder = self._folder / f"{standing.id}-{standing.epoch}"
        root = folder / file_stem(standing.name)  # pages call a project as its folder is
        home = Replica(past_layout(root))
        home.name = standing.name
        return HeldReplica(Workspace(home), Lock())

    def _close_idle(self) -> None:
        """Close those that were used least lately; who still has one opens its files again."""
        for key in list(self._held)[:-MOST_OPEN]:
            held = self._held[key]
            if held.turn.acquire(blocking=False):
                del self._held[key]
                held.workspace.close()
                held.turn.release()

    def update(self, connection: Connection, standing: Standing, held: HeldReplica) -> None:
        """Bring a replica up to date; whoever calls has its lock.

        A commit of code changes no record: then what was derived from them stays.
        """
        home = held.workspace.home
        place = home.layout
        place.loki.mkdir(parents=True, exist_ok=True)
        with locked(place.root / _LOCK, _PATIENCE):
            before = held.served()
            if before.version == standing.version or not isinstance(home, Replica):
                return  # another process built it meanwhile
            files, gone = _changes(connection, standing, held)
            for view in _views(place) if gone is None else ():
                view.unlink()  # the present version may have none
            is_set_anew = _settings(place) != standing.settings
            lay_out(place, files, standing.settings)
            if files or gone or gone is None:
                follow(place, home.index, files, standing.version, gone)
            if files or before.commit != standing.commit:
                self._lay_out_cited(standing, home)
            with home.index.change() as revision:
                revision.set_note(_SERVED, f"{standing.version} {standing.commit}")
        if is_set_anew:
            home.__dict__.pop("config", None)
            home.__dict__.pop("retriever", None)

    def _lay_out_cited(self, standing: Standing, home: Replica) -> None:
        """Lay out the code that memories cite; the commit may not have what was there before."""
        for path in home.layout.root.iterdir():
            if path.name not in {home.layout.loki.name, _LOCK}:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        mirror = self._mirrors.get(standing.name)
        if mirror is not None and standing.commit:
            home.commit_id = standing.commit
            lay_out_cited(home, mirror.repository(standing.commit))


def _changes(
    connection: Connection, standing: Standing, held: HeldReplica
) -> tuple[Mapping[str, bytes], Collection[str] | None]:
    """The files that changed and those that are gone; all files, and None, if a view has a part."""
    version = held.served().version
    if version and not _views(held.workspace.layout):
        files, gone = records.changed_since(connection, standing.id, version)
        if not any(map(view_kind, (*files, *gone))):
            return files, gone
    return records.contents(connection, standing.id), None


def _settings(place: Layout) -> bytes:
    file = place.loki / "config.toml"
    return file.read_bytes() if file.exists() else b""


def _views(place: Layout) -> list[Path]:
    """The views of an old layout, the only files of memory that are laid out."""
    files = place.memory.rglob("*.json")
    return [path for path in files if view_kind(path.relative_to(place.memory).as_posix())]


def standing_of(connection: Connection, name: str) -> Standing:
    """A repository that the token of this transaction may read; raises NoAccess."""
    found = connection.execute(
        "SELECT id, name, epoch::text, version, commit, settings FROM loki.repositories "
        "WHERE name = %s AND id = ANY (loki.reach('read'))",
        (name,),
    ).fetchone()
    if found is None:
        raise NoAccess("read", name)
    return Standing(*found)
