"""Merge memory files: as git's merge driver, and after a merge that left conflicts.

The three versions of a conflict are taken from git's index; only where they are gone are conflict
markers parsed. Views are not merged: the entries of both sides are taken over into
records, and the views are rendered again.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from loki_memory.errors import GitFailed, InvalidRecord, LokiMemoryError, RejectedValue
from loki_memory.files.codec import decode
from loki_memory.files.layout import ARCHIVE, kind_of, layout, place, view_kind
from loki_memory.files.store import Change, Store, sealed
from loki_memory.history.merge import are_strangers, merge, told_apart
from loki_memory.integrity import write_log
from loki_memory.models import Belief, Memory, parse

if TYPE_CHECKING:
    from loki_memory.git_repository import Repository
    from loki_memory.homes import OpenWorkspace

How = Literal["merged", "kept", "removed", "told apart", "taken over", "left"]
_HEADS = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD")
_BASE, _OURS, _THEIRS = 1, 2, 3  # git's numbers of the versions of an unmerged file


class Resolved(NamedTuple):
    """The outcome for one file with a conflict, done or planned."""

    path: str
    how: How
    note: str = ""
    staged: bool = False  # True if git's index has it as resolved


class Mending(NamedTuple):
    """The plan for one file with a conflict: records to write; None removes."""

    path: str
    how: How
    note: str = ""
    writes: Mapping[str, Memory | None] = MappingProxyType({})
    views: tuple[bytes, ...] = ()


# -- the merge driver ----------------------------------------------------------------------------


def drive(base: str, ours: str, theirs: str, path: str) -> bool:
    """Merge three files that git names into `ours`; returns False if a person must decide.

    A file that cannot be read as memory is merged as text, as git would have done.
    """
    before, mine, other = (Path(name).read_bytes() for name in (base, ours, theirs))
    data = merge_files(before, mine, other, path)
    if data is None:
        return _merged_as_text(base, ours, theirs)
    Path(ours).write_bytes(data)
    _vouch(path, data)
    return True


def _vouch(path: str, data: bytes) -> None:
    """Add the merged record to the write log, because git writes it and not the store.

    A merge never fails because of that; `verify` will report the record.
    """
    home, _, inside = path.partition(".loki/memory/")
    if not inside or not Path(home, ".loki", "memory").is_dir():
        return
    with suppress(LokiMemoryError):
        store = Store(layout(Path(home).absolute()))
        with store.change():
            write_log.note(store.layout, [write_log.of_write(inside, data, None)])


def _merged_as_text(base: str, ours: str, theirs: str) -> bool:
    labels = [part for name in ("ours", "base", "theirs") for part in ("-L", name)]
    command = ["git", "merge-file", *labels, ours, base, theirs]
    return subprocess.run(command, check=False).returncode == 0  # noqa: S603


def merge_files(base: bytes, ours: bytes, theirs: bytes, path: str) -> bytes | None:
    """Merge the bytes of a record file; None if it takes a person, or `resolve`."""
    record = record_path(path)
    if not record:
        return None
    try:
        before, *sides = _decoded(record, MergeConflict(base or None, ours, theirs))
        if are_strangers(before, *sides):
            return None
        return sealed(merge(before, *sides))[1]
    except InvalidRecord:
        return None


def record_path(path: str) -> str:
    """The record's own path in a path of the repository; empty if it is no record."""
    parts = path.split("/")
    for at, part in enumerate(parts):
        inside = "/".join(parts[at + 1 :]).removeprefix(ARCHIVE)
        if part == "memory" and kind_of(inside):
            return inside
    return ""


def _decoded(path: str, versions: MergeConflict) -> tuple[Memory | None, Memory, Memory]:
    """Decode the three records. An unreadable base counts as none; an unreadable side raises."""
    path = path.removeprefix(ARCHIVE)
    return (
        _readable(path, versions.base),
        decode(path, versions.ours),
        decode(path, versions.theirs),
    )


def _readable(path: str, data: bytes | None) -> Memory | None:
    try:
        return decode(path, data) if data else None
    except InvalidRecord:
        return None


# -- resolve -------------------------------------------------------------------------------------


def resolve(workspace: OpenWorkspace, *, plan_only: bool = False) -> list[Resolved]:
    """Resolve every memory file that a merge left with a conflict, and report how.

    Files that are unmerged in git's index are marked as resolved there; nothing else is staged,
    and nothing is committed.
    """
    from loki_memory.git_repository import Repository

    repository = Repository.find(workspace.layout.root, workspace.layout.loki.name)
    unmerged = _unmerged(repository) if repository else {}
    mendings = [_unmerged_mending(workspace, path, found) for path, found in unmerged.items()]
    mendings += [_marked_mending(workspace, path) for path in _marked(workspace, unmerged)]
    if plan_only or not mendings:
        return [Resolved(mending.path, mending.how, mending.note) for mending in mendings]
    followed = _carry_out(workspace, repository, mendings)
    staged = _stage(repository, unmerged, mendings, followed) if repository else set()
    workspace.sync()
    return [
        Resolved(mending.path, mending.how, mending.note, mending.path in staged)
        for mending in mendings
    ]


def _unmerged(repository: Repository) -> dict[str, dict[int, bytes]]:
    """The versions of the unmerged memory files in git's index, by number."""
    listed = repository.run("ls-files", "-u", "-z", "--", f"{repository.memory}/")
    blobs: dict[str, dict[int, str]] = {}
    for entry in filter(None, os.fsdecode(listed).split("\0")):
        about, _, path = entry.partition("\t")
        _, blob, number = about.split()
        path = path.removeprefix(f"{repository.memory}/")
        blobs.setdefault(path, {})[int(number)] = blob
    ids = (blob for numbers in blobs.values() for blob in numbers.values())
    contents = dict(repository.blobs(ids))
    return {
        path: {number: contents[blob] for number, blob in numbers.items()}
        for path, numbers in sorted(blobs.items())
    }


def _marked(workspace: OpenWorkspace, unmerged: Mapping[str, object]) -> Iterator[str]:
    """Record files that cannot be read and hold conflict markers."""
    for path in dict.fromkeys(problem.path for problem in workspace.home.problems()):
        found = workspace.store.read(path) if kind_of(path) and path not in unmerged else None
        if found is not None and split(found.data):
            yield path


def _marked_mending(workspace: OpenWorkspace, path: str) -> Mending:
    found = workspace.store.read(path)
    versions = split(found.data) if found else None
    if versions is None:
        return Mending(path, "left", "it changed a moment ago")
    return _merged_mending(workspace, path, versions)


def _unmerged_mending(workspace: OpenWorkspace, path: str, found: Mapping[int, bytes]) -> Mending:
    sides = [found[number] for number in (_OURS, _THEIRS) if number in found]
    if view_kind(path):
        return Mending(path, "taken over", "what it says is in records now", views=tuple(sides))
    if not kind_of(path.removeprefix(ARCHIVE)):
        return Mending(path, "left", "is not a record; resolve it as any other file")
    if _is_mended_by_hand(workspace, path, found):
        return Mending(path, "left", "was mended by hand; `git add` it")
    if not sides:
        return Mending(path, "removed", "both sides removed it", {path: None})
    if len(sides) == 1:
        return _one_sided_mending(workspace, path, found.get(_BASE), sides[0])
    return _merged_mending(workspace, path, MergeConflict(found.get(_BASE), *sides))


def _is_mended_by_hand(workspace: OpenWorkspace, path: str, found: Mapping[int, bytes]) -> bool:
    """Check if a file was edited by hand: it is neither a version of it, nor git's merge."""
    there = workspace.store.read(path)
    if there is None or there.data in found.values() or split(there.data):
        return False
    return _readable(path.removeprefix(ARCHIVE), there.data) is not None


def _merged_mending(workspace: OpenWorkspace, path: str, versions: MergeConflict) -> Mending:
    try:
        base, ours, theirs = _decoded(path, versions)
    except InvalidRecord as error:
        return Mending(path, "left", f"one side {error.reason}; mend it in an editor")
    if are_strangers(base, ours, theirs):
        keeps, moves = told_apart(ours, theirs)
        note = f"two memories had the name {keeps.id}; the other is {moves.id} now"
        return Mending(path, "told apart", note, {path: keeps, place(moves): moves})
    return _admitted(workspace, path, merge(base, ours, theirs), "merged")


def _one_sided_mending(
    workspace: OpenWorkspace, path: str, base: bytes | None, data: bytes
) -> Mending:
    """Resolve a file that one side removed and the other changed: the change stays.

    If it was moved to the archive, the change goes there; if it was rejected, it is dropped.
    """
    changed = _readable(path, data)
    if changed is None:
        return Mending(path, "left", "one side removed it, and the other cannot be read")
    kept = workspace.store.read(ARCHIVE + path)
    archived = _readable(path, kept.data) if kept else None
    if archived is None:
        return _admitted(workspace, path, changed, "kept")
    both = merge(_readable(path, base), archived, changed)
    return Mending(path, "removed", "it is in the archive", {path: None, ARCHIVE + path: both})


def _admitted(workspace: OpenWorkspace, path: str, record: Memory, how: How) -> Mending:
    """Plan to write a record, unless its value was rejected by a person."""
    try:
        Change(workspace.store).admit(record)
    except RejectedValue:
        if isinstance(record, Belief):
            return Mending(path, how, "it was rejected", {path: record.changed(status="rejected")})
        return Mending(path, "removed", "it was rejected", {path: None})
    note = "one side had removed it" if how == "kept" else ""
    return Mending(path, how, note, {path: record})


def _carry_out(
    workspace: OpenWorkspace, repository: Repository | None, mendings: list[Mending]
) -> list[str]:
    """Write the planned records; returns the files in which a link followed a memory."""
    for mending in mendings:
        for data in mending.views:
            with workspace.store.change() as change:
                change.render(mending.path, data)
            workspace.sync()
    followed: list[str] = []
    with workspace.store.change() as change:
        for mending in mendings:
            for path, record in mending.writes.items():
                if record is None:
                    change.remove(path)
                else:
                    change.put(record, path)
        for mending in mendings:
            if mending.how == "told apart":
                followed += _follow(change, repository, mending)
                workspace.notices.append(f"{mending.path}: {mending.note}")
    return followed


def _stage(
    repository: Repository,
    unmerged: Mapping[str, object],
    mendings: list[Mending],
    followed: list[str],
) -> set[str]:
    """Mark the resolved files in git's index."""
    done = {
        mending.path for mending in mendings if mending.path in unmerged and mending.how != "left"
    }
    written = {path for mending in mendings if mending.path in done for path in mending.writes}
    paths = sorted({*done, *written, *followed}) if done else []
    names = "".join(f"{repository.memory}/{path}\0" for path in paths).encode()
    if names:
        asked = ("update-index", "--add", "--remove", "-z", "--stdin")
        repository.run(*asked, input=names)
    return done


# -- links that follow ---------------------------------------------------------------------------


def _follow(change: Change, repository: Repository | None, mending: Mending) -> list[str]:
    """Update the links of one branch to a memory that got a new id: only that branch meant it.

    Git knows which branch that is while the merge is under way.
    """
    keeps, moves = (record for record in mending.writes.values() if record is not None)
    if repository is None or keeps.id == moves.id:
        return []
    naming = [
        {*_naming(repository, rev, keeps.id)} for rev in ("HEAD", _merging(repository)) if rev
    ]
    if len(naming) < 2:  # noqa: PLR2004 - a merge has two sides
        return []
    is_ours = _blob_says(repository, "HEAD", mending.path, moves)
    ours, theirs = naming
    found = sorted((ours - theirs if is_ours else theirs - ours) - {mending.path})
    for path in found:
        record = change.record(path)
        if record is not None:
            change.put(_renamed(record, keeps.id, moves.id), path)
    return found


def _merging(repository: Repository) -> str:
    """The commit that is being merged, picked or rebased; empty if git does not say."""
    return next((name for name in _HEADS if repository.resolve(name)), "")


def _naming(repository: Repository, rev: str, memory_id: str) -> Iterator[str]:
    """The record files of a commit that name a memory."""
    asked = ("grep", "-l", "-z", "-F", "-e", f'"{memory_id}"', rev, "--", f"{repository.memory}/")
    try:
        found = os.fsdecode(repository.run(*asked))
    except GitFailed:  # there is none
        return
    for entry in filter(None, found.split("\0")):
        path = entry.partition(":")[2].removeprefix(f"{repository.memory}/")
        if kind_of(path):
            yield path


def _blob_says(repository: Repository, rev: str, path: str, moved: Memory) -> bool:
    """Check if a commit's version of a file is this memory, under its former id."""
    blob = repository.tree(rev).get(path)
    found = next((data for _, data in repository.blobs([blob])), b"") if blob else b""
    record = _readable(path, found)
    return record is not None and record.key() == moved.key()


def _renamed(record: Memory, old: str, new: str) -> Memory:
    """Replace every mention of an id in a record by another."""

    def swapped(value: object) -> object:
        if isinstance(value, dict):
            return {name: swapped(item) for name, item in value.items()}
        if isinstance(value, list):
            return [swapped(item) for item in value]
        return new if value == old else value

    document = {name: swapped(value) for name, value in record.document().items() if name != "id"}
    own = {"id": record.id} if record.keeps_id else {}
    return parse(type(record), {**document, **own})


# -- A file with conflict markers, split into its versions -----------------------------------------


_MARKER = re.compile(rb"(<{7}|\|{7}|={7}|>{7})(?: [^\r\n]*)?\r?\n?")
_NEXT = {b"<" * 7: "ours", b"|" * 7: "base", b"=" * 7: "theirs", b">" * 7: ""}


class MergeConflict(NamedTuple):
    """The versions of a file; no base where the markers show none (git's `merge` style)."""

    base: bytes | None
    ours: bytes
    theirs: bytes


def split(data: bytes) -> MergeConflict | None:
    """Split a file with conflict markers into its versions; None if it has no complete ones."""
    versions: dict[str, list[bytes]] = {"base": [], "ours": [], "theirs": []}
    inside, seen = "", {""}
    for line in data.splitlines(keepends=True):
        found = _MARKER.fullmatch(line)
        turn = _NEXT[found[1]] if found else None
        if turn is not None and _follows(inside, turn):
            inside = turn
            seen.add(turn)
        else:
            for name in (inside,) if inside else versions:
                versions[name].append(line)
    if inside or len(seen) == 1:
        return None
    base, ours, theirs = (b"".join(versions[name]) for name in ("base", "ours", "theirs"))
    return MergeConflict(base if "base" in seen else None, ours, theirs)


def _follows(inside: str, turn: str) -> bool:
    """Check if a marker is valid here: a row of `=` may also underline a heading."""
    return turn in {"": {"ours"}, "ours": {"base", "theirs"}, "base": {"theirs"}}.get(inside, {""})
