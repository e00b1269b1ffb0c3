"""The tree of memory files at one point: a commit, the working tree or, without git, a folder.

Files are identified by git's blob ids, so two trees are compared without reading what is equal. A
file of the working tree that git has not seen in its present form has no id and is read.
"""

from __future__ import annotations

import os
import re
from collections import ChainMap, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from loki_memory.errors import InvalidRecord
from loki_memory.files import disk
from loki_memory.files.codec import build, decode, read_json
from loki_memory.files.layout import ARCHIVE, PRIVATE, kind_of, likely_places, view_kind
from loki_memory.files.redaction import may_hold_secret, redact
from loki_memory.files.scan import archived, scan
from loki_memory.files.store import sealed
from loki_memory.models import Memory

if TYPE_CHECKING:
    from loki_memory.files.layout import Layout
    from loki_memory.git_repository import Commit, Repository

_AGAIN = re.compile(r"~\d+(?=\.\w+$)")  # a second file of one name in the archive
_ID = re.compile(rb"\b[a-z]{2,8}-[0-9A-Za-z][0-9A-Za-z_-]{0,79}")
Contents = Iterator[tuple[str, bytes]]


class Records(NamedTuple):
    """The records in some files of a tree, by id, and the files that hold none."""

    live: dict[str, Memory]
    archived: dict[str, Memory]
    paths: dict[str, str]  # of records, by id
    invalid: dict[str, str]  # reasons, by path

    def all(self) -> Mapping[str, Memory]:
        return ChainMap(self.live, self.archived)


class MemoryTree:
    """The files of memory at one point, with a function that reads them."""

    def __init__(
        self,
        label: str,
        files: Mapping[str, str],
        read: Callable[[Iterable[str]], Contents],
        commit: str = "",
    ) -> None:
        self.label, self.files, self.read, self.commit = label, files, read, commit

    def records(self, paths: Iterable[str]) -> Records:
        """The records in files of this tree, of those that it has."""
        wanted = [path for path in paths if path in self.files]
        found = records_in(self.read(path for path in wanted if not view_kind(path)))
        for path, data in self.read(path for path in wanted if view_kind(path)):
            self._take_view(found, path, data)
        return found

    def _take_view(self, found: Records, path: str, data: bytes) -> None:
        """Add entries of a view of the old layout, unless a file of their own has them."""
        kind = view_kind(path)
        if kind is None or kind == "episode":  # that view is an index of episodes, not a record
            return
        for entry in _entries(data):
            try:
                record = build(kind, entry)
            except InvalidRecord:
                continue  # a damaged entry is reported when the view is taken over
            if not any(place in self.files for place in self._likely(record.id)):
                found.live.setdefault(record.id, record)
                found.paths.setdefault(record.id, path)

    def everything(self) -> Records:
        """All records of this tree."""
        return self.records(path for path in self.files if _is_ours(path))

    @property
    def views(self) -> list[str]:
        """The views that are tracked, as in the old layout."""
        return [path for path in self.files if view_kind(path)]

    @cached_property
    def _episodes(self) -> Mapping[str, list[str]]:
        """Paths of episodes by the end of their names, which is the end of the id."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for path in self.files:
            if "episodic/" in path:
                found[_tail(original(path).removesuffix(".json"))].append(path)
        return found

    def find(self, ids: Iterable[str]) -> dict[str, Memory]:
        """Find the memories with these ids, archived ones too."""
        wanted = set(ids)
        likely = {path for name in wanted for path in self._likely(name)}
        found = _wanted_of(wanted, self.records(sorted(likely)))
        missing = wanted - found.keys()
        return {**found, **self._search(missing)} if missing else found

    def _likely(self, name: str) -> Iterator[str]:
        for place in likely_places(name):
            yield from (place, ARCHIVE + place)
        if name.startswith("ep-"):
            yield from self._episodes.get(_tail(name), ())

    def _search(self, wanted: set[str]) -> dict[str, Memory]:
        """Search files whose names do not contain the id; files without an id are read too."""
        paths = [p for p, data in self._contents() if b'"id"' not in data or _names(data, wanted)]
        return _wanted_of(wanted, self.records([*paths, *self.views]))

    def naming(self, ids: Iterable[str]) -> list[str]:
        """The files that mention one of these ids anywhere."""
        wanted = set(ids)
        return [path for path, data in self._contents() if _names(data, wanted)]

    def _contents(self) -> Contents:
        return self.read(path for path in self.files if kind_of(original(path)))


def records_in(contents: Contents) -> Records:
    """The records in some files, given by path."""
    found = Records({}, {}, {}, {})
    for path, data in contents:
        _take(found, path, data)
    return found


def changed(before: MemoryTree, after: MemoryTree) -> list[str]:
    """The files that may differ: only these are worth reading."""
    paths = before.files.keys() | after.files.keys()
    differ = (p for p in paths if not before.files.get(p) or before.files[p] != after.files.get(p))
    return sorted({path for path in differ if _is_ours(path)} | {*before.views, *after.views})


# -- where trees come from -------------------------------------------------------------------------


def of_commit(repo: Repository, commit: str, label: str) -> MemoryTree:
    """Memory in a commit."""
    files = repo.tree(commit)

    def read(paths: Iterable[str]) -> Contents:
        homes: defaultdict[str, list[str]] = defaultdict(list)
        for path in paths:
            homes[files[path]].append(path)
        for blob, data in repo.blobs(homes):
            yield from ((path, data) for path in homes[blob])

    return MemoryTree(label, files, read, commit)


def of_worktree(repo: Repository, layout: Layout) -> MemoryTree:
    """Memory in this worktree: files that git tracks, and those that it would take."""
    files = dict(_tracked(repo))
    for path in _listed_by(repo, "diff-files", "--name-only"):
        files[path] = ""
    for path in _listed_by(repo, "ls-files", "--others", "--exclude-standard"):
        files[path] = ""
    there = {path: blob for path, blob in files.items() if blob or _exists(layout, path)}
    return MemoryTree("the working tree", there, _reader(layout))


def of_folder(layout: Layout) -> MemoryTree:
    """Memory without git."""
    paths = [f"{folder}/{name}" for folder, found in scan(layout) for name in found.files]
    public = (path for path in (*paths, *archived(layout)) if not path.startswith(PRIVATE))
    return MemoryTree("the memory folder", dict.fromkeys(public, ""), _reader(layout))


def of_nothing() -> MemoryTree:
    """Empty memory, as before the first commit."""
    return MemoryTree("nothing", {}, lambda _: iter(()))


def _reader(layout: Layout) -> Callable[[Iterable[str]], Contents]:
    def read(paths: Iterable[str]) -> Contents:
        for path in paths:
            data = disk.read_derived(layout.file(path))  # a link is reported as a problem
            if data is not None:
                yield path, data

    return read


def _tracked(repo: Repository) -> Iterator[tuple[str, str]]:
    """Paths and blobs in git's index: `100644 <blob> 0`, a tab, the path."""
    listed = repo.run("ls-files", "--stage", "-z", "--", f"{repo.memory}/")
    for entry in os.fsdecode(listed).split("\0"):
        about, _, path = entry.partition("\t")
        if about.startswith("100"):
            yield path.removeprefix(f"{repo.memory}/"), about.split()[1]


def _listed_by(repo: Repository, *asked: str) -> list[str]:
    answer = os.fsdecode(repo.run(*asked, "-z", "--", f"{repo.memory}/")).split("\0")
    return [path.removeprefix(f"{repo.memory}/") for path in answer if path]


def _exists(layout: Layout, path: str) -> bool:
    """Check if there is a plain file: links are not followed."""
    target = layout.file(path)
    return os.path.isfile(target) and not os.path.islink(target)


# -- files and records ---------------------------------------------------------------------------


def _is_ours(path: str) -> bool:
    """Check if a file is memory. A name that is no text could not be opened elsewhere."""
    if not path.isascii() and not path.isprintable():
        return False
    return bool(kind_of(original(path)) or view_kind(path))


def original(path: str) -> str:
    """The path that an archived file came from; any other path as it is."""
    return _AGAIN.sub("", path.removeprefix(ARCHIVE)) if path.startswith(ARCHIVE) else path


def _names(data: bytes, wanted: set[str]) -> bool:
    return not wanted.isdisjoint(found.decode() for found in _ID.findall(data))


def _tail(name: str) -> str:
    return name.rpartition("-")[2]


def _take(found: Records, path: str, data: bytes) -> None:
    """Add the record of a file. Secrets that were written by hand are redacted."""
    try:
        record = decode(original(path), data)
        if may_hold_secret(data):
            record = sealed(record)[0]
    except InvalidRecord as error:
        reason = f"{error.field}: {error.reason}" if error.field else error.reason
        found.invalid[path] = redact(reason)
        return
    group = found.archived if path.startswith(ARCHIVE) else found.live
    if record.id in group and record.keeps_id:
        record = record.changed(id="")  # as it is shown where another file has its id
    group.setdefault(record.id, record)
    found.paths.setdefault(record.id, path)


def _wanted_of(wanted: set[str], records: Records) -> dict[str, Memory]:
    return {name: record for name, record in records.all().items() if name in wanted}


def _entries(data: bytes) -> list[object]:
    """The entries of a view: a list, or the first list in an object."""
    try:
        value = read_json(data, len(data) + 1)
    except InvalidRecord:
        return []
    if isinstance(value, dict):
        value = next((entries for entries in value.values() if isinstance(entries, list)), None)
    return value if isinstance(value, list) else []


# -- The files of memory that a commit changed, against its first parent --------------------------


_NO_BLOB = "0" * 40  # or 64 of them


class TreeEdit(NamedTuple):
    """A path below the memory folder, and its content before and after as blob ids."""

    path: str
    before: str | None
    after: str | None


def edits(repo: Repository, commit: Commit) -> list[TreeEdit]:
    """The files of memory that a commit changed; for a merge, against its first parent."""
    parent = commit.parents[0] if commit.parents else empty_tree(repo)
    folder = f"{repo.memory}/"
    command = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev")
    found = repo.run(*command, parent, commit.id, "--", folder)
    return sorted(
        TreeEdit(path.removeprefix(folder), _blob(before), _blob(after))
        for path, (_, _, before, after, _) in raw_edits(found)
        if path.startswith(folder)
    )


def empty_tree(repo: Repository) -> str:
    """Git's id of the empty tree, which depends on the repository's hash."""
    return repo.run("hash-object", "-t", "tree", "--stdin", input=b"").decode().strip()


def raw_edits(raw: bytes) -> Iterator[tuple[str, list[str]]]:
    """Parse `:100644 100644 <old> <new> M`, NUL, the path, NUL, and so on: the path, and these."""
    parts = os.fsdecode(raw).split("\0")
    for fields, path in zip(parts[::2], parts[1::2], strict=False):
        yield path, fields.removeprefix(":").split(" ")


def _blob(name: str) -> str | None:
    return None if name.startswith(_NO_BLOB) else name
