"""The memory of other repositories, pulled from a team server and kept on this machine.

Of each repository there is one file with what was pulled and the cursor of the next pull, and an
index over it like that of a past commit, so that the code which answers in a clone answers here
too. Trusted records and pushed candidates are apart: what another repository's people only pushed
is not shown here. All of it lies in the cache of the user's folder, which may be deleted.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from loki_memory.files import disk
from loki_memory.files.layout import PRIVATE, kind_of, view_kind
from loki_memory.history.as_of import Past, follow, lay_out, past_layout
from loki_memory.models.ids import file_stem
from loki_memory.remote.servers import cache_of
from loki_memory.remote.shared import PULLED

if TYPE_CHECKING:
    from loki_memory.remote.servers import RemoteServer

Part = Literal["trusted", "pushed"]

_DIGITS = 15  # of a hash, as a number that SQLite can hold


class PulledFiles(NamedTuple):
    """The record files of a repository of a server, as far as they were pulled."""

    cursor: str
    trusted: Mapping[str, str]  # path and content
    pushed: Mapping[str, str]  # of clients; not reviewed

    def part(self, part: Part) -> Mapping[str, str]:
        return self.trusted if part == "trusted" else self.pushed


class CachedHome(Past):
    """The memory of another repository on this machine: read, and never written."""

    is_long_lived = True
    starts_git = False


class CachedRepository:
    """One repository of a server, as far as it was pulled."""

    def __init__(self, server: str, name: str) -> None:
        self.name = name
        self.folder = cache_of(server) / file_stem(name)

    @cached_property
    def pulled(self) -> PulledFiles:
        """Read what was pulled; nothing if the file is gone or not readable."""
        found: Any = {}
        try:
            found = json.loads(disk.read_derived(self.folder / PULLED) or b"{}")
            return PulledFiles(str(found["cursor"]), dict(found["trusted"]), dict(found["pushed"]))
        except (ValueError, KeyError, TypeError):
            return PulledFiles("", {}, {})

    def keep(self, pulled: PulledFiles) -> None:
        """Write down what was pulled; the indexes follow when they are asked."""
        data = json.dumps({"name": self.name, **pulled._asdict()}).encode()
        disk.replace_plainly(self.folder / PULLED, data)
        self.__dict__["pulled"] = pulled

    def home(self, part: Part) -> CachedHome | None:
        """The trusted or the pushed memory, its index up to date; None if there is none."""
        contents = self.pulled.part(part)
        if not contents:
            return None
        home = CachedHome(past_layout(self.folder / part))
        state = _state(self.pulled.cursor)
        if home.index.note("changed_ns") != str(state):
            files = {path: content.encode() for path, content in contents.items()}
            shutil.rmtree(home.layout.memory, ignore_errors=True)  # views of an earlier pull
            lay_out(home.layout, files, None)
            follow(home.layout, home.index, files, state)
        return home


def cached(server: RemoteServer) -> Iterator[CachedRepository]:
    """The repositories of a server that are kept here, by name."""
    for file in sorted(cache_of(server.name).glob(f"*/{PULLED}")):
        try:
            name = json.loads(disk.read_derived(file) or b"{}")["name"]
        except (ValueError, KeyError, TypeError):
            continue
        yield CachedRepository(server.name, str(name))


def is_record(path: str, *, pushed: bool) -> bool:
    """Check a path that a server names: a record or a view, on the side where it belongs."""
    if ".." in path.split("/") or path.startswith("/") or "\0" in path:
        return False
    return path.startswith(PRIVATE) == pushed and bool(kind_of(path) or view_kind(path))


def _state(cursor: str) -> int:
    """A number for a cursor, by which an index knows whether it is up to date."""
    return int(sha256(cursor.encode()).hexdigest()[:_DIGITS], 16)
