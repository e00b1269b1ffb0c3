"""Reviewed memory: contents that somebody answers for, so that agents may be told them unasked.

A content of a record counts as reviewed if it

    is or was on the trusted branch, the default branch of the remote;
    was written, committed or accepted on this machine; or
    came in a commit that an allowed key signed.

Where nothing was ever fetched from a remote, all of memory is this machine's own work. Verdicts
are kept by path and content in the local zone. `renew` finds them with the help of git; hooks only
read them, and ask the write log about contents that have none. A content without a verdict waits.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from loki_memory.files import disk
from loki_memory.files.git_files import git_folders, is_shared, moves
from loki_memory.files.layout import PRIVATE, Layout, chain_path
from loki_memory.files.scan import etag

if TYPE_CHECKING:
    from loki_memory.home.folder import HomeFolder
    from loki_memory.index.queries import RecordVersion


_STATE = ".state"  # ending of a file beside the verdicts: the trusted branch, when to look again
_ACCEPTED = "accepted"  # where the write log has the hash of the content before

Contents = dict[str, dict[str, str]]  # path -> etag -> hash of the content, as in the write log


class ReviewedText(NamedTuple):
    """A memory as the trusted branch has it, while the working tree says something else."""

    kind: str
    title: str
    body: str


class Verdicts(NamedTuple):
    """The contents of memory that were reviewed, and how that was found out."""

    branch: Contents  # of the trusted branch
    own: Contents  # of this machine's work, and of signed commits
    texts: dict[str, ReviewedText]  # by id
    ref: str  # the trusted branch, by its full name; empty if there is none

    def is_reviewed(self, path: str, content: str) -> bool:
        return content in self.branch.get(path, ()) or content in self.own.get(path, ())

    def hashes(self, path: str) -> set[str]:
        """The contents of a path as the write log names them."""
        return {*self.branch.get(path, {}).values(), *self.own.get(path, {}).values()}


NO_VERDICTS = Verdicts({}, {}, {}, "")


def waiting(home: HomeFolder, known: Verdicts) -> list[RecordVersion]:
    """Records whose content has no verdict, and that this machine's write log does not know."""
    unknown = [row for row in _shared(home) if not known.is_reviewed(row.path, row.etag)]
    if not unknown:
        return []
    own = {name for name, write in own_writes(home, unknown, known).items() if write.is_ours}
    left = {row.id for row in unknown} - own
    left |= resting_on(home, left, own)
    return [row for row in unknown if row.id in left]


def _shared(home: HomeFolder) -> Iterator[RecordVersion]:
    from loki_memory.index.queries import versions

    return (row for row in versions(home.index) if not row.path.startswith(PRIVATE))


def resting_on(home: HomeFolder, unreviewed: set[str], own: Iterable[str]) -> set[str]:
    """Our own records that were derived from what nobody reviewed: it must not come in so."""
    from loki_memory.index.graph import sources

    made_of = sources(home.index, sorted(own)) if unreviewed else {}
    found: set[str] = set()
    while more := {
        name
        for name, ids in made_of.items()
        if name not in found and not ids.isdisjoint(unreviewed | found)
    }:
        found |= more
    return found


# -- contents that the write log of this machine knows ---------------------------------------------


class OwnWrite(NamedTuple):
    """A content that this machine wrote."""

    is_ours: bool  # from nothing or from reviewed contents, or accepted
    is_accepted: bool  # by the user, whatever it was made from


def own_writes(
    home: HomeFolder, rows: Sequence[RecordVersion], known: Verdicts
) -> dict[str, OwnWrite]:
    """The records that this machine wrote, by id.

    A write over a content that nobody reviewed is not ours, unless the user accepted it.
    """
    log = _OwnLog(home.layout)
    found: dict[str, OwnWrite] = {}
    for row in rows if log.lines else ():
        content = content_of(home.layout, row.path)
        if content is not None and etag(content) == row.etag:
            write = log.write_of(row.path, content, known.hashes(row.path))
            found |= {row.id: write} if write else {}
    return found


class _OwnLog:
    """The lines of this machine's chains about each path: content now -> contents before."""

    def __init__(self, layout: Layout) -> None:
        from loki_memory.integrity.write_log import own_chains

        self.lines: dict[str, dict[str, set[str]]] = {}
        for line in own_chains(layout):
            before = _ACCEPTED if line.op == "adopt" else line.was
            self.lines.setdefault(line.path, {}).setdefault(line.sha256, set()).add(before)

    def write_of(self, path: str, content: bytes, reviewed: Collection[str]) -> OwnWrite | None:
        """The write by which a content came to be here; None if it was not written here."""
        from loki_memory.integrity.write_log import content_hash

        name, lines = content_hash(content), self.lines.get(path, {})
        if name not in lines:
            return None
        pending, origins = [name], {name}
        while pending:
            before = lines.get(pending.pop(), set()) - origins
            origins |= before
            pending += before
        is_ours = not origins.isdisjoint({"", _ACCEPTED, *reviewed})
        return OwnWrite(is_ours, _ACCEPTED in lines[name])


def content_of(layout: Layout, path: str) -> bytes | None:
    """The bytes of a record's file; None if it cannot be read."""
    try:
        return disk.read_bytes(layout.file(path))
    except OSError:
        return None


# -- verdicts in the local zone --------------------------------------------------------------------


def is_judged(home: HomeFolder) -> bool:
    """Check if others may have changed memory here: something came from a remote."""
    return not home.is_user and not home.stands_alone and is_shared(home.layout.root)


def verdicts_path(layout: Layout) -> str:
    """The verdicts of a memory folder: worktrees share a local zone, and have files each."""
    name = os.path.basename(chain_path(layout)).removesuffix(".jsonl")
    return f"{layout.local}/reviewed/{name}.json"


def stamp(path: str | os.PathLike[str]) -> str:
    """A value that changes with a file."""
    try:
        status = os.stat(path)
    except OSError:
        return "-"
    return f"{status.st_mtime_ns}:{status.st_size}"


def verdicts(layout: Layout) -> Verdicts:
    """The verdicts that were found last; none if there are none, or they cannot be read."""
    import json  # 3 ms, for the few whose memory came from elsewhere

    try:
        with open(verdicts_path(layout), "rb") as file:
            found = json.loads(file.read())
        texts = {name: ReviewedText(*text) for name, text in found["texts"].items()}
        return Verdicts(found["branch"], found["own"], texts, found["ref"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return NO_VERDICTS


def reviewed_texts(home: HomeFolder) -> Mapping[str, ReviewedText]:
    """Memories that the trusted branch words differently, by id."""
    return verdicts(home.layout).texts


def is_due(home: HomeFolder) -> bool:
    """Check if git or memory moved since verdicts were found."""
    if not is_judged(home):
        return False
    found = disk.read_bytes(verdicts_path(home.layout) + _STATE) or b""
    ref, _, state = found.decode("utf-8", "replace").partition("\n")
    return state != state_of(home, ref)


def keep(layout: Layout, found: Verdicts, state: str) -> None:
    """Write verdicts down; if that fails, the next look finds them again."""
    import json

    data: dict[str, Any] = found._asdict()
    with suppress(OSError):
        path = verdicts_path(layout)
        disk.make_folder(os.path.dirname(path))
        disk.write_bytes(path, json.dumps(data, sort_keys=True).encode())
        disk.write_bytes(path + _STATE, f"{found.ref}\n{state}".encode())


def state_of(home: HomeFolder, ref: str) -> str:
    folders = git_folders(home.layout.root)
    moved = moves(folders, ref) if folders else ""
    branch = home.config.text("trust.branch")
    return f"{home.index.note('changed_ns')} {stamp(chain_path(home.layout))} {branch} {moved}"


# Memories that nobody here answers for: the part of `integrity.reviewed` that hooks read.
#
# The answer stands in the index until memory or a verdict changes.

_NOTE = "unreviewed"  # of the index: the ids, and the state for which they were found


def unreviewed(home: HomeFolder) -> frozenset[str]:
    """The ids of memories that nobody here answers for; none where all is our own work.

    No process is started.
    """
    if not is_judged(home):
        return frozenset()
    state = " ".join(
        (
            home.index.note("changed_ns"),
            stamp(verdicts_path(home.layout)),
            stamp(chain_path(home.layout)),
        )
    )
    known, _, ids = home.index.note(_NOTE).partition("\n")
    if known != state:
        ids = " ".join(sorted(row.id for row in waiting(home, verdicts(home.layout))))
        with suppress(sqlite3.OperationalError), home.index.change(wait=False) as revision:
            revision.set_note(_NOTE, f"{state}\n{ids}")
    return frozenset(ids.split())


def known_unreviewed(home: HomeFolder) -> frozenset[str]:
    """The same for readers; none before git was asked for the first time."""
    is_known = os.path.lexists(verdicts_path(home.layout))
    return unreviewed(home) if is_known else frozenset()


# -- records that the last verification could not confirm ------------------------------------------


_UNVERIFIED = "unverified.json"


def doubts(layout: Layout) -> dict[str, str]:
    """Unverified contents as path -> etag."""
    try:
        with open(layout.local / _UNVERIFIED, "rb") as file:
            data = file.read()
    except OSError:
        return {}
    import json  # 3 ms, for the few that have doubts

    try:
        found = json.loads(data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def note_doubts(layout: Layout, found: Mapping[str, str]) -> None:
    """Keep them for readers. If that fails, at least the caller knows them."""
    import json

    from loki_memory.files import disk

    path = layout.local / _UNVERIFIED
    with suppress(OSError):
        if found and found != doubts(layout):
            disk.write_bytes(path, json.dumps(dict(found), indent=1, sort_keys=True).encode())
        elif not found and os.path.lexists(path):
            os.unlink(path)
